//! A load that executes the candidate's program, one execution after the other.

use frugality_measure::{batch::NumberPattern, fortio::Amount};
use serde_json::{Value, json};

use super::{
    read::{FieldError, number, seconds},
    rules::{LoadArguments, LoadError, LoadRules, MayDiffer},
    units::Units,
};
use crate::api::{Batch, Budget, FrugalityBenchmarkSpec};

/// `spec.batch`.
pub struct BatchLoad;

impl LoadRules for BatchLoad {
    fn field(&self) -> &'static str {
        "batch"
    }

    fn identity(&self, spec: &FrugalityBenchmarkSpec) -> Value {
        json!(spec.batch)
    }

    fn units(&self, spec: &FrugalityBenchmarkSpec) -> Units {
        let batch = spec.batch.as_ref();
        Units::of_batch(
            batch.and_then(|it| Some(it.score.as_ref()?.unit.clone())),
            batch.and_then(|it| Some(it.work.as_ref()?.unit.clone())),
        )
    }

    /// Refuses a batch if a candidate has no program, if the spec has several points, or if a figure can't be read.
    fn check(&self, spec: &FrugalityBenchmarkSpec, rate: Option<f64>) -> Result<(), LoadError> {
        let Some(batch) = &spec.batch else {
            return Ok(());
        };
        let load = &spec.load;
        let is_one = load.connections.is_none_or(|it| it == 1) && rate.is_none();
        if !is_one || load.requests.is_some() || load.sweep.is_some() {
            return Err(LoadError::BatchLoad);
        }
        let needs_latencies = |budget: &Budget| {
            budget.at_most.is_some() || budget.max_energy_delay_joule_seconds.is_some()
        };
        if spec.budgets.iter().any(needs_latencies) {
            return Err(LoadError::BatchBudget);
        }
        for candidate in &spec.candidates {
            let server = &candidate.server;
            if server.command.is_empty() || server.replicas != 1 || server.peers {
                return Err(LoadError::BatchCandidate(candidate.name.clone()));
            }
        }
        if let Some(score) = &batch.score {
            pattern("batch.score.pattern", &score.pattern)?;
        }
        if let Some(work) = &batch.work {
            match (&work.pattern, &work.amount) {
                (Some(text), None) => pattern("batch.work.pattern", text)?,
                (None, Some(amount)) if number("batch.work.amount", amount)? > 0.0 => {}
                _ => return Err(LoadError::BatchWork),
            }
        }
        Ok(())
    }

    fn amount(&self, spec: &FrugalityBenchmarkSpec) -> Option<Amount> {
        let executions = spec.batch.as_ref()?.executions?;
        Some(Amount::Requests(executions.unsigned_abs().into()))
    }

    fn default_connections(&self) -> i32 {
        1
    }

    fn timeout_seconds(&self, spec: &FrugalityBenchmarkSpec) -> Result<f64, FieldError> {
        let batch = spec.batch.as_ref();
        batch.map_or(Ok(0.0), |batch| seconds("batch.timeout", &batch.timeout))
    }

    fn may_differ(&self, spec: &FrugalityBenchmarkSpec) -> MayDiffer {
        let work = spec.batch.as_ref().and_then(|batch| batch.work.as_ref());
        MayDiffer {
            responses: true,
            requests: true,
            queries: true,
            executions: work.is_some_and(|work| work.pattern.is_some()),
        }
    }

    fn is_executed(&self) -> bool {
        true
    }

    fn injector_args(&self, spec: &FrugalityBenchmarkSpec, _: &LoadArguments<'_>) -> Vec<String> {
        spec.batch.as_ref().map(arguments).unwrap_or_default()
    }

    fn never_succeeded(&self) -> &'static str {
        "was never executed as expected"
    }

    fn pace_remedy(&self, _has_rate: bool) -> &'static str {
        "give each execution more work"
    }
}

/// The injector arguments of a batch: the kind of load, and how the injector reads score and work.
fn arguments(batch: &Batch) -> Vec<String> {
    let score = batch.score.as_ref();
    let score = score.map(|it| format!("--score-pattern={}", it.pattern));
    let work = batch.work.as_ref().and_then(|work| {
        let pattern = work.pattern.as_ref();
        let amount = work.amount.as_ref();
        pattern
            .map(|pattern| format!("--work-pattern={pattern}"))
            .or_else(|| amount.map(|amount| format!("--work-amount={amount}")))
    });
    let batch = ["--batch".to_owned()].into_iter();
    batch.chain(score).chain(work).collect()
}

fn pattern(field: &'static str, text: &str) -> Result<(), LoadError> {
    match NumberPattern::new(text) {
        Ok(_) => Ok(()),
        Err(source) => Err(LoadError::Pattern { field, source }),
    }
}
