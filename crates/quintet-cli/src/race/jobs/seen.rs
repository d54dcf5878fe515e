//! Sets made anew in every round: `grow`, `dup`, `memory`.

use super::life::fixed_work;
use crate::race::crew::{Lap, crew, shared_work, undisturbed, wrong};
use crate::race::family::{Bench, Heat, Role, Sample, Table, Wrong};
use crate::race::ground::{touch, trim};
use crate::race::keys::Dice;
use crate::race::stint::Stint;
use crate::race::timer::clocked;
use quintet::SeenSet;
use quintet::seen_set::{Growth, Handle};
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_rivals::{Kind, Label, mix};
use std::marker::PhantomData;

/// A record of N bytes, and no value.
pub(crate) struct Blob<const N: usize>;

impl<const N: usize> Kind for Blob<N> {
    type Key = [u8; N];
    type Query = [u8; N];
    type Value = ();
    type Keys = Vec<[u8; N]>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<[u8; N]> {
        indices.map(record).collect()
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&[u8; N]) -> R) -> R {
        f(&record(index))
    }
    #[inline(always)]
    fn own(query: &[u8; N]) -> [u8; N] {
        *query
    }
    fn value_of(_: &[u8; N], _: u64) {}
    fn is_of(_: &[u8; N], (): &()) -> bool {
        true
    }
}

/// Record number `index`: different in its first 8 bytes already.
#[inline(always)]
fn record<const N: usize>(index: u64) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..8].copy_from_slice(&mix(index).to_le_bytes());
    bytes[N - 8..].copy_from_slice(&index.to_le_bytes());
    bytes
}

/// A set that only grows, of records of N bytes.
pub(crate) trait Seen<const N: usize>: Sync {
    const LABEL: Label;
    /// Records come in batches of [`AT_ONCE`].
    const BATCH: bool = false;
    type Access<'a>
    where
        Self: 'a;

    fn new() -> Self;
    fn access(&self) -> Self::Access<'_>;
    /// Takes a record in. True if it is new.
    fn insert<'a>(access: &mut Self::Access<'a>, record: [u8; N]) -> bool
    where
        Self: 'a;
    /// Takes records in, all of them known before the first is told of: `tell` gets for each, in
    /// order, whether it is new. A set that has no better way inserts one after the other.
    #[inline(always)]
    fn insert_many<'a>(
        access: &mut Self::Access<'a>,
        records: impl Iterator<Item = [u8; N]>,
        mut tell: impl FnMut(bool),
    ) where
        Self: 'a,
    {
        records.for_each(|record| tell(Self::insert(access, record)));
    }
    fn quiet<'a>(_: &mut Self::Access<'a>)
    where
        Self: 'a,
    {
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Our set.
pub(crate) struct Ours<const N: usize>(SeenSet<[u8; N]>);
/// Our set, asked in batches.
pub(crate) struct OursBatch<const N: usize>(SeenSet<[u8; N]>);
/// Our set, growing together.
pub(crate) struct OursTogether<const N: usize>(SeenSet<[u8; N]>);

macro_rules! ours {
    ($name:ident, $label:literal, $growth:expr, $batch:tt) => {
        impl<const N: usize> Seen<N> for $name<N> {
            const LABEL: Label = Label::new($label, VERSION);
            type Access<'a> = Handle<'a, [u8; N]>;

            fn new() -> Self {
                Self(SeenSet::<[u8; N]>::builder().growth($growth).build())
            }
            fn access(&self) -> Self::Access<'_> {
                self.0.handle()
            }
            #[inline(always)]
            fn insert<'a>(access: &mut Self::Access<'a>, record: [u8; N]) -> bool
            where
                Self: 'a,
            {
                access.insert(record).is_new()
            }
            ours!(insert_many $batch);
        }
    };
    (insert_many single) => {};
    (insert_many batch) => {
        const BATCH: bool = true;

        #[inline(always)]
        fn insert_many<'a>(
            access: &mut Self::Access<'a>,
            records: impl Iterator<Item = [u8; N]>,
            mut tell: impl FnMut(bool),
        ) where
            Self: 'a,
        {
            access.insert_each(records, |insertion| tell(insertion.is_new()));
        }
    };
}
ours!(Ours, "quintet", Growth::Spread, single);
ours!(OursBatch, "quintet (batch)", Growth::Spread, batch);
ours!(OursTogether, "quintet (together)", Growth::Together, single);

/// A map whose insert leaves a known key alone.
pub(crate) struct Direct<M, const N: usize>(M);
/// A map whose insert replaces a known entry at some cost: better to look first.
pub(crate) struct Look<M, const N: usize>(M);

impl<M: Map<Blob<N>>, const N: usize> Seen<N> for Direct<M, N> {
    const LABEL: Label = M::LABEL;
    type Access<'a>
        = M::Access<'a>
    where
        Self: 'a;

    fn new() -> Self {
        Self(M::with_capacity(0))
    }
    fn access(&self) -> M::Access<'_> {
        self.0.access()
    }
    #[inline(always)]
    fn insert<'a>(access: &mut M::Access<'a>, record: [u8; N]) -> bool
    where
        Self: 'a,
    {
        access.insert(record, ())
    }
    #[inline(always)]
    fn quiet<'a>(access: &mut M::Access<'a>)
    where
        Self: 'a,
    {
        access.quiet();
    }
}

