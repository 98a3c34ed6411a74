//! One attempt: the injector's report and the readings become figures, or a reason why no figures exist.

mod load;

use std::collections::{BTreeMap, BTreeSet};

use crate::energy::{AttemptReadings, Ends, EnergyFigures, Limits, Tail, Window, evaluate};
use crate::figures::LoadSpan;
use crate::figures::RequestFigures;
use crate::reading::Reading;
use crate::report::InjectionReport;
use crate::void::Void;
pub use load::MAX_CLOCK_ERROR_SECONDS;

/// The windows of an attempt, all in the meter's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// The load before the measured window, if there was one.
    pub warm_up: Option<Window>,
    /// The measured window: the load generator's own start and duration.
    pub measured: Window,
    /// The load after the measured window, if there was one.
    pub tail: Option<Window>,
    /// The idle baseline after the load.
    pub idle_after: Window,
}

/// Derives the windows from a report. The idle baseline begins `settle_seconds` after the end of all load and
/// lasts `idle_seconds`.
///
/// The attempt is void if Fortio was interrupted, if load was missing around the measured run, or if the
/// clocks of meter and injector could not be compared or moved against each other.
pub fn windows(
    report: &InjectionReport,
    settle_seconds: f64,
    idle_seconds: f64,
) -> Result<Windows, Void> {
    load::whole(report)?;
    let clock = load::clocks(report)?;
    load::steady(report)?;
    let window = |span: LoadSpan| {
        let start_unix_seconds = span.start_unix_seconds + clock.offset_seconds;
        Window {
            start_unix_seconds,
            end_unix_seconds: start_unix_seconds + span.duration_seconds,
        }
    };
    let measured = window(report.measured.span());
    let tail = report.tail.map(window);
    let load_end = tail.unwrap_or(measured).end_unix_seconds;
    let idle_start = load_end + settle_seconds;
    Ok(Windows {
        warm_up: report.warm_up.map(window),
        measured,
        tail,
        idle_after: Window {
            start_unix_seconds: idle_start,
            end_unix_seconds: idle_start + idle_seconds,
        },
    })
}

/// The inputs for one attempt's figures.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The injector's report.
    pub report: &'a InjectionReport,
    /// The windows of that report.
    pub windows: &'a Windows,
    /// The idle baseline before the load: candidate up, unloaded.
    pub idle_before: Window,
    /// Readings of the measured node, in any order.
    pub readings: &'a [Reading],
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// UIDs of the candidate's pods by server name, if the candidate has several servers; otherwise empty.
    pub workloads: &'a BTreeMap<String, BTreeSet<String>>,
    /// UIDs of the database's pods; empty if the boundary contains no database.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods whose own containers ended during the attempt. The candidate caused this.
    pub restarted_pods: &'a BTreeSet<String>,
    /// UIDs of the injector's pods; empty if the injector runs on another node.
    pub injector_pods: &'a BTreeSet<String>,
    /// Status codes that count as success.
    pub expected_status: &'a [u16],
    /// The limits that the readings must satisfy.
    pub limits: Limits,
    /// How long the load rises at the begin of the warm-up, in seconds.
    pub ramp_up_seconds: f64,
}

/// The figures of an attempt that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// The figures of its requests.
    pub requests: RequestFigures,
    /// The figures of its energy.
    pub energy: EnergyFigures,
}

/// Computes the figures of an attempt, or the reason why they cannot be trusted.
pub fn assess(attempt: &Attempt<'_>) -> Result<Assessment, Void> {
    let requests = attempt.report.measured.figures(attempt.expected_status);
    let energy = evaluate(&AttemptReadings {
        readings: attempt.readings,
        idle_before: attempt.idle_before,
        measured: attempt.windows.measured,
        idle_after: attempt.windows.idle_after,
        candidate_pods: attempt.candidate_pods,
        workloads: attempt.workloads,
        database_pods: attempt.database_pods,
        restarted_pods: attempt.restarted_pods,
        injector_pods: attempt.injector_pods,
        tail: tail(attempt),
        ends: ends(attempt.report, attempt.ramp_up_seconds),
        units: requests.units(),
        limits: attempt.limits,
    })?;
    Ok(Assessment { requests, energy })
}

