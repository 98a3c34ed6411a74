//! From a benchmark's creation to its first trial: preflight, the queue and the database.

use std::sync::Arc;

use crate::common::{
    T0,
    attempt::{changed, first_server},
    manner::pod_in,
    run_of,
    summary::of_plan,
    two, two_with,
    world::World,
};
use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Outcome, Reason, Role, Verdict},
    plan::{
        action::{Deletion, Plan, Wait},
        facts::{
            ChildKind, ForeignPod, NodeFacts, Observed, Peer, Refusal, Termination, is_preflight,
            placement::PlacementRequest,
        },
        ledger::outcome_of,
        plan,
    },
};
use serde_json::json;

fn reason_of(plan: &Plan) -> &str {
    &plan.status.conditions[0].reason
}

/// The plan `age_seconds` after creation, if the world has been as after `change` since creation.
fn planned(world: &World, age_seconds: f64, change: impl Fn(&mut Observed)) -> Plan {
    let mut observed = world.observed(0);
    change(&mut observed);
    let benchmark = &world.slots[0].benchmark;
    let first = plan(benchmark, &observed, &world.config, T0);
    observed.waiting_since = first
        .status
        .columns
        .unwrap()
        .reason
        .map(|reason| (reason, T0));
    plan(benchmark, &observed, &world.config, T0 + age_seconds)
}

/// A world in which the first pass has begun to read the meter.
fn preflight(benchmark: FrugalityBenchmark, meter: Option<Provenance>) -> World {
    let mut world = World::new([benchmark]);
    world.manner.meter = meter;
    world.pass(0);
    world.advance_to(T0 + 3.0);
    world
}

/// A world whose conditions have just reached the reason `wanted`.
fn at(wanted: &str) -> World {
    let mut world = World::new([two()]);
    world.run_until(wanted, |world| {
        world
            .reasons
            .last()
            .is_some_and(|(_, reason)| reason == wanted)
    });
    let slot = world.wait();
    world.slots[slot].next_pass = world.now;
    world
}

/// An old pod of a benchmark that no list contains.
fn foreign_pod(node: &str) -> ForeignPod {
    ForeignPod {
        name: "lab/other-b01-x-1".into(),
        benchmark_uid: "other-uid".into(),
        node: Some(node.into()),
        created_unix_seconds: T0 - 3600.0,
        running: true,
        deleting_since_unix_seconds: None,
    }
}

/// The ended benchmark in `namespace` whose UID is the label of [`foreign_pod`].
fn other_benchmark(namespace: &str) -> Arc<Peer> {
    Arc::new(Peer {
        name: format!("{namespace}/other"),
        uid: "other-uid".into(),
        created_unix_seconds: 1,
        last_turn_unix_seconds: None,
        rests: true,
        request: Some(PlacementRequest::of(&two().spec)),
        began_on: Vec::new(),
    })
}

