//! What is told of a candidate's cycles, beside what is told of requests.

use std::collections::BTreeMap;

use frugality_measure::k6::CheckCounts;

use super::evidence::Evidence;
use crate::api::{CheckResult, CycleResult};

impl Evidence<'_> {
    /// Absent without a scenario, and where no cycle ended. Checks are those of all trials together.
    pub(super) fn cycles(&self, candidate: &str) -> Option<CycleResult> {
        let (mut cycles, mut requests) = (0, 0);
        let mut checks: BTreeMap<&str, CheckCounts> = BTreeMap::new();
        let trials = self.trials(candidate);
        for load in trials.iter().filter_map(|trial| trial.k6.as_ref()) {
            cycles += load.all_cycles();
            requests += load.requests.count;
            for (name, counts) in &load.checks {
                let sum = checks.entry(name).or_default();
                sum.passed += counts.passed;
                sum.failed += counts.failed;
            }
        }
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let told = checks.into_iter().map(|(name, counts)| CheckResult {
            name: name.to_owned(),
            passed: whole(counts.passed),
            failed: whole(counts.failed),
        });
        (cycles > 0).then(|| CycleResult {
            requests_per_cycle: requests as f64 / cycles as f64,
            checks: told.collect(),
        })
    }
}
