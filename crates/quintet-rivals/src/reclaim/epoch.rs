//! crossbeam-epoch, with a collector of its own and a registered handle per thread, which its
//! documentation gives as the way to pin at the lowest cost.
//!
//! Unsafe is allowed here because deferring a destruction is an unsafe call.
#![allow(unsafe_code)]

use super::{Domain, Item, Local};
use crate::Label;
use crossbeam_epoch::{Collector, LocalHandle, Owned};

/// `crossbeam_epoch::Collector`.
#[derive(Debug)]
pub struct Epoch(Collector);

impl Domain for Epoch {
    const LABEL: Label = Label::new("crossbeam-epoch", "0.9.21");
    type Local<'a> = LocalHandle;

    fn new() -> Self {
        Self(Collector::new())
    }
    fn local(&self) -> LocalHandle {
        self.0.register()
    }
}

impl Local for LocalHandle {
    #[inline(always)]
    fn section<R>(&mut self, mut f: impl FnMut() -> R) -> R {
        let _guard = self.pin();
        f()
    }
    #[inline(always)]
    fn retire(&mut self, item: Box<Item>) {
        let guard = self.pin();
        let item = Owned::<Item>::from(item).into_shared(&guard);
        // SAFETY: the item was owned by the caller alone, so nobody else retires it.
        unsafe { guard.defer_destroy(item) };
    }
    fn flush(&mut self) {
        self.pin().flush();
    }
}
