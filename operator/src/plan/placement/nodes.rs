//! Chooses the measured nodes and the injector's node.

use crate::{
    api::{FrugalityTrial, LABEL_ROLE, Reason, Role},
    plan::{
        facts::{
            NodeFacts, Observed, Peer, PodFacts,
            placement::{HOSTNAME_LABEL, Labels, PlacementRequest},
        },
        ledger::Ledger,
        placement::reservations::Reservations,
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// Value of [`LABEL_ROLE`] on a node that may be measured.
const MEASURED: &str = "measured";

/// What to do about a node without a ready meter.
const CHECK_METERS: &str = "Check the meter's pods: kubectl get pods -A -l app.kubernetes.io/name=frugality-meter. Only pods of its DaemonSet count; for Kepler, pods of the DaemonSet in energy.kepler.daemonSet.";

/// The nodes of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Measured node of each candidate, by the candidate's name. All candidates have the same node unless the spec
    /// asks for separate nodes.
    measured: BTreeMap<String, NodeFacts>,
    /// Node of the injector.
    pub injector: NodeFacts,
}

impl Nodes {
    /// The measured node of a candidate.
    #[must_use]
    pub fn of(&self, candidate: &str) -> Option<&NodeFacts> {
        self.measured.get(candidate)
    }

    /// The measured nodes without duplicates, sorted by name.
    #[must_use]
    pub fn measured(&self) -> Vec<&NodeFacts> {
        let mut nodes: Vec<_> = self.measured.values().collect();
        nodes.sort_by_key(|node| &node.name);
        nodes.dedup_by_key(|node| &node.name);
        nodes
    }

    /// Labels that place the database next to its candidates. With a database, no candidate has a separate node.
    #[must_use]
    pub fn database(&self) -> Labels {
        let node = self.measured.values().next();
        node.map(selector).unwrap_or_default()
    }

    /// Why the next attempt can't begin: a node accepts no new pods, or a measured node has no ready meter.
    #[must_use]
    pub fn closed(&self) -> Option<Misplaced> {
        let misplaced = |node: &NodeFacts, reason| Misplaced {
            reason,
            message: unschedulable_message(node),
        };
        let mut measured = self.measured.values();
        let closed = measured.find(|node| !node.schedulable);
        let unmetered = self.measured.values().find(|node| node.meter_ip.is_none());
        closed
            .map(|node| misplaced(node, Reason::NoMeasuredNode))
            .or_else(|| unmetered.map(without_meter))
            .or_else(|| {
                let injector = Some(&self.injector).filter(|node| !node.schedulable)?;
                Some(misplaced(injector, Reason::NoInjectorNode))
            })
    }

    /// Names of all nodes without duplicates, measured nodes first.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let measured = self.measured();
        let mut names: Vec<_> = measured.iter().map(|node| node.name.as_str()).collect();
        if !names.contains(&self.injector.name.as_str()) {
            names.push(&self.injector.name);
        }
        names
    }
}

/// Why a run can't be placed, and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// Reason code.
    pub reason: Reason,
    /// Text for people.
    pub message: String,
}

/// Labels that place a pod on this node.
#[must_use]
pub fn selector(node: &NodeFacts) -> Labels {
    let hostname = node.labels.get(HOSTNAME_LABEL).unwrap_or(&node.name);
    BTreeMap::from([(HOSTNAME_LABEL.to_owned(), hostname.clone())])
}

