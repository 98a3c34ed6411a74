//! The user's settings for the power sources of the nodes: a JSON file, the same for all nodes. Each node
//! takes its own part by its name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use frugality_measure::model::ModelUncertainty;
use serde::Deserialize;

use super::SourceProvenance;
use super::board::both;
use super::remote::Credentials;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PowerConfig {
    /// For nodes that `nodes` does not name.
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
    /// Where power is read from.
    pub(crate) source: SourceConfig,
    /// The board: for the source `model`, and to estimate how power varied between two readings.
    pub(crate) board: Option<String>,
    /// Idle power of a generic board, in watts.
    pub(crate) idle_watts: Option<f64>,
    /// Power that one busy CPU of a generic board adds, in watts.
    pub(crate) watts_per_cpu: Option<f64>,
    /// Relative standard uncertainty of the board's idle watts, for the source `model`.
    pub(crate) idle_watts_relative_uncertainty: Option<f64>,
    /// Relative standard uncertainty of the board's watts per CPU, for the source `model`.
    pub(crate) watts_per_cpu_relative_uncertainty: Option<f64>,
    /// The highest power that this node can draw, in watts.
    pub(crate) max_watts: Option<f64>,
    /// Relative standard uncertainty of the source's energy, if the user knows it better than the data sheet.
    /// For the source `model`, it applies to both of the board's watts. Not for `auto`, which may choose another source.
    pub(crate) relative_uncertainty: Option<f64>,
    /// `Modelled` if an exporter serves the results of a model.
    pub(crate) provenance: Option<SourceProvenance>,
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
    /// The best source that the node has, in a documented order.
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
        /// Device of the firmware's mailbox, if it is not one of the devices in `/dev`.
        device: Option<PathBuf>,
        /// Command that prints the text of `vcgencmd pmic_read_adc`.
        command: Option<Vec<String>>,
        /// File in which the host keeps that text.
        file: Option<PathBuf>,
        /// Factor of the user's own correction.
        slope: Option<f64>,
        /// Offset of the user's own correction, in watts.
        offset_watts: Option<f64>,
        /// Seconds between two readings.
        interval_seconds: Option<f64>,
    },
    /// A Shelly plug of the first generation.
    ShellyGen1 {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// Index of the meter in the plug.
        #[serde(default)]
        channel: u32,
        /// The kind of meter.
        #[serde(default)]
        component: Gen1Component,
        /// How the plug is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// A Shelly plug of the second generation or later.
    ShellyGen2 {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// Index of the component in the device.
        #[serde(default)]
        channel: u32,
        /// The component that measures.
        #[serde(default)]
        component: Gen2Component,
        /// How the plug is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// A plug with Tasmota.
    Tasmota {
        /// Name or address, with a port if it is not 80.
        host: String,
        /// How the plug is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// A FRITZ!DECT plug, through its FRITZ!Box.
    FritzDect {
        /// Name or address of the box, with a port if it is not 80.
        host: String,
        /// The plug's identification number (AIN).
        ain: String,
        /// How the box is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// Any JSON document.
    Json {
        /// An `http://` or `https://` URL.
        url: String,
        /// Names and indices that lead to the number, joined by dots.
        path: String,
        /// The same for the time of the measurement, if the document may repeat an old number.
        time_path: Option<String>,
        /// Unit of the number: a unit of power or of energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// How the document is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// A supply that reports its current to the kernel, such as Raspberry Pi's PoE+ HAT.
    PowerSupply {
        /// The kernel's name for the supply.
        name: Option<String>,
        /// The supply's output voltage, if the kernel does not report it.
        volts: Option<f64>,
    },
    /// A topic of an MQTT broker.
    Mqtt {
        /// Name or address of the broker, with a port if it is not 1883.
        broker: String,
        /// The topic on which the device publishes.
        topic: String,
        /// Names and indices that lead to the number in a JSON message, joined by dots. Without it, the message is
        /// the number.
        path: Option<String>,
        /// The path of the time of the measurement, if messages may repeat an old number.
        time_path: Option<String>,
        /// Unit of the number: a unit of power or of energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// What to publish for each reading, if the device does not publish often enough by itself.
        request: Option<MqttRequest>,
        /// How the device is polled, or how often it publishes.
        #[serde(default)]
        polling: Polling,
    },
    /// An object of an SNMP agent.
    Snmp {
        /// Name or address of the agent, with a port if it is not 161.
        host: String,
        /// The object's identifier: numbers joined by dots.
        oid: String,
        /// Unit of the value: a unit of power or of energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// File with the community, mounted from a Secret. Without it, the community is `public`.
        community_file: Option<PathBuf>,
        /// How the agent is polled.
        #[serde(default)]
        polling: Polling,
    },
    /// Any Prometheus exporter.
    Prometheus {
        /// The exporter's page: an `http://` or `https://` URL.
        url: String,
        /// The metric's name.
        metric: String,
        /// Labels that identify the one sample of the metric.
        #[serde(default)]
        labels: BTreeMap<String, String>,
        /// Unit of the sample's value: a unit of power or of energy.
        unit: String,
        /// Step of an energy counter, in joules.
        resolution_joules: Option<f64>,
        /// How the exporter is polled.
        #[serde(default)]
        polling: Polling,
    },
}

/// What measures in a Shelly of the first generation.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Gen1Component {
    /// The meter of a relay.
    #[default]
    Meter,
    /// A clamp of an EM or 3EM.
    Emeter,
}

/// What measures in a Shelly of a later generation.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Gen2Component {
    /// A switch with a meter.
    #[default]
    Switch,
    /// A meter without a switch.
    Pm1,
    /// A clamp of a device with single phases.
    Em1,
    /// All phases of a device with three phases.
    Em,
    /// Its first phase.
    EmA,
    /// Its second phase.
    EmB,
    /// Its third phase.
    EmC,
}

/// A message that makes a device publish its power.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MqttRequest {
    /// The topic of the message.
    pub(crate) topic: String,
    /// The message.
    pub(crate) payload: String,
}

/// How a device is polled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Polling {
    /// Seconds between two polls.
    pub(crate) interval_seconds: Option<f64>,
    /// Seconds between two of the device's own measurements, if known.
    pub(crate) refresh_seconds: Option<f64>,
    /// Time limit of an answer, in seconds.
    pub(crate) timeout_seconds: Option<f64>,
    /// User name. The password is in a file.
    pub(crate) username: Option<String>,
    /// File with the password, mounted from a Secret.
    pub(crate) password_file: Option<PathBuf>,
    /// File with a bearer token, mounted from a Secret.
    pub(crate) token_file: Option<PathBuf>,
    /// File with the authority that signed an `https://` device's certificate, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
}

