//! Quiet points that end in an unusual way: what is found behind them is held all the same.

use super::*;
use crate::reclaim::Hold;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A piece whose drop panics.
struct Bomb(#[allow(dead_code)] [u8; 8 << 10]);

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new("on purpose"));
    }
}

fn bomb() -> Retired {
    let place = Box::into_raw(Box::new(Bomb([0; 8 << 10])));
    // SAFETY: fresh from a box.
    unsafe { Retired::boxed(place, 0) }
}

/// Whether what `handle` finds from now on is held for it, however it looks.
fn holds(domain: &Domain, handle: &mut QuietHandle) {
    for all in [false, true] {
        let writer = domain.join();
        let drops = Arc::new(AtomicUsize::new(0));
        let birth = domain.era();
        let visit = handle.visit();
        if all {
            visit.hold_all();
        } else {
            while !visit.check() {}
        }
        // SAFETY: never published, retired once.
        unsafe { writer.pin().retire(tracked(&drops, birth)) };
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "freed under a reader");
        handle.quiescent();
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 1, "and not longer");
        std::mem::forget(handle.offline());
    }
    handle.quiescent();
}

#[test]
fn a_forgotten_offline_guard_leaves_a_handle_that_holds_what_it_finds() {
    both(|domain| {
        let mut handle = domain.join_quiet();
        std::mem::forget(handle.offline());
        holds(&domain, &mut handle);
    });
}

#[test]
fn a_panic_at_a_quiet_point_leaves_a_handle_that_holds_what_it_finds() {
    let points: [fn(&mut QuietHandle); 3] =
        [QuietHandle::quiescent, QuietHandle::flush, |handle| drop(handle.offline())];
    both(|domain| {
        for point in points {
            let mut handle = domain.join_quiet();
            // SAFETY: never published, retired once.
            unsafe { handle.visit().retire(bomb()) };
            let mut panicked = false;
            for _ in 0..3 * BATCH {
                panicked |= catch_unwind(AssertUnwindSafe(|| point(&mut handle))).is_err();
                if panicked {
                    break;
                }
                let drops = Arc::new(AtomicUsize::new(0));
                // SAFETY: never published, retired once.
                unsafe { handle.visit().retire(tracked(&drops, domain.era())) };
            }
            assert!(panicked);
            holds(&domain, &mut handle);
        }
    });
}

/// Behind a quiet point the table may have been freed, and another may lie at its address (`access`
/// H4).
#[test]
fn a_quiet_point_forgets_the_table() {
    let domain = Domain::new();
    let mut quiet = domain.join_quiet();
    let table = (&raw const domain).cast::<()>();
    let points: [fn(&mut QuietHandle); 3] =
        [QuietHandle::quiescent, QuietHandle::flush, |quiet| drop(quiet.offline())];
    assert!(!quiet.knows(std::ptr::null()), "an empty table");
    for point in points {
        quiet.remember(table, quiet.look());
        assert!(quiet.knows(table) && quiet.recall().check());
        point(&mut quiet);
        assert!(!quiet.knows(table) && !quiet.knows(std::ptr::null()));
        assert!(!quiet.recall().check() && quiet.look().check());
    }
}
