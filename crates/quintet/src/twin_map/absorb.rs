//! What a structure must be able to do to be kept in two copies.

/// A structure that changes by operations, each applied to both of its copies.
///
/// The second application is *checked*: if it panics or says that it ended differently, that copy
/// is thrown away and rebuilt from the first before anybody sees it. So a wrong implementation
/// costs time, never consistency.
///
/// ```
/// use quintet::twin_map::{Absorb, Differs, Twin};
///
/// #[derive(Clone, Default)]
/// struct Total(u64);
///
/// impl Absorb<u64> for Total {
///     type Old = ();
///     fn absorb_first(&mut self, op: &mut u64) -> Option<()> {
///         self.0 += *op;
///         None
///     }
///     fn absorb_second(&mut self, op: u64, _old: &mut Vec<()>) -> Result<(), Differs> {
///         self.0 += op;
///         Ok(())
///     }
///     fn rebuild(from: &Self) -> Self {
///         from.clone()
///     }
/// }
///
/// let (mut twin, reader) = Twin::new(Total::default());
/// let mut write = twin.guard();
/// write.apply(40);
/// write.apply(2);
/// assert_eq!(reader.pin().0, 0);
/// write.publish();
/// assert_eq!(reader.pin().0, 42);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept in two copies that change by `{Op}`",
    label = "does not absorb `{Op}`",
    note = "implement `Absorb<{Op}>`: how the first and the second copy apply an operation"
)]
pub trait Absorb<Op>: Sized {
    /// What falls out of a copy: replaced and removed values.
    type Old;

    /// Applies an operation to the copy that the writer is changing. The operation may note in
    /// itself how it ended. What falls out goes to the caller.
    ///
    /// If this panics, the copy is rebuilt and the operations before this one are applied to it
    /// again: the operation has not happened.
    fn absorb_first(&mut self, op: &mut Op) -> Option<Self::Old>;

    /// Applies the same operation to the other copy. What falls out is put into `old` and dropped
    /// once both copies agree.
    fn absorb_second(&mut self, op: Op, old: &mut Vec<Self::Old>) -> Result<(), Differs>;

    /// This operation will be applied a second time soon. May ask for the memory that it will
    /// touch; changes nothing.
    fn prepare(&self, _op: &Op) {}

    /// A new copy, equal to `from`.
    fn rebuild(from: &Self) -> Self;

    /// Makes this copy equal to `from`, and may keep its memory. If it panics, the copy is made
    /// anew before anybody sees it. Only called where [`Old`](Self::Old) needs no drop.
    fn rebuild_into(&mut self, from: &Self) {
        *self = Self::rebuild(from);
    }

    /// Whether a copy of this one is made sooner than so many operations are applied to the other.
    /// If so, they are given up, and the copy is made.
    fn is_copied_sooner(&self, _operations: usize) -> bool {
        false
    }

    /// Bytes that this copy holds on the heap, for
    /// [`Reader::memory_bytes`](super::Reader::memory_bytes). 0 if it does not tell.
    fn memory_bytes(&self) -> usize {
        0
    }

    /// A last check after all operations: false if the copies are known to differ.
    fn agrees(&self, _other: &Self) -> bool {
        true
    }
}

/// The second application of an operation ended differently from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Differs;

impl std::fmt::Display for Differs {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("the operation ended differently on the second copy: Hash, Eq or Clone of a key is not consistent")
    }
}

impl std::error::Error for Differs {}
