//! The conditions on the injector's report: the load was whole and steady, and the clocks did not move
//! against each other.

use crate::report::{ClockOffset, InjectionReport};
use crate::void::Void;

/// The largest uncertainty of the clocks' offset, and the largest change of the offset during the load, in
/// seconds. In a window of 20 s this is half a percent. The offset itself has no limit, because it is
/// corrected.
pub const MAX_CLOCK_ERROR_SECONDS: f64 = 0.1;

/// The longest time without load between two of Fortio's runs, in addition to the candidate's own latency, in
/// seconds. A gap g next to an end of the window changes the energy by at most the loaded power times g, and
/// by at most the loaded power times a quarter of the meter's interval. Here this is at most 2.5 % of the
/// shortest window. Starting Fortio took 19 to 48 ms on a busy machine with two fast cores. The limit allows
/// a small board ten times as long.
const MAX_GAP_SECONDS: f64 = 0.5;

/// Checks that Fortio ran to its end, and that the runs around the measured run did too.
pub(super) fn whole(report: &InjectionReport) -> Result<(), Void> {
    if let Some(how) = &report.interrupted {
        return Err(Void::LoadInterrupted { how: how.clone() });
    }
    for (name, asked, was) in [
        ("warm-up", report.asked_warm_up_seconds, report.warm_up),
        ("tail", report.asked_tail_seconds, report.tail),
    ] {
        if asked > 0.0 && was.is_none_or(|was| was.duration_seconds <= 0.0) {
            return Err(Void::LoadNotSteady {
                what: format!("the {name} left no result"),
            });
        }
    }
    Ok(())
}

/// Checks that the clocks of meter and injector could be compared before and after the load, and did not move
/// against each other. Returns their offset before the load.
pub(super) fn clocks(report: &InjectionReport) -> Result<ClockOffset, Void> {
    let known = |clock: Option<ClockOffset>| match clock {
        Some(clock) if (0.0..=MAX_CLOCK_ERROR_SECONDS).contains(&clock.uncertainty_seconds) => {
            Ok(clock)
        }
        clock => Err(Void::ClockOffsetUnknown {
            uncertainty_seconds: clock.map(|clock| clock.uncertainty_seconds),
            limit_seconds: MAX_CLOCK_ERROR_SECONDS,
        }),
    };
    let (before, after) = (known(report.clock)?, known(report.clock_after)?);
    let moved_seconds = moved_seconds(before, after);
    // If a clock was set back, one run can also seem to begin before the previous run ended.
    let overlap = gaps(report).map(|(_, gap)| -gap).reduce(f64::max);
    let moved_seconds = moved_seconds.max(overlap.unwrap_or(0.0));
    if moved_seconds > MAX_CLOCK_ERROR_SECONDS {
        return Err(Void::ClockStepped {
            moved_seconds,
            limit_seconds: MAX_CLOCK_ERROR_SECONDS,
        });
    }
    Ok(before)
}

/// The largest timing error of the window due to the clocks, in seconds: the larger uncertainty of the two
/// comparisons, plus the change of the offset between them. If a comparison is missing: the limit of the
/// checks.
pub(super) fn clock_uncertainty_seconds(report: &InjectionReport) -> f64 {
    match (report.clock, report.clock_after) {
        (Some(before), Some(after)) => {
            before.uncertainty_seconds.max(after.uncertainty_seconds) + moved_seconds(before, after)
        }
        _ => MAX_CLOCK_ERROR_SECONDS,
    }
}

fn moved_seconds(before: ClockOffset, after: ClockOffset) -> f64 {
    (after.offset_seconds - before.offset_seconds).abs()
}

/// Checks that the load continued from the warm-up to the measured run to the tail. Fortio first sends one
/// uncounted request on each connection. The gap therefore contains a slow candidate's latency, which is load
/// too.
pub(super) fn steady(report: &InjectionReport) -> Result<(), Void> {
    let limit = MAX_GAP_SECONDS + report.measured.latency().max_seconds;
    match gaps(report).find(|(_, gap)| *gap > limit) {
        Some((which, gap)) => Err(Void::LoadNotSteady {
            what: format!("{gap:.3} s without load {which} (limit {limit:.3} s)"),
        }),
        None => Ok(()),
    }
}

fn gaps(report: &InjectionReport) -> impl Iterator<Item = (&'static str, f64)> {
    let before = report.gap_before_measured_seconds;
    let after = report.gap_after_measured_seconds;
    [
        before.map(|gap| ("before the measured run", gap)),
        after.map(|gap| ("after the measured run", gap)),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::fortio::{FortioResult, parse};
    use crate::load::LoadResult;

    #[test]
    fn the_clocks_are_as_uncertain_as_the_worse_comparison_and_their_movement() {
        let clock = |offset_seconds, uncertainty_seconds| {
            Some(ClockOffset {
                offset_seconds,
                uncertainty_seconds,
            })
        };
        let sample = include_str!("../../tests/data/fortio-sample.json");
        let mut report = InjectionReport {
            clock: clock(5.0, 0.002),
            clock_after: clock(5.03, 0.04),
            ..report_of(parse(sample).unwrap())
        };
        assert!((clock_uncertainty_seconds(&report) - 0.07).abs() < 1e-9);
        report.clock_after = None;
        assert!((clock_uncertainty_seconds(&report) - MAX_CLOCK_ERROR_SECONDS).abs() < 1e-9);
    }

    fn report_of(measured: FortioResult) -> InjectionReport {
        InjectionReport {
            version: crate::report::REPORT_VERSION,
            measured: LoadResult::Fortio(measured),
            histogram_dropped: false,
            asked_warm_up_seconds: 0.0,
            asked_tail_seconds: 0.0,
            warm_up: None,
            tail: None,
            gap_before_measured_seconds: None,
            gap_after_measured_seconds: None,
            interrupted: None,
            clock: None,
            clock_after: None,
            course: None,
            slices: None,
            cpu: None,
        }
    }
}
