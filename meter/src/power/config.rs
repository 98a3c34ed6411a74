//! What a user says about the power sources of the nodes: a JSON file, the same for all nodes,
//! from which each takes its own part by its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frugality_measure::model::ModelUncertainty;
use serde::Deserialize;

use super::Provenance;
use super::board::both;
use super::remote::Credentials;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PowerConfig {
    /// Nodes that are not named below.
    #[serde(default)]
    default: Option<NodePower>,
    /// By the node's name.
    #[serde(default)]
    nodes: BTreeMap<String, NodePower>,
}

/// The power source of one node.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NodePower {
    /// What power is read from.
    pub(crate) source: SourceConfig,
    /// The board, for the source `model`, and for how power varied between two readings.
    pub(crate) board: Option<String>,
    /// Watts of a generic board with nothing to do.
    pub(crate) idle_watts: Option<f64>,
    /// What one busy CPU of a generic board adds, in watts.
    pub(crate) watts_per_cpu: Option<f64>,
    /// Relative standard uncertainty of the board's idle watts, for the source `model`.
    pub(crate) idle_watts_relative_uncertainty: Option<f64>,
    /// The same of its watts per CPU.
    pub(crate) watts_per_cpu_relative_uncertainty: Option<f64>,
    /// The most that this node can draw, in watts.
    pub(crate) max_watts: Option<f64>,
    /// Standard uncertainty of the source as a share of the energy, if it is known better than
    /// from the data sheet. For the source `model`, of both of the board's watts.
    pub(crate) relative_uncertainty: Option<f64>,
    /// `Modelled` where an exporter serves what a model computes.
    pub(crate) provenance: Option<Provenance>,
}

/// Where power is read from.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub(crate) enum SourceConfig {
    /// What the node has, in a documented order.
    Auto {},
    /// The board's power model.
    Model {},
    /// A sensor of the kernel's hwmon class.
    Hwmon {
        /// The driver's name of the chip.
        chip: Option<String>,
        /// The channel's label or number.
        label: Option<String>,
    },
    /// The energy counters of x86 processors.
    Rapl {},
    /// The power management chip of a Raspberry Pi 5.
    Pmic {
        /// Device of the firmware's mailbox, if it is another than those in `/dev`.
        device: Option<PathBuf>,
        /// Command that prints what `vcgencmd pmic_read_adc` does.
        command: Option<Vec<String>>,
        /// File in which the host keeps that.
        file: Option<PathBuf>,
        /// Your own correction: factor.
        slope: Option<f64>,
        /// Your own correction: watts.
        offset_watts: Option<f64>,
        /// Seconds between two readings.
        interval_seconds: Option<f64>,
    },
    /// A Shelly plug of the first generation.
    ShellyGen1 {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// Which of its meters.
        #[serde(default)]
        channel: u32,
        /// How it is asked.
        #[serde(default)]
        polling: Polling,
    },
    /// A Shelly plug of the second generation or later.
    ShellyGen2 {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// Which of its switches.
        #[serde(default)]
        channel: u32,
        /// How it is asked.
        #[serde(default)]
        polling: Polling,
    },
    /// A plug with Tasmota.
    Tasmota {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// How it is asked.
        #[serde(default)]
        polling: Polling,
    },
    /// Any JSON document.
    Json {
        /// Where it is: an `http://` or `https://` URL.
        url: String,
        /// Names and indices that lead to the number, joined by dots.
        path: String,
        /// Unit of the number; tells power from energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// How it is asked.
        #[serde(default)]
        polling: Polling,
    },
    /// Any Prometheus exporter.
    Prometheus {
        /// Its page: an `http://` or `https://` URL.
        url: String,
        /// The metric's name.
        metric: String,
        /// Labels that tell the one sample from others of the metric.
        #[serde(default)]
        labels: BTreeMap<String, String>,
        /// Unit of its value; tells power from energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// How it is asked.
        #[serde(default)]
        polling: Polling,
    },
}

/// How a device is asked.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Polling {
    /// Seconds between two questions.
    pub(crate) interval_seconds: Option<f64>,
    /// Seconds between two of the device's own measurements, where they are known.
    pub(crate) refresh_seconds: Option<f64>,
    /// Seconds that an answer may take.
    pub(crate) timeout_seconds: Option<f64>,
    /// User name; the password is in a file.
    pub(crate) username: Option<String>,
    /// File with the password, mounted from a Secret.
    pub(crate) password_file: Option<PathBuf>,
    /// File with a bearer token, mounted from a Secret.
    pub(crate) token_file: Option<PathBuf>,
    /// File with the authority of an `https://` device's certificate, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file does not say what it should.
    #[error("{}: {source}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// A number is out of range.
    #[error("{field} is {value}: write a number {expected}")]
    OutOfRange {
        /// Where it stands.
        field: &'static str,
        /// What it is.
        value: f64,
        /// What it should be.
        expected: &'static str,
    },
    /// An energy needs the uncertainty of both watts.
    #[error(
        "the accuracy of a model is not stated once and whole: write idleWattsRelativeUncertainty and \
         wattsPerCpuRelativeUncertainty, or relativeUncertainty for both"
    )]
    ModelUncertainty,
    /// The ways to prove who asks exclude each other.
    #[error("write username with passwordFile, or tokenFile alone")]
    Credentials,
}

