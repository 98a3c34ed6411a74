//! Programs that run to completion: how the operator has them executed, and the figures of their executions.

use frugality_measure::{
    batch::{ExecutionOutcome, ExecutionsResult},
    load::LoadResult,
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Reason, Verdict},
    load::{rules::LoadError, units::Units},
    plan::{
        action::ChildObject,
        names,
        settings::{Settings, SettingsError},
    },
};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use serde_json::{Value, json};

use crate::common::{
    edited,
    entries::{Trial, judged, ledger},
    injector_pod,
    judgement::{assert_ended, usual},
    made, two,
};

/// A batch for both candidates of `two`, without a database.
fn executed(batch: &Value) -> FrugalityBenchmark {
    edited(
        &two(),
        &[
            ("/request", Value::Null),
            ("/database", Value::Null),
            ("/batch", batch.clone()),
            ("/load/connections", json!(1)),
            ("/candidates/0/command", json!(["stockfish"])),
            ("/candidates/0/args", json!(["bench", "16"])),
            ("/candidates/1/command", json!(["stockfish"])),
        ],
    )
}

fn counted() -> Value {
    json!({
        "timeout": "90s",
        "score": {"pattern": "Nodes/second *: ([0-9]+)", "unit": "nodes/s"},
        "work": {"pattern": "Nodes searched *: ([0-9]+)", "unit": "node"},
    })
}

/// The candidate's pod and the injector's pod.
fn pods(benchmark: &FrugalityBenchmark) -> [PodSpec; 2] {
    let servers = made(benchmark, |builder, candidate, node| {
        builder.servers(candidate, "trial", None, node)
    });
    let of_server = servers.into_iter().find_map(|object| match object {
        ChildObject::Deployment(it) => it.spec?.template.spec,
        _ => None,
    });
    [of_server.unwrap(), injector_pod(benchmark, 1)]
}

fn argv(container: &Container) -> Vec<String> {
    let parts = [&container.command, &container.args];
    parts.into_iter().flatten().flatten().cloned().collect()
}

#[test]
fn the_program_is_executed_by_the_runner_of_the_injectors_image() {
    let [pod, _] = pods(&executed(&counted()));
    let [runner] = pod.init_containers.as_deref().unwrap() else {
        panic!("{pod:?}");
    };
    assert_eq!(runner.image.as_deref(), Some("example.org/injector:1"));
    assert_eq!(
        argv(runner),
        ["/usr/bin/frugality-runner", "install", "/frugality/runner"]
    );
    let [server] = pod.containers.as_slice() else {
        panic!("{pod:?}");
    };
    assert_eq!(server.image.as_deref(), Some("example.org/rust:1"));
    assert_eq!(
        argv(server),
        [
            "/frugality/runner",
            "serve",
            "--port=8080",
            "--",
            "stockfish",
            "bench",
            "16"
        ]
    );
    // The init container writes the runner into a volume. The server starts the runner from this volume.
    let [volume] = pod.volumes.as_deref().unwrap() else {
        panic!("{pod:?}");
    };
    assert!(volume.empty_dir.is_some());
    for container in [runner, server] {
        let [mount] = container.volume_mounts.as_deref().unwrap() else {
            panic!("{container:?}");
        };
        assert_eq!(
            (&mount.name, mount.mount_path.as_str()),
            (&volume.name, "/frugality")
        );
    }
}

#[test]
fn a_server_starts_its_own_command_without_the_runner() {
    let [pod, _] = pods(&edited(
        &two(),
        &[("/candidates/0/command", json!(["serve"]))],
    ));
    assert!(pod.init_containers.is_none() && pod.volumes.is_none());
    assert_eq!(argv(&pod.containers[0]), ["serve"]);
    let [pod, _] = pods(&two());
    assert!(pod.containers[0].command.is_none());
}

