//! When memory may be freed.
//!
//! Readers use memory that writers unlink. A [`Domain`] frees what was retired once no reader can
//! still use it.
//!
//! | Room | Holds |
//! |---|---|
//! | `domain` | [`Domain`], and the eras |
//! | `seat` | what a reader announces |
//! | `lists` | the garbage of a seat |
//! | `section` | [`Section`]: inside a read section; [`Visit`]: one operation there |
//! | `access` | [`Access`]: the four ways of being inside; [`Hold`]: those that are inside between operations |
//! | `handle` | [`Handle`]: a seat that pins; [`QuietHandle`]: a seat that lives inside and names its quiet points |
//! | `books` | [`Books`]: what a seat counts for its table |
//! | `local` | the calling thread's own seat, for `pin()` without a handle |
//! | `collect` | sealing, scanning, freeing |
//! | `light` | who announces without a fence, and the barrier this needs |
//! | `parting` | [`Parting`]: a piece whose owner wants it back |
//! | `retired` | [`Retired`]: one piece of garbage |
//! | `reuse` | the memory of such pieces, for the next boxes |
//!
//! # Eras and intervals
//!
//! A global era counts sealed batches. A seat announces an interval `[lower, upper]` of eras;
//! `lower = MAX` means outside.
//!
//! ```text
//!            enter: lower = upper = era                     load p; era == upper?  yes: p is safe
//!  OUTSIDE ──────────────────────────────▶ INSIDE [l, u] ◀──────────────┐
//!     ▲                                      │   │                       │
//!     │          leave: lower = MAX          │   └── no: upper = era ────┘   restart from the root (widen)
//!     └──────────────────────────────────────┘        second time: upper = MAX
//! ```
//!
//! **E1.** A piece with `[birth, retire]` is freed only if for every seat `retire < lower` or
//! `birth > upper`.
//! **E2.** `birth` is the era read before the piece was published; `retire` is the stamp of the
//! batch, taken by one `fetch_add` after the last unlink of the batch. Stamping by a plain load is
//! wrong on every machine: the unlink may still sit in a store buffer while the era moves on.
//! **E3.** After each load of a shared pointer the section compares the era with `upper`. Equal:
//! whatever the pointer names was born at or before `upper`, and cannot have been freed since
//! `lower` was announced. Different: widen, and start again from the root; loading the same field
//! again is not enough, since it may lie in memory retired meanwhile.
//! **E4.** Order of the reclaimer: unlink, seal, heavy barrier (or what stands for it, `light` F2),
//! load the list of seats, load the seats, free. By `barrier` B1 either a reader's announcement is
//! seen by the scan, or the reader's later loads see the unlink.
//! **E5.** What is left over has had its barrier: later scans of it need none.
//! **E6.** If the barrier is refused, nothing is freed and the batch stays unsealed.
//! **E7.** An operation that restarts for the second time announces `upper = MAX`: it ends, and its
//! section holds back what is retired until then.
//! **E8.** A quiet handle may be outside although it is used: a guard that should have brought it
//! in again was forgotten, or the drop of a piece panicked at its quiet point. Outside it announces
//! no era, so that every check fails; the check enters, and says no.
//!
//! # Sections inside of one another
//!
//! User code runs inside operations (a closure, `Eq`, the drop of a piece), and may use the same
//! table. So several operations of one seat may be under way, the inner ones begun later, and what
//! an inner one opens may outlive the outer one (a guard or an iterator that a closure stores
//! elsewhere). The seat announces one interval for all of them.
//!
//! **E9.** Each operation has a [`Visit`] of its own, also under one guard, and follows only what
//! its *own* `upper` vouches for: the one that was announced before it loaded its root. The seat's
//! may be larger by now. What was born after the operation's `upper` may have been freed before an
//! inner one announced more, and the memory in which the operation stands may still have a link to
//! it. So an operation that finds the era changed says no and restarts from its root whatever the
//! seat announces. Only who has known from its beginning that the seat announces `MAX` goes on.
//! **E10.** A seat is inside as long as one section is open, in whatever order they are closed:
//! `unusual` counts those besides one, no matter which. The interval never shrinks meanwhile, so
//! what an operation confirmed stays valid until its own section is closed.
//!
//! # Memory that is used again
//!
//! **E11.** A piece that [`Retired::reusable`] has marked is a box of the one type that its domain
//! has for such pieces. Past its grace period nobody refers to it, so that its box may be taken
//! over as it is by who stores next on the same seat: its value is dropped, and the next one
//! written in its place, without the allocator. Such pieces are those that wait to be freed, and no
//! others: they are counted and bounded, flushed, left behind and adopted as those are.
//! **E12.** While a value is dropped that way, the seat is marked as collecting: what the drop
//! stores is boxed anew, and what it retires waits.
//!
//! # What is held back
//!
//! A reader asleep inside a section holds back what was alive when it fell asleep, what was born
//! within its interval, and nothing else: pieces born later are freed around it. A section that
//! announced `upper = MAX` (iterators, long guards) holds back everything retired while it lasts.
//! Besides, each seat keeps at most [`BATCH`] pieces or [`BATCH_BYTES`] bytes, all told, that wait
//! for their batch to fill, as many that were sealed last and are looked at when the next batch is,
//! and up to twice as many that are past their grace period: small pieces are freed one for each
//! that is retired, or used again (E11), or freed by [`Domain::flush`]. Of those that may be used
//! again and whose drop does nothing, a batch is left for that. What an owner leaves behind stays
//! with its seat, which is the first to be taken again, and goes on from there; or whoever collects
//! next takes it over.
//!
//! # Costs
//!
//! Enter: one load of the era's line (shared, rarely written), two plain stores and a counter on
//! the seat's own line. Each check: one load of the era's line. Leave: one plain store. No locked
//! instruction, no fence. A quiet point: one load of the era's line, and if the era has moved on,
//! two stores and a fence. Making or dropping a handle: a lock for a few instructions, and a
//! handful of locked instructions, however many others there are. A batch: one `fetch_add`, one
//! look at each seat that is taken, and a process-wide barrier if there are seats other than those
//! of quiet handles; if not, a fence (`light` F2), and batches of half the size.
//!
//! # Fork
//!
//! A child may use tables of its parent if the parent had one thread, or if the child execs at
//! once: other threads may have held locks. The thread-local seats of threads that did not come
//! along are vacated; handles of such threads stay where they are and at worst hold memory back.

mod access;
mod books;
mod collect;
mod domain;
mod handle;
mod light;
mod lists;
mod local;
mod parting;
mod retired;
mod reuse;
mod seat;
mod section;

#[cfg(all(test, quintet_loom))]
mod loom_tests;
#[cfg(all(test, quintet_shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests;

pub use access::{Access, Hold, Pinned, ThreadSeat, Usual};
pub use books::Books;
pub use collect::{BATCH, BATCH_BYTES};
pub use domain::{Backlog, Domain};
pub use handle::{Handle, Offline, QuietHandle};
pub(crate) use parting::Parting;
pub use retired::{Freed, Retired};
pub use section::{Brief, Check, Held, Peek, Section, Spot, Stay, Visit};
