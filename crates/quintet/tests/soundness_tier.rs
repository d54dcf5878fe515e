//! `TierCache`: safe code breaks nothing inside one process. Stories of what is left open, of what
//! goes in which order, of sizes at their ends; of user code that uses the cache from inside an
//! operation; of what a forked child finds.

#![cfg(all(
    feature = "shm",
    not(quintet_private),
    any(target_os = "linux", target_os = "android")
))]

#[path = "soundness_tier/forks.rs"]
mod forks;
#[path = "soundness_tier/user_code.rs"]
mod user_code;

use quintet::TierCache;
use quintet::cache::*;
use std::cell::RefCell;
use std::fs::File;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(20);

fn small() -> CacheBuilder {
    TierCache::builder().capacity(256 << 10).handles(16)
}

fn leasing() -> TierCache {
    small().leases().create_sealed().unwrap()
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Sets until something has to leave.
fn fill(handle: &mut Handle<'_>) {
    for number in 0..100_000 {
        if handle.insert(key(number), [7; 64]).unwrap().evicted > 0 {
            return;
        }
    }
    panic!("never full");
}

/// Sets again and again as many entries as would fill the cache twice: every free block is written
/// to.
fn churn(handle: &mut Handle<'_>) {
    for number in 0..2 * handle.cache().stats().blocks as usize {
        handle.insert(key(number), [0xee; 64]).unwrap();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < LONG, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Held to write by who forks. A child holds copies of all locks until its first instruction: who
/// counts the living is alone with its own.
static FORKING: RwLock<()> = RwLock::new(());

fn without_forks() -> RwLockReadGuard<'static, ()> {
    FORKING.read().unwrap_or_else(PoisonError::into_inner)
}

fn hasty(cache: &TierCache) -> Handle<'_> {
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(SHORT);
    handle.set_patience(SHORT);
    handle
}

fn temporary(name: &str) -> std::path::PathBuf {
    let file = format!("soundness-tier-{name}-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

/// A forgotten lease pins its entry as long as its handle lives, not as long as the segment.
#[test]
fn forgotten_leases_end_with_their_handle() {
    let cache = leasing();
    for _ in 0..3 {
        let mut handle = cache.handle().unwrap();
        handle.insert("leased", [1; 64]).unwrap();
        for _ in 0..8 {
            forget(handle.lease("leased").unwrap().unwrap());
        }
        assert_eq!(handle.lease("leased").unwrap_err(), CacheError::NoLeases);
        assert!(handle.remove("leased").unwrap());
    }
    assert_eq!(cache.check().unwrap().entries, 0);
}

/// A descriptor that can be truncated ends in a signal, and the locks of processes that came by
/// name lie elsewhere.
#[test]
fn a_descriptor_that_is_not_sealed_is_refused() {
    let _alone = without_forks();
    let place = Place::Path(temporary("not-sealed"));
    let cache = small().create(&place).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("key", "value").unwrap();
    assert!(TierCache::attach_sealed(cache.inheritable().unwrap()).is_err());
    assert_eq!(cache.processes().len(), 1);
    assert!(handle.insert("key", "other").unwrap().replaced);
    let null = File::open("/dev/null").unwrap();
    assert!(TierCache::attach_sealed(null.into()).is_err());
    TierCache::unlink(&place).unwrap();

    let sealed = small().create_sealed().unwrap();
    let file = File::from(sealed.inheritable().unwrap());
    assert!(file.set_len(0).is_err() && file.set_len(1 << 40).is_err());
    assert!(TierCache::attach_sealed(file.into()).is_ok());
    drop(handle);
    cache.check().unwrap();
}

/// Forgotten handles cost seats, of which there are so many.
#[test]
fn what_is_forgotten_costs_seats_at_worst() {
    let _alone = without_forks();
    let cache = leasing();
    let mut handle = cache.handle().unwrap();
    handle.insert("key", "value").unwrap();
    forget(cache.scan());
    let forgotten = std::iter::from_fn(|| cache.handle().ok()).map(forget).count();
    assert_eq!(forgotten, 15);
    assert_eq!(cache.handle().unwrap_err(), CacheError::NoSeat);
    assert_eq!(cache.reader().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    churn(&mut handle);
    drop(handle);
    assert!(cache.handle().is_ok());
    cache.check().unwrap();
    // With the attachment that they belonged to they are proved dead.
    let again = TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap();
    drop(cache);
    assert!(again.handle().is_ok());
    assert_eq!(again.processes().len(), 1);
    // The thread of a forgotten guard runs on.
    let shared = Arc::new(again);
    forget(shared.spawn_maintenance(Duration::from_millis(1)));
    wait_until("it works", || {
        shared.handle().is_ok_and(|mut handle| handle.insert("k", "v").is_ok())
    });
    // A forgotten cache stays mapped.
    forget(leasing());
}

/// Handles, leases, caches and attachments to the same segment go in any order that compiles.
#[test]
fn every_order_of_going_is_fine() {
    let _alone = without_forks();
    for order in 0..6 {
        let first = leasing();
        let second = TierCache::attach_sealed(first.inheritable().unwrap()).unwrap();
        let third = TierCache::attach_sealed(second.inheritable().unwrap()).unwrap();
        let mut caches = [Some(first), Some(second), Some(third)];
        for (number, cache) in caches.iter().flatten().enumerate() {
            cache.handle().unwrap().insert(key(number), "value").unwrap();
        }
        let places = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][order];
        for (gone, place) in places.into_iter().enumerate() {
            let cache = caches[place].take().unwrap();
            let (one, other) = (cache.handle().unwrap(), cache.handle().unwrap());
            let leases = [one.lease("key 0").unwrap(), other.lease("key 1").unwrap()];
            assert!(leases.iter().all(Option::is_some), "{gone} gone");
            let (reader, scan) = (cache.reader(), cache.scan());
            let ((), (), (), ()) = match order % 2 {
                0 => (drop(leases), drop(one), drop(scan), drop(other)),
                _ => (drop(scan), drop(leases), drop(other), drop(one)),
            };
            assert!(reader.get("key 2").unwrap().is_some());
            assert_eq!(cache.processes().len(), 3 - gone);
            assert_eq!(cache.check().unwrap().entries, 3);
            drop(cache);
        }
    }
}

/// Leased bytes stay while everything happens to their entry.
#[test]
fn a_lease_holds_while_its_entry_goes() {
    let deeds: [fn(&mut Handle<'_>); 7] = [
        |handle| assert!(handle.remove("leased").unwrap()),
        |handle| assert!(handle.insert("leased", "other").unwrap().replaced),
        |handle| drop(handle.evict_unused(Duration::ZERO, usize::MAX).unwrap()),
        |handle| drop(handle.evict_bucket_of("leased", usize::MAX).unwrap()),
        |handle| handle.cache().clear().unwrap(),
        |handle| assert!(handle.touch("leased", Some(Duration::ZERO)).unwrap()),
        |handle| churn(handle),
    ];
    for deed in deeds {
        for len in [0, 1, 64, 1000, 4096] {
            let cache = leasing();
            let (mut writer, lessee) = (cache.handle().unwrap(), cache.handle().unwrap());
            let value: Vec<u8> = (0..len).map(|at| at as u8 | 1).collect();
            writer.insert("leased", &value).unwrap();
            let lease = lessee.lease("leased").unwrap().unwrap();
            deed(&mut writer);
            cache.recover().unwrap();
            churn(&mut writer);
            cache.recover().unwrap();
            assert_eq!((lease.len(), lease.to_vec()), (len, value));
            drop(lease);
            drop((writer, lessee));
            cache.check().unwrap();
        }
    }
}

/// One handle may lease from several threads.
#[test]
fn a_handle_leases_from_several_threads() {
    let cache = leasing();
    let (mut writer, lessee) = (cache.handle().unwrap(), cache.handle().unwrap());
    writer.insert("leased", [0; 300]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    let value = lessee.lease("leased").unwrap().unwrap().to_vec();
                    assert!(value.len() == 300 && value.iter().all(|byte| *byte == value[0]));
                }
            });
        }
        for turn in 0..2_000 {
            writer.insert("leased", [turn as u8; 300]).unwrap();
        }
    });
    drop((writer, lessee));
    cache.check().unwrap();
}

