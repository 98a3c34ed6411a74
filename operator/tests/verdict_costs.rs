//! The cost of a million requests, in money and in carbon.

use crate::common::{
    assert_near,
    entries::{Trial, factor, judged, ledger, share_the_node},
    two_with,
};
use frugality_operator::{
    api::{CostPerMillion, FrugalityBenchmark, FrugalityBenchmarkStatus},
    plan::settings::{Settings, SettingsError},
};
use serde_json::{Value, json};

/// Half of the interval of five trials with logarithms of −2k … 2k, in units of k: t₄ · √2.5 / √5.
const HALF: f64 = 1.963_243;

fn costs() -> Value {
    json!({
        "nodeLifetime": "43800h",
        "money": {"currency": "EUR", "node": "90", "perKilowattHour": "0.25"},
        "carbon": {"nodeGrams": "25000", "gramsPerKilowattHour": "56"},
    })
}

fn with(costs: Value) -> FrugalityBenchmark {
    two_with(&[("/costs", costs)])
}

/// The status after these trials, which are the same for both candidates.
fn status(costs: Value, of: impl Fn(i32) -> Trial) -> FrugalityBenchmarkStatus {
    let benchmark = with(costs);
    let trials = ledger(&benchmark, |block, _| of(block));
    judged(&benchmark, trials).status
}

fn money(status: &FrugalityBenchmarkStatus) -> CostPerMillion {
    status.results[0].money.clone().unwrap()
}

/// The logarithm of a total's upper end divided by the total, from the spread alone.
fn half(cost: &CostPerMillion) -> f64 {
    (cost.total.upper / cost.total.value).ln()
}

#[test]
fn every_term_is_shown_and_the_total_is_their_sum() {
    // Each request takes 0.01 J and 1/400 s.
    let status = status(costs(), |_| Trial::default());
    let money = money(&status);
    // 10 kJ are 2.7778 Wh; 2500 s are 15.855 millionths of five years.
    assert_near(money.energy, 0.25 * 10_000.0 / 3.6e6);
    assert_near(money.node, 90.0 * 2500.0 / (5.0 * 365.0 * 86_400.0));
    assert_near(money.total.value, 0.000_694_444_4 + 0.001_426_941);
    let carbon = status.results[1].carbon.clone().unwrap();
    assert_eq!(
        (money.unit.as_str(), carbon.unit.as_str()),
        ("EUR", "gCO2e")
    );
    assert_near(carbon.energy, 56.0 * 10_000.0 / 3.6e6);
    assert_near(carbon.node, 25_000.0 * 2500.0 / (5.0 * 365.0 * 86_400.0));
    assert_near(carbon.total.value, carbon.energy + carbon.node);
    let terms = carbon.terms.unwrap();
    assert_near(terms.kilowatt_hours, 10_000.0 / 3.6e6);
    assert_near(terms.lifetime_share, 2500.0 / (5.0 * 365.0 * 86_400.0));
    assert_eq!((terms.per_kilowatt_hour, terms.node), (56.0, 25_000.0));
}

#[test]
fn costs_that_the_spec_does_not_ask_for_are_absent() {
    let carbon = json!({"nodeGrams": "0", "gramsPerKilowattHour": "56"});
    let costs = json!({"nodeLifetime": "24h", "carbon": carbon});
    let status = status(costs.clone(), |_| Trial::default());
    assert_eq!(status.results[0].money, None);
    let cost = status.results[0].carbon.clone().unwrap();
    assert_near(cost.total.value, cost.energy);
    assert_near(cost.node, 0.0);
    let without = two_with(&[]);
    let status = judged(&without, ledger(&without, |_, _| Trial::default())).status;
    let first = &status.results[0];
    assert_eq!((&first.money, &first.carbon), (&None, &None));
}

#[test]
fn the_interval_comes_from_the_sums_of_the_trials() {
    let k = 0.01;
    // A slow trial with more joules costs more by both terms.
    let together = status(costs(), |block| Trial {
        gross: 0.01 * factor(block, k),
        requests_per_second: 400.0 / factor(block, k),
        ..Trial::default()
    });
    assert!((half(&money(&together)) - HALF * k).abs() < 1e-6);
    // A fast trial with more joules costs less for the node. Here the two terms cancel.
    let seconds = 5.0 * 365.0 * 86_400.0;
    let equal = json!({"currency": "EUR", "node": format!("{:.6}", 0.01 * 400.0 * seconds * 1e-6), "perKilowattHour": "3.6"});
    let equal = json!({"nodeLifetime": "43800h", "money": equal});
    let against = status(equal, |block| Trial {
        gross: 0.01 * factor(block, k),
        requests_per_second: 400.0 * factor(block, k),
        ..Trial::default()
    });
    assert_near(money(&against).energy, money(&against).node);
    assert!(
        half(&money(&against)) < 0.05 * HALF * k,
        "{:?}",
        money(&against)
    );
}

#[test]
fn the_meters_accuracy_counts_by_the_share_of_energy() {
    let status = status(costs(), |block| Trial {
        gross: 0.01 * factor(block, 1e-6),
        requests_per_second: 400.0,
        meter_uncertainty: Some(0.05),
        ..Trial::default()
    });
    let cost = money(&status);
    let expanded = cost.total.expanded.unwrap();
    assert!(expanded.covers_meter);
    let share = cost.energy / (cost.energy + cost.node);
    let found = (expanded.upper / cost.total.value).ln();
    assert!((found - 2.0 * 0.05 * share).abs() < 1e-5, "{found}");
}

#[test]
fn a_node_shared_with_the_injector_has_no_costs() {
    let benchmark = two_with(&[
        ("/costs", costs()),
        ("/placement/allowSharedNode", json!(true)),
    ]);
    let mut trials = ledger(&benchmark, |_, _| Trial::default());
    share_the_node(&mut trials);
    let status = judged(&benchmark, trials).status;
    let rust = &status.results[0];
    assert_eq!((&rust.money, &rust.carbon), (&None, &None));
    for name in ["money: the injector ran", "carbon: the injector ran"] {
        assert!(
            rust.withheld.iter().any(|why| why.starts_with(name)),
            "{:?}",
            rust.withheld
        );
    }
}

#[test]
fn a_node_lifetime_below_a_day_is_refused() {
    let mut short = costs();
    short["nodeLifetime"] = json!("23h");
    assert_eq!(
        Settings::parse(&with(short).spec),
        Err(SettingsError::NodeLifetime)
    );
    assert!(Settings::parse(&with(costs()).spec).is_ok());
}
