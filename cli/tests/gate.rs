//! The gate of a release: its exit codes, its reports, and how it waits.

use std::fs;

use serde_json::{Value, json};

use crate::{
    api::{Answer, Api, folder, refusal},
    data,
};

/// A benchmark that passed: `rust` with a budget, `python` without.
fn passed() -> Value {
    serde_json::from_str(&data("passed.json")).unwrap()
}

/// The benchmark with another verdict of the same generation.
fn with_verdict(verdict: &str) -> Value {
    let mut benchmark = passed();
    benchmark["status"]["verdict"] = json!(verdict);
    benchmark
}

/// The benchmark while its trials are measured.
fn running() -> Value {
    let mut benchmark = passed();
    let status = &mut benchmark["status"];
    status.as_object_mut().unwrap().remove("verdict");
    status["phase"] = json!("measuring");
    status["conditions"] = json!([condition("Complete", "False"), condition("Ready", "False")]);
    status["columns"] = json!({ "verdict": "Measuring", "trials": "3/10 ~9m" });
    benchmark
}

fn condition(kind: &str, status: &str) -> Value {
    json!({
        "type": kind,
        "status": status,
        "observedGeneration": 2,
        "reason": "Measuring",
        "message": "reported",
        "lastTransitionTime": "2026-11-21T04:55:00Z",
    })
}

/// The benchmark after an edit that the operator has not seen.
fn edited() -> Value {
    let mut benchmark = passed();
    benchmark["metadata"]["generation"] = json!(3);
    benchmark
}

fn found(benchmark: &Value) -> Answer {
    (200, benchmark.to_string())
}

/// Exit code, standard output and standard error of a gate for these answers.
fn gate(test: &str, answers: Vec<Answer>, options: &[&str]) -> (i32, String, String) {
    let api = Api::answering(test, answers);
    let fixed = ["gate", "--interval=100ms", "--allow-tag"];
    let arguments = [&fixed, options, &["--", "two"]].concat();
    let done = api.run(&arguments);
    (
        done.status.code().unwrap(),
        String::from_utf8(done.stdout).unwrap(),
        String::from_utf8(done.stderr).unwrap(),
    )
}

const RUST: &str = "--image=example.org/rust:1";

#[test]
fn each_verdict_has_an_exit_code_and_only_pass_has_0() {
    for (verdict, expected) in [
        ("Pass", 0),
        ("Fail", 10),
        ("Inconclusive", 11),
        ("Invalid", 12),
        ("Error", 13),
        ("Reported", 15),
    ] {
        let (code, said, _) = gate("verdicts", vec![found(&with_verdict(verdict))], &[RUST]);
        assert_eq!(code, expected, "{said}");
        let gate = if verdict == "Pass" { "open" } else { "closed" };
        assert!(
            said.contains(&format!("Energy gate {gate} for default/two")),
            "{said}"
        );
    }
}

#[test]
fn it_waits_for_the_verdict_of_the_current_generation_and_reports_each_change_once() {
    let mut unseen = passed();
    unseen["status"] = json!({ "observedGeneration": -1 });
    let answers = [&unseen, &edited(), &running(), &running(), &passed()];
    let (code, _, progress) = gate("waits", answers.map(found).into(), &[RUST]);
    assert_eq!(code, 0, "{progress}");
    let lines: Vec<_> = progress.lines().collect();
    assert_eq!(lines.len(), 3, "{progress}");
    for (line, expected) in lines.iter().zip([
        "two: waiting for the operator to see the benchmark",
        "two: waiting for the operator to see the last edit",
        "two: Measuring, trials 3/10 ~9m, measuring",
    ]) {
        assert!(line.ends_with(expected), "{line}");
    }
}

#[test]
fn no_verdict_in_time_closes_it() {
    for (name, benchmark) in [("running", running()), ("edited", edited())] {
        let (code, said, _) = gate(name, vec![found(&benchmark)], &[RUST, "--timeout=1s"]);
        assert_eq!(code, 14, "{said}");
        assert!(said.contains("No verdict within 1 s"), "{said}");
    }
}

