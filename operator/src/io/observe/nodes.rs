//! Facts of nodes.

use crate::{io::observe::pods::ready_since, plan::facts::NodeFacts};

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use kube::ResourceExt;

/// Whether pods with these tolerations may run despite a taint, by the scheduler's rule (`ToleratesTaint` of
/// `k8s.io/api/core/v1`). A toleration with a time limit does not count, because its pods would be evicted during
/// a run.
pub(super) fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
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

pub(super) fn node_facts(node: &Node, meters: &[Pod], tolerations: &[Toleration]) -> NodeFacts {
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
