//! Claims about joules that a power model computes. A claim must hold on every board. If the accuracy of the
//! board's watts is unknown, there is no interval.

use crate::common::{
    assert_near,
    entries::{Trial, factor, judged, on_board, ordered_ledger},
    judgement::{assert_ended, budgets, status},
    sweep::{at, judged_over},
    two, two_with,
};
use frugality_measure::{
    model::{LinearModel, ModelUncertainty, Parts},
    reading::Provenance,
};
use frugality_operator::{
    api::{BoardVerdict, BudgetOutcome, Comparison, FrugalityBenchmark, Reason, Verdict},
    plan::action::Plan,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A made-up board.
pub(crate) const BOX: LinearModel = LinearModel {
    idle_watts: 2.0,
    watts_per_cpu: 3.0,
    uncertainty: None,
};

/// [`BOX`] with watts that are known to these shares.
fn known(idle_watts: f64, watts_per_cpu: f64) -> LinearModel {
    LinearModel {
        uncertainty: Some(ModelUncertainty {
            idle_watts,
            watts_per_cpu,
        }),
        ..BOX
    }
}

/// Rust takes `time` times python's time per request, and `cpu` times its CPU time. Their ratio has a spread
/// of 0.01.
pub(crate) fn compared(model: LinearModel, time: f64, cpu: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| {
        let is_rust = candidate == "rust";
        let spread = factor(block, if is_rust { 0.005 } else { -0.005 });
        let (time, cpu) = if is_rust { (time, cpu) } else { (1.0, 1.0) };
        on_board(model, 0.002 * time * spread, 0.001 * cpu * spread)
    }
}

pub(crate) fn allowed(limit: &Value) -> FrugalityBenchmark {
    let mut benchmark = budgets(limit);
    benchmark.spec.energy.allow_modelled = true;
    benchmark
}

fn ratio_budget(limit: &str) -> FrugalityBenchmark {
    allowed(&json!({"maxEnergyRatio": limit, "against": "python"}))
}

fn column(plan: &Plan, name: &str) -> String {
    let columns = json!(plan.status.columns.as_ref().unwrap());
    columns[name].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn comparison(plan: &Plan) -> &Comparison {
    let [only] = plan.status.comparisons.as_slice() else {
        panic!("{:?}", plan.status.comparisons);
    };
    only
}

#[test]
fn joules_of_unknown_accuracy_have_no_interval_anywhere() {
    let plan = status(
        &allowed(&json!({"maxJoulesPerRequest": "0.02"})),
        compared(BOX, 0.5, 0.4),
    );
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    let energy = column(&plan, "energy");
    assert!(energy == "~3.2 mJ gross", "{energy}");
    let message = plan.status.budgets[0].message.clone();
    assert!(
        message.contains("Met for rust: ~3.2 gross mJ/request (limit 0.02 J = 20 mJ)."),
        "{message}"
    );
    assert!(!message.contains('['), "{message}");
    assert!(
        message.contains("The model's accuracy is unknown"),
        "{message}"
    );
    // More digits only show on which side of the limit the figure is: 2 W · 6 ms + 3 W · 2.68 ms = 20.04 mJ.
    let near = status(
        &allowed(&json!({"maxJoulesPerRequest": "0.02"})),
        |block, _| {
            let spread = factor(block, 0.0001);
            on_board(BOX, 0.006 * spread, 0.00268 * spread)
        },
    );
    let close = &near.status.budgets[0].message;
    assert!(
        close.starts_with("Exceeded for rust: ~20.04 gross mJ/request (limit 0.02 J = 20 mJ)."),
        "{close}"
    );
    // The status has the interval, and marks it as repeatability only.
    let gross = plan.status.results[0].gross_joules_per_request.unwrap();
    let expanded = gross.expanded.unwrap();
    assert!(expanded.repeatability_only && !expanded.covers_meter);
}

#[test]
fn joules_of_a_model_include_its_known_accuracy() {
    let plan = status(&two(), compared(known(0.05, 0.1), 0.5, 0.4));
    let result = &plan.status.results[0];
    let half = |of_meter: f64| (1.963_243_f64 * 0.005).hypot(2.0 * of_meter);
    // A request takes 1 ms at 2 W and 0.4 ms of CPU time at 3 W: 2 mJ and 1.2 mJ.
    let of_gross = (0.05 * 2.0 + 0.1 * 1.2) / 3.2;
    for (figure, of_meter) in [
        (result.gross_joules_per_request, of_gross),
        (result.net_joules_per_request, 0.1),
        (result.attributed_joules_per_request, 0.1),
    ] {
        let figure = figure.unwrap();
        let expanded = figure.expanded.unwrap();
        assert!(expanded.covers_meter && !expanded.repeatability_only);
        assert_near(expanded.upper, figure.value * half(of_meter).exp());
    }
    let energy = column(&plan, "energy");
    assert!(energy == "3.2±0.5 mJ gross", "{energy}");
}

#[test]
fn a_joule_budget_on_a_model_includes_its_accuracy() {
    let limit = allowed(&json!({"maxJoulesPerRequest": "0.0034"}));
    let outcome = |model| {
        let plan = status(&limit, compared(model, 0.5, 0.4));
        plan.status.budgets[0].outcome
    };
    // 3.2 mJ, with a repeatability of ±1 %.
    assert_eq!(outcome(BOX), BudgetOutcome::Met);
    assert_eq!(outcome(known(0.0, 0.0)), BudgetOutcome::Met);
    assert_eq!(outcome(known(0.1, 0.1)), BudgetOutcome::Undecided);
}

#[test]
fn a_candidate_that_would_lose_on_another_board_is_no_winner() {
    let plan = status(&two(), compared(BOX, 1.3, 0.6));
    assert_eq!(plan.status.winner, None);
    assert_eq!(column(&plan, "winner"), "depends on board");
    let ratio = column(&plan, "ratio");
    // This board is between the two extremes, and the interval covers both.
    assert_eq!(ratio, "1.00 [0.59–1.33]");
    assert_eq!(comparison(&plan).board, Some(BoardVerdict::DependsOnBoard));
    assert!(!comparison(&plan).separated);
    let note = &plan.status.notes[0];
    assert!(
        note.contains("depends on the board. It is 1.30 [") && note.contains("Connect a meter"),
        "{note}"
    );
    // If neither extreme is shown to differ from 1, no board is known on which the candidates differ.
    let plan = status(&two(), compared(BOX, 1.0, 1.0));
    assert_eq!(column(&plan, "winner"), "rust, python");
    assert_eq!(comparison(&plan).board, None);
}

#[test]
fn at_equal_times_the_winner_depends_on_the_board() {
    // A board that always draws the same power shows no difference.
    let plan = status(&two(), compared(BOX, 1.0, 0.3));
    assert_eq!(column(&plan, "winner"), "depends on board");
}

#[test]
fn a_winner_on_every_board_is_shown_with_the_range_of_the_boards() {
    let plan = status(&two(), compared(BOX, 0.8, 0.6));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(comparison(&plan).board, Some(BoardVerdict::EveryBoard));
    // exp(2.321889 · 0.01) on both sides.
    assert_eq!(column(&plan, "ratio"), "0.71 [0.59–0.82]");
}

#[test]
fn the_stated_accuracy_can_decide_if_boards_disagree() {
    // By time rust is 5 % worse, by CPU time it is better. On this board the ratio is (2·2.1 + 3·0.4)/(2·2 +
    // 3) = 0.771.
    let plan = status(&two(), compared(known(0.05, 0.05), 1.05, 0.4));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let c = comparison(&plan);
    assert_eq!(c.board, Some(BoardVerdict::StatedAccuracy));
    let ratio = |idle: f64, cpu: f64| (idle * 2.1 + cpu * 0.4) / (idle * 2.0 + cpu);
    let (low, high) = ((-0.1_f64).exp(), 0.1_f64.exp());
    let end = (2.321_889_f64 * 0.01).exp();
    let (lower, upper) = c.ratio.bounds();
    assert_near(lower, ratio(2.0 * low, 3.0 * high) / end);
    assert_near(upper, ratio(2.0 * high, 3.0 * low) * end);
    assert!(column(&plan, "ratio").starts_with("0.77"));
    assert!(plan.status.notes[0].contains("by the stated accuracy of this board's watts"));
    // With less accurate watts, the stated accuracy does not decide.
    let plan = status(&two(), compared(known(0.6, 0.6), 1.05, 0.4));
    assert_eq!(column(&plan, "winner"), "depends on board");
}

#[test]
fn the_comparison_of_modelled_net_joules_does_not_depend_on_the_board() {
    let benchmark = two_with(&[("/energy/decidingFigure", json!("Net"))]);
    let plan = status(&benchmark, compared(BOX, 1.3, 0.6));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(comparison(&plan).boards, None);
    assert_eq!(column(&plan, "ratio"), "0.60 [0.59–0.61]");
}

#[test]
fn attributed_joules_of_a_model_lie_between_cpu_time_and_cpu_time_by_use() {
    // Rust's pods use 0.85 of python's CPU time in half of the time. The node's use is therefore 1.7 times as
    // high.
    let benchmark = two_with(&[("/energy/decidingFigure", json!("Attributed"))]);
    let plan = status(&benchmark, compared(BOX, 0.5, 0.85));
    let c = comparison(&plan);
    // The candidate with fewer joules on this board.
    assert_eq!(c.candidate, "python");
    let range = c.boards.unwrap();
    assert_near(range.idle_only.value, 1.0 / 0.85);
    assert_near(range.cpu_only.value, 1.0 / (0.85 * 1.7));
    assert_eq!(column(&plan, "winner"), "depends on board");
}

#[test]
fn a_model_of_unknown_shape_and_accuracy_allows_no_comparison() {
    let unknown = |accuracy: Option<f64>| {
        move |block: i32, candidate: &str| Trial {
            model: None,
            meter_uncertainty: accuracy,
            ..compared(BOX, 0.5, 0.4)(block, candidate)
        }
    };
    let plan = status(&two(), unknown(None));
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::MeterAccuracyUnknown.as_str(),
    );
    assert_eq!(plan.status.comparisons, []);
    // With a stated accuracy, the two figures may be off in opposite directions.
    let plan = status(&two(), unknown(Some(0.03)));
    let c = comparison(&plan);
    let half = (2.321_889_f64 * 0.01).hypot(2.0 * (0.03 + 0.03));
    assert_near(c.ratio.bounds().1, c.ratio.value * half.exp());
}

#[test]
fn a_ratio_budget_is_met_only_if_it_holds_on_every_board() {
    use BudgetOutcome::{Exceeded, Met, Undecided};
    for (limit, outcome, reported) in [
        (
            "0.83",
            Met,
            "Met for rust: 0.600–0.800 of python's gross joules",
        ),
        ("0.81", Undecided, "more blocks would decide"),
        (
            "0.70",
            Undecided,
            "would not help: the ratio depends on the board.",
        ),
        ("0.59", Undecided, "more blocks would decide"),
        ("0.58", Exceeded, "0.600–0.800 [0.586–0.819] of python's"),
    ] {
        let plan = status(&ratio_budget(limit), compared(BOX, 0.8, 0.6));
        let budget = &plan.status.budgets[0];
        assert_eq!(budget.outcome, outcome, "{limit}: {}", budget.message);
        assert!(budget.message.contains(reported), "{}", budget.message);
        for words in ["on every board", &format!("limit {limit}")] {
            assert!(budget.message.contains(words), "{}", budget.message);
        }
    }
    // The stated accuracy narrows the range: 0.714 on this board.
    let plan = status(&ratio_budget("0.75"), compared(known(0.01, 0.01), 0.8, 0.6));
    assert_eq!(plan.status.budgets[0].outcome, Met);
}

#[test]
fn a_tie_holds_for_every_board() {
    let within = |time, cpu| {
        let benchmark = two_with(&[("/energy/tieWithin", json!("0.05"))]);
        status(&benchmark, compared(BOX, time, cpu)).status.tie
    };
    assert_eq!(within(1.01, 0.99), Some(true));
    // On this board they differ by 3 %, by CPU time alone by 9 %.
    assert_eq!(within(1.01, 0.91), None);
}

#[test]
fn the_noise_floor_comes_from_the_noisiest_board() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let trials = ordered_ledger(&benchmark, |block, _, entrant| {
        let of_cpu = match entrant {
            "rust" | "python" => factor(block, 0.02),
            _ => factor(block, -0.02),
        };
        on_board(BOX, 0.002 * factor(block, 0.001), 0.001 * of_cpu)
    });
    let floor = judged(&benchmark, trials).status.noise_floor.unwrap();
    assert_near(floor.share, (1.963_243_f64 * 0.04).exp_m1());
}

