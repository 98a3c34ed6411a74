//! `controller`: whole passes, one after the other, with a kubelet that the test plays.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::Method;
use frugality_operator::{
    api::{
        FrugalityBenchmark, FrugalityTrace, FrugalityTrial, Outcome, Reason, Verdict, condition,
    },
    io::{
        controller::{PassContext, run},
        metrics::Metrics,
        probe::Prober,
        reader::Reader,
    },
    plan::names::{lock_name, run_id, trial_name},
    time::unix_seconds,
};
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    coordination::v1::Lease,
    core::v1::{Event, Pod, ResourceQuota, Secret, Service},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    cluster::{LATER_FIELD, create},
    kubelet::{Kubelet, SEEDED_ROWS},
    proxy::{Fault, Proxy},
    rights::may,
    server::User,
    stage::{Stage, next_second, until},
};

/// An operator's process; it is killed when it is dropped.
struct Operator([JoinHandle<()>; 2]);

impl Drop for Operator {
    fn drop(&mut self) {
        // A panic ends a task only, and not the test.
        let has_ended = self.0.iter().any(JoinHandle::is_finished);
        self.0.iter().for_each(JoinHandle::abort);
        assert!(
            std::thread::panicking() || !has_ended,
            "the operator has ended"
        );
    }
}

impl Operator {
    fn start(stage: &Stage) -> Self {
        Self::with(stage, stage.client.clone(), "operator-1")
    }

    fn with(stage: &Stage, client: Client, name: &str) -> Self {
        // A new process has no readings.
        let reader = Reader::new(stage.meter_port).unwrap();
        let context = PassContext::new(
            client,
            stage.places(),
            stage.config(),
            reader.clone(),
            Prober::new().unwrap(),
            Metrics::default(),
            Some(name.to_owned()),
        );
        Self([
            tokio::spawn(reader.run()),
            tokio::spawn(run(Arc::new(context))),
        ])
    }
}

impl Stage {
    async fn all<K>(&self) -> Vec<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = self.api();
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until the benchmark's status has this reason.
    async fn reason(&self, name: &str, reason: Reason) -> FrugalityBenchmark {
        until(reason.as_str(), || async {
            reason_of(&self.stored(name).await) == reason.as_str()
        })
        .await;
        self.stored(name).await
    }

    /// Waits until the attempts have these outcomes.
    async fn outcomes(&self, expected: &[Option<Outcome>]) {
        until(&format!("{expected:?}"), || async {
            let mut trials = self.all::<FrugalityTrial>().await;
            trials.sort_by_key(|trial| trial.spec.attempt);
            let found: Vec<_> = trials
                .iter()
                .map(|it| it.status.as_ref().and_then(|it| it.outcome))
                .collect();
            found == expected
        })
        .await;
    }

    /// Waits until these attempts and no others have a course.
    async fn courses(&self, expected: &[String]) {
        until("the course", || async {
            let traces = self.all::<FrugalityTrace>().await;
            traces
                .iter()
                .map(ResourceExt::name_any)
                .eq(expected.iter().cloned())
        })
        .await;
    }

    /// Waits until nothing of a run but the ledger is left.
    async fn is_empty(&self) {
        until("nothing is left", || async {
            let children = self.all::<Deployment>().await.len() + self.all::<Service>().await.len();
            let pods = self.all::<Pod>().await.len() - 1;
            children + pods + self.all::<Job>().await.len() + self.all::<Lease>().await.len() == 0
        })
        .await;
    }
}

fn reason_of(benchmark: &FrugalityBenchmark) -> String {
    let columns = benchmark.status.as_ref().and_then(|it| it.columns.as_ref());
    columns.and_then(|it| it.reason.clone()).unwrap_or_default()
}

fn condition_of(benchmark: &FrugalityBenchmark, kind: &str) -> String {
    let mut conditions = benchmark.status.iter().flat_map(|it| &it.conditions);
    conditions
        .find(|it| it.type_ == kind)
        .map_or_else(String::new, |it| it.status.clone())
}

