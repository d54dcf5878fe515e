//! Who waits for whom, and who does not.

use super::super::*;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, thread};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// A map whose writer waits for readers instead of making a third copy.
fn patient() -> TwinMap<u64, u64> {
    TwinMap::builder().stalled(Stalled::Wait).build()
}

const SOON: Duration = Duration::from_millis(20);

/// A guard held by this thread blocks the write after next, and says so instead of hanging.
#[test]
fn a_thread_does_not_wait_for_itself() {
    for builder in [TwinMap::<u64, u64>::builder(), TwinMap::builder().fences()] {
        let (mut writer, reader) = builder.stalled(Stalled::Wait).build().split();
        let guard = reader.pin();
        writer.guard().insert(1, 1);
        assert!(matches!(writer.guard_timeout(SOON).err(), Some(GuardError::WouldDeadlock)));
        assert!(matches!(writer.try_guard().err(), Some(GuardError::Occupied)));
        assert_eq!(guard.get(&1), None);
        drop(guard);
        writer.guard().insert(2, 2);
        assert_eq!(reader.pin().len(), 2);
    }
}

#[test]
#[should_panic(expected = "would wait for itself")]
fn guard_panics_instead_of_waiting_for_its_own_thread() {
    let (mut writer, reader) = patient().split();
    let _guard = reader.pin();
    writer.guard().insert(1, 1);
    writer.guard();
}

/// A forgotten guard is as good as a held one, until its handle is dropped.
#[test]
fn a_forgotten_read_guard_ends_with_its_handle() {
    let (mut writer, reader) = patient().split();
    let careless = reader.clone();
    std::mem::forget(careless.pin());
    std::mem::forget(careless.pin());
    writer.guard().insert(1, 1);
    assert!(matches!(writer.guard_timeout(SOON).err(), Some(GuardError::WouldDeadlock)));
    drop(careless);
    writer.guard().insert(2, 2);
    assert_eq!(reader.pin().len(), 2);
}

/// Another thread's guard: the writer waits, and times out.
#[test]
fn a_reader_asleep_blocks_only_the_write_after_next() {
    let (mut writer, reader) = patient().split();
    let other = reader.clone();
    let (asleep, awake) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (asleep2, awake2) = (Arc::clone(&asleep), Arc::clone(&awake));
    let sleeper = thread::spawn(move || {
        let guard = other.pin();
        asleep2.store(true, Ordering::Release);
        while !awake2.load(Ordering::Acquire) {
            thread::yield_now();
        }
        assert_eq!((guard.get(&1), guard.version()), (None, 0));
    });
    while !asleep.load(Ordering::Acquire) {
        thread::yield_now();
    }
    writer.guard().insert(1, 1);
    assert_eq!(reader.pin().get(&1), Some(&1), "one write goes through");
    assert!(matches!(writer.try_guard().err(), Some(GuardError::Occupied)));
    assert!(matches!(writer.guard_timeout(SOON).err(), Some(GuardError::TimedOut)));
    assert!(writer.stats().parks > 0);
    assert_eq!(reader.pin().len(), 1, "readers never wait");
    awake.store(true, Ordering::Release);
    writer.guard().insert(2, 2);
    sleeper.join().unwrap();
    assert_eq!(reader.pin().len(), 2);
}

/// With `Stalled::Copy` the sleeper keeps its copy, and writing goes on; the copy is dropped when
/// it leaves.
#[test]
fn a_reader_asleep_is_left_behind() {
    let value = Arc::new(());
    let (mut writer, reader) =
        TwinMap::<u64, Arc<()>>::builder().stalled(Stalled::Copy).build().split();
    writer.guard().insert(0, Arc::clone(&value));
    drop(writer.guard());
    let asleep = reader.pin();
    for n in 1..10 {
        writer.guard().insert(n, Arc::clone(&value));
    }
    assert_eq!(asleep.len(), 1);
    assert_eq!(reader.pin().len(), 10);
    assert_eq!(writer.stats().left_behind, 1);
    let held = Arc::strong_count(&value);
    drop(asleep);
    writer.guard().remove(&1);
    drop(writer.guard());
    assert!(Arc::strong_count(&value) < held);
    assert_eq!(reader.pin().len(), 9);
}

/// Both places behind the readable one are occupied: then it waits after all.
#[test]
fn two_readers_asleep_fill_all_places() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let (first, second) = (asleep(reader.clone()), {
        writer.guard().insert(1, 1);
        asleep(reader.clone())
    });
    writer.guard().insert(2, 2);
    assert!(matches!(writer.guard_timeout(SOON).err(), Some(GuardError::TimedOut)));
    assert_eq!(reader.pin().len(), 2);
    assert_eq!(second.wake(), 1);
    writer.guard().insert(3, 3);
    assert_eq!(reader.pin().len(), 3);
    assert_eq!(first.wake(), 0);
}

