//! One attempt, from fresh pods to its ledger entry, and the causes that make it void or failed.

use std::sync::Arc;

use crate::common::{
    T0,
    attempt::{
        after, assert_measured, assert_void, changed, first_server, load_over, load_over_of,
        measured, measured_after, record, run_to,
    },
    injector_pod, made,
    manner::pod_in,
    run_of,
    summary::of_plan,
    truth::LoadOn,
    two, two_with,
    world::World,
};
use frugality_measure::{
    energy::PhaseName,
    reading::{Provenance, Reading},
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityBenchmarkStatus, Outcome, Reason, Role},
    plan::{
        action::{Action, ChildObject, Plan},
        facts::{Child, ChildKind, Observed, PodFacts, Probed, Refusal, Termination},
        names::lock_name,
        objects::PointLoad,
        plan,
    },
};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

#[test]
fn a_refused_entry_of_a_benchmark_with_a_database_is_in_the_status() {
    let refused = |observed: &mut Observed| {
        observed.refused = Some(Refusal {
            reason: Reason::QuotaExceeded,
            message: "no room for entries".to_owned(),
            is_entry: true,
        });
    };
    let mut world = World::new([two()]);
    let opening = loop {
        let slot = world.wait();
        let plan = changed(&world, refused);
        if plan.opened().is_some() {
            break plan;
        }
        world.pass(slot);
    };
    let columns = opening.status.columns.as_ref().unwrap();
    assert_eq!(columns.reason.as_deref(), Some("QuotaExceeded"));
    assert!(opening.requeue_seconds >= 5.0);
}

#[test]
fn the_first_attempt_is_opened_before_anything_is_made_for_it() {
    let mut world = World::new([two()]);
    let opening = loop {
        let slot = world.wait();
        let plan = world.pass(slot);
        if plan.opened().is_some() {
            break plan;
        }
        let mut children = world.slots[0].children.iter();
        assert!(children.all(|child| child.facts.trial.is_none()));
    };
    let actions = opening.clone().actions(None).into_iter();
    let writes = actions.filter_map(|action| match action {
        Action::Open(_) => Some("open"),
        Action::Record { .. } => Some("record"),
        Action::Create(_) => Some("create"),
        _ => None,
    });
    assert_eq!(
        writes.collect::<Vec<_>>(),
        ["open", "record", "create", "create"]
    );
    insta::assert_snapshot!(of_plan(&opening));
}

#[test]
fn the_next_attempt_waits_until_the_last_ones_pods_are_gone() {
    let mut world = World::new([two()]);
    world.run_until("a measured trial", |world| {
        world.slots[0]
            .trials
            .iter()
            .any(|trial| trial.status.as_ref().is_some_and(|s| s.outcome.is_some()))
    });
    world.wait();
    let deleting = world.pass(0);
    world.wait();
    let waiting = world.plan(0);
    assert_eq!(waiting.opened(), None);
    world.advance_to(world.now + 5.0);
    let opening = world.plan(0);
    insta::assert_snapshot!([deleting, opening].each_ref().map(of_plan).join("----\n"));
    // An injector's pod that outlives its Job could still send load. A server's pod could still serve that
    // load.
    for role in [Role::Injector, Role::Candidate] {
        let left = changed(&world, |observed| {
            let mut pod = pod_in(observed, Role::Database).clone();
            pod.role = role.as_str().into();
            pod.ended = role == Role::Injector;
            observed.pods.push(pod);
        });
        assert_eq!(left.opened(), None);
        assert!(
            left.requeue_seconds >= 1.0,
            "the end of a pod starts a pass"
        );
    }
    let left = changed(&world, |observed| {
        let mut job = observed.children[0].clone();
        job.kind = ChildKind::Job;
        job.trial = Some("two-b01-rust-1".into());
        job.deleting = true;
        observed.children.push(job);
    });
    assert_eq!(left.opened(), None);
    assert!(
        left.requeue_seconds <= 0.2,
        "nothing tells that a Job is gone"
    );
}

/// Stock Kepler answers from one snapshot for a while, and reports no time.
#[test]
fn a_repeated_reading_does_not_end_a_baseline() {
    let mut world = World::new([two()]);
    world.manner.meter_has_clock = false;
    run_to(&mut world, "load is on");
    world.advance_to(world.loads[0].end + 10.0);
    let figures = world.plan(0);
    let end = record(&figures).idle_after.unwrap().end_unix_seconds;
    assert_eq!(repeated_from(&world, end).record(), None);
    let read_once_more = repeated_from(&world, end + 1.0);
    assert_eq!(record(&read_once_more).energy, record(&figures).energy);
    // The operator does not wait forever.
    world.advance_to(world.now + 16.0);
    let silent = repeated_from(&world, end);
    assert_void(&silent, Reason::ReadingsInterrupted.as_str());
}

/// The plan if the meter has shown nothing new from this time on.
fn repeated_from(world: &World, unix_seconds: f64) -> Plan {
    changed(world, |observed| {
        let session = observed.sessions.values_mut().next().unwrap();
        let readings = Arc::make_mut(&mut session.readings);
        let first = readings.partition_point(|it| it.at_unix_seconds() < unix_seconds);
        let newest = readings[first - 1].clone();
        for repeated in &mut readings[first..] {
            *repeated = Reading {
                scraped_at_unix_seconds: repeated.scraped_at_unix_seconds,
                ..newest.clone()
            };
        }
    })
}

