//! Quotas: who is held to how much, who becomes a suspect, who leaves first.

use super::processes::{Named, PATIENCE};
use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use quintet_testkit::Rng;
use quintet_testkit::crash::report;

/// A cache with accounts, of so many tiers and blocks.
pub(super) fn with_quotas(tiers: u32, blocks: u32) -> TierCache {
    tiny_of(small().quotas().tiers(tiers).exact_recency(), blocks)
}

pub(super) fn handle_in<'c>(cache: &'c TierCache, name: &str) -> Handle<'c> {
    let mut handle = cache.handle().unwrap();
    handle.set_namespace(cache.namespace(name).unwrap());
    handle
}

pub(super) fn of(cache: &TierCache, name: &str) -> NamespaceStats {
    cache.namespace_stats().into_iter().find(|space| space.name == name).unwrap()
}

pub(super) fn held(cache: &TierCache, name: &str) -> u64 {
    of(cache, name).holds.unwrap().entries
}

/// The oldest of who has too much become suspects, and leave before anybody else does.
#[test]
fn who_has_too_much_loses_its_oldest_first() {
    for tiers in [1, 3] {
        let cache = with_quotas(tiers, 96);
        cache.set_quota(cache.namespace("loud").unwrap(), Quota::default().entries(10)).unwrap();
        let mut quiet = handle_in(&cache, "quiet");
        let mut loud = handle_in(&cache, "loud");
        (0..30u32).for_each(|number| _ = quiet.insert(number.to_string(), "x").unwrap());
        (0..50u32).for_each(|number| _ = loud.insert(number.to_string(), "x").unwrap());
        let loud_stats = of(&cache, "loud");
        assert_eq!((loud_stats.entries, held(&cache, "loud")), (50, 10), "nobody needs the room");
        assert_eq!(loud_stats.holds.unwrap().suspected, 40);
        assert_eq!((cache.suspects(), held(&cache, "quiet")), (40, 30));
        // The next 56 need 40 blocks more than are free: only suspects go.
        (30..86u32).for_each(|number| _ = quiet.insert(number.to_string(), "x").unwrap());
        assert_eq!((of(&cache, "quiet").entries, of(&cache, "loud").entries), (86, 10));
        assert_eq!(cache.suspects(), 0);
        for number in 0..50u32 {
            let there = loud.contains_key(number.to_string()).unwrap();
            assert_eq!(there, number >= 40, "{number} in {tiers} tiers: the oldest have left");
        }
        // Now it replaces its own, whatever it inserts.
        (100..400u32).for_each(|number| _ = loud.insert(number.to_string(), "x").unwrap());
        assert!(of(&cache, "quiet").entries >= 85, "{:?}", of(&cache, "quiet"));
        drop((quiet, loud));
        cache.check().unwrap();
    }
}

/// Bytes are counted as blocks; a suspect lies in the last tier.
#[test]
fn bytes_and_the_last_tier() {
    let cache = with_quotas(3, 200);
    let space = cache.namespace("loud").unwrap();
    cache.set_quota(space, Quota::default().bytes(10 * 128 + 5)).unwrap();
    assert_eq!(cache.quota(space).bytes, Some(10 * 128), "whole blocks");
    let mut loud = handle_in(&cache, "loud");
    (0..10u32).for_each(|number| _ = loud.insert(number.to_string(), [1; 300]).unwrap());
    let holds = of(&cache, "loud").holds.unwrap();
    assert_eq!((holds.entries, holds.bytes, holds.suspected), (2, 8 * 128, 8));
    let tiers: Vec<u64> = cache.tier_stats().iter().map(|tier| tier.entries).collect();
    assert_eq!(tiers, [2, 0, 8]);
    (0..10u32).for_each(|number| assert!(loud.contains_key(number.to_string()).unwrap()));
    // A new value pays anew; a removed one pays no more.
    loud.insert("0", "short").unwrap();
    assert_eq!(of(&cache, "loud").holds.unwrap().bytes, 9 * 128);
    loud.remove("0").unwrap();
    loud.remove("1").unwrap();
    assert_eq!((of(&cache, "loud").holds.unwrap().bytes, cache.suspects()), (8 * 128, 6));
    drop(loud);
    cache.check().unwrap();
}

/// Who is too fast has its new entries made suspects; the limit is lifted like any other.
#[test]
fn inserts_per_second() {
    let cache = with_quotas(1, 300);
    let space = cache.namespace("loud").unwrap();
    cache.set_quota(space, Quota::default().inserts_per_second(5)).unwrap();
    let mut loud = handle_in(&cache, "loud");
    (0..100u32).for_each(|number| _ = loud.insert(number.to_string(), "x").unwrap());
    let holds = of(&cache, "loud").holds.unwrap();
    // However slow this machine is, not twenty seconds pass.
    assert!((5..100).contains(&holds.entries), "{holds:?}");
    assert_eq!(holds.entries + cache.suspects(), 100);
    cache.set_quota(space, Quota::default()).unwrap();
    assert!(cache.quota(space).is_unlimited());
    (100..200u32).for_each(|number| _ = loud.insert(number.to_string(), "x").unwrap());
    assert_eq!(of(&cache, "loud").holds.unwrap().suspected, holds.suspected);
}

