//! One of the two benchmarks, with what its ledger says about images and software.

use std::collections::BTreeSet;

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Outcome},
    plan::report::trial::is_of_candidate,
};

/// A benchmark and the measured attempts of its current run.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) name: String,
    pub(super) benchmark: FrugalityBenchmark,
    measured: Vec<FrugalityTrial>,
}

impl Side {
    pub(super) fn new(
        name: String,
        benchmark: FrugalityBenchmark,
        trials: Vec<FrugalityTrial>,
    ) -> Self {
        let run = benchmark.current_status().and_then(|it| it.run.clone());
        let is_measured = |trial: &FrugalityTrial| {
            let outcome = trial.status.as_ref().and_then(|it| it.outcome);
            Some(&trial.spec.run) == run.as_ref() && outcome == Some(Outcome::Measured)
        };
        Self {
            measured: trials.into_iter().filter(is_measured).collect(),
            name,
            benchmark,
        }
    }

    pub(super) fn has_ledger(&self) -> bool {
        !self.measured.is_empty()
    }

    /// Digests of the images of a candidate's own containers.
    pub(super) fn digests(&self, candidate: &str) -> BTreeSet<String> {
        let own = self
            .measured
            .iter()
            .filter(|it| it.spec.candidate == candidate);
        let images = own.flat_map(|it| it.status.iter().flat_map(|status| &status.images));
        images
            .filter(|(container, _)| is_of_candidate(container))
            .map(|(_, digest)| digest.clone())
            .collect()
    }

    /// Digests of the images of injector and database.
    pub(super) fn other_digests(&self) -> BTreeSet<String> {
        let statuses = self.measured.iter().filter_map(|it| it.status.as_ref());
        statuses
            .flat_map(|status| &status.images)
            .filter(|(container, _)| !is_of_candidate(container))
            .map(|(_, digest)| digest.clone())
            .collect()
    }

    /// Candidates that have attempts, with the releases that a run took from a FrugalityBaseline.
    pub(super) fn candidates(&self) -> BTreeSet<&str> {
        let of_ledger = self.measured.iter().map(|it| it.spec.candidate.as_str());
        let of_spec = self.benchmark.spec.candidates.iter();
        let status = self.benchmark.current_status();
        let results = status.into_iter().flat_map(|it| &it.results);
        let shown: BTreeSet<&str> = results.map(|it| it.candidate.as_str()).collect();
        of_spec
            .map(|it| it.name.as_str())
            .chain(of_ledger.filter(|name| shown.contains(name)))
            .collect()
    }

    /// A property of a candidate's attempts.
    pub(super) fn of_candidate(
        &self,
        candidate: &str,
        value: fn(&FrugalityTrial) -> Option<String>,
    ) -> BTreeSet<String> {
        self.measured
            .iter()
            .filter(|it| it.spec.candidate == candidate)
            .filter_map(value)
            .collect()
    }

    /// A property of the node's software, over all attempts.
    pub(super) fn platform(&self, field: &str) -> BTreeSet<String> {
        self.measured
            .iter()
            .filter_map(|it| it.status.as_ref()?.energy.as_ref())
            .filter_map(|energy| {
                let platform = &energy.conditions.platform;
                match field {
                    "kernel" => platform.kernel.clone(),
                    "governor" => platform.governor.clone(),
                    _ => platform.firmware.clone(),
                }
            })
            .collect()
    }
}

/// The headings of the two columns.
pub(super) fn headings(one: &Side, other: &Side) -> [String; 2] {
    if one.name == other.name {
        return ["A", "B"].map(|it| format!("{it} ({})", one.name));
    }
    [&one.name, &other.name].map(Clone::clone)
}

/// Why too little is known.
pub(super) fn unknown(one: &Side, other: &Side) -> Vec<String> {
    let headings = headings(one, other);
    [one, other]
        .into_iter()
        .zip(headings)
        .filter(|(side, _)| !side.has_ledger())
        .map(|(_, name)| {
            format!(
                "{name}: its ledger is not there, so images, kernel and meter of its attempts are not known"
            )
        })
        .collect()
}
