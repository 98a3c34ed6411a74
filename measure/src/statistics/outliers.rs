//! Outliers of a series, by measures that an outlier does not move: the median, and the median absolute
//! deviation from it (MAD). F. R. Hampel, Journal of the American Statistical Association 69 (1974) 383.

use super::median;

/// The MAD of a normal distribution is its standard deviation divided by this.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// The limit that the largest |x − median|/(1.4826·MAD) of n normal values exceeds in 1 % of series, from
/// this n on. The MAD of few values is uncertain, so the limit is far above the usual 3.5 for many values. By
/// simulation: 400,000 series for each n of 5 to 12, 15, 20, 30 and 50; between two entries, the largest
/// limit of the n there.
const LIMITS: [(usize, f64); 9] = [
    (5, 18.4),
    (6, 10.8),
    (8, 8.3),
    (10, 7.1),
    (12, 6.6),
    (15, 6.0),
    (20, 5.3),
    (30, 4.8),
    (50, 4.5),
];

/// A smaller spread than this, in logarithms, is rounding.
const LEAST_DEVIATION: f64 = 1e-9;

/// A value that lies farther from the rest than chance explains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlier {
    /// Its index in the series.
    pub index: usize,
    /// Its signed distance from the median.
    pub distance: f64,
    /// Its absolute distance in robust standard deviations.
    pub score: f64,
    /// The limit that the largest score of a series exceeds by chance in 1 % of series.
    pub limit: f64,
}

/// The outliers of a series of logarithms, the farthest first. Empty for fewer than 5 values, for values that
/// are not finite, and if more than half of the values are equal. In the last case the spread is unknown.
#[must_use]
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    let limit = LIMITS.iter().rev().find(|(n, _)| values.len() >= *n);
    let Some((_, limit)) = limit.filter(|_| values.iter().all(|value| value.is_finite())) else {
        return Vec::new();
    };
    let middle = median(values.iter().copied()).unwrap_or_default();
    let distances = values.iter().map(|value| (value - middle).abs());
    let deviation = MAD_TO_DEVIATION * median(distances).unwrap_or_default();
    if deviation < LEAST_DEVIATION {
        return Vec::new();
    }
    let mut found: Vec<Outlier> = values
        .iter()
        .enumerate()
        .map(|(index, value)| Outlier {
            index,
            distance: value - middle,
            score: (value - middle).abs() / deviation,
            limit: *limit,
        })
        .filter(|it| it.score > *limit)
        .collect();
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found
}
