//! A version to come, for tasks.

use super::core::Core;
use super::reader::OwnedGuard;
use super::wait::{Parker, WaitError};
use crate::sync::Arc;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A version to come; made by [`Reader::wait_for_async`](super::Reader::wait_for_async). Gives that
/// version or a later one.
#[must_use = "a future does nothing unless awaited"]
pub struct Arrive<T> {
    core: Arc<Core<T>>,
    version: u64,
    /// In the list of those who wait.
    ticket: Option<usize>,
}

impl<T> Arrive<T> {
    pub(super) fn new(core: &Arc<Core<T>>, version: u64) -> Self {
        Self { core: Arc::clone(core), version, ticket: None }
    }

    fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.core.gate.arrivals.leave(ticket);
        }
    }
}

impl<T> Future for Arrive<T> {
    type Output = Result<OwnedGuard<T>, WaitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.leave();
        let waker = context.waker().clone();
        self.ticket = Some(self.core.gate.arrivals.enter(Parker::Task(waker)));
        let gone = self.core.gate.arrivals.is_orphaned();
        let guard = OwnedGuard::new(&self.core);
        let answer = match guard.version() >= self.version {
            true => Ok(guard),
            false if gone => Err(WaitError::WriterGone),
            false => return Poll::Pending,
        };
        self.leave();
        Poll::Ready(answer)
    }
}

impl<T> Drop for Arrive<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl<T> std::fmt::Debug for Arrive<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Arrive").field("version", &self.version).finish_non_exhaustive()
    }
}