/// The name of the first attempt.
fn first(benchmark: &FrugalityBenchmark) -> String {
    trial_name(&benchmark.name_any(), &run_id(benchmark), 1, "rust", 1)
}

async fn is_loaded(stage: &Stage) {
    until("the injector", || async {
        !stage.all::<Job>().await.is_empty()
    })
    .await;
}

/// During a long idle baseline, the operator makes a pass every 5 s if nothing changes.
#[tokio::test]
async fn a_pod_that_reaches_another_stage_starts_a_pass() {
    let stage = Stage::new().await;
    let trials = json!({ "blocks": 5, "seed": 7, "idleBaseline": "5m" });
    let benchmark = stage.benchmark("b", &[("trials", trials)]).await;
    let _kubelet = Kubelet::start(&stage);
    let _operator = Operator::start(&stage);
    until("the idle baseline", || async {
        let reported = stage.stored("b").await;
        let message = reported.status.and_then(|it| it.columns?.message);
        message.is_some_and(|it| it.ends_with("measuring the idle baseline"))
    })
    .await;
    let api = stage.api::<Pod>();
    let pod = format!("{}-1", first(&benchmark));
    let began = Instant::now();
    for number in 1..=5 {
        stage.proxy.forget();
        let container = json!({
            "name": "server", "image": "", "imageID": "", "ready": true, "restartCount": number,
            "state": { "running": {} },
        });
        let change = Patch::Merge(json!({ "status": { "containerStatuses": [container] } }));
        api.patch_status(&pod, &PatchParams::default(), &change)
            .await
            .unwrap();
        until("a pass", || async {
            let asked = stage.proxy.asked(&Method::GET, "/frugalitybenchmarks/b");
            !asked.is_empty()
        })
        .await;
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?} for five passes");
}

/// All watches pause together after an error of one of them. With kube-runtime's own pauses, of up to 30 s, ten errors would
/// take minutes.
#[tokio::test]
async fn a_refused_watch_of_pods_pauses_the_others_for_a_second() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let watch = "/pods?&watch";
    let refused = Fault::Answer(403, "no watch of pods");
    stage.proxy.fail(Method::GET, watch, usize::MAX, refused);
    let _operator = Operator::start(&stage);
    until("ten watches", || async {
        stage.proxy.asked(&Method::GET, watch).len() >= 10
    })
    .await;
    stage.benchmark("b", &[]).await;
    stage.reason("b", Reason::Measuring).await;
}

/// Locks, entry, server, baseline, load; a suspension under load; and the same run once more.
#[tokio::test]
async fn a_run_reaches_its_load_is_suspended_and_goes_on() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let _kubelet = Kubelet::start(&stage);
    let _operator = Operator::start(&stage);
    is_loaded(&stage).await;
    let mut locks: Vec<_> = stage
        .all::<Lease>()
        .await
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    let mut expected = [lock_name(&stage.measured), lock_name(&stage.injector)];
    locks.sort_unstable();
    expected.sort_unstable();
    assert_eq!(locks, expected);
    let trials = stage.all::<FrugalityTrial>().await;
    assert_eq!(trials[0].name_any(), first(&benchmark));
    let record = trials[0].status.as_ref().unwrap();
    assert!(
        record.idle_before.is_some(),
        "it is written before the injector starts"
    );
    let running = stage.reason("b", Reason::Measuring).await;
    assert_eq!(condition_of(&running, condition::COMPLETE), "False");
    assert_eq!(condition_of(&running, condition::RECONCILING), "True");

    stage.edit("b", json!({ "suspend": true })).await;
    stage.outcomes(&[Some(Outcome::Void)]).await;
    stage.is_empty().await;
    // The attempt is void, and its course shows the time until then.
    stage.courses(&[first(&benchmark)]).await;
    let suspended = stage.reason("b", Reason::Suspended).await;
    assert_eq!(condition_of(&suspended, condition::COMPLETE), "False");
    assert_eq!(condition_of(&suspended, condition::RECONCILING), "");
    let generation = suspended.metadata.generation;
    assert_eq!(suspended.status.unwrap().observed_generation, generation);

    stage.edit("b", json!({ "suspend": null })).await;
    stage.outcomes(&[Some(Outcome::Void), None]).await;
    let trials = stage.all::<FrugalityTrial>().await;
    assert!(
        trials
            .iter()
            .all(|trial| trial.spec.run == run_id(&benchmark))
    );
    let events: Vec<_> = stage
        .all::<Event>()
        .await
        .iter()
        .filter_map(|it| it.reason.clone())
        .collect();
    for reason in ["Measuring", "Suspended"] {
        assert!(events.iter().any(|it| it == reason), "{events:?}");
    }
}

