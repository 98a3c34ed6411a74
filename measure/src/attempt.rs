//! One attempt, from the injector's report and the readings to its figures, or to the reason why
//! there are none.

mod load;

use std::collections::{BTreeMap, BTreeSet};

use crate::energy::{AttemptReadings, Ends, EnergyFigures, Limits, Tail, Window, evaluate};
use crate::load::{LoadResult, RequestFigures};
use crate::reading::Reading;
use crate::report::{InjectionReport, LoadSpan};
use crate::void::Void;
pub use load::MAX_CLOCK_ERROR_SECONDS;

/// Where an attempt's windows lie, all in the meter's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// The load before the measured window, if there was one.
    pub warm_up: Option<Window>,
    /// The measured window: the load generator's own start and duration.
    pub measured: Window,
    /// The load after it, if there was one.
    pub tail: Option<Window>,
    /// The idle baseline after the load.
    pub idle_after: Window,
}

/// The windows that a report tells of: the idle baseline begins `settle_seconds` after the end of
/// all load and lasts `idle_seconds`. Void where they cannot be told: Fortio was interrupted, load was
/// missing around the measured run, or the clocks of meter and injector could not be compared or moved.
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

/// All that one attempt's figures are computed from.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What the injector left.
    pub report: &'a InjectionReport,
    /// The windows of that report.
    pub windows: &'a Windows,
    /// The idle baseline before the load: candidate up, unloaded.
    pub idle_before: Window,
    /// Readings of the measured node, in any order.
    pub readings: &'a [Reading],
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// The same by server, where the candidate has several; each has a name.
    pub workloads: &'a BTreeMap<String, BTreeSet<String>>,
    /// UIDs of the database's pods; empty where the boundary has none.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods whose own containers ended during the attempt: the candidate's doing.
    pub restarted_pods: &'a BTreeSet<String>,
    /// UIDs of the injector's pods; empty where it has a node of its own.
    pub injector_pods: &'a BTreeSet<String>,
    /// Status codes that count as success.
    pub expected_status: &'a [u16],
    /// What the readings must keep to.
    pub limits: Limits,
}

/// The figures of an attempt that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// Of its requests.
    pub requests: RequestFigures,
    /// Of its energy.
    pub energy: EnergyFigures,
}

/// The figures of an attempt, or why they cannot be trusted.
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
        ends: ends(attempt.report),
        units: requests.units(),
        limits: attempt.limits,
    })?;
    Ok(Assessment { requests, energy })
}

/// What the injector says of the measured run's ends. An execution of a program is not steady: its beginning may
/// take other power than its end.
fn ends(report: &InjectionReport) -> Ends {
    let steady = |span: Option<LoadSpan>| match report.measured {
        LoadResult::Batch(_) => 0.0,
        _ => span.map_or(0.0, |it| it.duration_seconds),
    };
    Ends {
        clock_uncertainty_seconds: load::clock_uncertainty_seconds(report),
        gap_before_seconds: report.gap_before_measured_seconds.unwrap_or(0.0).max(0.0),
        gap_after_seconds: report.gap_after_measured_seconds.unwrap_or(0.0).max(0.0),
        steady_before_seconds: steady(report.warm_up),
        steady_after_seconds: steady(report.tail),
    }
}

/// The load after the measured window, with how much of it there was; absent where that is not known, as of an
/// execution that was cut off.
fn tail(attempt: &Attempt<'_>) -> Option<Tail> {
    if let LoadResult::Batch(_) = attempt.report.measured {
        return None;
    }
    let measured = attempt.report.measured.span().requests_per_second()?;
    let tail = attempt.report.tail?.requests_per_second()?;
    Some(Tail {
        window: attempt.windows.tail?,
        relative_load: tail / measured,
    })
}

/// The largest share by which the mean length of a candidate's answers may differ between its trials:
/// other data or another program would answer otherwise.
const MAX_BODY_DIFFERENCE: f64 = 0.01;

/// Beyond that share, by how many standard errors: where each request asks for another row, means over
/// few of them differ by chance.
const BODY_STANDARD_ERRORS: f64 = 3.0;

/// Whether a candidate answers as it did in an earlier trial of the run; that the data behind it, or
/// the program, were changed from outside. Not asked where a trial had errors, whose bodies are others.
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
