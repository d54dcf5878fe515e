//! Seats come and go, and what they leave behind is not lost.

use super::super::seat::SeatState;
use super::*;

fn seats_of(domain: &Domain) -> usize {
    let mut seats = 0;
    domain.core().roster.visit_all(|_| seats += 1);
    seats
}

/// What a reader pays for: one line pair, and lists only if it retires.
#[test]
fn a_seat_is_small() {
    assert_eq!(crate::roster::Seat::<SeatState>::BYTES, 128);
    assert_eq!(size_of::<super::super::domain::Core>(), 128);
    const { assert!(crate::roster::Seat::<SeatState>::SHARED <= 128, "a roster and its first chunk") };
    let domain = Domain::new();
    let handle = domain.join();
    drop(handle.pin());
    handle.flush();
    domain.core().roster.visit_all(|seat| assert!(seat.lists.get().is_none()));
    churn(&handle, &domain, &Arc::new(AtomicUsize::new(0)), 1);
    domain.core().roster.visit(|seat| assert!(seat.lists.get().is_some()));
}

/// A domain is a word or two until somebody uses it, in a static too.
#[test]
fn a_domain_that_nobody_uses_does_nothing() {
    static UNUSED: Domain = Domain::new();
    assert!(size_of::<Domain>() <= 16);
    UNUSED.flush();
    assert!(!UNUSED.is_returning() && !UNUSED.return_piece() && UNUSED.spot().is_none());
    assert_eq!((UNUSED.backlog().items, UNUSED.era()), (0, 1));
    assert!(format!("{UNUSED:?}").contains("0x0"), "nothing was made: {UNUSED:?}");
    let domain = Domain::new();
    assert_eq!(domain.era(), domain.clone().era());
    assert!(std::ptr::eq(domain.core(), domain.clone().core()), "clones are one domain");
}

/// Threads that use a domain for the first time at the same moment use the same one.
#[test]
fn the_first_uses_meet() {
    for _ in 0..200 {
        let (domain, drops) = (Domain::new(), Arc::new(AtomicUsize::new(0)));
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    // SAFETY: never published, retired once.
                    unsafe { domain.pin().retire(tracked(&drops, domain.era())) };
                });
            }
        });
        assert_eq!(domain.backlog().items, 2);
        drop(domain);
        assert_eq!(drops.load(Ordering::SeqCst), 2);
    }
}

/// Leaving costs nobody a collection: what is left is found by the next owner of the seat.
#[test]
fn a_handle_that_goes_leaves_its_garbage_to_the_next() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let era = domain.era();
        for round in 1..=10 {
            let handle = domain.join();
            churn(&handle, &domain, &drops, 1);
            drop(handle);
            assert_eq!((domain.backlog().items, domain.era(), seats_of(&domain)), (round, era, 1));
        }
        let handle = domain.join();
        handle.flush();
        assert_eq!((drops.load(Ordering::SeqCst), domain.backlog().items), (10, 0));
    });
}

/// However short the lives, a batch fills.
#[test]
fn the_garbage_of_short_lives_is_freed_in_time() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut worst = 0;
        for _ in 0..20_000 {
            let (first, second) = (domain.join(), domain.join());
            churn(&first, &domain, &drops, 1);
            churn(&second, &domain, &drops, 1);
            worst = worst.max(domain.backlog().bytes);
        }
        assert!(worst <= 4 * BATCH_BYTES, "{worst} bytes");
    });
}

/// Who stays collects for who has gone.
#[test]
fn garbage_of_handles_that_have_gone_is_adopted_by_a_collector() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let writer = domain.join();
        let many: Vec<_> = (0..100).map(|_| domain.join()).collect();
        many.iter().for_each(|handle| churn(handle, &domain, &drops, 1));
        drop(many);
        assert_eq!(domain.backlog().items, 100);
        writer.flush();
        assert_eq!((drops.load(Ordering::SeqCst), domain.backlog().items), (100, 0));
    });
}

/// Much is not left to others.
#[test]
fn a_handle_that_goes_frees_much() {
    both(|domain| {
        let handle = domain.join();
        let place = Box::into_raw(Box::new([0_u8; BATCH_BYTES / 3]));
        // SAFETY: fresh from a box that nobody else knows.
        let piece = unsafe { Retired::boxed(place, 0) };
        // SAFETY: never published, retired once.
        unsafe { handle.pin().retire(piece) };
        assert!(domain.backlog().bytes > 0, "not a batch");
        drop(handle);
        assert_eq!(domain.backlog().bytes, 0);
    });
}

/// A drop that panics while its handle goes takes nothing with it.
#[test]
fn a_panic_at_the_end_of_a_handle_loses_nothing() {
    struct Bomb(#[allow(dead_code)] [u8; BATCH_BYTES / 3]);
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (handle, reader) = (domain.join(), domain.join());
        let section = reader.pin();
        // SAFETY: never published, retired once.
        unsafe { handle.pin().retire(tracked(&drops, domain.era())) };
        let bomb = Box::into_raw(Box::new(Bomb([0; BATCH_BYTES / 3])));
        // SAFETY: fresh from a box; born after the reader entered, as far as it can tell.
        let bomb = unsafe { Retired::boxed(bomb, domain.era() + 1) };
        // SAFETY: never published, retired once.
        unsafe { handle.pin().retire(bomb) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(handle)));
        assert!(outcome.is_err());
        assert_eq!(domain.backlog().items, 1, "held back by the reader");
        drop(section);
        reader.flush();
        assert_eq!((drops.load(Ordering::SeqCst), domain.backlog().items), (1, 0));
    });
}
