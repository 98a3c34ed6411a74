//! The results that a run in the world must have.

use frugality_operator::{
    api::{CandidateResult, Figure, FrugalityBenchmarkStatus, FrugalityTrial, Outcome, Verdict},
    plan::ledger::outcome_of,
};

use super::{
    assert_near,
    truth::{self, WINDOW_SECONDS, Work},
    world::World,
};

/// The two-sided 95 % quantile of Student's t with 4 degrees of freedom (NIST/SEMATECH 1.3.6.7.2).
const T_FOUR: f64 = 2.776_445_105;
/// The quantile for the claims of a first try, with a two-sided error of 5 % · 6/π².
const T_FOUR_OF_CLAIMS: f64 = 3.283_646_845;

/// Geometric mean and 95 % interval over the five blocks, by the definition.
fn expected(of_block: impl Fn(i32) -> f64) -> Figure {
    expected_at(T_FOUR, of_block)
}

fn expected_at(t: f64, of_block: impl Fn(i32) -> f64) -> Figure {
    let logarithms: Vec<f64> = (1..=5).map(|block| of_block(block).ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / 5.0;
    let variance = logarithms.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0;
    let half = t * (variance / 5.0).sqrt();
    Figure {
        value: mean.exp(),
        lower: (mean - half).exp(),
        upper: (mean + half).exp(),
        expanded: None,
    }
}

#[track_caller]
fn assert_figure(found: Option<Figure>, expected: Figure) {
    let found = found.unwrap();
    assert_near(found.value, expected.value);
    assert_near(found.lower, expected.lower);
    assert_near(found.upper, expected.upper);
    assert_eq!(found.expanded, expected.expanded);
}

/// Joule intervals also include the timing error at the windows' edges, which is small here. They exclude the
/// meter's accuracy, because this meter reports none.
#[track_caller]
fn assert_joules(found: Option<Figure>, expected: Figure) {
    let expanded = found.and_then(|figure| figure.expanded).unwrap();
    let bare = found.map(|figure| Figure {
        expanded: None,
        ..figure
    });
    assert_figure(bare, expected);
    assert!(!expanded.covers_meter);
    for (wider, bound) in [
        (expected.lower / expanded.lower, "lower"),
        (expanded.upper / expected.upper, "upper"),
    ] {
        assert!((1.0 - 1e-6..1.1).contains(&wider), "{bound}: {wider}");
    }
}

pub(crate) fn status(world: &World, slot: usize) -> &FrugalityBenchmarkStatus {
    world.slots[slot].benchmark.status.as_ref().unwrap()
}

/// Asserts that the run ended with its verdict, and that every figure is the true figure.
#[track_caller]
pub(crate) fn assert_truth(status: &FrugalityBenchmarkStatus) {
    assert_eq!(status.verdict, Some(Verdict::Reported));
    assert_eq!(status.winner.as_deref(), Some("rust"));
    assert_eq!(status.results.len(), 2);
    for result in &status.results {
        assert_result(result);
    }
    // The operator compares the winner with the other candidate, not the reverse.
    assert_eq!(status.comparisons.len(), 1);
    for comparison in &status.comparisons {
        let of = |candidate: &str, block| Work::of(candidate, block).gross_joules();
        assert_figure(
            Some(comparison.ratio),
            expected_at(T_FOUR_OF_CLAIMS, |block| {
                of(&comparison.candidate, block) / of(&comparison.against, block)
            }),
        );
    }
}

#[track_caller]
fn assert_result(result: &CandidateResult) {
    let expect =
        |figure: fn(Work) -> f64| expected(|block| figure(Work::of(&result.candidate, block)));
    assert_eq!(result.trials, 5);
    assert!(result.withheld.is_empty(), "{:?}", result.withheld);
    assert_figure(
        result.requests_per_second,
        expect(Work::requests_per_second),
    );
    assert_figure(
        result.milliseconds_per_request,
        expect(|work| work.milliseconds),
    );
    assert_joules(result.gross_joules_per_request, expect(Work::gross_joules));
    assert_joules(result.net_joules_per_request, expect(Work::net_joules));
    assert_joules(
        result.attributed_joules_per_request,
        expect(Work::attributed_joules),
    );
    assert_figure(
        result.cpu_milliseconds_per_request,
        expect(Work::cpu_milliseconds),
    );
    assert_near(
        result.peak_memory_bytes.unwrap() as f64,
        truth::WORKING_SET_BYTES,
    );
    // If none of n requests failed, the share of errors is below 3/n.
    let errors = result.error_ratio.unwrap();
    assert!(errors.value == 0.0 && errors.upper > 0.0 && errors.upper < 1e-3);
}

/// Entries that count, in the order of their measurement.
pub(crate) fn measured(world: &World, slot: usize) -> Vec<&FrugalityTrial> {
    let mut trials: Vec<_> = world.slots[slot]
        .trials
        .iter()
        .filter(|trial| outcome_of(trial) == Some(Outcome::Measured))
        .collect();
    trials.sort_by(|a, b| start(a).total_cmp(&start(b)));
    trials
}

/// Start of an entry's measured window.
pub(crate) fn start(trial: &FrugalityTrial) -> f64 {
    trial
        .status
        .as_ref()
        .unwrap()
        .window
        .unwrap()
        .start_unix_seconds
}

/// Asserts that each entry that counts has the true figures. Between its two idle baselines, only its own
/// load was on its nodes, and only once.
#[track_caller]
pub(crate) fn assert_entries(world: &World, slot: usize) {
    for trial in measured(world, slot) {
        let status = trial.status.as_ref().unwrap();
        let work = Work::of(&trial.spec.candidate, trial.spec.block);
        let energy = status.energy.as_ref().unwrap();
        assert_near(
            energy.gross_joules_per_request.unwrap(),
            work.gross_joules(),
        );
        assert_near(energy.net_joules_per_request.unwrap(), work.net_joules());
        let window = status.window.unwrap().seconds();
        assert!((window - WINDOW_SECONDS).abs() < 1e-6);
        let begin = status.idle_before.unwrap().start_unix_seconds;
        let end = status.idle_after.unwrap().end_unix_seconds;
        let nodes = [&trial.spec.measured_node, &trial.spec.injector_node];
        let loads: Vec<_> = world
            .loads
            .iter()
            .filter(|load| load.start < end && begin < load.end)
            .filter(|load| load.nodes.iter().any(|node| nodes.contains(&node)))
            .map(|load| load.trial.as_str())
            .collect();
        assert_eq!(loads, [trial.metadata.name.as_deref().unwrap()]);
    }
}
