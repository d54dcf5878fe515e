//! What a check found.

use serde::Serialize;

/// What a check did and found. Counts that a check does not take are absent.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Verdict {
    /// Operations done and checked.
    pub(super) operations: u64,
    /// Histories checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) histories: Option<u64>,
    /// Answers that no order of operations explains.
    pub(super) violations: u64,
    /// What could not be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown: Option<u64>,
    /// Steps of the checker per operation; 1 means that the threads took turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) overlap: Option<f64>,
    /// Times that everybody was killed and what was left was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cycles: Option<u64>,
    /// Processes killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kills: Option<u64>,
    /// Operations without a result although nobody alive stood in their way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hangs: Option<u64>,
    /// Entries that should be there and are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lost: Option<u64>,
    /// Memory that was never given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leaks: Option<u64>,
    /// For people: the first findings.
    #[serde(skip)]
    pub(super) notes: Vec<String>,
}

/// One line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    family: &'a str,
    check: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    seed: u64,
}

impl Verdict {
    /// Nothing was violated, lost or leaked. What is unknown is no failure, but it is told.
    pub(super) fn holds(&self) -> bool {
        let none = |count: Option<u64>| count.unwrap_or(0) == 0;
        self.violations == 0 && none(self.lost) && none(self.hangs) && none(self.leaks)
    }

    /// The counts in a line for people.
    pub(super) fn summary(&self) -> String {
        let mut parts = vec![super::operations(self.operations)];
        parts.extend(self.histories.map(|n| format!("{n} histories")));
        parts.extend(self.overlap.map(|overlap| format!("overlap {overlap:.2}")));
        parts.push(format!("{} violations", self.violations));
        parts.extend(self.unknown.filter(|n| *n > 0).map(|n| format!("{n} unknown")));
        parts.extend(self.cycles.map(|n| format!("{n} cycles")));
        parts.extend(self.kills.map(|n| format!("{n} kills")));
        parts.extend(self.hangs.map(|n| format!("{n} hangs")));
        parts.extend(self.lost.map(|n| format!("{n} lost")));
        parts.extend(self.leaks.map(|n| format!("{n} leaks")));
        parts.join(", ")
    }

    /// One line of JSON.
    pub(super) fn json(&self, family: &str, check: &str, seed: u64) -> String {
        let line = Line { family, check, verdict: self, seed };
        serde_json::to_string(&line).expect("plain numbers and texts") + "\n"
    }
}
