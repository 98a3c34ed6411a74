//! The schemas of the API's types. Unlike the custom resource definitions, they refer to named types, and they contain
//! the ledger's records in full.

use std::collections::BTreeMap;

use frugality_measure::{
    batch::ExecutionsResult,
    course::Course,
    energy::{EnergyFigures, Window},
    figures::{LoadSpan, RequestFigures},
    fortio::FortioResult,
    k6::K6Result,
    pace::InjectorCpu,
    report::ClockOffset,
};
use frugality_operator::api::{
    FrugalityBaseline, FrugalityBenchmark, FrugalityTrace, FrugalityTrial,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use schemars::{JsonSchema, generate::SchemaSettings, transform::AddNullable};

/// Everything that the reference describes.
pub(super) struct Api {
    /// The types that schemas refer to, by name.
    pub(super) definitions: BTreeMap<String, JSONSchemaProps>,
    /// The benchmark, the trial, the baseline and the trace.
    pub(super) kinds: [JSONSchemaProps; 4],
}

/// What the generator begins at.
#[derive(JsonSchema)]
#[allow(
    dead_code,
    reason = "the generator reads the types, and nothing the values"
)]
struct Root {
    benchmark: FrugalityBenchmark,
    trial: FrugalityTrial,
    baseline: FrugalityBaseline,
    trace: FrugalityTrace,
    records: Records,
}

/// The fields of the ledger that its definition leaves open, because they grow with their Rust types.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "the generator reads the types, and nothing the values"
)]
struct Records {
    idle_before: Window,
    window: Window,
    idle_after: Window,
    requests: RequestFigures,
    energy: EnergyFigures,
    fortio: FortioResult,
    k6: K6Result,
    batch: ExecutionsResult,
    course: Course,
    warm_up: LoadSpan,
    tail: LoadSpan,
    clock: ClockOffset,
    clock_after: ClockOffset,
    injector_cpu: InjectorCpu,
}

impl Api {
    pub(super) fn generate() -> Result<Self, serde_json::Error> {
        let generator = SchemaSettings::openapi3()
            .with(|settings| settings.definitions_path = "/$defs".into())
            .with_transform(AddNullable::default())
            .into_generator();
        let root = serde_json::to_value(generator.into_root_schema_for::<Root>())?;
        let definitions = serde_json::from_value(root["$defs"].clone())?;
        let of_root = |name: &str| -> Result<JSONSchemaProps, serde_json::Error> {
            serde_json::from_value(root["properties"][name].clone())
        };
        let records = resolved(&of_root("records")?, &definitions).clone();
        let mut trial = resolved(&of_root("trial")?, &definitions).clone();
        let benchmark = resolved(&of_root("benchmark")?, &definitions).clone();
        let baseline = resolved(&of_root("baseline")?, &definitions).clone();
        let trace = resolved(&of_root("trace")?, &definitions).clone();
        fill_in(&mut trial, records);
        Ok(Self {
            definitions,
            kinds: [benchmark, trial, baseline, trace],
        })
    }
}

/// The schema that a reference is to, without the alternative that the value is absent.
pub(super) fn resolved<'a>(
    schema: &'a JSONSchemaProps,
    definitions: &'a BTreeMap<String, JSONSchemaProps>,
) -> &'a JSONSchemaProps {
    let known = referred(schema).and_then(|name| definitions.get(name));
    known.unwrap_or(schema)
}

/// The name of the type that a schema refers to.
pub(super) fn referred(schema: &JSONSchemaProps) -> Option<&str> {
    let of_option = || {
        schema
            .any_of
            .iter()
            .chain(&schema.all_of)
            .flatten()
            .find_map(referred)
    };
    let path = schema.ref_path.as_deref();
    path.and_then(|path| path.rsplit('/').next())
        .or_else(of_option)
}

/// Each record in the place of the object that the definition leaves open. What the trial says about the field stays.
fn fill_in(trial: &mut JSONSchemaProps, records: JSONSchemaProps) {
    let status = trial
        .properties
        .as_mut()
        .and_then(|parts| parts.get_mut("status"));
    let Some(fields) = status.and_then(|status| status.properties.as_mut()) else {
        return;
    };
    for (name, record) in records.properties.into_iter().flatten() {
        if let Some(field) = fields.get_mut(&name) {
            let description = field.description.take();
            *field = JSONSchemaProps {
                description,
                ..record
            };
        }
    }
}
