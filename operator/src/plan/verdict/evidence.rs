//! The trials that a judgement rests on, and each candidate's figures from them.

use crate::{
    api::{
        Boundary, CandidateResult, CostTerms, DecidingFigure, Expanded, Figure, FrugalityTrial,
        FrugalityTrialStatus, Outcome, seven_digits,
    },
    load::units::Units,
    plan::{
        ledger::{Ledger, Part},
        settings::{
            Look, Point, Quantity, Settings,
            costs::{Cost, Rates},
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
        Estimate, arithmetic_mean, geometric_mean,
        proportion::share_interval,
        serial::{self, Correlation},
        uncertainty::expanded,
    },
};

/// What is measured in a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure<'r> {
    RequestsPerSecond,
    MillisecondsPerRequest,
    Joules(DecidingFigure),
    CpuMilliseconds,
    /// Of a million requests, at these rates.
    Cost(Cost, &'r Rates),
    /// Mean power of the node, in the idle baselines.
    IdleWatts,
    /// The same in the window.
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
            Self::CpuMilliseconds => "CPU time",
            Self::Cost(Cost::Money, _) => "money",
            Self::Cost(Cost::Carbon, _) => "carbon",
            Self::IdleWatts => "idle watts",
            Self::LoadWatts => "watts under load",
        };
        name.to_owned()
    }

    /// Whether it is of the whole node, so that an injector on it would be measured too.
    fn is_of_node(self) -> bool {
        matches!(
            self,
            Self::Joules(DecidingFigure::Gross | DecidingFigure::Net)
                | Self::Cost(..)
                | Self::IdleWatts
                | Self::LoadWatts
        )
    }

    /// Whether energy is in it, of which the spread between trials does not show everything.
    fn is_of_energy(self) -> bool {
        self.is_of_node() || matches!(self, Self::Joules(_))
    }
}

/// The valid trials of the blocks that a look rests on, at one point.
pub(super) struct Evidence<'a> {
    pub(super) settings: &'a Settings,
    pub(super) point: &'a Point,
    pub(super) ledger: &'a Ledger<'a>,
    /// Whether anybody is asked to be good at this point.
    pub(super) is_judged: bool,
    /// Block by block, in the order of their places.
    pub(super) blocks: Vec<Vec<&'a FrugalityTrial>>,
    /// The same of all points together.
    pub(super) everywhere: Vec<&'a FrugalityTrial>,
    /// Trials whose net energy all trials together can't tell from 0.
    undetected: Vec<Undetected<'a>>,
    /// How many points there are.
    pub(super) points: usize,
    /// Two-sided error of a claim's interval here such that those of all points together have that of one.
    pub(super) strict_level: f64,
    /// Whether the injector ran on the measured node.
    pub(super) is_shared: bool,
    /// Figure that decides: the spec's, or net attributed joules if the injector shared the node.
    pub(super) deciding: DecidingFigure,
}

impl<'a> Evidence<'a> {
    /// The terms in one trial.
    pub(super) fn cost_terms(
        &self,
        trial: &FrugalityTrialStatus,
        rates: &Rates,
    ) -> Option<CostTerms> {
        let joules = self.value(trial, Measure::Joules(DecidingFigure::Gross))?;
        let rate = self.value(trial, Measure::RequestsPerSecond)?;
        Some(rates.terms(joules, rate))
    }

