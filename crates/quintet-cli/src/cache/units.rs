//! Sizes, times and modes as people write them.

use quintet::cache::Policy;
use std::time::Duration;

const SIZES: [(&str, u64); 12] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
    ("B", 1),
];

const TIMES: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A whole number with one of these units behind it; without one it counts in `plain`.
fn scaled(text: &str, units: &[(&str, u64)], plain: u64, example: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let unit = units.iter().find(|(unit, _)| lower.ends_with(&unit.to_ascii_lowercase()));
    let (digits, factor) = match unit {
        Some((unit, factor)) => (&text[..text.len() - unit.len()], *factor),
        None => (text, plain),
    };
    let number: u64 =
        digits.trim_end().parse().map_err(|_| format!("give a whole number, like {example}"))?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

/// A size such as `64MiB`, `1G` or `65536`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    scaled(text, &SIZES, 1, "64MiB or 65536")
}

/// A time such as `10s`, `500ms` or `2h`; a plain number is seconds.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    match scaled(text, &TIMES, 1_000, "10s, 500ms or 2h")? {
        0 => Err("nothing lives for no time".to_owned()),
        milliseconds => Ok(Duration::from_millis(milliseconds)),
    }
}

/// A policy by its name.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    let found = Policy::ALL.into_iter().find(|policy| policy.name() == text);
    found.ok_or_else(|| format!("the policies are {}", Policy::ALL.map(Policy::name).join(", ")))
}

/// Permission bits in octal, such as `0600`; the owner must be able to read and write.
pub(crate) fn mode(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text.trim_start_matches("0o"), 8);
    match bits {
        Ok(bits) if bits <= 0o777 && bits & 0o600 == 0o600 => Ok(bits),
        Ok(_) => Err("give 0600, 0660 or 0666: the owner reads and writes".to_owned()),
        Err(_) => Err("give octal digits, like 0600".to_owned()),
    }
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let step = ((bytes.ilog2() / 10) as usize).min(units.len());
    let number = bytes as f64 / (1u64 << (10 * step)) as f64;
    format!("{number:.1} {}", units[step - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_modes_are_read_as_written() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("64mib"), Ok(64 << 20));
        assert_eq!(bytes("1 GB"), Ok(1_000_000_000));
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(bytes("12B"), Ok(12));
        assert!(bytes("much").is_err() && bytes("-1").is_err() && bytes("99999999TiB").is_err());
        assert_eq!(lifetime("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(lifetime("10"), Ok(Duration::from_secs(10)));
        assert_eq!(lifetime("2h"), Ok(Duration::from_secs(7200)));
        assert!(lifetime("0s").is_err() && lifetime("soon").is_err());
        assert_eq!(mode("0660"), Ok(0o660));
        assert!(mode("0400").is_err() && mode("9").is_err() && mode("7777").is_err());
    }

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(512), "512 B");
        assert_eq!(size(64 << 20), "64.0 MiB");
        assert_eq!(size(3 << 40), "3.0 TiB");
    }
}