#[test]
fn a_fresh_benchmark_reads_the_meter_first() {
    let world = World::new([two()]);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_spec_that_cannot_be_read_is_invalid_at_once() {
    let world = World::new([two_with(&[("/load/rate", json!("fast"))])]);
    insta::assert_snapshot!(of_plan(&world.plan(0)));
    let world = World::new([two_with(&[("/deadline", json!("soon"))])]);
    assert_eq!(reason_of(&world.plan(0)), Reason::InvalidSpec.as_str());
}

#[test]
fn a_cluster_without_meters_is_invalid_after_a_minute() {
    let world = World::new([two()]);
    let without = |age| {
        planned(&world, age, |observed| {
            for node in &mut observed.nodes {
                node.meter_ip = None;
            }
        })
    };
    let waiting = without(59.9);
    assert_eq!(waiting.status.verdict, None);
    let ended = without(60.1);
    assert_eq!(ended.status.verdict, Some(Verdict::Invalid));
    insta::assert_snapshot!(format!("{}----\n{}", of_plan(&waiting), of_plan(&ended)));
}

#[test]
fn a_meter_that_does_not_answer_is_invalid_after_a_minute() {
    let world = preflight(two(), None);
    let waiting = planned(&world, 59.9, |_| {});
    assert_eq!(waiting.status.verdict, None);
    let ended = planned(&world, 60.1, |_| {});
    assert_eq!(ended.status.verdict, Some(Verdict::Invalid));
    // The operator continues to read the meter, and the run begins by itself once the meter answers.
    assert!(is_preflight(&waiting.watch[0].trial));
    insta::assert_snapshot!(format!("{}----\n{}", of_plan(&waiting), of_plan(&ended)));
}

#[test]
fn a_meter_without_power_has_another_reason_than_a_silent_meter() {
    let world = preflight(two(), None);
    let missing = "the meter serves no kepler_node_cpu_joules_total for the node pi-1";
    let ended = planned(&world, 60.1, |observed| {
        for session in observed.sessions.values_mut() {
            session.last_error = Some(missing.into());
            session.without_power = Some(missing.into());
        }
    });
    assert_eq!(ended.status.verdict, Some(Verdict::Invalid));
    assert_eq!(reason_of(&ended), Reason::NoPowerMetrics.as_str());
    assert!(ended.status.conditions[0].message.contains(missing));
    // The meter answered without power once, and does not answer now.
    let silent = planned(&world, 60.1, |observed| {
        for session in observed.sessions.values_mut() {
            session.without_power = Some(missing.into());
        }
    });
    assert_eq!(reason_of(&silent), Reason::MeterMissing.as_str());
}

#[test]
fn one_lost_reading_while_the_database_starts_is_no_missing_meter() {
    let mut world = World::new([two()]);
    world.manner.database_ready = Some(100.0);
    world.run_until("minutes later", |world| world.now > T0 + 80.0);
    world.manner.meter = None;
    let (from, until) = (world.now, world.now + 1.5);
    world.run_until("a lost reading", |world| world.now > until);
    world.manner.meter = Some(Provenance::Metered);
    world.run_until("the database", |world| world.now > from + 10.0);
    assert!(
        world
            .reasons
            .iter()
            .all(|(_, reason)| reason != Reason::MeterMissing.as_str())
    );
    assert_eq!(
        world.reasons.last().unwrap().1,
        Reason::StartingDatabase.as_str()
    );
}

#[test]
fn a_fake_meter_is_invalid_at_once() {
    let world = preflight(two(), Some(Provenance::Fake));
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn modelled_power_needs_permission_to_decide_a_budget() {
    let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": "0.02"}]);
    let gated = two_with(&[("/budgets", budget.clone())]);
    let world = preflight(gated, Some(Provenance::Modelled));
    insta::assert_snapshot!(of_plan(&world.plan(0)));

    for benchmark in [
        two_with(&[("/budgets", budget), ("/energy/allowModelled", json!(true))]),
        two_with(&[(
            "/budgets",
            json!([{"candidate": "rust", "maxMillisecondsPerRequest": "20"}]),
        )]),
        two(),
    ] {
        let world = preflight(benchmark, Some(Provenance::Modelled));
        assert_eq!(world.plan(0).status.verdict, None);
    }
}

#[test]
fn a_cluster_without_cloudnativepg_is_an_error_after_a_minute() {
    let world = preflight(two(), Some(Provenance::Metered));
    let without = |age| {
        planned(&world, age, |observed| {
            observed.cloud_native_pg_installed = false;
        })
    };
    assert_eq!(without(59.9).status.verdict, None);
    assert_eq!(
        reason_of(&without(59.9)),
        Reason::CloudNativePgMissing.as_str()
    );
    insta::assert_snapshot!(of_plan(&without(60.1)));
    // A benchmark without a database does not need CloudNativePG.
    let mut world = world;
    world.slots[0].benchmark.spec.database = None;
    let plan = planned(&world, 60.1, |observed| {
        observed.cloud_native_pg_installed = false;
    });
    assert_eq!(reason_of(&plan), Reason::Queued.as_str());
}

#[test]
fn a_namespace_that_is_not_allowed_is_an_error_after_a_minute_and_begins_once_it_is_allowed() {
    let benchmark = two_with(&[("/ttlAfterFinished", json!("60s"))]);
    let mut world = preflight(benchmark, Some(Provenance::Metered));
    let forbid = |observed: &mut Observed| observed.namespace_forbidden = true;
    let waiting = planned(&world, 59.9, forbid);
    assert_eq!(reason_of(&waiting), Reason::NamespaceNotAllowed.as_str());
    assert_eq!(waiting.status.verdict, None);
    let ended = planned(&world, 60.1, forbid);
    insta::assert_snapshot!(of_plan(&ended));
    // The operator has no right to delete this benchmark.
    world.slots[0].benchmark.status = Some(ended.status);
    let later = planned(&world, 3600.0, forbid);
    assert!(!later.expire && later.delete.is_empty() && later.ledger.is_none());
    // It rests, so the queue ignores it.
    assert!(world.slots[0].benchmark.is_complete());
    let allowed = planned(&world, 3600.0, |_| {});
    assert_eq!(reason_of(&allowed), Reason::Queued.as_str());
}

#[test]
fn a_run_that_loses_its_rights_waits_without_a_write() {
    let mut world = World::new([two()]);
    world.run_until("a load", |world| !world.loads.is_empty());
    // Without the stop, the deadline would end the run.
    for age_seconds in [60.0, 7.0 * 3600.0] {
        let plan = planned(&world, age_seconds, |it| it.namespace_forbidden = true);
        assert_eq!(reason_of(&plan), Reason::NamespaceNotAllowed.as_str());
        assert_eq!(plan.status.verdict, None);
        let writes = [
            plan.ledger.is_some(),
            !plan.locks.is_empty(),
            !plan.create.is_empty(),
            !plan.delete.is_empty(),
        ];
        assert_eq!(writes, [false; 4]);
        let message = &plan.status.conditions[0].message;
        assert!(message.contains("benchmarkNamespaces"), "{message}");
    }
    world.slots[0].benchmark.spec.suspend = true;
    let suspended = planned(&world, 60.0, |it| it.namespace_forbidden = true);
    assert_eq!(reason_of(&suspended), Reason::NamespaceNotAllowed.as_str());
    assert!(suspended.ledger.is_none());
}

#[test]
fn the_injector_needs_a_separate_node_unless_it_may_share() {
    let one_node = |observed: &mut Observed| observed.nodes.retain(|node| node.name == "pi-1");
    let world = preflight(two(), Some(Provenance::Metered));
    assert_eq!(planned(&world, 59.9, one_node).status.verdict, None);
    let refused = planned(&world, 60.1, one_node);
    let sharing = two_with(&[("/placement/allowSharedNode", json!(true))]);
    let world = preflight(sharing, Some(Provenance::Metered));
    let shared = planned(&world, 60.1, one_node);
    assert_eq!(shared.status.shared_node, Some(true));
    insta::assert_snapshot!(format!("{}----\n{}", of_plan(&refused), of_plan(&shared)));
    // If another node is free, the injector does not share the measured node.
    assert_eq!(
        planned(&world, 60.1, |_| {}).status.shared_node,
        Some(false)
    );
}

#[test]
fn nodes_are_chosen_by_labels_and_readiness() {
    let choose = |benchmark: FrugalityBenchmark, change: fn(&mut Observed)| {
        let world = World::new([benchmark]);
        let status = planned(&world, 61.0, change).status;
        status.measured_node.zip(status.injector_node)
    };
    let found = |measured: &str, injector: &str| Some((measured.to_owned(), injector.to_owned()));
    let all_metered = |observed: &mut Observed| {
        for node in &mut observed.nodes {
            node.meter_ip = Some("10.0.0.5".into());
        }
    };
    assert_eq!(choose(two(), |_| {}), found("pi-1", "injector-1"));
    assert_eq!(choose(two(), all_metered), found("injector-1", "pi-1"));
    let labelled = |observed: &mut Observed| {
        for node in &mut observed.nodes {
            node.meter_ip = Some("10.0.0.5".into());
        }
        let role = ("frugality.dev/role".to_owned(), "measured".to_owned());
        observed.nodes[1].labels.extend([role]);
    };
    assert_eq!(choose(two(), labelled), found("pi-1", "injector-1"));
    let selected = two_with(&[(
        "/placement/measuredNodeSelector",
        json!({"kubernetes.io/hostname": "pi-1"}),
    )]);
    assert_eq!(choose(selected, all_metered), found("pi-1", "injector-1"));
    let nowhere = two_with(&[("/placement/measuredNodeSelector", json!({"board": "pi-9"}))]);
    let world = World::new([nowhere]);
    let plan = planned(&world, 61.0, |_| {});
    assert_eq!(reason_of(&plan), Reason::NoMeasuredNode.as_str());
    assert!(plan.status.conditions[0].message.contains("board=pi-9"));
    assert_eq!(plan.wait, Wait::Cluster, "a node may come");
    let unready = planned(&World::new([two()]), 61.0, |observed| {
        observed.nodes[1].schedulable = false;
    });
    assert_eq!(reason_of(&unready), Reason::MeterMissing.as_str());
}

#[test]
fn the_run_waits_for_a_labelled_node_and_measures_no_other() {
    let without = |lacks: fn(&mut NodeFacts)| {
        planned(&World::new([two()]), 61.0, |observed| {
            for node in &mut observed.nodes {
                node.meter_ip = Some("10.0.0.5".into());
            }
            let role = ("frugality.dev/role".to_owned(), "measured".to_owned());
            observed.nodes[1].labels.extend([role]);
            lacks(&mut observed.nodes[1]);
        })
    };
    // The node's meter restarts.
    let plan = without(|node| node.meter_ip = None);
    assert_eq!(reason_of(&plan), Reason::MeterMissing.as_str());
    let message = &plan.status.conditions[0].message;
    assert!(message.contains("may be measured (pi-1)"), "{message}");
    // The node restarts.
    let plan = without(|node| node.schedulable = false);
    assert_eq!(reason_of(&plan), Reason::NoMeasuredNode.as_str());
    let message = &plan.status.conditions[0].message;
    assert!(
        message.contains("has the labels frugality.dev/role=measured"),
        "{message}"
    );
    // If the spec selects another node, the operator measures that node.
    let selector = json!({"kubernetes.io/hostname": "injector-1"});
    let elsewhere = two_with(&[("/placement/measuredNodeSelector", selector)]);
    let plan = planned(&World::new([elsewhere]), 61.0, |observed| {
        observed.nodes[0].meter_ip = Some("10.0.0.5".into());
        let role = ("frugality.dev/role".to_owned(), "measured".to_owned());
        observed.nodes[1].labels.extend([role]);
    });
    assert_eq!(plan.status.measured_node.as_deref(), Some("injector-1"));
}

#[test]
fn an_older_benchmark_goes_first() {
    let world = preflight(two(), Some(Provenance::Metered));
    let behind = |rests| {
        planned(&world, 10.0, |observed| {
            observed.peers = vec![Arc::new(Peer {
                name: "shop/older".into(),
                uid: "older-uid".into(),
                created_unix_seconds: 1,
                last_turn_unix_seconds: None,
                rests,
                request: Some(PlacementRequest::of(&two().spec)),
                began_on: Vec::new(),
            })];
        })
    };
    let queued = behind(false);
    insta::assert_snapshot!(of_plan(&queued));
    let turn = Wait::Turn {
        name: "shop/older".into(),
        node: "pi-1".into(),
    };
    assert_eq!(queued.wait, turn);
    assert_eq!(behind(true).locks.len(), 2);
    assert_eq!(behind(true).wait, Wait::Time);
}

/// The reader forgets the meter of a benchmark that rests.
#[test]
fn a_waiting_benchmark_stays_queued_until_the_meter_is_read_again() {
    let mut world = preflight(two(), Some(Provenance::Metered));
    let queued = |world: &World, change: &dyn Fn(&mut Observed)| {
        planned(world, 10.0, |observed| {
            let mut older = other_benchmark("lab");
            Arc::make_mut(&mut older).rests = false;
            observed.peers = vec![older];
            change(observed);
        })
    };
    let first = queued(&world, &|_| {});
    assert_eq!(reason_of(&first), Reason::Queued.as_str());
    world.slots[0].benchmark.status = Some(first.status.clone());
    let forgotten = queued(&world, &|observed| observed.sessions.clear());
    assert_eq!(forgotten.status, first.status);
    assert_eq!((forgotten.wait, forgotten.watch.len()), (Wait::Time, 1));
    let silent = queued(&world, &|observed| {
        for session in observed.sessions.values_mut() {
            session.readings = Arc::default();
            session.last_error = Some("no answer".into());
        }
    });
    assert_eq!(reason_of(&silent), Reason::MeterMissing.as_str());
}

#[test]
fn the_first_in_the_queue_takes_the_locks_before_it_creates_anything() {
    let world = preflight(two(), Some(Provenance::Metered));
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn the_database_is_created_after_the_locks() {
    let mut world = at(Reason::Queued.as_str());
    world.wait();
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn pods_of_another_benchmark_must_have_ended() {
    let mut world = at(Reason::Queued.as_str());
    world.wait();
    let plan = planned(&world, 4.0, |observed| {
        observed.peers = vec![other_benchmark("lab")];
        observed.foreign_pods = vec![foreign_pod("injector-1")];
    });
    insta::assert_snapshot!(of_plan(&plan));
    let elsewhere = planned(&world, 4.0, |observed| {
        observed.peers = vec![other_benchmark("lab")];
        observed.foreign_pods = vec![foreign_pod("pi-2")];
    });
    assert_eq!(reason_of(&elsewhere), Reason::StartingDatabase.as_str());
}

#[test]
fn a_pod_with_a_copied_label_stalls_no_benchmark() {
    let mut world = at(Reason::Queued.as_str());
    world.wait();
    let beside = |peers: &[Arc<Peer>], pod: ForeignPod| {
        let plan = planned(&world, 4.0, |observed| {
            observed.peers = peers.to_vec();
            observed.foreign_pods = vec![pod.clone()];
        });
        reason_of(&plan).to_owned()
    };
    // The pod is pending. It names no node, or a node that does not exist.
    let pending = |node: Option<&str>| ForeignPod {
        node: node.map(str::to_owned),
        ..foreign_pod("")
    };
    for node in [None, Some("no-such-node")] {
        assert_eq!(
            beside(&[], pending(node)),
            Reason::StartingDatabase.as_str()
        );
        let peers = [other_benchmark("lab")];
        assert_eq!(
            beside(&peers, pending(node)),
            Reason::StartingDatabase.as_str()
        );
    }
    // The pod is on the run's node. Its label names no benchmark, or a benchmark of another namespace.
    let on_node = || foreign_pod("injector-1");
    assert_eq!(beside(&[], on_node()), Reason::StartingDatabase.as_str());
    let peers = [other_benchmark("shop")];
    assert_eq!(beside(&peers, on_node()), Reason::StartingDatabase.as_str());
}

#[test]
fn the_run_waits_while_the_cluster_removes_pods_of_a_deleted_benchmark() {
    let mut world = at(Reason::Queued.as_str());
    world.wait();
    let orphan = |pod: ForeignPod| {
        let plan = planned(&world, 4.0, |observed| {
            observed.foreign_pods = vec![pod.clone()];
        });
        reason_of(&plan).to_owned()
    };
    let deleting = |since: f64| ForeignPod {
        deleting_since_unix_seconds: Some(since),
        ..foreign_pod("pi-1")
    };
    let created = |created_unix_seconds: f64| ForeignPod {
        created_unix_seconds,
        ..foreign_pod("pi-1")
    };
    assert_eq!(orphan(deleting(T0 - 100.0)), Reason::CleaningUp.as_str());
    // Any user can make a pod with the label that stays for a day after its deletion.
    assert_eq!(
        orphan(deleting(T0 - 200.0)),
        Reason::StartingDatabase.as_str()
    );
    // Another operator wrote late, and the garbage collector has not seen the pod yet.
    assert_eq!(orphan(created(T0 + 3.0)), Reason::CleaningUp.as_str());
    assert_eq!(
        orphan(created(T0 - 56.1)),
        Reason::StartingDatabase.as_str()
    );
    // A user could make a new pod each minute that no node can take.
    let pending = ForeignPod {
        running: false,
        ..created(T0 + 3.0)
    };
    assert_eq!(orphan(pending), Reason::StartingDatabase.as_str());
}

#[test]
fn the_run_waits_for_a_starting_database() {
    let world = at(Reason::StartingDatabase.as_str());
    insta::assert_snapshot!(of_plan(&world.plan(0)));
}

#[test]
fn a_database_that_cannot_start_ends_the_run_through_the_ledger() {
    let world = at(Reason::StartingDatabase.as_str());
    let broken = planned(&world, 5.0, |observed| {
        let database = observed.database.as_mut().unwrap();
        database.broken = true;
        database.phase = "Cluster is unrecoverable and needs manual intervention".into();
    });
    insta::assert_snapshot!(of_plan(&broken));
    assert_eq!(
        reason_of(&planned(&world, 895.0, |_| {})),
        Reason::StartingDatabase.as_str()
    );
    let late = planned(&world, 920.0, |_| {});
    let (_, record) = late.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::DatabaseFailed.as_str())
    );
}

#[test]
fn an_end_that_the_ledger_has_no_room_for_says_why_the_run_has_not_ended() {
    let world = at(Reason::StartingDatabase.as_str());
    let broken = planned(&world, 5.0, |observed| {
        observed.database.as_mut().unwrap().broken = true;
        observed.refused = Some(Refusal {
            reason: Reason::QuotaExceeded,
            message: "the API server refused FrugalityTrial x: exceeded quota: small".into(),
            is_entry: true,
        });
    });
    assert!(broken.opened().is_some());
    assert_eq!(reason_of(&broken), Reason::QuotaExceeded.as_str());
    let message = &broken.status.conditions[0].message;
    for words in ["exceeded quota: small", "Then the run ends: "] {
        assert!(message.contains(words), "{message}");
    }
    assert!(broken.requeue_seconds >= 5.0);
}

#[test]
fn a_database_image_that_cannot_be_pulled_ends_the_run() {
    let world = at(Reason::StartingDatabase.as_str());
    let pulling = |age| {
        planned(&world, age, |observed| {
            pod_in(observed, Role::Database).waiting =
                Some(("ImagePullBackOff".into(), "Back-off pulling image".into()));
        })
    };
    // If the registry fails once, the kubelet tries again.
    assert!(pulling(20.0).record().is_none());
    insta::assert_snapshot!(of_plan(&pulling(60.0)));
}

#[test]
fn a_ready_database_is_filled_once() {
    let mut world = at(Reason::StartingDatabase.as_str());
    world.run_until("a ready database", |world| {
        world
            .observed(0)
            .database
            .is_some_and(|database| database.ready)
    });
    let mut seeding = at(Reason::Seeding.as_str());
    seeding.wait();
    insta::assert_snapshot!(of_plan(&seeding.plan(0)));
    let seeds = seeding.slots[0]
        .children
        .iter()
        .filter(|child| child.facts.name.contains("-seed"));
    assert_eq!(seeds.count(), 1);
}

#[test]
fn a_seed_that_counts_other_rows_ends_the_run() {
    let mut world = at(Reason::Seeding.as_str());
    world.advance_to(world.now + 5.0);
    let seeded = |exit_code: i32, message: &str| {
        planned(&world, 15.0, |observed| {
            let end = Termination {
                exit_code,
                reason: "Error".into(),
                message: message.into(),
            };
            pod_in(observed, Role::Seed)
                .terminated
                .insert("seed".into(), end);
        })
    };
    let ends = [
        seeded(0, "9999 -77"),
        seeded(3, "psql: error: relation exists"),
        seeded(137, ""),
    ];
    insta::assert_snapshot!(ends.each_ref().map(of_plan).join("----\n"));
    assert!(
        seeded(0, "10000 -77")
            .opened()
            .is_some_and(|trial| trial.spec.block == 1)
    );
}

#[test]
fn a_run_begins_by_itself_once_its_meter_answers() {
    let mut world = World::new([two()]);
    world.manner.meter = None;
    world.run_until("a verdict", |world| {
        let status = world.slots[0].benchmark.status.as_ref();
        status.is_some_and(|status| status.verdict.is_some())
    });
    assert_eq!(
        world.reasons.last().unwrap().1,
        Reason::MeterMissing.as_str()
    );
    world.manner.meter = Some(Provenance::Metered);
    world.run_until("another verdict", |world| {
        world.reasons.last().unwrap().1 == Reason::NoBudgets.as_str()
    });
}

#[test]
fn a_restarted_operator_keeps_the_verdict() {
    let mut world = preflight(two(), Some(Provenance::Fake));
    let ended = planned(&world, 3.0, |_| {}).status;
    assert_eq!(ended.verdict, Some(Verdict::Invalid));
    world.slots[0].benchmark.status = Some(ended.clone());
    let restarted = planned(&world, 4.0, |observed| observed.sessions.clear());
    assert_eq!(restarted.status, ended);
    // The new operator reads the meter again, and therefore notices the repair.
    assert!(is_preflight(&restarted.watch[0].trial));
}

/// A run whose `Standalone` database starts.
fn standalone_starting() -> World {
    let benchmark = two_with(&[("/database/provider", json!("Standalone"))]);
    let mut world = World::new([benchmark]);
    world.run_until("the database's pod", |world| {
        !world.slots[0].pods.is_empty()
    });
    let slot = world.wait();
    world.slots[slot].next_pass = world.now;
    world
}

#[test]
fn a_standalone_database_may_start_slowly_but_not_crash_repeatedly() {
    let world = standalone_starting();
    let waiting = world.plan(0);
    assert_eq!(reason_of(&waiting), Reason::StartingDatabase.as_str());
    assert!(
        waiting.status.conditions[0]
            .message
            .contains("its pod: starting")
    );
    let crashing = |restarts| {
        planned(&world, 10.0, |observed| {
            let pod = pod_in(observed, Role::Database);
            pod.restarts = restarts;
            pod.waiting = Some(("CrashLoopBackOff".into(), "back-off 20s".into()));
            let end = Termination {
                exit_code: 1,
                reason: "Error".into(),
                message: "initdb: error: could not look up effective user ID 26".into(),
            };
            pod.terminated.insert("postgres".into(), end);
        })
    };
    assert_eq!(crashing(2).record(), None);
    let ended = crashing(3);
    let (_, record) = ended.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::DatabaseFailed.as_str())
    );
    let message = record.message.as_ref().unwrap();
    assert!(
        message.contains("could not look up effective user ID 26"),
        "{message}"
    );
}

