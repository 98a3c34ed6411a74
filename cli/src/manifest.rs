//! Benchmarks in a file, checked as the API server checks them.

mod limits;
mod rules;

use frugality_operator::{
    api::FrugalityBenchmark,
    plan::report::estimate::{Forecast, SettingsError},
};
use kube::{Resource as _, ResourceExt as _};
use serde::Deserialize as _;
use serde_json::Value;

/// Why a text has no benchmark that could run.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Neither YAML nor JSON.
    #[error("the file is neither YAML nor JSON: {0}")]
    NotYaml(#[from] serde_yaml::Error),
    /// No benchmark.
    #[error(
        "the file has no FrugalityBenchmark. It needs a document with apiVersion: frugality.dev/v1alpha1 and kind: FrugalityBenchmark"
    )]
    NoBenchmark,
    /// The API server would refuse the benchmark.
    #[error("{name}: the API server would refuse this benchmark:\n  {}", reasons.join("\n  "))]
    Refused {
        /// Name of the benchmark, or a dash.
        name: String,
        /// Each reason with what to write.
        reasons: Vec<String>,
    },
    /// The operator would end the benchmark as Invalid.
    #[error("{name}: the operator would end this benchmark as Invalid: {source}")]
    Invalid {
        /// Name of the benchmark.
        name: String,
        /// The reason with what to write.
        source: SettingsError,
    },
}

/// A benchmark that admission accepts, as far as this is known without a cluster, with the length of its run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The benchmark, with the defaults.
    pub benchmark: FrugalityBenchmark,
    /// How long it takes.
    pub forecast: Forecast,
}

/// All benchmarks of a text: one document or several, alone or as items of a list.
pub fn benchmarks(text: &str) -> Result<Vec<Checked>, ManifestError> {
    let mut found = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        collect(Value::deserialize(document)?, &mut found);
    }
    if found.is_empty() {
        return Err(ManifestError::NoBenchmark);
    }
    found.into_iter().map(check).collect()
}

fn collect(document: Value, found: &mut Vec<Value>) {
    let is = |field: &str, text: &str| document[field].as_str() == Some(text);
    let kind = FrugalityBenchmark::kind(&());
    let version = FrugalityBenchmark::api_version(&());
    if is("kind", &kind) && is("apiVersion", &version) {
        found.push(document);
    } else if let Value::Object(mut fields) = document
        && let Some(Value::Array(items)) = fields.remove("items")
    {
        for item in items {
            collect(item, found);
        }
    }
}

/// Checks one object.
pub(crate) fn check(mut object: Value) -> Result<Checked, ManifestError> {
    without_nulls(&mut object);
    let name = object["metadata"]["name"]
        .as_str()
        .unwrap_or("–")
        .to_owned();
    let refused = |reasons: Vec<String>| match reasons.as_slice() {
        [] => Ok(()),
        _ => Err(ManifestError::Refused {
            name: name.clone(),
            reasons,
        }),
    };
    refused(limits::broken(&object))?;
    let benchmark = FrugalityBenchmark::deserialize(&object);
    let benchmark = match benchmark {
        Ok(benchmark) => benchmark,
        Err(error) => {
            refused(vec![error.to_string()])?;
            return Err(ManifestError::NoBenchmark);
        }
    };
    refused(rules::broken(&object))?;
    let forecast = Forecast::of(&benchmark).map_err(|source| ManifestError::Invalid {
        name: benchmark.name_any(),
        source,
    })?;
    Ok(Checked {
        benchmark,
        forecast,
    })
}

/// The API server treats null as absent.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        _ => {}
    }
}
