//! The uncertainty due to the two ends of a window. Each end lies between two readings, next to a short gap
//! in the load, at a time that is known only as well as the clocks were compared.

use crate::energy::evidence::AttemptEvidence;
use crate::reading::{Reading, Variation};

/// Relative standard uncertainty of the measured window's energy, from its two ends:
///
/// - **power that is not steady.** Between two readings only the mean power is known. Assume power without
///   memory, with the standard deviation s over steps of length d. At the share f of the way between two
///   readings that are L apart, the counter then deviates from the line by √(s²·d·L·f·(1 − f)): a Brownian
///   bridge. Power with memory deviates less. s is computed from the readings inside the window;
/// - **clocks**, compared to ±c, including their movement between the two comparisons: both ends move
///   together. The difference of the powers there counts, √2·s. u = c/√3 (JCGM 100:2008, 4.3.7);
/// - **the counter's step** r: each of the two readings around an end has the error
///   r/√12, with the weights f and 1 − f;
/// - **gaps in the load**: a gap of g seconds between two readings moves the line between them by at most
///   P·g·(1 − g/L), where P is the load's power. A longer gap moves the line by P·L/4. If the clocks are
///   wrong by c, P·c is added. The sum never exceeds P·g;
/// - **an instrument that is seldom read.** Readings of the meter then lie on lines between the instrument's
///   readings, L apart. Assume that the load begins or ends w seconds from the window, inside such a pair.
///   The line between two powers then deviates by at most P·(L − w)²/(2·L), and a counter's line by half of
///   that. L is the largest observed age of the instrument's last reading, plus the longest time between two
///   scrapes.
///
/// - **a late reading.** The load ends w seconds after the window and a gap of g. If the reading after the window is
///   later than that, the line between the two readings moves a part of the load across the end. Let h be the
///   share of L that lies in the window. The line moves P·h·(L·(1 − h) − g − w). If the clocks are wrong by c, it moves
///   P·h·c more. The same holds for the load before the window.
///
/// The last three have the same sign at both ends. Their bounds therefore add up: u = bound/√3.
///
/// The result is 1, as large as the energy itself, if the window has no energy or fewer than three readings
/// are inside the window. In the second case its power is unknown.
pub(super) fn relative_uncertainty(
    evidence: &AttemptEvidence<'_>,
    node_joules: f64,
    load_watts: f64,
) -> f64 {
    let Some(steps) = Steps::inside(evidence).filter(|_| node_joules > 0.0) else {
        return 1.0;
    };
    let ends = evidence.attempt.ends;
    let clock_seconds = ends.clock_uncertainty_seconds;
    let [start, end] = both(evidence);
    let seldom_seconds = evidence
        .series
        .source_age_seconds()
        .map_or(0.0, |age| age + evidence.series.largest_gap_seconds());
    let moved_seconds = start.moved_seconds(ends.gap_before_seconds, clock_seconds)
        + end.moved_seconds(ends.gap_after_seconds, clock_seconds)
        + cuts(evidence).iter().map(Cut::seconds).sum::<f64>()
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

/// The load's time that an instrument, which is read every `between_seconds`, may move across an end of the
/// window, in seconds. `steady_seconds` of the same load are next to that end.
fn blurred_seconds(between_seconds: f64, steady_seconds: f64) -> f64 {
    let beyond = between_seconds - steady_seconds.max(0.0);
    if between_seconds > 0.0 && beyond > 0.0 {
        beyond.powi(2) / (2.0 * between_seconds)
    } else {
        0.0
    }
}

/// The steps between consecutive readings inside the measured window.
struct Steps {
    /// Variance of their powers, in square watts.
    watts_variance: f64,
    /// Their mean length, in seconds.
    seconds: f64,
}

impl Steps {
    fn inside(evidence: &AttemptEvidence<'_>) -> Option<Self> {
        let window = evidence.attempt.measured;
        let steps: Vec<(f64, Variation)> = evidence
            .series
            .steps()
            .filter(|(a, b)| {
                a.at_unix_seconds() >= window.start_unix_seconds
                    && b.at_unix_seconds() <= window.end_unix_seconds
            })
            .map(|(a, b)| (seconds_between(a, b), b.node_joules - a.node_joules, b))
            .filter(|(seconds, ..)| *seconds > 0.0)
            .map(|(seconds, joules, b)| {
                let one = || Variation::of(joules / seconds);
                (seconds, b.left_out.as_ref().map_or_else(one, |it| it.watts))
            })
            .collect();
        let watts = || steps.iter().map(|(_, watts)| watts);
        let n: f64 = watts().map(|watts| watts.count).sum();
        let mean = watts().map(|watts| watts.count * watts.mean).sum::<f64>() / n;
        let squares: f64 = watts()
            .map(|watts| watts.squares + watts.count * (watts.mean - mean).powi(2))
            .sum();
        (n >= 2.0).then(|| Self {
            watts_variance: squares / (n - 1.0),
            seconds: steps.iter().map(|(seconds, _)| seconds).sum::<f64>() / n,
        })
    }

    /// Variance of the counter at an end, in square joules.
    fn variance_at(&self, end: &End) -> f64 {
        self.watts_variance * self.seconds * end.length_seconds * end.share * (1.0 - end.share)
    }
}

/// The position of a window's end between the readings around it.
#[derive(Default)]
struct End {
    /// Time between the two readings, in seconds; 0 if the end is at a reading.
    length_seconds: f64,
    /// The end's position between them: 0 at the earlier reading, 1 at the later.
    share: f64,
    /// Step of the counter, in joules; 0 if unknown.
    resolution_joules: f64,
    /// The times of the two readings, in Unix seconds.
    readings_unix_seconds: [f64; 2],
}

impl End {
    fn at(evidence: &AttemptEvidence<'_>, at_unix_seconds: f64) -> Option<Self> {
        let (earlier, later) = evidence.series.around(at_unix_seconds)?;
        let length_seconds = seconds_between(earlier, later);
        Some(Self {
            length_seconds,
            share: if length_seconds > 0.0 {
                (at_unix_seconds - earlier.at_unix_seconds()) / length_seconds
            } else {
                0.0
            },
            resolution_joules: evidence.series.step_joules().unwrap_or_default(),
            readings_unix_seconds: [earlier.at_unix_seconds(), later.at_unix_seconds()],
        })
    }

    fn resolution_variance(&self) -> f64 {
        let of_both = self.share.powi(2) + (1.0 - self.share).powi(2);
        self.resolution_joules.powi(2) / 12.0 * of_both
    }

    /// The load's time that a gap next to the end may move across the end, in seconds.
    fn moved_seconds(&self, gap_seconds: f64, clock_seconds: f64) -> f64 {
        let by_the_line = if 2.0 * gap_seconds < self.length_seconds {
            gap_seconds * (1.0 - gap_seconds / self.length_seconds)
        } else {
            self.length_seconds / 4.0
        };
        gap_seconds.min(by_the_line + clock_seconds)
    }
}

/// The readings around one end of the measured window, seen from the window.
pub(super) struct Cut {
    end: End,
    /// The share of the time between the two readings that lies in the window.
    share_inside: f64,
    /// Time without load between the window and the load next to it, in seconds.
    gap_seconds: f64,
    /// The load next to the window, in seconds, less the clocks' error. `None` if unknown.
    load_seconds: Option<f64>,
}

impl Cut {
    /// The load's time that the line between the two readings moves across the end, because the load ends
    /// between them, in seconds. 0 if the length of the load next to the window is unknown.
    pub(super) fn seconds(&self) -> f64 {
        let outside_seconds = self.end.length_seconds * (1.0 - self.share_inside);
        self.load_seconds.map_or(0.0, |load_seconds| {
            let idle_seconds = outside_seconds - self.gap_seconds - load_seconds;
            self.share_inside * idle_seconds.max(0.0)
        })
    }

    /// The time between the two readings at which [`Cut::seconds`] would be this, in seconds.
    pub(super) fn length_seconds_at(&self, seconds: f64) -> f64 {
        let outside_seconds =
            seconds / self.share_inside + self.gap_seconds + self.load_seconds.unwrap_or_default();
        outside_seconds / (1.0 - self.share_inside)
    }

    /// The times of the two readings, in Unix seconds.
    pub(super) fn readings_unix_seconds(&self) -> [f64; 2] {
        self.end.readings_unix_seconds
    }
}

/// The start and the end of the measured window.
pub(super) fn cuts(evidence: &AttemptEvidence<'_>) -> [Cut; 2] {
    let ends = evidence.attempt.ends;
    let less_clock = |load: Option<f64>| load.map(|it| it - ends.clock_uncertainty_seconds);
    let [start, end] = both(evidence);
    [
        Cut {
            share_inside: 1.0 - start.share,
            end: start,
            gap_seconds: ends.gap_before_seconds,
            load_seconds: less_clock(ends.load_before_seconds),
        },
        Cut {
            share_inside: end.share,
            end,
            gap_seconds: ends.gap_after_seconds,
            load_seconds: less_clock(ends.load_after_seconds),
        },
    ]
}

/// The start and the end of the measured window. At an end without readings on both sides nothing moves.
fn both(evidence: &AttemptEvidence<'_>) -> [End; 2] {
    let window = evidence.attempt.measured;
    [window.start_unix_seconds, window.end_unix_seconds]
        .map(|at| End::at(evidence, at).unwrap_or_default())
}

fn seconds_between(earlier: &Reading, later: &Reading) -> f64 {
    later.at_unix_seconds() - earlier.at_unix_seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} is not {expected}");
    }

    /// Readings 2.6 s apart. 0.6 s of this time lie in the window.
    fn cut(gap_seconds: f64, load_seconds: Option<f64>) -> Cut {
        Cut {
            end: End {
                length_seconds: 2.6,
                ..End::default()
            },
            share_inside: 0.6 / 2.6,
            gap_seconds,
            load_seconds,
        }
    }

    #[test]
    fn a_line_moves_the_share_of_the_idle_time_behind_the_load() {
        let share = 0.6 / 2.6;
        assert_near(cut(0.0, Some(1.0)).seconds(), share * 1.0);
        assert_near(cut(0.2, Some(1.0)).seconds(), share * 0.8);
        assert_near(cut(0.2, Some(0.9)).seconds(), share * 0.9);
        assert_near(cut(0.0, Some(2.0)).seconds(), 0.0);
        assert_near(cut(0.0, Some(9.0)).seconds(), 0.0);
        assert_near(cut(0.0, None).seconds(), 0.0);
    }

    #[test]
    fn the_length_between_two_readings_follows_from_the_moved_time() {
        let cut = cut(0.2, Some(0.9));
        assert_near(cut.length_seconds_at(cut.seconds()), 2.6);
        assert!(cut.length_seconds_at(0.06) < 2.6);
    }
}