/// Chooses the nodes. For one state of the cluster, the measured nodes are always the same. Of equally good
/// injector nodes, the choice is one that no other benchmark holds. A benchmark that holds the locks of its nodes
/// keeps these nodes. A run that has begun keeps its recorded nodes. `is_of` says whether an entrant is that
/// candidate.
pub fn choose(
    request: &PlacementRequest,
    is_of: impl Fn(&str, &str) -> bool,
    observed: &Observed,
    ledger: &Ledger<'_>,
    holds: impl Fn(&str) -> bool,
    reservations: &Reservations<'_>,
) -> Result<Nodes, Misplaced> {
    let holds = |node: &NodeFacts| holds(&node.name);
    let is_placed = |e: &&&FrugalityTrial| e.spec.block > 0 && !e.spec.measured_node.is_empty();
    let begun = || ledger.entries().iter().filter(is_placed);
    let recorded = |candidate: &str| {
        begun().find(|e| {
            request
                .alike(candidate)
                .any(|name| is_of(&e.spec.candidate, name))
        })
    };
    let database_node = database_node(observed);
    let mut measured = BTreeMap::new();
    for (candidate, labels) in &request.measured {
        let node = match (recorded(candidate), &database_node) {
            (Some(trial), _) => {
                let node = recorded_node(observed, &trial.spec.measured_node)?;
                // A run that holds the node waits there, before its next attempt.
                if node.meter_ip.is_none() && !holds(&node) {
                    return Err(without_meter(&node));
                }
                node
            }
            (None, Some(node)) => node.clone(),
            (None, None) => measured_node(labels, &observed.nodes, holds)?.clone(),
        };
        measured.insert(candidate.clone(), node);
    }
    let injector = if let Some(trial) = begun().next() {
        recorded_node(observed, &trial.spec.injector_node)?
    } else {
        let measured: Vec<_> = measured.values().collect();
        let has_begun = measured.iter().all(|node| holds(node));
        let keeps = |node: &NodeFacts| has_begun && holds(node);
        injector_node(request, &observed.nodes, &measured, keeps, reservations)?.clone()
    };
    Ok(Nodes { measured, injector })
}

/// The nodes that a benchmark without locks would choose after these reservations, in the order of [`Nodes::names`].
/// Empty if it can't be placed.
#[must_use]
pub fn wanted<'a>(
    peer: &Peer,
    nodes: &'a [NodeFacts],
    reservations: &Reservations<'_>,
) -> Vec<&'a NodeFacts> {
    if peer.began_on.is_empty() {
        asked(peer, nodes, reservations)
    } else {
        continued(peer, nodes).unwrap_or_default()
    }
}

/// The nodes of a run that has begun. `None` if one of them or a meter is missing.
fn continued<'a>(peer: &Peer, nodes: &'a [NodeFacts]) -> Option<Vec<&'a NodeFacts>> {
    let by_name = |name: &String| nodes.iter().find(|node| node.name == *name);
    let recorded: Vec<_> = peer.began_on.iter().map(by_name).collect::<Option<_>>()?;
    // The injector's node is the last one, or the only one if it is shared.
    let measured = &recorded[..recorded.len().saturating_sub(1).max(1)];
    measured
        .iter()
        .all(|node| node.meter_ip.is_some())
        .then_some(recorded)
}

/// The nodes that a benchmark would choose by its spec alone, as [`wanted`].
#[must_use]
pub fn asked<'a>(
    peer: &Peer,
    nodes: &'a [NodeFacts],
    reservations: &Reservations<'_>,
) -> Vec<&'a NodeFacts> {
    let Some(request) = &peer.request else {
        return Vec::new();
    };
    let choice = || {
        let measured = request.measured.iter();
        let mut chosen = measured
            .map(|(_, labels)| measured_node(labels, nodes, |_| false))
            .collect::<Result<Vec<_>, _>>()?;
        let injector = injector_node(request, nodes, &chosen, |_| false, reservations)?;
        chosen.sort_by_key(|node| &node.name);
        chosen.dedup_by_key(|node| &node.name);
        if !chosen.contains(&injector) {
            chosen.push(injector);
        }
        Ok::<_, Misplaced>(chosen)
    };
    choice().unwrap_or_default()
}

/// The node of the database. The candidates run on the same node.
fn database_node(observed: &Observed) -> Option<NodeFacts> {
    let is_database = |pod: &&PodFacts| pod.role == Role::Database.as_str();
    let hostname = match &observed.database {
        Some(cluster) => &cluster.hostname,
        None => observed.pods.iter().find(is_database)?.hostname.as_ref()?,
    };
    let on_it = |node: &&NodeFacts| selector(node).get(HOSTNAME_LABEL) == Some(hostname);
    observed.nodes.iter().find(on_it).cloned()
}

/// A node that the run began on, even if it accepts no new pods now.
fn recorded_node(observed: &Observed, name: &str) -> Result<NodeFacts, Misplaced> {
    let mut nodes = observed.nodes.iter();
    let node = nodes.find(|node| node.name == name).cloned();
    node.ok_or_else(|| Misplaced {
        reason: Reason::NodeRemoved,
        message: format!(
            "node {name}, which the run began on, was removed from the cluster; add it again under that name, or start another run"
        ),
    })
}

