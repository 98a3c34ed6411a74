//! Numbers as text for people.

use std::net::Ipv6Addr;

use frugality_measure::significant;

use crate::api::{BoardRange, BoardVerdict, Comparison, Figure};

/// Text in place of a winner if the winner depends on the board.
pub const DEPENDS_ON_BOARD: &str = "depends on board";

/// Digits that distinguish two numbers. Further digits hold the rounding errors of the arithmetic.
const EXACT_DIGITS: usize = 12;
/// Most decimals of a ratio in a cell, unless an end is nearer to 1.
const MOST_RATIO_DECIMALS: i32 = 5;
/// With so many more decimals, a text has all digits of its number.
const MOST_EXTRA: i32 = 17;

/// Host and port for a URL. An IPv6 address gets brackets (RFC 3986, 3.2.2).
#[must_use]
pub fn authority(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

/// The text in at most `most` bytes of UTF-8. A longer text is cut between two characters and ends with `…`.
#[must_use]
pub fn within_bytes(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(MARK.len());
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end));
    format!("{}{MARK}", &text[..end.unwrap_or_default()])
}

/// How many significant digits a number shows: as many as its uncertainty needs, within these limits. Without an uncertainty it
/// has three digits, within the same limits.
#[derive(Clone, Copy)]
struct Digits {
    least: i32,
    most: i32,
    /// Whether all digits before the point are shown: 10767, not 10800.
    all_ones: bool,
}

