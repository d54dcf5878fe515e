//! What safe code might try with a `SeenSet`, and must not succeed with. `docs/soundness.md` says
//! which test stands for what.

use quintet::seen_set::{Growth, Ids, Record, RecordId, SeenSetBuilder};
use quintet::{SeenPrints, SeenSet};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn panics<R>(f: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Sets that hold their ids in different widths: the marks of one kind were the marks of the other,
/// shifted.
#[test]
fn an_id_of_a_wide_set_is_no_id_of_a_narrow_one() {
    let wide = SeenSet::<u64>::builder().ids(Ids::Wide).shards(1).build();
    let foreign = wide.handle().insert(7).id();
    for _ in 0..50_000 {
        let narrow = SeenSet::<String>::builder().shards(1).build();
        assert!(narrow.get(foreign).is_none());
    }
}

/// Every call that takes an id, with ids of sets of another type, another width of ids, the same
/// type, and of a set that is gone.
#[test]
fn foreign_ids_are_refused_by_every_call() {
    let set = SeenSet::<String>::builder().parents(true).build();
    let handle = set.handle();
    let own = handle.insert("own".to_owned()).id();
    let twin = SeenSet::<String>::builder().parents(true).build();
    let wide = SeenSet::<[u64; 4]>::builder().ids(Ids::Wide).build();
    let text = SeenSet::<[u8]>::new();
    let gone = SeenSet::<String>::new().handle().insert("own".to_owned()).id();
    let foreign: [RecordId; 4] = [
        twin.handle().insert("own".to_owned()).id(),
        wide.handle().insert([1; 4]).id(),
        text.handle().insert(b"own").id(),
        gone,
    ];
    for id in foreign {
        assert_eq!((set.get(id), handle.get(id)), (None, None));
        assert_eq!((set.parent(id), set.label(id)), (None, 0));
        assert_eq!(set.trace(id), [id]);
        assert!(panics(|| handle.insert_from("new".to_owned(), id, 1)));
        assert!(panics(|| handle.fallible().insert_from("new".to_owned(), id, 1)));
        let many = || [("new".to_owned(), 1)];
        assert!(panics(|| handle.insert_each_from(id, many(), |_| ())));
        assert!(panics(|| handle.fallible().insert_each_from(id, many(), |_| ())));
        assert!(panics(|| text.handle().insert_from(b"new", own, 1)));
    }
    assert_eq!((set.len(), text.len()), (1, 1));
    assert_eq!(set.get(own).map(String::as_str), Some("own"));
}

/// No size, but an alignment; and nothing equals anything, so that a set holds many.
macro_rules! aligned {
    ($($name:ident $align:literal $size:literal),+) => { $(
        #[derive(Debug)]
        #[repr(align($align))]
        struct $name([u8; $size]);

        impl $name {
            fn fill(set: &SeenSet<$name>) {
                let handle = set.handle();
                for _ in 0..3_000 {
                    let id = handle.insert(Self([7; $size])).id();
                    let place = std::ptr::from_ref(set.get(id).unwrap());
                    assert_eq!(place.addr() % align_of::<Self>(), 0, "{} of {}", $align, $size);
                }
                handle.insert_each((0..100).map(|_| Self([7; $size])), |_| ());
                assert_eq!((set.len(), set.iter().count()), (3_100, 3_100));
                let places = set.iter().map(|(_, record)| std::ptr::from_ref(record).addr());
                let places: HashSet<_> = places.collect();
                assert_eq!(places.len(), 3_100, "each has its place");
                let sound = |record: &Self| record.0.iter().all(|byte| *byte == 7);
                assert!(set.iter().all(|(_, record)| sound(record)));
            }
        }
        impl PartialEq for $name {
            fn eq(&self, _: &Self) -> bool {
                false
            }
        }
        impl Eq for $name {}
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                // Some differ, so that lines do not run full of one home.
                thread_local!(static TURN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
                TURN.set(TURN.get() + 1);
                state.write_u64(TURN.get());
            }
        }
    )+ };
}
aligned!(Nothing1 1 0, Nothing8 8 0, Nothing64 64 0, Nothing4096 4096 0, One64 64 1, One4096 4096 1, Odd16 16 17);

