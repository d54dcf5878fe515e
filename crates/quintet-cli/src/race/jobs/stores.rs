//! The processes of a race of caches. They hear the lines of `shared`; `enter PATH ENTRIES` and
//! `make ENTRIES VALUE` differ.

use super::shared::{hear, length, report_lap, timed};
use crate::race::crew::Lap;
use crate::race::keys::{Choices, Dice};
use crate::race::stint::Stint;
use quintet_rivals::stores::{Key, Store, StoreLocal, key};
use quintet_testkit::crash::report;
use std::hint::black_box;
use std::ops::Range;

/// Keys that are hot: they and their values fit into the nearer caches.
const HOT: u64 = 4096;
/// Operations per look at the clock; every batch divides it.
pub(super) const BURST: usize = 256;
/// Values from this length on are long.
const LONG: usize = 1 << 16;
/// Operations per look at the clock where values are long, and no batch is longer.
const LONG_BURST: usize = 16;

/// The length of the values of a stage, which ends the names of its workloads.
pub(crate) fn value_of(stage: &str) -> usize {
    match stage.rsplit('-').next() {
        Some("1m") => 1 << 20,
        Some("1k") => 1 << 10,
        _ => 64,
    }
}

/// Operations in a burst with values of this length.
fn burst(length: usize) -> usize {
    if length < LONG { BURST } else { LONG_BURST }
}

/// Values of one length that tell which entry they belong to: its number stands at both ends.
pub(crate) struct Values(Vec<u8>);

impl Values {
    /// Values of so many bytes, at least sixteen.
    pub(crate) fn new(length: usize) -> Self {
        Self(vec![0x71; length.max(16)])
    }

    /// A value of an entry.
    #[inline(always)]
    pub(super) fn of(&mut self, index: u64, version: u8) -> &[u8] {
        let last = self.0.len() - 8;
        self.0[..8].copy_from_slice(&(index << 8 | u64::from(version)).to_le_bytes());
        self.0[last..].copy_from_slice(&index.to_le_bytes());
        &self.0
    }

    /// Whether this is a value of the entry.
    #[inline(always)]
    pub(super) fn is(&self, index: u64, value: &[u8]) -> bool {
        let (Some(first), Some(last)) = (value.first_chunk(), value.last_chunk()) else {
            return false;
        };
        value.len() == self.0.len()
            && u64::from_le_bytes(*first) >> 8 == index
            && u64::from_le_bytes(*last) == index
    }
}

/// Sets every entry once. False if the cache failed.
pub(crate) fn fill(local: &mut impl StoreLocal, entries: u64, length: usize) -> bool {
    let burst = burst(length);
    let mut values: Vec<Values> = (0..burst).map(|_| Values::new(length)).collect();
    (0..entries).step_by(burst).all(|from| {
        let numbers = from..entries.min(from + burst as u64);
        let keys: Vec<Key> = numbers.clone().map(key).collect();
        numbers.zip(&mut values).for_each(|(number, value)| _ = value.of(number, 0));
        local.set(&keys, |at| &values[at].0)
    })
}

/// Looks at every entry once, so that every page is mapped. False if one is missing.
fn tour(local: &mut impl StoreLocal, entries: u64) -> bool {
    let mut seen = 0;
    for from in (0..entries).step_by(BURST) {
        let keys: Vec<Key> = (from..entries.min(from + BURST as u64)).map(key).collect();
        local.get(&keys, |_, value| seen += u64::from(value.is_some()));
    }
    seen == entries
}

/// Hears and obeys until the parent is gone.
pub(crate) fn obey<S: Store>() {
    let mut store: Option<S> = None;
    let mut seed = u64::from(std::process::id());
    // What was drawn, and the bound it was drawn for.
    let mut drawn = (0, Vec::new());
    while let Some(words) = hear() {
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let number = |at: usize| number(at).unwrap_or(0);
        match (words.first().map(String::as_str), &store) {
            (Some("end"), _) => return,
            (Some("enter"), _) => {
                store = words.get(1).and_then(|path| S::attach(path));
                let local = store.as_ref().and_then(S::local);
                let seen = local.is_some_and(|mut local| !S::MAPS || tour(&mut local, number(2)));
                report(if seen { "entered" } else { "no cache" });
            }
            (Some("make"), _) => {
                store = S::create(number(1) as usize, number(2) as usize).ok();
                let full = store.as_ref().and_then(S::local);
                let full =
                    full.is_some_and(|mut local| fill(&mut local, number(1), number(2) as usize));
                report(if full { "entered" } else { "no cache" });
            }
            (Some("round"), Some(store)) => {
                let Some(mut local) = store.local() else { return report("no access") };
                seed += 1 << 32;
                let Some(stint) = length(&words) else { return report("what?") };
                let hot = words[1].starts_with("get-hot");
                let bound = if hot { number(4).min(HOT) } else { number(4) };
                if drawn.0 != bound {
                    drawn = (bound, draw(0..bound, seed));
                }
                report_lap(&race::<S>(&mut local, &words[1], &drawn.1, seed, stint));
            }
            _ => report("what?"),
        }
    }
}