impl<M: Map<Blob<N>>, const N: usize> Seen<N> for Look<M, N> {
    const LABEL: Label = M::LABEL;
    type Access<'a>
        = M::Access<'a>
    where
        Self: 'a;

    fn new() -> Self {
        Self(M::with_capacity(0))
    }
    fn access(&self) -> M::Access<'_> {
        self.0.access()
    }
    #[inline(always)]
    fn insert<'a>(access: &mut M::Access<'a>, record: [u8; N]) -> bool
    where
        Self: 'a,
    {
        access.get(&record, |_| ()).is_none() && access.insert(record, ())
    }
    #[inline(always)]
    fn quiet<'a>(access: &mut M::Access<'a>)
    where
        Self: 'a,
    {
        access.quiet();
    }
}

impl Table {
    /// A set of records of 16 and of 64 bytes. This line is all that a set needs to take part.
    pub(crate) fn seen<A: Seen<16> + 'static, B: Seen<64> + 'static>(role: Role) -> Table {
        Table { label: A::LABEL, role, start: start::<A, B>, weigh: Some(weigh::<A>) }
    }
}

fn start<A: Seen<16> + 'static, B: Seen<64> + 'static>(
    stage: &str,
    _: u64,
) -> Option<Box<dyn Bench>> {
    match stage {
        "seen-16" => Some(Box::new(Search::<A, 16>(PhantomData))),
        "seen-64" => Some(Box::new(Search::<B, 64>(PhantomData))),
        _ => None,
    }
}

/// Grows a set from empty and steps on the scale.
fn weigh<A: Seen<16>>(keys: u64, scale: &mut dyn FnMut()) {
    let set = A::new();
    let mut access = set.access();
    for index in 0..keys {
        A::insert(&mut access, record(index));
        if index % BATCH == 0 {
            A::quiet(&mut access);
        }
    }
    drop(access);
    scale();
}

/// Known records asked for after each new one in `dup`.
const KNOWN: u64 = 3;

/// Records of a batch, new and known: the successors of a few states.
const AT_ONCE: usize = 64;

struct Search<A, const N: usize>(PhantomData<A>);

impl<A: Seen<N>, const N: usize> Search<A, N> {
    /// Takes in records that were made beforehand, of which every first of `1 + known` is new.
    /// Returns how many answers were wrong.
    #[inline(always)]
    fn take_in<'a>(access: &mut A::Access<'a>, records: &[[u8; N]], known: u64) -> u64
    where
        A: 'a,
    {
        let (mut wrong, mut nth) = (0, 0);
        let mut judge = |is_new| {
            wrong += u64::from(is_new != (nth == 0));
            nth = if nth == known { 0 } else { nth + 1 };
        };
        match A::BATCH {
            true => {
                for records in records.chunks(AT_ONCE) {
                    A::insert_many(access, records.iter().copied(), &mut judge);
                }
            }
            false => records.iter().for_each(|record| judge(A::insert(access, *record))),
        }
        A::quiet(access);
        wrong
    }

    /// Each thread inserts a part of the records, and after each one `known` of those it has
    /// inserted before. The records of a batch are made while the clock stands still.
    fn search(heat: &Heat, known: u64) -> Result<Lap, Wrong> {
        let set = A::new();
        let bound = |thread: usize| heat.keys * thread as u64 / heat.threads as u64;
        let laps = crew(heat.threads, |thread, gate| {
            let mut access = set.access();
            let mut dice = Dice::new(heat.round, thread);
            let (first, last) = (bound(thread), bound(thread + 1));
            let mut records = Vec::with_capacity(BATCH as usize);
            gate.wait();
            undisturbed(|| {
                let mut all = Lap::default();
                for start in (first..last).step_by((BATCH / (1 + known)) as usize) {
                    records.clear();
                    for index in start..last.min(start + BATCH / (1 + known)) {
                        records.push(record(index));
                        let old = (0..known).map(|_| first + dice.below(index - first + 1));
                        records.extend(old.map(record::<N>));
                    }
                    let (wrong, busy) = clocked(|| Self::take_in(&mut access, &records, known));
                    all.operations += records.len() as u64;
                    all.wrong += wrong;
                    all.busy += busy;
                }
                all
            })
        });
        Wrong::unless_zero(wrong(&laps), "insert")?;
        // What one thread has inserted another finds.
        let mut access = set.access();
        let lost = (0..heat.keys.min(10_000)).filter(|i| A::insert(&mut access, record(*i)));
        Wrong::unless_zero(lost.count() as u64, "insert of a known record")?;
        Ok(shared_work(&laps))
    }
}

impl<A: Seen<N>, const N: usize> Bench for Search<A, N> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        if !heat.workload.name.ends_with("-kept") {
            trim();
            touch(heat.keys * (32 + 2 * N as u64));
        }
        let known = if heat.workload.name.starts_with("dup") { KNOWN } else { 0 };
        fixed_work(stint, || Self::search(heat, known))
    }
}
