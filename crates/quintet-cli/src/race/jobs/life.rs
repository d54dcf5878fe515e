//! Maps made anew in every round: `insert`, `remove`, `grow`.

use super::general::{census, fill};
use crate::race::crew::{Lap, crew, joint_rate, shared_work, undisturbed, wrong};
use crate::race::family::{Bench, Heat, Latency, Measure, Sample, Wrong};
use crate::race::ground::{touch, trim};
use crate::race::stint::Stint;
use crate::race::timer::clocked;
use quintet_rivals::Kind;
use quintet_rivals::general::{Access, BATCH, Map};
use quintet_testkit::latency::{self, LatencyRecorder};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// Inserts into a map made for its entries, then removes every other one.
pub(super) struct Life<T, M> {
    map: Option<M>,
    kind: PhantomData<T>,
}

impl<T: Kind, M: Map<T>> Life<T, M> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { map: None, kind: PhantomData }
    }

    fn insert(&mut self, heat: &Heat, allocates: bool) -> Result<Lap, Wrong> {
        self.map = None; // the last round's map goes before the clock starts
        let map = self.map.insert(M::with_capacity(heat.keys as usize));
        match allocates {
            true => in_parts(map, heat, 1, T::key, insert_made::<T, M>, NEW),
            false => in_parts(map, heat, 1, entry::<T>, insert::<T, M>, NEW),
        }
    }

    fn remove(&mut self, heat: &Heat) -> Result<Lap, Wrong> {
        let map = self.map.take().unwrap_or_else(|| {
            let map = M::with_capacity(heat.keys as usize);
            fill::<T, M>(&map, 0, heat.keys, 1);
            map
        });
        let remove = |access: &mut M::Access<'_>, key: T::Key| access.remove(key.borrow());
        let busy = in_parts(&map, heat, 2, T::key, remove, "remove of a present key")?;
        verify::<T, M>(&map, heat.keys, heat.keys / 2)?;
        Ok(busy)
    }
}

impl<T: Kind, M: Map<T>> Bench for Life<T, M> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        even_ground(heat);
        match heat.workload.name {
            "insert" | "insert-kept" => fixed_work(stint, || self.insert(heat, false)),
            "insert-alloc" => fixed_work(stint, || self.insert(heat, true)),
            "remove" => fixed_work(stint, || self.remove(heat)),
            other => unreachable!("{other} is no workload of a life"),
        }
    }
}

/// The warm-up of a growth has so many keys at most.
const WARM_UP: u64 = 1_000_000;

/// Inserts into a map that starts empty.
pub(super) struct Grow<T, M> {
    map: Option<M>,
    /// The worst gap of an empty loop, by the number of threads whose growth it was as long as.
    jitter: Option<(usize, u64)>,
    kind: PhantomData<T>,
}

impl<T: Kind, M: Map<T>> Grow<T, M> {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { map: None, jitter: None, kind: PhantomData }
    }

    fn grow(&mut self, heat: &Heat) -> Result<Lap, Wrong> {
        self.map = None;
        let map = self.map.insert(M::with_capacity(0));
        let busy = in_parts(map, heat, 1, entry::<T>, insert::<T, M>, NEW)?;
        verify::<T, M>(map, heat.keys, heat.keys)?;
        Ok(busy)
    }

    /// Times every insert of a growth. The warm-up needs no more than the code and its first pages,
    /// and no other table has to share the memory with this one's map.
    fn stamped(&mut self, heat: &Heat) -> Result<Sample, Wrong> {
        let warm_up = Heat { keys: heat.keys.min(WARM_UP), ..*heat };
        let heat = if heat.round == 0 { &warm_up } else { heat };
        let map = M::with_capacity(0);
        let results = crew(heat.threads, |thread, gate| {
            let mut access = map.access();
            let part = part(heat, thread, 1);
            gate.wait();
            let mut recorder = LatencyRecorder::new();
            let mut wrong = 0;
            for index in part {
                let (key, value) = (T::key(index), T::value(index, 0));
                wrong += u64::from(!recorder.measure(|| access.insert(key, value)));
                if index % BATCH == 0 {
                    access.quiet();
                }
            }
            (recorder.finish(), wrong)
        });
        Wrong::unless_zero(results.iter().map(|(_, wrong)| wrong).sum(), NEW)?;
        let mut parts = results.into_iter().map(|(latency, _)| latency);
        let mut all = parts.next().expect("a crew has members");
        parts.for_each(|part| all.merge(&part));
        let jitter_ns = match self.jitter {
            _ if heat.round == 0 => 0,
            Some((threads, jitter)) if threads == heat.threads => jitter,
            _ => latency::jitter(all.elapsed()).max_ns(),
        };
        self.jitter = (jitter_ns > 0).then_some((heat.threads, jitter_ns));
        Ok(Sample {
            mops: heat.keys as f64 / all.elapsed().as_secs_f64() / 1e6,
            operations: heat.keys,
            latency: Some(Latency::of(&all, jitter_ns)),
            ..Sample::default()
        })
    }
}

impl<T: Kind, M: Map<T>> Bench for Grow<T, M> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        even_ground(heat);
        match heat.workload.measure {
            Measure::Worst => self.stamped(heat),
            _ => fixed_work(stint, || self.grow(heat)),
        }
    }
}

/// What an insert must answer.
const NEW: &str = "insert of a new key";
/// More than a map takes per entry while it grows.
const ROOM: u64 = 128;

