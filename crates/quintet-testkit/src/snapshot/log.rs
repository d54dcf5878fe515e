//! What the writer and the readers of a two-copy map write down.

use crate::history::Clock;
use crate::model::Cell;

/// One published version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// What changed, in order.
    pub changes: Vec<(u64, Cell)>,
    /// Stamp before the publish.
    pub started: u64,
    /// Stamp after it.
    pub finished: u64,
}

/// What one guard saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardView {
    /// The read handle.
    pub handle: u32,
    /// Stamp before the guard was taken.
    pub asked: u64,
    /// Stamp after it was taken.
    pub taken: u64,
    /// The version the guard says it shows, counted like [`Published`] from 1, if it says so.
    pub version: Option<u64>,
    /// What was read through it, in order.
    pub seen: Vec<(u64, Cell)>,
}

/// Everything that was published, and everything that was seen.
#[derive(Clone, Debug, Default)]
pub struct SnapshotHistory {
    /// Version `n` is `published[n - 1]`; version 0 is the empty map.
    pub published: Vec<Published>,
    /// All guards of all handles; on one handle in the order they were taken.
    pub guards: Vec<GuardView>,
}

/// The writer's log.
#[derive(Debug)]
pub struct PublishLog<'c> {
    clock: &'c Clock,
    published: Vec<Published>,
}

/// The log of one read handle.
#[derive(Debug)]
pub struct GuardLog<'c> {
    clock: &'c Clock,
    handle: u32,
    guards: Vec<GuardView>,
}

impl<'c> PublishLog<'c> {
    /// An empty log.
    pub fn new(clock: &'c Clock) -> Self {
        Self { clock, published: Vec::new() }
    }

    /// Calls what publishes `changes`, and records it.
    pub fn publish(&mut self, changes: Vec<(u64, Cell)>, publish: impl FnOnce(&[(u64, Cell)])) {
        let started = self.clock.now();
        publish(&changes);
        let finished = self.clock.now();
        self.published.push(Published { changes, started, finished });
    }
}

impl<'c> GuardLog<'c> {
    /// An empty log of one read handle.
    pub fn new(clock: &'c Clock, handle: u32) -> Self {
        Self { clock, handle, guards: Vec::new() }
    }

    /// The stamp to take before asking for a guard, and again once it is there.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Records what a guard showed.
    pub fn saw(&mut self, asked: u64, taken: u64, version: Option<u64>, seen: Vec<(u64, Cell)>) {
        self.guards.push(GuardView { handle: self.handle, asked, taken, version, seen });
    }
}

impl SnapshotHistory {
    /// Joins the logs of the writer and of all read handles.
    pub fn join<'c>(
        writer: PublishLog<'c>,
        readers: impl IntoIterator<Item = GuardLog<'c>>,
    ) -> Self {
        let guards = readers.into_iter().flat_map(|reader| reader.guards).collect();
        Self { published: writer.published, guards }
    }

    /// The newest version whose publish had started at `stamp`.
    pub(super) fn started_before(&self, stamp: u64) -> u64 {
        self.published.partition_point(|published| published.started <= stamp) as u64
    }

    /// The newest version whose publish had returned before `stamp`.
    pub(super) fn finished_before(&self, stamp: u64) -> u64 {
        self.published.partition_point(|published| published.finished < stamp) as u64
    }
}
