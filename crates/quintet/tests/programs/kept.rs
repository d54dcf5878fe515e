//! Guards together with what they borrow from.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// An owner whose target stays where it is, for as long as the owner or a clone of it lives.
pub(crate) trait Owner: Deref {}
impl<T> Owner for Arc<T> {}
impl<T> Owner for Rc<T> {}

/// Something that borrows from its owner, dropped before it: what a scope with both as variables
/// would be.
pub(crate) struct Kept<O, G> {
    inside: G,
    owner: O,
}

impl<O: Owner<Target: 'static>, G> Kept<O, G> {
    /// `make` keeps the reference nowhere but in its result.
    pub(crate) fn new(owner: O, make: impl FnOnce(&'static O::Target) -> G) -> Self {
        let target: *const O::Target = &*owner;
        // SAFETY: the owner keeps its target in place, and fields are dropped in order: the result
        // goes before the owner.
        let inside = make(unsafe { &*target });
        Self { inside, owner }
    }
}

impl<O, G> Kept<O, G> {
    pub(crate) fn inside(&self) -> &G {
        &self.inside
    }

    pub(crate) fn inside_mut(&mut self) -> &mut G {
        &mut self.inside
    }

    pub(crate) fn owner(&self) -> &O {
        &self.owner
    }

    /// Both, to be put together [`again`](Self::again).
    pub(crate) fn into_parts(self) -> (G, O) {
        (self.inside, self.owner)
    }

    /// Parts of a `Kept` that belonged together.
    pub(crate) fn again(inside: G, owner: O) -> Self {
        Self { inside, owner }
    }
}
