//! From readings and windows to joules, or the reason why there are none.
//!
//! A wrong joule is worse than no joule: [`evaluate`] first asks every question of `checks`, in
//! order, and the first one that the readings fail makes the attempt void. Only then does it
//! compute, by these definitions:
//!
//! - a counter's value at a time is linear between the two readings around it, at the meter's own
//!   timestamps; there is no value outside the readings;
//! - **gross** is the node's energy over the measured window;
//! - **net** is gross minus the window's length times the mean of the two idle baselines;
//! - **attributed** is what the meter gave to the measured pods over the window.

mod baseline;
mod checks;
mod conditions;
mod counters;
mod drift;
mod ends;
mod idle;
mod noise;
mod pooled;
mod shared;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::Parts;
use crate::reading::{MeterIdentity, PodReading, Provenance, Reading};
pub use crate::void::Void;
use baseline::{Gross, Net};
use checks::Evidence;
pub use conditions::Conditions;
use idle::IdleUse;
pub use pooled::{Measured, PooledIdle};
pub use shared::NetAttributed;

/// An interval of time, in Unix seconds of the readings' clock: the measured node's where the meter
/// tells its time, else the scraper's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it begins.
    pub start_unix_seconds: f64,
    /// When it ends.
    pub end_unix_seconds: f64,
}

impl Window {
    /// The window's length in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.end_unix_seconds - self.start_unix_seconds
    }

    /// Whether what shows only in time is told of it. A load at a rate ends with its last request, before its time.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.seconds() >= 0.99 * LONG_WINDOW_SECONDS
    }
}

/// What readings must keep to for their figures to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The most the node can draw, in watts, if known. A meter's own limit counts as well, if it is lower. Where
    /// neither is known, the other readings of the attempt tell what is too much.
    pub max_node_watts: Option<f64>,
    /// The longest time without a new reading, in seconds.
    pub max_reading_gap_seconds: f64,
    /// The shortest measured window, in seconds.
    pub min_window_seconds: f64,
    /// The shortest measured window, in the meter's intervals.
    pub min_intervals: f64,
}

impl Limits {
    /// Ten readings at the usual two a second: a lost scrape or two is no harm, since counters go
    /// on and are linear in between, but over five seconds load may have changed unseen.
    pub const MAX_READING_GAP_SECONDS: f64 = 5.0;
    /// Below this, what happens once in a trial (a checkpoint, a garbage collection) is the figure.
    pub const MIN_WINDOW_SECONDS: f64 = 20.0;
    /// An edge inside a window of length T costs d/(3T) of bias for the meter's interval d: with
    /// T ≥ 20 d that is at most 1.7 %.
    pub const MIN_INTERVALS: f64 = 20.0;

    /// The usual limits for a node that draws at most `max_node_watts`.
    #[must_use]
    pub fn new(max_node_watts: impl Into<Option<f64>>) -> Self {
        Self {
            max_node_watts: max_node_watts.into(),
            max_reading_gap_seconds: Self::MAX_READING_GAP_SECONDS,
            min_window_seconds: Self::MIN_WINDOW_SECONDS,
            min_intervals: Self::MIN_INTERVALS,
        }
    }
}

/// All that one attempt's energy is computed from.
#[derive(Clone, Copy, Debug)]
pub struct AttemptReadings<'a> {
    /// Readings of the measured node, in any order; those outside the windows are not used.
    pub readings: &'a [Reading],
    /// The idle baseline before the load: candidate up, unloaded.
    pub idle_before: Window,
    /// The measured window.
    pub measured: Window,
    /// The idle baseline after the load.
    pub idle_after: Window,
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// The same by server, where the candidate has several; each has a name.
    pub workloads: &'a BTreeMap<String, BTreeSet<String>>,
    /// UIDs of the database's pods; empty where the boundary has none.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods that are still the same pods but whose own containers ended during the
    /// attempt. A crash is the candidate's doing, an outcome and never void: the node's energy
    /// stands, only these pods' counters may be lost.
    pub restarted_pods: &'a BTreeSet<String>,
    /// UIDs of the injector's pods, which count neither to the boundary nor to its neighbours; empty
    /// where it has a node of its own.
    pub injector_pods: &'a BTreeSet<String>,
    /// The load after the measured window, where it is known.
    pub tail: Option<Tail>,
    /// What is known of the measured window's ends.
    pub ends: Ends,
    /// What joules are divided by: requests of the measured window with an expected answer, or what counts in
    /// their place.
    pub units: f64,
    /// What the readings must keep to.
    pub limits: Limits,
}

