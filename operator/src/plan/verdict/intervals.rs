//! Figures of an entrant's trials, each with its interval: the spread between the trials, their correlation, and the
//! uncertainty that the spread does not show.

use frugality_measure::figures::RequestFigures;
use frugality_measure::statistics::{
    IntervalEstimate, arithmetic_mean, geometric_mean,
    proportion::share_interval,
    serial::{self, Correlation},
    uncertainty::expanded,
};

use crate::{
    api::{DecidingFigure, Expanded, Figure, FrugalityTrial, FrugalityTrialStatus},
    plan::{
        settings::Quantity,
        verdict::{
            evidence::{Evidence, in_every},
            measure::{Measure, is_modelled, meter_uncertainty},
        },
    },
    text,
};

impl<'a> Evidence<'a> {
    /// A figure with an interval of two-sided error `level`. `None` if a trial lacks it, or if the injector limited it.
    pub(super) fn figure(&self, entrant: &str, measure: Measure<'_>, level: f64) -> Option<Figure> {
        if self.is_of_injector(entrant, measure) {
            return None;
        }
        self.measured(entrant, measure, level)
    }

    /// Whether a figure is the injector's and not the entrant's.
    pub(super) fn is_of_injector(&self, entrant: &str, measure: Measure<'_>) -> bool {
        let limited = self.limited_by_injector(entrant);
        limited.is_some_and(|limited| self.depends_on_pace(measure, limited))
    }

    /// The figure even if the injector limited it.
    pub(super) fn measured(
        &self,
        entrant: &str,
        measure: Measure<'_>,
        level: f64,
    ) -> Option<Figure> {
        let trials = self.trials(entrant);
        let estimate = self.mean(entrant, level, |trial| self.value(trial, measure))?;
        if matches!(measure, Measure::CpuMilliseconds) {
            return self.widened(&estimate, &trials);
        }
        if !measure.is_of_energy() {
            return Some(estimate.into());
        }
        self.expanded(&estimate, &trials, measure)
    }

    /// The geometric mean of a candidate's trials. The interval is wider if trials are correlated. `None` if a trial lacks the
    /// value.
    pub(super) fn mean(
        &self,
        entrant: &str,
        level: f64,
        value: impl Fn(&FrugalityTrialStatus) -> Option<f64>,
    ) -> Option<IntervalEstimate> {
        let in_order = self.in_order(value);
        let of_entrant: Option<Vec<(usize, f64)>> = in_order
            .iter()
            .flatten()
            .enumerate()
            .filter(|(_, (name, _))| *name == entrant)
            .map(|(place, (_, value))| Some((place, (*value)?)))
            .collect();
        let of_entrant = of_entrant?;
        if let Some(found) = self.correlation(&in_order) {
            return serial::geometric_mean(&of_entrant, found.coefficient, 1.0 - level);
        }
        let values: Vec<f64> = of_entrant.iter().map(|(_, value)| *value).collect();
        geometric_mean(&values, 1.0 - level)
    }

