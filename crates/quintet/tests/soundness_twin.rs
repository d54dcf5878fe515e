//! What safe code might try with a `TwinMap`, and must not succeed with. `docs/soundness.md` says which test stands for what.

use quintet::twin_map::{self, Front};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Runs a story that must end. One that hangs fails the test instead of hanging it.
fn ends<R: Send + 'static>(story: impl FnOnce() -> R + Send + 'static) -> R {
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(catch_unwind(AssertUnwindSafe(story)));
    });
    let Ok(told) = told.recv_timeout(Duration::from_secs(20)) else {
        drop(thread); // hangs for ever
        panic!("the story has not ended in time");
    };
    told.unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

/// A `retain` whose closure panicked was published half done.
#[test]
fn a_retain_that_panics_has_not_happened() {
    let (mut writer, reader) = twin_map::new::<u64, u64>();
    writer.guard().extend((0..1_000).map(|n| (n, n)));
    let mut write = writer.guard();
    write.insert(1_000, 0);
    let mut calls = 0;
    assert!(panics(|| write.retain(|_, _| {
        calls += 1;
        assert!(calls < 500, "on purpose");
        calls % 7 != 0
    })));
    assert_eq!(write.len(), 1_001, "the guard shows what has happened, and no more");
    assert_eq!(write.staged(), 1);
    write.publish();
    for _ in 0..2 {
        assert_eq!(reader.guard().len(), 1_001);
        assert!((0..=1_000).all(|n| reader.guard().contains_key(&n)));
        writer.guard().publish();
    }
}

thread_local! {
    static FRONT: RefCell<Option<Front<u64, Noisy>>> = const { RefCell::new(None) };
}

/// A value whose `Drop` writes a note into the map it was in.
#[derive(Clone, Debug)]
struct Noisy(u64);

impl Drop for Noisy {
    fn drop(&mut self) {
        if self.0 == 1 {
            let front = FRONT.with_borrow(|front| front.clone());
            if let Some(front) = front {
                let _ = front.insert(99, Noisy(0));
            }
        }
    }
}

/// A `Drop` that commits to its own `Front` waited for itself, with the writer locked for ever.
#[test]
fn a_drop_that_commits_to_its_own_front_does_not_hang() {
    ends(|| {
        let (writer, reader) = twin_map::new::<u64, Noisy>();
        let front = writer.into_front();
        front.insert(1, Noisy(1)).unwrap();
        FRONT.with_borrow_mut(|own| *own = Some(front.clone()));
        let mut notes = 0;
        for round in 0..4 {
            front.remove(99).unwrap();
            let version = front.insert(1, Noisy(1 + round % 2)).unwrap();
            assert!(reader.guard().version() >= version);
            notes += u32::from(reader.guard().contains_key(&99));
        }
        assert!(notes > 0, "what the values wrote when they went is in the map");
        FRONT.with_borrow_mut(|own| *own = None);
        front.insert(2, Noisy(2)).unwrap();
        assert!(reader.guard().contains_key(&2));
    });
}