#[test]
fn the_attempt_waits_for_a_starting_server() {
    let world = after("starting two-");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_attempt_waits_until_both_pods_of_a_server_are_ready() {
    let replicas = |number: i32| ("/candidates/0/replicas", json!(number));
    let deployment = |changes: &[(&str, Value)]| {
        let mut world = World::new([two_with(changes)]);
        loop {
            let slot = world.wait();
            let created = world.pass(slot).create.into_iter();
            let of_rust = created.into_iter().find_map(|child| match child {
                ChildObject::Deployment(server) if server.name_any().contains("-rust-") => {
                    server.spec?.replicas
                }
                _ => None,
            });
            if let Some(replicas) = of_rust {
                return replicas;
            }
        }
    };
    assert_eq!(deployment(&[]), 1);
    assert_eq!(deployment(&[replicas(3)]), 3);
    let load = json!({"duration": "20s", "sweep": {"replicas": [4, 5]}});
    let swept = deployment(&[replicas(3), ("/load", load)]);
    assert!(
        [4, 5].contains(&swept),
        "a sweep's number counts, not the candidate's: {swept}"
    );

    let both = ["/candidates/0/replicas", "/candidates/1/replicas"].map(|path| (path, json!(2)));
    let mut world = World::new([two_with(&both)]);
    run_to(&mut world, "waiting for the server to be ready");
    // The world makes one pod per Deployment.
    world.advance_to(world.now + 20.0);
    let doing = |plan: &Plan| plan.status.columns.clone().unwrap().message.unwrap();
    let one = doing(&world.plan(0));
    assert!(
        one.ends_with("to be ready: 1 of its 2 pods were created"),
        "{one}"
    );
    let with_second = |change: fn(&mut PodFacts)| {
        doing(&changed(&world, |observed| {
            let mut second = pod_in(observed, Role::Candidate).clone();
            second.uid = "second-uid".into();
            change(&mut second);
            observed.pods.push(second);
        }))
    };
    let unready = with_second(|pod| pod.ready_since_unix_seconds = None);
    assert!(
        unready.contains("GET /healthz on port 8080 was not asked yet"),
        "{unready}"
    );
    let ready = with_second(|_| ());
    assert!(ready.ends_with("checking the database"), "{ready}");
}

#[test]
fn the_idle_baseline_is_measured_with_the_candidate_up() {
    let world = after("measuring the idle baseline");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_load_starts_once_the_baseline_is_recorded() {
    let mut world = World::new([two()]);
    let mut starting = None;
    world.run_until("the load", |world| !world.loads.is_empty());
    let mut again = World::new([two()]);
    while again.loads.is_empty() {
        let slot = again.wait();
        starting = Some(again.pass(slot));
    }
    let starting = starting.unwrap();
    insta::assert_snapshot!(of_plan(&starting));
    let idle = record(&starting).idle_before.unwrap();
    assert!((idle.seconds() - 5.0).abs() < 1e-6);
}

#[test]
fn the_operator_does_nothing_under_load() {
    let world = after("load is on");
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_second_idle_baseline_follows_the_load() {
    let mut world = after("load is on");
    world.advance_to(world.loads[0].end + 1.0);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_measured_attempt_has_its_windows_and_figures() {
    let mut world = load_over();
    let figures = world.plan(0);
    let plan = measured(&mut world);
    insta::assert_snapshot!([&figures, &plan].map(of_plan).join("----\n"));
    let record = record(&plan);
    assert_eq!(record.restarts, Some(0));
    assert_eq!(record.images.len(), 3);
    assert_eq!(
        record.database.as_ref().map(|facts| facts.rows),
        Some(10_000)
    );
    assert!(record.fortio.is_some() && record.clock.is_some());
}

/// Sum of a list of a phase.
fn sum(values: Option<&Vec<Option<i64>>>) -> i64 {
    values.unwrap().iter().map(|value| value.unwrap()).sum()
}

#[test]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
fn a_measured_attempt_has_a_course_whose_sums_are_its_totals() {
    let plan = measured(&mut load_over());
    let energy = record(&plan).energy.as_ref().unwrap();
    let trace = plan.trace.as_ref().unwrap();
    let (name, _) = plan.record().unwrap();
    assert_eq!(trace.name_any(), name);
    let owner = &trace.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), &owner.name, owner.block_owner_deletion),
        ("FrugalityTrial", &name, None)
    );
    assert_eq!(trace.spec.provenance, energy.provenance);
    let phases = &trace.spec.phases;
    let names: Vec<_> = phases.iter().map(|it| it.phase).collect();
    assert_eq!(
        names,
        [
            PhaseName::IdleBefore,
            PhaseName::WarmUp,
            PhaseName::Window,
            PhaseName::Tail,
            PhaseName::IdleAfter
        ]
    );
    let window = &phases[2];
    assert_eq!(
        sum(window.node_millijoules.as_ref()),
        (energy.node_joules * 1e3).round() as i64
    );
    let cpu = energy.cpu.as_ref().unwrap();
    assert_eq!(
        sum(window.candidate_cpu_microseconds.as_ref()),
        (cpu.candidate_seconds * 1e6).round() as i64
    );
    let slices = trace.spec.slices.as_ref().unwrap();
    let requests = record(&plan).requests.as_ref().unwrap();
    assert_eq!(slices.successes.iter().sum::<u64>(), requests.successes);
    assert_eq!(slices.errors.iter().sum::<u64>(), requests.errors);
    let bytes = serde_json::to_string(&trace).unwrap().len();
    assert!(bytes < 7_000, "{bytes} bytes");
    // The status does not know of it.
    let without = plan.clone().actions(None);
    assert!(
        matches!(
            &without[without.len() - 2..],
            [Action::Trace(_), Action::WatchOnly(_)]
        ),
        "{without:?}"
    );
}

#[test]
fn readings_are_thinned_only_while_the_load_is_on_and_far_from_its_ends() {
    let steady = |world: &World| {
        let plan = changed(world, |observed| {
            let now = world.now;
            for pod in observed
                .pods
                .iter_mut()
                .filter(|pod| pod.role == Role::Injector.as_str())
            {
                pod.started_unix_seconds = Some(now.floor());
            }
        });
        let [watch] = plan.watch.try_into().unwrap();
        watch.steady
    };
    let mut world = after("measuring the idle baseline");
    assert_eq!(steady(&world), None);
    run_to(&mut world, "load is on");
    let stretch = steady(&world).unwrap();
    let slot = &world.slots[0];
    let record = slot.trials.last().unwrap().status.as_ref().unwrap();
    let newest = world.observed(0).sessions[&slot.trials.last().unwrap().name_any()]
        .readings
        .last()
        .unwrap()
        .at_unix_seconds();
    // A warm-up of 2 s, and requests that take up to 3 s.
    let began = record.idle_before.unwrap().end_unix_seconds;
    assert!(
        stretch.from_unix_seconds > began + 305.0,
        "{stretch:?} {began}"
    );
    assert!(
        stretch.to_unix_seconds < newest - 120.0,
        "{stretch:?} {newest}"
    );
    let groups: Vec<Vec<String>> = stretch
        .groups
        .iter()
        .map(|group| group.iter().cloned().collect())
        .collect();
    assert_eq!(
        groups,
        [record.candidate_pods.clone(), record.database_pods.clone()]
    );
    world.advance_to(world.loads[0].end + 1.0);
    assert_eq!(steady(&world), None);
}

#[test]
fn a_course_has_the_least_trustworthy_source_of_its_readings() {
    let mut world = load_over();
    for session in world.slots[0].sessions.values_mut() {
        let readings = Arc::make_mut(&mut session.readings);
        let middle = readings.len() / 2;
        Arc::make_mut(&mut readings[middle].meter).provenance = Provenance::Fake;
    }
    let plan = world.plan(0);
    assert_eq!(record(&plan).outcome, Some(Outcome::Void));
    assert_eq!(plan.trace.unwrap().spec.provenance, Provenance::Fake);
}

#[test]
fn a_void_attempt_has_a_course_up_to_its_end_and_one_without_a_baseline_has_none() {
    let mut world = after("load is on");
    world.advance_to(world.now + 10.0);
    let suspended = |world: &World| {
        let mut benchmark = world.slots[0].benchmark.clone();
        benchmark.spec.suspend = true;
        plan(&benchmark, &world.observed(0), &world.config, world.now)
    };
    let void = suspended(&world);
    assert_eq!(record(&void).outcome, Some(Outcome::Void));
    let trace = void.trace.unwrap();
    let names: Vec<_> = trace.spec.phases.iter().map(|it| it.phase).collect();
    assert_eq!(names, [PhaseName::IdleBefore, PhaseName::Load]);
    assert_eq!(trace.spec.slices, None);
    let load = &trace.spec.phases[1];
    assert!(sum(load.node_millijoules.as_ref()) > 0);

    let early = suspended(&after("measuring the idle baseline"));
    assert_eq!(record(&early).outcome, Some(Outcome::Void));
    assert_eq!(early.trace, None);
    // A record that ends nothing has no course.
    let baseline = after("measuring the idle baseline");
    let mut world = baseline;
    run_to(&mut world, "load is on");
    assert_eq!(world.slots[0].traces, []);
}

#[test]
fn an_operator_without_readings_of_the_attempt_writes_no_course() {
    let mut world = load_over();
    world.slots[0].sessions.clear();
    assert_eq!(world.plan(0).trace, None);
}

#[test]
fn every_attempt_of_a_run_has_a_course() {
    let mut world = World::new([two()]);
    world.run_to_end();
    let slot = &world.slots[0];
    let attempts = slot.trials.iter().filter(|it| it.spec.block > 0).count();
    assert!(attempts > 0);
    assert_eq!(slot.traces.len(), attempts);
}

#[test]
fn gross_joules_of_a_shared_node_are_not_shown() {
    let columns = |plan: &Plan| record(plan).columns.clone().unwrap();
    let apart = columns(&measured(&mut load_over()));
    assert!(apart.energy.is_some());
    let allowed = two_with(&[("/placement/allowSharedNode", json!(true))]);
    let mut world = load_over_of(allowed);
    let of_measured = lock_name("pi-1");
    world.locks.retain(|lock| lock.name == of_measured);
    for trial in &mut world.slots[0].trials {
        let spec = &mut trial.spec;
        spec.injector_node.clone_from(&spec.measured_node);
    }
    let shared = columns(&measured(&mut world));
    assert_eq!((shared.energy, shared.rate), (None, apart.rate));
}

#[test]
fn a_candidates_own_faults_never_make_an_attempt_void() {
    // The candidate crashed and restarted.
    let crashed = changed(&load_over(), |observed| {
        let pod = pod_in(observed, Role::Candidate);
        pod.restarts = 2;
    });
    assert_measured(&crashed);
    assert_eq!(record(&crashed).restarts, Some(2));
    // One of five requests failed, or all requests failed.
    let answering = |share: f64| {
        let world = load_over();
        measured_after(&world.loads[0].report(share).encode().unwrap())
    };
    insta::assert_snapshot!(
        [0.8, 0.0]
            .map(|share| of_plan(&answering(share)))
            .join("----\n")
    );
    let none = answering(0.0);
    assert_eq!(
        record(&none).requests.as_ref().unwrap().requests_per_second,
        None
    );
    assert_eq!(
        record(&none)
            .energy
            .as_ref()
            .unwrap()
            .gross_joules_per_request,
        None
    );
}

#[test]
fn a_server_image_that_cannot_be_pulled_ends_the_run() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    world.manner.server_waiting = Some(("ErrImagePull".into(), "not found".into()));
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 40.0);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn an_image_that_insists_on_root_ends_the_run_at_once() {
    let refused = |words: &str| {
        let mut world = World::new([two()]);
        world.manner.server_ready = None;
        let message = format!("{words} (pod: \"p_shop(1)\", container: server)");
        world.manner.server_waiting = Some(("CreateContainerConfigError".into(), message));
        run_to(&mut world, "starting two-");
        world.plan(0)
    };
    for (words, reason) in [
        (
            "container has runAsNonRoot and image will run as root",
            Reason::ImageRunsAsRoot.as_str(),
        ),
        (
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root",
            Reason::ImageUserNotNumeric.as_str(),
        ),
    ] {
        let plan = refused(words);
        let record = record(&plan);
        assert_eq!(record.outcome, Some(Outcome::Failed));
        assert_eq!(record.reason.as_deref(), Some(reason));
        let message = record.message.as_ref().unwrap();
        assert!(
            message.contains(words) && message.contains("runAsUser"),
            "{message}"
        );
    }
    // A Secret that does not exist yet may still appear.
    let other = refused("secret \"two-db-app\" not found");
    assert_eq!(other.record(), None);
}