#[test]
fn an_evicted_pod_of_a_standalone_database_does_not_delay_the_run() {
    let mut world = standalone_starting();
    world.run_until("a trial", |world| !world.slots[0].trials.is_empty());
    let plan = planned(&world, 30.0, |observed| {
        let mut evicted = pod_in(observed, Role::Database).clone();
        (evicted.ended, evicted.ready_since_unix_seconds) = (true, None);
        observed.pods.insert(0, evicted);
    });
    assert_eq!(reason_of(&plan), Reason::Measuring.as_str());
}

#[test]
fn candidates_reach_every_database_alike() {
    let env = |provider: &str| {
        let benchmark = two_with(&[("/database/provider", json!(provider))]);
        // The run's ID depends on the provider.
        let run = run_of(&benchmark);
        let mut server = first_server(&mut World::new([benchmark]));
        let env = serde_json::to_string(&server.containers.remove(0).env).unwrap();
        env.replace(&run, "RUN")
    };
    assert_eq!(env("Standalone"), env("CloudNativePG"));
    assert!(env("Standalone").contains("sslmode=disable"));
}

const QUOTA: &str = "FailedCreate: pods \"x\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
const POD_SECURITY: &str =
    "FailedCreate: pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"";

#[test]
fn an_object_that_a_quota_refuses_is_tried_again_until_the_deadline() {
    let mut world = at(Reason::Queued.as_str());
    world.wait();
    let refused = |age_seconds| {
        planned(&world, age_seconds, |observed| {
            observed.refused = Some(Refusal {
                reason: Reason::QuotaExceeded,
                message: "the API server refused Cluster x: exceeded quota: small".into(),
                is_entry: false,
            });
        })
    };
    let waiting = refused(3600.0);
    assert_eq!(waiting.create.len(), 1);
    assert_eq!((waiting.status.verdict, waiting.record()), (None, None));
    assert_eq!(reason_of(&waiting), Reason::QuotaExceeded.as_str());
    let message = &waiting.status.conditions[0].message;
    assert!(message.contains("exceeded quota: small"), "{message}");
    let plan = refused(7.0 * 3600.0);
    let (_, record) = plan.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::DeadlineExceeded.as_str())
    );
}

