//! Whether the load's end is seen where the injector's clock puts it.

use std::collections::BTreeSet;

use super::Evidence;
use crate::{
    energy::{Tail, Void, Window, counters::Series},
    reading::PodReading,
    statistics::broken_line::broken_line,
};

/// How far the end of the load may seem to be from where the injector's clock puts it: the offset is
/// known to 0.1 s, and readings are half a second apart.
const MAX_STEP_DISTANCE_SECONDS: f64 = 0.5;
/// The same in the meter's intervals, between whose readings a step is not seen.
const MAX_STEP_DISTANCE_INTERVALS: f64 = 2.0;
/// A step from less than a third is seen even where the load varies by a tenth.
const STEP_RATIO: f64 = 3.0;
/// A step of CPU use below this is not told from the database's own bursts: one of 50 ms would seem
/// to be half a second of load.
const LEAST_STEP_CPUS: f64 = 0.1;
/// A tail with less than this of the window's load is no step either: the candidate failed.
const LEAST_RELATIVE_LOAD: f64 = 0.5;
/// Readings on either side of a break, at least, for the lines before and after it.
const LEAST_READINGS: f64 = 3.0;
/// A break is the load's end if the counter's slope falls there by this share of the step at least.
const LEAST_BREAK: f64 = 0.5;

/// What shows the load: a counter that rises with it.
struct Shown<'a> {
    counter: Box<dyn Fn(Window) -> Option<f64> + 'a>,
    /// In its unit for each second.
    loaded: f64,
    idle: f64,
    named: &'static str,
}

/// The CPU use of the measured pods falls where the injector's clock says that the load ended; the
/// node's power, where the meter serves no CPU time. Asked only where there is a step to be seen.
pub(super) fn load_seen_where_told(evidence: &Evidence<'_>) -> Result<(), Void> {
    let Evidence { attempt, series } = evidence;
    let Some(tail) = attempt.tail.filter(|tail| {
        tail.relative_load >= LEAST_RELATIVE_LOAD && attempt.restarted_pods.is_empty()
    }) else {
        return Ok(());
    };
    let pods = attempt.pods().cloned().collect();
    let Some(shown) = shown(evidence, &pods) else {
        return Ok(());
    };
    let told_unix_seconds = tail.window.end_unix_seconds;
    let limit_seconds =
        MAX_STEP_DISTANCE_SECONDS.max(MAX_STEP_DISTANCE_INTERVALS * series.interval_seconds());
    let is_near = |seen: &f64| (seen - told_unix_seconds).abs() <= limit_seconds;
    let Some(by_amount) = seen_by_amount(evidence, tail, &shown) else {
        return Ok(());
    };
    // The amount is exact where the tail is as the window. Where it is not, as on a node whose speed
    // changes, the break shows when it ended all the same.
    let by_break = || seen_by_break(evidence, tail, &shown);
    if is_near(&by_amount) || by_break().as_ref().is_some_and(is_near) {
        return Ok(());
    }
    Err(Void::LoadNotSeen {
        told_unix_seconds,
        seen_unix_seconds: by_amount,
        limit_seconds,
        seen_by: shown.named.to_owned(),
    })
}

/// None where there is no step to be seen.
fn shown<'a>(evidence: &'a Evidence<'_>, pods: &'a BTreeSet<String>) -> Option<Shown<'a>> {
    let Evidence { attempt, series } = evidence;
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

/// When the load ended if the tail's was the window's, or that part of it which the injector saw: load for
/// x seconds and rest for the others, amount = idle·all + step·x.
fn seen_by_amount(evidence: &Evidence<'_>, tail: Tail, shown: &Shown<'_>) -> Option<f64> {
    let after = Window {
        start_unix_seconds: tail.window.start_unix_seconds,
        end_unix_seconds: evidence.attempt.idle_after.start_unix_seconds,
    };
    let amount = (shown.counter)(after)?;
    let step = (shown.loaded - shown.idle) * tail.relative_load;
    Some(after.start_unix_seconds + (amount - shown.idle * after.seconds()) / step)
}

/// When the counter's slope fell, whatever it was before: the break of the line through the readings around
/// the end. None where no break falls by enough to be the load's.
fn seen_by_break(evidence: &Evidence<'_>, tail: Tail, shown: &Shown<'_>) -> Option<f64> {
    let Evidence { attempt, series } = evidence;
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

/// The counter at every reading inside a span.
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
