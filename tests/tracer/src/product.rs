//! Calls the code under test, from a meter's text and an injector's termination message to figures.

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::{
    attempt::{Assessment, Attempt, assess, windows},
    energy::{Limits, Void, Window},
    fortio::parse,
    reading::{Reading, read},
    report::{ClockOffset, InjectionReport, REPORT_VERSION},
};
use serde_json::{Value, json};

use crate::{
    MILLISECOND, Time,
    cases::{Case, Trouble},
    load::{Run, seconds},
    meter::{NODE, Scraped, injector_clock, reading_clock, unix_seconds},
    script::{EXPECTED_STATUS, SETTLE, Trial},
};

/// The operator's limit of a node's power. The meter reports a lower limit.
const MAX_NODE_WATTS: f64 = 450.0;

/// The product's claim for a trial.
pub(crate) fn claim(case: &Case, trial: &Trial, scrapes: &[Scraped]) -> Value {
    match judged(case, trial, scrapes) {
        Ok(figures) => json!({ "figures": figures }),
        Err(void) => json!({ "void": void.reason(), "message": void.to_string() }),
    }
}

fn judged(case: &Case, trial: &Trial, scrapes: &[Scraped]) -> Result<Value, Void> {
    let session = trial.session[0]..trial.session[1];
    let readings: Vec<Reading> = scrapes
        .iter()
        .filter(|scrape| session.contains(&scrape.arrived))
        .map(|scrape| {
            read(&scrape.text, NODE, None, scrape.unix_seconds).expect("the bench serves a meter")
        })
        .collect();
    let message = report(case, trial).encode().expect("a report fits");
    let report = InjectionReport::decode(&message).expect("a report can be read");
    let [idle_from, idle_to] = trial.idle_before;
    let by_reading_clock = |at| unix_seconds(reading_clock(case, at));
    let windows = windows(&report, seconds(SETTLE), seconds(idle_to - idle_from))?;
    let uids = |uids: &[String]| uids.iter().cloned().collect::<BTreeSet<String>>();
    let assessment = assess(&Attempt {
        report: &report,
        windows: &windows,
        idle_before: Window {
            start_unix_seconds: by_reading_clock(idle_from),
            end_unix_seconds: by_reading_clock(idle_to),
        },
        readings: &readings,
        candidate_pods: &uids(&trial.candidate_pods),
        workloads: &BTreeMap::new(),
        database_pods: &uids(&trial.database_pods),
        restarted_pods: &BTreeSet::new(),
        injector_pods: &uids(&trial.injector_pods),
        expected_status: &EXPECTED_STATUS,
        limits: Limits::new(MAX_NODE_WATTS),
        ramp_up_seconds: 0.0,
    })?;
    Ok(figures(&assessment))
}

/// The figures, under the names that the oracle uses.
fn figures(assessment: &Assessment) -> Value {
    let Assessment { requests, energy } = assessment;
    let attributed = energy.attributed.as_ref();
    let cpu = energy.cpu.as_ref();
    json!({
        "successes": requests.successes,
        "errors": requests.errors,
        "requests_per_second": requests.requests_per_second,
        "milliseconds_per_request": requests.ms_per_request,
        "node_joules": energy.node_joules,
        "idle_before_watts": energy.idle_before_watts,
        "idle_after_watts": energy.idle_after_watts,
        "gross_joules_per_request": energy.gross_joules_per_request,
        "net_joules_per_request": energy.net_joules_per_request,
        "candidate_joules_per_request": attributed.and_then(|it| it.candidate_joules_per_request),
        "attributed_joules_per_request":
            attributed.and_then(|it| it.candidate_and_database_joules_per_request),
        "candidate_cpu_seconds_per_request": cpu.and_then(|it| it.candidate_seconds_per_request),
        "cpu_seconds_per_request": cpu.and_then(|it| it.candidate_and_database_seconds_per_request),
        "relative_uncertainty": energy.node_joules_relative_uncertainty,
    })
}

/// The injector's report, made from three runs of Fortio.
fn report(case: &Case, trial: &Trial) -> InjectionReport {
    let result = |run: &Run| {
        let json = run.fortio(injector_clock(case, run.start()));
        parse(&json).expect("the bench writes what Fortio writes")
    };
    let measured = result(&trial.measured);
    let warm_up = result(&trial.warm_up).span();
    let tail = result(&trial.tail).span();
    let is_slow = trial.is_troubled && case.trouble == Some(Trouble::SlowClockExchange);
    // The answer takes longer than the request, so the measured offset is wrong by part of the difference.
    let (wrong_by, half_trip): (Time, Time) = if is_slow {
        (200 * MILLISECOND, 300 * MILLISECOND)
    } else {
        (2 * MILLISECOND, 3 * MILLISECOND)
    };
    let offset = case.offset_milliseconds * MILLISECOND + wrong_by;
    let measured_span = measured.span();
    let clock = ClockOffset {
        offset_seconds: seconds(offset),
        uncertainty_seconds: seconds(half_trip),
    };
    // From JSON, because an older or newer report type may have other fields.
    let report = json!({
        "version": REPORT_VERSION,
        "measured": { "fortio": measured },
        "histogramDropped": false,
        "askedWarmUpSeconds": 5.0,
        "askedTailSeconds": 3.0,
        "warmUp": warm_up,
        "tail": tail,
        "gapBeforeMeasuredSeconds":
            measured_span.start_unix_seconds - warm_up.end_unix_seconds(),
        "gapAfterMeasuredSeconds": tail.start_unix_seconds - measured_span.end_unix_seconds(),
        "clock": clock,
        "clockAfter": clock,
    });
    serde_json::from_value(report).expect("a report of this form")
}
