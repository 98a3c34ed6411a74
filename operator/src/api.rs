//! The custom resources: the benchmark that a user writes, its status, and the ledger of attempts.
//!
//! The CRDs in `crds/` are generated from these types. `kubectl explain` shows their doc comments as field
//! descriptions.

mod batch;
mod benchmark;
mod candidate;
pub mod condition;
mod costs;
mod load;
mod parameters;
mod quantity;
mod reason;
mod scenario;
mod status;
mod trial;

pub use self::batch::{Batch, BatchResult, Score, ScoreResult, Work};
pub use self::benchmark::{
    Boundary, Budget, ConfigMapSeed, Database, DecidingFigure, Energy, FrugalityBenchmark,
    FrugalityBenchmarkSpec, Header, MAX_BLOCKS, MIN_BLOCKS, Method, Placement, Provider, Request,
    Seed, Storage, Trials,
};
pub use self::candidate::{
    Backend, Candidate, EnvVar, MAX_BACKENDS, MAX_PODS, MAX_REPLICAS, PullPolicy, ResourceList,
    Resources, SecretName, Server,
};
pub use self::costs::{Carbon, Costs, Money};
pub use self::load::{
    Arrivals, DEFAULT_CONNECTIONS, Load, MAX_BLOCKS_OF_SWEEP, MAX_POINTS, MAX_RESULTS, Sweep,
};
pub use self::parameters::ALLOWED_PARAMETERS;
pub use self::quantity::{Decimal, HumanDuration, QuantityError};
pub use self::reason::Reason;
pub use self::scenario::{CheckResult, CycleResult, Scenario};
pub use self::status::{
    BoardRange, BoardVerdict, BudgetOutcome, BudgetResult, CandidateResult, Columns, Comparison,
    CostPerMillion, CostTerms, Expanded, Figure, FrugalityBenchmarkStatus, InjectorLimits,
    InjectorResult, LatencyPercentile, Look, NOT_SEEN, NodeResult, NoiseFloor, Optimum,
    PastVerdict, Progress, SweepResult, Verdict, WorkloadResult, seven_digits,
};
pub use self::trial::{
    DatabaseFacts, FrugalityTrial, FrugalityTrialSpec, FrugalityTrialStatus, Outcome, TrialColumns,
};

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
/// Label on every child: its purpose; see [`Role`].
pub const LABEL_ROLE: &str = "frugality.dev/role";

/// Purpose of a child object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A candidate's server under test.
    Candidate,
    /// The database that the candidates share.
    Database,
    /// The Job that fills the database.
    Seed,
    /// The Job that sends the load.
    Injector,
}

impl Role {
    /// Value of [`LABEL_ROLE`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Candidate => "candidate",
            Self::Database => "database",
            Self::Seed => "seed",
            Self::Injector => "injector",
        }
    }
}
