//! The quantities of a trial: their names, their values in the ledger, and what the meter's accuracy adds to them.

use frugality_measure::{
    energy::{EnergyFigures, is_baseline_too_short},
    reading::Provenance,
};

use crate::{
    api::{Boundary, DecidingFigure, FrugalityTrialStatus},
    load::units::Units,
    plan::settings::costs::{Cost, CostRates},
};

/// A quantity of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure<'r> {
    RequestsPerSecond,
    MillisecondsPerRequest,
    Joules(DecidingFigure),
    /// Joules per request times seconds per request.
    EnergyDelay(DecidingFigure),
    CpuMilliseconds,
    /// Cost of a million requests at these rates.
    Cost(Cost, &'r CostRates),
    /// Mean power of the node in the idle baselines.
    IdleWatts,
    /// Mean power of the node in the window.
    LoadWatts,
}

impl Measure<'_> {
    pub(super) fn name(self, units: &Units) -> String {
        let name = match self {
            Self::RequestsPerSecond => return format!("{}s/s", units.one),
            Self::MillisecondsPerRequest => return format!("ms/{}", units.whole),
            Self::Joules(DecidingFigure::Gross) => "gross joules",
            Self::Joules(DecidingFigure::Net) => "net joules",
            Self::Joules(DecidingFigure::Attributed) => "attributed joules",
            Self::Joules(DecidingFigure::NetAttributed) => "net attributed joules",
            Self::EnergyDelay(_) => "energy-delay product",
            Self::CpuMilliseconds => "CPU time",
            Self::Cost(Cost::Money, _) => "money",
            Self::Cost(Cost::Carbon, _) => "carbon",
            Self::IdleWatts => "idle watts",
            Self::LoadWatts => "watts under load",
        };
        name.to_owned()
    }

    /// Whether the quantity covers the whole node. It then includes an injector on the same node.
    pub(super) fn is_of_node(self) -> bool {
        matches!(
            self,
            Self::Joules(DecidingFigure::Gross | DecidingFigure::Net)
                | Self::EnergyDelay(DecidingFigure::Gross | DecidingFigure::Net)
                | Self::Cost(..)
                | Self::IdleWatts
                | Self::LoadWatts
        )
    }

    /// Whether the quantity includes energy. The spread between trials does not show all uncertainty of energy.
    pub(super) fn is_of_energy(self) -> bool {
        self.is_of_node() || matches!(self, Self::Joules(_) | Self::EnergyDelay(_))
    }

    /// The quantity that has the same relative uncertainty of energy.
    pub(super) fn of_same_uncertainty(self) -> Self {
        match self {
            Self::EnergyDelay(which) => Self::Joules(which),
            other => other,
        }
    }
}

/// Joules per request of one trial, by definition.
#[must_use]
pub fn joules(
    trial: &FrugalityTrialStatus,
    figure: DecidingFigure,
    boundary: Boundary,
) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    match figure {
        DecidingFigure::Gross => energy.gross_joules_per_request,
        DecidingFigure::Net => energy.net_joules_per_request,
        DecidingFigure::Attributed => {
            let attributed = energy.attributed.as_ref()?;
            if covers_database(trial, boundary) {
                attributed.candidate_and_database_joules_per_request
            } else {
                attributed.candidate_joules_per_request
            }
        }
        DecidingFigure::NetAttributed => {
            let shared = energy.net_attributed.as_ref()?;
            if covers_database(trial, boundary) {
                shared.candidate_and_database_joules_per_request
            } else {
                shared.candidate_joules_per_request
            }
        }
    }
}

/// Mean power of the node before and after the load.
pub(super) fn idle_watts(energy: &EnergyFigures) -> f64 {
    f64::midpoint(energy.idle_before_watts, energy.idle_after_watts)
}

/// Whether a trial's idle baselines show the node's idle power. Net energy is withheld otherwise, for the same reason.
pub(super) fn shows_idle_power(trial: &FrugalityTrialStatus, energy: &EnergyFigures) -> bool {
    let baselines = [trial.idle_before, trial.idle_after];
    let mut baselines = baselines.iter().flatten();
    baselines.all(|it| !is_baseline_too_short(it.seconds(), energy.interval_seconds))
}

/// The relative standard uncertainty of energy by the meter's accuracy. `None` if the meter does not report it. With a linear
/// model, net joules have the uncertainty of the watts per CPU, and gross joules the one in the ledger. The larger of the
/// model's two uncertainties is the bound for the others.
///
/// An instrument's uncertainty is a share of the gross energy, and whether its error is the same share at idle is not known.
/// The same joules are a larger share of net energy.
pub(super) fn meter_uncertainty(trial: &FrugalityTrialStatus, measure: Measure<'_>) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    let Some(model) = &energy.meter.model else {
        let of_gross = energy.meter_relative_uncertainty?;
        return match measure.of_same_uncertainty() {
            Measure::Joules(DecidingFigure::Net | DecidingFigure::NetAttributed) => {
                let share = energy
                    .net_joules
                    .map_or(1.0, |net| net / energy.node_joules);
                Some(of_gross / share)
            }
            _ => Some(of_gross),
        };
    };
    let known = model.uncertainty?;
    match measure.of_same_uncertainty() {
        Measure::Joules(DecidingFigure::Net | DecidingFigure::NetAttributed) => {
            Some(known.watts_per_cpu)
        }
        Measure::Joules(DecidingFigure::Attributed) | Measure::IdleWatts => Some(known.largest()),
        _ => energy.meter_relative_uncertainty,
    }
}

/// Without a database the boundary is the candidate alone.
pub(super) fn covers_database(trial: &FrugalityTrialStatus, boundary: Boundary) -> bool {
    boundary == Boundary::CandidateAndDatabase && !trial.database_pods.is_empty()
}

/// Whether a trial's power is modelled.
pub(super) fn is_modelled(trial: &FrugalityTrialStatus) -> bool {
    trial
        .energy
        .as_ref()
        .is_some_and(|energy| energy.provenance == Provenance::Modelled)
}
