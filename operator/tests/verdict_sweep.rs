//! Several points: the figures of each point, and the claims about all points.

use crate::common::{
    entries::{Trial, factor, judged, swept},
    judgement::assert_ended,
    sweep::{at, judged_over, saturating},
    two_with,
};
use frugality_measure::fortio::{figures, parse};
use frugality_operator::{
    api::{BudgetOutcome, CandidateResult, FrugalityBenchmarkStatus, Reason, Verdict},
    plan::settings::Settings,
};
use serde_json::json;

const SAMPLE: &str = include_str!("../../measure/tests/data/fortio-sample.json");

fn bytes(status: &FrugalityBenchmarkStatus) -> usize {
    serde_json::to_string(status).unwrap().len()
}

#[test]
fn every_point_has_its_figures_and_each_candidate_its_best_points() {
    let benchmark = at(&[1, 2, 4, 8, 16, 32], &[]);
    let plan = judged_over(&benchmark, saturating);
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    let status = &plan.status;
    assert_eq!(status.winner.as_deref(), Some("rust"));
    assert_eq!(status.results.len(), 12);
    let keys: Vec<_> = status
        .results
        .iter()
        .map(|r| (r.point.as_str(), r.candidate.as_str()))
        .collect();
    assert_eq!(
        keys[..3],
        [("c1-max", "rust"), ("c1-max", "python"), ("c2-max", "rust")]
    );
    for result in &status.results {
        assert_eq!(result.trials, 5);
        let connections: f64 = result.point[1..]
            .split('-')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let work = if result.candidate == "python" {
            3.0
        } else {
            1.0
        };
        let expected = 100.0 * connections.min(8.0) / work;
        let spread = 0.02 * expected;
        let found = result.requests_per_second.unwrap().value;
        assert!(
            (found - expected).abs() < spread,
            "{found} is not {expected}"
        );
    }
    for sweep in &status.sweep {
        let most = sweep.most_requests_per_second.as_ref().unwrap();
        // Beyond 8 connections the figures stay equal, and every equal point is listed.
        assert_eq!(most.among, ["c8-max", "c16-max", "c32-max"], "{sweep:?}");
        assert!(most.among.contains(&most.point));
        let least_energy = sweep.most_requests_per_joule.as_ref().unwrap();
        assert_eq!(least_energy.among, ["c8-max", "c16-max", "c32-max"]);
        let knee = sweep.knee.as_ref().unwrap();
        assert_eq!((knee.point.as_str(), knee.among.len()), ("c8-max", 1));
    }
    let names: Vec<_> = status.sweep.iter().map(|s| s.candidate.as_str()).collect();
    assert_eq!(names, ["rust", "python"]);
    let columns = status.columns.as_ref().unwrap();
    assert_eq!(columns.trials.as_deref(), Some("60/60"));
    // With several points, the columns show the figures of the point where the candidates are closest. The result chose
    // that point, so the figures have no interval.
    let point = columns.point.as_deref().unwrap();
    let shown = status
        .results
        .iter()
        .find(|it| it.candidate == "rust" && it.point == point);
    let joules = shown.unwrap().gross_joules_per_request.unwrap().value;
    let energy = columns.energy.as_ref().unwrap();
    let at = format!(" mJ @{}", point.strip_suffix("-max").unwrap());
    let amount = energy.strip_suffix(&at).unwrap();
    assert!((amount.parse::<f64>().unwrap() / (1000.0 * joules) - 1.0).abs() < 0.01);
    let nearest = status
        .comparisons
        .iter()
        .max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value));
    assert_eq!(nearest.unwrap().point, point);
}

#[test]
fn a_single_point_is_not_named() {
    let benchmark = two_with(&[]);
    let plan = judged(
        &benchmark,
        swept(&benchmark, |_, block, _, name| saturating(4, block, name)),
    );
    assert!(plan.status.sweep.is_empty());
}