/// The load between the measured window and the settling before the second idle baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// When it was on, in the readings' clock.
    pub window: Window,
    /// Its requests per second over those of the measured run.
    pub relative_load: f64,
}

/// What is known of the measured window's ends, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ends {
    /// How far the window may lie off: the uncertainty of the clocks' offset.
    pub clock_uncertainty_seconds: f64,
    /// Without load right before the window.
    pub gap_before_seconds: f64,
    /// Without load right after it.
    pub gap_after_seconds: f64,
    /// With the window's load before it: the warm-up.
    pub steady_before_seconds: f64,
    /// With the window's load after it: the tail.
    pub steady_after_seconds: f64,
}

/// Room for the rounding of times near 10⁹ s, so that a window of exactly the least length passes.
const ROUNDING_SECONDS: f64 = 1e-6;

impl AttemptReadings<'_> {
    /// From the beginning of the first idle baseline to the end of the second.
    fn span(&self) -> Window {
        Window {
            start_unix_seconds: self.idle_before.start_unix_seconds,
            end_unix_seconds: self.idle_after.end_unix_seconds,
        }
    }

    /// UIDs of all measured pods.
    fn pods(&self) -> impl Iterator<Item = &String> {
        self.candidate_pods.union(self.database_pods)
    }
}

/// The energy of one attempt. `None` is "unknown", never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnergyFigures {
    /// Gross energy: the node's, over the measured window, in joules.
    pub node_joules: f64,
    /// Gross energy per successful request, in joules; unknown without a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gross_joules_per_request: Option<f64>,
    /// The node's mean power over the idle baseline before the load, in watts.
    pub idle_before_watts: f64,
    /// The same after the load.
    pub idle_after_watts: f64,
    /// Gross minus the idle baseline over the window, in joules, where that can be told from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_joules: Option<f64>,
    /// Net energy per successful request, in joules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_joules_per_request: Option<f64>,
    /// The least net energy that this attempt could have told from 0, in joules. The run's trials together may have
    /// another one: [`PooledIdle`].
    pub net_detection_limit_joules: f64,
    /// Why there is no net figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_withheld: Option<String>,
    /// Standard uncertainty of the net energy, in joules, from idle baselines that differ by more than chance and the
    /// board's heat; absent if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_drift_joules: Option<f64>,
    /// CPU use of the candidate's pods in both idle baselines, in CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_idle_cpus: Option<f64>,
    /// What the meter gave to the measured pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<Attributed>,
    /// What of the net energy is the measured pods', by CPU time above idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_attributed: Option<NetAttributed>,
    /// CPU time of the measured pods, where the meter serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSeconds>,
    /// The candidate's part of both by server, where it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadFigures>,
    /// Why figures by pod (attributed, CPU time) are missing though the meter serves pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods_withheld: Option<String>,
    /// The candidate's largest working set in any reading of the window, in bytes, all pods together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_peak_working_set_bytes: Option<f64>,
    /// How fast the candidate's working set grew in the window, all pods together: the slope by least squares,
    /// in bytes per second. Unknown in windows shorter than [`LONG_WINDOW_SECONDS`], and where a
    /// container was restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_working_set_growth_bytes_per_second: Option<f64>,
    /// The same of the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_peak_working_set_bytes: Option<f64>,
    /// Where the node's power came from.
    pub provenance: Provenance,
    /// The meter that was read.
    pub meter: MeterIdentity,
    /// The zone that was read.
    pub zone: String,
    /// Different readings between the beginning of the first baseline and the end of the second.
    pub readings_used: usize,
    /// The longest time between two of them, in seconds.
    pub largest_gap_seconds: f64,
    /// The meter's interval, or the median time between readings where it tells none, in seconds.
    pub interval_seconds: f64,
    /// By how much a reading's time may be off, in seconds: 0 with the meter's own timestamps,
    /// else half of the longest time between two scrapes.
    pub timestamp_uncertainty_seconds: f64,
    /// Standard uncertainty of `node_joules` as a share of it, from the window's ends: times of readings
    /// that may be off, clocks that are compared to some accuracy only, power that is not steady between
    /// readings, gaps in the load, an instrument that is read seldom, and the counter's steps. The meter's
    /// own accuracy is not in it.
    pub node_joules_relative_uncertainty: f64,
    /// Relative standard uncertainty of the node's energy, as the meter states it: from its data sheet, and from how often
    /// its instrument was read. For a linear power model it follows from the uncertainties of the two coefficients, each
    /// by its part of this energy. Absent where the meter states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter_relative_uncertainty: Option<f64>,
    /// Temperature, clock and throttling of the node, where the meter tells them.
    #[serde(default)]
    pub conditions: Conditions,
    /// The readings that every window's ends were interpolated between, to repeat the arithmetic.
    pub brackets: Brackets,
}

