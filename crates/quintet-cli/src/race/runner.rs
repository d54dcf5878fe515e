//! Paired rounds: in every round each table runs once, in turn, so that all see the same weather.

use super::family::{Bench, Heat, Measure, Role, Sample, Table, Workload, Wrong};
use super::plan::{Clock, Stage};
use super::record::Record;
use super::stats::{median, ratio};
use super::watch::Watch;
use crate::fail::Fail;
use indicatif::ProgressBar;
use quintet_rivals::Label;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// A table on the track, with what it gave in each workload of the turn.
struct Lane {
    label: Label,
    role: Role,
    bench: Box<dyn Bench>,
    samples: Vec<Vec<Sample>>,
    /// It panicked: what it holds may be anything, so it is out for the rest of the stage.
    broken: bool,
}

impl Lane {
    /// A table whose answers cannot be believed is a yardstick.
    fn role(&self, threads: usize) -> Role {
        if self.bench.is_exact(threads) { self.role } else { Role::Limit }
    }

    /// Runs a round. A rival that panics breaks down and gives no sample; ours gives a wrong answer.
    fn round(
        &mut self,
        heat: &Heat,
        slot: Duration,
        watch: &Watch,
    ) -> Result<Option<Sample>, Wrong> {
        if self.broken {
            return Ok(None);
        }
        let what = format!("{} in {}", self.label.name, heat.workload.name);
        let round = || catch_unwind(AssertUnwindSafe(|| self.bench.round(heat, slot)));
        let result = watch.over(what, round);
        match (result, self.role) {
            (Ok(sample), _) => sample.map(Some),
            (Err(_), Role::Ours) => Err(Wrong("it panicked".to_owned())),
            (Err(_), _) => {
                self.broken = true;
                Ok(None)
            }
        }
    }
}

/// What became of a stage.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The results.
    pub(crate) records: Vec<Record>,
    /// What did not run, and why.
    pub(crate) skipped: Vec<String>,
}

/// What all stages of a race share.
pub(crate) struct Course {
    /// Rounds per contest.
    pub(crate) rounds: usize,
    /// The time.
    pub(crate) clock: Clock,
    /// The progress.
    pub(crate) bar: ProgressBar,
    /// Notices a table that hangs.
    pub(crate) watch: Watch,
}

impl Course {
    /// Tells that one contest is over, and how its length compares with its rounds.
    pub(crate) fn step(&mut self, weight: f64, stretch: Option<f64>) {
        self.clock.done(weight, stretch);
        self.bar.inc(1);
    }
}

/// Runs all contests of a timed stage.
pub(crate) fn run_stage(
    stage: &Stage<'_>,
    tables: &[Table],
    course: &mut Course,
) -> Result<Outcome, Fail> {
    let mut outcome = Outcome::default();
    if course.clock.is_up() {
        let what = format!("{} {}, {} keys", stage.family.name, stage.name, stage.keys);
        outcome.skipped.push(format!("{what}: no time left"));
        return Ok(outcome);
    }
    course.bar.set_message(format!("{} {}: making tables", stage.family.name, stage.name));
    let mut lanes: Vec<Lane> = tables.iter().filter_map(|table| lane(stage, table)).collect();
    for turn in &stage.turns {
        for &threads in &stage.threads {
            let names: Vec<&str> = turn.iter().map(|workload| workload.name).collect();
            let title = format!("{} {}", stage.family.name, names.join("+"));
            let heat = format!("{title}, {} keys, {threads} threads", stage.keys);
            course.bar.set_message(heat.clone());
            let finished = run_turn(stage, turn, threads, &mut lanes, course)?;
            for lane in lanes.iter().filter(|lane| lane.broken) {
                outcome.skipped.push(format!("{heat}: {} panicked and is out", lane.label.name));
            }
            lanes.retain(|lane| !lane.broken);
            match finished {
                Some(_) => outcome.records.extend(records(stage, turn, threads, &lanes)),
                None => outcome.skipped.push(format!("{heat}: no time left")),
            }
            course.step(stage.weight(), finished);
        }
    }
    for lane in &mut lanes {
        let result = lane.bench.finish();
        result.map_err(|error| failed(stage, stage.name, lane, &error))?;
    }
    Ok(outcome)
}

fn lane(stage: &Stage<'_>, table: &Table) -> Option<Lane> {
    let bench = (table.start)(stage.name, stage.keys)?;
    Some(Lane { label: table.label, role: table.role, bench, samples: Vec::new(), broken: false })
}

