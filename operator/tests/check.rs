//! The report of `helm test` about the resources that an API server describes.

use frugality_operator::{
    crd::definitions,
    io::check::{CheckError, knows_this_version},
};
use serde_json::{Value, json};

/// This version's definitions in the form in which an API server describes them.
fn described() -> Value {
    let schemas: serde_json::Map<String, Value> = definitions()
        .into_iter()
        .map(|(_, definition)| {
            let kind = definition.spec.names.kind.clone();
            let version = &definition.spec.versions[0];
            let mut schema =
                serde_json::to_value(version.schema.as_ref().unwrap()).unwrap()["openAPIV3Schema"]
                    .take();
            schema["x-kubernetes-group-version-kind"] =
                json!([{"group": "frugality.dev", "version": version.name, "kind": kind}]);
            (format!("dev.frugality.v1alpha1.{kind}"), schema)
        })
        .collect();
    json!({"components": {"schemas": schemas}})
}

fn said(document: &Value) -> String {
    knows_this_version(document).unwrap_err().to_string()
}

#[test]
fn this_versions_definitions_are_known() {
    knows_this_version(&described()).unwrap();
}

#[test]
fn fields_of_a_later_version_are_no_fault() {
    let mut document = described();
    document["components"]["schemas"]["dev.frugality.v1alpha1.FrugalityBenchmark"]["properties"]
        ["later"] = json!({"type": "string"});
    knows_this_version(&document).unwrap();
}

#[test]
fn a_missing_resource_is_named() {
    let mut document = described();
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    schemas.remove("dev.frugality.v1alpha1.FrugalityTrial");
    assert!(said(&document).contains("does not know FrugalityTrial"));
    assert!(said(&json!({})).contains("does not know FrugalityBenchmark"));
}

#[test]
fn fields_that_an_older_definition_lacks_are_named() {
    let mut document = described();
    let spec = &mut document["components"]["schemas"]["dev.frugality.v1alpha1.FrugalityBenchmark"]
        ["properties"]["spec"]["properties"];
    let candidate = &mut spec["candidates"]["items"]["properties"];
    candidate.as_object_mut().unwrap().remove("env").unwrap();
    spec.as_object_mut().unwrap().remove("budgets").unwrap();
    let Err(CheckError::Outdated { kind, fields }) = knows_this_version(&document) else {
        panic!("an older definition passes as this version");
    };
    assert_eq!(kind, "FrugalityBenchmark");
    assert_eq!(fields, ["spec.budgets", "spec.candidates.env"]);
}
