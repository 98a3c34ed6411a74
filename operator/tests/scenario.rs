//! A script instead of a request: the injector's arguments, the figures of the cycles, and the reasons
//! against a comparison.

use frugality_measure::{
    k6::{CheckCounts, CycleSettings, parse},
    load::LoadResult,
};
use frugality_operator::{
    api::{BudgetOutcome, FrugalityBenchmark, FrugalityTrial, Reason, Verdict},
    load::units::Units,
    plan::{
        names,
        settings::{Settings, SettingsError},
    },
};
use serde_json::{Value, json};

use crate::common::{
    edited,
    entries::{Trial, judged, ledger},
    injector_pod,
    judgement::{assert_ended, usual},
    two,
};

const SCRIPT: &str = "export default function () {}";
const FAILING: &str = include_str!("../../measure/tests/data/k6/failing.json");

fn scripted(scenario: &Value) -> FrugalityBenchmark {
    edited(
        &two(),
        &[("/request", Value::Null), ("/scenario", scenario.clone())],
    )
}

fn args(benchmark: &FrugalityBenchmark) -> Vec<String> {
    let pod = injector_pod(benchmark, 8);
    pod.containers[0].args.clone().unwrap()
}

/// Entries of trials with the cycles of `failing.json`.
fn entries(
    benchmark: &FrugalityBenchmark,
    change: impl Fn(&str, &mut frugality_measure::k6::K6Result),
) -> Vec<FrugalityTrial> {
    let settings = CycleSettings {
        url: "http://server".into(),
        agents: 4,
        rate: None,
        warm_up_seconds: 1.0,
        ramp_up_seconds: 0.0,
        duration_seconds: 2.0,
        tail_seconds: 1.0,
        timeout_seconds: 3.0,
    };
    let output = parse(FAILING, &settings).unwrap();
    let mut entries = ledger(benchmark, |block, candidate| Trial {
        body_bytes: None,
        ..usual(block, candidate)
    });
    for entry in &mut entries {
        let candidate = entry.spec.candidate.clone();
        let Some(status) = &mut entry.status else {
            continue;
        };
        if status.requests.is_none() {
            continue;
        }
        let mut measured = output.measured.clone();
        // Four agents wait for the candidate during almost all of two seconds.
        measured.requests.waited_seconds = 7.9;
        change(&candidate, &mut measured);
        status.requests = Some(LoadResult::K6(measured.clone()).figures(&[]));
        status.k6 = Some(measured);
    }
    entries
}

#[test]
fn the_injector_is_given_the_script_and_no_request() {
    let scenario = json!({"script": SCRIPT, "rampUp": "2s"});
    let args = args(&scripted(&scenario));
    let has = |arg: &str| args.iter().any(|it| it == arg);
    assert!(has(&format!("--script={SCRIPT}")), "{args:?}");
    assert!(has("--ramp-up-seconds=2"), "{args:?}");
    assert!(has("--connections=8"), "{args:?}");
    assert!(has("--url=http://trial.shop.svc:8080"), "{args:?}");
    for other in ["--method", "--header", "--body", "--labels", "--requests"] {
        assert!(!args.iter().any(|it| it.starts_with(other)), "{args:?}");
    }
}

#[test]
fn only_a_load_that_k6_sends_uses_the_image_with_k6() {
    let image = |benchmark: &FrugalityBenchmark| {
        let pod = injector_pod(benchmark, 8);
        pod.containers[0].image.clone().unwrap()
    };
    let at_a_rate = |arrivals: &str| {
        let load = json!({"rate": 100, "duration": "20s", "connections": 8, "arrivals": arrivals});
        edited(&two(), &[("/load", load)])
    };
    assert_eq!(
        image(&scripted(&json!({"script": SCRIPT}))),
        "example.org/injector-k6:1"
    );
    assert_eq!(image(&at_a_rate("Open")), "example.org/injector-k6:1");
    assert_eq!(image(&at_a_rate("Closed")), "example.org/injector:1");
    assert_eq!(image(&two()), "example.org/injector:1");
}

