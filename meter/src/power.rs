//! The source of the node's power.
//!
//! There are two kinds of source. A **model** ([`board`]) computes energy from CPU time. An **instrument**
//! measures. It gives either an energy counter or power samples ([`PowerOrEnergy`]). Local instruments are files
//! of this node that the meter reads together with the CPU time ([`hwmon`], [`rapl`], [`power_supply`]). Other instruments are
//! polled ([`polled`]): over the network ([`remote`], [`fritz`], [`mqtt`],
//! [`snmp`]), or a Pi 5's own chip ([`pmic`]).
//!
//! A [`timeline`] computes the node's energy at any moment between an instrument's readings. After the last
//! reading it gives no energy. A [`supply`] joins the readings of the instrument with the readings of CPU
//! time. It may use a model to estimate how power varied between two slow readings. [`choice`] chooses a
//! node's source, and [`config`] holds the user's settings.

pub(crate) mod board;
pub(crate) mod choice;
pub(crate) mod config;
pub(crate) mod fritz;
pub(crate) mod hwmon;
pub(crate) mod mqtt;
pub(crate) mod pmic;
pub(crate) mod polled;
pub(crate) mod power_supply;
pub(crate) mod rapl;
pub(crate) mod refresh;
pub(crate) mod remote;
#[cfg(test)]
mod simulation;
pub(crate) mod snmp;
pub(crate) mod supply;
pub(crate) mod sysfs;
pub(crate) mod timeline;

use std::net::Ipv6Addr;
use std::time::Duration;

use frugality_measure::model::LinearModel;
use serde::Deserialize;

/// Whether a source's joules are measured or computed: the provenance of the node's power.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum SourceProvenance {
    /// Measured by a physical instrument.
    Metered,
    /// Computed from CPU use.
    Modelled,
}

impl SourceProvenance {
    /// The word for readers of the exposition.
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

/// The source of joules, for readers of the exposition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// Kind of source.
    pub(crate) name: &'static str,
    /// Provenance of the joules.
    pub(crate) provenance: SourceProvenance,
    /// The model's board; empty if none is known.
    pub(crate) board: String,
    /// Kepler's `path` label: the file, URL or model that gives the energy.
    pub(crate) path: String,
    /// Kepler's `zone` label: the part of the node that the energy covers.
    pub(crate) zone: &'static str,
    /// The highest power that the source can report for the node over time, in watts.
    pub(crate) max_watts: Option<f64>,
    /// Relative standard uncertainty of the energy, without the uncertainty between two readings. `None` if
    /// neither the data sheet nor the user states it.
    pub(crate) relative_uncertainty: Option<f64>,
    /// Standard uncertainty of power that does not grow with power (an offset, and steps), in watts.
    pub(crate) fixed_uncertainty_watts: f64,
    /// Step of the instrument's counter, in joules, if the instrument or the user states it.
    pub(crate) resolution_joules: Option<f64>,
    /// The coefficients of the board's model, if the model computes the joules.
    pub(crate) model: Option<LinearModel>,
}

/// The largest share that readers of the exposition accept. An energy with a larger uncertainty is worthless.
const LARGEST_UNCERTAINTY: f64 = 1.0;

impl Source {
    /// Relative standard uncertainty of the source at some power, in watts. It combines a share that grows
    /// with power and a fixed part, as independent. The power may be unknown if there is no fixed part.
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

/// One value of an instrument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PowerOrEnergy {
    /// Power at the moment of the reading, in watts, not negative.
    Watts(f64),
    /// Energy since the instrument began to count, in joules, not negative.
    Joules(f64),
}

/// A reading of the instrument itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrueReading {
    /// When the reading was taken, since the meter began.
    pub(crate) at: Duration,
    /// The instrument's value.
    pub(crate) quantity: PowerOrEnergy,
}

/// Why an instrument gave no reading. The next attempt may succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstrumentError {
    /// A file is unreadable.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The instrument's text does not have the expected format.
    #[error("{from} answers {text:?}. Expected: {expected}")]
    Malformed {
        /// The file, command or URL.
        from: String,
        /// The text, cut short.
        text: String,
        /// The expected content.
        expected: &'static str,
    },
    /// A counter fell, and a wrap can't explain it.
    #[error("the counter {path} went back from {from} to {to} µJ. A wrap does not explain this.")]
    WentBack {
        /// The counter.
        path: String,
        /// Its last value, in microjoules.
        from: u64,
        /// Its value now, in microjoules.
        to: u64,
    },
    /// The host has not refreshed the file in time.
    #[error("{path} was last written {seconds:.0} s ago")]
    Old {
        /// The file.
        path: String,
        /// Its age, in seconds.
        seconds: f64,
    },
    /// The meter got no answer from the firmware.
    #[error(transparent)]
    Mailbox(#[from] frugality_mailbox::MailboxError),
    /// The meter got no answer from the device.
    #[error(transparent)]
    Remote(#[from] remote::RemoteError),
    /// The meter got no power from the FRITZ!Box.
    #[error(transparent)]
    Fritz(#[from] fritz::FritzError),
    /// The meter got no message from the broker.
    #[error(transparent)]
    Mqtt(#[from] mqtt::MqttError),
    /// The meter got no value from the SNMP agent.
    #[error(transparent)]
    Snmp(#[from] snmp::SnmpError),
}

impl InstrumentError {
    /// Whether the same question may succeed the next moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Remote(error) => error.may_pass(),
            // A datagram may be lost.
            Self::Snmp(error) => matches!(error, snmp::SnmpError::Slow { .. }),
            _ => false,
        }
    }

    /// `from` gave a text that does not have the expected format.
    pub(crate) fn malformed(from: impl Into<String>, text: &str, expected: &'static str) -> Self {
        const LONGEST: usize = 80;
        Self::Malformed {
            from: from.into(),
            text: text.chars().take(LONGEST).collect(),
            expected,
        }
    }
}

/// An instrument that the meter reads from files of this node, at the same moment as the CPU time.
pub(crate) trait LocalInstrument: std::fmt::Debug + Send {
    /// Reads the instrument once.
    fn read(&mut self) -> Result<PowerOrEnergy, InstrumentError>;

    /// Readings so far at the end of the instrument's scale; `None` if the end is unknown.
    fn saturated_readings(&self) -> Option<u64> {
        None
    }
}

/// A power or an energy must be finite and not negative: no node returns energy.
pub(crate) fn valid(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// A host in the form for a URL: an IPv6 address has brackets there (RFC 3986, 3.2.2).
pub(crate) fn in_url(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    }
}
