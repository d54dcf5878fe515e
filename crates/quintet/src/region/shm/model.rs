//! A segment for model checkers: their atomics are no plain bytes, so each array is built on the
//! heap when it is first asked for. One process, which never dies.

use super::{Access, Peer, Place, SegmentError, Shape, Wanted};
use crate::region::Pages;
use crate::region::heap::{Buffer, Zeroed};
use crate::sync::AtomicU64;
use std::any::Any;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

type Array = (usize, Box<dyn Any + Send + Sync>);

/// Arrays by their offset, and what the header would say.
#[derive(Debug)]
pub(crate) struct Segment {
    arrays: Mutex<Vec<Array>>,
    format: u64,
    fields: Vec<u64>,
    body: usize,
    /// On the heap: whoever looks at it keeps its address while the segment moves.
    created: Box<AtomicU64>,
    processes: u64,
}

impl Segment {
    pub(crate) fn create(_: &Place, shape: &Shape<'_>, _: Access) -> Result<Self, SegmentError> {
        Self::create_sealed(shape)
    }

    pub(crate) fn create_sealed(shape: &Shape<'_>) -> Result<Self, SegmentError> {
        let fields = shape.fields.iter().map(|(_, value)| *value).collect();
        let arrays = Mutex::default();
        let (created, processes) = (Box::new(AtomicU64::new(0)), shape.processes as u64);
        Ok(Self { arrays, format: shape.format, fields, body: shape.body, created, processes })
    }

    pub(crate) fn attach(_: &Place, _: &Wanted<'_>, _: bool) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    pub(crate) fn attach_sealed(_: OwnedFd, _: &Wanted<'_>) -> Result<Self, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    /// The array of this offset: always asked for with the same length.
    pub(crate) fn slice<T: Zeroed + Send + Sync + 'static>(
        &self,
        offset: usize,
        len: usize,
    ) -> Option<&[T]> {
        let mut arrays = self.arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if !arrays.iter().any(|(at, array)| *at == offset && array.is::<Buffer<T>>()) {
            arrays.push((offset, Box::new(Buffer::<T>::try_new(len, Pages::Small).ok()?)));
        }
        let (_, array) =
            arrays.iter().find(|(at, array)| *at == offset && array.is::<Buffer<T>>())?;
        let slots: &[T] = array.downcast_ref::<Buffer<T>>()?;
        // SAFETY: the boxed buffer stays where it is until the segment is dropped: arrays are only
        // added.
        Some(unsafe { std::slice::from_raw_parts(slots.as_ptr(), slots.len().min(len)) })
    }

    pub(crate) fn field(&self, index: usize) -> u64 {
        self.fields.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn format(&self) -> u64 {
        self.format
    }

    pub(crate) fn max_processes(&self) -> u64 {
        self.processes
    }

    pub(crate) fn note(&self) -> String {
        String::new()
    }

    pub(crate) fn is_foreign(&self) -> bool {
        false
    }

    pub(crate) fn mode(&self) -> u32 {
        0o600
    }

    pub(crate) fn seed(&self) -> u64 {
        7
    }

    pub(crate) fn is_from_another_boot(&self) -> bool {
        false
    }

    pub(crate) fn adopt_boot(&self) {}

    pub(crate) fn repair_turn(&self) -> Result<(), SegmentError> {
        Ok(())
    }

    pub(crate) fn is_alone(&self) -> bool {
        true
    }

    pub(crate) fn wall_ms() -> u64 {
        1000
    }

    pub(crate) fn created(&self) -> &AtomicU64 {
        &self.created
    }

    pub(crate) fn is_removed(&self) -> bool {
        false
    }

    pub(crate) fn body_bytes(&self) -> usize {
        self.body
    }

    pub(crate) fn bytes(&self) -> usize {
        self.body
    }

    pub(crate) fn is_writable(&self) -> bool {
        true
    }

    pub(crate) fn inheritable(&self) -> Result<OwnedFd, SegmentError> {
        Err(SegmentError::Unsupported)
    }

    pub(crate) fn me(&self) -> Result<(u32, u64), SegmentError> {
        Ok((0, 1))
    }

    pub(crate) fn processes(&self) -> Vec<Peer> {
        vec![Peer { slot: 0, incarnation: 1, pid: std::process::id(), here: true }]
    }

    pub(crate) fn is_dead(&self, slot: usize, _: u64) -> bool {
        slot != 0
    }

    pub(crate) fn remove(_: &Place) -> Result<(), SegmentError> {
        Ok(())
    }
}
