//! Every test runs with both barriers.

use super::*;
use crate::sync::{Arc, AtomicBool, AtomicPtr, AtomicUsize, Barrier, Ordering};
use std::sync::mpsc;

mod access;
mod held_back;
mod light;
mod nested;
mod quiet;
mod seats;

fn both(test: impl Fn(Domain)) {
    test(Domain::with_barrier(Barrier::Fence));
    if Barrier::detect() == Barrier::Asymmetric {
        test(Domain::with_barrier(Barrier::Asymmetric));
    } else {
        eprintln!("skipped: this system grants no process-wide barrier");
    }
}

/// Counts its drops.
struct Tracked(Arc<AtomicUsize>, #[allow(dead_code)] [u8; 100]);

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn tracked(drops: &Arc<AtomicUsize>, birth: u64) -> Retired {
    let place = Box::into_raw(Box::new(Tracked(Arc::clone(drops), [0; 100])));
    // SAFETY: fresh from a box that nobody else knows.
    unsafe { Retired::boxed(place, birth) }
}

/// Retires `count` pieces, each born in the era it is retired in, as a churning table does.
fn churn(handle: &Handle, domain: &Domain, drops: &Arc<AtomicUsize>, count: usize) {
    for _ in 0..count {
        let section = handle.pin();
        // SAFETY: never published, retired once.
        unsafe { section.retire(tracked(drops, domain.era())) };
    }
}

#[test]
fn everything_is_dropped_once_when_the_domain_drops() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let handle = domain.join();
        churn(&handle, &domain, &drops, 1_000);
        drop(handle);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let section = domain.pin();
                // SAFETY: never published, retired once.
                unsafe { section.retire(tracked(&drops, domain.era())) };
            });
        });
        drop(domain);
        assert_eq!(drops.load(Ordering::SeqCst), 1_001);
    });
}

#[test]
fn nothing_is_freed_under_a_reader_and_all_after_it() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let born = domain.era();
        let section = reader.pin();
        for _ in 0..10 * BATCH {
            let section = writer.pin();
            // SAFETY: never published, retired once; born before the reader entered.
            unsafe { section.retire(tracked(&drops, born)) };
        }
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        assert_eq!(domain.backlog().items, 10 * BATCH);
        drop(section);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 10 * BATCH);
        assert_eq!(domain.backlog().items, 0);
    });
}

#[test]
fn a_section_restarts_at_most_twice() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let section = reader.pin();
        let mut refused = 0;
        for _ in 0..10 {
            churn(&writer, &domain, &drops, BATCH);
            writer.flush();
            refused += usize::from(!section.check());
        }
        assert_eq!(refused, 2);
    });
}

#[test]
fn quiet_points_let_go_and_offline_holds_nothing() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let writer = domain.join();
        let mut reader = domain.join_quiet();
        let born = domain.era();
        let retire = |count: usize| {
            for _ in 0..count {
                // SAFETY: never published, retired once.
                unsafe { writer.pin().retire(tracked(&drops, born)) };
            }
            writer.flush();
        };
        retire(5);
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        reader.quiescent();
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 5);
        let offline = reader.offline();
        retire(5);
        assert_eq!(drops.load(Ordering::SeqCst), 10);
        drop(offline);
        retire(5);
        assert_eq!(drops.load(Ordering::SeqCst), 10);
        // SAFETY: never published, retired once.
        unsafe { reader.visit().retire(tracked(&drops, born)) };
        reader.flush();
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 16);
    });
}

#[test]
fn nested_and_forgotten_sections() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let born = domain.era();
        let (outer, inner) = (reader.pin(), reader.pin());
        // SAFETY: never published, retired once.
        unsafe { writer.pin().retire(tracked(&drops, born)) };
        drop(outer);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "the other section is still open");
        std::mem::forget(inner);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "a forgotten section holds back");
        drop(reader);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 1, "its handle's end ends it");
    });
}

