//! What a set that is overwritten holds back, counted by the allocator.

use quintet::ItemSet;
use quintet::item_set::Keyed;
use quintet_testkit::alloc::Shredder;
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: Shredder = Shredder::new();

const KEYS: u64 = 64;
const OVERWRITES: u64 = 4_000_000;

/// 64 bytes.
struct Record {
    key: u64,
    _value: [u64; 7],
}

impl Keyed for Record {
    type Key = u64;
    fn key(&self) -> &u64 {
        &self.key
    }
}

fn record(key: u64, turn: u64) -> Box<Record> {
    Box::new(Record { key, _value: [turn; 7] })
}

/// Every overwrite pins for itself, and nobody flushes.
#[test]
fn overwrites_through_pins_hold_back_less_than_a_megabyte() {
    for threads in [1, 2] {
        let set = ItemSet::<Box<Record>>::new();
        (0..KEYS).for_each(|key| assert!(set.pin().put(record(key, 0)).is_none()));
        let before = ALLOCATOR.live_bytes();
        let worst = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for turn in 0..OVERWRITES / threads {
                        assert!(set.pin().put(record(turn % KEYS, turn)).is_some());
                        if turn % 256 == 0 {
                            let held = ALLOCATOR.live_bytes().saturating_sub(before);
                            worst.fetch_max(held, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let worst = worst.into_inner();
        println!("{threads} threads: {worst} bytes");
        assert!(worst <= 1 << 20, "{threads} threads: {worst} bytes");
    }
}
