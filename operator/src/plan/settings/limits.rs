//! Limits that budgets set.

use super::error::{SettingsError, no_candidate};
use crate::{
    api::{Budget, FrugalityBenchmarkSpec},
    load::read::number,
};

/// The figure that a limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Joules per successful request, by the deciding figure.
    JoulesPerRequest,
    /// Mean latency of a successful request, in milliseconds.
    MillisecondsPerRequest,
    /// Successful requests per second.
    RequestsPerSecond,
    /// Ratio of requests without an expected response.
    ErrorRatio,
    /// Ratio of the deciding figure to another candidate's.
    EnergyRatio,
}

impl Quantity {
    /// Name of the budget's field.
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

    /// Whether this figure would be as good or better without the injector's limit on the rate, in a closed loop:
    /// more requests/s and, by Little's law, less time per request.
    #[must_use]
    pub fn gains_by_pace(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::MillisecondsPerRequest)
    }

    /// Whether the limit is a minimum; otherwise it is a maximum.
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
    /// The figure that is limited.
    pub quantity: Quantity,
    /// Limit, in the unit of the quantity.
    pub value: f64,
    /// The limit, exactly as the user wrote it.
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