/// Namespaces and versions are numbers: those of another cache name something else here, or
/// nothing.
#[test]
fn namespaces_and_versions_of_another_cache_are_only_numbers() {
    let (cache, other) =
        (small().create_sealed().unwrap(), TierCache::builder().create_sealed().unwrap());
    let mut foreign = other.handle().unwrap();
    let names: Vec<_> =
        (0..).map_while(|name: u32| other.namespace(&name.to_string()).ok()).collect();
    assert_eq!(names.len(), 8191, "a 64th of its capacity");
    // Some of this cache's own have the numbers and births of the other's.
    (0..20).for_each(|name| assert!(cache.namespace(&format!("own {name}")).is_ok()));
    let mut known = 0;
    let mut handle = cache.handle().unwrap();
    let mut reader = cache.reader();
    for space in names {
        handle.set_namespace(space);
        reader.set_namespace(space);
        assert_eq!(handle.get("key").unwrap(), None);
        match handle.insert("key", "value") {
            Ok(_) => known += 1,
            Err(error) => assert_eq!(error, CacheError::NoNamespace),
        }
        assert_eq!(reader.get("key").unwrap(), handle.get("key").unwrap());
        cache.clear_namespace(space).unwrap();
        assert_eq!(reader.get("key").unwrap(), None);
    }
    assert_eq!(known, 20);
    // Blocks of the larger cache, most of which this one does not have.
    handle.set_namespace(Namespace::default());
    handle.insert("key", "value").unwrap();
    let mut versions = Vec::new();
    for number in 0..20_000 {
        foreign.insert(key(number), "value").unwrap();
        versions.extend(foreign.get_versioned(key(number)).unwrap().map(|(_, version)| version));
    }
    let mut stored = 0;
    for version in versions {
        stored += handle.compare_exchange("key", version, "other", None).unwrap() as u32;
        assert!(!handle.compare_exchange("absent", version, "other", None).unwrap());
    }
    assert!(stored <= 1, "an equal number at best");
    drop((handle, foreign));
    cache.check().unwrap();
}

