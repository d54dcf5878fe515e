//! User code that may panic: run it, drop its values.

use crate::sync::MODEL;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What a panic carries.
pub(super) type Payload = Box<dyn Any + Send + 'static>;

/// What user code panics with on purpose under a model checker.
#[derive(Debug)]
#[allow(dead_code)] // models alone make one
pub(super) struct Planned;

/// Runs user code. Under a model checker a panic that was not planned is a finding, and goes
/// through.
pub(super) fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Err(payload) if MODEL && !payload.is::<Planned>() => resume_unwind(payload),
        outcome => outcome,
    }
}

/// Drops each piece under its own catch (`twin` X5); returns the first panic.
pub(super) fn drop_each<X>(pieces: impl Iterator<Item = X>) -> Option<Payload> {
    let mut first = None;
    if !std::mem::needs_drop::<X>() {
        return first;
    }
    for piece in pieces {
        if let Err(payload) = caught(|| drop(piece)) {
            match first {
                None => first = Some(payload),
                // A payload may panic when dropped, too.
                Some(_) => std::mem::forget(payload),
            }
        }
    }
    first
}