/// What the meter gave to the measured pods over the measured window: a share of the node's active
/// energy by CPU time, not a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// What one of a candidate's several servers took over the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadFigures {
    /// Which one.
    pub name: String,
    /// UIDs of its pods.
    pub pods: Vec<String>,
    /// What the meter gave to them, in joules.
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

/// The node's counter at one reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadingMark {
    /// When the counter was true, in Unix seconds.
    pub at_unix_seconds: f64,
    /// The node's energy counter, in joules.
    pub node_joules: f64,
}

/// The readings around a window's ends: the last before and the first after each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bracket {
    /// Around the beginning.
    pub start: [ReadingMark; 2],
    /// Around the end.
    pub end: [ReadingMark; 2],
}

/// The brackets of an attempt's three windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Brackets {
    /// Of the idle baseline before the load.
    pub idle_before: Bracket,
    /// Of the measured window.
    pub measured: Bracket,
    /// Of the idle baseline after the load.
    pub idle_after: Bracket,
}

/// The energy of one attempt, or why its readings cannot be trusted.
pub fn evaluate(attempt: &AttemptReadings<'_>) -> Result<EnergyFigures, Void> {
    let evidence = Evidence::gather(attempt)?;
    checks::run(&evidence)?;
    figures(&evidence)
}

fn figures(evidence: &Evidence<'_>) -> Result<EnergyFigures, Void> {
    let Evidence { attempt, series } = evidence;
    let gross = Gross::of(evidence)?;
    let idle = IdleUse::of(evidence);
    let net = Net::of(&gross).unless(idle.withheld);
    let by_pod = ByPod::of(evidence);
    let last = series.last();
    Ok(EnergyFigures {
        node_joules: gross.node_joules,
        gross_joules_per_request: per_request(gross.node_joules, attempt.units),
        idle_before_watts: gross.idle_before_watts,
        idle_after_watts: gross.idle_after_watts,
        net_joules: net.joules,
        net_joules_per_request: net
            .joules
            .and_then(|joules| per_request(joules, attempt.units)),
        net_detection_limit_joules: net.detection_limit_joules,
        net_withheld: net.withheld,
        net_drift_joules: gross.drift_joules,
        candidate_idle_cpus: idle.candidate_cpus,
        net_attributed: by_pod
            .withheld
            .is_none()
            .then(|| NetAttributed::of(evidence, net.joules))
            .flatten(),
        attributed: by_pod.attributed,
        cpu: by_pod.cpu,
        workloads: by_pod.workloads,
        pods_withheld: by_pod.withheld,
        candidate_peak_working_set_bytes: series
            .peak_working_set_bytes(attempt.measured, attempt.candidate_pods),
        candidate_working_set_growth_bytes_per_second: memory_growth(evidence),
        database_peak_working_set_bytes: series
            .peak_working_set_bytes(attempt.measured, attempt.database_pods),
        provenance: last.meter.provenance,
        meter: MeterIdentity::clone(&last.meter),
        zone: last.zone.clone(),
        readings_used: series.len(),
        largest_gap_seconds: series.largest_gap_seconds(),
        interval_seconds: gross.interval_seconds,
        timestamp_uncertainty_seconds: gross.timestamp_uncertainty_seconds,
        node_joules_relative_uncertainty: gross.relative_uncertainty,
        meter_relative_uncertainty: meter_relative_uncertainty(evidence, gross.node_joules),
        conditions: Conditions::of(evidence),
        brackets: Brackets {
            idle_before: series.bracket(attempt.idle_before)?,
            measured: series.bracket(attempt.measured)?,
            idle_after: series.bracket(attempt.idle_after)?,
        },
    })
}

