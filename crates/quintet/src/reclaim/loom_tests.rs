//! The seat protocol on small cores, with fences on both sides (loom cannot interrupt other
//! threads).
//!
//! A piece is a tracked cell: readers read it, freeing writes it. loom reports any two such
//! accesses that no happens-before separates, which is exactly a use after free.

use super::*;
use crate::sync::{Arc, AtomicPtr, Barrier, Ordering, thread};
use loom::cell::UnsafeCell;

struct Piece {
    touched: UnsafeCell<u64>,
    next: AtomicPtr<Piece>,
    birth: u64,
}

impl Piece {
    /// Pieces are owned by the model's end: the test keeps them all alive, freeing only marks them.
    fn new(domain: &Domain, next: *mut Piece) -> *mut Piece {
        let birth = domain.era();
        Box::into_raw(Box::new(Piece {
            touched: UnsafeCell::new(0),
            next: AtomicPtr::new(next),
            birth,
        }))
    }
}

unsafe fn mark_freed(place: *mut ()) -> Freed {
    // SAFETY: the memory lives until the end of the model.
    let piece = unsafe { &*place.cast::<Piece>() };
    piece.touched.with_mut(|_| ());
    Freed::Done
}

fn retire(visit: &Visit<'_>, place: *mut Piece) {
    // SAFETY: the memory lives until the end of the model.
    let birth = unsafe { &*place }.birth;
    // SAFETY: `mark_freed` may be called by any thread.
    let piece = unsafe { Retired::new(place.cast(), 8, birth, mark_freed) };
    // SAFETY: the callers have unlinked the piece.
    unsafe { visit.retire(piece) };
}

fn touch(place: *mut Piece) {
    // SAFETY: the memory lives until the end of the model; whether it counts as freed is what loom
    // checks.
    let piece = unsafe { &*place };
    piece.touched.with(|_| ());
}

struct World {
    domain: Domain,
    root: AtomicPtr<Piece>,
}

impl World {
    fn new(depth: usize) -> Arc<Self> {
        let domain = Domain::with_barrier(Barrier::Fence);
        let mut first = std::ptr::null_mut();
        for _ in 0..depth {
            first = Piece::new(&domain, first);
        }
        Arc::new(Self { domain, root: AtomicPtr::new(first) })
    }

    /// Follows root and, if asked, the link behind it, each load checked (`reclaim` E3).
    fn read(&self, handle: &Handle, depth: usize) {
        let section = handle.pin();
        let visit: &Visit<'_> = &section;
        'restart: loop {
            let mut seen = Vec::new();
            let mut place = self.root.load(Ordering::Acquire);
            for _ in 0..depth {
                if !visit.check() {
                    continue 'restart;
                }
                if place.is_null() {
                    break;
                }
                touch(place);
                seen.push(place);
                // SAFETY: checked above, so not freed before the section ends.
                place = unsafe { &*place }.next.load(Ordering::Acquire);
            }
            // What was confirmed stays valid until the section ends.
            seen.into_iter().for_each(touch);
            return;
        }
    }

    fn replace(&self, handle: &Handle) {
        let section = handle.pin();
        let fresh = Piece::new(&self.domain, std::ptr::null_mut());
        let old = self.root.swap(fresh, Ordering::AcqRel);
        retire(&section, old);
    }
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, test);
}

/// A reader enters and sleeps; an item is born, published, read by it, and retired.
#[test]
fn loom_item_born_after_the_reader_entered() {
    model(|| {
        let world = World::new(1);
        let (handle, reader) = (world.domain.join(), world.domain.join());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            other.read(&reader, 1);
            reader // its end is another test's matter
        });
        // Somebody else's batch: what is born from here on is born after the reader's era.
        world.domain.core().pulse.era.fetch_add(1, Ordering::AcqRel);
        world.replace(&handle);
        world.replace(&handle);
        drop(reader.join().unwrap());
    });
}

/// Two reclaimers: one unlinks by a plain store and seals; the other moves the era meanwhile (a
/// stale stamp would free under the reader).
#[test]
fn loom_two_reclaimers_and_a_stale_stamp() {
    model(|| {
        let world = World::new(1);
        let (handle, reader) = (world.domain.join(), world.domain.join());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            other.read(&reader, 1);
            reader // its end is another test's matter
        });
        let other = Arc::clone(&world);
        // All that the other reclaimer's batch does to this one: the era moves.
        let sealer = thread::spawn(move || {
            other.domain.core().pulse.era.fetch_add(1, Ordering::AcqRel);
        });
        let section = handle.pin();
        let fresh = Piece::new(&world.domain, std::ptr::null_mut());
        let old = world.root.load(Ordering::Relaxed);
        // ORDERING: Release publishes the fresh piece; a plain store, no read-modify-write, on
        // purpose.
        world.root.store(fresh, Ordering::Release);
        retire(&section, old);
        drop(section);
        sealer.join().unwrap();
        drop(reader.join().unwrap());
    });
}

