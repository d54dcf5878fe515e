//! Random reads of cache lines, by where the memory lies: `read`, `read-prefetch`, `read-chain`.

use super::prefetch::prefetch;
use crate::race::crew::{crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Role, Sample, Table, Wrong};
use crate::race::keys::{Drawn, Law};
use crate::race::stint::Stint;
use quintet::Pages;
use quintet::internals::Buffer;
use quintet_rivals::{Kind, Label, mix};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads in a batch.
const BATCH: u64 = 256;
/// Lines asked for ahead.
const AHEAD: usize = 32;
/// Words in a line.
const LINE: usize = 8;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Entries that are their own numbers.
struct Numbers;

impl Kind for Numbers {
    type Key = u64;
    type Query = u64;
    type Value = ();
    type Keys = Vec<u64>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<u64> {
        indices.collect()
    }
    fn ask<R>(index: u64, f: impl FnOnce(&u64) -> R) -> R {
        f(&index)
    }
    fn own(query: &u64) -> u64 {
        *query
    }
    fn value_of(_: &u64, _: u64) {}
    fn is_of(_: &u64, (): &()) -> bool {
        true
    }
}

/// Memory for so many words.
pub(crate) trait Ground: Deref<Target = [AtomicU64]> + Sync + Sized + 'static {
    /// Name and version.
    const LABEL: Label;
    /// Zeroed words, or nothing if there is no room.
    fn words(count: usize) -> Option<Self>;
}

/// Our regions in their default: huge pages.
pub(crate) struct Huge(Buffer<AtomicU64>);
/// Our regions with small pages.
pub(crate) struct Small(Buffer<AtomicU64>);
/// What the global allocator gives, as to every table that asks for nothing.
pub(crate) struct Plain(Vec<AtomicU64>);

impl Ground for Huge {
    const LABEL: Label = Label::new("quintet", VERSION);
    fn words(count: usize) -> Option<Self> {
        Buffer::try_new(count, Pages::Huge).ok().map(Self)
    }
}

impl Ground for Small {
    const LABEL: Label = Label::new("quintet (small)", VERSION);
    fn words(count: usize) -> Option<Self> {
        Buffer::try_new(count, Pages::Small).ok().map(Self)
    }
}

impl Ground for Plain {
    const LABEL: Label = Label { name: "std (vec)", version: None };
    fn words(count: usize) -> Option<Self> {
        Some(Self((0..count).map(|_| AtomicU64::new(0)).collect()))
    }
}

impl Deref for Huge {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Deref for Small {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Deref for Plain {
    type Target = [AtomicU64];
    fn deref(&self) -> &[AtomicU64] {
        &self.0
    }
}

impl Table {
    /// Memory to read from.
    pub(crate) fn ground<G: Ground>(role: Role) -> Table {
        Table { label: G::LABEL, role, start: start::<G>, weigh: None }
    }
}

fn start<G: Ground>(_: &str, keys: u64) -> Option<Box<dyn Bench>> {
    let words = G::words(keys as usize * LINE)?;
    for (number, line) in words.chunks_exact(LINE).enumerate() {
        line[0].store(number as u64, Ordering::Relaxed);
    }
    Some(Box::new(Lines { words, lines: keys }))
}

/// Lines whose first word is their number.
struct Lines<G> {
    words: G,
    lines: u64,
}

impl<G: Ground> Lines<G> {
    #[inline(always)]
    fn line(&self, number: u64) -> &AtomicU64 {
        &self.words[number as usize * LINE]
    }

    #[inline(always)]
    fn is_right(&self, number: u64) -> bool {
        // Relaxed: the words were written before the threads started.
        self.line(number).load(Ordering::Relaxed) == number
    }

    /// Reads that do not depend on each other.
    fn independent(&self, drawn: &mut Drawn<Numbers>) -> u64 {
        (0..BATCH).map(|_| u64::from(!self.is_right(*drawn.next()))).sum()
    }

    /// The same, asked for ahead.
    fn prefetched(&self, drawn: &mut Drawn<Numbers>) -> u64 {
        let mut wrong = 0;
        for _ in 0..BATCH / AHEAD as u64 {
            let numbers: [u64; AHEAD] = std::array::from_fn(|_| *drawn.next());
            numbers.iter().for_each(|number| prefetch(self.line(*number)));
            wrong += numbers.iter().map(|number| u64::from(!self.is_right(*number))).sum::<u64>();
        }
        wrong
    }

    /// Each address depends on what was read before.
    fn chained(&self, number: &mut u64) -> u64 {
        let mut wrong = 0;
        for step in 0..BATCH {
            let found = self.line(*number).load(Ordering::Relaxed);
            wrong += u64::from(found != *number);
            *number = ((mix(found + step) >> 31) * self.lines) >> 32;
        }
        wrong
    }
}

impl<G: Ground> Bench for Lines<G> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        let laps = crew(heat.threads, |thread, gate| {
            let mut drawn = Drawn::new(Law::Uniform, self.lines, heat.round, thread);
            let mut number = *drawn.next();
            match heat.workload.name {
                "read" => for_a_while(stint, gate, || (BATCH, self.independent(&mut drawn))),
                "read-prefetch" => {
                    for_a_while(stint, gate, || (BATCH, self.prefetched(&mut drawn)))
                }
                "read-chain" => for_a_while(stint, gate, || (BATCH, self.chained(&mut number))),
                other => unreachable!("{other} reads no lines"),
            }
        });
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok(joint_rate(&laps))
    }
}
