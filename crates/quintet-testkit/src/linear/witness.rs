//! A violation, told in a few lines.

use std::fmt;

use crate::history::Operation;
use crate::model::Cell;

/// Why a key's history has no explanation: the operation that fits nowhere, and its surroundings
/// in the explanation that came furthest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The key.
    pub key: u64,
    /// The operation that no order of the earlier ones explains.
    pub culprit: Operation,
    /// What the key could hold when it had to take effect; the first few.
    pub possible: Vec<Cell>,
    /// The operations before it in that explanation, the last few in order.
    pub before: Vec<Operation>,
    /// The operations that overlapped it and were not yet placed.
    pub beside: Vec<Operation>,
}

impl Witness {
    /// How many operations `before` tells.
    pub(super) const RECENT: usize = 4;
    const POSSIBLE: usize = 8;

    pub(super) fn new(
        culprit: Operation,
        cell: Cell,
        before: Vec<Operation>,
        beside: Vec<Operation>,
    ) -> Self {
        Self { key: culprit.key, culprit, possible: vec![cell], before, beside }
    }

    pub(super) fn may_hold(&mut self, cell: Cell) {
        if self.possible.len() < Self::POSSIBLE && !self.possible.contains(&cell) {
            self.possible.push(cell);
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "key {}: nothing explains", self.key)?;
        writeln!(f, "    {}", self.culprit)?;
        write!(f, "  when the key could hold")?;
        for (at, cell) in self.possible.iter().enumerate() {
            f.write_str(if at == 0 { " " } else { " or " })?;
            match cell {
                Some(value) => write!(f, "{value}")?,
                None => f.write_str("nothing")?,
            }
        }
        for (title, operations) in [("after", &self.before), ("beside", &self.beside)] {
            if !operations.is_empty() {
                write!(f, "\n  {title}")?;
            }
            operations.iter().try_for_each(|operation| write!(f, "\n    {operation}"))?;
        }
        Ok(())
    }
}
