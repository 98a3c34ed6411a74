//! Finds the pods of the installed meters.

use std::collections::BTreeSet;

use futures::{future::try_join_all, try_join};
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use tracing::warn;

use crate::io::observe::{
    pods::controller,
    reading::{ObserveError, Places, list},
};

/// The pods of the meters' DaemonSets. A label alone is not enough, because labels can be copied. Otherwise a user
/// who may create pods in the namespace could choose the joules of a node.
pub(super) async fn pods(client: &Client, places: &Places) -> Result<Vec<Pod>, ObserveError> {
    let labelled = Api::<Pod>::namespaced(client.clone(), &places.meter_namespace);
    let selector = ListParams::default().labels(&places.meter_selector);
    let (daemon_sets, pods) = try_join!(
        daemon_sets(client, places),
        list("meters", &labelled, &selector)
    )?;
    Ok(pods
        .into_iter()
        .filter(|pod| is_of(&daemon_sets, pod))
        .collect())
}

/// UIDs of the DaemonSets that exist.
async fn daemon_sets(client: &Client, places: &Places) -> Result<BTreeSet<String>, ObserveError> {
    let api = Api::<DaemonSet>::namespaced(client.clone(), &places.meter_namespace);
    let found = try_join_all(
        places
            .meter_daemon_sets
            .iter()
            .map(|name| api.get_metadata_opt(name)),
    );
    let found = found.await.map_err(|source| ObserveError {
        what: "the meters' DaemonSets",
        source,
    })?;
    for (name, found) in places.meter_daemon_sets.iter().zip(&found) {
        if found.is_none() {
            warn!(
                namespace = places.meter_namespace,
                name, "the DaemonSet of this meter does not exist"
            );
        }
    }
    Ok(found
        .iter()
        .flatten()
        .filter_map(ResourceExt::uid)
        .collect())
}

fn is_of(daemon_sets: &BTreeSet<String>, pod: &Pod) -> bool {
    controller(pod)
        .is_some_and(|owner| owner.kind == "DaemonSet" && daemon_sets.contains(&owner.uid))
}

#[cfg(test)]
mod tests {
    use axum::{Router, routing::get};
    use kube::Config;
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, owner: Option<(&str, &str)>) -> Value {
        let owners = owner.map(|(kind, uid)| {
            json!([{ "apiVersion": "apps/v1", "kind": kind, "name": "frugality-meter", "uid": uid, "controller": true }])
        });
        json!({ "metadata": { "name": name, "ownerReferences": owners } })
    }

    /// Names of the pods that count as meters, if the API server has these pods.
    async fn counted(pods: Value, daemon_sets: &[&str]) -> Vec<String> {
        let ours = "/apis/apps/v1/namespaces/frugality-system/daemonsets/frugality-meter";
        let daemon_set = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": { "name": "frugality-meter", "uid": "ours" },
        });
        let list = json!({ "metadata": {}, "items": pods }).to_string();
        let router = Router::new()
            .route(ours, get(async move || daemon_set.to_string()))
            .route(
                "/api/v1/namespaces/frugality-system/pods",
                get(async move || list),
            )
            .fallback(async || {
                let status = json!({ "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found" });
                (axum::http::StatusCode::NOT_FOUND, status.to_string())
            });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(axum::serve(listener, router).into_future());
        let client = Client::try_from(Config::new(url.parse().unwrap())).unwrap();
        let places = Places {
            namespace: "frugality-system".into(),
            meter_namespace: "frugality-system".into(),
            meter_selector: "app.kubernetes.io/name=frugality-meter".into(),
            meter_daemon_sets: daemon_sets.iter().map(|&name| name.to_owned()).collect(),
            tolerations: Vec::new(),
        };
        let pods = super::pods(&client, &places).await.unwrap();
        server.abort();
        pods.iter().map(ResourceExt::name_any).collect()
    }

    #[tokio::test]
    async fn only_pods_of_the_installed_daemon_set_are_meters() {
        let pods = json!([
            pod("meter", Some(("DaemonSet", "ours"))),
            pod("bare", None),
            pod("of-a-namesake", Some(("DaemonSet", "theirs"))),
            pod("of-a-deployment", Some(("ReplicaSet", "ours"))),
        ]);
        assert_eq!(counted(pods, &["frugality-meter"]).await, ["meter"]);
    }

    #[tokio::test]
    async fn a_daemon_set_that_is_missing_has_no_pods_and_hides_no_others() {
        let pods = json!([pod("meter", Some(("DaemonSet", "ours"))), pod("bare", None)]);
        let both = ["frugality-meter-ina", "frugality-meter"];
        assert_eq!(counted(pods.clone(), &both).await, ["meter"]);
        assert!(counted(pods, &["gone"]).await.is_empty());
    }
}
