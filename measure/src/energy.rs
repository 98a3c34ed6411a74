//! From readings and windows to joules, or to the reason why no joules exist.
//!
//! A wrong joule is worse than no joule. [`evaluate`] first runs all of `checks` in order, and the first
//! check that fails makes the attempt void. Only then does it compute, by these definitions:
//!
//! - a counter's value at a time is linear between the two readings around it, at the meter's own timestamps;
//!   there is no value outside the readings;
//! - **gross** is the node's energy over the measured window;
//! - **net** is gross minus the window's length times the mean of the two idle baselines;
//! - **attributed** is the energy that the meter gave to the measured pods over the window.

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

/// An interval of time, in Unix seconds of the readings' clock. This is the measured node's clock if the
/// meter reports its time, else the scraper's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// Whether the window is long enough for slopes over time. A load at a rate ends with its last request,
    /// slightly before its set time.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.seconds() >= 0.99 * LONG_WINDOW_SECONDS
    }
}

/// The limits that readings must satisfy. Otherwise their figures are not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The most the node can draw, in watts, if known. A meter's own limit also counts, if it is lower. If
    /// neither is known, the limit follows from the other readings of the attempt.
    pub max_node_watts: Option<f64>,
    /// The longest time without a new reading, in seconds.
    pub max_reading_gap_seconds: f64,
    /// The shortest measured window, in seconds.
    pub min_window_seconds: f64,
    /// The shortest measured window, in the meter's intervals.
    pub min_intervals: f64,
}

impl Limits {
    /// Ten readings at the usual two per second. One or two lost scrapes do no harm, because counters
    /// continue and are linear in between. In more than five seconds the load may have changed unseen.
    pub const MAX_READING_GAP_SECONDS: f64 = 5.0;
    /// In a shorter window, events that happen once per trial (a checkpoint, a garbage collection) dominate
    /// the figure.
    pub const MIN_WINDOW_SECONDS: f64 = 20.0;
    /// An edge inside a window of length T costs d/(3T) of bias for the meter's interval d. With T ≥ 20 d the
    /// bias is at most 1.7 %.
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

/// The inputs for one attempt's energy.
#[derive(Clone, Copy, Debug)]
pub struct AttemptReadings<'a> {
    /// Readings of the measured node, in any order. Readings outside the windows are not used.
    pub readings: &'a [Reading],
    /// The idle baseline before the load: candidate up, unloaded.
    pub idle_before: Window,
    /// The measured window.
    pub measured: Window,
    /// The idle baseline after the load.
    pub idle_after: Window,
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// UIDs of the candidate's pods by server name, if the candidate has several servers; otherwise empty.
    pub workloads: &'a BTreeMap<String, BTreeSet<String>>,
    /// UIDs of the database's pods; empty if the boundary contains no database.
    pub database_pods: &'a BTreeSet<String>,
    /// UIDs of measured pods that still exist, but whose own containers ended during the attempt. The
    /// candidate causes a crash. A crash is an outcome and never makes an attempt void: the node's energy
    /// stays valid, and only the counters of these pods may be lost.
    pub restarted_pods: &'a BTreeSet<String>,
    /// UIDs of the injector's pods. They count neither as measured pods nor as neighbours. Empty if the
    /// injector runs on another node.
    pub injector_pods: &'a BTreeSet<String>,
    /// The load after the measured window, if known.
    pub tail: Option<Tail>,
    /// The known facts about the measured window's ends.
    pub ends: Ends,
    /// The divisor of the joules: requests of the measured window with an expected answer, or the units that
    /// count in their place.
    pub units: f64,
    /// The limits that the readings must satisfy.
    pub limits: Limits,
}

/// The load between the measured window and the settling time before the second idle baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Its interval, in the readings' clock.
    pub window: Window,
    /// Its requests per second divided by the measured run's requests per second.
    pub relative_load: f64,
}

/// The known facts about the measured window's ends, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ends {
    /// The timing error of the window: the uncertainty of the clocks' offset.
    pub clock_uncertainty_seconds: f64,
    /// Time without load right before the window.
    pub gap_before_seconds: f64,
    /// Time without load right after the window.
    pub gap_after_seconds: f64,
    /// Time with the window's load before it: the warm-up.
    pub steady_before_seconds: f64,
    /// Time with the window's load after it: the tail.
    pub steady_after_seconds: f64,
}

/// Allowance for the rounding of times near 10⁹ s: a window of exactly the minimum length passes.
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
    /// Standard uncertainty of the net energy, in joules, from idle baselines that differ by more than chance
    /// and the board's heat explain. Absent if they do not differ by more.
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
    /// Why the figures per pod (attributed, CPU time) are absent although the meter reports pods.
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
    /// It also covers gaps in the load, an instrument that is seldom read, and the counter's steps. It
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

/// The node's counter at one reading.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadingMark {
    /// The time of the counter's value, in Unix seconds.
    pub at_unix_seconds: f64,
    /// The node's energy counter, in joules.
    pub node_joules: f64,
}

/// The readings around a window's ends: for each end, the last reading before it and the first reading after
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Bracket {
    /// Around the beginning.
    pub start: [ReadingMark; 2],
    /// Around the end.
    pub end: [ReadingMark; 2],
}

/// The brackets of an attempt's three windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Brackets {
    /// Of the idle baseline before the load.
    pub idle_before: Bracket,
    /// Of the measured window.
    pub measured: Bracket,
    /// Of the idle baseline after the load.
    pub idle_after: Bracket,
}

/// Computes the energy of one attempt, or the reason why its readings cannot be trusted.
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

/// The relative standard uncertainty that the meter reports for the window's energy.
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

/// The figures that depend on the counters of single pods.
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
        // The database's share is known only if there is no database, or if all of its pods are counted.
        let database_share = if attempt.database_pods.is_empty() {
            Some(0.0)
        } else {
            database_joules
        };
        let attributed = joules(attempt.candidate_pods).map(|candidate_joules| Attributed {
            candidate_joules,
            database_joules,
            // Rounding can make the rest slightly negative. A larger difference is void already.
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

/// The shortest configured window for slopes of memory and latency, in seconds: a judgement. Earlier, caches
/// fill and allocators warm up, and a slope over that time cannot be extrapolated.
pub const LONG_WINDOW_SECONDS: f64 = 600.0;

fn memory_growth(evidence: &Evidence<'_>) -> Option<f64> {
    let Evidence { attempt, series } = evidence;
    if !attempt.measured.is_long() || !attempt.candidate_pods.is_disjoint(attempt.restarted_pods) {
        return None;
    }
    series.working_set_growth_bytes_per_second(attempt.measured, attempt.candidate_pods)
}

/// Joules or seconds per *successful* request. Without a success there is no divisor.
fn per_request(amount: f64, units: f64) -> Option<f64> {
    (units > 0.0).then(|| amount / units)
}

#[cfg(test)]
mod tests;
