//! `apply`: the writes, and the result of a plan if the API server refuses, another writer is first, or an answer is lost.

use std::time::Duration;

use axum::http::Method;
use frugality_operator::{
    api::{
        FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus,
        Outcome, Reason,
    },
    io::apply::Applied,
    plan::{
        action::{ChildObject, Deletion, EventNote, ForgottenEntry, LedgerWrite, LockAction, Plan},
        facts::{Child, ChildKind, Refusal},
        ledger::record::ended,
        names::lock_name,
        placement::nodes::selector,
    },
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{Event, Service},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use super::{
    cluster::create,
    proxy::Fault,
    stage::{Stage, locking, plan_of},
};

/// The objects of the first candidate: a Deployment and its Service.
fn servers(stage: &Stage, benchmark: &FrugalityBenchmark) -> Vec<ChildObject> {
    let on = [("kubernetes.io/hostname".to_owned(), stage.measured.clone())].into();
    stage.build(benchmark, |builder| {
        builder.servers(&benchmark.spec.candidates[0], "attempt", None, &on)
    })
}

fn creating(benchmark: &FrugalityBenchmark, create: Vec<ChildObject>) -> Plan {
    Plan {
        create,
        ..plan_of(benchmark)
    }
}

fn void(message: &str) -> FrugalityTrialStatus {
    FrugalityTrialStatus {
        outcome: Some(Outcome::Void),
        reason: Some(Reason::Suspended.as_str().into()),
        message: Some(message.into()),
        ..FrugalityTrialStatus::default()
    }
}

fn note(text: &str) -> EventNote {
    EventNote {
        warning: true,
        reason: "Tested".into(),
        note: text.into(),
    }
}

/// The deletion of an object that is gone.
fn absent(kind: ChildKind) -> Deletion {
    Deletion {
        kind,
        name: "none".into(),
        uid: "none".into(),
    }
}

#[track_caller]
fn refusal(applied: Applied) -> Refusal {
    match applied {
        Applied::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

// ---- locks ----------------------------------------------------------------------------------------

#[tokio::test]
async fn one_of_two_operators_takes_the_lock_of_a_node() {
    let stage = Stage::new().await;
    let (a, b) = (
        stage.benchmark("a", &[]).await,
        stage.benchmark("b", &[]).await,
    );
    let taking = |benchmark| locking(benchmark, &stage.measured, None);
    let (of_a, of_b) = tokio::join!(stage.apply(&a, taking(&a)), stage.apply(&b, taking(&b)));
    let (of_a, of_b) = (of_a.unwrap(), of_b.unwrap());
    let (winner, loser) = if of_a == Applied::Done {
        (&a, &b)
    } else {
        (&b, &a)
    };
    assert!(
        [&of_a, &of_b].contains(&&Applied::Overtaken),
        "{of_a:?} {of_b:?}"
    );
    let seen = stage.observe(loser).await.unwrap();
    let [lock] = &seen.locks[..] else {
        panic!("{:?}", seen.locks)
    };
    let name = format!("{}/{}", stage.namespace, winner.name_any());
    assert_eq!(lock.holder, Some((winner.uid().unwrap(), name)));
    // The winner gives it back; then the loser's knowledge of it is too old.
    let old = lock.resource_version.clone();
    let give_back = |version: &str| Plan {
        locks: vec![LockAction::Release {
            name: lock.name.clone(),
            resource_version: version.to_owned(),
        }],
        ..plan_of(winner)
    };
    let over = locking(loser, &stage.measured, Some("1"));
    assert_eq!(stage.apply(loser, over).await.unwrap(), Applied::Overtaken);
    assert_eq!(
        stage.apply(winner, give_back("1")).await.unwrap(),
        Applied::Overtaken
    );
    assert_eq!(
        stage.apply(winner, give_back(&old)).await.unwrap(),
        Applied::Done
    );
    assert!(stage.observe(loser).await.unwrap().locks.is_empty());
    assert_eq!(
        stage.apply(winner, give_back(&old)).await.unwrap(),
        Applied::Overtaken
    );
}

#[tokio::test]
async fn who_is_overtaken_at_a_lock_does_nothing_of_the_rest() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let other = stage.benchmark("other", &[]).await;
    let first = locking(&other, &stage.measured, None);
    stage.apply(&other, first).await.unwrap();
    stage.proxy.forget();
    let whole = Plan {
        locks: locking(&benchmark, &stage.measured, None).locks,
        create: servers(&stage, &benchmark),
        events: vec![note("overtaken")],
        expire: true,
        ..stage.opening(&benchmark, "attempt")
    };
    assert_eq!(
        stage.apply(&benchmark, whole).await.unwrap(),
        Applied::Overtaken
    );
    assert_eq!(stage.proxy.writes(), ["POST leases"]);
    stage.stored("b").await;
}

#[tokio::test]
async fn a_lock_whose_answer_was_lost_is_ours_in_the_next_pass() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage
        .proxy
        .fail(Method::POST, "/leases", 1, Fault::LostAnswer);
    let taking = locking(&benchmark, &stage.measured, None);
    let error = stage.apply(&benchmark, taking).await.unwrap_err();
    assert!(error.to_string().contains("cannot take a lock"), "{error}");
    let seen = stage.observe(&benchmark).await.unwrap();
    let holder = seen.locks[0].holder.clone().unwrap();
    assert_eq!(holder.0, benchmark.uid().unwrap());
    let lease = stage.api::<Lease>().get(&lock_name(&stage.measured)).await;
    assert!(lease.unwrap().spec.unwrap().acquire_time.is_some());
}

// ---- the ledger -----------------------------------------------------------------------------------

#[tokio::test]
async fn an_entry_is_opened_and_its_record_is_final() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let opening = Plan {
        ledger: Some(LedgerWrite::open(
            stage.entry(&benchmark, "attempt"),
            Some(void("first")),
        )),
        ..plan_of(&benchmark)
    };
    assert_eq!(
        stage.apply(&benchmark, opening).await.unwrap(),
        Applied::Done
    );
    let seen = stage.observe(&benchmark).await.unwrap();
    let [entry] = &seen.trials[..] else {
        panic!("{:?}", seen.trials)
    };
    assert_eq!(entry.status, Some(void("first")));
    assert_eq!(entry.owner_references()[0].uid, benchmark.uid().unwrap());
    // Over the version that was seen, and refused all the same.
    let rewriting = Plan {
        ledger: Some(LedgerWrite::record(entry, void("second"))),
        ..plan_of(&benchmark)
    };
    let error = stage
        .apply(&benchmark, rewriting)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("can't be rewritten"), "{error}");
    let stored: FrugalityTrial = stage.api().get("attempt").await.unwrap();
    assert_eq!(stored.status, Some(void("first")));
}

