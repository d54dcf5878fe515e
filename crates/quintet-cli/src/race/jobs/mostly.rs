//! Read-mostly maps: readers enter a section per get while one writer publishes now and then.

use crate::race::cores::take_core;
use crate::race::crew::{Gate, Lap, crew, for_a_while, joint_rate, wrong};
use crate::race::family::{Bench, Heat, Latency, Measure, Role, Sample, Table, Workload, Wrong};
use crate::race::keys::{Drawn, Law};
use crate::race::stint::Stint;
use crate::race::timer::clocked;
use quintet_rivals::read_mostly::{Guard, Reader, Writer};
use quintet_rivals::{Kind, Words};
use quintet_testkit::latency::{self, LatencyRecorder};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Gets between two looks at the clock, and gets per section in `read-1ms-batch256`.
const BATCH: u64 = 256;

const fn rate(name: &'static str, reason: &'static str) -> Workload {
    let (stage, turn) = ("mostly", name);
    Workload { name, reason, stage, turn, measure: Measure::Rate }
}

/// What every read-mostly map is measured by.
#[rustfmt::skip]
pub(crate) const WORKLOADS: &[Workload] = &[
    rate("read-idle", "a section per get while nobody writes: the bare cost of entering and leaving"),
    rate("read-1ms", "the same while the writer publishes one change every millisecond: a configuration, a routing table"),
    rate("read-1ms-batch256", "the same with 256 gets per section: what is left when entering costs nothing"),
    rate("read-storm", "the same while the writer publishes without pause: readers must not mind"),
    rate("write-batch1", "changes per second, published one by one, beside one reader less than threads: the price of two copies"),
    rate("write-batch16", "the same, published in sixteens"),
    rate("write-batch1000", "the same, published in thousands: the price per change alone"),
    rate("write-first", "a change and its publish right after a load, in keys of the load per second: is the load applied a second time?"),
    rate("publish-1h", "publishes of one change every 0.2 ms with one handle: how long does the writer take?"),
    rate("publish-100h", "the same with 100 handles to look at"),
    rate("publish-1000h", "the same with 1,000 handles to look at"),
];

impl Table {
    /// A read-mostly map. This line is all that a map needs to take part.
    pub(crate) fn mostly<W: Writer<Words>>(role: Role) -> Table {
        Table { label: W::LABEL, role, start: start::<W>, weigh: None }
    }
}

fn start<W: Writer<Words>>(stage: &str, keys: u64) -> Option<Box<dyn Bench>> {
    (stage == "mostly").then(|| Box::new(Mostly::<W>::new(keys)) as Box<dyn Bench>)
}

/// A map full of words.
struct Mostly<W> {
    writer: W,
    keys: u64,
}

/// What the writer does while others read.
#[derive(Clone, Copy)]
enum Pace {
    Idle,
    Every(Duration),
    Always,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const FIFTH: Duration = Duration::from_micros(200);

impl<W: Writer<Words>> Mostly<W> {
    fn new(keys: u64) -> Self {
        let mut writer = loaded::<W>(keys);
        // The second copy, if there is one, is brought up to date before anything is measured.
        writer.publish();
        Self { writer, keys }
    }

    /// Runs `write` on one thread and readers on `readers` more, until the readers' time is over.
    /// `write` is told whether to go on. Where there are as many cores as threads, each has its own.
    fn race<const PER_SECTION: u64, R: Send>(
        &mut self,
        heat: &Heat,
        stint: Stint,
        readers: usize,
        write: impl Fn(&mut W, &Gate, &dyn Fn() -> bool) -> R + Sync,
    ) -> Result<(Vec<Lap>, R), Wrong> {
        let handles: Vec<_> =
            (0..readers).map(|_| Mutex::new(Some(self.writer.reader()))).collect();
        let writer = Mutex::new(&mut self.writer);
        let (keys, reading) = (self.keys, AtomicUsize::new(readers));
        let results = crew(readers + 1, |thread, gate| {
            take_core(thread, readers + 1);
            let Some(handle) = handles.get(thread) else {
                let mut writer = writer.lock().expect("taken once");
                let go_on = || reading.load(Ordering::Relaxed) > 0;
                return (None, Some(write(&mut writer, gate, &go_on)));
            };
            let handle = handle.lock().expect("taken once").take().expect("one per thread");
            let lap = read::<W::Reader, PER_SECTION>(handle, heat, stint, keys, thread, gate);
            reading.fetch_sub(1, Ordering::Relaxed);
            (Some(lap), None)
        });
        let (laps, mut written): (Vec<_>, Vec<_>) = results.into_iter().unzip();
        let laps: Vec<Lap> = laps.into_iter().flatten().collect();
        Wrong::unless_zero(wrong(&laps), heat.workload.name)?;
        Ok((laps, written.pop().flatten().expect("the last of the crew writes")))
    }

    /// The rate of the readers beside a writer with this pace.
    fn reads<const PER_SECTION: u64>(
        &mut self,
        heat: &Heat,
        stint: Stint,
        pace: Pace,
    ) -> Result<Sample, Wrong> {
        let keys = self.keys;
        let (laps, ()) =
            self.race::<PER_SECTION, _>(heat, stint, heat.threads, |writer, gate, go_on| {
                let mut drawn = Drawn::<Words>::new(Law::Uniform, keys, heat.round, heat.threads);
                gate.arrive();
                while go_on() {
                    match pace {
                        Pace::Idle => {
                            std::thread::sleep(MILLISECOND);
                            continue;
                        }
                        Pace::Every(pause) => std::thread::sleep(pause),
                        Pace::Always => {}
                    }
                    change(writer, *drawn.next(), heat.round);
                    writer.publish();
                }
            })?;
        Ok(joint_rate(&laps))
    }

