//! A virtual node. Its power is known at every moment of an attempt. Its meter shows text, like a real meter.

use std::fmt::Write as _;

use frugality_measure::energy::Window;

use crate::{experiment::MEASURED_NODE, random::Random};

/// Power is constant over steps of this length, in seconds.
const STEP_SECONDS: f64 = 0.05;
/// CPU time per joule of load, in seconds.
const CPU_SECONDS_PER_JOULE: f64 = 0.2;
/// CPU time per second that the idle node itself uses.
const IDLE_CPU_SHARE: f64 = 0.02;

/// The phases of an attempt, in Unix seconds of the meter's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeline {
    /// The start of the attempt.
    pub start: f64,
    /// The idle baseline before the load.
    pub idle_before: Window,
    /// The load before the measured window.
    pub warm_up: Window,
    /// The measured window.
    pub measured: Window,
    /// The load after the measured window.
    pub tail: Window,
    /// The end of the attempt.
    pub end: f64,
}

impl Timeline {
    /// The phases of an attempt that begins at `start`.
    #[must_use]
    pub fn new(
        start: f64,
        window_seconds: f64,
        idle_seconds: f64,
        gap_seconds: f64,
        tail_seconds: f64,
        settle_seconds: f64,
    ) -> Self {
        let window = |start_unix_seconds: f64, seconds: f64| Window {
            start_unix_seconds,
            end_unix_seconds: start_unix_seconds + seconds,
        };
        let idle_before = window(start + 12.0, idle_seconds);
        let warm_up = window(idle_before.end_unix_seconds + 3.0, 5.0);
        let measured = window(warm_up.end_unix_seconds + gap_seconds, window_seconds);
        let tail = window(measured.end_unix_seconds + gap_seconds, tail_seconds);
        Self {
            start,
            idle_before,
            warm_up,
            measured,
            tail,
            end: tail.end_unix_seconds + settle_seconds + idle_seconds + 12.0,
        }
    }

    /// Whether the load is on.
    fn is_loaded(&self, at: f64) -> bool {
        [self.warm_up, self.measured, self.tail]
            .iter()
            .any(|load| at >= load.start_unix_seconds && at < load.end_unix_seconds)
    }
}

/// The node's power and its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Idle power, in watts.
    pub idle_watts: f64,
    /// Mean power that the load adds, in watts.
    pub load_watts: f64,
    /// Relative standard deviation of the load's power.
    pub load_noise: f64,
    /// Correlation time of the load's deviations, in seconds.
    pub noise_seconds: f64,
}

/// A node over one attempt.
#[derive(Clone, Debug)]
pub struct Node {
    start: f64,
    /// Joules of idle power and of load, from the start to the end of each step.
    sums: Vec<(f64, f64)>,
}

impl Node {
    /// Draws the node's power at random. Idle power has a noise of 1 %. `power` sets the load's noise.
    #[must_use]
    pub fn new(timeline: &Timeline, power: Power, random: &mut Random) -> Self {
        let remembered = (-STEP_SECONDS / power.noise_seconds).exp();
        let fresh = (1.0 - remembered * remembered).sqrt();
        let mut deviation = random.normal();
        let mut sums = vec![(0.0, 0.0)];
        let (mut idle, mut load) = (0.0, 0.0);
        let mut at = timeline.start;
        while at < timeline.end {
            deviation = remembered * deviation + fresh * random.normal();
            let loaded_seconds = loaded_seconds(timeline, at);
            idle += power.idle_watts * (1.0 + 0.01 * random.normal()) * STEP_SECONDS;
            load +=
                power.load_watts * (1.0 + power.load_noise * deviation).max(0.0) * loaded_seconds;
            sums.push((idle, load));
            at += STEP_SECONDS;
        }
        Self {
            start: timeline.start,
            sums,
        }
    }

    /// Joules of idle power and of load since the start of the attempt.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of steps that is at least 0"
    )]
    pub fn joules_until(&self, at: f64) -> (f64, f64) {
        let steps = ((at - self.start) / STEP_SECONDS).max(0.0);
        let whole = steps as usize;
        let last = self.sums.last().copied().unwrap_or_default();
        let (from, to) = (
            self.sums.get(whole).copied().unwrap_or(last),
            self.sums.get(whole + 1).copied().unwrap_or(last),
        );
        let part = steps - steps.floor();
        (
            from.0 + (to.0 - from.0) * part,
            from.1 + (to.1 - from.1) * part,
        )
    }

    /// The energy over a window, in joules.
    #[must_use]
    pub fn joules(&self, window: Window) -> f64 {
        let until = |at| {
            let (idle, load) = self.joules_until(at);
            idle + load
        };
        until(window.end_unix_seconds) - until(window.start_unix_seconds)
    }
}