#[test]
fn a_candidate_sets_its_pull_policy_and_its_user() {
    let pod = |changes: &[(&str, Value)]| first_server(&mut World::new([two_with(changes)]));
    let plain = pod(&[]);
    let container = &plain.containers[0];
    assert_eq!(container.image_pull_policy.as_deref(), Some("IfNotPresent"));
    // Those of the installation.
    let names = |pod: &PodSpec| -> Vec<String> {
        let secrets = pod.image_pull_secrets.iter().flatten();
        secrets.map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(&plain), ["registry"]);
    let restricted = container.security_context.as_ref().unwrap();
    assert_eq!(
        (restricted.run_as_user, restricted.run_as_group),
        (None, None)
    );

    let own = json!({
        "name": "rust", "image": "example.org/rust:1", "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "own"}], "runAsUser": 1000, "runAsGroup": 2000,
    });
    let pod = pod(&[("/candidates", json!([own]))]);
    assert_eq!(names(&pod), ["own", "registry"]);
    let container = &pod.containers[0];
    assert_eq!(container.image_pull_policy.as_deref(), Some("Always"));
    let context = container.security_context.as_ref().unwrap();
    assert_eq!(
        (context.run_as_user, context.run_as_group),
        (Some(1000), Some(2000))
    );
    // The other fields are as the restricted standard requires.
    let mut same = context.clone();
    (same.run_as_user, same.run_as_group) = (None, None);
    assert_eq!(&same, restricted);
    assert_eq!(pod.security_context, plain.security_context);
    assert_eq!(pod.security_context.unwrap().run_as_non_root, Some(true));
}

