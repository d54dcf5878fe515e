//! A cache over a store in a file.

use super::world::{advance, declare_dead, small};
use crate::tier_cache::cache::stored::Looked;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use std::path::PathBuf;
use std::time::Duration;

/// A directory for a store, gone with its test.
pub(super) struct Dir(PathBuf);

impl Dir {
    pub(super) fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("quintet-stored-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub(super) fn address(&self) -> String {
        format!("lmdb:{}?size=64MiB&sync=none", self.0.display())
    }

    pub(super) fn builder(&self) -> CacheBuilder {
        small().store(&self.address()).unwrap()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        let _ = std::fs::remove_file(&self.0);
    }
}

fn key(number: u32) -> String {
    format!("key:{number}")
}

fn value(number: u32) -> Vec<u8> {
    number.to_le_bytes().repeat(20)
}

/// Puts everything out.
pub(super) fn empty(handle: &mut Handle<'_>) {
    while !handle.evict_oldest(64).unwrap().is_empty() {}
}

#[test]
fn four_times_as_much_as_memory_is_found() {
    let dir = Dir::new("four-times");
    let cache = dir.builder().create_sealed().unwrap();
    let many = 4 * cache.sizes.blocks;
    let mut handle = cache.handle().unwrap();
    for number in 0..many {
        handle.insert(key(number), value(number)).unwrap();
    }
    for number in 0..many {
        assert_eq!(handle.get(key(number)).unwrap(), Some(value(number)), "{number}");
    }
    assert_eq!(handle.get("nobody").unwrap(), None);
    let stats = cache.stats();
    assert!(stats.store_hits > many as u64 / 2, "{stats:?}");
    let reader = cache.reader();
    assert!((0..many).all(|number| reader.get(key(number)).unwrap() == Some(value(number))));
    assert_eq!(reader.get("nobody").unwrap(), None);
    assert_eq!((stats.store_drops, stats.store_errors, stats.misses), (0, 0, 1), "{stats:?}");
    assert!(stats.store_misses == 1 && stats.store_writes >= stats.evicted, "{stats:?}");
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn what_was_removed_or_replaced_stays_so_wherever_it_was() {
    let dir = Dir::new("removed");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for evicts in [[false, false], [true, false], [false, true], [true, true]] {
        let settle = |handle: &mut Handle<'_>, at: usize| evicts[at].then(|| empty(handle));
        handle.insert("a", "1").unwrap();
        settle(&mut handle, 0);
        assert!(handle.remove("a").unwrap(), "{evicts:?}");
        settle(&mut handle, 1);
        assert_eq!(handle.get("a").unwrap(), None, "{evicts:?}");
        assert!(!handle.remove("a").unwrap(), "{evicts:?}");
        assert!(handle.insert_new("a", "2", None).unwrap(), "{evicts:?}");
        settle(&mut handle, 0);
        handle.insert("a", "3").unwrap();
        settle(&mut handle, 1);
        assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"3"[..]), "{evicts:?}");
        handle.remove("a").unwrap();
    }
}

/// The store has an older value without an end, memory a newer one that ends.
#[test]
fn what_expired_uncovers_nothing_older() {
    let dir = Dir::new("expired");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "old").unwrap();
    empty(&mut handle);
    handle.insert_for("a", "new", Some(Duration::from_secs(1))).unwrap();
    assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"new"[..]));
    advance(&cache, 5_000);
    assert_eq!(handle.get("a").unwrap(), None);
    handle.maintain().unwrap();
    empty(&mut handle);
    assert_eq!((handle.get("a").unwrap(), cache.len()), (None, 0));
}

#[test]
fn what_was_dropped_uncovers_nothing_older() {
    let dir = Dir::new("dropped");
    let cache = dir.builder().drop_when_behind().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "old").unwrap();
    empty(&mut handle);
    assert!(handle.get("a").unwrap().is_some());
    handle.insert("a", "new").unwrap();
    assert!(handle.drop_oldest(1).unwrap());
    assert_eq!(handle.get("a").unwrap(), None, "the old one is in the store, and too old");
    let stats = cache.stats();
    assert_eq!((stats.store_drops, stats.store_refused), (1, 1), "{stats:?}");
    handle.insert("a", "newest").unwrap();
    empty(&mut handle);
    assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"newest"[..]));
}

