//! Reason codes. A reason is part of the API: `docs/runbook.md` explains each.

/// Why a benchmark is in its state, or how an attempt ended. [`frugality_measure::void::Void`] has the reasons for
/// void attempts that the arithmetic finds.
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
    /// The spec has no budgets: the figures are reported, and no gate opens.
    NoBudgets,
    /// At least one budget is exceeded by more than the uncertainty.
    BudgetExceeded,
    /// A budget lies inside the interval of its figure: more blocks are needed.
    BudgetWithinUncertainty,
    /// The figure that a budget limits could not be determined.
    FigureWithheld,
    /// A budget on a ratio is closer to 1 than the noise floor of the control.
    BudgetBelowNoiseFloor,
    /// The candidates' answers differ in size, so their costs are not compared.
    ResponsesDiffer,
    /// The candidates' requests differ in the number of database transactions, so their costs are not compared.
    QueriesDiffer,
    /// The candidates' cycles differ in the number of requests, so their costs are not compared.
    RequestsDiffer,
    /// Many requests to a candidate failed, so its figures cover only a part of its work, and it is not compared.
    TooManyErrors,
    /// The injector, not the candidate, limited the rate. The candidate's rate, times and gross joules are
    /// withheld, and it is not compared.
    InjectorLimited,
    /// No FrugalityBaseline of the name in `spec.baseline` existed when the run got its nodes, so the candidate was
    /// compared with nothing.
    NoBaseline,
    /// The FrugalityBaseline that `spec.baseline.anchor` names does not exist.
    NoAnchor,
    /// The ledger holds the baselines of the run: a later change of a FrugalityBaseline does not affect the run.
    BaselineFrozen,
    /// The candidate has become the baseline.
    Promoted,
    /// The verdict is Pass, and the candidate has not become the baseline.
    NotPromoted,
    /// The run has fewer blocks than a report needs.
    TooFewBlocks,
    /// Another benchmark is being measured.
    Queued,
    /// Pods of an earlier run are still terminating.
    CleaningUp,
    /// The cluster is not ready for the run yet. The message says what the operator waits for.
    Waiting,
    /// The database is being created.
    StartingDatabase,
    /// The database is being filled.
    Seeding,
    /// The trials are running.
    Measuring,
    /// The spec sets `suspend`. An attempt under way is void.
    Suspended,
    /// The spec asks for something impossible.
    InvalidSpec,
    /// No node may be measured.
    NoMeasuredNode,
    /// There is no second node for the injector, and the spec does not allow sharing.
    NoInjectorNode,
    /// No meter runs on the measured node.
    MeterMissing,
    /// The meter answers without power metrics. An attempt under way is void.
    NoPowerMetrics,
    /// Power is computed from CPU use, and the spec does not let computed power decide a budget.
    ModelledPowerNotAllowed,
    /// The candidates were measured by meters that measure different parts of their nodes, so their costs are not compared.
    ZonesDiffer,
    /// The candidates were measured by different meters, and one of these reports no accuracy.
    MeterAccuracyUnknown,
    /// The installation gives the operator no right to run benchmarks in the namespace.
    NamespaceNotAllowed,
    /// CloudNativePG is not installed in the cluster.
    #[strum(serialize = "CloudNativePGMissing")]
    CloudNativePgMissing,
    /// An object with the name of a child exists and does not belong to this benchmark.
    NameConflict,
    /// The meter invents its power values.
    MeterFake,
    /// A ResourceQuota of the namespace has no room for an object of the run. The run waits for room.
    QuotaExceeded,
    /// The API server refused a child.
    ChildRefused,
    /// An image could not be pulled.
    ImagePullFailed,
    /// A candidate's image wants to run as root, and its pod must not.
    ImageRunsAsRoot,
    /// A candidate's image gives its user as a name, so kubelet can't check that the user is not root.
    ImageUserNotNumeric,
    /// The database did not start.
    DatabaseFailed,
    /// The seed Job failed, or counted an unexpected number of rows.
    SeedFailed,
    /// A candidate's container ended twice before it was ready.
    CandidateCrashed,
    /// A candidate did not become ready.
    CandidateNotReady,
    /// A load level has too low a rate for the number of connections.
    LevelTooLow,
    /// A candidate answered no request as expected.
    NoSuccessfulRequest,
    /// The benchmark's script can't be run.
    ScriptFailed,
    /// The run did not end within its deadline.
    DeadlineExceeded,
    /// An entry of the ledger can't be read.
    LedgerUnreadable,
    /// A block was void as many times as the spec allows.
    TooManyVoidAttempts,
    /// Void: the readings do not cover the attempt without a gap, for example because the operator restarted.
    ReadingsInterrupted,
    /// Void: a measured pod was replaced from outside.
    PodReplaced,
    /// Void: an edit of the spec ended the run while the attempt was under way.
    Superseded,
    /// Void: too much time passed between two trials of the block, or between the idle baseline and the load.
    PausedTooLong,
    /// Void: the cluster evicted or ended a pod of the attempt.
    PodEvicted,
    /// A node of a run that has begun is no longer in the cluster. An attempt under way is void.
    NodeRemoved,
    /// Void: pods of another run, attempt or benchmark were on the nodes.
    OtherPods,
    /// Void: a Service of the attempt was edited or deleted from outside.
    ServiceChanged,
    /// Void: a Deployment of the attempt was edited from outside.
    DeploymentChanged,
    /// Void: a pod of the attempt does not run the containers that the operator specified.
    PodChanged,
    /// Void: an address other than the attempt's own pods was behind one of its Services.
    ForeignEndpoint,
    /// Void: the injector's Job was deleted from outside.
    InjectorDeleted,
    /// Void: the injector gave no result.
    InjectorFailed,
    /// Void: rows or digest differ from the seeded data.
    DataChanged,
    /// Void: an image's digest differs from the digest in the run's earlier trials.
    ImageChanged,
    /// Measured: the attempt passed every check.
    Measured,
}

impl Reason {
    /// The code in conditions, events and the ledger.
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
