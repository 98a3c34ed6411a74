//! Rules of budgets, costs and figures.

use super::*;

#[test]
fn budgets_need_enough_blocks() {
    let with = |blocks: i32| {
        [
            (
                "spec/budgets",
                json!([{"candidate": "server", "maxErrorRatio": "0.01"}]),
            ),
            ("spec/trials", json!({ "blocks": blocks })),
        ]
    };
    rule(
        "budgets need spec.trials.blocks of at least 5",
        &with(4),
        &with(5),
    );
}

#[test]
fn budgets_name_a_candidate() {
    let of = |name: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": name, "minRequestsPerSecond": "100"}]),
        )]
    };
    rule(
        "every budget must name a candidate",
        &of("serve"),
        &of("server"),
    );
}

#[test]
fn a_ratio_needs_another_candidate() {
    let of = |budget: Value| {
        [
            ("spec/candidates", json!([SERVER, BEFORE].map(candidate))),
            ("spec/budgets", json!([budget])),
        ]
    };
    let good = json!({"candidate": "server", "maxEnergyRatio": "1.05", "against": "before"});
    let message = "maxEnergyRatio and against go together";
    rule(
        message,
        &of(json!({"candidate": "server", "maxEnergyRatio": "1.05"})),
        &of(good.clone()),
    );
    rule(
        message,
        &of(json!({"candidate": "server", "maxErrorRatio": "0.1", "against": "before"})),
        &of(good.clone()),
    );
    for name in ["server", "nobody"] {
        let mut bad = good.clone();
        bad["against"] = json!(name);
        rule(
            "a budget's against must name another candidate",
            &of(bad),
            &of(good.clone()),
        );
    }
    let mut bad = good.clone();
    bad["maxEnergyRatio"] = json!("0.0");
    rule("maxEnergyRatio must be above 0", &of(bad), &of(good));
}

#[test]
fn a_tie_has_a_width() {
    let of = |share: &str| {
        [
            ("spec/candidates", json!([SERVER, BEFORE].map(candidate))),
            ("spec/energy", json!({"tieWithin": share})),
        ]
    };
    let message = "energy.tieWithin is a share above 0 and up to 1";
    rule(message, &of("0.0"), &of("0.001"));
    rule(message, &of("1.1"), &of("1"));
    let alone = [("spec/energy", json!({"tieWithin": "0.05"}))];
    let message = "energy.tieWithin compares candidates";
    rule(message, &alone, &of("0.05"));
}

#[test]
fn budgets_limit_something() {
    let message = "a budget needs at least one of";
    for limit in [
        "maxJoulesPerRequest",
        "maxMillisecondsPerRequest",
        "minRequestsPerSecond",
        "maxErrorRatio",
        "maxEnergyDelayJouleSeconds",
    ] {
        rule(
            message,
            &[("spec/budgets", json!([{"candidate": "server"}]))],
            &[(
                "spec/budgets",
                json!([{"candidate": "server", limit: "0.5"}]),
            )],
        );
    }
}

#[test]
fn a_latency_target_belongs_to_a_limit_on_joules() {
    let of = |limit: &str, milliseconds: f64| {
        let target = json!({"p99Milliseconds": milliseconds});
        let budget = json!({"candidate": "server", limit: "0.5", "atMost": target});
        [("spec/budgets", json!([budget]))]
    };
    let good = of("maxJoulesPerRequest", 50.0);
    let message = "a budget's atMost goes with maxJoulesPerRequest";
    rule(message, &of("maxErrorRatio", 50.0), &good);
    let message = "atMost.p99Milliseconds must be above 0";
    rule(message, &of("maxJoulesPerRequest", 0.0), &good);
}

