//! Why candidates are not compared.

use crate::api::Reason;

/// Why two candidates are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// Reason code.
    pub reason: Reason,
    /// For people, with numbers.
    pub message: String,
}
