//! Creating, attaching, leaving, coming back.

use super::super::layout::SEAT_BYTES;
use super::processes::{Named, PATIENCE};
use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use std::os::unix::fs::FileExt;
use std::time::Duration;

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
    let other = small().max_value(900).capacity(1 << 20).any_size();
    let other = other.create_or_attach(place).unwrap();
    assert_eq!(other.sizes, cache.sizes, "those of the creator");
    assert_eq!(other.max_value(), 100);
}

/// Sizes and rights that were asked for and differ are an error that names them; those that were
/// not asked for are no matter.
#[test]
fn a_cache_of_other_sizes_is_refused_by_who_asked_for_some() {
    let named = Named::new("differs");
    let place = named.place();
    let made = TierCache::builder().capacity(1 << 20).max_value(100).create(place).unwrap();
    for (asked, field) in [
        (TierCache::builder().capacity(2 << 20), "capacity"),
        (TierCache::builder().max_value(101), "longest value"),
        (TierCache::builder().block(256), "bytes of a block"),
        (TierCache::builder().handles(1), "handles"),
        (TierCache::builder().processes(1), "processes"),
        (TierCache::builder().no_evict(), "no eviction"),
        (TierCache::builder().exact_recency(), "exact recency"),
        (TierCache::builder().leases(), "leases"),
        (TierCache::builder().access(Access { mode: 0o666, group: None }), "mode"),
    ] {
        match error_of(asked.create_or_attach(place)) {
            SegmentError::Mismatch { field: named, .. } => assert_eq!(named, field),
            other => panic!("{other}"),
        }
        assert_eq!(asked.any_size().create_or_attach(place).unwrap().sizes, made.sizes);
    }
    let mode = SegmentError::Mismatch { field: "mode", expected: 0o666, found: 0o600 };
    assert!(mode.to_string().contains("0600, not 0666"), "{mode}");
    assert_eq!(TierCache::builder().create_or_attach(place).unwrap().sizes, made.sizes);
    let same = TierCache::builder().capacity(1 << 20).max_value(100);
    assert_eq!(same.create_or_attach(place).unwrap().sizes, made.sizes);
}

/// A header whose sizes do not add up to the bytes of its file is refused, whichever of them is
/// wrong.
#[test]
fn sizes_must_add_up() {
    for (field, value) in
        [(0, 3), (1, 100), (2, 7), (3, 32), (9, 200), (10, 2), (11, 5), (12, 1), (13, 1)]
    {
        let named = Named::new("sum");
        drop(small().create(named.place()).unwrap());
        let file = std::fs::File::options().write(true).open(named.path()).unwrap();
        file.write_all_at(&u64::to_ne_bytes(value), (16 + field) * 8).unwrap();
        let error = error_of(TierCache::attach(named.place()));
        assert!(matches!(error, SegmentError::Mismatch { .. }), "field {field}: {error}");
    }
}

/// A capacity is never exceeded, and hardly missed; one beyond all bounds is refused, not cut.
#[test]
fn a_capacity_is_kept_to_the_byte() {
    for capacity in [256 << 10, 1 << 20, (4 << 20) + 12_345, 64 << 20] {
        let sizes = TierCache::builder().capacity(capacity).sizes().unwrap();
        assert!(sizes.bytes() <= capacity && sizes.bytes() + 512 > capacity, "{capacity}");
        let share = (sizes.seats as usize * SEAT_BYTES + sizes.processes as usize * 64) * 32;
        assert!(share <= capacity || sizes.seats == 4, "{} handles", sizes.seats);
    }
    assert_eq!(TierCache::builder().capacity(1 << 30).sizes().unwrap().seats, 4096);
    let most = TierCache::builder().capacity(170 << 30).sizes().unwrap();
    assert!(most.bytes() <= 170 << 30);
    let error = TierCache::builder().capacity(200 << 30).sizes().unwrap_err();
    assert!(error.to_string().contains("larger blocks"), "{error}");
    assert!(TierCache::builder().capacity(200 << 30).block(256).sizes().is_ok());
    assert!(TierCache::builder().for_entries(1 << 40, 16, 64).sizes().is_err());
    let roomy = TierCache::builder().for_entries(1_000_000, 16, 64).sizes().unwrap();
    assert!(roomy.blocks >= 1_000_000, "{}", roomy.blocks);
}