/// Every kind of write and of list goes wrong once on the way.
#[tokio::test]
async fn a_run_reaches_its_load_though_every_write_goes_wrong_once() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    for (method, path, fault) in [
        (Method::POST, "/leases", Fault::LostAnswer),
        (
            Method::POST,
            "/leases",
            Fault::Answer(500, "etcdserver: request timed out"),
        ),
        (Method::POST, "/frugalitytrials", Fault::LostAnswer),
        (Method::PATCH, "/frugalitytrials", Fault::LostAnswer),
        (
            Method::PUT,
            "/status",
            Fault::Answer(409, "the object has been modified"),
        ),
        (Method::PUT, "/status", Fault::LostAnswer),
        (Method::POST, "/services", Fault::LostAnswer),
        (
            Method::POST,
            "/deployments",
            Fault::Busy {
                retry_after_seconds: 1,
            },
        ),
        (Method::POST, "/deployments", Fault::Answer(504, "timeout")),
        (Method::POST, "/jobs", Fault::LostAnswer),
        (Method::POST, "/events", Fault::Answer(403, "no")),
        (Method::GET, "/pods", Fault::Answer(500, "no leader")),
        (Method::GET, "/nodes", Fault::LostAnswer),
    ] {
        stage.proxy.fail(method, path, 1, fault);
    }
    let benchmark = stage.benchmark("b", &[]).await;
    let _operator = Operator::start(&stage);
    is_loaded(&stage).await;
    assert!(stage.proxy.is_through());
    // Nothing was made twice, and no attempt became void.
    stage.outcomes(&[None]).await;
    assert_eq!(stage.all::<Deployment>().await.len(), 1);
    assert_eq!(stage.all::<Lease>().await.len(), 2);
    assert_eq!(
        stage.all::<FrugalityTrial>().await[0].name_any(),
        first(&benchmark)
    );
}

/// The course of an attempt is made of readings in memory, which outlive a pass that goes wrong.
#[tokio::test]
async fn an_attempt_has_its_course_though_the_writes_of_its_end_go_wrong() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let _kubelet = Kubelet::start(&stage);
    let _operator = Operator::start(&stage);
    is_loaded(&stage).await;
    stage.reason("b", Reason::Measuring).await;
    let failed = Fault::Answer(500, "etcdserver: request timed out");
    for (method, path, fault) in [
        // The record is not written, then it is and only looks as if it were not.
        (Method::PATCH, "/frugalitytrials", failed),
        (Method::PATCH, "/frugalitytrials", Fault::LostAnswer),
        (Method::DELETE, "/jobs", failed),
        (Method::POST, "/frugalitytraces", failed),
        (Method::POST, "/frugalitytraces", failed),
    ] {
        stage.proxy.fail(method, path, 1, fault);
    }
    stage.edit("b", json!({ "suspend": true })).await;
    stage.courses(&[first(&benchmark)]).await;
    stage.is_empty().await;
    assert!(stage.proxy.is_through());
    stage.outcomes(&[Some(Outcome::Void)]).await;
    // It was stored seconds later, and ends with the attempt.
    let status = stage.all::<FrugalityTrial>().await.remove(0).status;
    let finished: Timestamp = status.unwrap().finished_at.unwrap().parse().unwrap();
    let phases = stage.all::<FrugalityTrace>().await.remove(0).spec.phases;
    let end = phases.last().unwrap().end_unix_seconds;
    assert!(end < unix_seconds(finished) + 0.5, "{end} {finished}");
}