/// Makes the ground even for all tables before a map is made: the allocator gives back what it kept
/// from the tables before, and as much memory as a map needs is touched. Workloads whose name ends
/// in `-kept` run without, on whatever ground the tables before have left.
fn even_ground(heat: &Heat) {
    if !heat.workload.name.ends_with("-kept") {
        trim();
        touch(heat.keys * ROOM);
    }
}

/// The entries of one thread: a contiguous part, every `step`-th of it.
fn part(heat: &Heat, thread: usize, step: usize) -> impl Iterator<Item = u64> + use<> {
    let bound = |thread: usize| heat.keys * thread as u64 / heat.threads as u64;
    let first = bound(thread).next_multiple_of(step as u64);
    (first..bound(thread + 1)).step_by(step)
}

/// Entry `index`, to be inserted.
#[inline(always)]
fn entry<T: Kind>(index: u64) -> (T::Key, T::Value) {
    (T::key(index), T::value(index, 0))
}

#[inline(always)]
fn insert<T: Kind, M: Map<T>>(
    access: &mut M::Access<'_>,
    (key, value): (T::Key, T::Value),
) -> bool {
    access.insert(key, value)
}

/// Inserts a key with a value that is made inside the clock.
#[inline(always)]
fn insert_made<T: Kind, M: Map<T>>(access: &mut M::Access<'_>, key: T::Key) -> bool {
    let value = T::value_of(key.borrow(), 0);
    access.insert(key, value)
}

/// Runs `operation` once with what `prepare` makes of every `step`-th entry, split over the
/// threads; it says whether the answer was right. The time of the thread that was busy longest.
///
/// A batch is prepared while the clock stands still. To make a value may mean to allocate it, from
/// memory that the map of the round before has left in pieces, in the order of its hashes: with a
/// million of them that takes longer than to insert it.
#[inline(always)]
fn in_parts<'m, T: Kind, M: Map<T>, E>(
    map: &'m M,
    heat: &Heat,
    step: usize,
    prepare: impl Fn(u64) -> E + Sync,
    operation: impl Fn(&mut M::Access<'m>, E) -> bool + Sync,
    what: &'static str,
) -> Result<Lap, Wrong> {
    in_batches(map, heat, step, prepare, what, |access, batch| {
        batch.drain(..).map(|entry| u64::from(!operation(access, entry))).sum()
    })
}

/// The same by whole batches; `work` empties one, and says how many answers were wrong.
#[inline(always)]
fn in_batches<'m, T: Kind, M: Map<T>, E>(
    map: &'m M,
    heat: &Heat,
    step: usize,
    prepare: impl Fn(u64) -> E + Sync,
    what: &'static str,
    work: impl Fn(&mut M::Access<'m>, &mut Vec<E>) -> u64 + Sync,
) -> Result<Lap, Wrong> {
    let parts = crew(heat.threads, |thread, gate| {
        let mut access = map.access();
        let mut part = part(heat, thread, step).map(&prepare).peekable();
        let mut batch = Vec::with_capacity(BATCH as usize);
        gate.wait();
        undisturbed(|| {
            let (mut busy, mut operations, mut wrong) = (Duration::ZERO, 0, 0);
            while part.peek().is_some() {
                batch.extend(part.by_ref().take(BATCH as usize));
                operations += batch.len() as u64;
                let ((), time) = clocked(|| {
                    wrong += work(&mut access, &mut batch);
                    access.quiet();
                });
                busy += time;
            }
            Lap { operations, wrong, busy }
        })
    });
    Wrong::unless_zero(wrong(&parts), what)?;
    Ok(shared_work(&parts))
}

/// What `insert` does, by whole batches: `insert_all` returns how many keys were new.
pub(crate) fn insert_batches<T: Kind, M: Map<T>>(
    heat: &Heat,
    stint: Stint,
    insert_all: impl Fn(&mut M::Access<'_>, &mut Vec<(T::Key, T::Value)>) -> usize + Sync,
) -> Result<Sample, Wrong> {
    even_ground(heat);
    fixed_work(stint, || {
        let map = M::with_capacity(heat.keys as usize);
        let lap = in_batches::<T, M, _>(&map, heat, 1, entry::<T>, NEW, |access, batch| {
            let all = batch.len();
            (all - insert_all(access, batch)) as u64
        })?;
        verify::<T, M>(&map, heat.keys, heat.keys)?;
        Ok(lap)
    })
}

/// Repeats fixed work until the stint is over, at least once.
pub(super) fn fixed_work(
    stint: Stint,
    mut work: impl FnMut() -> Result<Lap, Wrong>,
) -> Result<Sample, Wrong> {
    let start = Instant::now();
    let mut all = Lap::default();
    loop {
        let lap = work()?;
        all.operations += lap.operations;
        all.busy += lap.busy;
        // By the clock on the wall: what is made and checked between takes as long as it takes.
        if stint.is_over(all.operations, start.elapsed()) {
            return Ok(joint_rate(&[all]));
        }
    }
}

/// Counts the entries of a small map; of a large one only the first ten thousand, since counting
/// would take longer than the work.
fn verify<T: Kind, M: Map<T>>(map: &M, keys: u64, expected: u64) -> Result<(), Wrong> {
    let looked_at = keys.min(10_000);
    let expected = if expected == keys { looked_at } else { looked_at / 2 };
    match census::<T, M>(map, looked_at) {
        (present, 0) if present == expected => Ok(()),
        (present, foreign) => Err(Wrong(format!(
            "{present} of the first {looked_at} entries where {expected} must be, {foreign} with a \
             foreign value"
        ))),
    }
}
