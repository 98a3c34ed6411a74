//! Instruments that the meter polls: they are remote, or a reading costs too much for every sample.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use frugality_measure::exposition::Sample;
use frugality_measure::reading::{Provenance, provenance_of_path};
use serde_json::Value;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task;
use tokio::time::MissedTickBehavior;

use super::fritz;
use super::mqtt::Topic;
use super::pmic::{self, Correction, PmicFile};
use super::remote::DeviceEndpoint;
use super::snmp::Object;
use super::{InstrumentError, PowerOrEnergy, TrueReading, valid};

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
            "dW" => (0.1, false),
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
        "mW, dW, W, kW (power), uJ, mJ, J, kJ, Ws, Wmin, mWh, Wh, kWh (an energy counter)";

    fn quantity(self, number: f64) -> Option<PowerOrEnergy> {
        let value = valid(number * self.factor)?;
        Some(if self.is_energy {
            PowerOrEnergy::Joules(value)
        } else {
            PowerOrEnergy::Watts(value)
        })
    }
}

/// An instrument that is polled.
#[derive(Debug)]
pub(crate) enum Polled {
    /// A number in a JSON document.
    Json {
        /// URL of the document.
        endpoint: DeviceEndpoint,
        /// Names and indices that lead to the number.
        path: Vec<String>,
        /// Unit of the number.
        unit: Unit,
        /// What the document says about the number.
        checks: Checks,
    },
    /// A sample of a Prometheus exposition.
    Prometheus {
        /// URL of the exposition.
        endpoint: DeviceEndpoint,
        /// The metric.
        metric: String,
        /// Labels that identify the one sample.
        labels: BTreeMap<String, String>,
        /// Unit of the sample's value.
        unit: Unit,
        /// The sample's timestamps.
        times: Times,
        /// Whether the user says that the number is a model's.
        is_modelled: bool,
    },
    /// A number in the messages of a topic.
    Mqtt {
        /// The topic.
        topic: Topic,
        /// Names and indices that lead to the number in a JSON message; `None` if the message is the number.
        path: Option<Vec<String>>,
        /// Unit of the number.
        unit: Unit,
        /// The place of the time of the measurement.
        time: Option<MeasuredAt>,
    },
    /// An object of an SNMP agent.
    Snmp {
        /// The object.
        object: Object,
        /// Unit of the value.
        unit: Unit,
    },
    /// A FRITZ!DECT plug.
    FritzDect(Box<fritz::Plug>),
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

/// What a JSON document says about its number.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    /// The place of a self-test's result. The number is refused if it is `false`.
    pub(crate) valid: Option<Vec<String>>,
    /// The place of a list of errors. The number is refused if the list has one.
    pub(crate) errors: Option<Vec<String>>,
    /// The place of a number that must have decimals.
    pub(crate) decimals: Option<Vec<String>>,
    /// The place of the time of the measurement.
    pub(crate) time: Option<MeasuredAt>,
}

/// The times of measurements in the documents of another program, which repeats the last number of a device that is
/// gone. Only a new time is a new measurement. The times are compared as text, so the clocks need not agree.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// The time in the last document, and when the document was asked for.
    seen: Option<(String, Instant)>,
}

impl Times {
    /// How much older than the document its measurement is; `None` if it is not a new measurement. A new measurement
    /// was made between two documents, and counts as made in the middle. The age of the first document's measurement
    /// is unknown.
    fn age(&mut self, time: &str) -> Option<Duration> {
        let now = Instant::now();
        let last = self.seen.replace((time.to_owned(), now));
        last.filter(|(before, _)| before != time)
            .map(|(_, asked)| now.saturating_duration_since(asked) / 2)
    }
}

/// The place of the time of the measurement in a document.
#[derive(Debug)]
pub(crate) struct MeasuredAt {
    path: Vec<String>,
    times: Times,
}

impl MeasuredAt {
    /// The time is at `path`.
    pub(crate) fn new(path: Vec<String>) -> Self {
        Self {
            path,
            times: Times::default(),
        }
    }

