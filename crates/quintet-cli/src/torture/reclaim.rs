//! Threads pin and retire at random, and look for poison in what they hold.
//!
//! Slots point to items. Writers replace an item and retire the old one; an item that is freed
//! writes poison over itself first. Readers enter a section, follow a slot, look, linger, and look
//! again: poison, or another item in the same place, means that an item was freed under a reader.
//!
//! Unsafe is allowed here because following a shared pointer is the thing under test.
#![allow(unsafe_code)]

use super::verdict::Verdict;
use super::{Check, Order};
use quintet::internals::{Barrier, Domain, Handle, QuietHandle, Retired, Visit};
use quintet_testkit::stress::{Stress, Worker};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "pins protect (barrier)",
            run: |order| run::<Handle>(order, Barrier::detect()),
        },
        Check { name: "pins protect (fence)", run: |order| run::<Handle>(order, Barrier::Fence) },
        Check {
            name: "quiet points protect",
            run: |order| run::<QuietHandle>(order, Barrier::detect()),
        },
    ]
}

const SLOTS: usize = 32;
const POISON: u64 = 0xdead_dead_dead_dead;
/// Numbers are mixed with this, so that small foreign words are no numbers of items.
const PATTERN: u64 = 0x5bd1_e995_9d1b_54a5;

/// Made and freed by all checks of this process; each looks at the difference.
static LIVE: AtomicU64 = AtomicU64::new(0);

struct Item {
    birth: u64,
    words: [AtomicU64; 6],
}

impl Item {
    fn new(birth: u64, number: u64) -> *mut Item {
        LIVE.fetch_add(1, Ordering::Relaxed);
        let words = std::array::from_fn(|_| AtomicU64::new(number ^ PATTERN));
        Box::into_raw(Box::new(Item { birth, words }))
    }

    /// The number of a living item; nothing if its words are poison or do not agree.
    fn number(&self) -> Option<u64> {
        let first = self.words[0].load(Ordering::Relaxed);
        let same = self.words.iter().all(|word| word.load(Ordering::Relaxed) == first);
        (same && first != POISON).then_some(first)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.words.iter().for_each(|word| word.store(POISON, Ordering::Relaxed));
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A seat of either kind.
trait Seat {
    fn join(domain: &Domain) -> Self;
    fn inside<R>(&mut self, f: impl FnOnce(&Visit<'_>) -> R) -> R;
    fn quiet(&mut self) {}
}

impl Seat for Handle {
    fn join(domain: &Domain) -> Self {
        domain.join()
    }
    fn inside<R>(&mut self, f: impl FnOnce(&Visit<'_>) -> R) -> R {
        f(&self.pin())
    }
}

impl Seat for QuietHandle {
    fn join(domain: &Domain) -> Self {
        domain.join_quiet()
    }
    fn inside<R>(&mut self, f: impl FnOnce(&Visit<'_>) -> R) -> R {
        f(&self.visit())
    }
    fn quiet(&mut self) {
        self.quiescent();
    }
}

/// The shared slots.
struct Slots([AtomicPtr<Item>; SLOTS]);

impl Slots {
    /// Loads a slot until the section may follow it.
    fn load<'v>(&self, visit: &'v Visit<'_>, slot: usize) -> &'v Item {
        loop {
            // ORDERING: Acquire, to see the item that the replacing thread wrote.
            let place = self.0[slot].load(Ordering::Acquire);
            if visit.check() {
                // SAFETY: slots are never null, and the check says that the section protects what
                // was loaded. If it does not, this is what the torture is there to find.
                return unsafe { &*place };
            }
        }
    }

    fn replace(&self, visit: &Visit<'_>, slot: usize, number: u64) {
        let fresh = Item::new(visit.era(), number);
        // ORDERING: Release publishes the fresh item, Acquire sees the old one.
        let old = self.0[slot].swap(fresh, Ordering::AcqRel);
        // SAFETY: the swap made this thread the only one that may retire it.
        let birth = unsafe { (*old).birth };
        // SAFETY: the place came out of a box.
        let piece = unsafe { Retired::boxed(old, birth) };
        // SAFETY: the slot no longer leads to it, and only the swapping thread retires it.
        unsafe { visit.retire(piece) };
    }
}

fn run<S: Seat>(order: &Order, barrier: Barrier) -> Verdict {
    let live = LIVE.load(Ordering::Relaxed);
    let domain = Domain::with_barrier(barrier);
    let slots = Slots(std::array::from_fn(|i| AtomicPtr::new(Item::new(domain.era(), i as u64))));
    let end = Instant::now() + order.time.max(Duration::from_millis(100));
    let stress = Stress::new("reclaim").seed(order.seed).threads(order.threads.max(2));
    let stress = stress.time_limit(order.time * 2 + Duration::from_secs(60));
    let results = stress.run(|worker| work::<S>(&domain, &slots, worker, end));
    drop(domain);
    for slot in slots.0 {
        // SAFETY: the threads are gone; what is in a slot was never retired.
        drop(unsafe { Box::from_raw(slot.into_inner()) });
    }
    let leaks = LIVE.load(Ordering::Relaxed).saturating_sub(live);
    let (operations, violations) =
        results.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    Verdict { operations, violations, leaks: Some(leaks), ..Verdict::default() }
}

/// One thread: joins, works a while, leaves, joins again.
fn work<S: Seat>(
    domain: &Domain,
    slots: &Slots,
    worker: &mut Worker<'_>,
    end: Instant,
) -> (u64, u64) {
    let (mut operations, mut violations) = (0, 0);
    while Instant::now() < end && worker.keep_going() {
        let mut seat = S::join(domain);
        for _ in 0..worker.rng.u32(1..2_000) {
            let (slot, number) = (worker.rng.usize(0..SLOTS), worker.rng.u64(1..));
            if worker.rng.u8(0..4) == 0 {
                seat.inside(|visit| slots.replace(visit, slot, number));
            } else {
                violations += u64::from(!seat.inside(|visit| {
                    let item = slots.load(visit, slot);
                    let before = item.number();
                    worker.pause();
                    before.is_some() && before == item.number()
                }));
            }
            operations += 1;
            if worker.rng.u8(0..16) == 0 {
                seat.quiet();
            }
        }
    }
    (operations, violations)
}
