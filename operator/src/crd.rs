//! The custom resource definitions, generated from the Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::{CustomResourceExt, Resource};
use serde_json::json;

use crate::api::{
    BASELINE, FrugalityBaseline, FrugalityBenchmark, FrugalityTrace, FrugalityTrial, NOT_SEEN,
};

/// The definitions with their file names. The descriptions include defaults, limits and rules.
#[must_use]
pub fn definitions() -> [(&'static str, CustomResourceDefinition); 4] {
    bare_definitions().map(|(name, mut definition)| {
        for schema in schemas(&mut definition) {
            let spec = schema.properties.as_mut().and_then(|it| it.get_mut("spec"));
            let fields = spec.and_then(|spec| spec.properties.as_mut());
            for (_, field) in fields.into_iter().flatten() {
                tell_limits(field);
                leave_lists_as_written(field);
            }
        }
        (name, definition)
    })
}

/// The definitions without defaults and limits in the descriptions, for output that shows them separately.
#[must_use]
pub fn bare_definitions() -> [(&'static str, CustomResourceDefinition); 4] {
    [
        ("frugalitybenchmarks.yaml", FrugalityBenchmark::crd()),
        ("frugalitytrials.yaml", FrugalityTrial::crd()),
        ("frugalitybaselines.yaml", FrugalityBaseline::crd()),
        ("frugalitytraces.yaml", FrugalityTrace::crd()),
    ]
    .map(|(name, mut definition)| {
        let kind = definition.spec.names.kind.clone();
        for schema in schemas(&mut definition) {
            join_lines(schema);
            if kind == FrugalityBenchmark::kind(&()) {
                default_status(schema);
            }
            if kind == FrugalityBaseline::kind(&()) {
                default_name(schema);
            }
        }
        (name, definition)
    })
}

/// The API server fills in this default until the operator writes a status. It says that the operator has not seen
/// the benchmark.
fn default_status(schema: &mut JSONSchemaProps) {
    let status = schema
        .properties
        .iter_mut()
        .find_map(|it| it.get_mut("status"));
    if let Some(status) = status {
        status.default = Some(JSON(json!({ "observedGeneration": NOT_SEEN })));
    }
}

/// A baseline's candidate takes part under a fixed name, so its own name may be left out.
fn default_name(schema: &mut JSONSchemaProps) {
    let name = ["spec", "candidate", "name"]
        .iter()
        .try_fold(schema, |schema, field| {
            schema.properties.as_mut()?.get_mut(*field)
        });
    if let Some(name) = name {
        name.default = Some(JSON(json!(BASELINE)));
    }
}

fn schemas(
    definition: &mut CustomResourceDefinition,
) -> impl Iterator<Item = &mut JSONSchemaProps> {
    let versions = definition.spec.versions.iter_mut();
    let schemas = versions.filter_map(|version| version.schema.as_mut());
    schemas.filter_map(|schema| schema.open_api_v3_schema.as_mut())
}

/// Adds to the descriptions what `kubectl explain` does not show: defaults, limits and rules.
fn tell_limits(schema: &mut JSONSchemaProps) {
    let default = schema.default.as_ref().map(|default| &default.0);
    let default = default.filter(|value| !value.is_object() && !value.is_array());
    let default = default.map(|value| match value.as_str() {
        Some(text) => format!("default {text}"),
        None => format!("default {value}"),
    });
    let rules = schema.x_kubernetes_validations.iter().flatten();
    let limits: Vec<String> = default
        .into_iter()
        .chain(bounds(schema))
        .chain(rules.filter_map(|rule| rule.message.clone()))
        .collect();
    if let Some(description) = &mut schema.description
        && !limits.is_empty()
    {
        *description = format!("{description} ({})", limits.join("; "));
    }
    for_each_within(schema, tell_limits);
}

/// `kubectl apply` merges the maps of a custom resource, but compares its lists as wholes. If the API server
/// filled defaults into a list's items, the list would never equal the list in the file. Each `apply` would change
/// it and print `configured`. So only the operator fills in the items (serde's defaults). The descriptions still
/// show these defaults.
fn leave_lists_as_written(schema: &mut JSONSchemaProps) {
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        without_defaults(item);
    }
    for_each_within(schema, leave_lists_as_written);
}

fn without_defaults(schema: &mut JSONSchemaProps) {
    schema.default = None;
    for_each_within(schema, without_defaults);
}

/// Range of a value, and longest text or list, in a few words.
#[must_use]
pub fn bounds(schema: &JSONSchemaProps) -> Option<String> {
    let size = match (schema.minimum, schema.maximum) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("at least {least}")),
        (None, Some(most)) => Some(format!("at most {most}")),
        (None, None) => None,
    };
    let length = match (schema.max_length, schema.max_items) {
        (Some(most), _) => Some(format!("up to {most} characters")),
        (_, Some(most)) => Some(format!("up to {most}")),
        _ => None,
    };
    let reported: Vec<String> = [size, length].into_iter().flatten().collect();
    (!reported.is_empty()).then(|| reported.join(", "))
}

/// Removes the line ends of the source from the descriptions, because `kubectl explain` keeps them and adds its
/// own.
fn join_lines(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<String> = description
            .split("\n\n")
            .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
    for_each_within(schema, join_lines);
}

fn for_each_within(schema: &mut JSONSchemaProps, change: fn(&mut JSONSchemaProps)) {
    schema
        .properties
        .iter_mut()
        .flat_map(|map| map.values_mut())
        .for_each(change);
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        change(item);
    }
}
