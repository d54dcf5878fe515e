//! The protocol of readers and writer on small models, with fences on both sides (loom cannot
//! interrupt other threads).
//!
//! A copy is a tracked cell: guards read it, the writer writes it. loom reports any two such
//! accesses that no happens-before separates, which is a write under a guard; and a writer that
//! nobody wakes is a deadlock.

use super::*;
use crate::sync::{Arc, Barrier, thread};
use loom::cell::UnsafeCell;

/// Counts; its value is the version it was published as.
struct Tracked(UnsafeCell<u64>);

// SAFETY: loom checks every access.
unsafe impl Send for Tracked {}
// SAFETY: as above.
unsafe impl Sync for Tracked {}

impl Tracked {
    fn get(&self) -> u64 {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    fn add(&mut self, op: u64) {
        // SAFETY: loom checks that nobody else is here.
        self.0.with_mut(|value| unsafe { *value += op });
    }
}

impl Absorb<u64> for Tracked {
    type Old = ();
    fn absorb_first(&mut self, op: &mut u64) -> Option<()> {
        self.add(*op);
        None
    }
    fn absorb_second(&mut self, op: u64, _: &mut Vec<()>) -> Result<(), Differs> {
        self.add(op);
        Ok(())
    }
    fn rebuild(from: &Self) -> Self {
        Self(UnsafeCell::new(from.get()))
    }
    fn agrees(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

type Writer = Twin<Tracked, u64>;

fn pair() -> (Writer, Reader<Tracked>) {
    Twin::with(Tracked(UnsafeCell::new(0)), Stalled::Wait, Barrier::Fence)
}

fn model(test: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, test);
}

fn publish(twin: &mut Writer, times: usize) {
    for _ in 0..times {
        let mut write = twin.guard();
        write.apply(1);
        write.publish();
    }
}

/// Reads through so many guards; each sees what its version says, and none goes back.
fn read(reader: &Reader<Tracked>, guards: usize) {
    let mut last = 0;
    for _ in 0..guards {
        let guard = reader.pin();
        let seen = guard.get();
        assert_eq!(seen, guard.version());
        assert!(seen >= last);
        last = seen;
        assert_eq!(guard.get(), seen);
    }
}

/// Enter, flip, leave; the third publish writes the copy the first reader may have seen, and parks
/// for it.
#[test]
fn loom_one_reader_and_three_publishes() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            read(&reader, 2);
            reader
        });
        publish(&mut twin, 3);
        drop(reading.join().unwrap());
        assert_eq!(twin.stats().rebuilds, 0);
    });
}

/// Two old readers: the first to leave wakes the writer, which must arm, barrier and look again for
/// the second.
#[test]
fn loom_the_writer_arms_anew_for_the_second_reader() {
    model(|| {
        let (mut twin, reader) = pair();
        let other = reader.clone();
        let one = thread::spawn(move || {
            read(&reader, 1);
            reader
        });
        let two = thread::spawn(move || {
            read(&other, 1);
            other
        });
        publish(&mut twin, 2);
        drop(one.join().unwrap());
        drop(two.join().unwrap());
    });
}

/// The write handle moves to another thread between two waits: a late waker must not swallow the
/// second one's wake-up.
#[test]
fn loom_the_write_handle_moves_between_waits() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            read(&reader, 2);
            reader
        });
        publish(&mut twin, 2);
        let moved = thread::spawn(move || {
            publish(&mut twin, 1);
            twin
        });
        drop(moved.join().unwrap());
        drop(reading.join().unwrap());
    });
}

/// Two waits follow each other at once: the waker of the first may still be taking the parker when
/// the second is prepared.
#[test]
fn loom_a_late_waker_and_the_next_wait_share_no_parker() {
    model(|| {
        let (mut twin, reader) = pair();
        let other = reader.clone();
        let reading = [reader, other].map(|reader| {
            thread::spawn(move || {
                read(&reader, 1);
                reader
            })
        });
        publish(&mut twin, 3);
        reading.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    });
}

/// An owned guard is taken, shared, sent away and dropped: its copy is not written meanwhile, and
/// freed once (`core` C2, C3).
#[test]
fn loom_an_owned_guard_keeps_its_copy() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            let guard = reader.owned_pin();
            let seen = guard.get();
            assert_eq!(seen, guard.version());
            let dropping = guard.clone();
            assert_eq!(guard.get(), seen);
            drop(guard);
            (reader, dropping)
        });
        publish(&mut twin, 2);
        let (reader, guard) = reading.join().unwrap();
        let seen = guard.get();
        publish(&mut twin, 2);
        assert_eq!((guard.get(), guard.version()), (seen, seen));
        drop(twin);
        assert_eq!(reader.pin().get(), 4);
    });
}

