//! Three of the benchmarks that the tests of `kubectl frugality summarize` read, as the operator writes them.

use std::{fs, path::Path};

use frugality_operator::{api::FrugalityBenchmark, plan::action::Plan};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::{
    common::{
        judgement::{budgets, status, usual},
        two,
    },
    verdict_modelled::{BOX, allowed, compared},
};

/// The text of a benchmark with the status that a plan writes.
fn text(mut benchmark: FrugalityBenchmark, plan: Plan) -> String {
    let created: Timestamp = "2026-11-21T04:55:00Z".parse().unwrap();
    benchmark.metadata.creation_timestamp = Some(Time(created));
    benchmark.status = Some(plan.status);
    serde_json::to_string_pretty(&benchmark).unwrap() + "\n"
}

#[test]
fn the_data_of_summarize_match_the_operator() {
    let limit = json!({ "maxJoulesPerRequest": "0.02" });
    let passed = budgets(&limit);
    let modelled = allowed(&limit);
    for (name, text) in [
        ("passed", text(passed.clone(), status(&passed, usual))),
        (
            "modelled",
            text(modelled.clone(), status(&modelled, compared(BOX, 0.5, 0.4))),
        ),
        (
            "depends-on-board",
            text(two(), status(&two(), compared(BOX, 1.3, 0.6))),
        ),
    ] {
        let file = format!("../cli/tests/data/{name}.json");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var("INSTA_UPDATE").is_ok_and(|how| how == "always") {
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == text,
            "{} differs from what the operator writes: run this test with INSTA_UPDATE=always",
            path.display()
        );
    }
}
