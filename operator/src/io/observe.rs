//! Reads the whole input of a pass, once, into plain data.

mod entries;
mod meters;

use std::collections::BTreeMap;

use axum::http::{Request, header::DATE};
use futures::try_join;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        coordination::v1::Lease,
        core::v1::{ContainerStatus, Node, Pod, PodStatus, Service, Taint, Toleration},
        discovery::v1::EndpointSlice,
        events::v1::Event,
    },
    apimachinery::pkg::apis::meta::v1::{OwnerReference, Time},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, ListParams},
    client::Body,
    core::DeserializeGuard,
};
use serde::de::DeserializeOwned;

use crate::{
    api::{
        FrugalityBenchmark, LABEL_BENCHMARK_UID, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL,
        LABEL_WORKLOAD, Role,
    },
    io::{observe::entries::Entries, probe::readiness_url, reader::Reader},
    plan::{
        database::cloud_native_pg,
        facts::{
            Child, ChildKind, ForeignPod, Lock, NodeFacts, Observed, Peer, PodFacts, Refusal,
            Termination,
            addresses::{Endpoints, SERVICE_NAME_LABEL, ServiceFacts},
            contents::contents_of,
            placement::{HOSTNAME_LABEL, PlacementRequest},
        },
    },
    time::{ahead_seconds, http_date, unix_seconds},
};

/// Label of the Leases that lock a node.
pub const LOCK_LABEL: &str = "frugality.dev/lock";
/// Value of [`LOCK_LABEL`].
pub const LOCK_OF_NODE: &str = "node";

/// Places of the operator's and the meters' objects, and tolerations of the pods.
#[derive(Clone, Debug)]
pub struct Places {
    /// Namespace of the operator and of the locks.
    pub namespace: String,
    /// Namespace of the meters.
    pub meter_namespace: String,
    /// Label selector of the meters' pods.
    pub meter_selector: String,
    /// Names of the meters' DaemonSets. Only pods of these count as meters.
    pub meter_daemon_sets: Vec<String>,
    /// Taints that the pods of benchmarks tolerate.
    pub tolerations: Vec<Toleration>,
}

/// The operator could not read from the API server.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}: {source}")]
pub struct ObserveError {
    what: &'static str,
    source: kube::Error,
}

/// Reads everything for one benchmark.
///
/// # Errors
///
/// The API server can't be reached, or refuses a request.
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
        operator_ahead_seconds,
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
        operator_ahead(client),
        list("benchmarks", &benchmarks, &everything),
        entries(client, &namespace, &mine),
        list("pods", &pods, &all_of_ours),
        meters::pods(client, places),
        list("nodes", &nodes, &everything),
        list("locks", &leases, &locks),
        deployments(client, &namespace, &mine),
        services(client, &namespace, &mine),
        jobs(client, &namespace, &mine),
        clusters(client, &namespace, &mine),
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
    let endpoints = endpoints(client, &namespace, &children).await?;
    let (own, foreign): (Vec<_>, Vec<_>) = pods
        .into_iter()
        // A pod of a benchmark always has a controller.
        .filter(|pod| controller(pod).is_some())
        .partition(|pod| pod.labels().get(LABEL_BENCHMARK_UID) == Some(&uid));
    let is_without_pod = |job: &&mut Child| {
        let has_it = |pod: &Pod| controller(pod).is_some_and(|owner| owner.uid == job.uid);
        job.kind == ChildKind::Job && !job.deleting && !own.iter().any(has_it)
    };
    for job in children.iter_mut().filter(is_without_pod) {
        job.pods_refused = refused_pod(client, &namespace, &job.uid).await?;
    }
    let nodes: Vec<NodeFacts> = nodes
        .iter()
        .map(|node| node_facts(node, &meter_pods, &places.tolerations))
        .collect();
    let locks: Vec<Lock> = leases.iter().map(lock).collect();
    let mut peers: Vec<Peer> = benchmarks
        .iter()
        .filter(|peer| peer.uid().as_ref() != Some(&uid))
        .map(peer)
        .collect();
    peers.extend(unlisted_holders(client, &locks, &uid, &peers).await?);
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
        foreign_pods: foreign
            .iter()
            .filter(|pod| !has_ended(pod))
            .map(|pod| foreign_pod(pod, &nodes))
            .collect(),
        nodes,
        database: clusters.first().map(cloud_native_pg::facts),
        children,
        endpoints,
        cloud_native_pg_installed,
        trials: entries.trials,
        unreadable: entries.unreadable,
        sessions: reader.sessions(&uid),
        refused,
        waiting_since,
    })
}

