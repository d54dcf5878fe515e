//! Many writers.

use super::super::*;
use crate::sync::{AtomicBool, Ordering, thread};
use std::hash::{Hash, Hasher};

#[test]
fn many_writers_lose_nothing_and_share_versions() {
    let (writer, reader) = new::<u64, u64>();
    let front = writer.into_front();
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let front = front.clone();
            let reader = reader.clone();
            thread::spawn(move || {
                for n in 0..200 {
                    let key = thread * 1000 + n;
                    let version = front.commit([(key, Some(n)), (key + 500, Some(n))]).unwrap();
                    let guard = reader.guard();
                    assert!(guard.version() >= version);
                    assert_eq!(guard.get(&key), Some(&n), "published when commit returns");
                    drop(guard);
                    front.remove(key + 500).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(reader.guard().len(), 800);
    assert!(front.version() <= 1600);
    front.with_writer(|writer| writer.guard().clear());
    assert!(front.reader().guard().is_empty());
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Sour(u64);

static SOUR: AtomicBool = AtomicBool::new(false);

impl Hash for Sour {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(self.0 != 13 || !SOUR.load(Ordering::Relaxed), "on purpose");
        self.0.hash(state);
    }
}

/// A batch that panics is left out whole, and told so.
#[test]
fn a_batch_that_panics_is_left_out_alone() {
    let (writer, reader) = new::<Sour, u64>();
    let front = writer.into_front();
    front.insert(Sour(1), 1).unwrap();
    SOUR.store(true, Ordering::Relaxed);
    let batch = [(Sour(2), Some(2)), (Sour(13), Some(13))];
    assert_eq!(front.commit(batch), Err(BatchPanicked));
    front.insert(Sour(3), 3).unwrap();
    SOUR.store(false, Ordering::Relaxed);
    let guard = reader.guard();
    let mut keys: Vec<u64> = guard.keys().map(|key| key.0).collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 3]);
}
