//! The orders of the cache's own handshakes: a copy against the reuse of its block, free blocks
//! handed over, a lease against whoever frees, a flight against who takes it over. Caches of one to
//! three blocks and one bucket.

use super::flight::Start;
use super::layout::{FORMAT, Stored};
use super::*;
use crate::sync::{Arc, AtomicU64, Ordering, thread};
use crate::tier_cache::word::{Owner, RecordState};

fn sizes(blocks: u32) -> Sizes {
    Sizes {
        format: FORMAT,
        buckets: 1,
        blocks,
        seats: 2,
        block_words: 64,
        max_value: 8,
        pace: 1,
        evicts: false,
        leases: false,
        capacity: 0,
        processes: 1,
        tiers: 1,
        promotes: false,
        policy: Default::default(),
        quotas: false,
        store: Stored::NONE,
        spaces: 1,
        sums: false,
    }
}

fn cache(sizes: Sizes) -> Arc<TierCache> {
    Arc::new(TierCache::create_sealed(sizes).unwrap())
}

fn model(body: impl Fn() + Sync + Send + 'static) {
    crate::sync::model(2, body);
}

/// The only block is freed and filled with another entry while a reader copies it: it gets its own
/// value or none (`read` G1).
#[test]
fn loom_cache_a_copy_is_of_one_entry() {
    model(|| {
        let cache = cache(sizes(1));
        cache.handle().unwrap().insert("a", [1; 8]).unwrap();
        let other = Arc::clone(&cache);
        let writer = thread::spawn(move || {
            let mut handle = other.handle().unwrap();
            assert!(handle.remove("a").unwrap());
            handle.insert("b", [2; 8]).unwrap();
        });
        let seen = cache.reader().get("a").unwrap();
        assert!(matches!(seen.as_deref(), None | Some([1, 1, 1, 1, 1, 1, 1, 1])), "{seen:?}");
        writer.join().unwrap();
        assert_eq!(cache.reader().get("b").unwrap(), Some(vec![2; 8]));
    });
}

/// One frees the only block and offers it; another looks for one, finds it or not. It is never
/// lost, and never anybody's twice.
#[test]
fn loom_cache_a_free_block_is_handed_over() {
    model(|| {
        let cache = cache(sizes(1));
        let view = cache.view();
        let word = view.memory.record(0).unwrap().state();
        view.take(0, 0, word).unwrap();
        // A wrong bit: whoever meets it takes it back, and must not take back the right one.
        view.offer(0);
        let other = Arc::clone(&cache);
        let freer = thread::spawn(move || {
            let link = Link { record: 0, generation: 0 };
            other.view().free(Point::Kill, link, false).unwrap();
        });
        let mut found = Vec::new();
        view.find_free(0, 1, &mut found);
        let taken = found.iter().any(|block| {
            let word = view.memory.record(*block).unwrap().state();
            view.take(1, *block, word).is_some()
        });
        freer.join().unwrap();
        let offered = view.is_offered(0);
        assert!(taken || offered, "nobody would find it again");
        found.clear();
        view.find_free(0, 1, &mut found);
        assert_eq!(found.is_empty(), taken);
    });
}

/// An entry is freed while somebody leases it: either its block stays as it is, or there is no
/// lease (`lease` Z1, Z2).
#[test]
fn loom_cache_a_leased_block_is_not_reused() {
    model(|| {
        let cache = cache(Sizes { leases: true, ..sizes(1) });
        cache.handle().unwrap().insert("a", [1; 8]).unwrap();
        let view = cache.view();
        let link = Link { record: 0, generation: 0 };
        assert!(super::read::current(&view, link).is_some());
        let other = Arc::clone(&cache);
        let writer = thread::spawn(move || {
            let view = other.view();
            view.free(Point::Kill, link, false).unwrap();
            // Whoever comes next and finds it free.
            let word = view.memory.record(0).unwrap().state();
            word.state() == Some(RecordState::Free) && view.take(0, 0, word).is_some()
        });
        let leased = view.pin(1, link).unwrap();
        let taken = writer.join().unwrap();
        match leased {
            Some(place) => {
                assert!(!taken, "leased and reused");
                view.end_lease(place);
            }
            None if !taken => {}
            None => return,
        }
        let word = view.memory.record(0).unwrap().state();
        assert_eq!(word.state(), Some(RecordState::Free), "nobody is left to free it");
        assert!(view.is_offered(0));
    });
}

/// Two are about to put the same entry out: one of them claims it (`sink` E1).
#[test]
fn loom_cache_one_claims() {
    model(|| {
        let cache = cache(Sizes { evicts: true, ..sizes(2) });
        cache.handle().unwrap().insert("a", [1; 8]).unwrap();
        let link = Link { record: 0, generation: 0 };
        for seat in 0..2 {
            let word = cache.view().memory.seat(seat).unwrap();
            word.owner_word().store(Owner::new(0, 1).0, Ordering::Relaxed);
        }
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || Upper::claim(&*other, 1, link));
        let mine = Upper::claim(&*cache, 0, link);
        let theirs = thread.join().unwrap();
        assert_eq!(mine as u32 + theirs as u32, 1);
    });
}

/// Two ask for an absent key at once: one of them computes (`flight` H1).
#[test]
fn loom_cache_one_computes() {
    model(|| {
        let cache = cache(sizes(3));
        let ask = |cache: &TierCache| cache.handle().unwrap().start(b"k").unwrap();
        let other = Arc::clone(&cache);
        let thread = thread::spawn(move || matches!(ask(&other), Start::Flight(_)));
        let mine = matches!(ask(&cache), Start::Flight(_));
        assert_eq!(mine as u32 + thread.join().unwrap() as u32, 1);
    });
}

/// A flight that is ended without a seat passes to who asks next, and with it whatever its holder
/// did before (`flight` H1, H3).
#[test]
fn loom_cache_a_flight_is_handed_over() {
    model(|| {
        let cache = cache(sizes(3));
        let mut handle = cache.handle().unwrap();
        let Start::Flight(held) = handle.start(b"k").unwrap() else { panic!("it is absent") };
        let done = Arc::new(AtomicU64::new(0));
        let (other, told) = (Arc::clone(&cache), Arc::clone(&done));
        let holder = thread::spawn(move || {
            told.store(1, Ordering::Relaxed);
            other.view().void_flight(held, 1);
        });
        let taken = matches!(handle.start(b"k").unwrap(), Start::Flight(_));
        if taken {
            assert_eq!(done.load(Ordering::Relaxed), 1, "taken over before it was given up");
        }
        holder.join().unwrap();
        let after = matches!(handle.start(b"k").unwrap(), Start::Flight(_));
        assert_ne!(taken, after, "one takes it over, once");
    });
}

/// Somebody completes a flight while another asks: there is nothing left to compute, whenever it
/// looks (`flight` H2).
#[test]
fn loom_cache_what_was_computed_is_not_computed_again() {
    model(|| {
        let cache = cache(sizes(3));
        let mut handle = cache.handle().unwrap();
        let Start::Flight(held) = handle.start(b"k").unwrap() else { panic!("it is absent") };
        let other = Arc::clone(&cache);
        let asks = thread::spawn(move || {
            let begun = other.handle().unwrap().start(b"k").unwrap();
            assert!(!matches!(begun, Start::Flight(_)), "computed twice");
        });
        handle.insert("k", [1; 8]).unwrap();
        handle.end_flight(held, b"k").unwrap();
        asks.join().unwrap();
        assert!(matches!(handle.start(b"k").unwrap(), Start::Value(value) if value == [1; 8]));
    });
}
