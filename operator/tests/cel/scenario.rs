//! Rules of scripts, and of the choice between the kinds of load.

use super::*;

/// Changes that replace the request by a script.
fn scripted<'a>(scenario: Value, load: Value) -> Vec<(&'a str, Value)> {
    vec![
        ("spec/request", Value::Null),
        ("spec/scenario", scenario),
        ("spec/load", load),
    ]
}

const SCRIPT: &str = "export default () => {};";

#[test]
fn a_spec_needs_exactly_one_of_request_scenario_and_batch() {
    let message = "spec needs one of request";
    let scenario = json!({"script": SCRIPT});
    let kept = scripted(scenario.clone(), json!({}));
    rule(message, &[("spec/request", Value::Null)], &kept);
    rule(message, &[("spec/scenario", scenario)], &kept);
}

#[test]
fn a_script_imports_nothing_from_the_network() {
    let message = "scenario.script imports from the network";
    let of = |line: &str| {
        let script = format!("{line}\n{SCRIPT}");
        scripted(json!({"script": script}), json!({}))
    };
    let kept = of("import http from 'k6/http'; const url = 'https://example.org/a.js';");
    for line in [
        "import a from 'https://example.org/a.js';",
        "import { a,\n  b } from\n  \"https://example.org/a.js\";",
        "import 'https://example.org/a.js';",
        "export * from 'https://example.org/a.js';",
        "const a = require('https://example.org/a.js');",
        "const a = import( `http://example.org/a.js`);",
    ] {
        rule(message, &of(line), &kept);
    }
}

#[test]
fn a_script_has_a_cycle() {
    let of = |script: &str| scripted(json!({"script": script}), json!({}));
    rule(
        "scenario.script has no cycle",
        &of("import http from 'k6/http';"),
        &of(SCRIPT),
    );
}

#[test]
fn a_script_excludes_a_number_of_requests() {
    let of = |load: Value| scripted(json!({"script": SCRIPT}), load);
    rule(
        "load.requests counts single requests",
        &of(json!({"requests": 10_000})),
        &of(json!({"duration": "20s"})),
    );
}

#[test]
fn open_arrivals_need_single_requests_at_a_rate() {
    let of = |load: Value| vec![("spec/load", load)];
    let message = "load.arrivals: Open sends requests at a rate for some time";
    let open = |rate: Value| json!({"arrivals": "Open", "rate": rate, "duration": "20s"});
    rule(message, &of(open(json!("Max"))), &of(open(json!(100))));
    let mut without_catching_up = open(json!(100));
    without_catching_up["catchUp"] = json!(false);
    rule(message, &of(without_catching_up), &of(open(json!(100))));
    let message = "load.catchUp: false skips requests that a rate makes due";
    let skipping = |rate: Value| json!({"catchUp": false, "rate": rate, "duration": "20s"});
    rule(
        message,
        &of(skipping(json!("Max"))),
        &of(skipping(json!(100))),
    );
    let message = "load.arrivals: Open and load.catchUp: false are for request";
    for load in [open(json!(100)), skipping(json!(100))] {
        let closed = json!({"rate": 100, "duration": "20s"});
        rule(
            message,
            &scripted(json!({"script": SCRIPT}), load),
            &scripted(json!({"script": SCRIPT}), closed),
        );
    }
}

#[test]
fn agents_join_within_the_warm_up() {
    let of = |ramp_up: &str, warm_up: &str| {
        let scenario = json!({"script": SCRIPT, "rampUp": ramp_up});
        scripted(scenario, json!({"warmUp": warm_up}))
    };
    let message = "scenario.rampUp is the beginning of load.warmUp";
    rule(message, &of("11s", "10s"), &of("10s", "10s"));
    let message = "scenario.rampUp must be from 1s to 10m";
    rule(message, &of("500ms", "10s"), &of("1s", "10s"));
}
