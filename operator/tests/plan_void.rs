//! Causes outside the candidate that make an attempt void, each with its reason.

use std::sync::Arc;

use crate::common::{
    attempt::{
        after, assert_measured, assert_void, changed, load_over, measured, record, reported,
        run_to, said, says, second_trial,
    },
    manner::{ROWS, pod_in},
    summary::of_plan,
    two, two_with,
    world::World,
};
use frugality_measure::{
    pace::InjectorCpu,
    reading::{Platform, Provenance},
    report::{ClockOffset, Failure, InjectionReport},
};
use frugality_operator::{
    api::{FrugalityTrialStatus, Outcome, Reason, Role},
    plan::{
        action::{Action, ChildObject, Plan},
        facts::{
            Child, ChildKind, Observed, PodFacts, Termination,
            addresses::{Endpoint, Endpoints, ServiceFacts},
            contents::Contents,
        },
        plan,
    },
};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::json;

#[test]
fn an_operator_that_was_restarted_makes_the_attempt_void() {
    for doing in [
        "measuring the idle baseline",
        "starting the load",
        "load is on",
    ] {
        let mut world = after(doing);
        world.kill_operator();
        world.wait();
        let plan = world.plan(0);
        if doing == "measuring the idle baseline" {
            // The ledger has no window of the attempt yet, so the baseline begins again.
            assert_eq!(plan.record(), None);
        } else {
            assert_void(&plan, Reason::ReadingsInterrupted.as_str());
        }
    }
    let mut world = load_over();
    world.slots[0].sessions.clear();
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

/// The Service that receives the requests of the open attempt.
fn asked(observed: &mut Observed) -> &mut Child {
    let children = observed.children.iter_mut();
    let mut services = children.filter(|child| child.kind == ChildKind::Service);
    services
        .find(|child| child.trial.as_ref() == Some(&child.name))
        .unwrap()
}

fn stranger() -> Endpoint {
    Endpoint {
        name: "stranger".into(),
        pod_uid: Some("uid-of-stranger".into()),
    }
}

#[test]
fn a_foreign_pod_behind_the_service_makes_the_attempt_void() {
    for world in [after("load is on"), load_over()] {
        assert_ne!(outcome(&world.plan(0)), Some(Outcome::Void));
        for foreign in [
            stranger(),
            // An address that belongs to no known pod.
            Endpoint {
                name: "10.1.2.3".into(),
                pod_uid: None,
            },
        ] {
            let plan = changed(&world, |observed| {
                let service = asked(observed).name.clone();
                observed.endpoints.push(Endpoints {
                    service,
                    version: "another/1".into(),
                    behind: vec![foreign.clone()],
                });
            });
            assert_void(&plan, Reason::ForeignEndpoint.as_str());
            let message = record(&plan).message.clone().unwrap();
            assert!(
                message.starts_with("the Service ")
                    && message.contains(&format!("also sends requests to {}", foreign.name)),
                "{message}"
            );
        }
    }
}

/// An address behind each Service appeared and disappeared.
fn change_addresses(observed: &mut Observed) {
    for slice in &mut observed.endpoints {
        slice.version += "3";
    }
}

/// The candidate's container restarted during the load, which changed its address too.
fn restart(observed: &mut Observed, world: &World) {
    change_addresses(observed);
    let pod = pod_in(observed, Role::Candidate);
    pod.restarts = 1;
    pod.started_unix_seconds = Some(world.loads[0].start + 1.0);
}

#[test]
fn a_pod_that_came_and_went_behind_the_service_makes_the_attempt_void() {
    let world = load_over();
    let plan = changed(&world, change_addresses);
    assert_void(&plan, Reason::ForeignEndpoint.as_str());
    let message = record(&plan).message.clone().unwrap();
    assert!(message.contains("but its pods did not change"), "{message}");
    // A restart of the candidate changes its address too. The attempt is measured nevertheless.
    assert_measured(&changed(&world, |observed| restart(observed, &world)));
    // A restart before the baseline does not explain a later change.
    let plan = changed(&world, |observed| {
        change_addresses(observed);
        pod_in(observed, Role::Candidate).restarts = 1;
    });
    assert_void(&plan, Reason::ForeignEndpoint.as_str());
}

/// The operator's clock stamps the readings of a meter without a clock. Kubelet stamps the pods.
#[test]
fn addresses_are_checked_although_the_operators_clock_differs_from_kubelets() {
    for ahead in [-180.0, 180.0] {
        let mut world = World::new([two()]);
        world.manner.operator_ahead = ahead;
        world.manner.meter_has_clock = false;
        run_to(&mut world, "load is on");
        world.advance_to(world.loads[0].end + 10.0);
        let plan = changed(&world, change_addresses);
        assert_void(&plan, Reason::ForeignEndpoint.as_str());
        assert_measured(&changed(&world, |observed| restart(observed, &world)));
    }
}

#[test]
fn a_service_or_deployment_that_was_edited_makes_the_attempt_void() {
    type Edit = fn(&mut ServiceFacts);
    let edits: [(Edit, &str); 5] = [
        (
            |it| it.selector = [("app".into(), "mine".into())].into(),
            "its selector is app=mine, and the operator created it with ",
        ),
        (|it| it.ports[0].1 = "9090".into(), "its ports is "),
        (
            |it| it.with_unready = true,
            "its publishNotReadyAddresses is true",
        ),
        (|it| it.is_headless = true, "its clusterIP: None is true"),
        (
            |it| it.other = [("externalName".into(), "example.org".into())].into(),
            "its fields is externalName=example.org",
        ),
    ];
    let world = after("load is on");
    for (edit, words) in edits {
        let plan = changed(&world, |observed| {
            edit(asked(observed).service.as_mut().unwrap());
        });
        assert_void(&plan, Reason::ServiceChanged.as_str());
        let message = record(&plan).message.clone().unwrap();
        assert!(message.contains(words), "{message}");
    }
    let plan = changed(&world, |observed| {
        let name = asked(observed).name.clone();
        observed
            .children
            .retain(|child| child.kind != ChildKind::Service || child.name != name);
    });
    assert_void(&plan, Reason::ServiceChanged.as_str());
    let plan = changed(&world, |observed| {
        let mut children = observed.children.iter_mut();
        let server =
            children.find(|child| child.kind == ChildKind::Deployment && child.trial.is_some());
        server.unwrap().generation = Some(2);
    });
    assert_void(&plan, Reason::DeploymentChanged.as_str());
    let plan = changed(&world, |observed| {
        let mut children = observed.children.iter_mut();
        let cluster = children.find(|child| child.kind == ChildKind::Cluster);
        cluster.unwrap().generation = Some(2);
    });
    assert_void(&plan, Reason::DataChanged.as_str());
    let message = record(&plan).message.clone().unwrap();
    assert!(
        message.contains("its generation is 2 instead of 1"),
        "{message}"
    );
}

#[test]
fn a_pod_with_changed_contents_makes_the_attempt_void() {
    let world = after("load is on");
    for (role, container) in [(Role::Candidate, "server"), (Role::Injector, "injector")] {
        let plan = changed(&world, |observed| {
            let contents = &mut pod_in(observed, role).contents;
            contents.get_mut(container).unwrap().image = "forger".into();
        });
        assert_void(&plan, Reason::PodChanged.as_str());
        let message = record(&plan).message.clone().unwrap();
        assert!(message.contains("has the image forger"), "{message}");
    }
    // A LimitRange of the namespace adds limits. The injector's show in its throttled time.
    for (role, container) in [(Role::Candidate, "server"), (Role::Injector, "injector")] {
        let plan = changed(&world, |observed| {
            let contents = &mut pod_in(observed, role).contents;
            let limits = &mut contents.get_mut(container).unwrap().limits;
            limits.insert("cpu".into(), "0.5".into());
        });
        if role == Role::Candidate {
            assert_void(&plan, Reason::PodChanged.as_str());
            let message = record(&plan).message.clone().unwrap();
            assert!(
                message
                    .contains("has the limits cpu 0.5, and the operator created it with no limits"),
                "{message}"
            );
        } else {
            assert!(plan.record().is_none());
        }
    }
    // An added container is, for example, the sidecar of a mesh or a debugger.
    let plan = changed(&world, |observed| {
        let contents = &mut pod_in(observed, Role::Candidate).contents;
        contents.insert("proxy".into(), Contents::default());
    });
    assert_void(&plan, Reason::PodChanged.as_str());
}

#[test]
fn fields_that_the_api_server_adds_to_a_service_are_no_change() {
    let made = json!({"selector": {"a": "b"}, "ports": [{"port": 8080, "targetPort": 8080}]});
    let stored = json!({
        "selector": {"a": "b"}, "type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"],
        "ports": [{"port": 8080, "targetPort": 8080, "protocol": "TCP"}], "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
    });
    let facts = |spec| {
        let service = Service {
            spec: serde_json::from_value(spec).unwrap(),
            ..Service::default()
        };
        ServiceFacts::of(&service)
    };
    assert_eq!(facts(stored).difference(&facts(made)), None);
}

