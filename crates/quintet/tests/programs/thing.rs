//! What the tables hold: things that know whether they are alive, and keys and hashers that go on
//! with the program from inside.

use crate::chance::Place;
use crate::context::{Context, fatal};
use equivalent::Equivalent;
use quintet::item_set::Item;
use std::any::Any;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Things that were made and not dropped.
pub(crate) static ALIVE: AtomicI64 = AtomicI64::new(0);

const LIVE: u64 = 0x600d_600d_600d_600d;
const DEAD: u64 = 0xdead_dead_dead_dead;

/// A key, a mark that it is alive and a check over both, on the heap.
pub(crate) struct Thing {
    body: Box<Body>,
    /// Keeps some table alive for as long as the thing lives.
    keeper: Option<Arc<dyn Any + Send + Sync>>,
}

struct Body {
    mark: u64,
    key: u64,
    check: u64,
}

impl Thing {
    pub(crate) fn new(key: u64) -> Self {
        Self::keeping(key, None)
    }

    pub(crate) fn keeping(key: u64, keeper: Option<Arc<dyn Any + Send + Sync>>) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self { body: Box::new(Body { mark: LIVE, key, check: !key ^ LIVE }), keeper }
    }

    /// The key, after a look at whether this is a thing at all.
    pub(crate) fn key(&self) -> u64 {
        let Body { mark, key, check } = *std::hint::black_box(&*self.body);
        if mark != LIVE || check != !key ^ LIVE {
            fatal(&format!(
                "a thing that is not alive: mark {mark:#x}, key {key:#x}, check {check:#x}"
            ));
        }
        key
    }
}

impl Drop for Thing {
    fn drop(&mut self) {
        self.key();
        ALIVE.fetch_sub(1, Ordering::Relaxed);
        self.body.mark = std::hint::black_box(DEAD);
        std::hint::black_box(&self.keeper);
        Context::enter_from(Place::Drop);
    }
}

impl Clone for Thing {
    fn clone(&self) -> Self {
        Context::enter_from(Place::Clone);
        Self::new(self.key())
    }
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Thing({})", self.key())
    }
}

impl PartialEq for Thing {
    fn eq(&self, other: &Self) -> bool {
        Context::enter_from(Place::Eq);
        Context::answer(self.key() == other.key())
    }
}
impl Eq for Thing {}

impl Hash for Thing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Context::enter_from(Place::Hash);
        state.write_u64(Context::twist(self.key()));
    }
}

/// What things are asked for by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Context::enter_from(Place::Hash);
        state.write_u64(Context::twist(self.0));
    }
}

impl Equivalent<Thing> for Key {
    fn equivalent(&self, thing: &Thing) -> bool {
        Context::enter_from(Place::Eq);
        Context::answer(self.0 == thing.key())
    }
}

impl Item for Thing {
    type Key = Key;

    fn matches<Q: ?Sized + Equivalent<Key>>(&self, key: &Q) -> bool {
        Context::enter_from(Place::Matches);
        Context::answer(key.equivalent(&Key(self.key())))
    }

    fn same_key(&self, other: &Self) -> bool {
        Context::enter_from(Place::Matches);
        Context::answer(self.key() == other.key())
    }

    fn hash_key<H: Hasher>(&self, state: &mut H) {
        self.hash(state);
    }
}

/// Takes what is of no interest.
pub(crate) fn ignore<T>(_: T) {}

/// Without size, and aligned beyond every allocation of one byte.
#[repr(align(64))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Nothing;

impl Nothing {
    pub(crate) fn look(&self) {
        let place = std::hint::black_box(std::ptr::from_ref(self)) as usize;
        if place == 0 || place % 64 != 0 {
            fatal(&format!("a reference to {place:#x}, which is not aligned"));
        }
    }
}

/// A hasher that repeats, and collides as much as a program wants it to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) seed: u64,
    pub(crate) mask: u64,
}

pub(crate) struct Mixing(u64, u64);

impl BuildHasher for Mix {
    type Hasher = Mixing;
    fn build_hasher(&self) -> Mixing {
        Mixing(self.seed, self.mask)
    }
}

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        crate::chance::mixed(self.0 & self.1)
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = crate::chance::mixed(self.0 ^ word);
    }
}