/// Why a node accepts no new pods.
#[must_use]
pub fn unschedulable_message(node: &NodeFacts) -> String {
    format!(
        "node {} takes no new pods: it is not ready, is cordoned, or has a taint",
        node.name
    )
}

fn measured_node<'a>(
    labels: &Labels,
    nodes: &'a [NodeFacts],
    holds: impl Fn(&NodeFacts) -> bool,
) -> Result<&'a NodeFacts, Misplaced> {
    let mut selector = labels.clone();
    // If a matching node has the label, only labelled nodes are measured. While that node or its meter is not
    // ready, another board's joules are not a substitute.
    let is_labelled_match = |node: &NodeFacts| is_labelled_measured(node) && has(node, &selector);
    if nodes.iter().any(is_labelled_match) {
        selector.insert(LABEL_ROLE.to_owned(), MEASURED.to_owned());
    }
    let matching: Vec<_> = schedulable(nodes, &selector).collect();
    if matching.is_empty() {
        return Err(Misplaced {
            reason: Reason::NoMeasuredNode,
            message: if selector.is_empty() {
                "no node is ready and untainted. Add a node, or remove its taint or cordon."
                    .to_owned()
            } else {
                format!(
                    "no ready, untainted node{}. Label a node, or change spec.placement.measuredNodeSelector or candidates[].measuredNodeSelector.",
                    words(&selector)
                )
            },
        });
    }
    let names: Vec<&str> = matching.iter().map(|node| node.name.as_str()).collect();
    let names = names.join(", ");
    matching
        .into_iter()
        .filter(|node| node.meter_ip.is_some())
        .min_by_key(|node| (!holds(node), &node.name))
        .ok_or_else(|| Misplaced {
            reason: Reason::MeterMissing,
            message: format!(
                "no ready meter on any node that may be measured ({names}). {CHECK_METERS} Check spec.placement.measuredNodeSelector and the label {LABEL_ROLE}={MEASURED} too"
            ),
        })
}

/// Why a run that has begun on this node can't continue there.
fn without_meter(node: &NodeFacts) -> Misplaced {
    Misplaced {
        reason: Reason::MeterMissing,
        message: format!(
            "node {}, which the run began on, has no ready meter. {CHECK_METERS}",
            node.name
        ),
    }
}

/// `measured` is never empty.
fn injector_node<'a>(
    request: &PlacementRequest,
    nodes: &'a [NodeFacts],
    measured: &[&'a NodeFacts],
    holds: impl Fn(&NodeFacts) -> bool,
    reservations: &Reservations<'_>,
) -> Result<&'a NodeFacts, Misplaced> {
    let selector = &request.injector;
    let names: BTreeSet<&str> = measured.iter().map(|node| node.name.as_str()).collect();
    let wait_rank = |node: &NodeFacts| {
        let waits = names
            .iter()
            .map(|name| reservations.wait_rank(&node.name, name));
        waits.max()
    };
    let best = schedulable(nodes, selector)
        .filter(|node| !names.contains(node.name.as_str()))
        .min_by_key(|node| {
            (
                !holds(node),
                is_labelled_measured(node),
                wait_rank(node),
                &node.name,
            )
        });
    let shared = match measured {
        // With several measured nodes, the injector would run on one of them only, and the candidates would not be
        // comparable.
        [node, ..] if names.len() == 1 => Some(*node),
        _ => None,
    };
    let sharing = if shared.is_some() {
        " Or write spec.placement.allowSharedNode: true: net attributed joules then decide, and gross and net joules are withheld."
    } else {
        ""
    };
    best.or_else(|| shared.filter(|_| request.allow_shared_node))
        .ok_or_else(|| Misplaced {
            reason: Reason::NoInjectorNode,
            message: format!(
                "the injector needs a node: no ready, untainted node other than {}{}. Add a node, or change spec.placement.injectorNodeSelector.{sharing}",
                names.into_iter().collect::<Vec<_>>().join(" and "),
                words(selector)
            ),
        })
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
        .get(LABEL_ROLE)
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
