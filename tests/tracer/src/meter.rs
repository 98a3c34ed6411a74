//! The text that a meter shows for the script. Power comes only from the script. The node meter's own code divides it
//! among pods.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use frugality_measure::attribution::{Accounts, Observation, PodObservation, seconds};

use crate::{
    MILLISECOND, SECOND, Time,
    cases::{Case, Meter, Trouble},
    load,
    schedule::Schedule,
    script::{CPUS, Pod, Script},
};

/// Name of the measured node.
pub(crate) const NODE: &str = "pi-1";
/// True time 0 in Unix seconds.
const BEGAN_UNIX_SECONDS: i64 = 1_790_000_000;
/// The node's clock minus true time.
const NODE_CLOCK: Time = 250 * MILLISECOND;
/// The operator's clock minus true time.
const OPERATOR_CLOCK: Time = -150 * MILLISECOND;
/// The node's maximum power, as the meter reports it.
const MAX_WATTS: f64 = 400.0;
/// Decrease of a counter in the trouble `CounterBack`.
const LOST_JOULES: f64 = 15.0;
/// Time without an answered scrape in the trouble `NoScrapes`.
const SILENCE: Time = 6 * SECOND;

/// Zones: name, share of the board's energy, and first value of the counter in joules. Zones overlap, and Kepler's
/// counters do not start at 0.
const ZONES: [(&str, f64, f64); 3] = [
    ("psys", 1.0, 4321.0),
    ("package", 0.77, 977.0),
    ("dram", 0.13, 12_345.0),
];
/// Containers of a pod, each with its share of the pod's energy.
const CONTAINERS: [(&str, f64); 2] = [("server", 0.93), ("sidecar", 0.07)];

/// The answer to one scrape.
#[derive(Clone, Debug)]
pub(crate) struct Scraped {
    pub(crate) text: Rc<String>,
    /// True time of its arrival.
    pub(crate) arrived: Time,
    /// Time of its arrival by the operator's clock.
    pub(crate) unix_seconds: f64,
}

/// Converts true time to the clock that stamps readings, in Unix nanoseconds. It is the node's clock, or the operator's
/// if the meter reports no time.
pub(crate) fn reading_clock(case: &Case, at: Time) -> i64 {
    let ahead = match case.meter {
        Meter::Own => NODE_CLOCK,
        Meter::Kepler => OPERATOR_CLOCK,
    };
    BEGAN_UNIX_SECONDS * SECOND + at + ahead
}

/// Converts true time to the clock of the injector's node, in Unix nanoseconds.
pub(crate) fn injector_clock(case: &Case, at: Time) -> i64 {
    reading_clock(case, at) - case.offset_milliseconds * MILLISECOND
}

/// Converts Unix nanoseconds to seconds, as the product's number type.
pub(crate) fn unix_seconds(nanoseconds: i64) -> f64 {
    (nanoseconds / SECOND) as f64 + load::seconds(nanoseconds % SECOND)
}

/// All scrapes of a run.
pub(crate) fn scrapes(case: &Case, script: &Script, schedule: &Schedule) -> Vec<Scraped> {
    let end = script.trials.last().map_or(0, |trial| trial.session[1]);
    let trouble = script.trials.iter().find(|trial| trial.is_troubled);
    // In the middle of the troubled trial's measured run.
    let moment = trouble.map(|trial| trial.measured.start() + 8 * SECOND);
    let happens = |trouble| moment.filter(|_| case.trouble == Some(trouble));
    let silence = happens(Trouble::NoScrapes).map(|from| from..from + SILENCE);
    let lost_at = happens(Trouble::CounterBack);

    let mut world = World::new(case, script);
    let mut readings = schedule.readings.iter().copied().peekable();
    let mut shown: Option<(Time, Rc<String>)> = None;
    let mut scrapes = Vec::new();
    for scrape in schedule.scrapes.iter().filter(|one| one.arrived < end) {
        while let Some(at) = readings.next_if(|at| *at <= scrape.shows) {
            world.read(at);
        }
        let text = match &shown {
            Some((at, text)) if *at == scrape.shows => Rc::clone(text),
            _ => {
                let lost = lost_at.is_some_and(|lost_at| scrape.shows >= lost_at);
                Rc::new(world.text(if lost { LOST_JOULES } else { 0.0 }))
            }
        };
        shown = Some((scrape.shows, Rc::clone(&text)));
        if silence
            .as_ref()
            .is_none_or(|silence| !silence.contains(&scrape.arrived))
        {
            let clock = BEGAN_UNIX_SECONDS * SECOND + scrape.arrived + OPERATOR_CLOCK;
            scrapes.push(Scraped {
                text,
                arrived: scrape.arrived,
                unix_seconds: unix_seconds(clock),
            });
        }
    }
    scrapes
}

