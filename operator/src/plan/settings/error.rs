//! Errors of a spec that can't be executed.

use crate::{
    api::{MAX_BLOCKS_OF_SWEEP, MAX_POINTS, MAX_RESULTS, MIN_BLOCKS},
    load::{read::FieldError, rules::LoadError},
};

/// A spec that can't be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No load, or several loads.
    #[error("spec needs exactly one of request, scenario and batch")]
    OneLoad,
    /// A setting that this kind of load does not allow.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A duration or decimal that can't be read.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A rate that is neither `Max` nor a positive number.
    #[error("load.rate must be Max or a whole number of requests per second, not `{0}`")]
    Rate(String),
    /// A sweep whose points are not ascending, or too few or too many.
    #[error(
        "load.sweep must have 2 to {MAX_POINTS} points, its connections and its replicas must ascend, and maxErrorRatio goes with several connections: write for example connections: [1, 2, 4, 8]"
    )]
    Sweep,
    /// Load levels that do not begin with 100 and descend, or that are combined with other lists or a rate.
    #[error(
        "load.sweep.levels must begin with 100 and descend, and go with load.duration and load.rate: Max, without sweep.connections, sweep.replicas and load.requests: write for example levels: [100, 80, 60, 40, 20, 10]"
    )]
    Levels,
    /// A limit on figures of load levels, without levels.
    #[error(
        "a budget's loadCurve needs load.sweep.levels: write for example levels: [100, 80, 60, 40, 20, 10]"
    )]
    LoadCurveBudget,
    /// More blocks than names allow, or more results than an object can hold.
    #[error(
        "load.sweep is too large: points × trials.blocks are at most {MAX_BLOCKS_OF_SWEEP}, and points × candidates at most {MAX_RESULTS}"
    )]
    SweepTooLarge,
    /// Fewer than two requests per connection.
    #[error(
        "load.requests, or load.rate × load.duration, must be at least twice the connections: Fortio would use fewer connections than requested"
    )]
    TooManyConnections,
    /// Fortio would send the rest of the division on one connection, long after the others have ended.
    #[error(
        "load.requests must be a multiple of the connections at a load.rate: write another number of requests or connections, or load.duration instead"
    )]
    UnequalConnections,
    /// Arrivals that only requests at a rate, for a duration, can have.
    #[error(
        "load.arrivals: Open and load.catchUp: false each need a request, a load.rate and no load.requests; set at most one of the two"
    )]
    Arrivals,
    /// Looks that are not ascending.
    #[error(
        "trials.looks must be numbers of blocks that ascend from {MIN_BLOCKS} or more, for example [10, 15, 20]"
    )]
    Looks,
    /// A lifetime too short for the node's cost.
    #[error("costs.nodeLifetime must be at least 24h; write for example 43800h for five years")]
    NodeLifetime,
    /// A variable that would hide the address of a backend.
    #[error(
        "candidate {candidate}: env must not set {variable}, because the operator sets it to a backend's address; remove it, or rename the backend"
    )]
    BackendAddress {
        /// Candidate.
        candidate: String,
        /// The variable.
        variable: String,
    },
    /// A candidate with the name of a release.
    #[error(
        "with spec.baseline, the name {0} belongs to a release before: give the candidate another name, for example new"
    )]
    ReleaseName(&'static str),
    /// A node of a candidate's own, with a comparison between releases.
    #[error(
        "with spec.baseline all candidates run on one node: leave out measuredNodeSelector of the candidates, and write placement.measuredNodeSelector instead"
    )]
    ReleaseOnOneNode,
    /// A PostgreSQL setting that a benchmark must not set.
    #[error(
        "database.parameters must not set {0}: allowed are settings of memory, planner, WAL and vacuum, in lower case; kubectl explain fb.spec.database.parameters lists all of them"
    )]
    Parameter(String),
    /// More connections than PostgreSQL allows.
    #[error(
        "candidate {candidate} has up to {pods} pods with a pool of {pool_size} connections each, and PostgreSQL takes {allowed} in all: write a smaller database.poolSize, fewer replicas, or database.parameters.max_connections: \"{needed}\""
    )]
    Connections {
        /// Candidate.
        candidate: String,
        /// Number of its pods at the point with the most pods.
        pods: i32,
        /// `database.poolSize`.
        pool_size: i32,
        /// `max_connections`.
        allowed: i32,
        /// The `max_connections` that is needed.
        needed: i32,
    },
    /// A database, which is on one node, with candidates on separate nodes.
    #[error(
        "the database and all candidates run on one node: remove the candidates' measuredNodeSelector, or remove spec.database"
    )]
    DatabaseOnOneNode,
    /// Costs of a candidate that has no separate node.
    #[error(
        "candidate {0}: `costs` needs a separate node: set its measuredNodeSelector, or use spec.costs for all candidates"
    )]
    CostsWithoutNode(String),
    /// Costs in different currencies, which can't be in one table.
    #[error("costs are in {0} and {1}: write all prices in one currency")]
    Currencies(String, String),
    /// A control or a budget's `against` that names no candidate.
    #[error("{field} must name a candidate of spec.candidates, not `{name}`")]
    NoCandidate {
        /// Field of the spec.
        field: &'static str,
        /// The name.
        name: String,
    },
}

/// An error for a name that no candidate has.
pub(super) fn no_candidate(field: &'static str, name: &str) -> SettingsError {
    SettingsError::NoCandidate {
        field,
        name: name.to_owned(),
    }
}
