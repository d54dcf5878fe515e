//! Operations on one key, and what they do to it.

/// What one key holds: nothing, or a word.
pub type Cell = Option<u64>;

/// One operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads; returns [`Ret::Value`].
    Get,
    /// Asks for presence; returns [`Ret::Flag`].
    Contains,
    /// Writes without telling what was there; returns [`Ret::Done`].
    Put(u64),
    /// Writes; returns the old value as [`Ret::Value`].
    Insert(u64),
    /// Writes only if absent; returns whether it did as [`Ret::Flag`].
    InsertNew(u64),
    /// Writes only if absent; returns what the key holds afterwards as [`Ret::Value`].
    GetOrInsert(u64),
    /// Writes only if present; returns whether it did as [`Ret::Flag`].
    Replace(u64),
    /// Removes; returns the old value as [`Ret::Value`].
    Remove,
    /// Removes; returns whether anything was there as [`Ret::Flag`].
    Delete,
    /// Replaces one value by another; returns [`Ret::Exchanged`]. Absent never matches.
    CompareExchange {
        /// The value that must be there.
        expected: u64,
        /// The value that replaces it.
        new: u64,
    },
    /// Adds (wrapping), an absent key counts as zero and appears; returns the old value as
    /// [`Ret::Value`].
    FetchAdd(u64),
    /// Adds (wrapping), an absent key stays absent; returns the old value as [`Ret::Value`].
    AddIfPresent(u64),
    /// Inserts into a set that chooses ids; returns [`Ret::Inserted`] or [`Ret::Existing`]. A set
    /// without ids returns the same id always.
    SetInsert,
}

/// What an operation returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ret {
    /// Nothing to tell.
    Done,
    /// A value, or absent.
    Value(Cell),
    /// Yes or no.
    Flag(bool),
    /// The replaced value, or what was there instead.
    Exchanged(Result<u64, Cell>),
    /// The set had no such key; this is its id now.
    Inserted(u64),
    /// The set had the key under this id.
    Existing(u64),
    /// An error value: the operation had no effect.
    Refused,
    /// The operation unwound or never returned: it took effect once or not at all.
    Unknown,
}

/// An [`Op`] without its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each is the `Op` of its name
pub enum Kind {
    Get,
    Contains,
    Put,
    Insert,
    InsertNew,
    GetOrInsert,
    Replace,
    Remove,
    Delete,
    CompareExchange,
    FetchAdd,
    AddIfPresent,
    SetInsert,
}

/// Applies `op` to `cell` and returns what it must return. A set that inserts takes `fresh` as
/// the id.
pub fn run(cell: &mut Cell, op: Op, fresh: u64) -> Ret {
    let old = *cell;
    match op {
        Op::Get => Ret::Value(old),
        Op::Contains => Ret::Flag(old.is_some()),
        Op::Put(value) => {
            *cell = Some(value);
            Ret::Done
        }
        Op::Insert(value) => Ret::Value(cell.replace(value)),
        Op::InsertNew(value) => {
            cell.get_or_insert(value);
            Ret::Flag(old.is_none())
        }
        Op::GetOrInsert(value) => Ret::Value(Some(*cell.get_or_insert(value))),
        Op::Replace(value) => {
            *cell = old.map(|_| value);
            Ret::Flag(old.is_some())
        }
        Op::Remove => Ret::Value(cell.take()),
        Op::Delete => Ret::Flag(cell.take().is_some()),
        Op::CompareExchange { expected, new } if old == Some(expected) => {
            *cell = Some(new);
            Ret::Exchanged(Ok(expected))
        }
        Op::CompareExchange { .. } => Ret::Exchanged(Err(old)),
        Op::FetchAdd(n) => {
            *cell = Some(old.unwrap_or(0).wrapping_add(n));
            Ret::Value(old)
        }
        Op::AddIfPresent(n) => {
            *cell = old.map(|value| value.wrapping_add(n));
            Ret::Value(old)
        }
        Op::SetInsert => match old {
            Some(id) => Ret::Existing(id),
            None => {
                *cell = Some(fresh);
                Ret::Inserted(fresh)
            }
        },
    }
}

/// Whether `op` on `cell` may return `ret`; if so, what the key holds afterwards.
///
/// [`Ret::Unknown`] is accepted as if the operation took effect; that it did not is the caller's
/// other choice.
pub fn accepts(cell: Cell, op: Op, ret: Ret) -> Option<Cell> {
    if ret == Ret::Refused {
        return Some(cell);
    }
    let fresh = if let Ret::Inserted(id) = ret { id } else { 0 };
    let mut after = cell;
    let expected = run(&mut after, op, fresh);
    (ret == Ret::Unknown || ret == expected).then_some(after)
}

