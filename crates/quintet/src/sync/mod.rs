//! The only room that names the machine's atomics, threads, loom or shuttle.
//!
//! | Room | Holds |
//! |---|---|
//! | `native`, `loom`, `shuttle` | the three backends, same names in each |
//! | [`barrier`] | the asymmetric barrier: readers pay nothing, the other side pays |
//! | [`pair`] | [`AtomicPair`]: two adjacent words changed by one compare-exchange |
//! | [`line`] | [`Line`]: a cache line of words, looked over at once |
//! | [`quad`] | [`Quad`](quad::Quad): four keys and their values on one cache line |
//! | [`six`] | [`Six`](six::Six): six tags and their items on one cache line |
//! | [`item_word`] | [`ItemWord`](item_word::ItemWord): an item that is changed without a lock until it is closed |
//! | [`lazy`] | [`LazyArc`]: shared, and made at the first use |
//! | [`weak`] | [`Weak`]: a reference that does not keep what it names |
//! | [`later`] | wakes tasks after a while |
//! | [`padded`] | [`CachePadded`]: one value, its own cache lines |
//! | [`fenced`] | a store or an exchange together with the fence behind it |
//! | [`backoff`] | [`Backoff`]: spin, then yield |
//! | [`fork`] | has this process been forked since? |
//!
//! The backend is chosen by a cfg of our own (`quintet_loom`, `quintet_shuttle`), so that switching
//! it on does not switch dependencies that listen to plain `cfg(loom)`. `quintet_tsan` keeps the
//! native backend but replaces fences, which ThreadSanitizer does not understand, by a
//! read-modify-write of one shared word.

#[cfg(not(any(quintet_loom, quintet_shuttle)))]
mod native;
#[cfg(not(any(quintet_loom, quintet_shuttle)))]
use native as backend;

#[cfg(quintet_loom)]
mod loom;
#[cfg(quintet_loom)]
use self::loom as backend;
#[cfg(all(test, quintet_loom))]
pub(crate) use self::loom::{model, model_of_growth};

#[cfg(all(quintet_shuttle, not(quintet_loom)))]
mod shuttle;
#[cfg(all(quintet_shuttle, not(quintet_loom)))]
use self::shuttle as backend;
#[cfg(all(test, quintet_shuttle, not(quintet_loom)))]
pub(crate) use self::shuttle::schedules;

pub(crate) mod backoff;
pub(crate) mod barrier;
pub(crate) mod fenced;
pub(crate) mod fork;
pub(crate) mod item_word;
pub(crate) mod later;
pub(crate) mod lazy;
pub(crate) mod line;
pub(crate) mod padded;
pub(crate) mod pair;
pub(crate) mod prefetch;
pub(crate) mod quad;
pub(crate) mod six;
pub(crate) mod tags;
pub(crate) mod weak;

#[allow(unused_imports)] // a room uses what it needs; the list is the same for every backend
pub(crate) use backend::{
    Arc, AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Condvar, HandOver, Mutex, MutexGuard, Ordering, const_where_possible, fence, is_alone,
    park_timeout, spin_loop, thread, thread_local_cell,
};
#[allow(unused_imports)]
pub(crate) use {
    backoff::Backoff, barrier::Barrier, lazy::LazyArc, line::Line, padded::CachePadded,
    pair::AtomicPair, weak::Weak,
};

/// The machine's own atomics and mutex in every backend: for what lies in constants, and is too
/// simple to be modelled. ThreadSanitizer sees through this mutex, and not through the waits of
/// std's.
pub(crate) mod constant {
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::atomic::AtomicU64;
}

/// True while a model checker runs the code: sizes shrink so that rare paths become common.
pub(crate) const MODEL: bool = cfg!(any(quintet_loom, quintet_shuttle));

/// Loads a number that is only a hint: an old value costs effort and no more. A checker gets the
/// newest, so that its time goes into what matters.
#[inline(always)]
pub(crate) fn load_hint(number: &AtomicUsize) -> usize {
    // ORDERING: Relaxed: a hint.
    if MODEL { number.fetch_add(0, Ordering::Relaxed) } else { number.load(Ordering::Relaxed) }
}