/// The objects as the API server stores them, defaults included, are still taken for those that the operator made.
#[tokio::test]
async fn a_standalone_database_is_made_and_filled_before_the_load() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let database = json!({ "provider": "Standalone", "seed": { "contacts": SEEDED_ROWS } });
    let benchmark = stage.benchmark("b", &[("database", database)]).await;
    let _operator = Operator::start(&stage);
    until("the injector", || async {
        let jobs = stage.all::<Job>().await;
        jobs.iter().any(|job| job.name_any() == first(&benchmark))
    })
    .await;
    let servers = stage.all::<Deployment>().await;
    assert_eq!(servers.len(), 2, "the database and the candidate");
    let secrets = stage.all::<Secret>().await;
    let [secret] = &secrets[..] else {
        panic!("{secrets:?}")
    };
    let keys: Vec<&str> = secret
        .data
        .iter()
        .flat_map(BTreeMap::keys)
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        ["dbname", "host", "password", "port", "uri", "username"]
    );
    let owner = &secret.owner_references()[0];
    let services = stage.all::<Service>().await;
    assert!(
        services
            .iter()
            .any(|it| it.uid().as_ref() == Some(&owner.uid))
    );
    let jobs: Vec<Job> = stage.all::<Job>().await;
    assert_eq!(jobs.len(), 3, "the seed, the check and the injector");
}

/// The client itself waits for ever.
#[tokio::test]
async fn a_pass_without_an_answer_is_given_up_and_tried_again() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    stage.proxy.fail(Method::POST, "/leases", 1, Fault::Silence);
    stage.benchmark("b", &[]).await;
    let began = std::time::Instant::now();
    let _operator = Operator::start(&stage);
    until("the locks", || async {
        stage.all::<Lease>().await.len() == 2
    })
    .await;
    assert!(began.elapsed() > Duration::from_secs(25));
    stage.outcomes(&[None]).await;
}

#[tokio::test]
async fn two_operators_at_once_make_nothing_twice() {
    let stage = Stage::new().await;
    let other = Proxy::start(&stage.namespace).await;
    // Each has seen that the node is free before either takes it.
    let late = Fault::Late(Duration::from_secs(3));
    for proxy in [&stage.proxy, &other] {
        proxy.fail(Method::POST, "/leases", 1, late);
    }
    let _kubelet = Kubelet::start(&stage);
    stage.benchmark("b", &[]).await;
    let _first = Operator::start(&stage);
    let _second = Operator::with(&stage, other.client(User::Operator), "operator-2");
    is_loaded(&stage).await;
    assert_eq!(stage.all::<Lease>().await.len(), 2);
    assert_eq!(stage.all::<Deployment>().await.len(), 1);
    assert_eq!(stage.all::<FrugalityTrial>().await.len(), 1);
    assert_eq!(stage.stored("b").await.status.unwrap().verdict, None);
    let mut codes =
        [&stage.proxy, &other].map(|proxy| proxy.asked(&Method::POST, "/leases")[0].status);
    codes.sort_unstable();
    assert_eq!(codes, [Some(201), Some(409)]);
    // An event is named after what it says.
    let notes: Vec<_> = stage
        .all::<Event>()
        .await
        .into_iter()
        .map(|it| it.message)
        .collect();
    let mut distinct = notes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), notes.len(), "{notes:?}");
}

