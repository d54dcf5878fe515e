//! Namespaces: a number with a generation, so that a flush is one store.
//!
//! A namespace is claimed by storing the hash of its name into a free place of a table, by exchange: no crash leaves half a name
//! that anybody would wait for. The name itself lies beside it for people to read.

use super::TierCache;
use super::error::CacheError;
use super::handle::{Handle, Reader};
use super::hash::hash;
use super::layout::{SPACE_WORDS, SPACES};
use super::read::words_of;
use super::view::{Global, View};
use crate::sync::{AtomicU64, Ordering};
use crate::tier_cache::step::{Point, add, exchange, store};

/// A part of a cache with keys of its own, flushed as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Namespace(pub(super) u32);

const NAME_WORDS: usize = SPACE_WORDS - 2;

impl<'a> View<'a> {
    fn space_words(&self, space: usize) -> &'a [AtomicU64] {
        self.spaces.get(space * SPACE_WORDS..(space + 1) * SPACE_WORDS).unwrap_or(&[])
    }

    fn find_space(&self, name: &str) -> Option<u32> {
        let wanted = self.space_id(name);
        let is = |space: &usize| {
            // ORDERING: Acquire; partner: the exchange that claimed it.
            self.space_words(*space).first().is_some_and(|id| id.load(Ordering::Acquire) == wanted)
        };
        if name.is_empty() { Some(0) } else { (1..SPACES).find(is).map(|space| space as u32) }
    }

    fn space_id(&self, name: &str) -> u64 {
        hash(self.seed, u32::MAX, name.as_bytes()).max(1)
    }

    fn claim_space(&self, name: &str) -> Option<u32> {
        for space in 1..SPACES {
            let words = self.space_words(space);
            // ORDERING: Acquire, as above.
            if words[0].load(Ordering::Acquire) == 0
                && exchange(Point::Space, &words[0], 0, self.space_id(name))
            {
                for (place, word) in words[2..].iter().zip(words_of(name.as_bytes())) {
                    store(Point::Space, place, word);
                }
                return Some(space as u32);
            }
            if let Some(found) = self.find_space(name) {
                return Some(found);
            }
        }
        None
    }

    fn space_name(&self, space: usize) -> Option<String> {
        let words = self.space_words(space);
        // ORDERING: Acquire, as above.
        let load = |word: &AtomicU64| word.load(Ordering::Acquire);
        if space != 0 && words.first().map(load)? == 0 {
            return None;
        }
        let bytes: Vec<u8> =
            words.get(2..)?.iter().flat_map(|word| load(word).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl TierCache {
    /// The namespace of this name, made if there is none. The empty name is the namespace every handle begins in. Names longer than 48 bytes are
    /// told apart but shown cut off.
    pub fn namespace(&self, name: &str) -> Result<Namespace, CacheError> {
        let view = self.view();
        if let Some(space) = view.find_space(name) {
            return Ok(Namespace(space));
        }
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        view.claim_space(name).map(Namespace).ok_or(CacheError::TooManyNamespaces)
    }

    /// All namespaces with their names.
    pub fn namespaces(&self) -> Vec<(String, Namespace)> {
        let view = self.view();
        let named = |space: usize| Some((view.space_name(space)?, Namespace(space as u32)));
        (0..SPACES).filter_map(named).collect()
    }

    /// Removes every entry of a namespace, by one store. Their blocks are reclaimed as they are needed.
    pub fn flush(&self, space: Namespace) -> Result<(), CacheError> {
        if !self.segment.is_writable() {
            return Err(CacheError::ReadOnly);
        }
        let view = self.view();
        let Some(generation) = view.space_words(space.0 as usize).get(1) else { return Ok(()) };
        // Before and after: a sweep in between has not seen them all.
        store(Point::Space, view.global(Global::Flushed), 1);
        add(Point::Space, generation, 1);
        store(Point::Space, view.global(Global::Flushed), 1);
        Ok(())
    }

    /// Removes every entry of every namespace.
    pub fn clear(&self) -> Result<(), CacheError> {
        (0..SPACES as u32).try_for_each(|space| self.flush(Namespace(space)))
    }
}

impl Handle<'_> {
    /// The namespace that the operations of this handle work in.
    pub fn set_namespace(&mut self, space: Namespace) {
        self.space = space.0;
    }
}

impl Reader<'_> {
    /// The namespace that the operations of this reader work in.
    pub fn set_namespace(&mut self, space: Namespace) {
        self.space = space.0;
    }
}

const _: () = assert!(NAME_WORDS * 8 == 48);
