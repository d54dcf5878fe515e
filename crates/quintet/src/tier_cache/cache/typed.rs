//! Typed fronts: text, and whatever serde can write, in a format of the user's choice.

use super::error::CacheError;
use super::handle::Handle;

impl Handle<'_> {
    /// The value of a key as text.
    pub fn get_str(&mut self, key: impl AsRef<[u8]>) -> Result<Option<String>, CacheError> {
        let Some(value) = self.get(key)? else { return Ok(None) };
        String::from_utf8(value).map(Some).map_err(|error| CacheError::Format(error.to_string()))
    }
}

#[cfg(feature = "serde")]
pub use with_serde::{Format, TypedHandle};

#[cfg(feature = "serde")]
mod with_serde {
    use super::{CacheError, Handle};
    use crate::tier_cache::cache::Inserted;
    use serde::{Serialize, de::DeserializeOwned};
    use std::marker::PhantomData;
    use std::time::Duration;

    /// How values become bytes.
    pub trait Format {
        /// Writes a value.
        fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, String>;
        /// Reads a value.
        fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String>;
    }

    /// A handle whose values have a type and whose keys are text, bytes, or anything that shows
    /// them.
    ///
    /// ```
    /// use quintet::cache::{CacheError, Format, TierCache};
    ///
    /// struct Json;
    /// impl Format for Json {
    ///     fn write<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, String> {
    ///         serde_json::to_vec(value).map_err(|error| error.to_string())
    ///     }
    ///     fn read<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    ///         serde_json::from_slice(bytes).map_err(|error| error.to_string())
    ///     }
    /// }
    ///
    /// let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// let mut scores = cache.handle()?.typed::<Vec<u32>, Json>();
    /// scores.insert("ada", &vec![1, 2, 3], None)?;
    /// assert_eq!(scores.get("ada")?, Some(vec![1, 2, 3]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    pub struct TypedHandle<'c, V, F> {
        handle: Handle<'c>,
        types: PhantomData<fn(F) -> V>,
    }

    impl<'c> Handle<'c> {
        /// A front for values of a type, in a format.
        pub fn typed<V, F>(self) -> TypedHandle<'c, V, F> {
            TypedHandle { handle: self, types: PhantomData }
        }
    }

    impl<'c, V: Serialize + DeserializeOwned, F: Format> TypedHandle<'c, V, F> {
        /// The handle below.
        pub fn handle(&mut self) -> &mut Handle<'c> {
            &mut self.handle
        }

        /// The value of a key.
        pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<V>, CacheError> {
            let Some(bytes) = self.handle.get(key)? else { return Ok(None) };
            F::read(&bytes).map(Some).map_err(CacheError::Format)
        }

        /// Stores a value.
        pub fn insert(
            &mut self,
            key: impl AsRef<[u8]>,
            value: &V,
            ttl: Option<Duration>,
        ) -> Result<Inserted, CacheError> {
            let bytes = F::write(value).map_err(CacheError::Format)?;
            self.handle.insert_for(key, bytes, ttl)
        }

        /// Removes a key. False if it was absent.
        pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
            self.handle.remove(key)
        }

        /// The value of a key; if it is absent, what `compute` returns.
        pub fn get_or_compute(
            &mut self,
            key: impl AsRef<[u8]>,
            ttl: Option<Duration>,
            compute: impl FnOnce() -> V,
        ) -> Result<V, CacheError> {
            let compute = || F::write(&compute()).map_err(CacheError::Format);
            let bytes = self.handle.get_or_try_compute(key, ttl, compute)??;
            F::read(&bytes).map_err(CacheError::Format)
        }
    }
}
