//! Descriptors: where a mover leaves the value that it has frozen.
//!
//! **WL14.** Descriptor j holds the value of the slot that says FROZEN + j.
//! 1. A seat has one number, or none yet, and a number has one seat: only its owner writes the
//!    descriptor. There is no limit on seats below 2^30.
//! 2. Within one operation: store the descriptor, freeze, copy, store MOVED. Only then is the
//!    descriptor written again. So a seat whose operations have ended normally has no FROZEN + j
//!    anywhere, and may be handed on.
//! 3. FROZEN + j never stands twice in one slot. So who reads a word, the descriptor, and the same
//!    word again has read this slot's value.
//! 4. While a mover works, its number is in its [`Hand`] and not in the books of its seat. If it
//!    does not come back (a panic, death, a fork, a copy that got no memory) the number is gone:
//!    the descriptor stays as it is until the map drops, and the seat takes a new number when it
//!    next needs one. At most one number is lost for each slot that stays frozen. The same holds
//!    for an operation that begins inside of another's move, in an allocator for example.
//! 5. Descriptors come in chunks that double and stay until the map drops, so that a number leads
//!    to its descriptor at any time.

use super::word::{ESC, FROZEN};
use crate::reclaim::Books;
use crate::region::AllocError;
use crate::sync::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, const_where_possible};
use std::alloc::{Layout, alloc};
use std::cell::Cell;
use std::fmt;
use std::ptr;

/// Descriptors of the first chunk.
const FIRST: usize = 4;
/// Enough chunks for all numbers between FROZEN and ESC.
const CHUNKS: usize = 28;

/// The descriptors of a map: none before the first migration.
pub(crate) struct Descriptors(AtomicPtr<Directory>);

struct Directory {
    /// Numbers handed out.
    count: AtomicUsize,
    chunks: [AtomicPtr<Descriptor>; CHUNKS],
}

/// On a line of its own: its owner writes it for every entry that it moves.
#[repr(align(64))]
struct Descriptor(AtomicU64);

/// A mover's number, out of the books of its seat. To be [put back](Hand::put_back); if it is
/// dropped instead, the number is gone (4).
pub(crate) struct Hand<'a> {
    descriptor: &'a AtomicU64,
    books: &'a Books,
    number: u32,
    /// A slot stays frozen with this number.
    lost: Cell<bool>,
}

impl fmt::Debug for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Descriptors").field(&self.count()).finish()
    }
}

/// The chunk of a descriptor, its place there, and the length of the chunk.
const fn place(number: usize) -> (usize, usize, usize) {
    let chunk = (number / FIRST + 1).ilog2() as usize;
    let length = FIRST << chunk;
    (chunk, number + FIRST - length, length)
}

impl Descriptors {
    const_where_possible! {
        pub(crate) fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    fn directory(&self) -> Option<&Directory> {
        // ORDERING: Acquire: partner is the exchange in `make_directory`.
        let directory = self.0.load(Ordering::Acquire);
        // SAFETY: as a box would have made it, and freed by the drop alone.
        unsafe { directory.as_ref() }
    }

    #[cold]
    fn make_directory(&self) -> Result<&Directory, AllocError> {
        let made = memory_for::<Directory>(Layout::new::<Directory>())?;
        let directory = Directory {
            count: AtomicUsize::new(0),
            chunks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        };
        // SAFETY: fresh, of the right size and alignment.
        unsafe { made.write(directory) };
        // ORDERING: Release: publishes the directory; partner: `directory`. Failure: Acquire, for
        // the one that is there.
        match self.0.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Acquire) {
            // SAFETY: as a box would have made it, and freed by the drop alone.
            Ok(_) => Ok(unsafe { &*made }),
            Err(there) => {
                // SAFETY: as a box would have made it, and nobody has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as a box would have made it, and freed by the drop alone.
                Ok(unsafe { &*there })
            }
        }
    }

    /// Takes the number of a seat out of its books, or a new one (4).
    pub(crate) fn hand<'a>(&'a self, books: &'a Books) -> Result<Hand<'a>, AllocError> {
        let directory = match self.directory() {
            Some(directory) => directory,
            None => self.make_directory()?,
        };
        let number = match books.take_number() {
            0 => directory.new_number()?,
            number => number,
        };
        let descriptor = directory.descriptor(number as usize - 1);
        Ok(Hand { descriptor, books, number, lost: Cell::new(false) })
    }

    /// The value in a descriptor. Right if the slot says the same word afterwards (3).
    pub(crate) fn value(&self, number: usize) -> u64 {
        let directory = self.directory().expect("a number comes from the directory");
        // ORDERING: Acquire: partner is the Release store of `Hand::hold`: who reads the value of a
        // later slot sees that this one is MOVED.
        directory.descriptor(number).load(Ordering::Acquire)
    }

    /// Numbers handed out so far.
    pub(crate) fn count(&self) -> usize {
        // ORDERING: Relaxed: a statistic.
        self.directory().map_or(0, |directory| directory.count.load(Ordering::Relaxed))
    }
}

impl Directory {
    /// A number that nobody has had, counted from 1; its descriptor is there. On an error the
    /// number that was next still is.
    #[cold]
    fn new_number(&self) -> Result<u32, AllocError> {
        // ORDERING: Relaxed: only deals out numbers.
        let mut number = self.count.load(Ordering::Relaxed);
        loop {
            assert!((number as u64) < ESC - FROZEN, "WordMap: too many seats");
            self.make_chunk(number)?;
            // ORDERING: Relaxed, as above.
            match self.count.compare_exchange(
                number,
                number + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(number as u32 + 1),
                Err(now) => number = now,
            }
        }
    }

