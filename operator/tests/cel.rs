//! The rules by which the API server refuses a spec, evaluated without an API server. For each rule, a test
//! has a spec that breaks the rule, the rule's message, and a spec just inside the limit. The rule of
//! `load.rate` uses the function `type`, which only an API server has. The tests on a cluster cover that
//! rule.

mod batch;
mod budgets;
mod candidates;
mod database;
mod ledger;
mod load;
mod releases;
mod request;
mod scenario;
mod trials;

use std::collections::BTreeMap;

use frugality_operator::api::{
    ALLOWED_PARAMETERS, FrugalityBaseline, FrugalityBenchmark, FrugalityTrial,
};
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

/// The messages of the rules that the object breaks.
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

fn benchmark(changes: &[(&str, Value)]) -> Value {
    let mut object: Value = serde_yaml::from_str(include_str!("fixtures/smallest.yaml")).unwrap();
    for (path, value) in changes {
        put(&mut object, path, value.clone());
    }
    without_nulls(&mut object);
    object
}

/// `broken` breaks the rule, `kept` satisfies the rule.
#[track_caller]
fn rule(message: &str, broken: &[(&str, Value)], kept: &[(&str, Value)]) {
    let schema = schema::<FrugalityBenchmark>();
    let reported = refusals(&schema, &benchmark(broken), None);
    assert!(
        reported.len() == 1 && reported[0].starts_with(message),
        "{broken:?} is answered with {reported:?}"
    );
    let reported = refusals(&schema, &benchmark(kept), None);
    assert!(
        reported.is_empty(),
        "{kept:?} is answered with {reported:?}"
    );
}

/// Names of two candidates. The smallest benchmark has the first one.
const SERVER: &str = "server";

const BEFORE: &str = "before";

fn candidate(name: &str) -> Value {
    json!({"name": name, "image": "example.org/server:1"})
}

/// Checks both limits of a duration. `least` and `most` each hold a value just outside and the limit, which
/// is allowed.
fn duration_rule(message: &str, path: &str, least: [&str; 2], most: [&str; 2]) {
    for [outside, inside] in [least, most] {
        let long = ("spec/deadline", json!("336h"));
        let of = |duration: &str| [long.clone(), (path, json!(duration))];
        rule(message, &of(outside), &of(inside));
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
fn the_crd_has_at_least_twenty_rules() {
    let mut kinds = std::collections::BTreeSet::new();
    collect(&schema::<FrugalityBenchmark>(), &mut |message| {
        kinds.insert(message.to_owned());
    });
    assert!(kinds.len() >= 20, "{kinds:#?}");
}

#[test]
fn every_rule_is_tested() {
    let text: String = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cel"))
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let mut untried = Vec::new();
    for schema in [
        schema::<FrugalityBenchmark>(),
        schema::<FrugalityTrial>(),
        schema::<FrugalityBaseline>(),
    ] {
        collect(&schema, &mut |message| {
            let tried = text
                .split('"')
                .filter(|quoted| quoted.len() >= 15)
                .any(|quoted| message.starts_with(quoted) || quoted.starts_with(message));
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
                let expression = || rule["messageExpression"].as_str()?.split('\'').nth(1);
                let message = rule["message"].as_str().or_else(expression);
                found(message.unwrap());
            }
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
