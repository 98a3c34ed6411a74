//! What the doctor finds about nodes, namespaces and pods, on which runs depend. Pure.

use std::collections::BTreeSet;

use frugality_operator::plan::facts::scheduling::accepts_pods;
use k8s_openapi::api::{
    core::v1::{ContainerStatus, Node, Pod, Toleration},
    rbac::v1::RoleRef,
};
use kube::ResourceExt as _;
use serde::Deserialize;

use super::findings::{Finding, Found, Level};

/// The ClusterRole with the rights that a run needs. The chart binds it in the namespaces of `benchmarkNamespaces`.
const ROLE_OF_RUNS: &str = "frugality-operator-runs";

/// What to look at if a node takes no pods.
const LOOK_AT_NODES: &str = "Look at `kubectl describe nodes`: a node must be ready and not cordoned. The pods of benchmarks tolerate only the taints in the chart's value benchmarks.tolerations.";

/// What a cluster needs more than one node for.
const NEEDS_TWO_NODES: &str = "A benchmark needs two nodes: one for the servers, and one for the load. With placement.allowSharedNode: true both share the node, and joules of the whole node are withheld.";

/// Whether enough nodes take pods for load and servers. `tolerations` are what the pods of benchmarks have.
pub(super) fn nodes(found: &Found<Vec<Node>>, tolerations: &[Toleration]) -> Finding {
    let check = "nodes";
    let nodes = match found {
        Ok(nodes) => nodes,
        Err(error) => return Finding::unknown(check, error),
    };
    let ready = nodes
        .iter()
        .filter(|node| accepts_pods(node, tolerations))
        .count();
    let message = format!(
        "{ready} of {} nodes take the pods of benchmarks.",
        nodes.len()
    );
    match ready {
        0 => Finding::bad(check, Level::Fail, message, LOOK_AT_NODES),
        1 => {
            let remedy = match nodes.len() {
                1 => "Add a node.",
                _ => LOOK_AT_NODES,
            };
            let remedy = format!("{NEEDS_TWO_NODES} {remedy}");
            Finding::bad(check, Level::Warn, message, &remedy)
        }
        _ if ready < nodes.len() => Finding::bad(check, Level::Warn, message, LOOK_AT_NODES),
        _ => Finding::ok(check, message),
    }
}

/// A RoleBinding, or a ClusterRoleBinding, which has no namespace.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Binding {
    metadata: Metadata,
    role_ref: RoleRef,
}

#[derive(Clone, Debug, Deserialize)]
struct Metadata {
    namespace: Option<String>,
}

/// The namespaces in which the operator may run benchmarks.
pub(super) fn namespaces(found: &Found<Vec<Binding>>) -> Finding {
    let check = "namespaces";
    let bindings = match found {
        Ok(bindings) => bindings,
        Err(error) => return Finding::unknown(check, error),
    };
    let places: BTreeSet<_> = bindings
        .iter()
        .filter(|it| it.role_ref.name == ROLE_OF_RUNS)
        .map(|it| it.metadata.namespace.as_deref())
        .collect();
    if places.contains(&None) {
        return Finding::ok(check, "Benchmarks may run in all namespaces.".to_owned());
    }
    let names: Vec<_> = places.into_iter().flatten().collect();
    if names.is_empty() {
        return Finding::bad(
            check,
            Level::Fail,
            "The operator may run benchmarks in no namespace.".to_owned(),
            "Write the namespaces into the chart's value benchmarkNamespaces.",
        );
    }
    Finding::ok(
        check,
        format!("Benchmarks may run in: {}.", names.join(", ")),
    )
}

/// Whether this account may create benchmarks in its namespace. The account of a pod that only checks the installation
/// need not.
pub(super) fn rights(namespace: &str, is_pod: bool, found: &Found<bool>) -> Finding {
    let check = "rights";
    match found {
        Ok(false) if is_pod => Finding::skip(check, "this pod's account may create no benchmarks"),
        Err(error) => Finding::unknown(check, error),
        Ok(true) => Finding::ok(
            check,
            format!("You may create benchmarks in namespace {namespace}."),
        ),
        Ok(false) => Finding::bad(
            check,
            Level::Warn,
            format!("You may not create benchmarks in namespace {namespace}."),
            "Bind the ClusterRole frugality-edit to your account there, or name an account and a namespace that may with --context and --as.",
        ),
    }
}

/// Whether a node can't pull the image of a benchmark's pod.
pub(super) fn images(found: &Found<Vec<Pod>>) -> Finding {
    let check = "images";
    let pods = match found {
        Ok(pods) => pods,
        Err(error) => return Finding::unknown(check, error),
    };
    let waiting: Vec<_> = pods.iter().filter_map(without_image).collect();
    if waiting.is_empty() {
        return Finding::ok(
            check,
            "No pod of a benchmark waits for its image.".to_owned(),
        );
    }
    Finding::bad(
        check,
        Level::Warn,
        waiting.join(" "),
        "Check the image's name, whether the node reaches the registry, whether there is an image for the node's architecture, and imagePullSecrets of the candidate.",
    )
}

/// Which image of a pod can't be pulled, and why.
fn without_image(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let all = [&status.init_container_statuses, &status.container_statuses];
    let (container, reason, message) =
        all.into_iter().flatten().flatten().find_map(pull_failure)?;
    let node = pod.spec.as_ref().and_then(|it| it.node_name.as_deref());
    Some(format!(
        "Pod {} in namespace {} on node {} has no image {}: {reason}: {message}.",
        pod.name_any(),
        pod.namespace().unwrap_or_default(),
        node.unwrap_or("unknown"),
        container.image,
    ))
}

