//! What energy and a node's time cost, in money and in carbon: what the user knows and no meter tells.

// The derives repeat the types in a private scope of their own.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::api::quantity::{Decimal, HumanDuration};

/// What a million requests cost then stands beside their joules, with every term: in money, and in carbon
/// as the SCI of ISO/IEC 21031. Editing it judges the same trials anew and measures nothing again.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.money) || has(self.carbon)").message("costs needs money, carbon or both"))]
pub struct Costs {
    /// How long the measured node is in use before it is replaced, for example `43800h` for five years: its
    /// price and its embodied carbon are spread over that time.
    #[x_kube(validation = Rule::new("duration(self) >= duration('24h')").message("costs.nodeLifetime must be at least 24h; write for example 43800h for five years"))]
    pub node_lifetime: HumanDuration,
    /// Prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Greenhouse gases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carbon: Option<Carbon>,
}

/// What the node and its energy are paid for.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("double(self.node) > 0.0 || double(self.perKilowattHour) > 0.0").message("costs.money.node and perKilowattHour are both 0: write at least one price, or leave costs.money out"))]
pub struct Money {
    /// Currency of both prices, for example `EUR`.
    #[schemars(length(max = 3), regex(pattern = "^[A-Z]{3}$"))]
    pub currency: String,
    /// Price of the node with all that it needs (power supply, card, case), for example `90`; `0` where
    /// that is not to count.
    pub node: Decimal,
    /// Price of a kilowatt-hour, for example `0.25`.
    pub per_kilowatt_hour: Decimal,
}

/// What the node and its energy emit, in grams of CO₂ equivalent.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("double(self.nodeGrams) > 0.0 || double(self.gramsPerKilowattHour) > 0.0").message("costs.carbon.nodeGrams and gramsPerKilowattHour are both 0: write at least one of them, or leave costs.carbon out"))]
pub struct Carbon {
    /// Embodied carbon of the node: what making, moving and discarding it emits, for example `25000`.
    pub node_grams: Decimal,
    /// Carbon intensity of the energy, for example `56`; the SCI asks for the place's own.
    pub grams_per_kilowatt_hour: Decimal,
}