#[test]
fn the_injector_gets_the_arguments_of_the_batch() {
    let args = |batch: &Value| {
        let [_, pod] = pods(&executed(batch));
        argv(&pod.containers[0])
    };
    let printed = args(&counted());
    for arg in [
        "--batch",
        "--connections=1",
        "--url=http://trial.shop.svc:8080",
        "--duration-seconds=20",
        "--timeout-seconds=90",
        "--score-pattern=Nodes/second *: ([0-9]+)",
        "--work-pattern=Nodes searched *: ([0-9]+)",
    ] {
        assert!(printed.iter().any(|it| it == arg), "{arg}: {printed:?}");
    }
    for other in ["--method", "--script", "--labels", "--rate", "--requests"] {
        assert!(
            !printed.iter().any(|it| it.starts_with(other)),
            "{printed:?}"
        );
    }
    let given = args(&json!({"work": {"amount": "2.5e6", "unit": "ray"}}));
    assert!(
        given.iter().any(|it| it == "--work-amount=2.5e6"),
        "{given:?}"
    );
    assert!(
        given.iter().any(|it| it == "--timeout-seconds=600"),
        "{given:?}"
    );
}

#[test]
fn a_number_of_executions_replaces_the_duration() {
    let benchmark = edited(
        &executed(&json!({"executions": 1})),
        &[("/load/duration", Value::Null)],
    );
    let [_, pod] = pods(&benchmark);
    let args = argv(&pod.containers[0]);
    assert!(args.iter().any(|it| it == "--requests=1"), "{args:?}");
    assert!(
        !args.iter().any(|it| it.starts_with("--duration")),
        "{args:?}"
    );
}

#[test]
fn batches_that_cannot_be_executed_or_read_are_refused() {
    let error = |change: (&str, Value)| {
        let benchmark = edited(&executed(&counted()), &[change]);
        Settings::parse(&benchmark.spec).unwrap_err()
    };
    let nobody = SettingsError::Load(LoadError::BatchCandidate("rust".into()));
    assert_eq!(error(("/candidates/0/command", json!([]))), nobody);
    assert_eq!(error(("/candidates/0/replicas", json!(2))), nobody);
    for change in [
        ("/load/connections", json!(2)),
        ("/load/rate", json!(5)),
        ("/load/requests", json!(1000)),
        ("/load/sweep", json!({"replicas": [1, 2]})),
    ] {
        assert_eq!(error(change), SettingsError::Load(LoadError::BatchLoad));
    }
    assert_eq!(
        error(("/request", json!({"path": "/"}))),
        SettingsError::OneLoad
    );
    let work = json!({"unit": "node"});
    assert_eq!(
        error(("/batch/work", work)),
        SettingsError::Load(LoadError::BatchWork)
    );
    let reported = error(("/batch/score/pattern", json!("score ([0-9]+"))).to_string();
    assert!(reported.starts_with("batch.score.pattern: "), "{reported}");
    let work = json!({"unit": "node", "pattern": "(a)(b)"});
    let reported = error(("/batch/work", work)).to_string();
    assert!(
        reported.starts_with("batch.work.pattern: it has 2 groups"),
        "{reported}"
    );
}

#[test]
fn another_batch_is_another_measurement() {
    let id = |batch: &Value| names::run_id(&executed(batch));
    let first = id(&counted());
    assert_eq!(first, id(&counted()));
    assert_ne!(first, id(&json!({})));
    assert_ne!(first, names::run_id(&two()));
}

/// Entries of trials with four executions each. `rust` does a tenth of the work of `python`, in half the time
/// per execution.
fn entries(benchmark: &FrugalityBenchmark, with_work: bool) -> Vec<FrugalityTrial> {
    let mut entries = ledger(benchmark, |block, candidate| Trial {
        body_bytes: None,
        ..usual(block, candidate)
    });
    for entry in &mut entries {
        let is_rust = entry.spec.candidate == "rust";
        let Some(status) = &mut entry.status else {
            continue;
        };
        if status.requests.is_none() {
            continue;
        }
        let mut measured = ExecutionsResult::starting(1_700_000_000.0);
        for number in 0..4 {
            let seconds = if is_rust { 2.5 } else { 5.0 };
            measured.add(&ExecutionOutcome {
                duration_seconds: seconds,
                score: Some(1000.0 + f64::from(number)),
                work: with_work.then_some(if is_rust { 1e5 } else { 1e6 }),
            });
            measured.duration_seconds += seconds;
        }
        let figures = LoadResult::Batch(measured.clone()).figures(&[]);
        let energy = status.energy.as_mut().unwrap();
        energy.gross_joules_per_request = Some(energy.node_joules / figures.units());
        energy.net_joules_per_request = energy.net_joules.map(|joules| joules / figures.units());
        status.requests = Some(figures);
        status.fortio = None;
        status.batch = Some(measured);
    }
    entries
}

