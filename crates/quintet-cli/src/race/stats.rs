//! Medians and paired ratios.

/// The `percent`-th percentile by nearest rank; 0 for nothing.
pub(crate) fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(rank).copied().unwrap_or(0.0)
}

/// The median, the mean of the middle two for an even number.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// How many times better one side was than the other, round by round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    /// Median of the rounds' ratios.
    pub(crate) median: f64,
    /// Their 10th percentile.
    pub(crate) low: f64,
    /// Their 90th percentile.
    pub(crate) high: f64,
}

/// Pairs the rounds of two sides; `more_is_better` tells which way round to divide.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64], more_is_better: bool) -> Option<Ratio> {
    let divide = |(a, b): (&f64, &f64)| if more_is_better { a / b } else { b / a };
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(divide).filter(|r| r.is_finite()).collect();
    (!ratios.is_empty()).then(|| Ratio {
        median: median(&ratios),
        low: percentile(&ratios, 10.0),
        high: percentile(&ratios, 90.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        let ten: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!(percentile(&ten, 10.0), 1.0);
        assert_eq!(percentile(&ten, 90.0), 9.0);
    }

    #[test]
    fn a_ratio_pairs_rounds_so_that_shared_weather_cancels() {
        // Both sides slow down together in the second round: the ratio does not move.
        let found = ratio(&[4.0, 2.0, 4.0], &[2.0, 1.0, 2.0], true).unwrap();
        assert_eq!(found, Ratio { median: 2.0, low: 2.0, high: 2.0 });
    }

    #[test]
    fn where_less_is_better_the_ratio_is_inverted() {
        let found = ratio(&[10.0, 10.0], &[30.0, 30.0], false).unwrap();
        assert_eq!(found.median, 3.0);
        assert!(ratio(&[], &[], true).is_none());
    }
}
