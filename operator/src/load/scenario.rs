//! A load of agents that run a script: cycles of requests.

use frugality_measure::k6::SCRIPT_EXCEPTION;
use serde_json::{Value, json};

use super::{
    read::{FieldError, seconds},
    rules::{LoadArguments, LoadRules, MayDiffer, Sending},
    units::{CYCLE, Units},
};
use crate::api::{FrugalityBenchmarkSpec, Reason, Scenario};

/// `spec.scenario`.
pub struct ScenarioLoad;

impl LoadRules for ScenarioLoad {
    fn field(&self) -> &'static str {
        "scenario"
    }

    fn identity(&self, spec: &FrugalityBenchmarkSpec) -> Value {
        let scenario = spec.scenario.clone().map(|scenario| Scenario {
            requests_may_differ: false,
            queries_may_differ: false,
            ..scenario
        });
        json!(scenario)
    }

    fn units(&self, _: &FrugalityBenchmarkSpec) -> Units {
        Units::plain(CYCLE)
    }

    fn ramp_up_seconds(&self, spec: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        let scenario = spec.scenario.as_ref();
        match scenario.and_then(|it| it.ramp_up.as_ref()) {
            None => Ok(0.0),
            Some(length) => seconds("scenario.rampUp", length),
        }
    }

    fn may_differ(&self, spec: &FrugalityBenchmarkSpec) -> MayDiffer {
        let scenario = spec.scenario.as_ref();
        MayDiffer {
            responses: true,
            requests: scenario.is_some_and(|it| it.requests_may_differ),
            queries: spec.database.is_none() || scenario.is_some_and(|it| it.queries_may_differ),
            executions: true,
        }
    }

    fn is_sent_by_k6(&self, _: Sending) -> bool {
        true
    }

    fn has_cycles(&self) -> bool {
        true
    }

    fn injector_args(
        &self,
        spec: &FrugalityBenchmarkSpec,
        load: &LoadArguments<'_>,
    ) -> Vec<String> {
        let Some(scenario) = &spec.scenario else {
            return Vec::new();
        };
        vec![
            format!("--script={}", scenario.script),
            format!("--ramp-up-seconds={}", load.ramp_up_seconds),
        ]
    }

    /// A second execution of the script would throw the same exception.
    fn lasting_failure(&self, exit_code: i32) -> Option<Reason> {
        (exit_code == SCRIPT_EXCEPTION).then_some(Reason::ScriptFailed)
    }
}
