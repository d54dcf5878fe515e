//! Quotas attacked: by limits that come late or are zero, by namespaces that go and come again, by
//! clocks, by the dead, by many at once, under every policy and over a store.

use super::processes::{Named, PATIENCE};
use super::quotas::{arena, handle_in, held, hit_ratio, of, with_quotas};
use super::world::{small, tiny_of};
use crate::sync::Ordering;
use crate::tier_cache::cache::clock::monotonic_ms;
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};
use quintet_testkit::Rng;
use quintet_testkit::crash::Child;

const POLICIES: [Policy; 3] = [Policy::Lru, Policy::S3Fifo, Policy::Sieve];

fn fill(handle: &mut Handle<'_>, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| _ = handle.insert(number.to_string(), "x").unwrap());
}

fn limit(cache: &TierCache, name: &str, quota: Quota) {
    cache.set_quota(cache.namespace(name).unwrap(), quota).unwrap();
}

/// Who has too much when its quota comes is held to it a little later: each of its inserts makes
/// two suspects.
#[test]
fn a_quota_that_comes_late() {
    for tiers in [1, 3] {
        let cache = with_quotas(tiers, 300);
        let mut loud = handle_in(&cache, "loud");
        fill(&mut loud, 0..101);
        limit(&cache, "loud", Quota::default().entries(10));
        assert_eq!(
            (held(&cache, "loud"), cache.suspects()),
            (101, 0),
            "it only looks at what is inserted"
        );
        fill(&mut loud, 101..192);
        assert_eq!(held(&cache, "loud"), 10, "one in, two out");
        // Now and then a window is full, and an entry leaves for that.
        let suspects = of(&cache, "loud").entries - 10;
        assert_eq!((cache.suspects(), suspects > 170), (suspects, true));
        // One that rises pardons nobody who is a suspect, and suspects nobody any more.
        limit(&cache, "loud", Quota::default().entries(1000));
        fill(&mut loud, 192..200);
        assert_eq!(held(&cache, "loud") + cache.suspects(), of(&cache, "loud").entries);
        assert_eq!(held(&cache, "loud"), 18);
        drop(loud);
        cache.check().unwrap();
    }
}

/// Nothing is allowed to somebody, in each of three ways: it works, is found, and takes nothing
/// from anybody else.
#[test]
fn quotas_of_zero() {
    let none = Quota::default();
    for quota in [none.entries(0), none.bytes(0), none.bytes(127), none.inserts_per_second(0)] {
        for (tiers, policy) in
            [(1, Policy::Lru), (3, Policy::Lru), (1, Policy::S3Fifo), (3, Policy::Sieve)]
        {
            let cache = tiny_of(small().quotas().tiers(tiers).policy(policy), 300);
            let mut quiet = handle_in(&cache, "quiet");
            fill(&mut quiet, 0..100);
            limit(&cache, "loud", quota);
            let mut loud = handle_in(&cache, "loud");
            for number in 0..1000u32 {
                loud.insert(number.to_string(), "y").unwrap();
                assert!(loud.contains_key(number.to_string()).unwrap(), "{number} {quota:?}");
            }
            assert_eq!(
                (of(&cache, "quiet").entries, held(&cache, "loud")),
                (100, 0),
                "{quota:?} {tiers} {policy:?}"
            );
            // Nobody else is there: suspects take the place of suspects.
            assert!(of(&cache, "loud").entries >= 150);
            cache.set_process_quota(quota).unwrap();
            fill(&mut quiet, 0..100);
            assert_eq!(held(&cache, "quiet"), 0, "by process too");
            drop((quiet, loud));
            cache.check().unwrap();
        }
    }
}

