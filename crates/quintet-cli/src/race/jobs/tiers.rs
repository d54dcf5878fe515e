//! A cache with so many tiers whose entries lie in known ones: `get-tier0` and its kin, `miss`,
//! `set-new`.

use super::stores::{BURST, Values, draw};
use crate::race::crew::{crew, for_a_while, for_a_while_with, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Sample, Wrong};
use crate::race::keys::Dice;
use crate::race::stint::Stint;
use quintet::cache::{CacheError, TierCache};
use quintet_rivals::stores::{Key, key};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a value.
const VALUE: usize = 64;
/// Parts of the keys, each in a tier of its own where there are as many.
const PARTS: u64 = 3;
/// Numbers of keys from here on are never inserted, and below it those that will be.
const ABSENT: u64 = 1 << 31;

/// The cache, and what was drawn for it.
struct Tiered<const TIERS: usize> {
    cache: TierCache,
    keys: u64,
    /// The keys of a range.
    drawn: (Range<u64>, Vec<(u32, Key)>),
    /// The next key that never was.
    fresh: AtomicU64,
}

/// A cache with so many tiers, filled.
pub(crate) fn start<const TIERS: usize>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    // For lookups each tier has room for its part and some; one that is full has room for no more.
    let spare = if stage == "lookups" { keys / 8 } else { 0 };
    let builder =
        TierCache::builder().for_entries((keys + spare) as usize, size_of::<Key>(), VALUE);
    let cache = builder.max_value(1024).tiers(TIERS as u32).create_sealed().ok()?;
    let (drawn, fresh) = ((0..0, Vec::new()), AtomicU64::new(keys));
    let mut tiered = Tiered::<TIERS> { cache, keys, drawn, fresh };
    tiered.fill().ok()?;
    // One that is full evicts from the first insert on.
    if stage != "lookups" {
        tiered.overfill().ok()?;
    }
    Some(Box::new(tiered))
}

impl<const TIERS: usize> Tiered<TIERS> {
    /// Fills the cache part by part; when the next comes, the earlier ones move a tier down.
    fn fill(&self) -> Result<(), CacheError> {
        let mut handle = self.cache.handle()?;
        let mut values = Values::new(VALUE);
        for part in 0..PARTS {
            for tier in (0..TIERS - 1).rev() {
                while handle.demote_oldest(tier, self.keys as usize)? > 0 {}
            }
            for number in self.part(part) {
                handle.insert(key(number), values.of(number, 0))?;
            }
        }
        Ok(())
    }

    /// Inserts new keys until entries have left.
    fn overfill(&mut self) -> Result<(), CacheError> {
        let mut handle = self.cache.handle()?;
        while self.cache.stats().evicted < self.keys / 16 {
            for _ in 0..self.keys / 16 {
                handle.insert(key(*self.fresh.get_mut()), [0; VALUE])?;
                *self.fresh.get_mut() += 1;
            }
        }
        Ok(())
    }

    fn part(&self, part: u64) -> Range<u64> {
        let each = self.keys / PARTS;
        part * each..(part + 1) * each
    }

    /// The keys that a workload asks for; the part that came last lies in the first tier.
    fn asked(&self, workload: &str) -> Range<u64> {
        match workload {
            "get-tier0" => self.part(2),
            "get-tier1" => self.part(1),
            "get-tier2" => self.part(0),
            _ => ABSENT..ABSENT + self.keys,
        }
    }

    fn lookups(&self, heat: &Heat, stint: Stint, hits: bool) -> Result<Sample, Wrong> {
        let (drawn, values) = (&self.drawn.1[..], Values::new(VALUE));
        let laps = crew(heat.threads, |thread, gate| {
            let mut handle = self.cache.handle().expect("there is a seat for each thread");
            let bursts = (drawn.len() / BURST) as u64;
            let mut place = Dice::new(heat.round, thread).below(bursts) as usize * BURST;
            let mut value = Vec::new();
            for_a_while(stint, gate, || {
                let mut right = 0;
                for (number, key) in &drawn[place..place + BURST] {
                    right += u64::from(match handle.get_into(key, &mut value) {
                        Ok(true) => hits && values.is(u64::from(*number), &value),
                        Ok(false) => !hits,
                        Err(_) => false,
                    });
                }
                place = (place + BURST) % drawn.len();
                (BURST as u64, BURST as u64 - right)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }

    fn inserts(&self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |_, gate| {
            let mut handle = self.cache.handle().expect("there is a seat for each thread");
            let mut values = Values::new(VALUE);
            let prepare = |numbers: &mut Vec<(u64, Key)>| {
                let from = self.fresh.fetch_add(BURST as u64, Ordering::Relaxed);
                numbers.clear();
                numbers.extend((from..from + BURST as u64).map(|number| (number, key(number))));
            };
            for_a_while_with(stint, gate, Vec::with_capacity(BURST), prepare, |numbers| {
                let set = |(number, key): &&(u64, Key)| {
                    handle.insert(key, values.of(*number, 0)).is_err()
                };
                (BURST as u64, numbers.iter().filter(set).count() as u64)
            })
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}

impl<const TIERS: usize> Bench for Tiered<TIERS> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        if heat.workload.name == "set-new" {
            return self.inserts(heat, stint);
        }
        let range = self.asked(heat.workload.name);
        if self.drawn.0 != range {
            self.drawn = (range.clone(), draw(range, 27));
        }
        self.lookups(heat, stint, heat.workload.name != "miss")
    }

    /// The entries lie where the names of the workloads say.
    fn check(&mut self, heat: &Heat) -> Result<(), Wrong> {
        let tiers = self.cache.tier_stats();
        let each = self.keys / PARTS;
        let astray = tiers.iter().any(|tier| tier.entries.abs_diff(each) > each / 50);
        match TIERS as u64 == PARTS && heat.workload.stage == "lookups" && astray {
            true => Err(Wrong(format!("entries lie elsewhere: {tiers:?}"))),
            false => Ok(()),
        }
    }
}