/// References to records without size, or of unusual alignment, were not aligned.
#[test]
fn records_are_aligned_whatever_their_size() {
    for (ids, parents) in [(Ids::Narrow, false), (Ids::Narrow, true), (Ids::Wide, true)] {
        macro_rules! fill {
            ($($name:ident),+) => { $(
                $name::fill(&SeenSet::builder().ids(ids).parents(parents).build());
            )+ };
        }
        fill!(Nothing1, Nothing8, Nothing64, Nothing4096, One64, One4096, Odd16);
    }
    let units = SeenSet::<()>::new();
    assert!(units.handle().insert(()).is_new() && !units.handle().insert(()).is_new());
    let words = SeenSet::<[u64; 0]>::builder().parents(true).build();
    let id = words.handle().insert([]).id();
    assert_eq!(words.get(id), Some(&[]));
}

/// Dropped twice, it says so.
#[derive(Debug)]
struct Counted {
    number: u64,
    alive: Box<AtomicU64>,
    live: &'static AtomicU64,
}

thread_local! {
    /// User code panics when this reaches 1.
    static FUSE: Cell<usize> = const { Cell::new(0) };
    /// What the next `Eq` does besides.
    static DEED: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

fn burn() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    assert_ne!(left, 1, "on purpose");
}

impl Counted {
    fn new(number: u64, live: &'static AtomicU64) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, alive: Box::new(AtomicU64::new(1)), live }
    }

    fn look(&self) -> u64 {
        assert_eq!(self.alive.load(Ordering::Relaxed), 1, "looked at after its drop");
        self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert_eq!(self.alive.fetch_sub(1, Ordering::Relaxed), 1, "dropped twice");
        self.live.fetch_sub(1, Ordering::Relaxed);
        if !std::thread::panicking() {
            burn();
        }
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        burn();
        let deed = DEED.with_borrow_mut(Option::take);
        deed.into_iter().for_each(|deed| deed());
        self.look() == other.look()
    }
}
impl Eq for Counted {}
impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        self.look().hash(state);
    }
}

/// All kinds of sets that a story should hold for.
fn builders<R: Record>() -> [SeenSetBuilder<R>; 4] {
    let base = SeenSet::builder;
    let together = base().growth(Growth::Together);
    let wide = base().ids(Ids::Wide).parents(true).shards(1);
    [base(), wide, together.clone(), together.max_load(0.9)]
}

/// `Hash`, `Eq`, `Drop`, the hasher, the iterator of a batch and what is told panic, each at every
/// moment: a record is in the set once or is dropped.
#[test]
fn a_panic_in_user_code_neither_loses_nor_doubles_a_record() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    for builder in builders() {
        for fuse in 1..180 {
            FUSE.set(0);
            let set = builder.clone().build();
            let handle = set.handle();
            (0..20).for_each(|n| {
                let _ = handle.insert(Counted::new(n, &LIVE));
            });
            FUSE.set(fuse);
            for n in 15..40 {
                let _ = panics(|| handle.insert(Counted::new(n, &LIVE)));
                let _ = panics(|| set.find(&Counted::new(n, &LIVE)));
            }
            let batch = (30..80).map(|n| {
                burn();
                Counted::new(n, &LIVE)
            });
            let _ = panics(|| handle.insert_each(batch, |_| burn()));
            FUSE.set(0);
            let mut numbers: Vec<u64> = set.iter().map(|(_, record)| record.look()).collect();
            numbers.sort_unstable();
            let found = numbers.len();
            numbers.dedup();
            assert_eq!((numbers.len(), set.len() as u64), (found, LIVE.load(Ordering::Relaxed)));
            assert!(numbers.iter().all(|n| set.contains(&Counted::new(*n, &LIVE))));
            // The set goes on.
            assert!(handle.insert(Counted::new(1_000, &LIVE)).is_new());
            drop(handle);
            drop(set);
            assert_eq!(LIVE.load(Ordering::Relaxed), 0, "fuse {fuse}");
        }
    }
}

/// A record whose `Drop` panics while the set goes: each is dropped at most once.
#[test]
fn a_record_that_panics_when_the_set_goes_takes_no_other_along() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    let set = SeenSet::<Counted>::new();
    (0..100).for_each(|n| {
        let _ = set.handle().insert(Counted::new(n, &LIVE));
    });
    FUSE.set(50);
    assert!(panics(|| drop(set)));
    FUSE.set(0);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0, "each is dropped once");
}