/// Why a configuration is unusable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The file is unreadable.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file's content does not have the expected form.
    #[error("{}: {source}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The place in the file, and the error.
        source: serde_json::Error,
    },
    /// A number is out of range.
    #[error("{field} is {value}: write a number {expected}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The user's value.
        value: f64,
        /// The accepted values.
        expected: &'static str,
    },
    /// The energy of a model needs the uncertainty of both watts.
    #[error(
        "a model's accuracy is stated in part or twice: write idleWattsRelativeUncertainty and \
         wattsPerCpuRelativeUncertainty, or relativeUncertainty for both"
    )]
    ModelUncertainty,
    /// The automatic choice may take another source than the one whose accuracy the user states.
    #[error(
        "relativeUncertainty is the accuracy of one source, and auto may choose another: name the source as type, such as \
         hwmon, rapl or pmic, or leave out relativeUncertainty"
    )]
    AutoUncertainty,
    /// The automatic choice may take another board than the one whose accuracy the user states.
    #[error(
        "idleWattsRelativeUncertainty is the accuracy of one board's watts, and auto may find another board: write the \
         board, or idleWatts with wattsPerCpu"
    )]
    AutoModelUncertainty,
    /// The authentication methods exclude each other.
    #[error("write username with passwordFile, or tokenFile alone")]
    Credentials,
}

const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);
const INTERVALS_SECONDS: std::ops::RangeInclusive<f64> = 0.1..=600.0;

impl PowerConfig {
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

    /// The settings for a node: by the node's name, else the default.
    pub(crate) fn of(&self, node: &str) -> Option<&NodePower> {
        self.nodes.get(node).or(self.default.as_ref())
    }
}

impl NodePower {
    /// A source without further settings.
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

    /// Checks the values that the types do not check.
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
            // The operator rejects readings of an energy whose uncertainty is larger than the energy.
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
            (None, None, _) | (Some(_), Some(_), None) => {}
            _ => return Err(ConfigError::ModelUncertainty),
        }
        if self.source != (SourceConfig::Auto {}) {
            return Ok(());
        }
        if self.relative_uncertainty.is_some() {
            return Err(ConfigError::AutoUncertainty);
        }
        let has_own_watts = self.board.is_some() || self.idle_watts.is_some();
        if self.idle_watts_relative_uncertainty.is_some() && !has_own_watts {
            return Err(ConfigError::AutoModelUncertainty);
        }
        Ok(())
    }

    /// Relative standard uncertainties of the model's watts, if the user states them. One share for the
    /// energy applies to both watts.
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
    /// Time between two polls.
    pub(crate) fn interval(&self) -> Result<Duration, ConfigError> {
        seconds("intervalSeconds", self.interval_seconds, DEFAULT_INTERVAL)
    }

    /// Time between two of the device's own measurements, if the user states it.
    pub(crate) fn refresh(&self) -> Result<Option<Duration>, ConfigError> {
        self.refresh_seconds
            .map(|value| seconds("refreshSeconds", Some(value), DEFAULT_INTERVAL))
            .transpose()
    }

    /// Time limit of an answer.
    pub(crate) fn timeout(&self) -> Result<Duration, ConfigError> {
        seconds("timeoutSeconds", self.timeout_seconds, DEFAULT_TIMEOUT)
    }

    /// How the meter authenticates.
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

/// A time from 0.1 s to 600 s.
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
