//! Scenarios for ThreadSanitizer and AddressSanitizer, in a program without a test harness: a sanitizer does not see inside the
//! precompiled standard library, whose channels and mutexes would raise false alarms. Run without a sanitizer they
//! are short stress tests.
//!
//! `QUINTET_CONTROL=race` and `QUINTET_CONTROL=free` run a deliberate data race and a deliberate use after free: a
//! sanitizer that stays silent there proves nothing elsewhere.

use quintet::internal::{Barrier, Domain, Retired, Visit};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

fn main() {
    match std::env::var("QUINTET_CONTROL").as_deref() {
        Ok("race") => return control_race(),
        Ok("free") => return control_free(),
        Ok(other) => panic!("QUINTET_CONTROL={other}: use race or free"),
        Err(_) => {}
    }
    let scenarios: &[(&str, fn())] = &[("reclaim", reclaim)];
    for (name, scenario) in scenarios {
        scenario();
        println!("scenario {name} ... ok");
    }
    println!("{} passed, 0 failed", scenarios.len());
}

/// Runs the tasks in threads and joins them one by one: a scope's end is invisible to ThreadSanitizer, a join is not.
fn crew<const N: usize>(tasks: [Box<dyn FnOnce() + Send>; N]) {
    let threads = tasks.map(std::thread::spawn);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

struct Piece {
    value: u64,
    birth: u64,
}

/// A piece behind a pointer that a writer replaces and readers follow.
struct Cell {
    domain: Domain,
    root: AtomicPtr<Piece>,
    stop: AtomicBool,
}

impl Cell {
    fn fresh(&self, value: u64) -> *mut Piece {
        Box::into_raw(Box::new(Piece { value, birth: self.domain.era() }))
    }

    fn look(&self, visit: &Visit<'_>) {
        let mut last = 0;
        loop {
            let place = self.root.load(Ordering::Acquire);
            if visit.check() {
                // SAFETY: checked, so the piece lives until the section ends.
                let value = unsafe { &*place }.value;
                assert!(value >= std::mem::replace(&mut last, value));
                return;
            }
        }
    }

    fn replace(&self, value: u64) {
        let section = self.domain.pin();
        let old = self.root.swap(self.fresh(value), Ordering::AcqRel);
        // SAFETY: only this thread retires pieces, so the old one is alive.
        let birth = unsafe { &*old }.birth;
        // SAFETY: made from a box by `fresh`.
        let old = unsafe { Retired::boxed(old, birth) };
        // SAFETY: unlinked by the swap, retired once.
        unsafe { section.retire(old) };
    }
}

/// Readers by pins and by quiet points, a writer that retires.
fn reclaim() {
    for barrier in [Barrier::Fence, Barrier::detect()] {
        let cell = Arc::new(Cell {
            domain: Domain::with_barrier(barrier),
            root: AtomicPtr::new(std::ptr::null_mut()),
            stop: AtomicBool::new(false),
        });
        cell.root.store(cell.fresh(0), Ordering::Release);
        let (pins, quiet, writes) = (Arc::clone(&cell), Arc::clone(&cell), Arc::clone(&cell));
        crew([
            Box::new(move || {
                let handle = pins.domain.join();
                while !pins.stop.load(Ordering::Relaxed) {
                    pins.look(&handle.pin());
                }
            }),
            Box::new(move || {
                let mut handle = quiet.domain.join_quiet();
                while !quiet.stop.load(Ordering::Relaxed) {
                    quiet.look(&handle.visit());
                    handle.quiescent();
                }
            }),
            Box::new(move || {
                (1..20_000).for_each(|value| writes.replace(value));
                writes.stop.store(true, Ordering::Relaxed);
            }),
        ]);
        // SAFETY: all threads have ended.
        drop(unsafe { Box::from_raw(cell.root.load(Ordering::Relaxed)) });
    }
}

struct Racy(UnsafeCell<u64>);
// SAFETY: none; this is the control that must be flagged.
unsafe impl Send for Racy {}
// SAFETY: none; this is the control that must be flagged.
unsafe impl Sync for Racy {}

fn control_race() {
    let cell = Arc::new(Racy(UnsafeCell::new(0)));
    let task = |cell: Arc<Racy>| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            for _ in 0..100_000 {
                // SAFETY: none; this is the control that must be flagged.
                unsafe { *cell.0.get() += 1 };
            }
        })
    };
    crew([task(Arc::clone(&cell)), task(Arc::clone(&cell))]);
    println!("control race: {:?}", cell.0.get());
}

fn control_free() {
    let place = Box::into_raw(Box::new([7u64; 8]));
    // SAFETY: made from a box.
    drop(unsafe { Box::from_raw(place) });
    // SAFETY: none; this is the control that must be flagged.
    let stale = unsafe { std::ptr::read_volatile(place) };
    println!("control free: {}", stale[0]);
}
