//! The families, in the order in which they race. A family joins by one file and one line here.

mod rivals;

use super::family::Family;

/// All families.
pub(crate) fn all() -> Vec<Family> {
    vec![rivals::family()]
}