#[test]
fn a_candidate_that_wins_at_only_some_points_does_not_win() {
    let benchmark = at(&[1, 8], &[]);
    let crossing = |connections: u32, block: i32, candidate: &str| {
        let better = (connections == 1) == (candidate == "rust");
        let trial = saturating(connections, block, "rust");
        let spread = if better { factor(block, 0.01) } else { 2.0 };
        Trial {
            gross: trial.gross * spread,
            ..trial
        }
    };
    let plan = judged_over(&benchmark, crossing);
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    assert_eq!(plan.status.winner, None);
    let columns = plan.status.columns.unwrap();
    assert_eq!(columns.winner.as_deref(), Some("depends on load"));
    let note = "The winner depends on the load: rust at c1-max; python at c8-max.";
    assert!(
        plan.status.notes.iter().any(|n| n == note),
        "{:?}",
        plan.status.notes
    );
    let subjects: Vec<_> = plan
        .status
        .comparisons
        .iter()
        .map(|c| (c.point.as_str(), c.candidate.as_str()))
        .collect();
    assert_eq!(subjects, [("c1-max", "rust"), ("c8-max", "python")]);
}

#[test]
fn a_budget_must_be_met_at_every_point() {
    let with = |limit: &str| {
        let budget = json!([{"candidate": "rust", "maxMillisecondsPerRequest": limit}]);
        at(&[1, 8, 32], &[("/budgets", budget)])
    };
    // 10 ms up to 8 connections, 40 ms with 32.
    let plan = judged_over(&with("41"), saturating);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    let plan = judged_over(&with("39"), saturating);
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
    let [budget] = plan.status.budgets.as_slice() else {
        panic!("{:?}", plan.status.budgets);
    };
    assert_eq!(
        (budget.outcome, budget.point.as_str()),
        (BudgetOutcome::Exceeded, "c32-max")
    );
    assert!(
        budget.message.starts_with("Exceeded for rust: 40.0 [")
            && budget.message.contains(" at c32-max (limit 39 ms)"),
        "{}",
        budget.message
    );
}

#[test]
fn of_several_points_beyond_a_limit_the_worst_is_shown() {
    let budget = json!([{"candidate": "rust", "maxErrorRatio": "0"}]);
    let benchmark = at(&[1, 8], &[("/budgets", budget)]);
    let plan = judged_over(&benchmark, |connections, block, candidate| {
        let errors = if connections == 1 { 10 } else { 500 };
        Trial {
            errors,
            successes: 1000 - errors,
            ..saturating(connections, block, candidate)
        }
    });
    let budget = &plan.status.budgets[0];
    assert_eq!(
        (budget.outcome, budget.point.as_str()),
        (BudgetOutcome::Exceeded, "c8-max")
    );
}

#[test]
fn limits_at_more_points_need_a_wider_margin() {
    // One limit at one point is broken at its confidence: t₄ = 3.284 · 0.01 · √2.5 / √5 is 2.3 %.
    let of = |_, block, _: &str| Trial {
        milliseconds: 10.0 * factor(block, 0.01),
        ..Trial::default()
    };
    let budget = json!([{"candidate": "rust", "maxMillisecondsPerRequest": "9.76"}]);
    let one = two_with(&[("/budgets", budget.clone())]);
    let plan = judged(&one, swept(&one, |c, block, _, name| of(c, block, name)));
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());
    let plan = judged_over(
        &at(&[1, 2, 4, 8], &[("/budgets", budget)]),
        |connections, block, name| {
            // The limit is broken at one of four points only. Every round has one block at each of the four
            // points.
            let trial = of(connections, (block - 1) / 4 + 1, name);
            let factor = if connections == 8 { 1.0 } else { 0.5 };
            Trial {
                milliseconds: trial.milliseconds * factor,
                ..trial
            }
        },
    );
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::BudgetWithinUncertainty.as_str(),
    );
    let message = &plan.status.budgets[0].message;
    assert!(
        message.contains("With 4 points a Fail needs a higher confidence"),
        "{message}"
    );
}

