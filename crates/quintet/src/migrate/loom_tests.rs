//! The link on small cores, with fences on both sides (loom cannot interrupt other threads).
//!
//! A table is a tracked cell: who has followed a link reads it, giving it back writes it. loom
//! reports two such accesses that no happens-before separates: a use after free.

use super::{Leave, Link};
use crate::reclaim::{Domain, Section};
use crate::sync::{Arc, AtomicUsize, Barrier, Ordering, model, thread};
use loom::cell::UnsafeCell;

struct Table {
    content: UnsafeCell<u64>,
    next: Link<Table>,
    birth: u64,
    /// Tables of the world that were dropped.
    dropped: Arc<AtomicUsize>,
}

impl Leave for Table {
    fn bytes_and_birth(&self) -> (usize, u64) {
        (8, self.birth)
    }

    unsafe fn give_back(&mut self) -> bool {
        self.content.with_mut(|_| ());
        true
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

struct World {
    domain: Domain,
    root: Link<Table>,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: the content of a table is written before it is published and after nobody can reach it,
// which is what loom checks.
unsafe impl Sync for Table {}

impl World {
    fn new() -> Self {
        Self {
            domain: Domain::with_barrier(Barrier::Fence),
            // SAFETY: followed by sections of the world's domain only, and nothing is used outside
            // of them (`link` M12).
            root: unsafe { Link::empty() },
            dropped: Arc::new(AtomicUsize::new(0)),
        }
    }

    fn table(&self, content: u64) -> Box<Table> {
        Box::new(Table {
            content: UnsafeCell::new(content),
            // SAFETY: as in `new`.
            next: unsafe { Link::empty() },
            birth: self.domain.era(),
            dropped: Arc::clone(&self.dropped),
        })
    }

    /// What is in the last table of the chain.
    fn last(&self, section: &Section<'_>) -> Option<u64> {
        'restart: loop {
            let mut last = None;
            let mut link = &self.root;
            loop {
                match link.follow(section) {
                    Err(_) => continue 'restart,
                    Ok(None) => return last,
                    Ok(Some(table)) => {
                        // SAFETY: whether it may be read is what loom checks.
                        last = Some(table.content.with(|content| unsafe { *content }));
                        link = &table.next;
                    }
                }
            }
        }
    }

    /// Leaves the first table for its successor. True if it was this call that did.
    fn advance(&self, section: &Section<'_>) -> bool {
        loop {
            let Ok(first) = self.root.follow(section) else { continue };
            let first = first.unwrap();
            if first.next.is_empty() {
                return false;
            }
            let Some(left) = self.root.advance(first, &first.next) else { return false };
            // SAFETY: only the root led to it, and one leaves it.
            unsafe { left.retire(section) };
            return true;
        }
    }

    /// Drops the chain, and counts what was dropped in all.
    fn end(mut self) -> usize {
        // SAFETY: alone, and each table is behind one link.
        unsafe { self.root.drop_chain(|table| &mut table.next) };
        let dropped = Arc::clone(&self.dropped);
        drop(self);
        dropped.load(Ordering::Relaxed)
    }
}

fn unwrapped(world: Arc<World>) -> World {
    Arc::try_unwrap(world).unwrap_or_else(|_| panic!("alone"))
}

/// A table that was left is not given back under the one that has followed the link to it, not even
/// one that is younger than the section (`link` M12).
#[test]
fn loom_who_follows_is_not_left_without_a_table() {
    // The third table left is the first that was born after an era that a reader may have
    // announced.
    const ROUNDS: u64 = 3;
    model(2, || {
        let world = Arc::new(World::new());
        assert!(world.root.set_once(world.table(0)).is_ok());
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let handle = world.domain.join();
                let section = handle.pin();
                let last = world.last(&section);
                assert!(matches!(last, Some(0..=ROUNDS)), "{last:?}");
            })
        };
        let handle = world.domain.join();
        for round in 1..=ROUNDS {
            {
                let section = handle.pin();
                let first = world.root.follow(&section).unwrap().unwrap();
                assert!(first.next.set_once(world.table(round)).is_ok());
                assert!(world.advance(&section));
            }
            handle.flush();
        }
        reader.join().unwrap();
        drop(handle);
        assert_eq!(unwrapped(world).end() as u64, ROUNDS + 1);
    });
}

/// Two that set the same link: one wins, the other has its table back, and both find the winner's
/// content (`link` M13).
#[test]
fn loom_one_sets_the_link() {
    model(3, || {
        let world = Arc::new(World::new());
        let set = |world: &World, content| {
            let won = world.root.set_once(world.table(content)).map_err(drop).is_ok();
            let handle = world.domain.join();
            let last = world.last(&handle.pin()).unwrap();
            assert_eq!(last == content, won);
            (won, last)
        };
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || set(&world, 2))
        };
        let (won, last) = set(&world, 1);
        let (other_won, other_last) = other.join().unwrap();
        assert!(won != other_won && last == other_last);
        assert_eq!(unwrapped(world).end(), 2);
    });
}

/// Two that leave the same table: one of them retires it (`link` M14, M15).
#[test]
fn loom_one_leaves_the_table() {
    model(2, || {
        let world = Arc::new(World::new());
        assert!(world.root.set_once(world.table(1)).is_ok());
        {
            let section = world.domain.pin();
            let first = world.root.follow(&section).unwrap().unwrap();
            assert!(first.next.set_once(world.table(2)).is_ok());
        }
        let leave = |world: &World| {
            let handle = world.domain.join();
            let advanced = world.advance(&handle.pin());
            handle.flush();
            advanced
        };
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || leave(&world))
        };
        let advanced = leave(&world);
        assert!(advanced != other.join().unwrap());
        assert_eq!(unwrapped(world).end(), 2);
    });
}