/// Without accounts there are no quotas, and the caller is told; a namespace that is made anew has
/// none.
#[test]
fn quotas_are_a_choice() {
    let cache = small().create_sealed().unwrap();
    let space = cache.namespace("n").unwrap();
    assert_eq!(cache.set_quota(space, Quota::default()), Err(CacheError::NoQuotas));
    assert_eq!(cache.set_process_quota(Quota::default()), Err(CacheError::NoQuotas));
    assert!(cache.quota(space).is_unlimited() && cache.process_quota().is_unlimited());
    assert_eq!((of(&cache, "n").holds, cache.suspects()), (None, 0));
    let cache = small().quotas().create_sealed().unwrap();
    let space = cache.namespace("n").unwrap();
    cache.set_quota(space, Quota::default().entries(0)).unwrap();
    let mut handle = handle_in(&cache, "n");
    handle.insert("k", "v").unwrap();
    assert_eq!((held(&cache, "n"), cache.suspects()), (0, 1), "nothing at all");
    assert!(cache.remove_namespace("n").unwrap());
    assert_eq!(cache.set_quota(space, Quota::default()), Err(CacheError::NoNamespace));
    assert!(cache.quota(cache.namespace("n").unwrap()).is_unlimited());
    let place = Place::Name(format!("quota-sizes-{}", std::process::id()));
    let _made = small().create(&place).unwrap();
    assert!(small().quotas().create_or_attach(&place).is_err());
    assert!(TierCache::attach_read_only(&place).is_ok());
    TierCache::unlink(&place).unwrap();
}

/// The counts are exact while nobody is killed, whatever handles do.
#[test]
fn accounts_are_exact_after_threads() {
    let cache = tiny_of(small().quotas().tiers(3).promote(), 400);
    let names = ["a", "b"];
    for name in names {
        cache.set_quota(cache.namespace(name).unwrap(), Quota::default().entries(90)).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = Rng::with_seed(thread as u64);
                let mut handle = handle_in(cache, names[thread % 2]);
                for _ in 0..8000 {
                    let key = random.u32(..300).to_string();
                    match random.u32(..4) {
                        0 => _ = handle.remove(&key).unwrap(),
                        1 => _ = handle.get(&key).unwrap(),
                        _ => _ = handle.insert(&key, vec![3; random.usize(..300)]).unwrap(),
                    }
                }
            });
        }
    });
    cache.check().unwrap();
    let before: Vec<_> = names.map(|name| of(&cache, name).holds).to_vec();
    let suspects = cache.suspects();
    cache.recover().unwrap();
    let after: Vec<_> = names.map(|name| of(&cache, name).holds).to_vec();
    assert_eq!((before, suspects), (after, cache.suspects()), "counted anew it is the same");
    let all: u64 = names.iter().map(|name| held(&cache, name)).sum();
    assert_eq!(all + cache.suspects(), cache.len());
}