/// A namespace that is removed and made anew, or cleared, has nothing: what it wrote before neither
/// counts any more nor is taken off what it has now.
#[test]
fn who_comes_again_pays_for_its_own() {
    for tiers in [1, 3] {
        for removes in [true, false] {
            let cache = with_quotas(tiers, 600);
            let quota = Quota::default().entries(50);
            limit(&cache, "loud", quota);
            fill(&mut handle_in(&cache, "loud"), 0..100);
            assert_eq!(held(&cache, "loud"), 50);
            if removes {
                assert!(cache.remove_namespace("loud").unwrap());
                limit(&cache, "loud", quota);
            } else {
                cache.clear_namespace(cache.namespace("loud").unwrap()).unwrap();
            }
            assert_eq!(held(&cache, "loud"), 0, "removed {removes}");
            let mut loud = handle_in(&cache, "loud");
            fill(&mut loud, 200..280);
            assert_eq!(held(&cache, "loud"), 50);
            // Counted anew while what was written before still lies there, and once it is gone.
            cache.view().recount_accounts();
            assert_eq!(held(&cache, "loud"), 50, "removed {removes}");
            while loud.maintain().unwrap().expired > 0 {}
            assert_eq!(held(&cache, "loud"), 50, "what went was written before");
            fill(&mut loud, 300..400);
            assert_eq!(held(&cache, "loud"), 50);
            drop(loud);
            cache.recover().unwrap();
            assert_eq!(held(&cache, "loud"), 50);
            cache.check().unwrap();
        }
    }
}

/// A namespace that comes and goes all the time while others insert: nobody has more than it may.
#[test]
fn namespaces_come_and_go_under_load() {
    let cache = tiny_of(small().quotas().tiers(3), 400);
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = Rng::with_seed(thread);
                for _ in 0..60 {
                    let name = ["a", "b"][random.usize(..2)];
                    let space = cache.namespace(name).unwrap();
                    // It may be gone again.
                    let _ = cache.set_quota(space, Quota::default().entries(20));
                    let mut handle = cache.handle().unwrap();
                    handle.set_namespace(space);
                    for _ in 0..100 {
                        match handle
                            .insert(random.u32(..200).to_string(), vec![1; random.usize(..200)])
                        {
                            Ok(_) | Err(CacheError::NoNamespace) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    if random.bool() {
                        cache.remove_namespace(name).unwrap();
                    }
                }
            });
        }
    });
    cache.recover().unwrap();
    cache.check().unwrap();
    for name in ["a", "b"] {
        limit(&cache, name, Quota::default().entries(20));
        fill(&mut handle_in(&cache, name), 0..100);
        assert_eq!(held(&cache, name), 20, "{name}");
    }
}

/// The rate word of a namespace, as somebody left it whose clock said so.
fn set_rate(cache: &TierCache, name: &str, ahead: i64, inserts: u32) {
    let now = (crate::region::shm::Segment::wall_ms() / 1000) as i64;
    let second = (now + ahead) as u32 as u64;
    let rate = second << 32 | u64::from(inserts);
    let space = cache.namespace(name).unwrap();
    cache.view().accounts[space.0.number() as usize * 8 + 5].store(rate, Ordering::Relaxed);
}

/// A clock that was set, forwards or backwards, ends the second it was in; nobody is too fast for
/// long.
#[test]
fn clocks_that_jump() {
    for ahead in [-3600, -3, 3600, i64::from(i32::MAX), i64::from(i32::MIN)] {
        let cache = with_quotas(1, 300);
        limit(&cache, "loud", Quota::default().inserts_per_second(1000));
        let mut loud = handle_in(&cache, "loud");
        set_rate(&cache, "loud", ahead, 1_000_000);
        fill(&mut loud, 0..100);
        assert_eq!((held(&cache, "loud"), cache.suspects()), (100, 0), "{ahead}");
        // And in its own second it counts on.
        limit(&cache, "loud", Quota::default().inserts_per_second(3));
        set_rate(&cache, "loud", 1, 1_000_000);
        fill(&mut loud, 100..200);
        assert_eq!((held(&cache, "loud"), cache.suspects()), (100, 100), "{ahead}");
    }
}