/// Keys and values from nothing to the longest and beyond.
#[test]
fn keys_and_values_at_the_ends() {
    let cache =
        TierCache::builder().capacity(16 << 20).handles(4).leases().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let longest = cache.max_value();
    let values = [0, 1, 7, 8, 9, 80, 81, longest - 1, longest];
    let keys = [0, 1, 7, 8, 9, 15, 16, 17, 80, 1000, MAX_KEY - 1, MAX_KEY];
    for key in keys.map(|len| vec![0xa5; len]) {
        for value in values.map(|len| vec![0x5a; len]) {
            let report = handle.insert(&key, &value);
            if key.len() <= 256 {
                report.unwrap();
            } else if report.is_err() {
                assert!(matches!(report, Err(CacheError::KeyTooLarge { .. })));
                continue;
            }
            assert_eq!(handle.get(&key).unwrap().as_ref(), Some(&value));
            assert_eq!(cache.reader().get(&key).unwrap().as_ref(), Some(&value));
            let lease = handle.lease(&key).unwrap().unwrap();
            assert_eq!((lease.len(), lease.to_vec()), (value.len(), value));
        }
    }
    let value = vec![0; longest + 1];
    assert_eq!(handle.insert("key", value), Err(CacheError::ValueTooLarge { max: longest }));
    // Lengths that differ in bits which an entry has no room for.
    for len in [MAX_KEY + 1, 1 << 17, (1 << 17) + 8, (1 << 17) + MAX_KEY] {
        let key = vec![0xa5; len];
        assert_eq!(handle.insert(&key, ""), Err(CacheError::KeyTooLarge { max: MAX_KEY }));
        assert_eq!(handle.get(&key).unwrap(), None);
        assert_eq!(cache.reader().get(&key).unwrap(), None);
        assert!(handle.lease(&key).unwrap().is_none());
        assert!(!handle.remove(&key).unwrap() && !handle.touch(&key, None).unwrap());
        assert!(!handle.contains_key(&key).unwrap());
        handle.evict_bucket_of(&key, 1).unwrap();
    }
    for ttl in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        handle.insert_for("brief", "value", Some(ttl)).unwrap();
        handle.get("brief").unwrap();
        handle.touch("brief", Some(ttl)).unwrap();
        handle.ttl("brief").unwrap();
        handle.evict_unused(ttl, 1).unwrap();
        handle.maintain().unwrap();
    }
    for number in [i64::MIN, -1, i64::MAX] {
        handle.insert("number", number.to_string()).unwrap();
        let _ = handle.incr("number", number, None, None);
        let _ = handle.decr("number", number, None, None);
    }
    handle.set_timeout(Duration::MAX);
    handle.set_patience(Duration::MAX);
    handle.get_or_compute("computed", Some(Duration::MAX), Vec::new).unwrap();
    drop(handle);
    cache.check().unwrap();
}

