//! The claims that the figures allow: with a meter that reports its accuracy, with several limits, and after
//! earlier tries. Candidates may be equal, may answer differently, or may depend on their place in a block.

use crate::common::{
    assert_near,
    entries::{Trial, entry, factor, judged, ledger, ordered_ledger, swept, without_figures},
    judgement::{CLAIM_HALF, CLAIM_UPPER, UPPER, assert_ended, budgets, status, usual},
    run_of,
    sweep::{at, saturating},
    two, two_with,
};
use frugality_operator::{
    api::{
        BudgetOutcome, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial,
        LABEL_MEASUREMENT, Outcome, Reason, Verdict,
    },
    plan::names,
};
use serde_json::json;

fn with_meter(uncertainty: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| Trial {
        meter_uncertainty: Some(uncertainty),
        ..usual(block, candidate)
    }
}

#[test]
fn only_joules_include_the_meters_accuracy() {
    let status = status(&two(), with_meter(0.03)).status;
    let result = &status.results[0];
    // √((1.963243 · 0.01)² + (2 · 0.03)²) = 0.0631299. The meter states its accuracy for gross
    // joules, and net joules are 0.6 of them.
    for (figure, share) in [
        (result.gross_joules_per_request.unwrap(), 1.0),
        (result.net_joules_per_request.unwrap(), 0.6),
        (result.attributed_joules_per_request.unwrap(), 1.0),
    ] {
        let end = (1.963_243_f64 * 0.01).hypot(2.0 * 0.03 / share).exp();
        assert_near(figure.upper, figure.value * UPPER);
        let expanded = figure.expanded.unwrap();
        assert!(expanded.covers_meter);
        assert_near(expanded.upper, figure.value * end);
        assert_near(expanded.lower, figure.value / end);
    }
    assert_eq!(result.requests_per_second.unwrap().expanded, None);
    assert_eq!(result.milliseconds_per_request.unwrap().expanded, None);
    // One meter measured both candidates, so its gain error cancels.
    assert_eq!(status.comparisons[0].ratio.expanded, None);
    let columns = status.columns.unwrap();
    assert_eq!(columns.energy.as_deref(), Some("10.0±0.7 mJ gross"));
}

#[test]
fn joules_include_the_timing_error_at_the_windows_edges() {
    for of_meter in [Some(0.003), None] {
        let status = status(&two(), |block, candidate| Trial {
            ends_uncertainty: 0.004,
            meter_uncertainty: of_meter,
            ..usual(block, candidate)
        })
        .status;
        let result = &status.results[0];
        // Net is 0.6 of gross here, with the same uncertainty in joules. Attributed joules take over the
        // relative uncertainty of net at the edges.
        for (figure, of_ends, share) in [
            (result.gross_joules_per_request, 0.004_f64, 1.0),
            (result.net_joules_per_request, 0.004 / 0.6, 0.6),
            (result.attributed_joules_per_request, 0.004 / 0.6, 1.0),
        ] {
            let figure = figure.unwrap();
            let type_b = of_ends.hypot(of_meter.unwrap_or(0.0) / share);
            let half = (1.963_243_f64 * 0.01).hypot(2.0 * type_b);
            let expanded = figure.expanded.unwrap();
            assert_near(expanded.upper, figure.value * half.exp());
            assert_eq!(expanded.covers_meter, of_meter.is_some());
        }
        // CPU time is the same in all trials here. A meter's accuracy does not apply, so CPU time has one
        // interval only.
        let cpu = result.cpu_milliseconds_per_request.unwrap();
        let half: f64 = 2.0 * 0.004 / 0.6;
        assert_near(cpu.upper, cpu.value * half.exp());
        assert_near(cpu.lower, cpu.value / half.exp());
        assert_eq!(cpu.expanded, None);
    }
}

