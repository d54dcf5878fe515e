//! What one process can do with a cache, shared or its own: the same on Linux, where processes
//! share it, and elsewhere (`--cfg quintet_private` on Linux).

use quintet::cache::{Begun, CacheError, Departed, OpenError, Place, SegmentError, TierCache};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A name that goes with the test.
struct Named(Place);

impl Named {
    fn new(name: &str) -> Self {
        let place = Place::Name(format!("vocabulary-{name}-{}", std::process::id()));
        let _ = TierCache::unlink(&place);
        Self(place)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = TierCache::unlink(&self.0);
    }
}

fn small() -> TierCache {
    let named = Named::new("small");
    TierCache::builder().capacity(1 << 20).create(&named.0).unwrap()
}

/// Serializes the tests that use the name of [`small`].
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn bytes_under_bytes() {
    let _turn = turn();
    let cache = small();
    assert_eq!(cache.get("a").unwrap(), None);
    for length in [0, 1, 63, 64, 65, 1000, 15_000] {
        let value = vec![length as u8; length];
        cache.insert("a", &value).unwrap();
        assert_eq!(cache.get("a").unwrap().as_deref(), Some(&value[..]));
    }
    assert!(cache.remove("a").unwrap() && !cache.remove("a").unwrap());
    cache.insert("b", "1").unwrap();
    assert_eq!(cache.pop("b").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(cache.is_empty());
    assert!(cache.is_removed(), "its name went, it goes on");
    cache.check().unwrap();
}

#[test]
fn handles_and_batches() {
    let _turn = turn();
    let cache = small();
    let mut handle = cache.handle().unwrap();
    let entries: Vec<(String, String)> =
        (0..500).map(|at| (format!("key {at}"), format!("value {at}"))).collect();
    assert_eq!(handle.insert_many(&entries, None).unwrap().len(), 500);
    let keys: Vec<&String> = entries.iter().map(|(key, _)| key).collect();
    let values = handle.get_many(&keys).unwrap();
    for ((_, value), found) in entries.iter().zip(values) {
        assert_eq!(found.as_deref(), Some(value.as_bytes()));
    }
    let (value, version) = handle.get_versioned("key 1").unwrap().unwrap();
    assert_eq!(value, b"value 1");
    assert!(handle.compare_exchange("key 1", version, "other", None).unwrap());
    assert!(!handle.compare_exchange("key 1", version, "late", None).unwrap());
    assert_eq!(handle.remove_many(&keys).unwrap(), 500);
    assert_eq!(handle.incr("count", 2, Some(5), None).unwrap(), Some(7));
}

#[test]
fn what_expires_is_gone() {
    let _turn = turn();
    let cache = small();
    cache.insert_for("short", "1", Some(Duration::from_millis(20))).unwrap();
    cache.insert_for("long", "1", Some(Duration::from_secs(600))).unwrap();
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(cache.get("short").unwrap(), None);
    assert!(cache.get("long").unwrap().is_some());
}

#[test]
fn what_does_not_fit_leaves_to_the_sink() {
    let left = Arc::new(Mutex::new(0));
    let mut cache = TierCache::builder().capacity(256 << 10).create_sealed().unwrap();
    let count = Arc::clone(&left);
    cache.set_sink(move |batch: &[Departed]| {
        *count.lock().unwrap() += batch.len();
        Ok(())
    });
    let mut handle = cache.handle().unwrap();
    let inserted = 5000;
    (0..inserted).for_each(|at: u32| _ = handle.insert(at.to_le_bytes(), [1; 64]).unwrap());
    drop(handle);
    assert_eq!(cache.len() as usize + *left.lock().unwrap(), inserted as usize);
    cache.check().unwrap();
}

#[test]
fn places_are_found_made_and_removed() {
    let named = Named::new("places");
    let place = &named.0;
    let error = |opened: Result<TierCache, OpenError>| match opened {
        Err(OpenError::Segment(error)) => error,
        other => panic!("{other:?}"),
    };
    let builder = TierCache::builder().capacity(1 << 20);
    assert!(matches!(error(TierCache::attach(place)), SegmentError::NotFound(_)));
    assert!(matches!(error(builder.create(&Place::Name("a/b".into()))), SegmentError::Name(_)));
    let first = builder.create(place).unwrap();
    assert!(matches!(error(builder.create(place)), SegmentError::Exists(_)));
    first.insert("shared", "by both").unwrap();
    let second = builder.create_or_attach(place).unwrap();
    assert_eq!(second.get("shared").unwrap().as_deref(), Some(&b"by both"[..]));
    let other = TierCache::builder().capacity(2 << 20).create_or_attach(place);
    assert!(matches!(error(other), SegmentError::Mismatch { field: "capacity", .. }));
    let reader = TierCache::attach_read_only(place).unwrap();
    assert_eq!(reader.reader().get("shared").unwrap().as_deref(), Some(&b"by both"[..]));
    assert!(matches!(reader.handle(), Err(CacheError::ReadOnly)));
    assert!(second.processes().iter().all(|peer| peer.pid == std::process::id()));
    TierCache::unlink(place).unwrap();
    assert!(TierCache::unlink(place).is_err());
    // Those who have it go on; the next of that name is another.
    second.insert("late", "1").unwrap();
    assert!(first.get("late").unwrap().is_some() && first.is_removed());
    assert!(builder.create(place).unwrap().is_empty());
}

/// Threads on one cache: every acknowledged entry is there, one computation for all.
#[test]
fn threads_share_it() {
    let cache = TierCache::builder().capacity(16 << 20).create_sealed().unwrap();
    let computed = Mutex::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (cache, computed) = (&cache, &computed);
            scope.spawn(move || {
                let mut handle = cache.handle().unwrap();
                for at in 0..2000u64 {
                    let key = (thread << 32 | at).to_le_bytes();
                    handle.insert(key, key.repeat(1 + at as usize % 40)).unwrap();
                    handle.incr("all", 1, Some(0), None).unwrap();
                }
                let compute = || {
                    *computed.lock().unwrap() += 1;
                    b"once".to_vec()
                };
                assert_eq!(cache.get_or_compute("page", None, compute).unwrap(), b"once");
            });
        }
    });
    assert_eq!(*computed.lock().unwrap(), 1);
    assert_eq!(cache.get("all").unwrap().as_deref(), Some(&b"8000"[..]));
    for key in (0..4u64).flat_map(|thread| (0..2000).map(move |at| (thread << 32 | at, at))) {
        let (key, at) = (key.0.to_le_bytes(), key.1 as usize);
        assert_eq!(cache.get(key).unwrap(), Some(key.repeat(1 + at % 40)));
    }
    cache.check().unwrap();
}

#[test]
fn flights_are_handed_over() {
    let cache = TierCache::builder().capacity(1 << 20).create_sealed().unwrap();
    let (mut one, mut two) = (cache.handle().unwrap(), cache.handle().unwrap());
    let Begun::Flight(flight) = one.begin("key").unwrap() else { panic!("nobody is at it") };
    assert!(matches!(two.begin("key").unwrap(), Begun::Busy));
    drop(flight);
    let Begun::Flight(flight) = two.begin("key").unwrap() else { panic!("dropped") };
    flight.complete(b"value", None).unwrap();
    assert!(matches!(one.begin("key").unwrap(), Begun::Value(value) if value == b"value"));
}
