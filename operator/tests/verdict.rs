//! From a ledger to conditions, verdict, figures and columns.

use crate::common::{
    assert_near, edited,
    entries::{Trial, entry, factor, judged, ledger, on_board, share_the_node, without_figures},
    judgement::{CLAIM_UPPER, assert_ended, assert_no_number, budgets, rounded, status, usual},
    of_yaml, summary, three, two, two_with,
};
use frugality_measure::{model::LinearModel, reading::Provenance};
use frugality_operator::api::{DecidingFigure, Outcome, Reason, Verdict};
use serde_json::{Value, json};

#[test]
fn without_budgets_the_figures_are_reported() {
    let plan = status(&two(), usual);
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    insta::assert_snapshot!(summary::of_plan(&plan));
    let mut whole = plan.status;
    // These hashes change with every field of the spec.
    assert_eq!(whole.run.replace("<run>".into()).unwrap().len(), 8);
    assert!(
        whole
            .ledger_digest
            .replace("<digest>".into())
            .unwrap()
            .starts_with("sha256:")
    );
    insta::assert_yaml_snapshot!("the_whole_status", rounded(json!(whole)));
}

#[test]
fn fewer_than_five_blocks_are_not_reported() {
    for blocks in 1..5 {
        let plan = status(&two_with(&[("/trials/blocks", json!(blocks))]), usual);
        assert_ended(&plan, Verdict::Inconclusive, Reason::TooFewBlocks.as_str());
        assert_no_number(&plan);
        assert!(
            plan.status.conditions[0]
                .message
                .contains("spec.trials.blocks")
        );
    }
}

#[test]
fn a_winner_beats_every_other() {
    let with_go = |gross: f64, k: f64| {
        move |block: i32, candidate: &str| match candidate {
            "go" => Trial {
                gross: gross * factor(block, k),
                ..Trial::default()
            },
            _ => usual(block, candidate),
        }
    };
    let clear = status(&three(), with_go(0.02, 0.01));
    assert_eq!(clear.status.winner.as_deref(), Some("rust"));
    insta::assert_snapshot!(summary::of_plan(&clear));
    // `go` is far from python, but not separated from rust.
    let close = status(&three(), with_go(0.0101, -0.02));
    assert_eq!(close.status.winner, None);
    let columns = close.status.columns.unwrap();
    // The two that lead are named. Ratio and figures show the first of them, against the next candidate.
    assert_eq!(columns.winner.as_deref(), Some("rust, go"));
    assert_eq!(columns.ratio.as_deref(), Some("0.33 [0.31–0.35]"));
    assert_eq!(columns.energy.as_deref(), Some("rust: 10.0 mJ gross"));
    assert_eq!(columns.candidate.as_deref(), Some("rust"));
    assert_eq!(close.status.verdict, Some(Verdict::Reported));
}

#[test]
fn a_third_candidate_makes_no_winner_of_two_that_are_equal() {
    let tie_within = edited(&three(), &[("/energy/tieWithin", json!("0.05"))]);
    // `go` takes 2.5 % more than `rust`: they are separated, and shown to differ by less than 5 %.
    let close = status(&tie_within, |block, candidate| match candidate {
        "go" => Trial {
            gross: 0.01025 * factor(block, 0.01),
            ..Trial::default()
        },
        _ => usual(block, candidate),
    });
    let mut comparisons = close.status.comparisons.iter();
    let pair = comparisons.find(|it| it.candidate == "rust" && it.against == "go");
    let pair = pair.unwrap();
    assert_eq!((pair.separated, pair.equivalent), (true, Some(true)));
    assert_eq!((&close.status.winner, close.status.tie), (&None, None));
    let note = "rust and go are separated, and are shown to differ by less than energy.tieWithin: 0.05 allows. Neither counts as better.";
    assert_eq!(close.status.notes, [note]);
    let winner = close.status.columns.unwrap().winner;
    assert_eq!(winner.as_deref(), Some("rust, go"));
}

