//! Instruments that the meter polls: they are remote, or a reading costs too much for every sample.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::MissedTickBehavior;

use super::pmic::{self, Correction, PmicFile};
use super::remote::Endpoint;
use super::{InstrumentError, Quantity, TrueReading, valid};

/// Tries before a reading is given up: radio links lose a packet now and then.
const TRIES: u32 = 2;
/// The kernel itself gives up after one second.
const MAILBOX_PATIENCE: Duration = Duration::from_secs(2);
/// Readings that can wait for the sampler, which takes all of them at each sample. The shortest interval of a device is
/// 0.1 s.
const QUEUE: usize = 64;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    /// Watts or joules per unit.
    factor: f64,
    is_energy: bool,
}

impl Unit {
    /// The unit with this symbol; `None` if the symbol is unknown.
    pub(crate) fn parse(symbol: &str) -> Option<Self> {
        let (factor, is_energy) = match symbol {
            "mW" => (1e-3, false),
            "W" => (1.0, false),
            "kW" => (1e3, false),
            "uJ" | "µJ" => (1e-6, true),
            "mJ" => (1e-3, true),
            "J" | "Ws" => (1.0, true),
            "kJ" => (1e3, true),
            "Wmin" => (60.0, true),
            "mWh" => (3.6, true),
            "Wh" => (3_600.0, true),
            "kWh" => (3_600_000.0, true),
            _ => return None,
        };
        Some(Self { factor, is_energy })
    }

    /// The units that [`Unit::parse`] knows.
    pub(crate) const KNOWN: &'static str =
        "mW, W, kW (power), uJ, mJ, J, kJ, Ws, Wmin, mWh, Wh, kWh (an energy counter)";

    fn quantity(self, number: f64) -> Option<Quantity> {
        let value = valid(number * self.factor)?;
        Some(if self.is_energy {
            Quantity::Joules(value)
        } else {
            Quantity::Watts(value)
        })
    }
}

/// An instrument that is polled.
#[derive(Debug)]
pub(crate) enum Polled {
    /// A number in a JSON document.
    Json {
        /// URL of the document.
        endpoint: Endpoint,
        /// Names and indices that lead to the number.
        path: Vec<String>,
        /// Unit of the number.
        unit: Unit,
    },
    /// A sample of a Prometheus exposition.
    Prometheus {
        /// URL of the exposition.
        endpoint: Endpoint,
        /// The metric.
        metric: String,
        /// Labels that identify the one sample.
        labels: BTreeMap<String, String>,
        /// Unit of the sample's value.
        unit: Unit,
    },
    /// The firmware of a Raspberry Pi 5.
    PmicMailbox {
        /// The mailbox device.
        device: PathBuf,
        /// Maps the sum over the rails to the board's power.
        correction: Correction,
    },
    /// A command that prints the text of `vcgencmd pmic_read_adc`.
    PmicCommand {
        /// Program and arguments.
        command: Vec<String>,
        /// Maps the sum over the rails to the board's power.
        correction: Correction,
        /// Time limit of the command.
        timeout: Duration,
    },
    /// A file in which the host keeps that text.
    PmicFile(PmicFile),
}

