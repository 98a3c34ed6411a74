//! Numbers as people read them.

use std::net::Ipv6Addr;

use frugality_measure::reading::Provenance;

use crate::api::{DecidingFigure, Figure};

/// The address of a port in a URL: an IPv6 address has brackets there (RFC 3986, 3.2.2).
#[must_use]
pub fn authority(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{host}:{port}"),
    }
}

/// A text of at most so many bytes of UTF-8, cut between two characters and then marked.
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

/// Three significant digits, without an exponent where that stays short.
#[must_use]
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    // Of the rounded number: 9.9999 has the digits of 10.
    let magnitude: i32 = format!("{value:.2e}")
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or_default();
    match magnitude {
        ..-7 | 9.. => format!("{value:.2e}"),
        _ => {
            let decimals = usize::try_from(2 - magnitude).unwrap_or_default();
            format!("{value:.decimals$}")
        }
    }
}

/// A figure with half its interval, the one that decides, rounded alike: `0.00412±0.00020`.
#[must_use]
pub fn figure(figure: &Figure) -> String {
    let (lower, upper) = figure.bounds();
    let half = (upper - lower) / 2.0;
    let value = number(figure.value);
    let decimals = value.split_once('.').map_or(0, |(_, digits)| digits.len());
    if value.contains('e') {
        return format!("{value}±{half:.2e}");
    }
    format!("{value}±{half:.decimals$}")
}

/// Joules never stand without which joule they are and where the power came from; invented ones
/// not at all.
#[must_use]
pub fn joules(amount: &str, figure: DecidingFigure, provenance: Provenance) -> Option<String> {
    match provenance {
        Provenance::Metered => Some(format!("{amount} {}", figure.word())),
        Provenance::Modelled => Some(format!("≈{amount} J {} modelled", figure.word())),
        Provenance::Fake => None,
    }
}

/// Where something is; of one point only, that goes without saying.
#[must_use]
pub fn at(point: &str, is_one_of_several: bool) -> String {
    if is_one_of_several {
        format!(" at {point}")
    } else {
        String::new()
    }
}

/// A ratio with its interval, the one that decides: `0.38 [0.36–0.40]`.
#[must_use]
pub fn ratio(ratio: &Figure) -> String {
    let (lower, upper) = ratio.bounds();
    format!(
        "{} [{}–{}]",
        number(ratio.value),
        number(lower),
        number(upper)
    )
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
            }),
            ..f
        };
        assert_eq!(figure(&with_meter), "0.00412±0.00040");
    }
}
