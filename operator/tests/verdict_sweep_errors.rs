//! Sweeps that end because of errors.

use crate::common::{
    entries::{Trial, judged, measured, swept},
    judgement::assert_ended,
    run_of,
    sweep::{at, judged_over, saturating},
    two_with,
};
use frugality_operator::{
    api::{FrugalityBenchmark, Reason, SweepResult, Verdict},
    plan::{
        ledger::{Ledger, Next, Part},
        settings::Settings,
    },
};
use serde_json::json;

/// Errors from `from` connections on. For python, errors begin at half of this number.
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
fn points_beyond_the_errors_of_all_candidates_are_not_measured() {
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
    // A real operator would have measured nothing beyond 8 connections.
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
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    let status = &plan.status;
    let last = status.results.last().unwrap();
    assert_eq!((last.point.as_str(), status.results.len()), ("c8-max", 8));
    assert_eq!(
        status.columns.as_ref().unwrap().trials.as_deref(),
        Some("40/40")
    );
    let note = "At c8-max the error ratio of every candidate exceeded load.sweep.maxErrorRatio. This point is shown and not judged; not measured: c16-max, c32-max.";
    assert!(status.notes.iter().any(|n| n == note), "{:?}", status.notes);
    // After its first round, the run continues below the end.
    trials.retain(|t| t.spec.block <= 4);
    let run = run_of(&benchmark);
    let ledger = Ledger::of(&run, &trials);
    let judged_of = |parts: &[Part]| parts.iter().filter(|it| **it == Part::Judged).count();
    let parts = ledger.parts(&settings);
    assert_eq!(judged_of(&parts), 3);
    assert_eq!(parts[3..], [Part::End, Part::LeftOut, Part::LeftOut]);
    let Next::Start(start) = ledger.next(&settings) else {
        panic!("{:?}", ledger.next(&settings));
    };
    assert!(start.block > 6, "{start:?}");
    // Errors of one candidate alone do not end the sweep.
    trials.retain(|t| t.spec.block <= 3);
    let ledger = Ledger::of(&run, &trials);
    assert_eq!(judged_of(&ledger.parts(&settings)), 6);
}

#[test]
fn a_sweep_ends_separately_for_each_number_of_replicas() {
    let sweep = json!({"connections": [1, 2, 4, 8], "replicas": [1, 3], "maxErrorRatio": "0.01"});
    let load = json!({"duration": "20s", "sweep": sweep});
    let benchmark = two_with(&[("/load", load)]);
    let settings = Settings::parse(&benchmark.spec).unwrap();
    // One member is overloaded from 2 connections on, three members from 8 on.
    let mut trials = swept(&benchmark, |connections, block, _, name| {
        saturating(connections, block, name)
    });
    for trial in &mut trials {
        let point = settings.point(&trial.spec.point).unwrap();
        let from = if point.replicas == Some(1) { 2 } else { 8 };
        let failing = failing(from)(point.connections, trial.spec.block, "rust");
        let all = saturating(point.connections, trial.spec.block, &trial.spec.candidate);
        let errors = failing.errors;
        trial.status = Some(measured(&benchmark, &Trial { errors, ..all }));
    }
    trials.retain(|t| !["c4-max-x1", "c8-max-x1"].contains(&t.spec.point.as_str()));
    let plan = judged(&benchmark, trials.clone());
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    let points: Vec<&str> = plan
        .status
        .results
        .iter()
        .map(|r| r.point.as_str())
        .collect();
    let judged = ["c1-max-x1", "c1-max-x3", "c2-max-x3", "c4-max-x3"];
    let reported = [judged.as_slice(), &["c2-max-x1", "c8-max-x3"]].concat();
    assert_eq!(
        points,
        reported
            .iter()
            .flat_map(|it| [*it, *it])
            .collect::<Vec<_>>()
    );
    let note = "At c2-max-x1 the error ratio of every candidate exceeded load.sweep.maxErrorRatio. This point is shown and not judged; not measured: c4-max-x1, c8-max-x1. At c8-max-x3 the error ratio of every candidate exceeded load.sweep.maxErrorRatio. This point is shown and not judged.";
    assert!(
        plan.status.notes.iter().any(|n| n == note),
        "{:?}",
        plan.status.notes
    );
    // The operator does not measure points that are left out: the next block belongs to another point.
    let first_round = trials
        .iter()
        .map(|t| t.spec.block)
        .filter(|block| *block <= 8);
    assert_eq!(
        first_round.collect::<std::collections::BTreeSet<_>>().len(),
        6
    );
    let run = run_of(&benchmark);
    assert_eq!(Ledger::of(&run, &trials).next(&settings), Next::Finished);
}

#[test]
fn one_note_reports_the_ends_of_eight_numbers_of_replicas() {
    let replicas = json!([1, 2, 3, 4, 5, 6, 7, 8]);
    let sweep = json!({"connections": [1, 8], "replicas": replicas, "maxErrorRatio": "0.01"});
    let load = json!({"duration": "20s", "sweep": sweep});
    let benchmark = two_with(&[("/load", load), ("/database", json!(null))]);
    let plan = judged_over(&benchmark, failing(8));
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    let of_ends = |note: &&String| note.contains("exceeded load.sweep.maxErrorRatio");
    let notes: Vec<_> = plan.status.notes.iter().filter(of_ends).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    for replicas in 1..=8 {
        assert!(notes[0].contains(&format!("At c8-max-x{replicas} ")));
    }
}

#[test]
fn no_expected_answer_is_an_error_unless_errors_may_end_the_sweep() {
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
    let plan = judged_over(&at(&[1, 8], &[]), silent);
    assert_ended(&plan, Verdict::Error, Reason::NoSuccessfulRequest.as_str());
    let message = plan.status.columns.unwrap().message.unwrap();
    assert!(
        message.contains("Candidate python answered no request as expected at c8-max"),
        "{message}"
    );
    let plan = judged_over(&until_errors(&[1, 8]), silent);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::FigureWithheld.as_str(),
    );
    let results = &plan.status.results;
    assert!(results[3].requests_per_second.is_none() && results[2].requests_per_second.is_some());
    // A point at which all requests failed is not the best one.
    let [rust, python] = plan.status.sweep.as_slice() else {
        panic!("{:?}", plan.status.sweep);
    };
    let best_of = |of: &SweepResult| of.most_requests_per_second.clone().unwrap().point;
    assert_eq!(
        (best_of(rust), best_of(python)),
        ("c8-max".into(), "c1-max".into())
    );
}

#[test]
fn the_point_where_errors_end_a_sweep_is_not_judged() {
    let budget = json!([{"candidate": "rust", "maxErrorRatio": "0.01"}]);
    let load =
        json!({"duration": "20s", "sweep": {"connections": [1, 2, 4, 8], "maxErrorRatio": "0.01"}});
    let benchmark = two_with(&[("/load", load), ("/budgets", budget)]);
    // With 8 connections both candidates fail. There python would win, and the budget is broken.
    let plan = judged_over(&benchmark, |connections, block, name| {
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
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(plan.status.results.len(), 8);
    let note = "At c8-max the error ratio of every candidate exceeded load.sweep.maxErrorRatio. This point is shown and not judged.";
    assert!(
        plan.status.notes.iter().any(|n| n == note),
        "{:?}",
        plan.status.notes
    );
}

#[test]
fn a_candidate_that_fails_at_the_first_point_is_an_error_at_once() {
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
        Reason::NoSuccessfulRequest.as_str(),
    );
}
