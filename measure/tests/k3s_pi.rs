//! The checks on plausible nodes: a quiet k3s Raspberry Pi must always give figures, a noisy one the right
//! reason.
//!
//! The node is simulated: four CPUs, 2.7 W at rest and 0.9 W per busy CPU with 1 % of noise, read twice per
//! second. k3s at rest works in bursts at random phases: k3s itself some 0.15 of a CPU, kubelet's
//! housekeeping every 10 s, a scrape by the metrics server every 15 s, and its other pods.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some thousand requests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use frugality_measure::attempt::{Assessment, Attempt, Windows, assess, windows};
use frugality_measure::energy::{Limits, Window};
use frugality_measure::figures::LoadSpan;
use frugality_measure::fortio::{Amount, FortioResult};
use frugality_measure::latency::Histogram;
use frugality_measure::load::LoadResult;
use frugality_measure::reading::{MeterIdentity, PodReading, Provenance, Reading, Steady};
use frugality_measure::report::{ClockOffset, InjectionReport, REPORT_VERSION};
use frugality_measure::void::Void;
use serde_json::Value;

const T0: f64 = 1_795_236_900.0;
const STEP_SECONDS: f64 = 0.1;
const READ_EVERY: usize = 5;
const IDLE_WATTS: f64 = 2.7;
const WATTS_PER_CPU: f64 = 0.9;
const CPUS: f64 = 4.0;

/// Pseudo-random numbers, uniform from 0 to 1.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Periodic work: a part of a CPU for some time.
#[derive(Clone, Copy)]
struct Burst {
    pod: Option<&'static str>,
    every_seconds: f64,
    seconds: f64,
    cpus: f64,
}

const fn burst(pod: Option<&'static str>, every_seconds: f64, seconds: f64, cpus: f64) -> Burst {
    Burst {
        pod,
        every_seconds,
        seconds,
        cpus,
    }
}

/// k3s at rest: some 0.25 of a CPU in total.
const K3S: [Burst; 8] = [
    burst(None, 1.0, 0.2, 0.4),
    burst(None, 10.0, 0.5, 0.8),
    burst(None, 15.0, 0.8, 0.6),
    burst(Some("metrics-server"), 15.0, 0.4, 0.5),
    burst(Some("coredns"), 10.0, 0.1, 0.3),
    burst(Some("traefik"), 10.0, 0.2, 0.4),
    burst(Some("cloudnative-pg"), 30.0, 0.5, 0.6),
    burst(Some("frugality-meter"), 0.5, 0.1, 0.1),
];

/// One attempt on one node.
#[derive(Clone, Copy)]
struct Scene {
    window_seconds: f64,
    baseline_seconds: f64,
    /// CPU use of the server and of the database under load.
    load_cpus: [f64; 2],
    /// CPU use outside the pods per CPU of load: packets and interrupts.
    packets: f64,
    trouble: Trouble,
}

/// The fault of a noisy node.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    /// Another pod works throughout the window.
    Neighbour,
    /// A host process works throughout the window.
    HostProcess,
    /// A host process begins in the middle of the window and ends with it.
    HalfWay,
    /// A process begins with the load and continues after it.
    Stays,
    /// The injector's clock is wrong by three seconds.
    WrongClock,
    /// The supply is weak under load.
    WeakSupply,
    /// The board is still too hot before the load.
    HotBefore,
    /// The board gets warm under load, throttles, and draws more afterwards.
    OwnHeat,
}

struct Times {
    idle_before: Window,
    load: Window,
    measured: Window,
    end: f64,
}

impl Scene {
    fn times(&self) -> Times {
        let window = |start: f64, seconds: f64| Window {
            start_unix_seconds: T0 + start,
            end_unix_seconds: T0 + start + seconds,
        };
        let warm_up = 8.0 + self.baseline_seconds;
        let measured = warm_up + 5.0;
        let load_end = measured + self.window_seconds + 3.0;
        Times {
            idle_before: window(3.0, self.baseline_seconds),
            load: window(warm_up, load_end - warm_up),
            measured: window(measured, self.window_seconds),
            end: T0 + load_end + 3.0 + self.baseline_seconds + 6.0,
        }
    }