#[test]
fn garbage_of_a_thread_that_ended_is_adopted() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let held = domain.pin();
        let (in_thread, counter) = (domain.clone(), Arc::clone(&drops));
        // Joined, not scoped: a scope may end before its threads' locals are destroyed.
        std::thread::spawn(move || {
            let section = in_thread.pin();
            // SAFETY: never published, retired once.
            unsafe { section.retire(tracked(&counter, 0)) };
        })
        .join()
        .unwrap();
        drop(held);
        assert_eq!(domain.backlog().items, 1);
        domain.flush();
        assert_eq!((drops.load(Ordering::SeqCst), domain.backlog().items), (1, 0));
    });
}

/// A panicking drop reaches the caller once, and the other pieces are freed all the same.
#[test]
fn a_panicking_drop_does_not_lose_the_rest() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
    }
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let handle = domain.join();
        for round in 0..10 {
            let section = handle.pin();
            // SAFETY: never published, retired once.
            unsafe { section.retire(tracked(&drops, 0)) };
            if round % 3 == 0 {
                let bomb = Box::into_raw(Box::new(Bomb));
                // SAFETY: fresh from a box.
                let bomb = unsafe { Retired::boxed(bomb, 0) };
                // SAFETY: never published, retired once.
                unsafe { section.retire(bomb) };
            }
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| handle.flush()));
        assert!(outcome.is_err());
        assert_eq!((drops.load(Ordering::SeqCst), domain.backlog().items), (10, 0));
        churn(&handle, &domain, &drops, 1);
        handle.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 11, "the seat goes on working");
    });
}

/// Drops that pin and retire again, as values that own a table do.
#[test]
fn a_drop_may_use_the_domain() {
    struct Chain(Domain, u32, Arc<AtomicUsize>);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.2.fetch_add(1, Ordering::SeqCst);
            if self.1 > 0 {
                let next = Chain(self.0.clone(), self.1 - 1, Arc::clone(&self.2));
                let next = Box::into_raw(Box::new(next));
                // SAFETY: fresh from a box.
                let next = unsafe { Retired::boxed(next, 0) };
                // SAFETY: never published, retired once.
                unsafe { self.0.pin().retire(next) };
            }
        }
    }
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        drop(Box::new(Chain(domain.clone(), 100, Arc::clone(&drops))));
        for _ in 0..200 {
            domain.flush();
        }
        assert_eq!(drops.load(Ordering::SeqCst), 101);
    });
}

#[test]
fn large_pieces_are_freed_step_by_step() {
    // SAFETY: `place` is the counter of the test below, which outlives the domain.
    unsafe fn three_steps(place: *mut ()) -> Freed {
        // SAFETY: see above.
        let steps = unsafe { &*place.cast::<AtomicUsize>() };
        if steps.fetch_add(1, Ordering::SeqCst) == 2 { Freed::Done } else { Freed::More }
    }
    let steps = AtomicUsize::new(0);
    let domain = Domain::new();
    let handle = domain.join();
    let place = (&raw const steps).cast_mut().cast();
    // SAFETY: the counter outlives the domain and may be counted up by any thread.
    let piece = unsafe { Retired::new(place, BATCH_BYTES, 0, three_steps) };
    // SAFETY: never published, retired once.
    unsafe { handle.pin().retire(piece) };
    assert_eq!(steps.load(Ordering::SeqCst), 1, "a large piece does not wait for a batch");
    assert!(domain.return_piece());
    assert!(!domain.return_piece());
    assert_eq!(steps.load(Ordering::SeqCst), 3);
    assert_eq!(domain.backlog().bytes, 0);
}

/// A piece that tells when it is looked at after it was freed.
struct Checked(AtomicUsize, u64);

impl Drop for Checked {
    fn drop(&mut self) {
        self.0.store(0xdead, Ordering::SeqCst);
    }
}

impl Checked {
    fn alive(domain: &Domain) -> *mut Self {
        Box::into_raw(Box::new(Self(AtomicUsize::new(0xa11fe), domain.era())))
    }