    /// The age of the document's measurement, as [`Times::age`].
    fn age(&mut self, root: &Value, url: &str) -> Result<Option<Duration>, InstrumentError> {
        let Some(time @ (Value::String(_) | Value::Number(_))) = at_path(root, &self.path) else {
            let from = format!("{url} at {}", self.path.join("."));
            return Err(InstrumentError::malformed(from, "nothing", "time"));
        };
        Ok(self.times.age(&time.to_string()))
    }
}

impl Checks {
    /// Refuses a number that its device does not trust.
    fn refuse(&self, root: &Value, url: &str) -> Result<(), InstrumentError> {
        if let Some(path) = &self.valid
            && at_path(root, path) == Some(&Value::Bool(false))
        {
            let from = format!("{url} at {}", path.join("."));
            return Err(InstrumentError::malformed(
                from,
                "false",
                "valid measurement",
            ));
        }
        if let Some(path) = &self.decimals
            && let Some(Value::Number(number)) = at_path(root, path)
            && !number.is_f64()
        {
            let from = format!("{url} at {}", path.join("."));
            return Err(InstrumentError::malformed(
                from,
                &number.to_string(),
                "number with decimals: WattRes 2 on Tasmota's console turns them on",
            ));
        }
        if let Some(path) = &self.errors
            && let Some(Value::Array(errors)) = at_path(root, path)
            && !errors.is_empty()
        {
            let from = format!("{url} at {}", path.join("."));
            let text = Value::Array(errors.clone()).to_string();
            return Err(InstrumentError::malformed(
                from,
                &text,
                "empty list of errors",
            ));
        }
        Ok(())
    }
}

impl Polled {
    /// Whether the instrument may repeat an old value, for a time that its maker does not state.
    pub(crate) fn may_repeat(&self) -> bool {
        matches!(
            self,
            Self::Json { .. } | Self::Prometheus { .. } | Self::Mqtt { .. } | Self::Snmp { .. }
        )
    }

    /// Whether the device decides when it measures. [`Polled::ask`] then waits for its next message.
    pub(crate) fn is_pushed(&self) -> bool {
        matches!(self, Self::Mqtt { topic, .. } if topic.is_pushed())
    }

    /// Polls the instrument, and tries once more if the first try fails. `None`: no new value since the last
    /// poll.
    pub(crate) async fn ask(
        &mut self,
    ) -> Result<Option<(PowerOrEnergy, Duration)>, InstrumentError> {
        let mut tries = 1;
        loop {
            match self.ask_once().await {
                Err(error) if tries < TRIES && error.may_pass() => tries += 1,
                outcome => return outcome,
            }
        }
    }

