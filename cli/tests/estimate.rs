//! How long a benchmark takes, and what admission would refuse, from a file.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::api::folder;

fn smallest() -> Value {
    json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": {"name": "shop"},
        "spec": {
            "candidates": [{"name": "new", "image": "you/shop:1"}],
            "request": {"path": "/"},
        },
    })
}

fn with(changes: &[(&str, Value)]) -> Value {
    let mut benchmark = smallest();
    for (path, value) in changes {
        let (parent, field) = path.rsplit_once('/').unwrap();
        benchmark.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    benchmark
}

fn estimate(case: &str, text: &str, flags: &[&str]) -> Output {
    let path = folder(&format!("estimate-{case}")).join("benchmark.yaml");
    fs::write(&path, text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"))
        .args(["estimate", "--filename"])
        .arg(&path)
        .args(flags)
        // No cluster is asked.
        .env("KUBECONFIG", "/no/such/kubeconfig")
        .output()
        .unwrap()
}

fn printed(test: &str, benchmark: &Value) -> String {
    let done = estimate(test, &benchmark.to_string(), &[]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    String::from_utf8(done.stdout).unwrap()
}

#[track_caller]
fn refused(case: &str, text: &str) -> String {
    let done = estimate(case, text, &[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stdout.is_empty());
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn the_smallest_benchmark_has_an_estimate() {
    insta::assert_snapshot!(printed("smallest", &smallest()), @"
    shop: 10 trials, about 18 min
      1 candidate × 10 blocks, about 111 s per trial.
    ");
}

#[test]
fn looks_a_sweep_a_database_and_a_short_deadline_are_named() {
    let many = with(&[
        ("/spec/trials", json!({"looks": [5, 20], "control": "new"})),
        ("/spec/load", json!({"sweep": {"connections": [1, 2]}})),
        ("/spec/database", json!({"seed": {"contacts": 10}})),
        ("/spec/deadline", json!("39m")),
    ]);
    insta::assert_snapshot!(printed("many", &many), @"
    shop: 80 trials, about 2.6 h
      2 candidates × 2 points × 20 blocks, about 116 s per trial.
      If the look after 5 blocks decides: 20 trials, about 40 min.
      This includes about a minute for the start and the rows of the database.
      Warning: spec.deadline ends the run after about 39 min. Write a longer deadline, or fewer blocks.
    ");
    let mut later = many;
    later["spec"]["deadline"] = json!("45m");
    let reported = printed("later", &later);
    assert!(
        reported
            .contains("if no earlier look decides, spec.deadline ends the run after about 45 min"),
        "{reported}"
    );
    let requests = with(&[("/spec/load", json!({"requests": 8000}))]);
    insta::assert_snapshot!(printed("requests", &requests), @"
    shop: 10 trials
      1 candidate × 10 blocks.
      The time of a number of requests or executions is not known before the first trial.
    ");
}

#[test]
fn json_has_seconds() {
    let done = estimate("json", &smallest().to_string(), &["-o", "json"]);
    let reported: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(reported[0]["run"], json!({"trials": 10, "seconds": 1106.0}));
    assert_eq!(reported[0]["firstLook"], Value::Null);
}

#[test]
fn several_documents_and_lists_are_read() {
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: seed}\n";
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [smallest()]});
    let text = format!("{other}---\n{}\n---\n{list}\n", smallest());
    let done = estimate("documents", &text, &[]);
    let reported = String::from_utf8(done.stdout).unwrap();
    assert_eq!(reported.matches("shop: 10 trials").count(), 2, "{reported}");
    assert!(refused("none", other).contains("the file has no FrugalityBenchmark"));
    assert!(refused("text", "a: [").contains("neither YAML nor JSON"));
}

#[test]
fn what_admission_refuses_is_refused_with_what_to_write() {
    for (path, value, words) in [
        (
            "/spec/candidates/0/port",
            json!(80),
            "spec.candidates[0].port is 80, but must be from 1024 up to 65535",
        ),
        (
            "/spec/candidates/0/prot",
            json!(8080),
            "spec.candidates[0].prot is not a field; the fields are args",
        ),
        (
            "/spec/candidates/0/name",
            json!("A"),
            "spec.candidates[0].name: `A` does not match",
        ),
        (
            "/spec/candidates",
            json!([]),
            "spec.candidates has 0 items, but needs at least 1",
        ),
        (
            "/spec/candidates",
            json!("new"),
            "spec.candidates must be of the type array",
        ),
        (
            "/spec/candidates/0/image",
            Value::Null,
            "spec.candidates[0].image is missing",
        ),
        (
            "/spec/candidates/0/imagePullPolicy",
            json!("Often"),
            "write one of IfNotPresent, Always, Never",
        ),
        (
            "/spec/candidates/1",
            json!({"name": "new", "image": "b"}),
            "spec.candidates[1]: \"new\" occurs twice",
        ),
        ("/metadata/name", Value::Null, "metadata.name is missing"),
        (
            "/metadata/name",
            json!("a.b"),
            "metadata.name must be a DNS label",
        ),
        (
            "/spec/load",
            json!({"duration": "5s"}),
            "load.duration must be from 20s to 1h",
        ),
        (
            "/spec/load",
            json!({"rate": "Most"}),
            "load.rate must be Max or a whole number",
        ),
        ("/spec/request", Value::Null, "spec needs one of request"),
        (
            "/spec/deadline",
            json!("2m"),
            "spec.deadline is shorter than the trials must take",
        ),
        (
            "/spec/budgets",
            json!([{"candidate": "old", "maxErrorRatio": 0}]),
            "every budget must name a candidate",
        ),
    ] {
        let mut benchmark = smallest();
        if path.ends_with("/1") {
            benchmark["spec"]["candidates"]
                .as_array_mut()
                .unwrap()
                .push(value);
        } else {
            benchmark = with(&[(path, value)]);
        }
        let said = refused("refused", &benchmark.to_string());
        assert!(said.contains(words), "{words} is missing in: {said}");
    }
}

/// The checks without an API server must not refuse what an API server accepts.
#[test]
fn every_example_is_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut accepted = 0;
    for file in fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_yaml = path.extension().is_some_and(|it| it == "yaml");
        if !is_yaml || name.ends_with(".patch.yaml") {
            continue;
        }
        let done = estimate("examples", &fs::read_to_string(&path).unwrap(), &[]);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{name}: {said}");
        accepted += 1;
    }
    assert!(accepted > 8);
}
