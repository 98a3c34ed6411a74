//! The line that the output `cycles` prints, read once into what the product uses.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::CycleSettings;
use crate::{
    LEAST_SECONDS, NUMBERS_END,
    course::Course,
    latency::{Histogram, merged_percentiles},
    load::RequestFigures,
    report::LoadSpan,
};

/// Checks that are told by name; the others are told together.
const MOST_CHECKS: usize = 16;
/// Under this name checks beyond the first ones are counted together (`injector/k6/cycles.go`).
pub const OTHER_CHECKS: &str = "(others)";
/// The most characters of a check's name; a longer one is cut (`injector/k6/cycles.go`). A status of an unbounded size
/// could not be stored, and the run would never end.
pub const MOST_NAME_CHARS: usize = 128;
/// The most texts that a script threw, and characters of each.
const MOST_FAILURES: usize = 8;
const MOST_FAILURE_CHARS: usize = 200;

/// The percentiles that are told of a run, as Fortio's.
const PERCENTAGES: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

/// What k6 observed in one measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct K6Result {
    /// k6's version.
    pub version: String,
    /// When the window began: Unix seconds by the clock of the injector's node.
    pub start_unix_seconds: f64,
    /// Its length; less than was asked for only where the load was interrupted.
    pub duration_seconds: f64,
    /// The length that was asked for.
    pub asked_seconds: f64,
    /// Agents that each run the script, one cycle after another. At a rate: the most of them.
    pub agents: u32,
    /// Cycles that were to begin each second, whether or not earlier ones had ended; absent: as many as the
    /// agents can.
    pub rate: Option<f64>,
    /// Cycles of which nothing failed.
    pub cycles: Histogram,
    /// How long those took that failed, without buckets: those that took longer than the timeout, in which the
    /// script threw, a check did not hold, or a request had no expected answer.
    pub failed_cycles: Histogram,
    /// Cycles that were due and did not begin, because no agent was free.
    pub dropped_cycles: u64,
    /// HTTP requests of all cycles.
    pub requests: HttpRequests,
    /// The script's checks by name.
    pub checks: BTreeMap<String, CheckCounts>,
    /// What the script threw at first, in its own words; of the whole load.
    pub first_failures: Vec<String>,
    /// CPU time that k6 used in the window.
    pub cpu_seconds: f64,
    /// CPUs that it could use.
    pub cpus: u32,
}

/// HTTP requests that ended within a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpRequests {
    /// All of them.
    pub count: u64,
    /// Those without an expected answer: any code from 200 to 399, where the script does not say otherwise.
    pub failed: u64,
    /// For how long agents waited within the window, to connect and for answers, added up: those too that came
    /// after its end, or never.
    pub waited_seconds: f64,
    /// By status code; 0 is a request without an answer.
    pub codes: BTreeMap<String, u64>,
}

/// How often a check of the script held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckCounts {
    /// Held.
    pub passed: u64,
    /// Did not.
    pub failed: u64,
}

/// What k6 left of one load.
#[derive(Clone, Debug, PartialEq)]
pub struct K6Output {
    /// Of the measured window.
    pub measured: K6Result,
    /// The load before it.
    pub warm_up: LoadSpan,
    /// The load after it.
    pub tail: LoadSpan,
    /// How long cycles took in the course of the window.
    pub course: Option<Course>,
}

/// Why a text is no result to build on.
#[derive(Debug, Error)]
pub enum K6Error {
    /// No line of the output `cycles`.
    #[error("k6 printed no result: no cycle was begun")]
    NoResult,
    /// A field is missing or of another type.
    #[error("not a result of k6: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has a value that cannot be.
    #[error("k6's result has {field} = {value}")]
    Value {
        /// Its name.
        field: &'static str,
        /// What it says.
        value: String,
    },
}

/// The line of the output `cycles` in what k6 printed.
#[must_use]
pub fn result_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| line.starts_with('{'))
}