/// A merge patch keeps absent fields.
#[tokio::test]
async fn a_void_attempt_has_no_figures_in_the_cluster() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let opening = stage.opening(&benchmark, "attempt");
    stage.apply(&benchmark, opening).await.unwrap();
    let open = || async { stage.observe(&benchmark).await.unwrap().trials.remove(0) };
    let measured = include_str!("../data/release-0.1.0/ledger.json");
    let measured: Vec<FrugalityTrial> = serde_json::from_str(measured).unwrap();
    let measured = measured.into_iter().filter_map(|entry| entry.status);
    let mut measured = measured.filter(|status| status.energy.is_some());
    // While the database is restored, the record has no outcome.
    let figures = FrugalityTrialStatus {
        outcome: None,
        reason: None,
        finished_at: None,
        ..measured.next().unwrap()
    };
    let record = |entry: &FrugalityTrial, status| Plan {
        ledger: Some(LedgerWrite::record(entry, status)),
        ..plan_of(&benchmark)
    };
    let plan = record(&open().await, figures.clone());
    stage.apply(&benchmark, plan).await.unwrap();
    let entry = open().await;
    let stored = entry.status.clone().unwrap();
    assert!(stored.requests.is_some() && stored.energy.is_some());
    let void = ended(stored, Outcome::Void, Reason::Suspended, "suspended", 1e9);
    stage
        .apply(&benchmark, record(&entry, void.clone()))
        .await
        .unwrap();
    assert_eq!(open().await.status, Some(void));
}

