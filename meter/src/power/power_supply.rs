//! A supply that reports its output current in the kernel's class `power_supply`, such as Raspberry Pi's PoE+ HAT
//! (driver `rpi-poe-power`, supply `rpi-poe`).
//!
//! The HAT's driver reports `current_now`, but no voltage. The user then states the voltage at the header.

use std::path::{Path, PathBuf};

use super::sysfs::{NumberFile, entries, file_name, read_text};
use super::{InstrumentError, LocalInstrument, PowerOrEnergy};

const MICRO: f64 = 1e-6;
/// The voltages at which Raspberry Pis run, with a margin.
const VOLTS: std::ops::RangeInclusive<f64> = 4.0..=6.0;

/// A supply, ready to be read.
#[derive(Debug)]
pub(crate) struct PowerSupply {
    path: PathBuf,
    /// `current_now`, in microamperes.
    current: NumberFile,
    voltage: Voltage,
}

#[derive(Debug)]
enum Voltage {
    /// `voltage_now`, in microvolts.
    Reported(NumberFile),
    /// In volts, by the user.
    Stated(f64),
}

impl PowerSupply {
    /// The supply with this name, or the only one that reports a current. The error is for people.
    pub(crate) fn find(
        sysfs: &Path,
        name: Option<&str>,
        volts: Option<f64>,
    ) -> Result<Self, String> {
        let class = sysfs.join("class/power_supply");
        let supplies: Vec<PathBuf> = entries(&class)
            .into_iter()
            .filter(|supply| supply.join("current_now").exists())
            // A battery's current charges it, or is only a part of the board's.
            .filter(|supply| read_text(&supply.join("type")).as_deref() != Some("Battery"))
            .collect();
        let names = || {
            let names: Vec<&str> = supplies.iter().map(|path| file_name(path)).collect();
            names.join(", ")
        };
        let mut fitting = supplies
            .iter()
            .filter(|supply| name.is_none_or(|name| file_name(supply) == name));
        let path = match (fitting.next(), fitting.next()) {
            (Some(path), None) => path.clone(),
            (None, _) if supplies.is_empty() => {
                return Err(format!(
                    "no supply in {} reports a current (batteries do not count)",
                    class.display()
                ));
            }
            (None, _) => {
                let name = name.unwrap_or_default();
                return Err(format!(
                    "no supply `{name}` reports a current: write one of {}",
                    names()
                ));
            }
            (Some(_), Some(_)) => {
                return Err(format!(
                    "several supplies report a current: write name, one of {}",
                    names()
                ));
            }
        };
        let reported = path.join("voltage_now");
        let voltage = match (reported.exists(), volts) {
            (true, None) => Voltage::Reported(NumberFile::new(reported)),
            (true, Some(_)) => {
                return Err(format!(
                    "{} reports its voltage: leave out volts",
                    path.display()
                ));
            }
            (false, None) => {
                return Err(format!(
                    "{} reports no voltage: measure the voltage at the board's header under load, and write volts",
                    path.display()
                ));
            }
            (false, Some(volts)) if VOLTS.contains(&volts) => Voltage::Stated(volts),
            (false, Some(volts)) => {
                return Err(format!("volts is {volts}: write a number from 4 to 6"));
            }
        };
        Ok(Self {
            current: NumberFile::new(path.join("current_now")),
            voltage,
            path,
        })
    }

    /// The supply's directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl LocalInstrument for PowerSupply {
    /// Refuses a current of 0: no board runs without a current, so the board has another supply.
    fn read(&mut self) -> Result<PowerOrEnergy, InstrumentError> {
        let amperes = self.current.read_unsigned()? as f64 * MICRO;
        if amperes == 0.0 {
            let from = self.current.path().display().to_string();
            return Err(InstrumentError::malformed(
                from,
                "0",
                "current above 0 (does another supply feed the board?)",
            ));
        }
        let volts = match &mut self.voltage {
            Voltage::Reported(file) => file.read_unsigned()? as f64 * MICRO,
            Voltage::Stated(volts) => *volts,
        };
        Ok(PowerOrEnergy::Watts(volts * amperes))
    }
}
