//! `observe`: what is read, and what becomes of an API server that does not answer.

use axum::http::Method;
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, LABEL_BENCHMARK_UID},
    io::observe::Remembered,
    plan::names::lock_name,
};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{
    cluster::{LATER_FIELD, LATER_OUTCOME, create},
    proxy::Fault,
    server::{User, server},
    stage::{Stage, locking},
};

#[tokio::test]
async fn a_pass_sees_the_nodes_the_meter_and_nothing_of_its_own_yet() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let seen = stage.observe(&benchmark).await.unwrap();
    let node = |name: &str| seen.nodes.iter().find(|node| node.name == name).unwrap();
    let measured = node(&stage.measured);
    assert_eq!(
        (measured.schedulable, measured.meter_ip.as_deref()),
        (true, Some("127.0.0.1"))
    );
    assert_eq!(node(&stage.injector).meter_ip, None);
    assert!(seen.cloud_native_pg_installed);
    assert!(seen.operator_ahead_seconds.abs() < 2.0);
    assert!(seen.children.is_empty() && seen.pods.is_empty() && seen.trials.is_empty());
}

/// Each of these is needed for a decision: without one, nothing is decided.
#[tokio::test]
async fn a_pass_that_cannot_read_one_thing_says_which() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    for (path, what) in [
        ("/version", "the API server's time"),
        ("/frugalitytrials", "trials"),
        ("labelSelector=app%3Dmeter", "meters"),
        ("/daemonsets/frugality-meter", "the meters' DaemonSets"),
        ("/nodes", "nodes"),
        ("/leases", "locks"),
        ("/deployments", "children"),
        ("/services", "services"),
        ("/jobs", "children"),
        ("/clusters", "CloudNativePG clusters"),
    ] {
        for fault in [Fault::Answer(403, "refused"), Fault::LostAnswer] {
            // A refusal has the API server's time as well.
            if path == "/version" && matches!(fault, Fault::Answer(..)) {
                continue;
            }
            stage.proxy.fail(Method::GET, path, 1, fault);
            let seen = stage.observe(&benchmark).await;
            let error = seen.err().map(|it| it.to_string()).unwrap_or_default();
            assert!(
                error.starts_with(&format!("cannot read {what}:")),
                "{path}: {error}"
            );
        }
    }
    assert!(stage.proxy.is_through());
    stage.observe(&benchmark).await.unwrap();
}

#[tokio::test]
async fn a_cluster_without_cloud_native_pg_is_seen_as_such() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage.proxy.fail(
        Method::GET,
        "/clusters",
        1,
        Fault::Answer(404, "the server could not find the requested resource"),
    );
    assert!(
        !stage
            .observe(&benchmark)
            .await
            .unwrap()
            .cloud_native_pg_installed
    );
}

#[tokio::test]
async fn an_api_server_that_is_busy_is_asked_again() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let busy = Fault::Busy {
        retry_after_seconds: 1,
    };
    stage.proxy.fail(Method::GET, "/nodes", 1, busy);
    assert!(!stage.observe(&benchmark).await.unwrap().nodes.is_empty());
    assert_eq!(stage.proxy.asked(&Method::GET, "/nodes").len(), 2);
}

#[tokio::test]
async fn an_entry_of_a_later_version_is_reported_and_hides_no_other() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    for name in ["first", "later"] {
        let plan = stage.opening(&benchmark, name);
        stage.apply(&benchmark, plan).await.unwrap();
    }
    let patch = Patch::Merge(json!({ "status": { "outcome": LATER_OUTCOME } }));
    let api = Api::<FrugalityTrial>::namespaced(stage.admin.clone(), &stage.namespace);
    // The answer can't be read either.
    _ = api
        .patch_status("later", &PatchParams::default(), &patch)
        .await;
    let seen = stage.observe(&benchmark).await.unwrap();
    let names: Vec<_> = seen.trials.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["first"]);
    let [unreadable] = &seen.unreadable[..] else {
        panic!("{:?}", seen.unreadable)
    };
    assert_eq!(unreadable.name, "later");
    assert_eq!(unreadable.run, Some(seen.trials[0].spec.run.clone()));
    assert!(
        unreadable.error.contains(LATER_OUTCOME),
        "{}",
        unreadable.error
    );
}

#[tokio::test]
async fn other_benchmarks_are_peers_and_one_of_a_later_version_wants_nothing() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    stage
        .benchmark("suspended", &[("suspend", json!(true))])
        .await;
    stage.benchmark("waiting", &[]).await;
    let later = stage.manifest("later", &[(LATER_FIELD, json!("x"))]);
    super::cluster::create(&stage.admin, later).await;
    let seen = stage.observe(&benchmark).await.unwrap();
    let mut peers: Vec<_> = seen
        .peers
        .iter()
        .map(|it| (it.name.as_str(), it.rests, it.request.is_some()))
        .collect();
    peers.sort_unstable();
    let name = |name: &str| format!("{}/{name}", stage.namespace);
    let (later, suspended, waiting) = (name("later"), name("suspended"), name("waiting"));
    assert_eq!(
        peers,
        [
            (later.as_str(), false, false),
            (&suspended, true, true),
            (&waiting, false, true)
        ]
    );
}

