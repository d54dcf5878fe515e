//! Histories: who called what, when, and what came back.
//!
//! Every thread writes into a [`Recorder`] of its own; the threads share only the [`Clock`].
//! Afterwards the logs are joined into a [`History`].
//!
//! ```
//! use quintet_testkit::history::{Clock, History};
//! use quintet_testkit::model::{Op, Ret};
//!
//! let clock = Clock::counter();
//! let mut log = clock.recorder(0, 16);
//! log.call(7, Op::Insert(1), || Ret::Value(None));
//! log.call(7, Op::Get, || Ret::Value(Some(1)));
//! let history = History::join([log]);
//! assert!(quintet_testkit::linear::check(&history).passed());
//! ```

mod clock;
mod text;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub use clock::{Clock, ClockKind};

use crate::model::{Op, Ret};

/// One recorded operation. It took effect somewhere between its two stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The key.
    pub key: u64,
    /// What was asked.
    pub op: Op,
    /// What came back.
    pub ret: Ret,
    /// Who asked. A thread's operations follow one another.
    pub thread: u32,
    /// Stamp before the call.
    pub invoked: u64,
    /// Stamp after the call; `u64::MAX` if it never returned.
    pub returned: u64,
}

/// The operations of several threads, grouped by thread, each thread's in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Operation>,
}

/// The log of one thread.
#[derive(Debug)]
pub struct Recorder<'c> {
    clock: &'c Clock,
    thread: u32,
    log: Vec<Operation>,
}

impl Clock {
    /// A log for one thread, with room for `operations` before it has to allocate.
    pub fn recorder(&self, thread: u32, operations: usize) -> Recorder<'_> {
        Recorder { clock: self, thread, log: Vec::with_capacity(operations) }
    }
}

impl Recorder<'_> {
    /// Calls and records. If the call unwinds, it is recorded as [`Ret::Unknown`] and unwinds on.
    pub fn call(&mut self, key: u64, op: Op, call: impl FnOnce() -> Ret) -> Ret {
        let thread = self.thread;
        let invoked = self.clock.now();
        let result = catch_unwind(AssertUnwindSafe(call));
        let returned = self.clock.now();
        let ret = *result.as_ref().unwrap_or(&Ret::Unknown);
        self.log.push(Operation { key, op, ret, thread, invoked, returned });
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl History {
    /// Joins the logs of all threads. Each thread has one log.
    pub fn join<'c>(logs: impl IntoIterator<Item = Recorder<'c>>) -> Self {
        Self { operations: logs.into_iter().flat_map(|recorder| recorder.log).collect() }
    }

    /// A history written down by hand or read from elsewhere.
    ///
    /// # Panics
    /// If two operations of one thread overlap: a thread does one thing at a time.
    pub fn from_operations(mut operations: Vec<Operation>) -> Self {
        operations.sort_by_key(|operation| (operation.thread, operation.invoked));
        for pair in operations.windows(2) {
            let follows = pair[0].thread != pair[1].thread || pair[0].returned <= pair[1].invoked;
            assert!(follows, "overlapping operations of one thread: {} and {}", pair[0], pair[1]);
        }
        Self { operations }
    }

    /// All operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { key, op, ret, thread, invoked, returned } = self;
        write!(f, "[{invoked}..")?;
        if *returned != u64::MAX {
            write!(f, "{returned}")?;
        }
        write!(f, "] thread {thread}: key {key} {op:?} -> {ret:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_enclose_the_call_and_follow_one_another() {
        for kind in [
            ClockKind::Counter,
            ClockKind::Time,
            #[cfg(unix)]
            ClockKind::Machine,
        ] {
            let clock = Clock::new(kind);
            let mut log = clock.recorder(3, 2);
            let mut inside = 0;
            log.call(1, Op::Get, || {
                inside = clock.now();
                Ret::Value(None)
            });
            log.call(1, Op::Remove, || Ret::Value(None));
            let history = History::join([log]);
            let [first, second] = history.operations() else { panic!("two operations") };
            assert!(first.invoked <= inside && inside <= first.returned);
            assert!(first.returned <= second.invoked);
            assert_eq!((first.thread, second.op), (3, Op::Remove));
        }
    }

    #[test]
    fn an_unwinding_call_is_recorded_and_unwinds_on() {
        let clock = Clock::counter();
        let mut log = clock.recorder(0, 1);
        let result = catch_unwind(AssertUnwindSafe(|| {
            log.call(1, Op::Insert(2), || resume_unwind(Box::new("inside")));
        }));
        assert!(result.is_err());
        assert_eq!(History::join([log]).operations()[0].ret, Ret::Unknown);
    }

    #[test]
    #[should_panic(expected = "overlapping operations of one thread")]
    fn one_thread_cannot_overlap_itself() {
        let at = |invoked, returned| Operation {
            key: 0,
            op: Op::Get,
            ret: Ret::Value(None),
            thread: 0,
            invoked,
            returned,
        };
        History::from_operations(vec![at(1, 4), at(3, 5)]);
    }
}
