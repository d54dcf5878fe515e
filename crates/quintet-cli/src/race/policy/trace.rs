//! Traces: which key is asked for next.

use crate::race::keys::Dice;

/// What kind of trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Zipf08,
    Zipf10,
    Zipf12,
    ScanMixed,
    Loop,
    OneHit,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::Zipf08, Self::Zipf10, Self::Zipf12, Self::ScanMixed, Self::Loop, Self::OneHit];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Zipf08 => "zipf-0.8",
            Self::Zipf10 => "zipf-1.0",
            Self::Zipf12 => "zipf-1.2",
            Self::ScanMixed => "scan-mixed",
            Self::Loop => "loop",
            Self::OneHit => "one-hit",
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Zipf08 => "Zipf's law, exponent 0.8: little skew, the web",
            Self::Zipf10 => "exponent 1.0: the usual yardstick",
            Self::Zipf12 => "exponent 1.2: few keys are most of the trace",
            Self::ScanMixed => "Zipf 1.0, now and then a scan of the cache's length",
            Self::Loop => "a loop over a quarter more keys than fit",
            Self::OneHit => "Zipf 1.0 and as many keys that never come again",
        }
    }
}

/// The keys that are asked for, one after the other.
pub(super) struct Trace {
    pub(super) keys: Vec<u32>,
    /// All keys are below this number.
    pub(super) bound: u32,
}

impl Trace {
    /// A trace over `keys` keys, for caches with room for so many percent of them.
    pub(super) fn draw(kind: Kind, keys: u64, percent: u64, seed: u64) -> Self {
        let length = (keys * super::LENGTH) as usize;
        let room = keys * percent / 100;
        let mut dice = Dice::new(seed, kind as usize);
        let exponent = match kind {
            Kind::Zipf08 => 0.8,
            Kind::Zipf12 => 1.2,
            _ => 1.0,
        };
        let zipf = Zipf::new(keys, exponent);
        let mut fresh = keys as u32;
        let mut drawn = Vec::with_capacity(length);
        while drawn.len() < length {
            match kind {
                Kind::Loop => drawn.extend(0..(room * 5 / 4) as u32),
                Kind::ScanMixed => {
                    drawn.extend((0..4 * room).map(|_| zipf.draw(&mut dice)));
                    // Scans take turns over as many keys again.
                    let from = keys + u64::from(fresh) % keys;
                    drawn.extend((0..room).map(|at| (from + at) as u32));
                    fresh = fresh.wrapping_add(room as u32);
                }
                Kind::OneHit if dice.below(2) == 0 => {
                    drawn.push(fresh);
                    fresh += 1;
                }
                _ => drawn.push(zipf.draw(&mut dice)),
            }
        }
        drawn.truncate(length);
        let bound = drawn.iter().max().map_or(0, |key| key + 1);
        Self { keys: drawn, bound }
    }

    /// Accesses before any counts.
    pub(super) fn warm_up(&self) -> usize {
        self.keys.len() / 5
    }
}

/// Zipf's law over ranks, by sums that are searched.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(keys: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let ranks = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { sums: ranks.collect() }
    }

    fn draw(&self, dice: &mut Dice) -> u32 {
        let point = (dice.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let point = point * self.sums.last().copied().unwrap_or(0.0);
        let rank = self.sums.partition_point(|sum| *sum <= point);
        rank.min(self.sums.len() - 1) as u32
    }
}

/// The length of a key's value where lengths differ: from 8 to 2047 bytes, each doubling as likely.
pub(super) fn value_bytes(key: u32) -> usize {
    let bits = quintet_rivals::mix(u64::from(key) << 8);
    let least = 8 << (bits % 8);
    least + (bits >> 32) as usize % least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_repeat_and_have_their_length() {
        for kind in Kind::ALL {
            let draw = |seed| Trace::draw(kind, 5000, 10, seed).keys;
            assert_eq!(draw(1).len(), 60_000);
            assert!(draw(1) == draw(1));
            assert!(draw(1) != draw(2) || kind == Kind::Loop, "{kind:?}");
        }
    }

    #[test]
    fn zipf_draws_by_its_law() {
        let zipf = Zipf::new(1000, 1.0);
        let mut dice = Dice::new(1, 0);
        let mut counts = vec![0u32; 1000];
        (0..1_000_000).for_each(|_| counts[zipf.draw(&mut dice) as usize] += 1);
        for (often, rank) in [(133_600, 1), (66_800, 2), (13_360, 10)] {
            let seen = f64::from(counts[rank - 1]);
            assert!((seen / f64::from(often) - 1.0).abs() < 0.05, "{rank}: {seen}");
        }
    }

    #[test]
    fn half_of_one_hit_comes_once() {
        let trace = Trace::draw(Kind::OneHit, 5000, 10, 1);
        let once = trace.keys.iter().filter(|key| **key >= 5000).count();
        assert!((28_000..32_000).contains(&once), "{once}");
    }
}