#[tokio::test]
async fn an_end_without_room_for_its_entry_is_in_the_status() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage.none_of("frugalitytrials.frugality.dev").await;
    let status = FrugalityBenchmarkStatus {
        phase: Some("reported".into()),
        ..plan_of(&benchmark).status
    };
    let plan = Plan {
        ledger: Some(LedgerWrite::open(
            stage.entry(&benchmark, "setup"),
            Some(void("ended")),
        )),
        status,
        ..plan_of(&benchmark)
    };
    let refusal = refusal(stage.apply(&benchmark, plan).await.unwrap());
    assert!(refusal.is_entry && refusal.may_pass(), "{refusal:?}");
    let reported: FrugalityBenchmark = stage.api().get("b").await.unwrap();
    assert_eq!(reported.status.unwrap().phase.as_deref(), Some("reported"));
}

#[tokio::test]
async fn a_record_over_an_older_version_is_overtaken_with_the_rest_of_its_plan() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let opening = stage.opening(&benchmark, "attempt");
    stage.apply(&benchmark, opening).await.unwrap();
    let seen = stage.observe(&benchmark).await.unwrap();
    let baseline = FrugalityTrialStatus {
        message: Some("of another operator".into()),
        ..FrugalityTrialStatus::default()
    };
    let record = |status: FrugalityTrialStatus| Plan {
        ledger: Some(LedgerWrite::record(&seen.trials[0], status)),
        create: servers(&stage, &benchmark),
        ..plan_of(&benchmark)
    };
    assert_eq!(
        stage.apply(&benchmark, record(baseline)).await.unwrap(),
        Applied::Done
    );
    stage.proxy.forget();
    assert_eq!(
        stage.apply(&benchmark, record(void("late"))).await.unwrap(),
        Applied::Overtaken
    );
    assert_eq!(
        stage.proxy.writes(),
        ["PATCH frugalitytrials/attempt/status"]
    );
    let stored: FrugalityTrial = stage.api().get("attempt").await.unwrap();
    assert_eq!(stored.status.unwrap().outcome, None);
}

/// The next pass sees the entry, and goes on from there.
#[tokio::test]
async fn an_entry_whose_answer_was_lost_is_not_opened_twice() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage
        .proxy
        .fail(Method::POST, "/frugalitytrials", 1, Fault::LostAnswer);
    let opening = || Plan {
        create: servers(&stage, &benchmark),
        ..stage.opening(&benchmark, "attempt")
    };
    stage.apply(&benchmark, opening()).await.unwrap_err();
    assert_eq!(
        stage.apply(&benchmark, opening()).await.unwrap(),
        Applied::Overtaken
    );
    let seen = stage.observe(&benchmark).await.unwrap();
    assert_eq!((seen.trials.len(), seen.children.len()), (1, 0));
}

// ---- objects --------------------------------------------------------------------------------------

#[tokio::test]
async fn an_object_whose_answer_was_lost_is_recognised_as_ours() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    for path in ["/services", "/deployments"] {
        stage.proxy.fail(Method::POST, path, 1, Fault::LostAnswer);
    }
    let objects = || creating(&benchmark, servers(&stage, &benchmark));
    for _ in 0..2 {
        let error = stage.apply(&benchmark, objects()).await.unwrap_err();
        assert!(
            error.to_string().contains("cannot create an object"),
            "{error}"
        );
    }
    assert_eq!(
        stage.apply(&benchmark, objects()).await.unwrap(),
        Applied::Done
    );
    let seen = stage.observe(&benchmark).await.unwrap();
    let kinds: Vec<ChildKind> = seen.children.iter().map(|child| child.kind).collect();
    assert_eq!(kinds, [ChildKind::Deployment, ChildKind::Service]);
    assert!(stage.proxy.is_through());
}