    /// The values of all entrants' trials at this point, block by block in the order of measurement.
    fn in_order(
        &self,
        value: impl Fn(&FrugalityTrialStatus) -> Option<f64>,
    ) -> Vec<Vec<(&'a str, Option<f64>)>> {
        let value = |trial: &FrugalityTrial| value(trial.status.as_ref()?);
        let of_block = |block: &Vec<&'a FrugalityTrial>| {
            let trials = block.iter().copied();
            trials
                .map(|trial| (trial.spec.candidate.as_str(), value(trial)))
                .collect()
        };
        self.blocks.iter().map(of_block).collect()
    }

    /// The correlation of neighbouring trials, if there is one. Trials without the value are left out: a value that another
    /// candidate lacks must not make an interval narrower.
    fn correlation(&self, in_order: &[Vec<(&str, Option<f64>)>]) -> Option<Correlation> {
        let entrants = self.settings.entrants();
        let of_block = |block: &Vec<(&str, Option<f64>)>| -> Vec<(usize, f64)> {
            let trials = block.iter();
            trials
                .filter_map(|(name, value)| {
                    Some((entrants.iter().position(|e| e == name)?, (*value)?))
                })
                .collect()
        };
        let blocks: Vec<_> = in_order.iter().map(of_block).collect();
        serial::correlation(&blocks)
    }

    /// A note if the deciding figures of neighbouring trials are correlated.
    pub(super) fn correlation_note(&self) -> Option<String> {
        let measure = Measure::Joules(self.deciding);
        let in_order = self.in_order(|trial| self.value(trial, measure));
        let found = self.correlation(&in_order)?;
        Some(format!(
            "Trials resemble the previous trials (von Neumann's ratio, p = {}, correlation {}). The intervals of each candidate's figures are widened. Ratios are paired and are not widened.",
            text::number(found.p),
            text::number(found.coefficient)
        ))
    }

    /// A figure of CPU time. Its interval includes the error at the window's edges. The kernel reports no accuracy for CPU time,
    /// so none is added.
    pub(super) fn widened(
        &self,
        estimate: &IntervalEstimate,
        trials: &[&FrugalityTrialStatus],
    ) -> Option<Figure> {
        let of_edges = self.uncertainty(trials, Measure::CpuMilliseconds, |_, edges| edges)?;
        let bounds = expanded(estimate, of_edges)?;
        Some(Figure {
            lower: bounds.lower,
            upper: bounds.upper,
            ..Figure::from(*estimate)
        })
    }

    /// A figure of energy with the uncertainty that the spread between trials does not show. `None` if this uncertainty is not
    /// known, because the interval would be too narrow.
    pub(super) fn expanded(
        &self,
        estimate: &IntervalEstimate,
        trials: &[&FrugalityTrialStatus],
        measure: Measure<'_>,
    ) -> Option<Figure> {
        let hidden = self.uncertainty(trials, measure, f64::hypot)?;
        expanded_by(hidden, estimate, trials, measure)
    }

    /// Relative uncertainty of a figure in joules by the window's edges: the largest of the trials.
    pub(super) fn edges_uncertainty(&self, entrant: &str, measure: Measure<'_>) -> Option<f64> {
        self.uncertainty(&self.trials(entrant), measure, |_, edges| edges)
    }

    /// Relative standard uncertainty of an entrant's net joules by baselines that differ by more than chance: the largest of
    /// the trials. 0 for other figures.
    pub(super) fn drift_uncertainty(&self, entrant: &str) -> f64 {
        let is_net = matches!(
            self.deciding,
            DecidingFigure::Net | DecidingFigure::NetAttributed
        );
        let of_trial = |trial: &&FrugalityTrialStatus| {
            let energy = trial.energy.as_ref()?;
            Some(energy.net_drift_joules? / energy.net_joules?)
        };
        let trials = self.trials(entrant);
        let drifts = trials.iter().filter_map(of_trial).filter(|_| is_net);
        drifts.fold(0.0, f64::max)
    }

    /// Relative uncertainty of energy or CPU time that the spread between trials does not show: the largest of the trials. Each
    /// trial has its meter's accuracy and the error at its window's edges. A meter without a reported accuracy adds nothing.
    /// Of a cost, only the part for energy has this uncertainty.
    pub(super) fn uncertainty(
        &self,
        trials: &[&FrugalityTrialStatus],
        measure: Measure<'_>,
        together: impl Fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let measure = measure.of_same_uncertainty();
        let of_trial = |trial: &&FrugalityTrialStatus| {
            let energy = trial.energy.as_ref()?;
            let of_meter = meter_uncertainty(trial, measure).unwrap_or(0.0);
            let units = trial.requests.as_ref()?.units();
            // The edges' joules are the same in gross and net joules. In attributed joules and CPU time, their share is about
            // their share of the load's net joules.
            let net_joules = energy
                .net_joules
                .filter(|_| self.why_undetected(trial).is_none());
            let (joules, share) = match measure {
                Measure::Joules(DecidingFigure::Attributed | DecidingFigure::NetAttributed) => {
                    (net_joules, 1.0)
                }
                Measure::CpuMilliseconds => {
                    let attributed = Measure::Joules(DecidingFigure::Attributed);
                    let of_pods = || Some(self.value(trial, attributed)? * units);
                    (Some(net_joules.or_else(of_pods)?), 1.0)
                }
                // At the edges of a baseline the node is idle, so a timing error costs almost nothing.
                Measure::IdleWatts => {
                    return Some(together(of_meter, 0.0));
                }
                Measure::LoadWatts => (Some(energy.node_joules), 1.0),
                Measure::Cost(_, rates) => {
                    let terms = self.cost_terms(trial, rates)?;
                    (Some(energy.node_joules), terms.of_energy() / terms.sum())
                }
                _ => (None, 1.0),
            };
            let joules = joules.or_else(|| Some(self.value(trial, measure)? * units))?;
            let of_edges = energy.node_joules_relative_uncertainty * energy.node_joules / joules;
            // Baselines that differ by more than chance make only net energy uncertain.
            let of_drift = match measure {
                Measure::Joules(DecidingFigure::Net | DecidingFigure::NetAttributed) => {
                    energy.net_drift_joules.unwrap_or(0.0) / joules
                }
                _ => 0.0,
            };
            let of_energy = together(of_meter, of_edges.hypot(of_drift));
            Some(of_energy * share)
        };
        trials
            .iter()
            .map(of_trial)
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }

    /// Share of requests without an expected answer: the mean of the trials. Few errors may be equally many in each trial by
    /// chance, so the interval also covers the interval of all requests together.
    pub(super) fn error_ratio(&self, entrant: &str, level: f64) -> Option<Figure> {
        self.share_of_requests(entrant, level, |requests| {
            (requests.errors, requests.requests)
        })
    }

    /// The error ratio if each dropped cycle counts as an error. `None` if no cycle was dropped.
    pub(super) fn error_ratio_with_dropped(&self, entrant: &str, level: f64) -> Option<Figure> {
        let trials = self.trials(entrant);
        let mut requests = trials.iter().filter_map(|trial| trial.requests.as_ref());
        requests.find(|requests| requests.dropped > 0)?;
        self.share_of_requests(entrant, level, |requests| {
            let dropped = requests.dropped;
            (requests.errors + dropped, requests.requests + dropped)
        })
    }

    fn share_of_requests(
        &self,
        entrant: &str,
        level: f64,
        counts: fn(&RequestFigures) -> (u64, u64),
    ) -> Option<Figure> {
        let trials = self.trials(entrant);
        let counted = |trial: &FrugalityTrialStatus| Some(counts(trial.requests.as_ref()?));
        let shares = in_every(&trials, |trial| {
            let (some, all) = counted(trial)?;
            (all > 0).then(|| some as f64 / all as f64)
        })?;
        let estimate = arithmetic_mean(&shares, 1.0 - level)?;
        let counts = || trials.iter().filter_map(|trial| counted(trial));
        let (lower, upper) = share_interval(
            counts().map(|(some, _)| some).sum(),
            counts().map(|(_, all)| all).sum(),
            level,
        )?;
        Some(Figure {
            value: estimate.value,
            lower: estimate.lower.max(0.0).min(lower),
            upper: estimate.upper.min(1.0).max(upper),
            expanded: None,
        })
    }

    /// The figure of a limit at this point, even if the injector limited it. `None` for a ratio and for figures of all
    /// load levels.
    pub(super) fn limited(&self, candidate: &str, what: Quantity, level: f64) -> Option<Figure> {
        let measure = match what {
            Quantity::JoulesPerRequest => Measure::Joules(self.deciding),
            Quantity::MillisecondsPerRequest => Measure::MillisecondsPerRequest,
            Quantity::RequestsPerSecond => Measure::RequestsPerSecond,
            Quantity::ErrorRatio => return self.error_ratio(candidate, level),
            Quantity::EnergyDelay => Measure::EnergyDelay(self.deciding),
            Quantity::EnergyRatio | Quantity::OfCurve(_) => return None,
        };
        self.measured(candidate, measure, level)
    }
}

