//! Candidates with several servers: their objects, their figures, and the part of each server.

use crate::common::{
    self,
    attempt::{changed, load_over, record, run_to},
    config,
    entries::{Trial, factor, judged, ledger},
    expected::{assert_truth, measured, status},
    manner::pod_in,
    objects::SimChild,
    truth::share_of_server,
    two_with,
    world::World,
};
use frugality_measure::energy::WorkloadFigures;
use frugality_operator::{
    api::{
        CandidateResult, FrugalityBenchmark, FrugalityTrial, LABEL_WORKLOAD, MAX_BACKENDS,
        MAX_REPLICAS, Outcome, Reason, Role, WorkloadResult,
    },
    plan::{
        action::{ChildObject, Plan},
        facts::PodFacts,
        objects::Builder,
        settings::Settings,
    },
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::{Value, json};

fn behind(backend: &Value) -> FrugalityBenchmark {
    two_with(&[("/candidates/0/backends", json!([backend]))])
}

/// A load balancer in front of a service.
fn balanced() -> FrugalityBenchmark {
    behind(&json!({
        "name": "data-service", "image": "example.org/service:1", "port": 9000, "replicas": 4,
        "env": [{"name": "LOG", "value": "warn"}], "readinessPath": "/ready",
    }))
}

/// The objects of an attempt at the first candidate: its server and the backend, each with its Service.
fn made(benchmark: &FrugalityBenchmark, swept: Option<i32>) -> [(Deployment, Service); 2] {
    let objects = common::made(benchmark, |builder, candidate, node| {
        builder.servers(candidate, "two-run-b01-rust-1", swept, node)
    });
    let Ok(
        [
            ChildObject::Deployment(back),
            ChildObject::Service(back_address),
            ChildObject::Deployment(front),
            ChildObject::Service(front_address),
        ],
    ) = <[ChildObject; 4]>::try_from(objects)
    else {
        panic!("not two servers");
    };
    [(*front, *front_address), (*back, *back_address)]
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
fn the_members_of_a_cluster_find_each_other() {
    let cluster = two_with(&[("/candidates/0/peers", json!(true))]);
    let builder = Builder {
        benchmark: &cluster,
        settings: &Settings::parse(&cluster.spec).unwrap(),
        config: &config(),
        run: "run",
    };
    let node = [("kubernetes.io/hostname".to_owned(), "pi-1".to_owned())].into();
    let candidate = &cluster.spec.candidates[0];
    let objects = builder.servers(candidate, "two-run-b01-rust-1", Some(3), &node);
    let Ok(
        [
            ChildObject::Service(peers),
            ChildObject::Deployment(server),
            ChildObject::Service(address),
        ],
    ) = <[ChildObject; 3]>::try_from(objects)
    else {
        panic!("not a server with two addresses");
    };
    let spec = peers.spec.as_ref().unwrap();
    assert_eq!(spec.cluster_ip.as_deref(), Some("None"));
    assert_eq!(spec.publish_not_ready_addresses, Some(true));
    assert_eq!(spec.selector.as_ref(), Some(server.labels()));
    let spec = address.spec.as_ref().unwrap();
    assert_eq!(spec.publish_not_ready_addresses, None);
    let reported = env(&server);
    let of = |name: &str| {
        reported
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    };
    let host = format!("{}.shop.svc", peers.name_any());
    assert_eq!(of("PEERS_HOST"), Some(host.as_str()));
    assert_eq!(of("PEERS_COUNT"), Some("3"));
    let pod = server
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap();
    let own = pod.containers[0]
        .env
        .iter()
        .flatten()
        .find(|it| it.name == "POD_IP")
        .unwrap();
    let field = own.value_from.as_ref().unwrap().field_ref.as_ref().unwrap();
    assert_eq!(field.field_path, "status.podIP");

    // The longest possible name has 63 characters.
    let longest =
        frugality_operator::plan::names::peers_name(&"b".repeat(30), "trial", &"w".repeat(15));
    assert_eq!(longest.len(), 63);
}

#[test]
fn every_server_has_pods_and_an_address_of_its_own() {
    let [(front, front_address), (back, back_address)] = made(&balanced(), None);
    let (front, back) = (&front, &back);
    let replicas = |it: &Deployment| it.spec.as_ref().unwrap().replicas;
    assert_eq!((replicas(front), replicas(back)), (Some(1), Some(4)));
    for (deployment, service, workload) in [
        (front, &front_address, "rust"),
        (back, &back_address, "data-service"),
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
            "the selector matches no pod of the other server"
        );
    }
    let address = |it: &Service| it.spec.as_ref().unwrap().cluster_ip.clone();
    assert_eq!(
        address(&front_address),
        None,
        "one address, which spreads connections"
    );
    assert_eq!(
        address(&back_address).as_deref(),
        Some("None"),
        "an address for each pod"
    );

    let host = format!("{}.shop.svc", back.name_any());
    let reported = [
        ("DATA_SERVICE_HOST", host.as_str()),
        ("DATA_SERVICE_PORT", "9000"),
    ];
    for (deployment, port) in [(front, "8080"), (back, "9000")] {
        let env = env(deployment);
        for (name, value) in reported
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
    // The ledger distinguishes two images of one candidate by the container's name.
    assert_ne!(pod.containers[0].name, front_pod.containers[0].name);
}

#[test]
fn a_sweep_of_replicas_scales_the_backend() {
    let replicas = made(&balanced(), Some(3)).map(|(it, _)| it.spec.unwrap().replicas);
    assert_eq!(replicas, [Some(1), Some(3)]);
}

#[test]
fn figures_cover_all_servers_and_each_server_has_its_part() {
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
        // The operator created the backend first.
        for (place, workload) in energy.workloads.iter().rev().enumerate() {
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
    assert!(parts < of_all, "no part includes the database");
    assert!(status(&world, 0).results[1].workloads.is_empty());
}

#[test]
fn the_server_is_created_once_all_backends_are_ready() {
    let one_each = json!({"name": "service", "image": "example.org/service:1"});
    let mut world = World::new([behind(&one_each)]);
    let has = |world: &World, workload: &str| {
        let of_workload = |child: &&SimChild| child.workload.as_deref() == Some(workload);
        world.slots[0]
            .children
            .iter()
            .any(|child| of_workload(&child))
    };
    world.run_until("a backend", |world| has(world, "service"));
    assert!(
        !has(&world, "rust"),
        "its first lookup would find fewer than all backends"
    );
    world.run_until("the server that is asked", |world| has(world, "rust"));
    let now = world.now;
    let of_backend = |pod: &&PodFacts| pod.workload.as_deref() == Some("service");
    let pods: Vec<_> = world.slots[0]
        .pods
        .iter()
        .map(|pod| pod.facts(now))
        .collect();
    let ready = pods
        .iter()
        .find(of_backend)
        .unwrap()
        .ready_since_unix_seconds;
    assert!(ready <= Some(now), "{ready:?}");
}

#[test]
fn specs_that_hide_a_backend_or_overload_the_database_are_refused() {
    let refusal = |changes: &[(&str, Value)]| {
        let spec = two_with(changes).spec;
        Settings::parse(&spec)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let backends = |more: Value| {
        let mut backend = json!({"name": "data-service", "image": "example.org/service:1"});
        backend
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ("/candidates/0/backends", json!([backend]))
    };
    let env = |name: &str| json!([{"name": name, "value": "elsewhere"}]);
    for changes in [
        [
            backends(json!({})),
            ("/candidates/0/env", env("DATA_SERVICE_HOST")),
        ],
        [
            backends(json!({"env": env("DATA_SERVICE_PORT")})),
            ("/candidates/0/env", json!([])),
        ],
    ] {
        let reported = refusal(&changes).unwrap_err();
        assert!(
            reported.starts_with("candidate rust: env must not set DATA_SERVICE_"),
            "{reported}"
        );
    }
    let fine = [
        backends(json!({})),
        ("/candidates/0/env", env("SERVICE_HOST")),
    ];
    assert_eq!(refusal(&fine), Ok(()));
    // 1 + 4 pods with a pool of 10 each, and 10 more connections: PostgreSQL allows 60.
    assert_eq!(refusal(&[backends(json!({"replicas": 4}))]), Ok(()));
    let reported = refusal(&[backends(json!({"replicas": 5}))]).unwrap_err();
    assert!(
        reported.contains("up to 6 pods") && reported.contains("max_connections: \"70\""),
        "{reported}"
    );
    let more = ("/database/parameters", json!({"max_connections": "70"}));
    assert_eq!(refusal(&[backends(json!({"replicas": 5})), more]), Ok(()));
}

#[test]
fn the_ledger_holds_the_largest_number_of_pods() {
    let crd = serde_json::to_value(FrugalityTrial::crd()).unwrap();
    let pods = crd
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/candidatePods/maxItems")
        .unwrap();
    let largest = (1 + MAX_BACKENDS) * usize::try_from(MAX_REPLICAS).unwrap();
    assert_eq!(pods, &json!(largest));
}

#[test]
fn pods_of_one_server_with_different_images_make_the_attempt_void() {
    let plan = changed(&load_over(), |observed| {
        // The ledger has the pod's UID, as if the pod had existed from the beginning.
        let mut other = pod_in(observed, Role::Candidate).clone();
        other.images = [("server".to_owned(), "sha256:other".to_owned())].into();
        other.uid = "candidate-uid-of-old".into();
        let uid = other.uid.clone();
        observed.pods.push(other);
        let open = observed.trials.last_mut().unwrap();
        let status = open.status.as_mut().unwrap();
        status.candidate_pods.push(uid);
        status.candidate_pods.sort();
    });
    assert_eq!(
        record(&plan).reason.as_deref(),
        Some(Reason::ImageChanged.as_str())
    );
    let message = record(&plan).message.as_ref().unwrap();
    assert!(
        message.contains("different images under one name"),
        "{message}"
    );
}

#[test]
fn an_attempt_waits_for_a_backend_and_names_it_if_it_never_is_ready() {
    let one_each = json!({"name": "service", "image": "example.org/service:1", "port": 9000});
    let mut world = World::new([behind(&one_each)]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 190.0);
    let plan = world.plan(0);
    let reported = record(&plan);
    assert_eq!(
        reported.reason.as_deref(),
        Some(Reason::CandidateNotReady.as_str())
    );
    let message = reported.message.as_ref().unwrap();
    assert!(message.contains("on port 9000 of its service"), "{message}");
}

#[test]
fn another_image_of_a_backend_makes_the_attempt_void() {
    let one_each = json!({"name": "service", "image": "example.org/service:1"});
    let mut world = World::new([behind(&one_each)]);
    let is_judged = |plan: &Plan| plan.record().is_some_and(|(_, it)| it.outcome.is_some());
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
        if is_judged(&plan) && plan.record().unwrap().0.contains("-rust-") {
            last = Some(plan);
            break;
        }
        world.pass(0);
    }
    let plan = last.unwrap();
    assert_eq!(
        record(&plan).reason.as_deref(),
        Some(Reason::ImageChanged.as_str())
    );
}

/// Figures of one server.
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

fn reported(of: impl Fn(i32) -> Trial) -> (Vec<WorkloadResult>, Vec<String>) {
    let benchmark = balanced();
    let status = judged(&benchmark, ledger(&benchmark, |block, _| of(block))).status;
    let CandidateResult {
        workloads,
        withheld,
        ..
    } = status.results[0].clone();
    (workloads, withheld)
}

#[test]
fn the_part_of_a_server_has_an_interval_like_the_whole() {
    let (workloads, _) = reported(|block| Trial {
        workloads: vec![
            workload("rust", Some(0.001 * factor(block, 0.01))),
            workload("data-service", Some(0.002)),
        ],
        meter_uncertainty: Some(0.05),
        ..Trial::default()
    });
    let [back, front] = workloads.as_slice() else {
        panic!("{workloads:?}");
    };
    assert_eq!(
        (front.name.as_str(), back.name.as_str()),
        ("rust", "data-service")
    );
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
}

#[test]
fn a_part_that_is_unknown_in_one_trial_is_withheld() {
    let (workloads, withheld) = reported(|block| Trial {
        workloads: vec![workload("rust", (block != 3).then_some(0.001))],
        ..Trial::default()
    });
    assert_eq!(workloads[0].attributed_joules_per_request, None);
    assert!(
        withheld
            .iter()
            .any(|why| why.contains("attributed joules of the single servers rust")),
        "{withheld:?}"
    );
    assert!(workloads[0].cpu_milliseconds_per_request.is_some());
}