#[tokio::test]
async fn a_foreign_object_with_the_name_is_a_conflict_of_names() {
    let stage = Stage::new().await;
    let benchmark = stage
        .benchmark("b", &[("database", json!({"seed": {"contacts": 5}}))])
        .await;
    let node = stage.observe(&benchmark).await.unwrap();
    let node = node.nodes.iter().find(|node| node.name == stage.measured);
    let on = selector(node.unwrap());
    let database = benchmark.spec.database.as_ref().unwrap();
    let mut objects = servers(&stage, &benchmark);
    objects.push(stage.build(&benchmark, |builder| builder.seed(database, &on, None)));
    objects.push(stage.build(&benchmark, |builder| {
        builder.database_cluster(database, &on)
    }));
    for object in objects {
        let (kind, name) = (object.kind(), object.name());
        let (version, spec) = match kind {
            ChildKind::Service => ("v1", json!({ "ports": [{ "port": 80 }] })),
            ChildKind::Cluster => ("postgresql.cnpg.io/v1", json!({})),
            _ => (
                if kind == ChildKind::Job {
                    "batch/v1"
                } else {
                    "apps/v1"
                },
                json!({
                    "selector": (kind == ChildKind::Deployment).then(|| json!({ "matchLabels": { "a": "b" } })),
                    "template": {
                        "metadata": { "labels": { "a": "b" } },
                        "spec": { "restartPolicy": if kind == ChildKind::Job { "Never" } else { "Always" },
                            "containers": [{ "name": "c", "image": "i" }] },
                    },
                }),
            ),
        };
        let metadata = json!({ "name": name, "namespace": stage.namespace });
        let foreign = json!({ "apiVersion": version, "kind": format!("{kind:?}"), "metadata": metadata, "spec": spec });
        create(&stage.admin, foreign).await;
        let plan = creating(&benchmark, vec![object]);
        let refusal = refusal(stage.apply(&benchmark, plan).await.unwrap());
        assert_eq!(refusal.reason, Reason::NameConflict, "{kind:?}");
        assert!(refusal.message.contains(&name), "{}", refusal.message);
        assert!(!refusal.may_pass());
    }
}

#[tokio::test]
async fn a_refused_object_ends_the_creating_and_says_why() {
    let stage = Stage::new().await;
    let benchmark = stage.reported_benchmark("b").await;
    let quota = "deployments.apps \"x\" is forbidden: exceeded quota: small, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0";
    for (code, message, reason) in [
        (400, "bad", Reason::ChildRefused),
        (403, "denied by a policy", Reason::ChildRefused),
        (422, "spec.template is invalid", Reason::ChildRefused),
        (403, quota, Reason::QuotaExceeded),
    ] {
        stage.proxy.fail(
            Method::POST,
            "/deployments",
            1,
            Fault::Answer(code, message),
        );
        stage.proxy.forget();
        let mut objects = servers(&stage, &benchmark);
        objects.sort_by_key(|object| object.kind() != ChildKind::Deployment);
        let plan = Plan {
            delete: vec![absent(ChildKind::Job)],
            ..creating(&benchmark, objects)
        };
        let refusal = refusal(stage.apply(&benchmark, plan).await.unwrap());
        assert_eq!(
            (refusal.reason, refusal.may_pass()),
            (reason, reason == Reason::QuotaExceeded)
        );
        assert!(refusal.message.contains(message), "{}", refusal.message);
        // The Service is not created without it. The objects of the plan are deleted.
        assert_eq!(
            stage.proxy.writes(),
            ["POST deployments", "DELETE jobs/none"]
        );
    }
}

