//! Who looks on: for hangs, and for panics that nobody announced.

use crate::context::{DONE, fatal};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Parts of the messages of documented panics.
const DOCUMENTED: &[&str] = &[
    "could wait for itself",
    "would wait for itself",
    "would wait for its own thread",
    "this would wait for ever",
    "a hash of another key",
    "an item of another key",
    "must return an item of the key",
    "must be given an item of the key",
    "the parent is a record of this set",
    "the try_ form returns this as a value",
    "the operations of `fallible()` return this as a value",
    "try_insert returns this as a value",
    "the same on `fallible()` returns this as a value",
    "its Eq is not consistent",
    "nothing was changed: Clone, Hash or Eq of another writer's key or value panicked",
];

/// Starts the watch over this process.
pub(crate) fn watch() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload();
        let text = text
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(text.downcast_ref::<&str>().copied());
        let documented = |text: &str| DOCUMENTED.iter().any(|part| text.contains(part));
        if !text.is_some_and(documented) {
            let at = panic.location().map(ToString::to_string).unwrap_or_default();
            fatal(&format!(
                "a panic that is not documented, at {at}: {}",
                text.unwrap_or("without text")
            ));
        }
    }));
    let patience = crate::number("QUINTET_PATIENCE").unwrap_or(60);
    std::thread::spawn(move || {
        let mut last = (0, 0);
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = DONE.load(Ordering::Relaxed);
            last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
            if last.1 >= patience {
                fatal(&format!("no operation has ended for {patience} s: a hang"));
            }
        }
    });
}
