//! The record of an attempt that has ended.

use crate::{
    api::{FrugalityTrialStatus, Outcome},
    time,
};

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