/// Root → a → b: both are unlinked by swinging the root while a reader walks. Re-reading `a.next`
/// instead of starting from the root would follow a link inside freed memory.
#[test]
fn loom_chain_restarts_from_the_root() {
    model(|| {
        let world = World::new(2);
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let handle = other.domain.join();
            other.read(&handle, 2);
        });
        let handle = world.domain.join();
        let first = world.root.load(Ordering::Relaxed);
        // SAFETY: the memory lives until the end of the model.
        let second = unsafe { &*first }.next.load(Ordering::Relaxed);
        // A new second behind the first, then a new first: the old ones go in two batches.
        let fresh = Piece::new(&world.domain, std::ptr::null_mut());
        // SAFETY: as above.
        unsafe { &*first }.next.store(fresh, Ordering::Release);
        retire(&handle.pin(), second);
        handle.flush();
        world.replace(&handle);
        handle.flush();
        reader.join().unwrap();
    });
}

/// A quiet handle reads, passes a quiet point, reads again.
fn read_at_quiet_points(world: &World) {
    let mut handle = world.domain.join_quiet();
    for _ in 0..2 {
        let visit = handle.visit();
        loop {
            let place = world.root.load(Ordering::Acquire);
            if visit.check() {
                touch(place);
                break;
            }
        }
        handle.quiescent();
    }
}

#[test]
fn loom_quiet_points() {
    model(|| {
        let world = World::new(1);
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || read_at_quiet_points(&other));
        let handle = world.domain.join();
        world.replace(&handle);
        handle.flush();
        reader.join().unwrap();
    });
}

/// Where nobody pins, the collector has its own fence and no other (`light` F2).
#[test]
fn loom_quiet_points_alone() {
    model(|| {
        let world = World::new(1);
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || read_at_quiet_points(&other));
        let mut handle = world.domain.join_quiet();
        let fresh = Piece::new(&world.domain, std::ptr::null_mut());
        // ORDERING: Release publishes the fresh piece; the only writer, by a plain store.
        let old = world.root.load(Ordering::Relaxed);
        world.root.store(fresh, Ordering::Release);
        retire(&handle.visit(), old);
        handle.quiescent();
        handle.flush();
        assert_eq!(world.domain.backlog().barriers, 0);
        reader.join().unwrap();
    });
}

/// A seat is vacated and taken over while the reclaimer scans.
#[test]
fn loom_seat_changes_hands_during_a_scan() {
    model(|| {
        let world = World::new(1);
        let other = Arc::clone(&world);
        let readers = thread::spawn(move || {
            for _ in 0..2 {
                let handle = other.domain.join();
                other.read(&handle, 1);
            }
        });
        let handle = world.domain.join();
        world.replace(&handle);
        handle.flush();
        readers.join().unwrap();
    });
}

/// A model in which light seats announce without any fence, and the barrier that makes up for it is
/// refused: what is freed is freed by the collector's own fence (`light` F2).
fn bare_model(test: impl Fn(Arc<World>, QuietHandle) + Sync + Send + 'static) {
    crate::sync::barrier::BARE.set(true);
    model(move || {
        let domain = Domain::with_barrier(Barrier::Asymmetric);
        let root = AtomicPtr::new(Piece::new(&domain, std::ptr::null_mut()));
        let collector = domain.join_quiet();
        test(Arc::new(World { domain, root }), collector);
    });
    crate::sync::barrier::BARE.set(false);
}

impl World {
    fn look(&self, visit: &Visit<'_>) {
        loop {
            let place = self.root.load(Ordering::Acquire);
            if visit.check() {
                return touch(place);
            }
        }
    }

    /// Replaces the piece by a plain store, and frees the old one if that is allowed.
    fn replace_quietly(&self, mut collector: QuietHandle) {
        let fresh = Piece::new(&self.domain, std::ptr::null_mut());
        let old = self.root.load(Ordering::Relaxed);
        // ORDERING: Release publishes the fresh piece.
        self.root.store(fresh, Ordering::Release);
        retire(&collector.visit(), old);
        collector.quiescent();
    }
}

