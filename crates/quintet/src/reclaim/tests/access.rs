//! The four ways of being inside hold what they find, and for how long.

use super::*;

struct World {
    domain: Domain,
    writer: Handle,
    drops: Arc<AtomicUsize>,
}

impl World {
    fn new(domain: Domain) -> Self {
        let writer = domain.join();
        Self { domain, writer, drops: Arc::new(AtomicUsize::new(0)) }
    }

    /// Retires a piece that was alive all the while, seals, and frees what may be freed.
    fn retire(&self, birth: u64) {
        // SAFETY: never published, retired once.
        unsafe { self.writer.pin().retire(tracked(&self.drops, birth)) };
        self.writer.flush();
    }

    /// Frees what may be freed, and counts what is.
    fn freed(&self) -> usize {
        self.writer.flush();
        self.drops.load(Ordering::SeqCst)
    }

    /// Two operations: one in the usual case that finds the era changed, one in a section. Both
    /// count.
    fn operate(&self, access: &impl Access) {
        let before = self.freed();
        if let Some(usual) = access.usual() {
            assert!(usual.check());
            usual.books().add(1);
            self.retire(self.domain.era());
            assert!(!usual.check(), "sees no further than its own era (H1)");
            assert_eq!(self.freed(), before, "freed under an operation");
            usual.leave_alone();
        }
        let before = self.freed();
        let section = access.section();
        while !section.check() {}
        section.books().add(1);
        self.retire(self.domain.era());
        access.release();
        assert_eq!(self.freed(), before, "freed under a section");
    }
}

#[test]
fn who_is_inside_per_operation_holds_for_one() {
    both(|domain| {
        let world = World::new(domain.clone());
        let thread = ThreadSeat::new(&domain);
        for turn in 0..200 {
            world.operate(&domain.join());
            world.operate(&thread);
            world.freed();
            assert_eq!(domain.backlog().items, 0, "in turn {turn}");
        }
        // A fenced seat has no usual case. Each operation has counted once, and retired one piece.
        assert!(world.freed() >= 400);
        assert_eq!(domain.live(), world.freed() as i64);
    });
}

#[test]
fn who_is_inside_throughout_holds_until_the_end() {
    both(|domain| {
        let world = World::new(domain.clone());
        let guard = Pinned::new(&domain);
        world.operate(&guard);
        assert_eq!(world.freed(), 0, "the guard lasts");
        drop(guard);
        assert_eq!(world.freed(), 2);
        let mut quiet = domain.join_quiet();
        world.operate(&quiet);
        assert_eq!(world.freed(), 2, "no quiet point yet");
        quiet.quiescent();
        assert_eq!((world.freed(), domain.live()), (4, 4));
    });
}

/// A guard of a quiet point was forgotten: the next section is inside all the same (`reclaim` E8),
/// and so is what comes after it.
#[test]
fn a_quiet_handle_that_is_outside_comes_in_by_a_section() {
    both(|domain| {
        let world = World::new(domain.clone());
        let mut quiet = domain.join_quiet();
        std::mem::forget(quiet.offline());
        assert!(!quiet.usual().is_some_and(|usual| usual.check()), "outside");
        let section = quiet.section();
        while !section.check() {}
        drop(section);
        world.retire(domain.era());
        assert_eq!(world.freed(), 0, "inside until the next quiet point");
        quiet.quiescent();
        assert_eq!(world.freed(), 1);
    });
}