/// Rust's control differs from rust by up to 5 % in CPU time. `time` is rust's time per request relative to python's: the
/// ratio on a board that draws only idle watts.
#[test]
fn each_board_of_a_claim_must_be_beyond_the_noise_floor() {
    let benchmark = two_with(&[("/trials/control", json!("rust"))]);
    let judged_with = |time: f64| {
        let trials = ordered_ledger(&benchmark, |block, _, entrant| {
            let (time, cpu, of_time, of_cpu) = match entrant {
                "rust" => (time, 0.5, 0.002, 0.012),
                "python" => (1.0, 1.0, 0.001, 0.010),
                _ => (time, 0.5, 0.002, -0.012),
            };
            let seconds = 0.002 * time * factor(block, of_time);
            on_board(BOX, seconds, 0.001 * cpu * factor(block, of_cpu))
        });
        judged(&benchmark, trials)
    };
    let within = judged_with(0.97);
    let floor = within.status.noise_floor.as_ref().unwrap().share;
    assert!((0.04..0.06).contains(&floor), "{floor}");
    assert!(!comparison(&within).separated);
    assert_eq!(
        comparison(&within).board,
        Some(BoardVerdict::DependsOnBoard)
    );
    assert_eq!(within.status.winner, None);
    // On this node, the ratio is beyond the floor.
    let notes = &within.status.notes;
    assert!(
        notes.iter().all(|it| !it.contains("closer to 1 than")),
        "{notes:?}"
    );
    let beyond = judged_with(0.8);
    assert_eq!(comparison(&beyond).board, Some(BoardVerdict::EveryBoard));
    assert_eq!(beyond.status.winner.as_deref(), Some("rust"));
}