fn loaded_seconds(timeline: &Timeline, from: f64) -> f64 {
    // Parts of a step, because the gap between two loads (some hundredths of a second) is about one step long.
    const PARTS: u32 = 10;
    let part = STEP_SECONDS / f64::from(PARTS);
    let loaded = (0..PARTS).filter(|n| timeline.is_loaded(from + (f64::from(*n) + 0.5) * part));
    loaded.count() as f64 * part
}

/// The kind of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The node meter. It reports the times of its readings, its interval and the node's maximum power.
    NodeMeter,
    /// A meter with the node meter's format, but without the times of its readings and its interval.
    Untimed,
    /// Unmodified Kepler. A scrape makes it read its counters, unless its last reading is at most half a second old.
    Kepler,
}

/// A meter with its errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// The kind of the meter.
    pub kind: Kind,
    /// Time between two of its readings, in seconds.
    pub interval_seconds: f64,
    /// Joules that it shows per true joule.
    pub gain: f64,
    /// The relative standard uncertainty that it states for its energy, if it states one.
    pub relative_uncertainty: Option<f64>,
    /// Step of its counter, in joules.
    pub resolution_joules: f64,
    /// Value of its counter at the start of the attempt, in joules.
    pub begun_joules: f64,
}

/// The pods on the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Pods {
    /// UIDs of the candidate's pods, each with its share of the load's energy.
    pub candidate: Vec<(String, f64)>,
    /// UIDs of the database's pods, each with its share of the load's energy.
    pub database: Vec<(String, f64)>,
    /// The number of other pods. Together they have a twentieth of the load's energy.
    pub neighbours: usize,
}

impl Pods {
    /// Pods in these numbers. Together the candidate's have 60 % and the database's 30 % of the load's energy.
    #[must_use]
    pub fn new(candidate: usize, database: usize, neighbours: usize) -> Self {
        let uids = |role: &str, number: usize, share: f64| {
            (1..=number)
                .map(|n| (format!("{role}-uid-{n}"), share / number as f64))
                .collect()
        };
        Self {
            candidate: uids("candidate", candidate, 0.6),
            database: uids("database", database, 0.3),
            neighbours,
        }
    }

    fn all(&self) -> Vec<(String, f64)> {
        let neighbours = (1..=self.neighbours)
            .map(|n| (format!("neighbour-uid-{n}"), 0.05 / self.neighbours as f64));
        let measured = self.candidate.iter().chain(&self.database).cloned();
        measured.chain(neighbours).collect()
    }
}

/// The state of a meter at a scrape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Time of the reading, in Unix seconds.
    pub observed_at: f64,
    /// Start time of the meter, in Unix seconds.
    pub meter_start: f64,
    /// Joules that a fault adds to the node's counter.
    pub extra_joules: f64,
    /// The meter's version.
    pub version: &'static str,
    /// Provenance: the source of the node's power.
    pub provenance: &'static str,
    /// Whether other pods have replaced the candidate's first pods.
    pub replaced_pods: bool,
}

impl Meter {
    /// The time of the reading that a scrape at `at` shows. `before` is the time of the reading that the previous scrape
    /// showed.
    #[must_use]
    pub fn observed_at(&self, at: f64, before: f64) -> f64 {
        const KEPLER_STALENESS_SECONDS: f64 = 0.5;
        match self.kind {
            Kind::NodeMeter | Kind::Untimed => {
                (at / self.interval_seconds).floor() * self.interval_seconds
            }
            Kind::Kepler if at - before > KEPLER_STALENESS_SECONDS => at,
            Kind::Kepler => before,
        }
    }

