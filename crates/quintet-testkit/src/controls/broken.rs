//! A table of words that does one thing wrong, in 1 of [`BUG_RATE`](super::BUG_RATE) operations.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::BUG_RATE;
use super::mutex_map::{ALL_KINDS, SHARDS, lock};
use crate::Rng;
use crate::conformance::{HandleUnderTest, TableUnderTest};
use crate::model::{Cell, Kind, Op, Ret, run};
use crate::stress::derive;

/// What a broken table does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A write computes from what it read before others wrote.
    LostUpdate,
    /// A read returns what the key held before the last change.
    StaleRead,
    /// A mover of a growing table copies an entry that was removed meanwhile.
    RemoveResurrected,
    /// A write removes first and inserts later.
    NonAtomicPut,
    /// Two inserts of a new key both win.
    DuplicateInsert,
}

impl Bug {
    /// All bugs.
    pub const ALL: [Bug; 5] = [
        Bug::LostUpdate,
        Bug::StaleRead,
        Bug::RemoveResurrected,
        Bug::NonAtomicPut,
        Bug::DuplicateInsert,
    ];

    /// The bug in words.
    pub fn name(self) -> &'static str {
        match self {
            Bug::LostUpdate => "lost update",
            Bug::StaleRead => "stale read",
            Bug::RemoveResurrected => "remove resurrected during growth",
            Bug::NonAtomicPut => "non-atomic put",
            Bug::DuplicateInsert => "duplicate insert",
        }
    }
}

/// The broken table. A shard grows all the time: entries move from `old` to `new`, then the two
/// change places.
#[derive(Debug)]
pub struct Broken {
    bug: Bug,
    seed: u64,
    shards: [Mutex<Shard>; SHARDS],
    /// Operations so far; also the source of ids.
    operations: AtomicU64,
    handles: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    old: HashMap<u64, u64>,
    new: HashMap<u64, u64>,
    /// What each key held before its last change.
    previous: HashMap<u64, Cell>,
}

/// A thread's access to a [`Broken`] table.
#[derive(Debug)]
pub struct BrokenHandle<'t> {
    table: &'t Broken,
    rng: Rng,
    /// A bug is due at the next operation that it can spoil.
    due: bool,
}

impl Shard {
    /// What a key holds; moves it to the new table on the way.
    fn load(&mut self, key: u64) -> Cell {
        if let Some(value) = self.old.remove(&key) {
            self.new.insert(key, value);
        }
        self.new.get(&key).copied()
    }

    fn store(&mut self, key: u64, cell: Cell) {
        let before = self.load(key);
        if before != cell {
            self.previous.insert(key, before);
        }
        match cell {
            Some(value) => self.new.insert(key, value),
            None => self.new.remove(&key),
        };
        if self.old.is_empty() {
            std::mem::swap(&mut self.old, &mut self.new);
        }
    }
}

impl Broken {
    /// An empty table with one bug.
    pub fn new(bug: Bug, seed: u64) -> Self {
        let shards = std::array::from_fn(|_| Mutex::default());
        Self { bug, seed, shards, operations: AtomicU64::new(1), handles: AtomicU64::new(0) }
    }

    fn shard(&self, key: u64) -> &Mutex<Shard> {
        &self.shards[key as usize % SHARDS]
    }

    /// Does an operation as it should be done.
    fn correctly(&self, key: u64, op: Op, id: u64) -> Ret {
        let mut shard = lock(self.shard(key));
        let mut cell = shard.load(key);
        let ret = run(&mut cell, op, id);
        shard.store(key, cell);
        ret
    }

    /// Does an operation wrongly, if the bug can spoil it.
    fn wrongly(&self, key: u64, op: Op, id: u64) -> Option<Ret> {
        match self.bug {
            Bug::LostUpdate => self.lost_update(key, op, id),
            Bug::StaleRead => self.stale_read(key, op),
            Bug::RemoveResurrected => self.resurrect(key).then(|| self.correctly(key, op, id)),
            Bug::NonAtomicPut => self.non_atomic_put(key, op),
            Bug::DuplicateInsert => self.duplicate_insert(key, op, id),
        }
    }

    fn lost_update(&self, key: u64, op: Op, id: u64) -> Option<Ret> {
        let before = lock(self.shard(key)).load(key);
        let mut cell = before;
        let ret = run(&mut cell, op, id);
        if cell == before {
            return None;
        }
        self.let_others_work();
        lock(self.shard(key)).store(key, cell);
        Some(ret)
    }

    fn stale_read(&self, key: u64, op: Op) -> Option<Ret> {
        if !matches!(op, Op::Get | Op::Contains) {
            return None;
        }
        let mut shard = lock(self.shard(key));
        let mut stale = shard.previous.get(&key).copied().flatten();
        let fresh = shard.load(key);
        (run(&mut { fresh }, op, 0) != run(&mut { stale }, op, 0)).then(|| run(&mut stale, op, 0))
    }

    /// Moves an entry of the key's shard, wrongly; tells whether there was one.
    fn resurrect(&self, key: u64) -> bool {
        let entry = lock(self.shard(key)).old.iter().next().map(|(&key, &value)| (key, value));
        let Some((key, value)) = entry else { return false };
        self.let_others_work();
        let mut shard = lock(self.shard(key));
        if shard.load(key).is_none() {
            shard.new.insert(key, value);
        }
        true
    }

    fn non_atomic_put(&self, key: u64, op: Op) -> Option<Ret> {
        let (Op::Put(value) | Op::Insert(value)) = op else { return None };
        let before = lock(self.shard(key)).load(key)?;
        lock(self.shard(key)).store(key, None);
        self.let_others_work();
        lock(self.shard(key)).store(key, Some(value));
        Some(if op.kind() == Kind::Put { Ret::Done } else { Ret::Value(Some(before)) })
    }

    fn duplicate_insert(&self, key: u64, op: Op, id: u64) -> Option<Ret> {
        let inserts = matches!(op, Op::InsertNew(_) | Op::GetOrInsert(_) | Op::SetInsert);
        let mut cell = lock(self.shard(key)).load(key);
        if !inserts || cell.is_some() {
            return None;
        }
        let ret = run(&mut cell, op, id);
        self.let_others_work();
        lock(self.shard(key)).store(key, cell);
        Some(ret)
    }

    /// Sleeps through some operations of other threads, as a preempted thread does.
    fn let_others_work(&self) {
        // ORDERING: figures only.
        let until = self.operations.load(Ordering::Relaxed) + 64;
        for _ in 0..2_000 {
            thread::yield_now();
            if self.operations.load(Ordering::Relaxed) > until {
                return;
            }
        }
    }
}

impl TableUnderTest for Broken {
    const OPS: &'static [Kind] = ALL_KINDS;
    type Handle<'t> = BrokenHandle<'t>;

    fn handle(&self) -> BrokenHandle<'_> {
        // ORDERING: only has to be unique.
        let lane = self.handles.fetch_add(1, Ordering::Relaxed);
        let rng = Rng::with_seed(derive(self.seed, 1_000 + lane));
        BrokenHandle { table: self, rng, due: false }
    }
}

impl HandleUnderTest for BrokenHandle<'_> {
    fn apply(&mut self, key: u64, op: Op) -> Ret {
        // ORDERING: a figure, and a unique id.
        let id = self.table.operations.fetch_add(1, Ordering::Relaxed);
        self.due |= self.rng.u32(0..BUG_RATE) == 0;
        if self.due {
            if let Some(ret) = self.table.wrongly(key, op, id) {
                self.due = false;
                return ret;
            }
        }
        self.table.correctly(key, op, id)
    }
}