/// A handle takes a fenced seat and becomes light while a batch is collected.
#[test]
fn loom_a_seat_becomes_light_during_a_collection() {
    bare_model(|world, collector| {
        drop(world.domain.join_quiet());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let handle = other.domain.join();
            other.look(&handle.pin());
            other.look(&handle.pin());
            handle
        });
        world.replace_quietly(collector);
        drop(reader.join().unwrap());
    });
}

/// The same with a thread's own seat, which is pinned often.
#[test]
fn loom_a_local_seat_becomes_light_during_a_collection() {
    bare_model(|world, collector| {
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || (0..3).for_each(|_| other.look(&other.domain.pin())));
        world.replace_quietly(collector);
        reader.join().unwrap();
    });
}

/// A light handle reads and ends, and a quiet one takes its seat and reads.
#[test]
fn loom_a_seat_becomes_fenced_during_a_collection() {
    bare_model(|world, collector| {
        let light = world.domain.join();
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            other.look(&light.pin());
            drop(light);
            other.look(&other.domain.join_quiet().visit());
        });
        world.replace_quietly(collector);
        reader.join().unwrap();
    });
}

/// An operation stands in a piece that has left the root and has a link to one that was born and
/// freed since; another of the same seat, inside of it, announces the present era. The outer one
/// must not follow the link (`reclaim` E9).
#[test]
fn loom_an_inner_section_does_not_vouch_for_the_outer_one() {
    model(|| {
        let world = World::new(1);
        let (handle, reader) = (world.domain.join(), world.domain.join());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let outer = reader.pin();
            let first = other.root.load(Ordering::Acquire);
            if outer.check() {
                other.look(&reader.pin());
                // SAFETY: the memory lives until the end of the model.
                let second = unsafe { &*first }.next.load(Ordering::Acquire);
                if outer.check() && !second.is_null() {
                    touch(second);
                }
            }
            drop(outer);
            reader // its end is another test's matter
        });
        // What is born from here on is born after the era in which the reader may have entered.
        world.domain.core().pulse.era.fetch_add(1, Ordering::AcqRel);
        let section = handle.pin();
        let first = world.root.load(Ordering::Relaxed);
        let second = Piece::new(&world.domain, std::ptr::null_mut());
        // SAFETY: the memory lives until the end of the model.
        unsafe { &*first }.next.store(second, Ordering::Release);
        // Both leave at once; the first keeps its link to the second.
        let fresh = Piece::new(&world.domain, std::ptr::null_mut());
        world.root.store(fresh, Ordering::Release);
        retire(&section, first);
        retire(&section, second);
        drop(section);
        handle.flush();
        drop(reader.join().unwrap());
    });
}

/// A section opened inside of a brief one goes on when that one is over (`reclaim` E10).
#[test]
fn loom_a_brief_section_does_not_end_the_one_inside() {
    model(|| {
        let world = World::new(1);
        let (handle, reader) = (world.domain.join(), world.domain.join());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let brief = reader.spot().enter().expect("the usual case");
            let inner = reader.pin();
            drop(brief);
            other.look(&inner);
            drop(inner);
            reader // its end is another test's matter
        });
        world.replace(&handle);
        drop(reader.join().unwrap());
    });
}

/// A handle goes while a reader holds its garbage back, and somebody else adopts it meanwhile: all
/// is freed, and not under the reader.
#[test]
fn loom_what_a_handle_leaves_behind_is_adopted() {
    model(|| {
        let world = World::new(1);
        let (writer, reader, collector) =
            (world.domain.join(), world.domain.join(), world.domain.join());
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || {
            other.read(&reader, 1);
            reader // its end is another test's matter
        });
        let other = Arc::clone(&world);
        let leaver = thread::spawn(move || {
            other.replace(&writer);
            drop(writer);
        });
        collector.flush();
        leaver.join().unwrap();
        drop(reader.join().unwrap());
        collector.flush();
        assert_eq!(world.domain.backlog().items, 0, "found in the vacant seat");
    });
}

/// The same with the next owner of the seat, who goes on with what it finds there.
#[test]
fn loom_what_a_handle_leaves_behind_goes_to_the_next_owner() {
    model(|| {
        let world = World::new(1);
        let (writer, reader) = (world.domain.join(), world.domain.join());
        let section = reader.pin();
        let seen = world.root.load(Ordering::Acquire);
        assert!(section.check());
        let other = Arc::clone(&world);
        let leaver = thread::spawn(move || {
            other.replace(&writer);
            drop(writer);
            other.replace(&other.domain.join());
        });
        let next = world.domain.join();
        touch(seen);
        drop(section);
        leaver.join().unwrap();
        next.flush();
        drop(next);
        reader.flush();
        assert_eq!(world.domain.backlog().items, 0, "found in one of the seats");
    });
}
