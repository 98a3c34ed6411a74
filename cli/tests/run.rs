//! From an image to a verdict: the benchmark as YAML, and the program with a list of answers.

use std::process::Output;

use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, refusal},
    data,
};

const SHOP: &str = "ghcr.io/you/shop:1.3";

fn texts(done: Output) -> (Option<i32>, String, String) {
    let [said, progress] = [done.stdout, done.stderr].map(|it| String::from_utf8(it).unwrap());
    (done.status.code(), said, progress)
}

/// A run without a cluster.
fn dry(arguments: &[&str]) -> (Option<i32>, String, String) {
    let api = Api::answering("run-dry", vec![(500, String::new())]);
    let done = api.run(&[&["run", "--dry-run=client"], arguments].concat());
    assert_eq!(api.asked(), Vec::<String>::new());
    texts(done)
}

#[test]
fn the_smallest_file_has_only_what_differs_from_the_defaults() {
    let (code, yaml, progress) = dry(&[SHOP]);
    assert_eq!(code, Some(0), "{progress}");
    insta::assert_snapshot!(yaml, @"
    apiVersion: frugality.dev/v1alpha1
    kind: FrugalityBenchmark
    metadata:
      name: shop
    spec:
      candidates:
      - image: ghcr.io/you/shop:1.3
        name: shop
      request:
        path: /
    ");
    assert!(
        progress.starts_with("shop: 10 trials, about 18 min\n"),
        "{progress}"
    );
}

#[test]
fn a_dry_run_without_a_value_asks_no_cluster() {
    let api = Api::answering("run-dry-short", vec![(500, String::new())]);
    let short = texts(api.run(&["run", "--dry-run", SHOP, "-o", "yaml"]));
    assert_eq!(api.asked(), Vec::<String>::new());
    assert_eq!(short, dry(&[SHOP]));
    let (code, _, said) = texts(api.run(&["run", "--dry-run", "server"]));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("write --dry-run=server, and the image"),
        "{said}"
    );
}

#[test]
fn every_option_is_in_the_file() {
    let against = [
        "--against",
        "ghcr.io/you/shop:1.2",
        "--name=release",
        "-n=farm",
    ];
    let load = [
        "--path=/p",
        "--port=9000",
        "--connections=8",
        "--blocks=50",
        "--duration=5m",
    ];
    let budgets = [
        "--budget=mJ=5",
        "--budget=ms=20",
        "--budget=ratio=1.05",
        "--readiness-path=/ok",
        "--allow-modelled",
    ];
    let (code, yaml, progress) = dry(&[&[SHOP], &against[..], &load, &budgets].concat());
    assert_eq!(code, Some(0), "{progress}");
    insta::assert_snapshot!(yaml);
    let (_, again, _) = dry(&[&[SHOP, "-o=json"], &against[..], &load, &budgets].concat());
    let json: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(json["metadata"]["name"], "release");
}

#[test]
fn a_wrong_command_line_gets_what_to_write() {
    for (arguments, expected, words) in [
        (
            &[SHOP, "--budget=kWh=5"][..],
            2,
            "`kWh=5` is not a budget: write mJ=5",
        ),
        (&[SHOP, "--budget=ratio=1.05"], 1, "with one --against"),
        (
            &[SHOP, "--port=80"],
            1,
            "spec.candidates[0].port is 80, but must be from 1024",
        ),
        (
            &[SHOP, "--duration=5s"],
            1,
            "load.duration must be from 20s to 1h",
        ),
        (&[SHOP, "--duration=soon"], 2, "`soon` is not a duration"),
        (
            &[SHOP, "--budget=mJ=5", "--blocks=3"],
            1,
            "budgets need spec.trials.blocks of at least 5",
        ),
        (&[], 2, "<IMAGE>"),
    ] {
        let (code, said, progress) = dry(arguments);
        assert_eq!((code, said.as_str()), (Some(expected), ""), "{progress}");
        assert!(
            progress.contains(words),
            "{words} is missing in: {progress}"
        );
    }
    let api = Api::answering("run-output", vec![(500, String::new())]);
    let (code, _, progress) = texts(api.run(&["run", SHOP, "-o", "yaml"]));
    assert_eq!(code, Some(2));
    assert!(progress.contains("--dry-run"), "{progress}");
}

fn deployment() -> Answer {
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{
            "name": "shop",
            "image": "you/shop:1.2",
            "ports": [{"containerPort": 9000}],
            "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}],
        }]}}},
    });
    (200, deployment.to_string())
}

