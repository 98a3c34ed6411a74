//! The rules by which the API server refuses a spec, tried without one: each has a spec that breaks
//! it, with its message, and one just inside. The rule of `load.rate` alone uses a function (`type`)
//! that only an API server has; it is left to the tests on a cluster.

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrial};
use kube::CustomResourceExt;
use kube_cel::Validator;
use serde_json::{Value, json};

fn schema<K: CustomResourceExt>() -> Value {
    let mut definition = serde_json::to_value(K::crd()).unwrap();
    let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    if let Some(rate) = schema
        .pointer_mut("/properties/spec/properties/load/properties/rate/x-kubernetes-validations")
    {
        *rate = json!([]);
    }
    schema
}

/// The messages that the API server would answer with.
fn refusals(schema: &Value, object: &Value, earlier: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(schema, object, earlier) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_vec().into_iter().map(|e| e.message).collect(),
    }
}

/// Puts a value at a path such as `spec/load/duration` or `spec/candidates/0/env`.
fn put(object: &mut Value, path: &str, value: Value) {
    let place = path.split('/').fold(object, |place, key| match place {
        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
        _ => &mut place[key],
    });
    *place = value;
}

fn benchmark(changes: &[(&str, Value)]) -> Value {
    let mut object: Value = serde_yaml::from_str(include_str!("fixtures/smallest.yaml")).unwrap();
    for (path, value) in changes {
        put(&mut object, path, value.clone());
    }
    object
}

/// The first change breaks the rule, the second keeps it.
#[track_caller]
fn rule(message: &str, broken: &[(&str, Value)], kept: &[(&str, Value)]) {
    let schema = schema::<FrugalityBenchmark>();
    let told = refusals(&schema, &benchmark(broken), None);
    assert!(
        told.len() == 1 && told[0].starts_with(message),
        "{broken:?} is answered with {told:?}"
    );
    let told = refusals(&schema, &benchmark(kept), None);
    assert!(told.is_empty(), "{kept:?} is answered with {told:?}");
}

/// A duration from `least` to `most`, both allowed.
fn duration_rule(message: &str, path: &str, least: [&str; 2], most: [&str; 2]) {
    for [outside, inside] in [least, most] {
        rule(message, &[(path, json!(outside))], &[(path, json!(inside))]);
    }
}

#[test]
fn the_smallest_benchmark_is_accepted() {
    let schema = schema::<FrugalityBenchmark>();
    assert_eq!(
        refusals(&schema, &benchmark(&[]), None),
        Vec::<String>::new()
    );
}

#[test]
fn names_leave_room_for_what_is_made_from_them() {
    let message = "metadata.name must be a DNS label of at most 30 characters";
    let name = |text: &str| [("metadata/name", json!(text))];
    rule(message, &name(&"a".repeat(31)), &name(&"a".repeat(30)));
    rule(message, &name("1a"), &name("a1"));
    rule(message, &name("a.b"), &name("a-b"));
}

#[test]
fn budgets_need_enough_blocks() {
    let with = |blocks: i32| {
        [
            (
                "spec/budgets",
                json!([{"candidate": "server", "maxErrorRatio": "0.01"}]),
            ),
            ("spec/trials", json!({ "blocks": blocks })),
        ]
    };
    rule(
        "budgets need spec.trials.blocks of at least 5",
        &with(4),
        &with(5),
    );
}

#[test]
fn budgets_name_a_candidate() {
    let of = |name: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": name, "minRequestsPerSecond": "100"}]),
        )]
    };
    rule(
        "every budget must name a candidate",
        &of("serve"),
        &of("server"),
    );
}

#[test]
fn looks_ascend_and_end_with_the_blocks() {
    let of = |trials: Value| [("spec/trials", trials)];
    let message = "trials.looks must ascend";
    let good = json!({"blocks": 20, "looks": [10, 15, 20]});
    for looks in [
        json!([15, 10, 20]),
        json!([10, 10, 20]),
        json!([10, 25, 20]),
    ] {
        let bad = json!({"blocks": 20, "looks": looks});
        rule(message, &of(bad), &of(good.clone()));
    }
    let message = "trials.looks must end with trials.blocks";
    // 10 is also what stands there when blocks are left out.
    let left_out = json!({"blocks": 10, "looks": [10, 15, 20]});
    let other = json!({"blocks": 15, "looks": [10, 15, 20]});
    rule(message, &of(other.clone()), &of(good));
    rule(message, &of(other), &of(left_out));
}

