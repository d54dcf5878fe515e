//! `TierCache`: safe code breaks nothing inside one process. Stories of user code that uses the cache from inside an operation, of what it leaves
//! open, and of what a forked child finds.

#![cfg(all(feature = "shm", any(target_os = "linux", target_os = "android")))]

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

/// Sets again and again as many entries as would fill the cache twice: every free block is written to.
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

/// Held to write by who forks. A child holds copies of all locks until its first instruction: who counts the living is alone with its own.
static FORKING: RwLock<()> = RwLock::new(());

fn without_forks() -> RwLockReadGuard<'static, ()> {
    FORKING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Works in a forked child; fails if the work does, or if the child does not end.
fn in_child(mut work: impl FnMut() -> bool) {
    let _forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the child works on caches that no other thread of this test uses, and leaves without unwinding or running destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let worked = catch_unwind(AssertUnwindSafe(&mut work)).unwrap_or(false);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!worked)) };
    }
    let (mut status, since) = (-1, Instant::now());
    // SAFETY: asks for the child made above, whose status outlives the call.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if since.elapsed() > LONG {
            // SAFETY: ends the child made above, which nobody has waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(status, 0, "the child failed");
}

/// A child's copy of a lease is not the lease: the word that pins the entry is one for both.
#[test]
fn a_lease_that_came_along_in_a_fork_is_not_ended_by_the_child() {
    let cache = leasing();
    let (mut writer, lessee) = (cache.handle().unwrap(), cache.handle().unwrap());
    writer.insert("leased", [1; 64]).unwrap();
    let mut lease = lessee.lease("leased").unwrap();
    in_child(|| {
        drop(lease.take());
        true
    });
    assert!(writer.remove("leased").unwrap());
    churn(&mut writer);
    assert_eq!(lease.as_ref().map(Lease::to_vec), Some(vec![1; 64]));
    in_child(|| lease.as_ref().is_some_and(|lease| lease.is_empty() && lease.to_vec().is_empty()));
    drop(lease);
    drop(lessee);
    drop(writer);
    cache.check().unwrap();
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

/// Who evicts may find that maintenance has to stop, also if it is maintenance that evicts.
#[test]
fn a_sink_may_stop_the_maintenance_that_calls_it() {
    let mut cache = small().create_sealed().unwrap();
    let guard = Arc::new(Mutex::new(None::<Maintenance>));
    let ended = Arc::new(AtomicBool::new(false));
    let (slot, told, main) = (Arc::clone(&guard), Arc::clone(&ended), std::thread::current().id());
    cache.set_sink(move |_: &[Departed]| {
        if std::thread::current().id() != main && !told.load(Ordering::Relaxed) {
            wait_until("the guard", || slot.lock().unwrap().is_some());
            let guard = slot.lock().unwrap().take();
            drop(guard);
            told.store(true, Ordering::Relaxed);
        }
        Ok(())
    });
    let cache = Arc::new(cache);
    fill(&mut cache.handle().unwrap());
    *guard.lock().unwrap() = Some(cache.spawn_maintenance(Duration::from_millis(1)));
    wait_until("the sink dropped its guard", || ended.load(Ordering::Relaxed));
    wait_until("the thread ended", || Arc::strong_count(&cache) == 1);
    cache.check().unwrap();
}

/// The thread of a guard does not come along in a fork: nobody could wait for it.
#[test]
fn a_maintenance_guard_goes_in_a_forked_child() {
    let cache = Arc::new(small().create_sealed().unwrap());
    let mut guard = Some(cache.spawn_maintenance(Duration::from_millis(1)));
    in_child(|| {
        drop(guard.take());
        let again = cache.spawn_maintenance(Duration::from_millis(1));
        drop(again);
        cache.handle().and_then(|mut handle| handle.insert("child", "c")).is_ok()
    });
    assert!(cache.handle().unwrap().contains_key("child").unwrap());
    drop(guard);
    assert_eq!(Arc::strong_count(&cache), 1);
}

/// A descriptor that can be truncated ends in a signal, and the locks of processes that came by name lie elsewhere.
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

fn temporary(name: &str) -> std::path::PathBuf {
    let file = format!("soundness-tier-{name}-{}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

/// In a child the parent's handles refuse everything; the cache, its readers and scans go on.
#[test]
fn a_forked_child_uses_the_cache_by_handles_of_its_own() {
    let mut cache = small().leases().create_sealed().unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&told);
    cache.set_sink(move |batch: &[Departed]| {
        counts.fetch_add(batch.len(), Ordering::Relaxed);
        Ok(())
    });
    let mut handle = cache.handle().unwrap();
    fill(&mut handle);
    let before = told.load(Ordering::Relaxed);
    in_child(|| {
        let forked = CacheError::Forked;
        assert_eq!(handle.get("key 1"), Err(forked.clone()));
        assert_eq!(handle.insert("k", "v"), Err(forked.clone()));
        assert_eq!(handle.remove("k"), Err(forked.clone()));
        assert_eq!(handle.touch("k", None), Err(forked.clone()));
        assert_eq!(handle.ttl("k"), Err(forked.clone()));
        assert_eq!(handle.incr("k", 1, Some(1), None), Err(forked.clone()));
        assert_eq!(handle.insert_new("k", "v", None), Err(forked.clone()));
        assert_eq!(handle.get_many(&["k"]), Err(forked.clone()));
        assert_eq!(handle.insert_many(&[("k", "v")], None), Err(forked.clone()));
        assert_eq!(handle.get_or_compute("k", None, Vec::new), Err(forked.clone()));
        assert_eq!(handle.lease("k").unwrap_err(), forked);
        assert_eq!(handle.evict_oldest(1), Err(forked.clone()));
        assert_eq!(handle.evict_unused(Duration::ZERO, 1), Err(forked.clone()));
        assert_eq!(handle.evict_bucket_of("k", 1), Err(forked.clone()));
        assert_eq!(handle.maintain(), Err(forked.clone()));
        assert_eq!(told.load(Ordering::Relaxed), before, "delivered by a handle of the parent");
        let mut own = cache.handle().unwrap();
        own.insert("child", "c").unwrap();
        assert!(cache.reader().get("child").unwrap().is_some());
        cache.scan().all(|entry| entry.is_ok())
    });
    assert_eq!(handle.get("child").unwrap().as_deref(), Some(&b"c"[..]));
    drop(handle);
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// Who has no handle of its own, and who owns one, needs not know of the fork.
#[test]
fn pooled_and_owned_handles_take_seats_of_their_own_in_a_child() {
    let cache = Arc::new(small().create_sealed().unwrap());
    let mut owned = cache.owned_handle().unwrap();
    cache.insert("key 1", "parent").unwrap();
    owned.insert("key 2", "parent").unwrap();
    in_child(|| {
        cache.insert("key 1", "child").unwrap();
        assert_eq!(cache.get("key 2").unwrap().as_deref(), Some(&b"parent"[..]));
        cache.remove("key 2").unwrap()
    });
    in_child(|| owned.insert("key 3", "child").is_ok() && owned.get("key 1").unwrap().is_some());
    for (key, value) in [("key 1", Some("child")), ("key 2", None), ("key 3", Some("child"))] {
        assert_eq!(cache.get(key).unwrap().as_deref(), value.map(str::as_bytes), "{key}");
        assert_eq!(owned.get(key).unwrap().as_deref(), value.map(str::as_bytes), "{key}");
    }
    drop(owned);
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// A computation that forks and lets the child return: the parent's flight is not the child's to give back.
#[test]
fn a_flight_that_came_along_in_a_fork_is_the_parents() {
    let cache = small().create_sealed().unwrap();
    let (mut handle, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    other.set_patience(SHORT);
    let mut child = false;
    let _forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
    let computed = handle.get_or_compute("key", None, || {
        child = fork_and_wait();
        if !child {
            assert_eq!(other.get_or_compute("key", None, Vec::new), Err(CacheError::Nested));
            let waits = || other.get_or_compute("key", None, Vec::new);
            let waited = std::thread::scope(|scope| scope.spawn(waits).join().unwrap());
            assert_eq!(waited, Err(CacheError::Busy));
        }
        b"once".to_vec()
    });
    if child {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(computed != Ok(b"once".to_vec()))) };
    }
    assert_eq!(computed.unwrap(), b"once");
}

/// A child that is forked in a sink has no claims on what is being delivered, nor has one that is forked in a key a seat to lease for.
#[test]
fn a_child_forked_in_user_code_leaves_the_parents_claims_alone() {
    let forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
    let told = Arc::new(Mutex::new(Vec::new()));
    let child = Arc::new(AtomicBool::new(false));
    let cache = Arc::new_cyclic(|weak: &Weak<TierCache>| {
        let mut cache = small().leases().create_sealed().unwrap();
        let (weak, told, child) = (Weak::clone(weak), Arc::clone(&told), Arc::clone(&child));
        let turns = AtomicUsize::new(0);
        cache.set_sink(move |batch: &[Departed]| {
            told.lock().unwrap().extend(batch.iter().map(|entry| entry.id));
            if turns.fetch_add(1, Ordering::Relaxed) == 0 {
                child.store(fork_and_wait(), Ordering::Relaxed);
                if !child.load(Ordering::Relaxed) {
                    let cache = weak.upgrade().unwrap();
                    hasty(&cache).evict_oldest(usize::MAX).unwrap();
                }
            }
            Ok(())
        });
        cache
    });
    let end = |well: bool| {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!well)) }
    };
    let mut handle = cache.handle().unwrap();
    (0..100).for_each(|number| assert!(handle.insert(key(number), "value").is_ok()));
    let gone = handle.evict_oldest(4);
    if child.load(Ordering::Relaxed) {
        end(gone == Err(CacheError::Forked));
    }
    assert_eq!(gone.unwrap().len(), 4);
    let mut ids = std::mem::take(&mut *told.lock().unwrap());
    ids.sort_unstable();
    assert!(ids.len() == 100 && ids.is_sorted_by(|one, next| one < next), "delivered twice");

    struct Forks<'c>(&'c AtomicBool);
    impl AsRef<[u8]> for Forks<'_> {
        fn as_ref(&self) -> &[u8] {
            self.0.store(fork_and_wait(), Ordering::Relaxed);
            b"key"
        }
    }
    handle.insert("key", "value").unwrap();
    let lease = handle.lease(Forks(&child)).map(|lease| lease.map(|lease| lease.len()));
    if child.load(Ordering::Relaxed) {
        end(lease == Err(CacheError::Forked));
    }
    assert_eq!(lease, Ok(Some(5)));
    drop(forking);
}