/// A figure in a table, or with its interval. A status keeps seven digits.
const WHOLE: Digits = Digits {
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
    fn decimals(self, value: f64, uncertainty: f64) -> i32 {
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
fn magnitude(value: f64) -> i32 {
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
struct Shown {
    value: f64,
    decimals: i32,
}

impl Shown {
    fn of(value: f64, uncertainty: f64, digits: Digits) -> Self {
        Self {
            value,
            decimals: digits.decimals(value, uncertainty),
        }
    }

    /// The text with at least so many decimals, without an exponent if the text stays short.
    fn text(self, fewest: i32) -> String {
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
fn fewest_decimals(numbers: &[(Shown, f64)]) -> i32 {
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

/// The text in at most `most` characters. A longer text ends with an ellipsis.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars()
        .take(most.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// The point as ` at POINT`; empty if there is only one point.
#[must_use]
pub fn at(point: &str, is_one_of_several: bool) -> String {
    if is_one_of_several {
        format!(" at {point}")
    } else {
        String::new()
    }
}

/// One number or a range, and the interval around it.
#[derive(Clone, Copy)]
pub struct Span {
    /// The least and the most. They are equal for one number.
    values: (f64, f64),
    bounds: (f64, f64),
}

impl From<&Figure> for Span {
    fn from(figure: &Figure) -> Self {
        Self {
            values: (figure.value, figure.value),
            bounds: figure.bounds(),
        }
    }
}

impl From<&BoardRange> for Span {
    /// The extremes over all boards, and an interval that contains both of their intervals.
    fn from(range: &BoardRange) -> Self {
        Self {
            values: range.values(),
            bounds: range.bounds(),
        }
    }
}

impl Span {
    /// Half of the interval, on the side that is nearer: the interval must be visible on both sides.
    fn half(&self) -> f64 {
        (self.values.0 - self.bounds.0).min(self.bounds.1 - self.values.1)
    }

    /// Whether the whole interval is on one side of the edge. If it is not, the values may be rounded to the edge.
    fn excludes(&self, edge: f64) -> bool {
        self.bounds.0 > edge || self.bounds.1 < edge
    }

    /// Values and interval, each number on its side of each edge: `0.342–0.371 [0.334–0.380]`.
    #[must_use]
    pub fn beside(&self, edges: &[f64]) -> String {
        self.in_decimals(edges, |value| WHOLE.decimals(value, self.half()))
    }

    /// The same with these decimals, unless an edge needs more.
    fn in_decimals(&self, edges: &[f64], decimals: impl Fn(f64) -> i32) -> String {
        let shown = |value: f64| Shown {
            value,
            decimals: decimals(value),
        };
        let [values, ends] = [self.values, self.bounds].map(|(from, to)| [from, to].map(shown));
        let outside = edges.iter().filter(|edge| self.excludes(**edge));
        let mut pairs = against(ends, edges);
        pairs.extend(outside.flat_map(|edge| against(values, &[*edge])));
        let fewest = fewest_decimals(&pairs);
        let texts = |numbers: [Shown; 2]| numbers.map(|number| number.text(fewest));
        let [lower, upper] = texts(ends);
        format!("{} [{lower}–{upper}]", from_to(&texts(values)))
    }

    /// The values alone: `0.342–0.371`.
    #[must_use]
    pub fn values_beside(&self, edges: &[f64]) -> String {
        from_to(&self.part_beside(self.values, edges))
    }

    /// The interval alone: `0.334–0.380`.
    #[must_use]
    pub fn interval_beside(&self, edges: &[f64]) -> String {
        let [lower, upper] = self.part_beside(self.bounds, edges);
        format!("{lower}–{upper}")
    }

    fn part_beside(&self, (from, to): (f64, f64), edges: &[f64]) -> [String; 2] {
        let numbers = [from, to].map(|value| Shown::of(value, self.half(), WHOLE));
        let fewest = fewest_decimals(&against(numbers, edges));
        numbers.map(|number| number.text(fewest))
    }
}

/// Each number with each edge.
fn against(numbers: [Shown; 2], edges: &[f64]) -> Vec<(Shown, f64)> {
    let of_edge = |edge: &f64| numbers.map(|number| (number, *edge));
    edges.iter().flat_map(of_edge).collect()
}

/// A range; one number if both texts are equal.
fn from_to([least, most]: &[String; 2]) -> String {
    if least == most {
        least.clone()
    } else {
        format!("{least}–{most}")
    }
}

/// A ratio with its deciding interval: `0.380 [0.360–0.400]`. An end that is not 1 is not rounded to 1.
#[must_use]
pub fn ratio(ratio: &Figure) -> String {
    Span::from(ratio).beside(&[1.0])
}

/// A ratio with its deciding interval in a cell: `0.39 [0.38–0.40]`. The nearer end shows one digit of its distance. An end that
/// is not 1 is not rounded to 1.
#[must_use]
pub fn brief_ratio(ratio: &Figure) -> String {
    let span = Span::from(ratio);
    let decimals = (-magnitude(span.half())).clamp(2, MOST_RATIO_DECIMALS);
    span.in_decimals(&[1.0], |_| decimals)
}

/// The extremes of a ratio over all boards, with an interval that contains both of their intervals:
/// `0.342–0.371 [0.334–0.380]`.
#[must_use]
pub fn board_range(range_of_boards: &BoardRange) -> String {
    Span::from(range_of_boards).beside(&[1.0])
}

/// The ratio over all boards if known, unless the stated accuracy of this board's watts decides. Otherwise the
/// ratio.
#[must_use]
pub fn comparison(comparison: &Comparison) -> String {
    match &comparison.boards {
        Some(range) if comparison.board != Some(BoardVerdict::StatedAccuracy) => board_range(range),
        _ => ratio(&comparison.ratio),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_ipv6_address_has_brackets_in_a_url() {
        for (host, expected) in [
            ("10.0.0.1", "10.0.0.1:28282"),
            ("fd00:10:244::7", "[fd00:10:244::7]:28282"),
            ("::1", "[::1]:28282"),
            ("name.ns.svc", "name.ns.svc:28282"),
        ] {
            assert_eq!(authority(host, 28282), expected);
        }
    }

    #[test]
    fn a_text_is_cut_between_two_characters() {
        assert_eq!(within_bytes("joules", 6), "joules");
        assert_eq!(within_bytes("joules", 5), "jo…");
        // Each of these has two bytes.
        assert_eq!(within_bytes("ääää", 7), "ää…");
        assert_eq!(within_bytes("ääää", 6), "ä…");
        let long = "±".repeat(2000);
        assert!((1022..=1024).contains(&within_bytes(&long, 1024).len()));
    }

    use crate::api::Expanded;

    #[test]
    fn numbers_have_three_digits_and_no_noise() {
        for (value, text) in [
            (0.0, "0"),
            (0.004_123_9, "0.00412"),
            (0.38, "0.380"),
            (2.834, "2.83"),
            (9.999, "10.0"),
            (0.009_999, "0.0100"),
            (999.9, "1000"),
            (1412.3, "1412"),
            (123_456.7, "123457"),
            (0.000_000_012, "1.20e-8"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn half_the_interval_is_rounded_as_the_figure_is() {
        let f = Figure {
            value: 0.004_123,
            lower: 0.003_9,
            upper: 0.004_3,
            expanded: None,
        };
        assert_eq!(figure(&f), "0.00412±0.00020");
        let with_meter = Figure {
            expanded: Some(Expanded {
                lower: 0.003_7,
                upper: 0.004_5,
                covers_meter: true,
                repeatability_only: false,
            }),
            ..f
        };
        assert_eq!(figure(&with_meter), "0.00412±0.00040");
        let unknown = Figure {
            expanded: Some(Expanded {
                lower: 0.003_7,
                upper: 0.004_5,
                covers_meter: false,
                repeatability_only: true,
            }),
            ..f
        };
        assert_eq!(figure(&unknown), "~0.0041");
    }

    #[test]
    fn an_uncertainty_shows_one_digit_or_two_if_the_first_is_1() {
        for (value, half, text) in [
            (523.2, 0.3, "523.2±0.3"),
            (523.2, 0.14, "523.20±0.14"),
            (523.2, 12.0, "523±12"),
            (2.834, 0.003, "2.834±0.003"),
            (2.834, 0.000_96, "2.8340±0.0010"),
            (7528.0, 287.0, "7528±287"),
            (0.000_141, 0.000_000_4, "0.0001410±0.0000004"),
            // A status has seven digits. A smaller uncertainty is shown as 1 in the last digit.
            (200.0, 1e-9, "200.000±0.001"),
            (200.0, 0.0, "200"),
            (0.0, 0.000_3, "0±0.0003"),
        ] {
            let told = figure(&Figure {
                value,
                lower: value - half,
                upper: value + half,
                expanded: None,
            });
            assert_eq!(told, text);
        }
    }

    #[test]
    fn a_number_alone_shows_the_digits_that_its_uncertainty_allows() {
        for (value, half, text) in [
            (10_767.0, 419.0, "10800"),
            (7528.0, 287.0, "7500"),
            (32_975.0, 2431.0, "33000"),
            (0.371, 0.014, "0.371"),
            (0.448, 0.02, "0.45"),
            (9.5, 0.04, "9.50"),
            (398.3, 1.0, "398"),
            (2.834, 4.0, "2.8"),
            (0.643, 0.0, "0.643"),
            (0.0, 0.1, "0"),
        ] {
            assert_eq!(rounded(value, half), text);
        }
    }

    #[test]
    fn a_brief_uncertainty_sets_the_digits() {
        for (value, half, text) in [
            (0.480, 0.0205, "0.48±0.02"),
            (5.12, 0.08, "5.12±0.08"),
            (12.55, 0.14, "12.55±0.14"),
            (523.2, 12.0, "523±12"),
            (7528.0, 287.0, "7500±300"),
            (2.0, 1.7, "2.0±1.7"),
            (200.0, 1e-9, "200.000±0.001"),
        ] {
            assert_eq!(brief(value, half), text);
        }
    }

    #[test]
    fn joules_have_the_unit_that_people_use() {
        for (joules, text) in [
            (0.0, "0 J"),
            (412.0, "412 J"),
            (14_200.0, "14.2 kJ"),
            (0.000_643, "0.643 mJ"),
            (0.000_087_2, "87.2 µJ"),
            (5.1e-9, "5.10 nJ"),
            (-0.005, "-5.00 mJ"),
        ] {
            let (factor, unit) = joule_unit(joules);
            assert_eq!(format!("{} {unit}", number(joules * factor)), text);
        }
        assert_eq!(short_joule_unit(0.000_643), (1e6, "µJ"));
        assert_eq!(short_joule_unit(0.005), (1e3, "mJ"));
    }

    #[test]
    fn the_ends_of_an_interval_differ_from_its_middle() {
        let told = |value, lower, upper| {
            ratio(&Figure {
                value,
                lower,
                upper,
                expanded: None,
            })
        };
        assert_eq!(told(0.342, 0.334, 0.351), "0.342 [0.334–0.351]");
        assert_eq!(told(0.9998, 0.9996, 0.999_95), "0.99980 [0.99960–0.99995]");
        assert_eq!(told(0.01, 0.009_81, 0.010_2), "0.0100 [0.00981–0.0102]");
        // An end that is not 1 is not rounded to 1. A value within the interval may be.
        assert_eq!(told(0.95, 0.9, 0.9996), "0.9500 [0.9000–0.9996]");
        assert_eq!(told(0.9996, 0.95, 1.05), "1.00 [0.950–1.05]");
    }

    #[test]
    fn a_number_next_to_an_edge_is_on_its_side() {
        for (value, half, edge, text) in [
            (10.46, 0.01, 10.48, "10.46"),
            (10_040.0, 20.0, 10_020.0, "10040"),
            (10_040.0, 20.0, 9000.0, "10000"),
            (14.96, 2.0, 15.0, "14.96"),
            (10.48, 0.01, 10.48, "10.48"),
            (9.999_999, 0.01, 10.0, "9.999999"),
            // The last digits of a product are not the user's.
            (0.020_02 * 1e3, 0.5, 20.02, "20.02"),
        ] {
            assert_eq!(beside(value, half, &[edge]), text);
        }
        assert_eq!(rough(20.04, &[20.0]), "~20.04");
        assert_eq!(rough(19.96, &[25.0]), "~20");
        assert_eq!(number_beside(1.982_55, &[1.982]), "1.983");
        let span = Span {
            values: (19.0, 19.0),
            bounds: (18.0, 20.04),
        };
        assert_eq!(span.beside(&[20.02]), "19.00 [18.00–20.04]");
        assert_eq!(span.interval_beside(&[20.02]), "18.00–20.04");
        assert_eq!(span.values_beside(&[20.02]), "19.0");
        assert_eq!(span.beside(&[30.0]), "19.0 [18.0–20.0]");
    }

    #[test]
    fn an_upper_bound_is_rounded_up() {
        for (bound, edge, text) in [
            (0.040_1, 0.1, "0.041"),
            (0.04, 0.1, "0.040"),
            (0.099_7, 0.1, "0.0997"),
            (100.0 * 0.000_7, 0.1, "0.070"),
            (12.34, 50.0, "13"),
        ] {
            assert_eq!(at_most(bound, edge), text);
        }
    }

    #[test]
    fn a_confidence_is_never_rounded_to_100() {
        for (error, text) in [
            (0.05, "95 %"),
            (0.030_396, "97 %"),
            (0.020_6, "97.9 %"),
            (0.012_4, "98.8 %"),
            // The eighth try.
            (0.000_474_9, "99.953 %"),
            (1e-6, "99.9999 %"),
        ] {
            assert_eq!(confidence(1.0 - error), text);
        }
    }

    /// A number of up to seven digits, from 0.000001 to 10 million.
    fn a_number() -> impl Strategy<Value = f64> {
        (1.0..10.0_f64, -6..7_i32)
            .prop_map(|(digits, exponent)| significant(digits * 10f64.powi(exponent), 7))
    }

    /// A number, and an edge that is equal, very near, near or far.
    fn a_number_and_an_edge() -> impl Strategy<Value = (f64, f64)> {
        let distance = prop_oneof![
            1 => Just(0.0),
            8 => (-8.0..0.5_f64).prop_map(|exponent| 10f64.powf(exponent)),
        ];
        (a_number(), distance, any::<bool>()).prop_map(|(value, distance, is_above)| {
            let factor = if is_above {
                1.0 + distance
            } else {
                1.0 / (1.0 + distance)
            };
            (value, significant(value * factor, 10))
        })
    }

    /// How the text of a number compares to the edge.
    fn side(text: &str, edge: f64) -> Ordering {
        let shown: f64 = text.trim_start_matches('~').parse().unwrap();
        shown.total_cmp(&edge)
    }

    proptest! {
        #[test]
        fn each_number_is_shown_on_its_side_of_the_edge(
            (value, edge) in a_number_and_an_edge(),
            share in (-7.0..1.0_f64).prop_map(|exponent| 10f64.powf(exponent)),
        ) {
            let real = value.total_cmp(&edge);
            for text in [
                beside(value, share * value, &[edge]),
                rough(value, &[edge]),
                number_beside(value, &[edge]),
            ] {
                prop_assert_eq!(side(&text, edge), real, "{}", text);
            }
            let bound = at_most(value, edge);
            prop_assert_eq!(side(&bound, edge), real, "{}", bound);
            prop_assert!(side(&bound, value).is_ge(), "{}", bound);
        }

        #[test]
        fn each_end_is_shown_on_its_side_of_the_edge(
            (end, edge) in a_number_and_an_edge(),
            share in (-7.0..1.0_f64).prop_map(|exponent| 10f64.powf(exponent)),
            is_upper in any::<bool>(),
        ) {
            let width = 2.0 * share * end;
            let (lower, upper) = if is_upper { (end - width, end) } else { (end, end + width) };
            let [lower, value, upper] =
                [lower, f64::midpoint(lower, upper), upper].map(|it| significant(it, 10));
            let span = Span { values: (value, value), bounds: (lower, upper) };
            let told = span.beside(&[edge]);
            let (middle, ends) = told.strip_suffix(']').unwrap().split_once(" [").unwrap();
            for ends in [ends, &span.interval_beside(&[edge])] {
                let (from, to) = ends.split_once('–').unwrap();
                prop_assert_eq!(side(from, edge), lower.total_cmp(&edge), "{}", told);
                prop_assert_eq!(side(to, edge), upper.total_cmp(&edge), "{}", told);
            }
            if lower > edge || upper < edge {
                prop_assert_eq!(side(middle, edge), value.total_cmp(&edge), "{}", told);
            }
            let alone = span.values_beside(&[edge]);
            prop_assert_eq!(side(&alone, edge), value.total_cmp(&edge), "{}", alone);
        }

        #[test]
        fn no_end_of_a_ratio_is_rounded_to_1(
            (lower, upper) in (a_distance(), a_distance()),
        ) {
            let [lower, upper] = [lower.min(upper), lower.max(upper)];
            let of = Figure { value: f64::midpoint(lower, upper), lower, upper, expanded: None };
            for told in [ratio(&of), brief_ratio(&of)] {
                let (_, ends) = told.strip_suffix(']').unwrap().split_once(" [").unwrap();
                let (from, to) = ends.split_once('–').unwrap();
                prop_assert_eq!(side(from, 1.0), lower.total_cmp(&1.0), "{}", told);
                prop_assert_eq!(side(to, 1.0), upper.total_cmp(&1.0), "{}", told);
            }
        }

        #[test]
        fn a_confidence_keeps_its_distance_from_100(
            error in (-9.0..-0.5_f64).prop_map(|exponent| 10f64.powf(exponent)),
        ) {
            let text = confidence(1.0 - error);
            let shown: f64 = text.strip_suffix(" %").unwrap().parse().unwrap();
            let distance = (100.0 - shown) / 100.0;
            prop_assert!((distance / error - 1.0).abs() < 0.051, "{text} for {error}");
        }
    }

    /// A ratio at any distance from 1, with the seven digits of a status.
    fn a_distance() -> impl Strategy<Value = f64> {
        (-7.0..0.0_f64, any::<bool>()).prop_map(|(exponent, is_above)| {
            let factor = 1.0 + 10f64.powf(exponent);
            significant(if is_above { factor } else { 1.0 / factor }, 7)
        })
    }
}