#[test]
fn whoever_asks_what_is_there_is_told_of_the_store_too() {
    let dir = Dir::new("asks");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("n", "41").unwrap();
    handle.insert_for("mortal", "m", Some(Duration::from_secs(3600))).unwrap();
    empty(&mut handle);
    assert!(!handle.insert_new("n", "0", None).unwrap());
    empty(&mut handle);
    assert_eq!(handle.incr("n", 1, None, None).unwrap(), Some(42));
    empty(&mut handle);
    assert!(handle.contains_key("n").unwrap());
    let (value, version) = handle.get_versioned("n").unwrap().unwrap();
    assert_eq!(value, b"42");
    assert!(handle.compare_exchange("n", version, "43", None).unwrap());
    assert!(!handle.compare_exchange("n", version, "44", None).unwrap());
    empty(&mut handle);
    assert!(handle.replace("n", "45", None).unwrap());
    assert!(!handle.replace("nobody", "46", None).unwrap());
    empty(&mut handle);
    assert!(handle.ttl("mortal").unwrap().unwrap().unwrap() > Duration::from_secs(3500));
    assert!(handle.touch("mortal", None).unwrap());
    empty(&mut handle);
    assert_eq!(handle.ttl("mortal").unwrap(), Some(None));
    let touched = handle.get_and_touch("mortal", Some(Duration::from_secs(9))).unwrap();
    assert_eq!(touched.as_deref(), Some(&b"m"[..]));
    empty(&mut handle);
    assert!(handle.ttl("mortal").unwrap().unwrap().unwrap() <= Duration::from_secs(9));
    assert_eq!(handle.pop("n").unwrap().as_deref(), Some(&b"45"[..]));
    assert_eq!(handle.pop("n").unwrap(), None);
    let computed = handle.get_or_compute("mortal", None, || panic!("it is in the store")).unwrap();
    assert_eq!(computed, b"m");
    let mut part = [0; 1];
    assert_eq!(handle.get_into_slice("mortal", &mut part).unwrap(), Some(1));
    assert_eq!(part, *b"m");
}

#[test]
fn what_was_cleared_is_gone_from_the_store_as_well() {
    let dir = Dir::new("cleared");
    let cache = dir.builder().create_sealed().unwrap();
    let space = cache.namespace("drafts").unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_namespace(space);
    handle.insert("a", "1").unwrap();
    empty(&mut handle);
    assert!(handle.get("a").unwrap().is_some());
    cache.clear_namespace(space).unwrap();
    assert_eq!(handle.get("a").unwrap(), None);
    cache.remove_namespace("drafts").unwrap();
    handle.set_namespace(cache.namespace("drafts").unwrap());
    assert_eq!(handle.get("a").unwrap(), None);
    handle.set_namespace(Namespace::default());
    assert_eq!(handle.get("a").unwrap(), None);
}

