//! How a thread is inside of a set.

use crate::reclaim::{Domain, Peek, QuietHandle, Section, Visit};

/// How a thread is inside: with quiet points, or by a guard.
pub trait Entrance: sealed::Enter {}

/// Inside all the time, except at its quiet points.
#[derive(Debug)]
pub struct Quiet(QuietHandle);

/// Inside for as long as a guard lives.
#[derive(Debug)]
pub struct Pinned<'s>(Section<'s>);

impl Quiet {
    pub(super) fn new(domain: &Domain) -> Self {
        Self(domain.join_quiet())
    }

    /// The seat, to come to a quiet point.
    #[inline(always)]
    pub(super) fn seat(&mut self) -> &mut QuietHandle {
        &mut self.0
    }
}

impl<'s> Pinned<'s> {
    pub(super) fn new(domain: &'s Domain) -> Self {
        Self(domain.pin())
    }
}

mod sealed {
    use super::{Peek, Visit};

    pub trait Enter {
        fn peek(&self) -> Peek<'_>;
        fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R;
    }
}

impl Entrance for Quiet {}
impl sealed::Enter for Quiet {
    #[inline(always)]
    fn peek(&self) -> Peek<'_> {
        self.0.peek()
    }

    #[inline(always)]
    fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        work(&self.0.visit())
    }
}

impl Entrance for Pinned<'_> {}
impl sealed::Enter for Pinned<'_> {
    #[inline(always)]
    fn peek(&self) -> Peek<'_> {
        self.0.peek()
    }

    #[inline(always)]
    fn visit<R>(&self, work: impl FnOnce(&Visit<'_>) -> R) -> R {
        work(&self.0)
    }
}
