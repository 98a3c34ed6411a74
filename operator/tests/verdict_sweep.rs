//! Several points: the figures of each, where each candidate does best, and what holds at all of them.

use crate::common::{
    entries::{Trial, factor, judged, swept, without_figures},
    judgement::assert_ended,
    run_of, two_with,
};
use frugality_measure::fortio::{figures, parse};
use frugality_operator::{
    api::{
        BudgetOutcome, CandidateResult, FrugalityBenchmark, FrugalityBenchmarkStatus, Outcome,
        Verdict, reason,
    },
    plan::{
        Plan,
        ledger::{Ledger, Next, Points},
        settings::{Settings, SettingsError},
    },
    summary::summary,
};
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../measure/tests/data/fortio-sample.json");

/// Both candidates at these numbers of connections, five blocks each.
fn at(connections: &[i32], more: &[(&str, Value)]) -> FrugalityBenchmark {
    let load = json!({"duration": "20s", "sweep": {"connections": connections}});
    let mut changes = vec![("/load", load)];
    changes.extend(more.iter().cloned());
    two_with(&changes)
}

/// Twice the connections give nearly twice the throughput up to 8, and only longer waiting beyond; the
/// node draws 2 W and 5 mJ more for each request. Python needs three times that.
fn saturating(connections: u32, block: i32, candidate: &str) -> Trial {
    let f = factor(block, 0.002)
        * if candidate == "python" {
            factor(block, -0.004)
        } else {
            1.0
        };
    let work = if candidate == "python" { 3.0 } else { 1.0 };
    let rate = 100.0 * f64::from(connections.min(8)) / work * f;
    Trial {
        requests_per_second: rate,
        milliseconds: 1000.0 * f64::from(connections) / rate,
        gross: (2.0 + 0.005 * rate * work) / rate,
        ..Trial::default()
    }
}

fn status(benchmark: &FrugalityBenchmark, of: impl Fn(u32, i32, &str) -> Trial) -> Plan {
    let trials = swept(benchmark, |connections, block, _, entrant| {
        of(connections, block, entrant)
    });
    judged(benchmark, trials)
}

fn bytes(status: &FrugalityBenchmarkStatus) -> usize {
    serde_json::to_string(status).unwrap().len()
}

#[test]
fn every_point_has_its_figures_and_each_candidate_its_best_ones() {
    let benchmark = at(&[1, 2, 4, 8, 16, 32], &[]);
    let plan = status(&benchmark, saturating);
    assert_ended(&plan, Verdict::Pass, reason::NO_BUDGETS);
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
        // Beyond 8 nothing is gained, and of what is equal nothing is left out.
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
    // Of several points, the least and the most; and the ratio where the two are closest.
    let energy = columns.energy.as_ref().unwrap();
    assert_eq!(energy, "0.00750–0.0250 gross");
    assert_eq!(columns.rate.as_deref(), Some("99.8–802"));
    let ratio = columns.ratio.as_ref().unwrap();
    assert!(ratio.contains("] at c"), "{ratio}");
    let table = summary(&FrugalityBenchmark {
        status: Some(status.clone()),
        ..benchmark
    });
    for text in [
        "POINT",
        "winner: rust, by gross joules per request, at every point",
        "rust: knee at c8-max\n",
        "most requests per gross joule at c",
        " (may be any of c8-max, c16-max, c32-max)",
        "rust / python at c1-max: ",
    ] {
        assert!(table.contains(text), "{text} is missing in\n{table}");
    }
}

#[test]
fn one_point_alone_is_told_as_before() {
    let benchmark = two_with(&[]);
    let plan = judged(
        &benchmark,
        swept(&benchmark, |_, block, _, name| saturating(4, block, name)),
    );
    assert!(plan.status.sweep.is_empty());
    let table = summary(&FrugalityBenchmark {
        status: Some(plan.status),
        ..benchmark
    });
    assert!(
        !table.contains("POINT") && !table.contains("c4-max"),
        "{table}"
    );
}

