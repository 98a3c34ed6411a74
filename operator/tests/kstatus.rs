//! The benchmark in each of its states, as the API server stores it. `tests/kstatus` runs kstatus' code on
//! these states.

use std::collections::BTreeMap;

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityBenchmarkStatus},
    io::unreadable,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::common::{
    edited,
    judgement::{budgets, status, usual},
    two, two_with,
    world::World,
};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/kstatus/states.json");

/// The fields that kstatus reads. Messages and figures are left out, because they change more often.
fn object(benchmark: &FrugalityBenchmark) -> Value {
    let status = benchmark.status.as_ref();
    let mut conditions = json!(status.map(|status| &status.conditions).unwrap());
    for condition in conditions.as_array_mut().unwrap() {
        assert_ne!(condition["message"], "");
        condition["message"] = json!("written");
    }
    json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": { "name": "two", "generation": benchmark.metadata.generation },
        "status": {
            "observedGeneration": status.unwrap().observed_generation,
            "conditions": conditions,
        },
    })
}

fn with(benchmark: &FrugalityBenchmark, status: FrugalityBenchmarkStatus) -> FrugalityBenchmark {
    FrugalityBenchmark {
        status: Some(status),
        ..benchmark.clone()
    }
}

/// A benchmark that is judged by a limit on `rust`.
fn limited(joules: &str) -> FrugalityBenchmark {
    let benchmark = budgets(&json!({ "maxJoulesPerRequest": joules }));
    let plan = status(&benchmark, usual);
    with(&benchmark, plan.status)
}

fn after(world: &mut World) -> FrugalityBenchmark {
    world.run_to_end();
    world.slots[0].benchmark.clone()
}

#[allow(
    clippy::large_stack_arrays,
    reason = "a test's list of benchmarks, made once"
)]
fn states() -> BTreeMap<String, FrugalityBenchmark> {
    let mut running = World::new([two()]);
    running.pass(0);
    let mut suspended = World::new([two_with(&[("/suspend", json!(true))])]);
    suspended.pass(0);
    let mut without_meter = World::new([two()]);
    without_meter.manner.meter = None;
    let mut failing = World::new([two()]);
    failing.manner.success_share = 0.0;
    let reported = status(&two(), usual).status;
    let unread = unreadable::status(
        "unknown field `x`",
        Some(1),
        Timestamp::UNIX_EPOCH,
        &FrugalityBenchmarkStatus::default(),
    );
    let suspend = [("/suspend", json!(true))];
    let mut states: BTreeMap<String, FrugalityBenchmark> = [
        ("created", two()),
        ("running", running.slots[0].benchmark.clone()),
        ("suspended", suspended.slots[0].benchmark.clone()),
        ("unreadable", with(&two(), unread)),
        ("edited after a Pass", edited(&limited("9"), &suspend)),
        ("edited after a Fail", edited(&limited("0.001"), &suspend)),
        (
            "re-run after a Pass",
            edited(&limited("9"), &[("/rerun", json!(2))]),
        ),
    ]
    .map(|(name, benchmark)| (name.to_owned(), benchmark))
    .into();
    // An ended state is named after its verdict.
    for ended in [
        limited("9"),
        limited("0.001"),
        limited("0.0101"),
        with(&two(), reported),
        after(&mut without_meter),
        after(&mut failing),
    ] {
        let verdict = ended.status.as_ref().unwrap().verdict.unwrap();
        states.insert(format!("{verdict:?}"), ended);
    }
    states
}

#[test]
fn the_states_for_kstatus_match_the_operator() {
    let states: BTreeMap<String, Value> = states()
        .into_iter()
        .map(|(name, benchmark)| (name, object(&benchmark)))
        .collect();
    assert_eq!(states.len(), 13, "{:?}", states.keys());
    let text = serde_json::to_string_pretty(&states).unwrap() + "\n";
    if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
        std::fs::write(FILE, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(FILE).unwrap_or_default() == text,
        "tests/kstatus/states.json differs from what the operator writes: run this test with INSTA_UPDATE=always"
    );
}
