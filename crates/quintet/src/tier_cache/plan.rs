//! What an operation will store, in which order, and what is asked for: the plan and the task.
//! [`planner`](super::planner) makes the one of the other.

use super::MapError;
use super::memory::MAX_TIERS;
use super::word::{Cell, Link};

/// Cell stores of the longest plan: five bases yield (two stores each), two at home, three unlink
/// an older copy; in a tier below up to four more.
pub(crate) const MAX_WRITES: usize = 20;
/// Elements whose tier a plan can change: one for each tier, one that comes, one that leaves, one
/// that is replaced.
pub(super) const MAX_SHIFTS: usize = MAX_TIERS + 4;
/// One cell store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Write {
    pub(crate) entry: usize,
    pub(crate) old: Cell,
    pub(crate) new: Cell,
}

/// An element that is in another tier after the plan than before; `None`: not in the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shift {
    pub(crate) link: Link,
    pub(crate) from: Option<u8>,
    pub(crate) to: Option<u8>,
}

/// The stores of one operation, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Filled first, by an exchange with "empty".
    pub(crate) hole: Option<(usize, Cell)>,
    writes: [Write; MAX_WRITES],
    count: usize,
    /// The new record becomes live.
    pub(crate) link: bool,
    /// This record dies with the plan.
    pub(crate) kill: Option<Link>,
    /// This record goes to the sink.
    pub(crate) out: Option<Link>,
    /// The slice the key lies in afterwards.
    pub(crate) slice: u32,
    /// The record that carried the key before.
    pub(crate) found: Option<(Link, Verdict)>,
    /// The tier it lay in.
    pub(crate) tier: usize,
    pub(super) shifts: [Shift; MAX_SHIFTS],
    pub(super) shifted: usize,
}

impl Plan {
    pub(crate) const fn empty() -> Self {
        let none = Write { entry: 0, old: Cell::EMPTY, new: Cell::EMPTY };
        let nobody = Shift { link: Cell::EMPTY.link, from: None, to: None };
        Self {
            hole: None,
            writes: [none; MAX_WRITES],
            count: 0,
            link: false,
            kill: None,
            out: None,
            slice: 0,
            found: None,
            tier: 0,
            shifts: [nobody; MAX_SHIFTS],
            shifted: 0,
        }
    }

    /// Who changes tiers, in a map with several.
    pub(crate) fn shifts(&self) -> &[Shift] {
        &self.shifts[..self.shifted]
    }

    /// By how much the number of entries of each tier changes.
    pub(crate) fn change_of_tiers(&self) -> [i32; MAX_TIERS] {
        let mut change = [0; MAX_TIERS];
        for shift in self.shifts() {
            for (tier, by) in [(shift.from, -1), (shift.to, 1)] {
                if let Some(count) = tier.and_then(|tier| change.get_mut(tier as usize)) {
                    *count += by;
                }
            }
        }
        change
    }

    /// By how much the number of entries changes.
    pub(crate) fn change(&self) -> i64 {
        self.link as i64 - self.kill.is_some() as i64 - self.out.is_some() as i64
    }

    pub(crate) fn writes(&self) -> &[Write] {
        &self.writes[..self.count]
    }

    pub(crate) fn push(&mut self, write: Write) -> bool {
        let room = self.count < MAX_WRITES;
        if room {
            self.writes[self.count] = write;
            self.count += 1;
        }
        room
    }

    /// Forgets everything; the writes behind `count` are nobody's.
    pub(super) fn reset(&mut self) {
        self.hole = None;
        self.count = 0;
        self.link = false;
        self.kill = None;
        self.out = None;
        self.found = None;
        self.shifted = 0;
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.hole.is_none() && self.count == 0
    }
}

/// What is asked of the planner.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Link the record in the less loaded slice, or in `tie`'s.
    Add { new: Link, tie: u32 },
    /// Link the record instead of the present one.
    Update { new: Link },
    /// Unlink the key.
    Remove,
    /// Link the record, whether the key is present or not, as far as that is wanted. `spare`:
    /// nothing may leave for it; who would have to is told with the error.
    Place { new: Link, tie: u32, want: Want, spare: bool },
    /// Unlink the key if its record is as wanted.
    Take { want: Want },
    /// Only hold the bucket of a key that is present.
    Hold,
    /// Move the key a tier down or to the first, with its record; only if it lies in the tier
    /// `from`, where that is given. `spare`: as above.
    Move { way: Way, from: Option<usize>, tie: u32, spare: bool },
}

/// Where a move goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// To the next older tier.
    Down,
    /// To the youngest tier.
    Up,
}

/// Which state of the key an operation asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    Any,
    Absent,
    Present,
    Exactly(Link),
    /// Absent, and the bucket has given out no version since this one.
    Since(u64),
}

/// What a record with the right hash turns out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Another key's.
    Other,
    /// The key's.
    Present,
    /// The key's, and outlived: as good as absent.
    Outlived,
}

/// Tells whether a record with the right hash is the key's. Asked under the control word of its
/// bucket.
pub(crate) type Judge<'j> = &'j dyn Fn(Link) -> Verdict;

/// Why there is no plan (yet).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// One more control word is needed.
    Need(u32),
    /// A word is needed, but the list is full of words of earlier attempts.
    Crowded(u32),
    /// Nothing to store.
    Nothing(MapError),
}

impl From<MapError> for Stop {
    fn from(error: MapError) -> Self {
        Self::Nothing(error)
    }
}
