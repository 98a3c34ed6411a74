//! Condition types and reason codes. A reason is part of the API: `docs/runbook.md` explains each.

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

/// Every budget is met.
pub const BUDGETS_MET: &str = "BudgetsMet";
/// The spec has no budgets: the figures are reported, nothing is gated.
pub const NO_BUDGETS: &str = "NoBudgets";
/// At least one budget is exceeded by more than the uncertainty.
pub const BUDGET_EXCEEDED: &str = "BudgetExceeded";
/// A budget lies inside the interval of its figure: more blocks are needed.
pub const BUDGET_WITHIN_UNCERTAINTY: &str = "BudgetWithinUncertainty";
/// The figure that a budget limits could not be determined.
pub const FIGURE_WITHHELD: &str = "FigureWithheld";
/// A budget on a ratio is closer to 1 than what the control differs from itself by.
pub const BUDGET_BELOW_NOISE_FLOOR: &str = "BudgetBelowNoiseFloor";
/// The candidates' answers differ in size: what they cost is not compared.
pub const RESPONSES_DIFFER: &str = "ResponsesDiffer";
/// The candidates' requests differ in the number of the database's transactions: what they cost is not
/// compared.
pub const QUERIES_DIFFER: &str = "QueriesDiffer";
/// The candidates' cycles differ in the number of requests: what they cost is not compared.
pub const REQUESTS_DIFFER: &str = "RequestsDiffer";
/// The injector, and not the candidate, set the rate: its figures are withheld, and it is not compared.
pub const INJECTOR_LIMITED: &str = "InjectorLimited";
/// Fewer blocks than a report needs.
pub const TOO_FEW_BLOCKS: &str = "TooFewBlocks";

/// Another benchmark is being measured.
pub const QUEUED: &str = "Queued";
/// Pods of an earlier run are still ending.
pub const CLEANING_UP: &str = "CleaningUp";
/// The cluster is not ready for the run yet; the message says what is awaited.
pub const WAITING: &str = "Waiting";
/// The database is being created.
pub const STARTING_DATABASE: &str = "StartingDatabase";
/// The database is being filled.
pub const SEEDING: &str = "Seeding";
/// Trials are being run.
pub const MEASURING: &str = "Measuring";
/// The spec says `suspend`; void where an attempt was under way.
pub const SUSPENDED: &str = "Suspended";

/// The spec asks for something that cannot be.
pub const INVALID_SPEC: &str = "InvalidSpec";
/// No node that may be measured.
pub const NO_MEASURED_NODE: &str = "NoMeasuredNode";
/// No second node for the injector, and the spec does not allow sharing.
pub const NO_INJECTOR_NODE: &str = "NoInjectorNode";
/// No meter runs on the measured node.
pub const METER_MISSING: &str = "MeterMissing";
/// The meter answers, but without power metrics; void where it happens in an attempt.
pub const NO_POWER_METRICS: &str = "NoPowerMetrics";
/// Power is computed from CPU use, and the spec does not let that decide a budget.
pub const MODELLED_POWER_NOT_ALLOWED: &str = "ModelledPowerNotAllowed";
/// Candidates were measured by meters of their own, one of which tells no accuracy.
pub const METER_ACCURACY_UNKNOWN: &str = "MeterAccuracyUnknown";
/// CloudNativePG is not installed in the cluster.
pub const CLOUD_NATIVE_PG_MISSING: &str = "CloudNativePGMissing";
/// An object with a child's name exists and is not this benchmark's.
pub const NAME_CONFLICT: &str = "NameConflict";
/// The meter's power is invented.
pub const METER_FAKE: &str = "MeterFake";
/// A ResourceQuota of the namespace has no room for an object of the run, which waits for room.
pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// The API server refused a child.
pub const CHILD_REFUSED: &str = "ChildRefused";

