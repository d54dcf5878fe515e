//! Where memory lies.
//!
//! | Room | Holds |
//! |---|---|
//! | [`heap`] | [`Buffer`](heap::Buffer): zeroed arrays of slots; large ones mapped, with huge pages by default |
//! | [`mapping`] | [`Mapping`](mapping::Mapping): a mapping that is given back bit by bit |
//! | `pages` | the system calls under it |
//! | [`shm`] | segments that processes share |

pub(crate) mod heap;
pub(crate) mod mapping;
mod pages;
#[cfg(feature = "shm")]
pub(crate) mod shm;

use std::ptr::NonNull;

/// True if pieces of this size are mappings of their own.
pub(crate) fn is_mapped(bytes: usize) -> bool {
    pages::AVAILABLE && bytes >= heap::MAPPED_FROM
}

/// A zeroed mapping of at least so many bytes, aligned to 2 MiB, or nothing. For sizes that
/// [`is_mapped`].
pub(crate) fn map(bytes: usize, pages: Pages) -> Option<NonNull<u8>> {
    pages::map(bytes, pages)
}

/// Gives a mapping back.
///
/// # Safety
/// [`map`] made it for this size and these pages, and nobody refers to it.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize, pages: Pages) {
    // SAFETY: the caller's promise; a mapping spans whole pages.
    unsafe { pages::unmap(start, 0, pages::rounded(bytes, pages)) };
}

/// Which pages large tables ask the system for. Tables below 2 MiB come from the global allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pages {
    /// 2 MiB pages where the system grants them: random access to large tables is two to three
    /// times as fast. The first touch of a page clears 2 MiB, some tenths of a millisecond.
    #[default]
    Huge,
    /// 4 KiB pages: for those who count the microseconds of the worst operation.
    Small,
}

/// Memory could not be had, or the size is beyond what can be addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AllocError {
    /// The requested number of entries does not fit into the address space.
    CapacityOverflow,
    /// The system or the allocator refused this many bytes.
    OutOfMemory {
        /// Bytes that were asked for in one piece.
        bytes: usize,
    },
    /// This processor lacks an instruction the table needs.
    Unsupported,
}

impl std::fmt::Display for AllocError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CapacityOverflow => out.write_str(
                "capacity overflow: ask for fewer entries, they exceed the address space",
            ),
            Self::OutOfMemory { bytes } => {
                write!(
                    out,
                    "out of memory: {bytes} bytes were refused; free memory or lower the capacity"
                )
            }
            Self::Unsupported => out.write_str(
                "unsupported processor: it lacks the 16-byte compare-exchange this table needs",
            ),
        }
    }
}

impl std::error::Error for AllocError {}
