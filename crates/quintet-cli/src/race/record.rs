//! One line of results.

use serde::Serialize;

/// One table in one workload, with so many threads and keys. Absent fields are left out.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "the fields are the columns of the JSON lines")]
pub(crate) struct Record {
    pub(crate) family: &'static str,
    pub(crate) workload: &'static str,
    pub(crate) table: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<&'static str>,
    pub(crate) threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<usize>,
    pub(crate) keys: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded")]
    pub(crate) mops: Option<f64>,
    pub(crate) rounds: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p9999_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_own_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disturbed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter_ns: Option<u64>,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) limit: bool,
    /// Bytes that the allocator handed out and that were mapped, per entry; for people only.
    #[serde(skip)]
    pub(crate) beside: Option<(f64, f64)>,
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
}

/// Four decimals are more than any of these figures deserves.
fn rounded<S: serde::Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value.unwrap_or(0.0) * 1e4).round() / 1e4)
}

/// The records as JSON lines.
pub(crate) fn json_lines(records: &[Record]) -> String {
    let line = |record| serde_json::to_string(record).expect("a record has no maps to fail on");
    records.iter().map(|record| line(record) + "\n").collect()
}
