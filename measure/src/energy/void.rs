//! Why an attempt's readings cannot be trusted.

use serde::{Deserialize, Serialize};

/// The reason why an attempt is void, with the numbers that show it. All causes lie outside the
/// candidate: what a candidate does to itself is an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "reason", rename_all_fields = "camelCase")]
pub enum Void {
    /// Fortio did not run to its end.
    #[error("{how}")]
    FortioInterrupted {
        /// Which run, and by what.
        how: String,
    },
    /// The clocks of meter and injector could not be compared closely enough.
    #[error("{}", clock_offset_unknown(*.uncertainty_seconds, *.limit_seconds))]
    ClockOffsetUnknown {
        /// How far the offset may be off, in seconds; absent where there was no answer.
        uncertainty_seconds: Option<f64>,
        /// How far it may.
        limit_seconds: f64,
    },
    /// The windows are empty, reversed or overlap: a clock or a record is wrong.
    #[error(
        "the idle baseline before, the measured window and the idle baseline after do not follow \
         one another: {windows}"
    )]
    WindowsOutOfOrder {
        /// The six times, in Unix seconds.
        windows: String,
    },
    /// There is no reading at all.
    #[error("there is no reading of the node's meter")]
    MeterMissing {},
    /// The meter invents its numbers.
    #[error("the meter is fake: its power comes from {source_name}")]
    MeterFake {
        /// The meter's source.
        source_name: String,
    },
    /// Scrapes were answered, but what they showed did not move on.
    #[error(
        "the meter stood still: scrapes over {seconds:.3} s showed the same reading, \
         where at most {limit_seconds:.3} s are allowed"
    )]
    MeterStale {
        /// For how long the scrapes showed the same.
        seconds: f64,
        /// For how long they may.
        limit_seconds: f64,
    },
    /// The meter began to count anew.
    #[error(
        "the meter restarted: it counted since {from_unix_seconds:.3}, then since {to_unix_seconds:.3}"
    )]
    MeterRestarted {
        /// When it had begun at first, in Unix seconds.
        from_unix_seconds: f64,
        /// When it began again, in Unix seconds.
        to_unix_seconds: f64,
    },
    /// Another meter, source or zone was read at the end than at the beginning.
    #[error("the meter's {what} changed from {from} to {to}")]
    MeterChanged {
        /// What changed.
        what: String,
        /// What it was.
        from: String,
        /// What it became.
        to: String,
    },
    /// A counter that figures rest on went backwards: a reset, a wrap or a restart.
    #[error("the counter of {counter} went from {from:.6} down to {to:.6} at {at_unix_seconds:.3}")]
    CounterDecreased {
        /// Whose counter it is, and of what.
        counter: String,
        /// What it was.
        from: f64,
        /// What it became.
        to: f64,
        /// The later reading's time, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// More energy than the node can draw, as when a counter that lost a little is taken for one
    /// that wrapped.
    #[error(
        "the counter of {counter} rose by {joules:.3} J in {seconds:.3} s, \
         which is more than the node's {max_watts:.3} W can do"
    )]
    EnergyBeyondNode {
        /// Whose counter it is.
        counter: String,
        /// By how much it rose.
        joules: f64,
        /// In what time.
        seconds: f64,
        /// The most that the node can draw, in watts.
        max_watts: f64,
    },
    /// The meter gave its pods more than it had.
    #[error(
        "the pods were given {pods_joules:.3} J of the node's {active_joules:.3} J of active energy"
    )]
    PodsBeyondNode {
        /// What the pods were given, in joules.
        pods_joules: f64,
        /// What there was to give, in joules.
        active_joules: f64,
    },
    /// There was no reading for too long, or none around a window's end.
    #[error(
        "the readings were interrupted: none covers the {:.3} s from {from_unix_seconds:.3} to \
         {to_unix_seconds:.3}, where at most {limit_seconds:.3} s are allowed",
        to_unix_seconds - from_unix_seconds
    )]
    ReadingsInterrupted {
        /// The last reading before the gap, in Unix seconds.
        from_unix_seconds: f64,
        /// The first reading after it, in Unix seconds.
        to_unix_seconds: f64,
        /// The longest gap allowed, in seconds; 0 outside of the readings.
        limit_seconds: f64,
    },
    /// A measured pod was not there all the time.
    #[error("the measured pod {pod} is not in the reading at {at_unix_seconds:.3}")]
    PodReplaced {
        /// The pod: its UID, and its name where known.
        pod: String,
        /// The reading that lacks it, in Unix seconds.
        at_unix_seconds: f64,
    },
    /// The measured window is too short for its meter.
    #[error("the measured window lasted {seconds:.3} s, and {required_seconds:.3} s are needed")]
    WindowTooShort {
        /// How long it lasted.
        seconds: f64,
        /// How long it must last.
        required_seconds: f64,
    },
}

impl Void {
    /// The stable code of the reason, as it stands in conditions, metrics and the ledger.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::FortioInterrupted { .. } => "FortioInterrupted",
            Self::ClockOffsetUnknown { .. } => "ClockOffsetUnknown",
            Self::WindowsOutOfOrder { .. } => "WindowsOutOfOrder",
            Self::MeterMissing { .. } => "MeterMissing",
            Self::MeterFake { .. } => "MeterFake",
            Self::MeterStale { .. } => "MeterStale",
            Self::MeterRestarted { .. } => "MeterRestarted",
            Self::MeterChanged { .. } => "MeterChanged",
            Self::CounterDecreased { .. } => "CounterDecreased",
            Self::EnergyBeyondNode { .. } => "EnergyBeyondNode",
            Self::PodsBeyondNode { .. } => "PodsBeyondNode",
            Self::ReadingsInterrupted { .. } => "ReadingsInterrupted",
            Self::PodReplaced { .. } => "PodReplaced",
            Self::WindowTooShort { .. } => "WindowTooShort",
        }
    }
}

fn clock_offset_unknown(uncertainty_seconds: Option<f64>, limit_seconds: f64) -> String {
    match uncertainty_seconds {
        Some(uncertainty_seconds) => format!(
            "the offset between the clocks of meter and injector is known to {uncertainty_seconds:.3} s only, \
             and {limit_seconds} s are allowed"
        ),
        None => "the injector could not compare its clock with the meter's".to_owned(),
    }
}