#[test]
fn different_work_at_some_points_prevents_every_comparison() {
    let budget = json!([{"candidate": "rust", "maxEnergyRatio": "0.01", "against": "python"}]);
    let benchmark = at(&[1, 8, 32], &[("/budgets", budget)]);
    let plan = judged_over(&benchmark, |connections, block, name| {
        // If a trial has an error, Fortio reports no size.
        let size = if name == "python" { 2000.0 } else { 1000.0 };
        let errors = u64::from(connections == 32);
        let body_bytes = (errors == 0).then_some(size);
        Trial {
            errors,
            body_bytes,
            ..saturating(connections, block, name)
        }
    });
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::ResponsesDiffer.as_str(),
    );
    assert!(plan.status.comparisons.is_empty());
    // The note appears once, not at every point.
    let notes = &plan.status.notes;
    let of_answers = notes.iter().filter(|it| it.starts_with("Not compared:"));
    assert_eq!(of_answers.count(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("Not compared: rust answers with 1000 bytes"),
        "{notes:?}"
    );
}

/// Over all points together, the sizes differ by less than 1 %.
#[test]
fn different_work_at_one_point_prevents_every_comparison() {
    let plan = judged_over(&at(&[1, 8, 32], &[]), |connections, block, name| Trial {
        body_bytes: Some(if connections == 32 && name == "python" {
            1020.0
        } else {
            1000.0
        }),
        ..saturating(connections, block, name)
    });
    assert!(plan.status.comparisons.is_empty());
    let notes = &plan.status.notes;
    assert!(
        notes[0].starts_with(
            "Not compared: rust answers with 1000 bytes on average and python with 1020 at c32-max."
        ),
        "{notes:?}"
    );
}

#[test]
fn work_that_is_unknown_at_one_point_is_reported_there() {
    let plan = judged_over(&at(&[1, 32], &[]), |connections, block, name| {
        let has_errors = connections == 32 && name == "python";
        Trial {
            errors: u64::from(has_errors),
            body_bytes: (!has_errors).then_some(1000.0),
            ..saturating(connections, block, name)
        }
    });
    let notes = &plan.status.notes;
    let expected = "At c32-max: The size of the answers of python is not known";
    assert!(notes.iter().any(|it| it.starts_with(expected)), "{notes:?}");
}

#[test]
fn a_noisy_point_is_no_dependence_on_the_load() {
    let plan = judged_over(&at(&[1, 8], &[]), |connections, block, name| {
        let trial = saturating(connections, block, name);
        let noise = if connections == 8 && name == "rust" {
            factor(block, 1.0)
        } else {
            1.0
        };
        Trial {
            gross: trial.gross * noise,
            ..trial
        }
    });
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    assert_eq!(plan.status.winner, None);
    let columns = plan.status.columns.unwrap();
    assert_eq!(columns.winner.as_deref(), Some("rust, python"));
    let note = "No candidate wins at every point: rust at c1-max; not separated at c8-max.";
    assert_eq!(plan.status.notes, [note]);
}

#[test]
fn a_sweep_ends_at_the_first_look_that_decides() {
    let trials = json!({"blocks": 10, "looks": [5, 10], "seed": 7, "idleBaseline": "5s"});
    let benchmark = at(&[1, 8], &[("/trials", trials)]);
    let all = swept(&benchmark, |connections, block, _, name| {
        saturating(connections, block, name)
    });
    let until = |block: i32| {
        let mut trials = all.clone();
        trials.retain(|trial| trial.spec.block <= block);
        judged(&benchmark, trials).status
    };
    assert_eq!(until(9).verdict, None);
    let ended = until(10);
    assert_eq!(ended.verdict, Some(Verdict::Reported));
    assert_eq!(ended.look.unwrap().blocks, 5);
    assert_eq!(ended.columns.unwrap().trials.as_deref(), Some("20/20"));
    assert!(ended.results.iter().all(|result| result.trials == 5));
}

