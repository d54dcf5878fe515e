//! What small tables cost. One test: the counts of the allocator are the process's.
#![cfg(not(any(quintet_loom, quintet_shuttle)))] // constants that a model checker cannot make

use quintet::item_set::Keyed;
use quintet::{CopyMap, HashMap, HashSet, ItemSet, SeenPrints, SeenSet, TwinMap, TwinSet, WordMap};
use quintet_testkit::alloc::Shredder;
use std::sync::Barrier;

#[global_allocator]
static ALLOCATOR: Shredder = Shredder::new();

struct Record(u64);

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.0
    }
}

static MAP: HashMap<u64, u64> = HashMap::new();
static SET: HashSet<u64> = HashSet::new();
static WORDS: WordMap<u64, u64> = WordMap::new();
static COPIES: CopyMap<u64, u64> = CopyMap::new();
static ITEMS: ItemSet<Box<Record>> = ItemSet::new();
static SEEN: SeenSet<u64> = SeenSet::new();
static PRINTS: SeenPrints = SeenPrints::new();
static TWINS: TwinMap<u64, u64> = TwinMap::new();
static TWIN_SET: TwinSet<String> = TwinSet::new();

const EMPTY: usize = 128;
const ONE: usize = 1024;
const FURTHER: usize = 384;
/// One record in a `SeenSet`: a third of it are domain and seat, a third the arenas, the rest table
/// and desk.
const SEEN_FIRST: usize = 2048;
const TWIN: usize = 2048;

/// Bytes that `work` has allocated and not freed.
fn bytes<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = ALLOCATOR.live_bytes();
    let kept = work();
    (kept, ALLOCATOR.live_bytes() - before)
}

/// Bytes that a table holds after one thread has written an entry, and what each of seven more
/// threads adds by another entry.
fn first_and_further<T: Sync>(make: fn() -> T, write: fn(&T, u64)) -> (usize, usize) {
    // What a thread keeps for all tables, and threads for themselves, is not the table's.
    let warm = make();
    write(&warm, 0);
    let (table, first) = bytes(|| {
        let table = make();
        write(&table, 0);
        table
    });
    let (wrote, measured) = (Barrier::new(8), Barrier::new(8));
    let further = std::thread::scope(|scope| {
        for key in 1..8 {
            let (table, warm, wrote, measured) = (&table, &warm, &wrote, &measured);
            scope.spawn(move || {
                write(warm, key);
                wrote.wait();
                measured.wait();
                write(table, key);
                wrote.wait();
                measured.wait();
            });
        }
        wrote.wait();
        let before = ALLOCATOR.live_bytes();
        measured.wait();
        wrote.wait();
        // Less than before, if garbage of earlier writes went.
        let more = ALLOCATOR.live_bytes().saturating_sub(before);
        measured.wait();
        more / 7
    });
    (first, further)
}

#[test]
fn small_tables_are_small() {
    assert!(size_of::<WordMap<u64, u64>>() <= EMPTY, "{}", size_of::<WordMap<u64, u64>>());
    assert!(size_of_val(&MAP) <= EMPTY, "{}", size_of_val(&MAP));
    assert!(size_of_val(&SET) <= EMPTY, "{}", size_of_val(&SET));
    assert!(size_of_val(&COPIES) <= EMPTY, "{}", size_of_val(&COPIES));
    assert!(size_of_val(&ITEMS) <= EMPTY, "{}", size_of_val(&ITEMS));
    assert!(size_of_val(&TWINS) <= EMPTY, "{}", size_of_val(&TWINS));
    assert!(size_of_val(&TWIN_SET) <= EMPTY, "{}", size_of_val(&TWIN_SET));
    let ((), unused) = bytes(|| {
        assert!(WORDS.is_empty() && ITEMS.is_empty() && MAP.is_empty() && SET.is_empty());
        assert!(COPIES.is_empty());
        assert!(COPIES.get(&1).is_none() && COPIES.iter().next().is_none());
        drop(CopyMap::<u64, [u64; 3]>::new());
        assert!(TWINS.is_empty() && TWINS.get(&1).is_none() && !TWIN_SET.contains("a"));
        drop((TwinMap::<u64, u64>::new(), TwinSet::<u64>::new()));
        drop((WordMap::<u64, u64>::new(), ItemSet::<Box<Record>>::new()));
        drop(HashMap::<u64, u64>::new());
    });
    assert_eq!(unused, 0, "an empty table allocates nothing");
    let (first, further) = first_and_further(WordMap::<u64, u64>::new, |map, key| {
        map.insert(key, key);
    });
    assert!(first <= ONE && further <= FURTHER, "WordMap: {first}, {further}");
    println!("WordMap: {first} bytes with one entry, {further} more with each further thread");
    let (first, further) = first_and_further(CopyMap::<u64, u64>::new, |map, key| {
        map.insert(key, key);
    });
    assert!(first <= ONE && further <= FURTHER, "CopyMap: {first}, {further}");
    println!("CopyMap: {first} bytes with one entry, {further} more with each further thread");
    let (first, further) = first_and_further(ItemSet::<Box<Record>>::new, |set, key| {
        set.insert(Record(key));
    });
    assert!(first <= ONE && further <= FURTHER, "ItemSet: {first}, {further}");
    println!("ItemSet: {first} bytes with one entry, {further} more with each further thread");
    let (first, further) = first_and_further(HashMap::<u64, u64>::new, |map, key| {
        map.insert(key, key);
    });
    assert!(first <= ONE && further <= FURTHER, "HashMap: {first}, {further}");
    println!("HashMap: {first} bytes with one entry, {further} more with each further thread");
    small_twin_maps_are_small();
    small_seen_sets_are_small();
}

fn small_twin_maps_are_small() {
    let (first, further) = first_and_further(TwinMap::<u64, u64>::new, |map, key| {
        if key == 0 {
            map.insert(key, key);
        }
        assert_eq!(map.get(&0).as_deref(), Some(&0));
    });
    assert!(first <= TWIN && further <= FURTHER, "TwinMap: {first}, {further}");
    println!("TwinMap: {first} bytes with one entry, {further} more with each further thread");
}

fn small_seen_sets_are_small() {
    assert!(size_of_val(&SEEN) <= EMPTY, "{}", size_of_val(&SEEN));
    assert!(size_of_val(&PRINTS) <= EMPTY, "{}", size_of_val(&PRINTS));
    let ((), unused) = bytes(|| {
        assert!(
            SEEN.is_empty()
                && PRINTS.is_empty()
                && !SEEN.contains(&7)
                && SEEN.iter().next().is_none()
        );
        drop((SeenSet::<u64>::new(), SeenPrints::new()));
    });
    assert_eq!(unused, 0, "an empty set allocates nothing");
    let (first, further) = first_and_further(SeenSet::<u64>::new, |set, record| {
        set.insert(record);
    });
    println!(
        "SeenSet: {} bytes, {first} with one record, {further} more with each further thread",
        size_of_val(&SEEN)
    );
    assert!(further <= FURTHER, "SeenSet: {further}");
    assert!(first <= SEEN_FIRST, "SeenSet: {first}");
    let (hundred, first) = bytes(|| (0..100u64).collect::<SeenSet<u64>>());
    println!("SeenSet: {first} bytes with {} records", hundred.len());
}
