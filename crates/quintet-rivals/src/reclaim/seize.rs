//! seize, in its default settings.
//!
//! Unsafe is allowed here because retiring is an unsafe call.
#![allow(unsafe_code)]

use super::{Domain, Item, Local};
use crate::Label;
use seize::{Collector, Guard, reclaim};

/// `seize::Collector`.
#[derive(Debug)]
pub struct Seize(Collector);

impl Domain for Seize {
    const LABEL: Label = Label::new("seize", "0.5.1");
    const HAS_SEATS: bool = false;
    type Local<'a> = &'a Self;

    fn new() -> Self {
        Self(Collector::new())
    }
    fn local(&self) -> &Self {
        self
    }
}

impl Local for &Seize {
    #[inline(always)]
    fn section<R>(&mut self, mut f: impl FnMut() -> R) -> R {
        let _guard = self.0.enter();
        f()
    }
    #[inline(always)]
    fn retire(&mut self, item: Box<Item>) {
        let guard = self.0.enter();
        // SAFETY: the item came out of a box, the caller alone owned it, and it is retired once.
        unsafe { guard.defer_retire(Box::into_raw(item), reclaim::boxed) };
    }
    fn flush(&mut self) {
        self.0.enter().flush();
    }
}
