//! Parts that several of the run's objects share: addresses, pods and their restrictions.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy},
        core::v1::{
            Capabilities, Container, EnvVar, PodSecurityContext, PodSpec, PodTemplateSpec,
            ResourceRequirements, SeccompProfile, SecurityContext, Service, ServicePort,
            ServiceSpec,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity, apis::meta::v1::LabelSelector, util::intstr::IntOrString,
    },
};
use kube::api::ObjectMeta;

use crate::plan::action::ChildObject;

/// A Service for the pods with the object's labels.
pub(in crate::plan) fn service(metadata: ObjectMeta, port: i32) -> ChildObject {
    address(metadata, port, None)
}

/// A Service whose name resolves to the addresses of all ready pods with the object's labels.
pub(in crate::plan) fn headless_service(metadata: ObjectMeta, port: i32) -> ChildObject {
    address(metadata, port, Some("None".to_owned()))
}

/// A headless Service that includes unready pods. Clustered servers become ready only after they find each other.
pub(in crate::plan) fn peers_service(metadata: ObjectMeta, port: i32) -> ChildObject {
    let mut service = headless_service(metadata, port);
    if let ChildObject::Service(object) = &mut service {
        let spec = object.spec.get_or_insert_default();
        spec.publish_not_ready_addresses = Some(true);
    }
    service
}

fn address(metadata: ObjectMeta, port: i32, cluster_ip: Option<String>) -> ChildObject {
    ChildObject::Service(Box::new(Service {
        spec: Some(ServiceSpec {
            cluster_ip,
            selector: metadata.labels.clone(),
            ports: Some(vec![ServicePort {
                port,
                target_port: Some(IntOrString::Int(port)),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        metadata,
        status: None,
    }))
}

/// A Deployment with the object's labels. An old pod never runs at the same time as a new one.
pub(in crate::plan) fn deployment(
    metadata: ObjectMeta,
    replicas: i32,
    pod: PodSpec,
) -> ChildObject {
    let labels = metadata.labels.clone();
    ChildObject::Deployment(Box::new(Deployment {
        spec: Some(DeploymentSpec {
            replicas: Some(replicas),
            selector: LabelSelector {
                match_labels: labels.clone(),
                ..LabelSelector::default()
            },
            strategy: Some(DeploymentStrategy {
                type_: Some("Recreate".into()),
                ..DeploymentStrategy::default()
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels,
                    ..ObjectMeta::default()
                }),
                spec: Some(pod),
            },
            ..DeploymentSpec::default()
        }),
        metadata,
        status: None,
    }))
}

/// Escapes a text that kubelet must pass on unchanged. Kubelet expands `$(NAME)` in `command`, `args` and values of
/// `env`, turns `$$` into `$`, and corrupts a `$` before a non-ASCII character
/// (`third_party/forked/golang/expansion` of Kubernetes). Only a doubled `$` always arrives as one `$`.
fn verbatim(text: &str) -> String {
    text.replace('$', "$$")
}

/// Words of a container's `command` or `args`, which kubelet passes on unchanged.
pub(in crate::plan) fn words<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Vec<String> {
    words.into_iter().map(|it| verbatim(it.as_ref())).collect()
}

/// A variable with a value that kubelet passes on unchanged.
pub(in crate::plan) fn literal(name: &str, value: &str) -> EnvVar {
    composed(name, &verbatim(value))
}

/// A variable whose value kubelet composes: it replaces `$(NAME)` by an earlier variable. The value must not
/// contain a user's text.
pub(in crate::plan) fn composed(name: &str, value: &str) -> EnvVar {
    EnvVar {
        name: name.into(),
        value: Some(value.into()),
        ..EnvVar::default()
    }
}

pub(in crate::plan) fn requirements(resources: &crate::api::Resources) -> ResourceRequirements {
    let amounts = |list: &crate::api::ResourceList| {
        let amounts: BTreeMap<_, _> = [("cpu", &list.cpu), ("memory", &list.memory)]
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), Quantity(amount.clone()?))))
            .collect();
        (!amounts.is_empty()).then_some(amounts)
    };
    ResourceRequirements {
        requests: amounts(&resources.requests),
        limits: amounts(&resources.limits),
        ..ResourceRequirements::default()
    }
}

/// What the `restricted` Pod Security Standard requires of a container.
pub(in crate::plan) fn restricted() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".into()]),
            ..Capabilities::default()
        }),
        run_as_non_root: Some(true),
        ..SecurityContext::default()
    }
}

/// Termination message policy of every container: the end of the log explains a failure.
pub(in crate::plan) const TERMINATION_MESSAGE_POLICY: &str = "FallbackToLogsOnError";

pub(in crate::plan) fn restricted_container(user: i64) -> Container {
    Container {
        image_pull_policy: Some("IfNotPresent".into()),
        security_context: Some(SecurityContext {
            run_as_user: Some(user),
            ..restricted()
        }),
        termination_message_policy: Some(TERMINATION_MESSAGE_POLICY.into()),
        ..Container::default()
    }
}

/// What the `restricted` Pod Security Standard requires of a pod, without the cluster's defaults that a benchmark's
/// pod does not need.
pub(in crate::plan) fn restricted_pod() -> PodSpec {
    PodSpec {
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        ..PodSpec::default()
    }
}