/// Reads what k6 printed for a load with these settings.
pub fn parse(text: &str, settings: &CycleSettings) -> Result<K6Output, K6Error> {
    let raw: Raw = serde_json::from_str(result_line(text).ok_or(K6Error::NoResult)?)?;
    let measured = K6Result {
        version: raw.version,
        start_unix_seconds: raw.start_unix_seconds,
        duration_seconds: raw.duration_seconds,
        asked_seconds: settings.duration_seconds,
        agents: settings.agents,
        rate: settings.rate.map(f64::from),
        cycles: raw.cycles.told(),
        failed_cycles: raw.failed_cycles.told(),
        dropped_cycles: raw.dropped_cycles,
        requests: raw.requests,
        checks: raw.checks,
        first_failures: raw.first_failures,
        cpu_seconds: raw.cpu_seconds,
        cpus: raw.cpus,
    };
    measured.check()?;
    Ok(K6Output {
        measured,
        warm_up: raw.warm_up,
        tail: raw.tail,
        course: raw.course,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    version: String,
    start_unix_seconds: f64,
    duration_seconds: f64,
    cycles: RawHistogram,
    failed_cycles: RawHistogram,
    dropped_cycles: u64,
    requests: HttpRequests,
    checks: BTreeMap<String, CheckCounts>,
    first_failures: Vec<String>,
    cpu_seconds: f64,
    cpus: u32,
    warm_up: LoadSpan,
    tail: LoadSpan,
    #[serde(default)]
    course: Option<Course>,
}

/// A histogram without percentiles.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawHistogram {
    count: u64,
    min_seconds: f64,
    max_seconds: f64,
    sum_seconds: f64,
    standard_deviation_seconds: f64,
    buckets: Vec<crate::latency::Bucket>,
}

impl RawHistogram {
    fn told(self) -> Histogram {
        Histogram {
            count: self.count,
            min_seconds: self.min_seconds,
            max_seconds: self.max_seconds,
            sum_seconds: self.sum_seconds,
            standard_deviation_seconds: self.standard_deviation_seconds,
            percentiles: Vec::new(),
            buckets: self.buckets,
        }
    }
}

impl K6Result {
    /// Cycles that ended in the window, those that failed too.
    #[must_use]
    pub fn all_cycles(&self) -> u64 {
        self.cycles.count.saturating_add(self.failed_cycles.count)
    }

    /// When the window was.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        LoadSpan {
            start_unix_seconds: self.start_unix_seconds,
            duration_seconds: self.duration_seconds,
            requests: self.all_cycles(),
            errors: self.failed_cycles.count,
        }
    }

    /// Whether the load ended before the window did.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        // Seconds become whole nanoseconds on the way to k6 and back.
        self.duration_seconds < self.asked_seconds - 1e-6
    }

    /// The figures that may be shown, a cycle being a request. Where cycles were dropped, how long they take is
    /// not known: those that were due while the others were slow would have been slow as well.
    #[must_use]
    pub fn figures(&self) -> RequestFigures {
        let (all, successes) = (self.all_cycles(), self.cycles.count);
        let seconds = self.duration_seconds;
        let ran = all > 0 && seconds > 0.0;
        let is_timed = successes > 0 && self.dropped_cycles == 0;
        let named = || {
            let seconds = merged_percentiles(&[&self.cycles.buckets], &PERCENTAGES)?;
            let named = PERCENTAGES.iter().zip(seconds);
            Some(named.map(|(percentage, seconds)| (format!("p{percentage}"), 1000.0 * seconds)))
        };
        RequestFigures {
            requests: all,
            successes,
            errors: self.failed_cycles.count,
            requests_per_second: (successes > 0 && ran).then(|| successes as f64 / seconds),
            ms_per_request: is_timed.then(|| 1000.0 * self.cycles.sum_seconds / successes as f64),
            percentiles_ms: is_timed
                .then(named)
                .flatten()
                .into_iter()
                .flatten()
                .collect(),
            error_rate: (all > 0).then(|| self.failed_cycles.count as f64 / all as f64),
            occupancy: ran
                .then(|| self.requests.waited_seconds / (seconds * f64::from(self.agents))),
            shortfall: self
                .rate
                .filter(|_| seconds > 0.0)
                .map(|rate| (1.0 - all as f64 / (seconds * rate)).max(0.0)),
            mean_body_bytes: None,
            mean_body_standard_error_bytes: None,
            requests_per_cycle: (all > 0).then(|| self.requests.count as f64 / all as f64),
            work: None,
        }
    }

    /// Cuts names and texts to the size that the output `cycles` keeps to as well, so that no report makes a record
    /// that can't be stored. Counts of names that are the same then are added up.
    pub(crate) fn keep_to_limits(&mut self) {
        let mut checks: BTreeMap<String, CheckCounts> = BTreeMap::new();
        for (name, counts) in std::mem::take(&mut self.checks) {
            let name = cut(&name, MOST_NAME_CHARS);
            let is_named = checks.contains_key(&name) || checks.len() < MOST_CHECKS;
            let name = if is_named { name } else { OTHER_CHECKS.into() };
            add(checks.entry(name).or_default(), counts);
        }
        self.checks = checks;
        self.first_failures.truncate(MOST_FAILURES);
        for text in &mut self.first_failures {
            *text = cut(text, MOST_FAILURE_CHARS);
        }
    }

    /// Leaves out which checks there were and what the script threw: their sums stay.
    pub(crate) fn drop_names(&mut self) {
        let checks = std::mem::take(&mut self.checks);
        if !checks.is_empty() {
            let all = self.checks.entry(OTHER_CHECKS.into()).or_default();
            for counts in checks.into_values() {
                add(all, counts);
            }
        }
        self.first_failures.clear();
    }

    /// Whether figures can be made of it, whoever wrote it down.
    pub(crate) fn check(&self) -> Result<(), K6Error> {
        let histograms = [&self.cycles, &self.failed_cycles];
        let of_histograms = histograms.into_iter().flat_map(|it| {
            let buckets = it.buckets.iter();
            let ends = buckets.flat_map(|bucket| [bucket.start_seconds, bucket.end_seconds]);
            [
                it.count as f64,
                it.min_seconds,
                it.max_seconds,
                it.sum_seconds,
                it.standard_deviation_seconds,
            ]
            .into_iter()
            .chain(ends)
        });
        let of_window = [
            self.start_unix_seconds,
            self.duration_seconds,
            self.asked_seconds,
            self.dropped_cycles as f64,
            self.requests.count as f64,
            self.requests.waited_seconds,
            self.cpu_seconds,
        ];
        let checks = self.checks.values();
        let of_checks = checks.flat_map(|check| [check.passed as f64, check.failed as f64]);
        let mut all = of_window.into_iter().chain(of_histograms).chain(of_checks);
        if let Some(wrong) = all.find(|number| !(0.0..NUMBERS_END).contains(number)) {
            return Err(value("a number", &wrong));
        }
        for histogram in histograms {
            let counts = histogram.buckets.iter().map(|bucket| bucket.count);
            let counted = counts.fold(0, u64::saturating_add);
            if counted != histogram.count && !histogram.buckets.is_empty() {
                return Err(value("the sum over a histogram's buckets", &counted));
            }
        }
        let by_code = self.requests.codes.values().copied();
        let by_code = by_code.fold(0, u64::saturating_add);
        if by_code != self.requests.count {
            return Err(value("the sum over requests.codes", &by_code));
        }
        if self.requests.failed > self.requests.count {
            return Err(value("requests.failed", &self.requests.failed));
        }
        if self.all_cycles() > 0 && self.duration_seconds < LEAST_SECONDS {
            return Err(value("durationSeconds", &self.duration_seconds));
        }
        if self.agents == 0 {
            return Err(value("agents", &self.agents));
        }
        if self.cpus == 0 {
            return Err(value("cpus", &self.cpus));
        }
        match self.rate {
            Some(rate) if !(rate > 0.0 && rate < NUMBERS_END) => Err(value("rate", &rate)),
            _ => Ok(()),
        }
    }
}

/// A text of at most so many characters; a longer one ends with an ellipsis.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

fn add(sum: &mut CheckCounts, counts: CheckCounts) {
    sum.passed = sum.passed.saturating_add(counts.passed);
    sum.failed = sum.failed.saturating_add(counts.failed);
}

fn value(field: &'static str, value: &dyn std::fmt::Display) -> K6Error {
    K6Error::Value {
        field,
        value: value.to_string(),
    }
}
