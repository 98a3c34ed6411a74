//! The power management chip of a Raspberry Pi 5. The meter reads the text of `vcgencmd pmic_read_adc`. The
//! text comes from the firmware's mailbox, like the command's own text, or from a command. It can also come
//! from a file that the host keeps writing, which needs no right to a device.
//!
//! The chip reports voltage and current of twelve rails behind it. The 5 V supply of USB devices, HATs and
//! NVMe drives bypasses the chip, and the chip does not see it. The chip does not see the losses of the
//! converters either. The correction is a line that was fitted to a USB-C power meter on one board
//! (jfikar/RPi5-power, README: watts = 1.1451 × sum + 0.5879). No residual was published for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{InstrumentError, PowerOrEnergy};

/// The command for the firmware.
pub(crate) const QUESTION: &str = "pmic_read_adc";
/// Slope of the published correction, without a unit.
pub(crate) const SLOPE: f64 = 1.1451;
/// Offset of the published correction, in watts.
pub(crate) const OFFSET_WATTS: f64 = 0.5879;
/// Number of rails for which the published correction was fitted.
const RAILS: usize = 12;
/// One board's fit without a residual, applied to another board: a judgement, not a measurement.
pub(crate) const RELATIVE_UNCERTAINTY: f64 = 0.05;
/// The host should write once per second. If the file is older than this, its writer has ended.
const OLDEST: Duration = Duration::from_secs(5);

/// The line that maps the sum over the rails to the board's power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Correction {
    /// Factor, without a unit.
    pub(crate) slope: f64,
    /// Offset, in watts.
    pub(crate) offset_watts: f64,
    /// Number of rails for which the line was fitted; `None` if it is unknown, and then any number is
    /// accepted.
    pub(crate) rails: Option<usize>,
}

impl Default for Correction {
    fn default() -> Self {
        Self {
            slope: SLOPE,
            offset_watts: OFFSET_WATTS,
            rails: Some(RAILS),
        }
    }
}

/// The board's power from the command's text: Σ volts × amperes over the rails that have both, corrected.
/// Rails with only a voltage are the input and the clock's battery. `None` if a voltage is missing, or if the
/// number of rails differs from the correction's: a part must not pass for the whole.
pub(crate) fn watts(text: &str, correction: Correction) -> Option<f64> {
    let values = |suffix: &'static str| {
        text.lines().filter_map(move |line| {
            let (rail, value) = line.trim().split_once(' ')?;
            let rail = rail.strip_suffix(suffix)?;
            let number = value.split_once('=')?.1.trim().trim_end_matches(['A', 'V']);
            Some((rail, number.parse::<f64>().ok()?))
        })
    };
    let mut rails = 0;
    let mut sum = 0.0;
    for (rail, amperes) in values("_A") {
        let (_, volts) = values("_V").find(|(other, _)| *other == rail)?;
        sum += volts * amperes;
        rails += 1;
    }
    super::valid(sum * correction.slope + correction.offset_watts)
        .filter(|_| correction.rails.map_or(rails > 0, |fitted| rails == fitted))
}

/// The first mailbox device below `/dev` that can be opened.
pub(crate) fn mailbox(dev: &Path) -> Option<PathBuf> {
    let devices = frugality_mailbox::DEVICES.map(|name| dev.join(name));
    devices
        .into_iter()
        .find(|device| fs::File::open(device).is_ok())
}

/// The text in a file that the host keeps writing.
#[derive(Debug)]
pub(crate) struct PmicFile {
    path: PathBuf,
    correction: Correction,
    seen: Option<SystemTime>,
}

impl PmicFile {
    /// The file is not read before the first reading.
    pub(crate) fn new(path: PathBuf, correction: Correction) -> Self {
        Self {
            path,
            correction,
            seen: None,
        }
    }
}

impl PmicFile {
    /// The host's last text and its age; `None` if that text was read before.
    pub(crate) fn read(&mut self) -> Result<Option<(PowerOrEnergy, Duration)>, InstrumentError> {
        let path = self.path.display().to_string();
        let unreadable = |source| InstrumentError::Unreadable {
            path: path.clone(),
            source,
        };
        let written = fs::metadata(&self.path)
            .and_then(|metadata| metadata.modified())
            .map_err(unreadable)?;
        let age = SystemTime::now()
            .duration_since(written)
            .unwrap_or_default();
        if age > OLDEST {
            let seconds = age.as_secs_f64();
            return Err(InstrumentError::Old { path, seconds });
        }
        if self.seen == Some(written) {
            return Ok(None);
        }
        let text = fs::read_to_string(&self.path).map_err(unreadable)?;
        let quantity = quantity(&path, &text, self.correction)?;
        self.seen = Some(written);
        Ok(Some((quantity, age)))
    }
}

/// Like [`watts`], with an error that contains the unexpected text.
pub(crate) fn quantity(
    from: &str,
    text: &str,
    correction: Correction,
) -> Result<PowerOrEnergy, InstrumentError> {
    watts(text, correction)
        .map(PowerOrEnergy::Watts)
        .ok_or_else(|| InstrumentError::malformed(from, text, "output of vcgencmd pmic_read_adc"))
}
