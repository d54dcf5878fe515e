//! Chance, all of it from one seed: what a program is like, and every choice it makes.

use std::cell::Cell;

/// A small generator: each state is mixed into one number.
#[derive(Debug)]
pub(crate) struct Chance(Cell<u64>);

/// Mixes a number until every bit depends on every bit.
pub(crate) fn mixed(number: u64) -> u64 {
    let once = (number ^ (number >> 31)).wrapping_mul(0x9fb2_1c65_1e98_df25);
    let twice = (once ^ (once >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    twice ^ (twice >> 32)
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(mixed(seed.wrapping_add(0x5851_f42d_4c95_7f2d))))
    }

    pub(crate) fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        mixed(state)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `times`; never if that is 0.
    pub(crate) fn one_in(&self, times: u32) -> bool {
        times != 0 && self.next() % u64::from(times) == 0
    }

    pub(crate) fn of<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// The calls of user code from which a program goes on with further operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Top,
    Hash,
    Eq,
    Matches,
    Clone,
    Drop,
    Closure,
    Iterator,
}

pub(crate) const FAMILIES: usize = 11;

/// What one program is like: few of all possible things, but those often.
#[derive(Debug)]
pub(crate) struct Mood {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) keys: usize,
    pub(crate) depth: u32,
    /// Once in how many calls of a place further operations run.
    nest: [u32; 8],
    /// Once in how many of those a panic follows; 0 for never.
    pub(crate) panic: u32,
    /// Whether drops panic as well: containers whose elements do so may leak the others.
    pub(crate) drop_panics: bool,
    /// Once in how many comparisons and hashes the answer is wrong; 0 for never.
    pub(crate) lie: u32,
    /// Whether guards and handles are forgotten: then what they hold may stay for ever.
    pub(crate) forgets: bool,
    /// How often each family is at work.
    pub(crate) families: [u32; FAMILIES],
    /// Hashes are cut to these bits.
    pub(crate) hash_mask: u64,
    pub(crate) capacity: usize,
}

impl Mood {
    pub(crate) fn new(seed: u64) -> Self {
        let chance = Chance::new(seed);
        let mut families = [0; FAMILIES];
        // One family mostly, others beside it.
        families.iter_mut().for_each(|weight| *weight = *chance.of(&[0, 0, 1, 2]));
        families[chance.below(FAMILIES)] += 8;
        let often = [[4, 2, 1], [40, 16, 6], [400, 64, 16]];
        let rates = *chance.of(&often);
        let nest = |rate: u32| if chance.one_in(4) { 0 } else { rate };
        let nest = [
            0,
            nest(rates[1] * 4),
            nest(rates[1]),
            nest(rates[1]),
            nest(rates[1]),
            nest(rates[1]),
            nest(rates[0].min(4)),
            nest(rates[2]),
        ];
        let mut mood = Self {
            seed,
            threads: *chance.of(&[1, 1, 2, 3]),
            keys: *chance.of(&[3, 12, 60, 300]),
            depth: 1 + chance.below(3) as u32,
            nest,
            panic: *chance.of(&[0, 0, 40, 8]),
            drop_panics: chance.one_in(3),
            lie: *chance.of(&[0, 0, 0, 0, 0, 30]),
            forgets: chance.one_in(5),
            families,
            hash_mask: *chance.of(&[u64::MAX, u64::MAX, 0xff, 0xffff_0000, 0]),
            capacity: *chance.of(&[0, 0, 10, 400]),
        };
        if std::env::var_os("QUINTET_HONEST").is_some() {
            (mood.lie, mood.threads) = (0, 1);
        }
        mood
    }

    /// Leaves out families that have nothing to do.
    pub(crate) fn leave_out(&mut self, idle: impl Fn(usize) -> bool) {
        for (family, weight) in self.families.iter_mut().enumerate() {
            *weight = if idle(family) { 0 } else { *weight };
        }
        if self.families.iter().all(|weight| *weight == 0) {
            self.families = std::array::from_fn(|family| u32::from(!idle(family)));
        }
    }

    pub(crate) fn nests(&self, place: Place) -> u32 {
        self.nest[place as usize]
    }

    /// How often an operation is chosen in this program: not at all, at times, often.
    pub(crate) fn weight(&self, name: &str) -> u64 {
        let letters = name.bytes().fold(self.seed, |sum, byte| mixed(sum ^ u64::from(byte)));
        [0, 1, 3, 3][(letters >> 7) as usize % 4]
    }
}