/// Benchmarks that hold a lock and are missing in the list. The list may be older than the lock, so the operator
/// gets each by name. A lock is free only if its holder is gone.
async fn unlisted_holders(
    client: &Client,
    locks: &[Lock],
    own_uid: &str,
    listed: &[Peer],
) -> Result<Vec<Peer>, ObserveError> {
    let is_unlisted =
        |uid: &&String| uid.as_str() != own_uid && listed.iter().all(|peer| peer.uid != **uid);
    let holders: BTreeMap<&String, &String> = locks
        .iter()
        .filter_map(|lock| lock.holder.as_ref().map(|(uid, name)| (uid, name)))
        .filter(|(uid, _)| is_unlisted(uid))
        .collect();
    let mut found = Vec::new();
    for (uid, name) in holders {
        let Some((namespace, name)) = name.split_once('/') else {
            continue;
        };
        let api =
            Api::<DeserializeGuard<FrugalityBenchmark>>::namespaced(client.clone(), namespace);
        let holder = api.get_opt(name).await.map_err(|source| ObserveError {
            what: "the holder of a lock",
            source,
        })?;
        found.extend(
            holder
                .filter(|it| it.uid().as_ref() == Some(uid))
                .map(|it| peer(&it)),
        );
    }
    Ok(found)
}

/// How far this process's clock is ahead of the API server's, in seconds, by the `Date` of an answer. 0 without a
/// `Date`.
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
    Ok(date.map_or(0.0, |date| ahead_seconds(asked, received, date)))
}

/// Labels can be copied, so a pod counts only if its controller is an object of this benchmark. A Deployment's pod
/// has a ReplicaSet in between, whose name begins with the Deployment's name. CloudNativePG prepares a database in
/// its own Jobs. A terminating pod counts with any controller, because the operator waits for its end.
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