    /// Additional work at a time, in CPUs, by pod.
    fn trouble(&self, times: &Times, at: f64) -> (Option<&'static str>, f64) {
        let in_window = within(times.measured, at);
        let middle = f64::midpoint(
            times.measured.start_unix_seconds,
            times.measured.end_unix_seconds,
        );
        match self.trouble {
            Trouble::Neighbour if in_window => (Some("backup"), 0.5),
            Trouble::HostProcess if in_window => (None, 2.5),
            Trouble::HalfWay if in_window && at > middle => (None, 1.2),
            Trouble::Stays if at > times.load.start_unix_seconds => (None, 1.0),
            _ => (None, 0.0),
        }
    }

    fn readings(&self, seed: u64) -> Vec<Reading> {
        let times = self.times();
        let mut chance = Chance(seed);
        let phases: Vec<f64> = K3S
            .iter()
            .map(|burst| chance.next() * burst.every_seconds)
            .collect();
        let mut meter = Meter::default();
        let mut readings = Vec::new();
        let mut at = T0;
        let mut steps = 0;
        while at < times.end {
            if steps % READ_EVERY == 0 {
                readings.push(meter.reading(at));
            }
            let mut pods: BTreeMap<&str, f64> =
                BTreeMap::from([("server", 0.0), ("database", 0.0)]);
            let mut system = 0.0;
            let mut use_of = |pod: Option<&'static str>, cpus: f64| match pod {
                Some(pod) => *pods.entry(pod).or_default() += cpus,
                None => system += cpus,
            };
            for (burst, phase) in K3S.iter().zip(&phases) {
                let is_on = (at - T0 + phase) % burst.every_seconds < burst.seconds;
                use_of(burst.pod, if is_on { burst.cpus } else { 0.0 });
            }
            // The database is active every second, also at rest.
            use_of(Some("database"), 0.01);
            if within(times.load, at) {
                let level = 0.9 + 0.2 * chance.next();
                for (pod, cpus) in ["server", "database"].into_iter().zip(self.load_cpus) {
                    use_of(Some(pod), cpus * level);
                    use_of(None, cpus * level * self.packets);
                }
            }
            let (pod, cpus) = self.trouble(&times, at);
            use_of(pod, cpus);
            meter.step(&pods, system, self.states(&times, at), &mut chance);
            at += STEP_SECONDS;
            steps += 1;
        }
        readings
    }

    /// The state that the board's firmware reports at a time, and the board's temperature.
    fn states(&self, times: &Times, at: f64) -> (Option<&'static str>, f64) {
        let loaded = within(times.load, at);
        match self.trouble {
            Trouble::WeakSupply if loaded => (Some("under_voltage"), 55.0),
            Trouble::HotBefore if at < times.load.start_unix_seconds => {
                (Some("soft_temperature_limit"), 75.0)
            }
            Trouble::OwnHeat if at > times.load.start_unix_seconds + 10.0 && loaded => {
                (Some("soft_temperature_limit"), 78.0)
            }
            Trouble::OwnHeat if at > times.load.end_unix_seconds => (None, 70.0),
            _ => (None, 48.0),
        }
    }

    fn report(&self) -> InjectionReport {
        let times = self.times();
        let wrong = if self.trouble == Trouble::WrongClock {
            3.0
        } else {
            0.0
        };
        let offset_seconds = 0.25;
        let own = |at: f64| at - offset_seconds + wrong;
        let span = |start: f64, end: f64| LoadSpan {
            start_unix_seconds: own(start),
            duration_seconds: end - start,
            requests: (1000.0 * (end - start)).round() as u64,
            errors: 0,
        };
        let measured = times.measured;
        let clock = Some(ClockOffset {
            offset_seconds,
            uncertainty_seconds: 0.002,
        });
        let latency = |count: u64| Histogram {
            count,
            min_seconds: 0.001,
            max_seconds: 0.05,
            sum_seconds: count as f64 * 0.004 * 0.97,
            standard_deviation_seconds: 0.001,
            buckets: Vec::new(),
            percentiles: Vec::new(),
        };
        let requests = (1000.0 * self.window_seconds).round() as u64;
        InjectionReport {
            version: REPORT_VERSION,
            measured: LoadResult::Fortio(FortioResult {
                version: "1.68.2".into(),
                url: "http://server:8080/".into(),
                labels: String::new(),
                start_unix_seconds: own(measured.start_unix_seconds),
                duration_seconds: self.window_seconds,
                requested: Amount::DurationSeconds(self.window_seconds),
                requested_rate: None,
                uniform: false,
                skips_late: false,
                actual_rate: 1000.0,
                threads: 4,
                latency: latency(requests),
                error_latency: latency(0),
                codes: BTreeMap::from([(200, requests)]),
                sockets: 4,
                response_sizes: None,
            }),
            histogram_dropped: false,
            asked_warm_up_seconds: 5.0,
            asked_tail_seconds: 3.0,
            warm_up: Some(span(
                times.load.start_unix_seconds,
                measured.start_unix_seconds,
            )),
            tail: Some(span(measured.end_unix_seconds, times.load.end_unix_seconds)),
            gap_before_measured_seconds: Some(0.12),
            gap_after_measured_seconds: Some(0.12),
            interrupted: None,
            clock,
            clock_after: clock,
            course: None,
            slices: None,
            cpu: None,
        }
    }

    fn void(&self, seed: u64) -> Option<Void> {
        self.assess(&self.readings(seed)).err()
    }

    fn assess(&self, readings: &[Reading]) -> Result<Assessment, Void> {
        let report = self.report();
        let times = self.times();
        let found: Windows = windows(&report, 3.0, self.baseline_seconds).unwrap();
        let pods = |uid: &str| BTreeSet::from([uid.to_owned()]);
        assess(&Attempt {
            report: &report,
            windows: &found,
            idle_before: times.idle_before,
            readings,
            candidate_pods: &pods("server"),
            workloads: &BTreeMap::new(),
            database_pods: &pods("database"),
            restarted_pods: &BTreeSet::new(),
            injector_pods: &BTreeSet::new(),
            expected_status: &[200],
            limits: Limits::new(12.0),
            ramp_up_seconds: 0.0,
        })
    }

    /// The number of void attempts of [`ATTEMPTS`], by reason.
    fn voids(&self) -> BTreeMap<&'static str, u32> {
        let mut counts = BTreeMap::new();
        for seed in 1..=ATTEMPTS {
            if let Some(void) = self.void(u64::from(seed)) {
                *counts.entry(void.reason()).or_default() += 1;
            }
        }
        counts
    }
}

