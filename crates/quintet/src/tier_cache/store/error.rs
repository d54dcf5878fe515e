//! What can go wrong with a store, and what to do.

use std::fmt;

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The address names no store: what is wrong, and how it should look.
    Address(String),
    /// This build has no such store: the feature to build with.
    NotBuilt(&'static str),
    /// The store does not answer. It is asked again after a pause that grows with every failure.
    Unavailable(String),
    /// The deadline passed first: what was not stored by then never will be.
    Late,
    /// A record that the store cannot hold.
    TooLarge {
        /// The most bytes of a key and its value.
        max: usize,
    },
    /// The store answered that it will not.
    Refused(String),
    /// The store was opened before a fork, by the parent.
    Forked,
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(out, "store: {why}"),
            Self::NotBuilt(feature) => {
                write!(
                    out,
                    "store: this build has none of that kind; build with the feature `{feature}`"
                )
            }
            Self::Unavailable(why) => write!(out, "store unavailable: {why}"),
            Self::Late => out.write_str("store: the deadline passed before it answered"),
            Self::TooLarge { max } => {
                write!(
                    out,
                    "store: too large, at most {max} bytes of key and value; give it more room"
                )
            }
            Self::Refused(why) => write!(out, "store refused: {why}"),
            Self::Forked => {
                out.write_str("store: opened before a fork; drop it and open it again in the child")
            }
        }
    }
}

impl std::error::Error for StoreError {}
