//! The share of rare events among many.

use statrs::{
    distribution::{ContinuousCDF, Normal},
    function::factorial::ln_binomial,
};

/// Up to this count, the binomial sums are computed exactly.
const FEW: u64 = 100;

/// Halvings of an interval. Afterwards a share of one in 10¹⁸ has five digits.
const HALVINGS: u32 = 80;

/// The two-sided interval of the share `count` / `all`, with error `level` (0 to 1, exclusive). It is also
/// valid for few or no events. Few events have the exact interval (C. J. Clopper and E. S. Pearson,
/// Biometrika 26 (1934), 404–413). More events have the score interval with its continuity correction (R. G.
/// Newcombe, Statistics in Medicine 17 (1998), 857–872, method 4). `None` if `all` is 0, if `count` exceeds
/// `all`, or with another level.
#[must_use]
pub fn share_interval(count: u64, all: u64, level: f64) -> Option<(f64, f64)> {
    if all == 0 || count > all || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let rest = all - count;
    if count <= FEW {
        Some(of_few(count, all, level))
    } else if rest <= FEW {
        let (lower, upper) = of_few(rest, all, level);
        Some((1.0 - upper, 1.0 - lower))
    } else {
        of_many(count as f64, all as f64, level)
    }
}

fn of_few(count: u64, all: u64, level: f64) -> (f64, f64) {
    let lower = match count {
        0 => 0.0,
        _ => share_where(|share| 1.0 - at_most(count - 1, all, share) < level / 2.0),
    };
    let upper = match all - count {
        0 => 1.0,
        _ => share_where(|share| at_most(count, all, share) > level / 2.0),
    };
    (lower, upper)
}