#[test]
fn a_slice_without_addresses_is_read() {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": null, "ports": null,
        "metadata": {"name": "a", "uid": "u", "generation": 3, "labels": {"kubernetes.io/service-name": "server"}},
    });
    let read = Endpoints::of(&serde_json::from_value(slice).unwrap());
    assert_eq!(
        (
            read.service.as_str(),
            read.version.as_str(),
            read.behind.len()
        ),
        ("server", "u/3", 0)
    );
}

fn outcome(plan: &Plan) -> Option<Outcome> {
    plan.record().and_then(|(_, record)| record.outcome)
}

#[test]
fn a_meter_that_was_lost_under_load_makes_the_attempt_void() {
    let mut world = after("load is on");
    let back = world.now + 7.0;
    world.manner.meter = None;
    world.advance_to(back);
    world.manner.meter = Some(Provenance::Metered);
    world.advance_to(world.loads[0].end + 11.0);
    assert_void(&world.plan(0), Reason::ReadingsInterrupted.as_str());
}

#[test]
fn the_wait_for_a_lost_meter_ends() {
    let mut world = after("load is on");
    let load_end = world.loads[0].end;
    world.advance_to(load_end);
    world.manner.meter = None;
    world.advance_to(load_end + 14.0);
    assert_eq!(world.plan(0).record(), None);
    world.advance_to(load_end + 16.0);
    assert_void(&world.plan(0), Reason::ReadingsInterrupted.as_str());
}