/// The last owner of a copy leaves while the writer asks whether the copy is its own (`core` C2).
#[test]
fn loom_the_last_owner_leaves_beside_the_writer() {
    model(|| {
        let (mut twin, reader) = pair();
        let guard = reader.owned_pin();
        publish(&mut twin, 1);
        let leaving = thread::spawn(move || assert_eq!(guard.get(), 0));
        publish(&mut twin, 1);
        leaving.join().unwrap();
        assert!(twin.stats().left_behind <= 1);
        publish(&mut twin, 1);
        assert_eq!(reader.pin().get(), 3);
    });
}

/// Readers close the fenced door beside a publish (`gate` D9): whichever comes first, the publish
/// knows which door it has closed.
#[test]
fn loom_readers_close_the_fenced_door() {
    model(|| {
        let (mut twin, reader) = pair();
        publish(&mut twin, 1); // by the fenced door
        let reading = thread::spawn(move || {
            read(&reader, 2);
            reader
        });
        publish(&mut twin, 2);
        drop(reading.join().unwrap());
    });
}

/// Somebody unparks the writer for no reason.
#[test]
fn loom_spurious_wake_ups_cost_a_round() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            read(&reader, 1);
            reader
        });
        let writing = thread::spawn(move || {
            publish(&mut twin, 2);
            twin
        });
        writing.thread().unpark();
        drop(writing.join().unwrap());
        drop(reading.join().unwrap());
    });
}

/// A handle is made while a publish runs.
#[test]
fn loom_a_handle_joins_during_a_publish() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            let fresh = reader.clone();
            read(&fresh, 1);
            (reader, fresh)
        });
        publish(&mut twin, 2);
        drop(reading.join().unwrap());
    });
}

/// A handle is dropped with a forgotten guard on it while the writer waits: the drop wakes it.
#[test]
fn loom_dropping_a_handle_ends_its_forgotten_guards() {
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            std::mem::forget(reader.pin());
            drop(reader);
        });
        publish(&mut twin, 2);
        reading.join().unwrap();
    });
}

/// Two threads use one shared handle: its counts change by read-modify-write.
#[test]
fn loom_shared_readers() {
    model(|| {
        let (mut twin, reader) = pair();
        let shared = Arc::new(reader.shared());
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let guard = shared.pin();
                    assert_eq!(guard.get(), guard.version());
                })
            })
            .collect();
        publish(&mut twin, 2);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A reader that looks again after another told it of a version does not see an older one: one
/// readable word.
#[test]
fn loom_a_publish_is_one_moment_for_all_readers() {
    use crate::sync::{AtomicU64, Ordering};
    model(|| {
        let (mut twin, reader) = pair();
        let other = reader.clone();
        let told = Arc::new(AtomicU64::new(0));
        let telling = Arc::clone(&told);
        let first = thread::spawn(move || {
            let guard = reader.pin();
            telling.store(guard.get(), Ordering::Release);
            drop(guard);
            reader
        });
        let second = thread::spawn(move || {
            let told = told.load(Ordering::Acquire);
            let guard = other.pin();
            assert!(guard.get() >= told);
            drop(guard);
            other
        });
        publish(&mut twin, 1);
        drop(first.join().unwrap());
        drop(second.join().unwrap());
    });
}

fn homing(stalled: Stalled) -> (Writer, Reader<Tracked>) {
    let (mut twin, reader) = Twin::with(Tracked(UnsafeCell::new(0)), stalled, Barrier::Fence);
    twin.pace.insists = true;
    (twin, reader)
}

/// Readers come, visit and go beside publishes that send them home: the copy there is not written
/// under a guard, and shows the version that it shows (`home` H1, H2).
#[test]
fn loom_readers_are_sent_home() {
    model(|| {
        let (mut twin, reader) = homing(Stalled::Wait);
        let reading = thread::spawn(move || {
            read(&reader, 3);
            reader
        });
        publish(&mut twin, 2);
        drop(reading.join().unwrap());
        assert_eq!(twin.stats().rebuilds, 0);
    });
}

/// Two readers: one may be at home while the other visits. Neither sees an older version after a
/// newer one, nor after the other has told it (`home` H2, H3).
#[test]
fn loom_a_return_shows_nobody_an_older_version() {
    use crate::sync::{AtomicU64, Ordering};
    model(|| {
        let (mut twin, reader) = homing(Stalled::Wait);
        let other = reader.clone();
        let told = Arc::new(AtomicU64::new(0));
        let telling = Arc::clone(&told);
        let first = thread::spawn(move || {
            let guard = reader.pin();
            assert_eq!(guard.get(), guard.version());
            telling.store(guard.get(), Ordering::Release);
            drop(guard);
            reader
        });
        let second = thread::spawn(move || {
            let told = told.load(Ordering::Acquire);
            let guard = other.pin();
            assert_eq!(guard.get(), guard.version());
            assert!(guard.get() >= told);
            drop(guard);
            other
        });
        publish(&mut twin, 1);
        drop(first.join().unwrap());
        drop(second.join().unwrap());
    });
}