    fn look(root: &AtomicPtr<Self>, visit: &Visit<'_>) {
        loop {
            let place = root.load(Ordering::Acquire);
            if visit.check() {
                // SAFETY: checked, so the piece is not freed before the section ends.
                let seen = unsafe { &*place };
                assert_eq!(seen.0.load(Ordering::Relaxed), 0xa11fe);
                return;
            }
        }
    }

    /// To be called by one thread only.
    fn replace(root: &AtomicPtr<Self>, visit: &Visit<'_>, domain: &Domain) {
        let old = root.swap(Self::alive(domain), Ordering::AcqRel);
        // SAFETY: only this thread retires, so the piece is not freed yet.
        let birth = unsafe { &*old }.1;
        // SAFETY: made by `alive` from a box.
        let old = unsafe { Retired::boxed(old, birth) };
        // SAFETY: unlinked by the swap, retired once.
        unsafe { visit.retire(old) };
    }
}

/// Repeats a step inside of sections of one kind, until it says no.
type Steps = fn(&Domain, &mut dyn FnMut(&Visit<'_>) -> bool);

/// Readers follow a pointer that a writer keeps replacing; freed memory is overwritten, so a
/// premature free is seen.
fn look_while_it_is_replaced(domain: &Domain, readers: &[Steps], write: Steps) {
    let root = AtomicPtr::new(Checked::alive(domain));
    let stop = AtomicBool::new(false);
    let mut rounds = if cfg!(debug_assertions) { 100_000 } else { 400_000 };
    std::thread::scope(|scope| {
        for read in readers {
            scope.spawn(|| {
                read(domain, &mut |visit| {
                    Checked::look(&root, visit);
                    !stop.load(Ordering::Relaxed)
                });
            });
        }
        write(domain, &mut |visit| {
            Checked::replace(&root, visit, domain);
            rounds -= 1;
            rounds > 0
        });
        stop.store(true, Ordering::Relaxed);
    });
    // SAFETY: all threads have ended.
    drop(unsafe { Box::from_raw(root.load(Ordering::Relaxed)) });
}

fn by_pins(domain: &Domain, step: &mut dyn FnMut(&Visit<'_>) -> bool) {
    let (handle, mut quiet) = (domain.join(), domain.join_quiet());
    while step(&handle.pin()) {
        drop(quiet.offline());
    }
}

fn by_quiet_points(domain: &Domain, step: &mut dyn FnMut(&Visit<'_>) -> bool) {
    let mut quiet = domain.join_quiet();
    while step(&quiet.visit()) {
        quiet.quiescent();
    }
}

#[test]
fn readers_never_see_freed_memory() {
    both(|domain| look_while_it_is_replaced(&domain, &[by_pins, by_quiet_points], by_pins));
    both(|domain| look_while_it_is_replaced(&domain, &[by_pins], by_quiet_points));
}

/// Where a fence is enough (`light` F2).
#[test]
fn readers_at_quiet_points_never_see_freed_memory() {
    both(|domain| look_while_it_is_replaced(&domain, &[by_quiet_points], by_quiet_points));
}

#[test]
fn pin_while_thread_locals_are_destroyed() {
    struct AtExit(Domain, mpsc::Sender<()>);
    impl Drop for AtExit {
        fn drop(&mut self) {
            let (outer, inner) = (self.0.pin(), self.0.pin());
            drop(outer);
            drop(inner);
            self.1.send(()).unwrap();
        }
    }
    std::thread_local! { static EXIT: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) } }
    both(|domain| {
        // Registered before and after the domain's own thread-locals: one of the two runs when they
        // are gone.
        for first in [true, false] {
            let (sender, receiver) = mpsc::channel();
            let at_exit = AtExit(domain.clone(), sender);
            std::thread::spawn(move || {
                if !first {
                    drop(at_exit.0.pin());
                }
                let local = at_exit.0.clone();
                EXIT.with(|exit| *exit.borrow_mut() = Some(at_exit));
                drop(local.pin());
            })
            .join()
            .unwrap();
            receiver.recv().unwrap();
        }
        let mut seats = 0;
        domain.core().roster.visit_all(|_| seats += 1);
        assert!(seats <= 4, "seats were given back: {seats}");
    });
}

/// A guard that outlives its thread's own seat list keeps its seat until it drops.
#[test]
fn a_section_kept_in_a_thread_local_outlives_the_seat_list() {
    static DOMAIN: std::sync::LazyLock<Domain> = std::sync::LazyLock::new(Domain::new);
    std::thread_local! {
        static KEPT: std::cell::RefCell<Option<Section<'static>>> = const { std::cell::RefCell::new(None) };
    }
    std::thread::spawn(|| {
        KEPT.with(|kept| assert!(kept.borrow().is_none()));
        KEPT.with(|kept| *kept.borrow_mut() = Some(DOMAIN.pin()));
    })
    .join()
    .unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    // SAFETY: never published, retired once.
    unsafe { DOMAIN.pin().retire(tracked(&drops, 0)) };
    DOMAIN.flush();
    assert_eq!(drops.load(Ordering::SeqCst), 1, "the thread's section ended with it");
}

#[test]
fn maps_that_come_and_go_leave_no_seats_behind() {
    for _ in 0..1_000 {
        drop(Domain::new().pin());
    }
    let domain = Domain::new();
    drop(domain.pin());
    assert!(super::local::seats() <= 2, "{}", super::local::seats());
}

/// A child of a single-threaded state of affairs goes on using the domain; seats of other threads
/// do not hold it back.
#[cfg(unix)]
#[test]
fn a_forked_child_frees_around_threads_that_did_not_come_along() {
    let domain = Domain::new();
    let (ready, is_ready) = mpsc::channel();
    let (finish, may_finish) = mpsc::channel::<()>();
    let drops = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let domain = &domain;
        scope.spawn(move || {
            let _inside = domain.pin();
            ready.send(()).unwrap();
            let _ = may_finish.recv();
        });
        is_ready.recv().unwrap();
        // SAFETY: the child touches only this domain, whose locks no other thread holds, and then
        // leaves by _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: never published, retired once.
            unsafe { domain.pin().retire(tracked(&drops, 0)) };
            domain.flush();
            let freed = drops.load(Ordering::SeqCst) == 1;
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(i32::from(!freed)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0, "the child could not free");
        drop(finish);
    });
}