#[test]
fn the_noise_floor_comes_from_the_worst_point() {
    let with = |control: &str| {
        let trials = json!({"blocks": 5, "seed": 7, "idleBaseline": "5s", "control": control});
        at(&[1, 8], &[("/trials", trials)])
    };
    let benchmark = with("rust");
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let hidden = settings.control.unwrap().hidden;
    let noisy = |connections: u32, block: i32, name: &str| {
        let spread = if connections == 8 { 0.05 } else { 0.01 };
        let noise = if name == hidden {
            factor(block, spread)
        } else {
            1.0
        };
        let trial = saturating(
            connections,
            block,
            if name == "python" { "python" } else { "rust" },
        );
        Trial {
            gross: trial.gross * noise,
            ..trial
        }
    };
    let floor = judged_over(&benchmark, noisy).status.noise_floor.unwrap();
    assert_eq!(floor.point, "c8-max");
    assert!(floor.share > 0.05, "{floor:?}");
    // If one point lacks the noise floor, the noise floor of the run is unknown.
    let missing = judged_over(&benchmark, |connections, block, name| {
        let net = (connections == 1).then_some(0.006);
        Trial {
            net,
            ..noisy(connections, block, name)
        }
    });
    assert!(missing.status.noise_floor.is_some(), "gross joules decide");
    let net = json!({"decidingFigure": "Net"});
    let trials = json!({"blocks": 5, "seed": 7, "idleBaseline": "5s", "control": "rust"});
    let of_net = at(&[1, 8], &[("/trials", trials), ("/energy", net)]);
    let hidden_net = Settings::parse(&of_net.spec)
        .unwrap()
        .control
        .unwrap()
        .hidden;
    assert_eq!(hidden_net, hidden);
    let missing = judged_over(&of_net, |connections, block, name| {
        let net = (connections == 1).then_some(0.006 * factor(block, 0.01));
        Trial {
            net,
            ..noisy(connections, block, name)
        }
    });
    assert_eq!(missing.status.noise_floor, None);
}

#[test]
fn nine_points_of_two_candidates_fit_a_status() {
    let limits = |candidate: &str| {
        json!({
            "candidate": candidate,
            "maxJoulesPerRequest": "0.9",
            "minRequestsPerSecond": "1",
            "maxMillisecondsPerRequest": "9000",
            "maxErrorRatio": "0.1",
        })
    };
    let budget = json!([limits("rust"), limits("python")]);
    let nine = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    let costs = json!({
        "nodeLifetime": "43800h",
        "money": {"currency": "EUR", "node": "90", "perKilowattHour": "0.25"},
        "carbon": {"nodeGrams": "25000", "gramsPerKilowattHour": "56"},
    });
    let benchmark = at(&nine, &[("/budgets", budget.clone())]);
    let result = parse(SAMPLE).unwrap();
    let percentiles = figures(&result, &[200]).percentiles_ms;
    let mut trials = swept(&benchmark, |connections, block, _, name| Trial {
        meter_uncertainty: Some(0.0123),
        ends_uncertainty: 0.001_234,
        successes: 20_000,
        ..saturating(connections, block, name)
    });
    for trial in &mut trials {
        let status = trial.status.as_mut().unwrap();
        status
            .requests
            .as_mut()
            .unwrap()
            .percentiles_ms
            .clone_from(&percentiles);
        status.fortio = Some(result.clone());
    }
    let status = judged(&benchmark, trials.clone()).status;
    assert_eq!(status.verdict, Some(Verdict::Pass));
    // The longest figures: none is withheld, each has every interval, and all percentiles are present.
    let whole = |r: &CandidateResult| r.withheld.is_empty() && r.latency.len() == 5;
    assert!(status.results.iter().all(whole), "{:?}", status.results[0]);
    assert!(bytes(&status) < 32 * 1024, "{}", bytes(&status));
    // Costs take no room unless the spec asks for them. Both costs take a third more.
    let priced = at(&nine, &[("/budgets", budget), ("/costs", costs)]);
    let status = judged(&priced, trials).status;
    let is_priced = |r: &CandidateResult| r.money.is_some() && r.carbon.is_some();
    assert!(
        status.results.iter().all(is_priced),
        "{:?}",
        status.results[0]
    );
    assert!(bytes(&status) < 44 * 1024, "{}", bytes(&status));
}