#[test]
fn without_net_joules_cpu_time_takes_the_edge_error_as_a_share_of_attributed_joules() {
    let status = status(&two(), |block, candidate| Trial {
        ends_uncertainty: 0.004,
        net: None,
        ..usual(block, candidate)
    })
    .status;
    let result = &status.results[0];
    assert_eq!(result.net_joules_per_request, None);
    // Attributed joules of candidate and database are half of the gross joules here.
    let half: f64 = 2.0 * 0.004 / 0.5;
    let cpu = result.cpu_milliseconds_per_request.unwrap();
    assert_near(cpu.upper, cpu.value * half.exp());
}

#[test]
fn cpu_time_with_an_unknown_edge_error_is_withheld() {
    let status = status(&two(), |block, candidate| Trial {
        ends_uncertainty: 0.004,
        net: None,
        attributed_candidate: None,
        ..usual(block, candidate)
    })
    .status;
    assert_eq!(status.results[0].cpu_milliseconds_per_request, None);
}

#[test]
fn a_figure_with_a_useless_meter_accuracy_is_withheld() {
    let status = status(&two(), with_meter(1000.0)).status;
    assert_eq!(status.results[0].gross_joules_per_request, None);
}

#[test]
fn an_accuracy_reported_in_only_some_trials_does_not_cover_the_meter() {
    let plan = status(&two(), |block, candidate| Trial {
        meter_uncertainty: (block > 1).then_some(0.03),
        ..usual(block, candidate)
    });
    let figure = plan.status.results[0].gross_joules_per_request.unwrap();
    let expanded = figure.expanded.unwrap();
    assert!(!expanded.covers_meter);
    // The interval still includes the accuracy that the meter reported.
    assert_near(expanded.upper, figure.value * 0.063_129_9_f64.exp());
}

#[test]
fn joule_budgets_are_decided_on_the_bound_with_the_meters_accuracy() {
    let end = (CLAIM_HALF * 0.01).hypot(2.0 * 0.03).exp();
    for (limit, outcome) in [
        (0.01 / end * 0.9999, BudgetOutcome::Exceeded),
        (0.01 / end * 1.0001, BudgetOutcome::Undecided),
        (0.01 * end * 0.9999, BudgetOutcome::Undecided),
        (0.01 * end * 1.0001, BudgetOutcome::Met),
    ] {
        let limit = json!({ "maxJoulesPerRequest": format!("{limit:.9}") });
        let plan = status(&budgets(&limit), with_meter(0.03));
        assert_eq!(plan.status.budgets[0].outcome, outcome, "{limit}");
    }
    let undecided = |limit: &str, meter: f64| {
        let benchmark = budgets(&json!({ "maxJoulesPerRequest": limit }));
        status(&benchmark, with_meter(meter)).status.budgets[0]
            .message
            .clone()
    };
    let message = undecided("0.0105", 0.03);
    assert!(
        message.ends_with("contains the limit 0.0105 J = 10.5 mJ. More blocks would not help: the error of the meter and of the window's edges is too large."),
        "{message}"
    );
    let message = undecided("0.0105", 0.023);
    assert!(
        message.contains(
            "more blocks would decide. Write a larger spec.trials.blocks. This starts a new run."
        ),
        "{message}"
    );
}

#[test]
fn a_fail_among_several_limits_needs_a_wider_margin() {
    // The whole interval of one claim breaks the limit, but a wider interval does not.
    let narrowly = format!("{:.9}", 10.0 / CLAIM_UPPER * 0.9999);
    let alone = budgets(&json!({ "maxMillisecondsPerRequest": narrowly }));
    let plan = status(&alone, usual);
    assert_ended(&plan, Verdict::Fail, Reason::BudgetExceeded.as_str());

    let mut limits = json!({
        "maxMillisecondsPerRequest": narrowly,
        "maxJoulesPerRequest": "0.02", "maxErrorRatio": "0.1",
    });
    let plan = status(&budgets(&limits), usual);
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::BudgetWithinUncertainty.as_str(),
    );
    let found = &plan.status.budgets[1];
    assert_eq!(found.outcome, BudgetOutcome::Undecided);
    assert!(found.message.contains("3 limits"), "{}", found.message);

    // Clearly broken limits leave fewer limits to share the error. Here all limits are broken.
    limits["maxJoulesPerRequest"] = json!("0.001");
    limits["maxErrorRatio"] = json!("0");
    let failing = |block: i32, candidate: &str| Trial {
        errors: 500,
        successes: 500,
        ..usual(block, candidate)
    };
    let plan = status(&budgets(&limits), failing);
    let outcomes: Vec<_> = plan.status.budgets.iter().map(|b| b.outcome).collect();
    assert_eq!(outcomes, [BudgetOutcome::Exceeded; 3]);
}