fn pull_failure(container: &ContainerStatus) -> Option<(&ContainerStatus, &str, &str)> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let is_about_image = matches!(
        reason,
        "ErrImagePull"
            | "ImagePullBackOff"
            | "ImageInspectError"
            | "InvalidImageName"
            | "ErrImageNeverPull"
    );
    let message = waiting.message.as_deref().unwrap_or("no message");
    is_about_image.then_some((container, reason, message.trim_end_matches('.')))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::ClusterError;

    fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn forbidden<T>() -> Found<T> {
        Err(ClusterError::Refused {
            code: 403,
            message: "you may not".to_owned(),
        })
    }

    #[test]
    fn a_check_without_rights_is_skipped_and_without_an_answer_a_warning() {
        for found in [
            nodes(&forbidden(), &[]),
            namespaces(&forbidden()),
            images(&forbidden()),
        ] {
            assert_eq!(found.level, Level::Skip, "{found:?}");
            assert!(found.message.contains("you may not"), "{found:?}");
        }
        assert_eq!(
            nodes(&Err(ClusterError::Silent(10)), &[]).level,
            Level::Warn
        );
    }

    fn node(ready: &str, unschedulable: bool) -> Node {
        from(json!({
            "spec": { "unschedulable": unschedulable },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        }))
    }

    #[test]
    fn a_benchmark_needs_two_nodes_that_take_its_pods() {
        let ready = || node("True", false);
        let of = |all: Vec<Node>| nodes(&Ok(all), &[]);
        assert_eq!(of(vec![ready(), ready()]).level, Level::Ok);
        let one = of(vec![ready()]);
        assert_eq!(one.level, Level::Warn);
        let remedy = one.remedy.unwrap();
        assert!(remedy.contains("allowSharedNode") && remedy.ends_with("Add a node."));
        for other in [node("Unknown", false), node("True", true)] {
            let found = of(vec![ready(), ready(), other]);
            assert_eq!(found.level, Level::Warn, "{found:?}");
            assert_eq!(found.message, "2 of 3 nodes take the pods of benchmarks.");
        }
        assert_eq!(of(vec![node("False", false)]).level, Level::Fail);
    }

    #[test]
    fn a_node_counts_if_the_pods_of_benchmarks_tolerate_its_taint() {
        let mut tainted = node("True", false);
        tainted.spec.as_mut().unwrap().taints = Some(vec![from(
            json!({ "key": "frugality.dev/role", "value": "measured", "effect": "NoSchedule" }),
        )]);
        let all = Ok(vec![node("True", false), tainted]);
        let found = nodes(&all, &[]);
        assert_eq!(found.level, Level::Warn, "{found:?}");
        assert!(found.message.starts_with("1 of 2 nodes "), "{found:?}");
        // A second node exists. The remedy is to let it take pods.
        assert!(found.remedy.unwrap().ends_with(LOOK_AT_NODES));
        let role = from(json!({ "key": "frugality.dev/role", "operator": "Exists" }));
        assert_eq!(nodes(&all, &[role]).level, Level::Ok);
    }

    fn binding(role: &str, namespace: Option<&str>) -> Binding {
        from(json!({
            "metadata": { "name": "x", "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        }))
    }

    #[test]
    fn the_namespaces_of_benchmarks_are_named() {
        let shop = || binding(ROLE_OF_RUNS, Some("shop"));
        let found = namespaces(&Ok(vec![
            shop(),
            binding("edit", Some("else")),
            binding("edit", None),
        ]));
        assert_eq!(found.message, "Benchmarks may run in: shop.");
        let found = namespaces(&Ok(vec![shop(), binding(ROLE_OF_RUNS, None)]));
        assert_eq!(found.message, "Benchmarks may run in all namespaces.");
        let found = namespaces(&Ok(vec![binding("edit", None)]));
        assert_eq!(found.level, Level::Fail);
    }

    #[test]
    fn doctor_names_the_rights_that_an_account_lacks() {
        let found = rights("shop", false, &Ok(true));
        assert_eq!(
            found.message,
            "You may create benchmarks in namespace shop."
        );
        let found = rights("shop", false, &Ok(false));
        assert_eq!(found.level, Level::Warn);
        assert!(found.remedy.unwrap().contains("frugality-edit"));
        assert_eq!(rights("shop", true, &Ok(false)).level, Level::Skip);
        assert_eq!(rights("shop", true, &Ok(true)).level, Level::Ok);
    }

    fn pod(kind: &str, reason: &str) -> Pod {
        let mut pod = json!({
            "metadata": { "name": "rust-1", "namespace": "shop" },
            "spec": { "nodeName": "pi-2", "containers": [] },
            "status": {},
        });
        pod["status"][kind] = json!([{
            "name": "server", "image": "example.org/rust:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": reason, "message": "no match for platform." } },
        }]);
        from(pod)
    }

    #[test]
    fn an_image_that_a_node_can_t_pull_is_named() {
        for kind in ["containerStatuses", "initContainerStatuses"] {
            let found = images(&Ok(vec![pod(kind, "ImagePullBackOff")]));
            assert_eq!(found.level, Level::Warn);
            let text = "Pod rust-1 in namespace shop on node pi-2 has no image example.org/rust:1: ImagePullBackOff: no match for platform.";
            assert_eq!(found.message, text);
        }
        let starting = pod("containerStatuses", "ContainerCreating");
        assert_eq!(images(&Ok(vec![starting, Pod::default()])).level, Level::Ok);
    }
}
