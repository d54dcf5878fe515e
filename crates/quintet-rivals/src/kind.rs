//! What the tables hold: the kinds of entries that the races use.

use std::borrow::Borrow;
use std::hash::Hash;

/// A kind of entry: its key, how a key is asked for, and its value. Entries are numbered; entry
/// `i` has one key, and its values can be recognized by that key.
pub trait Kind: Send + Sync + 'static {
    /// The owned key.
    type Key: Borrow<Self::Query> + Hash + Eq + Ord + Clone + Send + Sync + 'static;
    /// The borrowed form used to look a key up.
    type Query: Hash + Eq + Ord + ?Sized;
    /// The value.
    type Value: Hash + Eq + Clone + Send + Sync + 'static;
    /// Keys in a row, drawn before they are asked for.
    type Keys: Keys<Self::Query>;

    /// The keys of these entries.
    fn keys(indices: impl Iterator<Item = u64>) -> Self::Keys;
    /// The key of entry `index`.
    fn key(index: u64) -> Self::Key {
        Self::ask(index, Self::own)
    }
    /// Calls `f` with the borrowed key of entry `index`, without allocating.
    fn ask<R>(index: u64, f: impl FnOnce(&Self::Query) -> R) -> R;
    /// The owned form of a borrowed key.
    fn own(query: &Self::Query) -> Self::Key;
    /// A value of a key; `version` tells overwritten values apart (its low 8 bits count).
    fn value_of(query: &Self::Query, version: u64) -> Self::Value;
    /// Whether `value` is one of this key.
    fn is_of(query: &Self::Query, value: &Self::Value) -> bool;
    /// A value of entry `index`.
    fn value(index: u64, version: u64) -> Self::Value {
        Self::ask(index, |query| Self::value_of(query, version))
    }
    /// Whether `value` is one of entry `index`.
    fn matches(index: u64, value: &Self::Value) -> bool {
        Self::ask(index, |query| Self::is_of(query, value))
    }
}

/// Keys in a row. To read one must cost as little as a load.
pub trait Keys<Q: ?Sized>: Send + Sync + 'static {
    /// The key at this place.
    fn at(&self, place: usize) -> &Q;
}

impl<K: Send + Sync + 'static> Keys<K> for Vec<K> {
    #[inline(always)]
    fn at(&self, place: usize) -> &K {
        &self[place]
    }
}

/// Spreads entry numbers over 63 bits, one to one: a 64-bit finalizer whose top bit is cleared (no
/// two numbers below 2^40 meet; a test checks the ones the races use).
#[inline(always)]
pub fn mix(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) & (u64::MAX >> 1)
}

/// `u64` to `u64`.
#[derive(Debug)]
pub struct Words;

impl Kind for Words {
    type Key = u64;
    type Query = u64;
    type Value = u64;
    type Keys = Vec<u64>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<u64> {
        indices.map(mix).collect()
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&u64) -> R) -> R {
        f(&mix(index))
    }
    #[inline(always)]
    fn own(query: &u64) -> u64 {
        *query
    }
    #[inline(always)]
    fn value_of(query: &u64, version: u64) -> u64 {
        (query << 8) | (version & 0xff)
    }
    #[inline(always)]
    fn is_of(query: &u64, value: &u64) -> bool {
        value >> 8 == query & (u64::MAX >> 8)
    }
}

/// `u64` to 24 bytes.
#[derive(Debug)]
pub struct Triples;

impl Kind for Triples {
    type Key = u64;
    type Query = u64;
    type Value = [u64; 3];
    type Keys = Vec<u64>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<u64> {
        Words::keys(indices)
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&u64) -> R) -> R {
        Words::ask(index, f)
    }
    #[inline(always)]
    fn own(query: &u64) -> u64 {
        *query
    }
    #[inline(always)]
    fn value_of(query: &u64, version: u64) -> [u64; 3] {
        let word = Words::value_of(query, version);
        [word, version, word]
    }
    #[inline(always)]
    fn is_of(query: &u64, value: &[u64; 3]) -> bool {
        Words::is_of(query, &value[0]) && value[0] == value[2]
    }
}

/// `[u8; 16]` to `u64`: digests and addresses.
#[derive(Debug)]
pub struct Digests;

