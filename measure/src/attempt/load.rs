//! What the injector's report must answer: that the load was whole and steady, that the target and not
//! the injector set its pace, and that the clocks stood still against each other.

use crate::load::{LoadResult, RequestFigures};
use crate::report::{ClockOffset, InjectionReport};
use crate::void::Void;

/// Largest uncertainty of the clocks' offset, and the most that it may change while load is on: at a
/// window of 20 s, half a percent. The offset itself may be as large as it likes, for it is corrected.
pub const MAX_CLOCK_ERROR_SECONDS: f64 = 0.1;

/// Longest time without load between two of Fortio's runs, beside the candidate's own slowness. A gap
/// g next to an end of the window moves no more than g, nor a quarter of the meter's interval, of
/// loaded power over that end: here at most 2.5 % of the shortest window. Starting Fortio took 19 to
/// 48 ms on a busy machine with two fast cores; a small board is given ten times that.
const MAX_GAP_SECONDS: f64 = 0.5;

/// The most of the measured run's time that the injector's CPU may be throttled: so much of the
/// requests it may have sent late.
const MAX_THROTTLED_SHARE: f64 = 0.01;

/// The most of its CPUs' time that k6 may use. It runs scripts, and needs a multiple of Fortio's CPU time for a
/// request; where that runs out, an answer waits to be read, and its time is taken for the candidate's.
const MAX_CPU_SHARE: f64 = 0.8;

/// From this share of the connections' time on that is spent waiting for answers, the target sets the
/// pace. Fortio's own work took 1 to 3 % of 0.1 to 0.7 ms per request on one machine (see
/// `tests/data/fortio`); a tenth leaves room for smaller ones.
const LEAST_OCCUPANCY: f64 = 0.9;

/// Share of a fixed rate that may be missing: Fortio's clock and its last requests.
const MAX_SHORTFALL: f64 = 0.01;

/// Fortio ran to its end, and so did the runs around the measured one.
pub(super) fn whole(report: &InjectionReport) -> Result<(), Void> {
    if let Some(how) = &report.interrupted {
        return Err(Void::FortioInterrupted { how: how.clone() });
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

/// The clocks of meter and injector could be compared, before the load and after it, and did not move
/// against each other; says how far they are apart.
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
    // A clock that was set back also lets one run seem to begin before the end of the other.
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

/// How far the window may lie off by the clocks, in seconds: by the worse of the two comparisons, and by
/// as much as the offset moved between them. Without both, as far as the checks allow.
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

/// The load went on from the warm-up to the measured run to the tail. Fortio first sends one uncounted
/// request on each connection, so a slow candidate's latency is in the gap, and load all the same.
pub(super) fn steady(report: &InjectionReport) -> Result<(), Void> {
    let limit = MAX_GAP_SECONDS + report.measured.latency().max_seconds;
    match gaps(report).find(|(_, gap)| *gap > limit) {
        Some((which, gap)) => Err(Void::LoadNotSteady {
            what: format!("{gap:.3} s without load {which}, where {limit:.3} s are allowed"),
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

/// The injector had its CPU. Where its cgroup does not tell, nothing is known; the occupancy then has
/// to show it.
pub(super) fn not_throttled(report: &InjectionReport) -> Result<(), Void> {
    let limit_seconds = MAX_THROTTLED_SHARE * report.measured.span().duration_seconds;
    match report.throttled_seconds {
        Some(throttled_seconds) if throttled_seconds > limit_seconds => {
            Err(Void::InjectorThrottled {
                throttled_seconds,
                limit_seconds,
            })
        }
        _ => Ok(()),
    }
}

/// The injector's CPU was not what the cycles waited for. Fortio needs so little of it that its occupancy tells.
pub(super) fn not_busy(report: &InjectionReport) -> Result<(), Void> {
    match &report.measured {
        LoadResult::K6(result) if result.cpu_share() > MAX_CPU_SHARE => Err(Void::InjectorBusy {
            share: result.cpu_share(),
            limit: MAX_CPU_SHARE,
        }),
        _ => Ok(()),
    }
}

/// The target set the pace. At a fixed rate that is reached, connections that wait for their next
/// request are normal; one that is not reached by a target that is busy all the time is an outcome.
///
/// With a number of requests, connections that a candidate serves unequally end apart and show here
/// as well: the window's end is then not in full load, and `load.duration` is what helps.
pub(super) fn paced_by_target(requests: &RequestFigures) -> Result<(), Void> {
    let Some(occupancy) = requests.occupancy.filter(|share| *share < LEAST_OCCUPANCY) else {
        return Ok(());
    };
    match requests.shortfall {
        Some(shortfall) if shortfall <= MAX_SHORTFALL => Ok(()),
        shortfall => Err(Void::InjectorStarved {
            occupancy,
            least_occupancy: LEAST_OCCUPANCY,
            shortfall,
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::fortio::{FortioResult, figures, parse};

    fn requests(occupancy: f64, shortfall: Option<f64>) -> RequestFigures {
        let sample = include_str!("../../tests/data/fortio-sample.json");
        RequestFigures {
            occupancy: Some(occupancy),
            shortfall,
            ..figures(&parse(sample).unwrap(), &[200])
        }
    }

    #[test]
    fn the_target_must_set_the_pace() {
        for (occupancy, shortfall) in [
            (0.9, None),
            (0.9, Some(0.5)),
            (0.02, Some(0.0)),
            (0.02, Some(0.01)),
        ] {
            assert_eq!(paced_by_target(&requests(occupancy, shortfall)), Ok(()));
        }
        for (occupancy, shortfall) in [(0.89, None), (0.89, Some(0.011)), (0.02, None)] {
            let void = paced_by_target(&requests(occupancy, shortfall)).unwrap_err();
            assert_eq!(void.reason(), "InjectorStarved");
        }
    }

    #[test]
    fn no_real_result_of_fortio_is_taken_for_a_starved_one() {
        for text in [
            include_str!("../../tests/data/fortio-sample.json"),
            include_str!("../../tests/data/fortio/connection-refused.json"),
            include_str!("../../tests/data/fortio/every-request-fails.json"),
            include_str!("../../tests/data/fortio/one-in-five-fails.json"),
            include_str!("../../tests/data/fortio/rate-not-reached.json"),
            include_str!("../../tests/data/fortio/rate-reached.json"),
        ] {
            let figures = figures(&parse(text).unwrap(), &[200]);
            assert_eq!(paced_by_target(&figures), Ok(()));
        }
    }

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
            throttled_seconds: None,
        }
    }

    #[test]
    fn a_reason_is_told_with_its_numbers() {
        let void = paced_by_target(&requests(0.5, Some(0.25))).unwrap_err();
        assert_eq!(
            void.to_string(),
            "25.0 % of the rate were not reached, and the connections waited for an answer 50.0 % of \
             the time only, and 90 % are needed for the target to set the pace"
        );
    }
}