#[test]
fn a_win_needs_an_interval_that_excludes_one() {
    // Python's figure is the same in each block, so the ratio has rust's spread. Its upper end is ratio ·
    // CLAIM_UPPER.
    let with = |ratio: f64| {
        move |block: i32, candidate: &str| match candidate {
            "rust" => Trial {
                gross: 0.01 * ratio * factor(block, 0.01),
                ..Trial::default()
            },
            _ => Trial::default(),
        }
    };
    let inside = status(&two(), with(0.9999 / CLAIM_UPPER)).status;
    assert_eq!(inside.winner.as_deref(), Some("rust"));
    assert!(inside.comparisons.iter().all(|c| c.separated));
    let outside = status(&two(), with(1.0001 / CLAIM_UPPER)).status;
    assert_eq!(outside.winner, None);
    assert!(!outside.comparisons.iter().any(|c| c.separated));
    let other_side = status(&two(), with(CLAIM_UPPER / 0.9999)).status;
    assert_eq!(other_side.winner.as_deref(), Some("python"));
}

#[test]
fn blocks_are_compared_in_pairs() {
    // Both candidates have the same drift, which is ten times their difference. Without pairs, no candidate
    // would be separated.
    let plan = status(&two(), |block, candidate| {
        let times = if candidate == "python" { 1.02 } else { 1.0 };
        Trial {
            gross: 0.01
                * times
                * factor(block, 0.1)
                * factor(6 - block, if times > 1.0 { 0.001 } else { 0.0 }),
            ..Trial::default()
        }
    });
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let intervals: Vec<_> = plan
        .status
        .results
        .iter()
        .map(|r| r.gross_joules_per_request.unwrap())
        .collect();
    assert!(intervals[0].upper > intervals[1].lower);
}

#[test]
fn one_candidate_alone_has_figures_and_no_winner() {
    let benchmark = of_yaml(include_str!("fixtures/smallest.yaml"));
    let plan = status(&benchmark, |block, _| usual((block - 1) % 5 + 1, "rust"));
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    insta::assert_snapshot!(summary::of_plan(&plan));
    assert_eq!(plan.status.winner, None);
}

#[test]
fn modelled_joules_are_marked_as_modelled() {
    let board = LinearModel {
        idle_watts: 2.0,
        watts_per_cpu: 3.0,
        uncertainty: None,
    };
    let modelled = |block: i32, candidate: &str| {
        let (times, spread) = if candidate == "python" {
            (3.0, -0.01)
        } else {
            (1.0, 0.01)
        };
        let times = times * factor(block, spread);
        on_board(board, 0.0025 * times, 0.001 * times)
    };
    let plan = status(&two(), modelled);
    assert_ended(&plan, Verdict::Reported, Reason::NoBudgets.as_str());
    insta::assert_snapshot!(summary::of_plan(&plan));

    let limit = json!({"maxJoulesPerRequest": "0.02"});
    let refused = status(&budgets(&limit), modelled);
    assert_ended(
        &refused,
        Verdict::Invalid,
        Reason::ModelledPowerNotAllowed.as_str(),
    );
    assert_no_number(&refused);

    let mut allowed = budgets(&limit);
    allowed.spec.energy.allow_modelled = true;
    let plan = status(&allowed, modelled);
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    assert!(
        plan.status.conditions[0]
            .message
            .contains("modelled from CPU use")
    );

    // A budget without joules needs no permission.
    let plan = status(
        &budgets(&json!({"maxMillisecondsPerRequest": "11"})),
        modelled,
    );
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
}

#[test]
fn the_worst_provenance_of_all_trials_counts() {
    let plan = status(&two(), |block, candidate| Trial {
        provenance: if (block, candidate) == (3, "python") {
            Provenance::Modelled
        } else {
            Provenance::Metered
        },
        ..usual(block, candidate)
    });
    assert_eq!(plan.status.provenance.as_deref(), Some("Modelled"));
}

#[test]
fn a_fake_meter_gives_no_figure() {
    let benchmark = two();
    let mut trials = ledger(&benchmark, usual);
    let fake = trials.last_mut().unwrap();
    fake.status = Some(without_figures(
        Outcome::Void,
        Reason::MeterFake.as_str(),
        "the meter is fake: its power comes from development",
    ));
    let plan = judged(&benchmark, trials);
    assert_ended(&plan, Verdict::Invalid, Reason::MeterFake.as_str());
    assert_no_number(&plan);
}

