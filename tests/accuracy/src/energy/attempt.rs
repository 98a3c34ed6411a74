//! Carries out one attempt on a virtual node, from Fortio's JSON and the meter's text to the record in the ledger.

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::{
    attempt::{Attempt, assess, windows},
    energy::{EnergyFigures, Limits},
    fortio,
    load::LoadResult,
    reading::{self, Reading},
    report::InjectionReport,
    void::Void,
};
use frugality_operator::{
    api::{FrugalityTrialStatus, Outcome},
    time,
};
use serde_json::json;

use super::draw::{Case, Fault};
use crate::{
    Error,
    experiment::{MAX_NODE_WATTS, MEASURED_NODE, T0, record},
    node::{Kind, Meter, Node, Pods, Power, Shown, Timeline},
    random::Random,
};

/// The operator reads twice a second.
const SCRAPE_SECONDS: f64 = 0.5;
/// Share of scrapes that are lost at random, without a fault.
const LOST_SHARE: f64 = 0.02;
/// How long a hung scrape lasts, in seconds. The meter gives no reading in this time.
const HUNG_SECONDS: [f64; 2] = [1.0, 3.0];

/// An attempt with its true values.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) status: FrugalityTrialStatus,
    /// True gross joules per successful request.
    pub(super) true_gross: f64,
    /// True net joules per successful request: the energy of the load alone.
    pub(super) true_net: f64,
}

/// The record of an undisturbed attempt with a good meter: an example with all fields set.
pub fn clean_attempt() -> Result<FrugalityTrialStatus, Error> {
    let status = carry_out(&clean_case(), None, 0, &mut Random::new(1, 0, 0))?.status;
    if status.outcome == Some(Outcome::Measured) {
        Ok(status)
    } else {
        let message = status.message.unwrap_or_default();
        Err(Error::Unexpected(format!(
            "an undisturbed attempt is void: {message}"
        )))
    }
}

/// The last reading of the attempt of [`clean_attempt`].
pub(crate) fn clean_reading() -> Result<Reading, Error> {
    let case = clean_case();
    let timeline = case.timeline(T0);
    let mut random = Random::new(1, 0, 0);
    let node = Node::new(&timeline, case.power, &mut random);
    let nothing = || Error::Unexpected("an undisturbed attempt has no readings".to_owned());
    readings(&case, &timeline, &node, None, &mut random)?
        .pop()
        .ok_or_else(nothing)
}

fn clean_case() -> Case {
    Case {
        meter: Meter {
            kind: Kind::NodeMeter,
            interval_seconds: 1.0,
            gain: 1.0,
            relative_uncertainty: None,
            resolution_joules: 1e-6,
            begun_joules: 1000.0,
        },
        power: Power {
            idle_watts: 2.0,
            load_watts: 3.0,
            load_noise: 0.0,
            noise_seconds: 1.0,
        },
        pods: Pods::new(1, 1, 0),
        window_seconds: 20.0,
        idle_seconds: 10.0,
        gap_seconds: 0.02,
        rate: 500.0,
        error_share: 0.0,
        trial_cv: 0.0,
        clock_offset: 0.75,
        clock_uncertainty: 0.001,
        hung_share: 0.0,
        fault: None,
    }
}

/// Carries out attempt `number` of the run.
pub(super) fn carry_out(
    case: &Case,
    fault: Option<Fault>,
    number: usize,
    random: &mut Random,
) -> Result<Trial, Error> {
    let timeline = case.timeline(T0 + 1000.0 * number as f64 + random.uniform());
    let node = Node::new(&timeline, case.power, random);
    let rate = case.rate * (case.trial_cv * random.normal()).exp();
    let requests = count(rate * timeline.measured.seconds());
    let errors = count(requests as f64 * case.error_share);
    let report = report(case, &timeline, requests, errors, fault, random)?;
    let readings = readings(case, &timeline, &node, fault, random)?;
    let per_success = |joules: f64| joules / (requests - errors) as f64;
    let load = |at| node.joules_until(at).1;
    Ok(Trial {
        true_gross: per_success(node.joules(timeline.measured)),
        true_net: per_success(
            load(timeline.measured.end_unix_seconds) - load(timeline.measured.start_unix_seconds),
        ),
        status: judged(case, &timeline, &report, &readings),
    })
}