/// Complete Jobs, because their conditions show whether they can still make a pod.
async fn jobs(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Child>, ObserveError> {
    let api = Api::<Job>::namespaced(client.clone(), namespace);
    let jobs = list("children", &api, params).await?;
    Ok(jobs.iter().map(job).collect())
}

fn job(object: &Job) -> Child {
    let conditions = object.status.iter().filter_map(|it| it.conditions.as_ref());
    let is_end = |type_: &str| matches!(type_, "Complete" | "Failed");
    Child {
        ended: conditions
            .flatten()
            .any(|it| is_end(&it.type_) && it.status == "True"),
        ..child(object, ChildKind::Job)
    }
}

async fn deployments(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Deployment>, ObserveError> {
    let api = Api::<Deployment>::namespaced(client.clone(), namespace);
    list("children", &api, params).await
}

/// The condition comes from the ReplicaSet and goes when a pod could be created.
fn deployment(object: &Deployment) -> Child {
    let status = object.status.as_ref();
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let refused = conditions.find(|it| it.type_ == "ReplicaFailure" && it.status == "True");
    Child {
        pods_refused: refused.map(|condition| {
            let reason = condition.reason.as_deref().unwrap_or("ReplicaFailure");
            let message = condition.message.as_deref().unwrap_or_default();
            format!("{reason}: {message}")
        }),
        ..child(object, ChildKind::Deployment)
    }
}

/// Why the last try to create a Job's pod failed, by the Job controller's events. A Job has no condition for this.
async fn refused_pod(
    client: &Client,
    namespace: &str,
    job_uid: &str,
) -> Result<Option<String>, ObserveError> {
    let api = Api::<Event>::namespaced(client.clone(), namespace);
    let of_job = format!("regarding.uid={job_uid},reason=FailedCreate");
    let events = list("events", &api, &ListParams::default().fields(&of_job)).await?;
    let at = |event: &Event| {
        let series = event.series.as_ref().map(|it| it.last_observed_time.0);
        let last = event.deprecated_last_timestamp.as_ref().map(|it| it.0);
        let first = event.event_time.as_ref().map(|it| it.0);
        series.max(last).max(first)
    };
    let newest = events.into_iter().max_by_key(at);
    Ok(newest.map(|event| {
        let reason = event.reason.unwrap_or_default();
        format!("{reason}: {}", event.note.unwrap_or_default())
    }))
}

/// Complete Services, because their specs show which pods answer.
async fn services(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Vec<Child>, ObserveError> {
    let api = Api::<Service>::namespaced(client.clone(), namespace);
    let services = list("services", &api, params).await?;
    let facts = |service: &Service| Child {
        service: Some(ServiceFacts::of(service)),
        ..child(service, ChildKind::Service)
    };
    Ok(services.iter().map(facts).collect())
}

/// Every slice of addresses that names one of these Services, by any author, because all its addresses get
/// requests.
async fn endpoints(
    client: &Client,
    namespace: &str,
    children: &[Child],
) -> Result<Vec<Endpoints>, ObserveError> {
    let names: Vec<String> = children
        .iter()
        .filter_map(|child| match child.kind {
            ChildKind::Service => Some(child.name.clone()),
            ChildKind::Cluster => Some(format!("{}-rw", child.name)),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let api = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let of_them = format!("{SERVICE_NAME_LABEL} in ({})", names.join(","));
    let slices = list(
        "endpoint slices",
        &api,
        &ListParams::default().labels(&of_them),
    )
    .await?;
    Ok(slices.iter().map(Endpoints::of).collect())
}

/// `None` if the cluster does not know CloudNativePG.
async fn clusters(
    client: &Client,
    namespace: &str,
    params: &ListParams,
) -> Result<Option<Vec<DynamicObject>>, ObserveError> {
    let api = Api::<DynamicObject>::namespaced_with(
        client.clone(),
        namespace,
        &cloud_native_pg::api_resource(),
    );
    match api.list(params).await {
        Ok(list) => Ok(Some(list.items)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(ObserveError {
            what: "CloudNativePG clusters",
            source,
        }),
    }
}

pub(crate) fn lock(lease: &Lease) -> Lock {
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

/// An unreadable benchmark has a name and may hold locks, but never waits for any.
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
        request: readable.map(|benchmark| PlacementRequest::of(&benchmark.spec)),
    }
}

fn foreign_pod(pod: &Pod, nodes: &[NodeFacts]) -> ForeignPod {
    let spec = pod.spec.as_ref();
    // A pod of a benchmark names its node in its selector before the scheduler assigns one. The node may be gone.
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
        running: pod
            .status
            .iter()
            .flat_map(containers)
            .filter_map(|container| container.state.as_ref())
            .any(|state| state.running.is_some()),
        // The timestamp is the end of the grace period.
        deleting_since_unix_seconds: pod.metadata.deletion_timestamp.as_ref().map(|over| {
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
            unix_seconds(over.0) - grace as f64
        }),
    }
}

/// Whether pods with these tolerations may run despite a taint, by the scheduler's rule (`ToleratesTaint` of
/// `k8s.io/api/core/v1`). A toleration with a time limit does not count, because its pods would be evicted during
/// a run.
fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|it| {
        let is_any = |text: Option<&String>| text.is_none_or(String::is_empty);
        let has_key = is_any(it.key.as_ref()) || it.key.as_ref() == Some(&taint.key);
        let has_effect = is_any(it.effect.as_ref()) || it.effect.as_ref() == Some(&taint.effect);
        let has_value = if it.operator.as_deref() == Some("Exists") {
            true
        } else {
            !is_any(it.key.as_ref())
                && it.value.clone().unwrap_or_default() == taint.value.clone().unwrap_or_default()
        };
        has_key && has_effect && has_value && it.toleration_seconds.is_none()
    })
}

fn node_facts(node: &Node, meters: &[Pod], tolerations: &[Toleration]) -> NodeFacts {
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
        .any(|taint| taint.effect != "PreferNoSchedule" && !is_tolerated(taint, tolerations));
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
        pods_refused: None,
        generation: object.meta().generation,
        ended: false,
        service: None,
    }
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter();
    init.chain(&status.container_statuses).flatten()
}

fn pod_facts(pod: &Pod) -> PodFacts {
    let label = |key: &str| pod.labels().get(key).cloned();
    let status = pod.status.clone().unwrap_or_default();
    let containers: Vec<&ContainerStatus> = containers(&status).collect();
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
        scheduled_unix_seconds: scheduled(&status),
        ready_since_unix_seconds: ready_since(pod),
        started_unix_seconds: containers
            .iter()
            .filter_map(|container| container.state.as_ref()?.running.as_ref())
            .map(|running| seconds(running.started_at.as_ref()))
            .reduce(f64::max),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        ended: has_ended(pod),
        evicted: evicted(pod),
        waiting: containers.iter().find_map(|container| waiting(container)),
        restarts: containers
            .iter()
            .map(|container| container.restart_count)
            .sum(),
        crashes: crashes(&status),
        unschedulable: unschedulable(&status),
        readiness_url: is_unready_candidate(pod)
            .then(|| readiness_url(pod))
            .flatten(),
        probed: None,
        terminated: containers
            .iter()
            .filter_map(|container| Some((container.name.clone(), termination(container)?)))
            .collect(),
        images: containers
            .iter()
            .filter(|container| !container.image_id.is_empty())
            .map(|container| (container.name.clone(), container.image_id.clone()))
            .collect::<BTreeMap<_, _>>(),
        contents: pod.spec.as_ref().map(contents_of).unwrap_or_default(),
    }
}

