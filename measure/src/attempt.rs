//! One attempt, from the injector's report and the readings to its figures, or to the reason why
//! there are none.

use std::collections::BTreeSet;

use crate::energy::{AttemptReadings, EnergyFigures, Limits, Void, Window, evaluate};
use crate::fortio::{RequestFigures, figures};
use crate::reading::Reading;
use crate::report::{InjectionReport, LoadSpan};

/// Largest uncertainty of the clocks' offset: at a window of 20 s, half a percent.
pub const MAX_CLOCK_UNCERTAINTY_SECONDS: f64 = 0.1;

/// Where an attempt's windows lie, all in the meter's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Windows {
    /// The load before the measured window, if there was one.
    pub warm_up: Option<Window>,
    /// The measured window: Fortio's own start and duration.
    pub measured: Window,
    /// The load after it, if there was one.
    pub tail: Option<Window>,
    /// The idle baseline after the load.
    pub idle_after: Window,
}

/// The windows that a report tells of: the idle baseline begins `settle_seconds` after the end of
/// all load and lasts `idle_seconds`. Void where Fortio was interrupted, or where the clocks of
/// meter and injector could not be compared.
pub fn windows(
    report: &InjectionReport,
    settle_seconds: f64,
    idle_seconds: f64,
) -> Result<Windows, Void> {
    if let Some(how) = &report.interrupted {
        return Err(Void::FortioInterrupted { how: how.clone() });
    }
    let uncertainty_seconds = report.clock.map(|clock| clock.uncertainty_seconds);
    let Some(clock) = report
        .clock
        .filter(|clock| clock.uncertainty_seconds <= MAX_CLOCK_UNCERTAINTY_SECONDS)
    else {
        return Err(Void::ClockOffsetUnknown {
            uncertainty_seconds,
            limit_seconds: MAX_CLOCK_UNCERTAINTY_SECONDS,
        });
    };
    let window = |span: LoadSpan| {
        let start_unix_seconds = span.start_unix_seconds + clock.offset_seconds;
        Window {
            start_unix_seconds,
            end_unix_seconds: start_unix_seconds + span.duration_seconds,
        }
    };
    let measured = window(LoadSpan::from(&report.measured));
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
    /// UIDs of the database's pods; empty where the boundary has none.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods whose own containers ended during the attempt: the candidate's doing.
    pub restarted_pods: &'a BTreeSet<String>,
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
    let requests = figures(&attempt.report.measured, attempt.expected_status);
    let energy = evaluate(&AttemptReadings {
        readings: attempt.readings,
        idle_before: attempt.idle_before,
        measured: attempt.windows.measured,
        idle_after: attempt.windows.idle_after,
        candidate_pods: attempt.candidate_pods,
        database_pods: attempt.database_pods,
        restarted_pods: attempt.restarted_pods,
        successes: requests.successes,
        limits: attempt.limits,
    })?;
    Ok(Assessment { requests, energy })
}
