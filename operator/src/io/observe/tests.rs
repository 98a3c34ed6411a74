//! Facts from objects as the API server returns them.

use super::*;
use crate::io::observe::pods::crashes;
use crate::io::observe::pods::unschedulable;
use crate::plan::facts::placement::HOSTNAME_LABEL;
use k8s_openapi::api::core::v1::Toleration;
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn a_foreign_pod_is_where_it_runs_or_where_its_selector_points() {
    let node = NodeFacts {
        name: "pi-1".into(),
        schedulable: true,
        labels: BTreeMap::from([(HOSTNAME_LABEL.to_owned(), "host-1".to_owned())]),
        meter_ip: None,
        machine: None,
    };
    let on = |spec: serde_json::Value| {
        let pod = json!({ "metadata": { "name": "p", "namespace": "lab" }, "spec": spec });
        foreign_pod(
            &serde_json::from_value(pod).unwrap(),
            std::slice::from_ref(&node),
        )
    };
    let containers = json!([]);
    let scheduled = on(json!({ "containers": containers, "nodeName": "pi-2" }));
    assert_eq!(scheduled.node.as_deref(), Some("pi-2"));
    assert_eq!(scheduled.name, "lab/p");
    let selector = json!({ HOSTNAME_LABEL: "host-1" });
    let waiting = on(json!({ "containers": containers, "nodeSelector": selector }));
    assert_eq!(waiting.node.as_deref(), Some("pi-1"));
    let selector = json!({ HOSTNAME_LABEL: "gone" });
    let lost = on(json!({ "containers": containers, "nodeSelector": selector }));
    assert_eq!(lost.node.as_deref(), Some("gone"));
    assert_eq!(on(json!({ "containers": containers })).node, None);
}

#[test]
fn a_tainted_node_takes_part_if_the_pods_tolerate_its_taint() {
    let takes_part = |taint: &serde_json::Value, tolerations: &serde_json::Value| {
        let node = json!({
            "metadata": { "name": "pi-1" },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations.clone()).unwrap();
        node_facts(&serde_json::from_value(node).unwrap(), &[], &tolerations).schedulable
    };
    let measured =
        json!({ "key": "frugality.dev/role", "value": "measured", "effect": "NoSchedule" });
    for (tolerations, expected) in [
        (json!([]), false),
        (
            json!([{ "key": "frugality.dev/role", "operator": "Exists" }]),
            true,
        ),
        (
            json!([{ "key": "frugality.dev/role", "value": "measured" }]),
            true,
        ),
        (
            json!([{ "key": "frugality.dev/role", "value": "other" }]),
            false,
        ),
        (json!([{ "key": "other", "operator": "Exists" }]), false),
        (json!([{ "operator": "Exists" }]), true),
        (
            json!([{ "operator": "Exists", "effect": "NoExecute" }]),
            false,
        ),
        (
            json!([{ "operator": "Exists", "tolerationSeconds": 300 }]),
            false,
        ),
    ] {
        assert_eq!(
            takes_part(&measured, &tolerations),
            expected,
            "{tolerations}"
        );
    }
    let preferred = json!({ "key": "a", "effect": "PreferNoSchedule" });
    assert!(takes_part(&preferred, &json!([])));
}

#[test]
fn a_deployment_says_why_its_pods_cannot_be_created() {
    let of = |conditions: serde_json::Value| {
        let object = json!({ "metadata": { "name": "d" }, "status": { "conditions": conditions } });
        deployment(&serde_json::from_value(object).unwrap()).pods_refused
    };
    let message = "pods \"d-1\" is forbidden: exceeded quota: small, requested: pods=1";
    let failure = |status: &str| {
        json!([
            { "type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable" },
            { "type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": message },
        ])
    };
    assert_eq!(
        of(failure("True")),
        Some(format!("FailedCreate: {message}"))
    );
    assert_eq!(of(failure("False")), None);
}

#[test]
fn an_evicted_pod_says_why() {
    let of = |status: serde_json::Value| {
        let pod = json!({ "metadata": { "name": "p" }, "status": status });
        pod_facts(&serde_json::from_value(pod).unwrap()).evicted
    };
    // Statuses as a kubelet under memory pressure and an eviction by the API server write them.
    let pressure = json!({
        "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
        "conditions": [{ "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet" }],
    });
    let said = "Evicted: The node was low on resource: memory.";
    assert_eq!(of(pressure).as_deref(), Some(said));
    let drained = json!({
        "phase": "Running",
        "conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }],
    });
    let said = "EvictionByEvictionAPI: Eviction API: evicting";
    assert_eq!(of(drained).as_deref(), Some(said));
    assert_eq!(of(json!({ "phase": "Failed" })), None);
    assert_eq!(of(json!({ "phase": "Running", "conditions": [] })), None);
}

/// An API server whose clock is three minutes behind. One lock has a holder that the list of benchmarks does
/// not show yet. Another lock has a holder that is gone.
async fn answer(uri: axum::http::Uri) -> axum::response::Response {
    use axum::response::IntoResponse;
    let lease = |name: &str, holder: &str| {
        json!({
            "metadata": { "name": name, "resourceVersion": "7" },
            "spec": { "holderIdentity": holder },
        })
    };
    let benchmark = |name: &str, uid: &str| {
        json!({
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityBenchmark",
            "metadata": { "name": name, "namespace": "lab", "uid": uid },
            "spec": { "candidates": [] },
        })
    };
    let one = "/apis/frugality.dev/v1alpha1/namespaces/lab/frugalitybenchmarks/";
    let (status, body) = match uri.path() {
        "/apis/coordination.k8s.io/v1/namespaces/system/leases" => (
            200,
            json!({ "metadata": {}, "items": [
                lease("a", "new-uid lab/new"), lease("b", "new-uid lab/new"),
                lease("c", "old-uid lab/again"), lease("d", "gone-uid lab/gone"),
            ] }),
        ),
        path if path == format!("{one}new") => (200, benchmark("new", "new-uid")),
        // Deleted and created again.
        path if path == format!("{one}again") => (200, benchmark("again", "young-uid")),
        path if path.starts_with(one) => (
            404,
            json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404 }),
        ),
        _ => (200, json!({ "metadata": {}, "items": [] })),
    };
    let date = Timestamp::now() - jiff::SignedDuration::from_secs(180);
    let date = jiff::fmt::rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&date)
        .unwrap();
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    (status, [(DATE, date)], body.to_string()).into_response()
}

