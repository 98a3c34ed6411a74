//! Load levels: the costs at part load, and the verdict over all levels.

use crate::common::{
    entries::{Trial, factor, judged, on_board, share_the_node},
    judgement::assert_ended,
    levels::{IDLE_WATTS, at_levels, highest, levelled, straight, truth},
};
use frugality_measure::model::{LinearModel, ModelUncertainty};
use frugality_operator::{
    api::{
        BudgetOutcome, CandidateResult, Figure, FrugalityBenchmark, LoadCurveResult, Reason,
        SweepResult, Verdict,
    },
    plan::action::Plan,
};
use serde_json::json;

const LEVELS: [i32; 4] = [100, 75, 50, 25];

fn judged_levels(benchmark: &FrugalityBenchmark, of: impl Fn(&str, f64, i32) -> Trial) -> Plan {
    judged(benchmark, levelled(benchmark, highest, of))
}

fn curve<'a>(plan: &'a Plan, candidate: &str) -> &'a LoadCurveResult {
    let of = |it: &&SweepResult| it.candidate == candidate;
    let found = plan.status.sweep.iter().find(of).unwrap();
    found.load_curve.as_ref().unwrap()
}

/// A figure whose interval contains the true value, and whose value is near.
#[track_caller]
fn assert_shows(figure: Option<Figure>, truth: f64) {
    let figure = figure.unwrap();
    let (lower, upper) = figure.bounds();
    assert!(
        lower <= truth && truth <= upper && (figure.value / truth - 1.0).abs() < 0.01,
        "{figure:?} does not show {truth}"
    );
}

#[test]
fn a_straight_line_gives_its_true_figures() {
    let benchmark = at_levels(&LEVELS, &[]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate));
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let note = &plan.status.notes[0];
    assert!(note.contains("compare different rates"), "{note}");
    for candidate in ["rust", "python"] {
        let (rate, joules) = truth(candidate);
        let found = curve(&plan, candidate);
        assert_eq!(found.withheld, Vec::<String>::new());
        let top = IDLE_WATTS + joules * rate;
        assert_shows(found.marginal_joules_per_request, joules);
        assert_shows(found.idle_watts, IDLE_WATTS);
        assert_shows(found.idle_share, IDLE_WATTS / top);
        assert_shows(
            found.requests_per_joule,
            2.5 * rate / (5.0 * IDLE_WATTS + 2.5 * joules * rate),
        );
        assert_shows(found.proportionality, 1.0 - IDLE_WATTS / top);
    }
    // Each level has its figures, at its rate.
    let points: Vec<&str> = plan
        .status
        .results
        .iter()
        .map(|it| it.point.as_str())
        .collect();
    assert_eq!(points[..2], ["c4-max", "c4-max"]);
    let half = plan
        .status
        .results
        .iter()
        .find(|it| it.point == "c4-50%" && it.candidate == "rust");
    let half = half.unwrap();
    assert_shows(half.requests_per_second, 200.0);
    assert_shows(half.gross_joules_per_request, IDLE_WATTS / 200.0 + 0.005);
    // 15 mJ in 5 ms.
    assert_shows(half.energy_delay_joule_seconds, 7.5e-5);
}

#[test]
fn levels_of_an_open_load_have_no_knee() {
    // The times of an open load include waiting, and the highest rate comes from a closed load.
    for (arrivals, has_knee) in [("Closed", true), ("Open", false)] {
        let benchmark = at_levels(&LEVELS, &[("/load/arrivals", json!(arrivals))]);
        let plan = judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate));
        assert!(!plan.status.sweep.is_empty());
        for result in &plan.status.sweep {
            assert_eq!(result.knee.is_some(), has_knee, "{arrivals}: {result:?}");
        }
    }
}

#[test]
fn a_sweep_over_connections_has_no_load_curve() {
    let benchmark = crate::common::sweep::at(&[1, 2], &[]);
    let plan = crate::common::sweep::judged_over(&benchmark, crate::common::sweep::saturating);
    assert!(plan.status.sweep.iter().all(|it| it.load_curve.is_none()));
}

#[test]
fn the_control_has_its_own_highest_rate_and_no_result() {
    let benchmark = at_levels(&LEVELS, &[("/trials/control", json!("rust"))]);
    let plan = judged_levels(&benchmark, |candidate, rate, round| Trial {
        gross: straight(candidate, rate).gross * factor(round, 0.001),
        ..straight(candidate, rate)
    });
    let names: Vec<_> = plan
        .status
        .sweep
        .iter()
        .map(|it| it.candidate.as_str())
        .collect();
    assert_eq!(names, ["rust", "python"]);
    assert_shows(curve(&plan, "rust").marginal_joules_per_request, 0.005);
}

