//! Net energy that single attempts distinguish from 0, while all trials of the run together do not.

use frugality_operator::api::{DecidingFigure, FrugalityBenchmarkStatus, Verdict};

use super::common::{
    entries::{SPREAD, Trial},
    judgement::{budgets, status, usual},
    two_with,
};
use serde_json::json;

/// A run of two candidates with windows of 20 s. The second baseline is `watts` · (−2 … 2) above the first.
fn with_idle_differences(watts: f64) -> FrugalityBenchmarkStatus {
    let mut benchmark = budgets(&json!({"maxJoulesPerRequest": "0.02"}));
    benchmark.spec.energy.deciding_figure = Some(DecidingFigure::Net);
    let plan = status(&benchmark, |block, candidate| {
        let step = SPREAD[usize::try_from(block - 1).unwrap()];
        Trial {
            idle_watts: [2.0, 2.0 + watts * step],
            ..usual(block, candidate)
        }
    });
    plan.status
}

#[test]
fn net_energy_below_the_limit_of_all_trials_is_withheld() {
    // The half differences are 0.02 W · (−2 … 2) in both groups of five: s² = 0.0004 · 20/8 W², u = 20 s ·
    // √(2.5 · s²). t with 8 degrees of freedom is 5.041, which gives a limit of 5.04 J. The candidates have 6
    // J and 18 J.
    let found = with_idle_differences(0.04);
    assert_eq!(found.verdict, Some(Verdict::Pass), "{:?}", found.conditions);
    let results = &found.results;
    assert!(results.iter().all(|it| it.net_joules_per_request.is_some()));

    let lost = with_idle_differences(0.06);
    assert_eq!(lost.verdict, Some(Verdict::Inconclusive));
    let of = |name: &str| lost.results.iter().find(|it| it.candidate == name).unwrap();
    assert_eq!(of("rust").net_joules_per_request, None);
    assert!(of("python").net_joules_per_request.is_some());
    let why = of("rust").withheld.join("; ");
    assert!(
        why.starts_with("net joules missing in 5 of 5 trials: net energy of 5.940 J")
            && why.contains("below the detection limit of 7.562 J, which follows from all trials of the run")
            && why.ends_with(
                "half the difference of their two idle baselines has a standard deviation of 0.0474 W"
            ),
        "{why}"
    );
}

#[test]
fn baselines_that_differ_widen_only_net_joules() {
    let benchmark = budgets(&json!({"maxJoulesPerRequest": "0.02"}));
    let found = |drift_joules| {
        let plan = status(&benchmark, |block, candidate| Trial {
            drift_joules,
            ..usual(block, candidate)
        });
        plan.status.results[0].clone()
    };
    let (steady, drifting) = (found(None), found(Some(0.3)));
    assert_eq!(
        steady.gross_joules_per_request,
        drifting.gross_joules_per_request
    );
    assert_eq!(
        steady.attributed_joules_per_request,
        drifting.attributed_joules_per_request
    );
    let [before, after] = [steady, drifting].map(|it| it.net_joules_per_request.unwrap());
    assert_eq!((before.lower, before.upper), (after.lower, after.upper));
    // 0.3 J are a twentieth of about 6 J. Twice this share is added to the trials' spread in quadrature.
    let half = |figure: frugality_operator::api::Figure| (figure.bounds().1 / figure.value).ln();
    let widest = 0.3 / (6.0 * (-0.02_f64).exp());
    assert!(
        (half(after) - half(before).hypot(2.0 * widest)).abs() < 1e-4,
        "{after:?}"
    );
}

#[test]
fn baselines_that_differ_widen_the_ratio_of_net_joules() {
    let benchmark = two_with(&[("/energy", json!({"decidingFigure": "Net"}))]);
    let found = |drift_joules| {
        let plan = status(&benchmark, |block, candidate| Trial {
            drift_joules: (candidate == "rust").then_some(drift_joules).flatten(),
            ..usual(block, candidate)
        });
        plan.status.comparisons[0].clone()
    };
    let (steady, drifting) = (found(None), found(Some(0.3)));
    assert_eq!(steady.ratio.value.to_bits(), drifting.ratio.value.to_bits());
    let half = |figure: frugality_operator::api::Figure| (figure.bounds().1 / figure.value).ln();
    let widest = 0.3 / (6.0 * (-0.02_f64).exp());
    assert!(
        (half(drifting.ratio) - half(steady.ratio).hypot(2.0 * widest)).abs() < 1e-3,
        "{steady:?} {drifting:?}"
    );
    // A drift of more than the difference between the candidates: no winner.
    assert!(steady.separated && !found(Some(6.0)).separated);
}

#[test]
fn cpu_use_at_rest_is_shown() {
    let benchmark = budgets(&json!({"maxJoulesPerRequest": "0.02"}));
    let plan = status(&benchmark, |block, candidate| Trial {
        idle_cpus: Some(0.001 * f64::from(block)),
        ..usual(block, candidate)
    });
    assert_eq!(plan.status.results[0].idle_cpus, Some(0.003));
    let unknown = status(&benchmark, |block, candidate| Trial {
        idle_cpus: (block > 1).then_some(0.0),
        ..usual(block, candidate)
    });
    assert_eq!(unknown.status.results[0].idle_cpus, None);
}
