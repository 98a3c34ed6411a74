//! The IDs of runs of fixed benchmarks.
//!
//! The ID of a run is a hash of the serialized spec. If an ID below changes, then at an upgrade every benchmark of
//! every user starts a new run, and its earlier trials no longer count. So do not replace the ID. Find what changed
//! the serialized form, and take that back:
//!
//! - A new field is an `Option` (or a list, or a flag) that is not serialized if it is absent. It has no default
//!   with a value.
//! - A default keeps its value. A renamed field keeps its serialized name.
//! - A field that does not affect the measurement is left out of the ID (`plan/names`).
//!
//! If the measurement itself has changed, so that earlier trials must not be compared with new ones, replace the IDs
//! and say in `CHANGELOG.md` that all benchmarks are measured again.

use frugality_operator::{
    api::FrugalityBenchmark,
    crd::definitions,
    plan::names::{measurement_id, run_id},
};
use serde_json::{Value, json};

const UID: &str = "6f1c2a54-0d3b-4c1e-9a77-2b8f5e9d0c11";

/// Fills in what a schema has defaults for, as an API server does: outer values first.
fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let default = &property["default"];
                if !default.is_null() && !fields.contains_key(name) {
                    fields.insert(name.clone(), default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    fill(property, field);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                fill(&schema["items"], item);
            }
        }
        _ => {}
    }
}

/// The benchmark as the API server stores it, with a fixed UID and some changes of its spec.
fn stored(text: &str, changes: &[(&str, Value)]) -> Value {
    let mut object: Value = serde_yaml::from_str(text).unwrap();
    object["metadata"]["uid"] = UID.into();
    for (field, value) in changes {
        object["spec"][*field] = value.clone();
    }
    let spec = object["spec"].as_object_mut().unwrap();
    spec.retain(|_, field| !field.is_null());
    let [(_, definition), ..] = definitions();
    let definition = serde_json::to_value(definition).unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    fill(definition.pointer(schema).unwrap(), &mut object);
    object
}

fn ids(object: &Value) -> (String, String) {
    let benchmark: FrugalityBenchmark = serde_json::from_value(object.clone()).unwrap();
    (run_id(&benchmark), measurement_id(&benchmark))
}

const SMALLEST: &str = include_str!("fixtures/smallest.yaml");
const FULL: &str = include_str!("fixtures/full.yaml");

#[track_caller]
fn assert_ids(object: &Value, run: &str, measurement: &str) {
    let found = ids(object);
    assert_eq!(
        (found.0.as_str(), found.1.as_str()),
        (run, measurement),
        "read the first lines of operator/tests/identity.rs before you change these IDs"
    );
}

#[test]
fn the_ids_of_a_benchmark_with_defaults_only_are_pinned() {
    let object = stored(SMALLEST, &[]);
    assert_eq!(object["spec"]["trials"]["blocks"], 10, "it is filled in");
    assert_ids(&object, "46603b28", "74f98161");
}

#[test]
fn the_ids_of_a_benchmark_with_every_field_are_pinned() {
    assert_ids(&stored(FULL, &[]), "0342da34", "258f13ea");
}

#[test]
fn the_ids_of_a_scenario_a_batch_a_sweep_and_a_database_are_pinned() {
    let none = ("request", Value::Null);
    let scenario = json!({"script": "export default () => {};", "rampUp": "2s"});
    let program =
        json!([{"name": "program", "image": "example.org/program:1", "command": ["work"]}]);
    let sweep =
        json!({"sweep": {"connections": [1, 2, 4], "replicas": [1, 2], "maxErrorRatio": 0.01}});
    let standalone = json!({"provider": "Standalone", "runAsUser": 999, "seed": {"contacts": 5}});
    let found = [
        vec![none.clone(), ("scenario", scenario)],
        vec![
            none,
            ("candidates", program),
            ("batch", json!({"executions": 3})),
        ],
        vec![("load", sweep)],
        vec![("database", standalone)],
    ]
    .map(|changes| ids(&stored(SMALLEST, &changes)).0);
    assert_eq!(
        found,
        ["12dcf93a", "71a651f3", "edbdcad0", "af7152ad"],
        "read the first lines of operator/tests/identity.rs before you change these IDs"
    );
}

/// The API server fills in objects, and the operator fills in the items of lists.
#[test]
fn a_benchmark_has_the_same_ids_before_and_after_the_api_server_fills_it_in() {
    for text in [SMALLEST, FULL] {
        let mut written: Value = serde_yaml::from_str(text).unwrap();
        written["metadata"]["uid"] = UID.into();
        assert_eq!(ids(&written), ids(&stored(text, &[])));
    }
}

/// Who adds blocks because a run was undecided tries again.
#[test]
fn more_trials_or_another_order_of_them_are_another_run_of_the_same_measurement() {
    let (run, measurement) = ids(&stored(SMALLEST, &[]));
    let trials = stored(SMALLEST, &[])["spec"]["trials"].clone();
    let with = |field: &str, value: Value| {
        let mut trials = trials.clone();
        trials[field] = value;
        ids(&stored(SMALLEST, &[("trials", trials)]))
    };
    for (field, value) in [
        ("blocks", json!(20)),
        ("looks", json!([5, 10])),
        ("seed", json!(7)),
        ("maxAttempts", json!(5)),
    ] {
        let (other_run, same) = with(field, value);
        assert_ne!(other_run, run, "{field}");
        assert_eq!(same, measurement, "{field}");
    }
    // Another control or baseline is another measurement.
    assert_ne!(with("idleBaseline", json!("20s")).1, measurement);
    assert_ne!(with("control", json!("rust")).1, measurement);
}

/// A change of the judgement starts no run.
#[test]
fn budgets_energy_deadline_suspension_and_time_to_live_change_no_id() {
    let pinned = ids(&stored(SMALLEST, &[]));
    let costs = json!({
        "nodeLifetime": "43800h",
        "money": {"currency": "EUR", "node": 80, "perKilowattHour": 0.3},
    });
    for change in [
        (
            "budgets",
            json!([{"candidate": "server", "maxErrorRatio": 0}]),
        ),
        ("energy", json!({"decidingFigure": "Net"})),
        ("costs", costs),
        ("deadline", json!("12h")),
        ("suspend", json!(true)),
        ("ttlAfterFinished", json!("1h")),
        ("runsToKeep", json!(2)),
    ] {
        assert_eq!(
            ids(&stored(SMALLEST, std::slice::from_ref(&change))),
            pinned,
            "{}",
            change.0
        );
    }
    let again = ids(&stored(SMALLEST, &[("rerun", json!(2))]));
    assert_ne!(again.0, pinned.0);
    assert_eq!(again.1, pinned.1);
}