/// The injector's report about the ends of the measured run. A load without steady power gets no steady time, and the load is
/// not the same while it still rises.
fn ends(report: &InjectionReport, ramp_up_seconds: f64) -> Ends {
    let steady = |span: Option<LoadSpan>, rising_seconds: f64| {
        let span = span.filter(|_| report.measured.is_steady());
        span.map_or(0.0, |it| (it.duration_seconds - rising_seconds).max(0.0))
    };
    let length = |span: Option<LoadSpan>| span.map(|it| it.duration_seconds);
    Ends {
        load_before_seconds: length(report.warm_up),
        load_after_seconds: length(report.tail),
        clock_uncertainty_seconds: load::clock_uncertainty_seconds(report),
        gap_before_seconds: report.gap_before_measured_seconds.unwrap_or(0.0).max(0.0),
        gap_after_seconds: report.gap_after_measured_seconds.unwrap_or(0.0).max(0.0),
        steady_before_seconds: steady(report.warm_up, ramp_up_seconds),
        steady_after_seconds: steady(report.tail, 0.0),
    }
}

/// The load after the measured window, relative to the measured load. Absent if unknown, for example for an
/// execution that was cut off.
fn tail(attempt: &Attempt<'_>) -> Option<Tail> {
    if !attempt.report.measured.is_steady() {
        return None;
    }
    let measured = attempt.report.measured.span().requests_per_second()?;
    let tail = attempt.report.tail?.requests_per_second()?;
    Some(Tail {
        window: attempt.windows.tail?,
        relative_load: tail / measured,
    })
}

/// The largest relative difference between the mean answer lengths of a candidate's trials. A larger
/// difference means that the data or the program changed.
const MAX_BODY_DIFFERENCE: f64 = 0.01;

/// Beyond that share, the difference may be this many standard errors. If each request asks for another row,
/// means over few rows differ by chance.
const BODY_STANDARD_ERRORS: f64 = 3.0;

/// Checks that a candidate's answers are as long as in an earlier trial of the run. A difference shows that
/// the data or the program changed from outside. Trials with errors are not compared, because the bodies of
/// errors differ.
pub fn same_answers(now: &RequestFigures, earlier: &RequestFigures) -> Result<(), Void> {
    let (Some(mean_bytes), Some(earlier_bytes)) = (now.mean_body_bytes, earlier.mean_body_bytes)
    else {
        return Ok(());
    };
    let error = |figures: &RequestFigures| figures.mean_body_standard_error_bytes.unwrap_or(0.0);
    let allowed_bytes = (MAX_BODY_DIFFERENCE * earlier_bytes)
        .max(BODY_STANDARD_ERRORS * error(now).hypot(error(earlier)));
    if (mean_bytes - earlier_bytes).abs() > allowed_bytes {
        return Err(Void::ResponsesDiffer {
            mean_bytes,
            earlier_bytes,
            allowed_bytes,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ends;
    use crate::{
        figures::LoadSpan,
        fortio,
        load::LoadResult,
        report::{InjectionReport, REPORT_VERSION},
    };

    #[test]
    fn a_load_that_rises_is_not_the_same_load() {
        let measured = fortio::parse(include_str!("../tests/data/fortio-sample.json")).unwrap();
        let beside = |duration_seconds| LoadSpan {
            duration_seconds,
            ..measured.span()
        };
        let report: InjectionReport = serde_json::from_value(json!({
            "version": REPORT_VERSION, "measured": LoadResult::Fortio(measured.clone()), "histogramDropped": false,
            "askedWarmUpSeconds": 10, "askedTailSeconds": 3, "warmUp": beside(10.0), "tail": beside(3.0),
        }))
        .unwrap();
        for (ramp_up_seconds, steady_seconds) in [(0.0, 10.0), (4.0, 6.0), (12.0, 0.0)] {
            let ends = ends(&report, ramp_up_seconds);
            let steady = (ends.steady_before_seconds, ends.steady_after_seconds);
            assert_eq!(steady, (steady_seconds, 3.0));
            assert_eq!(ends.load_before_seconds, Some(10.0));
        }
    }
}
