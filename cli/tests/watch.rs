//! Following a run: the view of a moment, and the program with a list of answers.

use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrial};
use kubectl_frugality::{
    compare::NOT_COMPARABLE,
    gate::outcome::GateOutcome,
    watch::{
        INTERRUPTED,
        view::{attempts, view},
    },
};
use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, refusal},
    data,
};

/// A benchmark that passed: `rust` with a budget, `python` without.
fn passed() -> Value {
    let mut benchmark: Value = serde_json::from_str(&data("passed.json")).unwrap();
    benchmark["metadata"]["uid"] = json!("0123");
    benchmark["metadata"]["resourceVersion"] = json!("7");
    benchmark
}

/// The benchmark while its trials are measured.
fn running(done: i32) -> Value {
    let mut benchmark = passed();
    benchmark["status"] = json!({
        "observedGeneration": benchmark["metadata"]["generation"],
        "run": "b364bc77",
        "phase": "Measuring",
        "conditions": [],
        "progress": {
            "trialsDone": done,
            "trialsPlanned": 10,
            "voidAttempts": 1,
            "current": "block 3, python",
            "remainingSeconds": 540,
            "estimatedEnd": "2026-11-21T05:10:00Z",
        },
        "columns": {"verdict": "Measuring", "reason": "Measuring", "trials": format!("{done}/10 ~9m"), "message": "the load runs"},
    });
    benchmark
}

fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

fn ledger() -> Vec<FrugalityTrial> {
    let list: Value = serde_json::from_str(&data("ledger.json")).unwrap();
    typed(&list["items"])
}

#[test]
fn the_run_before_an_edit_is_not_shown_as_the_present() {
    let mut edited = passed();
    let generation = edited["metadata"]["generation"].as_i64().unwrap();
    edited["metadata"]["generation"] = json!(generation + 1);
    let now = "2026-11-21T05:01:00Z".parse().unwrap();
    let moment = view(&typed(&edited), &ledger(), now);
    assert!(
        moment.state.contains("waiting for the operator"),
        "{moment:?}"
    );
    assert!(!moment.state.contains("mJ"), "{moment:?}");
    assert_eq!((moment.trials, moment.lines.len()), (None, 0), "{moment:?}");
}

#[test]
fn a_moment_shows_activity_time_left_and_the_figures_so_far() {
    let benchmark: FrugalityBenchmark = typed(&running(3));
    let now = |text: &str| view(&benchmark, &ledger(), text.parse().unwrap());
    let moment = now("2026-11-21T05:01:00Z");
    assert_eq!(moment.trials, Some((3, 10)));
    assert_eq!(moment.left.as_deref(), Some("about 9 min left"));
    insta::assert_snapshot!(moment.state, @"Measuring, trials 3/10 ~9m");
    insta::assert_snapshot!(moment.lines.join("\n"));
    let late = now("2026-11-21T05:11:00Z");
    assert_eq!(late.left.as_deref(), Some("longer than estimated"));
    assert_eq!(late.lines, moment.lines);
}

