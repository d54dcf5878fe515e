//! Waiting: who is to be woken, how long somebody waits, and why a wait ended without success.

use crate::sync::thread;
use std::task::Waker;
use std::time::Instant;

/// Who is to be woken.
#[derive(Debug, Clone)]
pub(super) enum Parker {
    Thread(thread::Thread),
    Task(Waker),
}

impl Parker {
    pub(super) fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// How long the writer waits for readers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience<'a> {
    None,
    Until(Instant),
    /// As `Until`, for something that it can do without: nobody is told that it waits for a guard
    /// of theirs (`desk` F6).
    Brief(Instant),
    Forever,
    /// Not at all, but this task is woken when it is worth asking again.
    Task(&'a Waker),
}

/// Why the writer got no guard. Nothing has changed: ask again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardError {
    /// Readers still look at the copy that is to be written.
    Occupied,
    /// Readers still look at the copy that is to be written, and the time is over.
    TimedOut,
    /// This thread itself holds, or has forgotten, a read guard of the copy that is to be written.
    /// Or it waits for a thread that waits for it, at another table.
    WouldDeadlock,
    /// The system refuses the process-wide barrier that it granted at the start.
    BarrierRefused,
}

impl std::fmt::Display for GuardError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Occupied => {
                "the copy to be written is occupied by read guards: drop them, or wait with guard()"
            }
            Self::TimedOut => {
                "read guards did not leave the copy to be written in time: drop guards that live long, or build with Stalled::Copy"
            }
            Self::WouldDeadlock => {
                "this thread would wait for itself: it holds a read guard older than the last publish, or writes to one table inside of a batch of another while \
                 a thread does the reverse; drop the guard before writing, write after the batch"
            }
            Self::BarrierRefused => {
                "the system refuses membarrier, which it granted at the start: allow it in the process's seccomp filter"
            }
        })
    }
}

impl std::error::Error for GuardError {}

/// Why a version did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitError {
    /// The time is over.
    TimedOut,
    /// The writer is gone: no further version will come.
    WriterGone,
}

impl std::fmt::Display for WaitError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::TimedOut => "the version was not published in time: wait longer, or ask the writer for its version()",
            Self::WriterGone => "the writer is gone and will publish no further version: read what there is with pin()",
        })
    }
}

impl std::error::Error for WaitError {}
