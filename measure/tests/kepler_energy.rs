//! Joules from the texts of a real Kepler, compared with the known truth.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::energy::{
    AttemptReadings, Ends, EnergyFigures, Limits, Void, Window, evaluate,
};
use frugality_measure::reading::{self, Provenance, Reading};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/kepler-v0.11.4");
const SERVER: &str = "bed27566-8352-495a-8672-08132c7957e6";
const INJECTOR: &str = "8bcd67cf-5338-4db6-a3e3-0512ae806712";

/// The truth at the time of a file's reading.
struct Truth {
    at_unix_seconds: f64,
    joules: f64,
    node_cpu_seconds: f64,
}

fn truth(file: &str) -> Truth {
    let all = std::fs::read_to_string(format!("{FOLDER}/truth.txt")).unwrap();
    let line = all
        .lines()
        .find(|line| line.starts_with(&format!("{file} ")))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.rsplit('=').next().unwrap().parse::<f64>().unwrap();
    Truth {
        at_unix_seconds: number(words[1]),
        joules: number(words[2]) / 1e6,
        node_cpu_seconds: number(words[3]) / 1e9,
    }
}

fn read(file: &str) -> Reading {
    let text = std::fs::read_to_string(format!("{FOLDER}/{file}.prom")).unwrap();
    reading::read(&text, "pi-1", None, truth(file).at_unix_seconds).unwrap()
}

/// Files 1 to 4. The first second of the first file is the baseline before, and the last second of the last
/// file is the baseline after. The time in between is measured.
fn measure(files: &[&str], measured: Window) -> Result<EnergyFigures, Void> {
    measure_beside(&[INJECTOR], files, measured)
}

/// As [`measure`], with these pods as the injector's.
fn measure_beside(
    injector_pods: &[&str],
    files: &[&str],
    measured: Window,
) -> Result<EnergyFigures, Void> {
    let readings: Vec<Reading> = files.iter().map(|file| read(file)).collect();
    let start = truth(files[0]).at_unix_seconds;
    let end = truth(files[files.len() - 1]).at_unix_seconds;
    evaluate(&AttemptReadings {
        readings: &readings,
        idle_before: Window {
            start_unix_seconds: start,
            end_unix_seconds: start + 0.001,
        },
        measured,
        idle_after: Window {
            start_unix_seconds: end - 0.001,
            end_unix_seconds: end,
        },
        candidate_pods: &BTreeSet::from([SERVER.to_owned()]),
        workloads: &BTreeMap::new(),
        database_pods: &BTreeSet::new(),
        restarted_pods: &BTreeSet::new(),
        injector_pods: &injector_pods.iter().map(ToString::to_string).collect(),
        tail: None,
        ends: Ends::default(),
        units: 500_000.0,
        limits: Limits {
            max_reading_gap_seconds: 20.0,
            min_window_seconds: 1.0,
            min_intervals: 0.0,
            ..Limits::new(12.0)
        },
    })
}

/// The whole time except the ends, which the baselines take.
fn between(first: &str, last: &str) -> Window {
    Window {
        start_unix_seconds: truth(first).at_unix_seconds + 0.001,
        end_unix_seconds: truth(last).at_unix_seconds - 0.001,
    }
}

fn reason(files: &[&str]) -> (&'static str, String) {
    let void = measure(files, between(files[0], files[files.len() - 1])).unwrap_err();
    (void.reason(), void.to_string())
}

#[track_caller]
fn assert_within(value: f64, expected: f64, share: f64) {
    assert!(
        (value / expected - 1.0).abs() < share,
        "{value} is not {expected} within {share}"
    );
}

const ORDINARY: [&str; 4] = ["1-idle", "2-under-load", "3-under-load", "4-job-ended"];

#[test]
fn node_energy_between_readings_is_the_truth_within_a_hundredth() {
    for pair in ORDINARY.windows(2) {
        let (from, to) = (truth(pair[0]), truth(pair[1]));
        let figures = measure(&ORDINARY, between(pair[0], pair[1])).unwrap();
        assert_within(figures.node_joules, to.joules - from.joules, 0.01);
        // The zone received 2 W plus 3 J per second of CPU time.
        let seconds = to.at_unix_seconds - from.at_unix_seconds;
        let modelled = 2.0 * seconds + 3.0 * (to.node_cpu_seconds - from.node_cpu_seconds);
        assert_within(figures.node_joules, modelled, 0.01);
    }
}

#[test]
fn an_end_between_two_readings_takes_its_share() {
    let (from, to) = (truth("2-under-load"), truth("3-under-load"));
    let half = Window {
        start_unix_seconds: from.at_unix_seconds,
        end_unix_seconds: f64::midpoint(from.at_unix_seconds, to.at_unix_seconds),
    };
    let figures = measure(&ORDINARY, half).unwrap();
    assert_within(figures.node_joules, (to.joules - from.joules) / 2.0, 1e-6);
}

