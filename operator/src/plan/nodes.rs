//! Which node is measured and which one injects.

use std::collections::BTreeMap;

use super::{
    facts::{NodeFacts, Observed},
    ledger::Ledger,
};
use crate::api::{Placement, reason};

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

/// Chooses the nodes, always the same for the same cluster. A run that has begun keeps its own.
pub fn choose(
    placement: &Placement,
    observed: &Observed,
    ledger: &Ledger<'_>,
) -> Result<Nodes, Misplaced> {
    let recorded = ledger.entries().iter().find(|e| e.spec.block > 0);
    let measured = match recorded {
        Some(trial) => recorded_node(
            observed,
            &trial.spec.measured_node,
            reason::NO_MEASURED_NODE,
        )?,
        None => match beside_the_database(observed) {
            Some(node) => node,
            None => measured_node(placement, observed)?,
        },
    };
    let injector = match recorded {
        Some(trial) => recorded_node(
            observed,
            &trial.spec.injector_node,
            reason::NO_INJECTOR_NODE,
        )?,
        None => injector_node(placement, observed, &measured)?,
    };
    Ok(Nodes { measured, injector })
}

/// The node that the database was put on: the candidates go where it is.
fn beside_the_database(observed: &Observed) -> Option<NodeFacts> {
    let hostname = &observed.database.as_ref()?.hostname;
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

fn measured_node(placement: &Placement, observed: &Observed) -> Result<NodeFacts, Misplaced> {
    let mut matching: Vec<_> = schedulable(observed, &placement.measured_node_selector).collect();
    if matching.is_empty() {
        return Err(Misplaced {
            reason: reason::NO_MEASURED_NODE,
            message: format!(
                "no ready, untainted node{}; label one, or change spec.placement.measuredNodeSelector",
                words(&placement.measured_node_selector)
            ),
        });
    }
    matching.retain(|node| node.meter_ip.is_some());
    matching.sort_by_key(|node| (!is_labelled_measured(node), node.name.clone()));
    matching.first().map(|node| (*node).clone()).ok_or_else(|| Misplaced {
        reason: reason::METER_MISSING,
        message: "no ready meter on any node that may be measured; look at the meter's pods (kubectl get pods -A -l app.kubernetes.io/name=frugality-meter) and at spec.placement.measuredNodeSelector".into(),
    })
}

fn injector_node(
    placement: &Placement,
    observed: &Observed,
    measured: &NodeFacts,
) -> Result<NodeFacts, Misplaced> {
    let mut others: Vec<_> = schedulable(observed, &placement.injector_node_selector)
        .filter(|node| node.name != measured.name)
        .collect();
    others.sort_by_key(|node| (is_labelled_measured(node), node.name.clone()));
    match others.first() {
        Some(node) => Ok((*node).clone()),
        None if placement.allow_shared_node => Ok(measured.clone()),
        None => Err(Misplaced {
            reason: reason::NO_INJECTOR_NODE,
            message: format!(
                "no ready, untainted node beside {}{} for the injector; add a node, change spec.placement.injectorNodeSelector, or write spec.placement.allowSharedNode: true, with which attributed joules decide and gross and net ones are withheld",
                measured.name,
                words(&placement.injector_node_selector)
            ),
        }),
    }
}

fn schedulable<'a>(
    observed: &'a Observed,
    selector: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a NodeFacts> {
    observed.nodes.iter().filter(move |node| {
        node.schedulable
            && selector
                .iter()
                .all(|(key, value)| node.labels.get(key) == Some(value))
    })
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