#[test]
fn a_candidate_without_a_success_is_an_error() {
    let benchmark = two();
    let mut trials = ledger(&benchmark, usual);
    trials.truncate(3);
    let hopeless = &mut ledger(&benchmark, |_, _| Trial {
        successes: 0,
        errors: 700,
        ..Trial::default()
    })[3];
    trials.push(hopeless.clone());
    let plan = judged(&benchmark, trials);
    assert_ended(&plan, Verdict::Error, Reason::NoSuccessfulRequest.as_str());
    assert_no_number(&plan);
    assert!(plan.status.conditions[0].message.contains("python"));
}

#[test]
fn void_attempts_are_counted_and_never_averaged() {
    let benchmark = two();
    let undisturbed = status(&benchmark, usual).status;
    // Block 2 was void once. In its first attempt rust's trial was measured, with a figure far off.
    let mut trials: Vec<_> = ledger(&benchmark, usual)
        .into_iter()
        .map(|mut trial| {
            if trial.spec.block == 2 {
                trial.spec.attempt = 2;
            }
            trial
        })
        .collect();
    let mut first = ledger(&benchmark, |_, _| Trial {
        gross: 99.0,
        ..Trial::default()
    });
    let mut void = entry(&benchmark, 2, 2, 1, "python");
    void.status = Some(without_figures(
        Outcome::Void,
        Reason::PodReplaced.as_str(),
        "replaced",
    ));
    trials.push(first.swap_remove(2));
    trials.push(void);
    let status = judged(&benchmark, trials).status;
    let voids: Vec<_> = status
        .results
        .iter()
        .map(|r| (r.candidate.as_str(), r.trials, r.void_attempts))
        .collect();
    assert_eq!(voids, [("rust", 5, 0), ("python", 5, 1)]);
    assert_eq!(status.progress.as_ref().unwrap().void_attempts, 1);
    for (found, expected) in status.results.iter().zip(&undisturbed.results) {
        assert_eq!(
            found.gross_joules_per_request,
            expected.gross_joules_per_request
        );
    }
    assert_eq!(status.comparisons, undisturbed.comparisons);
}

#[test]
fn a_block_that_is_void_too_often_is_invalid() {
    let benchmark = two();
    let voided = |attempts: i32| {
        let voids = (1..=attempts).map(|attempt| {
            let mut void = entry(&benchmark, 1, 1, attempt, "rust");
            void.status = Some(without_figures(
                Outcome::Void,
                "LoadInterrupted",
                "the measured run: SIGTERM",
            ));
            void
        });
        judged(&benchmark, voids.collect())
    };
    assert_eq!(voided(2).status.verdict, None);
    let plan = voided(3);
    assert_ended(
        &plan,
        Verdict::Invalid,
        Reason::TooManyVoidAttempts.as_str(),
    );
    assert_no_number(&plan);
    insta::assert_snapshot!(summary::of_plan(&plan));
}

#[test]
fn a_failed_attempt_ends_the_run() {
    let benchmark = two();
    let mut trials = ledger(&benchmark, usual);
    trials.truncate(1);
    let mut failed = entry(&benchmark, 1, 2, 1, "python");
    failed.status = Some(without_figures(
        Outcome::Failed,
        Reason::ImagePullFailed.as_str(),
        "candidate python: pod p: ImagePullBackOff: not found",
    ));
    trials.push(failed);
    let plan = judged(&benchmark, trials);
    assert_ended(&plan, Verdict::Error, Reason::ImagePullFailed.as_str());
    assert_no_number(&plan);
    assert_eq!(
        plan.status.columns.as_ref().unwrap().trials.as_deref(),
        Some("1/10")
    );
}

#[test]
fn the_spec_chooses_the_deciding_figure() {
    let of = |changes: &[(&str, Value)]| {
        let benchmark = two_with(changes);
        let status = status(&benchmark, usual).status;
        let energy = status.columns.unwrap().energy.unwrap();
        (status.deciding_figure.unwrap(), energy)
    };
    assert_eq!(of(&[]), (DecidingFigure::Gross, "10.0±0.2 mJ gross".into()));
    assert_eq!(
        of(&[("/load/rate", json!(100))]),
        (DecidingFigure::Net, "6.00±0.12 mJ net".into())
    );
    assert_eq!(
        of(&[("/energy/decidingFigure", json!("Attributed"))]),
        (DecidingFigure::Attributed, "5.00±0.10 mJ attr.".into())
    );
    assert_eq!(
        of(&[(
            "/energy",
            json!({"decidingFigure": "Attributed", "boundary": "Candidate"})
        )]),
        (DecidingFigure::Attributed, "3.00±0.06 mJ attr.".into())
    );
}