#[test]
fn a_pass_with_several_limits_needs_no_wider_margin() {
    let narrowly = format!("{:.9}", 10.0 * CLAIM_UPPER * 1.0001);
    let limits = json!({
        "maxMillisecondsPerRequest": narrowly,
        "maxJoulesPerRequest": "0.02", "maxErrorRatio": "0.1",
    });
    assert_ended(
        &status(&budgets(&limits), usual),
        Verdict::Pass,
        Reason::BudgetsMet.as_str(),
    );
}

/// Candidates that differ by this ratio, with a spread of 0.01.
fn nearly(ratio: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| Trial {
        gross: match candidate {
            "rust" => 0.01 * ratio * factor(block, 0.01),
            _ => 0.01,
        },
        ..Trial::default()
    }
}

fn tie_within(share: &str) -> FrugalityBenchmark {
    two_with(&[("/energy/tieWithin", json!(share))])
}

#[test]
fn a_tie_is_shown_and_never_assumed() {
    // Two one-sided tests at 3.0396 %: the interval ends at exp(t₄ · 0.01 · √2.5 / √5) with t₄ = 2.588301, which is
    // exp(0.0183021).
    let end = 0.018_302_1_f64.exp();
    let column = |benchmark: &FrugalityBenchmark, ratio: f64| {
        let status = status(benchmark, nearly(ratio)).status;
        (status.columns.unwrap().winner.unwrap(), status.tie)
    };
    let tie = ("tie".to_owned(), Some(true));
    let not_separated = ("rust, python".to_owned(), None);
    assert_eq!(column(&tie_within("0.05"), 1.0), tie);
    assert_eq!(
        column(&tie_within("0.05"), 1.05 / end * 0.9999),
        ("tie".into(), Some(true))
    );
    assert_eq!(
        column(&tie_within("0.05"), end / 1.05 * 1.0001),
        ("tie".into(), Some(true))
    );
    assert_eq!(column(&tie_within("0.01"), 1.0), not_separated);
    assert_eq!(column(&two(), 1.0), not_separated);
    assert_eq!(column(&tie_within("0.05"), 0.9).0, "rust");
    // The candidates are separated, and their difference is shown to be too small to matter.
    assert_eq!(column(&two(), 0.975).0, "rust");
    assert_eq!(column(&tie_within("0.05"), 0.975), tie);
    // The ratio is just outside the bound.
    assert_eq!(column(&tie_within("0.05"), 1.05 / end * 1.0001).1, None);
    let notes = status(&tie_within("0.05"), nearly(0.975)).status.notes;
    let note = "A tie: each ratio of two candidates is shown to lie between 1/1.05 and 1.05 (energy.tieWithin: 0.05).";
    assert_eq!(notes, [note]);
}

/// The message next to the numbers in the printed columns.
fn column_message(status: &FrugalityBenchmarkStatus) -> &str {
    let columns = status.columns.as_ref().unwrap();
    columns.message.as_deref().unwrap()
}

fn answering(rust: f64, python: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| Trial {
        body_bytes: Some(if candidate == "rust" { rust } else { python }),
        ..usual(block, candidate)
    }
}

