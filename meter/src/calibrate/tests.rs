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
    let report = fit.report(Some(0.01));
    let scatter = (fit.residual_watts / fit.mean_watts).hypot(0.01);
    let idle = scatter.hypot(fit.idle_uncertainty / fit.idle_watts);
    let slope = scatter.hypot(fit.slope_uncertainty / fit.watts_per_cpu);
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

#[test]
fn too_little_is_no_fit_and_the_error_says_what_to_do() {
    assert!(matches!(
        fit(&points(11, 4.0)),
        Err(CalibrateError::TooFew(11))
    ));
    let idle = fit(&points(200, 0.2)).unwrap_err().to_string();
    assert!(idle.contains("load all of its CPUs"), "{idle}");
}
