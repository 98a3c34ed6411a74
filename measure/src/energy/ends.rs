//! What the two ends of a window cost in accuracy: each lies between two readings of a stepping counter,
//! at a time that is known to a clock comparison's accuracy only.

use super::checks::Evidence;
use crate::reading::Reading;

/// Standard uncertainty of the measured window's energy of `node_joules`, as a share of it, from
///
/// - what the power did between the two readings around an end, of which only the mean is known. A
///   counter whose power has the standard deviation s over steps of length d, without memory, leaves the
///   line between two readings that are L apart by √(s²·d·L·f·(1 − f)) at the share f of the way: a
///   Brownian bridge. Power with memory leaves it by less;
/// - the clocks' offset, known to ±c: both ends move together, which matters by
///   the difference of the powers there, √2·s. u = c/√3 (JCGM 100:2008, 4.3.7);
/// - the counter's step r, where the meter tells it: each of the readings around an end is off by r/√12,
///   and counts by f and 1 − f.
///
/// s is taken from the readings inside the window. 0 where these are less than three, or without energy.
pub(super) fn relative_uncertainty(evidence: &Evidence<'_>, node_joules: f64) -> f64 {
    let Evidence { attempt, series } = evidence;
    let window = attempt.measured;
    let inside: Vec<(f64, f64)> = series
        .steps()
        .filter(|(a, b)| {
            a.at_unix_seconds() >= window.start_unix_seconds
                && b.at_unix_seconds() <= window.end_unix_seconds
        })
        .map(|(a, b)| (seconds(a, b), b.node_joules - a.node_joules))
        .filter(|(seconds, _)| *seconds > 0.0)
        .collect();
    if inside.len() < 2 || node_joules <= 0.0 {
        return 0.0;
    }
    let n = inside.len() as f64;
    let usual_seconds = inside.iter().map(|(seconds, _)| seconds).sum::<f64>() / n;
    let watts: Vec<f64> = inside
        .iter()
        .map(|(seconds, joules)| joules / seconds)
        .collect();
    let mean = watts.iter().sum::<f64>() / n;
    let variance = watts.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0);

    let of_end = |at: f64| {
        let Some((earlier, later)) = series.around(at) else {
            return 0.0;
        };
        let length = seconds(earlier, later);
        if length <= 0.0 {
            return resolution_variance(later, 1.0);
        }
        let share = (at - earlier.at_unix_seconds()) / length;
        variance * usual_seconds * length * share * (1.0 - share)
            + resolution_variance(later, share.powi(2) + (1.0 - share).powi(2))
    };
    let of_clock = 2.0 * variance * attempt.clock_uncertainty_seconds.powi(2) / 3.0;
    let joules = of_end(window.start_unix_seconds) + of_end(window.end_unix_seconds) + of_clock;
    joules.sqrt() / node_joules
}

fn seconds(earlier: &Reading, later: &Reading) -> f64 {
    later.at_unix_seconds() - earlier.at_unix_seconds()
}

fn resolution_variance(reading: &Reading, share: f64) -> f64 {
    reading.resolution_joules.unwrap_or_default().powi(2) / 12.0 * share
}
