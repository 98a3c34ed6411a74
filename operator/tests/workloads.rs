//! Candidates of several servers: their objects, their figures, and what each server took of them.

use crate::common::{
    attempt::{changed, record, run_to},
    entries::{Trial, factor, judged, ledger},
    expected::{assert_truth, measured, status},
    judgement::table,
    truth::share_of_server,
    two_with,
    world::World,
};
use frugality_measure::energy::WorkloadFigures;
use frugality_operator::{
    api::{FrugalityBenchmark, LABEL_WORKLOAD, Outcome, WorkloadResult, reason},
    plan::{Plan, resources::ChildObject},
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::ResourceExt;
use serde_json::{Value, json};

fn behind(backend: &Value) -> FrugalityBenchmark {
    two_with(&[("/candidates/0/backends", json!([backend]))])
}

/// A balancer in front of a service.
fn balanced() -> FrugalityBenchmark {
    behind(&json!({
        "name": "data-service", "image": "example.org/service:1", "port": 9000, "replicas": 4,
        "env": [{"name": "LOG", "value": "warn"}], "readinessPath": "/ready",
    }))
}

/// What an attempt at the first candidate makes.
fn made(benchmark: FrugalityBenchmark) -> (Vec<Deployment>, Vec<Service>) {
    let mut world = World::new([benchmark]);
    loop {
        let slot = world.wait();
        let plan = world.pass(slot);
        let of_rust = |open: &str| open.contains("-rust-");
        let objects = plan
            .create
            .into_iter()
            .filter(|it| of_rust(&it.name()) || it.name().ends_with("-data-service"));
        let (mut deployments, mut services) = (Vec::new(), Vec::new());
        for object in objects {
            match object {
                ChildObject::Deployment(it) => deployments.push(*it),
                ChildObject::Service(it) => services.push(*it),
                _ => {}
            }
        }
        if !deployments.is_empty() {
            return (deployments, services);
        }
    }
}

fn env(deployment: &Deployment) -> Vec<(String, String)> {
    let pod = deployment
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap();
    let env = pod.containers[0].env.iter().flatten();
    env.filter_map(|it| Some((it.name.clone(), it.value.clone()?)))
        .collect()
}

#[test]
fn every_server_has_pods_and_an_address_of_its_own() {
    let (deployments, services) = made(balanced());
    let [front, back] = deployments.as_slice() else {
        panic!("{} Deployments", deployments.len());
    };
    let replicas = |it: &Deployment| it.spec.as_ref().unwrap().replicas;
    assert_eq!((replicas(front), replicas(back)), (Some(1), Some(4)));
    for (deployment, service, workload) in [
        (front, &services[0], "rust"),
        (back, &services[1], "data-service"),
    ] {
        assert_eq!(deployment.name_any(), service.name_any());
        let labels = deployment.labels();
        assert_eq!(labels[LABEL_WORKLOAD], workload);
        let spec = deployment.spec.as_ref().unwrap();
        let template = spec.template.metadata.as_ref().unwrap();
        let selector = service.spec.as_ref().unwrap().selector.as_ref();
        assert_eq!(
            (
                selector,
                template.labels.as_ref(),
                spec.selector.match_labels.as_ref()
            ),
            (Some(labels), Some(labels), Some(labels)),
            "nothing of the other one is selected"
        );
    }
    let address = |it: &Service| it.spec.as_ref().unwrap().cluster_ip.clone();
    assert_eq!(
        address(&services[0]),
        None,
        "one address, which spreads connections"
    );
    assert_eq!(
        address(&services[1]).as_deref(),
        Some("None"),
        "an address for each pod"
    );

    let host = format!("{}.shop.svc", back.name_any());
    let told = [
        ("DATA_SERVICE_HOST", host.as_str()),
        ("DATA_SERVICE_PORT", "9000"),
    ];
    for (deployment, port) in [(front, "8080"), (back, "9000")] {
        let env = env(deployment);
        for (name, value) in told
            .into_iter()
            .chain([("PORT", port), ("POOL_SIZE", "10")])
        {
            assert!(
                env.contains(&(name.to_owned(), value.to_owned())),
                "{name} in {env:?}"
            );
        }
    }
    let last = env(back).pop().unwrap();
    assert_eq!(last, ("LOG".to_owned(), "warn".to_owned()));
    let pod = back.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    let front_pod = front.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.node_selector, front_pod.node_selector);
    assert_eq!(pod.security_context, front_pod.security_context);
    let probe = pod.containers[0].readiness_probe.as_ref().unwrap();
    assert_eq!(
        probe.http_get.as_ref().unwrap().path.as_deref(),
        Some("/ready")
    );
    // Two images of one candidate are told apart in the ledger.
    assert_ne!(pod.containers[0].name, front_pod.containers[0].name);
}

#[test]
fn a_sweep_of_replicas_scales_what_stands_behind() {
    let mut benchmark = balanced();
    benchmark.spec.load.sweep = serde_json::from_value(json!({"replicas": [3, 4]})).unwrap();
    let (deployments, _) = made(benchmark);
    let replicas = |it: &Deployment| it.spec.as_ref().unwrap().replicas.unwrap();
    assert_eq!(replicas(&deployments[0]), 1);
    assert!([3, 4].contains(&replicas(&deployments[1])));
}

