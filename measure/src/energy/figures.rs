//! The energy figures of an attempt.

use serde::{Deserialize, Serialize};

use super::{brackets::Brackets, conditions::Conditions, shared::NetAttributed};
use crate::{
    model::Parts,
    reading::{MeterIdentity, Provenance},
};

/// The energy of one attempt. `None` is "unknown", never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnergyFigures {
    /// Gross energy of the node over the measured window, in joules.
    pub node_joules: f64,
    /// Gross energy per successful request, in joules; unknown without a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gross_joules_per_request: Option<f64>,
    /// The node's mean power over the idle baseline before the load, in watts.
    pub idle_before_watts: f64,
    /// The same after the load.
    pub idle_after_watts: f64,
    /// Gross minus the idle baseline over the window, in joules. Absent below the detection limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_joules: Option<f64>,
    /// Net energy per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_joules_per_request: Option<f64>,
    /// The detection limit of this attempt's net energy, in joules. The run's trials together may have
    /// another limit: [`PooledIdle`].
    pub net_detection_limit_joules: f64,
    /// Why the net figure is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_withheld: Option<String>,
    /// Standard uncertainty of the net energy, in joules, from idle baselines that differ by more than chance.
    /// Absent if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_drift_joules: Option<f64>,
    /// CPU use of the candidate's pods in both idle baselines, in CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_idle_cpus: Option<f64>,
    /// The energy that the meter gave to the measured pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<Attributed>,
    /// The measured pods' part of the net energy, by CPU time above idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_attributed: Option<NetAttributed>,
    /// CPU time of the measured pods, if the meter reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSeconds>,
    /// Attributed energy and CPU time by server, if the candidate has several servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadFigures>,
    /// Why the figures per pod (attributed, CPU time), or the pods' part of the net energy alone, are absent although the
    /// meter reports pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_withheld: Option<String>,
    /// The candidate's largest working set in any reading of the window, in bytes, all pods together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_peak_working_set_bytes: Option<f64>,
    /// How fast the candidate's working set grew in the window, all pods together: the slope by least
    /// squares, in bytes per second. Absent in windows shorter than [`LONG_WINDOW_SECONDS`], and if a
    /// container was restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_working_set_growth_bytes_per_second: Option<f64>,
    /// The database's largest working set in any reading of the window, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_peak_working_set_bytes: Option<f64>,
    /// The source of the node's power.
    pub provenance: Provenance,
    /// The meter of the readings.
    pub meter: MeterIdentity,
    /// The zone of the readings.
    pub zone: String,
    /// Number of different readings between the beginning of the first baseline and the end of the second.
    pub readings_used: usize,
    /// The longest time between two of them, in seconds.
    pub largest_gap_seconds: f64,
    /// The meter's interval, in seconds. If the meter reports none: the median time between readings.
    pub interval_seconds: f64,
    /// The largest error of a reading's time, in seconds: 0 with the meter's own timestamps, else half of the
    /// longest time between two scrapes.
    pub timestamp_uncertainty_seconds: f64,
    /// Relative standard uncertainty of `node_joules` from the window's ends. It covers times of readings
    /// that may be wrong, the uncertainty of the clocks' comparison, and power that varies between readings.
    /// It also covers gaps in the load, an instrument that is seldom read, late readings, and the counter's steps. It
    /// excludes the meter's own accuracy.
    pub node_joules_relative_uncertainty: f64,
    /// Relative standard uncertainty of the node's energy, as the meter reports it: from its data sheet, and
    /// from how often its instrument was read. For a linear power model it follows from the uncertainties of
    /// the two coefficients, each weighted by its part of this energy. Absent if the meter reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter_relative_uncertainty: Option<f64>,
    /// Temperature, clock and throttling of the node, if the meter reports them.
    #[serde(default)]
    pub conditions: Conditions,
    /// The readings around the ends of each window. With them the interpolation can be repeated.
    pub brackets: Brackets,
}

/// The energy that the meter gave to the measured pods over the measured window: a share of the node's active
/// energy by CPU time, not a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attributed {
    /// The candidate's pods, in joules.
    pub candidate_joules: f64,
    /// The database's pods, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_joules: Option<f64>,
    /// The rest of the node's active energy, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_joules: Option<f64>,
    /// The candidate alone, per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_joules_per_request: Option<f64>,
    /// Candidate and database together, per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_and_database_joules_per_request: Option<f64>,
}

/// CPU time over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CpuSeconds {
    /// The candidate's pods, in seconds.
    pub candidate_seconds: f64,
    /// The database's pods, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_seconds: Option<f64>,
    /// The whole node, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_seconds: Option<f64>,
    /// The candidate alone, per successful request, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_seconds_per_request: Option<f64>,
    /// Candidate and database together, per successful request, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_and_database_seconds_per_request: Option<f64>,
}

/// Energy and resources of one of a candidate's several servers over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkloadFigures {
    /// The server's name.
    pub name: String,
    /// UIDs of its pods.
    pub pods: Vec<String>,
    /// The energy that the meter gave to them, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<f64>,
    /// The same per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules_per_request: Option<f64>,
    /// Their CPU time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// The same per successful request, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_request: Option<f64>,
    /// Their largest working set in any reading of the window, in bytes, all pods together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_working_set_bytes: Option<f64>,
}

impl EnergyFigures {
    /// The factors of idle watts and of watts per CPU in the energy of a window of `window_seconds`, if the
    /// power comes from a linear model. If the node's CPU time was lost with the pods' counters, it is
    /// computed from the energy.
    #[must_use]
    pub fn parts(&self, window_seconds: f64) -> Option<Parts> {
        let model = self.meter.model.as_ref()?;
        let counted = self.cpu.as_ref().and_then(|cpu| cpu.node_seconds);
        Some(Parts {
            idle_seconds: window_seconds,
            cpu_seconds: counted.or_else(|| model.cpu_seconds(self.node_joules, window_seconds))?,
        })
    }
}