/// A window that was not read from end to end is void.
#[tokio::test]
async fn an_operator_that_is_restarted_under_load_ends_the_attempt_as_void() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    stage.benchmark("b", &[]).await;
    let operator = Operator::start(&stage);
    is_loaded(&stage).await;
    drop(operator);
    let _operator = Operator::start(&stage);
    stage.outcomes(&[Some(Outcome::Void), None]).await;
    let trials = stage.all::<FrugalityTrial>().await;
    let mut reasons = trials
        .iter()
        .filter_map(|it| it.status.as_ref()?.reason.clone());
    assert!(reasons.any(|it| it == Reason::ReadingsInterrupted.as_str()));
}

#[tokio::test]
async fn an_edit_that_changes_the_measurement_starts_another_run() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let _kubelet = Kubelet::start(&stage);
    let _operator = Operator::start(&stage);
    stage.outcomes(&[None]).await;
    let edited = stage
        .edit("b", json!({ "load": { "connections": 8 } }))
        .await;
    assert_ne!(run_id(&benchmark), run_id(&edited));
    let new = trial_name("b", &run_id(&edited), 1, "rust", 1);
    until("the new run's attempt", || async {
        stage
            .all::<FrugalityTrial>()
            .await
            .iter()
            .any(|it| it.name_any() == new)
    })
    .await;
    let api: Api<FrugalityTrial> = stage.api();
    let superseded = api.get(&first(&benchmark)).await.unwrap().status.unwrap();
    assert_eq!(superseded.outcome, Some(Outcome::Void));
    assert_eq!(
        superseded.reason.as_deref(),
        Some(Reason::Superseded.as_str())
    );
}

/// One that is in the way ends the run; another number in `rerun` starts the next run.
#[tokio::test]
async fn a_conflict_of_names_ends_a_run_and_a_rerun_keeps_its_verdict() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let _kubelet = Kubelet::start(&stage);
    let name = first(&benchmark);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": stage.namespace },
        "spec": { "ports": [{ "port": 80 }] },
    });
    create(&stage.admin, service).await;
    let _operator = Operator::start(&stage);
    let ended = stage.reason("b", Reason::NameConflict).await;
    let status = ended.status.as_ref().unwrap();
    assert_eq!(status.verdict, Some(Verdict::Error));
    assert_eq!(condition_of(&ended, condition::COMPLETE), "True");
    assert_eq!(condition_of(&ended, condition::STALLED), "True");
    let foreign: Service = stage.api().get(&name).await.unwrap();
    assert!(foreign.metadata.deletion_timestamp.is_none());
    until("the locks are free", || async {
        stage.all::<Lease>().await.is_empty()
    })
    .await;
    let reported = stage.all::<Event>().await.iter().any(|it| {
        it.type_.as_deref() == Some("Warning")
            && it.reason.as_deref() == Some(Reason::NameConflict.as_str())
    });
    assert!(reported);

    let again = stage.edit("b", json!({ "rerun": 2 })).await;
    let next = first(&again);
    until("the next run's server", || async {
        stage
            .all::<Deployment>()
            .await
            .iter()
            .any(|it| it.name_any() == next)
    })
    .await;
    let running = stage.reason("b", Reason::Measuring).await.status.unwrap();
    assert_eq!(running.verdict, None);
    let [past] = &running.history[..] else {
        panic!("{:?}", running.history)
    };
    assert_eq!(
        (past.verdict, &past.run),
        (Verdict::Error, &run_id(&benchmark))
    );
}

#[tokio::test]
async fn a_quota_is_waited_for() {
    waits_for_room("deployments.apps").await;
}

#[tokio::test]
async fn a_quota_without_room_for_the_ledger_is_waited_for() {
    waits_for_room("frugalitytrials.frugality.dev").await;
}

/// A run waits for a quota, says so, and goes on.
async fn waits_for_room(resource: &str) {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    stage.none_of(resource).await;
    stage.benchmark("b", &[]).await;
    let _operator = Operator::start(&stage);
    let waiting = stage.reason("b", Reason::QuotaExceeded).await;
    assert_eq!(condition_of(&waiting, condition::COMPLETE), "False");
    stage
        .api::<ResourceQuota>()
        .delete("small", &DeleteParams::default())
        .await
        .unwrap();
    stage.reason("b", Reason::Measuring).await;
    until("the server", || async {
        !stage.all::<Deployment>().await.is_empty()
    })
    .await;
    stage.outcomes(&[None]).await;
}

