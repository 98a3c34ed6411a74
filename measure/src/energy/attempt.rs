//! The readings of an attempt, and the times that cut them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::reading::Reading;

/// An interval of time, in Unix seconds of the readings' clock. This is the measured node's clock if the
/// meter reports its time, else the scraper's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it begins.
    pub start_unix_seconds: f64,
    /// When it ends.
    pub end_unix_seconds: f64,
}

impl Window {
    /// The window's length in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end_unix_seconds - self.start_unix_seconds
    }

    /// The two halves of the window, the earlier one first.
    pub(crate) fn halves(&self) -> (Self, Self) {
        let middle = f64::midpoint(self.start_unix_seconds, self.end_unix_seconds);
        let first = Self {
            end_unix_seconds: middle,
            ..*self
        };
        let second = Self {
            start_unix_seconds: middle,
            ..*self
        };
        (first, second)
    }

    /// Whether the window is long enough for slopes over time. A load at a rate ends with its last request,
    /// slightly before its set time.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.seconds() >= 0.99 * LONG_WINDOW_SECONDS
    }
}

/// The limits that readings must satisfy. Otherwise their figures are not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The most the node can draw, in watts, if known. A meter's own limit also counts, if it is lower. If
    /// neither is known, the limit follows from the other readings of the attempt.
    pub max_node_watts: Option<f64>,
    /// The longest time without a new reading, in seconds.
    pub max_reading_gap_seconds: f64,
    /// The shortest measured window, in seconds.
    pub min_window_seconds: f64,
    /// The shortest measured window, in the meter's intervals.
    pub min_intervals: f64,
}

impl Limits {
    /// Ten readings at the usual two per second. One or two lost scrapes do no harm, because counters
    /// continue and are linear in between. In more than five seconds the load may have changed unseen.
    pub const MAX_READING_GAP_SECONDS: f64 = 5.0;
    /// In a shorter window, events that happen once per trial (a checkpoint, a garbage collection) dominate
    /// the figure.
    pub const MIN_WINDOW_SECONDS: f64 = 20.0;
    /// An edge inside a window of length T costs d/(3T) of bias for the meter's interval d. With T ≥ 20 d the
    /// bias is at most 1.7 %.
    pub const MIN_INTERVALS: f64 = 20.0;

    /// The usual limits for a node that draws at most `max_node_watts`.
    #[must_use]
    pub fn new(max_node_watts: impl Into<Option<f64>>) -> Self {
        Self {
            max_node_watts: max_node_watts.into(),
            max_reading_gap_seconds: Self::MAX_READING_GAP_SECONDS,
            min_window_seconds: Self::MIN_WINDOW_SECONDS,
            min_intervals: Self::MIN_INTERVALS,
        }
    }
}

/// The inputs for one attempt's energy.
#[derive(Clone, Copy, Debug)]
pub struct AttemptReadings<'a> {
    /// Readings of the measured node, in any order. Readings outside the windows are not used.
    pub readings: &'a [Reading],
    /// The idle baseline before the load: candidate up, unloaded.
    pub idle_before: Window,
    /// The measured window.
    pub measured: Window,
    /// The idle baseline after the load.
    pub idle_after: Window,
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// UIDs of the candidate's pods by server name, if the candidate has several servers; otherwise empty.
    pub workloads: &'a BTreeMap<String, BTreeSet<String>>,
    /// UIDs of the database's pods; empty if the boundary contains no database.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods that still exist, but whose own containers ended during the attempt. The
    /// candidate causes a crash. A crash is an outcome and never makes an attempt void: the node's energy
    /// stays valid, and only the counters of these pods may be lost.
    pub restarted_pods: &'a BTreeSet<String>,
    /// UIDs of the injector's pods. They count neither as measured pods nor as neighbours. Empty if the
    /// injector runs on another node.
    pub injector_pods: &'a BTreeSet<String>,
    /// The load after the measured window, if known.
    pub tail: Option<Tail>,
    /// The known facts about the measured window's ends.
    pub ends: Ends,
    /// The divisor of the joules: requests of the measured window with an expected answer, or the units that
    /// count in their place.
    pub units: f64,
    /// The limits that the readings must satisfy.
    pub limits: Limits,
}

/// The load between the measured window and the settling time before the second idle baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Its interval, in the readings' clock.
    pub window: Window,
    /// Its requests per second divided by the measured run's requests per second.
    pub relative_load: f64,
}

/// The known facts about the measured window's ends, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ends {
    /// The timing error of the window: the uncertainty of the clocks' offset.
    pub clock_uncertainty_seconds: f64,
    /// Time without load right before the window.
    pub gap_before_seconds: f64,
    /// Time without load right after the window.
    pub gap_after_seconds: f64,
    /// Time with load before the window, of any power. `None` if unknown.
    pub load_before_seconds: Option<f64>,
    /// Time with load after the window, of any power. `None` if unknown.
    pub load_after_seconds: Option<f64>,
    /// Time with the window's load before it: the warm-up.
    pub steady_before_seconds: f64,
    /// Time with the window's load after it: the tail.
    pub steady_after_seconds: f64,
}

/// Allowance for the rounding of times near 10⁹ s: a window of exactly the minimum length passes.
pub(super) const ROUNDING_SECONDS: f64 = 1e-6;

impl AttemptReadings<'_> {
    /// From the beginning of the first idle baseline to the end of the second.
    pub(super) fn span(&self) -> Window {
        Window {
            start_unix_seconds: self.idle_before.start_unix_seconds,
            end_unix_seconds: self.idle_after.end_unix_seconds,
        }
    }

    /// UIDs of all measured pods.
    pub(super) fn pods(&self) -> impl Iterator<Item = &String> {
        self.candidate_pods.union(self.database_pods)
    }
}

/// The shortest configured window for slopes of memory and latency, in seconds: a judgement. Earlier, caches
/// fill and allocators warm up, and a slope over that time cannot be extrapolated.
pub const LONG_WINDOW_SECONDS: f64 = 600.0;

/// Joules or seconds per *successful* request. Without a success there is no divisor.
pub(super) fn per_request(amount: f64, units: f64) -> Option<f64> {
    (units > 0.0).then(|| amount / units)
}
