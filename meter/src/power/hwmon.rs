//! Power sensors in the kernel's hwmon class, such as the INA219, INA226, INA230 and INA260.
//!
//! Files and units: <https://docs.kernel.org/hwmon/sysfs-interface.html>. Energy is in
//! microjoules, power in microwatts, voltage in millivolts, current in milliamperes.

use std::path::{Path, PathBuf};

use super::sysfs::{NumberFile, entries, file_name, read_text};
use super::{InstrumentError, LocalInstrument, Quantity};

const CLASS: &str = "class/hwmon";
const MICRO: f64 = 1e-6;
const MILLI: f64 = 1e-3;
/// One microjoule, the unit of `energyN_input`.
const ENERGY_STEP_JOULES: f64 = MICRO;

/// A chip that is made to measure the power of what it feeds, with the standard uncertainty of
/// its power as a share of it. A data sheet's limit ±a counts as a/√3 (GUM 4.3.7). Where the
/// shunt is apart it is taken for one of 1 %, which is what the common boards carry.
struct Chip {
    /// As in the file `name`, which drivers extend by digits and letters.
    prefix: &'static str,
    relative_uncertainty: f64,
}

/// The chips' own errors are from Texas Instruments' and Analog Devices' data sheets: up to 1 % of
/// current for the INA219 and INA220, 0.5 % of power for the INA260 with its shunt within, a few
/// tenths of a percent for the others (INA226: 0.1 % of gain for each of current and voltage,
/// SBOS547). The shunt then dominates.
const CHIPS: &[Chip] = &[
    chip("ina219", 0.009),
    chip("ina220", 0.009),
    chip("ina226", 0.006),
    chip("ina230", 0.006),
    chip("ina231", 0.006),
    chip("ina237", 0.006),
    chip("ina238", 0.006),
    chip("ina228", 0.006),
    chip("ina260", 0.003),
    chip("ina3221", 0.006),
    chip("ina2xx", 0.009),
    chip("ltc2947", 0.006),
];

const fn chip(prefix: &'static str, relative_uncertainty: f64) -> Chip {
    Chip {
        prefix,
        relative_uncertainty,
    }
}

/// What a channel of a chip is read from, the best first.
#[derive(Clone, Debug, PartialEq)]
enum Files {
    Energy(PathBuf),
    Power(PathBuf),
    VoltsAndAmperes(PathBuf, PathBuf),
}

/// One channel of one chip that can be metered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sensor {
    /// The driver's name of the chip.
    pub(crate) chip: String,
    /// The channel's label, else its number.
    pub(crate) label: String,
    files: Files,
}

impl Sensor {
    /// File that is read, for people.
    pub(crate) fn path(&self) -> &Path {
        match &self.files {
            Files::Energy(path) | Files::Power(path) | Files::VoltsAndAmperes(path, _) => path,
        }
    }

    /// Whether it is made to measure what a board draws. Other chips with a power file measure a
    /// part of it, such as a graphics card.
    pub(crate) fn is_for_boards(&self) -> bool {
        self.known().is_some()
    }

    /// By its data sheet.
    pub(crate) fn relative_uncertainty(&self) -> Option<f64> {
        self.known().map(|chip| chip.relative_uncertainty)
    }

    /// Step of its counter, if it has one.
    pub(crate) fn resolution_joules(&self) -> Option<f64> {
        matches!(self.files, Files::Energy(_)).then_some(ENERGY_STEP_JOULES)
    }

    fn known(&self) -> Option<&'static Chip> {
        CHIPS.iter().find(|chip| self.chip.starts_with(chip.prefix))
    }
}

/// Every channel of every chip that tells power or energy, in the order of their names.
pub(crate) fn find(sysfs: &Path) -> Vec<Sensor> {
    entries(&sysfs.join(CLASS))
        .iter()
        .flat_map(|device| channels(device))
        .collect()
}

