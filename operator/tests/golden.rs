//! Ledgers of earlier releases give the same figures as when they were written (docs/versions.md).
//!
//! `data/release-VERSION/` has a benchmark with its status, and its ledger. The fixture of a published release never
//! changes. Until its release, a version's folder can be removed and written again:
//!
//!     cargo test --package frugality-operator --test all -- --ignored golden::record_this_release

use std::{
    fs,
    path::{Path, PathBuf},
};

use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Outcome, Reason},
    plan::action::Plan,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::common::{
    entries::{Trial, entry, judged, ledger, without_figures},
    judgement::{rounded, usual},
    two_with,
};

/// What a release must not change for a benchmark that has ended. Another run would measure everything again.
const KEPT: [&str; 7] = [
    "run",
    "verdict",
    "winner",
    "results",
    "comparisons",
    "budgets",
    "ledgerDigest",
];

fn releases() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folders: Vec<_> = fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!folders.is_empty());
    folders
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> T {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Sentences may be improved. Figures, units, names and reason codes must stay.
fn without_sentences(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_sentences).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(name, _)| name != "message")
            .map(|(name, field)| (name, without_sentences(field)))
            .collect(),
        other => other,
    }
}

/// Asserts that `now` has everything that `then` has. Later releases may add fields.
#[track_caller]
fn assert_contains(now: &Value, then: &Value, path: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, field) in then {
                let path = format!("{path}.{name}");
                let found = now.get(name).unwrap_or_else(|| panic!("{path} is missing"));
                assert_contains(found, field, &path);
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{path}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                assert_contains(now, then, &format!("{path}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{path}"),
    }
}

#[track_caller]
fn assert_same_figures(plan: &Plan, then: &Value) {
    let now = without_sentences(rounded(json!(plan.status)));
    let then = without_sentences(rounded(then.clone()));
    for name in KEPT {
        assert_contains(&now[name], &then[name], name);
    }
}

#[test]
fn a_ledger_of_each_release_gives_the_same_figures() {
    for folder in releases() {
        let mut benchmark: FrugalityBenchmark = read(&folder, "benchmark.json");
        let trials: Vec<FrugalityTrial> = read(&folder, "ledger.json");
        let then = read::<Value>(&folder, "benchmark.json")["status"].clone();
        assert_same_figures(&judged(&benchmark, trials.clone()), &then);
        // The status is wiped: all of it comes from the ledger.
        benchmark.status = None;
        assert_same_figures(&judged(&benchmark, trials), &then);
    }
}

#[test]
fn a_benchmark_that_ended_under_an_earlier_release_starts_nothing() {
    for folder in releases() {
        let benchmark: FrugalityBenchmark = read(&folder, "benchmark.json");
        let plan = judged(&benchmark, read(&folder, "ledger.json"));
        assert!(plan.opened().is_none());
        assert!(plan.create.is_empty() && plan.delete.is_empty());
        // No second ending is reported either.
        assert!(plan.events.is_empty());
    }
}

/// A wrong number in the fixture must fail the comparison.
#[test]
#[should_panic(expected = "results[0]")]
fn another_figure_is_noticed() {
    let folder = &releases()[0];
    let mut then = read::<Value>(folder, "benchmark.json")["status"].clone();
    let figure = &mut then["results"][0]["requestsPerSecond"]["value"];
    *figure = json!(figure.as_f64().unwrap() * 1.001);
    let benchmark: FrugalityBenchmark = read(folder, "benchmark.json");
    assert_same_figures(&judged(&benchmark, read(folder, "ledger.json")), &then);
}

/// A run with joules from a meter of known accuracy, a void attempt, budgets and a winner.
#[test]
#[ignore = "writes the fixture of a release"]
fn record_this_release() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(format!("release-{}", env!("CARGO_PKG_VERSION")));
    let mut benchmark = two_with(&[(
        "/budgets",
        json!([{ "candidate": "rust", "maxJoulesPerRequest": 0.02, "maxMillisecondsPerRequest": 20 }]),
    )]);
    let mut trials = ledger(&benchmark, |block, candidate| Trial {
        provenance: Provenance::Metered,
        meter_uncertainty: Some(0.01),
        ends_uncertainty: 0.002,
        ..usual(block, candidate)
    });
    // The first try of block 2 was void.
    for trial in trials.iter_mut().filter(|trial| trial.spec.block == 2) {
        let mut again = entry(&benchmark, 2, trial.spec.position, 2, &trial.spec.candidate);
        again.status = trial.status.take();
        *trial = again;
    }
    let mut void = entry(&benchmark, 2, 1, 1, "rust");
    void.status = Some(without_figures(
        Outcome::Void,
        Reason::ReadingsInterrupted.as_str(),
        "No readings for 5 s.",
    ));
    trials.push(void);
    benchmark.status = Some(judged(&benchmark, trials.clone()).status);
    // An existing fixture is never replaced.
    fs::create_dir(&folder).unwrap();
    let write = |name: &str, value: Value| {
        let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
        fs::write(folder.join(name), text).unwrap();
    };
    write("benchmark.json", json!(benchmark));
    write("ledger.json", json!(trials));
}
