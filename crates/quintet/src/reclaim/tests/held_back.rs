//! How much memory waits, and behind whom.

use super::super::{BATCH, BATCH_BYTES, Handle, Retired};
use super::{both, churn, tracked};
use crate::sync::{Arc, AtomicUsize, Ordering};

/// The bound: a reader sleeps inside a section while a million pieces are born and retired.
#[test]
fn a_stalled_reader_holds_back_at_most_what_was_alive() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let alive: Vec<_> = (0..1_000).map(|_| tracked(&drops, domain.era())).collect();
        let asleep = reader.pin();
        for piece in alive {
            // SAFETY: never published, retired once.
            unsafe { writer.pin().retire(piece) };
        }
        writer.flush();
        let alive = domain.backlog();
        assert_eq!(alive.items, 1_000);
        let mut worst = 0;
        for _ in 0..1_000 {
            churn(&writer, &domain, &drops, 1_000);
            worst = worst.max(domain.backlog().bytes);
        }
        assert!(
            worst - alive.bytes <= 1 << 20,
            "{} bytes beyond what was alive",
            worst - alive.bytes
        );
        println!("worst backlog beyond what was alive: {} bytes", worst - alive.bytes);
        drop(asleep);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 1_001_000);
    });
}

#[test]
fn a_section_that_holds_all_holds_back_everything() {
    both(|domain| {
        let drops = Arc::new(AtomicUsize::new(0));
        let (reader, writer) = (domain.join(), domain.join());
        let section = reader.pin();
        section.hold_all();
        assert!(section.check());
        churn(&writer, &domain, &drops, 10 * BATCH);
        writer.flush();
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        assert!(section.check(), "no restart any more");
    });
}

/// Overwrites that each pin for themselves, as a table without a handle does: what waits is a few
/// small batches.
#[test]
fn pins_hold_back_less_than_a_megabyte() {
    const BESIDES: usize = 40 + 16;
    both(|domain| {
        for threads in [1, 2] {
            let worst = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for turn in 0..500_000 {
                            let section = domain.pin();
                            let place = Box::into_raw(Box::new([0_u64; 8]));
                            // SAFETY: fresh from a box that nobody else knows.
                            let piece = unsafe { Retired::boxed(place, section.era()) };
                            // SAFETY: never published, retired once.
                            unsafe { section.retire(piece) };
                            if turn % 256 == 0 {
                                let backlog = domain.backlog();
                                let held = backlog.bytes + backlog.items * BESIDES;
                                worst.fetch_max(held, Ordering::Relaxed);
                            }
                        }
                    });
                }
            });
            let worst = worst.into_inner();
            println!("{threads} threads: {worst} bytes");
            assert!(worst <= 1 << 20, "{threads} threads: {worst} bytes");
        }
    });
}

const LARGE: usize = BATCH_BYTES / 2;

/// Retires a large piece that was alive until now.
fn retire_large(writer: &Handle, birth: u64) {
    let place = Box::into_raw(Box::new([0_u8; LARGE]));
    // SAFETY: fresh from a box that nobody else knows.
    let piece = unsafe { Retired::boxed(place, birth) };
    // SAFETY: never published, retired once.
    unsafe { writer.pin().retire(piece) };
}

/// Large pieces are few: their number alone would never ask to look at them again.
#[test]
fn large_pieces_do_not_outlast_the_short_sections_that_held_them_back() {
    both(|domain| {
        let (reader, writer) = (domain.join(), domain.join());
        writer.flush();
        let mut worst = 0;
        for _ in 0..1_000 {
            let born = domain.era();
            let section = reader.pin();
            (0..4).for_each(|_| retire_large(&writer, born));
            drop(section);
            worst = worst.max(domain.backlog().bytes);
        }
        assert!(worst <= 8 * BATCH_BYTES, "{worst} bytes held back by nobody");
    });
}

#[test]
fn nor_behind_a_reader_that_sleeps_all_the_while() {
    both(|domain| {
        let (sleeper, reader, writer) = (domain.join(), domain.join(), domain.join());
        let asleep = sleeper.pin();
        (0..4).for_each(|_| retire_large(&writer, domain.era()));
        let mut worst = 0;
        for _ in 0..1_000 {
            let born = domain.era();
            let section = reader.pin();
            (0..4).for_each(|_| retire_large(&writer, born));
            drop(section);
            worst = worst.max(domain.backlog().bytes);
        }
        assert!(worst <= 8 * BATCH_BYTES, "{worst} bytes held back by nobody");
        drop(asleep);
    });
}
