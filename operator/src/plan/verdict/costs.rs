//! The cost of a million requests of a candidate.

use crate::{
    api::{CostPerMillion, Figure},
    plan::settings::costs::CostRates,
};

/// A candidate's cost. The terms use the figures that the status shows, and the total is the sum of the terms. `of_sums` is
/// the figure of each trial's sum, which keeps joules and rate of a trial together. The total has the relative interval of
/// `of_sums`.
pub(super) fn cost_of(
    rates: &CostRates,
    of_sums: Figure,
    joules: Figure,
    rate: Figure,
) -> CostPerMillion {
    let terms = rates.terms(joules.value, rate.value);
    CostPerMillion {
        unit: rates.unit.clone(),
        total: of_sums.times(terms.sum() / of_sums.value),
        energy: terms.of_energy(),
        node: terms.of_node(),
        terms: Some(terms),
    }
}
