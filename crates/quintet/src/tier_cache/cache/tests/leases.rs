//! Values read where they lie.

use super::world::{declare_dead, small, tiny_of};
use crate::tier_cache::cache::*;
use crate::tier_cache::step::{Fate, with_fate};

#[test]
fn a_leased_value_stays_whatever_happens_to_its_key() {
    let cache = tiny_of(small().leases(), 64);
    let reader = cache.handle().unwrap();
    let mut writer = cache.handle().unwrap();
    writer.insert("k", [7; 300]).unwrap();
    let lease = reader.lease("k").unwrap().unwrap();
    let again = reader.lease("k").unwrap().unwrap();
    assert!(reader.lease("absent").unwrap().is_none());
    writer.insert("k", [8; 300]).unwrap();
    for number in 0..500u32 {
        writer.insert(number.to_string(), [9; 60]).unwrap();
    }
    assert_eq!((lease.len(), lease.to_vec()), (300, vec![7; 300]));
    // SAFETY: this test's own threads keep to the protocol.
    assert_eq!(unsafe { lease.chunks() }.concat(), vec![7; 300]);
    drop(lease);
    assert_eq!(again.to_vec(), vec![7; 300]);
    assert!(cache.check().is_err(), "in limbo: neither free nor an entry");
    cache.recover().unwrap();
    assert_eq!(again.to_vec(), vec![7; 300], "a sweep leaves it alone");
    drop(again);
    drop((reader, writer));
    cache.check().unwrap();
}

#[test]
fn leases_are_counted_and_optional() {
    let cache = small().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", "v").unwrap();
    assert_eq!(handle.lease("k").err(), Some(CacheError::NoLeases));
    let cache = small().leases().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    handle.insert("k", "v").unwrap();
    let held: Vec<_> = (0..8).map(|_| handle.lease("k").unwrap().unwrap()).collect();
    assert_eq!(handle.lease("k").err(), Some(CacheError::NoLeases));
    drop(held);
    assert!(handle.lease("k").unwrap().is_some());
}

/// The lessee dies, or whoever frees what it leased, or both: nothing leaks.
#[test]
fn the_dead_lease_nothing() {
    for n in 0.. {
        let cache = tiny_of(small().leases(), 64);
        let mut writer = cache.handle().unwrap();
        writer.insert("k", [7; 300]).unwrap();
        let lessee = cache.handle().unwrap();
        let lease = lessee.lease("k").unwrap().unwrap();
        let ((), points) = with_fate(Fate::Stop(n), None, || drop(writer.insert("k", [8; 300])));
        assert_eq!(lease.to_vec(), vec![7; 300]);
        std::mem::forget(lease);
        declare_dead(&cache, &lessee);
        declare_dead(&cache, &writer);
        std::mem::forget((lessee, writer));
        cache.recover().unwrap();
        cache.check().unwrap_or_else(|error| panic!("{error} at {n}"));
        if n >= points {
            break;
        }
    }
}
