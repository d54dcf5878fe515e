//! Values that say what they are, the same in every language.
//!
//! | first byte | kind | the bytes behind it |
//! |---|---|---|
//! | 1 | bytes | themselves |
//! | 2 | text | UTF-8 |
//! | 3 | whole number | 64 bits, two's complement, little-endian |
//! | 4 | floating point | 64 bits of IEEE 754, little-endian |
//! | 5 | JSON | UTF-8 |
//!
//! Other first bytes are kept for later kinds.

use super::error::CacheError;

/// A value with its kind: a byte for the kind, then the content.
///
/// ```
/// use quintet::cache::{Tagged, TierCache};
///
/// let cache = TierCache::builder().capacity(1 << 20).create_sealed()?;
/// cache.insert("answer", Tagged::Int(42).to_bytes())?;
/// let bytes = cache.get("answer")?.unwrap_or_default();
/// assert_eq!(Tagged::from_bytes(&bytes)?, Tagged::Int(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Tagged {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A JSON document. It is not verified.
    Json(String),
}

impl Tagged {
    /// The value as it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let with = |kind: u8, content: &[u8]| [&[kind], content].concat();
        match self {
            Self::Bytes(bytes) => with(1, bytes),
            Self::Text(text) => with(2, text.as_bytes()),
            Self::Int(number) => with(3, &number.to_le_bytes()),
            Self::Float(number) => with(4, &number.to_le_bytes()),
            Self::Json(text) => with(5, text.as_bytes()),
        }
    }

    /// Reads what [`Tagged::to_bytes`] wrote, in this or another language.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CacheError> {
        let wrong = |why: &str| CacheError::Format(format!("tagged value: {why}"));
        let (kind, content) = bytes.split_first().ok_or_else(|| wrong("no kind"))?;
        let text = || String::from_utf8(content.to_vec()).map_err(|_| wrong("text is no UTF-8"));
        let number = || content.try_into().map_err(|_| wrong("a number has 8 bytes"));
        Ok(match kind {
            1 => Self::Bytes(content.to_vec()),
            2 => Self::Text(text()?),
            3 => Self::Int(i64::from_le_bytes(number()?)),
            4 => Self::Float(f64::from_le_bytes(number()?)),
            5 => Self::Json(text()?),
            _ => return Err(wrong("unknown kind")),
        })
    }
}

#[cfg(all(test, not(any(quintet_loom, quintet_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn tagged_values_are_part_of_the_format() {
        let all = [
            (Tagged::Bytes(vec![0, 255]), &[1, 0, 255][..]),
            (Tagged::Text("é".into()), &[2, 0xc3, 0xa9]),
            (Tagged::Int(-2), &[3, 254, 255, 255, 255, 255, 255, 255, 255]),
            (Tagged::Float(1.5), &[4, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
            (Tagged::Json("[]".into()), &[5, b'[', b']']),
        ];
        for (value, bytes) in all {
            assert_eq!(value.to_bytes(), bytes);
            assert_eq!(Tagged::from_bytes(bytes), Ok(value));
        }
        for wrong in [&[][..], &[0], &[6, 1], &[2, 255], &[5, 255], &[3, 1], &[4; 10]] {
            assert!(matches!(Tagged::from_bytes(wrong), Err(CacheError::Format(_))), "{wrong:?}");
        }
    }
}
