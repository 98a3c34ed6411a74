//! The exact power of the paired t-test, for comparison with simulated runs.

use frugality_measure::statistics::t_quantile;
use statrs::function::{erf::erfc, gamma::ln_gamma};

/// The probability that the better of two candidates wins. One candidate takes `ratio` times the other's joules. The
/// run has `blocks` blocks, a coefficient of variation of `trial_cv` from trial to trial, and a two-sided confidence
/// interval of `confidence`. `None` with fewer than 2 blocks.
///
/// Trials are log-normal with a standard deviation of `trial_cv` in their logarithms. For 3 %, this differs from the
/// coefficient of variation by 0.05 % of it. So the differences of logarithms are normal with the standard deviation
/// `trial_cv` · √2. The power is P(T > t). T is noncentral t with blocks − 1 degrees of freedom and the parameter
/// δ = |ln ratio| · √blocks / (`trial_cv` · √2).
#[must_use]
pub fn power(ratio: f64, trial_cv: f64, blocks: usize, confidence: f64) -> Option<f64> {
    let degrees_of_freedom = blocks.checked_sub(1).filter(|n| *n > 0)? as f64;
    let critical = t_quantile(f64::midpoint(1.0, confidence), degrees_of_freedom)?;
    let shift = ratio.ln().abs() * (blocks as f64).sqrt() / (trial_cv * 2.0_f64.sqrt());
    Some(noncentral_t_above(critical, degrees_of_freedom, shift))
}

/// P(T > `bound`) for T = (Z + `shift`) / S, with S² = χ² / ν and ν degrees of freedom:
/// ∫ Φ(shift − bound·s) g(s) ds, g(s) = 2 (ν/2)^(ν/2) / Γ(ν/2) · s^(ν−1) · e^(−νs²/2), by Simpson's
/// rule up to s = 8. S exceeds 8 with a probability far below 10⁻¹⁰.
fn noncentral_t_above(bound: f64, degrees_of_freedom: f64, shift: f64) -> f64 {
    const STEPS: u32 = 4000;
    const END: f64 = 8.0;
    let half = degrees_of_freedom / 2.0;
    let scale = 2.0_f64.ln() + half * half.ln() - ln_gamma(half);
    let integrand = |s: f64| {
        if s <= 0.0 {
            return 0.0;
        }
        let density = (scale + (degrees_of_freedom - 1.0) * s.ln() - half * s * s).exp();
        density * erfc((bound * s - shift) / 2.0_f64.sqrt()) / 2.0
    };
    let width = END / f64::from(STEPS);
    let sum: f64 = (0..=STEPS)
        .map(|step| {
            let weight = match step {
                0 | STEPS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * integrand(f64::from(step) * width)
        })
        .sum();
    sum * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_difference_each_side_has_half_of_the_error() {
        for blocks in [5, 10, 20] {
            let half = power(1.0, 0.03, blocks, 0.95).unwrap();
            assert!((half - 0.025).abs() < 1e-9, "{blocks}: {half}");
        }
    }

    #[test]
    fn power_of_the_usual_run() {
        // 10 blocks with 3 % from trial to trial.
        for (ratio, expected) in [(1.05, 0.898), (0.95, 0.924)] {
            let power = power(ratio, 0.03, 10, 0.95).unwrap();
            assert!((power - expected).abs() < 0.0005, "{ratio}: {power}");
        }
        // The direction of the ratio does not matter, only its logarithm.
        let both = [1.05, 1.0 / 1.05].map(|ratio| power(ratio, 0.03, 10, 0.95).unwrap());
        assert!((both[0] - both[1]).abs() < 1e-12);
        assert_eq!(power(1.05, 0.03, 1, 0.95), None);
    }
}
