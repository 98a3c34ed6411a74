//! Which node is measured and which one injects.

use std::collections::BTreeMap;

use super::{
    facts::{NodeFacts, Observed, PodFacts},
    ledger::Ledger,
    turn::{Claims, Queue},
};
use crate::api::{Placement, Role, reason};

/// Label by which a pod is put on a node.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Label by which an administrator says what a node is for.
pub const ROLE_LABEL: &str = "frugality.dev/role";
const MEASURED: &str = "measured";

/// The nodes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Node that is measured.
    pub measured: NodeFacts,
    /// Node that injects.
    pub injector: NodeFacts,
}

/// Why a run can't be placed, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Reason code.
    pub reason: &'static str,
    /// For people.
    pub message: String,
}

/// Labels that put a pod on this node.
#[must_use]
pub fn selector(node: &NodeFacts) -> BTreeMap<String, String> {
    let hostname = node.labels.get(HOSTNAME_LABEL).unwrap_or(&node.name);
    BTreeMap::from([(HOSTNAME_LABEL.to_owned(), hostname.clone())])
}

/// Chooses the nodes: the measured one always the same for the same cluster, and of the injectors
/// that are as good as each other one that nobody else holds. Who has the locks of its nodes keeps
/// these, and a run that has begun its own.
pub fn choose(
    placement: &Placement,
    observed: &Observed,
    ledger: &Ledger<'_>,
    queue: &Queue<'_>,
) -> Result<Nodes, Misplaced> {
    let holds = |node: &NodeFacts| queue.holds(&node.name);
    let recorded = ledger.entries().iter().find(|e| e.spec.block > 0);
    let measured = match recorded {
        Some(trial) => recorded_node(
            observed,
            &trial.spec.measured_node,
            reason::NO_MEASURED_NODE,
        )?,
        None => match beside_the_database(observed) {
            Some(node) => node,
            None => measured_node(placement, &observed.nodes, holds)?.clone(),
        },
    };
    let injector = if let Some(trial) = recorded {
        recorded_node(
            observed,
            &trial.spec.injector_node,
            reason::NO_INJECTOR_NODE,
        )?
    } else {
        let keeps = |node: &NodeFacts| queue.holds(&measured.name) && holds(node);
        injector_node(placement, &observed.nodes, &measured, keeps, queue.claims())?.clone()
    };
    Ok(Nodes { measured, injector })
}

/// The nodes that a benchmark which holds none would choose behind these claims; none where it can't
/// be placed.
#[must_use]
pub fn wanted<'a>(
    placement: &Placement,
    nodes: &'a [NodeFacts],
    claims: &Claims<'_>,
) -> Vec<&'a NodeFacts> {
    let choice = || {
        let measured = measured_node(placement, nodes, |_| false)?;
        let injector = injector_node(placement, nodes, measured, |_| false, claims)?;
        Ok::<_, Misplaced>(vec![measured, injector])
    };
    choice().unwrap_or_default()
}

/// The node that the database was put on: the candidates go where it is.
fn beside_the_database(observed: &Observed) -> Option<NodeFacts> {
    let is_database = |pod: &&PodFacts| pod.role == Role::Database.as_str();
    let hostname = match &observed.database {
        Some(cluster) => &cluster.hostname,
        None => observed.pods.iter().find(is_database)?.hostname.as_ref()?,
    };
    let on_it = |node: &&NodeFacts| selector(node).get(HOSTNAME_LABEL) == Some(hostname);
    observed.nodes.iter().find(on_it).cloned()
}

fn recorded_node(
    observed: &Observed,
    name: &str,
    reason: &'static str,
) -> Result<NodeFacts, Misplaced> {
    observed
        .nodes
        .iter()
        .find(|node| node.name == name && node.schedulable)
        .cloned()
        .ok_or_else(|| Misplaced {
            reason,
            message: format!("node {name}, which the run began on, is not ready"),
        })
}

fn measured_node<'a>(
    placement: &Placement,
    nodes: &'a [NodeFacts],
    holds: impl Fn(&NodeFacts) -> bool,
) -> Result<&'a NodeFacts, Misplaced> {
    let mut selector = placement.measured_node_selector.clone();
    // Where a node has the label, no other is meant: another board's joules are no stand-in for its own
    // while it is not ready, or its meter is not.
    let is_meant = |node: &NodeFacts| is_labelled_measured(node) && has(node, &selector);
    if nodes.iter().any(is_meant) {
        selector.insert(ROLE_LABEL.to_owned(), MEASURED.to_owned());
    }
    let matching: Vec<_> = schedulable(nodes, &selector).collect();
    if matching.is_empty() {
        return Err(Misplaced {
            reason: reason::NO_MEASURED_NODE,
            message: format!(
                "no ready, untainted node{}; label one, or change spec.placement.measuredNodeSelector",
                words(&selector)
            ),
        });
    }
    let names: Vec<&str> = matching.iter().map(|node| node.name.as_str()).collect();
    let names = names.join(", ");
    matching
        .into_iter()
        .filter(|node| node.meter_ip.is_some())
        .min_by_key(|node| (!holds(node), &node.name))
        .ok_or_else(|| Misplaced {
            reason: reason::METER_MISSING,
            message: format!(
                "no ready meter on any node that may be measured ({names}); look at the meter's pods (kubectl get pods -A -l app.kubernetes.io/name=frugality-meter), at spec.placement.measuredNodeSelector and at the label {ROLE_LABEL}={MEASURED}"
            ),
        })
}

fn injector_node<'a>(
    placement: &Placement,
    nodes: &'a [NodeFacts],
    measured: &'a NodeFacts,
    holds: impl Fn(&NodeFacts) -> bool,
    claims: &Claims<'_>,
) -> Result<&'a NodeFacts, Misplaced> {
    let selector = &placement.injector_node_selector;
    let best = schedulable(nodes, selector)
        .filter(|node| node.name != measured.name)
        .min_by_key(|node| {
            (
                !holds(node),
                is_labelled_measured(node),
                claims.wait_at(&node.name, &measured.name),
                &node.name,
            )
        });
    match best {
        Some(node) => Ok(node),
        None if placement.allow_shared_node => Ok(measured),
        None => Err(Misplaced {
            reason: reason::NO_INJECTOR_NODE,
            message: format!(
                "no ready, untainted node beside {}{} for the injector; add a node, change spec.placement.injectorNodeSelector, or write spec.placement.allowSharedNode: true, with which attributed joules decide and gross and net ones are withheld",
                measured.name,
                words(selector)
            ),
        }),
    }
}

fn schedulable<'a>(
    nodes: &'a [NodeFacts],
    selector: &BTreeMap<String, String>,
) -> impl Iterator<Item = &'a NodeFacts> {
    nodes
        .iter()
        .filter(move |node| node.schedulable && has(node, selector))
}

fn has(node: &NodeFacts, labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .all(|(key, value)| node.labels.get(key) == Some(value))
}

fn is_labelled_measured(node: &NodeFacts) -> bool {
    node.labels
        .get(ROLE_LABEL)
        .is_some_and(|role| role == MEASURED)
}

fn words(selector: &BTreeMap<String, String>) -> String {
    if selector.is_empty() {
        return String::new();
    }
    let pairs: Vec<_> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    format!(" has the labels {}", pairs.join(","))
}