/// True in the child; false in the parent, when the child has ended well.
fn fork_and_wait() -> bool {
    // SAFETY: the child works on a cache that no other thread uses, and ends without running destructors.
    let child = unsafe { libc::fork() };
    if child != 0 {
        let mut status = -1;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child failed");
    }
    child == 0
}

/// A sink that keeps something in the cache for each entry that leaves.
#[test]
fn evicting_all_ends_though_the_sink_stores_as_much() {
    let turns = Arc::new(AtomicUsize::new(0));
    let cache = Arc::new_cyclic(|weak: &Weak<TierCache>| {
        let mut cache = small().create_sealed().unwrap();
        let (weak, turns) = (Weak::clone(weak), Arc::clone(&turns));
        cache.set_sink(move |_: &[Departed]| {
            let Some(cache) = weak.upgrade() else { return Ok(()) };
            let turn = turns.fetch_add(1, Ordering::Relaxed);
            assert!(turn < 100_000, "evicts what it stored, without end");
            let mut handle = cache.handle().map_err(|error| error.to_string())?;
            handle.set_no_evict(true);
            for number in 0..16 {
                let _ = handle.insert(key(1_000_000 + 16 * turn + number), "trace");
            }
            Ok(())
        });
        cache
    });
    let mut handle = cache.handle().unwrap();
    (0..100).for_each(|number| assert!(handle.insert(key(number), "value").is_ok()));
    let blocks = cache.stats().blocks as usize;
    assert!((100..=blocks).contains(&handle.evict_oldest(usize::MAX).unwrap().len()));
    assert!(handle.evict_unused(Duration::ZERO, usize::MAX).is_ok());
    drop(handle);
    cache.check().unwrap();
}

