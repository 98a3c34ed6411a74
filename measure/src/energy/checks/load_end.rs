//! Checks that the load ended at the time that the injector reports.

use std::collections::BTreeSet;

use crate::energy::evidence::AttemptEvidence;
use crate::{
    energy::attempt::{Tail, Window},
    void::Void,
};
use crate::{energy::counters::Series, reading::PodReading, statistics::broken_line::broken_line};

/// The largest difference between the observed and the reported end of the load, in seconds. The clocks'
/// offset is known to 0.1 s, and readings are half a second apart.
const MAX_STEP_DISTANCE_SECONDS: f64 = 0.5;
/// The same limit in the meter's intervals. A step between two readings cannot be located better.
const MAX_STEP_DISTANCE_INTERVALS: f64 = 2.0;
/// The load must exceed the idle value by this factor. Such a step is visible even if the load varies by a
/// tenth.
const STEP_RATIO: f64 = 3.0;
/// A smaller step of CPU use cannot be distinguished from the database's own bursts: a burst of 50 ms would
/// look like half a second of load.
const LEAST_STEP_CPUS: f64 = 0.1;
/// If the tail has less than this share of the window's load, it ends in no visible step: the candidate
/// failed.
const LEAST_RELATIVE_LOAD: f64 = 0.5;
/// The minimum number of the meter's intervals on either side of a break, for the lines before and after it.
const LEAST_READINGS: f64 = 3.0;
/// A break is the load's end if the counter's slope falls there by at least this share of the step.
const LEAST_BREAK: f64 = 0.5;

/// A counter that rises with the load.
struct Shown<'a> {
    counter: Box<dyn Fn(Window) -> Option<f64> + 'a>,
    /// The counter's rise per second under load.
    loaded: f64,
    idle: f64,
    named: &'static str,
}

/// Checks that the CPU use of the measured pods falls at the reported end of the load. If the meter reports
/// no CPU time, the node's power is used instead. Without a visible step there is no check.
pub(super) fn load_ends_when_reported(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let Some(tail) = attempt.tail.filter(|tail| {
        tail.relative_load >= LEAST_RELATIVE_LOAD && attempt.restarted_pods.is_empty()
    }) else {
        return Ok(());
    };
    let pods = attempt.pods().cloned().collect();
    let Some(shown) = shown(evidence, &pods) else {
        return Ok(());
    };
    let reported_unix_seconds = tail.window.end_unix_seconds;
    let limit_seconds =
        MAX_STEP_DISTANCE_SECONDS.max(MAX_STEP_DISTANCE_INTERVALS * series.interval_seconds());
    let is_near = |seen: &f64| (seen - reported_unix_seconds).abs() <= limit_seconds;
    let Some(by_amount) = seen_by_amount(evidence, tail, &shown) else {
        return Ok(());
    };
    // The amount is exact if the tail's load equals the window's. On a node whose speed changes they differ.
    // The break still shows when the load ended.
    let by_break = || seen_by_break(evidence, tail, &shown);
    if is_near(&by_amount) || by_break().as_ref().is_some_and(is_near) {
        return Ok(());
    }
    Err(Void::LoadNotSeen {
        reported_unix_seconds,
        seen_unix_seconds: by_amount,
        limit_seconds,
        seen_by: shown.named.to_owned(),
    })
}

/// Returns `None` if there is no visible step.
fn shown<'a>(evidence: &'a AttemptEvidence<'_>, pods: &'a BTreeSet<String>) -> Option<Shown<'a>> {
    let AttemptEvidence { attempt, series } = evidence;
    let cpu = |window| series.pods_delta(window, pods, |pod: &PodReading| pod.cpu_seconds);
    let energy = |window| series.node_joules(window).ok();
    let rates = |counter: &dyn Fn(Window) -> Option<f64>| {
        let rate = |window: Window| Some(counter(window)? / window.seconds());
        Some((rate(attempt.measured)?, rate(attempt.idle_after)?))
    };
    let (shown, least_step) = if let Some((loaded, idle)) = rates(&cpu) {
        let shown = Shown {
            counter: Box::new(cpu),
            loaded,
            idle,
            named: "the CPU use of the measured pods",
        };
        (shown, LEAST_STEP_CPUS)
    } else {
        let (loaded, idle) = rates(&energy)?;
        let shown = Shown {
            counter: Box::new(energy),
            loaded,
            idle,
            named: "the node's power",
        };
        (shown, 0.0)
    };
    let is_step = shown.loaded > STEP_RATIO * shown.idle && shown.loaded - shown.idle >= least_step;
    is_step.then_some(shown)
}

/// The end of the load, computed from the amount that the counter rose. It assumes the window's load times
/// the tail's relative load for x seconds and rest afterwards: amount = idle·all + step·x.
fn seen_by_amount(evidence: &AttemptEvidence<'_>, tail: Tail, shown: &Shown<'_>) -> Option<f64> {
    let after = Window {
        start_unix_seconds: tail.window.start_unix_seconds,
        end_unix_seconds: evidence.attempt.idle_after.start_unix_seconds,
    };
    let amount = (shown.counter)(after)?;
    let step = (shown.loaded - shown.idle) * tail.relative_load;
    Some(after.start_unix_seconds + (amount - shown.idle * after.seconds()) / step)
}

/// The time at which the counter's slope fell, for any slope before it: the break of the line through the
/// readings around the end. `None` if no break falls by enough to be the load's end.
fn seen_by_break(evidence: &AttemptEvidence<'_>, tail: Tail, shown: &Shown<'_>) -> Option<f64> {
    let AttemptEvidence { attempt, series } = evidence;
    let least = LEAST_READINGS * series.interval_seconds();
    let end = tail.window.end_unix_seconds;
    let span = Window {
        start_unix_seconds: tail
            .window
            .start_unix_seconds
            .min(end - least)
            .max(attempt.measured.start_unix_seconds),
        end_unix_seconds: attempt
            .idle_after
            .start_unix_seconds
            .max(end + least)
            .min(attempt.idle_after.end_unix_seconds),
    };
    let found = broken_line(&points(series, span, shown)?)?;
    let step = (shown.loaded - shown.idle) * tail.relative_load;
    (found.slope_before - found.slope_after >= LEAST_BREAK * step).then_some(found.at)
}

/// The counter at every reading within `span`.
fn points(series: &Series<'_>, span: Window, shown: &Shown<'_>) -> Option<Vec<(f64, f64)>> {
    let times = series.readings().iter().map(|r| r.at_unix_seconds());
    let inside = |at: &f64| span.start_unix_seconds <= *at && *at <= span.end_unix_seconds;
    times
        .filter(inside)
        .map(|at| {
            let until = Window {
                end_unix_seconds: at,
                ..span
            };
            Some((at, (shown.counter)(until)?))
        })
        .collect()
}