/// The child's own threads joined after the fork: a sweep must not take them for threads of the
/// parent.
#[cfg(unix)]
#[test]
fn a_thread_of_a_forked_child_is_not_swept_away() {
    let domain = Domain::new();
    // SAFETY: the child touches only this domain, whose locks no other thread holds, and then
    // leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let drops = Arc::new(AtomicUsize::new(0));
        let (inside, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (domain, inside, stop) = (domain.clone(), Arc::clone(&inside), Arc::clone(&stop));
            std::thread::spawn(move || {
                let _section = domain.pin();
                inside.store(true, Ordering::Release);
                while !stop.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            })
        };
        while !inside.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // SAFETY: never published, retired once.
        unsafe { domain.pin().retire(tracked(&drops, 0)) };
        domain.flush();
        let held = drops.load(Ordering::SeqCst) == 0;
        stop.store(true, Ordering::Release);
        let _ = thread.join();
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(i32::from(!held)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "a piece was freed under a reader");
}

#[test]
fn flush_while_thread_locals_are_destroyed_leaves_no_seat_behind() {
    struct AtExit(Domain);
    impl Drop for AtExit {
        fn drop(&mut self) {
            self.0.flush();
        }
    }
    std::thread_local! { static EXIT: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) } }
    let domain = Domain::new();
    for _ in 0..5 {
        let domain = domain.clone();
        std::thread::spawn(move || {
            EXIT.with(|exit| *exit.borrow_mut() = Some(AtExit(domain.clone())));
            drop(domain.pin());
        })
        .join()
        .unwrap();
    }
    let mut seats = 0;
    domain.core().roster.visit_all(|_| seats += 1);
    assert!(seats <= 2, "{seats} seats");
}
