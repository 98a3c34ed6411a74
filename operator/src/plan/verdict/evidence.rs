//! The trials behind a judgement, and the value of each.

use frugality_measure::energy::EnergyFigures;

use crate::{
    api::{CostTerms, DecidingFigure, FrugalityTrial, FrugalityTrialStatus},
    plan::{
        ledger::{Ledger, Part},
        settings::{PlannedLook, Point, Settings, costs::CostRates},
        verdict::{
            detection::{Undetected, undetected},
            measure::{Measure, covers_database, idle_watts, joules, shows_idle_power},
        },
    },
};

/// The valid trials of a look's blocks at one point.
pub(super) struct Evidence<'a> {
    pub(super) settings: &'a Settings,
    pub(super) point: &'a Point,
    pub(super) ledger: &'a Ledger<'a>,
    /// Whether the candidates are judged at this point.
    pub(super) is_judged: bool,
    /// Block by block, in the order of the positions.
    pub(super) blocks: Vec<Vec<&'a FrugalityTrial>>,
    /// The trials of all points.
    pub(super) everywhere: Vec<&'a FrugalityTrial>,
    /// Trials whose net energy is below the detection limit of all trials.
    undetected: Vec<Undetected<'a>>,
    /// Number of points.
    pub(super) points: usize,
    /// Two-sided error of a claim's interval at this point. With it, the claims at all points together have the error of one.
    pub(super) strict_level: f64,
    /// Whether the injector ran on the measured node.
    pub(super) is_shared: bool,
    /// Deciding figure: from the spec, or net attributed joules if the injector shared the node.
    pub(super) deciding: DecidingFigure,
}

impl<'a> Evidence<'a> {
    /// The cost terms of one trial.
    pub(super) fn cost_terms(
        &self,
        trial: &FrugalityTrialStatus,
        rates: &CostRates,
    ) -> Option<CostTerms> {
        let joules = self.value(trial, Measure::Joules(DecidingFigure::Gross))?;
        let rate = self.value(trial, Measure::RequestsPerSecond)?;
        Some(rates.terms(joules, rate))
    }

    /// The evidence at each tried point. Points that are not judged come last.
    pub(super) fn at(
        look: PlannedLook,
        settings: &'a Settings,
        ledger: &'a Ledger<'a>,
    ) -> Vec<Self> {
        let parts = ledger.parts(settings);
        let points = parts.iter().filter(|part| **part != Part::LeftOut).count();
        let mut blocks: Vec<Vec<_>> = vec![Vec::new(); parts.len()];
        let taken = look.blocks * settings.points.len();
        for (trials, planned) in ledger.valid().into_iter().zip(settings.plan()).take(taken) {
            if parts[planned.point] != Part::LeftOut {
                blocks[planned.point].push(trials);
            }
        }
        let everywhere: Vec<_> = blocks.iter().flatten().flatten().copied().collect();
        let undetected = undetected(&everywhere);
        let is_shared = everywhere.iter().any(|e| e.spec.is_node_shared());
        let strict_level = match points {
            1 => settings.claim_level,
            several => settings
                .level_of_looks(settings.claim_error() / several as f64)
                .unwrap_or(settings.claim_level / several as f64),
        };
        let mut of_points: Vec<(Part, &Point, _)> = parts
            .into_iter()
            .zip(&settings.points)
            .zip(blocks)
            .map(|((part, point), blocks)| (part, point, blocks))
            .filter(|(part, ..)| *part != Part::LeftOut)
            .collect();
        of_points.sort_by_key(|(part, ..)| *part);
        of_points
            .into_iter()
            .map(|(part, point, blocks)| Self {
                settings,
                point,
                is_judged: part == Part::Judged,
                ledger,
                blocks,
                everywhere: everywhere.clone(),
                undetected: undetected.clone(),
                points,
                strict_level,
                is_shared,
                deciding: if is_shared {
                    DecidingFigure::NetAttributed
                } else {
                    settings.deciding
                },
            })
            .collect()
    }

