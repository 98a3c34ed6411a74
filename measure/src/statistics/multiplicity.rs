//! Several claims at once. With more claims, a false claim by chance is more likely.

use std::f64::consts::PI;

/// The part of the error that the `number`th try (from 1) of the same measurement may spend: 6/(π²·k²). The
/// parts of any number of tries sum up to at most 1 (Bonferroni; Σ 1/k² = π²/6). A user who tries until a
/// good result appears is therefore wrong no more often than after one try. The rule includes the first try:
/// a first try with the whole error would leave nothing for the second.
#[must_use]
pub fn share_of_try(number: usize) -> f64 {
    6.0 / (PI * number.max(1) as f64).powi(2)
}

/// The claims that may be made while the chance of any wrong claim is at most `level`: S. Holm's step-down
/// procedure (Scandinavian Journal of Statistics 6 (1979), 65–70), for claims that may depend on one another.
///
/// `spent` turns a claim's share of the level into the argument of the test. `holds` reports whether a claim,
/// by index, is shown with this argument. A claim that is shown at a share must be shown at any larger share.
///
/// A conclusion that needs *all* of its claims (every budget met, every rival beaten) needs no correction: it
/// is wrong only if one of them is (R. L. Berger, Technometrics 24 (1982), 295–300).
#[must_use]
pub fn holm<T>(
    claims: usize,
    level: f64,
    spent: impl Fn(f64) -> T,
    holds: impl Fn(usize, &T) -> bool,
) -> Vec<bool> {
    let mut shown = vec![false; claims];
    loop {
        let left: Vec<usize> = (0..claims).filter(|&claim| !shown[claim]).collect();
        if left.is_empty() {
            return shown;
        }
        let share = spent(level / left.len() as f64);
        let new: Vec<usize> = left.into_iter().filter(|&c| holds(c, &share)).collect();
        if new.is_empty() {
            return shown;
        }
        for claim in new {
            shown[claim] = true;
        }
    }
}
