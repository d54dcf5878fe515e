//! The checks pass on correct tables, and each goes red on a table with the fault it is for.
//!
//! Faults that hang (a forgotten or re-entered lock) end the process through the watchdog, which
//! has its own test; faults that tear or misalign values cannot be written without unsafe code.

mod correct;
mod faulty_generic;
mod faulty_words;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Expects a check to fail on a faulty table.
#[track_caller]
fn goes_red(check: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(check)).is_err(), "the check did not notice the fault");
}