const ATTEMPTS: u32 = 10;

fn within(window: Window, at: f64) -> bool {
    (window.start_unix_seconds..window.end_unix_seconds).contains(&at)
}

/// A meter that shares power by Kepler's formula.
#[derive(Default)]
struct Meter {
    node_joules: f64,
    active_joules: f64,
    idle_joules: f64,
    node_cpu_seconds: f64,
    pods: BTreeMap<&'static str, (f64, f64)>,
    throttled: BTreeMap<String, f64>,
    celsius: f64,
}

impl Meter {
    fn step(
        &mut self,
        pods: &BTreeMap<&'static str, f64>,
        system: f64,
        (state, celsius): (Option<&'static str>, f64),
        chance: &mut Chance,
    ) {
        let wanted = system + pods.values().sum::<f64>();
        let squeezed = (CPUS / wanted).min(1.0);
        let cpus = wanted * squeezed;
        // A board that is 20 K warmer draws a little more.
        let leaked = 0.004 * IDLE_WATTS * (celsius - 48.0);
        let noise = 1.0 + 0.02 * (chance.next() - 0.5);
        let joules = (IDLE_WATTS + leaked + WATTS_PER_CPU * cpus) * noise * STEP_SECONDS;
        let active = joules * cpus / CPUS;
        self.node_joules += joules;
        self.active_joules += active;
        self.idle_joules += joules - active;
        self.node_cpu_seconds += cpus * STEP_SECONDS;
        for (pod, used) in pods {
            let used = used * squeezed;
            let (joules, seconds) = self.pods.entry(pod).or_default();
            *joules += if cpus > 0.0 {
                active * used / cpus
            } else {
                0.0
            };
            *seconds += used * STEP_SECONDS;
        }
        for cause in ["under_voltage", "soft_temperature_limit"] {
            *self.throttled.entry(cause.to_owned()).or_default() += if state == Some(cause) {
                STEP_SECONDS
            } else {
                0.0
            };
        }
        self.celsius = celsius;
    }

    fn reading(&self, at: f64) -> Reading {
        Reading {
            scraped_at_unix_seconds: at + 0.1,
            meter_unix_seconds: Some(at),
            meter: Arc::new(MeterIdentity {
                name: "frugality-meter".into(),
                version: "0.1.0".into(),
                source: "hwmon".into(),
                configuration: None,
                board: None,
                provenance: Provenance::Metered,
                model: None,
            }),
            meter_start_unix_seconds: Some(T0 - 100.0),
            interval_seconds: Some(0.5),
            max_watts: None,
            zone: "psys".into(),
            node_joules: self.node_joules,
            active_joules: Some(self.active_joules),
            idle_joules: Some(self.idle_joules),
            node_cpu_seconds: Some(self.node_cpu_seconds),
            platform: Arc::default(),
            throttled_seconds: Arc::new(self.throttled.clone()),
            temperature_celsius: Some(self.celsius),
            frequency_hertz: Some(1.5e9),
            relative_uncertainty: None,
            resolution_joules: None,
            processors_busy_seconds: None,
            processors_interrupt_seconds: None,
            processors_stolen_seconds: None,
            source_age_seconds: None,
            saturated_readings: None,
            left_out: None,
            pods: self
                .pods
                .iter()
                .map(|(uid, (joules, seconds))| PodReading {
                    joules: Some(*joules),
                    cpu_seconds: Some(*seconds),
                    working_set_bytes: Some(1e7 + 4096.0 * (2.0 * joules).round()),
                    ..PodReading::of(uid, "any", uid)
                })
                .collect(),
        }
    }
}

/// The default and the shortest window and baselines. A database under full load, a server alone that answers
/// from memory, and a fixed rate that leaves the board almost idle.
fn scenes(trouble: Trouble) -> Vec<(String, Scene)> {
    let mut scenes = Vec::new();
    for (window_seconds, baseline_seconds) in [(60.0, 15.0), (20.0, 5.0)] {
        for (name, load_cpus, packets) in [
            ("full load", [1.4, 1.6], 0.15),
            ("echo", [1.0, 0.0], 0.6),
            ("low rate", [0.12, 0.15], 0.3),
        ] {
            let scene = Scene {
                window_seconds,
                baseline_seconds,
                load_cpus,
                packets,
                trouble,
            };
            scenes.push((format!("{name}, {window_seconds} s"), scene));
        }
    }
    scenes
}

#[test]
fn a_quiet_pi_is_never_void() {
    for (name, scene) in scenes(Trouble::None) {
        assert_eq!(scene.voids(), BTreeMap::new(), "{name}, of {ATTEMPTS}");
    }
}

#[test]
fn a_candidate_that_heats_its_board_is_never_void() {
    for (name, scene) in scenes(Trouble::OwnHeat) {
        assert_eq!(scene.voids(), BTreeMap::new(), "{name}, of {ATTEMPTS}");
    }
}

#[test]
fn a_noisy_pi_is_void_for_the_right_reason() {
    let cases: [(Trouble, &[&str]); 5] = [
        (Trouble::Neighbour, &["NeighbourActive"]),
        (Trouble::WeakSupply, &["UnderVoltage"]),
        (Trouble::HotBefore, &["NodeThrottled"]),
        // With much work for packets, the sum may also exceed the limit.
        (Trouble::HalfWay, &["HalfWindowDrift", "NeighbourActive"]),
        (Trouble::Stays, &["BaselineDrift", "NeighbourActive"]),
    ];
    for (trouble, reasons) in cases {
        for (name, scene) in scenes(trouble) {
            let voids = scene.voids();
            println!("{trouble:?}, {name}: {voids:?} of {ATTEMPTS}");
            let right: u32 = reasons.iter().filter_map(|reason| voids.get(reason)).sum();
            assert_eq!(right, ATTEMPTS, "{trouble:?}, {name}: {voids:?}");
        }
    }
}

#[test]
fn a_host_process_is_also_detected_on_a_fully_used_node() {
    for (name, scene) in scenes(Trouble::HostProcess) {
        let voids = scene.voids();
        println!("HostProcess, {name}: {voids:?} of {ATTEMPTS}");
        let expected = BTreeMap::from([("NeighbourActive", ATTEMPTS)]);
        assert_eq!(voids, expected, "{name}");
    }
}

#[test]
fn a_wrong_clock_is_detected_if_load_and_rest_differ() {
    for (name, scene) in scenes(Trouble::WrongClock) {
        let voids = scene.voids();
        println!("WrongClock, {name}: {voids:?} of {ATTEMPTS}");
        assert_eq!(voids, BTreeMap::from([("LoadNotSeen", ATTEMPTS)]), "{name}");
    }
}

/// The readings as the operator keeps them: thinned again and again while the load is on.
fn thinned(scene: &Scene, readings: Vec<Reading>) -> Vec<Reading> {
    let load = scene.times().load;
    let mut kept = Vec::new();
    for reading in readings {
        let now = reading.at_unix_seconds();
        kept.push(reading);
        if now < load.end_unix_seconds && kept.len() % 100 == 0 {
            let steady = Steady {
                from_unix_seconds: load.start_unix_seconds + 60.0,
                to_unix_seconds: now - 60.0,
                groups: ["server", "database"]
                    .map(|uid| Arc::new(BTreeSet::from([uid.to_owned()])))
                    .to_vec(),
            };
            steady.thin(&mut kept);
        }
    }
    kept
}

/// Whether two JSON values are equal, numbers within `share` of each other.
fn agree(one: &Value, other: &Value, share: f64) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= share * one.abs().max(other.abs())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| agree(a, b, share))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, a)| other.get(key).is_some_and(|b| agree(a, b, share)))
        }
        _ => one == other,
    }
}