    pub(super) fn trials(&self, entrant: &str) -> Vec<&'a FrugalityTrialStatus> {
        self.blocks
            .iter()
            .flatten()
            .filter(|e| e.spec.candidate == entrant)
            .filter_map(|e| e.status.as_ref())
            .collect()
    }

    /// An entrant's entries at a point. Without a point: at every point.
    pub(super) fn entries_everywhere(
        &self,
        entrant: &str,
        point: Option<&str>,
    ) -> impl Iterator<Item = &'a FrugalityTrial> {
        let is_meant = move |e: &&FrugalityTrial| {
            e.spec.candidate == entrant && point.is_none_or(|point| e.spec.point == point)
        };
        self.everywhere.iter().copied().filter(is_meant)
    }

    /// The trials of these entries.
    pub(super) fn trials_everywhere(
        &self,
        entrant: &str,
        point: Option<&str>,
    ) -> impl Iterator<Item = &'a FrugalityTrialStatus> {
        self.entries_everywhere(entrant, point)
            .filter_map(|e| e.status.as_ref())
    }

    pub(super) fn value(&self, trial: &FrugalityTrialStatus, measure: Measure<'_>) -> Option<f64> {
        let boundary = self.settings.boundary;
        if self.is_shared && measure.is_of_node() {
            return None;
        }
        match measure {
            Measure::RequestsPerSecond => trial.requests.as_ref()?.requests_per_second,
            Measure::MillisecondsPerRequest => trial.requests.as_ref()?.ms_per_request,
            Measure::Joules(DecidingFigure::Net | DecidingFigure::NetAttributed)
                if self.why_undetected(trial).is_some() =>
            {
                None
            }
            Measure::Joules(which) => joules(trial, which, boundary),
            Measure::EnergyDelay(which) => {
                let joules = self.value(trial, Measure::Joules(which))?;
                Some(joules * self.value(trial, Measure::MillisecondsPerRequest)? / 1000.0)
            }
            Measure::CpuMilliseconds => {
                let cpu = trial.energy.as_ref()?.cpu.as_ref()?;
                let seconds = if covers_database(trial, boundary) {
                    cpu.candidate_and_database_seconds_per_request
                } else {
                    cpu.candidate_seconds_per_request
                };
                seconds.map(|seconds| seconds * 1000.0)
            }
            Measure::Cost(_, rates) => self.cost_terms(trial, rates).map(CostTerms::sum),
            Measure::IdleWatts => {
                let energy = trial.energy.as_ref()?;
                shows_idle_power(trial, energy).then(|| idle_watts(energy))
            }
            Measure::LoadWatts => {
                let seconds = trial.window?.seconds();
                Some(trial.energy.as_ref()?.node_joules / seconds)
            }
        }
    }

    /// Why a trial's net energy does not count although the attempt has a value.
    pub(super) fn why_undetected(&self, trial: &FrugalityTrialStatus) -> Option<&String> {
        let mut undetected = self.undetected.iter();
        let (_, why) = undetected.find(|(status, _)| std::ptr::eq(*status, trial))?;
        Some(why)
    }

    pub(super) fn why_no_net(
        &self,
        trial: &FrugalityTrialStatus,
        energy: &EnergyFigures,
    ) -> Option<String> {
        energy
            .net_withheld
            .clone()
            .or_else(|| self.why_undetected(trial).cloned())
    }

    /// The deciding figure of a trial.
    pub(super) fn decides(&self, trial: &FrugalityTrial) -> Option<f64> {
        self.value(trial.status.as_ref()?, Measure::Joules(self.deciding))
    }
}

/// A value of every trial. `None` if a trial lacks it.
pub(super) fn in_every(
    trials: &[&FrugalityTrialStatus],
    value: impl Fn(&FrugalityTrialStatus) -> Option<f64>,
) -> Option<Vec<f64>> {
    trials.iter().map(|trial| value(trial)).collect()
}