/// An observation of one benchmark through a false API server.
async fn observe_through(router: axum::Router) -> Result<Observed, ObserveError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(axum::serve(listener, router).into_future());
    let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
    let places = Places {
        namespace: "system".into(),
        meter_namespace: "system".into(),
        meter_selector: "a=b".into(),
        meter_daemon_sets: Vec::new(),
        tolerations: Vec::new(),
    };
    let benchmark = json!({
        "metadata": { "name": "mine", "namespace": "lab", "uid": "my-uid" },
        "spec": { "candidates": [] },
    });
    let benchmark: FrugalityBenchmark = serde_json::from_value(benchmark).unwrap();
    let reader = Reader::new(0).unwrap();
    let seen = observe(
        &client,
        &places,
        &reader,
        &benchmark,
        vec![],
        Remembered::default(),
    );
    let seen = Box::pin(seen).await;
    server.abort();
    seen
}

#[tokio::test]
async fn a_lock_is_free_only_if_its_holder_is_gone_and_the_api_servers_clock_counts() {
    let seen = observe_through(axum::Router::new().fallback(answer))
        .await
        .unwrap();
    let peers: Vec<_> = seen.peers.iter().map(|peer| peer.uid.as_str()).collect();
    assert_eq!((peers, seen.locks.len()), (vec!["new-uid"], 4));
    let ahead = seen.operator_ahead_seconds;
    assert!((178.0..=182.0).contains(&ahead), "{ahead}");
}

#[tokio::test]
async fn an_api_server_without_a_time_is_an_error_and_not_one_with_the_operators_time() {
    let dateless = async |uri: axum::http::Uri| {
        let mut response = answer(uri).await;
        // The library adds a date to an answer without one.
        response
            .headers_mut()
            .insert(DATE, axum::http::HeaderValue::from_static("soon"));
        response
    };
    let error = observe_through(axum::Router::new().fallback(dateless))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the API server's time") && text.contains("no readable Date header"),
        "{text}"
    );
}

#[test]
fn a_crash_counts_at_once_and_the_end_of_an_init_container_is_no_crash() {
    let crashes = |init: serde_json::Value, main: serde_json::Value| {
        let status = json!({
            "initContainerStatuses": [{ "name": "runner", "image": "", "imageID": "", "ready": true,
                "restartCount": 0, "state": init }],
            "containerStatuses": [main],
        });
        crashes(&serde_json::from_value(status).unwrap())
    };
    let main = |restarts: i32, state: serde_json::Value| {
        json!({ "name": "server", "image": "", "imageID": "", "ready": false,
            "restartCount": restarts, "state": state })
    };
    let end = |code: i32| json!({ "terminated": { "exitCode": code } });
    let running = || json!({ "running": {} });
    let back_off = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
    let creating = json!({ "waiting": { "reason": "ContainerCreating" } });
    assert_eq!(crashes(end(0), main(0, creating.clone())), 0);
    assert_eq!(crashes(end(0), main(0, running())), 0);
    // A server must not end, so a successful end counts too.
    assert_eq!(crashes(end(0), main(0, end(0))), 1);
    assert_eq!(crashes(end(0), main(1, running())), 1);
    assert_eq!(crashes(end(0), main(1, end(1))), 2);
    assert_eq!(crashes(end(0), main(1, back_off)), 2);
    assert_eq!(crashes(end(3), main(0, creating)), 1);
}

#[test]
fn a_pod_without_a_node_says_why() {
    let why = "0/2 nodes are available: 2 Insufficient memory.";
    let status = json!({ "conditions": [
        { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why },
    ] });
    assert_eq!(
        unschedulable(&serde_json::from_value(status).unwrap()).as_deref(),
        Some(why)
    );
}

#[test]
fn an_unreadable_benchmark_keeps_its_name_and_waits_for_nothing() {
    let broken = json!({
        "apiVersion": "frugality.dev/v1alpha1",
        "kind": "FrugalityBenchmark",
        "metadata": { "name": "b", "namespace": "lab", "uid": "u" },
        "spec": { "candidates": 5 },
    });
    let peer = peer(&serde_json::from_value(broken).unwrap());
    assert_eq!((peer.name.as_str(), peer.uid.as_str()), ("lab/b", "u"));
    assert_eq!((&peer.request, peer.rests), (&None, false));
}