/// The one sensor with this chip and label; without them, the one that is made for boards.
pub(crate) fn choose(
    sysfs: &Path,
    chip: Option<&str>,
    label: Option<&str>,
) -> Result<Sensor, String> {
    let all = find(sysfs);
    let mut fitting: Vec<&Sensor> = all
        .iter()
        .filter(|sensor| chip.map_or_else(|| sensor.is_for_boards(), |chip| sensor.chip == chip))
        .filter(|sensor| label.is_none_or(|label| sensor.label == label))
        .collect();
    match (fitting.pop(), fitting.is_empty()) {
        (Some(sensor), true) => Ok(sensor.clone()),
        (found, _) => {
            let what = if found.is_none() {
                "no"
            } else {
                "more than one"
            };
            let known: Vec<String> = all
                .iter()
                .map(|sensor| format!("chip {} label {}", sensor.chip, sensor.label))
                .collect();
            Err(format!(
                "{what} power sensor fits in {}: {}; write chip and label of one of them",
                sysfs.join(CLASS).display(),
                if known.is_empty() {
                    "there is none".to_owned()
                } else {
                    known.join(", ")
                }
            ))
        }
    }
}

fn channels(device: &Path) -> Vec<Sensor> {
    let Some(chip) = read_text(&device.join("name")) else {
        return Vec::new();
    };
    let there = |file: String| Some(device.join(file)).filter(|path| path.is_file());
    (1..=MOST_CHANNELS)
        .filter_map(|channel| {
            let files = there(format!("energy{channel}_input"))
                .map(Files::Energy)
                .or_else(|| there(format!("power{channel}_input")).map(Files::Power))
                .or_else(|| {
                    let volts = there(format!("in{channel}_input"))?;
                    let amperes = there(format!("curr{channel}_input"))?;
                    Some(Files::VoltsAndAmperes(volts, amperes))
                })?;
            let label = ["energy", "power", "curr", "in"]
                .iter()
                .find_map(|kind| read_text(&device.join(format!("{kind}{channel}_label"))))
                .unwrap_or_else(|| channel.to_string());
            Some(Sensor {
                chip: chip.clone(),
                label,
                files,
            })
        })
        .collect()
}

/// No chip of this kind has more.
const MOST_CHANNELS: u32 = 8;

/// An open sensor.
#[derive(Debug)]
pub(crate) enum Hwmon {
    /// `energyN_input`.
    Energy(NumberFile),
    /// `powerN_input`.
    Power(NumberFile),
    /// `inN_input` and `currN_input`.
    VoltsAndAmperes(NumberFile, NumberFile),
}

impl Hwmon {
    /// Opens a sensor.
    pub(crate) fn open(sensor: &Sensor) -> Self {
        let file = |path: &PathBuf| NumberFile::new(path.clone());
        match &sensor.files {
            Files::Energy(path) => Self::Energy(file(path)),
            Files::Power(path) => Self::Power(file(path)),
            Files::VoltsAndAmperes(volts, amperes) => {
                Self::VoltsAndAmperes(file(volts), file(amperes))
            }
        }
    }
}

impl LocalInstrument for Hwmon {
    fn read(&mut self) -> Result<Quantity, InstrumentError> {
        Ok(match self {
            Self::Energy(file) => Quantity::Joules(file.read_unsigned()? as f64 * MICRO),
            Self::Power(file) => Quantity::Watts(file.read_unsigned()? as f64 * MICRO),
            Self::VoltsAndAmperes(volts, amperes) => {
                let volts = volts.read_unsigned()? as f64 * MILLI;
                Quantity::Watts(volts * amperes.read_unsigned()? as f64 * MILLI)
            }
        })
    }
}

/// The hwmon device that a sensor belongs to, such as `hwmon2`.
pub(crate) fn device(sensor: &Sensor) -> &str {
    sensor.path().parent().map(file_name).unwrap_or_default()
}