/// Does a workload for a stint.
fn race<S: Store>(
    local: &mut S::Local<'_>,
    work: &str,
    drawn: &[(u32, Key)],
    seed: u64,
    stint: Stint,
) -> Lap {
    let length = value_of(work);
    // Of 256 operations so many are sets.
    let sets = match work.split('-').next() {
        Some("set") => 256,
        Some("mix90") => 26,
        _ => 0,
    };
    let mut runner = Runner {
        drawn,
        place: Dice::new(seed, 0).below((drawn.len() / BURST) as u64) as usize * BURST,
        values: (0..S::BATCH).map(|_| Values::new(length)).collect(),
        keys: vec![Key::default(); S::BATCH],
        version: seed as u8,
        copy: (S::LENDS && length >= LONG).then(Vec::new),
    };
    let mut choices = Choices::new(seed, 0);
    let burst = burst(length);
    timed(stint, burst as u64, || {
        let mut wrong = 0;
        for _ in 0..burst / S::BATCH {
            let is_set = sets == 256 || sets > 0 && choices.next() < sets;
            wrong += if is_set { runner.set(local) } else { runner.get(local) };
        }
        black_box(wrong)
    })
}

/// Numbers of this range with their keys, drawn before any clock runs: as many as there are, up to
/// 2^20, and a multiple of [`BURST`].
pub(super) fn draw(range: Range<u64>, seed: u64) -> Vec<(u32, Key)> {
    let (mut dice, bound) = (Dice::new(seed, 0), range.end - range.start);
    let length = bound.next_power_of_two().clamp(1 << 15, 1 << 20);
    let numbers = (0..length).map(|_| range.start + dice.below(bound));
    numbers.map(|number| (number as u32, key(number))).collect()
}

struct Runner<'a> {
    drawn: &'a [(u32, Key)],
    place: usize,
    values: Vec<Values>,
    keys: Vec<Key>,
    version: u8,
    /// For values that the cache lends.
    copy: Option<Vec<u8>>,
}

impl<'a> Runner<'a> {
    /// The next keys, and their numbers.
    #[inline(always)]
    fn next(&mut self) -> &'a [(u32, Key)] {
        let drawn = &self.drawn[self.place..self.place + self.keys.len()];
        self.place += drawn.len();
        if self.place == self.drawn.len() {
            self.place = 0;
        }
        self.keys.iter_mut().zip(drawn).for_each(|(place, (_, key))| *place = *key);
        drawn
    }

    #[inline(always)]
    fn get(&mut self, local: &mut impl StoreLocal) -> u64 {
        let drawn = self.next();
        let (mut right, values) = (0, &self.values[0]);
        let copy = &mut self.copy;
        let answered = local.get(&self.keys, |at, value| {
            let number = u64::from(drawn[at].0);
            if let (Some(copy), Some(value)) = (copy.as_mut(), value) {
                copy.clear();
                copy.extend_from_slice(black_box(value));
            }
            right += u64::from(value.is_some_and(|value| values.is(number, value)));
        });
        if answered { self.keys.len() as u64 - right } else { self.keys.len() as u64 }
    }

    #[inline(always)]
    fn set(&mut self, local: &mut impl StoreLocal) -> u64 {
        let drawn = self.next();
        self.version = self.version.wrapping_add(1);
        for (value, (number, _)) in self.values.iter_mut().zip(drawn) {
            value.of(u64::from(*number), self.version);
        }
        let values = &self.values;
        u64::from(!local.set(&self.keys, |at| &values[at].0)) * self.keys.len() as u64
    }
}