fn units(benchmark: &FrugalityBenchmark) -> Units {
    Settings::parse(&benchmark.spec).unwrap().units
}

#[test]
fn joules_are_per_unit_of_work_and_per_execution() {
    let benchmark = executed(&counted());
    let plan = judged(&benchmark, entries(&benchmark, true));
    assert_eq!(Units::of_results(&plan.status.results), units(&benchmark));
    let [rust, python] = plan.status.results.as_slice() else {
        panic!("{:?}", plan.status);
    };
    for (result, work, rate) in [(rust, 1e5, 4e4), (python, 1e6, 2e5)] {
        let batch = result.batch.as_ref().unwrap();
        assert_eq!(batch.executions, 4 * i64::from(result.trials));
        assert_eq!(batch.work_unit.as_deref(), Some("node"));
        assert!((batch.work_per_execution.unwrap() - work).abs() < 1e-3);
        let of_unit = result.gross_joules_per_request.unwrap();
        let of_execution = batch.joules_per_execution.unwrap();
        assert!((of_execution.value / (of_unit.value * work) - 1.0).abs() < 1e-5);
        assert!((result.requests_per_second.unwrap().value / rate - 1.0).abs() < 1e-6);
        let score = batch.score.as_ref().unwrap();
        assert_eq!(score.unit, "nodes/s");
        assert!((score.mean - 1001.5).abs() < 1e-9);
        // Twenty scores: five times 1000 to 1003. The squared deviations within each trial sum to 5.
        assert!((score.standard_deviation.unwrap() - (25.0f64 / 19.0).sqrt()).abs() < 1e-9);
        assert!((score.least - 1000.0).abs() < 1e-9 && (score.most - 1003.0).abs() < 1e-9);
    }
    // `rust` takes fewer joules per execution, but more joules per unit of work.
    assert_eq!(plan.status.winner.as_deref(), Some("python"));
    let columns = plan.status.columns.clone().unwrap();
    assert!(columns.energy.unwrap().ends_with("/node gross"));
    assert_eq!(columns.rate.as_deref(), Some("200k"));
    assert!(columns.latency.unwrap().ends_with(" s/exec"));
}

#[test]
fn without_work_figures_are_per_execution() {
    let benchmark = executed(&json!({}));
    let plan = judged(&benchmark, entries(&benchmark, false));
    assert_eq!(Units::of_results(&plan.status.results), units(&benchmark));
    let message = plan.status.columns.clone().unwrap().message.unwrap();
    assert!(
        message.contains(
            "The work of an execution was not checked, because batch.work.pattern is not set."
        ),
        "{message}"
    );
    let rust = &plan.status.results[0];
    let batch = rust.batch.as_ref().unwrap();
    assert!(batch.score.is_none() && batch.work_unit.is_none());
    let of_execution = batch.joules_per_execution.unwrap().value;
    let each = rust.gross_joules_per_request.unwrap().value;
    assert!((of_execution / each - 1.0).abs() < 1e-6);
}

#[test]
fn joules_of_executions_with_long_breaks_are_withheld() {
    let benchmark = executed(&counted());
    let mut entries = entries(&benchmark, true);
    for status in entries.iter_mut().filter_map(|it| it.status.as_mut()) {
        if let Some(requests) = &mut status.requests {
            requests.occupancy = Some(0.7);
        }
    }
    let status = judged(&benchmark, entries).status;
    for result in &status.results {
        assert_eq!(result.gross_joules_per_request, None);
        assert_eq!(result.batch.as_ref().unwrap().joules_per_execution, None);
    }
}

#[test]
fn the_message_quotes_a_program_that_always_fails() {
    let benchmark = executed(&json!({}));
    let mut entries = entries(&benchmark, false);
    for status in entries.iter_mut().filter_map(|entry| entry.status.as_mut()) {
        let mut measured = ExecutionsResult::starting(1_700_000_000.0);
        measured.add_failure(20.0, "exit code 3: no board".into());
        measured.duration_seconds = 20.0;
        status.requests = Some(LoadResult::Batch(measured.clone()).figures(&[]));
        status.batch = Some(measured);
    }
    let plan = judged(&benchmark, entries);
    assert_ended(&plan, Verdict::Error, Reason::NoSuccessfulRequest.as_str());
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("was never executed as expected: exit code 3: no board"),
        "{message}"
    );
}
