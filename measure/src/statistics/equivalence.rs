//! When two candidates are as good as equal: that no difference was found is no proof of none.

use super::{Estimate, paired_ratio};

/// Whether the ratio of the first to the second of two candidates is shown to lie between
/// 1/(1 + `within`) and 1 + `within`: two one-sided tests, each at `level` (D. J. Schuirmann, Journal of
/// Pharmacokinetics and Biopharmaceutics 15 (1987), 657–680), which is to say that the interval of
/// confidence 1 − 2·`level` lies inside. No correction is due: both tests must succeed. `None` as for
/// [`paired_ratio`], or where `within` is not above 0 or `level` not between 0 and 0.5.
#[must_use]
pub fn is_equivalent(pairs: &[(f64, f64)], within: f64, level: f64) -> Option<bool> {
    if !(within > 0.0 && within.is_finite()) {
        return None;
    }
    let Estimate { lower, upper, .. } = paired_ratio(pairs, 1.0 - 2.0 * level)?;
    Some(lower > 1.0 / (1.0 + within) && upper < 1.0 + within)
}
