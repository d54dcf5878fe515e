//! Five concurrent hash tables, each built for one job, with one vocabulary.
//!
//! | You have | Use | In one sentence |
//! |---|---|---|
//! | keys and values of any type, shared by threads | [`HashMap`] | readers never lock, and what they hold blocks nobody; writers lock one of many shards; growth is spread over writes |
//! | records that carry their own key | [`ItemSet`] | the same engine; the key is kept once |
//! | integers, ids, counters | [`WordMap`] | any `u64` to any `u64`, one cache line per operation, growth paid a few entries at a time |
//! | small plain data: numbers, ids, positions | [`CopyMap`] | keys and values inline, up to 48 bytes; a hit is a cache line or two, copied without a lock |
//! | a table read all the time, changed now and then | [`TwinMap`] | two copies: a read costs what a plain `hashbrown` read costs |
//! | a set that only grows | [`SeenSet`] | every record gets an id once; all threads help to grow it |
//! | a cache that several processes share | [`TierCache`] | LRU in shared memory that survives `kill -9` of any process |
//!
//! # Promises
//!
//! For every table, and tested:
//!
//! 1. Holding a reference never deadlocks anything, in any order. (A [`TwinMap`]'s writer may wait for readers; readers never wait.)
//! 2. No operation waits for a whole-table copy, unless that was chosen or on a counted path for stragglers.
//! 3. No key and no value is reserved.
//! 4. Panics in `Hash`, `Eq`, `Drop` and closures, and forgotten guards, never corrupt memory, lose an entry or wedge another thread.
//! 5. Memory is proportional to what is live.
//! 6. Running out of memory is an error value of `fallible()`, never a spin.
//! 7. Hashers are keyed by a random seed; a table under a collision attack slows down, it does not eat memory.
//! 8. The consistency of every operation is written down and checked.
//!
//! # One vocabulary
//!
//! All tables are used by the same names, in the same ways: see [operations by table](operations). In short:
//!
//! ```
//! use quintet::WordMap;
//!
//! let visits = WordMap::new();
//! visits.insert("home".len() as u64, 1u64); // on the table itself, from any thread
//! visits.update(4, |count| count + 1);
//! assert_eq!(visits.get(4), Some(2));
//!
//! let handle = visits.handle(); // for a hot loop: a seat of one's own
//! (0..1000).for_each(|_| {
//!     handle.fetch_add(4, 1);
//! });
//! assert_eq!(visits.pin().get(4), Some(1002)); // for several operations in a row
//! ```

#[doc = include_str!("../docs/operations.md")]
pub mod operations {}

mod hash;
mod hasher;
mod home;
mod migrate;
#[allow(dead_code)]
mod reclaim;
#[allow(dead_code)]
mod region;
#[allow(dead_code)]
mod roster;
#[allow(dead_code)]
mod sync;
mod vocabulary;

/// How a thread is inside of a table: what a handle or guard is made with. Code that takes handles of every kind names these.
pub mod access {
    pub use crate::reclaim::{Access, Handle, Hold, Pinned, QuietHandle, ThreadSeat};
}
pub mod copy_map;
pub mod hash_map;
pub mod item_set;
pub mod seen_set;
#[allow(dead_code)] // the cache above uses its share
pub mod tier_cache;
pub mod twin_map;
pub mod word_map;

pub use copy_map::CopyMap;
pub use hash_map::{HashMap, HashSet};
pub use hasher::{DefaultHashBuilder, DefaultHasher};
pub use item_set::ItemSet;
pub use region::{AllocError, Pages};
pub use seen_set::{SeenPrints, SeenSet};
#[doc(inline)]
pub use tier_cache::cache::{self, TierCache};
pub use tier_cache::store;
pub use twin_map::{TwinMap, TwinSet};
pub use vocabulary::{Compute, Computed, Fallible, Rejected};
pub use word_map::WordMap;

/// Rooms below the tables, for the `quintet` command to measure. Not part of the API: may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::reclaim::{
        Access, BATCH, BATCH_BYTES, Backlog, Books, Brief, Check, Domain, Freed, Handle, Held,
        Hold, Offline, Peek, Pinned, QuietHandle, Retired, Section, Spot, Stay, ThreadSeat, Usual,
        Visit,
    };
    pub use crate::region::heap::{Buffer, MAPPED_FROM, PIECE, Zeroed};
    pub use crate::sync::barrier::Barrier;

    /// The map under the cache that processes share.
    pub mod tier {
        pub use crate::tier_cache::*;
    }
}
