//! Looks at a run in progress. The run ends at the first look that decides, and not before.

use crate::common::{
    T0, assert_near,
    entries::{Trial, factor, judged, ledger},
    judgement::{assert_ended, status, usual},
    run_of, two, two_with,
};
use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Outcome, Reason, Verdict},
    plan::{
        action::Plan,
        ledger::{Ledger, Next, record::ended},
        settings::{Settings, SettingsError},
    },
};
use serde_json::{Value, json};

/// Looks after 5, 10 and 15 blocks.
fn three_looks(more: &[(&str, Value)]) -> FrugalityBenchmark {
    let trials = json!({"blocks": 15, "looks": [5, 10, 15], "seed": 7, "idleBaseline": "5s"});
    let mut changes = vec![("/trials", trials)];
    changes.extend(more.iter().cloned());
    two_with(&changes)
}

/// The entries of the first `blocks` blocks.
fn first(
    benchmark: &FrugalityBenchmark,
    blocks: i32,
    of: impl Fn(i32, &str) -> Trial,
) -> Vec<FrugalityTrial> {
    let mut trials = ledger(benchmark, of);
    trials.retain(|trial| trial.spec.block <= blocks);
    trials
}

/// Python needs `ratio` times as much as rust. Five blocks do not show a small difference.
fn apart(ratio: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| match candidate {
        "python" => Trial {
            gross: 0.01 * ratio,
            ..Trial::default()
        },
        _ => Trial {
            gross: 0.01 * factor(block, 0.01),
            ..Trial::default()
        },
    }
}

fn look(plan: &Plan) -> (i32, i32, i32) {
    let look = plan.status.look.unwrap();
    (look.number, look.of, look.blocks)
}

#[test]
fn the_first_look_that_decides_ends_the_run() {
    let benchmark = three_looks(&[]);
    let plan = judged(&benchmark, first(&benchmark, 5, usual));
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    assert_eq!(look(&plan), (1, 3, 5));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let columns = plan.status.columns.as_ref().unwrap();
    assert_eq!(columns.trials.as_deref(), Some("10/10"));
    let message = columns.message.as_ref().unwrap();
    assert!(
        message.contains("Look 1 of 3, after 5 of at most 15 blocks. The intervals have 97.9 %, the intervals of ratios and budgets 98.8 %."),
        "{message}"
    );
}

