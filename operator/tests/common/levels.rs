//! Benchmarks over load levels, and servers whose power and highest rates are known.

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial},
    plan::{ledger::Ledger, settings::Settings},
};
use serde_json::{Value, json};

use super::{
    entries::{Trial, entry, factor, measured},
    run_of, two_with,
};

/// Both candidates at these load levels, five blocks each.
pub(crate) fn at_levels(levels: &[i32], more: &[(&str, Value)]) -> FrugalityBenchmark {
    let load = json!({"duration": "20s", "sweep": {"levels": levels}});
    let mut changes = vec![("/load", load)];
    changes.extend(more.iter().cloned());
    two_with(&changes)
}

/// Watts of the node without load.
pub(crate) const IDLE_WATTS: f64 = 2.0;

/// Highest rate of a candidate, and joules of one more request. Rust has 400 requests/s and 5 mJ, any other candidate 100
/// requests/s and 15 mJ.
pub(crate) fn truth(candidate: &str) -> (f64, f64) {
    if candidate == "rust" {
        (400.0, 0.005)
    } else {
        (100.0, 0.015)
    }
}

/// A trial at this rate on a node whose power is a straight line over the rate.
pub(crate) fn straight(candidate: &str, rate: f64) -> Trial {
    let (_, joules) = truth(candidate);
    Trial {
        requests_per_second: rate,
        milliseconds: 5.0,
        // The entries have 1,000 requests each.
        seconds: 1000.0 / rate,
        gross: IDLE_WATTS / rate + joules,
        net: Some(joules),
        idle_watts: [IDLE_WATTS; 2],
        shortfall: Some(0.0),
        ..Trial::default()
    }
}

/// A ledger in the run's order. `of` gets the candidate, the rate of its load level (or the highest rate that `highest`
/// returns for the round), and the round, from 1.
pub(crate) fn levelled(
    benchmark: &FrugalityBenchmark,
    highest: impl Fn(&str, i32) -> f64,
    of: impl Fn(&str, f64, i32) -> Trial,
) -> Vec<FrugalityTrial> {
    let settings = Settings::parse(&benchmark.spec).unwrap();
    let run = run_of(benchmark);
    let entrants = settings.entrants();
    let mut entries = Vec::new();
    for (block, planned) in (1..).zip(settings.plan()) {
        let round = 1 + (block - 1) / i32::try_from(settings.points.len()).unwrap();
        for (place, index) in (1..).zip(&planned.order) {
            let entrant = entrants[*index];
            let mut entry = entry(benchmark, block, place, 1, entrant);
            entry
                .spec
                .point
                .clone_from(&settings.points[planned.point].name);
            entry.spec.rate_per_second =
                Ledger::of(&run, &entries).level_rate(&settings, block, entrant);
            let candidate = settings.candidate_of(entrant);
            let rate = entry.spec.rate_per_second;
            let trial = of(candidate, rate.unwrap_or(highest(candidate, round)), round);
            entry.status = Some(measured(benchmark, &trial));
            entries.push(entry);
        }
    }
    entries
}

/// The highest rates of [`truth`], which differ a little from round to round.
pub(crate) fn highest(candidate: &str, round: i32) -> f64 {
    truth(candidate).0 * factor(round, 0.004)
}
