//! One line of results.

use super::family::Measure;
use serde::{Deserialize, Serialize};

/// One table in one workload, with so many threads and keys. Absent fields are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
#[serde(default)]
pub(crate) struct Record {
    pub(crate) family: String,
    pub(crate) workload: String,
    pub(crate) measure: Measure,
    pub(crate) table: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<usize>,
    pub(crate) keys: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) mops: Option<f64>,
    pub(crate) rounds: usize,
    #[serde(flatten)]
    pub(crate) latency: Option<Slowest>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) bytes_per_entry: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) hit_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) ratio_to_best_rival: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) ratio_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) ratio_high: Option<f64>,
    /// What it answered, if it answered wrong: it has no figures and is nobody's rival here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) struck: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) limit: bool,
    /// Bytes that the allocator handed out and that were mapped, per entry; for people only.
    #[serde(skip)]
    pub(crate) beside: Option<(f64, f64)>,
}

/// Latency over the rounds: medians of the rounds' figures, and of the worst also the best round,
/// since every disturbance that was not noticed only adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
pub(crate) struct Slowest {
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p9999_ns: u64,
    /// The slowest operation without switches, stolen time and page faults.
    pub(crate) max_ns: u64,
    pub(crate) max_best_ns: u64,
    /// The same with the page faults of the operation itself.
    pub(crate) max_faults_ns: u64,
    pub(crate) max_faults_best_ns: u64,
    /// Operations set apart in the median round.
    pub(crate) disturbed: u64,
    /// The worst gap of an empty loop of the same length.
    pub(crate) jitter_ns: u64,
}

impl Record {
    /// How many took part: processes, or threads of one.
    pub(crate) fn racers(&self) -> usize {
        self.processes.unwrap_or(self.threads)
    }

    /// The same in words.
    pub(crate) fn crowd(&self) -> String {
        let (one, more) = match self.processes {
            Some(_) => ("process", "processes"),
            None => ("thread", "threads"),
        };
        format!("{} {}", self.racers(), if self.racers() == 1 { one } else { more })
    }

    /// The figure that decides; `None` for a table that was struck.
    pub(crate) fn figure(&self) -> Option<f64> {
        match self.measure {
            Measure::Rate => self.mops,
            Measure::Worst => self.latency.map(|latency| latency.max_ns as f64),
            Measure::Held | Measure::Bytes => self.bytes_per_entry,
            Measure::Hits => self.hit_ratio,
        }
    }

    /// What rows are sorted by; more is better.
    pub(crate) fn goodness(&self) -> f64 {
        let figure = self
            .figure()
            .map(|figure| if self.measure.more_is_better() { figure } else { -figure });
        figure.unwrap_or(f64::NEG_INFINITY)
    }

    /// Whether two rows are of the same contest.
    pub(crate) fn is_beside(&self, other: &Record) -> bool {
        let contest = |record: &Record| (record.keys, record.threads, record.processes);
        (&self.family, &self.workload) == (&other.family, &other.workload)
            && contest(self) == contest(other)
    }
}

/// Four decimals are more than any of these figures deserves.
fn rounded<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value.unwrap_or(0.0) * 1e4).round() / 1e4)
}

/// Anything as JSON lines.
pub(crate) fn json_lines(lines: &[impl Serialize]) -> String {
    let line = |line| serde_json::to_string(line).expect("a line has no maps to fail on");
    lines.iter().map(|one| line(one) + "\n").collect()
}
