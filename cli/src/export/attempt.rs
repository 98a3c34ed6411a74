//! An entry of the ledger, and its parts that columns show.

use std::collections::BTreeSet;

use frugality_measure::{
    batch::Spread,
    energy::{Attributed, CpuSeconds, EnergyFigures, NetAttributed},
    figures::RequestFigures,
};
use frugality_operator::{
    api::{FrugalityTrial, FrugalityTrialSpec, FrugalityTrialStatus, Outcome},
    plan::ledger::Ledger,
};
use kube::ResourceExt as _;

/// One attempt. A part that the ledger does not have is absent.
pub(crate) struct ExportedAttempt<'a> {
    pub(crate) trial: &'a FrugalityTrial,
    pub(crate) spec: &'a FrugalityTrialSpec,
    pub(crate) status: Option<&'a FrugalityTrialStatus>,
    /// Whether it is a measured trial of the newest attempt at its block, and that attempt has no void trial.
    pub(crate) is_valid: bool,
}

impl<'a> ExportedAttempt<'a> {
    /// All attempts of some benchmarks' ledgers.
    pub(crate) fn all(trials: &'a [FrugalityTrial]) -> impl Iterator<Item = Self> {
        let runs: BTreeSet<&str> = trials.iter().map(|it| it.spec.run.as_str()).collect();
        let valid: BTreeSet<_> = runs
            .into_iter()
            .flat_map(|run| Ledger::of(run, trials).valid().concat())
            .map(key)
            .collect();
        trials.iter().map(move |trial| Self {
            trial,
            spec: &trial.spec,
            status: trial.status.as_ref(),
            is_valid: valid.contains(&key(trial)),
        })
    }

    /// The unit of the figures: a request, a cycle of a script, an execution of a program, or a unit of its work.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        let requests = self.requests()?;
        Some(if requests.work.is_some() {
            "unit of work"
        } else if self.status?.batch.is_some() {
            "execution"
        } else if requests.requests_per_cycle.is_some() {
            "cycle"
        } else {
            "request"
        })
    }

    /// The record with its figures. The ledger holds them before the outcome, while the database is restored, and such an
    /// attempt may still become void.
    fn measured(&self) -> Option<&'a FrugalityTrialStatus> {
        self.status
            .filter(|status| status.outcome == Some(Outcome::Measured))
    }

    pub(crate) fn requests(&self) -> Option<&'a RequestFigures> {
        self.measured()?.requests.as_ref()
    }

    pub(crate) fn percentile(&self, name: &str) -> Option<f64> {
        self.requests()?.percentiles_ms.get(name).copied()
    }

    pub(crate) fn score(&self) -> Option<&'a Spread> {
        self.measured()?.batch.as_ref()?.score.as_ref()
    }

    /// `None` if the script has no checks.
    pub(crate) fn failed_checks(&self) -> Option<u64> {
        let checks = &self.status?.k6.as_ref()?.checks;
        (!checks.is_empty()).then(|| checks.values().map(|check| check.failed).sum())
    }

    pub(crate) fn energy(&self) -> Option<&'a EnergyFigures> {
        self.measured()?.energy.as_ref()
    }

    /// Absent if the injector shared the node: its energy is not a candidate's.
    pub(crate) fn energy_of_candidate(&self) -> Option<&'a EnergyFigures> {
        self.energy().filter(|_| !self.spec.is_node_shared())
    }

    pub(crate) fn attributed(&self) -> Option<&'a Attributed> {
        self.energy()?.attributed.as_ref()
    }

    pub(crate) fn net_attributed(&self) -> Option<&'a NetAttributed> {
        self.energy()?.net_attributed.as_ref()
    }

    pub(crate) fn cpu(&self) -> Option<&'a CpuSeconds> {
        self.energy()?.cpu.as_ref()
    }

    /// The images' digests by container, in one text.
    pub(crate) fn images(&self) -> Option<String> {
        let images = &self.status?.images;
        let image = |(container, digest): (&String, &String)| format!("{container}={digest}");
        let images: Vec<_> = images.iter().map(image).collect();
        (!images.is_empty()).then(|| images.join(" "))
    }
}

fn key(trial: &FrugalityTrial) -> (Option<String>, String) {
    (trial.namespace(), trial.name_any())
}