/// In the API server's own words.
#[tokio::test]
async fn a_real_quota_is_a_quota() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage.none_of("deployments.apps").await;
    let plan = creating(&benchmark, servers(&stage, &benchmark));
    let refusal = refusal(stage.apply(&benchmark, plan).await.unwrap());
    assert_eq!(refusal.reason, Reason::QuotaExceeded, "{}", refusal.message);
}

#[tokio::test]
async fn an_api_server_that_is_busy_is_asked_again_and_each_object_is_created_once() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let busy = Fault::Busy {
        retry_after_seconds: 1,
    };
    stage.proxy.fail(Method::POST, "/deployments", 2, busy);
    let plan = creating(&benchmark, servers(&stage, &benchmark));
    assert_eq!(stage.apply(&benchmark, plan).await.unwrap(), Applied::Done);
    let asked = stage.proxy.asked(&Method::POST, "/deployments");
    let codes: Vec<_> = asked.iter().map(|asked| asked.status.unwrap()).collect();
    assert_eq!(codes, [429, 429, 201]);
    assert_eq!(stage.observe(&benchmark).await.unwrap().children.len(), 2);
}

#[tokio::test]
async fn the_rest_of_a_plan_that_has_become_old_is_dropped() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let late = Fault::Late(Duration::from_secs(11));
    stage.proxy.fail(Method::POST, "/frugalitytrials", 1, late);
    let plan = Plan {
        create: servers(&stage, &benchmark),
        ..stage.opening(&benchmark, "attempt")
    };
    assert_eq!(
        stage.apply(&benchmark, plan).await.unwrap(),
        Applied::Overtaken
    );
    assert_eq!(stage.proxy.writes(), ["POST frugalitytrials"]);
}

#[tokio::test]
async fn a_deletion_is_in_the_foreground_and_a_missing_object_is_no_error() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let plan = creating(&benchmark, servers(&stage, &benchmark));
    stage.apply(&benchmark, plan).await.unwrap();
    let seen = stage.observe(&benchmark).await.unwrap();
    let mut delete: Vec<_> = seen.children.iter().map(Deletion::of).collect();
    delete.extend([ChildKind::Job, ChildKind::Cluster, ChildKind::Service].map(absent));
    let plan = Plan {
        delete,
        ..plan_of(&benchmark)
    };
    assert_eq!(stage.apply(&benchmark, plan).await.unwrap(), Applied::Done);
    let asked = stage.proxy.asked(&Method::DELETE, "/");
    assert_eq!(asked.len(), 5);
    for asked in asked {
        assert_eq!(asked.body["propagationPolicy"], "Foreground");
        assert!(asked.body["preconditions"]["uid"].is_string());
    }
    // Their pods are still to go.
    let deployment = stage.api::<Deployment>().get("attempt").await.unwrap();
    assert!(deployment.metadata.deletion_timestamp.is_some());
    assert_eq!(deployment.finalizers(), ["foregroundDeletion"]);
    let left = stage.observe(&benchmark).await.unwrap().children;
    let is_server = |child: &Child| child.kind == ChildKind::Deployment;
    assert!(left.iter().any(is_server), "{left:?}");
    assert!(left.iter().all(|child| child.deleting), "{left:?}");
}

/// The Job that restores the database has the same name before each attempt. A late pass must not delete a later one.
#[tokio::test]
async fn an_object_that_was_made_again_is_not_deleted_for_the_earlier_one() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let made = || creating(&benchmark, servers(&stage, &benchmark));
    stage.apply(&benchmark, made()).await.unwrap();
    let seen = stage.observe(&benchmark).await.unwrap();
    let late = Plan {
        delete: seen.children.iter().map(Deletion::of).collect(),
        ..plan_of(&benchmark)
    };
    let now = DeleteParams::default().grace_period(0);
    for child in &seen.children {
        if child.kind == ChildKind::Service {
            let api = stage.api::<Service>();
            api.delete(&child.name, &now).await.unwrap();
        } else {
            let api = stage.api::<Deployment>();
            api.delete(&child.name, &now).await.unwrap();
        }
    }
    stage.apply(&benchmark, made()).await.unwrap();
    assert_eq!(stage.apply(&benchmark, late).await.unwrap(), Applied::Done);
    let left = stage.observe(&benchmark).await.unwrap().children;
    assert_eq!(left.len(), 2);
    for child in left {
        assert!(!child.deleting && seen.children.iter().all(|it| it.uid != child.uid));
    }
}

