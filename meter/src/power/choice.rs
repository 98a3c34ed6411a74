//! Chooses the power source, from the user's settings and the node's hardware.

mod http;
mod network;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::board::{BoardModel, GENERIC, by_device_tree, by_name, known_boards};
use super::config::{ConfigError, NodePower, SourceConfig, seconds};
use super::fritz::FritzError;
use super::hwmon::{self, Hwmon, Sensor};
use super::mqtt::MqttError;
use super::pmic::{self, Correction, PmicFile};
use super::polled::{Polled, Unit};
use super::power_supply::PowerSupply;
use super::rapl::{self, Rapl, Zones};
use super::refresh::Refresh;
use super::remote::RemoteError;
use super::snmp::SnmpError;
use super::supply::Supply;
use super::sysfs::read_text;
use super::timeline::Timeline;
use super::{BOARD_ZONE, LocalInstrument, Source, SourceProvenance};
use frugality_measure::model::LinearModel;

/// The node's properties that the choice depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Surroundings {
    /// Where the host's sysfs is.
    pub(crate) sysfs: PathBuf,
    /// Where the devices are.
    pub(crate) dev: PathBuf,
    /// Where the kernel's files about processes and processors are.
    pub(crate) procfs: PathBuf,
    /// CPUs of the node.
    pub(crate) cpus: u32,
    /// Time between two readings of CPU time.
    pub(crate) interval: Duration,
}

/// An instrument, ready to be read.
#[derive(Debug)]
pub(crate) enum Instrument {
    /// Read with every reading of CPU time.
    Local(Box<dyn LocalInstrument>),
    /// Polled at an interval.
    Polled {
        /// The instrument.
        instrument: Box<Polled>,
        /// Time between two polls.
        interval: Duration,
    },
}

/// The chosen source. Without an instrument it is a model.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// Computes the joules.
    pub(crate) supply: Supply,
    /// Gives the readings; `None` for a model.
    pub(crate) instrument: Option<Instrument>,
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChoiceError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The meter can't poll the device.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The meter can't ask the FRITZ!Box.
    #[error(transparent)]
    Fritz(#[from] FritzError),
    /// The meter can't use the topic.
    #[error(transparent)]
    Mqtt(#[from] MqttError),
    /// The meter can't poll the agent.
    #[error(transparent)]
    Snmp(#[from] SnmpError),
    /// The generic board has no watts of its own.
    #[error(
        "the board `generic` needs two numbers: write --idle-watts=<idle watts> \
         and --watts-per-cpu=<(watts with all CPUs busy - idle watts) / CPUs>, or choose a board \
         from `frugality-meter boards` with --board, or an instrument with --power-config"
    )]
    GenericNeedsWatts,
    /// A board of the table has its own watts.
    #[error(
        "the board `{0}` has its own watts: leave out --idle-watts and --watts-per-cpu, or write \
         --board=generic to use yours"
    )]
    BoardHasWatts(String),
    /// The board is not in the table.
    #[error("no board `{0}`: write generic or one of {known}", known = known_boards())]
    UnknownBoard(String),
    /// The node is another board of the table.
    #[error(
        "the board `{stated}` is configured, but this node is a {model}: write `{known}`, or write --board=generic and \
         the watts of this node"
    )]
    OtherBoard {
        /// The configured board.
        stated: String,
        /// The node's board by the kernel.
        model: String,
        /// The same board in the table.
        known: &'static str,
    },
    /// No sensor fits, or more than one.
    #[error("{0}")]
    Hwmon(String),
    /// No power supply fits, or more than one.
    #[error("{0}")]
    PowerSupply(String),
    /// The node has no RAPL counter.
    #[error("no energy counter of a processor below {}", .0.display())]
    NoRapl(PathBuf),
    /// The PMIC's text can come from only one place.
    #[error("the source pmic takes device, command or file: write only one of them")]
    PmicFrom,
    /// The node has no mailbox device that can be opened.
    #[error(
        "neither vcio_gencmd nor vcio in {} can be opened: give the container that device, or let the host \
         write a file (docs/power-on-a-pi.md, The PMIC of a Pi 5)",
        .0.display()
    )]
    NoMailbox(PathBuf),
    /// The unit is unknown.
    #[error("no unit `{0}`: write one of {known}", known = Unit::KNOWN)]
    UnknownUnit(String),
    /// The automatic choice found no source.
    #[error(
        "no source for this node's power: no hwmon sensor made for boards, no RAPL, and {board}; \
         wire a sensor, name a plug in --power-config, or write the board's watts"
    )]
    Nothing {
        /// Why the board's model is unusable.
        board: String,
    },
}

