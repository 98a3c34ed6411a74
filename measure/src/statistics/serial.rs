//! Trials that are not independent: each resembles the previous one.
//!
//! Student's interval assumes independent trials. If the node's state carries over from trial to trial (heat,
//! a neighbour, a cache), the spread between trials is too small. The interval is then too narrow.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{IntervalEstimate, logarithms, of_spread, t_quantile};

/// Probability that [`correlation`] reports a correlation between independent trials. This is a judgement: a
/// run has few trials, and with 5 % a correlation of 0.6 would be missed in one of four runs of ten blocks.
pub const LEVEL: f64 = 0.1;
/// The largest correlation for which an interval is widened. Above it, the trials of a run contain no
/// information about their mean.
const MOST: f64 = 0.95;
/// The minimum number of trials for a test, in addition to one per series.
const FEWEST: usize = 4;

/// Correlation of each trial with the previous one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    /// Coefficient φ of a first-order autoregression, from 0 to 0.95.
    pub coefficient: f64,
    /// Probability of such a von Neumann ratio, or of a smaller one, between independent trials.
    pub p: f64,
}

/// Tests whether consecutive trials resemble one another: J. von Neumann's ratio of the mean square
/// successive difference to the variance (Annals of Mathematical Statistics 12 (1941), 367–395), one-sided at
/// [`LEVEL`].
///
/// Each block contains its trials in the order of measurement, each with the index of its series and its
/// figure (> 0). The test uses the logarithms minus the mean of their series. The ratio's expectation
/// accounts for these means. Its variance is the variance for independent normal values, 4·(N − 2)/(N² − 1).
///
/// The coefficient is the mean of two lag-one correlations: of all neighbours, and of the neighbours in
/// different blocks. An effect that is common to a block's trials, but not to the next block, is in the first
/// correlation only. Such an effect does not make a series' own trials similar. Both are corrected for their
/// bias, −(m + 3φ)/N with m means (F. H. C. Marriott and J. A. Pope, Biometrika 41 (1954), 390–402). For the
/// second, N is the number of blocks, with one mean.
///
/// Figures that have no logarithm are left out. `None` if the trials are too few or equal, or if independence is not
/// rejected.
#[must_use]
pub fn correlation(blocks: &[Vec<(usize, f64)>]) -> Option<Correlation> {
    let has_logarithm = |(_, figure): &&(usize, f64)| *figure > 0.0 && figure.is_finite();
    // Blocks without a trial have no neighbours.
    let blocks: Vec<Vec<(usize, f64)>> = blocks
        .iter()
        .map(|block| block.iter().filter(has_logarithm).copied().collect())
        .filter(|block: &Vec<_>| !block.is_empty())
        .collect();
    let trials = blocks.concat();
    let values = logarithms(trials.iter().map(|(_, figure)| *figure))?;
    let count = trials.iter().map(|(series, _)| series + 1).max()?;
    let (mut sums, mut sizes) = (vec![0.0; count], vec![0.0_f64; count]);
    for ((series, _), value) in trials.iter().zip(&values) {
        sums[*series] += value;
        sizes[*series] += 1.0;
    }
    let means = sizes.iter().filter(|size| **size > 0.0).count();
    if trials.len() < means + FEWEST || blocks.len() < 2 {
        return None;
    }
    let rests: Vec<f64> = trials
        .iter()
        .zip(&values)
        .map(|((series, _), value)| value - sums[*series] / sizes[*series])
        .collect();
    let squares: f64 = rests.iter().map(|rest| rest * rest).sum();
    let pairs = || rests.windows(2).map(|pair| (pair[0], pair[1]));
    let ratio = pairs().map(|(a, b)| (b - a).powi(2)).sum::<f64>() / squares;
    let n = trials.len() as f64;
    let of_differences: f64 = trials
        .windows(2)
        .map(|pair| {
            let (a, b) = (pair[0].0, pair[1].0);
            // Within one series the common mean cancels.
            if a == b {
                2.0
            } else {
                2.0 - sizes[a].recip() - sizes[b].recip()
            }
        })
        .sum();
    let expected = of_differences / (n - means as f64);
    let deviation = (4.0 * (n - 2.0) / (n * n - 1.0)).sqrt();
    let p = Normal::standard().cdf((ratio - expected) / deviation);
    if p.is_nan() || p >= LEVEL {
        return None;
    }
    let of_all = pairs().map(|(a, b)| a * b).sum::<f64>() / squares;
    let mut end = 0;
    let mut of_blocks = 0.0;
    for block in &blocks[..blocks.len() - 1] {
        end += block.len();
        of_blocks += rests[end - 1] * rests[end];
    }
    let count = blocks.len() as f64;
    let of_blocks = of_blocks / (count - 1.0) / (squares / n);
    let corrected = of_all + (means as f64 + 3.0 * of_all) / n;
    let corrected_of_blocks = of_blocks + (1.0 + 3.0 * of_blocks) / count;
    Some(Correlation {
        coefficient: f64::midpoint(corrected, corrected_of_blocks).clamp(0.0, MOST),
        p,
    })
}

