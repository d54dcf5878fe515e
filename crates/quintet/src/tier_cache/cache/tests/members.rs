//! What each process did, and what it does for all: told by real processes.

use super::processes::{Named, PATIENCE};
use super::world::small;
use crate::sync::AtomicBool;
use crate::tier_cache::cache::*;
use quintet_testkit::crash::{Child, report};
use std::time::{Duration, Instant};

fn of(cache: &TierCache, child: &Child) -> Option<Attached> {
    cache.processes().into_iter().find(|process| process.pid == child.id())
}

/// A child's part: a handle that goes, one that stays.
pub(super) fn work(cache: &TierCache) {
    let mut gone = cache.handle().unwrap();
    (0..10u32).for_each(|number| _ = gone.insert(number.to_string(), "x").unwrap());
    gone.insert("long", [7; 300]).unwrap();
    drop(gone);
    let mut stays = cache.handle().unwrap();
    (0..4u32).for_each(|number| assert!(stays.get(number.to_string()).unwrap().is_some()));
    (0..3u32).for_each(|number| assert!(stays.get(format!("no {number}")).unwrap().is_none()));
    assert!(stays.remove("1").unwrap());
    stays.demote_oldest(0, 2).unwrap();
    stays.evict_oldest(5).unwrap();
    report("done");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn each_process_is_told_what_it_did() {
    let named = Named::new("members");
    let cache = small().tiers(3).create(named.place()).unwrap();
    let mut mine = cache.handle().unwrap();
    mine.insert("mine", "x").unwrap();
    let mut child = named.child("count", "");
    assert_eq!(child.line(PATIENCE).as_deref(), Some("done"));
    let it = of(&cache, &child).unwrap();
    assert_eq!((it.handles, it.hits, it.misses), (1, 4, 3), "{it:?}");
    assert_eq!((it.inserts, it.removes, it.evicted), (11, 1, 5), "{it:?}");
    assert_eq!(it.demoted, 2, "{it:?}");
    // Ten entries of a block; 300 bytes and their key need four blocks.
    assert_eq!(it.stored_bytes, (10 + 4) * 128, "{it:?}");
    assert_eq!((it.delivered, it.roles, it.holds), (0, Roles::NONE, None));
    let me = std::process::id();
    let me = cache.processes().into_iter().find(|process| process.pid == me).unwrap();
    assert_eq!((me.handles, me.inserts, me.hits), (1, 1, 0));
    // Killed, it is gone; who takes its slot next begins anew.
    child.kill().unwrap();
    assert_eq!(of(&cache, &child), None);
    let next = named.child("count", "");
    assert_eq!(next.line(PATIENCE).as_deref(), Some("done"));
    let it = of(&cache, &next).unwrap();
    assert_eq!((it.hits, it.inserts, it.evicted), (4, 11, 5), "{it:?}");
}

/// Handles that come and go, of threads too, all count for their process.
#[test]
fn handles_that_are_gone_still_count() {
    let cache = small().create_sealed().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..50u32 {
                    let mut handle = cache.handle().unwrap();
                    handle.insert(format!("{thread} {round}"), "x").unwrap();
                }
            });
        }
    });
    (0..30u32).for_each(|number| _ = cache.insert(number.to_string(), "x").unwrap());
    assert_eq!(cache.processes()[0].inserts, 230);
    assert_eq!(cache.stats().sets, 230);
}

/// A child's part: it serves until its parent says a line.
pub(super) fn serve(cache: &TierCache, roles: &str) {
    let roles = match roles {
        "deliver" => Roles::DELIVER,
        "others" => Roles::MAINTAIN | Roles::DEMOTE,
        _ => Roles::ALL,
    };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| cache.run_service(roles, Duration::from_millis(1), &stop).unwrap());
        report("serves");
        let _ = std::io::stdin().read_line(&mut String::new());
        stop.store(true, crate::sync::Ordering::Relaxed);
    });
    report("ended");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Each role has one process in office; who is killed or ends is replaced, and its work goes on.
#[test]
fn offices_pass_on_when_their_holder_is_killed_or_ends() {
    let named = Named::new("roles");
    let cache = small().tiers(3).create(named.place()).unwrap();
    let serving = |roles: &str| {
        let child = named.child("serve", roles);
        assert_eq!(child.line(PATIENCE).as_deref(), Some("serves"));
        child
    };
    let roles = |child: &Child| of(&cache, child).map_or(Roles::NONE, |it| it.roles);
    let mut first = serving("deliver");
    wait_for("the first is elected", || roles(&first) == Roles::DELIVER);
    let mut all = serving("all");
    wait_for("the rest is free", || roles(&all) == Roles::MAINTAIN | Roles::DEMOTE);
    let mut last = serving("others");
    first.kill().unwrap();
    wait_for("who lives delivers", || roles(&all) == Roles::ALL);
    assert_eq!(roles(&last), Roles::NONE);
    // The others do their work.
    let mut handle = cache.handle().unwrap();
    for number in 0..3000u32 {
        handle.insert_for(number.to_string(), "x", Some(Duration::from_millis(1))).unwrap();
    }
    wait_for("expired ones are taken away", || cache.is_empty());
    // One that ends by itself makes way at once.
    all.tell("");
    assert_eq!(all.line(PATIENCE).as_deref(), Some("ended"));
    wait_for("who is left is elected", || roles(&last) == Roles::MAINTAIN | Roles::DEMOTE);
    assert_eq!(roles(&all), Roles::NONE);
    last.kill().unwrap();
    assert!(cache.processes().iter().all(|process| process.roles.is_empty()));
}

/// Nobody holds an office that it did not offer for, and a round does the work of its offices only.
#[test]
fn a_round_does_the_work_of_its_offices() {
    let cache = small().tiers(3).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    (0..5000u32).for_each(|number| _ = handle.insert(number.to_string(), "x").unwrap());
    let moved = |cache: &TierCache| cache.tier_stats().iter().map(|tier| tier.demoted).sum::<u64>();
    let (before, evicted) = (moved(&cache), cache.stats().evicted);
    cache.set_cooling(Some(Duration::ZERO)).unwrap();
    let run = |roles: Roles, done: &dyn Fn() -> bool| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| cache.run_service(roles, Duration::from_millis(1), &stop).unwrap());
            wait_for("it is elected", || cache.processes()[0].roles == roles);
            wait_for("it works", done);
            stop.store(true, crate::sync::Ordering::Relaxed);
        });
        assert_eq!(cache.processes()[0].roles, Roles::NONE);
    };
    run(Roles::DELIVER, &|| cache.stats().evicted > evicted);
    assert_eq!(moved(&cache), before, "nobody demotes");
    let evicted = cache.stats().evicted;
    run(Roles::DEMOTE, &|| moved(&cache) > before);
    assert_eq!(cache.stats().evicted, evicted, "nobody delivers");
}
