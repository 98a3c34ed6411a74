use super::*;

/// Points of a board with 2.7 W + 0.9 W per CPU and ±0.05 W of scatter.
fn points(count: u32, most_cpus: f64) -> Vec<CalibrationPoint> {
    (0..count)
        .map(|index| {
            let cpus = most_cpus * f64::from(index % 5) / 4.0;
            let scatter = if index % 2 == 0 { 0.05 } else { -0.05 };
            CalibrationPoint {
                cpus,
                watts: 2.7 + 0.9 * cpus + scatter,
            }
        })
        .collect()
}

fn sensor(share: f64, fixed_watts: f64) -> InstrumentUncertainty {
    InstrumentUncertainty { share, fixed_watts }
}

#[test]
fn the_line_and_its_uncertainty_follow_least_squares() {
    let fit = fit(&points(200, 4.0)).unwrap();
    assert!(
        (fit.idle_watts - 2.7).abs() < 2.0 * fit.idle_uncertainty,
        "{fit:?}"
    );
    assert!((fit.watts_per_cpu - 0.9).abs() < 2.0 * fit.slope_uncertainty);
    assert!((fit.residual_watts - 0.05).abs() < 0.002);
    // s/√Sxx with 200 points evenly on 0, 1, 2, 3, 4: Sxx = 400.
    assert!((fit.slope_uncertainty - fit.residual_watts / 20.0).abs() < 1e-9);
    // s·√(1/n + mean²/Sxx).
    let expected = fit.residual_watts * (1.0_f64 / 200.0 + 4.0 / 400.0).sqrt();
    assert!((fit.idle_uncertainty - expected).abs() < 1e-9);
}

#[test]
fn the_report_contains_values_for_the_chart() {
    let fit = fit(&points(200, 4.0)).unwrap();
    let report = fit.report(Some(sensor(0.01, 0.02)));
    let parts = |share: f64, watts: [f64; 3], of: f64| {
        let squares = watts.map(|it| (it / of).powi(2));
        (share.powi(2) + squares.iter().sum::<f64>()).sqrt()
    };
    let idle_parts = [0.02, fit.residual_watts, fit.idle_uncertainty];
    let idle = parts(0.01, idle_parts, fit.idle_watts);
    // The points cover 4 CPUs.
    let slope_parts = [0.0, fit.residual_watts / 4.0, fit.slope_uncertainty];
    let slope = parts(0.01, slope_parts, fit.watts_per_cpu);
    for part in [
        "source: {type: model}".to_owned(),
        format!("idleWatts: {:.4}", fit.idle_watts),
        format!("wattsPerCpu: {:.4}", fit.watts_per_cpu),
        format!("idleWattsRelativeUncertainty: {idle:.4}"),
        format!("wattsPerCpuRelativeUncertainty: {slope:.4}"),
    ] {
        assert!(report.contains(&part), "{part} is not in: {report}");
    }
    let unknown = fit.report(None);
    assert!(unknown.contains("# the accuracy of these watts is unknown"));
    assert!(!unknown.contains("RelativeUncertainty"), "{unknown}");
}

/// An offset is a large part of little power, and changes no slope.
#[test]
fn a_fixed_error_of_the_instrument_counts_at_the_idle_power_and_not_in_the_slope() {
    let frugal: Vec<_> = points(200, 4.0)
        .into_iter()
        .map(|point| CalibrationPoint {
            watts: point.watts - 2.2,
            ..point
        })
        .collect();
    let fit = fit(&frugal).unwrap();
    let uncertainty = |fixed_watts| fit.uncertainty(sensor(0.009, fixed_watts));
    // An INA219 with 10 mΩ at 0.5 W.
    let (exact, offset) = (uncertainty(0.0), uncertainty(0.058));
    let expected = exact.idle_watts.hypot(0.058 / fit.idle_watts);
    assert!((offset.idle_watts - expected).abs() < 1e-9, "{offset:?}");
    assert!(offset.idle_watts > 0.11, "{offset:?}");
    assert!((offset.watts_per_cpu - exact.watts_per_cpu).abs() < 1e-12);
}

#[test]
fn too_little_is_no_fit_and_the_error_says_what_to_do() {
    assert!(matches!(
        fit(&points(11, 4.0)),
        Err(CalibrateError::TooFew(11))
    ));
    let idle = fit(&points(200, 0.2)).unwrap_err().to_string();
    assert!(idle.contains("load all of its CPUs"), "{idle}");
}