/// As by a policy engine, and by one that does not answer.
#[tokio::test]
async fn a_webhook_that_refuses_the_ledger_is_waited_for() {
    let silence = "Internal error occurred: failed calling webhook \"w\": no endpoints available";
    for (code, message) in [(400, "denied by a webhook"), (500, silence)] {
        let stage = Stage::new().await;
        let _kubelet = Kubelet::start(&stage);
        let refused = Fault::Answer(code, message);
        stage
            .proxy
            .fail(Method::POST, "/frugalitytrials", 2, refused);
        stage.benchmark("b", &[]).await;
        let _operator = Operator::start(&stage);
        let waiting = stage.reason("b", Reason::ChildRefused).await;
        assert_eq!(condition_of(&waiting, condition::COMPLETE), "False");
        stage.reason("b", Reason::Measuring).await;
        stage.outcomes(&[None]).await;
    }
}

/// Other benchmarks get the nodes. The end is in the ledger as soon as there is room.
#[tokio::test]
async fn a_run_without_room_in_its_ledger_ends_at_its_deadline() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    stage.none_of("frugalitytrials.frugality.dev").await;
    stage.benchmark("b", &[]).await;
    let _operator = Operator::start(&stage);
    stage.reason("b", Reason::QuotaExceeded).await;
    // As if its turn had begun years ago.
    let early = Patch::Merge(json!({ "spec": { "acquireTime": "2020-01-01T00:00:00.000000Z" } }));
    for lock in stage.all::<Lease>().await {
        stage
            .api::<Lease>()
            .patch(&lock.name_any(), &PatchParams::default(), &early)
            .await
            .unwrap();
    }
    let ended = stage.reason("b", Reason::DeadlineExceeded).await;
    assert_eq!(ended.status.unwrap().verdict, Some(Verdict::Error));
    until("no lock is held", || async {
        let locks = stage.all::<Lease>().await;
        locks.iter().all(|it| {
            it.spec
                .as_ref()
                .is_none_or(|it| it.holder_identity.is_none())
        })
    })
    .await;
    assert!(stage.all::<FrugalityTrial>().await.is_empty());
    stage
        .api::<ResourceQuota>()
        .delete("small", &DeleteParams::default())
        .await
        .unwrap();
    stage.outcomes(&[Some(Outcome::Failed)]).await;
    stage.reason("b", Reason::DeadlineExceeded).await;
}

/// It is reported once, on the benchmark itself.
#[tokio::test]
async fn a_benchmark_of_a_later_version_is_reported_on_itself_and_disturbs_no_other() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let later = stage.manifest("later", &[(LATER_FIELD, json!("x"))]);
    create(&stage.admin, later.clone()).await;
    stage.benchmark("b", &[]).await;
    let _operator = Operator::start(&stage);
    let api = super::cluster::api(&stage.admin, &later);
    let status = || async { api.get("later").await.unwrap().data["status"].clone() };
    until("the report", || async {
        status().await["verdict"] == json!("Invalid")
    })
    .await;
    let reported = status().await;
    assert_eq!(
        reported["columns"]["reason"],
        json!(Reason::InvalidSpec.as_str())
    );
    let complete = reported["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["type"] == condition::COMPLETE);
    let message: &Value = &complete.unwrap()["message"];
    assert!(message.as_str().unwrap().contains(LATER_FIELD), "{message}");
    stage.outcomes(&[None]).await;
    let puts = stage
        .proxy
        .asked(&Method::PUT, "/frugalitybenchmarks/later/status");
    assert_eq!(puts.len(), 1);
}