#[test]
fn no_load_begins_before_the_meter_has_shown_the_whole_idle_baseline() {
    let mut world = after("measuring the idle baseline");
    let lost = world.now;
    world.manner.meter = None;
    world.advance_to(lost + 14.0);
    let waiting = world.plan(0);
    assert_eq!((waiting.record(), waiting.create.len()), (None, 0));
    world.advance_to(lost + 16.0);
    assert_void(&world.plan(0), Reason::ReadingsInterrupted.as_str());
    // A meter that repeats one reading counts as lost.
    let mut world = after("measuring the idle baseline");
    world.advance_to(world.now + 20.0);
    let stuck = changed(&world, |observed| {
        for session in observed.sessions.values_mut() {
            let at = session.readings[1].meter_unix_seconds;
            for reading in &mut Arc::make_mut(&mut session.readings)[1..] {
                reading.meter_unix_seconds = at;
            }
        }
    });
    assert_void(&stuck, Reason::ReadingsInterrupted.as_str());
}

#[test]
fn a_measured_pod_that_was_replaced_makes_the_attempt_void() {
    for role in [Role::Candidate, Role::Database] {
        let mut world = after("load is on");
        world.replace_pod(0, role);
        let plan = world.plan(0);
        assert_void(&plan, Reason::PodReplaced.as_str());
        assert!(
            record(&plan)
                .message
                .as_ref()
                .unwrap()
                .contains(role.as_str())
        );
        // A pod that terminates without a successor makes the attempt void too.
        let world = load_over();
        let gone = changed(&world, |observed| {
            pod_in(observed, role).deleting = true;
        });
        assert_void(&gone, Reason::PodReplaced.as_str());
    }
}

/// Between two restarts no container runs. The errors of that time are not the candidate's.
#[test]
fn a_database_whose_container_restarts_or_cannot_start_makes_the_attempt_void() {
    for started in [Some(2e9), None] {
        let plan = changed(&load_over(), |observed| {
            pod_in(observed, Role::Database).started_unix_seconds = started;
        });
        assert_void(&plan, Reason::PodReplaced.as_str());
    }
}

#[test]
fn an_evicted_pod_makes_the_attempt_void_under_its_own_name() {
    let why = "Evicted: The node was low on resource: memory.";
    let evicted = |world: &World, role: Role| {
        changed(world, |observed| {
            let pod = pod_in(observed, role);
            pod.evicted = Some(why.into());
            pod.ended = true;
            pod.ready_since_unix_seconds = None;
        })
    };
    let mut plans = vec![evicted(
        &after("waiting for the server to be ready"),
        Role::Candidate,
    )];
    for role in [Role::Candidate, Role::Database, Role::Injector] {
        plans.push(evicted(&after("load is on"), role));
    }
    for plan in plans {
        assert_void(&plan, Reason::PodEvicted.as_str());
        let message = record(&plan).message.as_ref().unwrap();
        assert!(message.contains(why), "{message}");
    }
    // A database pod that was evicted before the attempt began stays next to its successor.
    let world = load_over();
    let before = changed(&world, |observed| {
        let mut old = pod_in(observed, Role::Database).clone();
        old.uid = "old".into();
        old.ended = true;
        old.evicted = Some(why.into());
        observed.pods.insert(0, old);
    });
    assert_measured(&before);
}

#[test]
fn the_baseline_begins_after_the_settling_time_on_a_meter_without_a_clock() {
    let world = after("measuring the idle baseline");
    for ahead in [180.0, -180.0] {
        let mut observed = world.observed(0);
        observed.operator_ahead_seconds = ahead;
        for session in observed.sessions.values_mut() {
            for reading in Arc::make_mut(&mut session.readings) {
                reading.meter_unix_seconds = None;
                reading.scraped_at_unix_seconds = world.now + ahead - 1.0;
            }
            let mut later = session.readings.last().unwrap().clone();
            later.scraped_at_unix_seconds = world.now + ahead + 60.0;
            later.node_joules += 100.0;
            Arc::make_mut(&mut session.readings)[0].scraped_at_unix_seconds =
                world.now + ahead - 30.0;
            Arc::make_mut(&mut session.readings).push(later);
        }
        let mut sessions = observed.sessions.values_mut();
        let check_ended = &mut sessions.next().unwrap().check_ended_unix_seconds;
        let checked = check_ended.unwrap();
        *check_ended = Some(checked + ahead);
        let ready = pod_in(&mut observed, Role::Candidate)
            .ready_since_unix_seconds
            .unwrap();
        // 1.5 s, and the interval of this meter.
        let settled = (ready + 2.0).max(checked + 2.5);
        let plan = plan(
            &world.slots[0].benchmark,
            &observed,
            &world.config,
            world.now + ahead + 61.0,
        );
        let idle = record(&plan).idle_before.unwrap();
        assert!(
            (idle.start_unix_seconds - (settled + ahead)).abs() < 1.0,
            "{} s after the settling time",
            idle.start_unix_seconds - settled
        );
    }
}

#[test]
fn a_deployment_that_is_deleted_before_the_load_makes_the_attempt_void() {
    let mut world = after("measuring the idle baseline");
    let name = world.slots[0].trials[0].name_any();
    world.delete(0, ChildKind::Deployment, &name);
    assert_void(&world.plan(0), Reason::PodReplaced.as_str());
}

#[test]
fn an_injector_that_was_deleted_makes_the_attempt_void() {
    let mut world = after("load is on");
    let name = world.slots[0].trials[0].name_any();
    world.delete(0, ChildKind::Job, &name);
    assert_void(&world.plan(0), Reason::InjectorDeleted.as_str());
    world.advance_to(world.now + 3.0);
    assert_void(&world.plan(0), Reason::InjectorDeleted.as_str());

    let world = after("load is on");
    let evicted = changed(&world, |observed| {
        pod_in(observed, Role::Injector).ended = true;
    });
    assert_void(&evicted, Reason::InjectorDeleted.as_str());

    // The injector's pod still exists, and holds Fortio's last words.
    let world = load_over();
    let mut report = world.loads[0].report(1.0);
    report.interrupted = Some("measured run: SIGTERM".into());
    let lingering = |deleting: bool| {
        changed(&world, |observed| {
            let pod = pod_in(observed, Role::Injector);
            pod.deleting = deleting;
            let end = pod.terminated.get_mut("injector").unwrap();
            end.message = report.encode().unwrap();
        })
    };
    assert_void(&lingering(true), Reason::InjectorDeleted.as_str());
    assert_void(&lingering(false), "LoadInterrupted");
}

