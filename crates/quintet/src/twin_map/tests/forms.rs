//! Every call that waits, in its forms that do not: with guards in the way that never end, each is
//! told, and a task is woken when one of them does end.

use super::tasks::{poll, task};
use super::*;
use crate::sync::thread;
use std::pin::pin;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(5);

/// A guard that another thread has forgotten. It ends with the handle.
fn forgotten<T: Send + Sync + 'static>(reader: &Reader<T>) -> Reader<T> {
    let reader = reader.clone();
    let forget = move || {
        std::mem::forget(reader.pin());
        reader
    };
    thread::spawn(forget).join().unwrap()
}

/// A writer behind two guards of two old versions: told by each form, then freed by the end of one.
macro_rules! told {
    ($writer:ident, $reader:ident, $write:expr) => {
        let mut guards: Vec<_> = Vec::new();
        for _ in 0..2 {
            guards.push(forgotten(&$reader));
            $write($writer.guard());
        }
        assert_eq!($writer.try_guard().err(), Some(GuardError::Occupied));
        assert_eq!($writer.guard_timeout(SOON).err(), Some(GuardError::TimedOut));
        let before = $reader.version();
        for last in [false, true] {
            // A task that gives up, then one that waits.
            let (count, waker) = task();
            let mut future = pin!($writer.guard_async());
            assert!(poll(future.as_mut(), &waker).is_pending());
            assert!(poll(future.as_mut(), &waker).is_pending());
            if last {
                assert_eq!(count.woken(), 0);
                drop(guards.pop());
                assert_eq!(count.woken(), 1);
                let ready = poll(future.as_mut(), &waker);
                let std::task::Poll::Ready(Ok(guard)) = ready else { panic!("woken for nothing") };
                $write(guard);
            }
        }
        assert_eq!($reader.version(), before + 1);
    };
}

#[test]
fn a_writer_of_a_map_is_told_in_every_form() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    told!(writer, reader, |mut guard: WriteGuard<'_, u64, u64>| guard.insert(1, 1));
}

#[test]
fn a_writer_of_a_set_is_told_in_every_form() {
    let (mut writer, reader) = TwinSet::<u64>::new().split();
    let mut next = 0;
    told!(writer, reader, |mut guard: SetWriteGuard<'_, u64>| {
        next += 1;
        guard.insert(next);
    });
}

/// Its writer waits for one guard already.
#[test]
fn a_writer_of_an_inert_map_is_told_in_every_form() {
    let (mut writer, reader) = InertMap::<u64, u64>::builder().build_inert();
    let guard = forgotten(&reader);
    writer.guard().insert(1, 1);
    assert_eq!(writer.try_guard().err(), Some(GuardError::Occupied));
    assert_eq!(writer.guard_timeout(SOON).err(), Some(GuardError::TimedOut));
    let (count, waker) = task();
    let mut future = pin!(writer.guard_async());
    assert!(poll(future.as_mut(), &waker).is_pending());
    drop(guard);
    assert_eq!(count.woken(), 1);
    assert!(poll(future.as_mut(), &waker).is_ready());
}

/// The tables themselves: all their writes are batches.
macro_rules! told_by_batches {
    ($table:ident, $write:expr) => {
        let reader = $table.handle();
        let mut guards: Vec<_> = Vec::new();
        for n in 0..2 {
            guards.push(forgotten(&reader));
            $table.batch(|write| $write(write, n));
        }
        assert_eq!($table.try_batch(|write| $write(write, 2)), Err(GuardError::Occupied));
        assert_eq!($table.batch_timeout(SOON, |write| $write(write, 2)), Err(GuardError::TimedOut));
        let (count, waker) = task();
        let mut future = pin!($table.batch_async(|write| $write(write, 2)));
        assert!(poll(future.as_mut(), &waker).is_pending());
        assert_eq!($table.len(), 2);
        drop(guards.pop());
        assert!(count.woken() > 0);
        assert!(poll(future.as_mut(), &waker).is_ready());
        assert_eq!($table.len(), 3);
    };
}

#[test]
fn a_map_is_told_in_every_form() {
    let map = TwinMap::<u64, u64>::new();
    told_by_batches!(map, |write: &mut WriteGuard<'_, u64, u64>, n| write.insert(n, n));
}

#[test]
fn a_set_is_told_in_every_form() {
    let set = TwinSet::<u64>::new();
    told_by_batches!(set, |write: &mut SetWriteGuard<'_, u64>, n| write.insert(n));
}

/// Waiting for a version: a look, a limit, a task.
#[test]
fn a_reader_is_told_in_every_form() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    assert!(reader.version() < 1);
    assert_eq!(reader.wait_for_timeout(1, SOON).err(), Some(WaitError::TimedOut));
    let (count, waker) = task();
    let mut future = pin!(reader.wait_for_async(1));
    assert!(poll(future.as_mut(), &waker).is_pending());
    writer.guard().insert(1, 1);
    assert_eq!(count.woken(), 1);
    assert!(poll(future.as_mut(), &waker).is_ready());
}
