//! Conformance: does a table behave in all the corners? One function per corner.
//!
//! A table of words implements [`TableUnderTest`] and lists in [`table_tests!`](crate::table_tests)
//! the checks that apply to it:
//!
//! | Check | Story |
//! |---|---|
//! | [`oracle`] | one thread, random operations, every answer as the model says; shrunk on failure |
//! | [`linearizable`] | threads on few keys, history checked |
//! | [`linearizable_while_growing`] | the same while ballast grows and shrinks the table |
//! | [`single_owner`] | every thread knows what its own keys hold while all grow and shrink one table |
//! | [`tiny_table_64_threads`] | 64 threads fill a table that starts with no room |
//! | [`one_winner_per_key`] | 64 threads insert the same keys; each key is new to exactly one |
//! | [`unique_ids`] | the ids of a set are distinct, and everybody is told the same |
//! | [`thread_exit`] | threads end with handles dropped, forgotten and unwound |
//! | [`thread_local_destruction`] | the table is used while thread-locals are destroyed |
//! | [`churn_keeps_memory_flat`] | keys come and go at constant size |
//! | [`removal_returns_memory`] | memory after removing everything |
//! | [`flooding`] | keys that look alike; [`flooding_with`] for keys made to collide |
//! | [`capacity_overflow`] | absurd capacities are errors with a text |
//!
//! A table of any types implements [`GenericFamily`] and lists in
//! [`generic_tests!`](crate::generic_tests) what applies of [`generic`]. For two-copy maps see
//! [`snapshot`](crate::snapshot). `Send` and `Sync` are asserted at compile time by
//! [`assert_send!`](crate::assert_send) and its kin.
//!
//! What cannot apply to a table is not listed by it.

mod adapter;
pub mod generic;
mod memory;
mod oracle;
mod owner;
mod record;
mod statics;
#[cfg(test)]
mod tests;
mod threads;

pub use adapter::{HandleUnderTest, TableUnderTest};
pub use generic::{GenericFamily, GenericMap};
pub use memory::{
    capacity_overflow, churn_keeps_memory_flat, flooding, flooding_with, removal_returns_memory,
};
pub use oracle::oracle;
pub use owner::{Owner, single_owner};
pub use record::{HOT, Plan, linearizable, linearizable_while_growing, record};
pub use threads::{
    one_winner_per_key, thread_exit, thread_local_destruction, tiny_table_64_threads, unique_ids,
};

/// Writes one test per check for a table of words.
///
/// ```
/// # mod hidden {
/// use quintet_testkit::controls::MutexMap;
///
/// quintet_testkit::table_tests!(|capacity| MutexMap::with_capacity(capacity);
///     oracle, linearizable, single_owner);
/// # }
/// ```
#[macro_export]
macro_rules! table_tests {
    ($make:expr; $($check:ident),+ $(,)?) => {
        $(
            #[test]
            fn $check() {
                $crate::conformance::$check($make);
            }
        )+
    };
}

/// Writes one test per check of [`generic`] for a family of tables.
///
/// ```
/// # mod hidden {
/// quintet_testkit::generic_tests!(quintet_testkit::controls::MutexFamily;
///     zero_sized, over_aligned, panicking_hash);
/// # }
/// ```
#[macro_export]
macro_rules! generic_tests {
    ($family:ty; $($check:ident),+ $(,)?) => {
        $(
            #[test]
            fn $check() {
                $crate::conformance::generic::$check::<$family>();
            }
        )+
    };
}