#[test]
fn a_new_cache_over_an_old_store_begins_empty_unless_it_adopts_it() {
    let dir = Dir::new("adopts");
    for adopts in [false, true] {
        let builder = || if adopts { dir.builder().adopt_store() } else { dir.builder() };
        let first = builder().create_sealed().unwrap();
        first.insert("a", "1").unwrap();
        empty(&mut first.handle().unwrap());
        drop(first);
        let second = builder().create_sealed().unwrap();
        assert_eq!(second.get("a").unwrap().is_some(), adopts);
        second.insert("a", "2").unwrap();
        empty(&mut second.handle().unwrap());
        assert_eq!(second.get("a").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn what_is_found_is_kept_where_that_was_asked_for() {
    let dir = Dir::new("keeps");
    let cache = dir.builder().keep_found().keep_absent().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    empty(&mut handle);
    for _ in 0..3 {
        assert!(handle.get("a").unwrap().is_some());
        assert_eq!(handle.get("b").unwrap(), None);
    }
    let stats = cache.stats();
    assert_eq!((stats.store_hits, stats.store_misses), (1, 1), "{stats:?}");
    // The mark is no value, and leaves no trace.
    assert!(handle.insert_new("b", "2", None).unwrap());
    assert!(handle.remove("b").unwrap());
    assert_eq!(handle.get("c").unwrap(), None);
    let writes = cache.stats().store_writes;
    empty(&mut handle);
    // "a" again, and the tombstone of "b".
    assert_eq!(cache.stats().store_writes, writes + 2);
}

/// `tier_cache_stores` N10: what a lookup found is not kept once somebody has written to the
/// bucket.
#[test]
fn a_late_reader_keeps_nothing() {
    let dir = Dir::new("late");
    let cache = dir.builder().create_sealed().unwrap();
    let (mut reader, mut writer) = (cache.handle().unwrap(), cache.handle().unwrap());
    writer.insert("a", "old").unwrap();
    empty(&mut writer);
    let mut steps = 0;
    let mut meddle = |_| {
        steps += 1;
        if steps == 9 {
            writer.insert("a", "new").unwrap();
            empty(&mut writer);
        }
    };
    let mut value = Vec::new();
    with_fate(Fate::Each, Some(&mut meddle), || reader.bring(b"a", &mut value).unwrap());
    assert_eq!(reader.get("a").unwrap().as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_process_that_cannot_open_the_store_evicts_nothing() {
    let dir = Dir::new("closed");
    let place = Place::Name(format!("quintet-closed-{}", std::process::id()));
    let cache = dir.builder().create(&place).unwrap();
    cache.insert("a", "1").unwrap();
    drop(cache);
    std::fs::remove_dir_all(&dir.0).unwrap();
    std::fs::write(&dir.0, "no directory").unwrap();
    let cache = TierCache::attach(&place).unwrap();
    TierCache::unlink(&place).unwrap();
    let state = cache.store_state().unwrap();
    assert!(state.closed.is_some() && state.address.starts_with("lmdb:"), "{state:?}");
    assert_eq!(cache.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    let mut handle = cache.handle().unwrap();
    let error = (0..).find_map(|number| handle.insert(key(number), value(number)).err()).unwrap();
    assert!(matches!(error, CacheError::NoStore(_)) && error.code() == 18, "{error:?}");
    assert!(error.to_string().contains("open the store, or remove entries"), "{error}");
    assert!(matches!(handle.evict_oldest(1), Err(CacheError::NoStore(_))));
    assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"1"[..]), "nothing left");
    let error = dir.builder().create_sealed().unwrap_err();
    assert!(matches!(error, OpenError::Store(_)), "{error:?}");
}

#[test]
fn an_address_is_recorded_without_credentials() {
    let dir = Dir::new("recorded");
    let cache = dir.builder().create_sealed().unwrap();
    let address = dir.address().replace("64MiB", "67108864");
    let identity = cache.segment.note().strip_prefix(&address).map(str::len);
    assert_eq!(identity, Some(17), "{}", cache.segment.note());
    assert_eq!(cache.store_state().unwrap().address, address);
    let builder = small().store("redis://ada:secret@127.0.0.1:1/").unwrap();
    assert!(!format!("{builder:?}").contains("secret"));
    let error = builder.create_sealed().unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(small().store("none").unwrap().create_sealed().unwrap().store_state(), None);
    assert!(small().store("lmdb:").is_err());
    let refused = dir.builder().no_evict().create_sealed().unwrap_err();
    assert!(refused.to_string().contains("store"), "{refused}");
}

type Operation = (&'static str, fn(&mut Handle<'_>));

/// Each of these, killed before each of its stores; then nobody sees anything but what was there
/// before or after, also when everything has left memory.
#[test]
fn killed_at_every_store_with_a_store() {
    let operations: &[Operation] = &[
        ("get", |handle| drop(handle.get("b"))),
        ("insert", |handle| drop(handle.insert("a", "new"))),
        ("insert over the store's", |handle| drop(handle.insert("b", "new"))),
        ("remove", |handle| drop(handle.remove("a"))),
        ("remove the store's", |handle| drop(handle.remove("b"))),
        ("evict", |handle| drop(handle.evict_oldest(1))),
        ("drop", |handle| drop(handle.drop_oldest(1))),
        ("bring", |handle| drop(handle.bring(b"b", &mut Vec::new()))),
        ("incr", |handle| drop(handle.incr("n", 1, None, None))),
    ];
    let mut deaths = 0;
    for (name, operation) in operations {
        let dir = Dir::new("crashes");
        for n in 0.. {
            let cache = dir.builder().keep_found().create_sealed().unwrap();
            let mut dead = cache.handle().unwrap();
            dead.insert("a", "older").unwrap();
            dead.insert("b", "old").unwrap();
            dead.insert("n", "1").unwrap();
            empty(&mut dead);
            dead.insert("a", "old").unwrap();
            let ((), points) = with_fate(Fate::Stop(n), None, || operation(&mut dead));
            declare_dead(&cache, &dead);
            std::mem::forget(dead);
            // What the dead one leased is free after its deadline.
            advance(&cache, 10_000);
            cache.recover().unwrap();
            let mut handle = cache.handle().unwrap();
            for round in 0..2 {
                let text =
                    |found: Option<Vec<u8>>| found.map(|value| String::from_utf8(value).unwrap());
                let a = text(handle.get("a").unwrap());
                let b = text(handle.get("b").unwrap());
                let told = format!("{name} at {n}, round {round}: {a:?} {b:?}");
                let legal: &[Option<&str>] = match *name {
                    "insert" => &[Some("old"), Some("new")],
                    "remove" | "drop" => &[Some("old"), None],
                    _ => &[Some("old")],
                };
                assert!(legal.contains(&a.as_deref()), "{told}");
                let legal: &[Option<&str>] = match *name {
                    "insert over the store's" => &[Some("old"), Some("new")],
                    "remove the store's" | "drop" => &[Some("old"), None],
                    _ => &[Some("old")],
                };
                assert!(legal.contains(&b.as_deref()), "{told}");
                empty(&mut handle);
            }
            drop(handle);
            cache.check().unwrap_or_else(|error| panic!("{error}: {name} at {n}"));
            deaths += 1;
            if n >= points {
                break;
            }
        }
    }
    println!("{deaths} deaths");
    assert!(deaths > 150, "{deaths}");
}

/// `tier_cache_stores` N2, N6: whose bucket is leased waits for the deadline, and not longer.
#[test]
fn a_lease_keeps_others_away_until_its_deadline() {
    let dir = Dir::new("lease");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    let view = cache.view();
    let bucket = view.input(handle.space, b"a").bucket();
    let lease = view.take_bucket_lease(bucket, view.now() + 3_000, 7);
    assert!(lease.is_some());
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 0, "somebody puts it");
    advance(&cache, 4_000);
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 1);
    // A lease that was taken over is not ended by its former holder.
    assert!(view.take_bucket_lease(bucket, view.now() + 3_000, 8).is_some());
    view.end_bucket_lease(bucket, lease.unwrap());
    assert!(view.take_bucket_lease(bucket, view.now() + 3_000, 9).is_none());
}

/// `tier_cache_stores` N7, N4: whose dropper died gets a new version before it is put.
#[test]
fn an_entry_below_its_watermark_is_put_with_a_new_version() {
    let dir = Dir::new("below");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    let (_, version) = handle.get_versioned("a").unwrap().unwrap();
    let link = crate::tier_cache::word::Link::from_word(version);
    let view = cache.view();
    let bucket = view.input(handle.space, b"a").bucket();
    view.raise_watermark(bucket, link);
    assert_eq!(handle.evict_oldest(1).unwrap().len(), 1);
    assert_eq!(handle.get("a").unwrap().as_deref(), Some(&b"1"[..]));
    let looked = handle.look_through(handle.space, b"a", &mut Vec::new(), false).unwrap();
    assert!(matches!(looked, Looked::Hit(_)));
}

/// There is one handle: the writer gets none, and whoever needs room makes it.
#[test]
fn one_handle_is_enough() {
    let dir = Dir::new("one-handle");
    let cache = dir.builder().handles(1).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let many = 2 * cache.sizes.blocks;
    for number in 0..many {
        handle.insert(key(number), value(number)).unwrap();
    }
    for number in 0..many {
        assert_eq!(handle.get(key(number)).unwrap(), Some(value(number)), "{number}");
    }
    drop(handle);
    assert!(cache.close(Duration::from_secs(5)));
}

/// A process was killed between the bit of a block that it freed and the mark that leads to it: the
/// block counts as free, so the writer makes no room, and nobody finds it. That was told as full.
#[test]
fn blocks_that_a_killed_process_hid_are_found() {
    let dir = Dir::new("hidden");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let many = cache.sizes.blocks;
    for number in 0..many {
        handle.insert(key(number), value(number)).unwrap();
    }
    empty(&mut handle);
    handle.inner.kept.clear();
    for word in cache.view().summary {
        word.store(0, crate::sync::Ordering::Relaxed);
    }
    for number in 0..many {
        handle.insert(key(number), value(number + 1)).unwrap();
    }
    for number in 0..many {
        assert_eq!(handle.get(key(number)).unwrap(), Some(value(number + 1)), "{number}");
    }
}

/// `tier_cache_stores` N1: a clock that was an hour ahead, and was put right.
#[test]
fn a_clock_that_is_set_back_makes_nothing_stale() {
    let dir = Dir::new("set-back");
    let cache = dir.builder().keep_found().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "0").unwrap();
    empty(&mut handle);
    let view = cache.view();
    let bucket = view.input(handle.space, b"a").bucket();
    let ahead = (crate::region::shm::Segment::wall_ms() + 3_600_000) << 20;
    let book = view.memory.book(bucket).unwrap();
    let last = &book[crate::tier_cache::memory::LAST_VERSION];
    last.store(ahead, crate::sync::Ordering::Relaxed);
    for round in 1..20 {
        handle.insert("a", round.to_string()).unwrap();
        empty(&mut handle);
        assert_eq!(handle.get("a").unwrap(), Some(round.to_string().into_bytes()));
        if round % 3 == 0 {
            assert!(handle.remove("a").unwrap());
            empty(&mut handle);
            assert_eq!(handle.get("a").unwrap(), None, "{round}");
        }
    }
    assert!(view.memory.last_version(bucket) > ahead);
}