/// Runs one turn with so many threads, and says how many times as long as its rounds it took; `None`
/// if there was no time.
fn run_turn(
    stage: &Stage<'_>,
    turn: &[&'static Workload],
    threads: usize,
    lanes: &mut [Lane],
    course: &Course,
) -> Result<Option<f64>, Fail> {
    let rounds = course.rounds;
    let all = (rounds + 1) * lanes.len() * turn.len();
    let slot = course.clock.slot(stage.weight(), all);
    let begun = Instant::now();
    lanes.iter_mut().for_each(|lane| lane.samples = vec![Vec::new(); turn.len()]);
    for round in 0..=rounds {
        let start = Instant::now();
        for lane in lanes.iter_mut().filter(|lane| !lane.broken) {
            if course.clock.is_up() {
                return Ok(None);
            }
            for (place, workload) in turn.iter().enumerate() {
                if !lane.bench.joins(workload) {
                    continue;
                }
                let heat = Heat { workload, threads, keys: stage.keys, round: round as u64 };
                match lane.round(&heat, slot, &course.watch) {
                    Ok(Some(sample)) if round > 0 => lane.samples[place].push(sample),
                    Ok(_) => {}
                    Err(wrong) => return Err(failed(stage, workload.name, lane, &wrong)),
                }
            }
        }
        // Fixed work takes as long as it takes: after the warm-up its length is known.
        let rest = start.elapsed().mul_f64(rounds as f64);
        if round == 0 && course.clock.forbids(stage.weight(), rest) {
            return Ok(None);
        }
    }
    Ok(Some(begun.elapsed().as_secs_f64() / (slot.as_secs_f64() * all as f64)))
}

fn failed(stage: &Stage<'_>, workload: &str, lane: &Lane, wrong: &Wrong) -> Fail {
    Fail::no(
        format!("{} gave a wrong answer in {} {workload}", lane.label.name, stage.family.name),
        wrong.0.clone(),
        "a race with a wrong answer has no result; report the table's defect",
    )
}

/// The figures of one lane that decide a workload, round by round.
fn figures(lane: &Lane, place: usize, measure: Measure) -> Vec<f64> {
    let worst = |sample: &Sample| sample.latency.map_or(f64::NAN, |latency| latency.max_ns as f64);
    match measure {
        Measure::Worst => lane.samples[place].iter().map(worst).collect(),
        Measure::Held => lane.samples[place].iter().filter_map(|sample| sample.bytes).collect(),
        _ => lane.samples[place].iter().map(|sample| sample.mops).collect(),
    }
}

fn records(
    stage: &Stage<'_>,
    turn: &[&'static Workload],
    threads: usize,
    lanes: &[Lane],
) -> Vec<Record> {
    let mut records = Vec::new();
    for (place, workload) in turn.iter().enumerate() {
        let best = best_rival(lanes, threads, place, workload.measure);
        for lane in lanes.iter().filter(|lane| lane.bench.joins(workload)) {
            let by_processes = lane.bench.is_by_processes();
            let mut record = Record {
                family: stage.family.name,
                workload: workload.name,
                table: lane.label.name,
                version: lane.label.version,
                threads: if by_processes { 1 } else { threads },
                processes: by_processes.then_some(threads),
                keys: stage.keys,
                rounds: lane.samples[place].len(),
                limit: lane.role(threads) == Role::Limit,
                ..Record::default()
            };
            describe(&mut record, &lane.samples[place]);
            if lane.role(threads) == Role::Ours {
                let ours = figures(lane, place, workload.measure);
                let more_is_better = workload.measure == Measure::Rate;
                let paired = best.as_ref().and_then(|best| ratio(&ours, best, more_is_better));
                record.ratio_to_best_rival = paired.map(|ratio| ratio.median);
                record.ratio_low = paired.map(|ratio| ratio.low);
                record.ratio_high = paired.map(|ratio| ratio.high);
            }
            records.push(record);
        }
    }
    records
}

/// The rounds of the rival with the best median.
fn best_rival(lanes: &[Lane], threads: usize, place: usize, measure: Measure) -> Option<Vec<f64>> {
    let rivals = lanes.iter().filter(|lane| lane.role(threads) == Role::Rival);
    let rounds = rivals.map(|lane| figures(lane, place, measure));
    let better = |a: &Vec<f64>, b: &Vec<f64>| match measure {
        Measure::Rate => median(a).total_cmp(&median(b)),
        _ => median(b).total_cmp(&median(a)),
    };
    rounds.max_by(better)
}

/// Medians over the rounds; of the slowest operation the best round, since every disturbance that
/// was not noticed only adds to it.
fn describe(record: &mut Record, samples: &[Sample]) {
    let over = |pick: &dyn Fn(&Sample) -> Option<f64>| {
        let values: Vec<f64> = samples.iter().filter_map(pick).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    record.mops = over(&|sample| Some(sample.mops));
    record.bytes_per_entry = over(&|sample| sample.bytes);
    record.hit_ratio = over(&|sample| sample.hit_ratio);
    record.p50_ns = over(&|s| s.latency.map(|l| l.p50_ns as f64)).map(|ns| ns as u64);
    record.p9999_ns = over(&|s| s.latency.map(|l| l.p9999_ns as f64)).map(|ns| ns as u64);
    let latencies = || samples.iter().filter_map(|sample| sample.latency);
    record.max_ns = latencies().map(|latency| latency.max_ns).min();
    record.max_own_ns = latencies().map(|latency| latency.max_own_ns).min();
    record.jitter_ns = latencies().map(|latency| latency.jitter_ns).max();
    let disturbed = latencies().min_by_key(|latency| latency.max_ns);
    record.disturbed = disturbed.map(|latency| latency.disturbed);
}

/// Copies the latency of a stamped workload to the line of the workload that it times.
pub(crate) fn join_latency(records: &mut [Record]) {
    let timed: Vec<Record> =
        records.iter().filter(|record| record.workload.ends_with("-latency")).cloned().collect();
    for record in records {
        let same = |timed: &&Record| {
            timed.workload.strip_suffix("-latency") == Some(record.workload)
                && (timed.family, timed.table) == (record.family, record.table)
                && (timed.threads, timed.keys) == (record.threads, record.keys)
        };
        if let Some(timed) = timed.iter().find(same) {
            (record.p50_ns, record.p9999_ns) = (timed.p50_ns, timed.p9999_ns);
            (record.max_ns, record.disturbed) = (timed.max_ns, timed.disturbed);
            (record.max_own_ns, record.jitter_ns) = (timed.max_own_ns, timed.jitter_ns);
        }
    }
}
