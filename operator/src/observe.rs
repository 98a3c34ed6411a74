//! Reads everything that a pass depends on, once, into plain data.

mod entries;
mod meters;

use std::collections::BTreeMap;

use futures::try_join;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        coordination::v1::Lease,
        core::v1::{ContainerStatus, Node, Pod, Service},
    },
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    core::DeserializeGuard,
};
use serde::de::DeserializeOwned;

use self::entries::Entries;
use crate::{
    api::{
        FrugalityBenchmark, LABEL_BENCHMARK_UID, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL,
        LABEL_WORKLOAD, Role,
    },
    cnpg,
    plan::{
        facts::{
            Child, ChildKind, ForeignPod, Lock, NodeFacts, Observed, Peer, PodFacts, Refusal,
            Termination,
        },
        nodes::{HOSTNAME_LABEL, Wish},
        time::unix_seconds,
    },
    reader::Reader,
};

/// Label of the Leases that give the right to use a node.
pub const LOCK_LABEL: &str = "frugality.dev/lock";
/// Value of [`LOCK_LABEL`].
pub const LOCK_OF_NODE: &str = "node";

/// Where things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// Namespace of the operator; the lock is there.
    pub namespace: String,
    /// Namespace of the meters.
    pub meter_namespace: String,
    /// Label selector of the meters' pods.
    pub meter_selector: String,
    /// Names of the meters' DaemonSets: only their pods are meters.
    pub meter_daemon_sets: Vec<String>,
}

/// The API server could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot list {what}: {source}")]
pub struct ObserveError {
    what: &'static str,
    source: kube::Error,
}

/// Reads everything for one benchmark.
pub async fn observe(
    client: &Client,
    places: &Places,
    reader: &Reader,
    benchmark: &FrugalityBenchmark,
    refused: Option<Refusal>,
    waiting_since: Option<(String, f64)>,
) -> Result<Observed, ObserveError> {
    let namespace = benchmark.namespace().unwrap_or_default();
    let uid = benchmark.uid().unwrap_or_default();
    let mine = ListParams::default().labels(&format!("{LABEL_BENCHMARK_UID}={uid}"));
    let all_of_ours = ListParams::default().labels(LABEL_BENCHMARK_UID);
    let everything = ListParams::default();

    let benchmarks = Api::<DeserializeGuard<FrugalityBenchmark>>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client.clone(), &places.namespace);
    let locks = ListParams::default().labels(&format!("{LOCK_LABEL}={LOCK_OF_NODE}"));
    let pods = Api::<Pod>::all(client.clone());
    let nodes = Api::<Node>::all(client.clone());
    let (
        benchmarks,
        entries,
        pods,
        meter_pods,
        nodes,
        leases,
        deployments,
        services,
        jobs,
        clusters,
    ) = try_join!(
        list("benchmarks", &benchmarks, &everything),
        entries(client, &namespace, &mine),
        list("pods", &pods, &all_of_ours),
        meters::pods(client, places),
        list("nodes", &nodes, &everything),
        list("locks", &leases, &locks),
        children::<Deployment>(client, &namespace, &mine, ChildKind::Deployment),
        children::<Service>(client, &namespace, &mine, ChildKind::Service),
        children::<Job>(client, &namespace, &mine, ChildKind::Job),
        clusters(client, &namespace, &mine),
    )?;
    let cloud_native_pg_installed = clusters.is_some();
    let clusters = clusters.unwrap_or_default();
    let children: Vec<Child> = deployments
        .into_iter()
        .chain(services)
        .chain(jobs)
        .chain(
            clusters
                .iter()
                .map(|cluster| child(cluster, ChildKind::Cluster)),
        )
        .collect();
    let (own, foreign): (Vec<_>, Vec<_>) = pods
        .into_iter()
        // Nobody writes a pod of a benchmark by hand.
        .filter(|pod| controller(pod).is_some())
        .partition(|pod| pod.labels().get(LABEL_BENCHMARK_UID) == Some(&uid));
    let nodes: Vec<NodeFacts> = nodes
        .iter()
        .map(|node| node_facts(node, &meter_pods))
        .collect();
    Ok(Observed {
        peers: benchmarks
            .iter()
            .filter(|peer| peer.uid().as_ref() != Some(&uid))
            .map(peer)
            .collect(),
        locks: leases.iter().map(lock).collect(),
        pods: own
            .iter()
            .filter(|pod| pod.namespace().as_ref() == Some(&namespace))
            .filter(|pod| belongs_to(pod, &children))
            .map(pod_facts)
            .collect(),
        foreign_pods: foreign
            .iter()
            .filter(|pod| !has_ended(pod))
            .map(|pod| foreign_pod(pod, &nodes))
            .collect(),
        nodes,
        database: clusters.first().map(cnpg::facts),
        children,
        cloud_native_pg_installed,
        trials: entries.trials,
        unreadable: entries.unreadable,
        sessions: reader.sessions(&uid),
        refused,
        waiting_since,
    })
}

