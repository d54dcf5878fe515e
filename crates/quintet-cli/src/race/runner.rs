//! Paired rounds: in every round each table runs once, in turn, so that all see the same weather.

use super::family::{Bench, Heat, Latency, Measure, Role, Sample, Table, Workload, Wrong};
use super::plan::{Clock, Stage};
use super::record::{Record, Slowest};
use super::stats::{median, ratio};
use super::stint::Stint;
use super::watch::Watch;
use crate::fail::Fail;
use crate::output::is_interrupted;
use indicatif::ProgressBar;
use quintet_rivals::Label;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// A table on the track, with what it gave in each workload of the turn.
struct Lane {
    label: Label,
    role: Role,
    bench: Box<dyn Bench>,
    samples: Vec<Vec<Sample>>,
    /// What it answered wrong in this turn, which goes on without it.
    struck: Option<String>,
    /// It panicked: what it holds may be anything, so it is out for the rest of the stage.
    broken: bool,
}

impl Lane {
    /// Whether the race goes on with it.
    fn is_in(&self) -> bool {
        self.struck.is_none()
    }

    /// Does something with the table. A rival that answers wrong or panics is struck and gives
    /// nothing.
    fn attempt<R>(
        &mut self,
        work: impl FnOnce(&mut dyn Bench) -> Result<R, Wrong>,
    ) -> Result<Option<R>, Wrong> {
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut *self.bench)));
        self.broken |= result.is_err();
        let result = result.unwrap_or_else(|_| Err(Wrong("it panicked".to_owned())));
        match (result, self.role) {
            (Ok(result), _) => Ok(Some(result)),
            (Err(wrong), Role::Ours) => Err(wrong),
            (Err(Wrong(what)), _) => {
                self.struck = Some(what);
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
            match finished {
                Some(_) => outcome.records.extend(records(stage, turn, threads, &lanes)),
                None => outcome.skipped.push(format!("{heat}: no time left")),
            }
            course.step(stage.weight(), finished);
        }
    }
    Ok(outcome)
}

fn lane(stage: &Stage<'_>, table: &Table) -> Option<Lane> {
    let bench = (table.start)(stage.name, stage.keys)?;
    let (label, role) = (table.label, table.role);
    Some(Lane { label, role, bench, samples: Vec::new(), struck: None, broken: false })
}

