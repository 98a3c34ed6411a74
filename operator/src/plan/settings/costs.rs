//! The cost of a request: the cost of its joules, and the cost of the node's time.

use crate::{
    api::{Candidate, CostTerms, Costs, Decimal, FrugalityBenchmarkSpec},
    load::read::{number, seconds},
    plan::settings::error::SettingsError,
};

/// Joules per kilowatt-hour.
const JOULES_PER_KILOWATT_HOUR: f64 = 3.6e6;
/// Number of requests that a cost is given for: the functional unit R of ISO/IEC 21031.
pub const REQUESTS: f64 = 1e6;
/// Grams of CO₂ equivalent.
const GRAMS: &str = "gCO2e";
/// The shortest lifetime of a node that a spec may have.
const MIN_LIFETIME_SECONDS: f64 = 86_400.0;

/// Kind of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Money, in the spec's currency.
    Money,
    /// Carbon, in grams of CO₂ equivalent.
    Carbon,
}

/// Costs of energy and of the node.
#[derive(Clone, Debug, PartialEq)]
pub struct CostRates {
    /// The unit of the costs: the currency, or `gCO2e`.
    pub unit: String,
    /// Cost per kilowatt-hour.
    per_kilowatt_hour: f64,
    /// Cost of the node over its lifetime.
    node: f64,
    /// The node's lifetime, in seconds.
    lifetime_seconds: f64,
}

/// The costs of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRates {
    money: Option<CostRates>,
    carbon: Option<CostRates>,
}

impl NodeRates {
    /// The costs of each candidate's node, in the order of the candidates.
    pub(super) fn of_candidates(spec: &FrugalityBenchmarkSpec) -> Result<Vec<Self>, SettingsError> {
        let costs = |candidate: &Candidate| candidate.costs.clone().or_else(|| spec.costs.clone());
        let rates = spec
            .candidates
            .iter()
            .map(|candidate| Self::of(costs(candidate).as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let mut currencies = rates
            .iter()
            .filter_map(|node| Some(&node.money.as_ref()?.unit));
        if let Some(first) = currencies.next()
            && let Some(other) = currencies.find(|other| *other != first)
        {
            return Err(SettingsError::Currencies(first.clone(), other.clone()));
        }
        Ok(rates)
    }

    fn of(costs: Option<&Costs>) -> Result<Self, SettingsError> {
        Ok(Self {
            money: CostRates::of(costs, Cost::Money)?,
            carbon: CostRates::of(costs, Cost::Carbon)?,
        })
    }

    /// The rates for this kind of cost, if the spec sets them.
    #[must_use]
    pub fn get(&self, cost: Cost) -> Option<&CostRates> {
        match cost {
            Cost::Money => self.money.as_ref(),
            Cost::Carbon => self.carbon.as_ref(),
        }
    }
}

impl CostRates {
    /// The terms of the cost of [`REQUESTS`] requests. The node answers `requests_per_second`, at
    /// `joules_per_request`, and does no other work. For carbon these terms are E·I and M of ISO/IEC 21031:2024, 4.
    /// The whole node is reserved for the window: TE · TS · RS, RS = 1.
    #[must_use]
    pub fn terms(&self, joules_per_request: f64, requests_per_second: f64) -> CostTerms {
        CostTerms {
            kilowatt_hours: REQUESTS * joules_per_request / JOULES_PER_KILOWATT_HOUR,
            per_kilowatt_hour: self.per_kilowatt_hour,
            node: self.node,
            lifetime_share: REQUESTS / requests_per_second / self.lifetime_seconds,
        }
    }

    /// The rates for this kind of cost, if the spec sets them.
    fn of(costs: Option<&Costs>, cost: Cost) -> Result<Option<Self>, SettingsError> {
        let Some(costs) = costs else {
            return Ok(None);
        };
        let given = match cost {
            Cost::Money => costs.money.as_ref().map(|money| {
                let fields = ["costs.money.node", "costs.money.perKilowattHour"];
                let unit = money.currency.as_str();
                (unit, fields, &money.node, &money.per_kilowatt_hour)
            }),
            Cost::Carbon => costs.carbon.as_ref().map(|carbon| {
                let fields = [
                    "costs.carbon.nodeGrams",
                    "costs.carbon.gramsPerKilowattHour",
                ];
                let (node, energy) = (&carbon.node_grams, &carbon.grams_per_kilowatt_hour);
                (GRAMS, fields, node, energy)
            }),
        };
        given
            .map(|(unit, fields, node, energy)| Self::new(costs, unit, fields, node, energy))
            .transpose()
    }

    fn new(
        costs: &Costs,
        unit: &str,
        [node_field, energy_field]: [&'static str; 2],
        node: &Decimal,
        kilowatt_hour: &Decimal,
    ) -> Result<Self, SettingsError> {
        let lifetime_seconds = seconds("costs.nodeLifetime", &costs.node_lifetime)?;
        if lifetime_seconds < MIN_LIFETIME_SECONDS {
            return Err(SettingsError::NodeLifetime);
        }
        Ok(Self {
            unit: unit.to_owned(),
            per_kilowatt_hour: number(energy_field, kilowatt_hour)?,
            node: number(node_field, node)?,
            lifetime_seconds,
        })
    }
}