/// Labels can be copied, so a pod counts only if its controller is an object of this benchmark. A
/// Deployment's has a ReplicaSet in between, whose name begins with the Deployment's; CloudNativePG
/// prepares a database in Jobs of its own. What is on its way out is waited for, whoever's it was.
fn belongs_to(pod: &Pod, children: &[Child]) -> bool {
    let is_database =
        pod.labels().get(LABEL_ROLE).map(String::as_str) == Some(Role::Database.as_str());
    pod.metadata.deletion_timestamp.is_some()
        || controller(pod).is_some_and(|owner| {
            (is_database && owner.kind == "Job")
                || children.iter().any(|child| match child.kind {
                    ChildKind::Deployment => {
                        owner.kind == "ReplicaSet" && owner.name.starts_with(&child.name)
                    }
                    _ => owner.uid == child.uid,
                })
        })
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
}

async fn list<K>(
    what: &'static str,
    api: &Api<K>,
    params: &ListParams,
) -> Result<Vec<K>, ObserveError>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.list(params).await {
        Ok(list) => Ok(list.items),
        Err(source) => Err(ObserveError { what, source }),
    }
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

/// Metadata are all that is needed of what this operator made itself.
async fn children<K>(
    client: &Client,
    namespace: &str,
    params: &ListParams,
    kind: ChildKind,
) -> Result<Vec<Child>, ObserveError>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let api = Api::<K>::namespaced(client.clone(), namespace);
    match api.list_metadata(params).await {
        Ok(list) => Ok(list
            .items
            .iter()
            .map(|object| child(object, kind))
            .collect()),
        Err(source) => Err(ObserveError {
            what: "children",
            source,
        }),
    }
}

/// `None` where the cluster does not know CloudNativePG.
async fn clusters(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Option<Vec<DynamicObject>>, ObserveError> {
    let api =
        Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &cnpg::api_resource());
    match api.list(params).await {
        Ok(list) => Ok(Some(list.items)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(ObserveError {
            what: "CloudNativePG clusters",
            source,
        }),
    }
}

fn lock(lease: &Lease) -> Lock {
    let spec = lease.spec.as_ref();
    Lock {
        name: lease.name_any(),
        holder: spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .and_then(|holder| holder.split_once(' '))
            .map(|(uid, name)| (uid.to_owned(), name.to_owned())),
        acquired_unix_seconds: spec
            .and_then(|spec| spec.acquire_time.as_ref())
            .map(|time| unix_seconds(time.0)),
        resource_version: lease.resource_version().unwrap_or_default(),
    }
}

/// One that can't be read has a name and may hold locks, but never waits for any.
fn peer(guard: &DeserializeGuard<FrugalityBenchmark>) -> Peer {
    let readable = guard.0.as_ref().ok();
    let complete = readable.is_some_and(FrugalityBenchmark::is_complete);
    Peer {
        name: format!(
            "{}/{}",
            guard.namespace().unwrap_or_default(),
            guard.name_any()
        ),
        uid: guard.uid().unwrap_or_default(),
        created_unix_seconds: guard
            .creation_timestamp()
            .map_or(0, |time| time.0.as_second()),
        rests: complete
            || readable.is_some_and(|benchmark| benchmark.spec.suspend)
            || guard.meta().deletion_timestamp.is_some(),
        wish: readable.map(|benchmark| Wish::of(&benchmark.spec)),
    }
}

fn foreign_pod(pod: &Pod, nodes: &[NodeFacts]) -> ForeignPod {
    let spec = pod.spec.as_ref();
    // A pod of a benchmark is told its node before the scheduler gives it one. The node may be gone.
    let chosen = || {
        let hostname = spec?.node_selector.as_ref()?.get(HOSTNAME_LABEL)?;
        let is_it = |node: &&NodeFacts| node.labels.get(HOSTNAME_LABEL) == Some(hostname);
        let node = nodes.iter().find(is_it).map(|node| &node.name);
        Some(node.unwrap_or(hostname).clone())
    };
    let uid = pod.labels().get(LABEL_BENCHMARK_UID).cloned();
    ForeignPod {
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        benchmark_uid: uid.unwrap_or_default(),
        node: spec.and_then(|spec| spec.node_name.clone()).or_else(chosen),
        created_unix_seconds: seconds(pod.creation_timestamp().as_ref()),
        deleting: pod.metadata.deletion_timestamp.is_some(),
    }
}

fn node_facts(node: &Node, meters: &[Pod]) -> NodeFacts {
    let name = node.name_any();
    let is_ready = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let spec = node.spec.clone().unwrap_or_default();
    let is_tainted = spec
        .taints
        .iter()
        .flatten()
        .any(|taint| taint.effect != "PreferNoSchedule");
    let meter_ip = meters
        .iter()
        .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&name))
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && ready_since(pod).is_some())
        .find_map(|pod| pod.status.as_ref()?.pod_ip.clone());
    NodeFacts {
        labels: node.labels().clone(),
        schedulable: is_ready && !is_tainted && spec.unschedulable != Some(true),
        meter_ip,
        name,
    }
}

