//! `WordMap`: safe code breaks nothing. Stories of user code that uses the map from inside an operation, and of what it leaves open.
//! Run under AddressSanitizer too; without it, freed tables are unmapped, and touching one ends the process.

use quintet::WordMap;
use std::cell::{Cell, RefCell};

/// Grows the map several times and frees every table in between that nobody holds back; leaves it in the middle of a migration.
fn move_on(map: &WordMap<u64, u64>) {
    let handle = map.handle();
    for bits in 14..18 {
        handle.reserve(1 << bits);
        handle.release();
    }
    handle.shrink_to_fit();
    let mut key = 1 << 32;
    while map.stats().tables.len() < 2 {
        handle.insert(key, key);
        key += 1;
    }
}

/// The closure of an `alter` under way lets the tables move on, and reads through the same seat: the reading section announces a later era, which
/// says nothing about the links of the tables that the `alter` stands in.
#[test]
fn a_closure_that_reads_does_not_vouch_for_the_tables_of_its_alter() {
    let map: WordMap<u64, u64> = WordMap::new();
    let turns = Cell::new(0);
    let pin = map.pin();
    pin.insert(1, 1);
    let before = pin.alter(7, |found| {
        assert_eq!(found, None);
        if turns.replace(turns.get() + 1) < 6 {
            move_on(&map);
            assert_eq!(pin.get(1), Some(1));
        }
        Some(70)
    });
    assert!(before.is_none() && turns.get() > 1);
    assert_eq!((pin.get(7), pin.get(1)), (Some(70), Some(1)));
}

/// An iterator that a closure stores elsewhere outlives the operation in which it was made.
#[test]
fn an_iterator_made_by_the_closure_of_an_update_stays_protected() {
    let map: WordMap<u64, u64> = WordMap::new();
    let handle = map.handle();
    (0..10_000).for_each(|key| assert_eq!(handle.insert(key, key), None));
    let stash = RefCell::new(None);
    let before = handle.update(5, |value| {
        *stash.borrow_mut() = Some(handle.iter());
        value
    });
    assert_eq!(before, Some(5));
    move_on(&map);
    let seen = stash.take().map_or(0, Iterator::count);
    assert!(seen >= 10_000, "{seen} entries seen");
}
