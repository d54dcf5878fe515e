//! Items that need no implementation of their own: keys that are all there is, and pairs of a key
//! and something.

use super::item::Keyed;
use std::sync::Arc;

/// Types that are their own key, and pairs that begin with one. Listed: a type of one's own may say
/// otherwise.
macro_rules! keys {
    ($($key:ty),* $(,)?) => {$(
        impl Keyed for $key {
            type Key = Self;
            #[inline(always)]
            fn key(&self) -> &Self {
                self
            }
        }

        impl<V> Keyed for ($key, V) {
            type Key = $key;
            #[inline(always)]
            fn key(&self) -> &$key {
                &self.0
            }
        }
    )*};
}

keys! {
    u8, u16, u32, u64, u128, usize,
    i8, i16, i32, i64, i128, isize,
    char, bool,
    String, Box<str>, Arc<str>, &'static str,
    Vec<u8>, Box<[u8]>, Arc<[u8]>,
}
