//! Numbers and durations of a spec.

use crate::api::{Decimal, HumanDuration, QuantityError};

/// A duration or decimal that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {source}")]
pub struct FieldError {
    /// Field of the spec.
    pub field: &'static str,
    /// What is wrong.
    pub source: QuantityError,
}

/// A decimal.
pub fn number(field: &'static str, decimal: &Decimal) -> Result<f64, FieldError> {
    decimal
        .number()
        .map_err(|source| FieldError { field, source })
}

/// A duration in seconds.
pub fn seconds(field: &'static str, duration: &HumanDuration) -> Result<f64, FieldError> {
    duration
        .seconds()
        .map_err(|source| FieldError { field, source })
}