/// The state of the node at its latest reading.
struct World<'a> {
    case: &'a Case,
    script: &'a Script,
    accounts: Accounts,
    read_at: Time,
    /// CPU time so far, by pod and for the system, in 10⁻⁹ ns.
    cpu: BTreeMap<&'a str, i128>,
    /// Energy of the injector's node so far, in joules. The product must ignore it.
    other_node_joules: f64,
}

impl<'a> World<'a> {
    fn new(case: &'a Case, script: &'a Script) -> Self {
        let mut world = Self {
            case,
            script,
            accounts: Accounts::open(
                Observation {
                    unix_seconds: 0.0,
                    elapsed: Duration::ZERO,
                    processors: None,
                    node_cgroup: 1,
                    node_cpu_nanoseconds: 0,
                    pods: BTreeMap::new(),
                },
                CPUS,
            ),
            read_at: 0,
            cpu: BTreeMap::new(),
            other_node_joules: 0.0,
        };
        world.accounts = Accounts::open(world.observation(), CPUS);
        world
    }

    /// Advances to the next reading.
    fn read(&mut self, at: Time) {
        if at <= self.read_at {
            return;
        }
        let mut milliwatt_nanoseconds: i128 = 0;
        for act in &self.script.acts {
            let overlap = i128::from(act.to.min(at) - act.from.max(self.read_at));
            if overlap <= 0 {
                continue;
            }
            milliwatt_nanoseconds += i128::from(act.milliwatts) * overlap;
            for (who, rate) in &act.nanocpus {
                *self.cpu.entry(who).or_default() += i128::from(*rate) * overlap;
            }
        }
        let joules = milliwatt_nanoseconds as f64 / 1e12;
        self.other_node_joules += 11.0 * load::seconds(at - self.read_at);
        self.read_at = at;
        let observation = self.observation();
        self.accounts
            .advance(observation, |_| joules)
            .expect("time and counters only increase");
    }

    fn observation(&self) -> Observation {
        let nanoseconds = |cpu: i128| u64::try_from(cpu / i128::from(SECOND)).unwrap();
        let pods = self.living().map(|(number, pod)| {
            let cpu = self.cpu.get(pod.uid.as_str()).copied().unwrap_or_default();
            let observation = PodObservation {
                cgroup: 100 + number,
                cpu_nanoseconds: nanoseconds(cpu),
                working_set_bytes: Some(12_000_000),
            };
            (pod.uid.as_str().into(), observation)
        });
        Observation {
            unix_seconds: unix_seconds(reading_clock(self.case, self.read_at)),
            elapsed: Duration::from_nanos(u64::try_from(self.read_at).unwrap()),
            processors: None,
            node_cgroup: 1,
            node_cpu_nanoseconds: nanoseconds(self.cpu.values().sum()),
            pods: pods.collect(),
        }
    }

    fn living(&self) -> impl Iterator<Item = (u64, &'a Pod)> {
        let at = self.read_at;
        (0..)
            .zip(&self.script.pods)
            .filter(move |(_, pod)| (pod.from..pod.to).contains(&at))
    }

    /// The text of a scrape. The node's counters lack `lost_joules`.
    fn text(&self, lost_joules: f64) -> String {
        let mut page = Page(String::with_capacity(16_384));
        page.node(&self.accounts, lost_joules);
        page.line(
            "kepler_node_cpu_joules_total",
            &[("node_name", "injector-1"), ("path", "p"), ("zone", "psys")],
            self.other_node_joules,
        );
        for (_, pod) in self.living() {
            if let Some(account) = self.accounts.pods.get(pod.uid.as_str()) {
                page.pod(pod, account.joules, account.watts, "running");
            }
        }
        if self.case.meter == Meter::Own {
            self.own(&mut page);
        } else {
            let ended = self
                .script
                .pods
                .iter()
                .filter(|pod| (pod.to..pod.to + 5 * SECOND).contains(&self.read_at));
            for pod in ended {
                page.pod(pod, 1234.5, None, "terminated");
            }
            page.line("kepler_build_info", &[("version", "v0.11.4")], 1.0);
        }
        page.0
    }