    /// The value and its age. An answer counts as true in the middle between request and answer.
    async fn ask_once(&mut self) -> Result<Option<(PowerOrEnergy, Duration)>, InstrumentError> {
        let asked = Instant::now();
        let quantity = match self {
            Self::Json {
                endpoint,
                path,
                unit,
                checks,
            } => {
                let (text, took) = endpoint.get().await?;
                let root = json(&text, endpoint.url())?;
                checks.refuse(&root, endpoint.url())?;
                let quantity = in_json(&root, endpoint.url(), path, *unit)?;
                let age = match &mut checks.time {
                    None => Some(Duration::ZERO),
                    Some(time) => time.age(&root, endpoint.url())?,
                };
                return Ok(age.map(|age| (quantity, took / 2 + age)));
            }
            Self::Prometheus {
                endpoint,
                metric,
                labels,
                unit,
                times,
                is_modelled,
            } => {
                let (text, took) = endpoint.get().await?;
                let sample = in_exposition(&text, endpoint.url(), metric, labels)?;
                let wrong =
                    |text: &str, expected| malformed(endpoint.url(), metric, text, expected);
                refuse_model(&sample, *is_modelled)
                    .map_err(|(path, expected)| wrong(&path, expected))?;
                let quantity = unit
                    .quantity(sample.value)
                    .ok_or_else(|| wrong(&sample.value.to_string(), "number above 0"))?;
                let age = match sample.timestamp {
                    None => Some(Duration::ZERO),
                    Some(time) => times.age(&time.to_string()),
                };
                return Ok(age.map(|age| (quantity, took / 2 + age)));
            }
            Self::Mqtt {
                topic,
                path,
                unit,
                time,
            } => {
                let (url, path, unit) = (topic.url(), path.as_deref(), *unit);
                let read = |text: &str| match path {
                    Some(path) => {
                        let root = json(text, &url)?;
                        Ok((in_json(&root, &url, path, unit)?, root))
                    }
                    None => text
                        .trim()
                        .parse()
                        .ok()
                        .and_then(|number| Some((unit.quantity(number)?, Value::Null)))
                        .ok_or_else(|| InstrumentError::malformed(&url, text, "number above 0")),
                };
                let ((quantity, root), delay) = topic.next(read).await?;
                let age = match time {
                    None => Some(Duration::ZERO),
                    Some(time) => time.age(&root, &url)?,
                };
                return Ok(age.map(|age| (quantity, delay + age)));
            }
            Self::Snmp { object, unit } => {
                let number = object.get().await?;
                unit.quantity(number).ok_or_else(|| {
                    let text = number.to_string();
                    InstrumentError::malformed(object.url(), &text, "number above 0")
                })?
            }
            Self::FritzDect(plug) => {
                let (quantity, took) = plug.get().await?;
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

/// Polls every `interval` and sends the outcomes. An instrument that publishes by itself is read whenever it
/// publishes. Times count from `began`. Ends when the receiver is dropped.
pub(crate) async fn poll(
    mut instrument: Polled,
    interval: Duration,
    began: Instant,
    readings: mpsc::Sender<News>,
) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        if !instrument.is_pushed() {
            ticks.tick().await;
        }
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

fn json(text: &str, url: &str) -> Result<Value, InstrumentError> {
    serde_json::from_str(text).map_err(|_| InstrumentError::malformed(url, text, "JSON document"))
}

/// The value at a path such as `meters.0.power`.
fn at_path<'a>(root: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The number at a path. Some devices write numbers as text.
fn in_json(
    root: &Value,
    url: &str,
    path: &[String],
    unit: Unit,
) -> Result<PowerOrEnergy, InstrumentError> {
    let found = at_path(root, path);
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

/// The one sample of the metric that has the labels. Only the metric's own lines are parsed, because an exporter's page
/// is large.
fn in_exposition(
    text: &str,
    url: &str,
    metric: &str,
    labels: &BTreeMap<String, String>,
) -> Result<Sample, InstrumentError> {
    let lines: String = text
        .split_inclusive('\n')
        .filter(|line| {
            line.strip_prefix(metric)
                .is_some_and(|rest| rest.starts_with(['{', ' ', '\t']))
        })
        .collect();
    let wrong = |text: &str, expected| malformed(url, metric, text, expected);
    let samples = frugality_measure::exposition::parse(&lines)
        .map_err(|_| wrong(&lines, "Prometheus exposition"))?;
    let mut fitting = samples.into_iter().filter(|sample| {
        labels
            .iter()
            .all(|(name, value)| sample.label(name) == Some(value))
    });
    match (fitting.next(), fitting.next()) {
        (Some(sample), None) => Ok(sample),
        (None, _) => Err(wrong("nothing", "sample with these labels")),
        (Some(_), Some(_)) => Err(wrong(&lines, "single sample: write more labels")),
    }
}

fn malformed(url: &str, metric: &str, text: &str, expected: &'static str) -> InstrumentError {
    InstrumentError::malformed(format!("{url} under {metric}"), text, expected)
}

/// Refuses a model's joules that the user did not declare as such, and invented joules. Kepler and the node meter show both
/// in the label `path`.
fn refuse_model(sample: &Sample, is_modelled: bool) -> Result<(), (String, &'static str)> {
    let path = sample.label("path").unwrap_or_default();
    let expected = match provenance_of_path(path) {
        Provenance::Fake => "measured or modelled counter: Kepler invents this one",
        Provenance::Modelled if !is_modelled => "instrument: write provenance: Modelled",
        _ => return Ok(()),
    };
    Err((format!("path {path}"), expected))
}

/// Uses another thread: if the meter waited for the firmware, it would miss its next reading of CPU time.
async fn pmic_mailbox(
    device: &Path,
    correction: Correction,
) -> Result<PowerOrEnergy, InstrumentError> {
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
) -> Result<PowerOrEnergy, InstrumentError> {
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