#[test]
fn the_status_says_why_a_seeds_pod_is_refused() {
    let mut world = at(Reason::Seeding.as_str());
    world.advance_to(world.now + 1.0);
    let refused = |age_seconds: f64, words: &str| {
        planned(&world, age_seconds, |observed| {
            observed.pods.retain(|pod| pod.role != Role::Seed.as_str());
            for child in &mut observed.children {
                if child.kind == ChildKind::Job {
                    child.pods_refused = Some(words.into());
                }
            }
        })
    };
    let waiting = refused(3600.0, QUOTA);
    assert_eq!(waiting.record(), None);
    assert_eq!(reason_of(&waiting), Reason::QuotaExceeded.as_str());
    assert_eq!(refused(20.0, POD_SECURITY).record(), None);
    let plan = refused(60.0, POD_SECURITY);
    let (_, record) = plan.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::ChildRefused.as_str())
    );
    assert!(
        record
            .message
            .as_ref()
            .unwrap()
            .contains("violates PodSecurity")
    );
}

fn deleted_seeds(plan: &Plan) -> usize {
    let is_seed = |it: &&Deletion| it.kind == ChildKind::Job && it.name.contains("-seed");
    plan.delete.iter().filter(is_seed).count()
}

#[test]
fn a_seed_whose_pod_was_deleted_or_evicted_is_created_again() {
    let world = at(Reason::Seeding.as_str());
    let gone = |ended: bool| {
        changed(&world, |observed| {
            observed.pods.retain(|pod| pod.role != Role::Seed.as_str());
            let mut children = observed.children.iter_mut();
            let job = children.find(|child| child.kind == ChildKind::Job).unwrap();
            job.ended = ended;
        })
    };
    assert_eq!(deleted_seeds(&gone(false)), 0);
    let again = gone(true);
    assert_eq!((deleted_seeds(&again), again.record()), (1, None));
    let message = &again.status.conditions[0].message;
    assert!(message.contains("its pod was deleted"), "{message}");
    let evicted = changed(&world, |observed| {
        let pod = pod_in(observed, Role::Seed);
        pod.evicted = Some("Evicted: low on memory".into());
        pod.ended = true;
    });
    assert_eq!((deleted_seeds(&evicted), evicted.record()), (1, None));
    let message = &evicted.status.conditions[0].message;
    assert!(message.contains("low on memory"), "{message}");
}

