//! Who pays for a barrier.

use super::super::{BATCH, QuietHandle};
use super::*;

/// Only seats that announce without a fence need the barrier that interrupts everybody: quiet
/// handles do not, nor does a thread that pins now and then (`light` F3).
#[test]
fn quiet_handles_and_single_pins_cost_nobody_a_barrier() {
    if Barrier::detect() != Barrier::Asymmetric {
        eprintln!("skipped: this system grants no process-wide barrier");
        return;
    }
    let domain = Domain::with_barrier(Barrier::Asymmetric);
    let drops = Arc::new(AtomicUsize::new(0));
    let barriers = |handle: &mut QuietHandle| {
        let before = domain.backlog().barriers;
        for _ in 0..3 * BATCH {
            // SAFETY: never published, retired once.
            unsafe { handle.visit().retire(tracked(&drops, domain.era())) };
            handle.quiescent();
        }
        domain.backlog().barriers - before
    };
    let mut quiet = domain.join_quiet();
    drop(domain.pin());
    assert_eq!(barriers(&mut quiet), 0);
    let era = domain.era();
    assert!(era > 10, "smaller batches: {era}");
    (0..100).for_each(|_| drop(domain.pin()));
    assert!((1..12).contains(&barriers(&mut quiet)), "pinned often, and batches are large again");
    let pinning = domain.join();
    drop(quiet);
    let mut quiet = domain.join_quiet();
    assert!(barriers(&mut quiet) > 0);
    drop((quiet, pinning));
    assert_eq!(domain.core().roster.marked.load(Ordering::Relaxed), 1, "this thread's own is left");
    let mut unfenced = 0;
    domain.core().roster.visit_all(|seat| unfenced += usize::from(!seat.is_fenced()));
    assert_eq!(unfenced, 1, "what is counted is what is light (F1)");
    drop(domain);
    assert_eq!(drops.load(Ordering::SeqCst), 9 * BATCH);
}

/// A quiet point in the era that is announced has nothing to announce; one that ends an iteration
/// has.
#[test]
fn a_quiet_point_announces_when_something_has_changed() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (mut quiet, writer) = (domain.join_quiet(), domain.join());
        let announced = |quiet: &QuietHandle| quiet.visit().peek().upper();
        let before = announced(&quiet);
        quiet.quiescent();
        assert_eq!(announced(&quiet), before);
        quiet.visit().hold_all();
        quiet.quiescent();
        assert_eq!(announced(&quiet), before, "no longer everything");
        churn(&writer, &domain, &drops, 1);
        writer.flush();
        assert!(!quiet.visit().check() && quiet.visit().check(), "widened");
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "held back from the first era on");
        quiet.quiescent();
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 1, "the interval begins anew");
    });
}

/// A look now and then, as of who watches the statistics, is not "often", however many there are.
#[test]
fn looks_at_long_intervals_stay_fenced() {
    let domain = Domain::new();
    let (mut writer, drops) = (domain.join_quiet(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..200 {
        drop(domain.pin());
        for _ in 0..20 {
            // SAFETY: never published, retired once.
            unsafe { writer.visit().retire(tracked(&drops, domain.era())) };
            writer.flush();
        }
    }
    assert_eq!(domain.core().roster.marked.load(Ordering::Relaxed), 0);
}
