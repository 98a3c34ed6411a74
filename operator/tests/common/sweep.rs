//! Benchmarks with several points, and the trials measured at these points.

use frugality_operator::{api::FrugalityBenchmark, plan::action::Plan};
use serde_json::{Value, json};

use super::{
    entries::{Trial, factor, judged, swept},
    two_with,
};

/// Both candidates at these numbers of connections, five blocks each.
pub(crate) fn at(connections: &[i32], more: &[(&str, Value)]) -> FrugalityBenchmark {
    let load = json!({"duration": "20s", "sweep": {"connections": connections}});
    let mut changes = vec![("/load", load)];
    changes.extend(more.iter().cloned());
    two_with(&changes)
}

/// Twice the connections give twice the throughput up to 8 connections. Beyond 8, requests only wait
/// longer. The node draws 2 W, and 5 mJ more per request. Python needs three times the 5 mJ.
pub(crate) fn saturating(connections: u32, block: i32, candidate: &str) -> Trial {
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

pub(crate) fn judged_over(
    benchmark: &FrugalityBenchmark,
    of: impl Fn(u32, i32, &str) -> Trial,
) -> Plan {
    let trials = swept(benchmark, |connections, block, _, entrant| {
        of(connections, block, entrant)
    });
    judged(benchmark, trials)
}
