//! Net energy, shared among pods by their CPU time above idle.
//!
//! Kepler's "active" energy is node energy × CPU utilisation. A pod's part therefore grows with the square of
//! the node's use. A candidate with 15 % less CPU time per request then looks more expensive if only this
//! candidate drives the node to 100 %. The node's energy above its idle baseline does not have this error.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::energy::evidence::AttemptEvidence;
use crate::energy::{attempt::Window, attempt::per_request};
use crate::reading::PodReading;

/// Net energy of the measured pods over the measured window: the node's net energy × their share of the CPU time above
/// idle. A share, not a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NetAttributed {
    /// The candidate's pods, in joules.
    pub candidate_joules: f64,
    /// The database's pods, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_joules: Option<f64>,
    /// The candidate alone, per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_joules_per_request: Option<f64>,
    /// Candidate and database together, per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_and_database_joules_per_request: Option<f64>,
}

impl NetAttributed {
    /// `None` without net energy, and if the use of the pods or of the node is unknown.
    pub(super) fn of(evidence: &AttemptEvidence<'_>, net_joules: Option<f64>) -> Option<Self> {
        let attempt = evidence.attempt;
        let net_joules = net_joules?;
        let of_node = above_idle(evidence, node_use)?;
        if of_node <= 0.0 {
            return None;
        }
        let joules = |pods: &BTreeSet<String>| {
            let of_pods = above_idle(evidence, |evidence, window| {
                pods_use(evidence, window, pods)
            })?;
            // More than the whole is also correct. If others rest under load, the pods replaced the others'
            // work, and the node's net energy is smaller by that work.
            Some(net_joules * (of_pods / of_node).max(0.0))
        };
        let candidate_joules = joules(attempt.candidate_pods)?;
        let database_joules = joules(attempt.database_pods);
        let each = |amount: f64| per_request(amount, attempt.units);
        Some(Self {
            candidate_joules,
            database_joules,
            candidate_joules_per_request: each(candidate_joules),
            candidate_and_database_joules_per_request: database_joules
                .and_then(|database| each(candidate_joules + database)),
        })
    }
}

/// CPU use in the measured window minus CPU use in the idle baselines.
fn above_idle(
    evidence: &AttemptEvidence<'_>,
    of_window: impl Fn(&AttemptEvidence<'_>, Window) -> Option<f64>,
) -> Option<f64> {
    let attempt = evidence.attempt;
    let of = |window| of_window(evidence, window);
    let idle = f64::midpoint(of(attempt.idle_before)?, of(attempt.idle_after)?);
    Some(of(attempt.measured)? - idle)
}

/// The node's CPU use, in CPUs. If the meter reports no CPU time: as a share of all CPUs. Active energy is
/// node energy × this share, interval by interval.
fn node_use(evidence: &AttemptEvidence<'_>, window: Window) -> Option<f64> {
    let series = &evidence.series;
    if has_cpu_time(evidence) {
        let seconds = series.delta(window, |reading| reading.node_cpu_seconds)?;
        return Some(seconds / window.seconds());
    }
    let active_joules = series.delta(window, |reading| reading.active_joules)?;
    share(active_joules, series.node_joules(window).ok()?)
}

/// The CPU use of some pods, in the unit of [`node_use`].
fn pods_use(
    evidence: &AttemptEvidence<'_>,
    window: Window,
    pods: &BTreeSet<String>,
) -> Option<f64> {
    let series = &evidence.series;
    if has_cpu_time(evidence) {
        let seconds = series.pods_delta(window, pods, |pod: &PodReading| pod.cpu_seconds)?;
        return Some(seconds / window.seconds());
    }
    let joules = series.pods_delta(window, pods, |pod: &PodReading| pod.joules)?;
    share(joules, series.node_joules(window).ok()?)
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn has_cpu_time(evidence: &AttemptEvidence<'_>) -> bool {
    evidence.series.last().node_cpu_seconds.is_some()
}