#[test]
fn readings_that_a_long_window_does_without_change_no_figure_and_no_check() {
    for trouble in [
        Trouble::None,
        Trouble::Neighbour,
        Trouble::HostProcess,
        Trouble::HalfWay,
        Trouble::Stays,
        Trouble::WrongClock,
        Trouble::WeakSupply,
        Trouble::HotBefore,
        Trouble::OwnHeat,
    ] {
        let scene = Scene {
            window_seconds: 3600.0,
            baseline_seconds: 15.0,
            load_cpus: [1.4, 1.6],
            packets: 0.15,
            trouble,
        };
        let all = scene.readings(1);
        let kept = thinned(&scene, all.clone());
        assert!(
            kept.len() < all.len() / 5,
            "{} of {}",
            kept.len(),
            all.len()
        );
        match (scene.assess(&all), scene.assess(&kept)) {
            (Ok(with_all), Ok(with_kept)) => {
                let json = |of: &Assessment| serde_json::to_value(&of.energy).unwrap();
                let (with_all, with_kept) = (json(&with_all), json(&with_kept));
                assert!(
                    agree(&with_all, &with_kept, 1e-9),
                    "{trouble:?}: {with_all:#} {with_kept:#}"
                );
            }
            (with_all, with_kept) => {
                let reason = |of: Result<Assessment, Void>| of.err().map(|void| void.reason());
                assert_eq!(reason(with_all), reason(with_kept), "{trouble:?}");
            }
        }
    }
}
