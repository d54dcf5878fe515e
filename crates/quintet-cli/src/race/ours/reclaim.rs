//! Our reclamation: a handle that pins, and one that names its quiet points.
//!
//! Unsafe is allowed here because retiring is an unsafe call.
#![allow(unsafe_code)]

use quintet::internals::{Barrier, Domain, Handle, QuietHandle, Retired, Visit};
use quintet_rivals::Label;
use quintet_rivals::reclaim::{self, Item, Local};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A handle that pins per section, with the barrier that the system grants.
pub(crate) struct Pins(Domain);
/// The same with fences instead of the process-wide barrier.
pub(crate) struct Fences(Domain);
/// A handle that is always inside, except at quiet points.
pub(crate) struct Quiet(Domain);

impl reclaim::Domain for Pins {
    const LABEL: Label = Label::new("quintet", VERSION);
    type Local<'a> = Pinning;

    fn new() -> Self {
        Self(Domain::new())
    }
    fn local(&self) -> Pinning {
        Pinning { handle: self.0.join(), domain: self.0.clone() }
    }
}

impl reclaim::Domain for Fences {
    const LABEL: Label = Label::new("quintet (fence)", VERSION);
    type Local<'a> = Pinning;

    fn new() -> Self {
        Self(Domain::with_barrier(Barrier::Fence))
    }
    fn local(&self) -> Pinning {
        Pinning { handle: self.0.join(), domain: self.0.clone() }
    }
}

impl reclaim::Domain for Quiet {
    const LABEL: Label = Label::new("quintet (qsbr)", VERSION);
    type Local<'a> = Visiting;

    fn new() -> Self {
        Self(Domain::new())
    }
    fn local(&self) -> Visiting {
        Visiting(self.0.join_quiet())
    }
}

/// Repeats `f` until what it loaded may be used.
#[inline(always)]
fn checked<R>(visit: &Visit<'_>, mut f: impl FnMut() -> R) -> R {
    loop {
        let found = f();
        if visit.check() {
            return found;
        }
    }
}

#[inline(always)]
fn hand_over(visit: &Visit<'_>, item: Box<Item>) {
    let birth = item.birth;
    // SAFETY: the place comes out of a box that the caller alone owned.
    let piece = unsafe { Retired::boxed(Box::into_raw(item), birth) };
    // SAFETY: nobody can find the item any more, and it is retired once.
    unsafe { visit.retire(piece) };
}

/// A handle that pins.
pub(crate) struct Pinning {
    handle: Handle,
    domain: Domain,
}

impl Local for Pinning {
    #[inline(always)]
    fn section<R>(&mut self, f: impl FnMut() -> R) -> R {
        checked(&self.handle.pin(), f)
    }
    #[inline(always)]
    fn birth(&self) -> u64 {
        self.domain.era()
    }
    #[inline(always)]
    fn retire(&mut self, item: Box<Item>) {
        hand_over(&self.handle.pin(), item);
    }
    fn flush(&mut self) {
        self.handle.flush();
    }
}

/// A handle that is inside.
pub(crate) struct Visiting(QuietHandle);

impl Local for Visiting {
    #[inline(always)]
    fn section<R>(&mut self, f: impl FnMut() -> R) -> R {
        checked(&self.0.visit(), f)
    }
    #[inline(always)]
    fn birth(&self) -> u64 {
        self.0.visit().era()
    }
    #[inline(always)]
    fn retire(&mut self, item: Box<Item>) {
        hand_over(&self.0.visit(), item);
    }
    fn flush(&mut self) {
        self.0.flush();
    }
    #[inline(always)]
    fn quiet(&mut self) {
        self.0.quiescent();
    }
}