impl Polled {
    /// Whether the instrument may repeat an old value instead of a new measurement.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(self, Self::Json { .. } | Self::Prometheus { .. })
    }

    /// Polls the instrument, and tries once more if the first try fails. `None`: no new value since the last
    /// poll.
    pub(crate) async fn ask(&mut self) -> Result<Option<(Quantity, Duration)>, InstrumentError> {
        let mut tries = 1;
        loop {
            match self.ask_once().await {
                Err(InstrumentError::Remote(error)) if tries < TRIES && error.may_pass() => {
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// The value and its age. An answer counts as true in the middle between request and answer.
    async fn ask_once(&mut self) -> Result<Option<(Quantity, Duration)>, InstrumentError> {
        let asked = Instant::now();
        let quantity = match self {
            Self::Json {
                endpoint,
                path,
                unit,
            } => {
                let (text, took) = endpoint.get().await?;
                let quantity = in_json(&text, endpoint.url(), path, *unit)?;
                return Ok(Some((quantity, took / 2)));
            }
            Self::Prometheus {
                endpoint,
                metric,
                labels,
                unit,
            } => {
                let (text, took) = endpoint.get().await?;
                let quantity = in_exposition(&text, endpoint.url(), metric, labels, *unit)?;
                return Ok(Some((quantity, took / 2)));
            }
            Self::PmicMailbox { device, correction } => pmic_mailbox(device, *correction).await?,
            Self::PmicCommand {
                command,
                correction,
                timeout,
            } => pmic_command(command, *correction, *timeout).await?,
            Self::PmicFile(file) => return file.read(),
        };
        Ok(Some((quantity, asked.elapsed() / 2)))
    }
}

/// The outcome of one poll.
pub(crate) type News = Result<TrueReading, InstrumentError>;

/// Polls every `interval` and sends the outcomes. Times count from `began`. Ends when the receiver is
/// dropped.
pub(crate) async fn poll(
    mut instrument: Polled,
    interval: Duration,
    began: Instant,
    readings: mpsc::Sender<News>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let outcome = match instrument.ask().await {
            Ok(None) => continue,
            Ok(Some((quantity, age))) => Ok(TrueReading {
                at: began.elapsed().saturating_sub(age),
                quantity,
            }),
            Err(error) => Err(error),
        };
        if readings.send(outcome).await.is_err() {
            return;
        }
    }
}

/// A channel of the right size for [`poll`].
pub(crate) fn queue() -> (mpsc::Sender<News>, mpsc::Receiver<News>) {
    mpsc::channel(QUEUE)
}

/// The number at a path such as `meters.0.power`. Some devices write numbers as text.
fn in_json(
    text: &str,
    url: &str,
    path: &[String],
    unit: Unit,
) -> Result<Quantity, InstrumentError> {
    let root: Value = serde_json::from_str(text)
        .map_err(|_| InstrumentError::malformed(url, text, "JSON document"))?;
    let found = path.iter().try_fold(&root, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    });
    found
        .and_then(|value| {
            value
                .as_f64()
                .or_else(|| value.as_str()?.trim().parse().ok())
        })
        .and_then(|number| unit.quantity(number))
        .ok_or_else(|| {
            let from = format!("{url} at {}", path.join("."));
            let text = found.map_or_else(|| "nothing".to_owned(), Value::to_string);
            InstrumentError::malformed(from, &text, "number above 0")
        })
}

/// The one sample of the metric that has the labels. Only the metric's own lines are parsed, because an
/// exporter's page is large.
fn in_exposition(
    text: &str,
    url: &str,
    metric: &str,
    labels: &BTreeMap<String, String>,
    unit: Unit,
) -> Result<Quantity, InstrumentError> {
    let lines: String = text
        .split_inclusive('\n')
        .filter(|line| {
            line.strip_prefix(metric)
                .is_some_and(|rest| rest.starts_with(['{', ' ', '\t']))
        })
        .collect();
    let wrong = |text: &str, expected| {
        InstrumentError::malformed(format!("{url} under {metric}"), text, expected)
    };
    let samples = frugality_measure::exposition::parse(&lines)
        .map_err(|_| wrong(&lines, "Prometheus exposition"))?;
    let mut fitting = samples.iter().filter(|sample| {
        labels
            .iter()
            .all(|(name, value)| sample.label(name) == Some(value))
    });
    match (fitting.next(), fitting.next()) {
        (Some(sample), None) => unit
            .quantity(sample.value)
            .ok_or_else(|| wrong(&sample.value.to_string(), "number above 0")),
        (None, _) => Err(wrong("nothing", "sample with these labels")),
        (Some(_), Some(_)) => Err(wrong(&lines, "single sample: write more labels")),
    }
}

/// Uses another thread: if the meter waited for the firmware, it would miss its next reading of CPU time.
async fn pmic_mailbox(device: &Path, correction: Correction) -> Result<Quantity, InstrumentError> {
    let from = device.display().to_string();
    let device = device.to_owned();
    let failed = |source| InstrumentError::Unreadable {
        path: from.clone(),
        source,
    };
    let asking = task::spawn_blocking(move || frugality_mailbox::ask(&device, pmic::QUESTION));
    let answer = tokio::time::timeout(MAILBOX_PATIENCE, asking)
        .await
        .map_err(|_| failed(std::io::ErrorKind::TimedOut.into()))?
        .map_err(|source| failed(source.into()))??;
    pmic::quantity(&from, &answer, correction)
}

async fn pmic_command(
    command: &[String],
    correction: Correction,
    timeout: Duration,
) -> Result<Quantity, InstrumentError> {
    let from = command.join(" ");
    let failed = |source| InstrumentError::Unreadable {
        path: from.clone(),
        source,
    };
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| InstrumentError::malformed("the command", "", "program"))?;
    let running = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(timeout, running)
        .await
        .map_err(|_| failed(std::io::ErrorKind::TimedOut.into()))?
        .map_err(failed)?;
    pmic::quantity(&from, &String::from_utf8_lossy(&output.stdout), correction)
}

#[cfg(test)]
mod tests;
