//! The trials behind a judgement, and each candidate's figures from these trials.

use crate::{
    api::{
        Boundary, CandidateResult, CostTerms, DecidingFigure, Expanded, Figure, FrugalityTrial,
        FrugalityTrialStatus, Outcome, seven_digits,
    },
    load::units::Units,
    plan::{
        ledger::{Ledger, Part},
        settings::{
            PlannedLook, Point, Quantity, Settings,
            costs::{Cost, CostRates},
        },
        verdict::{
            costs::cost_of,
            detection::{Undetected, undetected},
        },
    },
    text,
};
use frugality_measure::reading::Provenance;
use frugality_measure::{
    energy::EnergyFigures,
    statistics::{
        IntervalEstimate, arithmetic_mean, geometric_mean,
        proportion::share_interval,
        serial::{self, Correlation},
        uncertainty::expanded,
    },
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
    fn name(self, units: &Units) -> String {
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
    fn is_of_node(self) -> bool {
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
    fn is_of_energy(self) -> bool {
        self.is_of_node() || matches!(self, Self::Joules(_) | Self::EnergyDelay(_))
    }

    /// The quantity that has the same relative uncertainty of energy.
    fn of_same_uncertainty(self) -> Self {
        match self {
            Self::EnergyDelay(which) => Self::Joules(which),
            other => other,
        }
    }
}

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

    /// An entrant's trials at all points.
    pub(super) fn trials_everywhere(
        &self,
        entrant: &str,
    ) -> impl Iterator<Item = &'a FrugalityTrialStatus> {
        let trials = self.everywhere.iter().copied();
        trials
            .filter(move |e| e.spec.candidate == entrant)
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
            Measure::IdleWatts => trial.energy.as_ref().map(idle_watts),
            Measure::LoadWatts => {
                let seconds = trial.window?.seconds();
                Some(trial.energy.as_ref()?.node_joules / seconds)
            }
        }
    }

    /// Why a trial's net energy does not count although the attempt has a value.
    fn why_undetected(&self, trial: &FrugalityTrialStatus) -> Option<&String> {
        let mut undetected = self.undetected.iter();
        let (_, why) = undetected.find(|(status, _)| std::ptr::eq(*status, trial))?;
        Some(why)
    }

    fn why_no_net(&self, trial: &FrugalityTrialStatus, energy: &EnergyFigures) -> Option<String> {
        energy
            .net_withheld
            .clone()
            .or_else(|| self.why_undetected(trial).cloned())
    }

    /// The deciding figure of a trial.
    pub(super) fn decides(&self, trial: &FrugalityTrial) -> Option<f64> {
        self.value(trial.status.as_ref()?, Measure::Joules(self.deciding))
    }

    /// A figure with an interval of two-sided error `level`. `None` if a trial lacks it, or if the injector limited it.
    pub(super) fn figure(&self, entrant: &str, measure: Measure<'_>, level: f64) -> Option<Figure> {
        let limited = self.limited_by_injector(entrant);
        if limited.is_some_and(|limited| self.depends_on_pace(measure, limited)) {
            return None;
        }
        self.measured(entrant, measure, level)
    }

    /// The figure even if the injector limited it.
    pub(super) fn measured(
        &self,
        entrant: &str,
        measure: Measure<'_>,
        level: f64,
    ) -> Option<Figure> {
        let trials = self.trials(entrant);
        let estimate = self.mean(entrant, measure, level)?;
        if matches!(measure, Measure::CpuMilliseconds) {
            return self.widened(&estimate, &trials);
        }
        if !measure.is_of_energy() {
            return Some(estimate.into());
        }
        self.expanded(&estimate, &trials, measure)
    }

    /// The geometric mean of a candidate's trials. The interval is wider if trials are correlated.
    fn mean(&self, entrant: &str, measure: Measure<'_>, level: f64) -> Option<IntervalEstimate> {
        let in_order = self.in_order(measure);
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
    fn in_order(&self, measure: Measure<'_>) -> Vec<Vec<(&'a str, Option<f64>)>> {
        let value = |trial: &FrugalityTrial| self.value(trial.status.as_ref()?, measure);
        let of_block = |block: &Vec<&'a FrugalityTrial>| {
            let trials = block.iter().copied();
            trials
                .map(|trial| (trial.spec.candidate.as_str(), value(trial)))
                .collect()
        };
        self.blocks.iter().map(of_block).collect()
    }

    /// The correlation of neighbouring trials, if there is one. `None` if a trial lacks the value.
    fn correlation(&self, in_order: &[Vec<(&str, Option<f64>)>]) -> Option<Correlation> {
        let entrants = self.settings.entrants();
        let of_block = |block: &Vec<(&str, Option<f64>)>| -> Option<Vec<(usize, f64)>> {
            block
                .iter()
                .map(|(name, value)| Some((entrants.iter().position(|e| e == name)?, (*value)?)))
                .collect()
        };
        let blocks: Option<Vec<_>> = in_order.iter().map(of_block).collect();
        serial::correlation(&blocks?)
    }

    /// A note if the deciding figures of neighbouring trials are correlated.
    pub(super) fn correlation_note(&self) -> Option<String> {
        let in_order = self.in_order(Measure::Joules(self.deciding));
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
        let trials = self.trials(entrant);
        let shares = in_every(&trials, |it| it.requests.as_ref()?.error_rate)?;
        let requests = || trials.iter().filter_map(|t| t.requests.as_ref());
        let estimate = arithmetic_mean(&shares, 1.0 - level)?;
        let (lower, upper) = share_interval(
            requests().map(|r| r.errors).sum(),
            requests().map(|r| r.requests).sum(),
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

    /// All figures of a candidate.
    pub(super) fn result(&self, candidate: &str) -> CandidateResult {
        let trials = self.trials(candidate);
        let level = self.settings.level;
        let mut withheld = Vec::new();
        let mut figure = |measure: Measure<'_>| {
            let figure = self.figure(candidate, measure, level);
            if figure.is_none() {
                withheld.push(self.withheld_because(candidate, measure, &trials));
            }
            figure
        };
        let requests_per_second = figure(Measure::RequestsPerSecond);
        let gross_joules_per_request = figure(Measure::Joules(DecidingFigure::Gross));
        let mut cost = |cost: Cost| {
            let rates = self.settings.rates(candidate, cost)?;
            let of_sums = figure(Measure::Cost(cost, rates))?;
            Some(cost_of(
                rates,
                of_sums,
                gross_joules_per_request?,
                requests_per_second?,
            ))
        };
        let (money, carbon) = (cost(Cost::Money), cost(Cost::Carbon));
        let node = self.own_node(candidate, &mut figure);
        CandidateResult {
            point: self.point.name.clone(),
            candidate: candidate.to_owned(),
            node,
            trials: i32::try_from(trials.len()).unwrap_or(i32::MAX),
            void_attempts: i32::try_from(self.ledger.count(Outcome::Void, |spec| {
                spec.candidate == candidate && spec.point == self.point.name
            }))
            .unwrap_or(i32::MAX),
            requests_per_second,
            milliseconds_per_request: figure(Measure::MillisecondsPerRequest),
            arrivals: self.arrivals(candidate),
            latency: self.latency(candidate),
            cycles: self.cycles(candidate),
            batch: self.batch(candidate),
            gross_joules_per_request,
            net_joules_per_request: figure(Measure::Joules(DecidingFigure::Net)),
            attributed_joules_per_request: figure(Measure::Joules(DecidingFigure::Attributed)),
            net_attributed_joules_per_request: match self.deciding {
                DecidingFigure::NetAttributed => figure(Measure::Joules(self.deciding)),
                _ => None,
            },
            // A withheld product needs no reason: that of its joules or of its time is given.
            energy_delay_joule_seconds: self
                .settings
                .levels_of
                .and_then(|_| self.figure(candidate, Measure::EnergyDelay(self.deciding), level)),
            cpu_milliseconds_per_request: figure(Measure::CpuMilliseconds),
            error_ratio: self.error_ratio(candidate, level),
            money,
            carbon,
            idle_cpus: in_every(&trials, |it| it.energy.as_ref()?.candidate_idle_cpus)
                .and_then(|cpus| mean(&cpus)),
            workloads: self.workloads(candidate, &mut withheld),
            peak_memory_bytes: in_every(&trials, |it| {
                it.energy.as_ref()?.candidate_peak_working_set_bytes
            })
            .and_then(largest_bytes),
            memory_growth_bytes_per_hour: self.memory_growth(&trials),
            latency_drift_milliseconds_per_hour: self.latency_drift(&trials),
            injector: self.injector(candidate),
            restarts: self.restarts(candidate),
            withheld,
        }
    }

    fn withheld_because(
        &self,
        candidate: &str,
        measure: Measure<'_>,
        trials: &[&FrugalityTrialStatus],
    ) -> String {
        let name = measure.name(&self.settings.units);
        let limited = self.limited_by_injector(candidate);
        if limited.is_some_and(|limited| self.depends_on_pace(measure, limited)) {
            return format!("{name}: the injector limited {candidate}");
        }
        if self.is_shared && measure.is_of_node() {
            return format!(
                "{name}: the injector ran on the measured node and is part of its energy"
            );
        }
        let missing = trials
            .iter()
            .filter(|trial| self.value(trial, measure).is_none())
            .count();
        let why = trials
            .iter()
            .filter_map(|trial| Some((trial, trial.energy.as_ref()?)))
            .find_map(|(trial, energy)| match measure {
                Measure::Joules(DecidingFigure::Net) => self.why_no_net(trial, energy),
                Measure::Joules(DecidingFigure::NetAttributed) => self
                    .why_no_net(trial, energy)
                    .or_else(|| energy.pods_withheld.clone()),
                Measure::Joules(DecidingFigure::Attributed) | Measure::CpuMilliseconds => {
                    energy.pods_withheld.clone()
                }
                _ => None,
            })
            .or_else(|| dropped(measure, trials, self.settings.units.whole))
            .map(|why| format!(": {why}"))
            .unwrap_or_default();
        if missing == 0 {
            return format!("{name}: the uncertainty is too large for an interval");
        }
        format!(
            "{name} missing in {missing} of {} trials{why}",
            trials.len()
        )
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

/// Why the times of a script's cycles are not known.
fn dropped(measure: Measure<'_>, trials: &[&FrugalityTrialStatus], unit: &str) -> Option<String> {
    let of_trial =
        |trial: &&FrugalityTrialStatus| trial.k6.as_ref().map_or(0, |it| it.dropped_cycles);
    let dropped: u64 = trials.iter().map(of_trial).sum();
    (dropped > 0 && matches!(measure, Measure::MillisecondsPerRequest)).then(|| {
        format!(
            "{dropped} {unit}s were due and did not begin, because all load.connections were busy"
        )
    })
}

/// Mean power of the node before and after the load.
fn idle_watts(energy: &EnergyFigures) -> f64 {
    f64::midpoint(energy.idle_before_watts, energy.idle_after_watts)
}

/// The mean with seven digits, as in all figures.
fn mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| seven_digits(sum / values.len() as f64))
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

/// The relative standard uncertainty of energy by the meter's accuracy. `None` if the meter does not report it. With a linear
/// model, net joules have the uncertainty of the watts per CPU, and gross joules the one in the ledger. The larger of the
/// model's two uncertainties is the bound for the others.
pub(super) fn meter_uncertainty(trial: &FrugalityTrialStatus, measure: Measure<'_>) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    let Some(model) = &energy.meter.model else {
        return energy.meter_relative_uncertainty;
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
fn covers_database(trial: &FrugalityTrialStatus, boundary: Boundary) -> bool {
    boundary == Boundary::CandidateAndDatabase && !trial.database_pods.is_empty()
}

/// The largest of some amounts of memory.
#[allow(
    clippy::cast_possible_truncation,
    reason = "bytes of memory are far below 2^53"
)]
pub(super) fn largest_bytes(amounts: Vec<f64>) -> Option<i64> {
    let largest = amounts.into_iter().reduce(f64::max)?;
    Some(largest as i64)
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

/// A value of every trial. `None` if a trial lacks it.
pub(super) fn in_every(
    trials: &[&FrugalityTrialStatus],
    value: impl Fn(&FrugalityTrialStatus) -> Option<f64>,
) -> Option<Vec<f64>> {
    trials.iter().map(|trial| value(trial)).collect()
}

/// Whether a trial's power is modelled.
pub(super) fn is_modelled(trial: &FrugalityTrialStatus) -> bool {
    trial
        .energy
        .as_ref()
        .is_some_and(|energy| energy.provenance == Provenance::Modelled)
}
