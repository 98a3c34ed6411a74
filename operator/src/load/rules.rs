//! The interface that each kind of load implements.

use frugality_measure::{batch::PatternError, fortio::Amount};
use serde_json::Value;

use super::{
    read::{FieldError, seconds},
    units::Units,
};
use crate::api::{DEFAULT_CONNECTIONS, FrugalityBenchmarkSpec, Reason};

/// A spec whose load can't be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A field of `load` that a batch must not have.
    #[error(
        "a batch runs one execution at a time: remove load.connections, load.rate, load.requests and load.sweep"
    )]
    BatchLoad,
    /// A limit that needs the latency of many requests, with a batch.
    #[error(
        "atMost and maxEnergyDelayJouleSeconds are for request and scenario: with a batch leave them out"
    )]
    BatchBudget,
    /// A candidate without a program to execute, or with replicas or peers.
    #[error(
        "candidate {0}: a batch needs command, the program to execute, and allows neither replicas nor peers"
    )]
    BatchCandidate(String),
    /// Work without pattern and amount, or with both.
    #[error("batch.work needs either pattern or an amount above 0, and not both")]
    BatchWork,
    /// An invalid pattern for a number.
    #[error("{field}: {source}")]
    Pattern {
        /// Field of the spec.
        field: &'static str,
        /// The error of the pattern's parser.
        source: PatternError,
    },
    /// A duration or decimal that can't be read.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Properties in which compared candidates may differ.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four properties that do not depend on each other"
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayDiffer {
    /// The size of their responses. Always true with a scenario or a batch.
    pub responses: bool,
    /// The number of requests per cycle. Always true without a scenario.
    pub requests: bool,
    /// The number of database transactions per request. Always true without a database and with a batch.
    pub queries: bool,
    /// The work of an execution. False for a batch whose programs do not print their work.
    pub executions: bool,
}

/// When the injector sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// After the response to the connection's previous request (closed loop). At a rate, a late connection sends
    /// the requests that it missed.
    Closed,
    /// As `Closed`, but a late connection skips the requests that it missed.
    Skipping,
    /// At their due times, even if earlier requests have no response yet (open loop).
    Open,
}

/// Everything that differs between kinds of load. The defaults are for a load that sends requests to a server.
pub trait LoadRules {
    /// Name of the spec's field that asks for this kind.
    fn field(&self) -> &'static str;

    /// The part of the run's ID for this kind: the value of that field, without the settings that only the verdict
    /// uses.
    fn identity(&self, spec: &FrugalityBenchmarkSpec) -> Value;

    /// The units that figures are per.
    fn units(&self, spec: &FrugalityBenchmarkSpec) -> Units;

    /// Refuses a spec that admission can't check.
    fn check(&self, _: &FrugalityBenchmarkSpec, _rate: Option<f64>) -> Result<(), LoadError> {
        Ok(())
    }

    /// Length of the window, if this kind's own field sets it instead of `load`.
    fn amount(&self, _: &FrugalityBenchmarkSpec) -> Option<Amount> {
        None
    }

    /// Number of connections, if the spec sets none.
    fn default_connections(&self) -> i32 {
        DEFAULT_CONNECTIONS
    }

    /// Timeout of a request, a cycle or an execution, in seconds.
    fn timeout_seconds(&self, spec: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        seconds("load.timeout", &spec.load.timeout)
    }

    /// How long agents join at the start of the load, in seconds.
    fn ramp_up_seconds(&self, _: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        Ok(0.0)
    }

    /// Status codes that count as success. Empty if this kind decides success in another way.
    fn expected_status(&self, _: &FrugalityBenchmarkSpec) -> Vec<u16> {
        Vec::new()
    }

    /// Whether this kind can send requests at their due times.
    fn has_arrivals(&self) -> bool {
        false
    }

    /// Properties in which compared candidates may differ.
    fn may_differ(&self, spec: &FrugalityBenchmarkSpec) -> MayDiffer;

    /// Whether k6 sends this load. The injector's container then has the image with k6.
    fn is_sent_by_k6(&self, _: Sending) -> bool {
        false
    }

    /// Whether a load of about a second holds enough of this kind's units: a request takes a fraction of a second, but
    /// a cycle or an execution may take longer.
    fn has_short_units(&self) -> bool {
        false
    }

    /// Whether a unit is a cycle of a script: several requests and checks.
    fn has_cycles(&self) -> bool {
        false
    }

    /// Whether the injector executes the candidate's program instead of loading a server.
    fn is_executed(&self) -> bool {
        false
    }

    /// Path of the injector's URL.
    fn path<'a>(&self, _: &'a FrugalityBenchmarkSpec) -> &'a str {
        ""
    }

    /// The injector's arguments that only this kind has.
    fn injector_args(&self, spec: &FrugalityBenchmarkSpec, load: &LoadArguments<'_>)
    -> Vec<String>;

    /// The reason to end the run, if an injector that ended with this exit code would fail again in the same way.
    fn lasting_failure(&self, _exit_code: i32) -> Option<Reason> {
        None
    }

    /// What a candidate did that had no success in a window, as the predicate of a message.
    fn never_succeeded(&self) -> &'static str {
        "answered no request as expected"
    }

    /// What the user can do if the injector, not the candidate, limits the rate.
    fn pace_remedy(&self, has_rate: bool) -> &'static str {
        if has_rate {
            "write a lower load.rate, give the injector more CPU, or ask for larger answers"
        } else {
            "write a load.rate that every candidate reaches, give the injector more CPU, or ask for larger answers"
        }
    }
}

/// The inputs of an injector's arguments that are not in the spec.
#[derive(Clone, Copy, Debug)]
pub struct LoadArguments<'a> {
    /// Name of the trial.
    pub trial: &'a str,
    /// When the injector sends requests.
    pub sending: Sending,
    /// Status codes that count as success.
    pub expected_status: &'a [u16],
    /// How long agents join, in seconds.
    pub ramp_up_seconds: f64,
}
