//! The course of an attempt agrees with the ledger, and shows nothing that no reading shows.

#![allow(
    clippy::float_cmp,
    reason = "ends of phases are the same numbers, not results of arithmetic"
)]

use proptest::prelude::*;

use super::properties::any_node;
use super::*;

fn course(lab: &Lab) -> Vec<TracePhase> {
    course_of(lab, Some((lab.measured, lab.idle_after)))
}

fn course_of(lab: &Lab, windows: Option<(Window, Window)>) -> Vec<TracePhase> {
    trace(&TraceReadings {
        readings: &lab.readings,
        idle_before: lab.idle_before,
        windows,
        candidate_pods: &lab.candidate_pods,
        database_pods: &lab.database_pods,
    })
}

fn phase(course: &[TracePhase], name: PhaseName) -> &TracePhase {
    course.iter().find(|it| it.phase == name).unwrap()
}

fn sum(values: Option<&Vec<Option<i64>>>) -> i64 {
    let values = values.unwrap().iter();
    values.map(|value| value.unwrap()).sum()
}

#[allow(clippy::cast_possible_truncation, reason = "a test's number")]
fn whole(value: f64, factor: f64) -> i64 {
    (value * factor).round() as i64
}

#[test]
fn quantities_are_all_lists_by_the_names_of_their_fields() {
    let values = |value| Some(vec![Some(value)]);
    let phase = TracePhase {
        phase: PhaseName::Window,
        start_unix_seconds: 0.0,
        end_unix_seconds: 1.0,
        points: 1,
        node_millijoules: values(1),
        node_cpu_microseconds: values(2),
        candidate_cpu_microseconds: values(3),
        database_cpu_microseconds: values(4),
        candidate_working_set_kibibytes: values(5),
        database_working_set_kibibytes: values(6),
        temperature_millicelsius: values(7),
        frequency_megahertz: values(8),
    };
    let object = serde_json::to_value(&phase).unwrap();
    let lists = object.as_object().unwrap().values();
    let lists = lists.filter(|value| value.is_array()).count();
    assert_eq!(phase.quantities().count(), lists);
    for (name, values) in phase.quantities() {
        assert_eq!(object[name], serde_json::json!(values), "{name}");
    }
}

fn assert_sums_are_totals(lab: &Lab) {
    let figures = lab.unchecked().unwrap();
    let course = course(lab);
    let window = phase(&course, PhaseName::Window);
    assert_eq!(
        sum(window.node_millijoules.as_ref()),
        whole(figures.node_joules, 1e3)
    );
    let cpu = figures.cpu.unwrap();
    assert_eq!(
        [
            sum(window.node_cpu_microseconds.as_ref()),
            sum(window.candidate_cpu_microseconds.as_ref()),
            sum(window.database_cpu_microseconds.as_ref()),
        ],
        [
            whole(cpu.node_seconds.unwrap(), 1e6),
            whole(cpu.candidate_seconds, 1e6),
            whole(cpu.database_seconds.unwrap(), 1e6),
        ]
    );
}

proptest! {
    #[test]
    fn sums_of_the_window_are_the_ledgers_totals(node in any_node()) {
        assert_sums_are_totals(&node.lab());
    }

    #[test]
    fn points_are_few_and_cover_the_attempt(node in any_node()) {
        let lab = node.lab();
        let course = course(&lab);
        prop_assert!(course.iter().map(|it| it.points).sum::<usize>() <= MOST_POINTS);
        prop_assert_eq!(course[0].start_unix_seconds, lab.idle_before.start_unix_seconds);
        prop_assert_eq!(course.last().unwrap().end_unix_seconds, lab.idle_after.end_unix_seconds);
        for pair in course.windows(2) {
            prop_assert_eq!(pair[0].end_unix_seconds, pair[1].start_unix_seconds);
        }
        for phase in &course {
            prop_assert_eq!(phase.node_millijoules.as_ref().unwrap().len(), phase.points);
        }
    }
}

#[test]
fn a_long_attempt_has_few_points_whose_sums_are_the_totals() {
    let lab = Lab::read_every(0.5);
    assert_sums_are_totals(&lab);
    let course = course(&lab);
    let points: usize = course.iter().map(|it| it.points).sum();
    assert!((60..=MOST_POINTS).contains(&points), "{points}");
    let bytes = serde_json::to_string(&course).unwrap().len();
    assert!(bytes < 6000, "{bytes} bytes");
    // 3 W idle, and 8 W under load.
    let milliwatts = |name| {
        let phase = phase(&course, name);
        sum(phase.node_millijoules.as_ref()) as f64
            / (phase.end_unix_seconds - phase.start_unix_seconds)
    };
    assert_near(milliwatts(PhaseName::IdleBefore), 3000.0);
    assert_near(milliwatts(PhaseName::Window), 8000.0);
}