/// Sizes that no cache can have are errors, of whichever function; no size panics.
#[test]
fn capacities_at_the_ends() {
    let ends = [0, 1, 8, 32, 39, 64, 127, 128, 4096, 8192, 1 << 35, usize::MAX / 2, usize::MAX];
    for block in ends {
        let builder = || TierCache::builder().block(block);
        for number in ends {
            let made = builder().for_entries(number, number, number);
            if block.is_power_of_two() && (128..=4096).contains(&block) {
                continue;
            }
            assert!(made.create_sealed().is_err(), "a block of {block} bytes");
        }
    }
    for seats in [0, 8193, u32::MAX] {
        let made = TierCache::builder().handles(seats).for_entries(usize::MAX, 1, 1);
        assert!(made.create_sealed().is_err(), "{seats} handles");
    }
    for value in [1 << 20, u32::MAX as usize, usize::MAX] {
        assert!(small().max_value(value).create_sealed().is_err(), "values of {value} bytes");
    }
    for capacity in [0, 1, 4096] {
        assert!(TierCache::builder().capacity(capacity).create_sealed().is_err());
    }
    // Four tebibytes of blocks; by name, so that the file system refuses it at once.
    let place = Place::Name(format!("soundness-tier-{}", std::process::id()));
    let beyond = TierCache::builder().block(4096).capacity(usize::MAX).create(&place).unwrap_err();
    assert!(matches!(beyond, OpenError::Map(_)), "{beyond}");
    let vast = TierCache::builder().block(4096).capacity(4 << 40);
    let refused = vast.create(&place).unwrap_err();
    let _ = TierCache::unlink(&place);
    assert!(matches!(refused, OpenError::Segment(SegmentError::NoSpace { .. })), "{refused}");
    // The smallest: every function of a cache with hardly any blocks.
    let smallest = (64..256).find_map(|kib| {
        let builder = TierCache::builder().capacity(kib << 10).handles(1).max_value(0);
        builder.create_sealed().ok()
    });
    let cache = smallest.unwrap();
    let mut handle = cache.handle().unwrap();
    churn_empty(&mut handle);
    handle.insert("", "").unwrap();
    assert_eq!(handle.get("").unwrap(), Some(Vec::new()));
    assert_eq!(cache.handle().unwrap_err(), CacheError::NoSeat);
    handle.maintain().unwrap();
    drop(handle);
    cache.check().unwrap();
}

fn churn_empty(handle: &mut Handle<'_>) {
    for number in 0..2 * handle.cache().stats().blocks as usize {
        handle.insert(key(number), "").unwrap();
    }
}