#[test]
fn a_server_that_never_becomes_ready_ends_the_run() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    world.advance_to(world.now + 170.0);
    assert_eq!(world.plan(0).record(), None);
    world.advance_to(world.now + 15.0);
    let silent = world.plan(0);
    let crashing = changed(&world, |observed| {
        let pod = pod_in(observed, Role::Candidate);
        pod.waiting = Some(("CrashLoopBackOff".into(), "back-off 40s".into()));
        let end = Termination {
            exit_code: 1,
            reason: "Error".into(),
            message: "DATABASE_URL is not set".into(),
        };
        pod.terminated.insert("server".into(), end);
    });
    let texts = [&silent, &crashing].map(|plan| record(plan).message.clone().unwrap());
    assert_eq!(
        record(&silent).reason.as_deref(),
        Some(Reason::CandidateNotReady.as_str())
    );
    insta::assert_snapshot!(texts.join("\n"));
}

/// The end of a container, with the last words that the kubelet takes from the container's log.
fn crash(words: &str) -> Termination {
    Termination {
        exit_code: 1,
        reason: "Error".into(),
        message: words.into(),
    }
}

fn message(plan: &Plan) -> &str {
    &plan.status.conditions[0].message
}

#[test]
fn a_server_that_crashes_twice_ends_the_run_with_its_last_words() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    let crashed = |crashes: i32| {
        changed(&world, |observed| {
            let pod = pod_in(observed, Role::Candidate);
            pod.crashes = crashes;
            let end = crash("panicked: DATABASE_URL is not set");
            pod.terminated.insert("server".into(), end);
        })
    };
    // The server may have started before its dependencies.
    let once = crashed(1);
    assert_eq!(once.record(), None);
    assert!(
        message(&once).contains("ended once (exit code 1: panicked: DATABASE_URL is not set)"),
        "{}",
        message(&once)
    );
    let twice = crashed(2);
    let record = record(&twice);
    assert_eq!(record.outcome, Some(Outcome::Failed));
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::CandidateCrashed.as_str())
    );
    let reported = record.message.as_deref().unwrap();
    assert!(
        reported.contains(
            "ended 2 times before it was ready: exit code 1: panicked: DATABASE_URL is not set"
        ),
        "{reported}"
    );
}

