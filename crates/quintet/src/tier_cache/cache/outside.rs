//! The operations of the cache itself, on a handle of its pool; and the handle that owns its share
//! of the cache.

use super::TierCache;
use super::error::CacheError;
use super::flight::{Begun, DEFAULT_PATIENCE, Shared};
use super::handle::{Handle, Inserted};
use super::pool::Parked;
use super::reader::Reader;
use super::spaces::Namespace;
use crate::sync::Arc;
use std::convert::Infallible;
use std::future::Future;
use std::time::{Duration, Instant};

/// Operations that go to a handle as they are.
macro_rules! operations {
    ($self:ident: $receiver:ty; $($(#[$doc:meta])* $name:ident ($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(
            #[doc = concat!("[`Handle::", stringify!($name), "`].")]
            $(#[$doc])*
            pub fn $name($self: $receiver, $($argument: $type),*) -> Result<$answer, CacheError> {
                $self.with(|handle| handle.$name($($argument),*))
            }
        )+
    };
    ($self:ident: $receiver:ty) => {
        operations! { $self: $receiver;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # use std::time::Duration;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("session", "ada")?;
            /// let minute = Some(Duration::from_secs(60));
            /// assert_eq!(cache.get_and_touch("session", minute)?.as_deref(), Some(&b"ada"[..]));
            /// assert!(cache.ttl("session")?.unwrap() <= minute);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            get_and_touch(key: impl AsRef<[u8]>, ttl: Option<Duration>) -> Option<Vec<u8>>;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # use std::time::Duration;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("session", "ada")?;
            /// assert_eq!(cache.ttl("session")?, Some(None)); // for ever
            /// assert!(cache.touch("session", Some(Duration::from_secs(60)))?);
            /// assert!(cache.ttl("session")?.unwrap().is_some());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            touch(key: impl AsRef<[u8]>, ttl: Option<Duration>) -> bool;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// assert!(!cache.insert("user:1", "Ada")?.replaced);
            /// assert!(cache.insert("user:1", "Ada L.")?.replaced);
            /// assert_eq!(cache.get("user:1")?.as_deref(), Some(&b"Ada L."[..]));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            insert(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Inserted;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # use std::time::Duration;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert_for("session", "ada", Some(Duration::from_secs(60)))?;
            /// assert!(cache.ttl("session")?.unwrap().is_some());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            insert_for(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Option<Duration>) -> Inserted;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// assert!(cache.insert_new("lock", "process 1", None)?);
            /// assert!(!cache.insert_new("lock", "process 2", None)?); // it is there
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            insert_new(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Option<Duration>) -> bool;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert_many(&[("a", "1"), ("b", "2")], None)?;
            /// assert_eq!(cache.get("b")?.as_deref(), Some(&b"2"[..]));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            insert_many(entries: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)], ttl: Option<Duration>) -> Vec<Inserted>;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("user:1", "Ada")?;
            /// assert!(cache.replace("user:1", "Ada L.", None)?);
            /// assert!(!cache.replace("user:2", "Bob", None)?); // it is not there
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            replace(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Option<Duration>) -> bool;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("user:1", "Ada")?;
            /// let (_, version) = cache.get_versioned("user:1")?.unwrap();
            /// assert!(cache.compare_exchange("user:1", version, "Ada L.", None)?);
            /// assert!(!cache.compare_exchange("user:1", version, "Bob", None)?); // changed
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            compare_exchange(key: impl AsRef<[u8]>, version: u64, value: impl AsRef<[u8]>, ttl: Option<Duration>) -> bool;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// assert_eq!(cache.incr("visits", 1, Some(0), None)?, Some(1));
            /// assert_eq!(cache.incr("visits", 5, Some(0), None)?, Some(6));
            /// assert_eq!(cache.get("visits")?.as_deref(), Some(&b"6"[..]));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            incr(key: impl AsRef<[u8]>, by: i64, initial: Option<i64>, ttl: Option<Duration>) -> Option<i64>;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("user:1", "Ada")?;
            /// assert!(cache.remove("user:1")?);
            /// assert!(!cache.remove("user:1")?);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            remove(key: impl AsRef<[u8]>) -> bool;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert_many(&[("a", "1"), ("b", "2")], None)?;
            /// assert_eq!(cache.remove_many(&["a", "c"])?, 1);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            remove_many(keys: &[impl AsRef<[u8]>]) -> usize;
            ///
            /// ```
            /// # use quintet::TierCache;
            /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
            /// cache.insert("job", "print")?;
            /// assert_eq!(cache.pop("job")?.as_deref(), Some(&b"print"[..]));
            /// assert_eq!(cache.pop("job")?, None);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pop(key: impl AsRef<[u8]>) -> Option<Vec<u8>>;
        }
    };
}

/// There is no seat for this process: it can read all the same.
fn is_seatless(error: &CacheError) -> bool {
    matches!(error, CacheError::NoSeat | CacheError::ReadOnly | CacheError::Unjoined(_))
}

/// On a handle of the cache's pool, in the unnamed namespace. A forked child takes seats of its own
/// by itself.
impl TierCache {
    operations!(self: &Self);

    /// [`Handle::get`]. Where no handle is free, this process cannot take part, or the cache may
    /// only be read, it reads without one.
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// assert_eq!(cache.get("user:1")?.as_deref(), Some(&b"Ada"[..]));
    /// assert_eq!(cache.get("user:2")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// [`Handle::get_into`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// let mut value = Vec::new(); // for many lookups
    /// assert!(cache.get_into("user:1", &mut value)?);
    /// assert_eq!(value, b"Ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<bool, CacheError> {
        let key = key.as_ref();
        match self.with(|handle| handle.get_into(key, value)) {
            Err(error) if is_seatless(&error) => self.reader().get_into(key, value),
            found => found,
        }
    }

    /// [`Handle::get_into_slice`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// let mut value = [0; 16];
    /// let len = cache.get_into_slice("user:1", &mut value)?.unwrap();
    /// assert_eq!(&value[..len], b"Ada");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_into_slice(
        &self,
        key: impl AsRef<[u8]>,
        value: &mut [u8],
    ) -> Result<Option<usize>, CacheError> {
        let key = key.as_ref();
        match self.with(|handle| handle.get_into_slice(key, value)) {
            Err(error) if is_seatless(&error) => self.reader().get_into_slice(key, value),
            found => found,
        }
    }

    /// An operation on a handle of the pool, or without one.
    fn with_or<R>(
        &self,
        seated: impl FnOnce(&mut Handle<'_>) -> Result<R, CacheError>,
        seatless: impl FnOnce(Reader<'_>) -> Result<R, CacheError>,
    ) -> Result<R, CacheError> {
        match self.with(seated) {
            Err(error) if is_seatless(&error) => seatless(self.reader()),
            found => found,
        }
    }

    /// [`Handle::peek`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// assert_eq!(cache.peek("user:1")?.as_deref(), Some(&b"Ada"[..])); // is no use of it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        let key = key.as_ref();
        self.with_or(|handle| handle.peek(key), |reader| reader.get(key))
    }

    /// [`Handle::get_versioned`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// let (value, version) = cache.get_versioned("user:1")?.unwrap();
    /// assert_eq!(value, b"Ada");
    /// assert!(cache.compare_exchange("user:1", version, "Ada L.", None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_versioned(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, u64)>, CacheError> {
        let key = key.as_ref();
        self.with_or(|handle| handle.get_versioned(key), |reader| reader.get_versioned(key))
    }

    /// [`Handle::get_many`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert_many(&[("a", "1"), ("b", "2")], None)?;
    /// let found = cache.get_many(&["b", "c"])?;
    /// assert_eq!(found, [Some(b"2".to_vec()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        self.with_or(|handle| handle.get_many(keys), |reader| reader.get_many(keys))
    }

    /// [`Handle::contains_key`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// assert!(cache.contains_key("user:1")? && !cache.contains_key("user:2")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
        let key = key.as_ref();
        self.with_or(|handle| handle.contains_key(key), |reader| reader.contains_key(key))
    }

    /// [`Handle::ttl`], as [`TierCache::get`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # use std::time::Duration;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// cache.insert("user:1", "Ada")?;
    /// cache.insert_for("session", "ada", Some(Duration::from_secs(60)))?;
    /// assert_eq!(cache.ttl("user:1")?, Some(None)); // for ever
    /// assert!(cache.ttl("session")?.unwrap() <= Some(Duration::from_secs(60)));
    /// assert_eq!(cache.ttl("nobody")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Result<Option<Option<Duration>>, CacheError> {
        let key = key.as_ref();
        self.with_or(|handle| handle.ttl(key), |reader| reader.ttl(key))
    }

    /// [`Handle::get_or_compute`]. Where [`TierCache::get`] reads without a handle it computes for
    /// itself, and stores nothing.
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// let page = cache.get_or_compute("page", None, || b"made once".to_vec())?;
    /// let again = cache.get_or_compute("page", None, || unreachable!("it is there"))?;
    /// assert_eq!(page, again);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_compute(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, CacheError> {
        self.get_or_compute_timeout(key, ttl, DEFAULT_PATIENCE, compute)
    }

    /// [`Handle::get_or_compute_timeout`], as [`TierCache::get_or_compute`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # use std::time::Duration;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// let patience = Duration::from_secs(1);
    /// let make = || b"made once".to_vec();
    /// let page = cache.get_or_compute_timeout("page", None, patience, make)?;
    /// assert_eq!(page, b"made once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_compute_timeout(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        patience: Duration,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, CacheError> {
        let compute = || Ok::<_, Infallible>(compute());
        match self.compute_or_alone(key.as_ref(), ttl, patience, compute)? {
            Ok(value) => Ok(value),
            Err(never) => match never {},
        }
    }

    /// [`Handle::get_or_try_compute`], as [`TierCache::get_or_compute`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// let failed = cache.get_or_try_compute("page", None, || Err("no connection"))?;
    /// assert_eq!(failed, Err("no connection"));
    /// let made = cache.get_or_try_compute("page", None, || Ok::<_, ()>(b"made".to_vec()))?;
    /// assert_eq!(made, Ok(b"made".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_try_compute<E>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Vec<u8>, E>, CacheError> {
        self.compute_or_alone(key.as_ref(), ttl, DEFAULT_PATIENCE, compute)
    }

    fn compute_or_alone<E>(
        &self,
        key: &[u8],
        ttl: Option<Duration>,
        patience: Duration,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Result<Vec<u8>, E>, CacheError> {
        let mut compute = Some(compute);
        let done = self.with(|handle| match compute.take() {
            Some(compute) => handle.compute_within(key, ttl, patience, compute),
            None => Err(CacheError::Busy),
        });
        match (done, compute) {
            // No handle was there to begin with.
            (Err(error), Some(compute)) if is_seatless(&error) => {
                Ok(match self.reader().get(key)? {
                    Some(value) => Ok(value),
                    None => compute(),
                })
            }
            (done, _) => done,
        }
    }

    /// [`Handle::begin`].
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// use quintet::cache::Begun;
    ///
    /// if let Begun::Flight(flight) = cache.begin("page")? {
    ///     flight.complete(b"made once", None)?; // by who began
    /// }
    /// assert!(matches!(cache.begin("page")?, Begun::Value(page) if page == b"made once"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin(&self, key: impl AsRef<[u8]>) -> Result<Begun<'_>, CacheError> {
        let key = key.as_ref();
        let start = self.with(|handle| handle.start(key))?;
        Ok(start.begun(Shared::Borrowed(self), key))
    }

    /// [`Handle::get_or_compute`] for tasks: it never blocks its thread, and works with any
    /// runtime. Who has to wait looks again every few milliseconds, and gives up after a minute
    /// with [`CacheError::Busy`]. Dropped, it passes the duty to compute on.
    pub async fn get_or_compute_async<F: Future<Output = Vec<u8>>>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: Option<Duration>,
        compute: impl FnOnce() -> F,
    ) -> Result<Vec<u8>, CacheError> {
        let key = key.as_ref().to_owned();
        let begun = Instant::now();
        loop {
            match self.begin(&key) {
                Ok(Begun::Value(value)) => return Ok(value),
                Ok(Begun::Flight(flight)) => {
                    let value = compute().await;
                    // What cannot be stored is returned all the same.
                    let _ = flight.complete(&value, ttl);
                    return Ok(value);
                }
                Ok(Begun::Busy) if begun.elapsed() < DEFAULT_PATIENCE => self.alarm.nap().await,
                Ok(Begun::Busy) => return Err(CacheError::Busy),
                Err(error) if error.is_no_room() => {
                    return Ok(compute().await);
                }
                Err(error) if is_seatless(&error) => {
                    return Ok(match self.reader().get(&key)? {
                        Some(value) => value,
                        None => compute().await,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A handle without a lifetime, for tasks and threads that are not scoped. After a fork the
    /// child's copy takes a seat of its own by itself.
    ///
    /// ```
    /// # use quintet::TierCache;
    /// # let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
    /// use std::sync::Arc;
    ///
    /// let cache = Arc::new(cache);
    /// let mut handle = cache.owned_handle()?;
    /// std::thread::spawn(move || handle.insert("user:1", "Ada")).join().unwrap()?;
    /// assert!(cache.contains_key("user:1")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(not(any(quintet_loom, quintet_shuttle)))] // a checker's `Arc` cannot be `self`
    pub fn owned_handle(self: &Arc<Self>) -> Result<OwnedHandle, CacheError> {
        let parked = Parked::new(self.handle()?);
        Ok(OwnedHandle {
            parked: Some(parked),
            space: Namespace::default(),
            cache: Arc::clone(self),
        })
    }
}

/// A handle that shares the ownership of its cache; see [`TierCache::owned_handle`].
#[derive(Debug)]
pub struct OwnedHandle {
    parked: Option<Parked>,
    space: Namespace,
    cache: Arc<TierCache>,
}

impl OwnedHandle {
    operations!(self: &mut Self);
    operations! { self: &mut Self;
        peek(key: impl AsRef<[u8]>) -> Option<Vec<u8>>;
        get_into_slice(key: impl AsRef<[u8]>, value: &mut [u8]) -> Option<usize>;
        get_versioned(key: impl AsRef<[u8]>) -> Option<(Vec<u8>, u64)>;
        get_many(keys: &[impl AsRef<[u8]>]) -> Vec<Option<Vec<u8>>>;
        ttl(key: impl AsRef<[u8]>) -> Option<Option<Duration>>;
        get_or_compute(key: impl AsRef<[u8]>, ttl: Option<Duration>, compute: impl FnOnce() -> Vec<u8>) -> Vec<u8>;
        get_or_compute_timeout(key: impl AsRef<[u8]>, ttl: Option<Duration>, patience: Duration, compute: impl FnOnce() -> Vec<u8>) -> Vec<u8>;
    }

    fn with<R>(
        &mut self,
        run: impl FnOnce(&mut Handle<'_>) -> Result<R, CacheError>,
    ) -> Result<R, CacheError> {
        let cache = &*self.cache;
        if self.parked.as_ref().is_some_and(|parked| !parked.is_ours()) {
            self.parked.take().into_iter().for_each(|parked| parked.leave(cache));
        }
        let parked = match &mut self.parked {
            Some(parked) => parked,
            none => {
                let mut handle = cache.handle()?;
                handle.set_namespace(self.space);
                none.insert(Parked::new(handle))
            }
        };
        run(parked.bind(cache))
    }

    /// The cache.
    pub fn cache(&self) -> &Arc<TierCache> {
        &self.cache
    }

    /// [`Handle::set_namespace`].
    pub fn set_namespace(&mut self, space: Namespace) -> Result<(), CacheError> {
        self.space = space;
        self.with(|handle| {
            handle.set_namespace(space);
            Ok(())
        })
    }

    /// [`Handle::get`].
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, CacheError> {
        self.with(|handle| handle.get(key))
    }

    /// [`Handle::get_into`].
    pub fn get_into(
        &mut self,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
    ) -> Result<bool, CacheError> {
        self.with(|handle| handle.get_into(key, value))
    }

    /// [`Handle::contains_key`].
    pub fn contains_key(&mut self, key: impl AsRef<[u8]>) -> Result<bool, CacheError> {
        self.with(|handle| handle.contains_key(key))
    }

    /// [`Handle::begin`]; the flight owns its share of the cache.
    pub fn begin(&mut self, key: impl AsRef<[u8]>) -> Result<Begun<'static>, CacheError> {
        let key = key.as_ref();
        let start = self.with(|handle| handle.start(key))?;
        Ok(start.begun(Shared::Owned(Arc::clone(&self.cache)), key))
    }
}

impl Drop for OwnedHandle {
    fn drop(&mut self) {
        self.parked.take().into_iter().for_each(|parked| parked.leave(&self.cache));
    }
}
