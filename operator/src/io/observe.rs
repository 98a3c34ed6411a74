//! Reads the whole input of a pass, once, into plain data.

mod children;
mod entries;
mod meters;
mod nodes;
mod pods;
mod queue;
mod reading;
mod rights;
#[cfg(test)]
mod tests;

use crate::{
    api::{FrugalityBaseline, FrugalityBenchmark, LABEL_BENCHMARK_UID, LABEL_LOCK, LOCK_OF_NODE},
    io::{
        observe::{
            children::{
                child, clusters, deployment, deployments, endpoints, jobs, refused_pod, services,
            },
            entries::Entries,
            nodes::node_facts,
            pods::{belongs_to, controller, foreign_pod, pod_facts},
            queue::{unlisted_holders, unlisted_owners},
            reading::list,
            rights::is_forbidden,
        },
        reader::Reader,
    },
    plan::{
        database::cloud_native_pg,
        facts::{Child, ChildKind, ForeignPod, Lock, NodeFacts, Observed, Peer},
    },
    time::{ahead_seconds, http_date, unix_seconds},
};

use std::{collections::BTreeMap, sync::Arc};

use axum::http::{Request, header::DATE};
use futures::try_join;
use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{Api, Client, ResourceExt, api::ListParams, client::Body, core::DeserializeGuard};

pub(crate) use self::reading::each_metadata;
pub use self::reading::{ObserveError, Places, Remembered};
pub(crate) use self::{
    children::services_of,
    pods::{containers, evicted, has_ended, ready_since, waiting},
    queue::{lock, peer},
};

/// Why the API server's time is unknown.
const NO_DATE: &str = "the answer has no readable Date header; does a proxy remove it?";

/// Reads a benchmark, readable or not. `None` if it does not exist.
///
/// # Errors
///
/// The API server can't be reached, or refuses the request.
pub(crate) async fn stored(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<DeserializeGuard<FrugalityBenchmark>>, ObserveError> {
    let api = Api::<DeserializeGuard<FrugalityBenchmark>>::namespaced(client.clone(), namespace);
    api.get_opt(name).await.map_err(|source| ObserveError {
        what: "the benchmark",
        source,
    })
}

/// Reads everything for one benchmark. `peers` are the other benchmarks; a benchmark of the last moments may be missing.
///
/// # Errors
///
/// The API server can't be reached, or refuses a request.
pub async fn observe(
    client: &Client,
    places: &Places,
    reader: &Reader,
    benchmark: &FrugalityBenchmark,
    mut peers: Vec<Arc<Peer>>,
    remembered: Remembered,
) -> Result<Observed, ObserveError> {
    let Remembered {
        refused,
        waiting_since,
        rights_in_doubt,
        services: expected,
    } = remembered;
    let namespace = benchmark.namespace().unwrap_or_default();
    let uid = benchmark.uid().unwrap_or_default();
    let mine = ListParams::default().labels(&format!("{LABEL_BENCHMARK_UID}={uid}"));
    let all_of_ours = ListParams::default().labels(LABEL_BENCHMARK_UID);

    let pods = Api::<Pod>::all(client.clone());
    let (
        operator_ahead_seconds,
        entries,
        pods,
        (nodes, locks),
        deployments,
        services,
        jobs,
        clusters,
        baselines,
        addresses,
    ) = try_join!(
        operator_ahead(client),
        entries(client, &namespace, &mine),
        list("pods", &pods, &all_of_ours),
        nodes_and_locks(client, places),
        deployments(client, &namespace, &mine),
        services(client, &namespace, &mine),
        jobs(client, &namespace, &mine),
        clusters(client, &namespace, &mine),
        baselines(client, &namespace, benchmark),
        endpoints(client, &namespace, &expected),
    )?;
    let cloud_native_pg_installed = clusters.is_some();
    let clusters = clusters.unwrap_or_default();
    let mut children: Vec<Child> = deployments
        .iter()
        .map(deployment)
        .chain(services)
        .chain(jobs)
        .chain(
            clusters
                .iter()
                .map(|cluster| child(cluster, ChildKind::Cluster)),
        )
        .collect();
    let services = services_of(&children);
    let endpoints = if services == expected {
        addresses
    } else {
        endpoints(client, &namespace, &services).await?
    };
    let (own, foreign): (Vec<_>, Vec<_>) = pods
        .into_iter()
        // A pod of a benchmark always has a controller.
        .filter(|pod| controller(pod).is_some())
        .partition(|pod| pod.labels().get(LABEL_BENCHMARK_UID) == Some(&uid));
    find_refusals(client, &namespace, &mut children, &own).await?;
    peers.extend(unlisted_holders(client, &locks, &uid, &peers).await?);
    let foreign_pods: Vec<ForeignPod> = foreign
        .iter()
        .filter(|pod| !pod.status.as_ref().is_some_and(has_ended))
        .map(|pod| foreign_pod(pod, &nodes))
        .collect();
    peers.extend(unlisted_owners(client, &foreign_pods, &peers).await?);
    let namespace_forbidden =
        is_forbidden(client, benchmark, &entries.trials, rights_in_doubt).await?;
    Ok(Observed {
        peers,
        locks,
        operator_ahead_seconds,
        pods: own
            .iter()
            .filter(|pod| pod.namespace().as_ref() == Some(&namespace))
            .filter(|pod| belongs_to(pod, &children))
            .map(pod_facts)
            .collect(),
        foreign_pods,
        nodes,
        database: clusters.first().map(cloud_native_pg::facts),
        children,
        endpoints,
        cloud_native_pg_installed,
        namespace_forbidden,
        trials: entries.trials,
        baselines,
        unreadable: entries.unreadable,
        sessions: reader.sessions(&uid),
        refused,
        waiting_since,
    })
}

/// Reads what decides whose turn it is: the nodes with their meters, and the nodes' locks.
///
/// # Errors
///
/// The API server can't be reached, or refuses a request.
pub(crate) async fn nodes_and_locks(
    client: &Client,
    places: &Places,
) -> Result<(Vec<NodeFacts>, Vec<Lock>), ObserveError> {
    let nodes = Api::<Node>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client.clone(), &places.namespace);
    let locks = ListParams::default().labels(&format!("{LABEL_LOCK}={LOCK_OF_NODE}"));
    let everything = ListParams::default();
    let (meter_pods, nodes, leases) = try_join!(
        meters::pods(client, places),
        list("nodes", &nodes, &everything),
        list("locks", &leases, &locks),
    )?;
    let facts = |node: &Node| node_facts(node, &meter_pods, &places.tolerations);
    Ok((
        nodes.iter().map(facts).collect(),
        leases.iter().map(lock).collect(),
    ))
}

