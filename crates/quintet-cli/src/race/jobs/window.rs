//! A sliding window: `churn`. What is inserted is made inside the clock, and what is removed is
//! freed there.

use crate::race::crew::{Lap, crew, for_a_while_with, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::stint::Stint;
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_rivals::{Keys, Kind};
use std::marker::PhantomData;

/// Each thread owns every n-th part of the window: it inserts its newest entry and removes its
/// oldest, so every answer is known.
pub(super) struct Window<T, M> {
    map: Option<M>,
    /// The oldest entry of each thread.
    tails: Vec<u64>,
    kind: PhantomData<T>,
}

/// Entry numbers of different threads are this far apart.
const LANE: u64 = 1 << 34;

impl<T: Kind, M: Map<T>> Window<T, M> {
    /// A window that is filled when the number of threads is known.
    pub(super) fn new() -> Self {
        Self { map: None, tails: Vec::new(), kind: PhantomData }
    }

    /// A map with `width` entries in the lane of each thread.
    fn filled(threads: usize, width: u64) -> M {
        let map = M::with_capacity(width as usize * threads);
        let mut access = map.access();
        for lane in (0..threads as u64).map(|thread| thread * LANE) {
            for index in lane..lane + width {
                access.insert(T::key(index), T::value(index, 0));
            }
            access.quiet();
        }
        drop(access);
        map
    }
}

impl<T: Kind, M: Map<T>> Bench for Window<T, M> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let width = (heat.keys / heat.threads as u64).max(1);
        if self.tails.len() != heat.threads {
            self.map = None; // the old window goes before the new one comes
            self.tails = (0..heat.threads as u64).map(|thread| thread * LANE).collect();
        }
        let map = self.map.get_or_insert_with(|| Self::filled(heat.threads, width));
        let laps: Vec<(Lap, u64)> = crew(heat.threads, |thread, gate| {
            let mut access = map.access();
            let mut tail = self.tails[thread];
            // The newest and the oldest keys of a batch.
            let keys = (T::keys(0..0), T::keys(0..0));
            let prepare = |(newest, oldest): &mut (T::Keys, T::Keys)| {
                *newest = T::keys(tail + width..tail + width + BATCH / 2);
                *oldest = T::keys(tail..tail + BATCH / 2);
                tail += BATCH / 2;
            };
            let lap = for_a_while_with(stint, gate, keys, prepare, |(newest, oldest)| {
                let mut wrong = 0;
                for place in 0..BATCH as usize / 2 {
                    let (new, old) = (newest.at(place), oldest.at(place));
                    wrong += u64::from(!access.insert(T::own(new), T::value_of(new, 0)));
                    wrong += u64::from(!access.remove(old));
                }
                access.quiet();
                (BATCH, wrong)
            });
            (lap, tail)
        });
        self.tails = laps.iter().map(|(_, tail)| *tail).collect();
        let laps: Vec<Lap> = laps.into_iter().map(|(lap, _)| lap).collect();
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}
