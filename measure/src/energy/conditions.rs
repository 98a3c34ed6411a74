//! The node's conditions during an attempt: for the record, and for users who compare runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::energy::{evidence::AttemptEvidence, taken::Taken};
use crate::reading::Platform;

/// Temperature, clock, throttling and platform of the node. Values that the meter does not report are
/// unknown.
///
/// The candidate's own heat causes throttling that begins under load. Such throttling is an outcome: it is
/// recorded here and makes no attempt void.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conditions {
    /// Mean temperature over the idle baseline before the load, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_before_celsius: Option<f64>,
    /// The highest temperature of the measured window, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_celsius: Option<f64>,
    /// Mean temperature over the idle baseline after the load, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after_celsius: Option<f64>,
    /// Mean clock over the measured window, in hertz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_hertz: Option<f64>,
    /// The lowest clock of the measured window, in hertz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_hertz: Option<f64>,
    /// CPU time of the node's processors that others took in the measured window, in CPUs: outside the node's cgroups, or
    /// another virtual machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_cpus: Option<f64>,
    /// How long the node was throttled in the measured window, in seconds by cause.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub throttled_seconds: BTreeMap<String, f64>,
    /// Kernel, governor and firmware. If one of them changes, the attempt is void.
    #[serde(default)]
    pub platform: Platform,
}

impl Conditions {
    pub(super) fn of(evidence: &AttemptEvidence<'_>) -> Self {
        let AttemptEvidence { attempt, series } = evidence;
        let celsius = |window| {
            series.extent(
                window,
                |reading| reading.temperature_celsius,
                |left_out| &left_out.celsius,
            )
        };
        let hertz = series.extent(
            attempt.measured,
            |reading| reading.frequency_hertz,
            |left_out| &left_out.hertz,
        );
        Self {
            idle_before_celsius: celsius(attempt.idle_before).mean(),
            peak_celsius: celsius(attempt.measured).most(),
            idle_after_celsius: celsius(attempt.idle_after).mean(),
            mean_hertz: hertz.mean(),
            least_hertz: hertz.least(),
            taken_cpus: Taken::of(evidence, attempt.measured).map(|taken| taken.cpus),
            throttled_seconds: series.throttled_seconds(attempt.measured),
            platform: (*series.last().platform).clone(),
        }
    }
}
