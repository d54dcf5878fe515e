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
//! # First steps
//!
//! Begin with the table itself; the other ways in are for later. [`HashMap`], for any keys and
//! values:
//!
//! ```
//! use quintet::HashMap;
//!
//! let ages = HashMap::<String, u32>::new();
//! ages.insert("ada".to_string(), 36); // from any thread
//! ages.update("ada", |age| age + 1);
//! assert_eq!(ages.get("ada").as_deref(), Some(&37));
//! ```
//!
//! [`WordMap`], for numbers:
//!
//! ```
//! use quintet::WordMap;
//!
//! let visits = WordMap::<u64, u64>::new();
//! visits.fetch_add(7, 1);
//! visits.fetch_add(7, 1);
//! assert_eq!(visits.get(7), Some(2));
//! ```
//!
//! [`CopyMap`], for small plain data:
//!
//! ```
//! use quintet::CopyMap;
//!
//! let places = CopyMap::<u64, [f64; 2]>::new();
//! places.insert(7, [52.5, 13.4]);
//! assert_eq!(places.get(&7), Some([52.5, 13.4]));
//! ```
//!
//! [`ItemSet`], for records that carry their key:
//!
//! ```
//! use quintet::{ItemSet, item_set::Keyed};
//!
//! struct User {
//!     name: String,
//!     age: u32,
//! }
//!
//! impl Keyed for User {
//!     type Key = String;
//!     fn key(&self) -> &String {
//!         &self.name
//!     }
//! }
//!
//! let users = ItemSet::<Box<User>>::new();
//! users.insert(User { name: "ada".to_string(), age: 36 });
//! assert_eq!(users.get("ada").unwrap().age, 36);
//! ```
//!
//! [`TwinMap`], for what is read all the time:
//!
//! ```
//! use quintet::TwinMap;
//!
//! static SETTINGS: TwinMap<&str, u32> = TwinMap::new();
//!
//! SETTINGS.replace_all([("threads", 8), ("depth", 3)]); // at one moment
//! assert_eq!(SETTINGS.get("depth").as_deref(), Some(&3));
//! ```
//!
//! [`SeenSet`], for what only grows:
//!
//! ```
//! use quintet::SeenSet;
//!
//! let words = SeenSet::<String>::new();
//! let tea = words.insert("tea");
//! assert!(tea.is_new() && !words.insert("tea").is_new());
//! assert_eq!(words.get(tea.id()).unwrap(), "tea");
//! ```
//!
//! [`TierCache`], for several processes, with the feature `shm`:
//!
//! ```
//! # #[cfg(not(feature = "shm"))]
//! # fn main() {}
//! # #[cfg(feature = "shm")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use quintet::cache::{Place, TierCache};
//!
//! let place = Place::Name(format!("pages-{}", std::process::id()));
//! let cache = TierCache::builder().capacity(1 << 20).create(&place)?;
//! let other = TierCache::attach(&place)?; // in any process
//! cache.insert("home", "<h1>Welcome</h1>")?;
//! assert_eq!(other.get("home")?.as_deref(), Some(&b"<h1>Welcome</h1>"[..]));
//! TierCache::unlink(&place)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! For every table, and tested:
//!
//! 1. Holding a reference never deadlocks anything, in any order. (A [`TwinMap`]'s writer may wait
//!    for readers; readers never wait.)
//! 2. No operation waits for a whole-table copy, unless that was chosen or on a counted path for
//!    stragglers.
//! 3. No key and no value is reserved.
//! 4. Panics in `Hash`, `Eq`, `Drop` and closures, and forgotten guards, never corrupt memory, lose
//!    an entry or wedge another thread.
//! 5. Memory is proportional to what is live.
//! 6. Running out of memory is an error value of `fallible()`, never a spin.
//! 7. Hashers are keyed by a random seed; a table under a collision attack slows down, it does not
//!    eat memory.
//! 8. The consistency of every operation is written down and checked.
//!
//! What each table promises of consistency, progress, growth, memory and panics, and which guards
//! may be sent, shared and held across an `.await`, stands side by side in [`guarantees`].
//!
//! # One vocabulary
//!
//! All tables are used by the same names, in the same ways: see [operations by table](operations).
//! In short:
//!
//! ```
//! use quintet::WordMap;
//!
//! let visits = WordMap::new();
//! visits.insert(7, 1); // on the table itself, from any thread
//! visits.update(7, |count| count + 1);
//! assert_eq!(visits.get(7), Some(2));
//!
//! let handle = visits.handle(); // for a hot loop: a seat of one's own
//! (0..1000).for_each(|_| {
//!     handle.fetch_add(7, 1);
//! });
//! assert_eq!(visits.pin().get(7), Some(1002)); // for several operations in a row
//! ```

