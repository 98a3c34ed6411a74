//! The API group, and the labels of the operator's objects.

/// API group of every kind here.
pub const GROUP: &str = "frugality.dev";
/// Label on every child: UID of the benchmark that owns it.
pub const LABEL_BENCHMARK_UID: &str = "frugality.dev/benchmark-uid";
/// Label on every child: ID of its run.
pub const LABEL_RUN: &str = "frugality.dev/run";
/// Label on an entry of the ledger: ID of the measurement, which a re-run does not change.
pub const LABEL_MEASUREMENT: &str = "frugality.dev/measurement";
/// Label on the children of one attempt: name of its `FrugalityTrial`.
pub const LABEL_TRIAL: &str = "frugality.dev/trial";
/// Label on a candidate's pods: name of the candidate or of the backend.
pub const LABEL_WORKLOAD: &str = "frugality.dev/workload";
/// Label on every child: its purpose; see [`Role`]. On a node, an administrator sets the node's role with it.
pub const LABEL_ROLE: &str = "frugality.dev/role";
/// Label of the Leases that lock a node.
pub const LABEL_LOCK: &str = "frugality.dev/lock";
/// Value of [`LABEL_LOCK`].
pub const LOCK_OF_NODE: &str = "node";

/// Purpose of a child object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// A candidate's server under test.
    Candidate,
    /// The database that the candidates share.
    Database,
    /// The Job that fills the database.
    Seed,
    /// The Job that checks the database of an attempt before its load.
    Prepare,
    /// The Job that sends the load.
    Injector,
}

impl Role {
    /// Value of [`LABEL_ROLE`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