#[test]
fn the_baseline_begins_after_the_settling_time_on_a_node_with_another_clock() {
    let world = after("measuring the idle baseline");
    for ahead in [0.0, 100.0, -100.0] {
        let mut observed = world.observed(0);
        for session in observed.sessions.values_mut() {
            let readings = Arc::make_mut(&mut session.readings);
            let mut later = readings.last().unwrap().clone();
            later.scraped_at_unix_seconds += 60.0;
            later.meter_unix_seconds = later.meter_unix_seconds.map(|at| at + 60.0);
            readings.push(later);
            for reading in readings {
                reading.meter_unix_seconds = reading.meter_unix_seconds.map(|at| at + ahead);
            }
        }
        for role in [Role::Candidate, Role::Database] {
            let ready = &mut pod_in(&mut observed, role).ready_since_unix_seconds;
            *ready = ready.map(|since| since + ahead);
        }
        let ready = pod_in(&mut observed, Role::Candidate).ready_since_unix_seconds;
        // The time at which the operator saw the check's end is the cluster's.
        let session = observed.sessions.values().next().unwrap();
        let checked = session.check_ended_unix_seconds.unwrap() + ahead;
        let settled = (ready.unwrap() + 2.0).max(checked + 2.5);
        let plan = plan(
            &world.slots[0].benchmark,
            &observed,
            &world.config,
            world.now + 61.0,
        );
        let idle = record(&plan).idle_before.unwrap();
        // A reading is 0.12 s old when it is scraped.
        assert!(
            (idle.start_unix_seconds - settled).abs() < 0.2,
            "{} s after the settling time",
            idle.start_unix_seconds - settled
        );
    }
}

#[test]
fn a_job_that_was_never_seen_is_created_again() {
    // The operator could not reach the API server between the record and the Job.
    let mut world = World::new([two()]);
    while world.loads.is_empty() {
        let slot = world.wait();
        let plan = world.plan(slot);
        if plan
            .create
            .iter()
            .any(|child| child.kind() == ChildKind::Job && child.name().contains("-b01-"))
        {
            world.apply(slot, &plan, 2);
            break;
        }
        world.apply(slot, &plan, usize::MAX);
    }
    world.wait();
    let plan = world.plan(0);
    assert_eq!(plan.record(), None);
    assert_eq!(plan.create.len(), 1);
}

#[test]
fn fortio_that_was_interrupted_makes_the_attempt_void() {
    let plan = reported(|report| {
        report.interrupted = Some("the measured run was ended by SIGTERM".into());
    });
    assert_void(&plan, "LoadInterrupted");
}

#[test]
fn clocks_that_cannot_be_compared_make_the_attempt_void() {
    assert_void(
        &reported(|report| report.clock = None),
        "ClockOffsetUnknown",
    );
    let known_to = |uncertainty_seconds: f64| {
        reported(|report| {
            report.clock = report.clock.map(|clock| ClockOffset {
                uncertainty_seconds,
                ..clock
            });
        })
    };
    assert_void(&known_to(0.11), "ClockOffsetUnknown");
    assert_measured(&known_to(0.1));
}

#[test]
fn clocks_that_moved_make_the_attempt_void() {
    let moved = |seconds: f64| {
        reported(|report| {
            if let Some(clock) = &mut report.clock_after {
                clock.offset_seconds += seconds;
            }
        })
    };
    assert_void(&moved(0.11), "ClockStepped");
    let plan = moved(0.09);
    assert_measured(&plan);
    // The record shows a step even if the step is below the limit.
    let offsets = [record(&plan).clock, record(&plan).clock_after];
    let [before, after] = offsets.map(|clock| clock.unwrap().offset_seconds);
    assert!((after - before - 0.09).abs() < 1e-9);
}

#[test]
fn a_trial_with_a_slow_injector_counts_and_its_record_says_how_busy_the_injector_was() {
    let cpu = InjectorCpu {
        cpus: 1,
        limit_cpus: Some(0.3),
        used_seconds: Some(6.0),
        throttled_seconds: Some(13.0),
        busy_share: Some(0.98),
        busiest_share: Some(0.98),
    };
    let plan = reported(|report| {
        report.cpu = Some(cpu);
        // Half of the time of four connections over 20.012 s.
        report.measured.fortio_mut().unwrap().latency.sum_seconds = 0.5 * 4.0 * 20.012;
    });
    assert_measured(&plan);
    assert_eq!(record(&plan).injector_cpu, Some(cpu));
}

#[test]
fn load_that_was_not_steady_makes_the_attempt_void() {
    assert_void(&reported(|report| report.tail = None), "LoadNotSteady");
    let gap = |seconds| reported(|report| report.gap_after_measured_seconds = Some(seconds));
    // The slowest answer took 0.1 s.
    assert_void(&gap(0.61), "LoadNotSteady");
    assert_measured(&gap(0.59));
}