impl Kind for Digests {
    type Key = [u8; 16];
    type Query = [u8; 16];
    type Value = u64;
    type Keys = Vec<[u8; 16]>;

    fn keys(indices: impl Iterator<Item = u64>) -> Vec<[u8; 16]> {
        indices.map(|index| Self::ask(index, |key| *key)).collect()
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&[u8; 16]) -> R) -> R {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&mix(index).to_le_bytes());
        key[8..].copy_from_slice(&index.to_le_bytes());
        f(&key)
    }
    #[inline(always)]
    fn own(query: &[u8; 16]) -> [u8; 16] {
        *query
    }
    #[inline(always)]
    fn value_of(query: &[u8; 16], version: u64) -> u64 {
        Words::value_of(&first_word(query), version)
    }
    #[inline(always)]
    fn is_of(query: &[u8; 16], value: &u64) -> bool {
        Words::is_of(&first_word(query), value)
    }
}

#[inline(always)]
fn first_word(key: &[u8; 16]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|place| key[place]))
}

/// `String` keys of 21 bytes, looked up by `&str`, to values of 64 bytes.
#[derive(Debug)]
pub struct Texts;

/// The length of a text.
const TEXT: usize = 21;

/// Texts one after the other.
#[derive(Debug)]
pub struct TextRow(String);

impl Keys<str> for TextRow {
    #[inline(always)]
    fn at(&self, place: usize) -> &str {
        &self.0[place * TEXT..(place + 1) * TEXT]
    }
}

impl Kind for Texts {
    type Key = String;
    type Query = str;
    type Value = [u8; 64];
    type Keys = TextRow;

    fn keys(indices: impl Iterator<Item = u64>) -> TextRow {
        let mut row = String::new();
        indices.for_each(|index| Self::ask(index, |text| row.push_str(text)));
        TextRow(row)
    }
    #[inline(always)]
    fn ask<R>(index: u64, f: impl FnOnce(&str) -> R) -> R {
        let mut text = *b"user:0000000000000000";
        let mut rest = mix(index);
        for byte in text[5..].iter_mut().rev() {
            *byte = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
        }
        f(std::str::from_utf8(&text).expect("the digits are ASCII"))
    }
    #[inline(always)]
    fn own(query: &str) -> String {
        query.to_owned()
    }
    #[inline(always)]
    fn value_of(query: &str, version: u64) -> [u8; 64] {
        let mut value = [0; 64];
        value[0] = version as u8;
        value[1..=TEXT].copy_from_slice(query.as_bytes());
        value[64 - TEXT..].copy_from_slice(query.as_bytes());
        value
    }
    #[inline(always)]
    fn is_of(query: &str, value: &[u8; 64]) -> bool {
        &value[1..=TEXT] == query.as_bytes() && &value[64 - TEXT..] == query.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_entries_differ() {
        let mut keys: Vec<u64> = (0..1_000_000).map(mix).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 1_000_000);
    }

    #[test]
    fn a_value_belongs_to_its_entry_alone() {
        for version in [0, 1, 255, 256] {
            assert!(Words::matches(7, &Words::value(7, version)));
            assert!(!Words::matches(8, &Words::value(7, version)));
            assert!(Triples::matches(7, &Triples::value(7, version)));
            assert!(!Triples::matches(8, &Triples::value(7, version)));
            assert!(Digests::matches(7, &Digests::value(7, version)));
            assert!(!Digests::matches(8, &Digests::value(7, version)));
            assert!(Texts::matches(7, &Texts::value(7, version)));
            assert!(!Texts::matches(8, &Texts::value(7, version)));
        }
    }

    #[test]
    fn keys_in_a_row_are_those_of_their_entries() {
        let (words, texts) = (Words::keys(5..9), Texts::keys(5..9));
        for place in 0..4 {
            assert_eq!(*words.at(place), Words::key(5 + place as u64));
            assert_eq!(*texts.at(place), Texts::key(5 + place as u64));
        }
    }

    #[test]
    fn texts_are_asked_for_as_they_are_owned() {
        let key = Texts::key(42);
        assert_eq!(key.len(), 21);
        assert_eq!(key, format!("user:{:016x}", mix(42)));
    }
}
