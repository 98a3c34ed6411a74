//! What the status of each benchmark says, as gauges. A figure that the status withholds is absent, never 0.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use kube::ResourceExt;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};

use crate::{
    api::{
        CandidateResult, DecidingFigure, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus,
        Verdict,
    },
    load::units::Units,
    time::unix_seconds,
};

/// Name and help of a gauge.
#[derive(Debug, PartialEq, Eq)]
struct Described {
    name: &'static str,
    help: &'static str,
}

const REASON: Described = Described {
    name: "frugality_benchmark_reason",
    help: "1 for the reason code of a benchmark's state, such as Queued, Measuring or BudgetsMet",
};
const REASON_SINCE: Described = Described {
    name: "frugality_benchmark_reason_since_timestamp_seconds",
    help: "Since when this operator's process has seen the state; for Queued: since when the benchmark waits",
};
const VERDICT: Described = Described {
    name: "frugality_benchmark_verdict",
    help: "1 for the verdict of a benchmark that has ended",
};
const TRIALS_PLANNED: Described = Described {
    name: "frugality_benchmark_trials_planned",
    help: "Trials that the verdict needs",
};
const TRIALS_DONE: Described = Described {
    name: "frugality_benchmark_trials_done",
    help: "Valid trials of the run so far",
};
const VOID_ATTEMPTS: Described = Described {
    name: "frugality_benchmark_void_attempts",
    help: "Void attempts of the run so far",
};
const ESTIMATED_END: Described = Described {
    name: "frugality_benchmark_estimated_end_timestamp_seconds",
    help: "Estimated end of a run that has its nodes",
};
/// A figure and the ends of its interval. `$note` ends the help of the interval's ends.
macro_rules! figure {
    ($name:literal, $help:literal $(, $note:literal)?) => {
        [
            Described {
                name: $name,
                help: $help,
            },
            Described {
                name: concat!($name, "_lower"),
                help: concat!("Lower end of its interval" $(, $note)?),
            },
            Described {
                name: concat!($name, "_upper"),
                help: concat!("Upper end of its interval" $(, $note)?),
            },
        ]
    };
}

const JOULES: [Described; 3] = figure!(
    "frugality_benchmark_joules_per_request",
    "Energy per request, cycle, execution or unit of work (label per) in the last verdict",
    "; absent if the accuracy of modelled power is unknown"
);
const RATE: [Described; 3] = figure!(
    "frugality_benchmark_requests_per_second",
    "Successful requests, cycles, executions or units of work per second in the last verdict"
);
const SECONDS: [Described; 3] = figure!(
    "frugality_benchmark_request_seconds",
    "Mean time of a successful request, cycle or execution in the last verdict"
);

const KINDS: [DecidingFigure; 4] = [
    DecidingFigure::Gross,
    DecidingFigure::Net,
    DecidingFigure::Attributed,
    DecidingFigure::NetAttributed,
];

fn all() -> impl Iterator<Item = &'static Described> {
    [
        &REASON,
        &REASON_SINCE,
        &VERDICT,
        &TRIALS_PLANNED,
        &TRIALS_DONE,
        &VOID_ATTEMPTS,
        &ESTIMATED_END,
    ]
    .into_iter()
    .chain(&JOULES)
    .chain(&RATE)
    .chain(&SECONDS)
}

/// The names of all gauges.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    all().map(|it| it.name)
}

