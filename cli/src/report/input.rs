//! The objects that a report is about.

use std::io::Read;

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrace, FrugalityTrial};
use kube::ResourceExt as _;
use serde_json::Value;

use super::chart::ChartError;
use crate::{
    cluster::ClusterError,
    export::{ExportError, attempt, course::course, in_order},
    input::InputError,
    items::{collect_items, for_each_item},
};

/// A benchmark, and the attempts of all its runs in the order of time.
#[derive(Debug)]
pub struct Objects {
    /// The benchmark.
    pub benchmark: FrugalityBenchmark,
    /// The same as it was read, with fields that this version does not know.
    pub source: Value,
    /// Its attempts.
    pub trials: Vec<FrugalityTrial>,
    /// The courses of attempts, in any order. An attempt may have none.
    pub traces: Vec<FrugalityTrace>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportCommandError {
    /// The input can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The cluster did not answer.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// No benchmark is named.
    #[error(
        "a report is about one benchmark. Write its name: kubectl frugality report NAME. `kubectl get fb` lists the names."
    )]
    NoName,
    /// The input is not JSON, or an object is not a benchmark.
    #[error(
        "the input is not understood: {0}. It must be the text that kubectl get fb,fbt -o json prints, and this program must have the operator's version."
    )]
    NotUnderstood(#[from] serde_json::Error),
    /// The input has no benchmark.
    #[error(
        "the input has no FrugalityBenchmark. Write both into one list: kubectl get fb,fbt -o json"
    )]
    NoBenchmark,
    /// The input has several benchmarks.
    #[error(
        "the input has several benchmarks: {0}. A report is about one. Keep one benchmark in the list; attempts of others may stay."
    )]
    Several(String),
    /// An entry of the ledger can't be read, or can't be written.
    #[error(transparent)]
    Ledger(#[from] ExportError),
    /// A chart can't be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// The report has no XML form.
    #[error("cannot write JUnit XML: {0}")]
    Junit(#[from] quick_junit::SerializeError),
}

impl Objects {
    /// The objects in the text of `kubectl get fb,fbt -o json`: a list, or one benchmark alone.
    pub fn in_list(input: impl Read) -> Result<Self, ReportCommandError> {
        let mut benchmarks: Vec<Value> = Vec::new();
        let mut trials = Vec::new();
        let mut traces = Vec::new();
        for_each_item(input, |item| -> Result<(), ReportCommandError> {
            match item.kind().as_str() {
                "FrugalityBenchmark" => benchmarks.push(item.parse()?),
                "FrugalityTrial" => trials.extend(attempt(item)?),
                "FrugalityTrace" => traces.push(course(item)?),
                _ => {}
            }
            Ok(())
        })?;
        let source = benchmarks.pop().ok_or(ReportCommandError::NoBenchmark)?;
        if !benchmarks.is_empty() {
            benchmarks.push(source);
            let name = |it: &Value| it["metadata"]["name"].as_str().map(str::to_owned);
            let names: Vec<_> = benchmarks.iter().filter_map(name).collect();
            return Err(ReportCommandError::Several(names.join(", ")));
        }
        Self::with(source, trials, traces)
    }

    /// The objects in an answer about the benchmark, and in answers about its namespace's ledger and courses.
    pub(super) fn of(
        benchmark: &str,
        ledger: &str,
        courses: Option<&str>,
    ) -> Result<Self, ReportCommandError> {
        let source = serde_json::from_str(benchmark)?;
        let trials = collect_items(ledger.as_bytes(), attempt)?;
        let of_courses = |text: &str| collect_items(text.as_bytes(), |item| course(item).map(Some));
        let traces = courses.map(of_courses).transpose()?.unwrap_or_default();
        Self::with(source, trials, traces)
    }

    fn with(
        source: Value,
        mut trials: Vec<FrugalityTrial>,
        mut traces: Vec<FrugalityTrace>,
    ) -> Result<Self, ReportCommandError> {
        let benchmark: FrugalityBenchmark = serde_json::from_value(source.clone())?;
        // A list may have entries of other benchmarks, and of other namespaces.
        let (name, namespace) = (benchmark.name_any(), benchmark.namespace());
        let is_mine = |of: &str, in_namespace: Option<String>| {
            of == name && (in_namespace.is_none() || in_namespace == namespace)
        };
        trials.retain(|trial| is_mine(&trial.spec.benchmark, trial.namespace()));
        in_order(&mut trials);
        traces.retain(|trace| is_mine(&trace.spec.benchmark, trace.namespace()));
        Ok(Self {
            benchmark,
            source,
            trials,
            traces,
        })
    }
}