fn child<K: ResourceExt>(object: &K, kind: ChildKind) -> Child {
    let label = |key: &str| object.labels().get(key).cloned();
    Child {
        kind,
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        run: label(LABEL_RUN).unwrap_or_default(),
        trial: label(LABEL_TRIAL),
        created_unix_seconds: seconds(object.creation_timestamp().as_ref()),
        deleting: object.meta().deletion_timestamp.is_some(),
    }
}

fn pod_facts(pod: &Pod) -> PodFacts {
    let label = |key: &str| pod.labels().get(key).cloned();
    let status = pod.status.clone().unwrap_or_default();
    let containers: Vec<&ContainerStatus> = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses)
        .flatten()
        .collect();
    PodFacts {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        role: label(LABEL_ROLE).unwrap_or_default(),
        run: label(LABEL_RUN).unwrap_or_default(),
        trial: label(LABEL_TRIAL),
        workload: label(LABEL_WORKLOAD),
        hostname: pod
            .spec
            .as_ref()
            .and_then(|spec| spec.node_selector.as_ref()?.get(HOSTNAME_LABEL).cloned()),
        created_unix_seconds: seconds(pod.creation_timestamp().as_ref()),
        ready_since_unix_seconds: ready_since(pod),
        started_unix_seconds: containers
            .iter()
            .filter_map(|container| container.state.as_ref()?.running.as_ref())
            .map(|running| seconds(running.started_at.as_ref()))
            .reduce(f64::max),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        ended: has_ended(pod),
        waiting: containers.iter().find_map(|container| waiting(container)),
        restarts: containers
            .iter()
            .map(|container| container.restart_count)
            .sum(),
        terminated: containers
            .iter()
            .filter_map(|container| Some((container.name.clone(), termination(container)?)))
            .collect(),
        images: containers
            .iter()
            .filter(|container| !container.image_id.is_empty())
            .map(|container| (container.name.clone(), container.image_id.clone()))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn ready_since(pod: &Pod) -> Option<f64> {
    let ready = pod
        .status
        .as_ref()?
        .conditions
        .as_ref()?
        .iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    Some(seconds(ready.last_transition_time.as_ref()))
}

/// Why a container has not started; a pod that only waits for its turn to be set up has no reason
/// worth telling.
fn waiting(container: &ContainerStatus) -> Option<(String, String)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.clone()?;
    (reason != "ContainerCreating" && reason != "PodInitializing")
        .then(|| (reason, waiting.message.clone().unwrap_or_default()))
}

fn termination(container: &ContainerStatus) -> Option<Termination> {
    let of = |state: Option<&k8s_openapi::api::core::v1::ContainerState>| {
        state.and_then(|state| state.terminated.clone())
    };
    let end = of(container.state.as_ref()).or_else(|| of(container.last_state.as_ref()))?;
    Some(Termination {
        exit_code: end.exit_code,
        reason: end.reason.unwrap_or_default(),
        message: end.message.unwrap_or_default(),
    })
}

fn seconds(time: Option<&Time>) -> f64 {
    time.map_or(0.0, |time| unix_seconds(time.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_foreign_pod_is_where_it_runs_or_is_told_to_run() {
        let node = NodeFacts {
            name: "pi-1".into(),
            schedulable: true,
            labels: BTreeMap::from([(HOSTNAME_LABEL.to_owned(), "host-1".to_owned())]),
            meter_ip: None,
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
    fn a_benchmark_that_cannot_be_read_keeps_its_name_and_waits_for_nothing() {
        let broken = json!({
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityBenchmark",
            "metadata": { "name": "b", "namespace": "lab", "uid": "u" },
            "spec": { "candidates": 5 },
        });
        let peer = peer(&serde_json::from_value(broken).unwrap());
        assert_eq!((peer.name.as_str(), peer.uid.as_str()), ("lab/b", "u"));
        assert_eq!((peer.wish, peer.rests), (None, false));
    }
}
