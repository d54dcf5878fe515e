//! Single flight: one computes, whoever dies or gives up hands over, and nobody waits for itself.

use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(50);

/// Computations inside a computation, of so many keys that some of them would share any table of a
/// fixed size.
#[test]
fn nested_flights_wait_for_nobody() {
    let cache = TierCache::builder().capacity(8 << 20).handles(4).create_sealed().unwrap();
    let (mut outer, mut inner) = (cache.handle().unwrap(), cache.handle().unwrap());
    inner.set_patience(SHORT);
    let value = outer.get_or_compute("outer", None, || {
        for number in 0..20_000u32 {
            let key = number.to_string();
            inner.get_or_compute(&key, None, || key.clone().into_bytes()).unwrap();
        }
        b"done".to_vec()
    });
    assert_eq!(value.unwrap(), b"done");
    drop((outer, inner));
    cache.check().unwrap();
}

/// Whoever asks for the very key it is computing is told so at once.
#[test]
fn a_computation_that_asks_for_itself_is_told_so() {
    let cache = small().create_sealed().unwrap();
    let (mut outer, mut inner) = (cache.handle().unwrap(), cache.handle().unwrap());
    let begun = Instant::now();
    let value = outer.get_or_compute("k", None, || {
        let asked = inner.get_or_compute("k", None, || unreachable!());
        assert_eq!(asked, Err(CacheError::Nested));
        assert!(matches!(inner.begin("k"), Ok(Begun::Busy)));
        b"v".to_vec()
    });
    assert_eq!(value.unwrap(), b"v");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// Too long for the cache, or no room in it: the caller has its value all the same.
#[test]
fn what_cannot_be_stored_is_returned() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let long = vec![1; cache.max_value() + 1];
    assert_eq!(handle.get_or_compute("long", None, || long.clone()).unwrap(), long);
    assert_eq!(handle.get("long").unwrap(), None);
    let full = tiny_of(small().no_evict(), 64);
    let mut handle = full.handle().unwrap();
    let mut number = 0;
    while handle.insert(format!("{number}"), "x").is_ok() {
        number += 1;
    }
    assert_eq!(handle.get_or_compute("k", None, || b"v".to_vec()).unwrap(), b"v");
    let failed = handle.get_or_try_compute("k", None, || Err::<Vec<u8>, _>("why"));
    assert_eq!(failed.unwrap(), Err("why"));
    drop(handle);
    full.check().unwrap();
}

#[test]
fn a_flight_in_two_halves() {
    let cache = small().create_sealed().unwrap();
    let (mut one, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    let Ok(Begun::Flight(flight)) = one.begin("k") else { panic!("it is absent") };
    assert_eq!(flight.key(), b"k");
    assert!(matches!(other.begin("k"), Ok(Begun::Busy)));
    assert_eq!(other.get("k").unwrap(), None, "a flight is no value");
    assert_eq!(cache.scan().count(), 0, "nor an entry that anybody sees");
    assert!(matches!(other.begin("j"), Ok(Begun::Flight(_))), "and dropped at once");
    flight.complete("v", Some(Duration::from_secs(60))).unwrap();
    assert!(matches!(other.begin("k"), Ok(Begun::Value(value)) if value == b"v"));
    assert!(one.ttl("k").unwrap().unwrap().is_some());
    assert_eq!(cache.stats().computed, 1);
    drop((one, other));
    assert_eq!(cache.check().unwrap().entries, 1, "the flights are gone");
}

/// Dropped, given up by a panic, forgotten by a handle that went: the next one computes.
#[test]
fn a_flight_is_handed_over() {
    let cache = small().create_sealed().unwrap();
    let (mut one, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    let Ok(Begun::Flight(flight)) = one.begin("k") else { panic!("it is absent") };
    drop(flight);
    let panics = std::panic::AssertUnwindSafe(|| one.get_or_compute("k", None, || panic!("no")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(other.get_or_compute("k", None, || b"v".to_vec()).unwrap(), b"v");
    let Ok(Begun::Flight(flight)) = one.begin("j") else { panic!("it is absent") };
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| other.get_or_compute("j", None, || b"next".to_vec()));
        std::thread::sleep(SHORT);
        drop(flight);
        assert_eq!(waits.join().unwrap().unwrap(), b"next");
    });
    drop((one, other));
    assert_eq!(cache.check().unwrap().entries, 2);
}

/// Its seat was lost, as by a death: whoever comes next takes over.
#[test]
fn the_flight_of_a_dead_handle_is_over() {
    let cache = small().create_sealed().unwrap();
    let (mut dead, mut next) = (cache.handle().unwrap(), cache.handle().unwrap());
    let value = dead.get_or_compute("k", None, || {
        std::thread::scope(|scope| {
            let waits = || next.get_or_compute_timeout("k", None, SHORT, Vec::new);
            assert_eq!(scope.spawn(waits).join().unwrap(), Err(CacheError::Busy));
        });
        b"late".to_vec()
    });
    assert_eq!(value.unwrap(), b"late");
    dead.remove("k").unwrap();
    let held = dead.get_or_compute("k", None, || {
        let seat = cache.view().memory.seat(0).unwrap();
        let owner = seat.owner();
        seat.owner_word().store(7, crate::sync::Ordering::Release);
        let taken = next.get_or_compute("k", None, || b"taken over".to_vec());
        seat.owner_word().store(owner.0, crate::sync::Ordering::Release);
        assert_eq!(taken.unwrap(), b"taken over");
        b"late".to_vec()
    });
    assert_eq!(held.unwrap(), b"late");
    declare_dead(&cache, &dead);
    std::mem::forget(dead);
    drop(next);
    cache.recover().unwrap();
    cache.check().unwrap();
}

/// A cache under pressure puts out entries, not computations.
#[test]
fn a_flight_is_not_evicted() {
    let cache = tiny_of(small(), 64);
    let (mut one, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    let Ok(Begun::Flight(flight)) = one.begin("k") else { panic!("it is absent") };
    for number in 0..1000 {
        other.insert(format!("{number}"), "x").unwrap();
    }
    assert!(matches!(other.begin("k"), Ok(Begun::Busy)));
    assert!(other.evict_oldest(10).unwrap().len() == 10);
    let all = other.evict_unused(Duration::ZERO, usize::MAX).unwrap();
    assert!(all.iter().all(|entry| entry.key != b"k"));
    assert!(matches!(other.begin("k"), Ok(Begun::Busy)));
    flight.complete("v", None).unwrap();
    assert_eq!(other.get("k").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Every handle is taken: a flight ends without one.
#[test]
fn a_flight_ends_without_a_seat() {
    let cache = small().handles(2).create_sealed().unwrap();
    let (mut one, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    let Ok(Begun::Flight(flight)) = one.begin("k") else { panic!("it is absent") };
    drop(flight);
    assert_eq!(other.get_or_compute("k", None, || b"v".to_vec()).unwrap(), b"v");
    let Ok(Begun::Flight(flight)) = one.begin("j") else { panic!("it is absent") };
    assert_eq!(flight.complete("v", None), Err(CacheError::NoSeat));
    assert!(matches!(other.begin("j"), Ok(Begun::Flight(_))));
}
