//! The series of a reading, and the lookup of one of them in a scrape.

use std::ops::RangeInclusive;

use super::error::ReadingError;
use crate::{NUMBERS_END, exposition::Sample};

pub(super) const NODE_JOULES: &str = "kepler_node_cpu_joules_total";
pub(super) const NODE_ACTIVE_JOULES: &str = "kepler_node_cpu_active_joules_total";
pub(super) const NODE_IDLE_JOULES: &str = "kepler_node_cpu_idle_joules_total";
pub(super) const POD_JOULES: &str = "kepler_pod_cpu_joules_total";
pub(super) const METER_INFO: &str = "frugality_meter_info";
pub(super) const PLATFORM_INFO: &str = "frugality_meter_platform_info";
pub(super) const METER_READING_TIMESTAMP: &str = "frugality_meter_reading_timestamp_seconds";
pub(super) const METER_START: &str = "frugality_meter_start_time_seconds";
pub(super) const METER_INTERVAL: &str = "frugality_meter_interval_seconds";
pub(super) const METER_MAX_WATTS: &str = "frugality_meter_max_watts";
pub(super) const THROTTLED_SECONDS: &str = "frugality_meter_throttled_seconds_total";
pub(super) const NODE_TEMPERATURE: &str = "frugality_meter_node_temperature_celsius";
/// From absolute zero to a temperature at which no board works any more, in degrees Celsius.
pub(super) const CELSIUS: RangeInclusive<f64> = -273.15..=1000.0;
pub(super) const NODE_FREQUENCY: &str = "frugality_meter_node_frequency_hertz";
pub(super) const ENERGY_RELATIVE_UNCERTAINTY: &str = "frugality_meter_energy_relative_uncertainty";
/// If the standard uncertainty of an energy exceeds the energy, the energy is useless.
pub(super) const RELATIVE_UNCERTAINTY: RangeInclusive<f64> = 0.0..=1.0;
pub(super) const MODEL_IDLE_WATTS: &str = "frugality_meter_model_idle_watts";
pub(super) const MODEL_WATTS_PER_CPU: &str = "frugality_meter_model_watts_per_cpu";
pub(super) const MODEL_IDLE_WATTS_RELATIVE_UNCERTAINTY: &str =
    "frugality_meter_model_idle_watts_relative_uncertainty";
pub(super) const MODEL_WATTS_PER_CPU_RELATIVE_UNCERTAINTY: &str =
    "frugality_meter_model_watts_per_cpu_relative_uncertainty";
pub(super) const ENERGY_RESOLUTION: &str = "frugality_meter_energy_resolution_joules";
pub(super) const LAST_TRUE_READING_AGE: &str = "frugality_meter_last_true_reading_age_seconds";
pub(super) const SATURATED_READINGS: &str = "frugality_meter_saturated_readings_total";
pub(super) const PROCESSORS_BUSY: &str = "frugality_processors_busy_seconds_total";
pub(super) const PROCESSORS_INTERRUPT: &str = "frugality_processors_interrupt_seconds_total";
pub(super) const PROCESSORS_STOLEN: &str = "frugality_processors_stolen_seconds_total";
pub(super) const NODE_CPU_SECONDS: &str = "frugality_node_cpu_seconds_total";
pub(super) const POD_CPU_SECONDS: &str = "frugality_pod_cpu_seconds_total";
pub(super) const POD_WORKING_SET: &str = "frugality_pod_memory_working_set_bytes";

/// The samples of one scrape, filtered by one node.
pub(super) struct Scrape<'a> {
    pub(super) samples: Vec<Sample>,
    pub(super) node_name: &'a str,
}

impl Scrape<'_> {
    /// This node's samples of one metric.
    pub(super) fn all<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Sample> {
        self.samples
            .iter()
            .filter(move |s| s.name == name && s.label("node_name") == Some(self.node_name))
    }

    /// This node's only sample of one metric with these labels.
    pub(super) fn one<'s>(
        &'s self,
        name: &str,
        wanted: &[(&str, &str)],
    ) -> Result<Option<&'s Sample>, ReadingError> {
        let mut found = self.all(name).filter(|sample| carries(sample, wanted));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(second) => Err(ReadingError::Ambiguous {
                series: describe(second),
            }),
        }
    }

    /// The value of [`Scrape::one`].
    pub(super) fn number(
        &self,
        name: &str,
        wanted: &[(&str, &str)],
    ) -> Result<Option<f64>, ReadingError> {
        self.one(name, wanted)?.map(valid_sample).transpose()
    }

    /// As [`Scrape::number`], for a value with its own range.
    pub(super) fn number_within(
        &self,
        name: &str,
        wanted: &[(&str, &str)],
        range: &RangeInclusive<f64>,
    ) -> Result<Option<f64>, ReadingError> {
        let Some(sample) = self.one(name, wanted)? else {
            return Ok(None);
        };
        if range.contains(&sample.value) {
            Ok(Some(sample.value))
        } else {
            Err(ReadingError::InvalidValue {
                series: describe(sample),
                value: sample.value,
            })
        }
    }

    /// Whether the text contains a series of the node meter.
    pub(super) fn has_node_meter(&self) -> bool {
        self.samples
            .iter()
            .any(|sample| sample.name.starts_with("frugality_"))
    }

    /// Kepler's version; the series has no node name.
    pub(super) fn kepler_version(&self) -> Option<&str> {
        let info = self
            .samples
            .iter()
            .find(|sample| sample.name == "kepler_build_info")?;
        info.label("version").filter(|version| !version.is_empty())
    }
}

pub(super) fn carries(sample: &Sample, wanted: &[(&str, &str)]) -> bool {
    wanted
        .iter()
        .all(|(name, value)| sample.label(name) == Some(value))
}

/// The sample's name with the labels that distinguish it from other samples of that name.
pub(super) fn describe(sample: &Sample) -> String {
    let telling = ["node_name", "pod_id", "zone"]
        .into_iter()
        .filter_map(|name| Some(format!("{name}={:?}", sample.label(name)?)));
    format!(
        "{}{{{}}}",
        sample.name,
        telling.collect::<Vec<_>>().join(",")
    )
}

pub(super) fn valid_sample(sample: &Sample) -> Result<f64, ReadingError> {
    valid(sample.value, || describe(sample))
}

/// No counter, time or amount of this product is negative, not a number, or 2⁵³ and more.
pub(super) fn valid(value: f64, series: impl FnOnce() -> String) -> Result<f64, ReadingError> {
    if (0.0..NUMBERS_END).contains(&value) {
        Ok(value)
    } else {
        Err(ReadingError::InvalidValue {
            series: series(),
            value,
        })
    }
}
