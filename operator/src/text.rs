//! Numbers as text for people.

use std::net::Ipv6Addr;

use crate::api::{BoardRange, BoardVerdict, Comparison, Figure};

/// Text in place of a winner if the winner depends on the board.
pub const DEPENDS_ON_BOARD: &str = "depends on board";

/// Most significant digits of a figure in a text. A status keeps seven.
const MOST_DIGITS: i32 = 6;

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

/// The number with three significant digits, without an exponent if the text stays short.
#[must_use]
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    match magnitude(value) {
        ..-7 | 9.. => format!("{value:.2e}"),
        magnitude => {
            let decimals = usize::try_from(2 - magnitude).unwrap_or_default();
            format!("{value:.decimals$}")
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

/// Decimals of a figure with an uncertainty: three significant digits, more if the uncertainty needs them.
fn decimals(value: f64, uncertainty: f64) -> usize {
    let magnitude = magnitude(value);
    let wanted = if uncertainty > 0.0 {
        decimals_of(uncertainty).max(2 - magnitude)
    } else {
        2 - magnitude
    };
    usize::try_from(wanted.min(MOST_DIGITS - 1 - magnitude)).unwrap_or_default()
}

/// A number rounded to match its uncertainty.
fn matched(value: f64, uncertainty: f64) -> String {
    match magnitude(value) {
        _ if value == 0.0 => number(value),
        ..-7 | 9.. => number(value),
        _ => format!("{value:.0$}", decimals(value, uncertainty)),
    }
}

/// A figure with half of its deciding interval, both with the same decimals: `0.00412±0.00020`. The uncertainty
/// shows at least one significant digit. A figure of unknown accuracy shows no uncertainty: `~0.00412`.
#[must_use]
pub fn figure(figure: &Figure) -> String {
    if figure.is_repeatability_only() {
        return format!("~{}", number(figure.value));
    }
    let (lower, upper) = figure.bounds();
    let half = (upper - lower) / 2.0;
    let value = matched(figure.value, half);
    if value.contains('e') {
        return format!("{value}±{half:.2e}");
    }
    if half <= 0.0 {
        return value;
    }
    // Zero has no significant digits: the uncertainty alone sets the decimals.
    let decimals = if figure.value == 0.0 {
        usize::try_from(decimals_of(half)).unwrap_or_default()
    } else {
        decimals(figure.value, half)
    };
    // Never 0: a smaller uncertainty is shown as 1 in the last digit.
    let last = 0.1_f64.powi(i32::try_from(decimals).unwrap_or_default());
    format!("{value}±{:.decimals$}", half.max(last))
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

/// Decimals of a number that stands without its uncertainty: as many digits as the uncertainty allows, two or three.
/// Negative decimals round to tens, hundreds and so on.
#[must_use]
pub fn decimals_within(value: f64, uncertainty: f64) -> i32 {
    let magnitude = magnitude(value);
    if uncertainty > 0.0 {
        decimals_of(uncertainty).clamp(1 - magnitude, 2 - magnitude)
    } else {
        2 - magnitude
    }
}

/// A number and its uncertainty with the digits that the uncertainty needs, and no more: `0.48±0.02`.
#[must_use]
pub fn brief(value: f64, uncertainty: f64) -> String {
    let magnitude = magnitude(value);
    let decimals = decimals_of(uncertainty).clamp(1 - magnitude, MOST_DIGITS - 1 - magnitude);
    // Never 0: a smaller uncertainty is shown as 1 in the last digit.
    let least = 10f64.powi(-decimals);
    format!(
        "{}±{}",
        with_decimals(value, decimals),
        with_decimals(uncertainty.max(least), decimals)
    )
}

/// A number rounded to [`decimals_within`] its uncertainty: `10800` for 10767 ± 419.
#[must_use]
pub fn rounded(value: f64, uncertainty: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    match magnitude(value) {
        ..-7 | 9.. => number(value),
        _ => with_decimals(value, decimals_within(value, uncertainty)),
    }
}

/// A number with so many decimals; negative decimals round to tens, hundreds and so on.
#[must_use]
pub fn with_decimals(value: f64, decimals: i32) -> String {
    if let Ok(decimals) = usize::try_from(decimals) {
        return format!("{value:.decimals$}");
    }
    let step = 10f64.powi(-decimals);
    format!("{:.0}", (value / step).round() * step)
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

/// A ratio with its deciding interval: `0.380 [0.360–0.400]`.
#[must_use]
pub fn ratio(ratio: &Figure) -> String {
    range((ratio.value, ratio.value), ratio.bounds())
}

/// The extremes of a ratio over all boards, with an interval that contains both of their intervals:
/// `0.342–0.371 [0.334–0.380]`.
#[must_use]
pub fn board_range(range_of_boards: &BoardRange) -> String {
    range(range_of_boards.values(), range_of_boards.bounds())
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

/// The extremes of a ratio over all boards: `0.342–0.371`.
#[must_use]
pub fn extremes(range_of_boards: &BoardRange) -> String {
    let [values, _] = in_digits(range_of_boards.values(), range_of_boards.bounds());
    values
}

/// The interval of one number, or of a range from the least to the most: `0.334–0.380`.
#[must_use]
pub fn interval(values: (f64, f64), bounds: (f64, f64)) -> String {
    let [_, interval] = in_digits(values, bounds);
    interval
}

/// One number, or a range from the least to the most, with the interval in brackets.
fn range(values: (f64, f64), bounds: (f64, f64)) -> String {
    let [values, interval] = in_digits(values, bounds);
    format!("{values} [{interval}]")
}

/// One number, or a range, and its interval.
fn in_digits((least, most): (f64, f64), (lower, upper): (f64, f64)) -> [String; 2] {
    // By the smaller of the two distances, because the interval must be visible on both sides.
    let half = (least - lower).min(upper - most);
    let [least, most, lower, upper] = [least, most, lower, upper].map(|value| matched(value, half));
    let values = if least == most {
        least
    } else {
        format!("{least}–{most}")
    };
    [values, format!("{lower}–{upper}")]
}

#[cfg(test)]
mod tests {
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
        assert_eq!(figure(&unknown), "~0.00412");
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
    }
}