#[test]
fn candidates_that_answer_differently_are_not_compared() {
    let plan = status(&two(), answering(1000.0, 1010.1));
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::ResponsesDiffer.as_str(),
    );
    assert_eq!(
        (&plan.status.winner, plan.status.comparisons.len()),
        (&None, 0)
    );
    let message = column_message(&plan.status);
    assert!(
        message.contains("rust answers with 1000 bytes on average and python with 1010"),
        "{message}"
    );
    // Each candidate keeps its figures.
    assert!(plan.status.results[0].gross_joules_per_request.is_some());

    let same = status(&two(), answering(1000.0, 1009.9));
    assert_eq!(same.status.winner.as_deref(), Some("rust"));
    let allowed = two_with(&[("/request/responsesMayDiffer", json!(true))]);
    let plan = status(&allowed, answering(1000.0, 2000.0));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let note = "Different work, as spec.request.responsesMayDiffer allows: rust answers with 1000 bytes on average and python with 2000.";
    assert_eq!(plan.status.notes, [note]);
    let same = status(&allowed, answering(1000.0, 1009.9));
    assert_eq!(same.status.notes, Vec::<String>::new());
}

#[test]
fn answers_are_compared_in_the_trials_that_report_their_size() {
    let known_in = |blocks: std::ops::RangeInclusive<i32>| {
        move |block: i32, candidate: &str| {
            let is_python = candidate == "python";
            let errors = u64::from(is_python && !blocks.contains(&block));
            Trial {
                errors,
                body_bytes: (errors == 0).then_some(if is_python { 2000.0 } else { 1000.0 }),
                ..usual(block, candidate)
            }
        }
    };
    // One trial without an error is enough to show the difference.
    let plan = status(&two(), known_in(3..=3));
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::ResponsesDiffer.as_str(),
    );
    let plan = status(&two(), known_in(9..=9));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(
        plan.status.notes,
        [
            "The size of the answers of python is not known, because Fortio reports it only for a trial without errors. The candidates may do different work.",
            "The number of transactions per request of python is not known: it needs a trial without errors, a database that answers after the load, a script without setup(), and a rate that is not too low. The candidates may send different queries.",
        ]
    );
}

fn asking(rust: f64, python: f64) -> impl Fn(i32, &str) -> Trial {
    move |block, candidate| Trial {
        transactions: Some(if candidate == "rust" { rust } else { python }),
        ..usual(block, candidate)
    }
}

#[test]
fn candidates_that_use_the_database_differently_are_not_compared() {
    // 2 transactions per second belong to no candidate. At 400 requests per second, these are 0.005 per
    // request.
    let plan = status(&two(), asking(2.0, 2.27));
    assert_ended(&plan, Verdict::Inconclusive, Reason::QueriesDiffer.as_str());
    assert_eq!(plan.status.comparisons, []);
    let message = column_message(&plan.status);
    assert!(
        message.contains("rust makes 2.00 database transactions per request and python 2.27"),
        "{message}"
    );
    for (one, other) in [(2.0, 2.22), (0.0, 0.005)] {
        let same = status(&two(), asking(one, other));
        assert_eq!(same.status.winner.as_deref(), Some("rust"));
    }
    let allowed = two_with(&[("/request/queriesMayDiffer", json!(true))]);
    let plan = status(&allowed, asking(1.0, 5.0));
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    let note = "Different work, as spec.request.queriesMayDiffer allows: rust makes 1.00 database transactions per request and python 5.00.";
    assert_eq!(plan.status.notes, [note]);
}

#[test]
fn unknown_transactions_are_noted() {
    let plan = status(&two(), |block, candidate| Trial {
        transactions: (candidate == "python" && block == 2).then_some(1.0),
        ..usual(block, candidate)
    });
    assert_eq!(plan.status.winner.as_deref(), Some("rust"));
    assert_eq!(
        plan.status.notes,
        [
            "The number of transactions per request of rust is not known: it needs a trial without errors, a database that answers after the load, a script without setup(), and a rate that is not too low. The candidates may send different queries."
        ]
    );
}

