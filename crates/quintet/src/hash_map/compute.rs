//! What is there, or what one maker makes.

use super::flight::{Begun, Flights, WaitError, Way};
use super::inside::expect;
use super::lend::{Ref, Show};
use super::pair::{Given, Key, Value};
use super::{Handle, HashMap};
use std::convert::Infallible;
use std::future::Future;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

impl<K: Key, V: Value, S> HashMap<K, V, S> {
    fn flights(&self) -> &Flights<K> {
        self.flights.get_or_make(Flights::new)
    }
}

/// The forms for threads, written into an `impl` of each way that is outside between operations.
macro_rules! compute {
    ($way:ty, |$own:ident| $map:expr) => {
        /// # Making once
        impl<K: Key + Clone, V: Value, S: BuildHasher> $way {
            /// The value of `key`; if there is none, the one that `make` returns. Of all callers
            /// with this key one makes, and the others wait for its value.
            ///
            /// `make` runs with no lock held and may use the map. Until it has returned, others see
            /// nothing of it: `get` finds nothing, a `remove` does not stop it. If somebody inserts
            /// a value of this key meanwhile, that one stays and is returned to all, and the one
            /// just made is dropped. If `make` panics, the next caller makes with its own.
            ///
            /// ```
            /// use std::sync::atomic::{AtomicU32, Ordering};
            /// let (pages, made) = (quintet::HashMap::<&str, String>::new(), AtomicU32::new(0));
            /// std::thread::scope(|scope| {
            ///     for _ in 0..4 {
            ///         scope.spawn(|| {
            ///             let page = pages.get_or_compute("home", || {
            ///                 made.fetch_add(1, Ordering::Relaxed);
            ///                 "welcome".to_string()
            ///             });
            ///             assert_eq!(*page, "welcome");
            ///         });
            ///     }
            /// });
            /// assert_eq!(made.into_inner(), 1);
            /// ```
            ///
            /// # Panics
            /// If this thread would wait for itself: `make` asks for its own key, or for one whose
            /// maker waits for this one, directly or by way of others. Among tasks such a circle is
            /// not seen: there a timeout ends it.
            #[doc(alias = "get_with")]
            #[doc(alias = "try_entry")]
            pub fn get_or_compute(&self, key: K, make: impl FnOnce() -> V) -> Ref<'_, K, V> {
                match self.get_or_try_compute(key, || Ok::<_, Infallible>(make())) {
                    Ok(value) => value,
                    Err(never) => match never {},
                }
            }

            /// [`get_or_compute`](Self::get_or_compute) with a `make` that may fail: its error goes
            /// to its caller, and the next who waits makes with its own.
            ///
            /// # Panics
            /// As [`get_or_compute`](Self::get_or_compute).
            pub fn get_or_try_compute<E>(
                &self,
                key: K,
                make: impl FnOnce() -> Result<V, E>,
            ) -> Result<Ref<'_, K, V>, E> {
                self.compute_until(key, None, make)
                    .unwrap_or_else(|error| panic!("HashMap: {error}"))
            }

            /// [`get_or_compute`](Self::get_or_compute) that waits for another's value for at most
            /// `patience`. Where this thread would wait for itself it says so at once.
            pub fn get_or_compute_timeout(
                &self,
                key: K,
                patience: Duration,
                make: impl FnOnce() -> V,
            ) -> Result<Ref<'_, K, V>, WaitError> {
                // One that lies beyond all times is none.
                let deadline = Instant::now().checked_add(patience);
                match self.compute_until(key, deadline, || Ok::<_, Infallible>(make()))? {
                    Ok(value) => Ok(value),
                    Err(never) => match never {},
                }
            }

            fn compute_until<E>(
                &self,
                key: K,
                deadline: Option<Instant>,
                make: impl FnOnce() -> Result<V, E>,
            ) -> Result<Result<Ref<'_, K, V>, E>, WaitError> {
                let $own = self;
                let (pairs, flights) = (&$map.pairs, || $map.flights());
                loop {
                    if let Some(found) = self.get(&key) {
                        return Ok(Ok(found));
                    }
                    match flights().begin(pairs.hash_of(&key), &key, false) {
                        Begun::Theirs(way) => way.wait(deadline)?,
                        // Ends behind the store, and if `make` fails or unwinds (`flight` F4).
                        Begun::Mine(_landing) => {
                            // `flight` F3
                            if let Some(found) = self.get(&key) {
                                return Ok(Ok(found));
                            }
                            return Ok(make().map(|value| {
                                let name = Given::new(key);
                                let stored =
                                    self.inner().lend(|pin| pin.get_or_make(name, |_| value));
                                expect(stored).show()
                            }));
                        }
                    }
                }
            }
        }
    };
}

compute!(HashMap<K, V, S>, |own| own);
compute!(Handle<'_, K, V, S>, |own| own.map());

/// # Making once, in tasks
impl<K: Key + Clone, V: Value, S: BuildHasher> HashMap<K, V, S> {
    /// [`get_or_compute`](Self::get_or_compute) for tasks: `make` is awaited if nobody else makes,
    /// and dropped if it is not needed. Of all callers, threads and tasks, one makes.
    ///
    /// A task that is dropped while it makes hands over to the next. What is returned holds a read
    /// section of its thread: use it, or clone it, before the next `.await`.
    ///
    /// Tasks that wait for each other in a circle wait for ever, as no thread does: where makers
    /// ask for other keys, put a timeout of the runtime around this.
    pub async fn get_or_compute_async(
        &self,
        key: K,
        make: impl Future<Output = V>,
    ) -> Ref<'_, K, V> {
        match self.get_or_try_compute_async(key, async { Ok::<_, Infallible>(make.await) }).await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// [`get_or_compute_async`](Self::get_or_compute_async) with a `make` that may fail: its error
    /// goes to its caller, and the next who waits makes with its own.
    pub async fn get_or_try_compute_async<E>(
        &self,
        key: K,
        make: impl Future<Output = Result<V, E>>,
    ) -> Result<Ref<'_, K, V>, E> {
        loop {
            if let Some(found) = self.get(&key) {
                return Ok(found);
            }
            let begun = self.flights().begin(self.pairs.hash_of(&key), &key, true);
            let landing = match begun {
                Begun::Theirs(way) => {
                    Way::landed(way).await;
                    continue;
                }
                Begun::Mine(landing) => landing,
            };
            // `flight` F3
            if let Some(found) = self.get(&key) {
                return Ok(found);
            }
            let value = make.await?;
            let stored = self.inner().lend(|pin| pin.get_or_make(Given::new(key), |_| value));
            drop(landing);
            return Ok(expect(stored).show());
        }
    }
}
