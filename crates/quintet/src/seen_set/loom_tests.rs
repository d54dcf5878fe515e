//! The slot protocol and the rendezvous under loom: every order of steps that the memory model
//! allows, up to two preemptions.
//!
//! Tables are as small as they get: two slots, chunks of two, one segment. The first insert fills
//! the first table to its threshold, so that the second one meets a growth.

use super::*;
use crate::sync::thread;
use loom::cell::UnsafeCell;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A key's low byte is the top of its hash, and so its home.
#[derive(Default)]
struct Top(u64);

impl Hasher for Top {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words")
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key << 56;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A record that loom watches: reading one that was not published to the reader is an error.
struct Watched(u64, UnsafeCell<()>);

// SAFETY: the cell is only read once the record is shared.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    fn new(key: u64) -> Self {
        let record = Self(key, UnsafeCell::new(()));
        record.1.with_mut(|_| ());
        record
    }
}
impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.1.with(|_| ());
        other.1.with(|_| ());
        self.0 == other.0
    }
}
impl Eq for Watched {}
impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

type Hashing = BuildHasherDefault<Top>;
type Set = SeenSet<Watched, Hashing>;
type Access = Handle<'static, Watched, Hashing>;

/// Keys with home 0 and with the last home.
const LOW: u64 = 0x01;
const LOW_TOO: u64 = 0x02;
const HIGH: u64 = 0xf0;

fn model(check: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, check);
}

/// A set that outlives its threads, and handles made ahead of them.
struct World {
    set: *mut Set,
}

impl World {
    fn new(growth: Growth) -> Self {
        Self::made_by(SeenSet::builder().growth(growth))
    }

    /// With a table that is there from the start and is not left for so many records.
    fn with_room(records: usize) -> Self {
        Self::made_by(SeenSet::builder().capacity(records))
    }

    fn made_by(builder: SeenSetBuilder<Watched>) -> Self {
        let set = builder.max_load(0.9).hasher(Hashing::default()).build();
        Self { set: Box::into_raw(Box::new(set)) }
    }

    fn set(&self) -> &'static Set {
        // SAFETY: freed by `end`, after the threads and handles.
        unsafe { &*self.set }
    }

    fn handle(&self) -> Access {
        self.set().handle()
    }

    /// What must hold in the end: these keys, each once, found under the id that its inserts were
    /// told.
    fn end(self, told: &[(u64, Insertion)]) {
        let mut keys: Vec<u64> = told.iter().map(|told| told.0).collect();
        keys.sort_unstable();
        keys.dedup();
        for &key in &keys {
            let of_key = || told.iter().filter(|told| told.0 == key);
            assert_eq!(of_key().filter(|told| told.1.is_new()).count(), 1, "one is new");
            let id = of_key().next().unwrap().1.id();
            assert!(of_key().all(|told| told.1.id() == id), "one id");
            assert_eq!(self.set().find(&Watched::new(key)), Some(id));
        }
        let mut walked: Vec<u64> = self.set().iter().map(|(_, record)| record.0).collect();
        walked.sort_unstable();
        assert_eq!(walked, keys, "each once");
        assert_eq!(self.set().len(), keys.len());
        // SAFETY: made in `new`; threads and handles are gone.
        drop(unsafe { Box::from_raw(self.set) });
    }
}

fn insert(handle: &Access, key: u64) -> (u64, Insertion) {
    (key, handle.insert(Watched::new(key)))
}

#[test]
fn loom_seen_two_inserts_of_one_key_agree() {
    model(|| {
        let world = World::new(Growth::Spread);
        let (one, two) = (world.handle(), world.handle());
        let other = thread::spawn(move || insert(&one, LOW));
        let ours = insert(&two, LOW);
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[ours, theirs]);
    });
}

/// A growth is under way: one thread moves what the other looks for.
#[test]
fn loom_seen_insert_against_migrate() {
    model(|| {
        let world = World::new(Growth::Spread);
        let (one, two) = (world.handle(), world.handle());
        let first = insert(&two, LOW);
        let other = thread::spawn(move || insert(&one, LOW_TOO));
        let ours = insert(&two, LOW_TOO);
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[first, ours, theirs]);
    });
}

/// Both fill the first table to its threshold at once, and both prepare the next.
#[test]
fn loom_seen_two_growers() {
    model(|| {
        let world = World::new(Growth::Spread);
        let (one, two) = (world.handle(), world.handle());
        let other = thread::spawn(move || insert(&one, HIGH));
        let ours = insert(&two, LOW);
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[ours, theirs]);
    });
}