/// Sets why the API server refuses the pod of each Job that has none. `pods` are those of the benchmark.
async fn find_refusals(
    client: &Client,
    namespace: &str,
    children: &mut [Child],
    pods: &[Pod],
) -> Result<(), ObserveError> {
    let is_without_pod = |job: &&mut Child| {
        let has_it = |pod: &Pod| controller(pod).is_some_and(|owner| owner.uid == job.uid);
        job.kind == ChildKind::Job && !job.deleting && !pods.iter().any(has_it)
    };
    for job in children.iter_mut().filter(is_without_pod) {
        job.pods_refused = refused_pod(client, namespace, &job.uid).await?;
    }
    Ok(())
}

/// How far this process's clock is ahead of the API server's, in seconds, by the `Date` of an answer.
async fn operator_ahead(client: &Client) -> Result<f64, ObserveError> {
    let failed = |source| ObserveError {
        what: "the API server's time",
        source,
    };
    let request = Request::get("/version")
        .body(Body::empty())
        .map_err(|source| failed(kube::Error::HttpError(source)))?;
    let asked = unix_seconds(Timestamp::now());
    let response = client.send(request).await.map_err(failed)?;
    let received = unix_seconds(Timestamp::now());
    let date = response.headers().get(DATE);
    let date = date.and_then(|date| http_date(date.to_str().ok()?));
    // Go's servers send a date with each answer. Without it, a baseline could begin before the server has settled.
    let date = date.ok_or_else(|| failed(kube::Error::Service(NO_DATE.into())))?;
    Ok(ahead_seconds(asked, received, date))
}

/// The FrugalityBaselines that the benchmark names, if they exist.
async fn baselines(
    client: &Client,
    namespace: &str,
    benchmark: &FrugalityBenchmark,
) -> Result<BTreeMap<String, FrugalityBaseline>, ObserveError> {
    let api = Api::<FrugalityBaseline>::namespaced(client.clone(), namespace);
    let mut found = BTreeMap::new();
    let Some(asked) = &benchmark.spec.baseline else {
        return Ok(found);
    };
    for name in [Some(&asked.name), asked.anchor.as_ref()]
        .into_iter()
        .flatten()
    {
        let baseline = api.get_opt(name).await.map_err(|source| ObserveError {
            what: "a baseline",
            source,
        })?;
        if let Some(baseline) = baseline {
            found.insert(name.clone(), baseline);
        }
    }
    Ok(found)
}

async fn entries(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Entries, ObserveError> {
    let listed = Entries::list(client, namespace, params).await;
    listed.map_err(|source| ObserveError {
        what: "trials",
        source,
    })
}