    /// The rate of the writer beside one reader less than threads.
    fn writes(&mut self, heat: &Heat, stint: Stint, batch: u64) -> Result<Sample, Wrong> {
        let keys = self.keys;
        let (_, lap) = self.race::<1, _>(heat, stint, heat.threads - 1, |writer, gate, _| {
            let mut drawn = Drawn::<Words>::new(Law::Uniform, keys, heat.round, heat.threads);
            for_a_while(stint, gate, || {
                (0..batch).for_each(|_| change(writer, *drawn.next(), heat.round));
                writer.publish();
                (batch, 0)
            })
        })?;
        Ok(joint_rate(&[lap]))
    }

    /// How long a change and its publish take right after a load.
    fn first_write(&self, heat: &Heat) -> Result<Sample, Wrong> {
        let mut writer = loaded::<W>(self.keys);
        let mut drawn = Drawn::<Words>::new(Law::Uniform, self.keys, heat.round, heat.threads);
        let key = *drawn.next();
        let ((), time) = clocked(|| {
            change(&mut writer, key, heat.round);
            writer.publish();
        });
        let right = writer.reader().enter().get(&key, |value| Words::is_of(&key, value));
        Wrong::unless_zero(u64::from(right != Some(true)), heat.workload.name)?;
        let mops = self.keys as f64 / time.as_secs_f64().max(1e-9) / 1e6;
        Ok(Sample { mops, operations: self.keys, ..Sample::default() })
    }

    /// How long a change and its publish take, with so many handles.
    fn publishes(&mut self, heat: &Heat, stint: Stint, handles: usize) -> Result<Sample, Wrong> {
        let idle = handles.saturating_sub(heat.threads);
        let idle: Vec<_> = (0..idle).map(|_| self.writer.reader()).collect();
        let keys = self.keys;
        let (_, (latency, time)) =
            self.race::<1, _>(heat, stint, heat.threads, |writer, gate, go_on| {
                let mut drawn = Drawn::<Words>::new(Law::Uniform, keys, heat.round, heat.threads);
                let (mut recorder, mut time) = (LatencyRecorder::new(), Duration::ZERO);
                gate.wait();
                while go_on() {
                    std::thread::sleep(FIFTH);
                    let publish = || {
                        change(writer, *drawn.next(), heat.round);
                        writer.publish();
                    };
                    time += clocked(|| recorder.measure(publish)).1;
                }
                (recorder.finish(), time)
            })?;
        drop(idle);
        let done = latency.samples() + latency.disturbed();
        Ok(Sample {
            mops: done as f64 / time.as_secs_f64().max(1e-9) / 1e6,
            operations: done,
            latency: Some(Latency::of(&latency, latency::jitter(MILLISECOND).max_ns())),
            ..Sample::default()
        })
    }
}

/// All keys, in one publish.
fn loaded<W: Writer<Words>>(keys: u64) -> W {
    let mut writer = W::with_capacity(keys as usize);
    for index in 0..keys {
        writer.insert(Words::key(index), Words::value(index, 0));
    }
    writer.publish();
    writer
}

fn change<W: Writer<Words>>(writer: &mut W, key: u64, round: u64) {
    writer.insert(key, Words::value_of(&key, round));
}

/// Reads for a while, so many gets per section.
fn read<R: Reader<Words>, const PER_SECTION: u64>(
    mut reader: R,
    heat: &Heat,
    stint: Stint,
    keys: u64,
    thread: usize,
    gate: &Gate,
) -> Lap {
    let mut drawn = Drawn::<Words>::new(Law::Uniform, keys, heat.round, thread);
    for_a_while(stint, gate, || {
        let mut wrong = 0;
        for _ in 0..BATCH / PER_SECTION {
            let mut guard = reader.enter();
            for _ in 0..PER_SECTION {
                let key = drawn.next();
                let right = guard.get(key, |value| Words::is_of(key, value));
                wrong += u64::from(right != Some(true));
            }
        }
        (BATCH, wrong)
    })
}

impl<W: Writer<Words>> Bench for Mostly<W> {
    fn round(&mut self, heat: &Heat, stint: Stint) -> Result<Sample, Wrong> {
        match heat.workload.name {
            "read-idle" => self.reads::<1>(heat, stint, Pace::Idle),
            "read-1ms" => self.reads::<1>(heat, stint, Pace::Every(MILLISECOND)),
            "read-1ms-batch256" => self.reads::<BATCH>(heat, stint, Pace::Every(MILLISECOND)),
            "read-storm" => self.reads::<1>(heat, stint, Pace::Always),
            "write-batch1" => self.writes(heat, stint, 1),
            "write-batch16" => self.writes(heat, stint, 16),
            "write-batch1000" => self.writes(heat, stint, 1000),
            "write-first" => self.first_write(heat),
            "publish-1h" => self.publishes(heat, stint, 1),
            "publish-100h" => self.publishes(heat, stint, 100),
            "publish-1000h" => self.publishes(heat, stint, 1000),
            other => unreachable!("{other} is no workload of a read-mostly map"),
        }
    }
}
