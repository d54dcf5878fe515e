//! A table that hangs must not hang the race.

use crate::fail::Fail;
use crate::output;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A single round that takes longer than this hangs: the longest take seconds.
const PATIENCE: Duration = Duration::from_secs(180);

/// Watches rounds; ends the process if one does not end.
pub(crate) struct Watch {
    now: Arc<Mutex<Option<Round>>>,
}

/// The round that runs.
struct Round {
    what: String,
    since: Instant,
}

impl Watch {
    /// Starts watching.
    pub(crate) fn start() -> Self {
        let now = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&now);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let round = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(late) = round.as_ref().filter(|r: &&Round| r.since.elapsed() > PATIENCE)
                {
                    give_up(&late.what);
                }
            }
        });
        Self { now }
    }

    /// Watches `round`.
    pub(crate) fn over<R>(&self, what: String, round: impl FnOnce() -> R) -> R {
        let set = |value| *self.now.lock().unwrap_or_else(PoisonError::into_inner) = value;
        set(Some(Round { what, since: Instant::now() }));
        let result = round();
        set(None);
        result
    }
}

/// A hung thread cannot be stopped, so the process ends, and leaves no unfinished file.
fn give_up(what: &str) -> ! {
    let why = format!("one round has been running for {} s", PATIENCE.as_secs());
    let fail = Fail::no(format!("{what} hangs"), why, "report the table's defect");
    output::end(fail.show())
}
