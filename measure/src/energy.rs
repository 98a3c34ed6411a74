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

mod attempt;
mod baseline;
mod brackets;
mod checks;
mod conditions;
mod counters;
mod drift;
mod ends;
mod evidence;
mod figures;
mod idle;
mod noise;
mod pooled;
mod shared;
mod taken;
mod trace;

use crate::model::Parts;
use std::collections::BTreeSet;

use self::{
    attempt::per_request,
    baseline::{Gross, Net},
    evidence::AttemptEvidence,
    idle::IdleUse,
};
pub use self::{
    attempt::{AttemptReadings, Ends, LONG_WINDOW_SECONDS, Limits, Tail, Window},
    baseline::is_baseline_too_short,
    brackets::{Bracket, Brackets, ReadingMark},
    checks::same_meter,
    conditions::Conditions,
    figures::{Attributed, CpuSeconds, EnergyFigures, WorkloadFigures},
    pooled::{Measured, PooledIdle},
    shared::NetAttributed,
    trace::{MOST_PHASES, MOST_POINTS, PhaseName, TracePhase, TraceReadings, trace},
};
use crate::reading::{MeterIdentity, PodReading};
pub use crate::void::Void;

/// Computes the energy of one attempt, or the reason why its readings cannot be trusted.
pub fn evaluate(attempt: &AttemptReadings<'_>) -> Result<EnergyFigures, Void> {
    let evidence = AttemptEvidence::gather(attempt)?;
    checks::run(&evidence)?;
    figures(&evidence)
}

fn figures(evidence: &AttemptEvidence<'_>) -> Result<EnergyFigures, Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let gross = Gross::of(evidence)?;
    let idle = IdleUse::of(evidence);
    let net = Net::of(&gross).unless(idle.withheld);
    let by_pod = ByPod::of(evidence);
    let shared = NetAttributed::of(evidence, net.joules).filter(|_| by_pod.withheld.is_none());
    let lost_at_rest = shared.as_ref().and_then(|_| lost_at_rest(evidence));
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
        net_attributed: shared.filter(|_| lost_at_rest.is_none()),
        attributed: by_pod.attributed,
        cpu: by_pod.cpu,
        workloads: by_pod.workloads,
        pods_withheld: by_pod.withheld.or(lost_at_rest),
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
fn meter_relative_uncertainty(evidence: &AttemptEvidence<'_>, node_joules: f64) -> Option<f64> {
    let AttemptEvidence { attempt, series } = evidence;
    let Some(model) = series.last().meter.model else {
        return series.relative_uncertainty();
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

/// The figures that depend on the counters of single pods.
#[derive(Default)]
struct ByPod {
    attributed: Option<Attributed>,
    cpu: Option<CpuSeconds>,
    workloads: Vec<WorkloadFigures>,
    withheld: Option<String>,
}

impl ByPod {
    fn of(evidence: &AttemptEvidence<'_>) -> Self {
        let AttemptEvidence { attempt, series } = evidence;
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

/// Why the measured pods' counters do not show their use in the idle baselines: one of them falls. The fall would count as work
/// that the pod had not done at rest.
fn lost_at_rest(evidence: &AttemptEvidence<'_>) -> Option<String> {
    let AttemptEvidence { attempt, series } = evidence;
    let baselines = [attempt.idle_before, attempt.idle_after];
    let falls = |uid: &&String| baselines.iter().any(|it| series.count_falls(*it, uid));
    let uid = attempt.pods().find(falls)?;
    Some(format!(
        "the counters of pod {uid} were lost when its container ended in an idle baseline, so only net joules are not shared \
         among pods"
    ))
}

fn memory_growth(evidence: &AttemptEvidence<'_>) -> Option<f64> {
    let AttemptEvidence { attempt, series } = evidence;
    if !attempt.measured.is_long() || !attempt.candidate_pods.is_disjoint(attempt.restarted_pods) {
        return None;
    }
    series.working_set_growth_bytes_per_second(attempt.measured, attempt.candidate_pods)
}

#[cfg(test)]
mod tests;
