//! What a million requests cost, in the status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::figure::{Figure, seven_digits};

/// The cost per million successful requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostPerMillion {
    /// Unit of all three costs: the currency, or `gCO2e`.
    #[serde(default)]
    pub unit: String,
    /// Total cost: energy and node. Its interval comes from the sums of the single trials.
    pub total: Figure,
    /// Cost of energy: gross joules per request × cost per joule. For carbon: E·I, the operational part.
    pub energy: f64,
    /// Cost of the node: its time × its cost over its lifetime. Each request takes 1/(requests/s) of the time. For
    /// carbon: M, the embodied part, for a node without other work.
    pub node: f64,
    /// Factors of the costs of energy and node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<CostTerms>,
}

/// The factors of a cost: kilowatt-hours × price per kilowatt-hour, and cost of the node × share of its lifetime.
/// ISO/IEC 21031:2024 names them E, I, TE and TS, with RS = 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostTerms {
    /// Gross energy of a million successful requests, in kilowatt-hours: E.
    pub kilowatt_hours: f64,
    /// Cost per kilowatt-hour from the spec. For carbon: its intensity, I.
    pub per_kilowatt_hour: f64,
    /// Cost of the node from the spec. For carbon: all its embodied carbon, TE.
    pub node: f64,
    /// Share of the node's lifetime that a million successful requests take, from 0: TS.
    pub lifetime_share: f64,
}

impl CostTerms {
    /// Cost of energy.
    #[must_use]
    pub fn of_energy(self) -> f64 {
        self.kilowatt_hours * self.per_kilowatt_hour
    }

    /// Cost of the node.
    #[must_use]
    pub fn of_node(self) -> f64 {
        self.node * self.lifetime_share
    }

    /// Cost of energy and node.
    #[must_use]
    pub fn sum(self) -> f64 {
        self.of_energy() + self.of_node()
    }

    /// The factors with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            kilowatt_hours: seven_digits(self.kilowatt_hours),
            lifetime_share: seven_digits(self.lifetime_share),
            ..self
        }
    }
}

impl CostPerMillion {
    /// The costs with seven digits.
    #[must_use]
    pub fn rounded(self) -> Self {
        Self {
            total: self.total.rounded(),
            energy: seven_digits(self.energy),
            node: seven_digits(self.node),
            terms: self.terms.map(CostTerms::rounded),
            ..self
        }
    }
}
