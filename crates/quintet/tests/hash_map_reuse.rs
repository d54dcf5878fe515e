//! `HashMap` uses the memory of entries that have gone for those that come.
#![cfg(not(any(quintet_loom, quintet_shuttle)))]

use quintet::HashMap;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Counts for each thread what it asks for, less what it gives back.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator, with counts besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEYS: u64 = 64;
const TURNS: u64 = 100_000;

/// How often the allocator was asked, and how much more memory there is afterwards.
fn cost(work: impl FnOnce()) -> (usize, isize) {
    let before = (ASKED.get(), LIVE.get());
    work();
    (ASKED.get() - before.0, LIVE.get() - before.1)
}

/// Every way of overwriting.
#[test]
fn overwrites_hardly_ask_the_allocator() {
    let map = HashMap::<u64, [u64; 3]>::new();
    let mut quiet = map.quiet_handle();
    let handle = map.handle();
    type Way<'a> = Box<dyn FnMut(u64, [u64; 3]) + 'a>;
    let mut ways: [(&str, Way<'_>); 6] = [
        ("insert", Box::new(|key, value| drop(map.insert(key, value)))),
        ("pin", Box::new(|key, value| assert!(map.pin().insert(key, value).is_some()))),
        ("handle", Box::new(|key, value| drop(handle.insert(key, value)))),
        ("update", Box::new(|key, value| drop(map.update(&key, |_| value)))),
        ("insert_many", Box::new(|key, value| assert_eq!(map.insert_many([(key, value)]), 0))),
        (
            "quiet",
            Box::new(|key, value| {
                quiet.insert(key, value);
                quiet.quiescent();
            }),
        ),
    ];
    for (name, way) in &mut ways {
        (0..KEYS).for_each(|key| drop(map.insert(key, [key; 3])));
        let (asked, more) = cost(|| (0..TURNS).for_each(|turn| way(turn % KEYS, [turn; 3])));
        println!("{name}: {asked} allocations, {more} bytes more");
        assert!(asked < TURNS as usize / 10, "{name}: {asked} allocations");
        assert!(more < 1 << 20, "{name}: {more} bytes more");
    }
}

#[test]
fn a_window_that_slides_hardly_asks_the_allocator_either() {
    let map = HashMap::<u64, u64>::new();
    (0..KEYS).for_each(|key| drop(map.insert(key, key)));
    let (asked, more) = cost(|| {
        for turn in 0..TURNS {
            map.insert(KEYS + turn, turn);
            map.remove(&turn);
        }
    });
    assert!(asked < TURNS as usize / 5, "{asked} allocations");
    assert!(more < 1 << 20, "{more} bytes more");
}

/// What waits to be used again is given back.
#[test]
fn a_flush_leaves_nothing() {
    let map = HashMap::<u64, [u64; 16]>::new();
    let (_, more) = cost(|| {
        (0..10_000).for_each(|turn| drop(map.insert(turn % KEYS, [turn; 16])));
        (0..KEYS).for_each(|key| drop(map.remove(&key)));
        map.flush();
        map.flush();
    });
    assert_eq!(map.stats().backlog_items, 0);
    // The lists of the seat, and a small table.
    assert!(more < 300 << 10, "{more} bytes");
}

/// A value that can be told from any other, and counts those that are alive.
struct Marked<'a>(u64, u64, &'a AtomicI64);

