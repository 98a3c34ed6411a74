//! Objects and pods of the world.

use std::collections::BTreeMap;

use frugality_operator::{
    api::{LABEL_RUN, LABEL_TRIAL, LABEL_WORKLOAD},
    plan::{
        action::ChildObject,
        facts::{
            Child, ChildKind, PodFacts, Termination,
            addresses::ServiceFacts,
            contents::{Contents, contents_of},
            placement::HOSTNAME_LABEL,
        },
    },
};
use k8s_openapi::api::core::v1::PodSpec;
use kube::ResourceExt;

/// An object that the operator created.
#[derive(Clone, Debug)]
pub(crate) struct SimChild {
    pub(crate) facts: Child,
    pub(crate) created: f64,
    pub(crate) gone_at: Option<f64>,
    /// Node on which its pods must run.
    pub(crate) node: Option<String>,
    /// Name of the candidate's server, if the object belongs to a server.
    pub(crate) workload: Option<String>,
    /// Contents of the containers in its pods, by container.
    pub(crate) contents: BTreeMap<String, Contents>,
    /// Whether its load generator is k6.
    pub(crate) is_k6: bool,
}

impl SimChild {
    pub(crate) fn new(object: &ChildObject, now: f64) -> Self {
        Self {
            facts: Child {
                kind: object.kind(),
                name: object.name(),
                uid: format!("uid-of-{}", object.name()),
                run: label(object, LABEL_RUN).unwrap(),
                trial: label(object, LABEL_TRIAL),
                created_unix_seconds: now.floor(),
                deleting: false,
                pods_refused: None,
                generation: Some(1),
                ended: false,
                service: match object {
                    ChildObject::Service(service) => Some(ServiceFacts::of(service)),
                    _ => None,
                },
            },
            created: now,
            gone_at: None,
            node: node_of(object),
            workload: label(object, LABEL_WORKLOAD),
            contents: pod_spec(object)
                .map(|spec| contents_of(&spec))
                .unwrap_or_default(),
            is_k6: pod_spec(object)
                .and_then(|spec| spec.containers[0].image.clone())
                .is_some_and(|image| image.contains("injector-k6")),
        }
    }
}

fn pod_spec(object: &ChildObject) -> Option<PodSpec> {
    object.clone().into_pod()?.spec
}

fn node_of(object: &ChildObject) -> Option<String> {
    let object = match object {
        ChildObject::Deployment(object) => serde_json::to_value(object),
        ChildObject::Service(object) => serde_json::to_value(object),
        ChildObject::Job(object) => serde_json::to_value(object),
        ChildObject::Secret(object) => serde_json::to_value(object),
        ChildObject::Cluster(object) => serde_json::to_value(object),
    };
    let object = object.unwrap();
    ["/spec/template/spec", "/spec/affinity"]
        .iter()
        .filter_map(|path| {
            object
                .pointer(path)?
                .get("nodeSelector")?
                .get(HOSTNAME_LABEL)
        })
        .find_map(|name| name.as_str().map(str::to_owned))
}

/// A pod, and the times at which it changes.
#[derive(Clone, Debug)]
pub(crate) struct SimPod {
    pub(crate) facts: PodFacts,
    pub(crate) owner: (ChildKind, String),
    pub(crate) node: String,
    /// Time of its creation.
    pub(crate) begin: f64,
    pub(crate) ready_at: Option<f64>,
    pub(crate) ends: Vec<(f64, String, Termination)>,
    pub(crate) gone_at: Option<f64>,
}

impl SimPod {
    /// The times at which it changes.
    pub(crate) fn changes(&self) -> impl Iterator<Item = f64> {
        let ends = self.ends.iter().map(|(at, _, _)| *at);
        ends.chain(self.ready_at).chain(self.gone_at)
    }

    /// The pod as the API server reports it, with times in whole seconds.
    pub(crate) fn facts(&self, now: f64) -> PodFacts {
        let ended: BTreeMap<String, Termination> = self
            .ends
            .iter()
            .filter(|(at, _, _)| *at <= now)
            .map(|(_, container, end)| (container.clone(), end.clone()))
            .collect();
        let has_ended = !self.ends.is_empty() && ended.len() == self.ends.len();
        PodFacts {
            ready_since_unix_seconds: self
                .ready_at
                .filter(|at| *at <= now && !self.facts.deleting)
                .map(f64::floor),
            started_unix_seconds: self.facts.started_unix_seconds.filter(|_| !has_ended),
            ended: has_ended,
            terminated: ended,
            ..self.facts.clone()
        }
    }
}

/// The pod of an object. `None` if the object has no pod.
pub(crate) fn pod_of(child: &SimChild, role: &str, number: u32) -> Option<SimPod> {
    if child.facts.kind == ChildKind::Service {
        return None;
    }
    let container = match &child.workload {
        Some(workload) if child.facts.trial.as_ref() != Some(&child.facts.name) => {
            format!("backend-{workload}")
        }
        Some(_) => "server".to_owned(),
        None => role.to_owned(),
    };
    Some(SimPod {
        facts: PodFacts {
            name: format!("{}-{number}", child.facts.name),
            uid: format!("{role}-uid-{number}"),
            role: role.to_owned(),
            run: child.facts.run.clone(),
            trial: child.facts.trial.clone(),
            workload: child.workload.clone(),
            hostname: child.node.clone(),
            created_unix_seconds: child.facts.created_unix_seconds,
            images: BTreeMap::from([(
                container,
                format!("sha256:{role}{}", if child.is_k6 { "-k6" } else { "" }),
            )]),
            contents: child.contents.clone(),
            ..PodFacts::default()
        },
        owner: (child.facts.kind, child.facts.name.clone()),
        node: child.node.clone().unwrap(),
        begin: child.created,
        ready_at: None,
        ends: Vec::new(),
        gone_at: None,
    })
}

/// The termination of a container that succeeded.
pub(crate) fn ending(message: &str) -> Termination {
    Termination {
        exit_code: 0,
        reason: "Completed".into(),
        message: message.to_owned(),
    }
}

/// A label of an object.
pub(crate) fn label(object: &ChildObject, key: &str) -> Option<String> {
    match object {
        ChildObject::Deployment(object) => object.labels().get(key),
        ChildObject::Service(object) => object.labels().get(key),
        ChildObject::Job(object) => object.labels().get(key),
        ChildObject::Secret(object) => object.labels().get(key),
        ChildObject::Cluster(object) => object.labels().get(key),
    }
    .cloned()
}
