//! Whole lives of a domain under many schedules: four threads join, read, replace, go quiet and
//! leave.

use super::*;
use crate::sync::{Arc, AtomicBool, AtomicPtr, Ordering, schedules, thread};

struct Piece {
    freed: AtomicBool,
    birth: u64,
}

/// Freeing only marks: the memory itself goes with the model's end, so a late reader sees the mark.
unsafe fn mark_freed(place: *mut ()) -> Freed {
    // SAFETY: `Piece`s are leaked by the test.
    let piece = unsafe { &*place.cast::<Piece>() };
    assert!(!piece.freed.swap(true, Ordering::SeqCst), "freed twice");
    Freed::Done
}

struct World {
    domain: Domain,
    root: AtomicPtr<Piece>,
}

impl World {
    fn fresh(&self) -> *mut Piece {
        Box::leak(Box::new(Piece { freed: AtomicBool::new(false), birth: self.domain.era() }))
    }

    fn read(&self, visit: &Visit<'_>) {
        loop {
            let place = self.root.load(Ordering::Acquire);
            if visit.check() {
                // SAFETY: leaked.
                let piece = unsafe { &*place };
                thread::yield_now();
                assert!(!piece.freed.load(Ordering::SeqCst), "freed under a reader");
                return;
            }
        }
    }

    fn replace(&self, visit: &Visit<'_>) {
        let old = self.root.swap(self.fresh(), Ordering::AcqRel);
        // SAFETY: leaked.
        let birth = unsafe { &*old }.birth;
        // SAFETY: any thread may mark.
        let piece = unsafe { Retired::new(old.cast(), 8, birth, mark_freed) };
        // SAFETY: unlinked by the swap, retired once.
        unsafe { visit.retire(piece) };
    }
}

#[test]
fn shuttle_readers_and_writers_come_and_go() {
    schedules(2_000, || {
        let domain = Domain::new();
        let world = Arc::new(World { domain, root: AtomicPtr::new(std::ptr::null_mut()) });
        world.root.store(world.fresh(), Ordering::Release);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let world = Arc::clone(&world);
                thread::spawn(move || match number {
                    0 => {
                        let mut handle = world.domain.join_quiet();
                        for _ in 0..3 {
                            world.read(&handle.visit());
                            world.replace(&handle.visit());
                            handle.quiescent();
                        }
                    }
                    1 => (0..3).for_each(|_| world.read(&world.domain.pin())),
                    _ => {
                        for _ in 0..2 {
                            let handle = world.domain.join();
                            let outer = handle.pin();
                            world.read(&handle.pin());
                            world.replace(&outer);
                            world.read(&outer);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
