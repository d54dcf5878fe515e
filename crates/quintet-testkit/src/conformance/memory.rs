//! Memory stays proportional to what is live, and nonsense is refused.

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

use super::adapter::{finds, inserting, reading, removing};
use super::threads::LIMIT;
use super::{HandleUnderTest, TableUnderTest};
use crate::stress::{Stress, within};

/// What may be held back by batches and half-full tables.
const SLACK: usize = 256 << 10;

/// What each thread may hold back at some moment: batches that fill up and wait, while another
/// thread is stopped.
const MOMENT: usize = 1 << 20;

/// Keys come and go at constant size: memory at the end is that of the beginning.
///
/// # Panics
/// If the table at all times in the second half of the run holds more than twice what it held in
/// the first tenth, or at some moment a mebibyte more for each thread.
pub fn churn_keeps_memory_flat<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    const THREADS: u64 = 2;
    const WINDOW: u64 = 1_000;
    const TURNS: u64 = 100_000;
    let remove = removing::<T>().expect("churn needs a table that removes");
    let table = make(0);
    // Turns of all threads: one may be far ahead of the other.
    let done = AtomicU64::new(0);
    let seen = Stress::new("churn").threads(THREADS as usize).run(|worker| {
        let mut handle = table.handle();
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            worker.pause();
            let key = |turn| turn * THREADS + worker.thread() as u64;
            finds(&mut handle, key(turn), inserting::<T>());
            if let Some(old) = turn.checked_sub(WINDOW) {
                assert!(finds(&mut handle, key(old), remove), "key {} was inserted", key(old));
            }
            handle.quiet();
            let done = done.fetch_add(1, Ordering::Relaxed);
            if turn % 512 == 0 && turn > WINDOW {
                let bytes = table.memory_bytes();
                if done <= THREADS * TURNS / 10 {
                    early.push(bytes);
                } else if done > THREADS * TURNS / 2 {
                    late.push(bytes);
                }
            }
        }
        (early, late)
    });
    let early = seen.iter().flat_map(|seen| &seen.0).max().copied().unwrap_or(0);
    let late = || seen.iter().flat_map(|seen| &seen.1).copied();
    let (least, most) = (late().min().unwrap_or(0), late().max().unwrap_or(0));
    let flat = 2 * early + SLACK;
    assert!(least <= flat, "memory grew from {early} to {least} bytes under churn");
    let most_allowed = flat + THREADS as usize * MOMENT;
    assert!(
        most <= most_allowed,
        "{most} bytes were held at some moment, {early} in the beginning"
    );
}

/// After removing everything, little is left.
///
/// # Panics
/// If the table still holds more than 5 % of its peak after some quiet points.
pub fn removal_returns_memory<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    const KEYS: u64 = 300_000;
    let remove = removing::<T>().expect("removal needs a table that removes");
    let table = make(0);
    let mut handle = table.handle();
    for key in 0..KEYS {
        finds(&mut handle, key, inserting::<T>());
    }
    let peak = table.memory_bytes();
    for key in 0..KEYS {
        assert!(finds(&mut handle, key, remove), "key {key} was inserted");
        handle.quiet();
    }
    for key in 0..10_000 {
        finds(&mut handle, key % 100, inserting::<T>());
        finds(&mut handle, key % 100, remove);
        handle.quiet();
    }
    let left = table.memory_bytes();
    assert!(left <= peak / 20 + SLACK, "{left} bytes left of {peak} after removing everything");
}

/// Keys that differ in few bits, in every part of the word.
pub fn flooding<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    const KEYS: u64 = 4_096;
    let patterns: [fn(u64) -> u64; 6] = [
        |i| i,
        |i| i << 52,
        |i| i << 32,
        |i| i.reverse_bits(),
        |i| !i,
        |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    ];
    for pattern in patterns {
        flooding_with(&make, &(0..KEYS).map(pattern).collect::<Vec<_>>());
    }
}

/// Distinct keys made to collide: all are found, none is invented, and removal works.
pub fn flooding_with<T: TableUnderTest>(make: impl Fn(usize) -> T, keys: &[u64]) {
    within("flooding", LIMIT, || {
        let table = make(0);
        let mut handle = table.handle();
        for &key in keys {
            assert!(!finds(&mut handle, key, inserting::<T>()), "key {key:#x} is new");
        }
        for &key in keys {
            assert!(finds(&mut handle, key, reading::<T>()), "key {key:#x} was inserted");
        }
        let Some(remove) = removing::<T>() else { return };
        for &key in keys {
            assert!(finds(&mut handle, key, remove), "key {key:#x} is there to be removed");
            assert!(!finds(&mut handle, key, remove), "key {key:#x} is removed already");
        }
    });
}

/// Absurd capacities are errors with a text, no panics and no aborts.
pub fn capacity_overflow<T: TableUnderTest>(_make: impl Fn(usize) -> T) {
    refuses_absurd_capacities(|entries| T::try_with_capacity(entries).map(drop));
}

pub(super) fn refuses_absurd_capacities(
    try_with_capacity: impl Fn(usize) -> Result<(), String> + std::panic::RefUnwindSafe,
) {
    let word = usize::BITS - 1;
    for entries in [usize::MAX, usize::MAX - 1, 1 << word, 1 << (word - 3), 1 << (word - 5)] {
        match catch_unwind(|| try_with_capacity(entries)) {
            Ok(Err(text)) => assert!(!text.is_empty(), "an error without a text"),
            Ok(Ok(())) => panic!("a table for {entries} entries cannot exist"),
            Err(_) => panic!("asking for {entries} entries must be an error value, not a panic"),
        }
    }
    assert_eq!(try_with_capacity(10), Ok(()), "a sane capacity is granted");
}