/// What `Eq` does with the set that calls it: each deed inside each operation.
#[test]
fn eq_may_use_the_set_that_calls_it() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    type Deed = fn(Arc<SeenSet<Counted>>);
    let deeds: [Deed; 6] = [
        |set| {
            let _ = set.contains(&Counted::new(3, &LIVE));
        },
        |set| {
            let _ = set.handle().insert(Counted::new(500, &LIVE));
        },
        |set| assert!(set.iter().all(|(_, record)| record.look() == record.number)),
        // Grows, several times.
        |set| {
            let handle = set.handle();
            (10_000..14_000).for_each(|n| {
                let _ = handle.insert(Counted::new(n, &LIVE));
            });
        },
        |set| drop((set.handle(), set.handle())),
        // The last but one owner goes.
        drop,
    ];
    for builder in &builders()[..2] {
        for deed in deeds {
            for operation in 0..4 {
                let set = Arc::new(builder.clone().build());
                let handle = set.handle();
                (0..10).for_each(|n| {
                    let _ = handle.insert(Counted::new(n, &LIVE));
                });
                let inside = Arc::clone(&set);
                DEED.with_borrow_mut(|next| *next = Some(Box::new(move || deed(inside))));
                match operation {
                    0 => assert!(!handle.insert(Counted::new(5, &LIVE)).is_new()),
                    1 => assert!(handle.contains(&Counted::new(5, &LIVE))),
                    2 => assert!(set.contains(&Counted::new(5, &LIVE))),
                    _ => handle.insert_each((0..40).map(|n| Counted::new(n, &LIVE)), |_| ()),
                }
                assert!(DEED.with_borrow(Option::is_none), "the deed was done");
                let numbers: HashSet<u64> = set.iter().map(|(_, record)| record.look()).collect();
                assert_eq!((numbers.len(), set.len()), (set.len(), set.iter().count()));
                assert!((0..10).all(|n| set.contains(&Counted::new(n, &LIVE))));
                drop(handle);
            }
        }
    }
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

/// What the iterator of a batch, and what is told, do with the set and the handle that call them.
#[test]
fn a_batch_may_use_the_set_and_the_handle_that_call_it() {
    for builder in &builders::<u64>()[..2] {
        let set = builder.clone().build();
        let handle = set.handle();
        let records = (0..200).inspect(|n| {
            assert!(handle.insert(1_000_000 + n).is_new());
            (0..50).for_each(|more| {
                let _ = handle.insert(2_000_000 + n * 50 + more);
            });
            handle.insert_each([3_000_000 + n], |_| ());
            assert!(handle.contains(&(1_000_000 + n)) && set.iter().count() > 0);
        });
        handle.insert_each(records, |insertion| {
            let own = *set.get(insertion.id()).unwrap();
            handle.insert_each((0..20).map(|n| 4_000_000 + own * 20 + n), |inner| {
                assert!(inner.is_new() && set.get(inner.id()).is_some());
            });
        });
        assert_eq!(set.len(), 200 + 200 + 200 * 50 + 200 + 200 * 20);
        assert_eq!(set.iter().count(), set.len());
    }
}

/// Forgotten, a handle, an iterator or an offline guard holds back memory, and nothing else.
#[test]
fn what_is_forgotten_holds_nobody_up() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    let set = SeenSet::<Counted>::new();
    for round in 0..20 {
        let handle = set.handle();
        handle.insert(Counted::new(round, &LIVE));
        std::mem::forget(set.iter());
        std::mem::forget(handle);
    }
    let handle = set.handle();
    (0..5_000).for_each(|n| {
        let _ = handle.insert(Counted::new(n, &LIVE));
    });
    drop(handle);
    assert_eq!(set.iter().count(), 5_000);
    drop(set);
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);

    let together = SeenSet::<u64>::builder().growth(Growth::Together).build();
    let mut handle = together.handle();
    std::mem::forget(handle.offline());
    std::mem::forget(handle.offline());
    assert_eq!((0..5_000).filter(|n| handle.insert(*n).is_new()).count(), 5_000);
    drop(handle);
    assert_eq!(together.len(), 5_000);

    let prints = SeenPrints::new();
    std::mem::forget(prints.handle());
    assert_eq!((0..5_000).filter(|n| prints.handle().insert(n)).count(), 5_000);
}