#[test]
fn the_verdict_must_be_about_the_image() {
    let other = ["--image=example.org/rust:2"];
    let (code, said, _) = gate("other", vec![found(&passed())], &other);
    assert_eq!(code, 16);
    assert!(
        said.contains("does not measure example.org/rust:2, but example.org/rust:1"),
        "{said}"
    );
    // The figures of other images are not shown as figures of this release.
    assert!(!said.contains("two: Pass"), "{said}");
    let unjudged = [RUST, "--image=example.org/python:1"];
    let (code, said, _) = gate("unjudged", vec![found(&passed())], &unjudged);
    assert_eq!(code, 15);
    assert!(!said.contains("two: Pass"), "{said}");
    assert!(said.contains("No budget applies to a candidate"), "{said}");
}

#[test]
fn it_can_wait_until_the_benchmark_measures_the_image() {
    let mut newer = passed();
    newer["spec"]["candidates"][0]["image"] = json!("example.org/rust:2@sha256:0123");
    let missing = refusal(404, "NotFound", "two", "not found");
    let answers = vec![missing, found(&passed()), found(&newer)];
    let options = [
        "--image=example.org/rust@sha256:0123",
        "--wait-for-image=30s",
    ];
    let arguments = [&["gate", "two", "--interval=100ms"], options.as_slice()].concat();
    let done = Api::answering("newer", answers).run(&arguments);
    let [said, progress] = [done.stdout, done.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(done.status.code(), Some(0), "{said}{progress}");
    assert!(
        progress.contains("there is no frugalitybenchmarks two"),
        "{progress}"
    );
    assert!(!said.contains("is a tag"), "{said}");
}

#[test]
fn it_can_wait_while_the_benchmark_is_replaced() {
    let of_image = |mut benchmark: Value, digest: &str| {
        benchmark["spec"]["candidates"][0]["image"] = json!(format!("example.org/rust@{digest}"));
        benchmark
    };
    let deleted = |mut benchmark: Value| {
        benchmark["metadata"]["deletionTimestamp"] = json!("2026-11-21T05:00:00Z");
        benchmark
    };
    let [old, new] = ["sha256:0123", "sha256:4567"].map(|digest| of_image(passed(), digest));
    let missing = refusal(404, "NotFound", "two", "not found");
    let gone = [found(&deleted(old.clone())), missing];
    let options = [
        "--image=example.org/rust@sha256:4567",
        "--wait-for-image=30s",
    ];
    let replaced = [&[found(&old)], gone.as_slice(), &[found(&new)]].concat();
    let (code, said, progress) = gate("replaced", replaced, &options);
    assert_eq!(code, 0, "{said}{progress}");
    for line in [
        "does not measure",
        "being deleted",
        "there is no frugalitybenchmarks two",
    ] {
        assert!(progress.contains(line), "{progress}");
    }
    // If the benchmark of this release is deleted, its verdict will not come.
    let running = of_image(running(), "sha256:4567");
    for (test, answer) in ["withdrawn-now", "withdrawn"].into_iter().zip(gone) {
        let (code, said, _) = gate(test, vec![found(&running), answer], &options);
        assert_eq!(code, 1, "{said}");
    }
}

#[test]
fn a_gate_that_cannot_be_asked_is_closed_and_says_why() {
    for (test, answer, words) in [
        (
            "missing",
            refusal(404, "NotFound", "two", "not found"),
            "there is no frugalitybenchmarks two in namespace default",
        ),
        (
            "absent",
            refusal(404, "NotFound", "", "no such resource"),
            "Install the chart",
        ),
        (
            "forbidden",
            refusal(403, "Forbidden", "two", "you may not"),
            "refused (403): you may not",
        ),
        (
            "nonsense",
            (200, "{\"metadata\": {}}".to_owned()),
            "not understood",
        ),
    ] {
        let to = folder("not-asked");
        let [junit, outputs] = ["energy.xml", "outputs"].map(|it| to.join(it));
        // Of an earlier run, in the same workspace.
        fs::write(&junit, "<testsuites failures=\"0\"/>").unwrap();
        let flags = [("junit", &junit), ("outputs", &outputs)];
        let flags = flags.map(|(name, path)| format!("--{name}={}", path.display()));
        let (code, said, _) = gate(test, vec![answer], &[RUST, &flags[0], &flags[1]]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(words), "{said}");
        let junit = fs::read_to_string(junit).unwrap();
        assert!(
            junit.contains("errors=\"1\"") && junit.contains("type=\"Unknown\""),
            "{junit}"
        );
        let outputs = fs::read_to_string(outputs).unwrap();
        assert!(
            outputs.starts_with("verdict=Unknown\nopen=false\ncode=1\n"),
            "{outputs}"
        );
    }
}

#[test]
fn an_api_server_that_fails_for_a_moment_is_asked_again() {
    // The client itself tries again after 429, 503 and 504.
    let busy = refusal(503, "ServiceUnavailable", "", "starting");
    let broken = refusal(500, "InternalError", "", "no leader");
    let (code, _, progress) = gate("moment", vec![busy, broken, found(&passed())], &[RUST]);
    assert_eq!(code, 0, "{progress}");
    assert!(
        progress.contains("the API server did not answer"),
        "{progress}"
    );
}

#[test]
fn a_benchmark_that_is_being_deleted_closes_it() {
    let mut benchmark = passed();
    benchmark["metadata"]["deletionTimestamp"] = json!("2026-11-21T05:00:00Z");
    let (code, said, _) = gate("deleted", vec![found(&benchmark)], &[RUST]);
    assert_eq!(code, 1);
    assert!(said.contains("being deleted"), "{said}");
}

#[test]
fn it_warns_of_what_the_verdict_does_not_cover() {
    let (_, said, _) = gate("tag", vec![found(&passed())], &[RUST]);
    assert!(
        said.contains("warning: example.org/rust:1 is a tag"),
        "{said}"
    );
    let mut tried = passed();
    tried["status"]["tries"] = json!(3);
    let (_, said, _) = gate("tries", vec![found(&tried)], &[]);
    assert!(
        said.contains("warning: This verdict is one of 3 tries with the same settings."),
        "{said}"
    );
    assert!(said.contains("warning: No --image was given"), "{said}");
}

/// The benchmark with a budget exceeded and one undecided.
fn failed() -> Value {
    let mut benchmark = with_verdict("Fail");
    let budget = |limit: &str, outcome: &str| {
        json!({
            "point": "c4-max",
            "candidate": "rust",
            "limit": limit,
            "limitValue": 0.005,
            "outcome": outcome,
            "message": format!("{limit} is {outcome}, by 3 %\n<here>"),
        })
    };
    benchmark["status"]["budgets"] = json!([
        budget("maxJoulesPerRequest", "Exceeded"),
        budget("maxMillisecondsPerRequest", "Undecided"),
        budget("maxErrorRatio", "Met"),
    ]);
    benchmark["status"]["columns"]["message"] = json!("Budget exceeded | for rust");
    benchmark
}

#[test]
fn the_reports_have_the_verdict_and_each_budget() {
    let to = folder("reports");
    let [summary, junit, outputs] = ["summary.md", "energy.xml", "outputs"].map(|it| to.join(it));
    fs::write(&summary, "before\n").unwrap();
    let flag = |name: &str, path: &std::path::Path| format!("--{name}={}", path.display());
    let options = [
        RUST.to_owned(),
        flag("summary", &summary),
        flag("junit", &junit),
        flag("outputs", &outputs),
        "--annotations".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (code, said, _) = gate("reports-api", vec![found(&failed())], &options);
    assert_eq!(code, 10);
    let annotations: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("::error"))
        .collect();
    insta::assert_snapshot!("gate_annotations", annotations.join("\n"));
    let markdown = fs::read_to_string(summary).unwrap();
    let (head, figures) = markdown.split_once("<details>").unwrap();
    assert!(figures.contains("two: Fail"), "{figures}");
    insta::assert_snapshot!("gate_summary", head);
    insta::assert_snapshot!("gate_outputs", fs::read_to_string(outputs).unwrap());
    insta::assert_snapshot!("gate_junit", fs::read_to_string(junit).unwrap());
}

#[test]
fn a_report_that_cannot_be_written_closes_it() {
    let (code, _, error) = gate(
        "unwritable",
        vec![found(&passed())],
        &[RUST, "--junit=/no/such/folder/energy.xml"],
    );
    assert_eq!(code, 1);
    assert!(error.contains("/no/such/folder/energy.xml"), "{error}");
    // A disk that becomes full during the wait.
    let junit = folder("full").join("energy.xml");
    let options = [
        RUST,
        "--outputs=/dev/full",
        &format!("--junit={}", junit.display()),
    ];
    let (code, _, error) = gate("full-api", vec![found(&passed())], &options);
    assert_eq!(code, 1);
    assert!(error.contains("/dev/full"), "{error}");
    let written = fs::read_to_string(junit).unwrap();
    assert!(written.contains("The gate did not end."), "{written}");
}

#[test]
fn a_duration_that_is_none_is_a_wrong_command_line() {
    let (code, _, error) = gate("duration", vec![found(&passed())], &["--timeout=soon"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("write for example 60s, 5m or 1h30m"),
        "{error}"
    );
}

#[test]
fn a_tag_or_a_missing_image_is_a_wrong_command_line() {
    let api = Api::answering("tags", vec![found(&passed())]);
    for (image, words) in [(RUST, "has no digest"), ("--image=", "the image is empty")] {
        let done = api.run(&["gate", "two", image]);
        assert_eq!(done.status.code(), Some(2));
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(api.asked(), Vec::<String>::new());
}

#[test]
fn an_image_of_a_backend_is_an_image_of_its_candidate() {
    let mut benchmark = passed();
    let image = "example.org/shop@sha256:0123";
    benchmark["spec"]["candidates"][0]["backends"] = json!([{ "name": "shop", "image": image }]);
    let flag = format!("--image={image}");
    let (code, said, _) = gate("backend", vec![found(&benchmark)], &[&flag]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn each_candidate_with_the_image_needs_a_budget() {
    let mut benchmark = passed();
    benchmark["spec"]["candidates"][1]["image"] = json!("example.org/rust:1");
    let (code, said, _) = gate("both", vec![found(&benchmark)], &[RUST]);
    assert_eq!(code, 15, "{said}");
}

#[test]
fn a_verdict_of_a_newer_version_closes_it() {
    let (code, said, _) = gate("version", vec![found(&with_verdict("Excellent"))], &[RUST]);
    assert_eq!(code, 1);
    assert!(said.contains("not understood"), "{said}");
}

#[test]
fn a_message_with_what_a_container_wrote_gives_no_commands() {
    let mut benchmark = failed();
    let hostile = "the log:\n::stop-commands::x\n##[error]\n### Energy gate open\n```\n</details>";
    benchmark["status"]["columns"]["message"] = json!(hostile);
    let to = folder("hostile");
    let summary = to.join("summary.md");
    let flag = format!("--summary={}", summary.display());
    let options = [RUST, &flag, "--annotations"];
    let (_, said, _) = gate("hostile-api", vec![found(&benchmark)], &options);
    let is_command = |line: &&str| line.contains("::") || line.contains("##[");
    let commands: Vec<_> = said.lines().filter(is_command).collect();
    assert_eq!(commands.len(), 3, "{said}");
    assert!(
        commands
            .iter()
            .all(|line| line.starts_with("::error title=")),
        "{commands:?}"
    );
    let markdown = fs::read_to_string(summary).unwrap();
    assert_eq!(markdown.matches("\n#").count(), 0, "{markdown}");
    assert_eq!(markdown.matches("</details>").count(), 2, "{markdown}");
    let (before, _) = markdown.split_once("<details>").unwrap();
    assert!(!before.contains("</details>"), "{before}");
}
