//! How a table grows while it is in use.
//!
//! The same four questions for every table, answered here once:
//!
//! * *Who allocates?* One winner ([`Election`]); losers do not wait for it.
//! * *Who claims work?* Whoever is there: a shared cursor hands out chunks ([`Work::claim`]).
//! * *Who copies?* Whoever claimed the chunk; when it sleeps, anybody else: after the last chunk is
//!   handed out, claims give out again what is not finished. A copy must therefore be idempotent.
//! * *Who retires?* Of those that see that all chunks are done, the one that moves the [`Link`] on.
//!
//! What a chunk is, and how an entry is copied, is the table's business.
//!
//! **M1.** A chunk is marked done only after every entry in it is (Release), and seen as done only
//! with what was written before (Acquire).
//! **M2.** A cursor past the end is not completion: it says that everything was handed out.
//! **M3.** While some chunk is not done, every `claim` returns one: nobody waits for a sleeping
//! mover, and a mover may abandon its chunk at any step.
//! **M4.** `claim` returns `None` if and only if it saw every chunk done; from then on it always
//! does.
//! **M5.** The words below `swept` are full. It only saves time: searching from 0 would give the
//! same answers.
//! **M10.** The pages of a successor are made present before it is used, a step per operation
//! ([`FirstTouch`]): no operation pays for the first touch of two. A thread stalled in a step
//! delays no other: the steps are dealt out, not waited for. There is a step for every 64 KiB at
//! least, and only large tables are touched, for which `pace` M8 asks for half of the least quota.

mod leave;
mod link;
mod pace;
mod touch;
mod work;

#[cfg(all(test, quintet_loom))]
mod loom_tests;

pub(crate) use leave::Leave;
pub(crate) use link::{Address, Link, Restart};
pub(crate) use pace::{MOST_SHRINK, SMALL_BITS, capacity_for, least_quota, load_of, next_capacity};
pub(crate) use touch::FirstTouch;
pub(crate) use work::{Election, Work};