#[test]
fn a_deployment_gives_settings_and_the_image() {
    let api = Api::answering("run-deployment", vec![deployment()]);
    let flags = ["run", "--dry-run=client", "--from-deployment=shop"];
    let (code, yaml, progress) = texts(api.run(&flags));
    assert_eq!(code, Some(0), "{progress}");
    assert_eq!(
        api.asked(),
        ["GET /apis/apps/v1/namespaces/default/deployments/shop"]
    );
    assert!(
        yaml.contains("image: you/shop:1.2") && yaml.contains("port: 9000"),
        "{yaml}"
    );
    assert!(progress.contains("left out: env TOKEN: "), "{progress}");
    let newer = [&flags[..], &["you/shop:1.3"]].concat();
    let (_, yaml, _) = texts(api.run(&newer));
    assert!(
        yaml.contains("image: you/shop:1.3") && yaml.contains("port: 9000"),
        "{yaml}"
    );
}

/// The benchmark that `run` writes for these images, with a verdict.
fn passed(images: [&str; 2]) -> Value {
    let mut benchmark: Value = serde_json::from_str(&data("passed.json")).unwrap();
    let [rust, python] = images;
    benchmark["metadata"]["resourceVersion"] = json!("7");
    benchmark["spec"] = json!({
        "candidates": [{"name": "rust", "image": rust}, {"name": "python", "image": python}],
        "request": {"path": "/"},
    });
    benchmark
}

fn list(item: &Value) -> Answer {
    let list = json!({
        "kind": "List",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7"},
        "items": [item],
    });
    (200, list.to_string())
}

fn exists() -> Answer {
    refusal(409, "AlreadyExists", "two", "already exists")
}

const TWO: [&str; 4] = ["run", "you/rust:1", "--against=you/python:1", "--name=two"];

#[test]
fn it_creates_the_benchmark_follows_it_and_ends_with_the_verdict() {
    let benchmark = passed(["you/rust:1", "you/python:1"]);
    let answers = vec![(201, benchmark.to_string()), list(&benchmark)];
    let api = Api::answering("run", answers);
    let (code, said, progress) = texts(api.run(&TWO));
    assert_eq!(code, Some(0), "{progress}");
    assert!(said.starts_with("two: Pass"), "{said}");
    let lines: Vec<_> = progress.lines().collect();
    assert_eq!(lines[0], "two: 20 trials, about 37 min");
    assert_eq!(
        lines[2],
        "created FrugalityBenchmark two in namespace default"
    );
    let asked = api.asked();
    let path = "/apis/frugality.dev/v1alpha1/namespaces/default/frugalitybenchmarks?";
    assert_eq!(
        asked[0],
        format!("POST {path}&fieldManager=kubectl-frugality")
    );
    let api = Api::answering("run-detach", vec![(201, benchmark.to_string())]);
    let (code, said, _) = texts(api.run(&[&TWO[..], &["--detach"]].concat()));
    assert_eq!(code, Some(0));
    assert!(
        said.contains("kubectl frugality watch two --namespace default"),
        "{said}"
    );
    assert_eq!(api.asked().len(), 1);
}

#[test]
fn without_a_power_meter_the_user_gets_the_flag_to_write() {
    let mut benchmark = passed(["you/rust:1", "you/python:1"]);
    benchmark["status"]["verdict"] = json!("Invalid");
    benchmark["status"]["columns"]["reason"] = json!("ModelledPowerNotAllowed");
    let answers = vec![(201, benchmark.to_string()), list(&benchmark)];
    let api = Api::answering("run-modelled", answers);
    let (code, _, progress) = texts(api.run(&TWO));
    assert_eq!(code, Some(12), "{progress}");
    let hint =
        "(kubectl delete fb two --namespace default) and repeat the command with --allow-modelled";
    assert!(progress.contains(hint), "{progress}");
}

#[test]
fn another_benchmark_of_this_name_is_not_replaced() {
    let other = passed(["you/rust:1", "you/python:2"]);
    let api = Api::answering("run-other", vec![exists(), (200, other.to_string())]);
    let (code, said, progress) = texts(api.run(&TWO));
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(
        progress.contains("FrugalityBenchmark two exists in namespace default with other settings"),
        "{progress}"
    );
    assert!(progress.contains("--name"), "{progress}");
    assert_eq!(api.asked().len(), 2);
    let same = passed(["you/rust:1", "you/python:1"]);
    let answers = vec![exists(), (200, same.to_string()), list(&same)];
    let (code, said, progress) = texts(Api::answering("run-same", answers).run(&TWO));
    assert_eq!(code, Some(0), "{progress}");
    assert!(
        progress.contains("two exists in namespace default with these settings"),
        "{progress}"
    );
    let warning = "warning: the existing run is used. If you/rust:1 was pushed again, the new image is not measured";
    assert!(progress.contains(warning), "{progress}");
    assert!(said.starts_with("two: Pass"), "{said}");
}

#[test]
fn a_refusal_of_the_api_server_is_printed() {
    let denied = refusal(422, "Invalid", "two", "spec.deadline is too short");
    let api = Api::answering("run-refused", vec![denied]);
    let (code, _, progress) = texts(api.run(&TWO));
    assert_eq!(code, Some(1));
    assert!(
        progress.contains("refused (422): spec.deadline is too short"),
        "{progress}"
    );
}