#[test]
fn a_spec_needs_either_a_request_or_a_script() {
    let both = edited(&two(), &[("/scenario", json!({"script": SCRIPT}))]);
    let neither = edited(&two(), &[("/request", Value::Null)]);
    for benchmark in [both, neither] {
        let error = Settings::parse(&benchmark.spec).unwrap_err();
        assert_eq!(error, SettingsError::OneLoad);
    }
}

#[test]
fn a_changed_script_starts_a_new_run_but_changed_rules_of_comparison_do_not() {
    let id = |scenario: &Value| names::run_id(&scripted(scenario));
    let first = id(&json!({"script": SCRIPT}));
    assert_ne!(first, names::run_id(&two()));
    assert_ne!(first, id(&json!({"script": format!("{SCRIPT} ")})));
    assert_eq!(
        first,
        id(&json!({"script": SCRIPT, "requestsMayDiffer": true, "queriesMayDiffer": true}))
    );
}

/// Budgets that accept that a third of the cycles fail.
fn accepted_errors() -> (&'static str, Value) {
    let budgets = ["rust", "python"].map(|it| json!({"candidate": it, "maxErrorRatio": "0.35"}));
    ("/budgets", json!(budgets))
}

#[test]
fn figures_of_a_script_are_per_cycle() {
    let benchmark = edited(&scripted(&json!({"script": SCRIPT})), &[accepted_errors()]);
    let plan = judged(&benchmark, entries(&benchmark, |_, _| {}));
    let result = &plan.status.results[0];
    let cycles = result.cycles.as_ref().unwrap();
    assert!((cycles.requests_per_cycle - 1.0).abs() < 1e-9);
    let [check] = cycles.checks.as_slice() else {
        panic!("{cycles:?}");
    };
    assert_eq!((check.name.as_str(), check.passed), ("is no tenth", 0));
    assert_eq!(check.failed, 960 * i64::from(result.trials));
    assert!(
        !result.latency.is_empty(),
        "failed cycles do not remove the percentiles"
    );
    let ratio = result.error_ratio.unwrap().value;
    assert!((ratio - 16.0 / 70.0).abs() < 0.003, "{ratio}");

    let units = Settings::parse(&benchmark.spec).unwrap().units;
    assert_eq!(Units::of_results(&plan.status.results), units);
    let columns = plan.status.columns.clone().unwrap();
    assert!(columns.energy.unwrap().ends_with("/cycle gross"));
    assert!(!columns.rate.unwrap().contains("cycle"));
}

#[test]
fn checks_beyond_the_limit_of_a_status_are_summed() {
    let benchmark = scripted(&json!({"script": SCRIPT}));
    let mut entries = entries(&benchmark, |_, _| {});
    for entry in &mut entries {
        let block = entry.spec.block;
        let status = entry.status.as_mut().unwrap();
        // k6 counts sixteen checks by name, and the names differ between trials.
        let names = (0..16).map(|index| format!("check {}", (index + 3 * block) % 20));
        let names = names.chain(["(others)".to_owned()]);
        let counts = CheckCounts {
            passed: 10,
            failed: 1,
        };
        let checks = names.map(|name| (name, counts)).collect();
        status.k6.as_mut().unwrap().checks = checks;
    }
    let plan = judged(&benchmark, entries);
    let checks = &plan.status.results[0].cycles.as_ref().unwrap().checks;
    assert!((2..=17).contains(&checks.len()), "{checks:?}");
    let passed: i64 = checks.iter().map(|check| check.passed).sum();
    assert_eq!(passed, 5 * 17 * 10, "no check is lost");
    let others = checks.iter().find(|check| check.name == "(others)");
    // A check that some trial did not count by name has no separate sum.
    assert!(others.unwrap().passed > 5 * 10, "{checks:?}");
    for check in checks.iter().filter(|check| check.name != "(others)") {
        assert_eq!((check.passed, check.failed), (50, 5), "{check:?}");
    }
}