/// The other thread may fall asleep with a copy or a guest in its hands while the set grows on.
#[test]
fn loom_seen_a_mover_asleep_over_growths() {
    crate::sync::model(1, || {
        let world = World::new(Growth::Spread);
        let (one, two) = (world.handle(), world.handle());
        let first = insert(&two, LOW);
        let other = thread::spawn(move || insert(&one, HIGH));
        let ours = [insert(&two, LOW_TOO), insert(&two, HIGH)];
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[first, ours[0], ours[1], theirs]);
    });
}

#[test]
fn loom_seen_contains_never_misses() {
    model(|| {
        let world = World::new(Growth::Spread);
        let (one, two) = (world.handle(), world.handle());
        let first = insert(&two, LOW);
        let other = thread::spawn(move || one.contains(&Watched::new(LOW)));
        let ours = insert(&two, LOW_TOO);
        assert!(other.join().unwrap(), "missed while it was moved");
        drop(two);
        world.end(&[first, ours]);
    });
}

/// What was seen ahead is old when it is used: another thread takes the free slot, inserts the same
/// key, or moves the table.
#[test]
fn loom_seen_many_against_an_insert() {
    for theirs in [LOW, LOW_TOO, HIGH] {
        crate::sync::model(1, move || {
            let world = World::new(Growth::Spread);
            let (one, two) = (world.handle(), world.handle());
            let other = thread::spawn(move || insert(&one, theirs));
            let keys = [LOW, LOW_TOO, LOW];
            let mut told = Vec::new();
            two.insert_each(keys.map(Watched::new), |insertion| told.push(insertion));
            let ours = keys.into_iter().zip(told);
            let told: Vec<_> = ours.chain([other.join().unwrap()]).collect();
            drop(two);
            world.end(&told);
        });
    }
}

/// In a table that is not being left, a batch and an insert want the same free slot for the same
/// key.
#[test]
fn loom_seen_many_and_an_insert_meet_at_a_slot() {
    model(|| {
        let world = World::with_room(1);
        let (one, two) = (world.handle(), world.handle());
        let other = thread::spawn(move || insert(&one, LOW));
        let mut told = Vec::new();
        two.insert_each([Watched::new(LOW)], |insertion| told.push((LOW, insertion)));
        told.push(other.join().unwrap());
        drop(two);
        world.end(&told);
    });
}

/// Keys of the lower segment of two, one of which is in the last line of its share.
const LOW_LAST: u64 = 0x7f;

/// A small set of two segments that has its door: both are in the small table, in which a slot is
/// free.
fn with_door() -> (World, Access, [(u64, Insertion); 3]) {
    let world = World::made_by(SeenSet::builder().small().capacity(2).shards(2));
    let handle = world.handle();
    let told = [LOW, HIGH, LOW_LAST].map(|key| insert(&handle, key));
    assert!(
        world.set().made().unwrap().core.roots.row().is_some(),
        "the third has opened the door"
    );
    (world, handle, told)
}

/// Both move the share of one segment, for the same key or for two.
#[test]
fn loom_seen_small_two_movers_of_one_share() {
    for theirs in [LOW_TOO, LOW_LAST - 1] {
        model(move || {
            let (world, two, first) = with_door();
            let one = world.handle();
            let other = thread::spawn(move || insert(&one, theirs));
            let ours = insert(&two, LOW_TOO);
            let theirs = other.join().unwrap();
            drop(two);
            world.end(&[first[0], first[1], first[2], ours, theirs]);
        });
    }
}

/// Each moves a share, and one of them leaves the small table, in which the other may still be.
#[test]
fn loom_seen_small_two_shares() {
    model(|| {
        let (world, two, first) = with_door();
        let one = world.handle();
        let other = thread::spawn(move || insert(&one, HIGH + 1));
        let ours = insert(&two, LOW_TOO);
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[first[0], first[1], first[2], ours, theirs]);
    });
}

/// What was there is found while its share is moved, and all is walked over once.
#[test]
fn loom_seen_small_contains_never_misses() {
    model(|| {
        let (world, two, first) = with_door();
        let (one, set) = (world.handle(), world.set());
        let other = thread::spawn(move || {
            assert!(one.contains(&Watched::new(LOW_LAST)), "missed while it was moved");
            let mut walked: Vec<u64> = set.iter().map(|(_, record)| record.0).collect();
            walked.retain(|key| [LOW, HIGH, LOW_LAST].contains(key));
            walked.sort_unstable();
            assert_eq!(walked, [LOW, LOW_LAST, HIGH], "each once");
        });
        let ours = insert(&two, LOW_TOO);
        other.join().unwrap();
        drop(two);
        world.end(&[first[0], first[1], first[2], ours]);
    });
}

