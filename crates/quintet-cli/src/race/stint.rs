//! How long a round is: by the clock in a race, by operations where instructions are counted.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The length of a round. Fixed work, such as a growth, runs at least once and is repeated until
/// the stint is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stint {
    /// So long, after a warm-up.
    Time(Duration),
    /// So many operations of each thread, and no warm-up: two such rounds differ by their
    /// operations alone.
    Operations(u64),
}

impl Stint {
    /// Whether so many operations in so much time are enough.
    #[inline(always)]
    pub(crate) fn is_over(self, operations: u64, busy: Duration) -> bool {
        match self {
            Stint::Time(length) => busy >= length,
            Stint::Operations(count) => operations >= count,
        }
    }

    /// The length of a slice of the warm-up; `None` without one.
    pub(crate) fn slice(self) -> Option<Duration> {
        match self {
            Stint::Time(length) => Some(length / 10),
            Stint::Operations(_) => None,
        }
    }

    /// A tenth of it.
    pub(crate) fn tenth(self) -> Stint {
        match self {
            Stint::Time(length) => Stint::Time(length / 10),
            Stint::Operations(count) => Stint::Operations(count / 10),
        }
    }
}

/// As processes tell each other: `150000us`, `4096ops`.
impl fmt::Display for Stint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stint::Time(length) => write!(f, "{}us", length.as_micros()),
            Stint::Operations(count) => write!(f, "{count}ops"),
        }
    }
}

impl FromStr for Stint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<u64>().map_err(|error| error.to_string());
        match (text.strip_suffix("us"), text.strip_suffix("ops")) {
            (Some(digits), _) => number(digits).map(Duration::from_micros).map(Stint::Time),
            (_, Some(digits)) => number(digits).map(Stint::Operations),
            _ => Err(format!("{text:?} is no length of a round")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stint_is_understood_as_it_is_told() {
        for stint in [Stint::Time(Duration::from_micros(150_000)), Stint::Operations(4096)] {
            assert_eq!(stint.to_string().parse(), Ok(stint));
        }
        for text in ["", "12", "us", "xops", "1s"] {
            assert!(text.parse::<Stint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_stint_is_over_by_its_own_measure() {
        let (short, long) = (Duration::from_millis(1), Duration::from_millis(3));
        assert!(Stint::Time(short).is_over(0, long) && !Stint::Time(long).is_over(9, short));
        assert!(Stint::Operations(5).is_over(5, short) && !Stint::Operations(5).is_over(4, long));
    }
}