/// Two benchmarks on the same nodes, in the order of their creation.
#[tokio::test]
async fn a_younger_benchmark_waits_and_has_its_turn_when_the_older_one_is_deleted() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let older = stage.benchmark("older", &[]).await;
    next_second().await;
    let younger = stage.benchmark("younger", &[]).await;
    let _operator = Operator::start(&stage);
    let waiting = stage.reason("younger", Reason::Queued).await;
    let trial = |benchmark: &FrugalityBenchmark| first(benchmark);
    let api: Api<FrugalityTrial> = stage.api();
    until("the older one's attempt", || async {
        api.get_opt(&trial(&older)).await.unwrap().is_some()
    })
    .await;
    let message = waiting.status.unwrap().columns.unwrap().message.unwrap();
    assert!(
        message.contains(&format!("{}/older", stage.namespace)),
        "{message}"
    );
    assert!(api.get_opt(&trial(&younger)).await.unwrap().is_none());
    stage
        .api::<FrugalityBenchmark>()
        .delete("older", &DeleteParams::default())
        .await
        .unwrap();
    until("the younger one's attempt", || async {
        api.get_opt(&trial(&younger)).await.unwrap().is_some()
    })
    .await;
    let holder = stage.all::<Lease>().await[0]
        .spec
        .clone()
        .unwrap()
        .holder_identity
        .unwrap();
    assert!(holder.starts_with(&younger.uid().unwrap()), "{holder}");
}

/// One that waits for its turn costs no request, until the lock of its node is released.
#[tokio::test]
async fn a_waiting_benchmark_is_left_alone_until_its_node_is_free() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    stage.benchmark("older", &[]).await;
    next_second().await;
    let younger = stage.benchmark("younger", &[]).await;
    let _operator = Operator::start(&stage);
    stage.reason("younger", Reason::Queued).await;
    is_loaded(&stage).await;
    // The pass that finds its status written.
    tokio::time::sleep(Duration::from_secs(3)).await;
    stage.proxy.forget();
    let uid = younger.uid().unwrap();
    let passes = || {
        let lists = stage.proxy.asked(&Method::GET, "/deployments?");
        lists.iter().filter(|it| it.path.contains(&uid)).count()
    };
    tokio::time::sleep(Duration::from_secs(12)).await;
    let few = passes();
    assert!(few <= 1, "{few} passes");
    // Just after the pass that it has in any case, the next one of these is half a minute away.
    until("the round", || async { passes() > few }).await;

    let began = std::time::Instant::now();
    stage.edit("older", json!({ "suspend": true })).await;
    let api: Api<FrugalityTrial> = stage.api();
    until("the younger one's attempt", || async {
        api.get_opt(&first(&younger)).await.unwrap().is_some()
    })
    .await;
    let seconds = began.elapsed().as_secs();
    assert!(seconds < 20, "{seconds} s");
}

#[tokio::test]
async fn the_lock_of_a_benchmark_that_is_gone_is_removed_when_the_operator_starts() {
    let stage = Stage::new().await;
    let lease = |name: &str, label: &str| {
        json!({
            "metadata": { "name": name, "labels": { "frugality.dev/lock": label } },
            "spec": { "holderIdentity": format!("gone {}/gone", stage.namespace) },
        })
    };
    for lease in [lease("ours", "node"), lease("another-s", "other")] {
        let lease: Lease = serde_json::from_value(lease).unwrap();
        stage
            .api()
            .create(&PostParams::default(), &lease)
            .await
            .unwrap();
    }
    let _operator = Operator::start(&stage);
    until("it is removed", || async {
        stage.all::<Lease>().await.len() == 1
    })
    .await;
    assert_eq!(stage.all::<Lease>().await[0].name_any(), "another-s");
    let asked = stage.proxy.asked(&Method::DELETE, "/leases/ours");
    assert!(asked[0].body["preconditions"]["resourceVersion"].is_string());
}