#[test]
fn the_accuracy_of_the_meter_widens_every_figure() {
    let benchmark = at_levels(&LEVELS, &[]);
    let of = |accuracy: Option<f64>| {
        judged_levels(&benchmark, |candidate, rate, _| Trial {
            meter_uncertainty: accuracy,
            ..straight(candidate, rate)
        })
    };
    let (known, unknown) = (of(Some(0.02)), of(None));
    let figures = |plan: &Plan| {
        let it = curve(plan, "rust").clone();
        [
            it.requests_per_joule,
            it.marginal_joules_per_request,
            it.idle_watts,
            it.idle_share,
            it.proportionality,
        ]
    };
    for (known, unknown) in figures(&known).into_iter().zip(figures(&unknown)) {
        let (known, unknown) = (
            known.unwrap().expanded.unwrap(),
            unknown.unwrap().expanded.unwrap(),
        );
        assert!(known.covers_meter && !unknown.covers_meter);
        assert!(known.lower < unknown.lower && unknown.upper < known.upper);
    }
    // Two standard uncertainties of the gross joules at 100 %, which are twice the net joules there.
    let joules = curve(&known, "rust").marginal_joules_per_request.unwrap();
    let half = (joules.expanded.unwrap().upper / joules.value).ln();
    assert!((half - 0.08).abs() < 0.002, "{half}");
}

#[test]
fn modelled_power_without_accuracy_is_marked() {
    let benchmark = at_levels(&LEVELS, &[]);
    let model = LinearModel {
        idle_watts: 2.0,
        watts_per_cpu: 3.0,
        uncertainty: None,
    };
    let plan = judged_levels(&benchmark, |_, rate, _| on_board(model, 1.0 / rate, 0.001));
    let found = curve(&plan, "rust");
    assert_eq!(found.withheld, Vec::<String>::new());
    let joules = found.marginal_joules_per_request.unwrap();
    assert_shows(Some(joules), 0.003);
    assert!(joules.is_repeatability_only());
    assert!(
        plan.status
            .end()
            .unwrap()
            .message
            .contains("Power is modelled")
    );
    let known = LinearModel {
        uncertainty: Some(ModelUncertainty {
            idle_watts: 0.05,
            watts_per_cpu: 0.1,
        }),
        ..model
    };
    let plan = judged_levels(&benchmark, |_, rate, _| on_board(known, 1.0 / rate, 0.001));
    // The slope of a linear model depends on the watts per CPU alone.
    let joules = curve(&plan, "rust").marginal_joules_per_request.unwrap();
    let half = (joules.expanded.unwrap().upper / joules.value).ln();
    assert!((half - 0.2).abs() < 0.01, "{half}");
}

#[test]
fn a_shared_node_has_no_load_curve() {
    let benchmark = at_levels(&LEVELS, &[]);
    let mut trials = levelled(&benchmark, highest, |candidate, rate, _| {
        straight(candidate, rate)
    });
    share_the_node(&mut trials);
    let plan = judged(&benchmark, trials);
    let found = curve(&plan, "rust");
    assert_eq!(found.requests_per_joule, None);
    assert_eq!(
        found.withheld,
        ["the injector ran on the measured node and is part of its energy"]
    );
}

/// Such a baseline contains a part of the load.
#[test]
fn idle_baselines_that_are_too_short_for_the_meter_give_no_load_curve() {
    let benchmark = at_levels(&LEVELS, &[]);
    let read_every = |interval_seconds: f64| {
        let mut trials = levelled(&benchmark, highest, |candidate, rate, _| {
            straight(candidate, rate)
        });
        for trial in &mut trials {
            let status = trial.status.as_mut().unwrap();
            // The baselines have 15 s.
            status.energy.as_mut().unwrap().interval_seconds = interval_seconds;
        }
        let plan = judged(&benchmark, trials);
        let found = curve(&plan, "rust");
        (found.idle_watts.is_some(), found.withheld.clone())
    };
    assert_eq!(read_every(7.4), (true, Vec::new()));
    let (is_shown, withheld) = read_every(7.6);
    assert!(!is_shown);
    assert!(withheld[0].contains("idle power"), "{withheld:?}");
}