/// More processes than slots: whoever finds none cannot write, and is told why; everybody reads.
#[test]
fn readers_need_no_seat() {
    let named = Named::new("readers");
    let cache = small().handles(2).processes(1).create(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", "v").unwrap();
    let mut others = Vec::new();
    for number in 0..200 {
        let other = TierCache::attach(named.place()).unwrap();
        assert_eq!(other.reader().get("k").unwrap(), Some(b"v".to_vec()));
        match other.handle() {
            Ok(handle) => std::mem::forget(handle),
            Err(CacheError::Unjoined(why)) => assert!(why.contains("process slot"), "{why}"),
            Err(error) => assert_eq!(error, CacheError::NoSeat, "{number}"),
        }
        others.push(other);
    }
    assert_eq!(others[199].reader().get("k").unwrap(), Some(b"v".to_vec()));
    assert!(matches!(others[199].handle(), Err(CacheError::Unjoined(_))));
}

/// A machine that was off: time has gone on.
#[test]
fn time_goes_on_while_the_machine_is_off() {
    let named = Named::new("off");
    let cache = small().create(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert_for("k", "v", Some(Duration::from_millis(300))).unwrap();
    drop(handle);
    drop(cache);
    restart(&named);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(TierCache::attach(named.place()).unwrap().reader().get("k").unwrap(), None);
}

/// As if the machine had restarted.
fn restart(named: &Named) {
    let file = std::fs::File::options().write(true).open(named.path()).unwrap();
    file.write_all_at(&[7; 16], 7 * 8).unwrap();
}

/// After a restart all workers come at once: one repairs, the others wait, and all of them work.
#[test]
fn workers_that_start_together_after_a_reboot_all_get_in() {
    let named = Named::new("reboot");
    let cache = TierCache::builder().capacity(16 << 20).create(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..40_000u32 {
        handle.insert(number.to_string(), [7; 100]).unwrap();
    }
    drop(handle);
    drop(cache);
    for _ in 0..3 {
        let sweeps = || TierCache::attach_read_only(named.place()).unwrap().stats().sweeps;
        let before = sweeps();
        restart(&named);
        let mut workers = [(); 8].map(|()| named.child("rush", ""));
        let ready = workers.iter().all(|worker| worker.line(PATIENCE).as_deref() == Some("ready"));
        assert!(ready);
        workers.iter_mut().for_each(|worker| worker.tell("go"));
        for worker in &mut workers {
            assert_eq!(worker.line(PATIENCE).as_deref(), Some("worked"));
            assert!(worker.wait(PATIENCE).unwrap().is_some());
        }
        assert_eq!(sweeps(), before + 1, "one of them repaired, once");
    }
    let cache = TierCache::attach(named.place()).unwrap();
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// A creator takes its time: whoever comes meanwhile waits for it, however long it takes.
#[test]
fn whoever_comes_while_a_large_cache_is_made_waits_for_it() {
    use crate::region::shm::hold_creation;
    let named = Named::new("slow");
    let path = named.path();
    let making = hold_creation(path.as_ref());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| small().create_or_attach(named.place()).map(|_| ()));
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(!waits.is_finished(), "it waits");
        assert!(matches!(error_of(TierCache::attach(named.place())), SegmentError::NotReady(_)));
        drop(making);
        waits.join().unwrap().unwrap();
    });
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

/// The machine stops while somebody works, and starts again: whoever comes first repairs the cache
/// and goes on.
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
    restart(&named);
    let cache = TierCache::attach(named.place()).unwrap();
    let mut handle = cache.handle().unwrap();
    assert_eq!(handle.get("cut off").unwrap(), None);
    for number in 20..40 {
        assert_eq!(handle.get(number.to_string()).unwrap(), Some(vec![number; 300]));
    }
    drop(handle);
    assert_eq!(cache.check().unwrap().entries, 20);
}

/// Handles and whole attachments go while others work; a cache whose name is gone goes on for those
/// who have it.
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

/// The only process is killed in the middle of its work: whatever it had acknowledged is there when
/// somebody comes again.
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

/// Blocks that were not chosen: by the entries a cache is told to be for, or by the longest value.
#[test]
fn blocks_follow_from_the_entries() {
    let block = |builder: CacheBuilder| builder.sizes().unwrap().block_words * 8;
    let told = |value| block(TierCache::builder().for_entries(10_000, 16, value).max_value(value));
    assert_eq!([64, 1024, 4000, 1 << 16].map(told), [128, 256, 4096, 4096]);
    let chosen = TierCache::builder().block(512).for_entries(10_000, 16, 64);
    assert_eq!(block(chosen), 512);
    let roomy = || TierCache::builder().capacity(1 << 30);
    assert_eq!(block(roomy()), 128);
    let longest = |mib: usize| block(roomy().max_value(mib << 20));
    assert_eq!([1, 4, 8, 32, 64].map(longest), [128, 512, 1024, 4096, 4096]);
    // As many as were asked for fit, whichever blocks were taken.
    for value in [0, 64, 65, 1000, 5000, 100_000] {
        let sizes = TierCache::builder().for_entries(3000, 16, value).max_value(value).sizes();
        let sizes = sizes.unwrap();
        assert!(sizes.blocks as usize >= 3000 * sizes.blocks_for(16, value), "{value}");
    }
}
