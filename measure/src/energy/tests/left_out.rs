//! Readings that were left out of a long window still count in every check and figure.

use super::*;
use crate::reading::Steady;

/// A load of an hour, read every half second.
fn long() -> Lab {
    let mut lab = Lab::read_every(0.5);
    let end = 3700.0;
    lab.readings = (0..7_604)
        .map(|index| -1.0 + f64::from(index) * 0.5)
        .map(|at| {
            // The load is on from 80 s to 3,720 s.
            let mut reading = truth(at, 0.5);
            let load_seconds = (at - 80.0).clamp(0.0, end + 20.0 - 80.0);
            let idle_joules = 1000.0 + 3.0 * at;
            let active_joules = 500.0 + 5.0 * load_seconds;
            reading.node_joules = idle_joules + active_joules;
            reading.active_joules = Some(active_joules);
            reading.node_cpu_seconds = Some(active_joules / 2.0);
            // A meter with a slow wave of temperature.
            reading.temperature_celsius = Some(50.0 + (at / 70.0).sin());
            reading.frequency_hertz = Some(1.5e9 + 1e6 * (at / 9.0).cos().round());
            reading.source_age_seconds = Some(0.3);
            for (uid, share) in [(CANDIDATE, 0.6), (DATABASE, 0.3), (NEIGHBOUR, 0.02)] {
                let pod = reading.pods.get_mut(uid).unwrap();
                pod.joules = Some(active_joules * share);
                pod.cpu_seconds = Some(active_joules * share / 2.0);
                pod.working_set_bytes = Some(1e6 + 300.0 * at + 1e5 * (at / 3.0).sin());
            }
            reading
        })
        .collect();
    lab.measured = window(100.0, end);
    lab.idle_after = window(end + 30.0, end + 90.0);
    lab
}

/// As the operator keeps the readings.
fn thin(lab: &mut Lab) {
    let steady = Steady {
        from_unix_seconds: T0 + 160.0,
        to_unix_seconds: T0 + 3600.0,
        groups: [&lab.candidate_pods, &lab.database_pods]
            .map(|pods| Arc::new(pods.clone()))
            .to_vec(),
    };
    let before = lab.readings.len();
    steady.thin(&mut lab.readings);
    assert!(lab.readings.len() < before / 5, "{}", lab.readings.len());
}

/// The outcome with all readings, and with those that the operator keeps.
fn both(change: impl Fn(&mut Lab)) -> [Result<EnergyFigures, Void>; 2] {
    let mut lab = long();
    change(&mut lab);
    let with_all = lab.evaluate();
    thin(&mut lab);
    [with_all, lab.evaluate()]
}

#[test]
fn figures_are_the_same() {
    let [with_all, with_kept] = both(|_| ()).map(Result::unwrap);
    let near = |one: Option<f64>, other: Option<f64>| assert_near_some(one, other.unwrap());
    near(
        with_all.candidate_working_set_growth_bytes_per_second,
        with_kept.candidate_working_set_growth_bytes_per_second,
    );
    near(
        with_all.conditions.mean_hertz,
        with_kept.conditions.mean_hertz,
    );
    assert_near(
        with_all.node_joules_relative_uncertainty * 1e6,
        with_kept.node_joules_relative_uncertainty * 1e6,
    );
    // Only rounding differs.
    let without_rounded = |figures: EnergyFigures| EnergyFigures {
        candidate_working_set_growth_bytes_per_second: None,
        node_joules_relative_uncertainty: 0.0,
        net_detection_limit_joules: 0.0,
        conditions: Conditions {
            mean_hertz: None,
            ..figures.conditions
        },
        ..figures
    };
    assert_eq!(without_rounded(with_all), without_rounded(with_kept));
}