#[test]
fn a_candidates_own_limits_are_judged_even_if_answers_differ() {
    let plan = status(
        &budgets(&json!({"maxJoulesPerRequest": "0.02"})),
        answering(1000.0, 2000.0),
    );
    assert_ended(&plan, Verdict::Pass, Reason::BudgetsMet.as_str());
    assert_eq!(plan.status.comparisons, []);
    let message = column_message(&plan.status);
    assert!(
        message.contains("Not compared: rust answers with 1000 bytes"),
        "{message}"
    );

    let ratio = json!({"maxEnergyRatio": "1.5", "against": "python"});
    let plan = status(&budgets(&ratio), answering(1000.0, 2000.0));
    assert_ended(
        &plan,
        Verdict::Inconclusive,
        Reason::ResponsesDiffer.as_str(),
    );
}

#[test]
fn earlier_tries_are_disclosed() {
    let benchmark = two();
    let measurement = names::measurement_id(&benchmark);
    let labelled = |run: Option<&str>, measurement: &str| {
        let mut trials = ledger(&benchmark, usual);
        for trial in &mut trials {
            trial
                .metadata
                .labels
                .get_or_insert_default()
                .insert(LABEL_MEASUREMENT.into(), measurement.into());
            if let Some(run) = run {
                trial.spec.run = run.into();
            }
        }
        trials
    };
    let mut trials = labelled(None, &measurement);
    let alone = judged(&benchmark, trials.clone()).status;
    assert_eq!(alone.tries, Some(1));
    trials.extend(labelled(Some("11111111"), &measurement));
    trials.extend(labelled(Some("22222222"), &measurement));
    // A run of another spec is not a try. Neither is a run that failed before it measured anything.
    trials.extend(labelled(Some("33333333"), "another"));
    let mut failed = labelled(Some("44444444"), &measurement);
    failed.truncate(1);
    failed[0].status = None;
    trials.extend(failed);
    let status = judged(&benchmark, trials).status;
    assert_eq!(status.tries, Some(3));
    let message = column_message(&status);
    assert!(
        message.starts_with(
            "This is try 3 of 3 with these settings, decided at an error of 0.338 %. All tries together have an error of "
        ),
        "{message}"
    );
    // The candidates' own figures are the same. Claims need a stricter level.
    assert_eq!(status.results, alone.results);
    let confidence = |of: &FrugalityBenchmarkStatus| of.look.unwrap().claim_confidence;
    assert_near(confidence(&alone), 1.0 - 0.030_396_355);
    assert_near(confidence(&status), 1.0 - 0.003_377_373);
}

/// A whole run of this measurement under another ID, which ended in this minute.
fn another_try(
    benchmark: &FrugalityBenchmark,
    run: &str,
    minute: u32,
    of: impl Fn(i32, &str) -> Trial,
) -> Vec<FrugalityTrial> {
    let mut trials = ledger(benchmark, of);
    for trial in &mut trials {
        let labels = trial.metadata.labels.get_or_insert_default();
        labels.insert(LABEL_MEASUREMENT.into(), "same".into());
        run.clone_into(&mut trial.spec.run);
        let status = trial.status.as_mut().unwrap();
        status.finished_at = Some(format!("2026-11-21T05:{minute:02}:00Z"));
    }
    trials
}

#[test]
fn a_later_try_needs_more_to_win_and_an_earlier_one_keeps_its_level() {
    let benchmark = two();
    let own = run_of(&benchmark);
    // The difference is enough for a first try (exp(0.0232) apart), but not for a second: t₄ = 4.9846 at 0.76
    // % gives exp(0.0352).
    let close = || nearly(1.0 / 1.03);
    let winner = |others: &[(&str, u32)]| {
        let mut trials = another_try(&benchmark, &own, 30, close());
        for (run, minute) in others {
            trials.extend(another_try(&benchmark, run, *minute, usual));
        }
        let status = judged(&benchmark, trials).status;
        (status.winner, status.tries)
    };
    assert_eq!(winner(&[]), (Some("rust".into()), Some(1)));
    assert_eq!(winner(&[("11111111", 10)]), (None, Some(2)));
    // A later try does not change the level of this try.
    assert_eq!(winner(&[("11111111", 50)]), (Some("rust".into()), Some(2)));
    assert_eq!(
        winner(&[("11111111", 10), ("22222222", 50)]),
        (None, Some(3))
    );
}

