//! Conclusions from intervals, compared with the results of SciPy and statsmodels
//! (tests/reference/decisions.py) and with published tables.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::statistics::{
    IntervalEstimate,
    control::{is_below_floor, noise_floor},
    equivalence::is_equivalent,
    geometric_mean,
    multiplicity::holm,
    position::position_effect,
    sequential::nominal_level,
    uncertainty::expanded,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    sequential: Vec<Sequential>,
    equivalence: Vec<Equivalence>,
    holm: Vec<Claims>,
    positions: Vec<Positions>,
    expanded: Vec<Expanded>,
}

#[derive(Deserialize)]
struct Sequential {
    looks: Vec<usize>,
    overall: f64,
    level: f64,
    tolerance: f64,
}

#[derive(Deserialize)]
struct Equivalence {
    pairs: Vec<(f64, f64)>,
    within: f64,
    level: f64,
    shown: bool,
}

#[derive(Deserialize)]
struct Claims {
    p: Vec<f64>,
    level: f64,
    shown: Vec<bool>,
}

#[derive(Deserialize)]
struct Positions {
    blocks: Vec<Vec<(usize, f64)>>,
    f: f64,
    p: f64,
    between: usize,
    within: usize,
    ratio: f64,
}

#[derive(Deserialize)]
struct Expanded {
    values: Vec<f64>,
    meter: f64,
    confidence: f64,
    lower: f64,
    upper: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("reference/decisions.json")).unwrap()
}

#[track_caller]
fn assert_close(ours: f64, theirs: f64, relative: f64) {
    let error = (ours - theirs).abs();
    assert!(error <= relative * theirs.abs(), "{ours} is not {theirs}");
}

#[test]
fn levels_of_looks_agree_with_simulated_runs_and_with_the_multivariate_normal() {
    let cases = reference().sequential;
    assert!(cases.len() > 30);
    for case in cases {
        let level = nominal_level(&case.looks, case.overall).unwrap();
        let error = (level / case.level - 1.0).abs();
        assert!(
            error < case.tolerance,
            "{:?} at {}: {level} is not {}",
            case.looks,
            case.overall,
            case.level
        );
    }
}

#[test]
fn levels_are_the_published_ones() {
    // The three looks of the documentation.
    let three = nominal_level(&[10, 15, 20], 0.05).unwrap();
    assert!((three - 0.0234).abs() < 0.000_05, "{three}");
    // C. Jennison and B. W. Turnbull, Group Sequential Methods (2000), table 2.1, as levels: equal distances
    // and a known spread. Many blocks come close to a known spread.
    for (overall, levels) in [
        (0.05, [0.0294, 0.0221, 0.0182, 0.0158]),
        (0.01, [0.0056, 0.0041, 0.0033, 0.0028]),
    ] {
        for (count, level) in (2..).zip(levels) {
            let looks: Vec<usize> = (1..=count).map(|look| 2000 * look).collect();
            let found = nominal_level(&looks, overall).unwrap();
            assert!((found - level).abs() <= 0.000_06, "{looks:?}: {found}");
        }
    }
}

#[test]
fn one_look_costs_nothing_and_invalid_arguments_have_no_level() {
    assert_eq!(nominal_level(&[10], 0.05), Some(0.05));
    for looks in [&[][..], &[1, 5], &[10, 10], &[10, 5]] {
        assert_eq!(nominal_level(looks, 0.05), None, "{looks:?}");
    }
    for overall in [0.0, 1.0, -0.1, f64::NAN] {
        assert_eq!(nominal_level(&[5, 10], overall), None, "{overall}");
    }
}

#[test]
fn equivalence_agrees_with_statsmodels() {
    let cases = reference().equivalence;
    let shown = cases.iter().filter(|case| case.shown).count();
    assert!(shown > 20 && cases.len() - shown > 20);
    for case in cases {
        assert_eq!(
            is_equivalent(&case.pairs, case.within, case.level),
            Some(case.shown),
            "{:?}",
            case.pairs
        );
    }
}

#[test]
fn equivalence_needs_a_bound_and_a_level() {
    let pairs = [(1.0, 1.0), (1.01, 1.0), (0.99, 1.0)];
    assert_eq!(is_equivalent(&pairs, 0.1, 0.05), Some(true));
    for within in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(is_equivalent(&pairs, within, 0.05), None, "{within}");
    }
    for level in [0.0, 0.5, 1.0, f64::NAN] {
        assert_eq!(is_equivalent(&pairs, 0.1, level), None, "{level}");
    }
    assert_eq!(is_equivalent(&pairs[..1], 0.1, 0.05), None);
}

