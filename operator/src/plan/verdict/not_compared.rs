//! Why candidates are not compared.

use crate::api::Reason;

/// Why two candidates are not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// Reason code.
    pub reason: Reason,
    /// Message for people, with numbers.
    pub message: String,
}
