//! Candidates on nodes of their own. Each has its own meter, so that what one of them reads wrong is in one
//! figure of a pair alone and does not cancel: a ratio of theirs carries the accuracy of both.

use std::collections::BTreeSet;

use crate::{
    api::{Figure, FrugalityTrial, NodeResult, Reason},
    plan::verdict::{
        evidence::{Evidence, Measure, meter_uncertainty},
        not_compared::NotCompared,
    },
};

impl Evidence<'_> {
    /// The node that an entrant is measured on.
    fn node_of(&self, entrant: &str) -> Option<&str> {
        let trials = self.everywhere.iter().copied();
        let mut own = trials.filter(|e: &&FrugalityTrial| e.spec.candidate == entrant);
        Some(own.next()?.spec.measured_node.as_str())
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

    /// The candidate's node and what it draws, where there are several.
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

    /// What a ratio of two entrants' deciding figures has beside the spread of their pairs, as a standard
    /// uncertainty relative to it: nothing on one node, else that of both figures (JCGM 100:2008, 5.1.2).
    pub(super) fn of_meters(&self, one: &str, other: &str) -> Option<f64> {
        if self.is_on_one_node(one, other) {
            return None;
        }
        let deciding = Measure::Joules(self.deciding);
        let of = |entrant| self.uncertainty(&self.trials(entrant), deciding, f64::hypot);
        Some(of(one)?.hypot(of(other)?))
    }

    /// Why two candidates on nodes of their own are not compared: a meter of unknown accuracy.
    pub(super) fn meters_unknown(&self, one: &str, other: &str) -> Option<NotCompared> {
        if self.is_on_one_node(one, other) {
            return None;
        }
        let is_unknown = |entrant: &&str| {
            let mut trials = self.trials_everywhere(entrant);
            let deciding = Measure::Joules(self.deciding);
            trials.any(|trial| meter_uncertainty(trial, deciding).is_none())
        };
        let unknown = [one, other].into_iter().find(is_unknown)?;
        Some(NotCompared {
            reason: Reason::MeterAccuracyUnknown,
            message: format!(
                "{one} and {other} were measured by meters of their own, on {} and {}, and that of {} tells no accuracy: what it reads wrong would be in the ratio, so they are not compared; write its relativeUncertainty into the meter's configuration",
                self.node_of(one).unwrap_or_default(),
                self.node_of(other).unwrap_or_default(),
                self.node_of(unknown).unwrap_or_default(),
            ),
        })
    }
}
