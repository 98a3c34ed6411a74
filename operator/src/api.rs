//! The custom resources: the benchmark that a user writes, its status, the ledger of attempts, their courses, and
//! the baseline of a service.
//!
//! The CRDs in `crds/` are generated from these types. `kubectl explain` shows their doc comments as field
//! descriptions.

mod baseline;
mod batch;
mod benchmark;
mod budget;
mod budget_result;
mod candidate;
mod candidate_result;
mod comparison;
pub mod condition;
mod cost_result;
mod costs;
mod figure;
mod labels;
mod load;
mod parameters;
mod quantity;
mod reason;
mod scenario;
mod schema;
mod status;
mod sweep_result;
mod trace;
mod trial;
mod trial_load;

pub use self::baseline::{
    ANCHOR, BASELINE, Baseline, FrozenBaseline, FrozenBaselines, FrugalityBaseline,
    FrugalityBaselineSpec, FrugalityBaselineStatus, MAX_PREVIOUS, PROMOTED_BY, PreviousRelease,
    Promote, PromotedFrom, WhenMissing,
};
pub use self::batch::{Batch, BatchResult, Score, ScoreResult, Work};
pub use self::benchmark::{
    ConfigMapSeed, Database, Energy, FrugalityBenchmark, FrugalityBenchmarkSpec, Header,
    MAX_BLOCKS, MIN_BLOCKS, Method, Placement, Provider, Request, Seed, Storage, Trials,
};
pub use self::budget::{Budget, LatencyTarget, LoadCurveBudget};
pub use self::budget_result::{BudgetOutcome, BudgetResult};
pub use self::candidate::{
    Backend, Candidate, EnvVar, MAX_BACKENDS, MAX_PODS, MAX_REPLICAS, PullPolicy, ResourceList,
    Resources, SecretName, Server,
};
pub use self::candidate_result::{
    CandidateResult, InjectorLimits, InjectorResult, LatencyPercentile, NodeResult, WorkloadResult,
};
pub use self::comparison::{BoardRange, BoardVerdict, Comparison, NoiseFloor};
pub use self::cost_result::{CostPerMillion, CostTerms};
pub use self::costs::{Carbon, Costs, Money};
pub use self::figure::{Boundary, DecidingFigure, Expanded, Figure, seven_digits};
pub use self::labels::{
    GROUP, LABEL_BENCHMARK_UID, LABEL_LOCK, LABEL_MEASUREMENT, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL,
    LABEL_WORKLOAD, LOCK_OF_NODE, Role,
};
pub use self::load::{
    Arrivals, DEFAULT_CONNECTIONS, LevelsOf, Load, MAX_BLOCKS_OF_SWEEP, MAX_POINTS, MAX_RESULTS,
    Sweep,
};
pub use self::parameters::ALLOWED_PARAMETERS;
pub use self::quantity::{Decimal, HumanDuration, QuantityError};
pub use self::reason::Reason;
pub use self::scenario::{CheckResult, CycleResult, Scenario};
pub use self::status::{
    BaselineResult, Columns, FrugalityBenchmarkStatus, Look, NOT_SEEN, PastVerdict, Progress,
    PromotionState, ReleaseRatio, Verdict,
};
pub use self::sweep_result::{LoadCurveResult, Optimum, SweepResult};
pub use self::trace::{FrugalityTrace, FrugalityTraceSpec};
pub use self::trial::{
    DatabaseFacts, FrugalityTrial, FrugalityTrialSpec, FrugalityTrialStatus, Outcome, RunImages,
    TrialColumns,
};
pub use self::trial_load::TrialLoad;
