//! Facts of pods.

use crate::{
    api::{LABEL_BENCHMARK_UID, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL, LABEL_WORKLOAD, Role},
    io::{observe::reading::created, probe::readiness_url},
    plan::facts::{
        Child, ChildKind, ForeignPod, NodeFacts, PodFacts, Termination, contents::contents_of,
        placement::HOSTNAME_LABEL,
    },
    time::unix_seconds,
};
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod, PodStatus},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

/// Labels can be copied, so a pod counts only if its controller is an object of this benchmark. A Deployment's pod
/// has a ReplicaSet in between, whose name begins with the Deployment's name. CloudNativePG prepares a database in
/// its own Jobs. A terminating pod counts with any controller, because the operator waits for its end.
pub(super) fn belongs_to(pod: &Pod, children: &[Child]) -> bool {
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

pub(super) fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
}

pub(super) fn foreign_pod(pod: &Pod, nodes: &[NodeFacts]) -> ForeignPod {
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
        created_unix_seconds: created(pod),
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

pub(crate) fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let init = status.init_container_statuses.iter();
    init.chain(&status.container_statuses).flatten()
}

pub(super) fn pod_facts(pod: &Pod) -> PodFacts {
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
        created_unix_seconds: created(pod),
        scheduled_unix_seconds: scheduled(&status),
        ready_since_unix_seconds: ready_since(&status),
        started_unix_seconds: containers
            .iter()
            .filter_map(|container| container.state.as_ref()?.running.as_ref())
            .filter_map(|running| Some(unix_seconds(running.started_at.as_ref()?.0)))
            .reduce(f64::max),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        ended: has_ended(&status),
        evicted: evicted(&status),
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
pub(crate) fn evicted(status: &PodStatus) -> Option<String> {
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

pub(super) fn is_unready_candidate(pod: &Pod) -> bool {
    let role = pod.labels().get(LABEL_ROLE);
    let is_ready = pod.status.as_ref().and_then(ready_since).is_some();
    role.is_some_and(|role| role == Role::Candidate.as_str()) && !is_ready
}

/// Largest number of ends of one container. The successful end of an init container does not count.
pub(super) fn crashes(status: &PodStatus) -> i32 {
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
pub(super) fn unschedulable(status: &PodStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False")?;
    scheduled.message.clone()
}

pub(super) fn scheduled(status: &PodStatus) -> Option<f64> {
    let mut conditions = status.conditions.iter().flatten();
    let scheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "True")?;
    Some(unix_seconds(scheduled.last_transition_time.as_ref()?.0))
}

pub(crate) fn has_ended(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

pub(crate) fn ready_since(status: &PodStatus) -> Option<f64> {
    let mut conditions = status.conditions.iter().flatten();
    let ready = conditions.find(|it| it.type_ == "Ready" && it.status == "True")?;
    Some(unix_seconds(ready.last_transition_time.as_ref()?.0))
}

/// Why a container has not started. A pod that is only being set up has no useful reason.
pub(crate) fn waiting(container: &ContainerStatus) -> Option<(String, String)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.clone()?;
    (reason != "ContainerCreating" && reason != "PodInitializing")
        .then(|| (reason, waiting.message.clone().unwrap_or_default()))
}

pub(super) fn termination(container: &ContainerStatus) -> Option<Termination> {
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
