//! The record of an attempt that has ended.

use serde_json::{Map, Value};

use crate::{
    api::{FrugalityTrialStatus, Outcome},
    time,
};

/// The fields that only a measured attempt keeps.
const FIGURES: [&str; 3] = ["requests", "energy", "columns"];

/// Adds the outcome, its reason and the time to an attempt's record. Only a measured attempt keeps its figures.
#[must_use]
pub fn ended(
    status: FrugalityTrialStatus,
    outcome: Outcome,
    reason: impl AsRef<str>,
    message: &str,
    now_unix_seconds: f64,
) -> FrugalityTrialStatus {
    let has_figures = outcome == Outcome::Measured;
    FrugalityTrialStatus {
        requests: status.requests.filter(|_| has_figures),
        energy: status.energy.filter(|_| has_figures),
        columns: status.columns.filter(|_| has_figures),
        outcome: Some(outcome),
        reason: Some(reason.as_ref().to_owned()),
        message: Some(message.chars().take(2000).collect()),
        finished_at: time::rfc3339(now_unix_seconds),
        ..status
    }
}

/// The record as a merge patch over an earlier record of the attempt. A merge patch keeps absent fields, so absent figures are
/// null.
#[must_use]
pub fn patch(record: &FrugalityTrialStatus) -> Value {
    // A record is always representable.
    let mut patch = serde_json::to_value(record).unwrap_or_default();
    let absent = FIGURES.map(|field| (field.to_owned(), Value::Null));
    if let Some(fields) = patch.as_object_mut() {
        let mut all = Map::from_iter(absent);
        all.append(fields);
        *fields = all;
    }
    patch
}
