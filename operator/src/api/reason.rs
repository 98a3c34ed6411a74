//! Reason codes. A reason is part of the API: `docs/runbook.md` explains each.

/// Why a benchmark is in its state, or how an attempt ended. The reasons of void attempts that the arithmetic finds are
/// in [`frugality_measure::void::Void`].
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    strum::AsRefStr,
    strum::EnumIter,
    strum::EnumString,
    strum::IntoStaticStr,
)]
pub enum Reason {
    /// Every budget is met.
    BudgetsMet,
    /// The spec has no budgets: the figures are reported, nothing is gated.
    NoBudgets,
    /// At least one budget is exceeded by more than the uncertainty.
    BudgetExceeded,
    /// A budget lies inside the interval of its figure: more blocks are needed.
    BudgetWithinUncertainty,
    /// The figure that a budget limits could not be determined.
    FigureWithheld,
    /// A budget on a ratio is closer to 1 than what the control differs from itself by.
    BudgetBelowNoiseFloor,
    /// The candidates' answers differ in size: what they cost is not compared.
    ResponsesDiffer,
    /// The candidates' requests differ in the number of the database's transactions: what they cost is not
    /// compared.
    QueriesDiffer,
    /// The candidates' cycles differ in the number of requests: what they cost is not compared.
    RequestsDiffer,
    /// The injector, and not the candidate, set the rate: its figures are withheld, and it is not compared.
    InjectorLimited,
    /// Fewer blocks than a report needs.
    TooFewBlocks,
    /// Another benchmark is being measured.
    Queued,
    /// Pods of an earlier run are still ending.
    CleaningUp,
    /// The cluster is not ready for the run yet; the message says what is awaited.
    Waiting,
    /// The database is being created.
    StartingDatabase,
    /// The database is being filled.
    Seeding,
    /// Trials are being run.
    Measuring,
    /// The spec says `suspend`; void where an attempt was under way.
    Suspended,
    /// The spec asks for something that cannot be.
    InvalidSpec,
    /// No node that may be measured.
    NoMeasuredNode,
    /// No second node for the injector, and the spec does not allow sharing.
    NoInjectorNode,
    /// No meter runs on the measured node.
    MeterMissing,
    /// The meter answers, but without power metrics; void where it happens in an attempt.
    NoPowerMetrics,
    /// Power is computed from CPU use, and the spec does not let that decide a budget.
    ModelledPowerNotAllowed,
    /// Candidates were measured by meters of their own, one of which tells no accuracy.
    MeterAccuracyUnknown,
    /// CloudNativePG is not installed in the cluster.
    #[strum(serialize = "CloudNativePGMissing")]
    CloudNativePgMissing,
    /// An object with a child's name exists and is not this benchmark's.
    NameConflict,
    /// The meter's power is invented.
    MeterFake,
    /// A ResourceQuota of the namespace has no room for an object of the run, which waits for room.
    QuotaExceeded,
    /// The API server refused a child.
    ChildRefused,
    /// An image could not be pulled.
    ImagePullFailed,
    /// A candidate's image wants to run as root, which its pod may not.
    ImageRunsAsRoot,
    /// A candidate's image names its user by a name, so that nobody can tell whether it is root.
    ImageUserNotNumeric,
    /// The database did not start.
    DatabaseFailed,
    /// The seed Job failed or counted other rows than expected.
    SeedFailed,
    /// A candidate's container ended twice before it was ready.
    CandidateCrashed,
    /// A candidate did not become ready.
    CandidateNotReady,
    /// A candidate answered no request as expected.
    NoSuccessfulRequest,
    /// The benchmark's script can't be run.
    ScriptFailed,
    /// The run did not end within its deadline.
    DeadlineExceeded,
    /// An entry of the ledger can't be read.
    LedgerUnreadable,
    /// A block was void as often as the spec allows.
    TooManyVoidAttempts,
    /// Void: the readings do not cover the attempt without a gap (the operator was restarted, say).
    ReadingsInterrupted,
    /// Void: a measured pod was replaced from outside.
    PodReplaced,
    /// Void: an edit of the spec ended the run while the attempt was under way.
    Superseded,
    /// Void: the cluster evicted or ended a pod of the attempt.
    PodEvicted,
    /// A node of a run that has begun is no longer in the cluster; void where an attempt was under way.
    NodeRemoved,
    /// Void: pods of another run, attempt or benchmark were on the nodes.
    OtherPods,
    /// Void: a Service of the attempt was edited or deleted from outside.
    ServiceChanged,
    /// Void: a Deployment of the attempt was edited from outside.
    DeploymentChanged,
    /// Void: a pod of the attempt does not run what the operator made it to run.
    PodChanged,
    /// Void: something else than the attempt's own pods was behind one of its Services.
    ForeignEndpoint,
    /// Void: the injector's Job was deleted from outside.
    InjectorDeleted,
    /// Void: Fortio did not run to its end.
    FortioInterrupted,
    /// Void: the injector gave no result.
    InjectorFailed,
    /// Void: the clocks of injector and meter could not be compared closely enough.
    ClockOffsetUnknown,
    /// Void: rows or digest differ from what was seeded.
    DataChanged,
    /// Void: an image's digest is not that of the run's earlier trials.
    ImageChanged,
    /// Measured: the attempt passed every check.
    Measured,
}

impl Reason {
    /// The code, as it stands in conditions, events and the ledger.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn every_reason_is_in_the_runbook() {
        let runbook = include_str!("../../../docs/runbook.md");
        let missing: Vec<&str> = Reason::iter()
            .map(Reason::as_str)
            .filter(|reason| !runbook.contains(&format!("`{reason}`")))
            .collect();
        assert!(missing.is_empty(), "docs/runbook.md lacks {missing:?}");
    }
}
