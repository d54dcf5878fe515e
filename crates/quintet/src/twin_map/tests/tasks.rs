//! Tasks: they wait without a thread, and are woken whatever others do.

use super::super::*;
use crate::sync::{Arc, AtomicUsize, Ordering, thread};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Counts how often a task was woken.
#[derive(Default)]
pub(super) struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    pub(super) fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) fn task() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

pub(super) fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// A table that waits, with a guard of another thread in the way of its next write. What the
/// channel gets ends the guard.
fn stalled() -> (TwinMap<u64, u64>, impl FnOnce()) {
    let map = TwinMap::<u64, u64>::builder().stalled(Stalled::Wait).build();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (end, is_over) = std::sync::mpsc::channel::<()>();
    let reader = map.handle();
    let sleeper = thread::spawn(move || {
        let _guard = reader.pin();
        begun.send(()).unwrap();
        let _ = is_over.recv();
    });
    has_begun.recv().unwrap();
    map.insert(0, 0);
    let leave = move || {
        drop(end);
        sleeper.join().unwrap();
    };
    (map, leave)
}

/// Two tasks have the same reader in their way; neither wakes the other, and both are woken when it
/// leaves (`sleepers` Y2, Y3).
#[test]
fn tasks_that_wait_for_a_reader_are_woken_together() {
    let (map, leave) = stalled();
    let ((one, one_waker), (two, two_waker)) = (task(), task());
    let mut first = pin!(map.batch_async(|write| write.insert(1, 1)));
    let mut second = pin!(map.batch_async(|write| write.insert(2, 2)));
    for _ in 0..3 {
        assert!(poll(first.as_mut(), &one_waker).is_pending());
        assert!(poll(second.as_mut(), &two_waker).is_pending());
    }
    assert_eq!((one.woken(), two.woken()), (0, 0));
    leave();
    assert_eq!((one.woken(), two.woken()), (1, 1));
    assert_eq!(poll(second.as_mut(), &two_waker), Poll::Ready(Ok(None)));
    assert_eq!(poll(first.as_mut(), &one_waker), Poll::Ready(Ok(None)));
    assert_eq!(map.len(), 3);
}

/// Somebody else asks meanwhile, and takes back what the gate was given: the task begins anew
/// (`sleepers` Y3).
#[test]
fn a_task_is_woken_though_others_give_up() {
    let (map, leave) = stalled();
    let (count, waker) = task();
    let mut future = pin!(map.batch_async(|write| write.insert(1, 1)));
    assert!(poll(future.as_mut(), &waker).is_pending());
    assert_eq!(map.try_batch(|write| write.insert(2, 2)), Err(GuardError::Occupied));
    assert_eq!(count.woken(), 1);
    assert!(poll(future.as_mut(), &waker).is_pending());
    let soon = Duration::from_millis(1);
    assert_eq!(map.batch_timeout(soon, |write| write.insert(2, 2)), Err(GuardError::TimedOut));
    assert_eq!(count.woken(), 2);
    assert!(poll(future.as_mut(), &waker).is_pending());
    leave();
    assert_eq!(count.woken(), 3);
    assert_eq!(poll(future.as_mut(), &waker), Poll::Ready(Ok(None)));
}

/// A task that was the last to ask is dropped or forgotten: the others are woken all the same
/// (`sleepers` Y2).
#[test]
fn a_task_that_is_gone_takes_no_wake_up_along() {
    for forgets in [false, true] {
        let (map, leave) = stalled();
        let ((count, waker), (_, other)) = (task(), task());
        let mut future = pin!(map.batch_async(|write| write.insert(1, 1)));
        assert!(poll(future.as_mut(), &waker).is_pending());
        let mut gone = Box::pin(map.batch_async(|write| write.insert(2, 2)));
        assert!(poll(gone.as_mut(), &other).is_pending());
        if forgets {
            std::mem::forget(gone)
        } else {
            drop(gone)
        }
        leave();
        assert_eq!(count.woken(), 1);
        assert_eq!(poll(future.as_mut(), &waker), Poll::Ready(Ok(None)));
        assert_eq!(map.len(), 2);
    }
}

/// A task waits for the lock, and its holder wakes it (`sleepers` Y1).
#[test]
fn a_task_that_waits_for_its_turn_is_woken() {
    let map = TwinSet::<u64>::new();
    let (count, waker) = task();
    let mut future = pin!(map.batch_async(|write| write.insert(1)));
    map.batch(|write| {
        thread::scope(|scope| {
            let asked = scope.spawn(|| poll(future.as_mut(), &waker).is_pending());
            assert!(asked.join().unwrap());
        });
        write.insert(2)
    });
    assert_eq!(count.woken(), 1);
    assert_eq!(poll(future.as_mut(), &waker), Poll::Ready(Ok(true)));
    assert_eq!(map.len(), 2);
}

#[test]
fn a_task_waits_for_a_version() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let (count, waker) = task();
    let mut future = pin!(reader.wait_for_async(2));
    assert!(poll(future.as_mut(), &waker).is_pending());
    drop(reader.wait_for_async(2));
    writer.guard().insert(1, 1);
    assert_eq!(count.woken(), 1);
    assert!(poll(future.as_mut(), &waker).is_pending());
    writer.guard().insert(2, 2);
    assert_eq!(count.woken(), 2);
    let Poll::Ready(Ok(version)) = poll(future.as_mut(), &waker) else { panic!("not arrived") };
    assert_eq!((version.len(), version.version()), (2, 2));
    let mut never = pin!(reader.wait_for_async(3));
    assert!(poll(never.as_mut(), &waker).is_pending());
    drop(writer);
    assert_eq!(count.woken(), 3);
    let Poll::Ready(Err(error)) = poll(never.as_mut(), &waker) else {
        panic!("what else can come?")
    };
    assert_eq!(error, WaitError::WriterGone);
}