/// The small table is left altogether between two loads of the one that looks (`small` Q4).
#[test]
fn loom_seen_small_contains_behind_the_door() {
    model(|| {
        let (world, two, first) = with_door();
        let one = world.handle();
        let other = thread::spawn(move || one.contains(&Watched::new(LOW_LAST)));
        let ours = [LOW_TOO, HIGH + 1].map(|key| insert(&two, key));
        assert!(other.join().unwrap(), "missed behind the door");
        drop(two);
        world.end(&[first[0], first[1], first[2], ours[0], ours[1]]);
    });
}

/// A key goes into the small table, or not, while another opens the door and moves its share.
#[test]
fn loom_seen_small_insert_against_the_door() {
    model(|| {
        let world = World::made_by(SeenSet::builder().small().capacity(2).shards(2));
        let (one, two) = (world.handle(), world.handle());
        let first = [LOW, HIGH].map(|key| insert(&two, key));
        let other = thread::spawn(move || insert(&one, LOW_TOO));
        let ours = [insert(&two, LOW_LAST), insert(&two, LOW_TOO)];
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[first[0], first[1], ours[0], ours[1], theirs]);
    });
}

/// The first small table is made, filled and left for a larger one.
#[test]
fn loom_seen_small_grows() {
    crate::sync::model(1, || {
        let world = World::made_by(SeenSet::builder().small().shards(2));
        let (one, two) = (world.handle(), world.handle());
        let other = thread::spawn(move || insert(&one, LOW));
        let ours = [LOW_TOO, HIGH, LOW].map(|key| insert(&two, key));
        let theirs = other.join().unwrap();
        drop(two);
        world.end(&[ours[0], ours[1], ours[2], theirs]);
    });
}

/// Two members meet; the second wakes the first without a reason before it comes.
#[test]
fn loom_seen_rendezvous_with_spurious_wakes() {
    crate::sync::model(1, || {
        let world = World::new(Growth::Together);
        let (one, two) = (world.handle(), world.handle());
        let first = insert(&two, LOW);
        let other = thread::spawn(move || {
            one.set().made().unwrap().core.meeting.as_ref().unwrap().wake_for_nothing();
            insert(&one, LOW_TOO)
        });
        let ours = insert(&two, LOW_TOO);
        drop(two);
        let theirs = other.join().unwrap();
        world.end(&[first, ours, theirs]);
    });
}

/// One member leaves instead of coming: the other must not wait for it.
#[test]
fn loom_seen_a_leaving_member_is_not_waited_for() {
    model(|| {
        let world = World::new(Growth::Together);
        let (one, two) = (world.handle(), world.handle());
        let first = insert(&two, LOW);
        let leaver = thread::spawn(move || drop(one));
        let ours = insert(&two, HIGH);
        leaver.join().unwrap();
        drop(two);
        world.end(&[first, ours]);
    });
}

/// Both may fill the ring before the growth is seen: without a gap no cluster has a beginning.
#[test]
fn loom_seen_two_members_fill_the_ring() {
    crate::sync::model(1, || {
        let world = World::new(Growth::Together);
        let (one, two) = (world.handle(), world.handle());
        let other = thread::spawn(move || insert(&one, HIGH));
        let ours = [insert(&two, LOW), insert(&two, LOW_TOO)];
        drop(two);
        let theirs = other.join().unwrap();
        world.end(&[ours[0], ours[1], theirs]);
    });
}

/// A member and a visitor: the visitor ends the round without the member, which may be inside of
/// it, on its way there, or idle.
#[test]
fn loom_seen_a_visitor_does_not_wait_for_a_member() {
    crate::sync::model(1, || {
        let world = World::new(Growth::Together);
        let (one, set) = (world.handle(), world.set());
        let first = insert(&one, LOW);
        let other = thread::spawn(move || (insert(&one, LOW_TOO), one));
        let ours = [HIGH, LOW_TOO].map(|key| (key, set.insert(Watched::new(key))));
        let (theirs, one) = other.join().unwrap();
        drop(one);
        world.end(&[first, ours[0], ours[1], theirs]);
    });
}

/// Two who have no handle borrow a worker, perhaps the same one after the other.
#[test]
fn loom_seen_two_visitors_of_one_key_agree() {
    for growth in [Growth::Spread, Growth::Together] {
        crate::sync::model(1, move || {
            let world = World::new(growth);
            let set = world.set();
            let other = thread::spawn(move || (LOW, set.insert(Watched::new(LOW))));
            let ours = [LOW, HIGH].map(|key| (key, set.insert(Watched::new(key))));
            let theirs = other.join().unwrap();
            world.end(&[ours[0], ours[1], theirs]);
        });
    }
}
