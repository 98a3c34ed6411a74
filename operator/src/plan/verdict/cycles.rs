//! What is told of a candidate's cycles, beside what is told of requests.

use crate::{
    api::{CheckResult, CycleResult},
    load::LoadKind,
    plan::verdict::evidence::Evidence,
    text,
};
use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::k6::{CheckCounts, MOST_NAME_CHARS, OTHER_CHECKS as OTHERS};

/// Checks that are told by name; the others are told together.
const NAMED: usize = 16;

impl Evidence<'_> {
    /// Absent without a scenario, and where no cycle ended. Checks are those of all trials together.
    pub(super) fn cycles(&self, candidate: &str) -> Option<CycleResult> {
        let (mut cycles, mut requests) = (0, 0);
        let mut checks: BTreeMap<&str, CheckCounts> = BTreeMap::new();
        let trials = self.trials(candidate);
        let loads = || trials.iter().filter_map(|trial| trial.k6.as_ref());
        // Which checks a trial told together is not known: of what any trial may have told so, no sum is whole.
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
        let told = checks.into_iter().map(|(name, counts)| CheckResult {
            // The report has cut it already; what the ledger holds may be older.
            name: text::shortened(name, MOST_NAME_CHARS),
            passed: whole(counts.passed),
            failed: whole(counts.failed),
        });
        (cycles > 0 && self.settings.kind == LoadKind::Scenario).then(|| CycleResult {
            requests_per_cycle: requests as f64 / cycles as f64,
            checks: told.collect(),
        })
    }
}