#[test]
fn every_check_sees_what_happened_between_the_readings_that_are_kept() {
    type Change = fn(&mut Lab);
    let cases: [(&str, Change); 13] = [
        ("ReadingsInterrupted", |lab| {
            lab.readings
                .retain(|it| !(2000.0..2006.0).contains(&(it.at_unix_seconds() - T0)));
        }),
        ("CounterDecreased", |lab| {
            lab.change(2000.0, 2000.5, |it| it.node_joules -= 50.0);
        }),
        ("CounterDecreased", |lab| {
            lab.change(2000.0, 2000.5, |it| {
                it.pods.get_mut(CANDIDATE).unwrap().cpu_seconds = Some(1.0);
            });
        }),
        ("EnergyBeyondNode", |lab| {
            lab.change(2000.0, 9000.0, |it| it.node_joules += 100.0);
        }),
        // The same, if no limit of the power is known.
        ("EnergyBeyondNode", |lab| {
            lab.limits = Limits::new(None);
            lab.change(-10.0, 9000.0, |it| it.max_watts = None);
            lab.change(2000.0, 9000.0, |it| it.node_joules += 100.0);
        }),
        ("PodReplaced", |lab| {
            lab.change(2000.0, 2000.5, |it| {
                it.pods.remove(DATABASE);
            });
        }),
        ("MeterStale", |lab| {
            lab.change(2000.0, 2000.5, |it| it.source_age_seconds = Some(6.0));
        }),
        ("MeterStale", |lab| {
            lab.change(2000.0, 2006.0, |it| {
                it.node_joules = 17_000.0;
                it.idle_joules = None;
                it.active_joules = None;
            });
            lab.change(2006.0, 9000.0, |it| it.node_joules += 100.0);
        }),
        ("MeterRestarted", |lab| {
            lab.change(2000.0, 9000.0, |it| it.meter_start_unix_seconds = Some(T0));
        }),
        ("MeterChanged", |lab| {
            lab.change(2000.0, 2000.5, |it| it.zone = "package".to_owned());
        }),
        ("MeterFake", |lab| {
            lab.change(2000.0, 2000.5, |it| {
                Arc::make_mut(&mut it.meter).provenance = Provenance::Fake;
            });
        }),
        ("MeterSaturated", |lab| {
            lab.change(-10.0, 9000.0, |it| it.saturated_readings = Some(0.0));
            lab.change(2000.0, 9000.0, |it| it.saturated_readings = Some(1.0));
        }),
        ("NodeChanged", |lab| {
            lab.change(-10.0, 9000.0, |it| {
                Arc::make_mut(&mut it.platform).governor = Some("ondemand".to_owned());
            });
            lab.change(2000.0, 2000.5, |it| {
                Arc::make_mut(&mut it.platform).governor = Some("powersave".to_owned());
            });
        }),
    ];
    for (index, (reason, change)) in cases.into_iter().enumerate() {
        for (kept, outcome) in ["all", "kept"].into_iter().zip(both(change)) {
            let seen = outcome.map_err(|void| void.reason());
            assert_eq!(seen.err(), Some(reason), "case {index}, {kept}");
        }
    }
}

#[test]
fn a_gap_between_readings_that_are_kept_has_its_own_times() {
    let voids = both(|lab| {
        lab.readings
            .retain(|it| !(2000.0..2006.0).contains(&(it.at_unix_seconds() - T0)));
    });
    let [with_all, with_kept] = voids.map(|outcome| outcome.unwrap_err().to_string());
    assert_eq!(with_all, with_kept);
    assert!(with_kept.contains("none covers the 6.500 s"), "{with_kept}");
}

#[test]
fn the_course_is_that_of_all_readings() {
    let lab = long();
    let mut kept = long();
    thin(&mut kept);
    let [with_all, with_kept] = [&lab, &kept].map(|lab| {
        trace(&TraceReadings {
            readings: &lab.readings,
            idle_before: lab.idle_before,
            windows: Some((lab.measured, lab.idle_after)),
            candidate_pods: &lab.candidate_pods,
            database_pods: &lab.database_pods,
        })
    });
    assert_eq!(with_all.len(), with_kept.len());
    for (one, other) in with_all.iter().zip(&with_kept) {
        assert_eq!(one.points, other.points);
        assert_eq!(one.node_millijoules, other.node_millijoules);
        assert_eq!(
            one.candidate_cpu_microseconds,
            other.candidate_cpu_microseconds
        );
        let working_sets = |phase: &TracePhase| {
            let values = phase.candidate_working_set_kibibytes.clone().unwrap();
            values.into_iter().flatten().max()
        };
        assert_eq!(working_sets(one), working_sets(other));
    }
}

#[test]
fn memory_of_pods_that_no_summary_knows_is_unknown() {
    let mut lab = long();
    thin(&mut lab);
    lab.candidate_pods = pods(&[CANDIDATE, NEIGHBOUR]);
    let figures = lab.evaluate().unwrap();
    assert_eq!(figures.candidate_peak_working_set_bytes, None);
    assert_eq!(figures.candidate_working_set_growth_bytes_per_second, None);
    assert!(figures.database_peak_working_set_bytes.is_some());
}

#[test]
fn a_window_that_ends_where_readings_were_left_out_is_void() {
    let mut lab = long();
    thin(&mut lab);
    lab.measured.end_unix_seconds = T0 + 3000.0;
    let void = lab.evaluate().unwrap_err();
    assert!(matches!(void, Void::ReadingsInterrupted { .. }), "{void}");
}
