//! By inline assembly.

use super::{Selected, Words};
use crate::sync::{AtomicU32, Ordering};
use std::arch::asm;
use std::arch::x86_64::__m128i;
use std::cell::UnsafeCell;

/// See the room's page.
#[repr(C, align(16))]
pub(crate) struct AtomicPair(UnsafeCell<[u64; 2]>);

// SAFETY: all shared access goes through the atomic instructions below.
unsafe impl Sync for AtomicPair {}

/// 0: not asked yet, 1: an aligned 16-byte vector access is one access, 2: it is not. Cheaper to
/// ask than the standard library's answer.
static VECTOR_LOADS: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
pub(super) fn has_vector_loads() -> bool {
    // ORDERING: Relaxed: the answer is always the same.
    VECTOR_LOADS.load(Ordering::Relaxed) == 1 || ask_for_vector_loads()
}

#[cold]
#[inline(never)]
fn ask_for_vector_loads() -> bool {
    let there = std::arch::is_x86_feature_detected!("avx");
    VECTOR_LOADS.store(if there { 1 } else { 2 }, Ordering::Relaxed);
    there
}

/// See [`select`](super::select). Only with [`has_vector_loads`].
#[inline(always)]
#[cfg_attr(test, allow(dead_code))]
pub(super) fn select(pairs: &[AtomicPair; 2], mask: u64, word: u64) -> Selected {
    let (missed, not_later, second): (u64, u64, u64);
    // SAFETY: the places are valid and 16-byte aligned. ORDERING: Acquire, as in `load_vector`.
    unsafe {
        asm!(
            "movdqa {zero}, xmmword ptr [{pairs}]",
            "movdqa {one}, xmmword ptr [{pairs} + 16]",
            "movq {missed}, {zero}",
            "movq {not_later}, {one}",
            "punpckhqdq {zero}, {zero}",
            "punpckhqdq {one}, {one}",
            "movq {second}, {zero}",
            "movq {other}, {one}",
            "xor {missed}, {word}",
            "and {missed}, {mask}",
            "xor {not_later}, {word}",
            "and {not_later}, {mask}",
            "cmove {second}, {other}",
            "cmove {missed}, {not_later}",
            zero = out(xmm_reg) _,
            one = out(xmm_reg) _,
            missed = out(reg) missed,
            not_later = out(reg) not_later,
            second = out(reg) second,
            other = out(reg) _,
            pairs = in(reg) pairs,
            mask = in(reg) mask,
            word = in(reg) word,
            options(nostack),
        );
    }
    Selected { missed, not_later, second }
}

impl AtomicPair {
    pub(crate) const fn new(first: u64, second: u64) -> Self {
        Self(UnsafeCell::new([first, second]))
    }

    /// False on the few early 64-bit processors without a 16-byte compare-exchange.
    pub(crate) fn supported() -> bool {
        std::arch::is_x86_feature_detected!("cmpxchg16b")
    }

    /// Processes can share pairs; read-only, only where a load never stores.
    #[allow(dead_code)] // only where segments are
    pub(crate) fn can_be_shared(writable: bool) -> bool {
        Self::supported() && (writable || has_vector_loads())
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Words {
        if has_vector_loads() { self.load_vector() } else { self.load_exchange() }
    }

    #[inline(always)]
    fn load_vector(&self) -> Words {
        let both: __m128i;
        // SAFETY: the place is valid and 16-byte aligned; with AVX an aligned 16-byte load is one
        // access (`pair` P1).
        // ORDERING: every x86 load is Acquire, and the block, which may touch any memory as far as
        // the compiler knows, keeps later accesses behind it (`pair` P3).
        unsafe {
            asm!("movdqa {both}, xmmword ptr [{place}]", both = out(xmm_reg) both,
                 place = in(reg) self.0.get(), options(nostack, preserves_flags));
        }
        // SAFETY: both types are 16 bytes without invalid values.
        let [first, second]: [u64; 2] = unsafe { std::mem::transmute(both) };
        (first, second)
    }

    /// `pair` P4.
    #[inline(always)]
    pub(crate) fn store(&self, new: Words) {
        if has_vector_loads() {
            // SAFETY: both types are 16 bytes without invalid values.
            let both: __m128i = unsafe { std::mem::transmute([new.0, new.1]) };
            // SAFETY: the place is valid, writable and 16-byte aligned; with AVX an aligned 16-byte
            // store is one access. ORDERING: every x86 store is Release, and the compiler keeps
            // earlier accesses before the block.
            unsafe {
                asm!("movdqa xmmword ptr [{place}], {both}", both = in(xmm_reg) both,
                     place = in(reg) self.0.get(), options(nostack, preserves_flags));
            }
        } else {
            self.store_exchange(new);
        }
    }

    #[cold]
    fn store_exchange(&self, new: Words) {
        let mut old = self.load_exchange();
        while let Err(found) = self.compare_exchange(old, new) {
            old = found;
        }
    }

    #[cold]
    fn load_exchange(&self) -> Words {
        match self.compare_exchange((0, 0), (0, 0)) {
            Ok(()) => (0, 0),
            Err(found) => found,
        }
    }

    #[inline(always)]
    pub(crate) fn compare_exchange(&self, old: Words, new: Words) -> Result<(), Words> {
        let (found_first, found_second): (u64, u64);
        let done: u64;
        // SAFETY: the place is valid, writable and 16-byte aligned. rbx is reserved by the
        // compiler, so the new first word is swapped in and out around the instruction; flags are
        // clobbered, as declared. Registers are named one by one: a free choice may fall on rbx,
        // which is not what it was in between.
        // ORDERING: a locked instruction is a full barrier (`pair` P3).
        unsafe {
            asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b xmmword ptr [rdi]",
                "sete cl",
                "mov rbx, rsi",
                inout("rsi") new.0 => _,
                in("rdi") self.0.get(),
                inout("rcx") new.1 => done,
                inout("rax") old.0 => found_first,
                inout("rdx") old.1 => found_second,
                options(nostack),
            );
        }
        if done as u8 != 0 { Ok(()) } else { Err((found_first, found_second)) }
    }
}