#[test]
fn a_seed_whose_pod_runs_something_else_is_created_again() {
    let world = at(Reason::Seeding.as_str());
    let plan = changed(&world, |observed| {
        let pod = pod_in(observed, Role::Seed);
        pod.contents.get_mut("seed").unwrap().image = "forger".into();
    });
    assert_eq!((deleted_seeds(&plan), plan.record()), (1, None));
    let message = &plan.status.conditions[0].message;
    assert!(message.contains("has the image forger"), "{message}");
}

/// A window may be longer than the time limit of a restore, which begins with the restore.
#[test]
fn after_a_long_window_a_failed_restore_does_not_end_the_run() {
    let mut world = World::new([two()]);
    world.run_until("the restore after a trial", |world| {
        let with_figures = |trial: &FrugalityTrial| {
            let status = trial.status.as_ref();
            status.is_some_and(|it| it.energy.is_some() && it.outcome.is_none())
        };
        let slot = &world.slots[0];
        let mut seeds = slot.pods.iter().map(|pod| &pod.facts);
        slot.trials.iter().any(with_figures)
            && seeds.any(|pod| pod.role == Role::Seed.as_str() && !pod.deleting)
    });
    let mut observed = world.observed(0);
    for child in &mut observed.children {
        if child.kind == ChildKind::Cluster {
            child.created_unix_seconds -= 1200.0;
        }
    }
    pod_in(&mut observed, Role::Seed).evicted = Some("Evicted: the node was full".into());
    let plan = plan(
        &world.slots[0].benchmark,
        &observed,
        &world.config,
        world.now,
    );
    let outcome = plan.record().and_then(|(_, record)| record.outcome);
    assert_ne!(outcome, Some(Outcome::Failed), "{plan:#?}");
}