/// The largest share at which `is_so` holds, by bisection.
fn share_where(is_so: impl Fn(f64) -> bool) -> f64 {
    let (mut from, mut to) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(from, to);
        if is_so(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    f64::midpoint(from, to)
}

/// Probability of at most `most` of `all` events, each with the probability `share` (0 to 1, exclusive).
fn at_most(most: u64, all: u64, share: f64) -> f64 {
    let of_none = (-share).ln_1p();
    let odds = share.ln() - of_none;
    let mut term = all as f64 * of_none;
    let mut sum = term.exp();
    for k in 1..=most {
        term += ((all - k + 1) as f64 / k as f64).ln() + odds;
        sum += term.exp();
    }
    sum.min(1.0)
}

fn of_many(count: f64, all: f64, level: f64) -> Option<(f64, f64)> {
    let z = Normal::standard().inverse_cdf(1.0 - level / 2.0);
    let share = count / all;
    let end = |side: f64| {
        let spread = z * z + 2.0 * side - 1.0 / all + 4.0 * share * (all * (1.0 - share) - side);
        let middle = 2.0 * count + z * z + side;
        (middle + side * z * spread.max(0.0).sqrt()) / (2.0 * (all + z * z))
    };
    let (lower, upper) = (end(-1.0), end(1.0));
    (lower.is_finite() && upper.is_finite()).then(|| (lower.max(0.0), upper.min(1.0)))
}

/// Probabilities with a smaller relative difference than this are equal except for rounding.
const ROUNDING: f64 = 1e-7;

/// R. A. Fisher's exact test (Statistical Methods for Research Workers (1934), § 21.02), two-sided. It
/// returns the probability that `count` of `all` and `others_count` of `others` differ at least as much as
/// observed, if both have the same chance. It sums all tables with the same margins that are at most as
/// probable as this one. `None` if `all` or `others` is 0, or if a count exceeds its total.
#[must_use]
pub fn fisher(count: u64, all: u64, others_count: u64, others: u64) -> Option<f64> {
    if all == 0 || others == 0 || count > all || others_count > others {
        return None;
    }
    let counted = count + others_count;
    let ln_chance = |first: u64| ln_binomial(all, first) + ln_binomial(others, counted - first);
    let seen = ln_chance(count);
    let tables = counted.saturating_sub(others)..=counted.min(all);
    let logarithms: Vec<f64> = tables.map(ln_chance).collect();
    // Relative to the observed table: nothing can then overflow.
    let whole: f64 = logarithms.iter().map(|ln| (ln - seen).exp()).sum();
    let as_rare: f64 = logarithms
        .iter()
        .map(|ln| (ln - seen).exp())
        .filter(|relative| *relative <= 1.0 + ROUNDING)
        .sum();
    Some(as_rare / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    // R's fisher.test: Fisher's own tea tasting (3 of 4 against 1 of 4), and others.
    #[test]
    fn fishers_test_has_the_known_chances() {
        for (table, chance) in [
            ((3, 4, 1, 4), 0.485_714_285_7),
            ((4, 4, 0, 4), 0.028_571_428_57),
            ((1, 12, 9, 14), 0.005_303_540_2),
            ((0, 10, 0, 10), 1.0),
            ((10, 10, 0, 10), 1.082_509e-5),
        ] {
            let (a, of_a, b, of_b) = table;
            let p = fisher(a, of_a, b, of_b).unwrap();
            assert!(
                (p - chance).abs() < 1e-5 * chance.max(0.01),
                "{table:?}: {p}"
            );
            assert_eq!(
                fisher(b, of_b, a, of_a).map(|q| (q - p).abs() < 1e-9),
                Some(true)
            );
        }
    }

    #[test]
    fn fishers_test_needs_two_sides() {
        assert_eq!(fisher(0, 0, 1, 4), None);
        assert_eq!(fisher(1, 4, 0, 0), None);
        assert_eq!(fisher(5, 4, 1, 4), None);
    }

    fn assert_ends(count: u64, all: u64, expected: (f64, f64), within: f64) {
        let (lower, upper) = share_interval(count, all, 0.05).unwrap();
        let (least, most) = expected;
        let of = format!("{count} of {all}: {lower} to {upper}, not {least} to {most}");
        assert!((lower - least).abs() <= within * least, "{of}");
        assert!((upper - most).abs() <= within * most, "{of}");
    }

    // Computed by sums of logarithms of factorials, separately from this code.
    #[test]
    fn few_events_have_the_exact_ends() {
        assert_ends(0, 5, (0.0, 5.218_238e-01), 1e-5);
        assert_ends(0, 100_000, (0.0, 3.688_811e-05), 1e-5);
        assert_ends(1, 100_000, (2.531_780e-07, 5.571_516e-05), 1e-5);
        assert_ends(5, 5000, (3.247_745e-04, 2.332_111e-03), 1e-5);
        assert_ends(5, 20, (8.657_147e-02, 4.910_459e-01), 1e-5);
        assert_ends(19, 20, (7.512_672e-01, 9.987_349e-01), 1e-5);
        assert_ends(50, 5000, (7.431_047e-03, 1.316_274e-02), 1e-5);
        assert_ends(100, 5000, (1.630_168e-02, 2.427_257e-02), 1e-5);
        assert_ends(4950, 5000, (9.868_373e-01, 9.925_690e-01), 1e-5);
    }

    // For this many events the exact ends are close.
    #[test]
    fn more_events_have_ends_near_the_exact_ones() {
        assert_ends(101, 5000, (1.648_260e-02, 2.449_132e-02), 0.01);
        assert_ends(1000, 20_000, (4.702_009e-02, 5.311_157e-02), 0.01);
        assert_ends(2500, 5000, (4.860_444e-01, 5.139_556e-01), 0.01);
    }

    #[test]
    fn any_number_of_events_has_ends() {
        for all in [1, 5, 1 << 20, 1 << 40, 1 << 53, u64::MAX] {
            for count in [0, 1, 100, 101, 1 << 20, all / 2, all - 1, all] {
                if count > all {
                    continue;
                }
                for level in [0.05, 1e-6] {
                    let (lower, upper) = share_interval(count, all, level).unwrap();
                    let share = count as f64 / all as f64;
                    let of = format!("{count} of {all}: {lower} to {upper}");
                    assert!(0.0 <= lower && lower <= share, "{of}");
                    assert!(share <= upper && upper <= 1.0, "{of}");
                }
            }
        }
    }

    #[test]
    fn an_impossible_share_has_no_interval() {
        assert_eq!(share_interval(0, 0, 0.05), None);
        assert_eq!(share_interval(6, 5, 0.05), None);
        assert_eq!(share_interval(1, 5, 0.0), None);
        assert_eq!(share_interval(1, 5, f64::NAN), None);
    }
}
