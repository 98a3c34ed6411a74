//! Costs of energy and node time, in money and in carbon. The user knows them; no meter reports them.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::{Decimal, HumanDuration};

/// Prices and carbon of a node and its energy. The status then shows the cost per million requests, with every
/// term: in money, and in carbon as the SCI of ISO/IEC 21031. After an edit the operator judges the same trials
/// again and measures nothing.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.money) || has(self.carbon)").message("costs needs money, carbon or both"))]
pub struct Costs {
    /// Time for which the measured node is in use before it is replaced, for example `43800h` for five years. The
    /// node's price and embodied carbon are spread over this time.
    #[x_kube(validation = Rule::new("duration(self) >= duration('24h')").message("costs.nodeLifetime must be at least 24h; write for example 43800h for five years"))]
    pub node_lifetime: HumanDuration,
    /// Prices of the node and its energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Greenhouse gas emissions of the node and its energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carbon: Option<Carbon>,
}

/// Prices of the node and its energy.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("double(self.node) > 0.0 || double(self.perKilowattHour) > 0.0").message("costs.money.node and perKilowattHour are both 0: write at least one price, or leave costs.money out"))]
pub struct Money {
    /// Currency of both prices, for example `EUR`.
    #[schemars(length(max = 3), regex(pattern = "^[A-Z]{3}$"))]
    pub currency: String,
    /// Price of the node with everything it needs (power supply, card, case), for example `90`. With `0` the
    /// node's price does not count.
    pub node: Decimal,
    /// Price per kilowatt-hour, for example `0.25`.
    pub per_kilowatt_hour: Decimal,
}

/// Emissions of the node and its energy, in grams of CO₂ equivalent.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("double(self.nodeGrams) > 0.0 || double(self.gramsPerKilowattHour) > 0.0").message("costs.carbon.nodeGrams and gramsPerKilowattHour are both 0: write at least one of them, or leave costs.carbon out"))]
pub struct Carbon {
    /// Embodied carbon of the node in grams: emissions of its manufacture, transport and disposal, for example
    /// `25000`.
    pub node_grams: Decimal,
    /// Carbon intensity of the energy in grams per kilowatt-hour, for example `56`. The SCI requires the value of
    /// the node's location.
    pub grams_per_kilowatt_hour: Decimal,
}
