//! Damaged entries, in a cache that has sums.

use super::world::small;
use crate::sync::Ordering;
use crate::tier_cache::cache::*;
use crate::tier_cache::word::RecordState;

/// Any bit of a key, a value or their lengths that changes behind the back of the cache: the value
/// is not returned, whatever else is.
#[test]
fn a_damaged_value_is_not_returned() {
    for length in [64, 400] {
        let cache = small().checksums().create_sealed().unwrap();
        let mut handle = cache.handle().unwrap();
        let value = vec![7; length];
        handle.insert("sixteen bytes ok", &value).unwrap();
        assert_eq!(handle.get("sixteen bytes ok").unwrap().as_ref(), Some(&value));
        let view = cache.view();
        let mut told = 0;
        for block in 0..view.sizes.blocks {
            let record = view.memory.record(block).unwrap();
            let head = match record.state().state() {
                Some(RecordState::Live) => true,
                Some(RecordState::Chained) => false,
                _ => continue,
            };
            // Lengths, key and value; what else lies in a block is not the value's.
            for (at, word) in record.words().iter().enumerate() {
                for bit in (0..64).filter(|_| if head { at == 2 || at > 5 } else { at > 3 }) {
                    word.fetch_xor(1 << bit, Ordering::Relaxed);
                    match handle.get("sixteen bytes ok") {
                        Ok(Some(found)) => assert_eq!(found, value, "{at} {bit}"),
                        // Under a quiet word a candidate with another key is none.
                        Ok(None) => {}
                        Err(CacheError::Corrupt(_)) => told += 1,
                        Err(error) => panic!("{error}"),
                    }
                    word.fetch_xor(1 << bit, Ordering::Relaxed);
                }
            }
        }
        assert!(told >= length * 8, "{told}");
        assert_eq!(handle.get("sixteen bytes ok").unwrap(), Some(value));
        let live = |block: &u32| {
            view.memory.record(*block).unwrap().state().state() == Some(RecordState::Live)
        };
        let head = (0..view.sizes.blocks).find(live).unwrap();
        view.memory.record(head).unwrap().words()[15].fetch_xor(1, Ordering::Relaxed);
        let damaged = Err(CacheError::Corrupt("sum of an entry"));
        assert_eq!(cache.reader().get("sixteen bytes ok"), damaged);
        assert_eq!(cache.scan().count(), 0);
        drop(handle);
        assert!(cache.check().unwrap_err().starts_with("K8"));
    }
}

/// Everything else goes on as without sums.
#[test]
fn sums_disturb_nothing() {
    let cache = small().checksums().create_sealed().unwrap();
    let mut handle = cache.handle().unwrap();
    for number in 0..3000u32 {
        let value = vec![number as u8; number as usize % 700];
        handle.insert(number.to_string(), &value).unwrap();
        assert_eq!(handle.get(number.to_string()).unwrap(), Some(value));
        handle.touch(number.to_string(), None).unwrap();
    }
    assert_eq!(handle.get_or_compute("k", None, || b"v".to_vec()).unwrap(), b"v");
    assert_eq!(handle.incr("n", 1, Some(0), None).unwrap(), Some(1));
    drop(handle);
    cache.check().unwrap();
}
