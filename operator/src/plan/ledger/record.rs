//! The record of an attempt that has ended.

use crate::{
    api::{FrugalityTrialStatus, Outcome},
    time,
};

/// Adds the outcome, its reason and the time to an attempt's record.
#[must_use]
pub fn ended(
    status: FrugalityTrialStatus,
    outcome: Outcome,
    reason: impl AsRef<str>,
    message: &str,
    now_unix_seconds: f64,
) -> FrugalityTrialStatus {
    FrugalityTrialStatus {
        outcome: Some(outcome),
        reason: Some(reason.as_ref().to_owned()),
        message: Some(message.chars().take(2000).collect()),
        finished_at: time::rfc3339(now_unix_seconds),
        ..status
    }
}