#[test]
fn each_attempt_of_this_run_is_a_line() {
    let benchmark: FrugalityBenchmark = typed(&running(3));
    let lines: Vec<_> = attempts(&benchmark, &ledger())
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_benchmark_that_the_operator_has_not_seen_has_a_view() {
    let mut benchmark = passed();
    benchmark["status"] = json!({"observedGeneration": -1});
    let moment = view(
        &typed(&benchmark),
        &[],
        "2026-11-21T05:01:00Z".parse().unwrap(),
    );
    assert_eq!(
        moment.state,
        "waiting for the operator to see the benchmark"
    );
    assert_eq!((moment.trials, moment.left), (None, None));
    assert!(moment.lines.is_empty());
}

fn found(benchmark: &Value) -> Answer {
    (200, benchmark.to_string())
}

fn list(items: &[&Value]) -> Answer {
    let list = json!({
        "kind": "List",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7"},
        "items": items,
    });
    (200, list.to_string())
}

/// The events of one watch.
fn events(events: &[(&str, &Value)]) -> Answer {
    let line = |(kind, object): &(&str, &Value)| {
        json!({"type": kind, "object": object}).to_string() + "\n"
    };
    (200, events.iter().map(line).collect())
}

/// Exit code, standard output and standard error.
fn watch(test: &str, answers: Vec<Answer>) -> (i32, String, String) {
    let done = Api::answering(test, answers).run(&["watch", "two"]);
    (
        done.status.code().unwrap(),
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    )
}

#[test]
fn the_result_goes_to_standard_output_and_the_progress_to_standard_error() {
    let (first, second) = (running(2), running(3));
    let answers = vec![
        found(&first),
        list(&[&first]),
        list(&[]),
        events(&[("MODIFIED", &second), ("MODIFIED", &passed())]),
        (200, data("ledger.json")),
    ];
    let (code, said, progress) = watch("watch", answers);
    assert_eq!(code, 0, "{progress}");
    assert!(said.starts_with("two: Pass"), "{said}");
    assert!(said.contains("default/two: Pass: "), "{said}");
    let lines: Vec<_> = progress.lines().collect();
    assert!(
        lines[0].ends_with("two: Measuring, trials 2/10 ~9m"),
        "{progress}"
    );
    assert!(
        progress.contains(" two: block 1, python at c4-max: gross "),
        "{progress}"
    );
    assert!(progress.contains("trials 3/10 ~9m"), "{progress}");
}

#[test]
fn it_outlives_a_lost_connection() {
    let first = running(2);
    let unavailable = refusal(500, "InternalError", "", "etcd is gone");
    let answers = vec![
        found(&first),
        list(&[&first]),
        list(&[]),
        unavailable,
        events(&[("MODIFIED", &passed())]),
    ];
    let (code, said, progress) = watch("watch-lost", answers);
    assert_eq!(code, 0, "{progress}");
    assert!(said.starts_with("two: Pass"), "{said}");
    assert!(progress.contains("; trying again"), "{progress}");
}

#[test]
fn each_verdict_has_the_exit_code_of_the_gate() {
    for (verdict, expected) in [("Fail", 10), ("Reported", 15), ("Error", 13)] {
        let mut benchmark = passed();
        benchmark["status"]["verdict"] = json!(verdict);
        let (code, said, progress) = watch(
            "watch-verdict",
            vec![found(&benchmark), list(&[&benchmark])],
        );
        assert_eq!(code, expected, "{progress}");
        assert!(said.contains(verdict), "{said}");
    }
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let missing = refusal(404, "NotFound", "two", "not found");
    let (code, said, progress) = watch("watch-missing", vec![missing]);
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(
        progress.contains("there is no frugalitybenchmarks two"),
        "{progress}"
    );
    let forbidden = refusal(403, "Forbidden", "", "you may not watch");
    let (code, _, progress) = watch("watch-forbidden", vec![found(&running(2)), forbidden]);
    assert_eq!(code, 1);
    assert!(progress.contains("you may not watch"), "{progress}");
    let mut deleting = passed();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-11-21T05:00:00Z");
    let answers = vec![found(&deleting), list(&[&deleting])];
    let (code, said, progress) = watch("watch-deleting", answers);
    assert_eq!((code, said.as_str()), (1, ""));
    assert!(progress.contains("is being deleted"), "{progress}");
    let (code, _, progress) = watch("watch-deleted", vec![found(&running(2)), list(&[])]);
    assert_eq!(code, 1);
    assert!(progress.contains("two was deleted"), "{progress}");
}

#[test]
fn an_interrupt_ends_the_view_and_not_the_run() {
    let answers = vec![
        found(&running(2)),
        list(&[&running(2)]),
        list(&[]),
        events(&[]),
    ];
    let api = Api::answering("watch-interrupt", answers);
    let child = api
        .command(&["watch", "two"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The ledger is the third question: from then on the view is there.
    while api.asked().len() < 3 {
        thread::sleep(Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(
        said.contains("kubectl delete fb two --namespace default"),
        "{said}"
    );
}

/// The table of docs/cli.md.
#[test]
fn each_exit_code_is_documented() {
    let table = include_str!("../../docs/cli.md");
    for outcome in [
        GateOutcome::Pass,
        GateOutcome::Unknown,
        GateOutcome::Fail,
        GateOutcome::Inconclusive,
        GateOutcome::Invalid,
        GateOutcome::Error,
        GateOutcome::NotEnded,
        GateOutcome::NotJudged,
        GateOutcome::OtherImage,
    ] {
        let row = format!("| {} | `{outcome:?}` | ", outcome.exit_code());
        assert!(table.contains(&row), "{row}");
    }
    for code in [NOT_COMPARABLE, INTERRUPTED] {
        assert!(table.contains(&format!("| {code} | | ")), "{code}");
    }
}
