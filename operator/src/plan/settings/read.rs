//! Numbers and durations of a spec.

use super::error::SettingsError;
use crate::api::{Decimal, HumanDuration};

pub(super) fn number(field: &'static str, decimal: &Decimal) -> Result<f64, SettingsError> {
    decimal
        .number()
        .map_err(|source| SettingsError::Quantity { field, source })
}

pub(super) fn seconds(field: &'static str, duration: &HumanDuration) -> Result<f64, SettingsError> {
    duration
        .seconds()
        .map_err(|source| SettingsError::Quantity { field, source })
}

pub(super) fn no_candidate(field: &'static str, name: &str) -> SettingsError {
    SettingsError::NoCandidate {
        field,
        name: name.to_owned(),
    }
}