/// Runs one turn with so many threads, and says how many times as long as its rounds it took;
/// `None` if there was no time.
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
    for lane in lanes.iter_mut() {
        lane.samples = vec![Vec::new(); turn.len()];
        lane.struck = lane.struck.take().filter(|_| lane.broken);
    }
    for round in 0..=rounds {
        let start = Instant::now();
        for lane in lanes.iter_mut() {
            if course.clock.is_up() || is_interrupted() {
                return Ok(None);
            }
            for (place, workload) in turn.iter().enumerate() {
                if !lane.is_in() || !lane.bench.joins(workload) {
                    continue;
                }
                let heat = Heat { workload, threads, keys: stage.keys, round: round as u64 };
                let what = format!("{} in {}", lane.label.name, workload.name);
                let sample = lane.attempt(|bench| {
                    let sample =
                        course.watch.over(what, || bench.round(&heat, Stint::Time(slot)))?;
                    if round == rounds {
                        bench.check(&heat)?;
                    }
                    Ok(sample)
                });
                if is_interrupted() {
                    // Servers and racing processes may have heard it, too, and be gone.
                    return Ok(None);
                }
                let sample = sample.map_err(|wrong| failed(stage, workload.name, lane, &wrong))?;
                lane.samples[place].extend(sample.filter(|_| round > 0));
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
        let best = best_rival(lanes, place, workload);
        for lane in lanes.iter().filter(|lane| lane.bench.joins(workload)) {
            let by_processes = lane.bench.is_by_processes();
            let mut record = Record {
                family: stage.family.name.to_owned(),
                workload: workload.name.to_owned(),
                measure: workload.measure,
                table: lane.label.name.to_owned(),
                version: lane.label.version.map(str::to_owned),
                threads: if by_processes { 1 } else { threads },
                processes: by_processes.then_some(threads),
                keys: stage.keys,
                struck: lane.struck.clone(),
                limit: lane.role == Role::Limit,
                ..Record::default()
            };
            if lane.is_in() {
                describe(&mut record, &lane.samples[place]);
            }
            if lane.role == Role::Ours {
                let ours = figures(lane, place, workload.measure);
                let more_is_better = workload.measure.more_is_better();
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
fn best_rival(lanes: &[Lane], place: usize, workload: &Workload) -> Option<Vec<f64>> {
    let rivals = lanes.iter().filter(|lane| lane.role == Role::Rival && lane.is_in());
    let rivals = rivals.filter(|lane| lane.bench.joins(workload));
    let rounds = rivals.map(|lane| figures(lane, place, workload.measure));
    let better = |a: &Vec<f64>, b: &Vec<f64>| match workload.measure.more_is_better() {
        true => median(a).total_cmp(&median(b)),
        false => median(b).total_cmp(&median(a)),
    };
    rounds.max_by(better)
}

/// Medians over the rounds.
fn describe(record: &mut Record, samples: &[Sample]) {
    let over = |pick: &dyn Fn(&Sample) -> Option<f64>| {
        let values: Vec<f64> = samples.iter().filter_map(pick).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    record.rounds = samples.len();
    record.mops = over(&|sample| Some(sample.mops));
    record.bytes_per_entry = over(&|sample| sample.bytes);
    record.hit_ratio = over(&|sample| sample.hit_ratio);
    let latencies: Vec<Latency> = samples.iter().filter_map(|sample| sample.latency).collect();
    record.latency = slowest(&latencies);
}

/// Latency over the rounds.
fn slowest(rounds: &[Latency]) -> Option<Slowest> {
    let middle = |pick: fn(&Latency) -> u64| {
        median(&rounds.iter().map(|round| pick(round) as f64).collect::<Vec<_>>()) as u64
    };
    let best = |pick: fn(&Latency) -> u64| rounds.iter().map(pick).min();
    Some(Slowest {
        p50_ns: middle(|round| round.p50_ns),
        p99_ns: middle(|round| round.p99_ns),
        p9999_ns: middle(|round| round.p9999_ns),
        max_ns: middle(|round| round.max_ns),
        max_best_ns: best(|round| round.max_ns)?,
        max_faults_ns: middle(|round| round.max_faults_ns),
        max_faults_best_ns: best(|round| round.max_faults_ns)?,
        disturbed: middle(|round| round.disturbed),
        jitter_ns: rounds.iter().map(|round| round.jitter_ns).max()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_the_rounds_is_their_median_and_their_best() {
        let round = |max_ns, jitter_ns| Latency {
            p50_ns: 10,
            p99_ns: 20,
            p9999_ns: 30,
            max_ns,
            max_faults_ns: 2 * max_ns,
            disturbed: 4,
            jitter_ns,
        };
        let found = slowest(&[round(900, 1), round(100, 7), round(300, 2)]).unwrap();
        assert_eq!((found.p50_ns, found.p99_ns, found.p9999_ns), (10, 20, 30));
        assert_eq!((found.max_ns, found.max_best_ns), (300, 100));
        assert_eq!((found.max_faults_ns, found.max_faults_best_ns), (600, 200));
        assert_eq!((found.disturbed, found.jitter_ns), (4, 7));
        assert_eq!(slowest(&[]), None);
    }

    /// A table that answers wrong from its second round on, or never.
    struct Clumsy(bool);

    impl Bench for Clumsy {
        fn round(&mut self, heat: &Heat, _: Stint) -> Result<Sample, Wrong> {
            Wrong::unless_zero(u64::from(self.0 && heat.round > 1), "hit")?;
            Ok(Sample { mops: 1.0, ..Sample::default() })
        }
    }

    fn clumsy(role: Role, is_wrong: bool) -> Lane {
        let label = Label { name: "clumsy", version: None };
        let bench = Box::new(Clumsy(is_wrong));
        Lane { label, role, bench, samples: Vec::new(), struck: None, broken: false }
    }

    /// Runs a contest of two rivals, the second of which answers wrong, and one of ours.
    fn contest(ours_is_wrong: bool) -> Result<Vec<Record>, Fail> {
        let families = crate::race::families::all();
        let wish = crate::race::plan::Wish {
            story: false,
            prefix: "hit".to_owned(),
            threads: vec![1],
            keys: Some(vec![10]),
            quick: true,
        };
        let stages = crate::race::plan::stages(&[&families[3]], &wish);
        let course = Course {
            rounds: 3,
            clock: Clock::new(None, &stages),
            bar: ProgressBar::hidden(),
            watch: Watch::start(),
        };
        let mut lanes = [
            clumsy(Role::Ours, ours_is_wrong),
            clumsy(Role::Rival, false),
            clumsy(Role::Rival, true),
        ];
        let turn = &stages[0].turns[0];
        run_turn(&stages[0], turn, 1, &mut lanes, &course)?;
        Ok(records(&stages[0], turn, 1, &lanes))
    }

    #[test]
    fn a_rival_that_answers_wrong_is_struck_and_the_race_goes_on() {
        let Ok(rows) = contest(false) else { panic!("the race ended") };
        assert_eq!(rows[0].ratio_to_best_rival, Some(1.0));
        assert_eq!((rows[1].mops, rows[1].struck.as_deref()), (Some(1.0), None));
        assert_eq!(rows[2].struck.as_deref(), Some("1 wrong answers to hit"));
        assert_eq!((rows[2].mops, rows[2].rounds), (None, 0));
    }

    #[test]
    fn our_own_wrong_answer_ends_the_race() {
        let Err(fail) = contest(true) else { panic!("the race went on") };
        assert_eq!(fail.show(), crate::fail::Exit::No);
    }
}
