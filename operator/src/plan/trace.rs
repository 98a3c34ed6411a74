//! The course of an attempt that has ended.

use frugality_measure::{
    energy::{TraceReadings, trace},
    report::InjectionReport,
    slices::Slices,
};
use jiff::Timestamp;
use kube::{Resource, ResourceExt, api::ObjectMeta};

use crate::{
    api::{FrugalityTrace, FrugalityTraceSpec, FrugalityTrial, FrugalityTrialStatus, Role},
    plan::{facts::Observed, objects::INJECTOR_CONTAINER},
    time::unix_seconds,
};

/// The course to store in this pass. First comes the attempt that ends with this record, given with its name. Then comes
/// an attempt that ended in an earlier pass and still has readings: that pass went wrong before it stored the course.
/// `successes` are the status codes of a success in the attempts of a run. Attempts of another run have no slices, because
/// its codes are not known.
pub(in crate::plan) fn next(
    record: Option<(String, &FrugalityTrialStatus)>,
    observed: &Observed,
    successes: (&str, &[u16]),
) -> Option<FrugalityTrace> {
    let trials = observed.trials.iter();
    let ends = record.and_then(|(name, record)| {
        let trial = trials.clone().find(|it| it.name_any() == name)?;
        of(trial, record, observed, successes)
    });
    ends.or_else(|| {
        let mut left = trials.filter_map(|it| Some((it, it.status.as_ref()?)));
        left.find_map(|(trial, record)| of(trial, record, observed, successes))
    })
}

/// The course of an attempt with this record. `None` if the attempt has not ended, if it ended before its first idle
/// baseline, or if the operator has no readings of it.
fn of(
    trial: &FrugalityTrial,
    record: &FrugalityTrialStatus,
    observed: &Observed,
    (run, expected_status): (&str, &[u16]),
) -> Option<FrugalityTrace> {
    record.outcome?;
    let name = trial.name_any();
    let session = observed.sessions.get(&name)?;
    // A session that waits for its course goes on reading.
    let finished = record.finished_at.as_ref()?.parse::<Timestamp>().ok()?;
    let last = unix_seconds(finished) + observed.operator_ahead_seconds;
    let readings = &session.readings;
    let count = readings.partition_point(|it| it.scraped_at_unix_seconds <= last);
    let phases = trace(&TraceReadings {
        readings: &readings[..count],
        idle_before: record.idle_before?,
        windows: record.window.zip(record.idle_after),
        candidate_pods: &record.candidate_pods.iter().cloned().collect(),
        database_pods: &record.database_pods.iter().cloned().collect(),
    });
    if phases.is_empty() {
        return None;
    }
    let provenance = session
        .readings
        .iter()
        .map(|it| it.meter.provenance)
        .max()?;
    // Without blockOwnerDeletion, which would need a right to the trial's finalizers.
    let owner = trial.owner_ref(&())?;
    let spec = &trial.spec;
    Some(FrugalityTrace {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: trial.namespace(),
            labels: trial.metadata.labels.clone(),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: FrugalityTraceSpec {
            benchmark: spec.benchmark.clone(),
            run: spec.run.clone(),
            point: spec.point.clone(),
            block: spec.block,
            attempt: spec.attempt,
            candidate: spec.candidate.clone(),
            provenance,
            phases,
            // Without a window, the time of the slices is not known.
            slices: record
                .window
                .filter(|_| spec.run == run)
                .and_then(|_| slices(trial, observed, expected_status)),
        },
    })
}

/// The slices in the report of the attempt's injector.
fn slices(trial: &FrugalityTrial, observed: &Observed, expected_status: &[u16]) -> Option<Slices> {
    let name = trial.name_any();
    let mut pods = observed.pods.iter();
    let injector = pods.find(|pod| {
        pod.role == Role::Injector.as_str() && pod.trial.as_deref() == Some(name.as_str())
    })?;
    let end = injector.terminated.get(INJECTOR_CONTAINER)?;
    let report = InjectionReport::decode(&end.message).ok()?;
    report.slices_of_figures(expected_status).cloned()
}