/// An owned guard of the copy at home, or of the visited one, keeps what it shows (`core` C2,
/// `home` H5).
#[test]
fn loom_an_owned_guard_is_taken_beside_a_return() {
    model(|| {
        let (mut twin, reader) = homing(Stalled::Copy);
        let reading = thread::spawn(move || {
            let guard = reader.owned_pin();
            assert_eq!(guard.get(), guard.version());
            (reader, guard)
        });
        publish(&mut twin, 2);
        let (reader, guard) = reading.join().unwrap();
        assert_eq!(guard.get(), guard.version());
        publish(&mut twin, 1);
        assert_eq!(guard.get(), guard.version());
        assert_eq!(reader.pin().get(), 3);
    });
}

/// A copy is left to its reader, and others are sent home meanwhile.
#[test]
fn loom_a_copy_is_left_behind_beside_a_return() {
    model(|| {
        let (mut twin, reader) = homing(Stalled::Copy);
        let reading = thread::spawn(move || {
            read(&reader, 2);
            reader
        });
        publish(&mut twin, 3);
        drop(reading.join().unwrap());
    });
}

/// A version that is waited for comes with the publish; the return that follows announces nothing
/// and takes nothing away (`home` H2).
#[test]
fn loom_waiting_for_a_version_beside_a_return() {
    model(|| {
        let (mut twin, reader) = homing(Stalled::Wait);
        let waiting = thread::spawn(move || {
            assert_eq!(reader.wait_for(2).unwrap().get(), 2);
            reader
        });
        publish(&mut twin, 2);
        drop(waiting.join().unwrap());
    });
}

/// A task is woken by the last reader; a future that is forgotten leaves the state armed, and the
/// next guard copes.
#[test]
fn loom_a_task_waits_and_a_future_is_forgotten() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    model(|| {
        let (mut twin, reader) = pair();
        let reading = thread::spawn(move || {
            read(&reader, 1);
            reader
        });
        publish(&mut twin, 1);
        let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut forgotten = std::mem::ManuallyDrop::new(twin.guard_async());
        let _ = std::pin::Pin::new(&mut *forgotten).poll(&mut context);
        let mut future = pin!(twin.guard_async());
        let mut write = loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(write) => break write.unwrap(),
                Poll::Pending => thread::park(),
            }
        };
        write.apply(1);
        write.publish();
        drop(reading.join().unwrap());
    });
}

/// A thread waits for a version that is published meanwhile.
#[test]
fn loom_waiting_for_a_version() {
    model(|| {
        let (mut twin, reader) = pair();
        let waiting = thread::spawn(move || {
            assert_eq!(reader.wait_for(1).unwrap().get(), 1);
            reader
        });
        publish(&mut twin, 1);
        drop(waiting.join().unwrap());
    });
}

/// The writer ends while a thread waits for a version that never comes.
#[test]
fn loom_the_writer_ends_while_a_version_is_awaited() {
    model(|| {
        let (twin, reader) = pair();
        let waiting = thread::spawn(move || {
            assert_eq!(reader.wait_for(1).err(), Some(WaitError::WriterGone));
            reader
        });
        drop(twin);
        drop(waiting.join().unwrap());
    });
}

/// The copy that a reader does not leave is left to it.
#[test]
fn loom_an_occupied_copy_is_left_behind() {
    model(|| {
        let first = Tracked(UnsafeCell::new(0));
        let (mut twin, reader) = Twin::with(first, Stalled::Copy, Barrier::Fence);
        let reading = thread::spawn(move || {
            read(&reader, 2);
            reader
        });
        publish(&mut twin, 3);
        drop(reading.join().unwrap());
    });
}

/// Guards of two old versions are in the way, and the older one ends: its place is free, so the
/// writer is woken and goes on (`gate` D6).
#[test]
fn loom_either_of_two_old_versions_lets_the_writer_go_on() {
    for newer in [false, true] {
        model(move || {
            let first = Tracked(UnsafeCell::new(0));
            let (mut twin, reader) = Twin::with(first, Stalled::Copy, Barrier::Fence);
            let mut kept = [reader.clone(), reader];
            for reader in &kept {
                std::mem::forget(reader.pin());
                publish(&mut twin, 1);
            }
            if newer {
                kept.reverse();
            }
            let [ended, kept] = kept;
            let writing = thread::spawn(move || {
                publish(&mut twin, 1);
                twin
            });
            drop(ended);
            let twin = writing.join().unwrap();
            assert_eq!(twin.version(), 3);
            drop(kept);
        });
    }
}