/// Without a change there is no write: a status that changes on every pass would be a loop.
#[tokio::test]
async fn a_suspended_benchmark_is_written_once_and_left_alone() {
    let stage = Stage::new().await;
    stage.benchmark("b", &[("suspend", json!(true))]).await;
    let _operator = Operator::start(&stage);
    until("the event", || async {
        !stage.all::<Event>().await.is_empty()
    })
    .await;
    stage.proxy.forget();
    let again = json!({ "metadata": { "annotations": { "touched": "yes" } } });
    let touch = kube::api::Patch::Merge(again);
    let api: Api<FrugalityBenchmark> = stage.api();
    api.patch("b", &kube::api::PatchParams::default(), &touch)
        .await
        .unwrap();
    until("another pass", || async {
        !stage.proxy.asked(&Method::GET, "/nodes").is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.proxy.writes(), [""; 0]);
}

/// Takes the operator's rights in the namespace away. Returns what gives them back.
async fn without_rights(stage: &Stage) -> RoleBinding {
    let bindings = stage.api::<RoleBinding>();
    let binding = bindings.get("frugality-operator-runs").await.unwrap();
    let delete = DeleteParams::default();
    bindings.delete(&binding.name_any(), &delete).await.unwrap();
    until("the rights are gone", || async {
        let create = "create frugalitytrials.frugality.dev";
        !may(create, Some(&stage.namespace)).await
    })
    .await;
    RoleBinding {
        metadata: ObjectMeta {
            name: binding.metadata.name.clone(),
            ..ObjectMeta::default()
        },
        ..binding
    }
}

async fn give_back(stage: &Stage, rights: &RoleBinding) {
    let bindings = stage.api::<RoleBinding>();
    bindings
        .create(&PostParams::default(), rights)
        .await
        .unwrap();
}

/// Where the chart gives no rights, the operator says so and tries no write. Once it has them, the run begins.
#[tokio::test]
async fn a_run_waits_for_rights_in_its_namespace_and_begins_with_them() {
    let stage = Stage::new().await;
    let _kubelet = Kubelet::start(&stage);
    let rights = without_rights(&stage).await;
    stage.benchmark("b", &[]).await;
    let _operator = Operator::start(&stage);
    let waiting = stage.reason("b", Reason::NamespaceNotAllowed).await;
    assert_eq!(condition_of(&waiting, condition::COMPLETE), "False");
    let message = waiting.status.unwrap().columns.unwrap().message.unwrap();
    assert!(message.contains(&stage.namespace), "{message}");
    assert!(message.contains("benchmarkNamespaces"), "{message}");
    give_back(&stage, &rights).await;
    is_loaded(&stage).await;
}

/// The operator may write the status of benchmarks in every namespace, so it can still report the missing right.
#[tokio::test]
async fn a_run_that_loses_its_rights_says_so_and_continues_with_them() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let _kubelet = Kubelet::start(&stage);
    let _operator = Operator::start(&stage);
    is_loaded(&stage).await;
    let rights = without_rights(&stage).await;
    // The void attempt can't be recorded.
    stage.edit("b", json!({ "suspend": true })).await;
    let stopped = stage.reason("b", Reason::NamespaceNotAllowed).await;
    assert_eq!(condition_of(&stopped, condition::COMPLETE), "False");
    let message = stopped.status.unwrap().columns.unwrap().message.unwrap();
    assert!(message.contains("delete the benchmark"), "{message}");
    stage.outcomes(&[None]).await;
    // It asks for its rights, and tries no write. The second question shows that the pass of the first one has ended.
    stage.proxy.forget();
    until("two more questions", || async {
        let reviews = "/selfsubjectaccessreviews";
        stage.proxy.asked(&Method::POST, reviews).len() > 1
    })
    .await;
    let trials = format!("/frugalitytrials/{}", first(&benchmark));
    assert!(stage.proxy.asked(&Method::PATCH, &trials).is_empty());
    give_back(&stage, &rights).await;
    stage.outcomes(&[Some(Outcome::Void)]).await;
    stage.is_empty().await;
    stage.reason("b", Reason::Suspended).await;
}
