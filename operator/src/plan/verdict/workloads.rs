//! The figures of each of a candidate's servers.

use std::collections::BTreeSet;

use frugality_measure::energy::WorkloadFigures;

use crate::{
    api::{DecidingFigure, FrugalityTrialStatus, WorkloadResult},
    plan::verdict::{
        candidate_result::largest_bytes,
        evidence::{Evidence, in_every},
        measure::Measure,
    },
};

impl Evidence<'_> {
    /// One result for each server, if the candidate has several. Missing figures are reported in `withheld`. The relative
    /// uncertainty that the trials' spread does not show is the same for a part of the attributed joules as for all of them.
    pub(super) fn workloads(
        &self,
        candidate: &str,
        withheld: &mut Vec<String>,
    ) -> Vec<WorkloadResult> {
        let trials = self.trials(candidate);
        let names: BTreeSet<&str> = trials
            .iter()
            .flat_map(|trial| figures(trial))
            .map(|it| it.name.as_str())
            .collect();
        let attributed = Measure::Joules(DecidingFigure::Attributed);
        let mut incomplete = Vec::new();
        let mut result = |name: &str| {
            let mean = |value: fn(&WorkloadFigures) -> Option<f64>| {
                self.mean(candidate, self.settings.level, |trial| {
                    value(of_server(trial, name)?)
                })
            };
            let joules = mean(|it| it.joules_per_request)
                .filter(|_| !self.is_of_injector(candidate, attributed))
                .and_then(|estimate| self.expanded(&estimate, &trials, attributed));
            if joules.is_none() {
                incomplete.push(name.to_owned());
            }
            WorkloadResult {
                name: name.to_owned(),
                attributed_joules_per_request: joules,
                cpu_milliseconds_per_request: mean(|it| Some(1000.0 * it.cpu_seconds_per_request?))
                    .and_then(|estimate| self.widened(&estimate, &trials)),
                peak_memory_bytes: in_every(&trials, |trial| {
                    of_server(trial, name)?.peak_working_set_bytes
                })
                .and_then(largest_bytes),
            }
        };
        let results = names.into_iter().map(&mut result).collect();
        if !incomplete.is_empty() {
            let names = incomplete.join(", ");
            withheld.push(format!(
                "attributed joules of the single servers {names}: missing in a trial, limited by the injector, or without an interval"
            ));
        }
        results
    }
}

fn figures(trial: &FrugalityTrialStatus) -> &[WorkloadFigures] {
    trial
        .energy
        .as_ref()
        .map_or(&[], |energy| &energy.workloads)
}

/// The figures of a server in a trial.
fn of_server<'a>(trial: &'a FrugalityTrialStatus, name: &str) -> Option<&'a WorkloadFigures> {
    figures(trial).iter().find(|it| it.name == name)
}