// ---- the benchmark --------------------------------------------------------------------------------

#[tokio::test]
async fn a_status_is_written_once_and_only_over_the_version_that_was_seen() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    assert_eq!(
        benchmark.current_status(),
        None,
        "the API server's own is none"
    );
    let telling = |phase: &str| {
        let mut plan = plan_of(&benchmark);
        plan.status.phase = Some(phase.into());
        plan
    };
    assert_eq!(
        stage.apply(&benchmark, telling("Running")).await.unwrap(),
        Applied::Done
    );
    let stored = stage.stored("b").await;
    assert_eq!(
        stored.status.as_ref().unwrap().phase.as_deref(),
        Some("Running")
    );
    assert_eq!(stored.metadata.generation, benchmark.metadata.generation);
    // The second writer has seen the benchmark before the first one wrote.
    assert_eq!(
        stage.apply(&benchmark, telling("Late")).await.unwrap(),
        Applied::Done
    );
    let now = stage.stored("b").await;
    assert_eq!(now.resource_version(), stored.resource_version());
    // A status that is unchanged is not written.
    stage.proxy.forget();
    let plan = plan_of(&now);
    stage.apply(&now, plan).await.unwrap();
    assert_eq!(stage.proxy.writes(), [""; 0]);
}

#[tokio::test]
async fn an_event_is_published_once_and_cut_to_what_the_api_server_takes() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let long = "ä".repeat(1000);
    let telling = || Plan {
        events: vec![note("short"), note(&long)],
        ..plan_of(&benchmark)
    };
    for _ in 0..2 {
        assert_eq!(
            stage.apply(&benchmark, telling()).await.unwrap(),
            Applied::Done
        );
    }
    let events = stage
        .api::<Event>()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    let mut notes: Vec<usize> = events
        .iter()
        .map(|it| it.message.as_ref().unwrap().len())
        .collect();
    notes.sort_unstable();
    assert_eq!(notes[0], 5);
    assert!((1000..=1024).contains(&notes[1]), "{notes:?}");
    assert_ne!(events[0].last_timestamp, events[1].last_timestamp);
    assert!(
        events
            .iter()
            .all(|it| it.involved_object.uid == benchmark.uid())
    );
    let posts = stage.proxy.asked(&Method::POST, "/events");
    let codes: Vec<_> = posts.iter().map(|it| it.status.unwrap()).collect();
    assert_eq!(codes, [201, 201, 409, 409]);
}

#[tokio::test]
async fn an_event_that_is_refused_stops_nothing() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage
        .proxy
        .fail(Method::POST, "/events", 1, Fault::Answer(403, "no"));
    let plan = Plan {
        events: vec![note("refused"), note("published")],
        ..plan_of(&benchmark)
    };
    assert_eq!(stage.apply(&benchmark, plan).await.unwrap(), Applied::Done);
    let events = stage
        .api::<Event>()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    assert_eq!(events.len(), 1);
}