impl<'a> Marked<'a> {
    fn new(number: u64, alive: &'a AtomicI64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self(number, !number, alive)
    }
    fn check(&self) {
        assert_eq!(self.0, !self.1, "of two values");
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        self.check();
        self.2.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reference shows one value for as long as it is held, however many are written meanwhile.
#[test]
fn what_is_held_is_not_written_over() {
    let alive = AtomicI64::new(0);
    let map = HashMap::<u64, Marked>::new();
    let stop = AtomicBool::new(false);
    (0..KEYS).for_each(|key| drop(map.insert(key, Marked::new(key, &alive))));
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (map, stop) = (&map, &stop);
            scope.spawn(move || {
                let mut turn = reader;
                while !stop.load(Ordering::Relaxed) {
                    turn += 1;
                    let held: Vec<_> =
                        (0..8).filter_map(|n| map.get(&((turn + n) % KEYS))).collect();
                    let seen: Vec<_> = held.iter().map(|value| value.0).collect();
                    std::thread::yield_now();
                    for (value, seen) in held.iter().zip(seen) {
                        value.check();
                        assert_eq!(value.0, seen);
                    }
                }
            });
        }
        let mine = map.get(&0).map(|value| (value.0, value));
        for turn in 0..TURNS {
            map.insert(turn % KEYS, Marked::new(turn, &alive));
        }
        assert!(mine.is_some_and(|(seen, value)| value.0 == seen));
        stop.store(true, Ordering::Relaxed);
    });
    drop(map);
    assert_eq!(alive.into_inner(), 0, "dropped once each");
}

/// A value that stores in its own map while it is dropped.
struct Busybody;

static BUSY: HashMap<u64, Busybody> = HashMap::with_hasher(quintet::DefaultHashBuilder::new());
static WROTE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static DEEPEST: Cell<usize> = const { Cell::new(0) };
}

impl Drop for Busybody {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() + 1);
        DEEPEST.set(DEEPEST.get().max(DEPTH.get()));
        if WROTE.fetch_add(1, Ordering::Relaxed) < TURNS as usize {
            BUSY.insert(WROTE.load(Ordering::Relaxed) as u64 % KEYS, Self);
        }
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Else one drop would run inside of another as deep as there are entries that wait.
#[test]
fn drops_that_store_do_not_run_inside_of_one_another() {
    for turn in 0..TURNS / 2 {
        BUSY.insert(turn % KEYS, Busybody);
    }
    assert!(WROTE.load(Ordering::Relaxed) > BUSY.len());
    assert_eq!(DEEPEST.get(), 1, "drops inside of one another");
}

/// A value whose drop panics now and then.
struct Bomb<'a>(Marked<'a>);

impl Drop for Bomb<'_> {
    fn drop(&mut self) {
        // One panic at a time: of two the process dies.
        assert!(self.0.0 % 97 != 0 || std::thread::panicking(), "a drop that panics");
    }
}

#[test]
fn a_drop_that_panics_loses_nothing() {
    let alive = AtomicI64::new(0);
    let map = HashMap::<u64, Bomb>::new();
    let mut panics = 0;
    for turn in 1..20_000 {
        let bomb = Bomb(Marked::new(turn, &alive));
        let stored = catch_unwind(AssertUnwindSafe(|| drop(map.insert(turn % KEYS, bomb))));
        panics += usize::from(stored.is_err());
        // What was stored, or what was there before: never nothing, once it was filled.
        assert!(turn < 2 * KEYS || map.get(&(turn % KEYS)).is_some());
    }
    assert!(panics > 100);
    while catch_unwind(AssertUnwindSafe(|| map.flush())).is_err() {}
    assert_eq!(map.len() as u64, KEYS);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(map)));
    assert_eq!(alive.into_inner(), 0, "dropped once each");
}

/// Of no size, and of the strictest alignment.
#[test]
fn entries_of_odd_layouts() {
    let nothing = HashMap::<(), ()>::new();
    (0..10_000).for_each(|_| drop(nothing.insert((), ())));
    assert_eq!(nothing.len(), 1);

    #[repr(align(128))]
    struct Wide(u8);
    let wide = HashMap::<u8, Wide>::new();
    for turn in 0..10_000_u32 {
        let there = wide.insert((turn % 7) as u8, Wide((turn % 251) as u8));
        assert!(there.is_none_or(|value| std::ptr::from_ref(&*value).addr() % 128 == 0));
        assert_eq!(wide.get(&((turn % 7) as u8)).map(|value| value.0), Some((turn % 251) as u8));
    }
}
