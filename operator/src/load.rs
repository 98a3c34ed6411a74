//! The kinds of load. Each is one module, which implements [`LoadRules`]; this file registers them.

pub mod batch;
pub mod read;
pub mod request;
pub mod rules;
pub mod scenario;
pub mod units;

use self::{batch::BatchLoad, request::RequestLoad, rules::LoadRules, scenario::ScenarioLoad};
use crate::api::FrugalityBenchmarkSpec;

/// The kind of a benchmark's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Requests that are all the same.
    Request,
    /// Cycles of a script.
    Scenario,
    /// Executions of a program.
    Batch,
}

impl LoadKind {
    /// The kind that a spec asks for. `None` if the spec asks for no kind or for several kinds.
    #[must_use]
    pub fn of(spec: &FrugalityBenchmarkSpec) -> Option<Self> {
        match (&spec.request, &spec.scenario, &spec.batch) {
            (Some(_), None, None) => Some(Self::Request),
            (None, Some(_), None) => Some(Self::Scenario),
            (None, None, Some(_)) => Some(Self::Batch),
            _ => None,
        }
    }

    /// The rules of this kind.
    #[must_use]
    pub fn rules(self) -> &'static dyn LoadRules {
        match self {
            Self::Request => &RequestLoad,
            Self::Scenario => &ScenarioLoad,
            Self::Batch => &BatchLoad,
        }
    }
}
