//! Reads numbers and durations of a spec.

use crate::api::{Decimal, HumanDuration, QuantityError};

/// A duration or decimal that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {source}")]
pub struct FieldError {
    /// Field of the spec.
    pub field: &'static str,
    /// The error of the value's parser.
    pub source: QuantityError,
}

/// Parses a decimal.
pub fn number(field: &'static str, decimal: &Decimal) -> Result<f64, FieldError> {
    decimal
        .number()
        .map_err(|source| FieldError { field, source })
}

/// Parses a duration; the result is in seconds.
pub fn seconds(field: &'static str, duration: &HumanDuration) -> Result<f64, FieldError> {
    duration
        .seconds()
        .map_err(|source| FieldError { field, source })
}