/// Killed at every store of a set that makes suspects: nothing is lost, and counted anew everything
/// is right.
#[test]
fn dead_at_every_store_of_a_set_that_makes_suspects() {
    let mut deaths = 0;
    for death in 0.. {
        let cache = with_quotas(3, 64);
        cache.set_quota(cache.namespace("loud").unwrap(), Quota::default().entries(4)).unwrap();
        let mut loud = handle_in(&cache, "loud");
        (0..12u32).for_each(|number| _ = loud.insert(number.to_string(), "x").unwrap());
        let (_, points) =
            with_fate(Fate::Stop(death), None, || loud.insert("12", [7; 200]).map(|_| ()));
        declare_dead(&cache, &loud);
        std::mem::forget(loud);
        // Whoever serves finds it dead, and counts anew.
        cache.handle().unwrap().serve(Roles::MAINTAIN).unwrap();
        let report = cache.check().unwrap_or_else(|error| panic!("death {death}: {error}"));
        let mut quiet = handle_in(&cache, "loud");
        for number in 0..12u32 {
            assert!(quiet.contains_key(number.to_string()).unwrap(), "{number} at {death}");
        }
        assert!((12..=13).contains(&report.entries));
        assert_eq!(held(&cache, "loud") + cache.suspects(), report.entries, "at {death}");
        assert!((4..=6).contains(&held(&cache, "loud")), "{}", held(&cache, "loud"));
        // Whoever goes on is held to the quota again.
        (20..24u32).for_each(|number| _ = quiet.insert(number.to_string(), "x").unwrap());
        assert_eq!(held(&cache, "loud"), 4, "at {death}");
        drop(quiet);
        cache.check().unwrap();
        if death >= points {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 60, "{deaths}");
}

/// A child's part: inserts as many fresh keys as its parent says, line by line.
pub(super) fn attack(cache: &TierCache) {
    let mut handle = handle_in(cache, "loud");
    report("ready");
    let mut key = 0u64;
    loop {
        let mut line = String::new();
        let Ok(1..) = std::io::stdin().read_line(&mut line) else { return };
        for _ in 0..line.trim().parse::<u64>().unwrap() {
            key += 1;
            handle.insert(key.to_le_bytes(), [9; 64]).unwrap();
        }
        report("done");
    }
}

/// A child's part: inserts until it is killed.
pub(super) fn flood(cache: &TierCache) {
    let mut handle = handle_in(cache, "loud");
    report("ready");
    for key in 0u64.. {
        handle.insert((key % 5000).to_le_bytes(), vec![9; (key % 400) as usize]).unwrap();
    }
}

/// The hit ratio of a quiet namespace, in points, which asks for its keys unevenly and inserts what
/// it misses. Between two of its lookups a neighbour may insert ten fresh keys.
pub(super) fn hit_ratio(cache: &TierCache, keys: f64, mut neighbour: impl FnMut(u64)) -> f64 {
    let mut quiet = handle_in(cache, "quiet");
    let mut random = Rng::with_seed(5);
    let (mut hits, mut asked) = (0, 0);
    for round in 0..120 {
        for _ in 0..100 {
            // The smaller, the more likely.
            let key = (random.f64() * random.f64() * keys) as u32;
            let hit = quiet.get(key.to_le_bytes()).unwrap().is_some();
            if !hit {
                quiet.insert(key.to_le_bytes(), [4; 64]).unwrap();
            }
            if round >= 60 {
                asked += 1;
                hits += hit as u32;
            }
        }
        neighbour(1000);
    }
    100.0 * hits as f64 / asked as f64
}

/// About 2,500 entries.
pub(super) fn arena(tiers: u32, place: &Place) -> TierCache {
    small().capacity(512 << 10).namespaces(8).tiers(tiers).quotas().create(place).unwrap()
}

/// One process inserts ten times as fast as another one asks. With a quota the quiet one's hit
/// ratio falls by two points at most; without, by far more.
#[test]
fn a_loud_process_does_not_hurt_a_quiet_namespace() {
    for tiers in [1, 3] {
        for by_process in [false, true] {
            let mut figures = Vec::new();
            for held in [None, Some(false), Some(true)] {
                let named = Named::new(&format!("loud-{tiers}-{by_process}-{held:?}"));
                let cache = arena(tiers, named.place());
                // A namespace may have fewer entries than it asks for; what holds each process must
                // leave the quiet one its keys.
                let (keys, most) = if by_process { (700.0, 800) } else { (5000.0, 50) };
                let quota = Quota::default().entries(most);
                match held {
                    Some(true) if by_process => cache.set_process_quota(quota).unwrap(),
                    Some(true) => {
                        cache.set_quota(cache.namespace("loud").unwrap(), quota).unwrap();
                    }
                    _ => {}
                }
                if held.is_none() {
                    figures.push(hit_ratio(&cache, keys, |_| {}));
                    continue;
                }
                let mut child = named.child("attack", "");
                assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
                figures.push(hit_ratio(&cache, keys, |count| {
                    child.tell(&count.to_string());
                    assert_eq!(child.line(PATIENCE).as_deref(), Some("done"));
                }));
                child.kill().unwrap();
                cache.recover().unwrap();
                cache.check().unwrap();
            }
            let [alone, without, with] = figures[..] else { unreachable!() };
            println!(
                "{tiers} tiers, by process {by_process}: alone {alone:.1}, attacked without quotas {without:.1}, with {with:.1}"
            );
            assert!(alone - with <= 2.0, "{figures:?}");
            assert!(alone - without > 5.0, "an attack hurts: {figures:?}");
        }
    }
}

/// Killed in mid-flood, again and again, the accounts are right after each recovery, and an entry
/// pays for the process that lives.
#[test]
fn floods_are_killed() {
    let named = Named::new("flood");
    let cache = arena(3, named.place());
    cache.set_quota(cache.namespace("loud").unwrap(), Quota::default().entries(200)).unwrap();
    cache.set_process_quota(Quota::default().bytes(100 << 10)).unwrap();
    let mut random = Rng::with_seed(1);
    for _ in 0..12 {
        let mut child = named.child("flood", "");
        assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
        std::thread::sleep(std::time::Duration::from_micros(random.u64(1000..20_000)));
        child.kill().unwrap();
        cache.recover().unwrap();
        let checked = cache.check().unwrap();
        assert_eq!(held(&cache, "loud") + cache.suspects(), checked.entries);
        assert!(held(&cache, "loud") <= 202, "{}", held(&cache, "loud"));
    }
}