/// Sets up the source that the user asks for.
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
        SourceConfig::PowerSupply { name, volts } => {
            let supply = PowerSupply::find(&at.sysfs, name.as_deref(), *volts)
                .map_err(ChoiceError::PowerSupply)?;
            plan.power_supply(supply)
        }
        network => plan.network(network),
    }
}

/// The order of the automatic choice: first instruments for the whole board, then instruments for most of it,
/// a model last. A plug is never found automatically.
pub(crate) const ORDER: &str =
    "hwmon sensor made for boards, RAPL, PMIC of a Pi 5 by its mailbox, model of a known board";

const PMIC_INTERVAL: Duration = Duration::from_secs(1);

/// RAPL follows power at the plug closely, with an offset: K. N. Khan et al., "RAPL in Action", ACM TOMPECS
/// 3(2), 2018. A judgement from its figures.
const RAPL_RELATIVE_UNCERTAINTY: f64 = 0.03;

/// The kernel's name for the board.
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

/// The user's settings and the node's properties.
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
            // If there are several sensors, the meter does not guess, and no model replaces them.
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
                || "the board's name is unknown".to_owned(),
                |model| format!("the watts of a {model} are unknown"),
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

    /// The board's model; `None` if the settings do not suffice for a model.
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
        let mut line = board.line();
        if let Some(model) = device_tree_model(self.at).filter(|model| !board.is_named(model)) {
            if let Some(known) = by_device_tree(&model) {
                return Err(ChoiceError::OtherBoard {
                    stated: name.to_owned(),
                    model,
                    known: known.name,
                });
            }
            // The table states the uncertainty for this board only.
            line.uncertainty = None;
        }
        line.uncertainty = stated.or(line.uncertainty);
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

    /// The supply's controller may repeat an old current.
    fn power_supply(&self, supply: PowerSupply) -> Result<Chosen, ChoiceError> {
        let source = self.source(Measured {
            name: "power-supply",
            path: supply.path().display().to_string(),
            zone: BOARD_ZONE,
            relative_uncertainty: None,
            fixed_uncertainty_watts: 0.0,
            resolution_joules: None,
        });
        let refresh = Refresh::new(self.at.interval, None);
        let instrument = Instrument::Local(Box::new(supply));
        self.metered(source, instrument, Some(refresh))
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

    fn source(&self, measured: Measured) -> Source {
        let power = self.power;
        Source {
            name: measured.name,
            provenance: power.provenance.unwrap_or(SourceProvenance::Metered),
            board: power.board.clone().unwrap_or_default(),
            path: measured.path,
            zone: measured.zone,
            max_watts: power.max_watts,
            relative_uncertainty: power.relative_uncertainty.or(measured.relative_uncertainty),
            // The user's uncertainty covers all errors of the instrument.
            fixed_uncertainty_watts: power
                .relative_uncertainty
                .map_or(measured.fixed_uncertainty_watts, |_| 0.0),
            resolution_joules: measured.resolution_joules,
            model: None,
        }
    }

    /// The energy of a local instrument is known at once. The energy of a polled instrument is known one poll
    /// later. Another half of a poll evens out the time that answers take.
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

/// The properties that differ between instruments.
struct Measured {
    name: &'static str,
    path: String,
    zone: &'static str,
    relative_uncertainty: Option<f64>,
    fixed_uncertainty_watts: f64,
    resolution_joules: Option<f64>,
}

#[cfg(test)]
mod tests;