/// Why the cluster ended or evicted a pod. A kubelet writes its reason into the status of a pod that it fails
/// (`Evicted`, `OutOfcpu`, `Terminated` at the node's shutdown). Evictions by the API, taints and preemption show
/// as the condition `DisruptionTarget`.
fn evicted(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let words = |reason: Option<&String>, message: Option<&String>| {
        let reason = reason.map_or("no reason given", String::as_str);
        match message.filter(|message| !message.is_empty()) {
            Some(message) => format!("{reason}: {message}"),
            None => reason.to_owned(),
        }
    };
    if status.phase.as_deref() == Some("Failed") && status.reason.is_some() {
        return Some(words(status.reason.as_ref(), status.message.as_ref()));
    }
    let mut conditions = status.conditions.iter().flatten();
    let disrupted = conditions.find(|it| it.type_ == "DisruptionTarget" && it.status == "True")?;
    Some(words(disrupted.reason.as_ref(), disrupted.message.as_ref()))
}

fn is_unready_candidate(pod: &Pod) -> bool {
    let role = pod.labels().get(LABEL_ROLE);
    role.is_some_and(|role| role == Role::Candidate.as_str()) && ready_since(pod).is_none()
}

/// Largest number of ends of one container. The successful end of an init container does not count.
fn crashes(status: &PodStatus) -> i32 {
    let has_crashed = |container: &ContainerStatus, may_end: bool| {
        let state = container.state.clone().unwrap_or_default();
        let is_failure = |exit_code: i32| !may_end || exit_code != 0;
        let has_ended = state
            .terminated
            .is_some_and(|end| is_failure(end.exit_code));
        // The kubelet waits before it starts the container again.
        let waits = state
            .waiting
            .is_some_and(|it| it.reason.as_deref() == Some("CrashLoopBackOff"));
        container.restart_count + i32::from(has_ended || waits)
    };
    let init = status.init_container_statuses.iter().flatten();
    let main = status.container_statuses.iter().flatten();
    let init = init.map(|container| has_crashed(container, true));
    let main = main.map(|container| has_crashed(container, false));
    init.chain(main).max().unwrap_or(0)
}

/// The scheduler's message if it finds no node for the pod.
fn unschedulable(status: &PodStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    scheduled.message.clone()
}

fn scheduled(status: &PodStatus) -> Option<f64> {
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "True")?;
    Some(seconds(scheduled.last_transition_time.as_ref()))
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

/// Why a container has not started. A pod that is only being set up has no useful reason.
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
    fn a_foreign_pod_is_where_it_runs_or_where_its_selector_points() {
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
            let object =
                json!({ "metadata": { "name": "d" }, "status": { "conditions": conditions } });
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

    #[tokio::test]
    async fn a_lock_is_free_only_if_its_holder_is_gone_and_the_api_servers_clock_counts() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(answer);
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
        let seen = Box::pin(observe(&client, &places, &reader, &benchmark, None, None)).await;
        server.abort();
        let seen = seen.unwrap();
        let peers: Vec<_> = seen.peers.iter().map(|peer| peer.uid.as_str()).collect();
        assert_eq!((peers, seen.locks.len()), (vec!["new-uid"], 4));
        let ahead = seen.operator_ahead_seconds;
        assert!((178.0..=182.0).contains(&ahead), "{ahead}");
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
        assert_eq!((peer.request, peer.rests), (None, false));
    }
}