#[test]
fn who_wins_at_some_points_only_does_not_win() {
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
    let plan = status(&benchmark, crossing);
    assert_ended(&plan, Verdict::Pass, reason::NO_BUDGETS);
    assert_eq!(plan.status.winner, None);
    let columns = plan.status.columns.unwrap();
    assert_eq!(columns.winner.as_deref(), Some("depends on load"));
    let note = "the winner depends on the load: rust at c1-max; python at c8-max";
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
fn a_budget_is_kept_where_it_is_kept_at_every_point() {
    let with = |limit: &str| {
        let budget = json!([{"candidate": "rust", "maxMillisecondsPerRequest": limit}]);
        at(&[1, 8, 32], &[("/budgets", budget)])
    };
    // 10 ms up to 8 connections, 40 ms with 32.
    let plan = status(&with("41"), saturating);
    assert_ended(&plan, Verdict::Pass, reason::BUDGETS_MET);
    let plan = status(&with("39"), saturating);
    assert_ended(&plan, Verdict::Fail, reason::BUDGET_EXCEEDED);
    let [budget] = plan.status.budgets.as_slice() else {
        panic!("{:?}", plan.status.budgets);
    };
    assert_eq!(
        (budget.outcome, budget.point.as_str()),
        (BudgetOutcome::Exceeded, "c32-max")
    );
    assert!(
        budget.message.starts_with("rust at c32-max: 40.0 ["),
        "{}",
        budget.message
    );
}

#[test]
fn more_limits_at_more_points_each_ask_for_more() {
    // Broken at the 95 % of one limit at one point: t₄ = 2.776 · 0.01 · √2.5 / √5 is 2 %.
    let of = |_, block, _: &str| Trial {
        milliseconds: 10.0 * factor(block, 0.01),
        ..Trial::default()
    };
    let budget = json!([{"candidate": "rust", "maxMillisecondsPerRequest": "9.78"}]);
    let one = two_with(&[("/budgets", budget.clone())]);
    let plan = judged(&one, swept(&one, |c, block, _, name| of(c, block, name)));
    assert_ended(&plan, Verdict::Fail, reason::BUDGET_EXCEEDED);
    let plan = status(
        &at(&[1, 2, 4, 8], &[("/budgets", budget)]),
        |connections, block, name| {
            // At one of four points only.
            let trial = of(connections, block, name);
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
        reason::BUDGET_WITHIN_UNCERTAINTY,
    );
    let message = &plan.status.budgets[0].message;
    assert!(
        message.contains("not at the one that 4 points ask for"),
        "{message}"
    );
}

#[test]
fn rounds_go_over_all_points_and_each_is_balanced() {
    let benchmark = at(&[1, 2, 4], &[("/trials/blocks", json!(6))]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let plan = settings.plan();
    assert_eq!(plan.len(), 18);
    for round in plan.chunks(3) {
        let mut points: Vec<_> = round.iter().map(|block| block.point).collect();
        points.sort_unstable();
        assert_eq!(points, [0, 1, 2]);
    }
    for point in 0..3 {
        let first = plan
            .iter()
            .filter(|b| b.point == point && b.order[0] == 0)
            .count();
        assert_eq!(
            first, 3,
            "each candidate comes first in half of the blocks of a point"
        );
    }
    let orders: std::collections::BTreeSet<Vec<usize>> = plan
        .chunks(3)
        .map(|round| round.iter().map(|b| b.point).collect())
        .collect();
    assert!(orders.len() > 1, "the points are in random order");
    assert_eq!(
        settings.point_of(1).unwrap(),
        &settings.points[plan[0].point]
    );
    assert_eq!((settings.point_of(0), settings.point_of(19)), (None, None));
}

#[test]
fn a_void_attempt_repeats_its_block_at_its_point() {
    let benchmark = at(&[1, 2], &[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let mut trials = swept(&benchmark, |connections, block, _, name| {
        saturating(connections, block, name)
    });
    trials.retain(|trial| trial.spec.block <= 3);
    let third = settings.point_of(3).unwrap().name.clone();
    let last = trials.iter_mut().rfind(|t| t.spec.block == 3).unwrap();
    last.status = Some(without_figures(Outcome::Void, reason::POD_REPLACED, "gone"));
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    let Next::Start(start) = ledger.next(&settings) else {
        panic!("{:?}", ledger.next(&settings));
    };
    assert_eq!((start.block, start.attempt, start.position), (3, 2, 1));
    assert_eq!(settings.point_of(start.block).unwrap().name, third);
}

fn points(tried: usize, judged: usize) -> Points {
    Points { tried, judged }
}

/// Errors from so many connections on.
fn failing(from: u32) -> impl Fn(u32, i32, &str) -> Trial {
    move |connections, block, candidate| {
        let is_failing = connections
            >= if candidate == "python" {
                from / 2
            } else {
                from
            };
        Trial {
            errors: if is_failing { 100 } else { 0 },
            ..saturating(connections, block, candidate)
        }
    }
}

fn until_errors(connections: &[i32]) -> FrugalityBenchmark {
    at(connections, &[("/load/sweep/maxErrorRatio", json!("0.01"))])
}

#[test]
fn points_beyond_everybodys_errors_are_not_tried() {
    let benchmark = until_errors(&[1, 2, 4, 8, 16, 32]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let first: Vec<_> = settings.plan()[..6]
        .iter()
        .map(|block| block.point)
        .collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 5], "the first round goes from below");
    let mut trials = swept(&benchmark, |connections, block, _, name| {
        failing(8)(connections, block, name)
    });
    // What an operator would have measured: nothing beyond 8 connections.
    trials.retain(|t| {
        let connections: u32 = t.spec.point[1..]
            .split('-')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        connections <= 8
    });
    let plan = judged(&benchmark, trials.clone());
    assert_ended(&plan, Verdict::Pass, reason::NO_BUDGETS);
    let status = &plan.status;
    let last = status.results.last().unwrap();
    assert_eq!((last.point.as_str(), status.results.len()), ("c8-max", 8));
    assert_eq!(
        status.columns.as_ref().unwrap().trials.as_deref(),
        Some("40/40")
    );
    let note = "at c8-max the errors of every candidate passed load.sweep.maxErrorRatio: it is shown and not judged, and c16-max, c32-max left out";
    assert!(status.notes.iter().any(|n| n == note), "{:?}", status.notes);
    // After its first round, the run goes on below the end.
    trials.retain(|t| t.spec.block <= 4);
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    assert_eq!(ledger.points(&settings), points(4, 3));
    let Next::Start(start) = ledger.next(&settings) else {
        panic!("{:?}", ledger.next(&settings));
    };
    assert!(start.block > 6, "{start:?}");
    // Errors of one candidate alone end nothing.
    trials.retain(|t| t.spec.block <= 3);
    let ledger = Ledger::of(&run, &trials);
    assert_eq!(ledger.points(&settings), points(6, 6));
}

#[test]
fn no_answer_at_all_is_an_error_unless_errors_were_asked_for() {
    let silent = |connections: u32, block: i32, candidate: &str| {
        let trial = saturating(connections, block, candidate);
        match (connections, candidate) {
            (8, "python") => Trial {
                successes: 0,
                errors: 500,
                ..trial
            },
            _ => trial,
        }
    };
    let plan = status(&at(&[1, 8], &[]), silent);
    assert_ended(&plan, Verdict::Error, reason::NO_SUCCESSFUL_REQUEST);
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("candidate python answered no request as expected at c8-max"),
        "{message}"
    );
    let plan = status(&until_errors(&[1, 8]), silent);
    assert_ended(&plan, Verdict::Inconclusive, reason::FIGURE_WITHHELD);
    let results = &plan.status.results;
    assert!(results[3].requests_per_second.is_none() && results[2].requests_per_second.is_some());
    // Its best point may be the one without a figure.
    let [rust, python] = plan.status.sweep.as_slice() else {
        panic!("{:?}", plan.status.sweep);
    };
    assert!(rust.most_requests_per_second.is_some() && python.most_requests_per_second.is_none());
}

#[test]
fn where_errors_end_a_sweep_nobody_is_judged() {
    let budget = json!([{"candidate": "rust", "maxErrorRatio": "0.01"}]);
    let load =
        json!({"duration": "20s", "sweep": {"connections": [1, 2, 4, 8], "maxErrorRatio": "0.01"}});
    let benchmark = two_with(&[("/load", load), ("/budgets", budget)]);
    // With 8 connections both fail, and python wins by it; the budget is broken there.
    let plan = status(&benchmark, |connections, block, name| {
        let trial = failing(8)(connections, block, name);
        let gross = if connections == 8 && name == "python" {
            0.001
        } else {
            trial.gross
        };
        let errors = if connections == 8 { 2000 } else { 0 };
        Trial {
            gross,
            errors,
            successes: 100_000,
            ..trial
        }
    });
    assert_ended(&plan, Verdict::Pass, reason::BUDGETS_MET);
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(plan.status.results.len(), 8);
    let note = "at c8-max the errors of every candidate passed load.sweep.maxErrorRatio: it is shown and not judged";
    assert!(
        plan.status.notes.iter().any(|n| n == note),
        "{:?}",
        plan.status.notes
    );
}

#[test]
fn a_candidate_that_is_broken_from_the_first_is_an_error_at_once() {
    let benchmark = until_errors(&[1, 8]);
    let mut trials = swept(&benchmark, |connections, block, _, name| match name {
        "python" => Trial {
            successes: 0,
            errors: 500,
            ..Trial::default()
        },
        _ => saturating(connections, block, name),
    });
    trials.retain(|trial| trial.spec.block == 1);
    assert_ended(
        &judged(&benchmark, trials),
        Verdict::Error,
        reason::NO_SUCCESSFUL_REQUEST,
    );
}

#[test]
fn candidates_that_do_other_work_anywhere_are_compared_nowhere() {
    let budget = json!([{"candidate": "rust", "maxEnergyRatio": "0.01", "against": "python"}]);
    let benchmark = at(&[1, 8, 32], &[("/budgets", budget)]);
    let plan = status(&benchmark, |connections, block, name| {
        // With an error in each trial, Fortio tells no size.
        let size = if name == "python" { 2000.0 } else { 1000.0 };
        let errors = u64::from(connections == 32);
        let body_bytes = (errors == 0).then_some(size);
        Trial {
            errors,
            body_bytes,
            ..saturating(connections, block, name)
        }
    });
    assert_ended(&plan, Verdict::Inconclusive, reason::RESPONSES_DIFFER);
    assert!(plan.status.comparisons.is_empty());
    // Said once, not at every point.
    let notes = &plan.status.notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("rust answers with 1000 bytes"),
        "{notes:?}"
    );
}

#[test]
fn not_separated_at_a_noisy_point_is_no_dependence_on_the_load() {
    let plan = status(&at(&[1, 8], &[]), |connections, block, name| {
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
    assert_ended(&plan, Verdict::Pass, reason::NO_BUDGETS);
    assert_eq!(plan.status.winner, None);
    let columns = plan.status.columns.unwrap();
    assert_eq!(columns.winner.as_deref(), Some("not separated"));
    let note = "no winner at every point: rust at c1-max; not separated at c8-max";
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
    assert_eq!(ended.verdict, Some(Verdict::Pass));
    assert_eq!(ended.look.unwrap().blocks, 5);
    assert_eq!(ended.columns.unwrap().trials.as_deref(), Some("20/20"));
    assert!(ended.results.iter().all(|result| result.trials == 5));
}

#[test]
fn the_noise_floor_is_that_of_the_worst_point() {
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
    let floor = status(&benchmark, noisy).status.noise_floor.unwrap();
    assert_eq!(floor.point, "c8-max");
    assert!(floor.share > 0.05, "{floor:?}");
    // Known at one point only, it is not known.
    let missing = status(&benchmark, |connections, block, name| {
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
    let missing = status(&of_net, |connections, block, name| {
        let net = (connections == 1).then_some(0.006 * factor(block, 0.01));
        Trial {
            net,
            ..noisy(connections, block, name)
        }
    });
    assert_eq!(missing.status.noise_floor, None);
}

/// Normal enough: the sum of twelve uniform numbers, of a generator of its own.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        let uniform = |noise: &mut Self| {
            noise.0 = noise
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (noise.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform(self)).sum::<f64>() - 6.0
    }
}

#[test]
fn the_true_best_point_is_among_those_that_are_told() {
    let benchmark = at(&[1, 2, 4, 8], &[]);
    // The best by a little; and the rounds drift by far more than that.
    let truth = |connections: u32| match connections {
        4 => 103.0,
        8 => 102.0,
        _ => 100.0,
    };
    let mut noise = Noise(7);
    let (runs, mut held, mut told) = (400, 0, 0);
    for _ in 0..runs {
        let drift: Vec<f64> = (0..5).map(|_| (0.3 * noise.next()).exp()).collect();
        let cell = std::cell::RefCell::new(&mut noise);
        let plan = status(&benchmark, |connections, block, _| Trial {
            requests_per_second: truth(connections)
                * drift[usize::try_from(block - 1).unwrap() / 4]
                * (0.01 * cell.borrow_mut().next()).exp(),
            ..Trial::default()
        });
        let best = plan.status.sweep[0]
            .most_requests_per_second
            .clone()
            .unwrap();
        held += i32::from(best.among.iter().any(|point| point == "c4-max"));
        told += best.among.len();
    }
    // 95 % at least, less three standard errors of 400 runs.
    assert!(
        f64::from(held) >= (0.95 - 0.033) * f64::from(runs),
        "{held} of {runs}"
    );
    // And it tells something: without the pairs, the drift would hide every difference.
    assert!(told < 3 * 400, "{told}");
}

#[test]
fn points_that_two_alone_would_tell_apart_are_not_apart_among_nine() {
    let among = |connections: &[i32]| {
        let benchmark = at(connections, &[]);
        let points = connections.len();
        let last = u32::try_from(*connections.last().unwrap()).unwrap();
        let plan = status(&benchmark, |connections, block, _| {
            let round = usize::try_from(block - 1).unwrap() / points;
            // Over five rounds the logarithms' differences are k·{−2 … 2} about 4·k·√2.5/√5, so that t₄ is 4:
            // more than the 2.78 of 5 %, and less than the 5.6 of an eighth of that.
            let k = 0.01;
            let spread = k * (f64::from(u32::try_from(round).unwrap()) - 2.0);
            let apart = -4.0 * k * 2.5_f64.sqrt() / 5_f64.sqrt();
            let less = if connections == last {
                0.0
            } else {
                apart + spread
            };
            Trial {
                requests_per_second: 100.0 * less.exp(),
                ..Trial::default()
            }
        });
        plan.status.sweep[0]
            .most_requests_per_second
            .clone()
            .unwrap()
            .among
    };
    assert_eq!(among(&[1, 2]), ["c2-max"]);
    assert_eq!(among(&[1, 2, 3, 4, 5, 6, 7, 8, 9]).len(), 9);
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
    let benchmark = at(&nine, &[("/budgets", budget)]);
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
    let status = judged(&benchmark, trials).status;
    assert_eq!(status.verdict, Some(Verdict::Pass));
    // The longest that figures come in: none is withheld, each has every interval, and all percentiles.
    let whole = |r: &CandidateResult| r.withheld.is_empty() && r.latency.len() == 5;
    assert!(status.results.iter().all(whole), "{:?}", status.results[0]);
    assert!(bytes(&status) < 32 * 1024, "{}", bytes(&status));
}

#[test]
fn every_connection_has_two_requests_at_least() {
    let parse = |load: Value| Settings::parse(&two_with(&[("/load", load)]).spec);
    let too_many = Err(SettingsError::TooManyConnections);
    for (load, is_enough) in [
        (json!({"connections": 50, "requests": 100}), true),
        (json!({"connections": 51, "requests": 100}), false),
        (
            json!({"connections": 300, "rate": 10, "duration": "60s"}),
            true,
        ),
        (
            json!({"connections": 301, "rate": 10, "duration": "60s"}),
            false,
        ),
        (
            json!({"rate": 10, "duration": "60s", "sweep": {"connections": [1, 301]}}),
            false,
        ),
        (json!({"connections": 1024, "duration": "20s"}), true),
    ] {
        let parsed = parse(load.clone());
        assert_eq!(parsed.is_ok(), is_enough, "{load}");
        assert!(is_enough || parsed == too_many);
    }
}

#[test]
fn points_ascend() {
    let parse = |sweep: Value| Settings::parse(&at(&[1, 2], &[("/load/sweep", sweep)]).spec);
    for bad in [
        json!([4]),
        json!([2, 2]),
        json!([4, 2]),
        json!((1..=17).collect::<Vec<_>>()),
    ] {
        assert_eq!(
            parse(json!({"connections": bad})),
            Err(SettingsError::Sweep)
        );
    }
    for bad in [
        json!({}),
        json!({"replicas": [1]}),
        json!({"replicas": [2, 1]}),
        json!({"connections": [1, 2, 3, 4, 5], "replicas": [1, 2, 3, 4]}),
        json!({"connections": [1, 2], "replicas": [1, 2], "maxErrorRatio": "0.1"}),
    ] {
        assert_eq!(parse(bad), Err(SettingsError::Sweep));
    }
    let settings = parse(json!({"connections": [4, 8], "replicas": [1, 3]})).unwrap();
    let points: Vec<_> = settings
        .points
        .iter()
        .map(|p| (p.name.as_str(), p.connections, p.replicas))
        .collect();
    assert_eq!(
        points,
        [
            ("c4-max-x1", 4, Some(1)),
            ("c4-max-x3", 4, Some(3)),
            ("c8-max-x1", 8, Some(1)),
            ("c8-max-x3", 8, Some(3)),
        ]
    );
    // Absent connections are those of the load.
    let settings = parse(json!({"replicas": [1, 2]})).unwrap();
    assert_eq!(settings.points[1].name, "c4-max-x2");
    let settings = parse(json!({"connections": [3, 40]})).unwrap();
    let names: Vec<_> = settings
        .points
        .iter()
        .map(|p| (p.name.as_str(), p.connections))
        .collect();
    assert_eq!(names, [("c3-max", 3), ("c40-max", 40)]);
}
