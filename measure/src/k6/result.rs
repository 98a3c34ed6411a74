//! The parser of the line that the output `cycles` prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::CycleSettings;
use crate::figures::{LoadSpan, RequestFigures};
use crate::{
    LEAST_SECONDS, NUMBERS_END,
    latency::{Histogram, PERCENTAGES, merged_percentiles},
    slices::Slices,
};

/// The number of checks that are reported by name. The others are reported together.
const MOST_CHECKS: usize = 16;
/// The name under which further checks are counted together (`injector/k6/cycles.go`).
pub const OTHER_CHECKS: &str = "(others)";
/// The most characters of a check's name; a longer name is cut (`injector/k6/cycles.go`). A status of
/// unbounded size could not be stored, and the run would never end.
pub const MOST_NAME_CHARS: usize = 128;
/// The largest number of error texts that a script threw, and of characters in each.
const MOST_FAILURES: usize = 8;
const MOST_FAILURE_CHARS: usize = 200;

/// k6's observations in one measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct K6Result {
    /// k6's version.
    pub version: String,
    /// Start of the window, in Unix seconds by the clock of the injector's node.
    pub start_unix_seconds: f64,
    /// Length of the window, in seconds. Less than requested only if the load was interrupted.
    pub duration_seconds: f64,
    /// The requested length, in seconds.
    pub asked_seconds: f64,
    /// Number of agents that each run the script, one cycle after another. At a rate: the maximum number.
    pub agents: u32,
    /// Cycles that should begin each second, even if earlier ones have not ended. Absent: as many as the
    /// agents can run.
    pub rate: Option<f64>,
    /// Durations of the cycles without a failure.
    pub cycles: Histogram,
    /// Durations of the failed cycles, without buckets. A cycle fails if it takes longer than the timeout, if
    /// the script throws, if a check fails, or if a request has no expected answer.
    pub failed_cycles: Histogram,
    /// Cycles that were due and did not begin, because all agents were busy.
    pub dropped_cycles: u64,
    /// HTTP requests of all cycles.
    pub requests: HttpRequests,
    /// The script's checks by name.
    pub checks: BTreeMap<String, CheckCounts>,
    /// The first errors that the script threw in the whole load, verbatim.
    pub first_failures: Vec<String>,
    /// CPU time that k6 used in the window, in seconds.
    pub cpu_seconds: f64,
    /// Number of CPUs that k6 could use.
    pub cpus: u32,
}

/// HTTP requests that ended within a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HttpRequests {
    /// The number of all requests.
    pub count: u64,
    /// The number of requests without an expected answer. Unless the script says otherwise, codes from 200 to
    /// 399 are expected.
    pub failed: u64,
    /// Sum of the agents' waiting times within the window, to connect and for answers. It includes answers
    /// that came after the window's end, or never.
    pub waited_seconds: f64,
    /// By status code; 0 is a request without an answer.
    pub codes: BTreeMap<String, u64>,
}

/// Results of one check of the script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckCounts {
    /// How often the check passed.
    pub passed: u64,
    /// How often the check failed.
    pub failed: u64,
}

/// k6's output for one load.
#[derive(Clone, Debug, PartialEq)]
pub struct K6Output {
    /// The result of the measured window.
    pub measured: K6Result,
    /// The load before the window.
    pub warm_up: LoadSpan,
    /// The load after the window.
    pub tail: LoadSpan,
    /// Cycles and their durations over the time of the window.
    pub slices: Option<Slices>,
}

/// Why a text is not a usable result.
#[derive(Debug, Error)]
pub enum K6Error {
    /// The text has no line of the output `cycles`.
    #[error("k6 printed no result: no cycle began")]
    NoResult,
    /// A field is missing or has another type.
    #[error("not a result of k6: {0}")]
    Json(#[from] serde_json::Error),
    /// A field has an impossible value.
    #[error("k6's result has {field} = {value}")]
    Value {
        /// The field's name.
        field: &'static str,
        /// The field's value.
        value: String,
    },
}

/// The line of the output `cycles` in k6's output.
#[must_use]
pub fn result_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| line.starts_with('{'))
}

/// Parses k6's output for a load with these settings.
pub fn parse(text: &str, settings: &CycleSettings) -> Result<K6Output, K6Error> {
    let raw: Raw = serde_json::from_str(result_line(text).ok_or(K6Error::NoResult)?)?;
    let measured = K6Result {
        version: raw.version,
        start_unix_seconds: raw.start_unix_seconds,
        duration_seconds: raw.duration_seconds,
        asked_seconds: settings.duration_seconds,
        agents: settings.agents,
        rate: settings.rate,
        cycles: raw.cycles.reported(),
        failed_cycles: raw.failed_cycles.reported(),
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
        slices: raw.slices,
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
    slices: Option<Slices>,
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
    fn reported(self) -> Histogram {
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
    /// The number of cycles that ended in the window, including the failed ones.
    #[must_use]
    pub fn all_cycles(&self) -> u64 {
        self.cycles.count.saturating_add(self.failed_cycles.count)
    }

    /// Start, length and counts of the window.
    #[must_use]
    pub fn span(&self) -> LoadSpan {
        LoadSpan {
            start_unix_seconds: self.start_unix_seconds,
            duration_seconds: self.duration_seconds,
            requests: self.all_cycles(),
            errors: self.failed_cycles.count,
        }
    }

    /// Whether the load ended before the window.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        // Seconds become whole nanoseconds on the way to k6 and back.
        self.duration_seconds < self.asked_seconds - 1e-6
    }

    /// The figures for the status. A cycle counts as a request. If cycles were dropped, the cycles' duration
    /// is unknown: a cycle that was due while the others were slow would also have been slow.
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
            dropped: self.dropped_cycles,
            error_rate: (all > 0).then(|| self.failed_cycles.count as f64 / all as f64),
            occupancy: ran.then(|| {
                (self.requests.waited_seconds / (seconds * f64::from(self.agents))).min(1.0)
            }),
            shortfall: self
                .rate
                .filter(|_| seconds > 0.0)
                .map(|rate| self.missed(seconds * rate) / (seconds * rate)),
            mean_body_bytes: None,
            mean_body_standard_error_bytes: None,
            requests_per_cycle: (all > 0).then(|| self.requests.count as f64 / all as f64),
            work: None,
        }
    }

    /// Cycles that did not begin, of so many that were due. A cycle that is open at the end of the window has begun. As many
    /// as are open on average, and one more, count as open.
    fn missed(&self, due: f64) -> f64 {
        let all_seconds = self.cycles.sum_seconds + self.failed_cycles.sum_seconds;
        let open = (all_seconds / self.duration_seconds + 1.0).min(f64::from(self.agents));
        let not_ended = due - self.all_cycles() as f64;
        (not_ended - open).max(self.dropped_cycles as f64).max(0.0)
    }

    /// Cuts names and texts to the limits of the output `cycles`. Otherwise a report could lead to a record
    /// that cannot be stored. Counts of equal names are then added up.
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

    /// Removes the names of the checks and the script's errors. The sums stay.
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

    /// Checks that figures can be computed from this result, which may come from any writer.
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

/// A text of at most `most` characters; a longer text is cut and ends with an ellipsis.
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