#[test]
fn correlated_trials_widen_a_candidates_own_interval() {
    let benchmark = two_with(&[("/trials/blocks", json!(10))]);
    // Both candidates have the same slow wave over the run.
    let of = |size: f64| {
        judged(
            &benchmark,
            ledger(&benchmark, |block, candidate| Trial {
                gross: 0.01
                    * (size * (f64::from(block) * 0.6).sin()).exp()
                    * factor(block, if candidate == "rust" { 0.001 } else { -0.001 }),
                ..Trial::default()
            }),
        )
        .status
    };
    let is_correlated = |note: &String| note.contains("resemble the previous trials");
    let still = of(0.0);
    assert!(!still.notes.iter().any(is_correlated), "{:?}", still.notes);
    let wave = of(0.05);
    assert!(wave.notes.iter().any(is_correlated), "{:?}", wave.notes);
    let figure = wave.results[0].gross_joules_per_request.unwrap();
    let deviation = {
        let logarithms: Vec<f64> = (1..=10)
            .map(|block| 0.05 * (f64::from(block) * 0.6).sin())
            .collect();
        let mean = logarithms.iter().sum::<f64>() / 10.0;
        (logarithms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 9.0).sqrt()
    };
    // Ten independent trials have a half interval of 2.262 · s/√10.
    let independent = 2.262 * deviation / 10.0_f64.sqrt();
    let half = (figure.upper / figure.value).ln();
    assert!(half > 1.5 * independent, "{half} {independent}");
    // The pairs do not have the wave, so their ratio is as narrow as without the wave.
    let ratio = |status: &FrugalityBenchmarkStatus| status.comparisons[0].ratio;
    assert_near(ratio(&wave).upper, ratio(&still).upper);
}

#[test]
fn a_value_that_another_candidate_lacks_makes_no_interval_narrower() {
    let benchmark = two_with(&[("/trials/blocks", json!(10))]);
    let mut trials = ledger(&benchmark, |block, _| Trial {
        milliseconds: 10.0 * (0.05 * (f64::from(block) * 0.6).sin()).exp(),
        ..Trial::default()
    });
    let of_rust = |trials: &[FrugalityTrial]| {
        let status = judged(&benchmark, trials.to_vec()).status;
        status.results[0].milliseconds_per_request.unwrap()
    };
    let complete = of_rust(&trials);
    let lacking = trials
        .iter_mut()
        .find(|it| it.spec.candidate == "python" && it.spec.block == 6)
        .unwrap();
    let requests = lacking.status.as_mut().unwrap().requests.as_mut().unwrap();
    requests.ms_per_request = None;
    let incomplete = of_rust(&trials);
    let half = |figure: Figure| (figure.upper / figure.value).ln();
    let ratio = half(incomplete) / half(complete);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
}

#[test]
fn trials_that_start_at_different_temperatures_are_noted() {
    let benchmark = two();
    let notes = |kelvin: f64| {
        let mut trials = ledger(&benchmark, usual);
        for trial in &mut trials {
            let warmer = if trial.spec.candidate == "rust" && trial.spec.block < 3 {
                kelvin
            } else {
                0.0
            };
            let energy = trial.status.as_mut().unwrap().energy.as_mut().unwrap();
            // Between blocks the node may warm up by any amount.
            let block = f64::from(trial.spec.block);
            energy.conditions.idle_before_celsius = Some(40.0 + 5.0 * block + warmer);
        }
        judged(&benchmark, trials).status.notes
    };
    assert_eq!(notes(2.9), Vec::<String>::new());
    let found = notes(3.5);
    assert!(
        found[0].starts_with(
            "In 2 of 5 blocks, trials started at temperatures more than 3 K apart (at most 3.5"
        ),
        "{found:?}"
    );
}

