//! A map, a counter map or a set of words, by which operations it is given.

use std::collections::BTreeMap;
use std::fmt;

use super::{Cell, Op, Ret, accepts, run};

/// The sequential map: key to [`Cell`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapModel {
    entries: BTreeMap<u64, u64>,
    next_id: u64,
}

/// A table answered what the model does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The key.
    pub key: u64,
    /// The operation.
    pub op: Op,
    /// What the table returned.
    pub returned: Ret,
    /// What the model returns.
    pub expected: Ret,
}

impl MapModel {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an operation; ids of a set count from zero.
    pub fn apply(&mut self, key: u64, op: Op) -> Ret {
        let mut cell = self.get(key);
        let ret = run(&mut cell, op, self.next_id);
        self.next_id += u64::from(matches!(ret, Ret::Inserted(_)));
        self.set(key, cell);
        ret
    }

    /// Applies an operation that a table answered with `ret`.
    ///
    /// # Errors
    /// [`Mismatch`] if the model does not allow the answer; the model is then unchanged.
    pub fn agree(&mut self, key: u64, op: Op, ret: Ret) -> Result<(), Mismatch> {
        let cell = self.get(key);
        match accepts(cell, op, ret) {
            Some(after) => {
                self.set(key, after);
                Ok(())
            }
            None => {
                let expected = run(&mut { cell }, op, self.next_id);
                Err(Mismatch { key, op, returned: ret, expected })
            }
        }
    }

    /// What a key holds.
    pub fn get(&self, key: u64) -> Cell {
        self.entries.get(&key).copied()
    }

    /// Sets what a key holds.
    pub fn set(&mut self, key: u64, cell: Cell) {
        match cell {
            Some(value) => self.entries.insert(key, value),
            None => self.entries.remove(&key),
        };
    }

    /// Number of keys present.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// All entries by key.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.entries.iter().map(|(&key, &value)| (key, value))
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { key, op, returned, expected } = self;
        write!(f, "key {key}: {op:?} returned {returned:?}, the model says {expected:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_like_a_counter_map() {
        let mut model = MapModel::new();
        assert_eq!(model.apply(7, Op::FetchAdd(2)), Ret::Value(None));
        assert_eq!(model.apply(7, Op::FetchAdd(3)), Ret::Value(Some(2)));
        assert_eq!(model.get(7), Some(5));
    }

    #[test]
    fn hands_out_ids_like_a_set() {
        let mut model = MapModel::new();
        assert_eq!(model.apply(7, Op::SetInsert), Ret::Inserted(0));
        assert_eq!(model.apply(8, Op::SetInsert), Ret::Inserted(1));
        assert_eq!(model.apply(7, Op::SetInsert), Ret::Existing(0));
    }

    #[test]
    fn a_disagreement_leaves_the_model_alone() {
        let mut model = MapModel::new();
        model.apply(1, Op::Put(5));
        let before = model.clone();
        let wrong = model.agree(1, Op::Remove, Ret::Value(None)).unwrap_err();
        assert_eq!(wrong.expected, Ret::Value(Some(5)));
        assert_eq!(model, before);
        model.agree(1, Op::Remove, Ret::Value(Some(5))).unwrap();
        assert_eq!(model.entries(), 0);
    }
}