#[test]
fn a_load_that_the_node_did_not_see_makes_the_attempt_void() {
    // By the injector's clock the load ended some seconds later than by the node's clock. One reading per
    // second shows the step to 2 s.
    let late = |seconds: f64| {
        reported(|report| {
            for clock in [&mut report.clock, &mut report.clock_after] {
                clock.as_mut().unwrap().offset_seconds += seconds;
            }
        })
    };
    assert_measured(&late(-1.8));
    assert_void(&late(-2.2), "LoadNotSeen");
}

#[test]
fn a_restart_before_the_idle_baseline_excuses_nothing_that_comes_later() {
    let world = load_over();
    let mut report = world.loads[0].report(1.0);
    for clock in [&mut report.clock, &mut report.clock_after] {
        clock.as_mut().unwrap().offset_seconds -= 2.2;
    }
    let message = report.encode().unwrap();
    let restarted = |at: f64| {
        changed(&world, |observed| {
            says(observed, &message);
            let pod = pod_in(observed, Role::Candidate);
            (pod.restarts, pod.started_unix_seconds) = (1, Some(at));
        })
    };
    let load = world.loads[0].start;
    assert_void(&restarted(load - 60.0), "LoadNotSeen");
    // The load may have ended early because the candidate crashed.
    assert_measured(&restarted(load + 1.0));
}

#[test]
fn a_meter_that_answers_without_power_makes_the_attempt_void() {
    let missing = "the meter serves no kepler_node_cpu_joules_total for the node pi-1";
    // The meter reports no power from the first reading on, or for some seconds under load.
    let mut world = after("waiting for the server to be ready");
    world.manner.meter = None;
    world.advance_to(world.now + 40.0);
    let answer = |observed: &mut Observed| {
        for session in observed.sessions.values_mut() {
            session.without_power = Some(missing.into());
            session.last_error = Some(missing.into());
        }
    };
    let never = changed(&world, |observed| {
        answer(observed);
        for session in observed.sessions.values_mut() {
            session.readings = Arc::default();
        }
    });
    assert_void(&never, Reason::NoPowerMetrics.as_str());

    let mut world = after("load is on");
    let back = world.now + 7.0;
    world.manner.meter = None;
    world.advance_to(back);
    world.manner.meter = Some(Provenance::Metered);
    world.advance_to(world.loads[0].end + 11.0);
    let gap = changed(&world, answer);
    assert_void(&gap, Reason::NoPowerMetrics.as_str());
    let message = record(&gap).message.as_ref().unwrap();
    assert!(
        message.starts_with(&format!(
            "the meter answers without power metrics ({missing})"
        )),
        "{message}"
    );
    assert!(
        message.contains("the readings were interrupted"),
        "{message}"
    );
    // A meter without power before the attempt's first reading costs nothing.
    let whole = changed(&load_over(), answer);
    assert_measured(&whole);
}

/// The plan at an attempt's end, if `change` has edited the records of the candidate's earlier trials.
fn after_a_trial_of(candidate: &str, change: impl Fn(&mut FrugalityTrialStatus)) -> Plan {
    let mut world = World::new([two()]);
    world.run_until("its second load", |world| {
        let of_candidate = world
            .loads
            .iter()
            .filter(|load| load.trial.contains(candidate));
        of_candidate.count() == 2
    });
    world.advance_to(world.loads.last().unwrap().end + 11.0);
    changed(&world, |observed| {
        for trial in &mut observed.trials {
            let measured = |status: &&mut FrugalityTrialStatus| status.outcome.is_some();
            if let Some(status) = trial.status.as_mut().filter(measured)
                && trial.spec.candidate == candidate
            {
                change(status);
            }
        }
    })
}

#[test]
fn an_image_that_changed_makes_the_attempt_void() {
    for container in ["server", "database", "injector"] {
        let plan = after_a_trial_of("rust", |status| {
            let digest = status.images.get_mut(container).unwrap();
            *digest = "sha256:another".into();
        });
        assert_void(&plan, Reason::ImageChanged.as_str());
        let message = record(&plan).message.as_ref().unwrap();
        assert!(message.contains(container), "{message}");
    }
    // If an earlier trial lacks the container, its image did not change.
    let plan = after_a_trial_of("rust", |status| {
        status.images.remove("server");
    });
    assert_measured(&plan);
}

#[test]
fn other_resources_of_a_container_make_the_attempt_void() {
    for container in ["server", "injector"] {
        let plan = after_a_trial_of("rust", |status| {
            let before = status.resources.get_mut(container).unwrap();
            *before = "no requests, the limits cpu 1".into();
        });
        assert_void(&plan, Reason::PodChanged.as_str());
        let message = record(&plan).message.as_ref().unwrap();
        let words = format!("the container {container} has ");
        assert!(message.starts_with(&words), "{message}");
        let words = "and had no requests, the limits cpu 1 in earlier trials";
        assert!(message.ends_with(words), "{message}");
    }
    // An entry of an older version has none.
    assert_measured(&after_a_trial_of("rust", |status| status.resources.clear()));
}

#[test]
fn another_machine_under_a_nodes_name_makes_the_attempt_void() {
    for (role, words) in [
        (
            "measured",
            "the node's machine changed from another to machine-of-pi-1",
        ),
        ("injector", "the node's machine (of the injector) changed"),
    ] {
        let plan = after_a_trial_of("rust", |status| {
            *status.machines.get_mut(role).unwrap() = "another".into();
        });
        assert_void(&plan, "NodeChanged");
        let message = record(&plan).message.as_ref().unwrap();
        assert!(message.starts_with(words), "{message}");
    }
    assert_measured(&after_a_trial_of("rust", |status| status.machines.clear()));
}