// Each table uses its share of the rooms below: only all of them together use everything.
#![cfg_attr(
    not(all(
        feature = "copy",
        feature = "item",
        feature = "seen",
        feature = "shm",
        feature = "twin",
        feature = "word",
        feature = "internals"
    )),
    allow(dead_code, unreachable_pub, unused_imports)
)]

/// The examples of the repository's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;

#[doc = include_str!("../docs/guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("../docs/operations.md")]
pub mod operations {}

mod hash;
#[cfg(any(feature = "copy", feature = "item", feature = "seen", feature = "twin"))]
mod hasher;
#[cfg(any(feature = "copy", feature = "item", feature = "seen", feature = "word"))]
mod home;
mod migrate;
mod reclaim;
mod region;
mod roster;
mod sync;
mod vocabulary;

/// How a thread is inside of a table: what a handle or guard is made with. Code that takes handles
/// of every kind names these.
pub mod access {
    pub use crate::reclaim::{Access, Handle, Hold, Pinned, QuietHandle, ThreadSeat};
}
#[cfg(feature = "copy")]
pub mod copy_map;
#[cfg(feature = "item")]
pub mod hash_map;
#[cfg(feature = "item")]
pub mod item_set;
#[cfg(feature = "seen")]
pub mod seen_set;
#[cfg(feature = "shm")]
pub mod tier_cache;
#[cfg(feature = "twin")]
pub mod twin_map;
#[cfg(feature = "word")]
pub mod word_map;

#[cfg(feature = "copy")]
pub use copy_map::CopyMap;
#[cfg(feature = "item")]
pub use hash_map::{HashMap, HashSet};
#[cfg(any(feature = "copy", feature = "item", feature = "seen", feature = "twin"))]
pub use hasher::{DefaultHashBuilder, DefaultHasher};
#[cfg(feature = "item")]
pub use item_set::ItemSet;
pub use region::{AllocError, Pages};
#[cfg(feature = "seen")]
pub use seen_set::{SeenPrints, SeenSet};
#[cfg(feature = "shm")]
#[doc(inline)]
pub use tier_cache::cache::{self, TierCache};
#[cfg(feature = "shm")]
pub use tier_cache::store;
#[cfg(feature = "twin")]
pub use twin_map::{TwinMap, TwinSet};
pub use vocabulary::{Compute, Computed, Fallible, Rejected};
#[cfg(feature = "word")]
pub use word_map::WordMap;

/// Rooms below the tables, for the `quintet` command to measure. Not part of the API: may change at
/// any time.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub use crate::reclaim::{
        Access, BATCH, BATCH_BYTES, Backlog, Books, Brief, Check, Domain, Freed, Handle, Held,
        Hold, Offline, Peek, Pinned, QuietHandle, Retired, Section, Spot, Stay, ThreadSeat, Usual,
        Visit,
    };
    pub use crate::region::heap::{Buffer, MAPPED_FROM, PIECE, Zeroed};
    pub use crate::sync::barrier::Barrier;

    /// The map under the cache that processes share.
    #[cfg(feature = "shm")]
    pub mod tier {
        pub use crate::tier_cache::*;
    }
}