/// The list of benchmarks may be older than the lock. Here it lacks the benchmarks of another namespace.
#[tokio::test]
async fn the_holder_of_a_lock_is_asked_for_by_name_and_one_that_is_gone_holds_nothing() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let elsewhere = Stage::new().await;
    let listed = stage.benchmark("listed", &[]).await;
    let holder = elsewhere.benchmark("holder", &[]).await;
    let plan = locking(&listed, &stage.measured, None);
    stage.apply(&listed, plan).await.unwrap();
    let name = format!("{}/holder", elsewhere.namespace);
    let identity = format!("{} {name}", holder.uid().unwrap());
    let lease = json!({
        "metadata": { "name": lock_name("another"), "labels": { "frugality.dev/lock": "node" } },
        "spec": { "holderIdentity": identity },
    });
    let lease: Lease = serde_json::from_value(lease).unwrap();
    stage
        .api()
        .create(&PostParams::default(), &lease)
        .await
        .unwrap();
    let peers = async || {
        let seen = stage.observe(&benchmark).await.unwrap();
        assert_eq!(seen.locks.len(), 2);
        let peers = seen.peers.into_iter().map(|peer| peer.name.clone());
        peers.collect::<Vec<String>>()
    };
    let of_list = format!("{}/listed", stage.namespace);
    assert_eq!(peers().await, [of_list.clone(), name]);
    elsewhere
        .api::<FrugalityBenchmark>()
        .delete("holder", &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(peers().await, [of_list]);
    let codes = |namespace: &str, name: &str| {
        let path = format!("/namespaces/{namespace}/frugalitybenchmarks/{name}?");
        let asked = stage.proxy.asked(&Method::GET, &path).into_iter();
        asked.map(|it| it.status).collect::<Vec<_>>()
    };
    assert_eq!(
        codes(&elsewhere.namespace, "holder"),
        [Some(200), Some(404)]
    );
    assert!(codes(&stage.namespace, "listed").is_empty());
}

/// Labels can be copied. A pod counts if its controller is an object of the benchmark.
#[tokio::test]
async fn a_pod_with_a_copied_label_is_not_the_benchmark_s() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let api = stage.api::<Pod>();
    let pod = |name: &str, uid: &str, owner: Option<&str>| {
        let owner = owner.map(|kind| {
            json!([{ "apiVersion": "apps/v1", "kind": kind, "name": "attempt-1", "uid": "unknown", "controller": true }])
        });
        json!({
            "metadata": { "name": name, "labels": { LABEL_BENCHMARK_UID: uid }, "ownerReferences": owner },
            "spec": { "containers": [{ "name": "c", "image": "i" }], "nodeName": stage.measured },
        })
    };
    let uid = benchmark.uid().unwrap();
    let create = async |pods: Vec<Value>| {
        for pod in pods {
            let pod: Pod = serde_json::from_value(pod).unwrap();
            api.create(&PostParams::default(), &pod).await.unwrap();
        }
    };
    create(vec![
        pod("bare", &uid, None),
        pod("of-another-set", &uid, Some("ReplicaSet")),
        pod("foreign", "another", Some("ReplicaSet")),
    ])
    .await;
    let seen = stage.observe(&benchmark).await.unwrap();
    assert!(seen.pods.is_empty(), "{:?}", seen.pods);
    let [foreign] = &seen.foreign_pods[..] else {
        panic!("{:?}", seen.foreign_pods)
    };
    assert_eq!(foreign.name, format!("{}/foreign", stage.namespace));
    assert_eq!(foreign.node.as_ref(), Some(&stage.measured));

    // A benchmark that the operator does not know yet, and whose pod exists. No benchmark has the other pod's UID.
    let unknown = stage.benchmark("unknown", &[]).await;
    let its = pod("its", &unknown.uid().unwrap(), Some("ReplicaSet"));
    create(vec![its]).await;
    let seen = stage.observe_with(&benchmark, vec![]).await.unwrap();
    let peers: Vec<_> = seen.peers.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(peers, [format!("{}/unknown", stage.namespace)]);
}

/// Without a proxy, and so of the whole cluster.
#[tokio::test]
async fn the_operator_s_own_rights_suffice_for_all_that_it_reads() {
    let (mut stage, benchmark) = Stage::with_benchmark().await;
    stage.client = server().client(User::Operator);
    let seen = stage.observe(&benchmark).await.unwrap();
    assert!(seen.nodes.iter().any(|node| node.name == stage.measured));
    stage.client = server().client(User::Editor);
    let error = stage.observe(&benchmark).await.unwrap_err().to_string();
    assert!(error.contains("forbidden"), "{error}");
}

/// The addresses of the last pass's Services are read together with everything else, those of others after it.
#[tokio::test]
async fn addresses_of_the_services_that_exist_now_are_read_whatever_the_last_pass_saw() {
    let (stage, benchmark) = Stage::with_benchmark().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "server", "namespace": stage.namespace,
            "labels": { LABEL_BENCHMARK_UID: benchmark.uid() },
        },
        "spec": { "ports": [{ "port": 80 }] },
    });
    create(&stage.admin, service).await;
    for name in ["server", "other"] {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "namespace": stage.namespace,
                "labels": { "kubernetes.io/service-name": name },
            },
            "addressType": "IPv4", "endpoints": [{ "addresses": ["10.1.0.1"] }], "ports": [],
        });
        create(&stage.admin, slice).await;
    }
    for (last, requests) in [
        (&[][..], 1),
        (&["server"], 1),
        (&["other"], 2),
        (&["server", "other"], 2),
    ] {
        stage.proxy.forget();
        let remembered = Remembered {
            services: last.iter().map(|&name| name.to_owned()).collect(),
            ..Remembered::default()
        };
        let seen = stage.observe_after(&benchmark, Vec::new(), remembered);
        let seen = seen.await.unwrap();
        let services: Vec<_> = seen
            .endpoints
            .iter()
            .map(|it| it.service.as_str())
            .collect();
        assert_eq!(services, ["server"], "after {last:?}");
        let asked = stage.proxy.asked(&Method::GET, "/endpointslices");
        assert_eq!(asked.len(), requests, "after {last:?}");
    }
}