/// Handles that were idle have an old second in mind: that does not make the count begin anew.
#[test]
fn idle_handles_do_not_begin_the_second_anew() {
    let cache = with_quotas(1, 600);
    limit(&cache, "loud", Quota::default().inserts_per_second(10));
    let mut handles: Vec<_> = (0..4).map(|_| handle_in(&cache, "loud")).collect();
    for turn in 0..400u32 {
        let handle = &mut handles[turn as usize % 4];
        // As if it had last looked some seconds ago, each of them at another time.
        handle.watch.idle(10_000 * u64::from(1 + turn % 4));
        handle.insert(turn.to_string(), "x").unwrap();
    }
    // However slow this machine is, not twenty seconds pass.
    assert!(held(&cache, "loud") < 200, "{}", held(&cache, "loud"));
}

/// As many as there can be, each with a quota, at once: each is held to its own.
#[test]
fn sixty_four_namespaces_at_once() {
    for (tiers, policy) in [(1, Policy::Lru), (3, Policy::S3Fifo), (3, Policy::Sieve)] {
        let builder = small().capacity(1 << 20).namespaces(64).tiers(tiers).policy(policy);
        let cache = builder.quotas().create_sealed().unwrap();
        let name = |number: usize| format!("space {number}");
        (0..64).for_each(|number| limit(&cache, &name(number), Quota::default().entries(20)));
        assert!(cache.namespace("one more").is_err());
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let cache = &cache;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(thread as u64);
                    let spaces: Vec<_> =
                        (0..64).map(|number| cache.namespace(&name(number)).unwrap()).collect();
                    let mut handle = cache.handle().unwrap();
                    for _ in 0..12_000 {
                        handle.set_namespace(spaces[random.usize(..64)]);
                        let key = random.u32(..200).to_string();
                        match random.u32(..8) {
                            0 => _ = handle.remove(&key).unwrap(),
                            _ => _ = handle.insert(&key, vec![3; random.usize(..150)]).unwrap(),
                        }
                    }
                });
            }
        });
        let before: Vec<_> = (0..64).map(|number| held(&cache, &name(number))).collect();
        assert!(before.iter().all(|held| *held <= 24), "{before:?}");
        assert!(before.iter().sum::<u64>() > 64 * 15, "{before:?}");
        let suspects = cache.suspects();
        cache.recover().unwrap();
        let after: Vec<_> = (0..64).map(|number| held(&cache, &name(number))).collect();
        assert_eq!((before, suspects), (after, cache.suspects()), "counted anew it is the same");
        cache.check().unwrap();
    }
}

fn holds(cache: &TierCache, child: &Child) -> u64 {
    let processes = cache.processes();
    let it = processes.iter().find(|process| process.pid == child.id());
    it.and_then(|process| process.holds).map_or(0, |holds| holds.entries)
}

/// Who dies with more than its quota leaves nothing to pay to whoever takes its slot.
#[test]
fn the_dead_pay_no_more() {
    let named = Named::new("dead-quota");
    let cache = arena(3, named.place());
    let tell = |child: &mut Child, count: u32| {
        child.tell(&count.to_string());
        assert_eq!(child.line(PATIENCE).as_deref(), Some("done"));
    };
    for _ in 0..3 {
        cache.set_process_quota(Quota::default()).unwrap();
        let mut first = named.child("attack", "");
        assert_eq!(first.line(PATIENCE).as_deref(), Some("ready"));
        tell(&mut first, 500);
        assert_eq!(holds(&cache, &first), 500);
        cache.set_process_quota(Quota::default().entries(100)).unwrap();
        first.kill().unwrap();
        cache.recover().unwrap();
        let mut next = named.child("attack", "");
        assert_eq!(next.line(PATIENCE).as_deref(), Some("ready"));
        tell(&mut next, 40);
        assert_eq!(holds(&cache, &next), 40, "and none of them a suspect");
        // It replaces what the dead one had: that goes, and is not taken off its own.
        tell(&mut next, 500);
        assert_eq!(holds(&cache, &next), 100);
        next.kill().unwrap();
        cache.recover().unwrap();
        cache.check().unwrap();
        cache.clear().unwrap();
    }
}

