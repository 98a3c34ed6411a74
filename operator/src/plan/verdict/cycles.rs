//! Figures of a candidate's cycles, in addition to the figures of requests.

use crate::{
    api::{CheckResult, CycleResult},
    plan::verdict::evidence::Evidence,
    text,
};
use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::k6::{CheckCounts, MOST_NAME_CHARS, OTHER_CHECKS as OTHERS};

/// Checks that the status names. The others are counted together.
const NAMED: usize = 16;

impl Evidence<'_> {
    /// The cycles and checks of all trials together. `None` without a scenario, or if no cycle ended.
    pub(super) fn cycles(&self, candidate: &str) -> Option<CycleResult> {
        let (mut cycles, mut requests) = (0, 0);
        let mut checks: BTreeMap<&str, CheckCounts> = BTreeMap::new();
        let trials = self.trials(candidate);
        let loads = || trials.iter().filter_map(|trial| trial.k6.as_ref());
        // A trial does not report which checks it counted together. A check that a trial may have counted so has no full sum.
        let names: BTreeSet<&str> = loads()
            .flat_map(|load| load.checks.keys())
            .map(String::as_str)
            .filter(|name| {
                loads().all(|load| {
                    load.checks.contains_key(*name) || !load.checks.contains_key(OTHERS)
                })
            })
            .filter(|name| *name != OTHERS)
            .take(NAMED)
            .collect();
        for load in loads() {
            cycles += load.all_cycles();
            requests += load.requests.count;
            for (name, counts) in &load.checks {
                let name = names.get(name.as_str()).copied().unwrap_or(OTHERS);
                let sum = checks.entry(name).or_default();
                sum.passed += counts.passed;
                sum.failed += counts.failed;
            }
        }
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let results = checks.into_iter().map(|(name, counts)| CheckResult {
            // The report has shortened the name already, but an older ledger may hold longer names.
            name: text::shortened(name, MOST_NAME_CHARS),
            passed: whole(counts.passed),
            failed: whole(counts.failed),
        });
        (cycles > 0 && self.settings.kind.rules().has_cycles()).then(|| CycleResult {
            requests_per_cycle: requests as f64 / cycles as f64,
            checks: results.collect(),
        })
    }
}
