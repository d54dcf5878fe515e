//! One value on cache lines of its own.

use std::ops::{Deref, DerefMut};

/// Keeps `T` away from its neighbours.
///
/// 128 bytes: x86 fetches lines in adjacent pairs, and several 64-bit ARM chips have lines of 128.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::CachePadded;

    #[test]
    fn neighbours_do_not_share_a_line() {
        let two = [CachePadded::new(1u8), CachePadded::new(2u8)];
        let gap = (&raw const two[1]).addr() - (&raw const two[0]).addr();
        assert_eq!(gap, 128);
        assert_eq!(*two[0] + *two[1], 3);
    }
}