/// The store that is asked for must be the one that the cache has.
#[test]
fn a_cache_with_another_store_is_told() {
    let (dir, other) = (Dir::new("this-store"), Dir::new("other-store"));
    let place = Place::Name(format!("quintet-other-store-{}", std::process::id()));
    let _cache = dir.builder().create(&place).unwrap();
    let same = dir.builder().create_or_attach(&place);
    let another = other.builder().create_or_attach(&place);
    TierCache::unlink(&place).unwrap();
    assert!(same.is_ok(), "{same:?}");
    assert!(another.unwrap_err().to_string().contains("this-store"));
}

/// Who waits for a computation finds what the store had, and the store is asked once.
#[test]
fn a_flight_brings_what_the_store_has() {
    let dir = Dir::new("flight");
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("a", "1").unwrap();
    empty(&mut handle);
    let Begun::Value(found) = handle.begin("a").unwrap() else { panic!("it is in the store") };
    assert_eq!(found, b"1");
    let Begun::Flight(flight) = handle.begin("b").unwrap() else { panic!("nobody has it") };
    assert!(matches!(handle.begin("b").unwrap(), Begun::Busy));
    flight.complete("2", None).unwrap();
    empty(&mut handle);
    assert_eq!(handle.get("b").unwrap().as_deref(), Some(&b"2"[..]));
}

