//! Wakes tasks after a nap, for whatever runtime they have.
//!
//! **A1.** One thread per cache naps as long as somebody has asked to be woken, wakes all of them,
//! and ends when nobody has.
//! **A2.** A forked child has no such thread: it starts one of its own. If the lock was held at the
//! moment of the fork, nobody will ever give it back; then a task is woken at once, and looks again
//! without a nap.

use crate::sync::{Arc, Mutex, fork, thread};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const NAP: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
struct Waiting {
    wakers: Vec<Waker>,
    /// The thread runs, in the process of so many forks.
    runs: Option<usize>,
}

/// Who wants to be woken.
#[derive(Debug)]
pub(super) struct Alarm(Arc<Mutex<Waiting>>);

impl Default for Alarm {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Waiting::default())))
    }
}

impl Alarm {
    /// Done after a nap.
    pub(super) fn nap(&self) -> Nap<'_> {
        Nap { alarm: self, asked: false }
    }

    fn wake_later(&self, waker: &Waker) {
        // A2
        let Some(mut waiting) = self.0.try_lock() else { return waker.wake_by_ref() };
        waiting.wakers.push(waker.clone());
        let forks = fork::seen().0;
        if waiting.runs == Some(forks) {
            return;
        }
        let shared = Arc::clone(&self.0);
        waiting.runs = Some(forks);
        drop(waiting);
        thread::spawn(move || ring(&shared));
    }
}

/// A1.
fn ring(shared: &Mutex<Waiting>) {
    loop {
        std::thread::sleep(NAP);
        let mut waiting = shared.lock();
        let wakers = std::mem::take(&mut waiting.wakers);
        if wakers.is_empty() {
            waiting.runs = None;
            return;
        }
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A nap of a task.
#[derive(Debug)]
pub(super) struct Nap<'a> {
    alarm: &'a Alarm,
    asked: bool,
}

impl Future for Nap<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.asked, true) {
            return Poll::Ready(());
        }
        self.alarm.wake_later(context.waker());
        Poll::Pending
    }
}
