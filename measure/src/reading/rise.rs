//! Rises of the node's energy counters.

use super::Reading;

/// The largest error of the time between two readings with the meter's own timestamps, in seconds. The
/// counters of one reading are read one after the other.
const READING_SECONDS: f64 = 0.05;
/// As [`READING_SECONDS`], for stock Kepler, which may answer from a snapshot as old as its staleness.
const KEPLER_STALENESS_SECONDS: f64 = 0.5;

/// The rise of one of the node's energy counters between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    /// Name of the counter.
    pub counter: &'static str,
    /// The rise, in joules.
    pub joules: f64,
    /// Time between the two readings, in seconds.
    pub seconds: f64,
    /// The largest error of this time, in seconds.
    pub slack_seconds: f64,
}

impl Rise {
    /// No rise.
    pub(super) const NONE: Self = Self {
        counter: "node energy",
        joules: 0.0,
        seconds: 0.0,
        slack_seconds: READING_SECONDS,
    };

    /// The rises of the counters that both readings have.
    pub fn between(from: &Reading, to: &Reading) -> impl Iterator<Item = Self> {
        let seconds = to.at_unix_seconds() - from.at_unix_seconds();
        let slack_seconds = match (from.meter_unix_seconds, to.meter_unix_seconds) {
            (Some(_), Some(_)) => READING_SECONDS,
            _ => KEPLER_STALENESS_SECONDS,
        };
        [
            ("node energy", Some(from.node_joules), Some(to.node_joules)),
            ("active node energy", from.active_joules, to.active_joules),
            ("idle node energy", from.idle_joules, to.idle_joules),
        ]
        .into_iter()
        .filter_map(move |(counter, from, to)| {
            Some(Self {
                counter,
                joules: to? - from?,
                seconds,
                slack_seconds,
            })
        })
    }

    /// The rise with the largest power of all counters; of no power if all fell.
    #[must_use]
    pub fn largest(from: &Reading, to: &Reading) -> Self {
        Self::between(from, to).fold(Self::NONE, |largest, rise| {
            if rise.watts() > largest.watts() {
                rise
            } else {
                largest
            }
        })
    }

    /// The least power of such a rise, in watts: the time may have been longer by its error.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.joules / (self.seconds + self.slack_seconds)
    }
}
