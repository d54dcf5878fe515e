//! How a record lies in a store. Part of the format.
//!
//! | bytes | |
//! |---|---|
//! | 8 | version, at least 1 |
//! | 8 | expiry in milliseconds of the wall clock, 0 for never |
//! | 1 | bit 0: a removal; bit 1: the whole key follows |
//! | 4 and so many, with bit 1 | the key |
//! | the rest | the value |
//!
//! Numbers begin with their greatest byte, so that a server can compare versions.

use super::{Found, Record, expiry_ms, expiry_of};

pub(super) const HEADER: usize = 17;
const REMOVAL: u8 = 1;
const WITH_KEY: u8 = 2;

/// A record as a store has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'l> {
    pub(super) version: u64,
    expiry: u64,
    is_removal: bool,
    key: Option<&'l [u8]>,
    value: &'l [u8],
}

impl<'l> Line<'l> {
    /// `None` if these bytes are none.
    pub(super) fn of(bytes: &'l [u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (expiry, rest) = rest.split_first_chunk()?;
        let (kind, mut value) = rest.split_first()?;
        let mut key = None;
        if kind & WITH_KEY != 0 {
            let (length, rest) = value.split_first_chunk()?;
            let (whole, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
            (key, value) = (Some(whole), rest);
        }
        let (version, expiry) = (u64::from_be_bytes(*version), u64::from_be_bytes(*expiry));
        let is_removal = kind & REMOVAL != 0;
        // Nobody gives out the version 0: these are bytes that were never written.
        (version != 0 && kind & !(REMOVAL | WITH_KEY) == 0).then_some(Self {
            version,
            expiry,
            is_removal,
            key,
            value,
        })
    }

    /// It is this key's: one that carries no key is where only that key can be.
    pub(super) fn is_of(&self, key: &[u8]) -> bool {
        self.key.is_none_or(|whole| whole == key)
    }

    /// What a lookup at this moment finds in it.
    pub(super) fn found(&self, key: &[u8], now: u64) -> Option<Found> {
        let over = self.expiry != 0 && self.expiry <= now;
        if over || self.is_removal || !self.is_of(key) {
            return None;
        }
        let (version, expiry) = (self.version, expiry_of(self.expiry));
        Some(Found { version, expiry, value: self.value.to_vec() })
    }
}

/// Appends a record, with its key if it cannot be told otherwise.
pub(super) fn write(out: &mut Vec<u8>, record: &Record<'_>, with_key: bool) {
    out.extend_from_slice(&record.version.to_be_bytes());
    out.extend_from_slice(&expiry_ms(record.expiry).to_be_bytes());
    let removal = if record.value.is_none() { REMOVAL } else { 0 };
    out.push(removal | if with_key { WITH_KEY } else { 0 });
    if with_key {
        out.extend_from_slice(&(record.key.len() as u32).to_be_bytes());
        out.extend_from_slice(record.key);
    }
    out.extend_from_slice(record.value.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for with_key in [false, true] {
            for value in [None, Some(&b""[..]), Some(&b"value"[..])] {
                let record =
                    Record { key: b"key", version: 1 << 63 | 5, expiry: expiry_of(99), value };
                let mut bytes = Vec::new();
                write(&mut bytes, &record, with_key);
                let line = Line::of(&bytes).unwrap();
                assert_eq!((line.version, line.expiry), (record.version, 99));
                let found = line.found(b"key", 98).map(|found| found.value);
                assert_eq!(found.as_deref(), value);
                assert_eq!(line.found(b"key", 99), None, "over");
                assert_eq!(line.found(b"other", 98).is_some(), !with_key && value.is_some());
                for end in 0..bytes.len() {
                    // Cut bytes are no record, or one with a shorter value: never a panic.
                    let _ = Line::of(&bytes[..end]);
                }
            }
        }
    }
}