    /// Point by point, for those that were tried; those that are not judged come last.
    pub(super) fn at(look: Look, settings: &'a Settings, ledger: &'a Ledger<'a>) -> Vec<Self> {
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

    /// Its trials at all points.
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

    /// Why a trial's net energy does not count though the attempt found some.
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

    /// A figure with an interval of two-sided error `level`; none where any trial lacks it, and none that the injector
    /// limited.
    pub(super) fn figure(&self, entrant: &str, measure: Measure<'_>, level: f64) -> Option<Figure> {
        let limited = self.limited_by_injector(entrant);
        if limited.is_some_and(|limited| self.depends_on_pace(measure, limited)) {
            return None;
        }
        self.measured(entrant, measure, level)
    }

    /// The same, whoever limited it.
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

    /// The geometric mean of a candidate's trials, with an interval that is wider where trials are correlated.
    fn mean(&self, entrant: &str, measure: Measure<'_>, level: f64) -> Option<Estimate> {
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

    /// Every entrant's trials here with their values, block by block, in the order in which they were measured.
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

    /// The correlation of neighbouring trials, if there is one; unknown where a trial lacks the value.
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

    /// That trials resemble the ones before them, if they do in the figure that decides.
    pub(super) fn correlation_note(&self) -> Option<String> {
        let in_order = self.in_order(Measure::Joules(self.deciding));
        let found = self.correlation(&in_order)?;
        Some(format!(
            "trials resemble the ones before them (von Neumann's ratio, p = {}, correlation {}): the intervals of each candidate's own figures are widened; ratios are paired and are not",
            text::number(found.p),
            text::number(found.coefficient)
        ))
    }

    /// A figure of CPU time, whose interval holds what the windows' ends cost. There is no meter's accuracy
    /// to be told apart: the kernel counts.
    pub(super) fn widened(
        &self,
        estimate: &Estimate,
        trials: &[&FrugalityTrialStatus],
    ) -> Option<Figure> {
        let of_ends = self.uncertainty(trials, Measure::CpuMilliseconds, |_, ends| ends)?;
        let bounds = expanded(estimate, of_ends)?;
        Some(Figure {
            lower: bounds.lower,
            upper: bounds.upper,
            ..Figure::from(*estimate)
        })
    }

    /// A figure of energy, with what the spread between its trials does not show. One to whose interval this
    /// can't be added is none: it would be too narrow.
    pub(super) fn expanded(
        &self,
        estimate: &Estimate,
        trials: &[&FrugalityTrialStatus],
        measure: Measure<'_>,
    ) -> Option<Figure> {
        let beside = self.uncertainty(trials, measure, f64::hypot)?;
        let bounds = expanded(estimate, beside)?;
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

    /// What the windows' ends cost a figure in joules, as a share of it: the largest of the trials.
    pub(super) fn ends_uncertainty(&self, entrant: &str, measure: Measure<'_>) -> Option<f64> {
        self.uncertainty(&self.trials(entrant), measure, |_, ends| ends)
    }

    /// What the spread between trials does not show of a figure of energy or CPU time, as a share of it: the
    /// largest of the trials, each from its meter's accuracy and from what its window's ends cost. A meter that tells
    /// no accuracy adds nothing; of a cost, only the part for energy has this.
    pub(super) fn uncertainty(
        &self,
        trials: &[&FrugalityTrialStatus],
        measure: Measure<'_>,
        together: impl Fn(f64, f64) -> f64,
    ) -> Option<f64> {
        let of_trial = |trial: &&FrugalityTrialStatus| {
            let energy = trial.energy.as_ref()?;
            let of_meter = meter_uncertainty(trial, measure).unwrap_or(0.0);
            let units = trial.requests.as_ref()?.units();
            // The ends' joules are the same in gross and net; of what is attributed, and of CPU time, they
            // are about the share that they are of the load's own.
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
                // A baseline ends in idleness, where a moment earlier or later costs next to nothing.
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
            let of_ends = energy.node_joules_relative_uncertainty * energy.node_joules / joules;
            // Baselines that differ by more than chance make net energy uncertain, and nothing else.
            let of_drift = match measure {
                Measure::Joules(DecidingFigure::Net | DecidingFigure::NetAttributed) => {
                    energy.net_drift_joules.unwrap_or(0.0) / joules
                }
                _ => 0.0,
            };
            let of_ends = of_ends.hypot(of_drift);
            let of_energy = together(of_meter, of_ends);
            Some(of_energy * share)
        };
        trials
            .iter()
            .map(of_trial)
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }

    /// Share of requests without an expected answer: the trials' mean. Few errors are as many in each trial by
    /// chance, so the interval holds that of all requests together too.
    pub(super) fn error_ratio(&self, entrant: &str, level: f64) -> Option<Figure> {
        let trials = self.trials(entrant);
        let shares: Option<Vec<f64>> = trials
            .iter()
            .map(|t| t.requests.as_ref()?.error_rate)
            .collect();
        let requests = || trials.iter().filter_map(|t| t.requests.as_ref());
        let estimate = arithmetic_mean(&shares?, 1.0 - level)?;
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

    /// The figure that a limit is for, whoever limited it, unless it is a ratio.
    pub(super) fn limited(&self, candidate: &str, what: Quantity, level: f64) -> Option<Figure> {
        let measure = match what {
            Quantity::JoulesPerRequest => Measure::Joules(self.deciding),
            Quantity::MillisecondsPerRequest => Measure::MillisecondsPerRequest,
            Quantity::RequestsPerSecond => Measure::RequestsPerSecond,
            Quantity::ErrorRatio => return self.error_ratio(candidate, level),
            Quantity::EnergyRatio => return None,
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
            cpu_milliseconds_per_request: figure(Measure::CpuMilliseconds),
            error_ratio: self.error_ratio(candidate, level),
            money,
            carbon,
            idle_cpus: trials
                .iter()
                .map(|t| t.energy.as_ref()?.candidate_idle_cpus)
                .collect::<Option<Vec<f64>>>()
                .and_then(|cpus| mean(&cpus)),
            workloads: self.workloads(candidate, &mut withheld),
            peak_memory_bytes: trials
                .iter()
                .map(|t| t.energy.as_ref()?.candidate_peak_working_set_bytes)
                .collect::<Option<Vec<f64>>>()
                .and_then(largest_bytes),
            memory_growth_bytes_per_hour: self.memory_growth(candidate),
            latency_drift_milliseconds_per_hour: self.latency_drift(candidate),
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

/// What is not known of the times of a script's cycles.
fn dropped(measure: Measure<'_>, trials: &[&FrugalityTrialStatus], unit: &str) -> Option<String> {
    let of_trial =
        |trial: &&FrugalityTrialStatus| trial.k6.as_ref().map_or(0, |it| it.dropped_cycles);
    let dropped: u64 = trials.iter().map(of_trial).sum();
    (dropped > 0 && matches!(measure, Measure::MillisecondsPerRequest)).then(|| {
        format!(
            "{dropped} {unit}s were due and did not begin, because none of load.connections was free"
        )
    })
}

/// Mean power of the node before and after the load.
fn idle_watts(energy: &EnergyFigures) -> f64 {
    f64::midpoint(energy.idle_before_watts, energy.idle_after_watts)
}

/// Of seven digits, as figures have.
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

/// The relative standard uncertainty of a measure of energy by the meter's own accuracy, where the meter states it. Of a
/// linear model, net joules have that of the watts per CPU alone; the ledger has that of gross joules, and the larger of the
/// two bounds the others.
pub(super) fn meter_uncertainty(trial: &FrugalityTrialStatus, measure: Measure<'_>) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    let Some(model) = &energy.meter.model else {
        return energy.meter_relative_uncertainty;
    };
    let known = model.uncertainty?;
    match measure {
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

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        Self {
            value: estimate.value,
            lower: estimate.lower,
            upper: estimate.upper,
            expanded: None,
        }
    }
}

/// Whether a trial's power is modelled.
pub(super) fn is_modelled(trial: &FrugalityTrialStatus) -> bool {
    trial
        .energy
        .as_ref()
        .is_some_and(|energy| energy.provenance == Provenance::Modelled)
}
