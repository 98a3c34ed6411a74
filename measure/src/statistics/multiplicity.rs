//! Several claims at once: the more there are, the more likely that one of them is made by chance.

/// Which of several claims may be made so that the chance of making any wrong one is at most `level`:
/// S. Holm's step-down procedure (Scandinavian Journal of Statistics 6 (1979), 65–70), for claims that
/// may depend on one another. `spent` is what each claim is tried with where it has this share of the
/// level, and `holds` says whether a claim, by index, is shown with it; what is shown at a share must be
/// shown at any larger one.
///
/// A conclusion that needs *all* of its claims (every budget met, every rival beaten) needs no
/// correction: it is wrong only where one of them is (R. L. Berger, Technometrics 24 (1982), 295–300).
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