#[test]
fn the_best_point_may_differ_on_another_board() {
    // Twice the connections halve the time of a request and cost 20 % more CPU time.
    let of = |connections: u32, block: i32, _: &str| {
        let f = factor(block, 0.002);
        let (time, cpu) = if connections == 1 {
            (1.0, 1.0)
        } else {
            (0.5, 1.2)
        };
        on_board(BOX, 0.002 * time * f, 0.001 * cpu * f)
    };
    let plan = judged_over(&at(&[1, 2], &[]), of);
    let best = plan.status.sweep[0]
        .most_requests_per_joule
        .as_ref()
        .unwrap();
    assert_eq!(best.point, "c2-max");
    assert_eq!(best.among, ["c1-max", "c2-max"]);
    // Metered joules belong to one board only.
    let plan = judged_over(&at(&[1, 2], &[]), |connections, block, candidate| Trial {
        provenance: Provenance::Metered,
        model: None,
        ..of(connections, block, candidate)
    });
    let best = plan.status.sweep[0]
        .most_requests_per_joule
        .as_ref()
        .unwrap();
    assert_eq!(best.among, ["c2-max"]);
    // A model of unknown shape may be wrong in opposite directions at the two points, which differ by 22 %.
    let of_unknown_shape = |uncertainty: Option<f64>| {
        let plan = judged_over(&at(&[1, 2], &[]), |connections, block, candidate| Trial {
            model: None,
            meter_uncertainty: uncertainty,
            ..of(connections, block, candidate)
        });
        let [rust, ..] = plan.status.sweep.as_slice() else {
            panic!("{:?}", plan.status.sweep);
        };
        rust.most_requests_per_joule.clone()
    };
    assert_eq!(of_unknown_shape(None), None);
    assert_eq!(of_unknown_shape(Some(0.03)).unwrap().among, ["c2-max"]);
    assert_eq!(
        of_unknown_shape(Some(0.06)).unwrap().among,
        ["c1-max", "c2-max"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The model of one board computes gross joules. Every claim about them holds on any other board, drawn
    /// at random, except for differences that the spread of the trials hides.
    #[test]
    fn a_claim_holds_on_any_board(
        time in 0.3..3.0_f64,
        cpu in 0.3..3.0_f64,
        limit in 0.3..3.0_f64,
        idle_watts in prop_oneof![1 => Just(0.0), 4 => 0.01..20.0_f64],
        watts_per_cpu in prop_oneof![1 => Just(0.0), 4 => 0.01..20.0_f64],
    ) {
        prop_assume!(idle_watts + watts_per_cpu > 0.0);
        let board = LinearModel { idle_watts, watts_per_cpu, uncertainty: None };
        let joules = |time: f64, cpu: f64| board.joules(Parts { idle_seconds: 2.0 * time, cpu_seconds: cpu });
        let truth = joules(time, cpu) / joules(1.0, 1.0);

        let plan = status(&ratio_budget(&format!("{limit:.4}")), compared(BOX, time, cpu));
        let status = &plan.status;
        match status.winner.as_deref() {
            Some("rust") => prop_assert!(truth < 1.0, "{truth}"),
            Some("python") => prop_assert!(truth > 1.0, "{truth}"),
            _ => {}
        }
        let c = &status.comparisons[0];
        let of_told = if c.candidate == "rust" { truth } else { 1.0 / truth };
        let (least, most) = c.boards.unwrap().values();
        prop_assert!(least * 0.9999 <= of_told && of_told <= most * 1.0001, "{least} {of_told} {most}");
        let limit: f64 = format!("{limit:.4}").parse().unwrap();
        match status.budgets[0].outcome {
            BudgetOutcome::Met => prop_assert!(truth < limit),
            BudgetOutcome::Exceeded => prop_assert!(truth > limit),
            _ => {}
        }
    }

    /// A claim by the stated accuracy of the board's watts holds on every board within the expanded
    /// uncertainty of these watts.
    #[test]
    fn a_claim_by_the_stated_accuracy_holds_within_it(
        time in 0.5..2.0_f64,
        cpu in 0.5..2.0_f64,
        accuracy in prop::array::uniform2(0.0..0.4_f64),
        off in prop::array::uniform2(-1.0..1.0_f64),
    ) {
        let board = LinearModel {
            idle_watts: BOX.idle_watts * (2.0 * accuracy[0] * off[0]).exp(),
            watts_per_cpu: BOX.watts_per_cpu * (2.0 * accuracy[1] * off[1]).exp(),
            uncertainty: None,
        };
        let joules = |time: f64, cpu: f64| board.joules(Parts { idle_seconds: 2.0 * time, cpu_seconds: cpu });
        let truth = joules(time, cpu) / joules(1.0, 1.0);
        let plan = status(&two(), compared(known(accuracy[0], accuracy[1]), time, cpu));
        match plan.status.winner.as_deref() {
            Some("rust") => prop_assert!(truth < 1.0, "{truth}"),
            Some(_) => prop_assert!(truth > 1.0, "{truth}"),
            None => {}
        }
    }
}