/// A neighbour of ten times the rate, by each kind of limit and under each policy: with quotas the
/// quiet namespace loses two points at most.
#[test]
fn a_loud_neighbour_under_every_policy() {
    let none = Quota::default();
    let quotas = [none.entries(50), none.bytes(50 * 128), none.inserts_per_second(50)];
    for policy in POLICIES {
        for (tiers, quota) in [(1, quotas[0]), (3, quotas[1]), (3, quotas[2])] {
            let figures = [None, Some(none), Some(quota)].map(|quota| {
                let named = Named::new(&format!("loud-{policy}-{tiers}-{}", quota.is_some()));
                let builder = small().capacity(512 << 10).namespaces(8).tiers(tiers);
                let cache = builder.policy(policy).quotas().create(named.place()).unwrap();
                let Some(quota) = quota else { return hit_ratio(&cache, 5000.0, |_| {}) };
                limit(&cache, "loud", quota);
                let mut child = named.child("attack", "");
                assert_eq!(child.line(PATIENCE).as_deref(), Some("ready"));
                hit_ratio(&cache, 5000.0, |count| {
                    child.tell(&count.to_string());
                    assert_eq!(child.line(PATIENCE).as_deref(), Some("done"));
                })
            });
            let [alone, without, with] = figures;
            println!(
                "{policy}, {tiers} tiers, {quota:?}: alone {alone:.1}, attacked without quotas {without:.1}, with {with:.1}"
            );
            assert!(alone - with <= 2.0, "{policy} {quota:?} {figures:?}");
            assert!(alone - without > 5.0, "an attack hurts: {policy} {figures:?}");
        }
    }
}

