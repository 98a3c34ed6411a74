//! What a kind of load decides.

use frugality_measure::{batch::PatternError, fortio::Amount};
use serde_json::Value;

use super::{
    read::{FieldError, seconds},
    units::Units,
};
use crate::api::{DEFAULT_CONNECTIONS, FrugalityBenchmarkSpec, Reason};

/// A load that can't be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A load that no batch can have.
    #[error(
        "with a batch there is one execution at a time: leave load.connections, load.rate, load.requests and load.sweep out"
    )]
    BatchLoad,
    /// A candidate that can't be executed.
    #[error(
        "candidate {0}: with a batch it needs command, the program that is executed, and neither replicas nor peers"
    )]
    BatchCandidate(String),
    /// Work that is given in no way, or in two.
    #[error("batch.work needs either pattern or an amount above 0, and not both")]
    BatchWork,
    /// A pattern that finds no number.
    #[error("{field}: {source}")]
    Pattern {
        /// Field of the spec.
        field: &'static str,
        /// What is wrong.
        source: PatternError,
    },
    /// A duration or decimal that can't be read.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// In what candidates that are compared may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayDiffer {
    /// The size of their answers; with a scenario always.
    pub responses: bool,
    /// The requests of a cycle; without a scenario always.
    pub requests: bool,
    /// The database's transactions per request; without a database, and with a batch, always.
    pub queries: bool,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// After the answer to the connection's last one. At a rate, a connection that is late sends what it missed.
    Closed,
    /// The same, but a connection that is late skips what it missed.
    Skipping,
    /// When they are due, even if earlier ones are not answered.
    Open,
}

/// Everything that differs between kinds of load. The defaults fit a load that sends something to a server.
pub trait LoadRules {
    /// Field of the spec that asks for this kind.
    fn field(&self) -> &'static str;

    /// The value of that field, without what only the verdict uses: it is a part of the run's ID.
    fn identity(&self, spec: &FrugalityBenchmarkSpec) -> Value;

    /// What figures are per.
    fn units(&self, spec: &FrugalityBenchmarkSpec) -> Units;

    /// Refuses what admission can't check.
    fn check(&self, _: &FrugalityBenchmarkSpec, _rate: Option<f64>) -> Result<(), LoadError> {
        Ok(())
    }

    /// The amount of the window, if this kind's own field gives it instead of `load`.
    fn amount(&self, _: &FrugalityBenchmarkSpec) -> Option<Amount> {
        None
    }

    /// Connections if the spec gives none.
    fn default_connections(&self) -> i32 {
        DEFAULT_CONNECTIONS
    }

    /// Timeout of a request, a cycle or an execution, in seconds.
    fn timeout_seconds(&self, spec: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        seconds("load.timeout", &spec.load.timeout)
    }

    /// For how long agents join at the beginning, in seconds.
    fn ramp_up_seconds(&self, _: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        Ok(0.0)
    }

    /// Status codes that count as success; empty if the kind decides success otherwise.
    fn expected_status(&self, _: &FrugalityBenchmarkSpec) -> Vec<u16> {
        Vec::new()
    }

    /// Whether requests can be sent when they are due.
    fn has_arrivals(&self) -> bool {
        false
    }

    /// In what compared candidates may differ.
    fn may_differ(&self, spec: &FrugalityBenchmarkSpec) -> MayDiffer;

    /// Whether the load leaves the data as they are.
    fn only_reads(&self, _: &FrugalityBenchmarkSpec) -> bool {
        false
    }

    /// Whether the candidate's program is executed, instead of a server that is loaded.
    fn is_executed(&self) -> bool {
        false
    }

    /// Path of the injector's URL.
    fn path<'a>(&self, _: &'a FrugalityBenchmarkSpec) -> &'a str {
        ""
    }

    /// The injector's own arguments for this kind.
    fn injector_args(&self, spec: &FrugalityBenchmarkSpec, load: &LoadArguments<'_>)
    -> Vec<String>;

    /// The reason for the end of the run, if an injector that ended with this exit code would end so again.
    fn lasting_failure(&self, _exit_code: i32) -> Option<Reason> {
        None
    }

    /// What a candidate did that never succeeded.
    fn never_succeeded(&self) -> &'static str {
        "answered no request as expected"
    }

    /// What the user can do if the injector sets the pace.
    fn pace_remedy(&self, has_rate: bool) -> &'static str {
        if has_rate {
            "write a lower load.rate, give the injector more CPU, or ask for larger answers"
        } else {
            "write a load.rate that every candidate reaches, give the injector more CPU, or ask for larger answers"
        }
    }
}

/// What an injector's arguments depend on next to the spec.
#[derive(Clone, Copy, Debug)]
pub struct LoadArguments<'a> {
    /// Name of the trial.
    pub trial: &'a str,
    /// When requests are sent.
    pub sending: Sending,
    /// Status codes that count as success.
    pub expected_status: &'a [u16],
    /// For how long agents join, in seconds.
    pub ramp_up_seconds: f64,
}
