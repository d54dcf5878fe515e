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

/// The broken table.
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
    slots: HashMap<u64, Slot>,
    /// The key used last, which a mover moves next.
    last: u64,
}

#[derive(Debug, Default)]
struct Slot {
    cell: Cell,
    /// What the key held before its last change.
    previous: Cell,
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
    fn slot(&mut self, key: u64) -> &mut Slot {
        self.slots.entry(key).or_default()
    }
}

impl Slot {
    fn store(&mut self, cell: Cell) {
        if cell != self.cell {
            self.previous = std::mem::replace(&mut self.cell, cell);
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

    /// What a key holds now.
    fn load(&self, key: u64) -> Cell {
        lock(self.shard(key)).slot(key).cell
    }

    fn store(&self, key: u64, cell: Cell) {
        lock(self.shard(key)).slot(key).store(cell);
    }

    /// Does an operation as it should be done.
    fn correctly(&self, key: u64, op: Op, id: u64) -> Ret {
        let mut shard = lock(self.shard(key));
        shard.last = key;
        let slot = shard.slot(key);
        let mut cell = slot.cell;
        let ret = run(&mut cell, op, id);
        slot.store(cell);
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
        let before = self.load(key);
        let mut cell = before;
        let ret = run(&mut cell, op, id);
        if cell == before {
            return None;
        }
        self.let_others_work();
        self.store(key, cell);
        Some(ret)
    }

    fn stale_read(&self, key: u64, op: Op) -> Option<Ret> {
        if !matches!(op, Op::Get | Op::Contains) {
            return None;
        }
        let mut shard = lock(self.shard(key));
        let slot = shard.slot(key);
        let [fresh, stale] = [slot.cell, slot.previous].map(|mut cell| run(&mut cell, op, 0));
        (fresh != stale).then_some(stale)
    }

    /// Moves an entry of the key's shard as if to a larger table, wrongly; tells whether it could.
    fn resurrect(&self, key: u64) -> bool {
        let key = lock(self.shard(key)).last;
        let Some(copied) = self.load(key) else { return false };
        self.let_others_work();
        lock(self.shard(key)).slot(key).cell.get_or_insert(copied);
        true
    }

    fn non_atomic_put(&self, key: u64, op: Op) -> Option<Ret> {
        let (Op::Put(value) | Op::Insert(value)) = op else { return None };
        let before = self.load(key)?;
        self.store(key, None);
        self.let_others_work();
        self.store(key, Some(value));
        Some(if op.kind() == Kind::Put { Ret::Done } else { Ret::Value(Some(before)) })
    }

    fn duplicate_insert(&self, key: u64, op: Op, id: u64) -> Option<Ret> {
        let inserts = matches!(op, Op::InsertNew(_) | Op::GetOrInsert(_) | Op::SetInsert);
        let mut cell = self.load(key);
        if !inserts || cell.is_some() {
            return None;
        }
        let ret = run(&mut cell, op, id);
        self.let_others_work();
        self.store(key, cell);
        Some(ret)
    }

    /// Sleeps through some operations of other threads, as a preempted thread does.
    fn let_others_work(&self) {
        // ORDERING: figures only.
        let until = self.operations.load(Ordering::Relaxed) + 32;
        for _ in 0..200 {
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