type Labels = Vec<(&'static str, String)>;

/// One value of a gauge.
#[derive(Debug, PartialEq)]
struct Sample {
    of: &'static Described,
    labels: Labels,
    value: f64,
}

/// The values that a status gives. `reason_since` is the Unix time in seconds since which its reason code is known.
fn samples(
    benchmark: &FrugalityBenchmark,
    status: &FrugalityBenchmarkStatus,
    reason_since: Option<f64>,
) -> Vec<Sample> {
    let common: Labels = vec![
        ("namespace", benchmark.namespace().unwrap_or_default()),
        ("benchmark", benchmark.name_any()),
    ];
    let with = |more: Labels| [common.clone(), more].concat();
    let mut samples = Vec::new();
    let mut add = |of: &'static Described, labels: Labels, value: Option<f64>| {
        samples.extend(value.map(|value| Sample { of, labels, value }));
    };
    let columns = status.columns.as_ref();
    if let Some(reason) = columns.and_then(|it| it.reason.clone()) {
        let labels = with(vec![("reason", reason)]);
        add(&REASON, labels.clone(), Some(1.0));
        add(&REASON_SINCE, labels, reason_since);
    }
    if let Some(progress) = &status.progress {
        for (of, count) in [
            (&TRIALS_PLANNED, progress.trials_planned),
            (&TRIALS_DONE, progress.trials_done),
            (&VOID_ATTEMPTS, progress.void_attempts),
        ] {
            add(of, common.clone(), Some(f64::from(count)));
        }
        let end = progress.estimated_end.as_deref();
        let end = end.and_then(|it| it.parse::<Timestamp>().ok());
        add(&ESTIMATED_END, common.clone(), end.map(unix_seconds));
    }
    let Some(verdict) = status.verdict else {
        return samples;
    };
    let word = vec![("verdict", format!("{verdict:?}"))];
    add(&VERDICT, with(word), Some(1.0));
    if has_figures(status, verdict) {
        let provenance = status.provenance.as_deref();
        let units = Units::of_results(&status.results);
        for result in &status.results {
            let labels = |more: Labels| {
                let of_result = vec![("candidate", result.candidate.clone())];
                with([of_result, more].concat())
            };
            of_result(result, &units, provenance, labels, &mut add);
        }
    }
    samples
}

/// Whether the status has one figure per candidate that can be trusted. A sweep has one per point; they are in the
/// status only.
fn has_figures(status: &FrugalityBenchmarkStatus, verdict: Verdict) -> bool {
    let mut points = status.results.iter().map(|it| &it.point);
    let first = points.next();
    !matches!(verdict, Verdict::Invalid | Verdict::Error) && points.all(|it| Some(it) == first)
}

fn of_result(
    result: &CandidateResult,
    units: &Units,
    provenance: Option<&str>,
    labels: impl Fn(Labels) -> Labels,
    add: &mut impl FnMut(&'static Described, Labels, Option<f64>),
) {
    let mut figure = |of: &'static [Described; 3], labels: &Labels, figure: Figure| {
        let [value, lower, upper] = of;
        add(value, labels.clone(), Some(figure.value));
        if !figure.is_repeatability_only() {
            let (from, to) = figure.bounds();
            add(lower, labels.clone(), Some(from));
            add(upper, labels.clone(), Some(to));
        }
    };
    for kind in KINDS {
        // Joules of an unknown source could be invented.
        if let Some((joules, provenance)) = result.joules(kind).zip(provenance) {
            let labels = labels(vec![
                ("kind", kind.word().to_owned()),
                ("per", units.one.clone()),
                ("provenance", provenance.to_owned()),
            ]);
            figure(&JOULES, &labels, joules);
        }
    }
    if let Some(rate) = result.requests_per_second {
        figure(&RATE, &labels(vec![("per", units.one.clone())]), rate);
    }
    if let Some(time) = result.milliseconds_per_request {
        let labels = labels(vec![("per", units.whole.to_owned())]);
        figure(&SECONDS, &labels, time.times(1e-3));
    }
}

/// The newest values of each benchmark, by its UID. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Benchmarks(Arc<Mutex<BTreeMap<String, Shown>>>);

/// The values of one benchmark.
#[derive(Debug)]
struct Shown {
    /// Its namespace and name.
    of: (Option<String>, String),
    samples: Vec<Sample>,
}

impl Benchmarks {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn show(
        &self,
        benchmark: &FrugalityBenchmark,
        status: &FrugalityBenchmarkStatus,
        reason_since: Option<f64>,
    ) {
        if let Some(uid) = benchmark.uid() {
            let shown = Shown {
                of: (benchmark.namespace(), benchmark.name_any()),
                samples: samples(benchmark, status, reason_since),
            };
            let mut known = self.known();
            // A benchmark that was deleted and created again has another UID and the same labels.
            known.retain(|_, other| other.of != shown.of);
            known.insert(uid, shown);
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.known().remove(uid);
    }

    pub(super) fn keep(&self, uids: &HashSet<String>) {
        self.known().retain(|uid, _| uids.contains(uid));
    }
}

impl Collector for Benchmarks {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let known = self.known();
        for of in all() {
            let all = known.values().flat_map(|shown| &shown.samples);
            let mut samples = all.filter(|it| it.of == of).peekable();
            if samples.peek().is_none() {
                continue;
            }
            let mut gauge = encoder.encode_descriptor(of.name, of.help, None, MetricType::Gauge)?;
            for sample in samples {
                ConstGauge::new(sample.value).encode(gauge.encode_family(&sample.labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
