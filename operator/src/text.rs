//! Numbers as text for people.

use std::net::Ipv6Addr;

use frugality_measure::reading::Provenance;

use crate::api::{BoardRange, BoardVerdict, Comparison, DecidingFigure, Figure};

/// Text in place of a winner if the winner depends on the board.
pub const DEPENDS_ON_BOARD: &str = "depends on the board";

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
fn number_beside(value: f64, uncertainty: f64) -> String {
    match magnitude(value) {
        _ if value == 0.0 => number(value),
        ..-7 | 9.. => number(value),
        _ => format!("{value:.0$}", decimals(value, uncertainty)),
    }
}

/// A figure with half of its deciding interval, both with the same decimals: `0.00412±0.00020`. The uncertainty
/// shows at least one significant digit. A figure of unknown accuracy shows no uncertainty: `≈0.00412`.
#[must_use]
pub fn figure(figure: &Figure) -> String {
    if figure.is_repeatability_only() {
        return format!("≈{}", number(figure.value));
    }
    let (lower, upper) = figure.bounds();
    let half = (upper - lower) / 2.0;
    let value = number_beside(figure.value, half);
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

/// Joules as text, always with the kind of joule and the source of the power; `None` if the power is invented.
#[must_use]
pub fn joules(amount: &str, figure: DecidingFigure, provenance: Provenance) -> Option<String> {
    match provenance {
        Provenance::Metered => Some(format!("{amount} {}", figure.word())),
        Provenance::Modelled => Some(format!(
            "≈{} J {} modelled",
            amount.trim_start_matches('≈'),
            figure.word()
        )),
        Provenance::Fake => None,
    }
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
    range((ratio.value, ratio.value), ratio.bounds(), "")
}

/// The extremes of a ratio over all boards, with an interval that contains both of their intervals:
/// `0.342–0.371 [0.334–0.380]`.
#[must_use]
pub fn board_range(range_of_boards: &BoardRange) -> String {
    range(range_of_boards.values(), range_of_boards.bounds(), "")
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

/// One number, or a range from the least to the most, with an interval and a remark in its brackets.
#[must_use]
pub fn range((least, most): (f64, f64), (lower, upper): (f64, f64), remark: &str) -> String {
    // By the smaller of the two distances, because the interval must be visible on both sides.
    let half = (least - lower).min(upper - most);
    let [least, most, lower, upper] =
        [least, most, lower, upper].map(|value| number_beside(value, half));
    if least == most {
        format!("{least} [{lower}–{upper}{remark}]")
    } else {
        format!("{least}–{most} [{lower}–{upper}{remark}]")
    }
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
        assert_eq!(figure(&unknown), "≈0.00412");
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