#[test]
fn the_control_is_a_candidate() {
    let of = |name: &str| [("spec/trials", json!({"blocks": 10, "control": name}))];
    rule(
        "trials.control must name a candidate",
        &of("serve"),
        &of("server"),
    );
}

#[test]
fn a_ratio_has_another_candidate() {
    let of = |budget: Value| {
        [
            (
                "spec/candidates",
                json!([
                    {"name": "server", "image": "example.org/server:2"},
                    {"name": "before", "image": "example.org/server:1"},
                ]),
            ),
            ("spec/budgets", json!([budget])),
        ]
    };
    let good = json!({"candidate": "server", "maxEnergyRatio": "1.05", "against": "before"});
    let message = "maxEnergyRatio and against go together";
    rule(
        message,
        &of(json!({"candidate": "server", "maxEnergyRatio": "1.05"})),
        &of(good.clone()),
    );
    rule(
        message,
        &of(json!({"candidate": "server", "maxErrorRatio": "0.1", "against": "before"})),
        &of(good.clone()),
    );
    for name in ["server", "nobody"] {
        let mut bad = good.clone();
        bad["against"] = json!(name);
        rule(
            "a budget's against must name another candidate",
            &of(bad),
            &of(good.clone()),
        );
    }
    let mut bad = good.clone();
    bad["maxEnergyRatio"] = json!("0.0");
    rule("maxEnergyRatio must be above 0", &of(bad), &of(good));
}

#[test]
fn a_tie_has_a_width() {
    let of = |share: &str| [("spec/energy", json!({"tieWithin": share}))];
    let message = "energy.tieWithin is a share above 0 and up to 1";
    rule(message, &of("0.0"), &of("0.001"));
    rule(message, &of("1.1"), &of("1"));
}

#[test]
fn budgets_limit_something() {
    let message = "a budget needs at least one of";
    for limit in [
        "maxJoulesPerRequest",
        "maxMillisecondsPerRequest",
        "minRequestsPerSecond",
        "maxErrorRatio",
    ] {
        rule(
            message,
            &[("spec/budgets", json!([{"candidate": "server"}]))],
            &[(
                "spec/budgets",
                json!([{"candidate": "server", limit: "0.5"}]),
            )],
        );
    }
}

#[test]
fn an_error_ratio_is_a_share() {
    let of = |ratio: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": "server", "maxErrorRatio": ratio}]),
        )]
    };
    rule(
        "maxErrorRatio is a share from 0 to 1",
        &of("1.001"),
        &of("1.0"),
    );
}