#[test]
fn a_failed_restore_is_tried_again_but_a_failed_first_seed_is_not() {
    let mut world = World::new([two()]);
    let failed = |world: &World, later_seconds: f64| {
        let mut observed = world.observed(0);
        let pod = pod_in(&mut observed, Role::Seed);
        let end = Termination {
            exit_code: 137,
            ..Termination::default()
        };
        pod.terminated = [("seed".to_owned(), end)].into();
        let now = world.now + later_seconds;
        plan(&world.slots[0].benchmark, &observed, &world.config, now)
    };
    let is_seeding = |world: &World| {
        let pods = &world.slots[0].pods;
        pods.iter()
            .any(|pod| pod.facts.role == Role::Seed.as_str() && !pod.facts.deleting)
    };
    world.run_until("the first filling", is_seeding);
    let first = failed(&world, 1.0);
    assert_eq!(
        first.record().unwrap().1.reason.as_deref(),
        Some(Reason::SeedFailed.as_str())
    );
    // After a void attempt, the database is restored outside any attempt.
    world.run_until("a load", |world| !world.loads.is_empty());
    world.replace_pod(0, Role::Candidate);
    world.run_until("an attempt's end", |world| {
        let mut trials = world.slots[0].trials.iter();
        trials.any(|trial| outcome_of(trial).is_some())
    });
    world.run_until("the restoring", |world| {
        let children = &world.slots[0].children;
        let pods = &world.slots[0].pods;
        is_seeding(world)
            && children.iter().all(|child| !child.facts.deleting)
            && pods.iter().all(|pod| pod.facts.trial.is_none())
            && world.slots[0]
                .trials
                .iter()
                .all(|trial| outcome_of(trial).is_some())
    });
    let again = failed(&world, 1.0);
    assert_eq!((deleted_seeds(&again), again.record()), (1, None));
    let ended = failed(&world, 1000.0);
    let (_, record) = ended.record().unwrap();
    assert_eq!(record.reason.as_deref(), Some(Reason::SeedFailed.as_str()));
}

#[test]
fn the_status_says_why_a_standalone_databases_pod_is_refused() {
    let mut world = World::new([two_with(&[("/database/provider", json!("Standalone"))])]);
    world.manner.database_ready = None;
    world.run_until("a database", |world| {
        let mut children = world.slots[0].children.iter();
        children.any(|child| child.facts.kind == ChildKind::Deployment)
    });
    let refused = |age_seconds: f64, words: &str| {
        planned(&world, age_seconds, |observed| {
            observed.pods.clear();
            for child in &mut observed.children {
                if child.kind == ChildKind::Deployment {
                    child.pods_refused = Some(words.into());
                }
            }
        })
    };
    let waiting = refused(3600.0, QUOTA);
    assert_eq!(waiting.record(), None);
    assert_eq!(reason_of(&waiting), Reason::QuotaExceeded.as_str());
    let plan = refused(60.0, POD_SECURITY);
    let (_, record) = plan.record().unwrap();
    assert_eq!(
        record.reason.as_deref(),
        Some(Reason::ChildRefused.as_str())
    );
}