/// Of the two, the older one leaves, and not the one whose copy is next: that place is free, so the
/// write goes on. With a limit, without, and as a task.
#[test]
fn the_older_of_two_sleepers_lets_a_write_go_on() {
    let asleep_twice = || {
        let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
        let first = asleep(reader.clone());
        writer.guard().insert(1, 1);
        let second = asleep(reader.clone());
        writer.guard().insert(2, 2);
        assert!(matches!(writer.try_guard().err(), Some(GuardError::Occupied)));
        (writer, reader, first, second)
    };
    let (mut writer, reader, first, second) = asleep_twice();
    let waker = thread::spawn(move || {
        thread::sleep(SOON);
        first.wake()
    });
    writer.guard().insert(3, 3);
    assert_eq!((reader.pin().len(), waker.join().unwrap(), second.wake()), (3, 0, 1));

    let (mut writer, reader, first, second) = asleep_twice();
    let waker = thread::spawn(move || {
        thread::sleep(SOON);
        first.wake()
    });
    block_on(writer.guard_async()).unwrap().insert(3, 3);
    assert_eq!((reader.pin().len(), waker.join().unwrap(), second.wake()), (3, 0, 1));
}

/// A thread that sleeps with a guard.
struct Asleep(thread::JoinHandle<usize>, Arc<AtomicBool>);

fn asleep(reader: MapReader<u64, u64>) -> Asleep {
    let (asleep, awake) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (fell_asleep, woken) = (Arc::clone(&asleep), Arc::clone(&awake));
    let thread = thread::spawn(move || {
        let guard = reader.pin();
        fell_asleep.store(true, Ordering::Release);
        while !woken.load(Ordering::Acquire) {
            thread::yield_now();
        }
        guard.len()
    });
    while !asleep.load(Ordering::Acquire) {
        thread::yield_now();
    }
    Asleep(thread, awake)
}

impl Asleep {
    /// Returns how many entries its version had.
    fn wake(self) -> usize {
        self.1.store(true, Ordering::Release);
        self.0.join().unwrap()
    }
}

/// A thread's own guard does not leave, another one may: it waits for that.
#[test]
fn a_thread_with_a_guard_waits_for_the_guard_of_another() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let other = asleep(reader.clone());
    writer.guard().insert(1, 1);
    let own = reader.pin();
    writer.guard().insert(2, 2); // the other's copy is left behind
    let waking = thread::spawn(move || {
        thread::sleep(SOON);
        other.wake()
    });
    writer.guard().insert(3, 3);
    assert_eq!((own.len(), reader.pin().len()), (1, 3));
    assert_eq!(waking.join().unwrap(), 0);
    let newer = reader.pin();
    writer.guard().insert(4, 4);
    assert!(matches!(writer.guard_timeout(SOON).err(), Some(GuardError::WouldDeadlock)));
    drop((own, newer));
    writer.guard().insert(5, 5);
}

/// Dropping the writer waits for nobody; readers go on for ever.
#[test]
fn dropping_the_writer_never_blocks() {
    let (mut writer, reader) = TwinMap::<u64, String>::new().split();
    let old = reader.pin();
    writer.guard().insert(1, "last".to_owned());
    let mut write = {
        let new = reader.pin();
        assert_eq!(new.len(), 1);
        drop(new);
        drop(old);
        writer.guard()
    };
    write.insert(2, "never seen".to_owned());
    std::mem::forget(write);
    let held = reader.pin();
    drop(writer);
    assert!(reader.is_final());
    assert_eq!(held.len(), 1);
    assert_eq!(reader.clone().pin().get(&1).map(String::as_str), Some("last"));
}

#[test]
fn nested_guards_end_in_any_order() {
    let (mut writer, reader) = patient().split();
    let mut guards = vec![reader.pin(), reader.pin()];
    writer.guard().insert(1, 1);
    guards.extend([reader.pin(), reader.pin(), reader.pin()]);
    assert_eq!(guards.iter().map(|guard| guard.len()).collect::<Vec<_>>(), [0, 0, 1, 1, 1]);
    for at in [0, 2, 0, 1] {
        assert!(writer.try_guard().is_err() || guards.iter().all(|guard| guard.version() == 1));
        drop(guards.remove(at));
    }
    writer.guard().insert(2, 2); // the old ones have gone
    assert!(writer.try_guard().is_err());
    drop(guards);
    writer.try_guard().unwrap().publish();
}

#[test]
fn owned_guards_travel() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let guard = reader.owned_pin();
    writer.guard().insert(1, 1);
    let thread = thread::spawn(move || {
        assert_eq!((guard.len(), guard.version()), (0, 0));
        guard
    });
    drop(thread.join().unwrap());
    writer.guard_timeout(SOON).unwrap().insert(2, 2);
}

#[test]
fn a_version_is_waited_for() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    assert!(matches!(reader.wait_for_timeout(1, SOON), Err(WaitError::TimedOut)));
    let other = reader.clone();
    let waiting = thread::spawn(move || other.wait_for(3).unwrap().get(&3).copied());
    for n in 1..=3 {
        writer.guard().insert(n, n * 10);
    }
    assert_eq!(waiting.join().unwrap(), Some(30));
    assert_eq!(reader.wait_for(2).unwrap().version(), 3);
    let waiting = thread::spawn(move || reader.wait_for(9).err());
    drop(writer);
    assert_eq!(waiting.join().unwrap(), Some(WaitError::WriterGone));
}

