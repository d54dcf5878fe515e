//! What every store that keeps something does, by the numbers of the rules on its page.

use crate::{WITHIN, look, record};
use quintet::store::*;
use std::time::{Duration, SystemTime};

/// Runs the suite. The store is empty, or holds what no key of the suite names.
pub(crate) fn conforms(store: &dyn Store) {
    keeps_bytes_of_any_kind(store);
    keeps_the_greater_version(store);
    remembers_removals(store);
    ends_records_in_time(store);
    takes_nothing_late(store);
    takes_large_batches(store);
    settles_contests_by_version(store);
    counts(store);
}

fn keeps_bytes_of_any_kind(store: &dyn Store) {
    let long: Vec<u8> = (0..60_000u32).map(|at| (at * 7) as u8).collect();
    // Long keys that agree for most of their length.
    let twins: Vec<Vec<u8>> = (0..3u8).map(|last| [&long[..5_000], &[last]].concat()).collect();
    let mut keys: Vec<&[u8]> =
        vec![b"", b"\0", b"\0\0", b"a", b"{a}b", b"a\r\nb", &long, &long[..480], &long[..481]];
    keys.extend(twins.iter().map(Vec::as_slice));
    let values: Vec<Vec<u8>> = keys
        .iter()
        .enumerate()
        .map(|(at, key)| {
            let length = [0, 1, 100, 5_000, 20_000][at % 5];
            (0..length).map(|byte| (byte ^ key.len() ^ at) as u8).collect()
        })
        .collect();
    assert_eq!(store.get(&keys).unwrap(), vec![None; keys.len()], "nothing is there yet");
    let batch: Vec<_> =
        keys.iter().zip(&values).map(|(key, value)| record(key, 1, value)).collect();
    assert_eq!(store.put(&batch, WITHIN), Ok(keys.len()));
    let found = store.get(&keys).unwrap();
    for ((found, value), key) in found.into_iter().zip(&values).zip(&keys) {
        let found = found.unwrap_or_else(|| panic!("a key of {} bytes is gone", key.len()));
        assert_eq!((found.version, found.expiry), (1, None));
        assert!(found.value == *value, "the value under a key of {} bytes", key.len());
    }
    assert_eq!(store.get(&[]), Ok(Vec::new()));
    assert_eq!(store.put(&[], WITHIN), Ok(0));
}

/// Rule 1.
fn keeps_the_greater_version(store: &dyn Store) {
    let key = b"versions";
    assert_eq!(store.put(&[record(key, 5, b"five")], WITHIN), Ok(1));
    assert_eq!(store.put(&[record(key, 4, b"four")], WITHIN), Ok(0));
    assert_eq!(look(store, key), Some((5, b"five".to_vec())));
    assert_eq!(store.put(&[record(key, 5, b"five")], WITHIN), Ok(1), "a repetition");
    assert_eq!(store.put(&[record(key, 7, b"seven"), record(key, 6, b"six")], WITHIN), Ok(1));
    assert_eq!(look(store, key), Some((7, b"seven".to_vec())));
    // Versions have 64 bits, and all of them count.
    for version in [1 << 31, 1 << 32, (1 << 32) + 1, 1 << 53, (1 << 53) + 1, u64::MAX - 1, u64::MAX]
    {
        assert_eq!(store.put(&[record(key, version, b"up")], WITHIN), Ok(1), "{version}");
        assert_eq!(store.put(&[record(key, version - 1, b"down")], WITHIN), Ok(0), "{version}");
        assert_eq!(look(store, key), Some((version, b"up".to_vec())));
    }
}

/// Rule 4.
fn remembers_removals(store: &dyn Store) {
    let key = b"removed";
    assert_eq!(store.put(&[record(key, 10, b"ten")], WITHIN), Ok(1));
    assert_eq!(store.remove(&[(key, 9)], WITHIN), Ok(0), "an older removal");
    assert_eq!(look(store, key), Some((10, b"ten".to_vec())));
    assert_eq!(store.remove(&[(key, 11), (b"never there", 11)], WITHIN), Ok(2));
    assert_eq!(look(store, key), None);
    let late = [record(key, 10, b"ten"), record(b"never there", 3, b"three")];
    assert_eq!(store.put(&late, WITHIN), Ok(0), "what comes late stays out");
    assert_eq!(look(store, key), None);
    assert_eq!(store.put(&[record(key, 12, b"twelve")], WITHIN), Ok(1));
    assert_eq!(look(store, key), Some((12, b"twelve".to_vec())));
}