#[test]
fn the_largest_working_set_is_the_ledgers() {
    let lab = Lab::read_every(0.5);
    let figures = lab.unchecked().unwrap();
    let course = course(&lab);
    let window = phase(&course, PhaseName::Window);
    let most = |values: &Option<Vec<Option<i64>>>| values.iter().flatten().flatten().max().copied();
    let whole = |bytes: Option<f64>| Some(whole(bytes.unwrap(), 1.0 / 1024.0));
    assert_eq!(
        most(&window.candidate_working_set_kibibytes),
        whole(figures.candidate_peak_working_set_bytes)
    );
    assert_eq!(
        most(&window.database_working_set_kibibytes),
        whole(figures.database_peak_working_set_bytes)
    );
}

#[test]
fn temperature_and_clock_are_means_and_absent_if_the_meter_reports_none() {
    let mut lab = Lab::read_every(0.5);
    let none = course(&lab);
    assert!(none.iter().all(|it| it.temperature_millicelsius.is_none()));
    assert!(none.iter().all(|it| it.frequency_megahertz.is_none()));
    lab.change(100.0, 320.0, |reading| {
        reading.temperature_celsius = Some(48.25);
        reading.frequency_hertz = Some(1.5e9);
    });
    let course = course(&lab);
    let window = phase(&course, PhaseName::Window);
    let all = |value| Some(vec![Some(value); window.points]);
    assert_eq!(window.temperature_millicelsius, all(48_250));
    assert_eq!(window.frequency_megahertz, all(1500));
}

/// Values of the points whose time overlaps with a span, and of all others.
fn split(phase: &TracePhase, values: &[Option<i64>], from: f64, to: f64) -> [Vec<Option<i64>>; 2] {
    let mut split = [Vec::new(), Vec::new()];
    for (point, value) in values.iter().enumerate() {
        let begin = phase.start_unix_seconds + point as f64 * phase.point_seconds();
        let overlaps = begin < T0 + to && begin + phase.point_seconds() > T0 + from;
        split[usize::from(!overlaps)].push(*value);
    }
    split
}

#[track_caller]
fn assert_unknown_only_within(lab: &Lab, from: f64, to: f64) {
    let course = course(lab);
    let window = phase(&course, PhaseName::Window);
    let values = window.candidate_cpu_microseconds.as_ref().unwrap();
    let [within, others] = split(window, values, from, to);
    assert!(
        !within.is_empty() && within.iter().all(Option::is_none),
        "{within:?}"
    );
    assert!(others.iter().all(Option::is_some), "{others:?}");
}

#[test]
fn a_counter_that_is_missing_or_falls_is_unknown_there_and_never_0() {
    let mut missing = Lab::read_every(0.5);
    missing.change(200.0, 201.0, |reading| {
        reading.pods.remove(CANDIDATE);
    });
    assert_unknown_only_within(&missing, 199.5, 201.5);
    let mut restarted = Lab::read_every(0.5);
    let before = truth(200.0, 0.5).pods.get(CANDIDATE).unwrap().cpu_seconds;
    restarted.change(200.0, 500.0, |reading| {
        let pod = reading.pods.get_mut(CANDIDATE).unwrap();
        pod.cpu_seconds = pod
            .cpu_seconds
            .zip(before)
            .map(|(now, then)| (now - then).max(0.0));
    });
    let course = course(&restarted);
    let window = phase(&course, PhaseName::Window);
    let values = window.candidate_cpu_microseconds.as_ref().unwrap();
    assert_eq!(values.iter().filter(|it| it.is_none()).count(), 1);
}

#[test]
fn nothing_is_interpolated_over_a_gap() {
    let mut lab = Lab::read_every(0.5);
    let gap = T0 + 200.0..T0 + 206.0;
    lab.readings
        .retain(|reading| !gap.contains(&reading.at_unix_seconds()));
    assert_unknown_only_within(&lab, 200.0, 205.5);
}

#[test]
fn an_attempt_that_ended_early_has_its_course_up_to_the_last_reading() {
    let mut lab = Lab::read_every(0.5);
    lab.readings
        .retain(|reading| reading.at_unix_seconds() < T0 + 150.0);
    let course = course_of(&lab, None);
    let names: Vec<_> = course.iter().map(|it| it.phase).collect();
    assert_eq!(names, [PhaseName::IdleBefore, PhaseName::Load]);
    let load = phase(&course, PhaseName::Load);
    assert!(load.end_unix_seconds < T0 + 150.0 && load.end_unix_seconds > T0 + 149.0);
    let values = load.node_millijoules.as_ref().unwrap();
    assert!(values.iter().all(Option::is_some));
}

#[test]
fn without_readings_of_the_attempt_there_is_no_course() {
    let mut lab = Lab::read_every(0.5);
    lab.readings
        .retain(|reading| reading.at_unix_seconds() < T0 - 0.6);
    assert_eq!(lab.readings.len(), 1);
    assert_eq!(course_of(&lab, None), []);
    assert_eq!(course(&lab), []);
    lab.readings.clear();
    assert_eq!(course_of(&lab, None), []);
}

/// Baselines and window in a wrong order: another clock.
#[test]
fn windows_in_a_wrong_order_still_have_few_points() {
    let lab = Lab::read_every(0.5);
    let course = course_of(&lab, Some((lab.idle_after, lab.measured)));
    assert!(course.iter().map(|it| it.points).sum::<usize>() <= MOST_POINTS);
}
