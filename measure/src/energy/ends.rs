//! What the two ends of a window cost in accuracy: each lies between two readings, at a time that is
//! known no better than the clocks were compared, and beside a short gap in the load.

use super::checks::Evidence;
use crate::reading::Reading;

/// Standard uncertainty of the measured window's energy as a share of it, from its two ends:
///
/// - **power that is not steady.** Of the power between two readings only the mean is known. If it has the
///   standard deviation s over steps of length d, without memory, the counter leaves the line between two
///   readings that are L apart by √(s²·d·L·f·(1 − f)) at the share f of the way: a Brownian bridge.
///   Power with memory leaves it by less. s is that of the readings inside the window;
/// - **clocks**, compared to ±c, what they moved between the two comparisons included: both ends move
///   together, which matters by the difference of the powers there, √2·s. u = c/√3 (JCGM 100:2008, 4.3.7);
/// - **the counter's step** r, where the meter tells it: each of the two readings around an end is off by
///   r/√12, and they count by f and 1 − f;
/// - **gaps in the load**: a gap of g seconds between two readings moves the line between them by
///   P·g·(1 − g/L) at most, P the load's power, and a longer one by P·L/4; where the clocks are off by c,
///   by P·c more, and never by more than P·g;
/// - **an instrument that is read seldom.** Readings of the meter are then themselves on lines between the
///   instrument's, L apart. Where the load begins or ends w seconds from the window, inside such a pair, the
///   line between two powers leaves it by P·(L − w)²/(2·L) at most, and a counter's by half of that. L is the
///   oldest that the instrument's last reading was seen, and the longest time between two scrapes more.
///
/// The last two err to the same side at both ends, so these bounds add up: u = bound/√3.
///
/// 1, as much as the energy itself, where fewer than three readings are inside the window, so that nothing
/// is known of its power, or where it has no energy.
pub(super) fn relative_uncertainty(
    evidence: &Evidence<'_>,
    node_joules: f64,
    load_watts: f64,
) -> f64 {
    let Some(steps) = Steps::inside(evidence).filter(|_| node_joules > 0.0) else {
        return 1.0;
    };
    let ends = evidence.attempt.ends;
    let clock_seconds = ends.clock_uncertainty_seconds;
    let window = evidence.attempt.measured;
    let [start, end] = [window.start_unix_seconds, window.end_unix_seconds]
        .map(|at| End::at(evidence, at).unwrap_or_default());
    let seldom_seconds = evidence
        .series
        .max_of(|reading| reading.source_age_seconds)
        .map_or(0.0, |age| age + evidence.series.largest_gap_seconds());
    let moved_seconds = start.moved_seconds(ends.gap_before_seconds, clock_seconds)
        + end.moved_seconds(ends.gap_after_seconds, clock_seconds)
        + blurred_seconds(seldom_seconds, ends.steady_before_seconds)
        + blurred_seconds(seldom_seconds, ends.steady_after_seconds);
    let variance = steps.variance_at(&start)
        + steps.variance_at(&end)
        + 2.0 * steps.watts_variance * clock_seconds.powi(2) / 3.0
        + start.resolution_variance()
        + end.resolution_variance()
        + (load_watts * moved_seconds).powi(2) / 3.0;
    variance.sqrt() / node_joules
}

/// How much of the load's time an instrument that is read every `between_seconds` may move over an end of
/// the window beside `steady_seconds` of the same load, in seconds.
fn blurred_seconds(between_seconds: f64, steady_seconds: f64) -> f64 {
    let beyond = between_seconds - steady_seconds.max(0.0);
    if between_seconds > 0.0 && beyond > 0.0 {
        beyond.powi(2) / (2.0 * between_seconds)
    } else {
        0.0
    }
}

/// The steps from reading to reading inside the measured window.
struct Steps {
    /// Of their powers, in square watts.
    watts_variance: f64,
    /// Their mean length.
    seconds: f64,
}

impl Steps {
    fn inside(evidence: &Evidence<'_>) -> Option<Self> {
        let window = evidence.attempt.measured;
        let steps: Vec<(f64, f64)> = evidence
            .series
            .steps()
            .filter(|(a, b)| {
                a.at_unix_seconds() >= window.start_unix_seconds
                    && b.at_unix_seconds() <= window.end_unix_seconds
            })
            .map(|(a, b)| (seconds_between(a, b), b.node_joules - a.node_joules))
            .filter(|(seconds, _)| *seconds > 0.0)
            .collect();
        let n = steps.len() as f64;
        let watts = || steps.iter().map(|(seconds, joules)| joules / seconds);
        let mean = watts().sum::<f64>() / n;
        (steps.len() >= 2).then(|| Self {
            watts_variance: watts().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0),
            seconds: steps.iter().map(|(seconds, _)| seconds).sum::<f64>() / n,
        })
    }

    /// Of the counter at an end, in square joules.
    fn variance_at(&self, end: &End) -> f64 {
        self.watts_variance * self.seconds * end.length_seconds * end.share * (1.0 - end.share)
    }
}

/// Where an end of the window lies between the readings around it.
#[derive(Default)]
struct End {
    /// Time between the two; 0 where the end is at a reading.
    length_seconds: f64,
    /// The end's share of the way from the one to the other.
    share: f64,
    /// Step of the counter, 0 where it is unknown.
    resolution_joules: f64,
}

impl End {
    fn at(evidence: &Evidence<'_>, at_unix_seconds: f64) -> Option<Self> {
        let (earlier, later) = evidence.series.around(at_unix_seconds)?;
        let length_seconds = seconds_between(earlier, later);
        Some(Self {
            length_seconds,
            share: if length_seconds > 0.0 {
                (at_unix_seconds - earlier.at_unix_seconds()) / length_seconds
            } else {
                0.0
            },
            resolution_joules: later.resolution_joules.unwrap_or_default(),
        })
    }

    fn resolution_variance(&self) -> f64 {
        let of_both = self.share.powi(2) + (1.0 - self.share).powi(2);
        self.resolution_joules.powi(2) / 12.0 * of_both
    }

    /// How much of the load's time a gap beside the end may move over it, in seconds.
    fn moved_seconds(&self, gap_seconds: f64, clock_seconds: f64) -> f64 {
        let by_the_line = if 2.0 * gap_seconds < self.length_seconds {
            gap_seconds * (1.0 - gap_seconds / self.length_seconds)
        } else {
            self.length_seconds / 4.0
        };
        gap_seconds.min(by_the_line + clock_seconds)
    }
}

fn seconds_between(earlier: &Reading, later: &Reading) -> f64 {
    later.at_unix_seconds() - earlier.at_unix_seconds()
}
