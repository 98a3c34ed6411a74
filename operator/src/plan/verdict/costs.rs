//! What a million requests of a candidate cost.

use super::evidence::{Evidence, Measure};
use crate::{
    api::{CostPerMillion, DecidingFigure, Figure, FrugalityTrialStatus},
    plan::costs::Rates,
};

impl Evidence<'_> {
    /// The terms in one trial: for energy, and for the node.
    pub(super) fn cost_terms(
        &self,
        trial: &FrugalityTrialStatus,
        rates: &Rates,
    ) -> Option<(f64, f64)> {
        let joules = self.value(trial, Measure::Joules(DecidingFigure::Gross))?;
        let rate = self.value(trial, Measure::RequestsPerSecond)?;
        Some(rates.terms(joules, rate))
    }
}

/// A candidate's cost. Its terms are of the figures that are told beside it, so that they can be followed, and
/// the total is their sum; `of_sums` is the figure of the sums of each trial, in which joules and rate go
/// together, and the total has its relative interval.
pub(super) fn cost_of(
    rates: &Rates,
    of_sums: Figure,
    joules: Figure,
    rate: Figure,
) -> CostPerMillion {
    let (energy, node) = rates.terms(joules.value, rate.value);
    CostPerMillion {
        unit: rates.unit.clone(),
        total: of_sums.times((energy + node) / of_sums.value),
        energy,
        node,
    }
}