#[test]
fn the_status_says_why_a_server_is_not_ready_yet() {
    let mut world = World::new([two()]);
    world.manner.server_ready = None;
    run_to(&mut world, "waiting for the server to be ready");
    let reported = |change: &dyn Fn(&mut PodFacts)| {
        let plan = changed(&world, |observed| change(pod_in(observed, Role::Candidate)));
        assert_eq!(plan.record(), None);
        message(&plan).to_owned()
    };
    let texts = [
        reported(&|pod| {
            pod.unschedulable = Some("0/2 nodes are available: 2 Insufficient memory.".into());
        }),
        reported(&|pod| pod.started_unix_seconds = None),
        reported(&|pod| pod.waiting = Some(("ErrImagePull".into(), "not found".into()))),
        reported(&|_| {}),
        reported(&|pod| pod.probed = Some(Probed::Refused)),
        reported(&|pod| pod.probed = Some(Probed::Status(404))),
        reported(&|pod| pod.probed = Some(Probed::Failed("no answer within 1 s".into()))),
    ];
    insta::assert_snapshot!(
        texts
            .map(|text| text.replace(&run_of(&two()), "<run>"))
            .join("\n")
    );
}

#[test]
fn ready_within_limits_the_wait_for_a_candidate() {
    let waited = |within: Value, seconds: f64| {
        let changes = [
            ("/candidates/0/readyWithin", within.clone()),
            ("/candidates/1/readyWithin", within),
        ];
        let mut world = World::new([two_with(&changes)]);
        world.manner.server_ready = None;
        run_to(&mut world, "waiting for the server to be ready");
        world.advance_to(world.now + seconds);
        let plan = world.plan(0);
        plan.record()
            .map(|(_, record)| record.message.clone().unwrap())
    };
    assert_eq!(waited(json!("20s"), 15.0), None);
    let reported = waited(json!("20s"), 22.0).unwrap();
    assert!(
        reported.contains("not ready 20 s after its start"),
        "{reported}"
    );
    assert_eq!(waited(json!("10m"), 500.0), None);
}

#[test]
fn every_container_of_a_candidate_leaves_its_last_words() {
    let pod = first_server(&mut World::new([two()]));
    let policies = pod
        .containers
        .iter()
        .map(|it| it.termination_message_policy.as_deref());
    assert_eq!(
        policies.collect::<Vec<_>>(),
        [Some("FallbackToLogsOnError")]
    );
}

/// Arguments of the injector in the plan.
fn injector_args(plan: &Plan) -> Vec<String> {
    let job = plan.create.iter().find_map(|child| match child {
        ChildObject::Job(job) => Some(job),
        _ => None,
    });
    let pod = job
        .unwrap()
        .spec
        .as_ref()
        .unwrap()
        .template
        .spec
        .as_ref()
        .unwrap();
    pod.containers[0].args.clone().unwrap()
}

#[test]
fn the_injector_compares_its_clock_with_the_clock_of_the_readings() {
    let mut world = World::new([two()]);
    while !world
        .plan(0)
        .create
        .iter()
        .any(|child| child.name().contains("-b01-") && child.kind() == ChildKind::Job)
    {
        world.pass(0);
        world.wait();
    }
    let reported = injector_args(&world.plan(0));
    assert!(
        reported.contains(&"--clock-url=http://10.0.0.1:28282/time".to_owned()),
        "{reported:?}"
    );
    // The readings have the meter's time, also while its pod is not ready. No other clock takes its place.
    let unready = changed(&world, |observed| {
        for node in &mut observed.nodes {
            node.meter_ip = None;
        }
    });
    let args = injector_args(&unready);
    let is_clock = |it: &String| it.starts_with("--clock-url");
    assert!(!args.iter().any(is_clock), "{args:?}");
    // Stock Kepler reports no time. The operator's clock stamps its readings.
    for session in world.slots[0].sessions.values_mut() {
        for reading in Arc::make_mut(&mut session.readings) {
            reading.meter_unix_seconds = None;
        }
    }
    let reported = injector_args(&world.plan(0));
    assert!(
        reported.contains(&"--clock-url=http://10.0.0.9:8080/time".to_owned()),
        "{reported:?}"
    );
}

