//! Creating, attaching, leaving, coming back.

use super::processes::{Named, PATIENCE};
use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use std::os::unix::fs::FileExt;

fn error_of(opened: Result<TierCache, OpenError>) -> SegmentError {
    match opened {
        Err(OpenError::Segment(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Nothing there, something else there, a cache of other sizes there.
#[test]
fn whoever_attaches_is_told_what_is_wrong() {
    let named = Named::new("attach");
    let place = named.place();
    assert!(matches!(error_of(TierCache::attach(place)), SegmentError::NotFound(_)));
    assert!(matches!(error_of(TierCache::attach_read_only(place)), SegmentError::NotFound(_)));
    let geometry = crate::tier_cache::Geometry { buckets: 8, window: 8, records: 16, seats: 2 };
    let map = crate::tier_cache::SharedMap::create(place, geometry, Access::default()).unwrap();
    for opened in [TierCache::attach(place), small().create_or_attach(place)] {
        let error = error_of(opened);
        assert!(matches!(error, SegmentError::Mismatch { field: "kind", .. }), "{error}");
    }
    assert!(matches!(error_of(small().create(place)), SegmentError::Exists(_)));
    drop(map);
    TierCache::unlink(place).unwrap();
    let cache = small().max_value(100).create(place).unwrap();
    let other = small().max_value(900).capacity(1 << 20).create_or_attach(place).unwrap();
    assert_eq!(other.sizes, cache.sizes, "those of the creator");
    assert_eq!(other.max_value(), 100);
}

/// At the same time: one makes it, the others are told so, or attach to it and find all its blocks.
#[test]
fn of_several_creators_one_makes_it() {
    let builder = small().no_evict();
    for round in 0..20 {
        let named = Named::new(&format!("creators-{round}"));
        let barrier = std::sync::Barrier::new(3);
        let at_once = |open: &(dyn Fn() -> Result<TierCache, OpenError> + Sync)| {
            std::thread::scope(|scope| {
                let all = [(); 3].map(|()| {
                    scope.spawn(|| {
                        barrier.wait();
                        open()
                    })
                });
                all.map(|thread| thread.join().unwrap())
            })
        };
        let made = at_once(&|| builder.create(named.place()));
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
        for error in made.into_iter().filter(Result::is_err).map(error_of) {
            assert!(matches!(error, SegmentError::Exists(_) | SegmentError::NotReady(_)));
        }
        TierCache::unlink(named.place()).unwrap();
        let opened = at_once(&|| {
            let cache = builder.create_or_attach(named.place())?;
            cache.handle().unwrap().insert("k", "v").expect("its blocks are found");
            Ok(cache)
        });
        for cache in opened {
            let cache = cache.unwrap();
            assert_eq!((cache.len(), cache.reader().get("k").unwrap()), (1, Some(b"v".to_vec())));
        }
    }
}

/// Whoever creates it dies at each of its stores: the next one has the whole cache.
#[test]
fn the_creator_dies_midway() {
    for builder in [small(), small().no_evict()] {
        let sizes = tiny_of(builder, 64).sizes;
        for n in 0.. {
            let named = Named::new(&format!("creator-{}-{n}", sizes.evicts));
            let create = || TierCache::create(named.place(), sizes, Access::default());
            let (made, points) = with_fate(Fate::Stop(n), None, create);
            drop(made);
            let cache = TierCache::attach(named.place()).unwrap();
            let mut handle = cache.handle().unwrap();
            for number in 0..64 {
                let report = handle.insert(number.to_string(), "x");
                assert_eq!(report.map(|report| report.evicted), Ok(0), "{number} at {n}");
            }
            drop(handle);
            assert_eq!(cache.check().unwrap().entries, 64);
            if n >= points {
                break;
            }
        }
    }
}

/// The machine stops while somebody works, and starts again: whoever comes first repairs the cache and goes on.
#[test]
fn another_boot() {
    let named = Named::new("boot");
    let cache = small().create(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..40 {
        handle.insert(number.to_string(), vec![number; 300]).unwrap();
    }
    for number in 0..20 {
        assert!(handle.remove(number.to_string()).unwrap());
    }
    assert!(!handle.inner.kept.is_empty(), "blocks that only it knows of");
    let cut_off = || drop(handle.insert("cut off", vec![1; 300]));
    with_fate(Fate::Stop(12), None, cut_off);
    declare_dead(&cache, &handle);
    std::mem::forget(handle);
    drop(cache);
    let file = std::fs::File::options().write(true).open(named.path()).unwrap();
    file.write_all_at(&[7; 16], 7 * 8).unwrap();
    let cache = TierCache::attach(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    assert_eq!(handle.get("cut off").unwrap(), None);
    for number in 20..40 {
        assert_eq!(handle.get(number.to_string()).unwrap(), Some(vec![number; 300]));
    }
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 20);
}

/// Handles and whole attachments go while others work; a cache whose name is gone goes on for those who have it.
#[test]
fn leaving_disturbs_nobody() {
    let named = Named::new("leave");
    let place = named.place();
    let cache = small().no_evict().create(place).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for number in 0..100 {
                    let own = TierCache::attach(place).unwrap();
                    let mut handle = own.handle().unwrap();
                    handle.insert(format!("{thread}:{number}"), "x").unwrap();
                    handle.incr("all", 1, Some(0), None).unwrap();
                }
            });
        }
        let mut handle = cache.handle().unwrap();
        for number in 0..3_000 {
            handle.insert("mine", number.to_string()).unwrap();
            assert_eq!(handle.get("mine").unwrap(), Some(number.to_string().into_bytes()));
        }
    });
    assert_eq!(cache.check().unwrap().entries, 202);
    assert_eq!(cache.reader().get("all").unwrap(), Some(b"200".to_vec()));
    TierCache::unlink(place).unwrap();
    assert!(matches!(error_of(TierCache::attach(place)), SegmentError::NotFound(_)));
    let next = small().create(place).unwrap();
    cache.handle().unwrap().insert("still", "here").unwrap();
    assert_eq!((cache.len(), next.len()), (203, 0));
}

/// The only process is killed in the middle of its work: whatever it had acknowledged is there when somebody comes again.
#[test]
fn everybody_was_killed() {
    let named = Named::new("gone");
    drop(small().no_evict().create(named.place()).unwrap());
    let mut child = named.child("fill", "");
    let mut told: Vec<String> = (0..50).map(|_| child.line(PATIENCE).expect("it works")).collect();
    child.kill().unwrap();
    told.extend(child.rest());
    let cache = TierCache::attach(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in told {
        let length = 3 * number.parse::<usize>().unwrap();
        assert_eq!(handle.get(&number).unwrap(), Some(vec![b'x'; length]), "{number}");
    }
    drop(handle);
    cache.recover().unwrap();
    cache.check().unwrap();
}
