//! Every operation, killed before each of its stores; then somebody recovers, and everything holds.
//!
//! The dead one is a handle of a process that the test declares dead: its stores have no effect
//! from the n-th on.

use super::world::{advance, declare_dead, forget_recoverers, small, tiny_of};
use crate::tier_cache::cache::flight::Start;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, Point, by_words, with_fate};
use std::collections::BTreeMap;
use std::time::Duration;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(cache: &TierCache) -> Contents {
    cache.scan().map(|entry| entry.unwrap()).map(|entry| (entry.key, entry.value)).collect()
}

fn long(byte: u8) -> Vec<u8> {
    vec![byte; 400]
}

/// One block, several blocks, an expired one.
pub(super) fn set_up(builder: CacheBuilder, blocks: u32) -> TierCache {
    let cache = tiny_of(builder, blocks);
    let mut handle = cache.handle().unwrap();
    handle.insert("short", "1").unwrap();
    handle.insert("long", long(1)).unwrap();
    handle.insert_for("mortal", "gone", Some(Duration::from_secs(1))).unwrap();
    advance(&cache, 2_000);
    drop(handle);
    cache
}

/// The same in three tiers: "long" in the second, "short" in the last.
pub(super) fn set_up_tiers(builder: CacheBuilder, blocks: u32) -> TierCache {
    let cache = set_up(builder.tiers(3), blocks);
    let mut handle = cache.handle().unwrap();
    let view = cache.view();
    for key in ["long", "short", "short"] {
        let (_, version) = handle.get_versioned(key).unwrap().unwrap();
        let link = crate::tier_cache::word::Link::from_word(version);
        let tier = view.tier_of(link).unwrap();
        handle.demote_entry(link, tier);
        assert_eq!(view.tier_of(link), Some(tier + 1));
    }
    drop(handle);
    cache
}

pub(super) type Operation = (&'static str, fn(&mut Handle<'_>));

pub(super) const OPERATIONS: &[Operation] = &[
    ("set new", |handle| drop(handle.insert("new", "n"))),
    ("set new long", |handle| drop(handle.insert("new", long(2)))),
    ("set over short", |handle| drop(handle.insert("short", long(3)))),
    ("set over long", |handle| drop(handle.insert("long", "4"))),
    ("set over outlived", |handle| drop(handle.insert("mortal", long(4)))),
    ("add", |handle| drop(handle.insert_new("new", long(5), None))),
    ("add in vain", |handle| drop(handle.insert_new("long", long(5), None))),
    ("replace", |handle| drop(handle.replace("long", long(6), None))),
    ("remove short", |handle| drop(handle.remove("short"))),
    ("remove long", |handle| drop(handle.remove("long"))),
    ("remove outlived", |handle| drop(handle.remove("mortal"))),
    ("incr", |handle| drop(handle.incr("short", 1, None, None))),
    ("touch", |handle| drop(handle.touch("long", Some(Duration::from_secs(9))))),
    ("get", |handle| drop(handle.get("long"))),
    ("compute", |handle| drop(handle.get_or_compute("new", None, || long(7)))),
    ("maintain", |handle| drop(handle.maintain())),
    ("demote", |handle| drop(handle.demote_oldest(0, 1))),
    ("demote from both", |handle| {
        drop(handle.demote_oldest(1, 2));
        drop(handle.demote_oldest(0, 2));
    }),
    ("pop", |handle| drop(handle.pop("long"))),
    ("flight", |handle| {
        if let Ok(Start::Flight(held)) = handle.start(b"new") {
            drop(handle.end_flight(held, b"new"));
        }
    }),
    ("flight without a seat", |handle| {
        if let Ok(Start::Flight(held)) = handle.start(b"new") {
            handle.view.void_flight(held, 3);
        }
    }),
    ("lease", |handle| drop(handle.lease("long"))),
    ("time", |handle| handle.view.mark_moment(1 << 40)),
    ("namespace", |handle| drop(handle.cache().namespace("another"))),
    ("evict", |handle| drop(handle.evict_oldest(0))),
    ("flush", |handle| drop(handle.cache().clear())),
];