#[test]
fn the_candidates_figures_are_of_all_its_servers_and_each_is_told_its_part() {
    let one_each = json!({"name": "service", "image": "example.org/service:1"});
    let mut world = World::new([behind(&one_each)]);
    world.run_to_end();
    assert_truth(status(&world, 0));
    for trial in measured(&world, 0) {
        let energy = trial.status.as_ref().unwrap().energy.as_ref().unwrap();
        let whole = energy.attributed.as_ref().unwrap().candidate_joules;
        if trial.spec.candidate != "rust" {
            assert_eq!(energy.workloads, []);
            continue;
        }
        let names: Vec<_> = energy.workloads.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["rust", "service"]);
        for (place, workload) in energy.workloads.iter().enumerate() {
            let part = share_of_server(place, 2);
            assert!((workload.joules.unwrap() - part * whole).abs() < 1e-6 * whole);
            assert_eq!(workload.pods.len(), 1);
        }
    }
    let result = &status(&world, 0).results[0];
    let of_all = result.attributed_joules_per_request.unwrap().value;
    let parts: f64 = result
        .workloads
        .iter()
        .map(|it| it.attributed_joules_per_request.unwrap().value)
        .sum();
    assert!(parts < of_all, "the database is in none of them");
    assert!(status(&world, 0).results[1].workloads.is_empty());
}

#[test]
fn a_backend_that_is_not_ready_is_waited_for_and_told_of() {
    let one_each = json!({"name": "service", "image": "example.org/service:1", "port": 9000});
    let mut world = World::new([behind(&one_each)]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 190.0);
    let plan = changed(&world, |observed| {
        for pod in &mut observed.pods {
            if pod.workload.as_deref() == Some("rust") {
                pod.ready_since_unix_seconds = Some(1.0);
            }
        }
    });
    let told = record(&plan);
    assert_eq!(told.reason.as_deref(), Some(reason::CANDIDATE_NOT_READY));
    let message = told.message.as_ref().unwrap();
    assert!(message.contains("on port 9000"), "{message}");
}

#[test]
fn a_backend_s_other_image_makes_the_attempt_void() {
    let one_each = json!({"name": "service", "image": "example.org/service:1"});
    let mut world = World::new([behind(&one_each)]);
    let is_judged = |plan: &Plan| {
        plan.record
            .as_ref()
            .is_some_and(|(_, it)| it.outcome.is_some())
    };
    let mut last = None;
    world.run_until("a measured trial of rust", |world| {
        world.slots[0].trials.iter().any(|trial| {
            trial.spec.candidate == "rust"
                && trial
                    .status
                    .as_ref()
                    .is_some_and(|s| s.outcome == Some(Outcome::Measured))
        })
    });
    for _ in 0..400 {
        world.wait();
        let plan = changed(&world, |observed| {
            for pod in &mut observed.pods {
                if pod.workload.as_deref() == Some("service") {
                    pod.images = [("backend-service".to_owned(), "sha256:other".to_owned())].into();
                }
            }
        });
        if is_judged(&plan) && plan.record.as_ref().unwrap().0.contains("-rust-") {
            last = Some(plan);
            break;
        }
        world.pass(0);
    }
    let plan = last.unwrap();
    assert_eq!(record(&plan).reason.as_deref(), Some(reason::IMAGE_CHANGED));
}

/// Figures of a server per request.
fn workload(name: &str, joules: Option<f64>) -> WorkloadFigures {
    WorkloadFigures {
        name: name.to_owned(),
        pods: vec![format!("{name}-uid")],
        joules: joules.map(|it| it * 1000.0),
        joules_per_request: joules,
        cpu_seconds: Some(0.5),
        cpu_seconds_per_request: Some(0.0005),
        peak_working_set_bytes: Some(2_097_152.0),
    }
}

fn told(of: impl Fn(i32) -> Trial) -> (Vec<WorkloadResult>, String) {
    let benchmark = balanced();
    let status = judged(&benchmark, ledger(&benchmark, |block, _| of(block))).status;
    (
        status.results[0].workloads.clone(),
        table(&benchmark, status),
    )
}

#[test]
fn the_part_of_a_server_has_an_interval_like_the_whole() {
    let (workloads, table) = told(|block| Trial {
        workloads: vec![
            workload("rust", Some(0.001 * factor(block, 0.01))),
            workload("data-service", Some(0.002)),
        ],
        meter_uncertainty: Some(0.05),
        ..Trial::default()
    });
    let [front, back] = workloads.as_slice() else {
        panic!("{workloads:?}");
    };
    let joules = front.attributed_joules_per_request.unwrap();
    assert!((joules.value - 0.001).abs() < 1e-9, "{joules:?}");
    assert!(
        (joules.upper / joules.value - 1.019_826).abs() < 1e-5,
        "{joules:?}"
    );
    let expanded = joules.expanded.unwrap();
    assert!(
        expanded.covers_meter && expanded.upper / joules.value > 1.09,
        "{expanded:?}"
    );
    let steady = back.attributed_joules_per_request.unwrap();
    assert!((steady.upper - steady.lower).abs() < 1e-9, "{steady:?}");
    assert!((back.cpu_milliseconds_per_request.unwrap().value - 0.5).abs() < 1e-9);
    assert_eq!(back.peak_memory_bytes, Some(2_097_152));
    for text in ["WORKLOAD", "data-service  2.00", "0.500", "2.0 MiB"] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
}

#[test]
fn a_part_that_is_unknown_in_one_trial_is_not_told() {
    let (workloads, table) = told(|block| Trial {
        workloads: vec![workload("rust", (block != 3).then_some(0.001))],
        ..Trial::default()
    });
    assert_eq!(workloads[0].attributed_joules_per_request, None);
    assert!(workloads[0].cpu_milliseconds_per_request.is_some());
    let of_rust = |line: &&str| line.trim_start().starts_with("rust");
    assert!(
        table.lines().filter(of_rust).any(|line| line.contains('–')),
        "{table}"
    );
}