#[test]
fn the_longest_names_and_answers_fit_the_status() {
    let benchmark = scripted(&json!({"script": SCRIPT}));
    let long = |number: usize| format!("{number} {}", "ä".repeat(30_000));
    let mut measured = entries(&benchmark, |_, _| {});
    for status in measured
        .iter_mut()
        .filter_map(|entry| entry.status.as_mut())
    {
        let counts = CheckCounts {
            passed: 10,
            failed: 1,
        };
        let k6 = status.k6.as_mut().unwrap();
        k6.checks = (0..16).map(|number| (long(number), counts)).collect();
        k6.first_failures = (0..8).map(long).collect();
    }
    let plan = judged(&benchmark, measured.clone());
    let checks = &plan.status.results[0].cycles.as_ref().unwrap().checks;
    assert_eq!(checks.len(), 16);
    for check in checks {
        assert_eq!(check.name.chars().count(), 128, "{check:?}");
    }
    // No cycle was as expected, so the message quotes the failures.
    for status in measured
        .iter_mut()
        .filter_map(|entry| entry.status.as_mut())
    {
        let requests = status.requests.as_mut().unwrap();
        requests.successes = 0;
    }
    let plan = judged(&benchmark, measured);
    let message = plan.status.end().unwrap().message.clone();
    assert!(message.contains("not 0 ää"), "{message:.200}");
    assert!(
        message.chars().count() < 2200,
        "{}",
        message.chars().count()
    );
}

#[test]
fn candidates_whose_cycles_are_not_the_same_work_are_not_compared() {
    let longer = |by: f64| {
        move |candidate: &str, measured: &mut frugality_measure::k6::K6Result| {
            if candidate == "python" {
                let count = measured.requests.count as f64 * by;
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "some thousand requests"
                )]
                let count = count.round() as u64;
                measured.requests.count = count;
            }
        }
    };
    let benchmark = edited(&scripted(&json!({"script": SCRIPT})), &[accepted_errors()]);
    // 23 % of the cycles failed, each possibly after any of its requests.
    let same = judged(&benchmark, entries(&benchmark, longer(1.4)));
    assert_eq!(same.status.winner.as_deref(), Some("rust"));
    let unjudged = scripted(&json!({"script": SCRIPT}));
    let other = judged(&unjudged, entries(&unjudged, longer(2.0)));
    assert_ended(
        &other,
        Verdict::Inconclusive,
        Reason::RequestsDiffer.as_str(),
    );
    let message = other
        .status
        .columns
        .as_ref()
        .unwrap()
        .message
        .clone()
        .unwrap();
    assert!(
        message.contains("a cycle makes 1.00 requests to rust on average and 2.00 to python"),
        "{message}"
    );
    let allowed = edited(
        &scripted(&json!({"script": SCRIPT, "requestsMayDiffer": true})),
        &[accepted_errors()],
    );
    let plan = judged(&allowed, entries(&allowed, longer(2.0)));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let note = "Different work, as spec.scenario.requestsMayDiffer allows: a cycle makes 1.00 requests to rust on average and 2.00 to python.";
    assert!(
        plan.status.notes.iter().any(|it| it == note),
        "{:?}",
        plan.status.notes
    );
}

#[test]
fn an_error_budget_is_not_met_if_cycles_were_dropped() {
    let judged_with = |dropped: bool, limit: &str| {
        let benchmark = edited(
            &scripted(&json!({"script": SCRIPT})),
            &[(
                "/budgets",
                json!([{"candidate": "rust", "maxErrorRatio": limit}]),
            )],
        );
        let entries = entries(&benchmark, |_, measured| {
            measured.dropped_cycles = u64::from(dropped) * measured.all_cycles();
        });
        let budget = judged(&benchmark, entries).status.budgets[0].clone();
        (budget.outcome, budget.message, budget.figure)
    };
    // 23 % of the cycles failed, and as many cycles as ended were dropped.
    assert_eq!(judged_with(false, "0.35").0, BudgetOutcome::Met);
    assert_eq!(judged_with(true, "0.7").0, BudgetOutcome::Met);
    assert_eq!(judged_with(true, "0.1").0, BudgetOutcome::Exceeded);
    let (outcome, message, _) = judged_with(true, "0.35");
    assert_eq!(outcome, BudgetOutcome::Withheld);
    assert!(
        message.contains("the limit is met without the dropped cycles"),
        "{message}"
    );
    // More blocks may decide a limit within the interval, with or without dropped cycles.
    let (.., figure) = judged_with(false, "0.35");
    let within = format!("{:.6}", figure.unwrap().value);
    for dropped in [false, true] {
        assert_eq!(judged_with(dropped, &within).0, BudgetOutcome::Undecided);
    }
}

