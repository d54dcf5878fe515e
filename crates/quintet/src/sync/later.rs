//! Wakes tasks after a while: for what nobody tells when it happens.
//!
//! **Y1.** One thread for the whole process, while there is something to wait for: started by the
//! first who asks, ended when nobody has asked for a second.
//! **Y2.** The thread ends under the lock of the list: who asks meanwhile finds it running, and its
//! wish in the list, or starts another.
//! **Y3.** A child of a fork has no such thread: who asks there starts its own. If none can be
//! started, the task is woken at once.
//! **Y4.** Wakers are user code: none is called or dropped under the lock.

use std::task::Waker;
use std::time::Duration;

/// Wakes a task after about so long.
#[cfg(any(quintet_loom, quintet_shuttle))]
pub(crate) fn wake_later(waker: &Waker, _after: Duration) {
    waker.wake_by_ref();
}

#[cfg(not(any(quintet_loom, quintet_shuttle)))]
pub(crate) use native::wake_later;

#[cfg(not(any(quintet_loom, quintet_shuttle)))]
mod native {
    use super::{Duration, Waker};
    use crate::sync::fork;
    use parking_lot::{Condvar, Mutex};
    use std::time::Instant;

    struct List {
        wishes: Vec<(Instant, Waker)>,
        /// The forks that the running thread has seen, if one runs.
        runs: Option<usize>,
    }

    static LIST: Mutex<List> = Mutex::new(List { wishes: Vec::new(), runs: None });
    static ASKED: Condvar = Condvar::new();

    /// The thread waits so long for a next wish.
    const IDLE: Duration = Duration::from_secs(1);

    /// Wakes a task after about so long.
    pub(crate) fn wake_later(waker: &Waker, after: Duration) {
        // Y4: to clone a waker is to call it.
        let wish = (Instant::now() + after, waker.clone());
        let forks = fork::seen().0;
        let mut list = LIST.lock();
        list.wishes.push(wish);
        ASKED.notify_one();
        if list.runs == Some(forks) {
            return;
        }
        list.runs = Some(forks);
        drop(list);
        let thread = std::thread::Builder::new().name("quintet-later".into());
        if thread.spawn(move || run(forks)).is_err() {
            // Y3.
            let wishes = {
                let mut list = LIST.lock();
                list.runs = None;
                std::mem::take(&mut list.wishes)
            };
            wishes.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    fn run(forks: usize) {
        let mut list = LIST.lock();
        loop {
            let now = Instant::now();
            let (due, wishes): (Vec<_>, _) =
                std::mem::take(&mut list.wishes).into_iter().partition(|(when, _)| *when <= now);
            list.wishes = wishes;
            if !due.is_empty() {
                drop(list);
                for (_, waker) in due {
                    // A waker that panics takes nobody else's wish with it.
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
                }
                list = LIST.lock();
                continue;
            }
            let next = list.wishes.iter().map(|(when, _)| *when).min();
            let longest = next.map_or(IDLE, |next| next.saturating_duration_since(now));
            let timed_out = ASKED.wait_for(&mut list, longest).timed_out();
            if timed_out && next.is_none() && list.wishes.is_empty() {
                // Y2.
                if list.runs == Some(forks) {
                    list.runs = None;
                }
                return;
            }
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::task::Wake;

    struct Tell(mpsc::Sender<u32>, u32);

    impl Wake for Tell {
        fn wake(self: Arc<Self>) {
            self.0.send(self.1).unwrap();
        }
    }

    #[test]
    fn who_asks_is_woken_in_the_order_of_the_times() {
        let (told, tells) = mpsc::channel();
        let ask = |number, after| {
            let waker = Waker::from(Arc::new(Tell(told.clone(), number)));
            wake_later(&waker, Duration::from_millis(after));
        };
        ask(2, 300);
        ask(1, 1);
        assert_eq!((tells.recv().unwrap(), tells.recv().unwrap()), (1, 2));
        // Long after the thread has nothing to do any more.
        std::thread::sleep(Duration::from_millis(1_300));
        ask(3, 1);
        assert_eq!(tells.recv().unwrap(), 3);
    }
}
