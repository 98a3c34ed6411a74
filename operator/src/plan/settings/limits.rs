//! What budgets limit.

use super::error::{SettingsError, no_candidate};
use crate::{
    api::{Budget, FrugalityBenchmarkSpec},
    load::read::number,
};

/// A limit on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Joules per successful request, of the deciding figure.
    JoulesPerRequest,
    /// Mean milliseconds of a successful request.
    MillisecondsPerRequest,
    /// Successful requests per second.
    RequestsPerSecond,
    /// Share of requests without an expected answer.
    ErrorRatio,
    /// Deciding figure over another candidate's.
    EnergyRatio,
}

impl Quantity {
    /// Field of the budget.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::JoulesPerRequest => "maxJoulesPerRequest",
            Self::MillisecondsPerRequest => "maxMillisecondsPerRequest",
            Self::RequestsPerSecond => "minRequestsPerSecond",
            Self::ErrorRatio => "maxErrorRatio",
            Self::EnergyRatio => "maxEnergyRatio",
        }
    }

    /// Whether a candidate that the injector limits would be as good or better without that limit, in a closed loop:
    /// more requests/s, and by Little's law less time for each.
    #[must_use]
    pub fn gains_by_pace(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::MillisecondsPerRequest)
    }

    /// Whether the limit is the least (else the most) that is allowed.
    #[must_use]
    pub fn is_minimum(self) -> bool {
        self == Self::RequestsPerSecond
    }
}

/// One limit of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Candidate.
    pub candidate: String,
    /// What is limited.
    pub quantity: Quantity,
    /// Limit, in the unit of the quantity.
    pub value: f64,
    /// The same as the user wrote it.
    pub written: String,
    /// The other candidate of a ratio.
    pub against: Option<String>,
}

pub(super) fn limits(spec: &FrugalityBenchmarkSpec) -> Result<Vec<Limit>, SettingsError> {
    let mut limits = Vec::new();
    for budget in &spec.budgets {
        for (quantity, decimal) in [
            (Quantity::JoulesPerRequest, &budget.max_joules_per_request),
            (
                Quantity::MillisecondsPerRequest,
                &budget.max_milliseconds_per_request,
            ),
            (Quantity::RequestsPerSecond, &budget.min_requests_per_second),
            (Quantity::ErrorRatio, &budget.max_error_ratio),
            (Quantity::EnergyRatio, &budget.max_energy_ratio),
        ] {
            let Some(decimal) = decimal else { continue };
            let against = match quantity {
                Quantity::EnergyRatio => Some(against(spec, budget)?),
                _ => None,
            };
            limits.push(Limit {
                candidate: budget.candidate.clone(),
                quantity,
                value: number(quantity.field(), decimal)?,
                written: decimal.to_string(),
                against,
            });
        }
    }
    Ok(limits)
}

fn against(spec: &FrugalityBenchmarkSpec, budget: &Budget) -> Result<String, SettingsError> {
    let name = budget.against.clone().unwrap_or_default();
    if name == budget.candidate || !spec.candidates.iter().any(|c| c.name == name) {
        return Err(no_candidate("budgets.against", &name));
    }
    Ok(name)
}
