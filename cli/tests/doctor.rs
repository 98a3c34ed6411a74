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
    // Each check has a second line with a remedy, except the two that need the operator's Deployment.
    assert_eq!(text.lines().count(), 20, "{text}");
    assert_checks(
        &text,
        &[
            "FAIL  definitions  ",
            "FAIL  operator     ",
            "FAIL  meters       ",
            "WARN  database     CloudNativePG is not installed.",
            "WARN  storage      ",
            "WARN  nodes        ",
            "SKIP  power        Not checked: the operator's Deployment could not be read.",
            "SKIP  clocks       Not checked: the operator's Deployment could not be read.",
            "WARN  namespaces   ",
            "WARN  rights       ",
            "WARN  images       ",
        ],
    );
    let asked = api.asked();
    let path = "GET /apis/apps/v1/namespaces/frugality-system/deployments/frugality-operator";
    assert!(asked.iter().any(|it| it == path), "{asked:?}");
    // The question about rights is the only one that is sent as an object. The API server stores none.
    let other: Vec<_> = asked.iter().filter(|it| !it.starts_with("GET ")).collect();
    let rights = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert!(
        matches!(other[..], [it] if it.starts_with(rights)),
        "{asked:?}"
    );
}

/// Checks how the lines begin that are not remedies.
#[track_caller]
fn assert_checks(text: &str, beginnings: &[&str]) {
    let lines: Vec<_> = text.lines().filter(|it| !it.starts_with(' ')).collect();
    assert_eq!(lines.len(), beginnings.len(), "{text}");
    for (line, beginning) in lines.iter().zip(beginnings) {
        assert!(line.starts_with(beginning), "{text}");
    }
}

#[test]
fn a_check_that_the_account_may_not_make_is_skipped() {
    let forbidden = refusal(403, "Forbidden", "", "you may not");
    let api = Api::answering("doctor-forbidden", vec![forbidden]);
    let done = api.run(&["doctor"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let skipped: Vec<_> = text.lines().filter(|it| it.starts_with("SKIP")).collect();
    assert_checks(
        &skipped.join("\n"),
        &[
            "SKIP  nodes        Not checked: the API server refused (403): you may not.",
            "SKIP  power        ",
            "SKIP  clocks       ",
            "SKIP  namespaces   ",
            "SKIP  rights       ",
            "SKIP  images       ",
        ],
    );
}

#[test]
fn it_can_ask_for_another_user() {
    let api = Api::answering("doctor-as", vec![refusal(403, "Forbidden", "", "no")]);
    let done = api.run(&["doctor", "--as=paula", "--output=json"]);
    assert_eq!(done.status.code(), Some(1));
    let asked = api.asked();
    assert!(asked.len() >= 8, "{asked:?}");
    assert!(
        asked.iter().all(|it| it.ends_with(" as paula")),
        "{asked:?}"
    );
}

#[test]
fn the_kubeconfig_can_name_the_user_to_act_as() {
    let api = Api::answering("doctor-rosa", vec![refusal(403, "Forbidden", "", "no")]);
    api.run(&["doctor", "--context=rosa", "--output=json"]);
    let asked = api.asked();
    assert!(asked.iter().all(|it| it.ends_with(" as rosa")), "{asked:?}");
    // An option counts more.
    let api = Api::answering("doctor-paula", vec![refusal(403, "Forbidden", "", "no")]);
    api.run(&["doctor", "--context=rosa", "--as=paula", "--output=json"]);
    let asked = api.asked();
    assert!(
        asked.iter().all(|it| it.ends_with(" as paula")),
        "{asked:?}"
    );
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
    let remedy = findings[1]["remedy"].as_str().unwrap();
    assert!(remedy.contains("--namespace farm"), "{remedy}");
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