    /// Sees to it that the chunk of a number is there.
    fn make_chunk(&self, number: usize) -> Result<(), AllocError> {
        let (chunk, _, length) = place(number);
        // ORDERING: Acquire, as in `descriptor`.
        if !self.chunks[chunk].load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let layout = Layout::array::<Descriptor>(length);
        let first = memory_for::<Descriptor>(layout.map_err(|_| AllocError::CapacityOverflow)?)?;
        for index in 0..length {
            // SAFETY: one of `length`.
            let place = unsafe { first.add(index) };
            // SAFETY: fresh, of the right size and alignment.
            unsafe { place.write(Descriptor(AtomicU64::new(0))) };
        }
        // ORDERING: Release: publishes the chunk; partner: `descriptor`. Failure: nothing is
        // learnt.
        let set = self.chunks[chunk].compare_exchange(
            ptr::null_mut(),
            first,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if set.is_err() {
            let all = ptr::slice_from_raw_parts_mut(first, length);
            // SAFETY: as a box would have made it, and nobody has seen it.
            drop(unsafe { Box::from_raw(all) });
        }
        Ok(())
    }

    fn descriptor(&self, number: usize) -> &AtomicU64 {
        let (chunk, place, length) = place(number);
        // ORDERING: Acquire: partner is the exchange in `new_number`.
        let first = self.chunks[chunk].load(Ordering::Acquire);
        assert!(!first.is_null() && place < length, "a number leads to its descriptor");
        // SAFETY: the chunk has `length` descriptors.
        let descriptor = unsafe { first.add(place) };
        // SAFETY: chunks stay until the map drops (5).
        &unsafe { &*descriptor }.0
    }
}

impl Hand<'_> {
    /// Stores a value in the descriptor, and returns the word that says so.
    #[inline(always)]
    pub(crate) fn hold(&self, value: u64) -> u64 {
        // ORDERING: Release: partner is the Acquire load of `Descriptors::value`. The MOVED of the
        // slot before comes first.
        self.descriptor.store(value, Ordering::Release);
        FROZEN + u64::from(self.number - 1)
    }

    /// The slot that says this word stays frozen: if it does so with this number, the number is not
    /// put back (4).
    #[cold]
    pub(crate) fn lose_if_in(&self, word: u64) {
        if word == FROZEN + u64::from(self.number - 1) {
            self.lost.set(true);
        }
    }

    /// The work is done. If no slot says FROZEN with this number, its seat has it again (2).
    pub(crate) fn put_back(self) {
        if !self.lost.get() {
            self.books.put_number(self.number);
        }
    }
}

/// Memory as a box of this layout would have it, or an error.
fn memory_for<T>(layout: Layout) -> Result<*mut T, AllocError> {
    // SAFETY: directories and chunks have a size above zero.
    let memory = unsafe { alloc(layout) }.cast::<T>();
    if memory.is_null() {
        return Err(AllocError::OutOfMemory { bytes: layout.size() });
    }
    Ok(memory)
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // ORDERING: Relaxed: alone, here and below.
        let directory = self.0.load(Ordering::Relaxed);
        if directory.is_null() {
            return;
        }
        // SAFETY: as a box would have made it, and freed once, here.
        let directory = unsafe { Box::from_raw(directory) };
        for (chunk, first) in directory.chunks.iter().enumerate() {
            let first = first.load(Ordering::Relaxed);
            if !first.is_null() {
                let all = ptr::slice_from_raw_parts_mut(first, FIRST << chunk);
                // SAFETY: as a box of so many would have made it, and freed once, here.
                drop(unsafe { Box::from_raw(all) });
            }
        }
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::reclaim::Domain;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut next = (0, 0);
        for number in 0..10_000 {
            let (chunk, place, length) = place(number);
            assert_eq!((chunk, place), next);
            assert_eq!(length, FIRST << chunk);
            next = if place + 1 == length { (chunk + 1, 0) } else { (chunk, place + 1) };
        }
        assert!(place((ESC - FROZEN) as usize - 1).0 < CHUNKS);
    }

    #[test]
    fn a_number_goes_back_or_is_gone() {
        let (all, domain) = (Descriptors::new(), Domain::new());
        let seat = domain.join();
        let section = seat.pin();
        let hand = all.hand(section.books()).unwrap();
        let word = hand.hold(77);
        assert_eq!((word, all.value(0)), (FROZEN, 77));
        hand.put_back();
        assert_eq!(all.hand(section.books()).unwrap().hold(78), FROZEN, "dropped, not put back");
        let another = all.hand(section.books()).unwrap();
        assert_eq!(another.hold(79), FROZEN + 1);
        assert_eq!((all.value(0), all.value(1), all.count()), (78, 79, 2));
    }

    #[test]
    fn thousands_of_seats_have_numbers() {
        let (all, domain) = (Descriptors::new(), Domain::new());
        let seats: Vec<_> = (0..5_000).map(|_| domain.join()).collect();
        for (number, seat) in seats.iter().enumerate() {
            let section = seat.pin();
            let hand = all.hand(section.books()).unwrap();
            assert_eq!(hand.hold(number as u64 * 3), FROZEN + number as u64);
            hand.put_back();
        }
        assert!((0..5_000).all(|number| all.value(number) == number as u64 * 3));
    }
}