const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
const INTERVALS_SECONDS: std::ops::RangeInclusive<f64> = 0.1..=600.0;

impl PowerConfig {
    /// Reads the file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        serde_json::from_str(&text).map_err(|source| ConfigError::Malformed {
            path: path.to_owned(),
            source,
        })
    }

    /// What is said about a node: by its name, else the default.
    pub(crate) fn of(&self, node: &str) -> Option<&NodePower> {
        self.nodes.get(node).or(self.default.as_ref())
    }
}

impl NodePower {
    /// A source about which nothing else is said.
    pub(crate) fn only(source: SourceConfig) -> Self {
        Self {
            source,
            board: None,
            idle_watts: None,
            watts_per_cpu: None,
            idle_watts_relative_uncertainty: None,
            watts_per_cpu_relative_uncertainty: None,
            max_watts: None,
            relative_uncertainty: None,
            provenance: None,
        }
    }

    /// Checks what the types alone cannot.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let numbers = [
            ("idleWatts", self.idle_watts, 0.0, "of watts"),
            ("wattsPerCpu", self.watts_per_cpu, 0.0, "of watts"),
            (
                "maxWatts",
                self.max_watts,
                f64::MIN_POSITIVE,
                "of watts above 0",
            ),
        ];
        for (field, value, least, expected) in numbers {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= least)) {
                return Err(ConfigError::OutOfRange {
                    field,
                    value,
                    expected,
                });
            }
        }
        let shares = [
            ("relativeUncertainty", self.relative_uncertainty),
            (
                "idleWattsRelativeUncertainty",
                self.idle_watts_relative_uncertainty,
            ),
            (
                "wattsPerCpuRelativeUncertainty",
                self.watts_per_cpu_relative_uncertainty,
            ),
        ];
        for (field, value) in shares {
            // The operator takes no reading of an energy whose uncertainty is larger than itself.
            if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
                return Err(ConfigError::OutOfRange {
                    field,
                    value,
                    expected: "from 0 to 1, such as 0.02",
                });
            }
        }
        match (
            self.idle_watts_relative_uncertainty,
            self.watts_per_cpu_relative_uncertainty,
            self.relative_uncertainty,
        ) {
            (None, None, _) | (Some(_), Some(_), None) => Ok(()),
            _ => Err(ConfigError::ModelUncertainty),
        }
    }

    /// How well the watts of the board's model are known, if the user says so. One share for the energy holds for
    /// both.
    pub(crate) fn model_uncertainty(&self) -> Option<ModelUncertainty> {
        self.idle_watts_relative_uncertainty
            .zip(self.watts_per_cpu_relative_uncertainty)
            .map(|(idle_watts, watts_per_cpu)| ModelUncertainty {
                idle_watts,
                watts_per_cpu,
            })
            .or(self.relative_uncertainty.map(both))
    }
}

impl Polling {
    /// Time between two questions.
    pub(crate) fn interval(&self) -> Result<Duration, ConfigError> {
        seconds("intervalSeconds", self.interval_seconds, DEFAULT_INTERVAL)
    }

    /// Time between two of the device's own measurements, where somebody has said it.
    pub(crate) fn refresh(&self) -> Result<Option<Duration>, ConfigError> {
        self.refresh_seconds
            .map(|value| seconds("refreshSeconds", Some(value), DEFAULT_INTERVAL))
            .transpose()
    }

    /// Time that an answer may take.
    pub(crate) fn timeout(&self) -> Result<Duration, ConfigError> {
        seconds("timeoutSeconds", self.timeout_seconds, DEFAULT_TIMEOUT)
    }

    /// How to prove who asks.
    pub(crate) fn credentials(&self) -> Result<Option<Credentials>, ConfigError> {
        match (&self.username, &self.password_file, &self.token_file) {
            (None, None, None) => Ok(None),
            (Some(username), Some(password_file), None) => Ok(Some(Credentials::Password {
                digest_only: false,
                username: username.clone(),
                password_file: password_file.clone(),
            })),
            (None, None, Some(token_file)) => Ok(Some(Credentials::Bearer {
                token_file: token_file.clone(),
            })),
            _ => Err(ConfigError::Credentials),
        }
    }
}

/// A time between a tenth of a second and ten minutes.
pub(crate) fn seconds(
    field: &'static str,
    value: Option<f64>,
    default: Duration,
) -> Result<Duration, ConfigError> {
    match value {
        None => Ok(default),
        Some(value) if INTERVALS_SECONDS.contains(&value) => Ok(Duration::from_secs_f64(value)),
        Some(value) => Err(ConfigError::OutOfRange {
            field,
            value,
            expected: "of seconds between 0.1 and 600",
        }),
    }
}
