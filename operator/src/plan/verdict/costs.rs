//! What a million requests of a candidate cost.

use crate::{
    api::{CostPerMillion, Figure},
    plan::settings::costs::Rates,
};

/// A candidate's cost. Its terms are of the figures that are told beside it, so that they can be followed, and
/// the total is their sum; `of_sums` is the figure of the sums of each trial, in which joules and rate go
/// together, and the total has its relative interval.
pub(super) fn cost_of(
    rates: &Rates,
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
