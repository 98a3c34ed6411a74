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
    /// Joules per successful request, by the deciding figure, times mean seconds per request.
    EnergyDelay,
    /// A figure of all load levels together.
    OfCurve(CurveFigure),
}

/// A figure of the power over the rate, from all load levels together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveFigure {
    /// Successful requests per joule.
    RequestsPerJoule,
    /// Joules of one more request.
    MarginalJoules,
    /// Power of the node without load, in watts.
    IdleWatts,
    /// Power without load as a share of the power at level 100.
    IdleShare,
    /// Energy proportionality.
    Proportionality,
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
            Self::EnergyDelay => "maxEnergyDelayJouleSeconds",
            Self::OfCurve(CurveFigure::RequestsPerJoule) => "minRequestsPerJoule",
            Self::OfCurve(CurveFigure::MarginalJoules) => "maxMarginalJoulesPerRequest",
            Self::OfCurve(CurveFigure::IdleWatts) => "maxIdleWatts",
            Self::OfCurve(CurveFigure::IdleShare) => "maxIdleShare",
            Self::OfCurve(CurveFigure::Proportionality) => "minProportionality",
        }
    }

    /// Whether the limit is a minimum; otherwise it is a maximum.
    #[must_use]
    pub fn is_minimum(self) -> bool {
        self.field().starts_with("min")
    }

    /// Whether the figure depends on power.
    #[must_use]
    pub fn is_of_energy(self) -> bool {
        !matches!(
            self,
            Self::MillisecondsPerRequest | Self::RequestsPerSecond | Self::ErrorRatio
        )
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
    /// The 99th percentile of the latency, in milliseconds, that a point must keep. The limit then holds at the best of
    /// these points, and otherwise at all points.
    pub p99_milliseconds: Option<f64>,
}

pub(super) fn limits(spec: &FrugalityBenchmarkSpec) -> Result<Vec<Limit>, SettingsError> {
    let mut limits = Vec::new();
    let has_levels = spec
        .load
        .sweep
        .as_ref()
        .is_some_and(|sweep| !sweep.levels.is_empty());
    for budget in &spec.budgets {
        if budget.load_curve.is_some() && !has_levels {
            return Err(SettingsError::LoadCurveBudget);
        }
        let curve = budget.load_curve.clone().unwrap_or_default();
        for (quantity, decimal) in [
            (Quantity::JoulesPerRequest, &budget.max_joules_per_request),
            (
                Quantity::MillisecondsPerRequest,
                &budget.max_milliseconds_per_request,
            ),
            (Quantity::RequestsPerSecond, &budget.min_requests_per_second),
            (Quantity::ErrorRatio, &budget.max_error_ratio),
            (Quantity::EnergyRatio, &budget.max_energy_ratio),
            (
                Quantity::EnergyDelay,
                &budget.max_energy_delay_joule_seconds,
            ),
            (
                Quantity::OfCurve(CurveFigure::RequestsPerJoule),
                &curve.min_requests_per_joule,
            ),
            (
                Quantity::OfCurve(CurveFigure::MarginalJoules),
                &curve.max_marginal_joules_per_request,
            ),
            (
                Quantity::OfCurve(CurveFigure::IdleWatts),
                &curve.max_idle_watts,
            ),
            (
                Quantity::OfCurve(CurveFigure::IdleShare),
                &curve.max_idle_share,
            ),
            (
                Quantity::OfCurve(CurveFigure::Proportionality),
                &curve.min_proportionality,
            ),
        ] {
            let Some(decimal) = decimal else { continue };
            let against = match quantity {
                Quantity::EnergyRatio => Some(against(spec, budget)?),
                _ => None,
            };
            let target = budget
                .at_most
                .as_ref()
                .filter(|_| quantity == Quantity::JoulesPerRequest);
            let p99_milliseconds = target
                .map(|target| number("budgets.atMost.p99Milliseconds", &target.p99_milliseconds))
                .transpose()?;
            limits.push(Limit {
                candidate: budget.candidate.clone(),
                quantity,
                value: number(quantity.field(), decimal)?,
                written: decimal.to_string(),
                against,
                p99_milliseconds,
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