/// An image could not be pulled.
pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
/// A candidate's image wants to run as root, which its pod may not.
pub const IMAGE_RUNS_AS_ROOT: &str = "ImageRunsAsRoot";
/// A candidate's image names its user by a name, so that nobody can tell whether it is root.
pub const IMAGE_USER_NOT_NUMERIC: &str = "ImageUserNotNumeric";
/// The database did not start.
pub const DATABASE_FAILED: &str = "DatabaseFailed";
/// The seed Job failed or counted other rows than expected.
pub const SEED_FAILED: &str = "SeedFailed";
/// A candidate's container ended twice before it was ready.
pub const CANDIDATE_CRASHED: &str = "CandidateCrashed";
/// A candidate did not become ready.
pub const CANDIDATE_NOT_READY: &str = "CandidateNotReady";
/// A candidate answered no request as expected.
pub const NO_SUCCESSFUL_REQUEST: &str = "NoSuccessfulRequest";
/// The benchmark's script can't be run.
pub const SCRIPT_FAILED: &str = "ScriptFailed";
/// The run did not end within its deadline.
pub const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";
/// An entry of the ledger can't be read.
pub const LEDGER_UNREADABLE: &str = "LedgerUnreadable";
/// A block was void as often as the spec allows.
pub const TOO_MANY_VOID_ATTEMPTS: &str = "TooManyVoidAttempts";

/// Void: the readings do not cover the attempt without a gap (the operator was restarted, say).
pub const READINGS_INTERRUPTED: &str = "ReadingsInterrupted";
/// Void: a measured pod was replaced from outside.
pub const POD_REPLACED: &str = "PodReplaced";
/// Void: an edit of the spec ended the run while the attempt was under way.
pub const SUPERSEDED: &str = "Superseded";
/// Void: the cluster evicted or ended a pod of the attempt.
pub const POD_EVICTED: &str = "PodEvicted";
/// A node of a run that has begun is no longer in the cluster; void where an attempt was under way.
pub const NODE_REMOVED: &str = "NodeRemoved";
/// Void: pods of another run, attempt or benchmark were on the nodes.
pub const OTHER_PODS: &str = "OtherPods";
/// Void: a Service of the attempt was edited or deleted from outside.
pub const SERVICE_CHANGED: &str = "ServiceChanged";
/// Void: a Deployment of the attempt was edited from outside.
pub const DEPLOYMENT_CHANGED: &str = "DeploymentChanged";
/// Void: a pod of the attempt does not run what the operator made it to run.
pub const POD_CHANGED: &str = "PodChanged";
/// Void: something else than the attempt's own pods was behind one of its Services.
pub const FOREIGN_ENDPOINT: &str = "ForeignEndpoint";
/// Void: the injector's Job was deleted from outside.
pub const INJECTOR_DELETED: &str = "InjectorDeleted";
/// Void: Fortio did not run to its end.
pub const FORTIO_INTERRUPTED: &str = "FortioInterrupted";
/// Void: the injector gave no result.
pub const INJECTOR_FAILED: &str = "InjectorFailed";
/// Void: the clocks of injector and meter could not be compared closely enough.
pub const CLOCK_OFFSET_UNKNOWN: &str = "ClockOffsetUnknown";
/// Void: rows or digest differ from what was seeded.
pub const DATA_CHANGED: &str = "DataChanged";
/// Void: an image's digest is not that of the run's earlier trials.
pub const IMAGE_CHANGED: &str = "ImageChanged";
/// Measured: the attempt passed every check.
pub const MEASURED: &str = "Measured";

/// The runbook has an entry for every reason.
#[cfg(test)]
mod tests {
    #[test]
    fn every_reason_is_in_the_runbook() {
        let runbook = include_str!("../../../docs/runbook.md");
        let missing: Vec<&str> = include_str!("reason.rs")
            .lines()
            .filter(|line| line.starts_with("pub const"))
            .filter_map(|line| line.split('"').nth(1))
            .skip(5) // condition types
            .filter(|reason| !runbook.contains(&format!("`{reason}`")))
            .collect();
        assert!(missing.is_empty(), "docs/runbook.md lacks {missing:?}");
    }
}
