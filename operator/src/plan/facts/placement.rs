//! Where a benchmark is to run.

use std::collections::BTreeMap;

use crate::api::{Candidate, FrugalityBenchmarkSpec};

/// Label that the operator selects a node by.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// Labels that a node has.
pub type Labels = BTreeMap<String, String>;

/// Nodes that a benchmark asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementRequest {
    /// Each candidate with the labels of its measured node.
    pub measured: Vec<(String, Labels)>,
    /// Labels of the injector's node.
    pub injector: Labels,
    /// Whether the injector may run on the measured node.
    pub allow_shared_node: bool,
}

impl PlacementRequest {
    /// The request of a spec.
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

    /// Names of the candidates that ask for the same measured node as this candidate, which is included. All of
    /// them run on the node that the first of them began on.
    pub fn alike<'a>(&'a self, candidate: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.measured.iter().find(|(name, _)| name == candidate);
        let alike = self
            .measured
            .iter()
            .filter(move |(_, labels)| own.is_some_and(|(_, own)| own == labels));
        alike.map(|(name, _)| name.as_str())
    }
}
