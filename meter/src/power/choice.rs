//! From what a user says, and what the node has, to the source that is used.

use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::board::{BoardModel, GENERIC, by_device_tree, by_name, known_boards};
use super::config::{ConfigError, NodePower, Polling, SourceConfig, seconds};
use super::hwmon::{self, Hwmon, Sensor};
use super::pmic::{self, Correction, PmicFile};
use super::polled::{Polled, Unit};
use super::rapl::{self, Rapl, Zones};
use super::refresh::Refresh;
use super::remote::{Credentials, Endpoint, RemoteError};
use super::supply::Supply;
use super::sysfs::read_text;
use super::timeline::Timeline;
use super::{BOARD_ZONE, LocalInstrument, Provenance, Source};
use frugality_measure::model::LinearModel;

/// What the choice depends on beside the user.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Surroundings {
    /// Where the host's sysfs is.
    pub(crate) sysfs: PathBuf,
    /// Where the devices are.
    pub(crate) dev: PathBuf,
    /// Where the kernel's files on processes and processors are.
    pub(crate) procfs: PathBuf,
    /// CPUs of the node.
    pub(crate) cpus: u32,
    /// Time between two readings of CPU time.
    pub(crate) interval: Duration,
}

/// An instrument, ready to be read.
#[derive(Debug)]
pub(crate) enum Instrument {
    /// With every reading of CPU time.
    Local(Box<dyn LocalInstrument>),
    /// Every so often.
    Polled {
        /// What is asked.
        instrument: Box<Polled>,
        /// How often.
        interval: Duration,
    },
}

/// A source that was chosen; without an instrument it is a model.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// What the joules are computed by.
    pub(crate) supply: Supply,
    /// What is read.
    pub(crate) instrument: Option<Instrument>,
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChoiceError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device cannot be asked.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The generic board has no numbers of its own.
    #[error(
        "the board `generic` needs its two numbers: write --idle-watts=<watts with nothing to do> \
         and --watts-per-cpu=<(watts with all CPUs busy - idle watts) / CPUs>, or choose a board \
         from `frugality-meter boards` with --board, or an instrument with --power-config"
    )]
    GenericNeedsWatts,
    /// A board of the table has its own numbers.
    #[error(
        "the board `{0}` has its own watts: leave out --idle-watts and --watts-per-cpu, or write \
         --board=generic to use yours"
    )]
    BoardHasWatts(String),
    /// Not in the table.
    #[error("no board `{0}`: write generic or one of {known}", known = known_boards())]
    UnknownBoard(String),
    /// No such sensor, or too many.
    #[error("{0}")]
    Hwmon(String),
    /// No RAPL.
    #[error("no energy counter of a processor below {}", .0.display())]
    NoRapl(PathBuf),
    /// The text can come from one place only.
    #[error("write device, command or file for the source pmic, and only one of them")]
    PmicFrom,
    /// No device to ask.
    #[error(
        "neither vcio_gencmd nor vcio in {} can be opened: give the container that device, or let the host \
         write a file (docs/power-on-a-pi.md, The PMIC of a Pi 5)",
        .0.display()
    )]
    NoMailbox(PathBuf),
    /// No such unit.
    #[error("no unit `{0}`: write one of {known}", known = Unit::KNOWN)]
    UnknownUnit(String),
    /// Nothing was found.
    #[error(
        "nothing to take this node's power from: no hwmon sensor that is made for boards, no RAPL, \
         and {board}; wire a sensor, name a plug in --power-config, or give the board's watts"
    )]
    Nothing {
        /// What is known of the board.
        board: String,
    },
}

/// Sets up the source that is asked for.
pub(crate) fn choose(power: &NodePower, at: &Surroundings) -> Result<Chosen, ChoiceError> {
    power.check()?;
    let plan = Plan { power, at };
    match &power.source {
        SourceConfig::Auto {} => plan.auto(),
        SourceConfig::Model {} => plan.model_alone(),
        SourceConfig::Hwmon { chip, label } => {
            hwmon::choose(&at.sysfs, chip.as_deref(), label.as_deref())
                .map_err(ChoiceError::Hwmon)
                .and_then(|sensor| plan.hwmon(&sensor))
        }
        SourceConfig::Rapl {} => rapl::find(&at.sysfs)
            .ok_or_else(|| ChoiceError::NoRapl(at.sysfs.clone()))
            .and_then(|zones| plan.rapl(&zones)),
        SourceConfig::Pmic {
            device,
            command,
            file,
            slope,
            offset_watts,
            interval_seconds,
        } => {
            let default = Correction::default();
            let correction = Correction {
                slope: slope.unwrap_or(default.slope),
                offset_watts: offset_watts.unwrap_or(default.offset_watts),
                rails: default.rails.filter(|_| slope.is_none()),
            };
            let interval = seconds("intervalSeconds", *interval_seconds, PMIC_INTERVAL)?;
            match (device, command, file) {
                (None, None, None) => pmic::mailbox(&at.dev)
                    .ok_or_else(|| ChoiceError::NoMailbox(at.dev.clone()))
                    .and_then(|device| plan.pmic_mailbox(device, correction, interval)),
                (Some(device), None, None) => {
                    plan.pmic_mailbox(device.clone(), correction, interval)
                }
                (None, Some(command), None) => {
                    plan.pmic_command(command.clone(), correction, interval)
                }
                (None, None, Some(file)) => plan.pmic_file(file, correction, interval),
                _ => Err(ChoiceError::PmicFrom),
            }
        }
        remote => plan.remote(remote),
    }
}

