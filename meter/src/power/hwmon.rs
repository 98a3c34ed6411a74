//! Power sensors in the kernel's hwmon class, such as the INA219, INA226, INA230 and INA260.
//!
//! Files and units: <https://docs.kernel.org/hwmon/sysfs-interface.html>. Energy is in
//! microjoules, power in microwatts, voltage in millivolts, current in milliamperes.

use std::path::{Path, PathBuf};

use super::sysfs::{NumberFile, entries, file_name, read_text};
use super::{InstrumentError, LocalInstrument, PowerOrEnergy};

const CLASS: &str = "class/hwmon";
const MICRO: f64 = 1e-6;
const MILLI: f64 = 1e-3;
/// One microjoule, the unit of `energyN_input`.
const ENERGY_STEP_JOULES: f64 = MICRO;

/// A chip that is made to measure the power of its load, with the relative standard uncertainty of its power.
/// A data sheet's limit ±a counts as a/√3 (GUM 4.3.7). For a separate shunt, 1 % is assumed, which the common
/// boards carry.
#[derive(Debug)]
struct Chip {
    /// Beginning of the name in the file `name`. Drivers append digits and letters.
    prefix: &'static str,
    relative_uncertainty: f64,
    scale: Scale,
}

/// The end of a chip's current scale, and the chip's error at any power.
#[derive(Debug)]
enum Scale {
    /// The chip measures a voltage at a shunt.
    Shunt(Shunt),
    /// Offset and steps are assumed to be less than a third of a percent of an idle board's power. The shunt
    /// is within the chip, and the scale ends far above any board's power.
    Negligible,
    /// The kernel does not report the shunt. Offset or steps may matter, and a reading may be at the end of
    /// the scale.
    Unknown,
}

/// How a chip measures the voltage at its shunt, with the driver's setup, in microvolts.
#[derive(Debug)]
struct Shunt {
    /// The largest voltage.
    full_scale: f64,
    /// Limit of the offset.
    offset: f64,
    step: f64,
    /// The step of power is this many volts times the step of current. `None` if there is no register of
    /// power: the driver then reports current in steps of 1 mA.
    power_step_volts: Option<f64>,
    /// The shunt in microohms, if it is inside the chip.
    within: Option<f64>,
}

/// The chips' own errors are from Texas Instruments' and Analog Devices' data sheets: up to 1 % of current
/// for the INA219 and INA220, 0.5 % of power for the INA260 with its internal shunt, and a few tenths of a
/// percent for the others. In the others the shunt dominates. INA226: 0.1 % of gain for each of current and
/// voltage, SBOS547. INA230: 0.5 % for each, and 30 mV of 5 V, SBOS601. INA3221: 0.25 % for each, and 16 mV,
/// SBOS576.
///
/// Scales are from the same data sheets (INA219 SBOS448, INA226 SBOS547, INA260 SBOS656, INA3221 SBOS576) and
/// from the kernel's drivers. The drivers set range and calibration themselves:
///
/// - `drivers/hwmon/ina2xx.c`: The INA219 has PGA /8, which gives ±320 mV in steps of 10 µV. The INA226 and
///   similar chips have ±81.92 mV in steps of 2.5 µV. The driver calibrates the register of current to count
///   those steps. The step of the register of power is 20 or 25 (INA260: 8) times the step of current. The
///   INA260 has an internal shunt of 2 mΩ.
/// - `drivers/hwmon/ina3221.c`: ±163.8 mV in steps of 40 µV, and no register of power.
/// - `drivers/hwmon/ina238.c` (INA228, INA237, INA238) reports no shunt. Offsets are 1, 50 and 5 µV. The full
///   scale of 163.84 or 40.96 mV may be less than a board draws, and is not known in amperes.
const CHIPS: &[Chip] = &[
    chip("ina219", 0.009, INA219),
    chip("ina220", 0.009, INA219),
    chip("ina226", 0.006, INA226),
    chip("ina230", 0.008, INA230),
    chip("ina231", 0.008, INA230),
    chip("ina237", 0.006, Scale::Unknown),
    chip("ina238", 0.007, Scale::Unknown),
    chip("ina228", 0.006, Scale::Unknown),
    chip("ina260", 0.003, INA260),
    chip(INA3221, 0.007, INA3221_SCALE),
    chip("ina2xx", 0.009, Scale::Unknown),
    chip("ltc2947", 0.006, Scale::Negligible),
];

