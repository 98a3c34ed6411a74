//! Checks that the windows are in order and long enough, and that the readings are enough for them.

use crate::energy::attempt::{AttemptReadings, ROUNDING_SECONDS};
use crate::energy::baseline::{Gross, Net};
use crate::energy::counters::gap_unix_seconds;
use crate::energy::ends;
use crate::energy::evidence::AttemptEvidence;
use crate::reading::Reading;
use crate::void::Void;

/// The largest share of the net energy that one step of the meter's counter may be. A counter is up to a step
/// behind at either end, evenly distributed: u = step·√(2/12) (JCGM 100:2008, 4.3.7). The limit therefore
/// keeps u below a thousandth for a meter that reports its step.
const MAX_STEP_SHARE: f64 = 0.002;

/// The largest share of the measured window whose load a late reading may move across one of its ends. The
/// paired ratio of two candidates takes such errors for chance, so they must be small. A meter with its own
/// interval of 5 s moves up to 0.22 % in the shortest window that it allows.
const MAX_CUT_SHARE: f64 = 0.003;

/// How much longer than the meter's true interval the median time between scrapes may be.
const SCRAPE_JITTER: f64 = 1.05;

/// The three windows are not empty and follow one another.
pub(super) fn windows_in_order(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptReadings {
        idle_before,
        measured,
        idle_after,
        ..
    } = evidence.attempt;
    let windows = [idle_before, measured, idle_after];
    let apart = windows
        .windows(2)
        .all(|w| w[0].end_unix_seconds <= w[1].start_unix_seconds);
    let real = windows
        .iter()
        .all(|w| w.seconds().is_finite() && w.seconds() > 0.0);
    if apart && real {
        return Ok(());
    }
    let text = windows.map(|w| format!("{:.3} to {:.3}", w.start_unix_seconds, w.end_unix_seconds));
    Err(Void::WindowsOutOfOrder {
        windows: text.join(", "),
    })
}

/// Readings exist from before the first baseline to after the second, without a long gap.
pub(super) fn readings_uninterrupted(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let span = attempt.span();
    let covered = |at| series.around(at).is_some();
    if !covered(span.start_unix_seconds) || !covered(span.end_unix_seconds) {
        return Err(series.outside(span));
    }
    let limit_seconds = attempt.limits.max_reading_gap_seconds;
    let measured = attempt.measured;
    series.steps().try_for_each(|(a, b)| {
        // Only the middle of the measured window does without the readings between two others.
        let is_in_window = measured.start_unix_seconds <= a.at_unix_seconds()
            && b.at_unix_seconds() <= measured.end_unix_seconds;
        let [from_unix_seconds, to_unix_seconds] = if is_in_window {
            gap_unix_seconds(a, b)
        } else {
            [a.at_unix_seconds(), b.at_unix_seconds()]
        };
        let is_too_long = to_unix_seconds - from_unix_seconds > limit_seconds;
        if is_too_long || (b.left_out.is_some() && !is_in_window) {
            return Err(Void::ReadingsInterrupted {
                from_unix_seconds,
                to_unix_seconds,
                limit_seconds,
            });
        }
        Ok(())
    })
}

/// No reading next to an end of the measured window is so late that much of the load's energy moves across that
/// end.
pub(super) fn ends_read_in_time(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let limit_seconds = MAX_CUT_SHARE * evidence.attempt.measured.seconds();
    match ends::cuts(evidence)
        .into_iter()
        .find(|cut| cut.seconds() > limit_seconds)
    {
        None => Ok(()),
        Some(cut) => {
            let [from_unix_seconds, to_unix_seconds] = cut.readings_unix_seconds();
            Err(Void::ReadingsInterrupted {
                from_unix_seconds,
                to_unix_seconds,
                limit_seconds: cut.length_seconds_at(limit_seconds),
            })
        }
    }
}

/// Every reading within the attempt contains every measured pod. The readings just outside are not checked:
/// pods may start after the one and end before the other.
pub(super) fn pods_all_the_time(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let span = attempt.span();
    let attempt_time = span.start_unix_seconds..=span.end_unix_seconds;
    let inside = |reading: &&&Reading| attempt_time.contains(&reading.at_unix_seconds());
    for reading in series.readings().iter().filter(inside) {
        for uid in attempt
            .pods()
            .filter(|uid| !attempt.restarted_pods.contains(*uid))
        {
            if reading.pods.get(uid).is_none() {
                let pod = evidence.pod_name(uid);
                let at_unix_seconds = reading.at_unix_seconds();
                return Err(Void::PodReplaced {
                    pod,
                    at_unix_seconds,
                });
            }
        }
    }
    Ok(())
}

/// The measured window is long enough in the meter's intervals and in seconds.
pub(super) fn window_long_enough(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let jitter = if series.last().interval_seconds.is_some() {
        1.0
    } else {
        SCRAPE_JITTER
    };
    let by_intervals = attempt.limits.min_intervals * series.interval_seconds() / jitter;
    let required_seconds = attempt.limits.min_window_seconds.max(by_intervals);
    let seconds = attempt.measured.seconds();
    if seconds + ROUNDING_SECONDS < required_seconds {
        return Err(Void::WindowTooShort {
            seconds,
            required_seconds,
        });
    }
    Ok(())
}

/// The meter's counter moves in small enough steps.
pub(super) fn counter_fine_enough(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let Some(resolution_joules) = evidence.series.step_joules() else {
        return Ok(());
    };
    let gross = Gross::of(evidence)?;
    // Below its detection limit, the net energy appears in no figure.
    let joules = Net::of(&gross).joules.unwrap_or(gross.node_joules);
    if resolution_joules > MAX_STEP_SHARE * joules {
        return Err(Void::MeterTooCoarse {
            resolution_joules,
            joules,
            limit_share: MAX_STEP_SHARE,
        });
    }
    Ok(())
}