#[test]
fn a_load_begins_after_its_baseline_and_the_next_baseline_after_it() {
    let world = load_over();
    let plan = world.plan(0);
    let LoadOn { start, end, .. } = world.loads[0];
    let record = record(&plan);
    assert!(record.idle_before.unwrap().end_unix_seconds < start);
    assert!(record.idle_after.unwrap().start_unix_seconds > end);
    assert!(record.idle_before.unwrap().start_unix_seconds > T0);
}

/// The plan `later_seconds` later, if the pods of this kind of object can't be created because of `words`.
fn pods_refused(doing: &str, kind: ChildKind, later_seconds: f64, words: &str) -> Plan {
    let world = after(doing);
    let mut observed = world.observed(0);
    let role = match kind {
        ChildKind::Job => Role::Injector,
        _ => Role::Candidate,
    };
    observed.pods.retain(|pod| pod.role != role.as_str());
    let of_attempt = |child: &&mut Child| child.kind == kind && child.trial.is_some();
    for child in observed.children.iter_mut().filter(of_attempt) {
        child.pods_refused = Some(words.into());
    }
    let benchmark = &world.slots[0].benchmark;
    let now = world.now + later_seconds;
    plan(benchmark, &observed, &world.config, now)
}

#[test]
fn the_status_says_why_pods_cannot_be_created() {
    let quota = "FailedCreate: pods \"x\" is forbidden: exceeded quota: small, requested: pods=1";
    let forbidden = "FailedCreate: pods \"x\" is forbidden: violates PodSecurity \"baseline\"";
    for (doing, kind) in [
        ("waiting for the server to be ready", ChildKind::Deployment),
        ("load is on", ChildKind::Job),
    ] {
        // The quota may have room again at any time before the deadline.
        let waiting = pods_refused(doing, kind, 3600.0, quota);
        assert_eq!(waiting.record(), None, "{kind:?}");
        // The readings of a long wait without pods are useless, and would fill the memory.
        let is_without_pods = kind == ChildKind::Deployment;
        assert_eq!(waiting.watch.is_empty(), is_without_pods, "{kind:?}");
        let complete = &waiting.status.conditions[0];
        assert_eq!(complete.reason, Reason::QuotaExceeded.as_str());
        assert!(complete.message.contains(quota), "{complete:?}");
        assert!(
            waiting
                .events
                .iter()
                .any(|event| event.warning && event.reason == Reason::QuotaExceeded.as_str())
        );
        assert_eq!(pods_refused(doing, kind, 1.0, forbidden).record(), None);
        let ended = pods_refused(doing, kind, 60.0, forbidden);
        let record = record(&ended);
        assert_eq!(record.outcome, Some(Outcome::Failed));
        assert_eq!(
            record.reason.as_deref(),
            Some(Reason::ChildRefused.as_str())
        );
        let message = record.message.as_ref().unwrap();
        assert!(message.contains(forbidden), "{message}");
    }
    let timeout = "FailedCreate: Internal error occurred: failed calling webhook";
    let doing = "waiting for the server to be ready";
    let plan = pods_refused(doing, ChildKind::Deployment, 200.0, timeout);
    assert_eq!(
        record(&plan).reason.as_deref(),
        Some(Reason::CandidateNotReady.as_str())
    );
    assert!(record(&plan).message.as_ref().unwrap().contains(timeout));
}

#[test]
fn a_load_that_cannot_begin_soon_after_the_baseline_makes_the_attempt_void() {
    let mut world = after("load is on");
    world.advance_to(world.now + 600.0);
    let at = |change: fn(&mut PodFacts)| {
        changed(&world, |observed| {
            let injector = pod_in(observed, Role::Injector);
            injector.terminated.clear();
            injector.ended = false;
            change(injector);
        })
    };
    // The injector's node was cordoned after the baseline.
    let pending = at(|injector| injector.started_unix_seconds = None);
    assert_void(&pending, Reason::PausedTooLong.as_str());
    let message = record(&pending).message.as_ref().unwrap();
    assert!(
        message.contains("between the idle baseline and the load"),
        "{message}"
    );
    let running =
        at(|injector| injector.started_unix_seconds = Some(injector.created_unix_seconds));
    // A load that has begun has another limit.
    assert_void(&running, Reason::InjectorFailed.as_str());
}

/// The report says when the load began.
#[test]
fn a_load_that_began_long_after_the_baseline_makes_the_attempt_void() {
    let plan = changed(&load_over(), |observed| {
        for trial in &mut observed.trials {
            let status = trial.status.as_mut().unwrap();
            let baseline = status.idle_before.as_mut().unwrap();
            baseline.end_unix_seconds -= 600.0;
            baseline.start_unix_seconds -= 600.0;
        }
        for session in observed.sessions.values_mut() {
            let readings = Arc::make_mut(&mut session.readings);
            let mut first = readings[0].clone();
            first.meter_unix_seconds = first.meter_unix_seconds.map(|at| at - 700.0);
            first.scraped_at_unix_seconds -= 700.0;
            readings.insert(0, first);
        }
        let started = &mut pod_in(observed, Role::Database).started_unix_seconds;
        *started = started.map(|at| at - 700.0);
    });
    assert_void(&plan, Reason::PausedTooLong.as_str());
}

