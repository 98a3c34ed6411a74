//! Facts of nodes.

use crate::{
    digest::hex_digest,
    io::observe::pods::ready_since,
    plan::facts::{NodeFacts, scheduling::accepts_pods},
};

use k8s_openapi::api::core::v1::{Node, NodeStatus, Pod, Toleration};
use kube::ResourceExt;

pub(super) fn node_facts(node: &Node, meters: &[Pod], tolerations: &[Toleration]) -> NodeFacts {
    let name = node.name_any();
    let meter_ip = meters
        .iter()
        .filter(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&name))
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| pod.status.as_ref())
        .filter(|status| ready_since(status).is_some())
        .find_map(|status| status.pod_ip.clone());
    NodeFacts {
        labels: node.labels().clone(),
        schedulable: accepts_pods(node, tolerations),
        meter_ip,
        machine: node.status.as_ref().and_then(machine),
        name,
    }
}

/// A machine's ID is confidential (machine-id(5)), so only a digest is kept.
fn machine(status: &NodeStatus) -> Option<String> {
    let info = status.node_info.as_ref()?;
    let id = Some(&info.machine_id).filter(|id| !id.is_empty())?;
    let digest = hex_digest(id.as_bytes(), 8);
    Some(format!("{digest} with kernel {}", info.kernel_version))
}
