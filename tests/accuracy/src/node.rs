//! A virtual node: its power over an attempt is known at every moment, and what its meter shows of it
//! is text, as a real one's.

use std::fmt::Write as _;

use frugality_measure::energy::Window;

use crate::{experiment::MEASURED_NODE, random::Random};

/// Power is constant over steps of this length, in seconds.
const STEP_SECONDS: f64 = 0.05;
/// CPU time for each joule of load, in seconds.
const CPU_SECONDS_PER_JOULE: f64 = 0.2;
/// What the idle node's own work takes of its CPUs.
const IDLE_CPU_SHARE: f64 = 0.02;

/// When an attempt does what, in seconds of the meter's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeline {
    /// The first moment.
    pub start: f64,
    /// The idle baseline before the load.
    pub idle_before: Window,
    /// The load before the measured window.
    pub warm_up: Window,
    /// The measured window.
    pub measured: Window,
    /// The load after it.
    pub tail: Window,
    /// The last moment.
    pub end: f64,
}

impl Timeline {
    /// An attempt that begins at `start`.
    #[must_use]
    pub fn new(start: f64, window_seconds: f64, idle_seconds: f64, gap_seconds: f64) -> Self {
        let window = |start_unix_seconds: f64, seconds: f64| Window {
            start_unix_seconds,
            end_unix_seconds: start_unix_seconds + seconds,
        };
        let idle_before = window(start + 12.0, idle_seconds);
        let warm_up = window(idle_before.end_unix_seconds + 3.0, 5.0);
        let measured = window(warm_up.end_unix_seconds + gap_seconds, window_seconds);
        let tail = window(measured.end_unix_seconds + gap_seconds, 3.0);
        Self {
            start,
            idle_before,
            warm_up,
            measured,
            tail,
            end: tail.end_unix_seconds + 3.0 + idle_seconds + 12.0,
        }
    }

    /// Whether the load is on.
    fn is_loaded(&self, at: f64) -> bool {
        [self.warm_up, self.measured, self.tail]
            .iter()
            .any(|load| at >= load.start_unix_seconds && at < load.end_unix_seconds)
    }
}

/// How much power, and how steadily.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Without load, in watts.
    pub idle_watts: f64,
    /// What the load adds, in watts.
    pub load_watts: f64,
    /// Standard deviation of the load's power, as a share of it.
    pub load_noise: f64,
    /// For how long a deviation lasts, in seconds.
    pub noise_seconds: f64,
}

/// A node over one attempt.
#[derive(Clone, Debug)]
pub struct Node {
    start: f64,
    /// Joules of idling and of load at the end of each step.
    sums: Vec<(f64, f64)>,
}

impl Node {
    /// Draws the node's power: idle power steady but for a hundredth of noise, the load's as told.
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

    /// Joules of idling and of load since the attempt's beginning.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of steps, at least 0"
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
    // A gap of some hundredths of a second between two loads lies within a step or two.
    const PARTS: u32 = 10;
    let part = STEP_SECONDS / f64::from(PARTS);
    let loaded = (0..PARTS).filter(|n| timeline.is_loaded(from + (f64::from(*n) + 0.5) * part));
    loaded.count() as f64 * part
}

/// What a meter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The node meter: it tells its time, its interval and its greatest power.
    NodeMeter,
    /// A meter of the node meter's form that does not tell when its counters were true.
    Untimed,
    /// Stock Kepler: it looks when it is asked, unless it has looked within the last half second.
    Kepler,
}

/// A meter with all its faults.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// What it is.
    pub kind: Kind,
    /// Time between two of its observations, in seconds.
    pub interval_seconds: f64,
    /// What it shows for each joule, in joules.
    pub gain: f64,
    /// The standard uncertainty that it states of its energy, as a share of it, if it states one.
    pub relative_uncertainty: Option<f64>,
    /// Step of its counter, in joules.
    pub resolution_joules: f64,
    /// What its counter showed when the attempt began, in joules.
    pub begun_joules: f64,
}

/// Pods on the node.
#[derive(Clone, Debug, PartialEq)]
pub struct Pods {
    /// UIDs of the candidate's, with the share of the load's energy of each.
    pub candidate: Vec<(String, f64)>,
    /// The same of the database's.
    pub database: Vec<(String, f64)>,
    /// Others, which share what is left of a twentieth.
    pub neighbours: usize,
}

impl Pods {
    /// This many pods of each sort.
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

/// What a meter shows at a scrape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// When the counters are true.
    pub observed_at: f64,
    /// When the meter began to count.
    pub meter_start: f64,
    /// What is added to the node's counter, in joules.
    pub extra_joules: f64,
    /// The meter's version.
    pub version: &'static str,
    /// Where its power comes from.
    pub provenance: &'static str,
    /// Whether the candidate's pods are those that came after the first ones.
    pub replaced_pods: bool,
}

impl Meter {
    /// When the counters were observed that a scrape at `at` shows, where the scrape before showed
    /// those of `before`.
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
                // Writing to a String can't fail.
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
            // A pod counts since it began: nothing of what the node did before the attempt.
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

/// A text under way. Writing to a String can't fail.
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
