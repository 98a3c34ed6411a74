//! A number as text: its digits, its uncertainty, its unit, and its side of the numbers with which a reader compares it.

use frugality_measure::significant;

use crate::api::Figure;

/// With so many more decimals, a text has all digits of its number.
const MOST_EXTRA: i32 = 17;
/// Digits that distinguish two numbers. Further digits hold the rounding errors of the arithmetic.
const EXACT_DIGITS: usize = 12;

/// How many significant digits a number shows: as many as its uncertainty needs, within these limits. Without an uncertainty it
/// has three digits, within the same limits.
#[derive(Clone, Copy)]
pub(super) struct Digits {
    least: i32,
    most: i32,
    /// Whether all digits before the point are shown: 10767, not 10800.
    all_ones: bool,
}

/// A figure in a table, or with its interval. A status keeps seven digits.
pub(super) const WHOLE: Digits = Digits {
    least: 3,
    most: 6,
    all_ones: true,
};
/// A number with `±` in a cell that has little room.
const BRIEF: Digits = Digits {
    least: 2,
    most: 6,
    all_ones: false,
};
/// A number that stands without its uncertainty.
const ALONE: Digits = Digits {
    least: 2,
    most: 3,
    all_ones: false,
};
/// A number of unknown accuracy, which allows no more.
const ROUGH: Digits = Digits {
    least: 2,
    most: 2,
    all_ones: false,
};

impl Digits {
    /// The decimals at which a number has these digits. Negative decimals round to tens, hundreds and so on.
    pub(super) fn decimals(self, value: f64, uncertainty: f64) -> i32 {
        let of_uncertainty = decimals_of(uncertainty);
        let decimals = if value == 0.0 {
            // Zero has no significant digits: the uncertainty alone sets the decimals.
            of_uncertainty
        } else {
            let last = |digits: i32| digits - 1 - magnitude(value);
            let wanted = if uncertainty > 0.0 {
                of_uncertainty
            } else {
                last(3)
            };
            wanted.clamp(last(self.least), last(self.most))
        };
        if self.all_ones {
            decimals.max(0)
        } else {
            decimals
        }
    }
}

/// The exponent of a number rounded to three significant digits: 9.9999 has the exponent of 10.
pub(super) fn magnitude(value: f64) -> i32 {
    format!("{value:.2e}")
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or_default()
}

/// Decimals at which an uncertainty shows one significant digit, or two if the first digit is 1 (ISO 80000-1 and
/// GUM, 7.2.6).
fn decimals_of(uncertainty: f64) -> i32 {
    let text = format!("{uncertainty:.0e}");
    let Some((digit, exponent)) = text.split_once('e') else {
        return 0;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    i32::from(digit == "1") - exponent
}

/// A number with so many decimals; negative decimals round to tens, hundreds and so on.
fn with_decimals(value: f64, decimals: i32) -> String {
    if let Ok(decimals) = usize::try_from(decimals) {
        return format!("{value:.decimals$}");
    }
    let step = 10f64.powi(-decimals);
    format!("{:.0}", (value / step).round() * step)
}

/// A number, and the decimals with which it is shown unless an edge needs more.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) value: f64,
    pub(super) decimals: i32,
}

impl Shown {
    pub(super) fn of(value: f64, uncertainty: f64, digits: Digits) -> Self {
        Self {
            value,
            decimals: digits.decimals(value, uncertainty),
        }
    }

    /// The text with at least so many decimals, without an exponent if the text stays short.
    pub(super) fn text(self, fewest: i32) -> String {
        match magnitude(self.value) {
            _ if self.value == 0.0 => "0".into(),
            magnitude @ (..-7 | 9..) => {
                let decimals = fewest.saturating_add(magnitude).max(2);
                let decimals = usize::try_from(decimals).unwrap_or_default();
                format!("{:.decimals$e}", self.value)
            }
            _ => with_decimals(self.value, self.decimals.max(fewest)),
        }
    }
}

/// No decimals beyond those that a number has anyway.
const NO_MORE: i32 = i32::MIN;

/// Whether the text of a number compares to the edge as the number does.
fn compares(text: &str, value: f64, edge: f64) -> bool {
    let shown = text.parse().unwrap_or(value);
    let [shown, value, edge] = [shown, value, edge].map(exact);
    shown.partial_cmp(&edge) == value.partial_cmp(&edge)
}

/// The number without the rounding errors of the arithmetic.
fn exact(value: f64) -> f64 {
    significant(value, EXACT_DIGITS)
}

/// The fewest decimals at which each number is on its side of its edge.
pub(super) fn fewest_decimals(numbers: &[(Shown, f64)]) -> i32 {
    let decimals = || numbers.iter().map(|(number, _)| number.decimals);
    let (Some(from), Some(to)) = (decimals().min(), decimals().max()) else {
        return NO_MORE;
    };
    let are_beside = |fewest: &i32| {
        let mut numbers = numbers.iter();
        numbers.all(|(number, edge)| compares(&number.text(*fewest), number.value, *edge))
    };
    let to = to + MOST_EXTRA;
    (from..to).find(are_beside).unwrap_or(to)
}