#[test]
fn many_or_unequal_void_attempts_are_noted() {
    let benchmark = two_with(&[("/trials/blocks", json!(10))]);
    // Rust's attempts in the first blocks, void before they were measured.
    let note = |voids: i32| {
        let mut trials = ledger(&benchmark, usual);
        for trial in &mut trials {
            if trial.spec.block <= voids {
                trial.spec.attempt = 2;
            }
        }
        for block in 1..=voids {
            let mut void = entry(&benchmark, block, 1, 1, "rust");
            void.status = Some(without_figures(
                Outcome::Void,
                Reason::PodReplaced.as_str(),
                "replaced",
            ));
            trials.push(void);
        }
        let notes = judged(&benchmark, trials).status.notes;
        notes
            .into_iter()
            .find(|note| note.starts_with("Void attempts: "))
    };
    assert_eq!(note(1), None);
    let some = note(2).unwrap();
    assert!(
        some.starts_with("Void attempts: rust 2 of 12, python 0 of 10; more than 10 %"),
        "{some}"
    );
    // Fisher's exact test gives p = 0.0533 for 6 of 16 against 0 of 10, and p = 0.0250 for 8 of 18.
    assert!(note(6).unwrap().contains("more than 10 %"));
    let unequal = note(8).unwrap();
    assert!(
        unequal.contains("(Fisher's exact test, p = 0.02"),
        "{unequal}"
    );
}

/// Two of rust's twelve attempts at one point are void. Over all points these are one in sixteen.
#[test]
fn void_attempts_at_one_point_are_noted() {
    let benchmark = at(&[1, 8, 32], &[("/trials/blocks", json!(10))]);
    let note = |voids: usize| {
        let mut trials = swept(&benchmark, |connections, block, _, entrant| {
            saturating(connections, block, entrant)
        });
        let of_rust = |trial: &&FrugalityTrial| {
            trial.spec.candidate == "rust" && trial.spec.point == "c32-max"
        };
        let mut void: Vec<_> = trials.iter().filter(of_rust).take(voids).cloned().collect();
        for first in &mut void {
            for trial in &mut trials {
                if trial.spec.block == first.spec.block {
                    trial.spec.attempt = 2;
                }
            }
            first.status = Some(without_figures(
                Outcome::Void,
                Reason::PodReplaced.as_str(),
                "replaced",
            ));
        }
        trials.extend(void);
        let notes = judged(&benchmark, trials).status.notes;
        notes.into_iter().find(|it| it.starts_with("Void attempts"))
    };
    assert_eq!(note(1), None);
    let at_point = note(2).unwrap();
    assert!(
        at_point
            .starts_with("Void attempts at c32-max: rust 2 of 12, python 0 of 10; more than 10 %"),
        "{at_point}"
    );
}

#[test]
fn a_place_that_matters_is_noted() {
    let benchmark = two_with(&[("/trials/blocks", json!(10))]);
    let with = |effect: f64| {
        let trials = ordered_ledger(&benchmark, |block, place, entrant| {
            let times = if entrant == "python" { 3.0 } else { 1.0 };
            let late = if place == 2 { effect } else { 1.0 };
            let noise = factor(block, if entrant == "python" { 0.002 } else { -0.002 });
            Trial {
                gross: 0.01 * times * late * noise,
                ..Trial::default()
            }
        });
        judged(&benchmark, trials).status
    };
    assert_eq!(with(1.0).notes, Vec::<String>::new());
    let status = with(1.05);
    assert_eq!(status.notes.len(), 1);
    assert!(status.notes[0].contains("The position within a block matters"));
    let message = column_message(&status);
    assert!(message.contains("The position within a block matters"));
    // The order is balanced, so the winner is the same, and the ratio nearly the same.
    assert_eq!(status.winner.as_deref(), Some("rust"));
}

#[test]
fn empty_fields_are_absent() {
    let value = serde_json::to_value(status(&two(), with_meter(0.03)).status).unwrap();
    assert!(!value["look"].is_null() && value["tries"] == 1);
    assert!(value.get("notes").is_none() && value.get("noiseFloor").is_none());
}