/// What user code does inside, once, wherever it is called from.
struct Inside {
    deed: Mutex<Option<Deed>>,
    calls: AtomicUsize,
    cache: OnceLock<Weak<TierCache>>,
}

type Deed = fn(&Arc<TierCache>);

impl Inside {
    fn run(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        // Deeds do not do themselves again.
        let deed = self.deed.lock().unwrap().take();
        let cache = self.cache.get().and_then(Weak::upgrade);
        if let (Some(deed), Some(cache)) = (deed, cache) {
            deed(&cache);
        }
    }
}

/// A key or value that calls user code whenever it is looked at.
struct Live<'i>(&'i Inside, &'i [u8]);

impl AsRef<[u8]> for Live<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0.run();
        self.1
    }
}

/// A sink that calls user code from each of its functions.
struct LiveSink {
    inside: Arc<Inside>,
    when: When,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Never,
    Batch,
    Store,
    Withdraw,
}

impl LiveSink {
    fn at(&self, when: When) {
        if self.when == when {
            self.inside.run();
        }
    }
}

impl EvictionSink for LiveSink {
    fn store(&self, batch: &[Departed]) -> Result<(), String> {
        self.at(When::Store);
        // Somebody replaces what is about to leave: it is withdrawn.
        let cache = self.inside.cache.get().and_then(Weak::upgrade);
        if let (When::Withdraw, Some(cache)) = (self.when, cache) {
            let mut handle = cache.handle().map_err(|error| error.to_string())?;
            handle.set_no_evict(true);
            for entry in batch {
                handle.remove(&entry.key).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn withdraw(&self, _: &[Departed]) {
        self.at(When::Withdraw);
    }

    fn batch(&self) -> usize {
        self.at(When::Batch);
        4
    }
}

fn hasty(cache: &TierCache) -> Handle<'_> {
    let mut handle = cache.handle().unwrap();
    handle.set_timeout(SHORT);
    handle.set_patience(SHORT);
    handle
}

const DEEDS: [(&str, Deed); 10] = [
    ("read", |cache| {
        let mut handle = hasty(cache);
        handle.get("key 1").unwrap();
        handle.lease("key 2").unwrap();
        cache.reader().get("key 3").unwrap();
    }),
    ("write", |cache| {
        let mut handle = hasty(cache);
        let _ = handle.insert("key 1", "within");
        let _ = handle.insert("new", [1; 200]);
        let _ = handle.incr("count", 1, Some(0), None);
        handle.remove("key 2").unwrap();
    }),
    ("compute", |cache| {
        // The outer call may be computing this very key.
        match hasty(cache).get_or_compute("computed", None, || b"inner".to_vec()) {
            Ok(_) | Err(CacheError::Busy | CacheError::Full | CacheError::Nested) => {}
            Err(error) => panic!("{error}"),
        }
    }),
    ("iterate", |cache| assert!(cache.scan().all(|entry| entry.is_ok()))),
    ("evict", |cache| {
        let mut handle = hasty(cache);
        handle.evict_oldest(3).unwrap();
        handle.evict_bucket_of("key 1", 3).unwrap();
        handle.evict_unused(Duration::ZERO, 3).unwrap();
        handle.maintain().unwrap();
    }),
    ("empty", |cache| {
        cache.clear().unwrap();
        cache.recover().unwrap();
    }),
    ("drop an owner", |cache| drop(Arc::clone(cache))),
    ("come and go", |cache| {
        drop(hasty(cache));
        forget(hasty(cache));
        let handle = hasty(cache);
        forget(handle.lease("key 1").unwrap());
        forget(cache.scan());
        drop(cache.spawn_maintenance(SHORT));
    }),
    ("attach again", |cache| {
        let again = TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap();
        let mut handle = hasty(&again);
        handle.get("key 1").unwrap();
        let _ = handle.insert("key 1", "by another way");
        forget(again.handle().unwrap());
        drop(handle);
        again.recover().unwrap();
    }),
    ("panic", |_| panic!("of the user")),
];

type Operation = fn(&mut Handle<'_>, &Inside);

/// Operations that call user code, and where their sink does.
const OPERATIONS: [(&str, When, Operation); 22] = [
    ("get", When::Never, |handle, inside| {
        handle.get(Live(inside, b"key 1")).unwrap();
    }),
    ("get_into", When::Never, |handle, inside| {
        handle.get_into(Live(inside, b"key 1"), &mut vec![1]).unwrap();
    }),
    ("get_versioned", When::Never, |handle, inside| {
        let found = handle.get_versioned(Live(inside, b"key 1")).unwrap();
        if let Some((_, version)) = found {
            handle.compare_exchange(Live(inside, b"key 1"), version, "cas", None).unwrap();
        }
    }),
    ("peek, contains", When::Never, |handle, inside| {
        handle.peek(Live(inside, b"key 1")).unwrap();
        handle.contains_key(Live(inside, b"key 1")).unwrap();
    }),
    ("get_many", When::Never, |handle, inside| {
        let keys = [b"key 1", b"key 2", b"key 3"].map(|key| Live(inside, key));
        assert_eq!(handle.get_many(&keys).unwrap().len(), 3);
    }),
    ("lease", When::Never, |handle, inside| {
        let lease = handle.lease(Live(inside, b"key 5")).unwrap();
        assert!(lease.is_none_or(|lease| lease.to_vec() == [7; 64]));
    }),
    ("set, by its key", When::Never, |handle, inside| {
        handle.insert(Live(inside, b"key 1"), "set").unwrap();
    }),
    ("set, by its value", When::Never, |handle, inside| {
        handle.insert("key 1", Live(inside, b"set")).unwrap();
    }),
    ("insert_many", When::Never, |handle, inside| {
        let entry = (Live(inside, b"key 1"), Live(inside, b"set"));
        handle.insert_many(&[entry], Some(LONG)).unwrap();
    }),
    ("add, replace", When::Never, |handle, inside| {
        handle.insert_new(Live(inside, b"key 1"), Live(inside, b"set"), None).unwrap();
        handle.replace(Live(inside, b"key 1"), Live(inside, b"set"), None).unwrap();
    }),
    ("incr, touch, ttl, remove", When::Never, |handle, inside| {
        handle.incr(Live(inside, b"number"), 1, Some(1), None).unwrap();
        handle.touch(Live(inside, b"number"), Some(LONG)).unwrap();
        handle.ttl(Live(inside, b"number")).unwrap();
        handle.remove(Live(inside, b"number")).unwrap();
    }),
    ("evict_bucket_of, by its key", When::Never, |handle, inside| {
        handle.evict_bucket_of(Live(inside, b"key 1"), 1).unwrap();
    }),
    ("get_or_compute", When::Never, |handle, inside| {
        let computed = handle.get_or_compute("computed", None, || {
            inside.run();
            b"outer".to_vec()
        });
        assert_eq!(computed.unwrap(), b"outer");
    }),
    ("get_or_try_compute", When::Never, |handle, inside| {
        let computed = handle.get_or_try_compute("computed", None, || {
            inside.run();
            Err::<Vec<u8>, _>("refused")
        });
        assert_eq!(computed.unwrap(), Err("refused"));
    }),
    ("scan", When::Never, |handle, inside| {
        for entry in handle.cache().scan() {
            entry.unwrap();
            inside.run();
        }
    }),
    ("set into a full cache", When::Store, |handle, _| fill(handle)),
    ("a long value into a full cache", When::Store, |handle, _| {
        fill(handle);
        handle.insert("long", [9; 2000]).unwrap();
    }),
    ("evict_oldest", When::Store, |handle, _| {
        handle.evict_oldest(20).unwrap();
    }),
    ("evict_unused", When::Store, |handle, _| {
        handle.evict_unused(Duration::ZERO, 20).unwrap();
    }),
    ("maintain", When::Store, |handle, _| {
        fill(handle);
        handle.maintain().unwrap();
    }),
    ("batch", When::Batch, |handle, _| {
        handle.evict_oldest(20).unwrap();
        handle.evict_unused(Duration::ZERO, 20).unwrap();
    }),
    ("withdraw", When::Withdraw, |handle, _| {
        handle.evict_oldest(20).unwrap();
    }),
];

/// Each thing that user code can do, at each place where a cache calls it.
#[test]
fn user_code_does_anything_anywhere() {
    let _alone = without_forks();
    for (operation, when, operate) in OPERATIONS {
        for (name, deed) in DEEDS {
            let inside = Arc::new(Inside {
                deed: Mutex::new(None),
                calls: AtomicUsize::new(0),
                cache: OnceLock::new(),
            });
            let mut cache = small().leases().create_sealed().unwrap();
            cache.set_sink(LiveSink { inside: Arc::clone(&inside), when });
            let cache = Arc::new(cache);
            inside.cache.set(Arc::downgrade(&cache)).unwrap();
            let mut handle = cache.handle().unwrap();
            for number in 0..100 {
                handle.insert(key(number), [7; 64]).unwrap();
            }
            *inside.deed.lock().unwrap() = Some(deed);
            let ended = catch_unwind(AssertUnwindSafe(|| operate(&mut handle, &inside)));
            let panicked = ended.is_err();
            assert_eq!(panicked, name == "panic", "{name} in {operation}");
            assert!(inside.calls.load(Ordering::Relaxed) > 0, "{operation} calls nothing");
            // Whole: the same handle goes on, and everything holds together.
            *inside.deed.lock().unwrap() = None;
            handle.insert("after", "all").unwrap();
            assert_eq!(handle.get("after").unwrap().as_deref(), Some(&b"all"[..]));
            let computed = handle.get_or_compute("later", None, || b"more".to_vec());
            assert_eq!(computed.unwrap(), b"more", "{name} in {operation}");
            drop(handle);
            cache.recover().unwrap();
            cache.check().unwrap_or_else(|what| panic!("{name} in {operation}: {what}"));
        }
    }
}

/// A sink that panics when it is replaced, or goes with its cache.
#[test]
fn a_sink_may_panic_while_it_goes() {
    struct Angry(Arc<AtomicUsize>);
    impl Drop for Angry {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            panic!("of the user");
        }
    }
    impl EvictionSink for Angry {
        fn store(&self, _: &[Departed]) -> Result<(), String> {
            Err("refused".into())
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let mut cache = small().create_sealed().unwrap();
    cache.set_sink(Angry(Arc::clone(&drops)));
    let replace = AssertUnwindSafe(|| cache.set_sink(Angry(Arc::clone(&drops))));
    assert!(catch_unwind(replace).is_err());
    let mut handle = cache.handle().unwrap();
    handle.insert("key", "value").unwrap();
    assert!(matches!(handle.evict_oldest(1), Err(CacheError::Sink(_))));
    assert!(handle.contains_key("key").unwrap(), "refused, so it stays");
    drop(handle);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(cache))).is_err());
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

/// A sink that panics ends the thread of maintenance; its guard and everybody else go on.
#[test]
fn a_sink_that_panics_ends_maintenance_and_nothing_else() {
    let mut cache = small().create_sealed().unwrap();
    let main = std::thread::current().id();
    cache.set_sink(move |_: &[Departed]| {
        assert!(std::thread::current().id() == main, "of the user");
        Ok(())
    });
    let cache = Arc::new(cache);
    fill(&mut cache.handle().unwrap());
    let guard = cache.spawn_maintenance(Duration::from_millis(1));
    wait_until("the thread ended", || Arc::strong_count(&cache) == 1);
    churn(&mut cache.handle().unwrap());
    // Another member is elected, though this one lives.
    let other = Arc::new(TierCache::attach_sealed(cache.inheritable().unwrap()).unwrap());
    let before = other.stats().evicted;
    let second = other.spawn_maintenance(Duration::from_millis(1));
    wait_until("another is elected", || other.stats().evicted > before);
    drop(second);
    drop(guard);
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

/// Namespaces and versions are numbers: those of another cache name something else here, or nothing.
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

/// Formats and values are user code too, called while no operation is under way.
#[test]
#[cfg(feature = "serde")]
fn a_format_does_anything() {
    use serde::{Serialize, de::DeserializeOwned};
    thread_local! {
        static WITHIN: RefCell<Option<(Arc<TierCache>, Deed)>> = const { RefCell::new(None) };
    }
    struct Json;
    impl Json {
        fn run() {
            if let Some((cache, deed)) = WITHIN.take() {
                deed(&cache);
            }
        }
    }
    impl Format for Json {
        fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
            Self::run();
            serde_json::to_vec(value).map_err(|error| error.to_string())
        }
        fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
            Self::run();
            serde_json::from_slice(bytes).map_err(|error| error.to_string())
        }
    }
    type Typed<'c> = TypedHandle<'c, String, Json>;
    let operations: [fn(&mut Typed<'_>); 3] = [
        |handle| {
            handle.insert("typed", &"value".into(), None).unwrap();
        },
        |handle| drop(handle.get("typed")),
        |handle| {
            handle.get_or_compute("computed", None, || "outer".into()).unwrap();
        },
    ];
    for operate in operations {
        for (name, deed) in DEEDS {
            let _alone = without_forks();
            let cache = Arc::new(leasing());
            let mut handle = cache.handle().unwrap().typed::<String, Json>();
            handle.insert("typed", &"before".into(), None).unwrap();
            WITHIN.set(Some((Arc::clone(&cache), deed)));
            let ended = catch_unwind(AssertUnwindSafe(|| operate(&mut handle)));
            assert_eq!(ended.is_err(), name == "panic", "{name}");
            handle.insert("after", &"all".into(), None).unwrap();
            assert_eq!(handle.get("after").unwrap().as_deref(), Some("all"));
            drop(handle);
            cache.recover().unwrap();
            cache.check().unwrap();
        }
    }
}