/// Over a store suspects leave first, and are found there.
#[cfg(feature = "lmdb")]
#[test]
fn suspects_leave_to_the_store() {
    for (policy, tiers) in POLICIES.into_iter().flat_map(|policy| [(policy, 1), (policy, 3)]) {
        let dir = super::stored::Dir::new(&format!("quota-{policy}-{tiers}"));
        let cache = dir.builder().quotas().policy(policy).tiers(tiers).create_sealed().unwrap();
        let mut quiet = handle_in(&cache, "quiet");
        fill(&mut quiet, 0..200);
        limit(&cache, "loud", Quota::default().entries(30));
        let mut loud = handle_in(&cache, "loud");
        fill(&mut loud, 0..3000);
        assert!(held(&cache, "loud") <= 30, "{}", held(&cache, "loud"));
        for number in 0..3000u32 {
            assert!(loud.get(number.to_string()).unwrap().is_some(), "{number} {policy} {tiers}");
        }
        assert!(
            held(&cache, "loud") <= 30,
            "what comes back from the store is charged too: {}",
            held(&cache, "loud")
        );
        let before = cache.stats().store_hits;
        (0..200u32).for_each(|number| assert!(quiet.get(number.to_string()).unwrap().is_some()));
        let from_store = cache.stats().store_hits - before;
        assert!(from_store <= 4, "{from_store} of the quiet one had to leave: {policy} {tiers}");
        drop((quiet, loud));
        // Its writer may still be at work.
        let since = std::time::Instant::now();
        while let Err(error) = cache.check() {
            assert!(since.elapsed() < PATIENCE, "{error}: {policy} {tiers}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// What somebody has is what a count of all entries says, and is told before and after it.
pub(super) fn is_exact(cache: &TierCache, when: &str) {
    let told = || {
        let spaces: Vec<_> = cache.namespace_stats().iter().map(|space| space.holds).collect();
        (spaces, cache.processes().iter().map(|process| process.holds).collect::<Vec<_>>())
    };
    let (before, suspects) = (told(), cache.suspects());
    cache.recover().unwrap();
    assert_eq!((before, suspects), (told(), cache.suspects()), "{when}");
}

/// Whatever comes into memory for somebody is in his account: also what a lookup finds in the store
/// and keeps, the mark of a removal, and the mark that a key is nowhere.
#[cfg(feature = "lmdb")]
#[test]
fn everything_over_a_store_is_charged() {
    for tiers in [1, 3] {
        let dir = super::stored::Dir::new(&format!("charged-{tiers}"));
        let builder = dir.builder().keep_found().keep_absent();
        let cache = builder.quotas().tiers(tiers).create_sealed().unwrap();
        let mut loud = handle_in(&cache, "loud");
        fill(&mut loud, 0..100);
        is_exact(&cache, "inserted");
        (0..30u32).for_each(|number| assert!(loud.remove(number.to_string()).unwrap()));
        is_exact(&cache, "removed");
        super::stored::empty(&mut loud);
        assert_eq!(held(&cache, "loud"), 0, "everything has left");
        (30..80u32).for_each(|number| _ = loud.get(number.to_string()).unwrap().unwrap());
        is_exact(&cache, "found in the store, and kept");
        assert_eq!(held(&cache, "loud"), 50);
        (200..220u32).for_each(|number| assert!(loud.get(number.to_string()).unwrap().is_none()));
        is_exact(&cache, "nowhere");
        assert_eq!(held(&cache, "loud"), 70);
        let later = Some(std::time::Duration::from_secs(100));
        (30..40u32).for_each(|number| assert!(loud.touch(number.to_string(), later).unwrap()));
        assert_eq!(loud.pop("41").unwrap().as_deref(), Some(&b"x"[..]));
        is_exact(&cache, "touched and taken");
        // Who asks too much is held to his quota like who inserts too much.
        limit(&cache, "loud", Quota::default().entries(20));
        super::stored::empty(&mut loud);
        (42..100u32).for_each(|number| _ = loud.get(number.to_string()).unwrap().unwrap());
        assert_eq!((held(&cache, "loud"), cache.suspects()), (20, 38), "{tiers}");
        is_exact(&cache, "held to a quota");
    }
}

/// A namespace that is cleared in the midst of an insert has nothing of it, but for the few stores
/// that book it; whoever comes next counts anew, once.
#[test]
fn cleared_in_the_midst_of_an_insert() {
    let (mut points, mut wrong) = (0, 0);
    for at in 0.. {
        let cache = with_quotas(3, 200);
        let mut loud = handle_in(&cache, "loud");
        // Not time to count yet.
        loud.audited = monotonic_ms();
        fill(&mut loud, 0..10);
        let space = cache.namespace("loud").unwrap();
        let mut step = 0;
        let mut clear = |_| {
            if step == at {
                cache.clear_namespace(space).unwrap();
            }
            step += 1;
        };
        with_fate(Fate::Each, Some(&mut clear), || loud.insert("new", [1; 300]).unwrap());
        if step <= at {
            break;
        }
        points += 1;
        let there = loud.contains_key("new").unwrap() as u64;
        wrong += (held(&cache, "loud") != there) as u32;
        handle_in(&cache, "loud").insert("next", "x").unwrap();
        assert_eq!(cache.view().doubts(), 0, "cleared at {at}");
        is_exact(&cache, &format!("cleared at {at}"));
    }
    assert!(points > 30 && wrong <= 4, "{wrong} of {points}");
}

/// Counting anew while others work does no harm: what is known then is not further from the truth
/// than a few entries that somebody had in hand.
#[test]
fn counting_anew_beside_others() {
    let builder = small().capacity(4 << 20).quotas().tiers(3);
    let cache = builder.create_sealed().unwrap();
    limit(&cache, "a", Quota::default().entries(3000));
    limit(&cache, "b", Quota::default());
    let done = crate::sync::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = |name: &'static str| {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = Rng::with_seed(name.len() as u64);
                let mut handle = handle_in(cache, name);
                for _ in 0..60_000 {
                    let key = random.u32(..9000).to_string();
                    match random.u32(..4) {
                        0 => _ = handle.remove(&key).unwrap(),
                        _ => _ = handle.insert(&key, vec![3; random.usize(..300)]).unwrap(),
                    }
                }
            })
        };
        let threads = [work("a"), work("a"), work("b")];
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cache.view().recount_accounts();
            }
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let told = || [held(&cache, "a"), held(&cache, "b"), cache.suspects()];
    let before = told();
    cache.recover().unwrap();
    let off = told().iter().zip(before).map(|(truth, told)| truth.abs_diff(told)).max();
    println!("{before:?} told, {:?} there", told());
    assert!(off.unwrap() <= 8, "{before:?} told, {:?} there", told());
}