/// Rule 5.
fn ends_records_in_time(store: &dyn Store) {
    let now = SystemTime::now();
    let of = |key, expiry| Record { expiry: Some(expiry), ..record(key, 1, b"value") };
    let (past, soon, later) = (
        now - Duration::from_secs(5),
        now + Duration::from_millis(300),
        now + Duration::from_secs(3600),
    );
    store.put(&[of(b"past", past), of(b"soon", soon), of(b"later", later)], WITHIN).unwrap();
    assert_eq!(look(store, b"past"), None);
    let found = store.get(&[b"later"]).unwrap().pop().flatten().unwrap();
    let off = later.duration_since(found.expiry.unwrap()).unwrap();
    assert!(off < Duration::from_millis(1), "the same moment, to the millisecond");
    while SystemTime::now() < soon + Duration::from_millis(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(look(store, b"soon"), None);
    assert_eq!(look(store, b"later"), Some((1, b"value".to_vec())));
    store.put(&[record(b"soon", 2, b"again")], WITHIN).unwrap();
    assert_eq!(look(store, b"soon"), Some((2, b"again".to_vec())));
}

/// Rule 2.
fn takes_nothing_late(store: &dyn Store) {
    assert_eq!(store.put(&[record(b"late", 1, b"value")], Duration::ZERO), Err(StoreError::Late));
    assert_eq!(look(store, b"late"), None);
}

fn takes_large_batches(store: &dyn Store) {
    let keys: Vec<String> = (0..2_000).map(|number| format!("batch:{number}")).collect();
    let value = |number: usize| vec![number as u8; number % 700];
    let values: Vec<_> = (0..keys.len()).map(value).collect();
    let batch: Vec<_> =
        keys.iter().zip(&values).map(|(key, value)| record(key.as_bytes(), 3, value)).collect();
    assert_eq!(store.put(&batch, WITHIN), Ok(keys.len()));
    let named: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    let found = store.get(&named).unwrap();
    assert!(
        found
            .into_iter()
            .zip(values)
            .all(|(found, value)| found.is_some_and(|found| found.value == value))
    );
}

/// Four threads put the same keys in different orders: the greatest version is there in the end,
/// and no lookup goes back.
fn settles_contests_by_version(store: &dyn Store) {
    const VERSIONS: u64 = 40;
    let keys: Vec<String> = (0..8).map(|number| format!("contest:{number}")).collect();
    std::thread::scope(|threads| {
        for thread in 0..4u64 {
            let keys = &keys;
            threads.spawn(move || {
                for step in 0..VERSIONS {
                    let version = 1 + step * (7 + 2 * thread) % VERSIONS;
                    let value = version.to_be_bytes();
                    let batch: Vec<_> =
                        keys.iter().map(|key| record(key.as_bytes(), version, &value)).collect();
                    store.put(&batch, WITHIN).unwrap();
                }
            });
        }
        let mut last = vec![0; keys.len()];
        for _ in 0..50 {
            for (key, last) in keys.iter().zip(&mut last) {
                let Some((version, value)) = look(store, key.as_bytes()) else { continue };
                assert_eq!(value, version.to_be_bytes());
                assert!(version >= *last, "{version} after {last}");
                *last = version;
            }
        }
    });
    for key in &keys {
        assert_eq!(look(store, key.as_bytes()).map(|found| found.0), Some(VERSIONS));
    }
}

fn counts(store: &dyn Store) {
    let stats = store.stats();
    assert!(stats.gets > stats.hits && stats.hits > 2_000, "{stats:?}");
    assert!(stats.puts > 2_000 && stats.older > 10, "{stats:?}");
    assert_eq!(stats.errors, 1, "the one that came late: {stats:?}");
    store.sync().unwrap();
}