/// Runs `operation` in a child that dies at its n-th store, for all n. Returns the number of
/// deaths.
fn at_every_store(
    name: &str,
    operation: &dyn Fn(&mut Handle<'_>),
    make: &dyn Fn() -> TierCache,
    fits: &dyn Fn(&Contents, &Contents, &Contents) -> bool,
) -> usize {
    let (before, after) = {
        let cache = make();
        let before = contents(&cache);
        operation(&mut cache.handle().unwrap());
        (before, contents(&cache))
    };
    for n in 0.. {
        let cache = make();
        let mut dead = cache.handle().unwrap();
        let ((), points) = with_fate(Fate::Stop(n), None, || operation(&mut dead));
        declare_dead(&cache, &dead);
        std::mem::forget(dead);
        // A survivor reads before anybody has recovered anything.
        let mut survivor = cache.handle().unwrap();
        for key in ["short", "long", "new"] {
            let seen = survivor.get(key).unwrap();
            let known = [before.get(key.as_bytes()), after.get(key.as_bytes())];
            let legal = known.contains(&seen.as_ref()) || fits(&before, &after, &contents(&cache));
            assert!(legal, "{name} at {n}: {key} is {seen:?}");
        }
        drop(survivor);
        cache.recover().unwrap();
        let report = cache.check();
        report.unwrap_or_else(|error| panic!("{error}: {name} at {n}"));
        let now = contents(&cache);
        assert!(fits(&before, &after, &now), "{name} at {n}: {now:?} from {before:?} to {after:?}");
        if n >= points {
            return n;
        }
    }
    unreachable!()
}

/// Without eviction an operation happened or did not.
fn killed_everywhere(policy: Policy) {
    let mut deaths = 0;
    for (name, operation) in OPERATIONS {
        let builder = || small().policy(policy);
        let builder = || if *name == "lease" { builder().leases() } else { builder() };
        let make = || set_up(builder(), 64);
        deaths += at_every_store(name, operation, &make, &|before, after, now| {
            now == before || now == after
        });
    }
    println!("{deaths} deaths");
    assert!(deaths > 700, "{deaths}");
}

#[test]
fn killed_at_every_store() {
    killed_everywhere(Policy::Lru);
}

#[test]
fn killed_at_every_store_with_s3fifo() {
    killed_everywhere(Policy::S3Fifo);
}

#[test]
fn killed_at_every_store_with_sieve() {
    killed_everywhere(Policy::Sieve);
}

/// The same in three tiers, and where a use promotes: every store of a move is a place to die.
#[test]
fn killed_at_every_store_in_three_tiers() {
    let mut deaths = 0;
    for (name, operation) in OPERATIONS {
        for promotes in [false, true] {
            let make = || {
                let builder = if promotes { small().promote() } else { small() };
                let leases = *name == "lease";
                set_up_tiers(if leases { builder.leases() } else { builder }, 64)
            };
            deaths += at_every_store(name, operation, &make, &|before, after, now| {
                now == before || now == after
            });
        }
    }
    println!("{deaths} deaths");
    assert!(deaths > 1_800, "{deaths}");
}

/// A value of 25 words in three blocks: each word of it is a place to die, with and without sums,
/// in one tier and in three.
#[test]
fn killed_at_every_word_of_a_payload() {
    const WRITES: &[Operation] = &[
        ("set", |handle| drop(handle.insert("new", [9; 200]))),
        ("set over short", |handle| drop(handle.insert("short", [8; 200]))),
        ("set over long", |handle| drop(handle.insert("long", [7; 200]))),
        ("compute", |handle| drop(handle.get_or_compute("new", None, || vec![6; 200]))),
    ];
    for (name, operation) in WRITES {
        for (sums, tiers) in [(false, 1), (true, 1), (false, 3), (true, 3)] {
            let builder = || if sums { small().checksums() } else { small() };
            let make = || match tiers {
                1 => set_up(builder(), 64),
                _ => set_up_tiers(builder(), 64),
            };
            let by_word = |handle: &mut Handle<'_>| by_words(|| operation(handle));
            let points = |operation: &dyn Fn(&mut Handle<'_>)| {
                let cache = make();
                let mut handle = cache.handle().unwrap();
                with_fate(Fate::Count, None, || operation(&mut handle)).1
            };
            // By pieces there is a point for the key, and one for the part of the value in each
            // block: 22 fewer, but that each cache hashes by a seed of its own, on which some other
            // points depend.
            let more = points(&by_word).saturating_sub(points(operation));
            assert!(more > 10, "{name}: {more}");
            at_every_store(name, &by_word, &make, &|before, after, now| {
                now == before || now == after
            });
        }
    }
}

/// In a full cache: what is not the operation's own key is there unchanged, or was evicted.
fn killed_while_evicting(builder: CacheBuilder) {
    let make = || {
        let cache = set_up(builder.clone(), 64);
        let mut handle = cache.handle().unwrap();
        for number in 0..100u32 {
            handle.insert(format!("{number}"), "x").unwrap();
            // Some are used, so that policies that count have something to move or to clear.
            handle.get(format!("{}", number / 2)).unwrap();
            handle.get(format!("{}", number / 2)).unwrap();
        }
        handle.insert("short", "1").unwrap();
        handle.insert("long", long(1)).unwrap();
        drop(handle);
        cache
    };
    let mut deaths = 0;
    for (name, operation) in OPERATIONS {
        if *name == "flush" {
            continue;
        }
        deaths += at_every_store(name, operation, &make, &|before, after, now| {
            now.iter()
                .all(|(key, value)| before.get(key) == Some(value) || after.get(key) == Some(value))
        });
    }
    println!("{deaths} deaths");
    assert!(deaths > 700, "{deaths}");
}

#[test]
fn killed_at_every_store_of_an_evicting_operation() {
    killed_while_evicting(small());
}

#[test]
fn killed_at_every_store_of_an_evicting_operation_with_s3fifo() {
    killed_while_evicting(small().policy(Policy::S3Fifo));
    killed_while_evicting(small().policy(Policy::S3Fifo).tiers(3));
}

#[test]
fn killed_at_every_store_of_an_evicting_operation_with_sieve() {
    killed_while_evicting(small().policy(Policy::Sieve));
    killed_while_evicting(small().policy(Policy::Sieve).tiers(3));
}

/// Without eviction nothing may be missing, and after the recovery every block can be used again.
#[test]
fn no_block_leaks() {
    for (name, operation) in OPERATIONS {
        for n in (0..400).step_by(7) {
            let make = if n % 2 == 0 { set_up } else { set_up_tiers };
            let cache = make(small().no_evict(), 64);
            let mut dead = cache.handle().unwrap();
            let ((), points) = with_fate(Fate::Stop(n), None, || operation(&mut dead));
            declare_dead(&cache, &dead);
            std::mem::forget(dead);
            // Nobody recovers on purpose: the set that runs out of blocks does.
            let mut handle = cache.handle().unwrap();
            let mut stored = 0;
            let ended = loop {
                match handle.insert(format!("filler{stored}"), "x") {
                    Ok(_) => stored += 1,
                    Err(error) => break error,
                }
            };
            drop(handle);
            let report = cache.recover().and_then(|_| cache.check().map_err(CacheError::Sink));
            let report = report.unwrap_or_else(|error| panic!("{error}: {name} at {n}"));
            assert_eq!(
                report.free,
                0,
                "{name} at {n}: {ended} after {stored}, {:?}",
                cache.stats()
            );
            if n >= points {
                break;
            }
        }
    }
}

/// The recoverer dies as well, at each of its stores.
#[test]
fn recoverers_die_too() {
    let mut runs = 0;
    for (name, operation) in OPERATIONS {
        for n in (0..).step_by(3) {
            let mut last = false;
            for m in (n % 5..).step_by(5) {
                let make = if m % 2 == 0 { set_up } else { set_up_tiers };
                let cache = make(small(), 64);
                let before = contents(&cache);
                let mut dead = cache.handle().unwrap();
                let ((), points) = with_fate(Fate::Stop(n), None, || operation(&mut dead));
                declare_dead(&cache, &dead);
                std::mem::forget(dead);
                let ((), more) = with_fate(Fate::Stop(m), None, || drop(cache.recover()));
                forget_recoverers(&cache);
                cache.recover().unwrap();
                cache.check().unwrap_or_else(|error| panic!("{error}: {name} at {n}, {m}"));
                let now = contents(&cache);
                let kept =
                    before.iter().filter(|(key, value)| now.get(*key) == Some(value)).count();
                assert!(
                    kept + 1 >= before.len() || *name == "flush",
                    "{name} at {n}, {m}: {now:?}"
                );
                runs += 1;
                last = n >= points;
                if m >= more {
                    break;
                }
            }
            if last {
                break;
            }
        }
    }
    println!("{runs} pairs of deaths");
    assert!(runs > 1_000);
}

/// A reader is in the middle of a copy when the entry is removed, the remover stops at its n-th
/// store, and somebody else uses whatever is free: the copy is the old value, or none.
#[test]
fn a_copy_is_never_of_two_values() {
    let mut reused = 0;
    for n in 0.. {
        let cache = set_up(small(), 64);
        let (mut reader, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
        for number in 0.. {
            if cache.stats().used_blocks == 64 {
                break;
            }
            other.insert(format!("filler{number}"), "x").unwrap();
        }
        // One block short of a value as long, whose further blocks will be those of the removed
        // one.
        assert!(other.remove("short").unwrap());
        let mut remover = Some(cache.handle().unwrap());
        let mut points = 0;
        let mut meanwhile = |point| {
            let Some(mut dead) = remover.take_if(|_| point == Point::ReadValue) else { return };
            points = with_fate(Fate::Stop(n), None, || drop(dead.remove("long"))).1;
            other.set_no_evict(true);
            // Every block that is free is used, in further blocks too.
            reused += other.insert("other", long(9)).is_ok() as usize;
            declare_dead(&cache, &dead);
            std::mem::forget(dead);
        };
        let (seen, _) =
            with_fate(Fate::Each, Some(&mut meanwhile), || reader.get_versioned("long").unwrap());
        if let Some((value, _)) = seen {
            assert_eq!(value, long(1), "torn at {n}");
        }
        drop((reader, other));
        cache.recover().unwrap();
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        if n >= points {
            break;
        }
    }
    assert!(reused > 2, "{reused}");
}

/// A living one is slow, before each of its stores: nobody sees its key before that is linked, and
/// no sweep takes away what it has prepared.
#[test]
fn the_slow_lose_nothing() {
    let cache = set_up(small(), 64);
    let (mut slow, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    other.set_timeout(Duration::ZERO);
    let (mut linked, mut looks) = (false, 0);
    let mut meanwhile = |point| {
        let seen = other.get("new");
        let absent = matches!(seen, Ok(None) | Err(CacheError::Busy));
        assert!(absent || linked && seen == Ok(Some(long(2))), "{seen:?} at {point:?}");
        assert_eq!(cache.recover().unwrap().orphans, 0, "at {point:?}");
        linked |= matches!(point, Point::Hole | Point::CellStore);
        looks += 1;
    };
    with_fate(Fate::Each, Some(&mut meanwhile), || slow.insert("new", long(2)).unwrap());
    assert!(linked && looks > 50, "{looks}");
    assert_eq!(other.get("new").unwrap(), Some(long(2)));
    drop((slow, other));
    assert_eq!(cache.check().unwrap().entries, 4);
}

/// A handle dies with free blocks that only it knew of. Nobody joins, nobody maintains: the set
/// that finds nothing free looks after the dead before it evicts, and before it fails.
#[test]
fn what_a_dead_handle_kept_is_found_by_whoever_needs_it() {
    let sizes = Sizes { seats: 2, max_value: 5_400, ..set_up(small(), 64).sizes };
    for entire in [false, true] {
        let cache = TierCache::create_sealed(sizes).unwrap();
        let (mut dead, mut survivor) = (cache.handle().unwrap(), cache.handle().unwrap());
        survivor.insert("k", "v").unwrap();
        for number in 0..16 {
            dead.insert(format!("{number}"), "x").unwrap();
        }
        for number in 0..16 {
            assert!(dead.remove(format!("{number}")).unwrap());
        }
        assert_eq!(dead.inner.kept.len(), 8);
        declare_dead(&cache, &dead);
        std::mem::forget(dead);
        if entire {
            // Nearly all blocks: it cannot do without the dead one's.
            survivor.insert("large", vec![1; 5_400]).unwrap();
        } else {
            for number in 1..64 {
                survivor.insert(format!("{number}"), "x").unwrap();
            }
            assert_eq!((cache.len(), cache.stats().evicted), (64, 0), "all blocks are used first");
        }
        drop(survivor);
        cache.check().unwrap();
    }
}

/// Whoever sweeps dies in the middle of it, and owns no seat whose recovery would tell: the next
/// one that needs room sweeps again.
#[test]
fn sweepers_die_too() {
    for m in 0.. {
        let mut removal = 0;
        for n in 0.. {
            let cache = tiny_of(small().no_evict(), 64);
            let (mut dead, mut survivor) = (cache.handle().unwrap(), cache.handle().unwrap());
            dead.insert("long", long(1)).unwrap();
            removal = with_fate(Fate::Stop(m), None, || drop(dead.remove("long"))).1;
            declare_dead(&cache, &dead);
            let (_, points) = with_fate(Fate::Stop(n), None, || drop(cache.recover()));
            forget_recoverers(&cache);
            std::mem::forget(dead);
            let removed = !survivor.contains_key("long").unwrap();
            let mut stored = 0;
            while survivor.insert(format!("{stored}"), "x").is_ok() {
                stored += 1;
            }
            assert!(!removed || stored == 64, "{stored} at {m}, {n}");
            if n >= points {
                break;
            }
        }
        if m >= removal {
            break;
        }
    }
}

/// The same of a living one, which is busy elsewhere.
#[test]
fn what_a_living_handle_keeps_does_not_make_a_set_fail() {
    let sizes = Sizes { seats: 2, max_value: 5_400, ..set_up(small(), 64).sizes };
    let cache = TierCache::create_sealed(sizes).unwrap();
    let (mut one, mut other) = (cache.handle().unwrap(), cache.handle().unwrap());
    (0..16).for_each(|number| assert!(one.insert_new(format!("{number}"), "x", None).unwrap()));
    (0..16).for_each(|number| assert!(one.remove(format!("{number}")).unwrap()));
    assert_eq!(one.inner.kept.len(), 8);
    other.insert("large", vec![1; 5_400]).unwrap();
    one.insert("small", "x").unwrap();
    drop((one, other));
    cache.check().unwrap();
}
