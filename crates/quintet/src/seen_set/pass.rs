//! Sections of either kind, as far as following links goes.

use crate::reclaim::{Brief, Check, Section};

/// The right to follow links, from one kind of section or the other.
pub(super) trait Pass: Check {
    /// The section holds nothing back that was retired after it was entered.
    fn is_current(&self) -> bool;
}

impl Pass for Section<'_> {
    #[inline(always)]
    fn is_current(&self) -> bool {
        (**self).is_current()
    }
}

impl Pass for Brief<'_> {
    #[inline(always)]
    fn is_current(&self) -> bool {
        Brief::check(self)
    }
}
