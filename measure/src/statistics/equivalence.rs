//! Equivalence of two candidates. If no difference was found, this does not prove that the candidates are
//! equal.

use super::{IntervalEstimate, paired_ratio};

/// Whether the ratio of the first to the second of two candidates is shown to lie between 1/(1 + `within`)
/// and 1 + `within`. The test is two one-sided tests, each at `level` (D. J. Schuirmann, Journal of
/// Pharmacokinetics and Biopharmaceutics 15 (1987), 657–680): the interval of confidence 1 − 2·`level` must
/// lie inside. No correction is needed, because both tests must succeed. `None` as for [`paired_ratio`], or
/// if `within` is not above 0 or `level` is not between 0 and 0.5.
#[must_use]
pub fn is_equivalent(pairs: &[(f64, f64)], within: f64, level: f64) -> Option<bool> {
    if !(within > 0.0 && within.is_finite()) {
        return None;
    }
    let IntervalEstimate { lower, upper, .. } = paired_ratio(pairs, 1.0 - 2.0 * level)?;
    Some(lower > 1.0 / (1.0 + within) && upper < 1.0 + within)
}