    /// The text of a scrape.
    #[must_use]
    pub fn text(&self, node: &Node, pods: &Pods, shown: &Shown) -> String {
        let mut page = Page {
            text: String::with_capacity(2048),
            zone: if self.kind == Kind::Kepler {
                "package"
            } else {
                "psys"
            },
        };
        let (idle, load) = node.joules_until(shown.observed_at);
        let step = |joules: f64| {
            (joules * self.gain / self.resolution_joules).floor() * self.resolution_joules
        };
        let (idle, load) = (idle + self.begun_joules, load + self.begun_joules / 2.0);
        let path = match self.kind {
            Kind::Kepler => {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    page.text,
                    "kepler_build_info{{version=\"{}\"}} 1",
                    shown.version
                );
                "/sys/class/powercap/intel-rapl:0"
            }
            Kind::NodeMeter | Kind::Untimed => {
                self.about_itself(&mut page, shown);
                "/sys/class/hwmon/hwmon0"
            }
        };
        let total = step(idle + load) + shown.extra_joules;
        page.node("kepler_node_cpu_joules_total", path, total);
        page.node(
            "kepler_node_cpu_active_joules_total",
            path,
            step(load) + shown.extra_joules,
        );
        page.node("kepler_node_cpu_idle_joules_total", path, step(idle));
        let cpu_seconds = |joules: f64| joules * CPU_SECONDS_PER_JOULE;
        if self.kind != Kind::Kepler {
            let own = IDLE_CPU_SHARE * (shown.observed_at - crate::experiment::T0);
            page.bare(
                "frugality_node_cpu_seconds_total",
                cpu_seconds(load) + own.max(0.0),
            );
        }
        for (uid, share) in pods.all() {
            let uid = if shown.replaced_pods && uid.starts_with("candidate") {
                uid.replace("candidate", "successor")
            } else {
                uid
            };
            // A pod's counter starts with the pod, so it excludes the energy before the attempt.
            let joules = share * (load - self.begun_joules / 2.0);
            let seconds = (self.kind != Kind::Kepler).then(|| cpu_seconds(joules));
            page.pod(&uid, joules * self.gain, seconds);
        }
        page.text
    }

    fn about_itself(&self, page: &mut Page, shown: &Shown) {
        let zone = page.zone;
        let _ = writeln!(
            page.text,
            "frugality_meter_info{{node_name=\"{MEASURED_NODE}\",board=\"\",provenance=\"{}\",source=\"hwmon\",version=\"{}\"}} 1",
            shown.provenance, shown.version
        );
        let _ = writeln!(
            page.text,
            "frugality_meter_max_watts{{node_name=\"{MEASURED_NODE}\",zone=\"{zone}\"}} 25"
        );
        page.bare("frugality_meter_start_time_seconds", shown.meter_start);
        if self.kind == Kind::NodeMeter {
            page.bare("frugality_meter_interval_seconds", self.interval_seconds);
            page.zoned(
                "frugality_meter_reading_timestamp_seconds",
                shown.observed_at,
            );
        }
        page.zoned(
            "frugality_meter_energy_resolution_joules",
            self.resolution_joules,
        );
        if let Some(share) = self.relative_uncertainty {
            page.zoned("frugality_meter_energy_relative_uncertainty", share);
        }
    }
}

/// An unfinished text. Writing to a String cannot fail.
struct Page {
    text: String,
    zone: &'static str,
}

impl Page {
    fn bare(&mut self, name: &str, value: f64) {
        let _ = writeln!(self.text, "{name}{{node_name=\"{MEASURED_NODE}\"}} {value}");
    }

    fn zoned(&mut self, name: &str, value: f64) {
        let zone = self.zone;
        let _ = writeln!(
            self.text,
            "{name}{{node_name=\"{MEASURED_NODE}\",zone=\"{zone}\"}} {value}"
        );
    }

    fn node(&mut self, name: &str, path: &str, joules: f64) {
        let zone = self.zone;
        let _ = writeln!(
            self.text,
            "{name}{{node_name=\"{MEASURED_NODE}\",path=\"{path}\",zone=\"{zone}\"}} {joules}"
        );
    }

    fn pod(&mut self, uid: &str, joules: f64, cpu_seconds: Option<f64>) {
        let zone = self.zone;
        let labels = format!(
            "node_name=\"{MEASURED_NODE}\",pod_id=\"{uid}\",pod_name=\"{uid}\",pod_namespace=\"accuracy\""
        );
        let _ = writeln!(
            self.text,
            "kepler_pod_cpu_joules_total{{{labels},state=\"running\",zone=\"{zone}\"}} {joules}"
        );
        if let Some(seconds) = cpu_seconds {
            let _ = writeln!(
                self.text,
                "frugality_pod_cpu_seconds_total{{{labels}}} {seconds}"
            );
            let _ = writeln!(
                self.text,
                "frugality_pod_memory_working_set_bytes{{{labels}}} 20000000"
            );
        }
    }
}