#[test]
fn a_look_that_does_not_decide_is_followed_by_more_blocks() {
    let benchmark = three_looks(&[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    for blocks in [4, 5, 9, 10, 14] {
        let trials = first(&benchmark, blocks, apart(1.0));
        assert_eq!(judged(&benchmark, trials.clone()).status.verdict, None);
        let run = run_of(&benchmark);
        let Next::Start(start) = Ledger::of(&run, &trials).next(&settings) else {
            panic!("nothing is started after {blocks} blocks");
        };
        assert_eq!((start.block, start.position), (blocks + 1, 1));
    }
    let plan = status(&benchmark, apart(1.0));
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    assert_eq!(look(&plan), (3, 3, 15));
    assert_eq!(plan.status.winner, None);
}

#[test]
fn one_of_several_looks_is_stricter_than_a_single_look() {
    // Just beyond the end of a claim's interval for five blocks, exp(2.321889 · 0.01). A single look would
    // decide.
    let close = || apart(1.0236);
    let one = status(&two(), close());
    assert_eq!(one.status.winner.as_deref(), Some("rust"));
    assert_near(one.status.look.unwrap().confidence, 0.95);
    let benchmark = three_looks(&[]);
    assert_eq!(
        judged(&benchmark, first(&benchmark, 5, close()))
            .status
            .verdict,
        None
    );
    let plan = judged(&benchmark, first(&benchmark, 10, close()));
    assert_eq!(look(&plan), (2, 3, 10));
    let confidence = plan.status.look.unwrap().confidence;
    assert!(confidence > 0.975 && confidence < 0.985, "{confidence}");
}

#[test]
fn with_budgets_a_look_decides_once_every_limit_is_certain() {
    let with = |limit: &str| {
        three_looks(&[(
            "/budgets",
            json!([{"candidate": "rust", "maxJoulesPerRequest": limit}]),
        )])
    };
    for (limit, verdict) in [("0.02", Verdict::Pass), ("0.005", Verdict::Fail)] {
        let benchmark = with(limit);
        // The candidates are not separated.
        let plan = judged(&benchmark, first(&benchmark, 5, apart(1.0)));
        assert_eq!(plan.status.verdict, Some(verdict));
        assert_eq!((look(&plan), &plan.status.winner), ((1, 3, 5), &None));
    }
    // There is a winner, but the limit is inside its interval.
    let benchmark = with("0.01");
    for blocks in [5, 10] {
        let plan = judged(&benchmark, first(&benchmark, blocks, usual));
        assert_eq!(plan.status.verdict, None, "{blocks}");
    }
    let plan = status(&benchmark, usual);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::BudgetWithinUncertainty.as_str(),
    );
    assert_eq!(look(&plan), (3, 3, 15));
}

#[test]
fn trials_after_the_deciding_look_do_not_count() {
    let benchmark = three_looks(&[]);
    let ended = judged(&benchmark, first(&benchmark, 5, usual)).status;
    let with_more = judged(
        &benchmark,
        first(&benchmark, 10, |block, candidate| Trial {
            gross: if block > 5 {
                9.0
            } else {
                usual(block, candidate).gross
            },
            ..usual(block, candidate)
        }),
    )
    .status;
    assert_eq!(with_more.results, ended.results);
    assert_eq!(with_more.ledger_digest, ended.ledger_digest);
}

/// The budgets were edited, so the run went on, and the edit was taken back.
#[test]
fn an_end_after_the_deciding_look_does_not_count() {
    type End = fn(&mut FrugalityTrial);
    let benchmark = three_looks(&[]);
    let decided = judged(&benchmark, first(&benchmark, 5, usual)).status;
    assert!(decided.verdict.is_some());
    let ends: [(&str, End); 3] = [
        ("a failure", |trial| {
            end(trial, Outcome::Failed, Reason::ImagePullFailed);
        }),
        ("a meter that invents", |trial| {
            end(trial, Outcome::Void, Reason::MeterFake);
        }),
        ("no success", |trial| {
            let status = trial.status.as_mut().unwrap();
            status.requests.as_mut().unwrap().successes = 0;
        }),
    ];
    for (case, end) in ends {
        let mut trials = first(&benchmark, 7, usual);
        let later = trials.iter_mut().find(|trial| trial.spec.block == 7);
        end(later.unwrap());
        let judged = judged(&benchmark, trials.clone()).status;
        assert_eq!(judged.verdict, decided.verdict, "{case}");
        assert_eq!(judged.ledger_digest, decided.ledger_digest, "{case}");
        // Within the blocks of the look it ends the run.
        let trial = trials.iter_mut().find(|trial| trial.spec.block == 5);
        end(trial.unwrap());
        let ended = self::judged(&benchmark, trials).status;
        assert!(
            matches!(ended.verdict, Some(Verdict::Error | Verdict::Invalid)),
            "{case}: {:?}",
            ended.verdict
        );
    }
}

fn end(trial: &mut FrugalityTrial, outcome: Outcome, reason: Reason) {
    let status = trial.status.take().unwrap();
    trial.status = Some(ended(status, outcome, reason, "for the test", T0));
}

/// The deadline of a run that went on writes an entry for the preparation.
#[test]
fn a_deadline_after_the_deciding_look_does_not_count() {
    let benchmark = three_looks(&[]);
    let mut trials = first(&benchmark, 5, usual);
    let decided = judged(&benchmark, trials.clone()).status;
    let mut setup = trials[0].clone();
    setup.metadata.name = Some("setup".into());
    (setup.spec.block, setup.spec.position) = (0, 0);
    end(&mut setup, Outcome::Failed, Reason::DeadlineExceeded);
    trials.push(setup);
    let judged = judged(&benchmark, trials.clone()).status;
    assert_eq!(
        (judged.verdict, judged.results),
        (decided.verdict, decided.results)
    );
    trials.retain(|trial| trial.spec.block < 5);
    let ended = self::judged(&benchmark, trials).status;
    assert_eq!(ended.verdict, Some(Verdict::Error));
}

/// The trials of a block must be neighbours in time.
#[test]
fn a_block_whose_first_entry_a_person_deleted_begins_again() {
    let benchmark = three_looks(&[]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let order = &settings.plan()[1].order;
    let entrants = settings.entrants();
    for (deleted, expected) in [(0, (2, 1)), (1, (1, 2))] {
        let mut trials = first(&benchmark, 3, usual);
        let is_deleted = |trial: &FrugalityTrial| {
            trial.spec.block == 2 && trial.spec.candidate == entrants[order[deleted]]
        };
        trials.retain(|trial| !is_deleted(trial));
        let run = run_of(&benchmark);
        let Next::Start(start) = Ledger::of(&run, &trials).next(&settings) else {
            panic!("{:?}", Ledger::of(&run, &trials).next(&settings));
        };
        assert_eq!((start.attempt, start.position), expected);
        assert_eq!(start.block, 2);
    }
}

#[test]
fn looks_continue_the_order_of_one_plan() {
    let of = |trials: Value| Settings::parse(&two_with(&[("/trials", trials)]).spec).unwrap();
    let long = of(json!({"looks": [5, 10, 15], "seed": 7}));
    let short = of(json!({"blocks": 5, "seed": 7}));
    assert_eq!(long.blocks, 15);
    assert_eq!(long.plan()[..5], short.plan());
}

#[test]
fn looks_that_do_not_ascend_are_refused() {
    for looks in [json!([10, 5]), json!([10, 10]), json!([4, 10])] {
        let spec = two_with(&[("/trials", json!({ "looks": looks }))]).spec;
        assert_eq!(Settings::parse(&spec), Err(SettingsError::Looks), "{looks}");
    }
}

#[test]
fn only_changes_of_the_measurement_start_a_new_run() {
    let of = |path: &str, value: Value| run_of(&two_with(&[(path, value)]));
    let plain = run_of(&two());
    assert_ne!(of("/trials/looks", json!([5])), plain);
    assert_ne!(of("/trials/control", json!("rust")), plain);
    assert_eq!(of("/request/responsesMayDiffer", json!(true)), plain);
    assert_eq!(of("/request/queriesMayDiffer", json!(true)), plain);
    assert_eq!(of("/energy/tieWithin", json!("0.05")), plain);
    // Specs without the newer fields keep their runs.
    let spec = serde_json::to_value(two().spec).unwrap();
    let keys =
        |part: &str| -> Vec<String> { spec[part].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(
        keys("trials"),
        ["blocks", "idleBaseline", "maxAttempts", "seed"]
    );
    assert_eq!(keys("request"), ["expectedStatus", "method", "path"]);
}