/// Memory that may only be read is not written to, whatever is called.
#[test]
fn a_read_only_cache_stores_nothing() {
    let _alone = without_forks();
    let place = Place::Path(temporary("read-only"));
    let cache = small().leases().create(&place).unwrap();
    let space = cache.namespace("there").unwrap();
    let mut handle = cache.handle().unwrap();
    (0..50).for_each(|number| assert!(handle.insert(key(number), "value").is_ok()));
    handle.insert_for("brief", "value", Some(Duration::ZERO)).unwrap();
    let looking = Arc::new(TierCache::attach_read_only(&place).unwrap());
    assert_eq!(looking.handle().unwrap_err(), CacheError::ReadOnly);
    assert_eq!(looking.recover(), Err(CacheError::ReadOnly));
    assert_eq!(looking.namespace("there"), Ok(space));
    assert_eq!(looking.namespace("new"), Err(CacheError::ReadOnly));
    assert_eq!(looking.clear_namespace(space), Err(CacheError::ReadOnly));
    assert_eq!(looking.clear(), Err(CacheError::ReadOnly));
    let stop = AtomicBool::new(false);
    assert_eq!(looking.run_maintenance(SHORT, &stop), Err(CacheError::ReadOnly));
    drop(looking.spawn_maintenance(SHORT));
    let mut reader = looking.reader();
    assert_eq!(reader.get("key 1").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(reader.get("brief").unwrap(), None);
    assert_eq!(reader.get("absent").unwrap(), None);
    reader.set_namespace(space);
    assert_eq!(reader.get("key 1").unwrap(), None);
    assert_eq!(looking.scan().filter(Result::is_ok).count(), 50);
    assert_eq!(looking.namespaces().len(), 2);
    assert_eq!(looking.len(), 51);
    assert!(looking.stats().entries == 51 && !looking.processes().is_empty());
    assert!(TierCache::attach_sealed(looking.inheritable().unwrap()).is_err());
    drop(handle);
    looking.check().unwrap();
    TierCache::unlink(&place).unwrap();
}

/// Each attachment is a member of its own, though all are of one process.
#[test]
fn a_process_attaches_many_times() {
    let _alone = without_forks();
    let cache = small().create_sealed().unwrap();
    let attach = || TierCache::attach_sealed(cache.inheritable().unwrap());
    let mut attached: Vec<_> = (0..16).map(|_| attach().unwrap()).collect();
    for (number, again) in attached.iter().enumerate() {
        let mut handle = again.handle().unwrap();
        handle.insert(key(number), "value").unwrap();
        assert!(handle.contains_key(key(number / 2)).unwrap());
    }
    assert_eq!(cache.processes().len(), 16, "who took no handle does not show");
    attached.truncate(3);
    assert_eq!(cache.processes().len(), 3);
    drop(attached);
    assert_eq!(cache.check().unwrap().entries, 16);
}

thread_local! {
    static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    static LEFT: RefCell<Option<Handle<'static>>> = const { RefCell::new(None) };
}

/// Works on a cache when its thread's locals go.
struct Late(&'static TierCache);

impl Drop for Late {
    fn drop(&mut self) {
        let mut handle = self.0.handle().unwrap();
        handle.insert("late", "value").unwrap();
        handle.get_or_compute("computed", None, || b"late".to_vec()).unwrap();
        assert_eq!(handle.lease("late").unwrap().unwrap().to_vec(), b"value");
        assert!(self.0.scan().all(|entry| entry.is_ok()));
        churn(&mut handle);
        assert!(handle.evict_oldest(1).unwrap().len() == 1 && handle.maintain().is_ok());
    }
}

#[test]
fn a_cache_is_used_while_the_locals_of_a_thread_go() {
    let _alone = without_forks();
    for first in [true, false] {
        let cache: &'static TierCache = Box::leak(Box::new(leasing()));
        let leave = || {
            let mut handle = cache.handle().unwrap();
            handle.insert("left", "value").unwrap();
            LEFT.set(Some(handle));
        };
        let set_up = move || {
            // Locals go in the order opposite to that of their first use.
            if first {
                leave();
            }
            LATE.set(Some(Late(cache)));
            leave();
        };
        std::thread::spawn(set_up).join().unwrap();
        assert_eq!(cache.stats().seats, 0, "every handle has left");
        cache.check().unwrap();
    }
}
