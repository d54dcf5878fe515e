//! Keys that only one thread touches: it knows every answer exactly.

use super::adapter::{inserting, reading, removing};
use super::{HandleUnderTest, TableUnderTest};
use crate::Rng;
use crate::model::{Kind, MapModel};
use crate::stress::Stress;

/// A thread's own range of keys, filled and emptied again and again.
#[derive(Debug)]
pub struct Owner {
    model: MapModel,
    base: u64,
    keys: u64,
    next: u64,
    insert: Kind,
    remove: Option<Kind>,
    read: Kind,
    growing: bool,
    value: u64,
}

impl Owner {
    /// `keys` keys of owner number `number`, far from those of others and from small keys.
    pub fn new<T: TableUnderTest>(number: u64, keys: u64) -> Self {
        Self {
            model: MapModel::new(),
            base: (number + 1) << 40,
            keys,
            next: 0,
            insert: inserting::<T>(),
            remove: removing::<T>(),
            read: reading::<T>(),
            growing: true,
            value: 0,
        }
    }

    /// Inserts or removes the next key, then reads some key of the range.
    ///
    /// # Panics
    /// If an answer is not exactly what the owner knows.
    pub fn step(&mut self, handle: &mut impl HandleUnderTest, rng: &mut Rng) {
        let kind = match self.remove {
            Some(remove) if !self.growing => remove,
            _ => self.insert,
        };
        self.apply(handle, self.base + self.next, kind);
        self.next += 1;
        if self.next >= self.keys {
            if self.remove.is_none() {
                self.base += self.keys;
            }
            self.growing = !self.growing;
            self.next = 0;
        }
        self.apply(handle, self.base + rng.u64(0..self.keys), self.read);
    }

    /// Reads the whole range.
    ///
    /// # Panics
    /// If an answer is not exactly what the owner knows.
    pub fn verify(&mut self, handle: &mut impl HandleUnderTest) {
        for key in self.base..self.base + self.keys {
            self.apply(handle, key, self.read);
        }
    }

    fn apply(&mut self, handle: &mut impl HandleUnderTest, key: u64, kind: Kind) {
        self.value += 1;
        let op = kind.with(self.value, 0);
        let ret = handle.apply(key, op);
        if let Err(mismatch) = self.model.agree(key, op, ret) {
            panic!("nobody else touches this key: {mismatch}");
        }
    }
}

/// Six threads, each with keys of its own, fill and empty a table that starts with no room.
pub fn single_owner<T: TableUnderTest>(make: impl Fn(usize) -> T) {
    for keys in [3, 40, 700] {
        let table = make(0);
        Stress::new("single-owner").threads(6).run(|worker| {
            let mut handle = table.handle();
            let mut owner = Owner::new::<T>(worker.thread() as u64, keys);
            for step in 0..12_000 {
                if !worker.keep_going() {
                    break;
                }
                worker.pause();
                owner.step(&mut handle, &mut worker.rng);
                if step % 32 == 0 {
                    handle.quiet();
                }
            }
            owner.verify(&mut handle);
        });
    }
}
