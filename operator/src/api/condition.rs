//! Types of conditions.

/// Condition: the run has ended, with any verdict.
pub const COMPLETE: &str = "Complete";
/// Condition: the run ended with the verdict `Pass`.
pub const SUCCEEDED: &str = "Succeeded";
/// Condition (kstatus): as `Succeeded`, but `False` while running.
pub const READY: &str = "Ready";
/// Condition (kstatus, abnormal-true): the operator is working or waiting.
pub const RECONCILING: &str = "Reconciling";
/// Condition (kstatus, abnormal-true): the run ended without a `Pass` and continues only if a user acts.
pub const STALLED: &str = "Stalled";