/// One number next to the edges with which a reader compares it.
fn beside_edges(number: Shown, edges: &[f64]) -> String {
    let pairs: Vec<(Shown, f64)> = edges.iter().map(|edge| (number, *edge)).collect();
    number.text(fewest_decimals(&pairs))
}

/// The number with three significant digits, without an exponent if the text stays short.
#[must_use]
pub fn number(value: f64) -> String {
    number_beside(value, &[])
}

/// The same with as many more digits as it needs to be on its side of each edge.
#[must_use]
pub fn number_beside(value: f64, edges: &[f64]) -> String {
    beside_edges(Shown::of(value, 0.0, WHOLE), edges)
}

/// A number that stands without its uncertainty. It has as many digits as the uncertainty allows, two or three: `10800` for
/// 10767 ± 419.
#[must_use]
pub fn rounded(value: f64, uncertainty: f64) -> String {
    beside(value, uncertainty, &[])
}

/// The same with as many more digits as it needs to be on its side of each edge.
#[must_use]
pub fn beside(value: f64, uncertainty: f64, edges: &[f64]) -> String {
    beside_edges(Shown::of(value, uncertainty, ALONE), edges)
}

/// A number of unknown accuracy: `~0.42`. It has two digits, and more only to be on its side of each edge.
#[must_use]
pub fn rough(value: f64, edges: &[f64]) -> String {
    format!("~{}", beside_edges(Shown::of(value, 0.0, ROUGH), edges))
}

/// An upper bound, rounded up to two digits. It has more digits only to be on its side of the edge.
#[must_use]
pub fn at_most(bound: f64, edge: f64) -> String {
    let bound = exact(bound);
    let fewest = ROUGH.decimals(bound, 0.0);
    let rounded_up = |decimals: i32| {
        let text = with_decimals(bound, decimals);
        if text.parse().is_ok_and(|shown: f64| shown < bound) {
            with_decimals(bound + 10f64.powi(-decimals), decimals)
        } else {
            text
        }
    };
    (fewest..fewest + MOST_EXTRA)
        .map(rounded_up)
        .find(|text| compares(text, bound, edge))
        .unwrap_or_else(|| bound.to_string())
}

/// A confidence in percent: `97.9 %`. Its distance from 100 % has at least two digits, so it is never rounded to 100 %.
#[must_use]
pub fn confidence(confidence: f64) -> String {
    let percent = 100.0 * confidence;
    let decimals = ROUGH.decimals(100.0 - percent, 0.0).max(1);
    let shown: f64 = with_decimals(percent, decimals).parse().unwrap_or(percent);
    format!("{shown} %")
}

/// A number with all of its digits, after a multiplication by a power of ten.
#[must_use]
pub fn all_digits(value: f64) -> String {
    exact(value).to_string()
}

/// A figure with half of its deciding interval, both with the same decimals: `0.00412±0.00020`. The uncertainty
/// shows at least one significant digit. A figure of unknown accuracy shows no uncertainty: `~0.0041`.
#[must_use]
pub fn figure(figure: &Figure) -> String {
    if figure.is_repeatability_only() {
        return rough(figure.value, &[]);
    }
    let (lower, upper) = figure.bounds();
    plus_minus(figure.value, (upper - lower) / 2.0, WHOLE)
}

/// A number and its uncertainty with the digits that the uncertainty needs, and no more: `0.48±0.02`.
#[must_use]
pub fn brief(value: f64, uncertainty: f64) -> String {
    plus_minus(value, uncertainty, BRIEF)
}

fn plus_minus(value: f64, half: f64, digits: Digits) -> String {
    let number = Shown::of(value, half, digits);
    let text = number.text(NO_MORE);
    if half <= 0.0 {
        return text;
    }
    if text.contains('e') {
        return format!("{text}±{half:.2e}");
    }
    // Never 0: a smaller uncertainty is shown as 1 in the last digit.
    let last = 10f64.powi(-number.decimals);
    format!("{text}±{}", with_decimals(half.max(last), number.decimals))
}

/// The unit that people use for so many joules, with the factor from joules to that unit: 0.643 mJ, but 64.3 µJ.
#[must_use]
pub fn joule_unit(joules: f64) -> (f64, &'static str) {
    unit_from(joules, 0.1)
}

/// The same with a number of at least 1, which is shorter: 643 µJ.
#[must_use]
pub fn short_joule_unit(joules: f64) -> (f64, &'static str) {
    unit_from(joules, 1.0)
}

/// The largest unit in which the number is at least `least`.
fn unit_from(joules: f64, least: f64) -> (f64, &'static str) {
    if joules == 0.0 {
        return (1.0, "J");
    }
    let units = [
        (1e-3, 10.0, "kJ"),
        (1.0, 1.0, "J"),
        (1e3, least, "mJ"),
        (1e6, least, "µJ"),
        (1e9, 0.0, "nJ"),
    ];
    units
        .into_iter()
        .find(|(factor, least, _)| joules.abs() * factor >= *least)
        .map_or((1.0, "J"), |(factor, _, unit)| (factor, unit))
}