/// The candidate is not to blame.
#[test]
fn a_server_that_does_not_start_without_its_database_makes_the_attempt_void() {
    let mut world = after("waiting for the server to be ready");
    world.advance_to(world.now + 200.0);
    let outcome = |lose: bool| {
        let plan = changed(&world, |observed| {
            pod_in(observed, Role::Candidate).ready_since_unix_seconds = None;
            if lose {
                observed
                    .pods
                    .retain(|pod| pod.role != Role::Database.as_str());
            }
        });
        record(&plan).outcome
    };
    assert_eq!(outcome(true), Some(Outcome::Void));
    assert_eq!(outcome(false), Some(Outcome::Failed));
}

#[test]
fn an_attempt_is_under_load_from_the_end_of_its_first_baseline() {
    let under_load = |doing: &str| after(doing).observed(0).is_under_load();
    assert!(!under_load("waiting for the server to be ready"));
    assert!(!under_load("measuring the idle baseline"));
    assert!(under_load("load is on"));
}

#[test]
fn a_pod_delayed_by_a_quota_keeps_its_full_time_to_become_ready() {
    let world = after("waiting for the server to be ready");
    let now = world.now + 600.0;
    let at = |change: fn(&mut PodFacts, f64)| {
        let mut observed = world.observed(0);
        let pod = pod_in(&mut observed, Role::Candidate);
        pod.ready_since_unix_seconds = None;
        change(pod, now);
        plan(&world.slots[0].benchmark, &observed, &world.config, now)
    };
    let outcome = |plan: &Plan| plan.record().and_then(|(_, it)| it.outcome);
    assert_eq!(outcome(&at(|_, _| {})), Some(Outcome::Failed));
    assert_eq!(
        outcome(&at(|pod, now| pod.created_unix_seconds = now - 10.0)),
        None
    );
    // A cordon delayed the scheduling of the pod.
    assert_eq!(
        outcome(&at(|pod, now| pod.scheduled_unix_seconds = Some(now - 10.0))),
        None
    );
    // No pod exists, and no error explains this: the candidate has not run.
    let mut observed = world.observed(0);
    observed
        .pods
        .retain(|pod| pod.role != Role::Candidate.as_str());
    let plan = plan(&world.slots[0].benchmark, &observed, &world.config, now);
    assert_eq!(outcome(&plan), Some(Outcome::Void));
}

#[test]
fn every_pod_that_the_operator_adds_has_resources() {
    let injector = injector_pod(&two(), 4);
    let of = |container: &Container| serde_json::to_value(&container.resources).unwrap();
    assert_eq!(of(&injector.containers[0])["limits"]["memory"], "1Gi");
    assert_eq!(
        (injector.containers.len(), injector.init_containers),
        (1, None)
    );
    let benchmark = two();
    let database = || benchmark.spec.database.as_ref().unwrap();
    let prepare = made(&benchmark, |builder, _, node| {
        builder.prepare(database(), "trial", node)
    });
    let prepare = prepare.into_pod().unwrap().spec.unwrap();
    assert_eq!(of(&prepare.containers[0])["requests"]["cpu"], "10m");
    assert_eq!(of(&prepare.containers[0])["limits"]["memory"], "256Mi");
    let seed = made(&benchmark, |builder, _, node| {
        builder.seed(database(), node, None)
    });
    let ChildObject::Job(seed) = seed else {
        panic!("not a Job");
    };
    let seed = seed.spec.unwrap().template.spec.unwrap();
    assert_eq!(of(&seed.containers[0])["requests"]["cpu"], "10m");
}

#[test]
fn every_pod_of_a_run_has_the_installations_tolerations_priority_and_secrets() {
    let benchmark = two_with(&[
        ("/database/provider", json!("Standalone")),
        (
            "/candidates/0/imagePullSecrets",
            json!([{ "name": "own" }, { "name": "registry" }]),
        ),
    ]);
    let database = benchmark.spec.database.as_ref().unwrap();
    let objects = made(&benchmark, |builder, candidate, node| {
        let mut objects = builder.servers(candidate, "trial", None, node);
        objects.push(builder.injector(
            candidate,
            "trial",
            PointLoad::at(&builder.settings.points[0]),
            node,
            None,
        ));
        objects.push(builder.seed(database, node, None));
        objects.push(builder.database_server(database, node));
        objects.push(builder.database_cluster(database, node));
        objects
    });
    let mut pods = 0;
    for object in objects {
        let made = match &object {
            ChildObject::Deployment(object) => serde_json::to_value(object),
            ChildObject::Job(object) => serde_json::to_value(object),
            ChildObject::Cluster(object) => serde_json::to_value(object),
            _ => continue,
        };
        let made = made.unwrap();
        let is_cluster = matches!(object, ChildObject::Cluster(_));
        let pod = &made["spec"];
        let pod = if is_cluster {
            pod
        } else {
            &pod["template"]["spec"]
        };
        let placed = if is_cluster { &pod["affinity"] } else { pod };
        let name = object.name();
        let taints = json!([{ "key": "frugality.dev/role", "operator": "Exists" }]);
        assert_eq!(placed["tolerations"], taints, "{name:?}");
        assert_eq!(pod["priorityClassName"], "measuring", "{name:?}");
        let secrets = match &object {
            ChildObject::Cluster(_) => Value::Null,
            ChildObject::Deployment(it) if it.name_any() == "trial" => {
                json!([{ "name": "own" }, { "name": "registry" }])
            }
            _ => json!([{ "name": "registry" }]),
        };
        assert_eq!(pod["imagePullSecrets"], secrets, "{name:?}");
        pods += 1;
    }
    assert_eq!(pods, 5);
}

