//! `kubectl frugality doctor` against an API server without an installation.

use serde_json::Value;

use crate::api::{Api, refusal};

#[test]
fn each_check_says_what_to_do_and_a_failure_is_an_exit_code() {
    let missing = refusal(404, "NotFound", "", "not here");
    let api = Api::answering("doctor", vec![missing]);
    let done = api.run(&["doctor"]);
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 10, "{text}");
    for (line, expected) in lines.iter().step_by(2).zip([
        "FAIL  definitions  ",
        "FAIL  operator     ",
        "FAIL  meters       ",
        "WARN  database     CloudNativePG is not installed.",
        "WARN  storage      ",
    ]) {
        assert!(line.starts_with(expected), "{text}");
    }
    let asked = api.asked();
    let path = "GET /apis/apps/v1/namespaces/frugality-system/deployments/frugality-operator";
    assert!(asked.iter().any(|it| it == path), "{asked:?}");
    assert!(asked.iter().all(|it| it.starts_with("GET ")), "{asked:?}");
}

#[test]
fn the_result_can_be_json_and_the_operator_s_namespace_another_one() {
    let api = Api::answering(
        "doctor-json",
        vec![refusal(404, "NotFound", "", "not here")],
    );
    let done = api.run(&["doctor", "--output=json", "-n", "farm"]);
    assert_eq!(done.status.code(), Some(1));
    let findings: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(findings[0]["check"], "definitions");
    assert_eq!(findings[0]["level"], "Fail");
    assert!(findings[0]["remedy"].is_string());
    assert!(
        api.asked()
            .iter()
            .any(|it| it.contains("/namespaces/farm/"))
    );
}

#[test]
fn it_can_wait_for_an_installation_that_has_just_begun() {
    let api = Api::answering(
        "doctor-wait",
        vec![refusal(404, "NotFound", "", "not here")],
    );
    let done = api.run(&["doctor", "--wait=1s"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(api.asked().len() >= 8, "{:?}", api.asked());
}