/// `flight` H6: whoever misses while somebody asks the store waits for what that one finds.
#[test]
fn of_two_that_miss_at_the_same_time_one_asks_the_store() {
    let dir = Dir::new("once");
    let cache = dir.builder().keep_found().create_sealed().unwrap();
    let mut first = cache.handle().unwrap();
    first.insert("a", "1").unwrap();
    empty(&mut first);
    let gets = || cache.store_state().unwrap().stats.gets;
    let before = gets();
    let flies = || {
        let view = cache.view();
        let space = first.space.flight();
        let bucket = view.input(space, b"a").bucket();
        view.links(bucket).iter().any(|link| view.is_flight(*link))
    };
    std::thread::scope(|threads| {
        let mut second = None;
        let mut meddle = |_| {
            if second.is_none() && flies() {
                let get = || cache.handle().unwrap().get("a").unwrap();
                second = Some(threads.spawn(get));
                // It misses, and waits: the longer this is, the surer.
                std::thread::sleep(Duration::from_millis(30));
            }
        };
        let mut handle = cache.handle().unwrap();
        let found = with_fate(Fate::Each, Some(&mut meddle), || handle.get("a").unwrap()).0;
        assert_eq!(found.as_deref(), Some(&b"1"[..]));
        let second = second.expect("the flight was seen").join().unwrap();
        assert_eq!(second.as_deref(), Some(&b"1"[..]));
    });
    assert_eq!(gets() - before, 1);
    assert!(!flies());
    // Whoever does not keep what is found has nothing to hand on.
    let cache = dir.builder().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("b", "2").unwrap();
    empty(&mut handle);
    let (_, points) = with_fate(Fate::Each, None, || handle.get("b").unwrap());
    assert!(points < 20, "no flight: {points}");
}