/// Offsets of the cheaper grade, over its range of ±320 mV.
const INA219: Scale = Scale::Shunt(Shunt {
    full_scale: 320_000.0,
    offset: 200.0,
    step: 10.0,
    power_step_volts: Some(20.0),
    within: None,
});
const INA226: Scale = Scale::Shunt(Shunt {
    offset: 10.0,
    ..INA230_SHUNT
});
const INA230: Scale = Scale::Shunt(INA230_SHUNT);
const INA230_SHUNT: Shunt = Shunt {
    full_scale: 81_917.5,
    offset: 50.0,
    step: 2.5,
    power_step_volts: Some(25.0),
    within: None,
};
/// Offset: ±5 mA.
const INA260: Scale = Scale::Shunt(Shunt {
    offset: 10.0,
    power_step_volts: Some(8.0),
    within: Some(2_000.0),
    ..INA230_SHUNT
});
const INA3221: &str = "ina3221";
const INA3221_SCALE: Scale = Scale::Shunt(Shunt {
    full_scale: 163_800.0,
    offset: 80.0,
    step: 40.0,
    power_step_volts: None,
    within: None,
});
/// The INA3221 measures three channels. Its `curr4` is their sum, and its `in4` to `in6` are voltages at
/// shunts.
const INA3221_CHANNELS: u32 = 3;
/// ChargerLAB's USB meters KM003C and KM002C (`drivers/hwmon/powerz.c`). `in0` and `curr1` measure the supply. The
/// other voltages are signals.
const POWERZ: &str = "powerz";
/// Step of `currN_input`.
const CURRENT_STEP_AMPERES: f64 = MILLI;

const fn chip(prefix: &'static str, relative_uncertainty: f64, scale: Scale) -> Chip {
    Chip {
        prefix,
        relative_uncertainty,
        scale,
    }
}

/// A reading at this share of the full scale may be beyond it: the chip reports the same value for all
/// currents beyond.
const SATURATED_SHARE: f64 = 0.99;

/// The limits that follow from a chip's scale and its shunt.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    full_scale_amperes: f64,
    fixed_uncertainty_watts: Option<f64>,
}

impl Shunt {
    /// The limits of a channel with this shunt, on a line with this voltage.
    fn limits(&self, microohms: f64, volts: Option<f64>) -> Limits {
        let step_amperes = self.step / microohms;
        Limits {
            full_scale_amperes: self.full_scale / microohms,
            fixed_uncertainty_watts: volts.map(|volts| {
                let offset_watts = self.offset / microohms * volts;
                let step_watts = self.power_step_volts.map_or_else(
                    || step_amperes.max(CURRENT_STEP_AMPERES) * volts,
                    |times| step_amperes * times,
                );
                // Limits of ±offset and ±step/2, each evenly distributed (GUM 4.3.7).
                (offset_watts / 3_f64.sqrt()).hypot(step_watts / 12_f64.sqrt())
            }),
        }
    }
}

/// The files of a channel, the best first.
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
    /// Whether the kernel has a label for the channel.
    is_labelled: bool,
    files: Files,
    current: Option<PathBuf>,
    limits: Option<Limits>,
}

impl Sensor {
    /// The file that is read, for people.
    pub(crate) fn path(&self) -> &Path {
        match &self.files {
            Files::Energy(path) | Files::Power(path) | Files::VoltsAndAmperes(path, _) => path,
        }
    }

    /// Whether the chip is made to measure a whole board. Other chips with a power file measure a part, such
    /// as a graphics card.
    pub(crate) fn is_for_boards(&self) -> bool {
        self.known().is_some()
    }

    /// From the chip's data sheet. `None` if offset and steps matter but are unknown, or if the end of the
    /// scale is unknown.
    pub(crate) fn relative_uncertainty(&self) -> Option<f64> {
        let chip = self.known()?;
        match chip.scale {
            Scale::Negligible => {}
            Scale::Unknown => return None,
            Scale::Shunt(_) => {
                self.fixed_uncertainty_watts()?;
            }
        }
        Some(chip.relative_uncertainty)
    }