#[test]
fn levels_of_a_rate_that_the_injector_set_give_no_figures() {
    let benchmark = at_levels(&LEVELS, &[]);
    // At the levels, connections wait for their next request.
    let limited = |candidate: &str, rate: f64, _: i32| Trial {
        occupancy: 0.5,
        shortfall: (candidate == "python" || rate < 390.0).then_some(0.0),
        ..straight(candidate, rate)
    };
    let plan = judged_levels(&benchmark, limited);
    let found = curve(&plan, "rust");
    assert_eq!(found.marginal_joules_per_request, None);
    assert_eq!(
        found.withheld,
        [
            "the injector limited rust at c4-100%, or at the highest rate that its levels follow from"
        ]
    );
    assert!(curve(&plan, "python").withheld.is_empty());
    // The real levels would have higher rates, and fewer joules per request.
    let rust = |it: &&CandidateResult| it.candidate == "rust";
    for result in plan.status.results.iter().filter(rust) {
        assert_eq!(result.requests_per_second, None, "{}", result.point);
        assert_eq!(result.gross_joules_per_request, None, "{}", result.point);
    }
    assert!(plan.status.comparisons.is_empty());
    let budget = json!([{"candidate": "rust", "maxJoulesPerRequest": "0.001"}]);
    let benchmark = at_levels(&LEVELS, &[("/budgets", budget)]);
    let plan = judged_levels(&benchmark, limited);
    assert_eq!(plan.status.budgets[0].outcome, BudgetOutcome::Withheld);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::InjectorLimited.as_str(),
    );
}

#[test]
fn a_common_rate_has_no_shares_of_each_candidates_highest_rate() {
    let sweep = json!({"levels": LEVELS, "of": "Common"});
    let benchmark = at_levels(&LEVELS, &[("/load/sweep", sweep)]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate));
    for candidate in ["rust", "python"] {
        let found = curve(&plan, candidate);
        assert_shows(found.marginal_joules_per_request, truth(candidate).1);
        assert_shows(found.idle_watts, IDLE_WATTS);
        assert_eq!((found.idle_share, found.proportionality), (None, None));
        let why = "with load.sweep.of: Common, level 100 is not each candidate's highest rate";
        assert_eq!(
            found.withheld,
            [
                format!("idle share: {why}"),
                format!("proportionality: {why}")
            ]
        );
    }
    // 100 requests/s are the highest rate of python.
    let joules = truth("rust").1;
    let expected = 250.0 / (5.0 * IDLE_WATTS + joules * 250.0);
    assert_shows(curve(&plan, "rust").requests_per_joule, expected);
}

#[test]
fn a_candidate_that_answers_with_errors_has_no_load_curve() {
    let benchmark = at_levels(&LEVELS, &[]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| Trial {
        errors: if candidate == "rust" && rate > 390.0 {
            50
        } else {
            0
        },
        ..straight(candidate, rate)
    });
    let found = curve(&plan, "rust");
    assert_eq!(found.requests_per_joule, None);
    assert_eq!(
        found.withheld,
        ["4.76 % of the requests at c4-max failed (limit 1 %)"]
    );
}

#[test]
fn power_that_does_not_rise_has_no_marginal_joules() {
    let benchmark = at_levels(&LEVELS, &[]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| Trial {
        gross: IDLE_WATTS / rate,
        net: None,
        ..straight(candidate, rate)
    });
    let found = curve(&plan, "rust");
    assert_eq!(found.marginal_joules_per_request, None);
    assert_eq!(found.withheld.len(), 1, "{:?}", found.withheld);
    assert!(found.withheld[0].starts_with("marginal joules: "));
    assert_shows(found.idle_share, 1.0);
}

#[test]
fn a_rate_that_was_not_reached_is_the_rate_of_its_level() {
    // Rust reaches 97 % of its highest rate when requests are due at even distances.
    let benchmark = at_levels(&LEVELS, &[]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| {
        // Only the rates of levels end with hundredths.
        let is_level = ((rate * 100.0).round() / 100.0 - rate).abs() < 1e-9;
        let is_top = rate > 0.9 * truth(candidate).0;
        let reached = if is_level && is_top {
            0.97 * rate
        } else {
            rate
        };
        Trial {
            shortfall: Some(1.0 - reached / rate),
            ..straight(candidate, reached)
        }
    });
    let found = curve(&plan, "rust");
    assert_eq!(found.withheld, Vec::<String>::new());
    assert_shows(found.marginal_joules_per_request, 0.005);
    let note = "At c4-100%: rust reached 97.0 % of the requests/s that were due. The figures hold for the rate that was reached.";
    let notes = &plan.status.notes;
    assert!(notes.iter().any(|it| it == note), "{notes:?}");
}

#[test]
fn a_least_rate_is_judged_at_the_highest_rate_alone() {
    let budget =
        json!([{"candidate": "rust", "minRequestsPerSecond": 300, "maxJoulesPerRequest": "0.1"}]);
    let benchmark = at_levels(&LEVELS, &[("/budgets", budget)]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate));
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    let budgets: Vec<_> = plan
        .status
        .budgets
        .iter()
        .map(|it| (it.limit.as_str(), it.point.as_str(), it.outcome))
        .collect();
    // Joules per request are judged at every level: the lowest level costs most.
    assert_eq!(
        budgets,
        [
            ("maxJoulesPerRequest", "c4-25%", BudgetOutcome::Met),
            ("minRequestsPerSecond", "c4-max", BudgetOutcome::Met),
        ]
    );
}