#[test]
fn another_meter_than_in_earlier_trials_makes_the_attempt_void() {
    let mut world = World::new([two()]);
    world.run_until("the second load", |world| world.loads.len() == 2);
    world.advance_to(world.loads[1].end + 11.0);
    let plan = changed(&world, |observed| {
        let statuses = observed
            .trials
            .iter_mut()
            .filter_map(|it| it.status.as_mut());
        for energy in statuses.filter_map(|status| status.energy.as_mut()) {
            energy.meter.version = "0.0.9".into();
        }
    });
    assert_void(&plan, "MeterChanged");
    let message = record(&plan).message.as_deref().unwrap();
    assert!(
        message.starts_with("the meter's version changed from 0.0.9 to "),
        "{message}"
    );
}

#[test]
fn another_kernel_governor_or_firmware_makes_the_attempt_void() {
    let with = |earlier: Option<&str>, now: Option<&str>| {
        let mut world = World::new([two()]);
        world.run_until("the second load", |world| world.loads.len() == 2);
        world.advance_to(world.loads[1].end + 11.0);
        let governor = |name: Option<&str>| Platform {
            governor: name.map(str::to_owned),
            ..Platform::default()
        };
        changed(&world, |observed| {
            for energy in observed
                .trials
                .iter_mut()
                .filter_map(|trial| trial.status.as_mut()?.energy.as_mut())
            {
                energy.conditions.platform = governor(earlier);
            }
            for session in observed.sessions.values_mut() {
                for reading in Arc::make_mut(&mut session.readings) {
                    reading.platform = Arc::new(governor(now));
                }
            }
        })
    };
    let plan = with(Some("performance"), Some("ondemand"));
    assert_void(&plan, "NodeChanged");
    let message = record(&plan).message.as_deref();
    assert_eq!(
        message,
        Some("the node's frequency governor changed from performance to ondemand")
    );
    for same in [
        with(Some("performance"), Some("performance")),
        with(None, Some("ondemand")),
        with(Some("performance"), None),
    ] {
        assert_measured(&same);
    }
}

#[test]
fn answers_of_another_length_make_the_attempt_void() {
    // The bodies have 1000 bytes.
    let earlier = |bytes: f64| {
        after_a_trial_of("rust", |status| {
            let requests = status.requests.as_mut().unwrap();
            assert_eq!(requests.mean_body_bytes, Some(1000.0));
            requests.mean_body_bytes = Some(bytes);
        })
    };
    assert_void(&earlier(980.0), "ResponsesDiffer");
    assert_measured(&earlier(995.0));
}

/// A trial with an error has no size of its answers. The next trial has one.
#[test]
fn answers_are_compared_with_the_earlier_trials_that_have_a_size() {
    let mut world = World::new([two()]);
    world.run_until("a third load", |world| {
        let of_rust = world.loads.iter().filter(|it| it.trial.contains("rust"));
        of_rust.count() == 3
    });
    world.advance_to(world.loads.last().unwrap().end + 11.0);
    let plan = changed(&world, |observed| {
        let of_rust = observed.trials.iter_mut().filter(|it| {
            let outcome = it.status.as_ref().and_then(|status| status.outcome);
            it.spec.candidate == "rust" && outcome.is_some()
        });
        let sizes = [None, Some(980.0)];
        for (trial, size) in of_rust.zip(sizes) {
            let requests = trial.status.as_mut().unwrap().requests.as_mut().unwrap();
            requests.mean_body_bytes = size;
        }
    });
    assert_void(&plan, "ResponsesDiffer");
}

