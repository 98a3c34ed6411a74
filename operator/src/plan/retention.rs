//! The entries of the ledger that `spec.runsToKeep` does not keep.
//!
//! Runs with the settings of a run that stays also stay. Each of them is a try, which makes the other verdicts stricter.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    api::{FrugalityTrial, LABEL_MEASUREMENT},
    plan::{action::ForgottenEntry, baseline::is_frozen_entry, ledger::outcome_of},
};

/// Most entries that one pass deletes.
pub(super) const MOST_PER_PASS: usize = 50;

/// The entries to delete after the end of `run`, of the oldest run first. `keep` is the number of runs to keep, this
/// run included. A run with an open attempt stays.
///
/// A run loses its last attempt first, and its preparation last. If the deletion is interrupted and the settings of
/// the run come back, the run continues after its last remaining attempt. If that was long ago, half a block is measured
/// again.
#[must_use]
pub fn surplus(run: &str, trials: &[FrugalityTrial], keep: usize) -> Vec<ForgottenEntry> {
    let mut runs: BTreeMap<&str, Vec<&FrugalityTrial>> = BTreeMap::new();
    for trial in trials {
        runs.entry(&trial.spec.run).or_default().push(trial);
    }
    let Some(current) = runs.remove(run) else {
        return Vec::new();
    };
    let mut others: Vec<_> = runs.into_values().collect();
    others.sort_by_key(|entries| Reverse(newest(entries)));
    let kept = keep.saturating_sub(1).min(others.len());
    let older = others.split_off(kept);
    let staying = current.into_iter().chain(others.into_iter().flatten());
    let measurements: BTreeSet<_> = staying.filter_map(measurement).collect();
    let is_try = |entries: &[&FrugalityTrial]| {
        let mut of_run = entries.iter().filter_map(|it| measurement(it));
        of_run.any(|it| measurements.contains(it))
    };
    older
        .into_iter()
        .filter(|entries| !is_try(entries))
        .filter(|entries| entries.iter().all(|it| has_ended(it)))
        .rev()
        .flat_map(|mut entries| {
            entries.sort_by_key(|it| Reverse((it.spec.block, it.spec.attempt, it.spec.position)));
            entries
        })
        .filter(|entry| entry.metadata.deletion_timestamp.is_none())
        .map(|entry| ForgottenEntry {
            name: entry.name_any(),
            uid: entry.uid().unwrap_or_default(),
        })
        .take(MOST_PER_PASS)
        .collect()
}

fn has_ended(entry: &FrugalityTrial) -> bool {
    outcome_of(entry).is_some() || is_frozen_entry(entry)
}

fn measurement(trial: &FrugalityTrial) -> Option<&String> {
    trial.labels().get(LABEL_MEASUREMENT)
}

fn newest(entries: &[&FrugalityTrial]) -> Option<Timestamp> {
    let created = |it: &&FrugalityTrial| it.creation_timestamp().map(|time| time.0);
    entries.iter().filter_map(created).max()
}
