use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};

use super::*;

fn benchmark(uid: &str) -> FrugalityBenchmark {
    serde_json::from_value(json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": { "namespace": "shop", "name": "two", "uid": uid },
        "spec": { "candidates": [{ "name": "rust", "image": "example.org/rust:1" }] },
    }))
    .unwrap()
}

fn status(value: Value) -> FrugalityBenchmarkStatus {
    serde_json::from_value(value).unwrap()
}

/// A candidate's result at a point, with modelled joules whose accuracy is unknown.
fn result(candidate: &str, point: &str) -> Value {
    json!({
        "point": point, "candidate": candidate, "trials": 5, "voidAttempts": 0,
        "requestsPerSecond": { "value": 900.0, "lower": 890.0, "upper": 910.0 },
        "millisecondsPerRequest": { "value": 4.0, "lower": 3.0, "upper": 5.0 },
        "grossJoulesPerRequest": {
            "value": 0.02, "lower": 0.019, "upper": 0.021,
            "expanded": { "lower": 0.018, "upper": 0.022, "coversMeter": false, "repeatabilityOnly": true },
        },
        "netJoulesPerRequest": {
            "value": 0.01, "lower": 0.009, "upper": 0.011,
            "expanded": { "lower": 0.008, "upper": 0.012, "coversMeter": true },
        },
    })
}

fn passed(results: &Value) -> Value {
    json!({
        "verdict": "Pass", "provenance": "Modelled", "results": results,
        "columns": { "reason": "BudgetsMet" },
        "progress": { "trialsDone": 10, "trialsPlanned": 10, "voidAttempts": 1 },
    })
}

/// What a scrape returns, without help and types.
fn scraped(benchmarks: &Benchmarks) -> Vec<String> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(benchmarks.clone()));
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    let lines = text.lines().filter(|it| !it.starts_with('#'));
    lines.map(str::to_owned).collect()
}

fn shown(value: Value, reason_since: Option<f64>) -> Vec<String> {
    let benchmarks = Benchmarks::default();
    benchmarks.show(&benchmark("1"), &status(value), reason_since);
    scraped(&benchmarks)
}

#[test]
fn a_verdict_has_its_figures_with_kind_and_source_of_power() {
    let lines = shown(passed(&json!([result("rust", "c4")])), None);
    let at = "namespace=\"shop\",benchmark=\"two\"";
    let of = format!("{at},candidate=\"rust\"");
    let gross = format!("{of},kind=\"gross\",per=\"request\",provenance=\"Modelled\"");
    let net = format!("{of},kind=\"net\",per=\"request\",provenance=\"Modelled\"");
    let per = format!("{of},per=\"request\"");
    let name = "frugality_benchmark";
    assert_eq!(
        lines,
        [
            format!("{name}_reason{{{at},reason=\"BudgetsMet\"}} 1.0"),
            format!("{name}_verdict{{{at},verdict=\"Pass\"}} 1.0"),
            format!("{name}_trials_planned{{{at}}} 10.0"),
            format!("{name}_trials_done{{{at}}} 10.0"),
            format!("{name}_void_attempts{{{at}}} 1.0"),
            format!("{name}_joules_per_request{{{gross}}} 0.02"),
            format!("{name}_joules_per_request{{{net}}} 0.01"),
            // Only net: the accuracy of the gross joules is unknown.
            format!("{name}_joules_per_request_lower{{{net}}} 0.008"),
            format!("{name}_joules_per_request_upper{{{net}}} 0.012"),
            format!("{name}_requests_per_second{{{per}}} 900.0"),
            format!("{name}_requests_per_second_lower{{{per}}} 890.0"),
            format!("{name}_requests_per_second_upper{{{per}}} 910.0"),
            format!("{name}_request_seconds{{{per}}} 0.004"),
            format!("{name}_request_seconds_lower{{{per}}} 0.003"),
            format!("{name}_request_seconds_upper{{{per}}} 0.005"),
        ]
    );
}

