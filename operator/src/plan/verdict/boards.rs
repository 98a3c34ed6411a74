//! Candidates on separate nodes. Each node has a meter, so an error of one meter is in only one figure of a pair and does not
//! cancel. The ratio includes the accuracy of both meters.

use std::collections::BTreeSet;

use crate::{
    api::{Figure, NodeResult, Reason},
    plan::verdict::{
        evidence::Evidence,
        intervals::combined,
        measure::{Measure, meter_uncertainty},
        not_compared::NotCompared,
    },
};

impl Evidence<'_> {
    /// The node on which an entrant is measured.
    fn node_of(&self, entrant: &str) -> Option<&str> {
        let entry = self.entries_everywhere(entrant, None).next()?;
        Some(entry.spec.measured_node.as_str())
    }

    /// Whether two entrants are measured on one node, by one meter.
    pub(super) fn is_on_one_node(&self, one: &str, other: &str) -> bool {
        self.node_of(one) == self.node_of(other)
    }

    /// The measured nodes.
    fn measured_nodes(&self) -> BTreeSet<&str> {
        let trials = self.everywhere.iter();
        trials.map(|e| e.spec.measured_node.as_str()).collect()
    }

    /// The candidate's node and its power, if there are several nodes.
    pub(super) fn own_node(
        &self,
        candidate: &str,
        mut figure: impl FnMut(Measure<'static>) -> Option<Figure>,
    ) -> Option<NodeResult> {
        let name = self.node_of(candidate)?.to_owned();
        (self.measured_nodes().len() > 1).then(|| NodeResult {
            name,
            idle_watts: figure(Measure::IdleWatts),
            load_watts: figure(Measure::LoadWatts),
        })
    }

    /// Relative standard uncertainty of a ratio by the meters, in addition to the spread of the pairs. `None` on one node.
    /// Otherwise both figures' uncertainties together.
    pub(super) fn of_meters(&self, one: &str, other: &str) -> Option<f64> {
        if self.is_on_one_node(one, other) {
            return None;
        }
        let deciding = Measure::Joules(self.deciding);
        let of = |entrant| self.uncertainty(&self.trials(entrant), deciding, f64::hypot);
        let (first, second) = (of(one)?, of(other)?);
        let are_models = self.is_modelled(one) && self.is_modelled(other);
        Some(combined(first, second, are_models))
    }

    /// Two candidates on separate nodes are not compared if their meters measure different parts of a node.
    pub(super) fn zones_differ(&self, one: &str, other: &str) -> Option<NotCompared> {
        let zone_of = |entrant| {
            let mut trials = self.trials_everywhere(entrant, None);
            trials.find_map(|trial| Some(trial.energy.as_ref()?.zone.clone()))
        };
        let (first, second) = (zone_of(one)?, zone_of(other)?);
        (first != second).then(|| NotCompared {
            reason: Reason::ZonesDiffer,
            message: format!(
                "Not compared: {one} was measured on {} in the zone {first}, and {other} on {} in the zone {second}. Connect meters that measure the same part of both nodes.",
                self.node_of(one).unwrap_or_default(),
                self.node_of(other).unwrap_or_default(),
            ),
        })
    }

    /// Two candidates on separate nodes are not compared if the accuracy of a meter is unknown.
    pub(super) fn meters_unknown(&self, one: &str, other: &str) -> Option<NotCompared> {
        if self.is_on_one_node(one, other) {
            return None;
        }
        let is_unknown = |entrant: &&str| {
            let mut trials = self.trials_everywhere(entrant, None);
            let deciding = Measure::Joules(self.deciding);
            trials.any(|trial| meter_uncertainty(trial, deciding).is_none())
        };
        let unknown = [one, other].into_iter().find(is_unknown)?;
        Some(NotCompared {
            reason: Reason::MeterAccuracyUnknown,
            message: format!(
                "Not compared: {one} on {} and {other} on {}. The meter on {} reports no accuracy, so its error could change the ratio. Set relativeUncertainty for that meter.",
                self.node_of(one).unwrap_or_default(),
                self.node_of(other).unwrap_or_default(),
                self.node_of(unknown).unwrap_or_default(),
            ),
        })
    }
}