/// The operator's record of an ended attempt.
fn judged(
    case: &Case,
    timeline: &Timeline,
    report: &InjectionReport,
    readings: &[Reading],
) -> FrugalityTrialStatus {
    let uids = |pods: &[(String, f64)]| -> BTreeSet<String> {
        pods.iter().map(|(uid, _)| uid.clone()).collect()
    };
    let (candidate_pods, database_pods) = (uids(&case.pods.candidate), uids(&case.pods.database));
    let assessed = windows(report, case.settle_seconds(), case.idle_seconds).and_then(|windows| {
        assess(&Attempt {
            report,
            windows: &windows,
            idle_before: timeline.idle_before,
            readings,
            candidate_pods: &candidate_pods,
            workloads: &BTreeMap::new(),
            database_pods: &database_pods,
            restarted_pods: &BTreeSet::new(),
            injector_pods: &BTreeSet::new(),
            expected_status: &[200],
            limits: Limits::new(MAX_NODE_WATTS),
            ramp_up_seconds: 0.0,
        })
    });
    let void = |void: &Void| record(Outcome::Void, void.reason(), void.to_string());
    assessed.map_or_else(
        |reason| void(&reason),
        |assessment| FrugalityTrialStatus {
            requests: Some(assessment.requests),
            energy: Some(assessment.energy),
            fortio: report.measured.fortio().cloned(),
            idle_before: Some(timeline.idle_before),
            window: Some(timeline.measured),
            candidate_pods: candidate_pods.iter().cloned().collect(),
            database_pods: database_pods.iter().cloned().collect(),
            ..record(Outcome::Measured, "Measured", String::new())
        },
    )
}

/// The injector's report, encoded and decoded like the termination message of its container.
fn report(
    case: &Case,
    timeline: &Timeline,
    requests: u64,
    errors: u64,
    fault: Option<Fault>,
    random: &mut Random,
) -> Result<InjectionReport, Error> {
    let own = |at: f64| at - case.clock_offset;
    let rate = requests as f64 / timeline.measured.seconds();
    let measured = LoadResult::from(fortio::parse(&fortio_json(
        own(timeline.measured.start_unix_seconds),
        timeline.measured.seconds(),
        requests,
        errors,
    ))?);
    let span = |window: frugality_measure::energy::Window| {
        let requests = count(rate * window.seconds());
        json!({
            "startUnixSeconds": own(window.start_unix_seconds),
            "durationSeconds": window.seconds(),
            "requests": requests,
            "errors": count(requests as f64 * case.error_share),
        })
    };
    let uncertainty = if fault == Some(Fault::Clock) {
        0.2
    } else {
        case.clock_uncertainty
    };
    let offset = case.clock_offset + random.between(-uncertainty, uncertainty);
    let clock = json!({"offsetSeconds": offset, "uncertaintySeconds": uncertainty});
    let report: InjectionReport = serde_json::from_value(json!({
        "version": frugality_measure::report::REPORT_VERSION,
        "measured": measured,
        "histogramDropped": true,
        "askedWarmUpSeconds": timeline.warm_up.seconds(),
        "askedTailSeconds": timeline.tail.seconds(),
        "warmUp": span(timeline.warm_up),
        "tail": span(timeline.tail),
        "gapBeforeMeasuredSeconds": case.gap_seconds,
        "gapAfterMeasuredSeconds": case.gap_seconds,
        "interrupted": (fault == Some(Fault::Interrupted)).then_some("the measured run, by SIGTERM"),
        "clock": clock,
        "clockAfter": clock,
    }))?;
    Ok(InjectionReport::decode(&report.encode()?)?)
}