#[test]
fn a_budget_may_limit_every_figure_of_the_curve() {
    // 400 requests/s at 4 W, 5 mJ of one more request, and 2 W of idle power.
    let cases = [
        (
            "minRequestsPerJoule",
            "60",
            "70",
            "66.7 requests/J (minimum 60 requests/J)",
        ),
        (
            "maxMarginalJoulesPerRequest",
            "0.006",
            "0.004",
            "5.00 mJ per additional request (limit 0.006 J = 6 mJ)",
        ),
        (
            "maxIdleWatts",
            "2.5",
            "1.5",
            "idle power 2.00 W (limit 2.5 W)",
        ),
        (
            "maxIdleShare",
            "0.6",
            "0.4",
            "idle share 50.0 % (limit 0.6 = 60 %)",
        ),
        (
            "minProportionality",
            "0.4",
            "0.6",
            "proportionality 0.500 (minimum 0.4)",
        ),
    ];
    for (field, kept, broken, clause) in cases {
        let of = |limit: &str| {
            let budget = json!([{"candidate": "rust", "loadCurve": {field: limit}}]);
            let benchmark = at_levels(&LEVELS, &[("/budgets", budget)]);
            judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate))
        };
        let plan = of(kept);
        assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
        let budget = &plan.status.budgets[0];
        assert_eq!((budget.limit.as_str(), budget.point.as_str()), (field, ""));
        let begin = format!("Met for rust: {clause}.");
        assert!(budget.message.starts_with(&begin), "{}", budget.message);
        let plan = of(broken);
        assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
    }
}

#[test]
fn every_limit_of_sixteen_candidates_has_its_place_in_the_status() {
    let name = |number: usize| format!("candidate-{number:05}");
    let candidates: Vec<_> = (1..=16)
        .map(|number| json!({"name": name(number), "image": "example.org/server:1"}))
        .collect();
    let budgets: Vec<_> = (1..=16)
        .map(|number| {
            json!({
                "candidate": name(number), "maxJoulesPerRequest": 1, "maxMillisecondsPerRequest": 9000,
                "minRequestsPerSecond": 1, "maxErrorRatio": "0.1", "maxEnergyRatio": 100, "against": name(number % 16 + 1),
                "maxEnergyDelayJouleSeconds": 1, "atMost": {"p99Milliseconds": 9000},
                "loadCurve": {
                    "minRequestsPerJoule": 1, "maxMarginalJoulesPerRequest": 1, "maxIdleWatts": 100, "maxIdleShare": 1,
                    "minProportionality": "0.0001",
                },
            })
        })
        .collect();
    let more = [
        ("/candidates", json!(candidates)),
        ("/budgets", json!(budgets)),
    ];
    let benchmark = at_levels(&[100, 50], &more);
    // The common part of these tests asserts that the API server takes the status.
    let plan = judged_levels(&benchmark, |candidate, rate, _| straight(candidate, rate));
    assert_eq!(plan.status.budgets.len(), 16 * 11);
    let bytes = serde_json::to_vec(&plan.status).unwrap().len();
    assert!(bytes < 256 * 1024, "{bytes}");
}

#[test]
fn a_limit_with_a_common_rate_does_not_depend_on_the_highest_rate_of_a_limited_candidate() {
    let sweep = json!({"levels": LEVELS, "of": "Common"});
    let budget = json!([{"candidate": "rust", "loadCurve": {"maxIdleWatts": 3}}]);
    let benchmark = at_levels(&LEVELS, &[("/load/sweep", sweep), ("/budgets", budget)]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| Trial {
        occupancy: 0.5,
        shortfall: (candidate == "python" || rate < 390.0).then_some(0.0),
        ..straight(candidate, rate)
    });
    assert_shows(curve(&plan, "rust").idle_watts, IDLE_WATTS);
    assert_eq!(plan.status.budgets[0].outcome, BudgetOutcome::Met);
}

#[test]
fn a_limit_on_a_withheld_curve_is_withheld_with_its_reason() {
    let budget = json!([{"candidate": "rust", "loadCurve": {"maxIdleWatts": 3}}]);
    let benchmark = at_levels(&LEVELS, &[("/budgets", budget)]);
    let plan = judged_levels(&benchmark, |candidate, rate, _| Trial {
        errors: 50,
        ..straight(candidate, rate)
    });
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::FigureWithheld.as_str(),
    );
    let budget = &plan.status.budgets[0];
    assert_eq!(budget.outcome, BudgetOutcome::Withheld);
    assert!(
        budget.message.contains("of the requests at c4-max failed"),
        "{}",
        budget.message
    );
}