/// The order of the automatic choice: what measures the whole board comes first, what measures
/// most of it next, and a model last. A plug is never found by itself.
pub(crate) const ORDER: &str = "hwmon sensor made for boards, RAPL, PMIC of a Pi 5 by its mailbox, model of a board that is known";

const PMIC_INTERVAL: Duration = Duration::from_secs(1);
/// No maker states an accuracy for a load of a few watts; tests of such plugs find 1 to 5 %, and
/// what they measure includes the losses of the board's supply. A judgement.
const PLUG_RELATIVE_UNCERTAINTY: f64 = 0.03;
/// RAPL follows power at the plug closely but for an offset: K. N. Khan et al., "RAPL in Action",
/// ACM TOMPECS 3(2), 2018. A judgement from its figures.
const RAPL_RELATIVE_UNCERTAINTY: f64 = 0.03;

/// The name that a kernel gives the board it runs on.
pub(crate) fn device_tree_model(at: &Surroundings) -> Option<String> {
    read_text(&at.sysfs.join("firmware/devicetree/base/model"))
        .or_else(|| read_text(&at.procfs.join("device-tree/model")))
        .or_else(|| {
            let info = read_text(&at.procfs.join("cpuinfo"))?;
            let line = info.lines().find(|line| line.starts_with("Model\t"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .filter(|model| !model.is_empty())
}

/// Both sides of the choice.
struct Plan<'a> {
    power: &'a NodePower,
    at: &'a Surroundings,
}

impl Plan<'_> {
    fn auto(&self) -> Result<Chosen, ChoiceError> {
        if hwmon::find(&self.at.sysfs)
            .iter()
            .any(Sensor::is_for_boards)
        {
            // Of several, none is taken at a guess, and a model does not stand in for them.
            let sensor = hwmon::choose(&self.at.sysfs, None, None).map_err(ChoiceError::Hwmon)?;
            return self.hwmon(&sensor);
        }
        if let Some(zones) = rapl::find(&self.at.sysfs) {
            return self.rapl(&zones);
        }
        let model = device_tree_model(self.at);
        let board = model.as_deref().and_then(by_device_tree);
        if board.is_some_and(|board| board.name == "pi-5b")
            && let Some(device) = pmic::mailbox(&self.at.dev)
        {
            return self.pmic_mailbox(device, Correction::default(), PMIC_INTERVAL);
        }
        if self.power.board.is_some() || self.power.idle_watts.is_some() {
            return self.model_alone();
        }
        let Some(board) = board else {
            let board = model.map_or_else(
                || "no name of the board".to_owned(),
                |model| format!("no numbers for a {model}"),
            );
            return Err(ChoiceError::Nothing { board });
        };
        let found = NodePower {
            board: Some(board.name.to_owned()),
            ..self.power.clone()
        };
        let at = self.at;
        Plan { power: &found, at }.model_alone()
    }

    /// The board's model, where enough is said for one.
    fn model(&self) -> Result<Option<BoardModel>, ChoiceError> {
        let power = self.power;
        let given = power.idle_watts.zip(power.watts_per_cpu);
        let stated = power.model_uncertainty();
        let name = power.board.as_deref().unwrap_or(GENERIC);
        if name == GENERIC {
            return Ok(given.map(|(idle_watts, watts_per_cpu)| {
                let line = LinearModel {
                    idle_watts,
                    watts_per_cpu,
                    uncertainty: stated,
                };
                BoardModel::new(GENERIC, line, self.at.cpus)
            }));
        }
        let board = by_name(name).ok_or_else(|| ChoiceError::UnknownBoard(name.to_owned()))?;
        if power.idle_watts.is_some() || power.watts_per_cpu.is_some() {
            return Err(ChoiceError::BoardHasWatts(name.to_owned()));
        }
        let known = board.line();
        let line = LinearModel {
            uncertainty: stated.or(known.uncertainty),
            ..known
        };
        Ok(Some(BoardModel::new(name, line, self.at.cpus)))
    }

    fn model_alone(&self) -> Result<Chosen, ChoiceError> {
        let model = self.model()?.ok_or(ChoiceError::GenericNeedsWatts)?;
        Ok(Chosen {
            supply: Supply::modelled(model.source(), model),
            instrument: None,
        })
    }

    fn hwmon(&self, sensor: &Sensor) -> Result<Chosen, ChoiceError> {
        let instrument = Instrument::Local(Box::new(Hwmon::open(sensor)));
        let source = self.source(Measured {
            name: "hwmon",
            path: sensor.path().display().to_string(),
            zone: BOARD_ZONE,
            relative_uncertainty: sensor.relative_uncertainty(),
            fixed_uncertainty_watts: sensor.fixed_uncertainty_watts().unwrap_or_default(),
            resolution_joules: sensor.resolution_joules(),
        });
        self.metered(source, instrument, None)
    }

    fn rapl(&self, zones: &Zones) -> Result<Chosen, ChoiceError> {
        let paths: Vec<String> = zones
            .directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect();
        let source = self.source(Measured {
            name: "rapl",
            path: paths.join(","),
            zone: zones.zone,
            relative_uncertainty: Some(RAPL_RELATIVE_UNCERTAINTY),
            fixed_uncertainty_watts: 0.0,
            resolution_joules: Some(rapl::STEP_JOULES),
        });
        let instrument = Instrument::Local(Box::new(Rapl::open(zones)));
        self.metered(source, instrument, None)
    }

    fn pmic_mailbox(
        &self,
        device: PathBuf,
        correction: Correction,
        interval: Duration,
    ) -> Result<Chosen, ChoiceError> {
        let path = device.display().to_string();
        let instrument = Polled::PmicMailbox { device, correction };
        self.pmic(path, instrument, interval)
    }

    fn pmic_command(
        &self,
        command: Vec<String>,
        correction: Correction,
        interval: Duration,
    ) -> Result<Chosen, ChoiceError> {
        let path = command.join(" ");
        let instrument = Polled::PmicCommand {
            command,
            correction,
            timeout: interval,
        };
        self.pmic(path, instrument, interval)
    }

    fn pmic_file(
        &self,
        file: &Path,
        correction: Correction,
        interval: Duration,
    ) -> Result<Chosen, ChoiceError> {
        let path = file.display().to_string();
        let instrument = Polled::PmicFile(PmicFile::new(file.to_owned(), correction));
        self.pmic(path, instrument, interval)
    }

    fn pmic(
        &self,
        path: String,
        instrument: Polled,
        interval: Duration,
    ) -> Result<Chosen, ChoiceError> {
        let source = self.source(Measured {
            name: "pmic",
            path,
            zone: BOARD_ZONE,
            relative_uncertainty: Some(pmic::RELATIVE_UNCERTAINTY),
            fixed_uncertainty_watts: 0.0,
            resolution_joules: None,
        });
        let instrument = Instrument::Polled {
            instrument: Box::new(instrument),
            interval,
        };
        self.metered(source, instrument, None)
    }

    fn remote(&self, config: &SourceConfig) -> Result<Chosen, ChoiceError> {
        let asked = Asked::of(config)?;
        let Some(asked) = asked else {
            return self.model_alone();
        };
        let (interval, timeout) = (asked.polling.interval()?, asked.polling.timeout()?);
        let ca_file = asked.polling.ca_file.as_deref();
        let endpoint = Endpoint::new(&asked.url, asked.credentials, ca_file, timeout)?;
        let unit = Unit::parse(&asked.unit).ok_or(ChoiceError::UnknownUnit(asked.unit))?;
        let source = self.source(Measured {
            name: asked.name,
            path: endpoint.url().to_owned(),
            zone: BOARD_ZONE,
            relative_uncertainty: asked.relative_uncertainty,
            fixed_uncertainty_watts: 0.0,
            resolution_joules: asked.resolution_joules,
        });
        let refresh = Refresh::new(interval, asked.polling.refresh()?);
        let instrument = match config {
            SourceConfig::Prometheus { metric, labels, .. } => Polled::Prometheus {
                endpoint,
                metric: metric.clone(),
                labels: labels.clone(),
                unit,
            },
            _ => Polled::Json {
                endpoint,
                path: asked.path.split('.').map(str::to_owned).collect(),
                unit,
            },
        };
        let instrument = Instrument::Polled {
            instrument: Box::new(instrument),
            interval,
        };
        self.metered(source, instrument, Some(refresh))
    }

    fn source(&self, measured: Measured) -> Source {
        let power = self.power;
        Source {
            name: measured.name,
            provenance: power.provenance.unwrap_or(Provenance::Metered),
            board: power.board.clone().unwrap_or_default(),
            path: measured.path,
            zone: measured.zone,
            max_watts: power.max_watts,
            relative_uncertainty: power.relative_uncertainty.or(measured.relative_uncertainty),
            // What the user states is of all that the instrument does wrong.
            fixed_uncertainty_watts: power
                .relative_uncertainty
                .map_or(measured.fixed_uncertainty_watts, |_| 0.0),
            resolution_joules: measured.resolution_joules,
            model: None,
        }
    }

    /// What is read with every reading of CPU time is known at once. What is asked every so often
    /// is known one question later, and half a question more evens out what answers take.
    fn metered(
        &self,
        source: Source,
        instrument: Instrument,
        refresh: Option<Refresh>,
    ) -> Result<Chosen, ChoiceError> {
        let (interval, lag) = match &instrument {
            Instrument::Local(_) => (self.at.interval, Duration::ZERO),
            Instrument::Polled { interval, .. } => {
                (*interval, *interval * 3 / 2 + self.at.interval)
            }
        };
        let mut timeline = Timeline::new(interval, source.max_watts);
        if let Some(refresh) = refresh {
            timeline = timeline.refreshed(refresh);
        }
        Ok(Chosen {
            supply: Supply::metered(source, timeline, self.model()?, lag),
            instrument: Some(instrument),
        })
    }
}

/// What is particular to an instrument.
struct Measured {
    name: &'static str,
    path: String,
    zone: &'static str,
    relative_uncertainty: Option<f64>,
    fixed_uncertainty_watts: f64,
    resolution_joules: Option<f64>,
}

/// A device on the network, and where its number is.
struct Asked {
    name: &'static str,
    url: String,
    path: String,
    unit: String,
    polling: Polling,
    credentials: Option<Credentials>,
    relative_uncertainty: Option<f64>,
    resolution_joules: Option<f64>,
}

impl Asked {
    /// `None` where the configuration is not of this kind.
    fn of(config: &SourceConfig) -> Result<Option<Self>, ConfigError> {
        let plug = |name, url: String, path: String, polling: &Polling| {
            Ok::<_, ConfigError>(Self {
                name,
                url,
                path,
                unit: "W".to_owned(),
                credentials: polling.credentials()?,
                polling: polling.clone(),
                relative_uncertainty: Some(PLUG_RELATIVE_UNCERTAINTY),
                resolution_joules: None,
            })
        };
        Ok(Some(match config {
            SourceConfig::ShellyGen1 {
                host,
                channel,
                polling,
            } => plug(
                "shelly-gen1",
                format!("http://{}/status", in_url(host)),
                format!("meters.{channel}.power"),
                polling,
            )?,
            SourceConfig::ShellyGen2 {
                host,
                channel,
                polling,
            } => {
                let url = format!("http://{}/rpc/Switch.GetStatus?id={channel}", in_url(host));
                let asked = plug("shelly-gen2", url, "apower".to_owned(), polling)?;
                let credentials = asked.credentials.map(by_digest_only);
                Self {
                    credentials,
                    ..asked
                }
            }
            SourceConfig::Tasmota { host, polling } => {
                let url = format!("http://{}/cm?cmnd=Status%208", in_url(host));
                let path = "StatusSNS.ENERGY.Power".to_owned();
                let asked = plug("tasmota", url, path, polling)?;
                let credentials = asked.credentials.map(in_query);
                Self {
                    credentials,
                    ..asked
                }
            }
            SourceConfig::Json {
                url,
                path,
                unit,
                resolution_joules,
                polling,
            } => Self {
                unit: unit.clone(),
                relative_uncertainty: None,
                resolution_joules: *resolution_joules,
                ..plug("json", url.clone(), path.clone(), polling)?
            },
            SourceConfig::Prometheus {
                url,
                unit,
                resolution_joules,
                polling,
                ..
            } => Self {
                unit: unit.clone(),
                relative_uncertainty: None,
                resolution_joules: *resolution_joules,
                ..plug("prometheus", url.clone(), String::new(), polling)?
            },
            _ => return Ok(None),
        }))
    }
}

/// A host as it stands in a URL: an IPv6 address has brackets there (RFC 3986, 3.2.2).
fn in_url(host: &str) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    }
}

/// Shelly's second generation asks for nothing else.
fn by_digest_only(credentials: Credentials) -> Credentials {
    match credentials {
        Credentials::Password {
            username,
            password_file,
            ..
        } => Credentials::Password {
            digest_only: true,
            username,
            password_file,
        },
        other => other,
    }
}

/// Tasmota takes user and password in the URL.
fn in_query(credentials: Credentials) -> Credentials {
    match credentials {
        Credentials::Password {
            username,
            password_file,
            ..
        } => Credentials::Query {
            username,
            password_file,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests;
