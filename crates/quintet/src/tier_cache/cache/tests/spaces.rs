//! Namespaces: found by their whole name, freed when removed, counted each.

use super::world::{small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, Point, with_fate};

/// Two names that begin with the same 48, or 96, or 200 bytes are two namespaces.
#[test]
fn long_names_are_told_apart() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for length in [1, 47, 48, 60, 95, 96, 97, 200, 3000] {
        let same = "x".repeat(length);
        let (one, other) = (format!("{same}1"), format!("{same}2"));
        let spaces = [cache.namespace(&one).unwrap(), cache.namespace(&other).unwrap()];
        assert_ne!(spaces[0], spaces[1]);
        for (space, name) in spaces.iter().zip([&one, &other]) {
            assert_eq!(cache.find_namespace(name), Some(*space));
            handle.set_namespace(*space);
            handle.insert("k", name).unwrap();
        }
        cache.clear_namespace(spaces[0]).unwrap();
        assert_eq!(handle.get_str("k").unwrap().as_deref(), Some(&other[..]), "{length}");
        handle.set_namespace(spaces[0]);
        assert_eq!(handle.get("k").unwrap(), None);
        let shown = |name: &str| cache.namespaces().iter().any(|(known, _)| known == name);
        assert_eq!((shown(&one), shown(&other)), (one.len() <= 96, other.len() <= 96));
    }
    assert_eq!(cache.find_namespace("nobody made it"), None);
}

/// A removed namespace makes room; its entries are gone, and whoever still holds it reaches nobody
/// else's.
#[test]
fn removed_namespaces_are_freed() {
    let cache = small().namespaces(3).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    let mut stale = cache.handle().unwrap();
    for round in 0..50 {
        let names = ["a", "b", "c"].map(|name| format!("{name}{round}"));
        for name in &names {
            let space = cache.namespace(name).unwrap();
            handle.set_namespace(space);
            handle.insert("k", name).unwrap();
            stale.set_namespace(space);
        }
        assert_eq!(cache.namespace("one more"), Err(CacheError::TooManyNamespaces));
        for name in &names {
            assert!(cache.remove_namespace(name).unwrap());
            assert!(!cache.remove_namespace(name).unwrap());
        }
        assert_eq!(stale.get("k").unwrap(), None);
        assert_eq!(stale.insert("k", "lost"), Err(CacheError::NoNamespace));
        let again = ["x", "y", "z"].map(|name| cache.namespace(name).unwrap());
        for space in again {
            handle.set_namespace(space);
            assert_eq!(handle.get("k").unwrap(), None);
            handle.insert("k", "new").unwrap();
        }
        assert_eq!(stale.get("k").unwrap(), None, "the number is another's now");
        assert_eq!(stale.insert("k", "lost"), Err(CacheError::NoNamespace));
        assert_eq!(stale.remove("k"), Ok(false));
        for name in ["x", "y", "z"] {
            assert!(cache.remove_namespace(name).unwrap());
        }
    }
    assert_eq!(cache.namespaces().len(), 1);
    drop((handle, stale));
    cache.check().unwrap();
}

/// A namespace is removed, and its number given to another, while somebody scans: what is shown
/// belongs to the first.
#[test]
fn a_scan_shows_nobody_the_entries_of_another() {
    let cache = small().namespaces(1).create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.set_namespace(cache.namespace("old").unwrap());
    handle.insert("k", "secret").unwrap();
    let mut shown = 0;
    for n in 0.. {
        let mut new = None;
        let mut next = |_: Point| {
            cache.remove_namespace("old").unwrap();
            new = Some(cache.namespace("new").unwrap());
        };
        let scan = || cache.scan().collect::<Result<Vec<_>, _>>().unwrap();
        let (entries, points) = with_fate(Fate::Inject(n), Some(&mut next), scan);
        shown += entries.len();
        assert!(entries.iter().all(|entry| Some(entry.namespace) != new), "{entries:?} at {n}");
        if n >= points {
            break;
        }
        cache.remove_namespace("new").unwrap();
        handle.set_namespace(cache.namespace("old").unwrap());
        handle.insert("k", "secret").unwrap();
    }
    assert!(shown > 0);
}

#[test]
fn there_are_65_535_namespaces() {
    let builder = TierCache::builder().capacity(32 << 20).handles(2).namespaces(65_535);
    let cache = builder.create_sealed().unwrap();
    for number in 0..65_535u32 {
        cache.namespace(&format!("tenant {number}")).unwrap();
    }
    assert_eq!(cache.namespace("one more"), Err(CacheError::TooManyNamespaces));
    let mut handle = cache.handle().unwrap();
    for number in (0..65_535u32).step_by(997) {
        let space = cache.find_namespace(&format!("tenant {number}")).unwrap();
        handle.set_namespace(space);
        handle.insert("k", number.to_string()).unwrap();
    }
    for number in (0..65_535u32).step_by(997) {
        handle.set_namespace(cache.namespace(&format!("tenant {number}")).unwrap());
        assert_eq!(handle.get_str("k").unwrap(), Some(number.to_string()));
    }
    assert!(TierCache::builder().namespaces(65_536).create_sealed().is_err());
    drop(handle);
    cache.check().unwrap();
}

#[test]
fn each_namespace_counts_its_entries_bytes_and_hits() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("unnamed", "1").unwrap();
    for (name, entries) in [("a", 3), ("b", 5)] {
        handle.set_namespace(cache.namespace(name).unwrap());
        for number in 0..entries {
            handle.insert(number.to_string(), [1; 200]).unwrap();
            handle.get(number.to_string()).unwrap();
            handle.get("absent").unwrap();
        }
    }
    drop(handle);
    cache.clear_namespace(cache.namespace("empty").unwrap()).unwrap();
    let stats = cache.namespace_stats();
    let of = |name: &str| {
        let space = stats.iter().find(|space| space.name == name).unwrap();
        (space.entries, space.bytes, space.hits)
    };
    assert_eq!((of(""), of("empty")), ((1, 128, 0), (0, 0, 0)));
    assert_eq!((of("a"), of("b")), ((3, 3 * 384, 3), (5, 5 * 384, 5)));
}

/// Who dies at any store of making or removing one leaves a table that the next one goes on with.
#[test]
fn the_maker_of_a_namespace_dies() {
    for removes in [false, true] {
        let mut at = 0;
        loop {
            let cache = tiny_of(small().namespaces(2), 64);
            cache.namespace("other").unwrap();
            if removes {
                cache.namespace("one").unwrap();
            }
            let (_, points) = with_fate(Fate::Stop(at), None, || match removes {
                true => drop(cache.remove_namespace("one")),
                false => drop(cache.namespace("one")),
            });
            if points <= at {
                break;
            }
            // The dead one's process is gone.
            super::world::forget_namer(&cache);
            let mut handle = cache.handle().unwrap();
            handle.set_namespace(cache.namespace("one").unwrap());
            handle.insert("k", "1").unwrap();
            assert_eq!(cache.namespace("third"), Err(CacheError::TooManyNamespaces));
            assert!(cache.remove_namespace("one").unwrap());
            cache.namespace("third").unwrap();
            assert_eq!(cache.namespaces().len(), 3);
            drop(handle);
            cache.check().unwrap();
            at += 1;
        }
        assert!(at > 3, "{at}");
    }
}