/// Handles, iterators and owners of the set go in any order, on any thread.
#[test]
fn every_order_of_going_drops_each_record_once() {
    static LIVE: AtomicU64 = AtomicU64::new(0);
    for order in 0..6 {
        let set = Arc::new(SeenSet::<Counted>::new());
        let (first, second) = (set.handle(), set.handle());
        (0..300).for_each(|n| {
            let _ = first.insert(Counted::new(n, &LIVE));
        });
        (0..300).for_each(|n| {
            let _ = second.insert(Counted::new(n, &LIVE));
        });
        let iter = set.iter();
        match order {
            0 => drop((first, second, iter)),
            1 => drop((iter, second, first)),
            2 => drop((second, iter, first)),
            3 => std::mem::forget((first, iter, second)),
            4 => std::thread::scope(|scope| {
                scope.spawn(|| drop(first));
                scope.spawn(|| drop(second));
                drop(iter);
            }),
            _ => {
                drop(iter);
                let moved = std::thread::scope(|scope| scope.spawn(|| first).join().unwrap());
                assert!(!moved.insert(Counted::new(5, &LIVE)).is_new());
                drop(second);
            }
        }
        let other = Arc::clone(&set);
        let thread = std::thread::spawn(move || other.len());
        drop(set);
        assert_eq!(thread.join().unwrap(), 300);
        assert_eq!(LIVE.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn capacities_at_the_ends() {
    for capacity in [0, 1, 15, 16, 17, 1 << 10] {
        let set = SeenSet::<u64>::with_capacity(capacity);
        assert!((0..100).all(|n| set.handle().insert(n).is_new()) && set.len() == 100);
    }
    fn refuse<R: Record + ?Sized>(capacity: usize) {
        let base = || SeenSet::<R>::builder().capacity(capacity);
        let kinds =
            [base(), base().shards(1), base().ids(Ids::Wide), base().growth(Growth::Together)];
        for builder in kinds {
            assert!(builder.clone().try_build().is_err());
            assert!(panics(|| builder.build()));
        }
    }
    for capacity in [isize::MAX as usize, usize::MAX - 1, usize::MAX] {
        refuse::<u64>(capacity);
        refuse::<[u8]>(capacity);
        assert!(SeenPrints::builder().capacity(capacity).try_build().is_err());
        assert!(SeenSet::<u64>::new().try_reserve(capacity).is_err());
    }
    let bytes = SeenSet::<[u8]>::builder;
    for width in [isize::MAX as usize, usize::MAX - 1, usize::MAX, usize::MAX / 1024 + 2] {
        assert!(bytes().width(width).parents(true).try_build().is_err());
    }
    let empty = bytes().width(0).build();
    let id = empty.handle().insert(b"").id();
    assert_eq!(empty.get(id), Some(&b""[..]));
    assert!(empty.handle().fallible().insert(b"x").is_err());
    for shards in [0, 1, usize::MAX] {
        let set = SeenSet::<u64>::builder().shards(shards).max_load(f64::NAN).build();
        assert!(set.handle().insert(1).is_new());
    }
    assert!(SeenSet::<u64>::builder().budget(0).build().handle().fallible().insert(1).is_err());
}

/// A thread's own data outlives what a table keeps per thread, or not: both orders.
#[test]
fn sets_are_usable_in_thread_local_destructors() {
    struct Late(Arc<SeenSet<u64>>, u64);
    impl Drop for Late {
        fn drop(&mut self) {
            let Self(set, first) = self;
            let handle = set.handle();
            (*first..*first + 500).for_each(|n| assert!(handle.insert(n).is_new()));
            assert!(set.contains(first) && set.iter().count() >= 500);
        }
    }
    thread_local! {
        static BEFORE: RefCell<Option<Late>> = const { RefCell::new(None) };
        static AFTER: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let set = Arc::new(SeenSet::<u64>::new());
    let own = Arc::clone(&set);
    let thread = std::thread::spawn(move || {
        BEFORE.with_borrow_mut(|late| *late = Some(Late(Arc::clone(&own), 1_000)));
        assert!(!own.contains(&1));
        AFTER.with_borrow_mut(|late| *late = Some(Late(own, 2_000)));
    });
    thread.join().unwrap();
    assert_eq!(set.len(), 1_000);
}

/// A child that was forked while nobody else used the set has it as it was, and works on it.
#[cfg(unix)]
#[test]
fn a_forked_child_works_on_its_copy() {
    let set = SeenSet::<u64>::new();
    let handle = set.handle();
    (0..1_000).for_each(|n| {
        let _ = handle.insert(n);
    });
    let iter = set.iter();
    // SAFETY: the child calls nothing but this set, and leaves without running anybody's exit code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let right = !panics(|| {
            assert!((0..1_000).all(|n| !handle.insert(n).is_new()));
            assert!((1_000..5_000).all(|n| handle.insert(n).is_new()));
            assert!(set.contains(&4_999) && set.iter().count() == 5_000 && iter.count() >= 1_000);
        });
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(!right)) };
    }
    let mut status = -1;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(set.len(), 1_000);
}
