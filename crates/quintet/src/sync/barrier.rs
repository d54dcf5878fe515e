//! The asymmetric barrier.
//!
//! Two parties each store, then load what the other stored (Dekker's handshake). Without a barrier
//! between store and load both may miss the other. One party, the reader, runs on every operation;
//! the other, the reclaimer or writer, runs rarely.
//!
//! **B1.** If the reader executes `store A; light(); load B` and the other party
//! `store B; heavy(); load A`, then at least one of them sees the other's store.
//!
//! *Asymmetric*: `light` is a compiler fence, `heavy` makes every thread of the process execute a
//! full fence at some moment during the call. If that moment falls before the reader's load of B,
//! the load comes after the fence and `store B` is visible to it; else it falls after `store A`
//! (program order) and `load A` after the call sees it.
//!
//! *Fence*: both are `fence(SeqCst)`. Fences are totally ordered; whichever comes second sees the
//! store before the first.
//!
//! **B2.** `heavy` returns false if the system refused; then it has ordered nothing and nothing may
//! be concluded (seccomp filters may forbid the call long after the first one succeeded).

use super::{Ordering, fence};

/// Under a checker nobody can interrupt other threads: both forms are fences, and what is written
/// for the first is checked all the same.
const CHECKED: bool = cfg!(any(quintet_loom, quintet_shuttle, quintet_tsan, miri));

#[cfg(all(test, quintet_loom))]
std::thread_local! {
    /// In the models of this thread the reader's half of the asymmetric form is nothing, as it is
    /// natively. The other half is refused: what happens without it is what such a model is about.
    pub(crate) static BARE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the reader's half of the asymmetric form is nothing. On the way of every section: no
/// call.
#[inline(always)]
fn is_bare() -> bool {
    #[cfg(all(test, quintet_loom))]
    return BARE.get();
    #[cfg(not(all(test, quintet_loom)))]
    return !CHECKED;
}

/// Which of the two forms is in use. Both parties of one handshake must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barrier {
    /// Readers pay nothing; the other side interrupts all threads of the process.
    Asymmetric,
    /// Both sides execute a sequentially consistent fence.
    Fence,
}

impl Barrier {
    /// The cheapest form this system grants, found out once.
    pub fn detect() -> Self {
        if system::available() { Self::Asymmetric } else { Self::Fence }
    }

    /// True if `Asymmetric.light()` may stand for this one's: then readers need not ask which it
    /// is.
    pub(crate) fn is_usual(self) -> bool {
        self == Self::Asymmetric || CHECKED
    }

    /// The reader's half: between its store and its load (B1).
    #[inline(always)]
    pub(crate) fn light(self) {
        match self {
            Self::Asymmetric if is_bare() => {
                std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst)
            }
            _ => fence(Ordering::SeqCst),
        }
    }

    /// The rare party's half: between its store and its load (B1). False if nothing was ordered
    /// (B2).
    #[must_use]
    pub(crate) fn heavy(self) -> bool {
        // ORDERING: the caller's own stores and loads are ordered by this fence in both forms;
        // partner: the readers' `light`.
        fence(Ordering::SeqCst);
        let ordered = match self {
            Self::Asymmetric => system::barrier(),
            Self::Fence => true,
        };
        fence(Ordering::SeqCst);
        ordered
    }
}

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
))]
mod system {
    use std::sync::OnceLock;

    const QUERY: libc::c_int = 0;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

    fn membarrier(command: libc::c_int) -> libc::c_long {
        // SAFETY: the call takes two integers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0) }
    }

    pub(super) fn available() -> bool {
        static AVAILABLE: OnceLock<bool> = OnceLock::new();
        *AVAILABLE.get_or_init(|| {
            let commands = membarrier(QUERY);
            commands > 0
                && commands & libc::c_long::from(PRIVATE_EXPEDITED) != 0
                && membarrier(REGISTER_PRIVATE_EXPEDITED) == 0
                && membarrier(PRIVATE_EXPEDITED) == 0
        })
    }

    pub(super) fn barrier() -> bool {
        // A forked child may have lost the registration: ask for it again before giving up.
        membarrier(PRIVATE_EXPEDITED) == 0
            || (membarrier(REGISTER_PRIVATE_EXPEDITED) == 0 && membarrier(PRIVATE_EXPEDITED) == 0)
    }
}

#[cfg(all(windows, not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))))]
mod system {
    pub(super) fn available() -> bool {
        true
    }

    pub(super) fn barrier() -> bool {
        // SAFETY: the call takes no arguments and has no preconditions.
        unsafe { windows_sys::Win32::System::Threading::FlushProcessWriteBuffers() };
        true
    }
}

#[cfg(not(all(
    any(target_os = "linux", target_os = "android", windows),
    not(any(quintet_loom, quintet_shuttle, quintet_tsan, miri))
)))]
mod system {
    pub(super) fn available() -> bool {
        false
    }

    pub(super) fn barrier() -> bool {
        false
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;
    use crate::sync::{Arc, AtomicU64, thread};

    /// Dekker's handshake, many times: never may both miss the other (B1).
    fn handshake(barrier: Barrier) {
        let rounds = if cfg!(debug_assertions) { 3_000 } else { 20_000 };
        let cells = Arc::new([const { AtomicU64::new(0) }; 4]);
        let other = Arc::clone(&cells);
        let reader = thread::spawn(move || {
            let mut saw = Vec::with_capacity(rounds);
            for round in 1..=rounds as u64 {
                while other[2].load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
                other[0].store(round, Ordering::Relaxed);
                barrier.light();
                saw.push(other[1].load(Ordering::Relaxed) == round);
                other[3].store(round, Ordering::Release);
            }
            saw
        });
        let mut saw = Vec::with_capacity(rounds);
        for round in 1..=rounds as u64 {
            cells[2].store(round, Ordering::Release);
            cells[1].store(round, Ordering::Relaxed);
            assert!(barrier.heavy());
            saw.push(cells[0].load(Ordering::Relaxed) == round);
            while cells[3].load(Ordering::Acquire) < round {
                std::hint::spin_loop();
            }
        }
        let reader_saw = reader.join().unwrap();
        for (ours, theirs) in saw.iter().zip(reader_saw) {
            assert!(*ours || theirs, "both parties missed the other");
        }
    }

    #[test]
    fn fence_form_lets_one_party_see_the_other() {
        handshake(Barrier::Fence);
    }

    #[test]
    fn asymmetric_form_lets_one_party_see_the_other() {
        if Barrier::detect() == Barrier::Asymmetric {
            handshake(Barrier::Asymmetric);
        } else {
            eprintln!("skipped: this system grants no process-wide barrier");
        }
    }
}
