//! Whether a node takes the pods of benchmarks.

use k8s_openapi::api::core::v1::{Node, Taint, Toleration};

/// Whether a node is ready, is not cordoned, and has no taint that keeps off pods with these tolerations.
#[must_use]
pub fn accepts_pods(node: &Node, tolerations: &[Toleration]) -> bool {
    let is_ready = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let spec = node.spec.as_ref();
    let is_cordoned = spec.and_then(|it| it.unschedulable) == Some(true);
    let is_tainted = spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten())
        .any(|taint| taint.effect != "PreferNoSchedule" && !is_tolerated(taint, tolerations));
    is_ready && !is_cordoned && !is_tainted
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
