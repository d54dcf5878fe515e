//! A cache with a store: what leaves memory goes there, and comes back from there.
//!
//! The rules `tier_cache_stores` N1 to N10, and why nobody sees a stale value by them, are on [the
//! page of the stores](crate::store); the code cites them. What is particular here:
//!
//! **B1.** An entry that a writer linked and did not live to give a version has the version 0,
//! since that word is cleared before the entry is linked. It gets one before it is put
//! (`tier_cache_stores` N7), greater than all before it, and until then it is the newest of its
//! key.
//! **B2.** A tombstone is an entry that expired at moment 1. So is the mark that memory *and* store
//! lack a key; that has the version [`ABSENT`], is never put, and leaves without a trace.
//! **B3.** A store's key begins with the segment's seed, the number of the namespace and its
//! generation: what was cleared is never found again, and a new segment finds nothing of an older
//! one. Where it was told to adopt what is there, the seed is left away in the unnamed namespace.
//! **B4.** A lease ends a second after the deadline of the put that is made under it, so that
//! clocks which differ by less do no harm.
//! **B5.** A process that could not open the store unlinks nothing that the store would have to
//! have: it evicts nothing and lets nothing expire from memory.

mod book;
mod leave;
mod side;
mod through;
mod writer;

pub(super) use book::Seen;
pub use side::StoreState;
pub(super) use side::{Backing, Recipe};
pub(super) use through::Looked;
pub(super) use writer::{LAST_BATCH, Writer};
