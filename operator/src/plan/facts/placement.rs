//! Where a benchmark asks to run.

use std::collections::BTreeMap;

use crate::api::{Candidate, FrugalityBenchmarkSpec};

/// Label by which a pod is put on a node.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// Labels that a node has.
pub type Labels = BTreeMap<String, String>;

/// Where a benchmark wants to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementRequest {
    /// Each candidate, and the labels of the node that is measured for it.
    pub measured: Vec<(String, Labels)>,
    /// Labels of the node that injects.
    pub injector: Labels,
    /// Whether the injector may run on the measured node.
    pub allow_shared_node: bool,
}

impl PlacementRequest {
    /// What a spec asks for.
    #[must_use]
    pub fn of(spec: &FrugalityBenchmarkSpec) -> Self {
        let placement = &spec.placement;
        let measured = |candidate: &Candidate| {
            let own = candidate.measured_node_selector.as_ref();
            let labels = own.unwrap_or(&placement.measured_node_selector);
            (candidate.name.clone(), labels.clone())
        };
        Self {
            measured: spec.candidates.iter().map(measured).collect(),
            injector: placement.injector_node_selector.clone(),
            allow_shared_node: placement.allow_shared_node,
        }
    }

    /// Names of the candidates that ask for the same measured node as this one, which is among them: they are on
    /// the same node, whichever of them began there.
    pub fn alike<'a>(&'a self, candidate: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.measured.iter().find(|(name, _)| name == candidate);
        let alike = self
            .measured
            .iter()
            .filter(move |(_, labels)| own.is_some_and(|(_, own)| own == labels));
        alike.map(|(name, _)| name.as_str())
    }
}
