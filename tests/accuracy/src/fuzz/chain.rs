//! Sends accepted values through the code of an attempt and a run, up to the status.

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::{
    attempt::{Attempt, assess, windows},
    energy::{Limits, Window},
    fortio,
    load::LoadResult,
    reading::Reading,
    report::InjectionReport,
};
use frugality_operator::{
    api::{FrugalityTrial, FrugalityTrialStatus, Outcome},
    plan::{ledger::Start, protocol::LONGEST_EDGE_SECONDS},
};
use serde_json::{Value, json};

use super::{
    expect::require,
    finite::{names_none, not_finite},
};
use crate::{
    Error,
    energy::{self, fortio_json},
    experiment::{Experiment, MAX_NODE_WATTS, T0, record},
    random::Random,
};

/// Length of each idle baseline.
const IDLE_SECONDS: f64 = 5.0;
/// Length of the measured window.
const WINDOW_SECONDS: f64 = 20.0;
/// The number of readings, one per second, from before the first baseline to after the second.
const READINGS: u32 = 40;
/// Start of the measured window, in seconds after the first reading.
const WINDOW_START: f64 = 9.0;
/// Power of the virtual node.
const WATTS: f64 = 4.0;

/// A run in which all attempts except the first equal the tested attempt.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    experiment: Experiment,
    /// An attempt with every field.
    pattern: FrugalityTrialStatus,
    /// A report with a window of [`WINDOW_SECONDS`].
    report: InjectionReport,
    /// A reading of an undisturbed node meter.
    reading: Reading,
}

const NAMES: [&str; 2] = ["one", "two"];

impl Chain {
    pub(super) fn new() -> Result<Self, Error> {
        let candidate = |name| json!({"name": name, "image": format!("example.org/{name}:1")});
        let budget = |name| {
            json!({
                "candidate": name, "maxJoulesPerRequest": "0.02", "maxMillisecondsPerRequest": "5",
                "minRequestsPerSecond": "100", "maxErrorRatio": "0.01",
            })
        };
        let measured =
            LoadResult::from(fortio::parse(&fortio_json(T0, WINDOW_SECONDS, 10_000, 10))?);
        let clock = json!({"offsetSeconds": 0, "uncertaintySeconds": 0.001});
        let report = json!({
            "version": frugality_measure::report::REPORT_VERSION, "measured": measured,
            "histogramDropped": true, "askedWarmUpSeconds": 0, "askedTailSeconds": 0,
            "clock": clock, "clockAfter": clock,
        });
        Ok(Self {
            experiment: Experiment::new(&json!({
                "candidates": NAMES.map(candidate),
                "request": {"path": "/"},
                "trials": {"blocks": 5, "maxAttempts": 1},
                "budgets": NAMES.map(budget),
                "energy": {"allowModelled": true},
            }))?,
            pattern: energy::clean_attempt()?,
            report: serde_json::from_value(report)?,
            reading: energy::clean_reading()?,
        })
    }

    /// The end of an attempt whose meter shows this reading: in all readings, or in at most one.
    pub(super) fn of_reading(
        &self,
        reading: &Reading,
        random: &mut Random,
    ) -> Result<String, String> {
        let start = reading.at_unix_seconds();
        let mut readings: Vec<Reading> = if random.chance(0.7) {
            (0..READINGS)
                .map(|n| later(reading, f64::from(n)))
                .collect()
        } else {
            (0..READINGS)
                .map(|n| self.reading_at(start + f64::from(n)))
                .collect()
        };
        if random.chance(0.3) {
            let at = random.below(readings.len());
            let mut odd = reading.clone();
            let moved = f64::from(u32::try_from(at).unwrap_or_default());
            odd.meter_unix_seconds = odd.meter_unix_seconds.map(|time| time + moved);
            odd.scraped_at_unix_seconds += moved;
            readings[at] = odd;
        }
        let mut report = self.report.clone();
        if let Some(result) = report.measured.fortio_mut() {
            result.start_unix_seconds = start + WINDOW_START;
        }
        let uids: Vec<String> = uids(reading).collect();
        let pods = |n: usize| uids.get(n).cloned().into_iter().collect();
        self.end(&report, start, &readings, &pods(0), &pods(1))
    }

    /// The end of an attempt with this report of the injector.
    pub(super) fn of_report(&self, report: &InjectionReport) -> Result<String, String> {
        let offset = report.clock.map_or(0.0, |clock| clock.offset_seconds);
        let start = report.measured.span().start_unix_seconds + offset - WINDOW_START;
        let readings: Vec<Reading> = (0..READINGS)
            .map(|n| self.reading_at(start + f64::from(n)))
            .collect();
        let pods = uids(&self.reading).take(1).collect();
        self.end(report, start, &readings, &pods, &BTreeSet::new())
    }

    fn reading_at(&self, at: f64) -> Reading {
        later(&self.reading, at - self.reading.at_unix_seconds())
    }

