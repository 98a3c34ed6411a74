//! Two benchmarks side by side: what differs, and whether the figures may be compared.

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    api::{Api, folder, refusal},
    data,
};

fn benchmark() -> Value {
    serde_json::from_str(&data("passed.json")).unwrap()
}

fn ledger() -> Vec<Value> {
    let list: Value = serde_json::from_str(&data("ledger.json")).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// Exit code, standard output and standard error for two lists of objects.
fn compare(case: &str, lists: [Vec<Value>; 2]) -> (Option<i32>, String, String) {
    compare_with(case, lists, &[])
}

fn compare_with(
    case: &str,
    lists: [Vec<Value>; 2],
    options: &[&str],
) -> (Option<i32>, String, String) {
    let folder = folder(&format!("compare-{case}"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"));
    command.arg("compare").args(options);
    for (name, items) in ["a.json", "b.json"].into_iter().zip(lists) {
        let path = folder.join(name);
        fs::write(&path, json!({"kind": "List", "items": items}).to_string()).unwrap();
        command.arg("--filename").arg(path);
    }
    let done = command.output().unwrap();
    let [said, error] = [done.stdout, done.stderr].map(|it| String::from_utf8(it).unwrap());
    (done.status.code(), said, error)
}

/// The benchmark, changed, next to itself.
fn changed(case: &str, path: &str, value: Value) -> (Option<i32>, String) {
    let mut later = benchmark();
    *later.pointer_mut(path).unwrap() = value;
    let with = |benchmark: Value| [vec![benchmark], ledger()].concat();
    let (code, said, error) = compare(case, [with(benchmark()), with(later)]);
    assert_eq!(error, "");
    (code, said)
}

#[test]
fn figures_stand_side_by_side_if_only_images_and_budgets_differ() {
    let (code, said) = changed(
        "image",
        "/spec/candidates/0/image",
        json!("example.org/rust:2"),
    );
    assert_eq!(code, Some(0), "{said}");
    insta::assert_snapshot!(said);
    let (code, said) = changed("budget", "/spec/budgets/0/maxJoulesPerRequest", json!(0.01));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn without_headers_the_tables_have_rows_only() {
    let lists = || [0, 1].map(|_| [vec![benchmark()], ledger()].concat());
    let (_, with, _) = compare("with-headers", lists());
    let (code, without, _) = compare_with("no-headers", lists(), &["--no-headers"]);
    assert_eq!(code, Some(0), "{without}");
    for heading in ["CANDIDATE", "FIGURE"] {
        assert!(with.contains(heading), "{with}");
        assert!(!without.contains(heading), "{without}");
    }
    assert!(without.contains("mJ/request"), "{without}");
}

/// The operator's release decides the injector's image, the cluster the database's.
#[test]
fn only_the_images_of_candidates_may_differ() {
    let with_images = |server: &str, injector: &str| {
        let mut entries = ledger();
        for entry in &mut entries {
            entry["status"]["images"] = json!({
                "server": format!("shop@sha256:{}", server.repeat(64)),
                "injector": format!("injector@sha256:{}", injector.repeat(64)),
            });
        }
        [vec![benchmark()], entries].concat()
    };
    let lists = |server, injector| [with_images("a", "1"), with_images(server, injector)];
    let (code, said, _) = compare("server-image", lists("b", "1"));
    assert_eq!(code, Some(0), "{said}");
    let (code, said, _) = compare("injector-image", lists("a", "2"));
    assert_eq!(code, Some(17), "{said}");
    assert!(said.contains("sha256:222222222222"), "{said}");
    assert!(said.contains("another injector or database"), "{said}");
}

#[test]
fn a_candidate_on_another_node_or_with_another_meter_forbids_the_comparison() {
    for (case, path, value, words) in [
        ("moved", "/spec/measuredNode", json!("pi-5"), "node of rust"),
        (
            "zone",
            "/status/energy/zone",
            json!("core"),
            "zone of the meter of rust",
        ),
        (
            "settings",
            "/status/energy/meter/configuration",
            json!("abcd"),
            "settings of the meter of rust",
        ),
    ] {
        let with = |other: bool| {
            let mut entries = ledger();
            for entry in &mut entries {
                if entry["status"]["energy"].is_null() {
                    continue;
                }
                entry["status"]["energy"]["meter"]["configuration"] = json!("1234");
                if other && entry["spec"]["candidate"] == "rust" {
                    *entry.pointer_mut(path).unwrap() = value.clone();
                }
            }
            [vec![benchmark()], entries].concat()
        };
        let (code, said, _) = compare(case, [with(false), with(true)]);
        assert_eq!(code, Some(17), "{said}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words} is missing in: {said}");
        let (code, said, _) = compare(&format!("same-{case}"), [with(true), with(true)]);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// A promotion between two runs of one benchmark makes its releases others.
#[test]
fn releases_that_a_run_took_from_a_baseline_are_compared_by_image() {
    let with = |digest: &str| {
        let mut shown = benchmark();
        let mut result = shown["status"]["results"][1].clone();
        result["candidate"] = json!("baseline");
        shown["status"]["results"]
            .as_array_mut()
            .unwrap()
            .push(result);
        let mut entries = ledger();
        let of_python = |entry: &&Value| entry["spec"]["candidate"] == "python";
        let mut more: Vec<Value> = entries.iter().filter(of_python).cloned().collect();
        for entry in &mut more {
            entry["spec"]["candidate"] = json!("baseline");
            entry["status"]["images"] =
                json!({"server": format!("shop@sha256:{}", digest.repeat(64))});
        }
        entries.extend(more);
        [vec![shown], entries].concat()
    };
    let (code, said, _) = compare("promoted", [with("a"), with("b")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("images of baseline, by digest"), "{said}");
}

#[test]
fn what_changes_the_meaning_of_a_figure_forbids_the_comparison() {
    for (case, path, value, words) in [
        (
            "node",
            "/status/measuredNode",
            json!("pi-2"),
            "another node draws another power",
        ),
        (
            "meter",
            "/status/meter",
            json!("frugality-meter 0.2.0 hwmon"),
            "another meter, or another version",
        ),
        (
            "power",
            "/status/provenance",
            json!("Modelled"),
            "measured and modelled joules",
        ),
        (
            "load",
            "/spec/load/duration",
            json!("40s"),
            "load.duration: figures are at another load",
        ),
        (
            "path",
            "/spec/request/path",
            json!("/"),
            "request.path: figures are about another request",
        ),
        (
            "rows",
            "/spec/database/seed/contacts",
            json!(5),
            "the candidates had another database",
        ),
    ] {
        let (code, said) = changed(case, path, value);
        assert_eq!(code, Some(17), "{said}");
        assert!(said.contains("may not be compared"), "{said}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{words} is missing in: {said}");
        // No figure is shown.
        assert!(!said.contains("mJ/request"), "{said}");
    }
}

#[test]
fn other_software_of_the_node_forbids_it_too() {
    let kernel = |release: &str| {
        let mut trials = ledger();
        for trial in &mut trials {
            if let Some(energy) = trial.pointer_mut("/status/energy/conditions") {
                energy["platform"] = json!({"kernel": release});
            }
        }
        [vec![benchmark()], trials].concat()
    };
    let (code, said, _) = compare("kernel", [kernel("6.6.1"), kernel("6.6.2")]);
    assert_eq!(code, Some(17), "{said}");
    assert!(said.contains("6.6.1") && said.contains("6.6.2"), "{said}");
    let (code, said, _) = compare("no-ledger", [kernel("6.6.1"), vec![benchmark()]]);
    assert_eq!(code, Some(17), "{said}");
    assert!(said.contains("its ledger is not there"), "{said}");
}

#[test]
fn a_benchmark_without_a_result_is_an_error() {
    let mut running = benchmark();
    running["status"]["observedGeneration"] = json!(1);
    let whole = [vec![benchmark()], ledger()].concat();
    let (code, _, error) = compare("running", [whole.clone(), vec![running]]);
    assert_eq!(code, Some(1));
    assert!(error.contains("two has no result yet"), "{error}");
    let mut failed = benchmark();
    failed["status"]["results"] = json!([]);
    let without = [vec![failed], ledger()].concat();
    let (code, _, error) = compare("without", [whole.clone(), without]);
    assert_eq!(code, Some(1));
    assert!(error.contains("two ended without figures"), "{error}");
    let (code, _, error) = compare("none", [whole, ledger()]);
    assert_eq!(code, Some(1));
    assert!(error.contains("has 0 benchmarks"), "{error}");
}

#[test]
fn names_are_asked_for_in_the_cluster() {
    let list = json!({"kind": "List", "metadata": {}, "items": ledger()});
    let answers = vec![
        (200, benchmark().to_string()),
        (200, list.to_string()),
        refusal(404, "NotFound", "three", "not found"),
    ];
    let api = Api::answering("compare-cluster", answers);
    let done = api.run(&["compare", "two", "three"]);
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(
        error.contains("there is no frugalitybenchmarks three"),
        "{error}"
    );
    assert!(
        api.asked()[1].contains("benchmark-uid%3Dtwo-uid"),
        "{:?}",
        api.asked()
    );
    let one = Command::new(env!("CARGO_BIN_EXE_kubectl-frugality"))
        .args(["compare", "two"])
        .output()
        .unwrap();
    assert_eq!(one.status.code(), Some(2));
}
