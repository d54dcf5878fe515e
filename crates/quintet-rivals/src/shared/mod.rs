//! Tables in memory that processes share: 32-bit keys, 64-bit values.

mod plain;
#[cfg(target_os = "linux")]
mod robust;

pub use plain::Plain;
#[cfg(target_os = "linux")]
pub use robust::Robust;

use crate::Label;

/// A table in shared memory.
pub trait Shared: Sync + Sized + 'static {
    /// Name and version.
    const LABEL: Label;
    /// A thread's access.
    type Local<'a>: Local
    where
        Self: 'a;
    /// A table with about so many cells for so many entries; `None` if there is no memory to share.
    fn create(cells: usize, entries: usize) -> Option<Self>;
    /// A file by which a child of this process enters the table; `None` if every process has its
    /// own.
    fn path(&self) -> Option<String>;
    /// Enters the table of another process.
    fn attach(path: &str) -> Option<Self>;
    /// Access for the calling thread.
    fn local(&self) -> Self::Local<'_>;
    /// Whether it takes part in anything but lookups.
    fn writes() -> bool {
        true
    }
    /// Runs `body` while these keys, which are absent, are half added: each is in the table, and
    /// its bucket is still held. False if the table has no such state.
    fn hold(&self, _keys: &[u32], _body: &mut dyn FnMut()) -> bool {
        false
    }
}

/// The path by which children find a file this process holds open.
#[cfg(unix)]
pub fn path_of(file: std::os::fd::BorrowedFd<'_>) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// A thread's access. Keys are neither 0 nor `u32::MAX`.
pub trait Local {
    /// The value of a key.
    fn get(&mut self, key: u32) -> Option<u64>;
    /// Adds a key that is absent.
    fn add(&mut self, key: u32, value: u64) -> bool;
    /// Replaces the value of a key that is present.
    fn update(&mut self, key: u32, value: u64) -> bool;
    /// Removes a key that is present.
    fn remove(&mut self, key: u32) -> bool;
}