/// A figure of energy with this relative uncertainty that the spread between trials does not show.
pub(super) fn expanded_by(
    hidden: f64,
    estimate: &IntervalEstimate,
    trials: &[&FrugalityTrialStatus],
    measure: Measure<'_>,
) -> Option<Figure> {
    let bounds = expanded(estimate, hidden)?;
    let covers_meter = trials
        .iter()
        .all(|trial| meter_uncertainty(trial, measure).is_some());
    Some(Figure {
        expanded: Some(Expanded {
            lower: bounds.lower,
            upper: bounds.upper,
            covers_meter,
            repeatability_only: !covers_meter && trials.iter().any(|trial| is_modelled(trial)),
        }),
        ..Figure::from(*estimate)
    })
}

/// The standard uncertainty of two values together. The squares add up (JCGM 100:2008, 5.1.2).
///
/// Two values of a model may be wrong in opposite directions by one cause, for example one table. The uncertainties then add
/// up (5.2.2).
pub(super) fn combined(first: f64, second: f64, are_models: bool) -> f64 {
    if are_models {
        first + second
    } else {
        first.hypot(second)
    }
}

impl From<IntervalEstimate> for Figure {
    fn from(estimate: IntervalEstimate) -> Self {
        Self {
            value: estimate.value,
            lower: estimate.lower,
            upper: estimate.upper,
            expanded: None,
        }
    }
}