#[test]
fn limits_on_a_load_curve_need_levels() {
    let of = |curve: Value, sweep: Value| {
        [
            (
                "spec/budgets",
                json!([{"candidate": "server", "loadCurve": curve}]),
            ),
            ("spec/load", json!({"duration": "20s", "sweep": sweep})),
        ]
    };
    let levels = json!({"levels": [100, 50]});
    let good = of(json!({"maxIdleWatts": 3}), levels.clone());
    rule(
        "a budget's loadCurve needs load.sweep.levels",
        &of(json!({"maxIdleWatts": 3}), json!({"connections": [1, 2]})),
        &good,
    );
    rule(
        "a budget's loadCurve needs at least one of",
        &of(json!({}), levels.clone()),
        &good,
    );
    let common = json!({"levels": [100, 50], "of": "Common"});
    for field in ["maxIdleShare", "minProportionality"] {
        let curve = json!({ field: "0.5" });
        rule(
            "with load.sweep.of: Common, level 100 is not each candidate's highest rate",
            &of(curve.clone(), common.clone()),
            &of(curve, levels.clone()),
        );
    }
    rule(
        "maxIdleShare is a share from 0 to 1",
        &of(json!({"maxIdleShare": "1.1"}), levels.clone()),
        &good,
    );
    rule(
        "minProportionality is 1 or less",
        &of(json!({"minProportionality": "50"}), levels.clone()),
        &of(json!({"minProportionality": "0.5"}), levels),
    );
}

#[test]
fn an_error_ratio_is_a_share() {
    let of = |ratio: &str| {
        [(
            "spec/budgets",
            json!([{"candidate": "server", "maxErrorRatio": ratio}]),
        )]
    };
    rule(
        "maxErrorRatio is a share from 0 to 1",
        &of("1.001"),
        &of("1.0"),
    );
}

#[test]
fn a_budget_above_the_rate_is_refused() {
    let of = |rate: Value, least: &str| {
        [
            ("spec/load", json!({"rate": rate})),
            (
                "spec/budgets",
                json!([{"candidate": "server", "minRequestsPerSecond": least}]),
            ),
        ]
    };
    let message = "a budget's minRequestsPerSecond can't be met";
    // The rate is the most that is sent, and the last answer takes its time.
    rule(message, &of(json!(100), "100"), &of(json!(100), "99.5"));
    rule(message, &of(json!(100), "200"), &of(json!("Max"), "200"));
}

#[test]
fn costs_are_neither_empty_nor_zero() {
    let money = |node: &str| json!({"currency": "EUR", "node": node, "perKilowattHour": "0"});
    let carbon = |node: &str| json!({"nodeGrams": node, "gramsPerKilowattHour": "0"});
    let of = |lifetime: &str, name: &str, costs: Value| {
        let mut all = json!({"nodeLifetime": lifetime});
        if !name.is_empty() {
            all[name] = costs;
        }
        [("spec/costs", all)]
    };
    let some = of("24h", "money", money("90"));
    rule(
        "costs needs money, carbon or both",
        &of("24h", "", json!(null)),
        &some,
    );
    rule(
        "costs.nodeLifetime must be at least 24h",
        &of("23h", "money", money("90")),
        &some,
    );
    rule(
        "costs.money.node and perKilowattHour are both 0",
        &of("24h", "money", money("0.0")),
        &some,
    );
    rule(
        "costs.carbon.nodeGrams and gramsPerKilowattHour are both 0",
        &of("24h", "carbon", carbon("0")),
        &of("24h", "carbon", carbon("0.1")),
    );
}

#[test]
fn the_candidate_boundary_needs_attributed_energy() {
    let of = |figure: Value| {
        let mut energy = json!({"boundary": "Candidate"});
        if figure.is_string() {
            energy["decidingFigure"] = figure;
        }
        [("spec/energy", energy)]
    };
    let message = "energy.boundary Candidate needs energy.decidingFigure Attributed";
    rule(message, &of(json!("Gross")), &of(json!("Attributed")));
    rule(message, &of(Value::Null), &of(json!("Attributed")));
}
