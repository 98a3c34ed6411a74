//! What a million requests cost. All of it is from the status: the spec may have been edited since.

use std::collections::BTreeSet;

use frugality_operator::api::{CandidateResult, CostPerMillion};

use super::view::View;
use crate::table::Grid;

type CostOf = fn(&CandidateResult) -> Option<&CostPerMillion>;
const COSTS: [CostOf; 2] = [
    |result| result.money.as_ref(),
    |result| result.carbon.as_ref(),
];

/// A table for money and one for carbon. The first has the terms, which are the same for both.
pub(super) fn tables(view: &View<'_>) -> Vec<Grid> {
    let results = view.results.iter();
    let mut tables = Vec::new();
    for cost in COSTS {
        let Some(unit) = results.clone().find_map(|it| Some(&cost(it)?.unit)) else {
            continue;
        };
        let mut table = view
            .table(results.clone().map(|it| (it, cost(it))))
            .figure(format!("{unit}/MILLION"), |(_, it)| {
                Some(it.as_ref()?.total)
            })
            .number(format!("{unit} FOR ENERGY"), |(_, it)| {
                Some(it.as_ref()?.energy)
            })
            .number(format!("{unit} FOR THE NODE"), |(_, it)| {
                Some(it.as_ref()?.node)
            });
        if tables.is_empty() {
            table = table
                .number("kWh/MILLION", |(_, it)| {
                    Some(it.as_ref()?.terms?.kilowatt_hours)
                })
                .number("NODE'S LIFE/MILLION", |(_, it)| {
                    Some(it.as_ref()?.terms?.lifetime_share)
                });
        }
        tables.extend(table.grid());
    }
    tables
}

/// What the costs are from.
pub(super) fn note(view: &View<'_>) -> Option<String> {
    if !view.any(|it| COSTS.iter().any(|cost| cost(it).is_some())) {
        return None;
    }
    let power = view
        .status
        .provenance
        .as_deref()
        .unwrap_or("unknown")
        .to_lowercase();
    let prices = prices(view).join("; ");
    let sci = if view.any(|it| it.carbon.is_some()) {
        let unit = view.unit;
        format!(" gCO2e/MILLION is the SCI of ISO/IEC 21031 for a million successful {unit}s.")
    } else {
        String::new()
    };
    Some(format!(
        "Costs are from gross joules ({power}), at {prices}. They assume that the node runs only this service for its whole lifetime.{sci}"
    ))
}

/// What a kilowatt-hour and a node cost, as the spec of the run says. If nodes differ, the candidates of each price.
fn prices(view: &View<'_>) -> Vec<String> {
    let mut prices: Vec<(String, Vec<&str>)> = Vec::new();
    for result in view.results {
        for cost in COSTS.iter().filter_map(|cost| cost(result)) {
            let Some(terms) = cost.terms else { continue };
            // All digits: the price is the user's number, not a figure.
            let price = format!(
                "{} {unit}/kWh and {} {unit} per node",
                terms.per_kilowatt_hour,
                terms.node,
                unit = cost.unit
            );
            match prices.iter_mut().find(|(known, _)| *known == price) {
                Some((_, candidates)) if candidates.contains(&result.candidate.as_str()) => {}
                Some((_, candidates)) => candidates.push(&result.candidate),
                None => prices.push((price, vec![&result.candidate])),
            }
        }
    }
    let all: BTreeSet<_> = view.results.iter().map(|it| &it.candidate).collect();
    let reported = |(price, candidates): (String, Vec<&str>)| {
        if candidates.len() == all.len() {
            return price;
        }
        format!("{price} ({})", candidates.join(", "))
    };
    prices.into_iter().map(reported).collect()
}
