//! Disturbed blocks, distinguished from random differences.

use frugality_measure::statistics::outliers::outliers;

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

#[test]
fn a_block_during_which_the_machine_compiled_is_named() {
    // Requests per second and joules per request of a candidate against itself. During the fifth block the
    // machine compiled programs.
    let rates = [28_412.0, 28_655.0, 28_530.0, 28_301.0, 15_064.0];
    let joules = [
        0.000_170_4,
        0.000_169_1,
        0.000_170_0,
        0.000_171_1,
        0.000_255,
    ];
    for (series, times) in [(rates, 0.53), (joules, 1.5)] {
        let found = outliers(&logarithms(&series));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].index, 4);
        assert!((found[0].distance.exp() - times).abs() < 0.01, "{found:?}");
        assert!(found[0].score > found[0].limit);
        assert_eq!(outliers(&logarithms(&series[..4])), []);
    }
}

#[test]
fn one_in_a_hundred_undisturbed_series_names_a_block() {
    let mut state: u64 = 20_261_124;
    let mut uniform = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut normal =
        || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    for n in [5, 6, 7, 9, 10, 13, 14, 17, 20, 25, 40, 50] {
        let named = (0..5000)
            .filter(|_| {
                let series: Vec<f64> = (0..n).map(|_| normal()).collect();
                !outliers(&series).is_empty()
            })
            .count();
        // The expected number is at most 50. More than 80 come by chance once in 30,000 times.
        assert!((10..=80).contains(&named), "{named} of 5000 series of {n}");
    }
}

#[test]
fn a_series_without_spread_has_no_outlier() {
    assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.0, 2.0]), []);
    assert_eq!(outliers(&[1.0, 2.0, f64::NAN, 1.5, 1.2, 900.0]), []);
    assert_eq!(outliers(&[1.0, 1.1, 0.9, 500.0]), []);
    let both = outliers(&[1.0, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 9.0, -20.0, 1.01]);
    assert_eq!(both.iter().map(|it| it.index).collect::<Vec<_>>(), [8, 7]);
}