/// Fortio's JSON for such a run.
#[must_use]
pub(crate) fn fortio_json(start: f64, seconds: f64, requests: u64, errors: u64) -> String {
    const CONNECTIONS: u32 = 4;
    // The connections wait for answers nearly all the time, because the load is a closed loop.
    let latency = 0.98 * f64::from(CONNECTIONS) * seconds / requests as f64;
    let histogram = |count: u64| {
        json!({
            "Count": count, "Min": latency / 2.0, "Max": latency * 2.0,
            "Sum": count as f64 * latency, "Avg": latency, "StdDev": latency / 4.0,
            "Data": [{"Start": latency / 2.0, "End": latency * 2.0, "Percent": 100, "Count": count}],
            "Percentiles": [{"Percentile": 50, "Value": latency}],
        })
    };
    let codes: BTreeMap<&str, u64> = [("200", requests - errors), ("500", errors)]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    let start = time::timestamp(start).map(|start| start.to_string());
    json!({
        "RunType": "HTTP", "Labels": "", "StartTime": start.unwrap_or_default(),
        "RequestedQPS": "max", "RequestedDuration": format!("{}s", seconds.floor()),
        "ActualQPS": requests as f64 / seconds, "ActualDuration": count(seconds * 1e9),
        "NumThreads": CONNECTIONS, "Version": "1.69.5", "DurationHistogram": histogram(requests),
        "ErrorsDurationHistogram": histogram(errors), "Exactly": 0,
        "URL": "http://one:8080/", "RetCodes": codes, "SocketCount": CONNECTIONS,
    })
    .to_string()
}

/// The operator's readings of the attempt.
fn readings(
    case: &Case,
    timeline: &Timeline,
    node: &Node,
    fault: Option<Fault>,
    random: &mut Random,
) -> Result<Vec<Reading>, Error> {
    // Faults start in the middle of the measured window.
    let middle = timeline.measured.start_unix_seconds + timeline.measured.seconds() / 2.0;
    let hung = random.chance(case.hung_share).then(|| {
        let seconds = random.between(HUNG_SECONDS[0], HUNG_SECONDS[1]);
        let from = timeline.measured.end_unix_seconds - random.between(0.0, seconds);
        from..from + seconds
    });
    let mut before = timeline.start;
    let mut readings = Vec::new();
    let mut at = timeline.start + SCRAPE_SECONDS;
    while at < timeline.end {
        let scraped_at = at + random.between(0.0, 0.1);
        at += SCRAPE_SECONDS;
        let faulty = |during: f64| (0.0..during).contains(&(scraped_at - middle));
        let is_silent = fault == Some(Fault::Silence) && faulty(8.0);
        let is_hung = hung.as_ref().is_some_and(|hung| hung.contains(&scraped_at));
        if is_silent || is_hung || random.chance(LOST_SHARE) {
            continue;
        }
        let held = if fault == Some(Fault::StandStill) && faulty(8.0) {
            middle
        } else {
            scraped_at
        };
        before = case.meter.observed_at(held, before);
        let since = |wanted: Fault| fault == Some(wanted) && before > middle;
        let shown = Shown {
            observed_at: before,
            meter_start: if since(Fault::Restart) {
                middle
            } else {
                T0 - 3600.0
            },
            extra_joules: if since(Fault::Wrap) {
                5513.0
            } else if since(Fault::Loss) {
                -500.0
            } else {
                0.0
            },
            version: if since(Fault::Update) {
                "0.2.0"
            } else {
                "0.1.0"
            },
            provenance: if fault == Some(Fault::Fake) {
                "Fake"
            } else {
                "Metered"
            },
            replaced_pods: since(Fault::Replaced),
        };
        let text = case.meter.text(node, &case.pods, &shown);
        readings.push(reading::read(&text, MEASURED_NODE, None, scraped_at)?);
    }
    Ok(readings)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count far below 2^53"
)]
fn count(amount: f64) -> u64 {
    amount.round() as u64
}

/// U: twice the relative standard uncertainty that a record states for its energy.
pub(super) fn stated(energy: &EnergyFigures) -> f64 {
    let meter = energy.meter_relative_uncertainty.unwrap_or_default();
    2.0 * energy.node_joules_relative_uncertainty.hypot(meter)
}
