//! Whole lives of small sets under many schedules: three threads insert overlapping records from
//! the smallest set on, through many growths.

use super::*;
use crate::sync::{Arc, Mutex, schedules, thread};
use std::hash::{BuildHasherDefault, Hasher};

/// The same in every run: schedules can be replayed.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are words")
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Set = SeenSet<u64, BuildHasherDefault<Spread>>;

const RECORDS: u64 = 12;

fn life(growth: Growth) {
    life_of(SeenSet::builder().growth(growth));
}

fn life_of(builder: SeenSetBuilder<u64>) {
    let builder = builder.max_load(0.9).parents(true);
    let set: Arc<Set> = Arc::new(builder.hasher(Default::default()).build());
    let told = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..3u64)
        .map(|number| {
            let (set, told) = (Arc::clone(&set), Arc::clone(&told));
            thread::spawn(move || {
                let handle = set.handle();
                for step in 0..RECORDS {
                    let record = (step * (number * 4 + 1)) % (RECORDS + 1);
                    let insertion = handle.insert(record);
                    assert_eq!(handle.get(insertion.id()), Some(&record));
                    assert!(handle.contains(&record));
                    told.lock().push((record, insertion));
                    // One leaves early, and the others do not wait for it.
                    if number == 2 && step == 4 {
                        break;
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let told = told.lock();
    let mut records: Vec<u64> = told.iter().map(|told| told.0).collect();
    records.sort_unstable();
    records.dedup();
    for &record in &records {
        let of_record = || told.iter().filter(|told| told.0 == record);
        assert_eq!(of_record().filter(|told| told.1.is_new()).count(), 1, "one is new");
        let id = set.find(&record).expect("nothing is lost");
        assert!(of_record().all(|told| told.1.id() == id), "one id");
    }
    let mut walked: Vec<u64> = set.iter().map(|(_, &record)| record).collect();
    walked.sort_unstable();
    assert_eq!(walked, records, "each once");
    assert!(set.stats().growths > 0, "the set has grown");
}

#[test]
fn shuttle_seen_sets_that_grow_spread() {
    schedules(2_000, || life(Growth::Spread));
}

/// Through every small size into the row, and on there.
#[test]
fn shuttle_seen_sets_that_start_small() {
    for shards in [1, 2, 4] {
        schedules(1_500, move || life_of(SeenSet::builder().small().shards(shards)));
    }
}

#[test]
fn shuttle_seen_sets_that_grow_together() {
    schedules(2_000, || life(Growth::Together));
}
