//! Numbers and names as people read them.

use std::cmp::Ordering;

use frugality_measure::significant;
use proptest::prelude::*;

use super::*;
use crate::api::{Expanded, Figure};

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
        let reported = figure(&Figure {
            value,
            lower: value - half,
            upper: value + half,
            expanded: None,
        });
        assert_eq!(reported, text);
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
    let reported = |value, lower, upper| {
        ratio(&Figure {
            value,
            lower,
            upper,
            expanded: None,
        })
    };
    assert_eq!(reported(0.342, 0.334, 0.351), "0.342 [0.334–0.351]");
    assert_eq!(
        reported(0.9998, 0.9996, 0.999_95),
        "0.99980 [0.99960–0.99995]"
    );
    assert_eq!(reported(0.01, 0.009_81, 0.010_2), "0.0100 [0.00981–0.0102]");
    // An end that is not 1 is not rounded to 1. A value within the interval may be.
    assert_eq!(reported(0.95, 0.9, 0.9996), "0.9500 [0.9000–0.9996]");
    assert_eq!(reported(0.9996, 0.95, 1.05), "1.00 [0.950–1.05]");
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
        let reported = span.beside(&[edge]);
        let (middle, ends) = reported.strip_suffix(']').unwrap().split_once(" [").unwrap();
        for ends in [ends, &span.interval_beside(&[edge])] {
            let (from, to) = ends.split_once('–').unwrap();
            prop_assert_eq!(side(from, edge), lower.total_cmp(&edge), "{}", reported);
            prop_assert_eq!(side(to, edge), upper.total_cmp(&edge), "{}", reported);
        }
        if lower > edge || upper < edge {
            prop_assert_eq!(side(middle, edge), value.total_cmp(&edge), "{}", reported);
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
        for reported in [ratio(&of), brief_ratio(&of)] {
            let (_, ends) = reported.strip_suffix(']').unwrap().split_once(" [").unwrap();
            let (from, to) = ends.split_once('–').unwrap();
            prop_assert_eq!(side(from, 1.0), lower.total_cmp(&1.0), "{}", reported);
            prop_assert_eq!(side(to, 1.0), upper.total_cmp(&1.0), "{}", reported);
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
