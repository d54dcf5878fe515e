//! Sections of one seat inside of one another, as user code that runs inside an operation opens
//! them (`reclaim` E9, E10).

use super::*;

/// Moves the era on by one batch.
fn seal(writer: &Handle, domain: &Domain) {
    churn(writer, domain, &Arc::new(AtomicUsize::new(0)), 1);
    writer.flush();
}

/// What was born and freed before the inner section widened the interval may still be linked from
/// what the outer one stands in.
#[test]
fn an_inner_section_that_widens_does_not_vouch_for_the_outer_one() {
    both(|domain| {
        let (reader, writer) = (domain.join(), domain.join());
        let outer = reader.pin();
        seal(&writer, &domain);
        let inner = reader.pin();
        assert!(!inner.check() && inner.check());
        drop(inner);
        assert!(!outer.check(), "the outer section must start again from its root");
        assert!(outer.check());
    });
}

/// The same where the inner section holds everything, as an iterator does.
#[test]
fn an_inner_section_that_holds_all_does_not_vouch_for_the_outer_one() {
    both(|domain| {
        let (reader, writer) = (domain.join(), domain.join());
        let outer = reader.pin();
        seal(&writer, &domain);
        let inner = reader.pin();
        inner.hold_all();
        assert!(inner.check(), "it held all before it loaded anything");
        assert!(!outer.check() && outer.check());
    });
}

/// Two operations under one guard, one inside the other.
#[test]
fn each_operation_under_a_guard_has_its_own_view() {
    both(|domain| {
        let writer = domain.join();
        let guard = domain.pin();
        let outer = guard.visit();
        seal(&writer, &domain);
        let inner = guard.visit();
        assert!(!inner.check() && inner.check());
        assert!(!outer.check() && outer.check());
        assert!(guard.visit().check(), "a later operation knows the era from the beginning");
    });
}

/// The same on a handle that is inside all the time.
#[test]
fn each_operation_of_a_quiet_handle_has_its_own_view() {
    both(|domain| {
        let writer = domain.join();
        let reader = domain.join_quiet();
        let outer = reader.visit();
        seal(&writer, &domain);
        let inner = reader.visit();
        assert!(!inner.check() && inner.check());
        assert!(!outer.check() && outer.check());
    });
}

/// However often others widen, a section says no at most twice.
#[test]
fn inner_sections_do_not_starve_the_outer_one() {
    both(|domain| {
        let (reader, writer) = (domain.join(), domain.join());
        let outer = reader.pin();
        let mut refused = 0;
        for _ in 0..10 {
            seal(&writer, &domain);
            let inner = reader.pin();
            let _ = inner.check();
            refused += usize::from(!outer.check());
        }
        assert_eq!(refused, 2);
    });
}

/// `h.update(k, |v| { stash = Some(h.iter()); v })`: the iterator goes on when the update is over.
#[test]
fn a_brief_section_does_not_end_the_one_that_was_opened_inside() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let born = domain.era();
        let retire = || {
            // SAFETY: never published, retired once.
            unsafe { writer.pin().retire(tracked(&drops, born)) };
            writer.flush();
        };
        let Some(brief) = reader.spot().enter() else {
            assert_eq!(domain.barrier(), Barrier::Fence, "the usual case");
            return;
        };
        let inner = [reader.pin(), reader.pin()];
        drop(brief);
        retire();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "freed under the inner sections");
        let [first, second] = inner;
        drop(first);
        retire();
        assert_eq!(drops.load(Ordering::SeqCst), 0, "freed under the last section");
        drop(second);
        retire();
        assert_eq!(drops.load(Ordering::SeqCst), 3, "nobody is inside");
        assert!(reader.spot().enter().is_some(), "the usual case again");
    });
}