    fn end(
        &self,
        report: &InjectionReport,
        start: f64,
        readings: &[Reading],
        candidate_pods: &BTreeSet<String>,
        database_pods: &BTreeSet<String>,
    ) -> Result<String, String> {
        let idle_before = Window {
            start_unix_seconds: start + 1.5,
            end_unix_seconds: start + 1.5 + IDLE_SECONDS,
        };
        let assessed = windows(report, LONGEST_EDGE_SECONDS, IDLE_SECONDS).and_then(|windows| {
            assess(&Attempt {
                report,
                windows: &windows,
                idle_before,
                readings,
                candidate_pods,
                workloads: &BTreeMap::new(),
                database_pods,
                restarted_pods: &BTreeSet::new(),
                injector_pods: &BTreeSet::new(),
                expected_status: &[200],
                limits: Limits::new(MAX_NODE_WATTS),
                ramp_up_seconds: 0.0,
            })
        });
        let (end, status) = match assessed {
            Err(void) => {
                let message = void.to_string();
                (
                    void.reason().to_owned(),
                    record(Outcome::Void, void.reason(), message),
                )
            }
            Ok(assessment) => {
                require(not_finite(&assessment), "an assessment")?;
                let status = FrugalityTrialStatus {
                    requests: Some(assessment.requests),
                    energy: Some(assessment.energy),
                    fortio: report.measured.fortio().cloned(),
                    candidate_pods: candidate_pods.iter().cloned().collect(),
                    database_pods: database_pods.iter().cloned().collect(),
                    ..record(Outcome::Measured, "Measured", String::new())
                };
                ("Measured".to_owned(), status)
            }
        };
        self.status(&status, &|| has_such_word(readings, report))
            .map(|verdict| format!("{end}, {verdict}"))
    }

    /// The verdict of a run in which all attempts have this record, except the first, which is undisturbed.
    fn status(
        &self,
        record: &FrugalityTrialStatus,
        is_foreign: &dyn Fn() -> bool,
    ) -> Result<String, String> {
        let ledger = serde_json::to_string(record).map_err(|error| error.to_string())?;
        serde_json::from_str::<FrugalityTrialStatus>(&ledger)
            .map_err(|error| format!("a written record cannot be read again: {error}"))?;
        let mut entries: Vec<FrugalityTrial> = Vec::new();
        for block in 1..=5 {
            for (position, candidate) in (1..).zip(NAMES) {
                let start = Start {
                    block,
                    position,
                    attempt: 1,
                    candidate: candidate.to_owned(),
                };
                let mut entry = self.experiment.entry(&start);
                let is_ordinary = record.outcome == Some(Outcome::Measured) && position == 2;
                entry.status = Some(if is_ordinary {
                    self.pattern.clone()
                } else {
                    record.clone()
                });
                entries.push(entry);
            }
        }
        let status = self.experiment.status(entries);
        require(not_finite(&status), "the status")?;
        let json = serde_json::to_value(&status).map_err(|error| error.to_string())?;
        words(&json, is_foreign)?;
        Ok(status
            .verdict
            .map_or("running".to_owned(), |verdict| format!("{verdict:?}")))
    }
}

/// The same reading some seconds later, on a node with a power of [`WATTS`].
fn later(reading: &Reading, seconds: f64) -> Reading {
    let mut reading = reading.clone();
    let more = |counter: &mut Option<f64>, rate: f64| {
        if let Some(counter) = counter {
            *counter += rate * seconds;
        }
    };
    reading.scraped_at_unix_seconds += seconds;
    more(&mut reading.meter_unix_seconds, 1.0);
    reading.node_joules += WATTS * seconds;
    more(&mut reading.active_joules, WATTS / 2.0);
    more(&mut reading.idle_joules, WATTS / 2.0);
    more(&mut reading.node_cpu_seconds, 1.0);
    let share = 0.9 / reading.pods.len().max(1) as f64;
    for pod in &mut reading.pods {
        more(&mut pod.joules, share * WATTS / 2.0);
        more(&mut pod.cpu_seconds, share);
    }
    reading
}

fn uids(reading: &Reading) -> impl Iterator<Item = String> {
    reading.pods.iter().map(|pod| pod.uid().to_owned())
}

/// Whether a foreign text has a word such as `NaN` or `inf`. Foreign texts may have any word.
fn has_such_word(readings: &[Reading], report: &InjectionReport) -> bool {
    let of_reading = |reading: &Reading| {
        let meter = &reading.meter;
        let own = [&meter.version, &meter.source, &reading.zone].into_iter();
        let pods = reading.pods.iter();
        own.chain(&meter.board)
            .chain(pods.flat_map(|pod| {
                [
                    &pod.identity.uid,
                    &pod.identity.name,
                    &pod.identity.namespace,
                ]
            }))
            .any(|text| names_none(text))
    };
    report.interrupted.as_deref().is_some_and(names_none) || readings.iter().any(of_reading)
}

/// Fails if the status has null, or a text with NaN or infinity. Such a text is allowed if a foreign text has the word.
fn words(json: &Value, is_foreign: &dyn Fn() -> bool) -> Result<(), String> {
    match json {
        Value::Null => Err("the status has null where a number belongs".to_owned()),
        Value::String(text) if names_none(text) && !is_foreign() => {
            let shape = text.chars().filter(|c| !c.is_ascii_digit()).take(120);
            Err(format!("the status says: {}", shape.collect::<String>()))
        }
        Value::Array(items) => items.iter().try_for_each(|item| words(item, is_foreign)),
        Value::Object(fields) => fields
            .values()
            .try_for_each(|field| words(field, is_foreign)),
        _ => Ok(()),
    }
}