    /// Adds the metrics that only the node meter serves.
    fn own(&self, page: &mut Page) {
        let node = ("node_name", NODE);
        page.line(
            "frugality_meter_info",
            &[
                node,
                ("board", "bench"),
                ("provenance", "Metered"),
                ("source", "script"),
                ("version", "0.1.0"),
            ],
            1.0,
        );
        for (zone, _, _) in ZONES {
            let labels = [node, ("zone", zone)];
            let at = self.accounts.reading_unix_seconds();
            page.line("frugality_meter_reading_timestamp_seconds", &labels, at);
            page.line("frugality_meter_max_watts", &labels, MAX_WATTS);
        }
        let start = unix_seconds(reading_clock(self.case, 0));
        page.line("frugality_meter_start_time_seconds", &[node], start);
        let interval = self.case.interval_milliseconds as f64 / 1000.0;
        page.line("frugality_meter_interval_seconds", &[node], interval);
        let cpu = self.accounts.node_cpu_seconds();
        page.line("frugality_node_cpu_seconds_total", &[node], cpu);
        for (_, pod) in self.living() {
            let labels = [
                node,
                ("pod_id", pod.uid.as_str()),
                ("pod_name", pod.name.as_str()),
                ("pod_namespace", pod.namespace),
            ];
            if let Some(account) = self.accounts.pods.get(pod.uid.as_str()) {
                let cpu = seconds(account.cpu_nanoseconds);
                page.line("frugality_pod_cpu_seconds_total", &labels, cpu);
            }
        }
    }
}

/// An unfinished text.
struct Page(String);

impl Page {
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|(key, text)| format!("{key}=\"{text}\""));
        let labels = labels.collect::<Vec<_>>().join(",");
        let _ = writeln!(self.0, "{name}{{{labels}}} {value}");
    }

    fn node(&mut self, accounts: &Accounts, lost_joules: f64) {
        let node = ("node_name", NODE);
        let energy = &accounts.node;
        for (zone, part, base) in ZONES {
            let path = format!("/host/sys/class/powercap/intel-rapl:{zone}");
            let labels = [node, ("path", path.as_str()), ("zone", zone)];
            for (name, joules) in [
                (
                    "kepler_node_cpu_joules_total",
                    base + energy.total_joules - lost_joules,
                ),
                ("kepler_node_cpu_active_joules_total", energy.active_joules),
                ("kepler_node_cpu_idle_joules_total", energy.idle_joules),
            ] {
                self.line(name, &labels, part * joules);
            }
            let Some(rates) = &accounts.rates else {
                continue;
            };
            for (name, watts) in [
                ("kepler_node_cpu_watts", rates.total_watts),
                ("kepler_node_cpu_active_watts", rates.active_watts),
                ("kepler_node_cpu_idle_watts", rates.idle_watts),
            ] {
                self.line(name, &labels, part * watts);
            }
        }
        if let Some(rates) = &accounts.rates {
            self.line("kepler_node_cpu_usage_ratio", &[node], rates.usage_ratio);
        }
    }

    fn pod(&mut self, pod: &Pod, joules: f64, watts: Option<f64>, state: &str) {
        for (zone, part, _) in ZONES {
            let labels = [
                ("node_name", NODE),
                ("pod_id", pod.uid.as_str()),
                ("pod_name", pod.name.as_str()),
                ("pod_namespace", pod.namespace),
                ("state", state),
                ("zone", zone),
            ];
            self.line("kepler_pod_cpu_joules_total", &labels, part * joules);
            if let Some(watts) = watts {
                self.line("kepler_pod_cpu_watts", &labels, part * watts);
            }
            for (container, share) in CONTAINERS {
                let id = format!("{container}-of-{}", pod.uid);
                let labels = [
                    ("container_id", id.as_str()),
                    ("container_name", container),
                    ("node_name", NODE),
                    ("pod_id", pod.uid.as_str()),
                    ("runtime", "containerd"),
                    ("state", state),
                    ("zone", zone),
                ];
                let joules = share * part * joules;
                self.line("kepler_container_cpu_joules_total", &labels, joules);
            }
        }
    }
}
