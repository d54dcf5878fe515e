//! What a forked child finds of what its parent has under way.

use super::*;

/// Works in a forked child; fails if the work does, or if the child does not end.
fn in_child(mut work: impl FnMut() -> bool) {
    let _forking = FORKING.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the child works on caches that no other thread of this test uses, and leaves without
    // unwinding or running destructors.
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

/// A computation that forks and lets the child return: the parent's flight is not the child's to
/// give back.
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

/// A child that is forked in a sink has no claims on what is being delivered, nor has one that is
/// forked in a key a seat to lease for.
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
    // SAFETY: the child works on a cache that no other thread uses, and ends without running
    // destructors.
    let child = unsafe { libc::fork() };
    if child != 0 {
        let mut status = -1;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child failed");
    }
    child == 0
}
