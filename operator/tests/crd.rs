//! The CRDs: their files match the types, and the types read the YAML that a user writes.

use std::path::{Path, PathBuf};

use frugality_operator::{
    api::{Boundary, Decimal, FrugalityBenchmark, FrugalityBenchmarkSpec, Method},
    crd::definitions,
    plan::settings::Settings,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::common::two;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Visits every schema of a tree, with its path.
fn walk(path: &str, schema: &Value, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    if schema["items"].is_object() {
        walk(&format!("{path}[]"), &schema["items"], visit);
    }
    if schema["additionalProperties"].is_object() {
        walk(
            &format!("{path}{{}}"),
            &schema["additionalProperties"],
            visit,
        );
    }
}

fn schemas() -> Vec<(&'static str, Value)> {
    definitions()
        .into_iter()
        .map(|(name, definition)| {
            let definition = serde_json::to_value(definition).unwrap();
            let schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            assert!(schema["properties"]["spec"].is_object());
            (name, schema)
        })
        .collect()
}

#[test]
fn everything_that_a_user_writes_is_bounded() {
    let mut unbounded = Vec::new();
    for (file, schema) in schemas() {
        walk(
            "spec",
            &schema["properties"]["spec"],
            &mut |path, schema| {
                let is_bounded = match schema["type"].as_str() {
                    Some("string") => {
                        schema["enum"].is_array()
                            || schema["maxLength"].is_number()
                            || schema["format"] == "date-time"
                    }
                    Some("array") => schema["maxItems"].is_number(),
                    Some("object") if schema["additionalProperties"].is_object() => {
                        schema["maxProperties"].is_number()
                    }
                    _ => true,
                };
                if !is_bounded {
                    unbounded.push(format!("{file}: {path}"));
                }
            },
        );
    }
    assert!(unbounded.is_empty(), "without a maximum: {unbounded:#?}");
}

#[test]
fn whole_numbers_that_a_user_writes_have_a_minimum() {
    let mut unbounded = Vec::new();
    let (file, schema) = &schemas()[0];
    walk(
        "spec",
        &schema["properties"]["spec"],
        &mut |path, schema| {
            if schema["type"] == "integer" && !schema["minimum"].is_number() {
                unbounded.push(format!("{file}: {path}"));
            }
        },
    );
    assert!(unbounded.is_empty(), "without a minimum: {unbounded:#?}");
}

#[test]
fn no_format_is_unsigned() {
    for (file, schema) in schemas() {
        walk("", &schema, &mut |path, schema| {
            let format = schema["format"].as_str().unwrap_or_default();
            assert!(!format.starts_with("uint"), "{file}: {path} is {format}");
        });
    }
}

#[test]
fn every_field_that_a_user_writes_is_described() {
    let mut silent = Vec::new();
    let (file, schema) = &schemas()[0];
    walk(
        "spec",
        &schema["properties"]["spec"],
        &mut |path, schema| {
            let is_item = path.ends_with(']') || path.ends_with('}');
            if !is_item && schema["description"].as_str().is_none_or(str::is_empty) {
                silent.push(format!("{file}: {path}"));
            }
        },
    );
    assert!(silent.is_empty(), "without a description: {silent:#?}");
}

#[test]
fn explain_shows_defaults_limits_and_rules() {
    let (_, schema) = schemas().remove(0);
    let spec = &schema["properties"]["spec"]["properties"];
    let reported = |schema: &Value| schema["description"].as_str().unwrap().to_owned();
    let load = &spec["load"]["properties"];
    assert!(reported(&load["connections"]).ends_with("(1 to 1024)"));
    let warm_up = reported(&load["warmUp"]);
    assert!(
        warm_up.ends_with("(default 10s; up to 16 characters; load.warmUp must be from 2s to 10m)"),
        "{warm_up}"
    );
    let batch = &spec["batch"]["properties"];
    let timeout = reported(&batch["timeout"]);
    assert!(
        timeout.contains("(default 10m; ")
            && timeout.contains("batch.timeout must be from 1s to 1h"),
        "{timeout}"
    );
    assert!(reported(&spec["load"]).contains("load takes duration or requests, not both"));
    let attempts = reported(&spec["trials"]["properties"]["maxAttempts"]);
    assert!(
        attempts.ends_with(')') && attempts.contains("(default "),
        "{attempts}"
    );
}

#[test]
fn descriptions_contain_no_line_breaks() {
    let mut broken = Vec::new();
    for (file, schema) in schemas() {
        walk("", &schema, &mut |path, schema| {
            let text = schema["description"].as_str().unwrap_or_default();
            if text.replace("\n\n", "").contains('\n') {
                broken.push(format!("{file}: {path}"));
            }
        });
    }
    assert!(broken.is_empty(), "with line ends: {broken:#?}");
}

#[test]
fn the_columns_show_existing_fields() {
    let columns = |index: usize| -> Vec<(String, String)> {
        let (_, definition) = &definitions()[index];
        definition.spec.versions[0]
            .additional_printer_columns
            .iter()
            .flatten()
            .map(|column| (column.name.clone(), column.json_path.clone()))
            .collect()
    };
    let names = |columns: &[(String, String)]| -> Vec<String> {
        columns.iter().map(|(name, _)| name.clone()).collect()
    };
    let benchmark = columns(0);
    assert_eq!(
        names(&benchmark),
        [
            "Verdict",
            "Winner",
            "Ratio",
            "Energy/req",
            "Req/s",
            "ms/req",
            "Power",
            "Trials",
            "Candidate",
            "Point",
            "CPU-ms/req",
            "Reason",
            "Node",
            "Injector",
            "Left",
            "Age"
        ]
    );
    let trial = columns(1);
    assert_eq!(
        names(&trial),
        [
            "Outcome",
            "Reason",
            "Gross/req",
            "Req/s",
            "ms/req",
            "Benchmark",
            "Point",
            "Block",
            "Attempt",
            "Candidate",
            "Errors",
            "Message",
            "Age"
        ]
    );
    let baseline = columns(2);
    assert_eq!(
        names(&baseline),
        ["Image", "Promoted-From", "Pinned", "Promoted-Image", "Age"]
    );
    let trace = columns(3);
    assert_eq!(
        names(&trace),
        [
            "Benchmark",
            "Point",
            "Candidate",
            "Block",
            "Attempt",
            "Power",
            "Age"
        ]
    );
    // Each column shows a field that exists.
    for (columns, (file, schema)) in [benchmark, trial, baseline, trace].iter().zip(schemas()) {
        for (name, path) in columns.iter().filter(|(name, _)| name != "Age") {
            let field = path
                .trim_start_matches('.')
                .split('.')
                .fold(&schema, |schema, field| &schema["properties"][field]);
            assert!(
                field["type"].is_string(),
                "{file}: column {name} shows {path}"
            );
        }
    }
}

#[test]
fn the_status_is_a_subresource_and_the_short_names_are_short() {
    for (index, short) in [(0, "fb"), (1, "fbt"), (2, "fbl"), (3, "fbtr")] {
        let (_, definition) = &definitions()[index];
        let version = &definition.spec.versions[0];
        // The course of an attempt has no status.
        let has_status = version
            .subresources
            .as_ref()
            .is_some_and(|it| it.status.is_some());
        assert_eq!(has_status, index < 3);
        let names = &definition.spec.names;
        assert_eq!(names.short_names.as_deref(), Some(&[short.to_owned()][..]));
        assert_eq!(
            names.categories.as_deref(),
            Some(&["frugality".to_owned()][..])
        );
    }
}

/// Tools that know kstatus treat an object without a status as ready.
#[test]
fn a_new_benchmark_is_marked_as_unseen() {
    let (_, schema) = schemas().remove(0);
    let status = &schema["properties"]["status"];
    assert_eq!(status["default"], json!({"observedGeneration": -1}));
    let seen = two();
    assert_eq!(seen.status.as_ref().unwrap().observed_generation, Some(-1));
    assert_eq!(seen.current_status(), None);
}

/// `kubectl apply` compares whole lists. If the API server filled in a default, the list would never equal
/// the list in the file. kubectl would then report an unchanged file as `configured`.
#[test]
fn fields_in_lists_have_no_defaults() {
    let (_, schema) = schemas().remove(0);
    let mut filled = Vec::new();
    walk(
        "spec",
        &schema["properties"]["spec"],
        &mut |path, schema| {
            if path.contains("[]") && !schema["default"].is_null() {
                filled.push(path.to_owned());
            }
        },
    );
    assert!(filled.is_empty(), "with a default: {filled:#?}");
    let candidate = &schema["properties"]["spec"]["properties"]["candidates"]["items"];
    let reported = candidate["properties"]["port"]["description"]
        .as_str()
        .unwrap();
    assert!(reported.contains("(default 8080; "), "{reported}");
}

#[test]
fn decimals_are_written_as_numbers() {
    let budget = "{candidate: server, maxJoulesPerRequest: 0.02, maxMillisecondsPerRequest: 20, maxErrorRatio: 0.0010}";
    let text = include_str!("fixtures/smallest.yaml");
    let mut benchmark: Value = serde_yaml::from_str(text).unwrap();
    benchmark["spec"]["budgets"] = json!([serde_yaml::from_str::<Value>(budget).unwrap()]);
    let spec = serde_json::from_value::<FrugalityBenchmark>(benchmark)
        .unwrap()
        .spec;
    let budget = &spec.budgets[0];
    let written = |decimal: &Option<Decimal>| decimal.as_ref().unwrap().to_string();
    assert_eq!(written(&budget.max_joules_per_request), "0.02");
    assert_eq!(written(&budget.max_milliseconds_per_request), "20");
    assert_eq!(written(&budget.max_error_ratio), "0.001");
    let stored = serde_json::to_value(budget).unwrap();
    assert_eq!(stored["maxJoulesPerRequest"], json!(0.02));
    assert_eq!(stored["maxMillisecondsPerRequest"], json!(20));
    let (_, schema) = schemas().remove(0);
    let budget = &schema["properties"]["spec"]["properties"]["budgets"]["items"];
    assert_eq!(
        budget["properties"]["maxJoulesPerRequest"]["type"],
        "number"
    );
}

/// The spec of the only benchmark in a file.
fn spec(path: &Path) -> FrugalityBenchmarkSpec {
    let mut all = specs(path);
    assert_eq!(all.len(), 1, "{}", path.display());
    all.remove(0)
}

fn specs(path: &Path) -> Vec<FrugalityBenchmarkSpec> {
    let text = std::fs::read_to_string(path).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents
        .map(|document| {
            FrugalityBenchmark::deserialize(document)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
                .spec
        })
        .collect()
}

#[test]
fn the_smallest_benchmark_has_the_documented_defaults() {
    let spec = spec(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smallest.yaml"));
    let candidate = &spec.candidates[0];
    assert_eq!(candidate.server.port, 8080);
    assert_eq!(candidate.server.readiness_path, "/healthz");
    assert_eq!(spec.database, None);
    let request = spec.request.as_ref().unwrap();
    assert_eq!(request.method, Method::Get);
    assert_eq!(request.expected_status, [200]);
    assert_eq!(Settings::parse(&spec).unwrap().points[0].connections, 4);
    assert_eq!(spec.load.rate, IntOrString::String("Max".into()));
    assert_eq!(spec.load.warm_up.to_string(), "10s");
    assert_eq!(spec.load.timeout.to_string(), "3s");
    assert_eq!(spec.trials.blocks, 10);
    assert_eq!(spec.trials.seed, 1);
    assert_eq!(spec.trials.max_attempts, 3);
    assert_eq!(spec.trials.idle_baseline.to_string(), "15s");
    assert_eq!(spec.energy.boundary, Boundary::CandidateAndDatabase);
    assert!(!spec.energy.allow_modelled);
    assert!(!spec.placement.allow_shared_node);
    assert_eq!(spec.deadline.to_string(), "6h");

    let settings = Settings::parse(&spec).unwrap();
    assert_eq!(
        settings.amount,
        frugality_measure::fortio::Amount::DurationSeconds(60.0)
    );
    assert_eq!(settings.deciding.word(), "gross");
    assert_eq!(settings.points[0].name, "c4-max");
}

/// Paths of the fields that a schema requires and a value lacks.
fn lacking(path: &str, schema: &Value, value: &Value) -> Vec<String> {
    if let Value::Array(items) = value {
        let of_item = |item| lacking(&format!("{path}[]"), &schema["items"], item);
        return items.iter().flat_map(of_item).collect();
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let names = required.filter_map(Value::as_str);
    let absent = names.filter(|name| value.get(name).is_none());
    let mut lacked: Vec<String> = absent.map(|name| format!("{path}.{name}")).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            lacked.extend(lacking(&format!("{path}.{name}"), property, value));
        }
    }
    lacked
}

/// The object as the API server sees it, before our types read it.
#[test]
fn the_smallest_benchmark_has_all_required_fields() {
    let text = include_str!("fixtures/smallest.yaml");
    let benchmark: Value = serde_yaml::from_str(text).unwrap();
    let [(_, definition), ..] = definitions();
    let definition = serde_json::to_value(definition).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(lacking("", schema, &benchmark), Vec::<String>::new());
    let mut without_image = benchmark.clone();
    let candidate = without_image["spec"]["candidates"][0].as_object_mut();
    candidate.unwrap().remove("image");
    assert_eq!(
        lacking("", schema, &without_image),
        [".spec.candidates[].image"]
    );
}

#[test]
fn at_a_fixed_rate_net_energy_decides() {
    let mut spec =
        spec(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smallest.yaml"));
    spec.load.rate = IntOrString::Int(200);
    let settings = Settings::parse(&spec).unwrap();
    assert_eq!(settings.deciding.word(), "net");
    assert_eq!(settings.points[0].name, "c4-r200");
}

#[test]
fn the_crds_defaults_equal_the_types_defaults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/smallest.yaml");
    let filled = serde_json::to_value(spec(&path)).unwrap();
    let (_, schema) = &schemas()[0];
    let spec_schema = &schema["properties"]["spec"];
    let mut compared = 0;
    for (name, part) in spec_schema["properties"].as_object().unwrap() {
        for (field, property) in part["properties"].as_object().into_iter().flatten() {
            if let Some(default) = property.get("default") {
                let typed = filled.get(name).and_then(|part| part.get(field));
                assert!(
                    typed.is_none_or(|typed| typed == default),
                    "{name}.{field}: {typed:?} in the types, {default} in the CRD"
                );
                compared += usize::from(typed.is_some());
            }
        }
    }
    assert!(compared >= 10, "only {compared} defaults compared");
}

#[test]
fn the_examples_are_benchmarks() {
    let mut benchmarks = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "yaml")
            || name.ends_with(".patch.yaml")
        {
            continue;
        }
        for spec in specs(&path) {
            Settings::parse(&spec).unwrap_or_else(|error| panic!("{name}: {error}"));
            benchmarks += 1;
        }
    }
    assert!(benchmarks > 0);
}

#[test]
fn a_field_that_does_not_exist_is_refused_by_name() {
    let text = "{apiVersion: frugality.dev/v1alpha1, kind: FrugalityBenchmark, metadata: {name: a}, \
                spec: {candidates: [], request: {path: /}, load: {conections: 4}}}";
    let error = serde_yaml::from_str::<FrugalityBenchmark>(text).unwrap_err();
    assert!(error.to_string().contains("conections"), "{error}");
}

#[test]
fn no_field_of_a_status_is_required() {
    for (file, schema) in schemas() {
        let required = &schema["properties"]["status"]["required"];
        assert!(required.is_null(), "{file}: status requires {required}");
    }
}