#[test]
fn a_trial_waits_until_the_node_is_as_cool_as_at_the_blocks_first_trial() {
    let message = |status: &FrugalityBenchmarkStatus| {
        let columns = status.columns.as_ref();
        columns.and_then(|columns| columns.message.clone())
    };
    let mut world = World::new([two()]);
    world.run_until("the second baseline", |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        let is_baseline = status
            .and_then(message)
            .is_some_and(|message| message.ends_with("measuring the idle baseline"));
        is_baseline && world.loads.len() == 1 && world.now > world.loads[0].end + 11.0
    });
    // The block's first trial started at 40 °C. By name, another trial of the block comes before it.
    let seen = |world: &World, celsius: Option<f64>| {
        changed(world, |observed| {
            let mut measured = observed.trials.iter().filter(|it| {
                let status = it.status.as_ref();
                status.is_some_and(|status| status.energy.is_some())
            });
            let mut other = measured.next().unwrap().clone();
            other.metadata.name = Some("a".into());
            other.spec.position += 1;
            let energy = other.status.as_mut().unwrap().energy.as_mut();
            energy.unwrap().conditions.idle_before_celsius = Some(50.0);
            for energy in observed
                .trials
                .iter_mut()
                .filter_map(|trial| trial.status.as_mut()?.energy.as_mut())
            {
                energy.conditions.idle_before_celsius = Some(40.0);
            }
            observed.trials.insert(0, other);
            for session in observed.sessions.values_mut() {
                for reading in Arc::make_mut(&mut session.readings) {
                    reading.temperature_celsius = celsius;
                }
            }
        })
    };
    world.advance_to(world.now + 4.5);
    let doing = |world: &World, celsius| message(&seen(world, celsius).status).unwrap();
    let hot = doing(&world, Some(43.1));
    assert!(
        hot.ends_with("waiting for the node to cool to the block's first trial"),
        "{hot}"
    );
    for as_cool in [Some(43.0), Some(20.0), None] {
        let cool = doing(&world, as_cool);
        assert!(cool.ends_with("measuring the idle baseline"), "{cool}");
    }
    // The wait lasts at most a minute.
    let idle_before = |world: &World, celsius| record(&seen(world, celsius)).idle_before.unwrap();
    world.advance_to(world.now + 70.0);
    let (cool, hot) = (
        idle_before(&world, Some(40.0)),
        idle_before(&world, Some(60.0)),
    );
    let later = hot.start_unix_seconds - cool.start_unix_seconds;
    assert!((58.0..=60.0).contains(&later), "{later}");
    assert!((hot.seconds() - cool.seconds()).abs() < 1e-6);
}

/// The length of the tail that the first attempt's injector is asked for, if `change` has edited what the pass sees.
fn tail(benchmark: FrugalityBenchmark, change: impl Fn(&mut Observed)) -> String {
    let injector = |plan: Plan| {
        plan.create.into_iter().find_map(|child| match child {
            ChildObject::Job(job) if job.name_any().contains("-b01-") => job.spec?.template.spec,
            _ => None,
        })
    };
    let mut world = World::new([benchmark]);
    loop {
        let slot = world.wait();
        if injector(world.plan(slot)).is_some() {
            let pod = injector(changed(&world, &change)).unwrap();
            let args = pod.containers[0].args.clone().unwrap();
            let mut tails = args
                .iter()
                .filter_map(|arg| arg.strip_prefix("--tail-seconds="));
            return tails.next().unwrap().to_owned();
        }
        world.pass(slot);
    }
}

#[test]
fn the_tail_is_as_long_as_the_meter_and_the_load_need() {
    let edit = |observed: &mut Observed, change: fn(&mut Reading)| {
        for session in observed.sessions.values_mut() {
            let readings = Arc::make_mut(&mut session.readings);
            readings.iter_mut().for_each(change);
        }
    };
    let fast = |observed: &mut Observed| edit(observed, |it| it.interval_seconds = Some(0.1));
    assert_eq!(tail(two(), fast), "1");
    // A meter that asks another instrument, and a meter that reports no interval.
    let asks = |observed: &mut Observed| {
        fast(observed);
        edit(observed, |it| it.source_age_seconds = Some(0.2));
    };
    assert_eq!(tail(two(), asks), "3");
    let silent = |observed: &mut Observed| edit(observed, |it| it.interval_seconds = None);
    assert_eq!(tail(two(), silent), "3");
}