#[test]
fn keplers_energy_for_the_server_is_itemised() {
    let figures = measure(&ORDINARY, between("2-under-load", "3-under-load")).unwrap();
    let attributed = figures.attributed.unwrap();
    assert_within(attributed.candidate_joules, 50.838_035 - 21.586_827, 0.001);
    let active = 97.967_195 - 42.140_227;
    let system = active - attributed.candidate_joules;
    assert_within(attributed.system_joules.unwrap(), system, 0.001);
    assert_within(
        attributed.candidate_joules_per_request.unwrap(),
        attributed.candidate_joules / 5e5,
        1e-9,
    );
    // Kepler reports neither CPU time nor memory of pods.
    assert_eq!(
        (figures.cpu, figures.candidate_peak_working_set_bytes),
        (None, None)
    );
}

#[test]
fn without_own_timestamps_kepler_is_uncertain_by_half_a_scrape() {
    let figures = measure(&ORDINARY, between("2-under-load", "3-under-load")).unwrap();
    let longest = truth("4-job-ended").at_unix_seconds - truth("3-under-load").at_unix_seconds;
    assert_within(figures.timestamp_uncertainty_seconds, longest / 2.0, 1e-9);
    // Each end of the window is late by at most the time since the previous scrape. In a window between two
    // readings the power is unknown: this uncertainty is as large as the energy.
    let at = |index: usize| truth(ORDINARY[index]).at_unix_seconds;
    let late = ((at(1) - at(0)) / 2.0).hypot((at(2) - at(1)) / 2.0);
    assert_within(
        figures.node_joules_relative_uncertainty,
        (late / 3.0_f64.sqrt() / 10.034).hypot(1.0),
        0.001,
    );
    assert_eq!(figures.provenance, Provenance::Metered);
    assert_eq!(figures.meter.name, "kepler");
}

#[test]
fn a_second_read_of_the_same_snapshot_is_not_a_second_reading() {
    let files = [
        ORDINARY[0],
        ORDINARY[1],
        ORDINARY[2],
        ORDINARY[3],
        "5-job-ended-second-read",
    ];
    let void = measure(&files, between("2-under-load", "3-under-load")).unwrap_err();
    // The last snapshot is file 4's. No reading covers the 23 ms after it.
    assert_eq!(void.reason(), "ReadingsInterrupted");
    assert!(void.to_string().contains("0.023 s"), "{void}");
}

#[test]
fn a_meter_that_stood_still_reset_its_pods() {
    let (reason, message) = reason(&[
        "4-job-ended",
        "5-job-ended-second-read",
        "6-meter-stood-still",
    ]);
    assert_eq!(reason, "CounterDecreased");
    assert!(
        message.contains("energy of pod default/echo-6bcccd4f44-gcdzn"),
        "{message}"
    );
    assert!(
        message.contains("fell from 79.373684 to 0.000000"),
        "{message}"
    );
}

#[test]
fn a_meter_that_goes_on_after_a_standstill_is_whole_again() {
    let files = ["6-meter-stood-still", "7-after-standstill"];
    let figures = measure(&files, between(files[0], files[1])).unwrap();
    let joules = truth(files[1]).joules - truth(files[0]).joules;
    assert_within(figures.node_joules, joules, 0.01);
    // The server counts from 0 again, and its share is the rise alone.
    assert_within(figures.attributed.unwrap().candidate_joules, 0.017_85, 0.01);
}

#[test]
fn an_injector_on_the_measured_node_is_a_neighbour_unless_it_is_known() {
    // The injector is absent in the first baseline and in the second.
    let whole = between(ORDINARY[0], ORDINARY[2]);
    assert!(measure(&ORDINARY, whole).is_ok());
    let void = measure_beside(&[], &ORDINARY, whole).unwrap_err();
    assert_eq!(void.reason(), "NeighbourActive");
    assert!(void.to_string().contains(INJECTOR), "{void}");
}

#[test]
fn a_meter_that_went_back_gave_more_than_the_node_can_draw() {
    let (reason, message) = reason(&["7-after-standstill", "8-meter-went-back"]);
    assert_eq!(reason, "EnergyBeyondNode");
    assert!(
        message.contains("active node energy rose by 5513.665 J in 6.024 s"),
        "{message}"
    );
}

#[test]
fn a_fake_meter_gives_no_figure() {
    let text = std::fs::read_to_string(format!("{FOLDER}/9-fake-meter.prom")).unwrap();
    let readings: Vec<Reading> = (0..60)
        .map(|second| reading::read(&text, "pi-1", None, 1000.0 + f64::from(second)).unwrap())
        .collect();
    let window = |start, end| Window {
        start_unix_seconds: start,
        end_unix_seconds: end,
    };
    let void = evaluate(&AttemptReadings {
        readings: &readings,
        idle_before: window(1000.0, 1010.0),
        measured: window(1015.0, 1040.0),
        idle_after: window(1045.0, 1055.0),
        candidate_pods: &BTreeSet::from([SERVER.to_owned()]),
        workloads: &BTreeMap::new(),
        database_pods: &BTreeSet::new(),
        restarted_pods: &BTreeSet::new(),
        injector_pods: &BTreeSet::from([INJECTOR.to_owned()]),
        tail: None,
        ends: Ends::default(),
        units: 1.0,
        limits: Limits::new(12.0),
    })
    .unwrap_err();
    assert_eq!(void.reason(), "MeterFake");
    assert!(
        void.to_string()
            .contains("/sys/class/powercap/intel-rapl/energy_package"),
        "{void}"
    );
}
