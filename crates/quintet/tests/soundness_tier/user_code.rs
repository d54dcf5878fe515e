//! User code that uses the cache from inside an operation: sinks, computations, keys, formats.

use super::*;

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