/// What the meter states of the window's energy.
fn meter_relative_uncertainty(evidence: &Evidence<'_>, node_joules: f64) -> Option<f64> {
    let Evidence { attempt, series } = evidence;
    let Some(model) = series.last().meter.model else {
        return series.max_of(|reading| reading.relative_uncertainty);
    };
    let idle_seconds = attempt.measured.seconds();
    let counted = series.delta(attempt.measured, |reading| reading.node_cpu_seconds);
    model.relative_uncertainty(Parts {
        idle_seconds,
        cpu_seconds: counted
            .or_else(|| model.cpu_seconds(node_joules, idle_seconds))
            .unwrap_or(0.0),
    })
}

impl EnergyFigures {
    /// What idle watts and watts per CPU multiply in the energy of a window of so many seconds, where power is a linear
    /// model. The node's CPU time follows from the energy where it was lost with the pods' counters.
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

/// The figures that rest on single pods' counters.
#[derive(Default)]
struct ByPod {
    attributed: Option<Attributed>,
    cpu: Option<CpuSeconds>,
    workloads: Vec<WorkloadFigures>,
    withheld: Option<String>,
}

impl ByPod {
    fn of(evidence: &Evidence<'_>) -> Self {
        let Evidence { attempt, series } = evidence;
        if let Some(uid) = attempt
            .pods()
            .find(|uid| series.lost_count_of(attempt.measured, uid))
        {
            let withheld = format!("the counters of pod {uid} were lost when its container ended");
            return Self {
                withheld: Some(withheld),
                ..Self::default()
            };
        }
        let joules = |pods: &BTreeSet<String>| {
            series.pods_delta(attempt.measured, pods, |pod: &PodReading| pod.joules)
        };
        let seconds = |pods: &BTreeSet<String>| {
            series.pods_delta(attempt.measured, pods, |pod: &PodReading| pod.cpu_seconds)
        };
        let each = |amount: f64| per_request(amount, attempt.units);
        let both = |one: f64, other: Option<f64>| other.and_then(|other| each(one + other));

        let database_joules = joules(attempt.database_pods);
        let active_joules = series.delta(attempt.measured, |reading| reading.active_joules);
        // The database's share is unknown unless there is none or its pods are all counted.
        let database_share = if attempt.database_pods.is_empty() {
            Some(0.0)
        } else {
            database_joules
        };
        let attributed = joules(attempt.candidate_pods).map(|candidate_joules| Attributed {
            candidate_joules,
            database_joules,
            // Rounding can take the rest below 0 by a little; more than that is void already.
            system_joules: active_joules
                .zip(database_share)
                .map(|(active, database)| (active - candidate_joules - database).max(0.0)),
            candidate_joules_per_request: each(candidate_joules),
            candidate_and_database_joules_per_request: both(candidate_joules, database_joules),
        });

        let database_seconds = seconds(attempt.database_pods);
        let cpu = seconds(attempt.candidate_pods).map(|candidate_seconds| CpuSeconds {
            candidate_seconds,
            database_seconds,
            node_seconds: series.delta(attempt.measured, |reading| reading.node_cpu_seconds),
            candidate_seconds_per_request: each(candidate_seconds),
            candidate_and_database_seconds_per_request: both(candidate_seconds, database_seconds),
        });
        let each_of = |amount: Option<f64>| amount.and_then(each);
        let workload = |(name, pods): (&String, &BTreeSet<String>)| WorkloadFigures {
            name: name.clone(),
            pods: pods.iter().cloned().collect(),
            joules: joules(pods),
            joules_per_request: each_of(joules(pods)),
            cpu_seconds: seconds(pods),
            cpu_seconds_per_request: each_of(seconds(pods)),
            peak_working_set_bytes: series.peak_working_set_bytes(attempt.measured, pods),
        };
        Self {
            attributed,
            cpu,
            workloads: attempt.workloads.iter().map(workload).collect(),
            withheld: None,
        }
    }
}

/// The shortest window that is asked for whose slopes of memory and latency are told, in seconds: a judgement. Before
/// that, caches fill and allocators warm up, which goes on for nobody's hour.
pub const LONG_WINDOW_SECONDS: f64 = 600.0;

fn memory_growth(evidence: &Evidence<'_>) -> Option<f64> {
    let Evidence { attempt, series } = evidence;
    if !attempt.measured.is_long() || !attempt.candidate_pods.is_disjoint(attempt.restarted_pods) {
        return None;
    }
    series.working_set_growth_bytes_per_second(attempt.measured, attempt.candidate_pods)
}

/// Joules or seconds per *successful* request. Without a success there is nothing to share among.
fn per_request(amount: f64, units: f64) -> Option<f64> {
    (units > 0.0).then(|| amount / units)
}

#[cfg(test)]
mod tests;
