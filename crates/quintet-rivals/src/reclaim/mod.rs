//! Memory reclamation: when may a removed allocation be freed?

mod epoch;
mod seize;

pub use self::epoch::Epoch;
pub use self::seize::Seize;

use crate::Label;
use std::sync::atomic::{AtomicU64, Ordering};

/// A domain of readers and of memory that they may hold.
pub trait Domain: Sized + Send + Sync + 'static {
    /// Name and version.
    const LABEL: Label;
    /// Whether what a thread holds is made and dropped, and not a mere reference.
    const HAS_SEATS: bool = true;
    /// What one thread holds while it uses the domain.
    type Local<'a>: Local
    where
        Self: 'a;

    /// A fresh domain.
    fn new() -> Self;
    /// Access for the calling thread.
    fn local(&self) -> Self::Local<'_>;
}

/// One thread's access to a domain.
pub trait Local {
    /// Enters a read section, runs `f`, leaves. `f` may be run again if the domain asks for it.
    fn section<R>(&mut self, f: impl FnMut() -> R) -> R;
    /// The stamp for items that are born now, in domains that want one.
    #[inline(always)]
    fn birth(&self) -> u64 {
        0
    }
    /// Hands over an item that readers may still hold.
    fn retire(&mut self, item: Box<Item>);
    /// Pushes the reclamation on as far as readers allow.
    fn flush(&mut self);
    /// Called between batches of operations: nothing is borrowed here.
    #[inline(always)]
    fn quiet(&mut self) {}
}

/// An item of 64 bytes that counts its own end.
#[derive(Debug)]
pub struct Item {
    freed: &'static AtomicU64,
    /// The stamp that [`Local::birth`] gave before anybody could see the item.
    pub birth: u64,
    /// Makes the item as large as a small record.
    pub payload: [u64; 6],
}

impl Item {
    /// An item whose end is counted in `freed`.
    pub fn new(freed: &'static AtomicU64, birth: u64) -> Box<Self> {
        Box::new(Self { freed, birth, payload: [birth; 6] })
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        // Relaxed: a statistic, read after the threads have been joined.
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}