#[test]
fn a_verdict_has_one_event() {
    let mut benchmark = two();
    let trials = ledger(&benchmark, usual);
    let first = judged(&benchmark, trials.clone());
    assert_eq!(first.events.len(), 1);
    benchmark.status = Some(first.status);
    assert_eq!(judged(&benchmark, trials).events, []);
}

#[test]
fn on_a_shared_node_net_attributed_joules_decide() {
    // By the meter's formula rust takes 19.6 % more, because it drives the node harder. Above idle it takes
    // 15 % less.
    let benchmark = two();
    let mut trials = ledger(&benchmark, |block, candidate| {
        let [attributed, net] = if candidate == "rust" {
            [1.196, 0.85]
        } else {
            [1.0, 1.0]
        };
        let f = factor(block, if candidate == "rust" { 0.01 } else { -0.01 });
        Trial {
            attributed_candidate: Some(0.003 * attributed * f),
            attributed_both: Some(0.005 * attributed * f),
            net_attributed: Some([0.002 * net * f, 0.004 * net * f]),
            ..usual(block, "rust")
        }
    });
    share_the_node(&mut trials);
    let status = judged(&benchmark, trials).status;
    assert_eq!(status.shared_node, Some(true));
    assert_eq!(status.deciding_figure, Some(DecidingFigure::NetAttributed));
    assert_eq!(status.winner.as_deref(), Some("rust"));
    assert_near(status.comparisons[0].ratio.value, 0.85);
    let energy = status.columns.as_ref().unwrap().energy.clone().unwrap();
    assert!(energy.ends_with("net attr."), "{energy}");
    for result in &status.results {
        assert_eq!(result.gross_joules_per_request, None);
        assert_eq!(result.net_joules_per_request, None);
        assert!(result.attributed_joules_per_request.is_some());
        assert!(result.withheld.iter().any(|why| why.contains("injector")));
    }
}

#[test]
fn net_attributed_joules_decide_if_the_spec_asks_for_them() {
    let benchmark = two_with(&[("/energy/decidingFigure", json!("NetAttributed"))]);
    let status = judged(&benchmark, ledger(&benchmark, usual)).status;
    assert_eq!(status.deciding_figure, Some(DecidingFigure::NetAttributed));
    let shown = status.results[0].net_attributed_joules_per_request.unwrap();
    assert_near(shown.value, 0.004);
    let missing = judged(
        &benchmark,
        ledger(&benchmark, |block, candidate| Trial {
            net: None,
            net_attributed: None,
            ..usual(block, candidate)
        }),
    );
    assert_eq!(missing.status.verdict, Some(Verdict::Inconclusive));
    let withheld = missing.status.results[0].withheld.join("; ");
    assert!(
        withheld.contains("net attributed joules missing in 5 of 5 trials: net energy of 0.1 J cannot be distinguished from 0"),
        "{withheld}"
    );
}

/// One trial lacks its attributed joules. Another one has them, but lost a counter at rest.
#[test]
fn the_reason_for_a_withheld_figure_is_that_of_a_trial_without_it() {
    let benchmark = two_with(&[("/energy/decidingFigure", json!("Attributed"))]);
    let mut trials = ledger(&benchmark, |block, candidate| {
        let mut trial = usual(block, candidate);
        if block == 4 {
            trial.attributed_candidate = None;
        }
        trial
    });
    for trial in trials.iter_mut().filter(|it| it.spec.block == 1) {
        let energy = trial.status.as_mut().unwrap().energy.as_mut().unwrap();
        energy.pods_withheld = Some("only net joules are not shared".into());
    }
    let withheld = judged(&benchmark, trials).status.results[0]
        .withheld
        .join("; ");
    assert!(
        withheld.contains(
            "attributed joules missing in 1 of 5 trials: the counters of a pod were lost"
        ),
        "{withheld}"
    );
    assert!(!withheld.contains("only net joules"), "{withheld}");
}