/// [`super::geometric_mean`] of trials with the given correlation: each trial has its place in the order of
/// measurement and its figure.
///
/// Under a first-order autoregression, n trials at places pᵢ are equivalent to n/V independent trials, with
/// V = Σᵢⱼ φ^|pᵢ − pⱼ|/n. Their squared deviations from their own mean sum up to σ²·(n − V), not to σ²·(n − 1).
/// The interval is therefore √(V·(n − 1)/(n − V)) times as wide. Its t has n/V − 1 degrees of freedom, but at
/// least half of n − 1. By simulation, fewer degrees of freedom double the intervals' width, but only one
/// more interval in a hundred then contains the true value. `None` with fewer than two trials.
#[must_use]
pub fn geometric_mean(
    trials: &[(usize, f64)],
    coefficient: f64,
    confidence: f64,
) -> Option<IntervalEstimate> {
    if trials.len() < 2 {
        return None;
    }
    let values = logarithms(trials.iter().map(|(_, figure)| *figure))?;
    let n = trials.len() as f64;
    let places = || trials.iter().map(|(place, _)| *place as f64);
    let together: f64 = places()
        .flat_map(|a| places().map(move |b| (a - b).abs()))
        .map(|apart| coefficient.powf(apart))
        .sum();
    // The effective number of trials is at least n / (0.9·n), slightly more than one.
    let worth = (together / n).clamp(1.0, 0.9 * n);
    let freedom = (n / worth - 1.0).max((n - 1.0) / 2.0);
    let wider = (worth * (n - 1.0) / (n - worth)).sqrt();
    of_spread(
        &values,
        wider * t_quantile(f64::midpoint(1.0, confidence), freedom)?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of two alternating series with these logarithms.
    fn in_turn(logarithms: &[f64]) -> Vec<Vec<(usize, f64)>> {
        let of_block = |pair: &[f64]| pair.iter().map(|ln| ln.exp()).enumerate().collect();
        logarithms.chunks(2).map(of_block).collect()
    }

    #[test]
    fn common_effects_of_a_block_do_not_correlate_a_series_own_trials() {
        // The two trials of a block are alike, but the blocks differ.
        let shared: Vec<f64> = [3.0, -1.0, 4.0, -1.0, -5.0, 2.0, -4.0, 1.0, -2.0, 3.0]
            .iter()
            .flat_map(|block| [0.01 * block, 0.01 * block + 0.001])
            .collect();
        let of_all = correlation(&in_turn(&shared));
        assert!(of_all.is_none_or(|it| it.coefficient < 0.2), "{of_all:?}");
    }

    #[test]
    fn a_slow_wave_is_correlated_and_a_quick_one_is_not() {
        let wave = |step: f64| -> Vec<f64> {
            (0..20)
                .map(|place| 0.03 * (step * f64::from(place)).sin())
                .collect()
        };
        let slow = correlation(&in_turn(&wave(0.5))).unwrap();
        assert!(slow.p < 1e-3 && slow.coefficient > 0.8, "{slow:?}");
        assert_eq!(correlation(&in_turn(&wave(2.5))), None);
    }

    #[test]
    fn few_or_equal_trials_show_nothing() {
        assert_eq!(correlation(&in_turn(&[0.0, 0.1, 0.2, 0.3, 0.4])), None);
        assert_eq!(correlation(&in_turn(&[0.5; 20])), None);
        assert_eq!(correlation(&[]), None);
    }

    #[test]
    fn blocks_without_a_trial_change_nothing() {
        let slow: Vec<f64> = (0..20)
            .map(|place| 0.03 * (0.5 * f64::from(place)).sin())
            .collect();
        let blocks = in_turn(&slow);
        let expected = correlation(&blocks);
        assert!(expected.is_some());
        for empty in [0, 5, blocks.len()] {
            let mut with_empty = blocks.clone();
            with_empty.insert(empty, Vec::new());
            assert_eq!(correlation(&with_empty), expected, "{empty}");
        }
        assert_eq!(correlation(&[Vec::new(), Vec::new()]), None);
    }

    #[test]
    fn a_figure_without_a_logarithm_does_not_hide_the_correlation_of_the_others() {
        let slow: Vec<f64> = (0..20)
            .map(|place| 0.03 * (0.5 * f64::from(place)).sin())
            .collect();
        let mut blocks = in_turn(&slow);
        let expected = correlation(&blocks);
        assert!(expected.is_some());
        for (block, lost) in [(2, -1.0), (3, 0.0), (4, f64::NAN)] {
            blocks[block].push((7, lost));
        }
        assert_eq!(correlation(&blocks), expected);
    }

    #[test]
    fn fewer_than_two_trials_have_no_interval() {
        assert_eq!(geometric_mean(&[], 0.5, 0.95), None);
        assert_eq!(geometric_mean(&[(0, 1.0)], 0.5, 0.95), None);
        assert!(geometric_mean(&[(0, 1.0), (1, 1.1), (2, 1.2)], 0.5, 0.95).is_some());
    }

    #[test]
    fn without_a_correlation_the_interval_is_students() {
        let values = [1.0, 1.1, 0.9, 1.05, 1.2, 0.95];
        let places: Vec<(usize, f64)> = values.iter().copied().enumerate().collect();
        let usual = super::super::geometric_mean(&values, 0.95).unwrap();
        let same = geometric_mean(&places, 0.0, 0.95).unwrap();
        assert!((same.upper - usual.upper).abs() < 1e-12);
        let wider = geometric_mean(&places, 0.6, 0.95).unwrap();
        assert!((wider.value - usual.value).abs() < 1e-12);
        // V = 1 + 2·Σ (1 − h/6)·0.6^h = 2.80832, so √(V·5/(6 − V)) = 2.09748, and 2.5 degrees of freedom.
        let times = (wider.upper / wider.value).ln() / (usual.upper / usual.value).ln();
        let t = t_quantile(0.975, 2.5).unwrap() / t_quantile(0.975, 5.0).unwrap();
        assert!((times - 2.097_48 * t).abs() < 1e-3, "{times}");
    }
}