    /// Standard uncertainty of power that does not grow with power, in watts.
    pub(crate) fn fixed_uncertainty_watts(&self) -> Option<f64> {
        self.limits?.fixed_uncertainty_watts
    }

    /// The highest current that the sensor can report, in amperes.
    pub(crate) fn full_scale_amperes(&self) -> Option<f64> {
        Some(self.limits?.full_scale_amperes)
    }

    /// Step of the sensor's counter, in joules; `None` without a counter.
    pub(crate) fn resolution_joules(&self) -> Option<f64> {
        matches!(self.files, Files::Energy(_)).then_some(ENERGY_STEP_JOULES)
    }

    fn known(&self) -> Option<&'static Chip> {
        known(&self.chip)
    }
}

fn known(name: &str) -> Option<&'static Chip> {
    CHIPS.iter().find(|chip| name.starts_with(chip.prefix))
}

/// Every channel of every chip that reports power or energy, in the order of the devices' names.
pub(crate) fn find(sysfs: &Path) -> Vec<Sensor> {
    entries(&sysfs.join(CLASS))
        .iter()
        .flat_map(|device| channels(device))
        .collect()
}

/// The one sensor with this chip and label. Without chip and label, the one sensor that is made for boards.
/// If several channels of one device fit, the only one that has a label.
pub(crate) fn choose(
    sysfs: &Path,
    chip: Option<&str>,
    label: Option<&str>,
) -> Result<Sensor, String> {
    let all = find(sysfs);
    let fitting: Vec<&Sensor> = all
        .iter()
        .filter(|sensor| chip.map_or_else(|| sensor.is_for_boards(), |chip| sensor.chip == chip))
        .filter(|sensor| label.is_none_or(|label| sensor.label == label))
        .collect();
    let labelled: Vec<&Sensor> = fitting
        .iter()
        .copied()
        .filter(|sensor| sensor.is_labelled)
        .collect();
    if let [sensor] = fitting[..] {
        return Ok(sensor.clone());
    }
    let is_one_device = fitting
        .windows(2)
        .all(|pair| device(pair[0]) == device(pair[1]));
    if let ([sensor], None, true) = (&labelled[..], label, is_one_device) {
        return Ok((*sensor).clone());
    }
    let directory = sysfs.join(CLASS);
    let directory = directory.display();
    let names = |sensors: &[&Sensor]| {
        let names = sensors
            .iter()
            .map(|sensor| format!("chip {} label {}", sensor.chip, sensor.label));
        names.collect::<Vec<_>>().join(", ")
    };
    Err(if !fitting.is_empty() {
        let names = names(&fitting);
        format!(
            "more than one power sensor fits in {directory}: {names}; write chip and label of the sensor in \
             the board's supply"
        )
    } else if all.is_empty() {
        format!("no power sensor in {directory}")
    } else {
        let names = names(&all.iter().collect::<Vec<_>>());
        format!("no power sensor fits in {directory}: {names}; write chip and label of one of them")
    })
}

