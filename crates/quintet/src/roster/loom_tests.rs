//! Seats and their visitors on small cores.

use super::*;
use crate::sync::thread;
use loom::cell::UnsafeCell;

/// Two threads join, write and leave: each seat has one owner, and who takes a seat over sees what
/// was left (`roster` Q1, Q3).
#[test]
fn loom_seats_have_one_owner() {
    loom::model(|| {
        let roster = Roster::<AtomicU64>::new();
        let work = |roster: Arc<Roster<AtomicU64>>| {
            let seat = Roster::join(&roster, || AtomicU64::new(0));
            let seen = seat.load(Ordering::Relaxed);
            seat.store(seen + 1, Ordering::Relaxed);
        };
        let other = Arc::clone(&roster);
        let thread = thread::spawn(move || work(other));
        work(Arc::clone(&roster));
        thread.join().unwrap();
        let mut sum = 0;
        roster.visit_all(|seat| sum += seat.load(Ordering::Relaxed));
        assert_eq!(sum, 2);
    });
}

/// What an owner announces: 0 is quiet.
type Announced = AtomicU64;

/// A thing that readers find by a word and touch, and that a visitor takes away and ends.
struct World {
    roster: Arc<Roster<Announced>>,
    linked: AtomicBool,
    thing: UnsafeCell<()>,
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            roster: Roster::new(),
            linked: AtomicBool::new(true),
            thing: UnsafeCell::new(()),
        })
    }

    /// Joins, announces, touches the thing if it is linked, leaves.
    fn read_once(&self) {
        let seat = Roster::join(&self.roster, || Announced::new(0));
        seat.store(1, Ordering::Relaxed);
        // ORDERING: the announcement comes before what is loaded; partner: the fence of `end`.
        fence(Ordering::SeqCst);
        if self.linked.load(Ordering::Relaxed) {
            self.thing.with(|_| ());
        }
        // ORDERING: Release: partner is the Acquire of `end`.
        seat.store(0, Ordering::Release);
    }

    /// Unlinks the thing, and ends it if nobody announces.
    fn end(&self) {
        self.linked.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut quiet = true;
        self.roster.visit(|seat| quiet &= seat.load(Ordering::Acquire) == 0);
        if quiet {
            self.thing.with_mut(|_| ());
        }
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(3, check);
}

/// An owner joins, reads and leaves while a visitor looks: one that is not found has gone, or sees
/// what was unlinked (`roster` Q4, Q5).
#[test]
fn loom_an_owner_that_is_not_seen_comes_later_or_has_gone() {
    model(|| {
        let world = World::new();
        let other = Arc::clone(&world);
        let reader = thread::spawn(move || other.read_once());
        world.end();
        reader.join().unwrap();
    });
}

/// The same with a seat that is there already, and with one of a later chunk.
#[test]
fn loom_two_owners_come_and_go_during_a_visit() {
    crate::sync::model(2, || {
        let world = World::new();
        world.read_once();
        let readers = [(); 2].map(|()| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.read_once())
        });
        world.end();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// What an owner leaves in a laden seat goes to one other: to who takes laden seats, or to the next
/// who joins (`roster` Q1, Q3).
#[test]
fn loom_what_is_left_in_a_laden_seat_is_found_once() {
    /// Something that one thread at a time may touch.
    struct Load(UnsafeCell<u64>);
    // SAFETY: the cell belongs to the owner of the seat.
    unsafe impl Sync for Load {}

    fn unload(seat: &Seat<Load>) -> u64 {
        // SAFETY: loom hands out the cell, and reports who else touches it.
        seat.0.with_mut(|load| std::mem::take(unsafe { &mut *load }))
    }

    fn join(roster: &Arc<Roster<Load>>) -> Seat<Load> {
        Roster::join(roster, || Load(UnsafeCell::new(0)))
    }

    model(|| {
        let roster = Roster::<Load>::new();
        let laden = join(&roster);
        let other = Arc::clone(&roster);
        let owner = thread::spawn(move || {
            // SAFETY: as in `unload`.
            laden.0.with_mut(|load| unsafe { *load = 1 });
            laden.set_laden(true);
            drop(laden);
            unload(&join(&other))
        });
        let adopted = Roster::take_laden(&roster).map_or(0, |seat| unload(&seat));
        assert_eq!(adopted + owner.join().unwrap(), 1);
    });
}