#[test]
fn few_cycles_per_agent_are_reported() {
    let notes = |cycles: u64| {
        let benchmark = scripted(&json!({"script": SCRIPT}));
        let entries = entries(&benchmark, |_, measured| {
            (measured.cycles.count, measured.failed_cycles.count) = (cycles, 0);
        });
        judged(&benchmark, entries).status.notes
    };
    // Four agents.
    let few = notes(90);
    let expected = "Each agent completed few cycles in a window. Figures per cycle and cycles/s may be wrong by more than 3 %";
    assert!(few.iter().any(|it| it.starts_with(expected)), "{few:?}");
    let many = notes(450);
    assert!(many.iter().all(|it| !it.contains("Each agent")), "{many:?}");
}

#[test]
fn few_cycles_at_a_rate_are_reported() {
    let notes = |cycles: u64, seconds: f64| {
        let benchmark = edited(
            &scripted(&json!({"script": SCRIPT})),
            &[("/load/rate", json!(2))],
        );
        let entries = entries(&benchmark, |_, measured| {
            (measured.cycles.count, measured.failed_cycles.count) = (cycles, 0);
            measured.cycles.sum_seconds = cycles as f64 * seconds;
        });
        judged(&benchmark, entries).status.notes
    };
    // Cycles of a second in windows of 20 s: two are open at each end.
    let few = notes(40, 1.0);
    let expected = "Few cycles ended in a window. Figures per cycle and cycles/s may be wrong by more than 3 %";
    assert!(few.iter().any(|it| it.starts_with(expected)), "{few:?}");
    let many = notes(400, 0.01);
    assert!(
        many.iter().all(|it| !it.contains("ended in a window")),
        "{many:?}"
    );
}

#[test]
fn times_are_withheld_if_cycles_were_dropped() {
    let benchmark = scripted(&json!({"script": SCRIPT}));
    let plan = judged(
        &benchmark,
        entries(&benchmark, |candidate, measured| {
            measured.dropped_cycles = u64::from(candidate == "rust");
        }),
    );
    let [rust, python] = plan.status.results.as_slice() else {
        panic!("not two results");
    };
    assert!(rust.milliseconds_per_request.is_none() && rust.latency.is_empty());
    assert!(rust.requests_per_second.is_some());
    let trials = rust.trials;
    let why = format!(
        "ms/cycle missing in {trials} of {trials} trials: {trials} cycles were due and did not begin, because all load.connections were busy"
    );
    assert_eq!(rust.withheld, [why]);
    assert!(python.milliseconds_per_request.is_some());
}

#[test]
fn the_message_says_why_every_cycle_failed() {
    let benchmark = scripted(&json!({"script": SCRIPT}));
    let plan = judged(
        &benchmark,
        entries(&benchmark, |_, measured| {
            measured.failed_cycles.count += measured.cycles.count;
            measured.cycles.count = 0;
            measured.cycles.buckets.clear();
        }),
    );
    assert_ended(&plan, Verdict::Error, Reason::NoSuccessfulRequest.as_str());
    let message = plan
        .status
        .columns
        .as_ref()
        .unwrap()
        .message
        .clone()
        .unwrap();
    assert!(
        message.contains("960 × not is no tenth, every seventh"),
        "{message}"
    );
}

#[test]
fn a_request_at_a_rate_is_sent_as_the_spec_says() {
    let of = |load: Value| args(&edited(&two(), &[("/load", load)]));
    let has = |args: &[String], flag: &str| args.iter().any(|arg| arg == flag);
    let closed = of(json!({"rate": 100, "duration": "20s", "connections": 8}));
    assert!(
        !has(&closed, "--open") && !has(&closed, "--skip-late"),
        "{closed:?}"
    );
    let open = of(json!({"rate": 100, "duration": "20s", "connections": 8, "arrivals": "Open"}));
    assert!(
        has(&open, "--open") && has(&open, "--expected-status=200"),
        "{open:?}"
    );
    let skipping = of(json!({"rate": 100, "duration": "20s", "connections": 8, "catchUp": false}));
    assert!(has(&skipping, "--skip-late"), "{skipping:?}");
}