struct Unpark(thread::Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The least runtime there can be.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_task_waits_without_a_thread() {
    let (mut writer, reader) = patient().split();
    block_on(writer.guard_async()).unwrap().insert(1, 1);
    let other = asleep(reader.clone());
    block_on(writer.guard_async()).unwrap().insert(2, 2);
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(writer.guard_async()).poll(&mut context).is_pending());
    let leaving = thread::spawn(move || {
        thread::sleep(SOON);
        other.wake()
    });
    block_on(writer.guard_async()).unwrap().insert(3, 3);
    assert_eq!(leaving.join().unwrap(), 1);
    assert_eq!(reader.pin().len(), 3);
}

/// A thousand handles, made and dropped while the writer publishes.
#[test]
fn a_thousand_handles() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let readers: Vec<_> = (0..1_000).map(|_| reader.clone()).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (own, stop, seen) = (readers.clone(), Arc::clone(&stop), Arc::clone(&seen));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    for reader in own.iter().step_by(7) {
                        let fresh = reader.clone();
                        let (old, new) = (reader.pin(), fresh.pin());
                        assert_eq!(old.get(&0).copied().unwrap_or(0), old.version());
                        assert!(new.version() >= old.version());
                        seen.fetch_max(new.version(), Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for version in 1..=200 {
        let mut write = writer.guard();
        write.insert(0, version);
        assert_eq!(write.publish(), version);
    }
    while seen.load(Ordering::Relaxed) < 200 {
        thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(readers.iter().all(|reader| reader.pin().version() == 200));
}

/// One handle, many threads.
#[test]
fn a_shared_handle() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let shared = Arc::new(reader.shared());
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                while shared.pin().version() < 100 {
                    let guard = shared.pin();
                    assert_eq!(guard.get(&0).copied().unwrap_or(0), guard.version());
                }
            })
        })
        .collect();
    for version in 1..=100 {
        writer.guard().insert(0, version);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Publishes without pause go by the fenced door, and readers close it when there are no more.
#[test]
fn a_storm_of_publishes_needs_no_barrier_and_leaves_none_behind() {
    let (mut writer, reader) = TwinMap::<u64, u64>::new().split();
    let core = Arc::clone(reader.core());
    let mut row = 0;
    for n in 0..1_000_000 {
        writer.guard().insert(n % 100, n);
        row = if core.gate.peek().is_fenced() { row + 1 } else { 0 };
        if row == 200 || core.gate.has_fences() {
            break;
        }
    }
    assert!(row == 200 || core.gate.has_fences(), "{row}");
    for _ in 0..10_000 {
        assert_eq!(reader.pin().version(), writer.version());
    }
    assert!(!core.gate.peek().is_fenced());
    thread::sleep(SOON);
    writer.guard().insert(0, 0);
    assert!(!core.gate.peek().is_fenced());
}

/// Two threads, each inside of a batch of one table, write to the other's table: one of them is
/// told, the other goes on (`waits` K1).
#[test]
fn batches_of_two_tables_crosswise_are_told() {
    let tables = [TwinMap::<u64, u64>::new(), TwinMap::new()];
    let both_inside = std::sync::Barrier::new(2);
    let cross = |own: usize| {
        let write = std::panic::AssertUnwindSafe(|| {
            tables[own].batch(|write| {
                both_inside.wait();
                write.insert(own as u64, 0);
                tables[1 - own].insert(own as u64, 1);
            });
        });
        std::panic::catch_unwind(write).is_ok()
    };
    let went_on = thread::scope(|scope| {
        let other = scope.spawn(|| cross(1));
        [cross(0), other.join().unwrap()]
    });
    assert_eq!(went_on.iter().filter(|went| **went).count(), 1, "{went_on:?}");
    let winner = u64::from(went_on[1]);
    for (at, table) in tables.iter().enumerate() {
        let expected = if at as u64 == winner { 0 } else { 1 };
        assert_eq!((table.len(), table.get(&winner).as_deref()), (1, Some(&expected)));
    }
}

/// Two threads, each with guards of the table that the other writes (`waits` K1).
#[test]
fn guards_of_two_tables_crosswise_are_told() {
    let tables = [patient(), patient()];
    let both_hold = std::sync::Barrier::new(2);
    let cross = |own: usize| {
        let guard = tables[own].pin();
        both_hold.wait();
        let write = std::panic::AssertUnwindSafe(|| {
            (0..3).for_each(|n| assert_eq!(tables[1 - own].insert(n, n), None))
        });
        let went_on = std::panic::catch_unwind(write).is_ok();
        assert!(guard.is_empty());
        went_on
    };
    let went_on = thread::scope(|scope| {
        let other = scope.spawn(|| cross(1));
        [cross(0), other.join().unwrap()]
    });
    assert_eq!(went_on.iter().filter(|went| **went).count(), 1, "{went_on:?}");
}