#[tokio::test]
async fn an_entry_is_forgotten_only_if_it_is_the_one_that_was_seen() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    for name in ["first", "second"] {
        let ended = LedgerWrite::open(stage.entry(&benchmark, name), Some(void("ended")));
        let plan = Plan {
            ledger: Some(ended),
            ..plan_of(&benchmark)
        };
        stage.apply(&benchmark, plan).await.unwrap();
    }
    let seen = stage.observe(&benchmark).await.unwrap().trials;
    let of = |entry: &FrugalityTrial, uid: Option<String>| ForgottenEntry {
        name: entry.name_any(),
        uid: uid.unwrap_or_default(),
    };
    let forgetting = |forget| Plan {
        forget,
        ..plan_of(&benchmark)
    };
    let other = forgetting(vec![of(&seen[0], seen[1].uid())]);
    stage.apply(&benchmark, other).await.unwrap();
    let names = || async {
        let entries = stage.observe(&benchmark).await.unwrap().trials;
        entries
            .iter()
            .map(ResourceExt::name_any)
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["first", "second"]);
    // The API server refuses the first: both stay until the next pass, and the pass does not fail.
    stage.proxy.fail(
        Method::DELETE,
        "/frugalitytrials/first",
        1,
        Fault::Answer(403, "no"),
    );
    let both = || forgetting(seen.iter().map(|it| of(it, it.uid())).collect());
    stage.apply(&benchmark, both()).await.unwrap();
    assert_eq!(names().await, ["first", "second"]);
    stage.apply(&benchmark, both()).await.unwrap();
    assert_eq!(names().await, [""; 0]);
}

#[tokio::test]
async fn a_benchmark_expires_only_in_the_version_that_was_seen() {
    let stage = Stage::new().await;
    let seen = stage.reported_benchmark("b").await;
    let expiring = |benchmark: &FrugalityBenchmark| Plan {
        expire: true,
        ..plan_of(benchmark)
    };
    let edit = json!({ "rerun": 2, "ttlAfterFinished": "60s" });
    let edited = stage.edit("b", edit).await;
    assert_eq!(
        stage.apply(&seen, expiring(&seen)).await.unwrap(),
        Applied::Done
    );
    stage.stored("b").await;
    assert_eq!(
        stage.apply(&edited, expiring(&edited)).await.unwrap(),
        Applied::Done
    );
    let api: Api<FrugalityBenchmark> = stage.api();
    assert!(api.get_opt("b").await.unwrap().is_none());
    let asked = stage.proxy.asked(&Method::DELETE, "/frugalitybenchmarks/b");
    let codes: Vec<_> = asked.iter().map(|it| it.status.unwrap()).collect();
    assert_eq!(codes, [409, 200]);
    let preconditions = &asked[1].body["preconditions"];
    assert_eq!(preconditions["uid"], json!(edited.uid()));
    assert_eq!(
        preconditions["resourceVersion"],
        json!(edited.resource_version())
    );
    // A benchmark of the same name that is younger is another one.
    stage.reported_benchmark("b").await;
    assert_eq!(
        stage.apply(&edited, expiring(&edited)).await.unwrap(),
        Applied::Done
    );
    stage.stored("b").await;
}

/// The login is made at once, and the operator can neither read it nor make it again.
#[tokio::test]
async fn a_login_is_created_once_with_a_password() {
    let stage = Stage::new().await;
    let standalone = json!({"provider": "Standalone", "seed": {"contacts": 5}});
    let benchmark = stage.benchmark("b", &[("database", standalone)]).await;
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "its lifetime is not general enough"
    )]
    let service = stage.build(&benchmark, |builder| builder.database_service());
    let plan = creating(&benchmark, vec![service]);
    stage.apply(&benchmark, plan).await.unwrap();
    let seen = stage.observe(&benchmark).await.unwrap();
    let secret = || {
        stage.build(&benchmark, |builder| {
            builder.database_secret(&seen.children[0].uid)
        })
    };
    let name = secret().name();
    let api = stage.api::<k8s_openapi::api::core::v1::Secret>();
    let mut passwords = Vec::new();
    for _ in 0..2 {
        let plan = creating(&benchmark, vec![secret()]);
        assert_eq!(stage.apply(&benchmark, plan).await.unwrap(), Applied::Done);
        let data = api.get(&name).await.unwrap().data.unwrap();
        passwords.push(data["password"].0.clone());
    }
    assert_eq!(passwords[0], passwords[1]);
    assert!(passwords[0].len() >= 16);
    let service: Service = stage.api().get(&seen.children[0].name).await.unwrap();
    assert_eq!(service.owner_references()[0].uid, benchmark.uid().unwrap());
}