fn channels(device: &Path) -> Vec<Sensor> {
    let Some(chip) = read_text(&device.join("name")) else {
        return Vec::new();
    };
    let there = |file: String| Some(device.join(file)).filter(|path| path.is_file());
    let number = |file: String| read_text(&device.join(file))?.parse::<f64>().ok();
    let channels = match chip.as_str() {
        POWERZ => 1,
        chip if chip.starts_with(INA3221) => INA3221_CHANNELS,
        _ => MOST_CHANNELS,
    };
    (1..=channels)
        // A disabled channel still has files.
        .filter(|channel| number(format!("in{channel}_enable")) != Some(0.0))
        .filter_map(|channel| {
            let current = there(format!("curr{channel}_input"));
            let files = there(format!("energy{channel}_input"))
                .map(Files::Energy)
                .or_else(|| there(format!("power{channel}_input")).map(Files::Power))
                .or_else(|| {
                    let line = if chip == POWERZ { 0 } else { channel };
                    let volts = there(format!("in{line}_input"))?;
                    Some(Files::VoltsAndAmperes(volts, current.clone()?))
                })?;
            let label = ["energy", "power", "curr", "in"]
                .iter()
                .find_map(|kind| read_text(&device.join(format!("{kind}{channel}_label"))));
            let limits = known(&chip).and_then(|known| {
                let Scale::Shunt(shunt) = &known.scale else {
                    return None;
                };
                let microohms = shunt
                    .within
                    .or_else(|| number(format!("shunt{channel}_resistor")))
                    .or_else(|| number("shunt_resistor".to_owned()))
                    .filter(|microohms| *microohms > 0.0)?;
                let volts = number(format!("in{channel}_input"))
                    .map(|millivolts| millivolts * MILLI)
                    .filter(|volts| *volts > 0.0);
                Some(shunt.limits(microohms, volts))
            });
            Some(Sensor {
                chip: chip.clone(),
                is_labelled: label.is_some(),
                label: label.unwrap_or_else(|| channel.to_string()),
                files,
                current,
                limits,
            })
        })
        .collect()
}

/// No chip of this kind has more channels.
const MOST_CHANNELS: u32 = 8;

/// An open sensor.
#[derive(Debug)]
pub(crate) struct Hwmon {
    files: OpenFiles,
    end_of_scale: Option<EndOfScale>,
}

#[derive(Debug)]
enum OpenFiles {
    /// `energyN_input`.
    Energy(NumberFile),
    /// `powerN_input`.
    Power(NumberFile),
    /// `inN_input` and `currN_input`.
    VoltsAndAmperes(NumberFile, NumberFile),
}

/// Counts the readings at the end of the sensor's scale.
#[derive(Debug)]
struct EndOfScale {
    /// `currN_input`.
    current: NumberFile,
    limit_amperes: f64,
    readings: u64,
}

impl Hwmon {
    pub(crate) fn open(sensor: &Sensor) -> Self {
        let file = |path: &PathBuf| NumberFile::new(path.clone());
        Self {
            files: match &sensor.files {
                Files::Energy(path) => OpenFiles::Energy(file(path)),
                Files::Power(path) => OpenFiles::Power(file(path)),
                Files::VoltsAndAmperes(volts, amperes) => {
                    OpenFiles::VoltsAndAmperes(file(volts), file(amperes))
                }
            },
            end_of_scale: sensor
                .full_scale_amperes()
                .zip(sensor.current.as_ref())
                .map(|(amperes, current)| EndOfScale {
                    current: file(current),
                    limit_amperes: SATURATED_SHARE * amperes,
                    readings: 0,
                }),
        }
    }
}

impl EndOfScale {
    fn look(&mut self) -> Result<(), InstrumentError> {
        let amperes = self.current.read()? as f64 * MILLI;
        self.readings += u64::from(amperes.abs() >= self.limit_amperes);
        Ok(())
    }
}

impl LocalInstrument for Hwmon {
    fn read(&mut self) -> Result<PowerOrEnergy, InstrumentError> {
        let quantity = match &mut self.files {
            OpenFiles::Energy(file) => PowerOrEnergy::Joules(file.read_unsigned()? as f64 * MICRO),
            OpenFiles::Power(file) => PowerOrEnergy::Watts(file.read_unsigned()? as f64 * MICRO),
            OpenFiles::VoltsAndAmperes(volts, amperes) => {
                let volts = volts.read_unsigned()? as f64 * MILLI;
                PowerOrEnergy::Watts(volts * amperes.read_unsigned()? as f64 * MILLI)
            }
        };
        // If the current is unreadable, the whole reading fails: a saturated reading could pass unnoticed.
        if let Some(end) = &mut self.end_of_scale {
            end.look()?;
        }
        Ok(quantity)
    }

    fn saturated_readings(&self) -> Option<u64> {
        self.end_of_scale.as_ref().map(|end| end.readings)
    }
}

/// The hwmon device of a sensor, such as `hwmon2`.
pub(crate) fn device(sensor: &Sensor) -> &str {
    sensor.path().parent().map(file_name).unwrap_or_default()
}
