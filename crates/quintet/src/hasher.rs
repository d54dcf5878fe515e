//! The default hasher of tables with generic keys.
//!
//! **Y1.** A builder is made without a seed, so that a table may be made in a constant. The first
//! hash makes one, and it stays: all hashes of one builder, and of its clones, agree.
//! **Y2.** Whoever sees a seed sees what is random for the whole process ([`SHARED`]): it is made
//! before, and the seed is stored with Release and loaded with Acquire. A seed is never 0, which
//! says that there is none yet.

use crate::hash::random_seed;
use crate::sync::Ordering;
use crate::sync::constant::AtomicU64;
use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use std::cell::UnsafeCell;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::sync::Once;

/// The random numbers that all hashes of this process share, once they are made.
struct Shared {
    made: Once,
    numbers: UnsafeCell<MaybeUninit<SharedSeed>>,
}

static SHARED: Shared =
    Shared { made: Once::new(), numbers: UnsafeCell::new(MaybeUninit::uninit()) };

// SAFETY: the numbers are written once, inside of `made`, and read only by who knows that (Y2).
unsafe impl Sync for Shared {}

impl Shared {
    fn make(&self) {
        self.made.call_once(|| {
            let numbers = MaybeUninit::new(SharedSeed::from_u64(random_seed()));
            // SAFETY: nobody else writes, by `call_once`, and nobody reads before it has returned
            // (Y2). What was there has no drop.
            unsafe { self.numbers.get().write(numbers) };
        });
    }

    /// # Safety
    /// [`make`](Self::make) has returned before, in the sense of happens-before.
    #[inline(always)]
    unsafe fn get(&self) -> &SharedSeed {
        // SAFETY: nobody writes any more, by the caller's promise.
        let numbers = unsafe { &*self.numbers.get() };
        // SAFETY: made, by the caller's promise.
        unsafe { numbers.assume_init_ref() }
    }
}

/// Builds the default hasher: fast, and keyed by a random seed per table, which is made when it is
/// first used.
pub struct DefaultHashBuilder {
    seed: AtomicU64,
}

/// The default hasher.
#[derive(Clone)]
pub struct DefaultHasher(FoldHasher<'static>);

impl DefaultHashBuilder {
    /// A builder whose seed is made by its first hash.
    pub const fn new() -> Self {
        Self { seed: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn seed(&self) -> u64 {
        // ORDERING: Acquire: partner is `make_seed` (Y2).
        match self.seed.load(Ordering::Acquire) {
            0 => self.make_seed(),
            seed => seed,
        }
    }

    #[cold]
    #[inline(never)]
    fn make_seed(&self) -> u64 {
        SHARED.make();
        let seed = random_seed().max(1);
        // ORDERING: Release: Y2; partner: `seed`. Acquire: another one was faster, and its seed is
        // the one.
        let made = self.seed.compare_exchange(0, seed, Ordering::AcqRel, Ordering::Acquire);
        made.map_or_else(|faster| faster, |_| seed)
    }
}

impl Default for DefaultHashBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// A clone hashes alike.
impl Clone for DefaultHashBuilder {
    fn clone(&self) -> Self {
        Self { seed: AtomicU64::new(self.seed()) }
    }
}

/// Tells nothing: a seed is a secret.
impl fmt::Debug for DefaultHashBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHashBuilder").finish_non_exhaustive()
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline(always)]
    fn build_hasher(&self) -> DefaultHasher {
        let seed = self.seed();
        // SAFETY: there is a seed, so that what is shared was made before (Y2). It is never taken
        // out.
        let shared = unsafe { SHARED.get() };
        DefaultHasher(FoldHasher::with_seed(seed, shared))
    }

    // Std's form is a call where keys are long.
    #[allow(clippy::manual_hash_one)]
    #[inline(always)]
    fn hash_one<T: Hash>(&self, value: T) -> u64 {
        let mut hasher = self.build_hasher();
        value.hash(&mut hasher);
        hasher.finish()
    }
}

macro_rules! forward {
    ($($method:ident: $type:ty),*) => {
        impl Hasher for DefaultHasher {
            $(
                #[inline(always)]
                fn $method(&mut self, value: $type) {
                    self.0.$method(value);
                }
            )*
            #[inline(always)]
            fn finish(&self) -> u64 {
                self.0.finish()
            }
        }
    };
}
forward! {
    write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_usize: usize
}

impl fmt::Debug for DefaultHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_agree_within_a_builder_and_its_clones_and_differ_between_builders() {
        static FIRST: DefaultHashBuilder = DefaultHashBuilder::new();
        let hash = FIRST.hash_one("one");
        let clone = FIRST.clone();
        assert_eq!((FIRST.hash_one("one"), clone.hash_one("one")), (hash, hash));
        assert_ne!(FIRST.hash_one("two"), hash);
        if !crate::sync::MODEL {
            assert_ne!(DefaultHashBuilder::new().hash_one("one"), hash);
        }
        let unused = DefaultHashBuilder::new();
        assert_eq!(unused.clone().hash_one(7), unused.hash_one(7));
    }

    #[test]
    fn threads_that_hash_first_agree() {
        for _ in 0..100 {
            let builder = DefaultHashBuilder::new();
            let start = std::sync::Barrier::new(4);
            let hash = || {
                start.wait();
                builder.hash_one(1)
            };
            let hashes: Vec<u64> = std::thread::scope(|scope| {
                let crew: Vec<_> = (0..4).map(|_| scope.spawn(hash)).collect();
                crew.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        }
    }

    #[test]
    fn no_seed_is_told() {
        assert_eq!(format!("{:?}", DefaultHashBuilder::new()), "DefaultHashBuilder { .. }");
    }
}
