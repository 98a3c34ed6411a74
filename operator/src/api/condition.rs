//! Types of conditions.

/// Condition: the run has ended, however it ended.
pub const COMPLETE: &str = "Complete";
/// Condition: the run ended with the verdict `Pass`.
pub const SUCCEEDED: &str = "Succeeded";
/// Condition (kstatus): as `Succeeded`, `False` while running.
pub const READY: &str = "Ready";
/// Condition (kstatus, abnormal-true): the operator is at work or waits.
pub const RECONCILING: &str = "Reconciling";
/// Condition (kstatus, abnormal-true): the run ended without a `Pass` and goes on only if somebody acts.
pub const STALLED: &str = "Stalled";