#[test]
fn claims_agree_with_statsmodels() {
    let cases = reference().holm;
    assert!(cases.iter().any(|case| case.shown.contains(&true)));
    for case in cases {
        let shown = holm(
            case.p.len(),
            case.level,
            |share| share,
            |claim, level| case.p[claim] <= *level,
        );
        assert_eq!(shown, case.shown, "{:?} at {}", case.p, case.level);
    }
    assert_eq!(holm(0, 0.05, |share| share, |_, _| true), [] as [bool; 0]);
}

#[test]
fn places_agree_with_nested_models_of_statsmodels() {
    let cases = reference().positions;
    assert!(cases.len() > 30);
    for case in cases {
        let found = position_effect(&case.blocks).unwrap();
        assert_eq!(found.degrees_of_freedom, (case.between, case.within));
        assert_close(found.f, case.f, 1e-6);
        assert_close(found.p, case.p, 1e-6);
        assert_close(found.ratio, case.ratio, 1e-9);
    }
}

#[test]
fn impossible_tests_of_places_give_none() {
    let block = |first: f64, second: f64| vec![(0, first), (1, second)];
    let turned = |first: f64, second: f64| vec![(1, first), (0, second)];
    let usual = [
        block(1.0, 2.0),
        turned(2.1, 1.1),
        block(1.05, 2.0),
        turned(2.2, 1.0),
    ];
    assert!(position_effect(&usual).is_some());
    let always_first = [block(1.0, 2.0), block(1.1, 2.0), block(1.0, 2.2)];
    assert_eq!(position_effect(&always_first), None);
    let exact = [block(1.0, 2.0), turned(2.0, 1.0), block(1.0, 2.0)];
    assert_eq!(position_effect(&exact), None);
    assert_eq!(position_effect(&usual[..2]), None);
    assert_eq!(position_effect(&[]), None);
    for bad in [
        vec![(0, 1.0)],
        vec![(0, 1.0), (0, 2.0)],
        block(0.0, 1.0),
        block(1.0, f64::NAN),
    ] {
        let mut blocks = usual.to_vec();
        blocks[1] = bad;
        assert_eq!(position_effect(&blocks), None);
    }
}

#[test]
fn both_types_of_uncertainty_add_as_squares() {
    for case in reference().expanded {
        let estimate = geometric_mean(&case.values, case.confidence).unwrap();
        let bounds = expanded(&estimate, case.meter).unwrap();
        assert_close(bounds.lower, case.lower, 1e-10);
        assert_close(bounds.upper, case.upper, 1e-10);
    }
}

#[test]
fn an_exact_meter_adds_nothing_and_an_invalid_uncertainty_gives_no_bounds() {
    let estimate = geometric_mean(&[1.0, 1.1, 1.2], 0.95).unwrap();
    let bounds = expanded(&estimate, 0.0).unwrap();
    assert_close(bounds.lower, estimate.lower, 1e-12);
    assert_close(bounds.upper, estimate.upper, 1e-12);
    for meter in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(expanded(&estimate, meter), None, "{meter}");
    }
}

#[test]
fn the_noise_floor_is_the_end_farther_from_one() {
    let control = |lower: f64, upper: f64| IntervalEstimate {
        value: f64::midpoint(lower, upper),
        lower,
        upper,
        trials: 5,
    };
    assert_close(
        noise_floor(&control(0.9, 1.05)).unwrap(),
        -0.9_f64.ln(),
        1e-12,
    );
    assert_close(
        noise_floor(&control(0.99, 1.05)).unwrap(),
        1.05_f64.ln(),
        1e-12,
    );
    // A control that differs from itself also has a floor: its far end.
    assert_close(
        noise_floor(&control(1.01, 1.03)).unwrap(),
        1.03_f64.ln(),
        1e-12,
    );
    assert_eq!(noise_floor(&control(0.0, 1.0)), None);
    assert_eq!(noise_floor(&control(-1.0, 1.0)), None);
    let floor = 1.05_f64.ln();
    for (limit, below) in [
        (1.0, true),
        (1.049, true),
        (1.051, false),
        (0.953, true),
        (0.952, false),
    ] {
        assert_eq!(is_below_floor(limit, floor), below, "{limit}");
    }
}
