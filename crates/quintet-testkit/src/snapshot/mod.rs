//! Snapshots: did every read guard see exactly one published version, and never an older one?
//!
//! A two-copy map has one writer, which publishes versions, and readers, which take guards. Three
//! rules, numbered as [`Broken`] names them:
//!
//! 1. *One version*: everything seen through one guard is explained by one version, which was
//!    not published after the guard was taken.
//! 2. *Never back*: on one handle, a later guard sees no older version.
//! 3. *At once* (only [`Publish::AtOnce`]): a guard taken after a publish returned sees it, and a
//!    guard taken after another guard, on whatever handle, sees no older version.
//!
//! A view may fit several versions. Guards are walked in the order in which they were asked for,
//! and each gets the oldest version that fits; a newer one would only narrow what later guards
//! may see.

mod drive;
mod log;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

pub use drive::{SnapshotPlan, SnapshotReader, SnapshotUnderTest, SnapshotWriter, View, record};
pub use log::{GuardLog, GuardView, PublishLog, Published, SnapshotHistory};

use crate::model::SnapshotModel;

/// What a map promises about the moment of a publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Publish {
    /// A publish is one moment for all readers.
    #[default]
    AtOnce,
    /// Each reader switches at a moment of its own.
    HandleByHandle,
}

/// Which rule a guard broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Rule 1.
    OneVersion,
    /// Rule 2.
    NeverBack,
    /// Rule 3.
    AtOnce,
}

/// A guard that no version explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotViolation {
    /// The rule it broke.
    pub broken: Broken,
    /// What was seen.
    pub guard: GuardView,
    /// The versions the guard could have seen.
    pub allowed: (u64, u64),
    /// The oldest version that explains it, if any does.
    pub explained_by: Option<u64>,
}

/// What a check found; reports of several histories add up.
#[derive(Clone, Debug, Default)]
pub struct SnapshotReport {
    /// Guards checked.
    pub guards: u64,
    /// Versions published.
    pub versions: u64,
    /// Histories checked.
    pub histories: u64,
    /// Guards taken while a publish was running.
    pub overlapping: u64,
    /// The guards that broke a rule.
    pub violations: Vec<SnapshotViolation>,
}

/// Checks a history.
pub fn check(history: &SnapshotHistory, publish: Publish) -> SnapshotReport {
    let mut model = SnapshotModel::new();
    for published in &history.published {
        model.publish(&published.changes);
    }
    let mut guards: Vec<&GuardView> = history.guards.iter().collect();
    guards.sort_by_key(|guard| (guard.asked, guard.taken));
    let mut report = SnapshotReport {
        guards: guards.len() as u64,
        versions: model.version(),
        histories: 1,
        ..SnapshotReport::default()
    };
    let mut floors = Floors::default();
    for guard in guards {
        let newest = history.started_before(guard.taken);
        let finished = history.finished_before(guard.asked);
        report.overlapping += u64::from(finished < newest);
        let own = floors.of_handle(guard.handle);
        let common = match publish {
            Publish::AtOnce => finished.max(floors.of_all(guard.asked)),
            Publish::HandleByHandle => 0,
        };
        let found = first_match(&model, own.max(common), guard).filter(|&v| v <= newest);
        if let Some(version) = found {
            floors.note(guard, version);
            continue;
        }
        let explained_by = first_match(&model, 0, guard).filter(|&v| v <= newest);
        let broken = if explained_by.is_none() {
            Broken::OneVersion
        } else if first_match(&model, own, guard).filter(|&v| v <= newest).is_none() {
            Broken::NeverBack
        } else {
            Broken::AtOnce
        };
        let allowed = (own.max(common), newest);
        let guard = guard.clone();
        report.violations.push(SnapshotViolation { broken, guard, allowed, explained_by });
    }
    report
}

/// The oldest version from `from` on that explains what a guard saw and, where the map tells its
/// version, is the one it told.
fn first_match(model: &SnapshotModel, from: u64, guard: &GuardView) -> Option<u64> {
    match guard.version {
        None => model.first_match(from, &guard.seen),
        Some(version) if version < from => None,
        Some(version) => model.first_match(version, &guard.seen).filter(|&v| v == version),
    }
}

/// The oldest version that a guard may see because of guards before it.
#[derive(Default)]
struct Floors {
    by_handle: HashMap<u32, u64>,
    /// Guards taken, not yet known to be over before the next was asked for.
    recent: Vec<(u64, u64)>,
    common: u64,
}

impl Floors {
    fn of_handle(&self, handle: u32) -> u64 {
        self.by_handle.get(&handle).copied().unwrap_or(0)
    }

    /// The newest version among guards that were taken before `asked`, which never decreases.
    fn of_all(&mut self, asked: u64) -> u64 {
        let common = &mut self.common;
        self.recent.retain(|&(taken, version)| {
            if taken < asked {
                *common = (*common).max(version);
            }
            taken >= asked
        });
        *common
    }

    fn note(&mut self, guard: &GuardView, version: u64) {
        self.by_handle.insert(guard.handle, version);
        self.recent.push((guard.taken, version));
    }
}

impl SnapshotReport {
    /// No guard broke a rule.
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }

    /// Adds another report.
    pub fn merge(&mut self, other: SnapshotReport) {
        self.guards += other.guards;
        self.versions += other.versions;
        self.histories += other.histories;
        self.overlapping += other.overlapping;
        self.violations.extend(other.violations);
    }

    /// Ends a test.
    ///
    /// # Panics
    /// Unless the report [passed](Self::passed), with the first violations.
    #[track_caller]
    pub fn expect_pass(&self, what: &str) {
        assert!(self.passed(), "{what} breaks its snapshots: {self}");
    }
}

impl fmt::Display for SnapshotReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} guards over {} versions in {} histories, {} during a publish, {} violations",
            self.guards,
            self.versions,
            self.histories,
            self.overlapping,
            self.violations.len(),
        )?;
        self.violations.iter().take(3).try_for_each(|violation| write!(f, "\n{violation}"))
    }
}

impl fmt::Display for SnapshotViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GuardView { handle, asked, taken, version, seen } = &self.guard;
        let rule = match self.broken {
            Broken::OneVersion => "a guard saw no single version",
            Broken::NeverBack => "a handle went back to an older version",
            Broken::AtOnce => "a guard missed a version that others had before it",
        };
        let (oldest, newest) = self.allowed;
        writeln!(f, "{rule}: handle {handle}, guard taken in [{asked}..{taken}]")?;
        writeln!(f, "  it could see versions {oldest} to {newest}")?;
        match self.explained_by {
            Some(version) => writeln!(f, "  what it saw is version {version}")?,
            None => writeln!(f, "  what it saw is no version")?,
        }
        if let Some(version) = version {
            writeln!(f, "  it said that it is version {version}")?;
        }
        write!(f, "  it saw {:?}", &seen[..seen.len().min(8)])
    }
}
