//! Verdicts that the status no longer tells: of earlier runs, and of this one by other budgets.

use std::{cmp::Reverse, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::{
    identity::measurement_id,
    ledger::{Ledger, outcome_of},
    settings::Settings,
    status::ratio,
    time,
    verdict::judge,
};
use crate::api::{
    FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, LABEL_MEASUREMENT, Outcome,
    PastVerdict, Verdict, reason,
};

/// Verdicts that are kept; they are at most 3 kB together.
const MAX_ENTRIES: usize = 10;

/// The history of a status that is about to tell a verdict, or none yet, of a run. What the status told
/// before goes into it once it no longer stands. A status that was wiped is recovered from the ledger,
/// as far as that goes.
#[must_use]
pub fn history(
    benchmark: &FrugalityBenchmark,
    run: &str,
    verdict: Option<Verdict>,
    settings: Option<&Settings>,
    trials: &[FrugalityTrial],
) -> Vec<PastVerdict> {
    let Some(told) = &benchmark.status else {
        return recovered(benchmark, run, settings, trials);
    };
    let is_judged_anew = verdict.is_some()
        && verdict != told.verdict
        && benchmark.metadata.generation != told.observed_generation;
    if told.run.as_deref() != Some(run) || is_judged_anew {
        with_told(told)
    } else {
        told.history.clone()
    }
}

/// The history with the verdict that a status tells, if it tells one of a run.
#[must_use]
pub fn with_told(told: &FrugalityBenchmarkStatus) -> Vec<PastVerdict> {
    let past = || {
        let columns = told.columns.clone().unwrap_or_default();
        let is_end = |c: &&Condition| c.type_ == reason::COMPLETE && c.status == "True";
        let end = told.conditions.iter().find(is_end);
        Some(PastVerdict {
            run: told.run.clone()?,
            verdict: told.verdict?,
            reason: columns.reason,
            winner: told.winner.clone(),
            ratio: columns.ratio,
            ended_at: end.and_then(|end| time::whole_second(end.last_transition_time.0)),
            generation: told.observed_generation,
        })
    };
    past()
        .into_iter()
        .chain(told.history.iter().cloned())
        .take(MAX_ENTRIES)
        .collect()
}

/// Runs of which the ledger alone tells how they ended: those that failed, and re-runs of what the spec
/// measures now, judged by its budgets of now. How many blocks another spec asked for is nowhere else.
fn recovered(
    benchmark: &FrugalityBenchmark,
    run: &str,
    settings: Option<&Settings>,
    trials: &[FrugalityTrial],
) -> Vec<PastVerdict> {
    let mut runs: BTreeMap<&str, Ledger<'_>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.spec.run != run) {
        let of_run = || Ledger::of(&trial.spec.run, trials);
        runs.entry(&trial.spec.run).or_insert_with(of_run);
    }
    let mut runs: Vec<_> = runs.into_iter().collect();
    runs.sort_by_key(|(_, ledger)| Reverse(ledger.last_finished()));
    let measurement = measurement_id(benchmark);
    let told = |(run, ledger): (&str, Ledger<'_>)| {
        let past = PastVerdict {
            run: run.to_owned(),
            verdict: Verdict::Error,
            reason: None,
            winner: None,
            ratio: None,
            ended_at: ledger.last_finished().and_then(time::whole_second),
            generation: None,
        };
        let mut entries = ledger.entries().iter();
        if let Some(failed) = entries.find(|e| outcome_of(e) == Some(Outcome::Failed)) {
            let reason = failed.status.as_ref().and_then(|s| s.reason.clone());
            return Some(PastVerdict { reason, ..past });
        }
        let is_re_run =
            |e: &&FrugalityTrial| e.labels().get(LABEL_MEASUREMENT) == Some(&measurement);
        ledger.entries().iter().copied().find(is_re_run)?;
        let judgement = judge(settings?, &ledger)?;
        Some(PastVerdict {
            verdict: judgement.verdict,
            reason: Some(judgement.reason),
            winner: judgement.figures.as_ref().and_then(|f| f.winner.clone()),
            ratio: judgement.figures.as_deref().and_then(ratio),
            ..past
        })
    };
    runs.into_iter()
        .filter_map(told)
        .take(MAX_ENTRIES)
        .collect()
}