#[test]
fn what_all_candidates_are_given_alike_is_not_theirs_to_set() {
    let of = |name: &str| {
        [(
            "spec/candidates/0/env",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for name in ["PORT", "DATABASE_URL", "POOL_SIZE", "PGUSER", "PGPASSWORD"] {
        rule("env must not set PORT", &of(name), &of("PORTS"));
    }
}

#[test]
fn the_database_image_names_its_version() {
    let of = |image: &str| {
        [(
            "spec/database",
            json!({"image": image, "seed": {"contacts": 10}}),
        )]
    };
    let message = "database.image needs a tag";
    rule(
        message,
        &of("example.org/postgresql:latest"),
        &of("example.org/postgresql:17.5"),
    );
    rule(
        message,
        &of("example.org:5000/postgresql"),
        &of("example.org:5000/postgresql:15-bookworm"),
    );
}

#[test]
fn a_database_is_filled_in_one_way() {
    let of = |seed: Value| [("spec/database", json!({ "seed": seed }))];
    let own = json!({"name": "sql", "key": "seed.sql", "table": "t", "rows": 3});
    let message = "database.seed needs exactly one of";
    rule(message, &of(json!({})), &of(json!({"contacts": 10})));
    rule(
        message,
        &of(json!({"contacts": 10, "configMap": own})),
        &of(json!({"configMap": own})),
    );
}

#[test]
fn the_deadline_leaves_time() {
    let message = "spec.deadline must be from 1m to 336h";
    for (wrong, right) in [("59s", "60s"), ("337h", "336h")] {
        rule(
            message,
            &[("spec/deadline", json!(wrong))],
            &[("spec/deadline", json!(right))],
        );
    }
}

#[test]
fn the_nodes_energy_is_not_the_candidates_alone() {
    let of = |figure: Value| {
        let mut energy = json!({"boundary": "Candidate"});
        if figure.is_string() {
            energy["decidingFigure"] = figure;
        }
        [("spec/energy", energy)]
    };
    let message = "energy.boundary Candidate needs energy.decidingFigure Attributed";
    rule(message, &of(json!("Gross")), &of(json!("Attributed")));
    rule(message, &of(Value::Null), &of(json!("Attributed")));
}

#[test]
fn a_window_has_a_length_or_a_number_of_requests() {
    rule(
        "load takes duration or requests, not both",
        &[("spec/load", json!({"duration": "20s", "requests": 1000}))],
        &[("spec/load", json!({"requests": 1000}))],
    );
}

#[test]
fn durations_stay_within_what_can_be_measured() {
    duration_rule(
        "load.duration must be from 20s to 1h",
        "spec/load/duration",
        ["19999ms", "20s"],
        ["3601s", "1h"],
    );
    duration_rule(
        "load.warmUp must be from 2s to 10m",
        "spec/load/warmUp",
        ["1s", "2s"],
        ["10m1s", "10m"],
    );
    duration_rule(
        "load.timeout must be from 100ms to 1m",
        "spec/load/timeout",
        ["99ms", "100ms"],
        ["61s", "1m"],
    );
    duration_rule(
        "trials.idleBaseline must be from 5s to 10m",
        "spec/trials/idleBaseline",
        ["4s", "5s"],
        ["11m", "10m"],
    );
}

#[test]
fn a_body_goes_with_a_method_that_has_one() {
    let of = |method: &str| {
        [(
            "spec/request",
            json!({"path": "/", "method": method, "body": "x"}),
        )]
    };
    for method in ["POST", "PUT", "PATCH"] {
        rule(
            "request.body goes with method POST, PUT or PATCH",
            &of("GET"),
            &of(method),
        );
    }
}

fn entry(status: &Value) -> Value {
    json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityTrial",
        "metadata": {"name": "t"},
        "spec": {
            "benchmark": "b", "run": "01234567", "point": "c4-max", "block": 1, "position": 1,
            "attempt": 1, "candidate": "rust", "measuredNode": "pi-1",
            "injectorNode": "injector-1", "seed": 1,
        },
        "status": status,
    })
}

#[test]
fn an_entry_of_the_ledger_is_not_rewritten() {
    let schema = schema::<FrugalityTrial>();
    let before = entry(&json!({}));
    let mut after = before.clone();
    assert!(refusals(&schema, &after, Some(&before)).is_empty());
    after["spec"]["candidate"] = json!("python");
    assert_eq!(
        refusals(&schema, &after, Some(&before)),
        ["an entry of the ledger can't be rewritten"]
    );
}

#[test]
fn an_entry_that_has_an_outcome_is_final() {
    let schema = schema::<FrugalityTrial>();
    let open = entry(&json!({"idleBefore": {"startUnixSeconds": 1.0, "endUnixSeconds": 2.0}}));
    let void = entry(&json!({"outcome": "Void", "reason": "PodReplaced"}));
    let measured = entry(&json!({"outcome": "Measured", "reason": "Measured"}));
    assert!(refusals(&schema, &void, Some(&open)).is_empty());
    assert!(refusals(&schema, &void, Some(&void)).is_empty());
    assert_eq!(
        refusals(&schema, &measured, Some(&void)),
        ["an entry of the ledger that has an outcome can't be rewritten"]
    );
}

#[test]
fn no_rule_is_untried() {
    let text = include_str!("cel.rs");
    let mut untried = Vec::new();
    for schema in [schema::<FrugalityBenchmark>(), schema::<FrugalityTrial>()] {
        collect(&schema, &mut |message| {
            let tried = text
                .split('"')
                .any(|quoted| quoted.len() >= 15 && message.starts_with(quoted));
            if !tried {
                untried.push(message.to_owned());
            }
        });
    }
    assert!(untried.is_empty(), "{untried:#?}");
}

fn collect(schema: &Value, found: &mut dyn FnMut(&str)) {
    match schema {
        Value::Object(fields) => {
            for rule in fields
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                found(
                    rule["message"]
                        .as_str()
                        .unwrap_or("a rule without a message"),
                );
            }
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