/// Whether an operation that returned `ret` left its key alone, whatever the key held.
pub fn is_pure(op: Op, ret: Ret) -> bool {
    match (op, ret) {
        (_, Ret::Unknown) => false,
        (_, Ret::Refused) | (Op::Get | Op::Contains, _) => true,
        (Op::Insert(value), Ret::Value(old)) => old == Some(value),
        (Op::InsertNew(_) | Op::Replace(_) | Op::Delete, Ret::Flag(flag)) => !flag,
        (Op::GetOrInsert(value), Ret::Value(now)) => now != Some(value),
        (Op::Remove, Ret::Value(old)) => old.is_none(),
        (Op::CompareExchange { expected, new }, Ret::Exchanged(r)) => r.is_err() || expected == new,
        (Op::FetchAdd(n), Ret::Value(old)) => n == 0 && old.is_some(),
        (Op::AddIfPresent(n), Ret::Value(old)) => n == 0 || old.is_none(),
        (Op::SetInsert, Ret::Existing(_)) => true,
        _ => false,
    }
}

impl Op {
    /// The operation without its arguments.
    pub fn kind(self) -> Kind {
        match self {
            Op::Get => Kind::Get,
            Op::Contains => Kind::Contains,
            Op::Put(_) => Kind::Put,
            Op::Insert(_) => Kind::Insert,
            Op::InsertNew(_) => Kind::InsertNew,
            Op::GetOrInsert(_) => Kind::GetOrInsert,
            Op::Replace(_) => Kind::Replace,
            Op::Remove => Kind::Remove,
            Op::Delete => Kind::Delete,
            Op::CompareExchange { .. } => Kind::CompareExchange,
            Op::FetchAdd(_) => Kind::FetchAdd,
            Op::AddIfPresent(_) => Kind::AddIfPresent,
            Op::SetInsert => Kind::SetInsert,
        }
    }
}

impl Kind {
    /// The operation of this kind that writes or adds `value`; a compare-exchange expects
    /// `expected`.
    pub fn with(self, value: u64, expected: u64) -> Op {
        match self {
            Kind::Get => Op::Get,
            Kind::Contains => Op::Contains,
            Kind::Put => Op::Put(value),
            Kind::Insert => Op::Insert(value),
            Kind::InsertNew => Op::InsertNew(value),
            Kind::GetOrInsert => Op::GetOrInsert(value),
            Kind::Replace => Op::Replace(value),
            Kind::Remove => Op::Remove,
            Kind::Delete => Op::Delete,
            Kind::CompareExchange => Op::CompareExchange { expected, new: value },
            Kind::FetchAdd => Op::FetchAdd(value),
            Kind::AddIfPresent => Op::AddIfPresent(value),
            Kind::SetInsert => Op::SetInsert,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 13] = [
        Kind::Get,
        Kind::Contains,
        Kind::Put,
        Kind::Insert,
        Kind::InsertNew,
        Kind::GetOrInsert,
        Kind::Replace,
        Kind::Remove,
        Kind::Delete,
        Kind::CompareExchange,
        Kind::FetchAdd,
        Kind::AddIfPresent,
        Kind::SetInsert,
    ];
    const CELLS: [Cell; 4] = [None, Some(0), Some(1), Some(2)];

    fn all_ops() -> impl Iterator<Item = Op> {
        let arguments = (0..3).flat_map(|value| (0..3).map(move |expected| (value, expected)));
        arguments.flat_map(|(value, expected)| KINDS.map(|kind| kind.with(value, expected)))
    }

    #[test]
    fn kind_and_with_are_inverse() {
        for kind in KINDS {
            assert_eq!(kind.with(1, 2).kind(), kind);
        }
    }

    #[test]
    fn what_run_returns_is_accepted_and_leads_to_the_same_cell() {
        for op in all_ops() {
            for cell in CELLS {
                let mut after = cell;
                let ret = run(&mut after, op, 9);
                assert_eq!(accepts(cell, op, ret), Some(after), "{op:?} on {cell:?}");
            }
        }
    }

    /// The checker takes pure operations without looking for alternatives; this is its licence.
    #[test]
    fn pure_operations_change_no_cell_that_accepts_them() {
        let mut pure = 0;
        for op in all_ops() {
            for origin in CELLS {
                let ret = run(&mut { origin }, op, 9);
                if !is_pure(op, ret) {
                    continue;
                }
                pure += 1;
                for cell in CELLS {
                    if let Some(after) = accepts(cell, op, ret) {
                        assert_eq!(after, cell, "{op:?} -> {ret:?}");
                    }
                }
            }
        }
        assert!(pure > 100, "{pure}");
    }

    #[test]
    fn a_wrong_answer_is_not_accepted() {
        assert_eq!(accepts(Some(1), Op::Get, Ret::Value(None)), None);
        assert_eq!(accepts(None, Op::InsertNew(1), Ret::Flag(false)), None);
        assert_eq!(accepts(Some(1), Op::SetInsert, Ret::Inserted(2)), None);
        let swap = Op::CompareExchange { expected: 1, new: 2 };
        assert_eq!(accepts(Some(3), swap, Ret::Exchanged(Ok(1))), None);
    }
}