#[test]
fn a_waiting_benchmark_has_its_reason_and_no_figures() {
    let lines = shown(json!({ "columns": { "reason": "Queued" } }), Some(1.5e9));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].ends_with("reason=\"Queued\"} 1.0"), "{lines:?}");
    let since = "frugality_benchmark_reason_since_timestamp_seconds{";
    assert!(lines[1].starts_with(since), "{lines:?}");
    assert!(lines[1].ends_with(" 1500000000.0"), "{lines:?}");
}

#[test]
fn a_run_under_way_has_its_estimated_end_and_no_figures() {
    let mut running = passed(&json!([result("rust", "c4")]));
    running.as_object_mut().unwrap().remove("verdict");
    running["progress"]["estimatedEnd"] = json!("2026-11-21T05:00:00Z");
    let lines = shown(running, None);
    let end = "frugality_benchmark_estimated_end_timestamp_seconds{namespace=\"shop\",benchmark=\"two\"} 1795237200.0";
    assert_eq!(lines.last().unwrap(), end);
    assert!(
        !lines.iter().any(|it| it.contains("candidate=")),
        "{lines:?}"
    );
}

#[test]
fn figures_that_a_verdict_does_not_trust_are_absent() {
    for verdict in ["Invalid", "Error"] {
        let mut ended = passed(&json!([result("rust", "c4")]));
        ended["verdict"] = json!(verdict);
        let lines = shown(ended, None);
        assert!(lines.iter().any(|it| it.contains(verdict)), "{lines:?}");
        assert!(
            !lines.iter().any(|it| it.contains("candidate=")),
            "{lines:?}"
        );
    }
    let mut withheld = result("rust", "c4");
    for figure in ["grossJoulesPerRequest", "netJoulesPerRequest"] {
        withheld.as_object_mut().unwrap().remove(figure);
    }
    let lines = shown(passed(&json!([withheld])), None);
    assert!(!lines.iter().any(|it| it.contains("joules")), "{lines:?}");
}

#[test]
fn joules_of_unknown_source_are_not_shown() {
    let mut unknown = passed(&json!([result("rust", "c4")]));
    unknown.as_object_mut().unwrap().remove("provenance");
    let lines = shown(unknown, None);
    assert!(!lines.iter().any(|it| it.contains("joules")), "{lines:?}");
    let rate = "frugality_benchmark_requests_per_second{";
    assert!(lines.iter().any(|it| it.starts_with(rate)), "{lines:?}");
}

#[test]
fn candidates_have_figures_and_the_points_of_a_sweep_have_none() {
    let two = shown(
        passed(&json!([result("rust", "c4"), result("python", "c4")])),
        None,
    );
    for candidate in ["rust", "python"] {
        let label = format!("candidate=\"{candidate}\"");
        assert!(two.iter().any(|it| it.contains(&label)), "{two:?}");
    }
    let sweep = shown(
        passed(&json!([result("rust", "c4"), result("rust", "c8")])),
        None,
    );
    assert!(
        !sweep.iter().any(|it| it.contains("candidate=")),
        "{sweep:?}"
    );
}

#[test]
fn a_deleted_benchmark_is_forgotten_and_a_new_status_replaces_the_old_one() {
    let benchmarks = Benchmarks::default();
    let show = |uid: &str, reason: &str| {
        let status = status(json!({ "columns": { "reason": reason } }));
        benchmarks.show(&benchmark(uid), &status, None);
    };
    show("1", "Queued");
    show("1", "Measuring");
    // It was deleted and created again: both have the same labels.
    show("2", "Queued");
    let lines = scraped(&benchmarks);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("Queued"), "{lines:?}");
    benchmarks.forget("2");
    assert_eq!(scraped(&benchmarks), Vec::<String>::new());
    show("3", "Queued");
    benchmarks.keep(&HashSet::new());
    assert_eq!(scraped(&benchmarks), Vec::<String>::new());
}

#[test]
fn names_are_unique() {
    let names: HashSet<_> = all().map(|it| it.name).collect();
    assert_eq!(names.len(), all().count());
}
