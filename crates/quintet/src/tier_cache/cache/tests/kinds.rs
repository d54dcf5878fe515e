//! Every kind of store to shared memory is a place where somebody dies in a test, in one tier and
//! in three.

use super::crashes::{OPERATIONS, Operation, set_up, set_up_tiers};
use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, Point, with_fate};
use crate::tier_cache::word::Owner;
use std::collections::HashSet;

type Kinds = HashSet<Point>;

/// The kinds of stores that `body` makes.
fn record(kinds: &mut Kinds, body: impl FnOnce()) {
    let mut note = |point: Point| {
        if !point.is_load() {
            kinds.insert(point);
        }
    };
    with_fate(Fate::Each, Some(&mut note), body);
}

/// Lets an operation die before each of its stores. Notes what it stores when nobody kills it, and
/// what is stored by who recovers it.
fn die(
    kinds: &mut Kinds,
    make: &dyn Fn() -> TierCache,
    operation: fn(&mut Handle<'_>),
    holds: &dyn Fn(&TierCache, usize),
) {
    for n in 0.. {
        let cache = make();
        let mut dead = cache.handle().unwrap();
        let ((), points) = with_fate(Fate::Stop(n), None, || operation(&mut dead));
        declare_dead(&cache, &dead);
        std::mem::forget(dead);
        record(kinds, || drop(cache.recover()));
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        holds(&cache, n);
        if n >= points {
            break;
        }
    }
    let cache = make();
    let mut handle = cache.handle().unwrap();
    record(kinds, || operation(&mut handle));
}

/// Many blocks, few cells: for whoever comes somebody has to leave.
fn crowded(tiers: u32) -> TierCache {
    let sizes = small().tiers(tiers).sizes().unwrap();
    let sizes = Sizes { blocks: 1_200, buckets: 3, max_value: 200, ..sizes };
    let cache = TierCache::create_sealed(sizes).unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..600u32 {
        handle.insert(number.to_string(), "x").unwrap();
    }
    drop(handle);
    cache
}

/// Full, under a policy that remembers who leaves.
fn remembering(tiers: u32) -> TierCache {
    let cache = tiny_of(small().tiers(tiers).policy(Policy::S3Fifo), 64);
    let mut handle = cache.handle().unwrap();
    for number in 0..100u32 {
        handle.insert(number.to_string(), "x").unwrap();
    }
    drop(handle);
    cache
}

const COMES: Operation = ("comes", |handle| drop(handle.insert("one more", "x")));
const USES_AND_COMES: Operation = ("uses and comes", |handle| {
    drop(handle.get("99"));
    drop(handle.insert("one more", "x"));
});

/// A handle dies while it goes: what it kept to itself is found, and its seat is free again.
fn dies_while_it_goes(kinds: &mut Kinds, make: &dyn Fn() -> TierCache) {
    let start = |cache: &TierCache| {
        let mut handle = cache.handle().unwrap();
        (0..20).for_each(|number| drop(handle.insert(number.to_string(), "x")));
        (0..20).for_each(|number| drop(handle.remove(number.to_string())));
        // SAFETY: the cache outlives what the caller does with its handle.
        unsafe { std::mem::transmute::<Handle<'_>, Handle<'static>>(handle) }
    };
    for n in 0.. {
        let cache = make();
        let handle = start(&cache);
        let number = handle.inner.number;
        let ((), points) = with_fate(Fate::Stop(n), None, || drop(handle));
        give_up(&cache, number);
        record(kinds, || drop(cache.recover()));
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        let mut handle = cache.handle().unwrap();
        assert_eq!(handle.inner.number, number, "its seat is the first that is free");
        handle.insert("next", "x").unwrap();
        drop(handle);
        if n >= points {
            break;
        }
    }
    let cache = make();
    let handle = start(&cache);
    record(kinds, || drop(handle));
}

/// Whoever takes a seat dies over it: the seat is free again, or nobody's yet.
fn dies_while_it_comes(kinds: &mut Kinds, make: &dyn Fn() -> TierCache) {
    for n in 0.. {
        let cache = make();
        let come = || std::mem::forget(cache.handle());
        let ((), points) = with_fate(Fate::Stop(n), None, come);
        give_up(&cache, 0);
        record(kinds, || drop(cache.recover()));
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        assert_eq!(cache.handle().unwrap().inner.number, 0);
        if n >= points {
            break;
        }
    }
    let cache = make();
    record(kinds, || drop(cache.handle()));
}

/// Whoever has this seat counts as dead.
fn give_up(cache: &TierCache, seat: u32) {
    let seat = cache.view().memory.seat(seat).unwrap();
    if seat.owner() != Owner::NOBODY {
        seat.owner_word().store(Owner::new(0, 1 << 47).0, crate::sync::Ordering::Release);
    }
}

/// Stores that need somebody else at the same moment, another process, a store behind the cache, or
/// a map without a cache above it, and where they are killed.
const ELSEWHERE: [(Point, &str); 7] = [
    (Point::Delivered, "tier_cache::tests::situations"),
    (Point::Relock, "tier_cache::tests::situations"),
    (Point::Reopen, "tier_cache::tests::situations"),
    (Point::Maintain, "the_maintainer_is_elected_and_replaced"),
    (Point::Version, "killed_at_every_store_with_a_store"),
    (Point::Watermark, "killed_at_every_store_with_a_store"),
    (Point::BucketLease, "killed_at_every_store_with_a_store"),
];

#[test]
fn every_kind_of_store_is_a_place_to_die() {
    for (tiers, make) in [(1, set_up as fn(_, _) -> _), (3, set_up_tiers)] {
        let mut kinds = Kinds::new();
        for (_, operation) in OPERATIONS {
            die(&mut kinds, &|| make(small().leases().quotas(), 64), *operation, &|_, _| {});
        }
        dies_while_it_comes(&mut kinds, &|| make(small(), 64));
        dies_while_it_goes(&mut kinds, &|| make(small(), 64));
        let before = crowded(tiers).len();
        die(&mut kinds, &|| crowded(tiers), COMES.1, &|cache, n| {
            // One comes, one leaves, each whole or not at all.
            assert!(cache.len().abs_diff(before) <= 1, "{} of {before} at {n}", cache.len());
        });
        die(&mut kinds, &|| remembering(tiers), USES_AND_COMES.1, &|_, _| {});
        let elsewhere: Kinds = ELSEWHERE.iter().map(|(point, _)| *point).collect();
        let both: Vec<_> = elsewhere.intersection(&kinds).collect();
        assert!(both.is_empty(), "{tiers} tiers: {both:?} are killed here too");
        let all = kinds.len() + elsewhere.len();
        assert_eq!(all, Point::STORES, "{tiers} tiers: only {kinds:?}");
    }
}