#[test]
fn an_injector_without_a_result_makes_the_attempt_void() {
    let failure = Failure {
        error: "fortio could not be started".into(),
        exit_code: None,
        stderr_tail: String::new(),
    };
    let texts = [failure.encode(), String::new(), "Segmentation fault".into()].map(|message| {
        let plan = said(&message);
        assert_void(&plan, Reason::InjectorFailed.as_str());
        record(&plan).message.clone().unwrap()
    });
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn an_attempt_whose_transactions_were_not_counted_is_measured_without_them() {
    let mut world = load_over();
    let plan = measured(&mut world);
    assert_eq!(record(&plan).transactions_per_request, Some(1.0));
    // A database that does not answer prints no count. Nothing else is missing.
    let uncounted = changed(&world, |observed| {
        let end = pod_in(observed, Role::Seed).terminated.get_mut("seed");
        end.unwrap().message = ROWS.into();
    });
    assert_eq!(record(&uncounted).outcome, Some(Outcome::Measured));
    assert_eq!(record(&uncounted).transactions_per_request, None);
    // A request that failed may not have reached the database.
    let failed = changed(&world, |observed| {
        let end = pod_in(observed, Role::Injector)
            .terminated
            .get_mut("injector");
        let end = end.unwrap();
        let mut report = InjectionReport::decode(&end.message).unwrap();
        report.warm_up.as_mut().unwrap().errors = 1;
        end.message = report.encode().unwrap();
    });
    assert_eq!(record(&failed).outcome, Some(Outcome::Measured));
    assert_eq!(record(&failed).transactions_per_request, None);
    // A Job that never ends does not hold the trial for ever.
    let never_ends = |late: f64| {
        let mut world = world.clone();
        world.advance_to(world.now + late);
        changed(&world, |observed| {
            pod_in(observed, Role::Seed).terminated.clear();
        })
    };
    assert_eq!(never_ends(0.0).record(), None);
    let late = never_ends(61.0);
    assert_eq!(record(&late).outcome, Some(Outcome::Measured));
    assert_eq!(record(&late).transactions_per_request, None);
}

#[test]
fn the_figures_are_recorded_before_the_candidate_is_removed() {
    let mut world = load_over();
    let slot = world.wait();
    let plan = world.pass(slot);
    let figures = record(&plan);
    assert!(figures.energy.is_some() && figures.outcome.is_none());
    assert_eq!(
        figures.columns, None,
        "no figure is shown before the outcome"
    );
    let has = |kind: ChildKind| plan.delete.iter().any(|it| it.kind == kind);
    assert!(has(ChildKind::Deployment));
    // The Jobs of the attempt have the count before the load. There is one Job at a time that restores the database.
    let mut jobs = plan.delete.iter().filter(|it| it.kind == ChildKind::Job);
    assert!(has(ChildKind::Job) && jobs.all(|job| job.name.contains("-seed")));
    // The figures survive the operator: it needs no reading any more.
    let energy = figures.energy.clone();
    world.kill_operator();
    let plan = measured(&mut world);
    assert_eq!(record(&plan).energy, energy);
    // The count follows the candidate's end.
    let observed = world.observed(0);
    let is_candidate = |pod: &PodFacts| pod.role == Role::Candidate.as_str();
    assert!(!observed.pods.iter().any(is_candidate));
    // A user who suspends the benchmark meanwhile gets a void attempt without figures.
    let mut world = load_over();
    let slot = world.wait();
    world.pass(slot);
    world.edit(0, &[("/suspend", json!(true))]);
    let slot = world.wait();
    assert_void(&world.plan(slot), Reason::Suspended.as_str());
}

#[test]
fn a_database_that_cannot_be_prepared_makes_the_attempt_void() {
    let plan = changed(&after("checking the database"), |observed| {
        let end = Termination {
            exit_code: 2,
            reason: "Error".into(),
            message: "psql: connection refused".into(),
        };
        pod_in(observed, Role::Prepare)
            .terminated
            .insert("prepare".into(), end);
    });
    assert_void(&plan, Reason::InjectorFailed.as_str());
    assert!(
        record(&plan)
            .message
            .as_ref()
            .unwrap()
            .contains("connection refused")
    );
}

/// Each attempt begins with the restored database, so also under a load that writes only the candidate's start can have
/// changed it.
#[test]
fn data_that_changed_before_the_load_make_the_attempt_void() {
    for method in ["GET", "POST"] {
        let with = |rows| {
            let benchmark = two_with(&[
                ("/request/method", json!(method)),
                ("/request/body", json!((method == "POST").then_some("{}"))),
            ]);
            second_trial(&mut World::new([benchmark]), rows)
        };
        assert_measured(&with(ROWS));
        assert_void(&with("9999 -77"), Reason::DataChanged.as_str());
        assert_void(&with("10000 5"), Reason::DataChanged.as_str());
    }
}

/// The output of the restoring Job, with the digest of the settings.
fn restored(settings: &str) -> String {
    format!("{ROWS}\nindexes=aa settings={settings}\n")
}

#[test]
fn a_database_restored_differently_makes_the_attempt_void() {
    for method in ["GET", "POST"] {
        let mut world = World::new([two_with(&[("/request/method", json!(method))])]);
        world.manner.seeded = restored("bb");
        world.run_until("the first load", |world| world.loads.len() == 1);
        let first = world.loads[0].trial.clone();
        world.manner.seeded = restored("cc");
        let voids = |world: &World| {
            let trials = world.slots[0].trials.iter();
            let void = trials.filter_map(|trial| {
                let status = trial.status.clone()?;
                (status.outcome == Some(Outcome::Void)).then_some(status)
            });
            void.collect::<Vec<_>>()
        };
        world.run_until("a void attempt", |world| !voids(world).is_empty());
        assert_eq!(world.loads.len(), 1, "no load on another database");
        let void = voids(&world).remove(0);
        assert_eq!(void.reason.as_deref(), Some(Reason::DataChanged.as_str()));
        assert_eq!(
            void.message.unwrap(),
            "the database differs from the database of the run's first attempt in: settings"
        );
        let entry = world.slots[0]
            .trials
            .iter()
            .find(|it| it.name_any() == first);
        let facts = entry.unwrap().status.clone().unwrap().restored.unwrap();
        assert_eq!(
            (facts.rows, facts.state["settings"].as_str()),
            (10_000, "bb")
        );
        // The first attempt stays the reference. The state of a void attempt does not replace it.
        world.run_until("another void attempt", |world| voids(world).len() == 2);
        let void = voids(&world).remove(1);
        assert_eq!(void.reason.as_deref(), Some(Reason::DataChanged.as_str()));
    }
}

#[test]
fn the_state_of_the_database_is_recorded_before_the_attempt_creates_anything() {
    let mut world = World::new([two()]);
    let plan = loop {
        let slot = world.wait();
        let plan = world.plan(slot);
        if plan.opened().is_some() {
            break plan;
        }
        world.pass(slot);
    };
    // Without the report of the Job that filled the database, no attempt begins.
    let without_report = |world: &World| {
        changed(world, |observed| {
            observed.pods.retain(|pod| pod.role != Role::Seed.as_str());
        })
    };
    assert_eq!(without_report(&world).opened(), None);
    assert!(record(&plan).restored.is_some());
    // The record comes first. If it fails, the operator creates nothing.
    let actions = plan.clone().actions(None);
    let position = |is_it: fn(&Action) -> bool| actions.iter().position(is_it).unwrap();
    let recorded = position(|it| matches!(it, Action::Record { .. }));
    assert!(recorded < position(|it| matches!(it, Action::Create(_))));
    // The operator dies before the record, and then the report goes.
    let mut died = world.clone();
    died.apply(0, &plan, recorded);
    died.kill_operator();
    died.wait();
    assert!(record(&died.plan(0)).restored.is_some());
    assert_void(&without_report(&died), Reason::DataChanged.as_str());
    // An attempt that is void before its baseline still holds the state with which later attempts are
    // compared.
    world.run_until("a server", |world| {
        world.slots[0]
            .pods
            .iter()
            .any(|pod| pod.facts.trial.is_some())
    });
    assert!(
        world.slots[0].trials[0]
            .status
            .as_ref()
            .unwrap()
            .restored
            .is_some()
    );
}

#[test]
fn the_database_is_restored_before_each_attempt_once_the_last_one_is_gone() {
    let mut world = World::new([two()]);
    let (mut restored, mut opened) = (0, 0);
    while !world.is_over() {
        let slot = world.wait();
        let before = world.observed(slot);
        let plan = world.pass(slot);
        if plan.opened().is_some() {
            opened += 1;
            assert_eq!(restored, opened, "one for each attempt");
        }
        let is_seed = |object: &&ChildObject| {
            object.kind() == ChildKind::Job && object.name().contains("-seed")
        };
        if plan.create.iter().any(|object| is_seed(&object)) {
            restored += 1;
            // Pods of Jobs that have ended can't query the database.
            let mut pods = before.pods.iter();
            let of_attempt = pods.find(|pod| pod.trial.is_some() && !pod.ended);
            assert_eq!(of_attempt.map(|pod| &pod.name), None);
        }
    }
    assert_eq!(opened, 10);
}

#[test]
fn the_database_is_restored_when_the_containers_of_the_candidate_have_ended() {
    let mut world = load_over();
    let slot = world.wait();
    world.pass(slot);
    let restores = |change: &dyn Fn(&mut Observed)| {
        let mut observed = world.observed(slot);
        // The earlier Job is deleted faster than the candidate.
        observed
            .children
            .retain(|child| !child.name.contains("-seed"));
        let server = pod_in(&mut observed, Role::Candidate);
        server.deleting = true;
        server.ended = true;
        server.started_unix_seconds = None;
        change(&mut observed);
        let benchmark = &world.slots[slot].benchmark;
        let plan = plan(benchmark, &observed, &world.config, world.now);
        let created = plan.create.iter().map(ChildObject::name);
        let seeds: Vec<_> = created.filter(|name| name.contains("-seed-")).collect();
        assert!(seeds.len() <= 1, "{seeds:?}");
        seeds.len() == 1
    };
    assert!(restores(&|_| {}));
    for (why, change) in [
        (
            "a container runs",
            (|observed| pod_in(observed, Role::Candidate).started_unix_seconds = Some(1.0))
                as fn(&mut Observed),
        ),
        ("it may start again", |observed| {
            pod_in(observed, Role::Candidate).ended = false;
        }),
        ("its Deployment makes another pod", |observed| {
            pod_in(observed, Role::Candidate).deleting = false;
        }),
        ("its Deployment is not being deleted", |observed| {
            for child in &mut observed.children {
                child.deleting = false;
            }
        }),
        ("another pod of it runs", |observed| {
            let mut another = pod_in(observed, Role::Candidate).clone();
            another.deleting = false;
            observed.pods.push(another);
        }),
        ("its Deployment may be about to make a pod", |observed| {
            observed
                .pods
                .retain(|pod| pod.role != Role::Candidate.as_str());
        }),
    ] {
        assert!(!restores(&change), "{why}");
    }
    let without_servers = |observed: &mut Observed| {
        observed
            .pods
            .retain(|pod| pod.role != Role::Candidate.as_str());
        observed
            .children
            .retain(|child| child.kind == ChildKind::Job);
    };
    assert!(restores(&without_servers));
}

#[test]
fn data_are_compared_with_trials_that_count() {
    // In a list by name, python's void entry comes before rust's measured entry.
    let mut world = World::new([two_with(&[("/trials/seed", json!(3))])]);
    let plan = second_trial(&mut world, "9999 5");
    assert!(
        world.loads[0].trial.contains("rust"),
        "another seed is needed here"
    );
    assert_void(&plan, Reason::DataChanged.as_str());
    assert_eq!(world.loads.len(), 1, "no load on other data");
    world.apply(0, &plan, usize::MAX);
    world.manner.prepared = ROWS.into();
    world.run_until("the next load", |world| world.loads.len() == 2);
    world.advance_to(world.loads[1].end + 11.0);
    assert_measured(&world.plan(0));
}

#[test]
fn an_injector_that_never_ends_makes_the_attempt_void() {
    let world = after("load is on");
    let at = |seconds: f64| {
        let mut observed = world.observed(0);
        let job = observed
            .children
            .iter()
            .find(|child| child.kind == ChildKind::Job && child.name.contains("-b01-"));
        let now = job.unwrap().created_unix_seconds + seconds;
        pod_in(&mut observed, Role::Injector).terminated.clear();
        plan(&world.slots[0].benchmark, &observed, &world.config, now)
    };
    // 120 s of patience, 2 s warm-up, 20 s window, 3 s tail, and three timeouts of 3 s.
    assert_eq!(at(153.0).record(), None);
    assert_void(&at(155.0), Reason::InjectorFailed.as_str());
}
