//! Where the node's power comes from.
//!
//! There are two kinds of source. A **model** ([`board`]) computes energy from CPU time. An
//! **instrument** measures: it gives either an energy counter or power samples ([`Quantity`]),
//! from files of this node that are read beside the CPU time ([`hwmon`], [`rapl`]), or from what
//! is asked now and then ([`polled`]): the network ([`remote`]) or a Pi 5's own chip ([`pmic`]). A [`timeline`] makes of an instrument's readings the node's energy at any moment
//! between them, and at none after the last; a [`supply`] brings them together with the readings
//! of CPU time, and with a model that tells how power varied between two slow readings.
//! [`choice`] finds out which source a node has, [`config`] is what a user says about it.

pub(crate) mod board;
pub(crate) mod choice;
pub(crate) mod config;
pub(crate) mod hwmon;
pub(crate) mod pmic;
pub(crate) mod polled;
pub(crate) mod rapl;
pub(crate) mod refresh;
pub(crate) mod remote;
#[cfg(test)]
mod simulation;
pub(crate) mod supply;
pub(crate) mod sysfs;
pub(crate) mod timeline;

use std::time::Duration;

use frugality_measure::model::LinearModel;
use serde::Deserialize;

/// How far a source's joules can be trusted: the provenance of the node's power.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// Measured by a physical instrument.
    Metered,
    /// Computed from CPU use.
    Modelled,
}

impl Provenance {
    /// The word that readers of the exposition look for.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Metered => "Metered",
            Self::Modelled => "Modelled",
        }
    }
}

/// Kepler's name for the energy zone that covers a whole board.
pub(crate) const BOARD_ZONE: &str = "psys";
/// Kepler's name for the energy zone that covers the processors alone.
pub(crate) const PACKAGE_ZONE: &str = "package";

/// What joules come from, for the reader of the exposition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// Kind of source.
    pub(crate) name: &'static str,
    /// Provenance of the joules.
    pub(crate) provenance: Provenance,
    /// Board that a model stands for; empty where none is known.
    pub(crate) board: String,
    /// Kepler's `path` label: what the energy is read from.
    pub(crate) path: String,
    /// Kepler's `zone` label: what the energy covers.
    pub(crate) zone: &'static str,
    /// The most that the source can report for the node over time, in watts.
    pub(crate) max_watts: Option<f64>,
    /// Standard uncertainty of the energy as a share of it, but for what lies between two
    /// readings; unknown where nobody has said.
    pub(crate) relative_uncertainty: Option<f64>,
    /// Standard uncertainty of power that does not grow with power, in watts: an offset, and steps.
    pub(crate) fixed_uncertainty_watts: f64,
    /// Step of the instrument's counter, in joules.
    pub(crate) resolution_joules: Option<f64>,
    /// The coefficients of the board's model, if the joules are counted by it.
    pub(crate) model: Option<LinearModel>,
}

/// What a reader of the exposition takes for a share; an energy that is less certain is none.
const LARGEST_UNCERTAINTY: f64 = 1.0;

impl Source {
    /// Standard uncertainty of the source at some power, in watts, as a share of it: what grows with power and what
    /// does not, as independent. The power may be unknown where nothing is fixed.
    pub(crate) fn relative_uncertainty_at(&self, watts: Option<f64>) -> Option<f64> {
        let share = self.relative_uncertainty?;
        if self.fixed_uncertainty_watts > 0.0 {
            let fixed = self.fixed_uncertainty_watts / watts?;
            Some(share.hypot(fixed).min(LARGEST_UNCERTAINTY))
        } else {
            Some(share)
        }
    }
}

/// What an instrument tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    /// Power at the moment of the reading, in watts, not negative.
    Watts(f64),
    /// Energy since the instrument began to count, in joules, not negative.
    Joules(f64),
}

/// A reading of the instrument itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrueReading {
    /// When it was taken, since the meter began.
    pub(crate) at: Duration,
    /// What it told.
    pub(crate) quantity: Quantity,
}

/// Why an instrument gave no reading. The next one may.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstrumentError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// What was read.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was read is not what such an instrument says.
    #[error("{from} says {text:?}, which is no {expected}")]
    Malformed {
        /// What was read.
        from: String,
        /// What it said, cut short.
        text: String,
        /// What should have been there.
        expected: &'static str,
    },
    /// A counter fell though it does not wrap there.
    #[error("the counter {path} went back from {from} to {to} µJ, and not by a wrap")]
    WentBack {
        /// The counter.
        path: String,
        /// Its last value, in microjoules.
        from: u64,
        /// Its value now, in microjoules.
        to: u64,
    },
    /// What is refreshed by somebody else has not been.
    #[error("{path} was last written {seconds:.0} s ago")]
    Old {
        /// The file.
        path: String,
        /// Its age, in seconds.
        seconds: f64,
    },
    /// The firmware could not be asked.
    #[error(transparent)]
    Mailbox(#[from] frugality_mailbox::MailboxError),
    /// The device could not be asked.
    #[error(transparent)]
    Remote(#[from] remote::RemoteError),
}

impl InstrumentError {
    /// What `from` said is not understood.
    pub(crate) fn malformed(from: impl Into<String>, text: &str, expected: &'static str) -> Self {
        const LONGEST: usize = 80;
        Self::Malformed {
            from: from.into(),
            text: text.chars().take(LONGEST).collect(),
            expected,
        }
    }
}

/// An instrument that is read from files of this node, at the same moment as the CPU time.
pub(crate) trait LocalInstrument: std::fmt::Debug + Send {
    /// Reads it once.
    fn read(&mut self) -> Result<Quantity, InstrumentError>;

    /// Readings so far at which it was at the end of its scale; `None` where that is not known.
    fn saturated_readings(&self) -> Option<u64> {
        None
    }
}

/// A power or an energy must be a number, and no node gives any back.
pub(crate) fn valid(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}
