//! A parsed spec. It has passed the checks that admission can't do. All later code uses its numbers.

pub mod costs;
mod error;
mod limits;
mod load;
mod looks;
pub mod pods;
pub mod postgresql;
mod release;
mod servers;

use crate::{
    api::{Boundary, Candidate, DecidingFigure, FrugalityBenchmarkSpec, LevelsOf},
    digest::hex_digest,
    load::{
        LoadKind,
        read::{number, seconds},
        rules::{MayDiffer, Sending},
        units::Units,
    },
    plan::settings::{
        costs::{Cost, CostRates, NodeRates},
        error::no_candidate,
        limits::limits,
        load::{DEFAULT_WINDOW_SECONDS, check_size, levels, points, rate, sending},
        looks::{claim_error, claim_levels, level_of, looks},
        release::no_baseline,
    },
};
use std::borrow::Cow;

use frugality_measure::{energy::LONG_WINDOW_SECONDS, fortio::Amount, order::blocks};

pub use self::{
    error::SettingsError,
    limits::{CurveFigure, Limit, Quantity},
    load::{POINT_OF_HIGHEST_RATE, Point},
    looks::{ERROR, PlannedLook},
    release::NoBaseline,
};

/// Number of requests at maximum rate that makes a run an endurance run: ten minutes at 1,667 requests/s. An
/// endurance run records each request, which costs the injector time. Shorter runs avoid that cost.
const ENDURANCE_REQUESTS: u64 = 1_000_000;

/// One pass over all entrants at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the point in [`Settings::points`].
    pub point: usize,
    /// Indexes of the entrants, in the order of their positions.
    pub order: Vec<usize>,
}

/// A candidate that takes part twice, as an A/A control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its name.
    pub candidate: String,
    /// Its other name, which does not reveal the candidate.
    pub hidden: String,
}

/// A parsed spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Names of the candidates, in the spec's order.
    pub candidates: Vec<String>,
    /// Pairs of candidates in a budget's ratio that differ in nothing but their names.
    pub equal: Vec<(String, String)>,
    /// Length of the measured window.
    pub amount: Amount,
    /// Requests per second over all connections; `None` means maximum rate.
    pub rate: Option<f64>,
    /// When the injector sends requests; [`Self::sending_at`] has the exception for load levels.
    pub sending: Sending,
    /// The combinations of load settings; at least one, ascending by connections and replicas. With load levels: the
    /// point of the highest rate, then the levels, descending.
    pub points: Vec<Point>,
    /// Whose highest rate the load levels are shares of. `None` without load levels.
    pub levels_of: Option<LevelsOf>,
    /// Error ratio that ends the sweep: if every candidate exceeds it, the operator tries no further points.
    pub max_error_ratio: Option<f64>,
    /// Warm-up in seconds.
    pub warm_up_seconds: f64,
    /// How long agents join at the start of the load, in seconds.
    pub ramp_up_seconds: f64,
    /// Timeout of a request, a cycle or an execution, in seconds.
    pub timeout_seconds: f64,
    /// The kind of load.
    pub kind: LoadKind,
    /// Units of figures.
    pub units: Units,
    /// Status codes that count as success. Empty for a scenario, whose script decides success itself, and for a
    /// batch.
    pub expected_status: Vec<u16>,
    /// Maximum number of blocks at each point, which is the number of blocks at the last look.
    pub blocks: usize,
    /// When the operator judges the run, ascending. At least one look; the last one comes after all blocks.
    pub looks: Vec<PlannedLook>,
    /// Two-sided error of each interval that describes one candidate. All looks together have the error [`ERROR`].
    pub level: f64,
    /// Number of this try of the same measurement, from 1.
    pub try_number: usize,
    /// Two-sided error of each interval that decides a claim (a winner, a budget). All looks of all tries together
    /// have the error [`ERROR`].
    pub claim_level: f64,
    /// Error of each of the two one-sided tests for a tie. All looks of all tries together have the error
    /// [`ERROR`].
    pub tie_level: f64,
    /// Relative difference up to which candidates count as equal.
    pub tie_within: Option<f64>,
    /// The A/A control.
    pub control: Option<Control>,
    /// Properties in which compared candidates may differ.
    pub may_differ: MayDiffer,
    /// Maximum number of attempts at a block.
    pub max_attempts: i32,
    /// Seed for the order of points and entrants.
    pub seed: u64,
    /// Length of each idle baseline in seconds.
    pub idle_seconds: f64,
    /// Longest time of a run in seconds.
    pub deadline_seconds: f64,
    /// Time between the benchmark's end and its deletion, in seconds; `None` if it is never deleted.
    pub ttl_seconds: Option<f64>,
    /// The deciding figure.
    pub deciding: DecidingFigure,
    /// Boundary of attributed joules.
    pub boundary: Boundary,
    /// Limits, in the spec's order.
    pub limits: Vec<Limit>,
    /// The release that the spec names and that did not exist when the run got its nodes.
    pub no_baseline: Option<NoBaseline>,
    /// Whether modelled joules may decide a budget.
    pub allow_modelled: bool,
    /// Costs of a joule and of a second on each candidate's node, in the order of the candidates.
    pub rates: Vec<NodeRates>,
}

/// Pairs of one ratio that differ in nothing but their names.
fn equal(spec: &FrugalityBenchmarkSpec, limits: &[Limit]) -> Vec<(String, String)> {
    let named = |name: &str| {
        let candidate = spec.candidates.iter().find(|it| it.name == name)?;
        Some(Candidate {
            name: String::new(),
            costs: None,
            ..candidate.clone()
        })
    };
    let ratios = limits
        .iter()
        .filter_map(|limit| Some((limit.candidate.clone(), limit.against.clone()?)));
    ratios
        .filter(|(one, other)| named(one) == named(other))
        .collect()
}

impl Settings {
    /// Parses a spec.
    pub fn parse(spec: &FrugalityBenchmarkSpec) -> Result<Self, SettingsError> {
        let load = &spec.load;
        let kind = LoadKind::of(spec).ok_or(SettingsError::OneLoad)?;
        let rules = kind.rules();
        let rate = rate(&load.rate)?;
        let own_amount = rules.amount(spec);
        let amount = match (own_amount, &load.requests, &load.duration) {
            (Some(amount), _, _) => amount,
            (None, Some(requests), _) => Amount::Requests(requests.unsigned_abs()),
            (None, None, Some(duration)) => {
                Amount::DurationSeconds(seconds("load.duration", duration)?)
            }
            (None, None, None) => Amount::DurationSeconds(DEFAULT_WINDOW_SECONDS),
        };
        let points = points(spec, rules, rate)?;
        servers::check(spec, &points)?;
        rules.check(spec, rate)?;
        let requests = match (amount, rate) {
            (Amount::Requests(requests), _) => requests as f64,
            (Amount::DurationSeconds(seconds), Some(rate)) => rate * seconds,
            (Amount::DurationSeconds(_), None) => f64::INFINITY,
        };
        let most_connections = points.iter().map(|point| point.connections).max();
        if own_amount.is_none() && requests < 2.0 * most_connections.map_or(0.0, f64::from) {
            return Err(SettingsError::TooManyConnections);
        }
        if let (None, Amount::Requests(requests), Some(_)) = (own_amount, amount, rate)
            && points
                .iter()
                .any(|point| requests.checked_rem(u64::from(point.connections)) != Some(0))
        {
            return Err(SettingsError::UnequalConnections);
        }
        let limits = limits(spec)?;
        let looks = looks(spec)?;
        let tie_within = match &spec.energy.tie_within {
            None => None,
            Some(share) => Some(number("energy.tieWithin", share)?),
        };
        let (claim_level, tie_level) =
            claim_levels(&looks, tie_within.is_some(), 1).ok_or(SettingsError::Looks)?;
        let blocks = looks.last().map_or(0, |look| look.blocks);
        check_size(spec, points.len(), blocks)?;
        Ok(Self {
            level: level_of(&looks, ERROR).ok_or(SettingsError::Looks)?,
            try_number: 1,
            claim_level,
            tie_level,
            tie_within,
            control: control(spec)?,
            may_differ: rules.may_differ(spec),
            kind,
            units: rules.units(spec),
            blocks,
            looks,
            candidates: spec.candidates.iter().map(|c| c.name.clone()).collect(),
            amount,
            rate,
            sending: sending(spec, rules, rate)?,
            points,
            levels_of: load
                .sweep
                .as_ref()
                .filter(|_| !levels(spec).is_empty())
                .map(|it| it.of),
            max_error_ratio: match load.sweep.as_ref().and_then(|s| s.max_error_ratio.as_ref()) {
                None => None,
                Some(share) => Some(number("load.sweep.maxErrorRatio", share)?),
            },
            warm_up_seconds: seconds("load.warmUp", &load.warm_up)?,
            ramp_up_seconds: rules.ramp_up_seconds(spec)?,
            timeout_seconds: rules.timeout_seconds(spec)?,
            expected_status: rules.expected_status(spec),
            max_attempts: spec.trials.max_attempts,
            seed: spec.trials.seed.unsigned_abs(),
            idle_seconds: seconds("trials.idleBaseline", &spec.trials.idle_baseline)?,
            deadline_seconds: seconds("deadline", &spec.deadline)?,
            ttl_seconds: match &spec.ttl_after_finished {
                None => None,
                Some(ttl) => Some(seconds("ttlAfterFinished", ttl)?),
            },
            deciding: spec.energy.deciding_figure.unwrap_or(match rate {
                None => DecidingFigure::Gross,
                Some(_) => DecidingFigure::Net,
            }),
            boundary: spec.energy.boundary,
            equal: equal(spec, &limits),
            limits,
            no_baseline: no_baseline(spec)?,
            allow_modelled: spec.energy.allow_modelled,
            rates: NodeRates::of_candidates(spec)?,
        })
    }

    /// Whether windows are long enough for figures over time, as far as the spec shows it. A fixed number of
    /// requests at maximum rate may take any time.
    #[must_use]
    pub fn is_endurance(&self) -> bool {
        match (self.amount, self.rate) {
            (Amount::DurationSeconds(seconds), _) => seconds >= LONG_WINDOW_SECONDS,
            (Amount::Requests(_), _) if self.kind.rules().is_executed() => true,
            (Amount::Requests(requests), Some(rate)) => {
                requests as f64 / rate >= LONG_WINDOW_SECONDS
            }
            (Amount::Requests(requests), None) => requests >= ENDURANCE_REQUESTS,
        }
    }

    /// Whether the points have times of two kinds: at the levels of an open load they include waiting, and at the highest
    /// rate they do not. k6 sends at a rate, however long the answers take.
    #[must_use]
    pub fn mixes_times(&self) -> bool {
        self.levels_of.is_some() && self.kind.rules().is_sent_by_k6(self.sending)
    }

    /// Whether a budget limits joules or watts.
    #[must_use]
    pub fn gates_on_joules(&self) -> bool {
        // The first release is judged by the rule of the later ones.
        self.no_baseline.is_some() || self.limits.iter().any(|it| it.quantity.is_of_energy())
    }

    /// These settings for a later try of the same measurement. A later try has lower error levels for its claims.
    #[must_use]
    pub fn at_try(&self, number: usize) -> Cow<'_, Self> {
        if number == self.try_number {
            return Cow::Borrowed(self);
        }
        // If the level for several looks can't be computed, the error divided by the number of looks is stricter.
        let strict = claim_error(number) / self.looks.len() as f64;
        let (claim_level, tie_level) = claim_levels(&self.looks, self.tie_within.is_some(), number)
            .unwrap_or((strict, strict));
        Cow::Owned(Self {
            try_number: number,
            claim_level,
            tie_level,
            ..self.clone()
        })
    }

    /// Probability that this try makes a wrong claim at any of its looks: this try's share of [`ERROR`].
    #[must_use]
    pub fn claim_error(&self) -> f64 {
        claim_error(self.try_number)
    }

    /// Two-sided error of an interval at each look. All looks together have the error `overall`.
    #[must_use]
    pub fn level_of_looks(&self, overall: f64) -> Option<f64> {
        level_of(&self.looks, overall)
    }

    /// Costs of a joule and of a second on an entrant's node.
    #[must_use]
    pub fn rates(&self, entrant: &str, cost: Cost) -> Option<&CostRates> {
        let candidate = self.candidate_of(entrant);
        let index = self.candidates.iter().position(|name| name == candidate)?;
        self.rates.get(index)?.get(cost)
    }

    /// Names of all entrants of a block: the candidates, and the control's hidden name.
    #[must_use]
    pub fn entrants(&self) -> Vec<&str> {
        let hidden = self.control.iter().map(|control| control.hidden.as_str());
        let names = self.candidates.iter().map(String::as_str);
        names.chain(hidden).collect()
    }

    /// The candidate behind an entrant's name.
    #[must_use]
    pub fn candidate_of<'a>(&'a self, entrant: &'a str) -> &'a str {
        match &self.control {
            Some(control) if control.hidden == entrant => &control.candidate,
            _ => entrant,
        }
    }

    /// The blocks in their order; the first one has number 1. Each round has one block at each point, so a drift
    /// during the run affects all points equally. A drift within a round affects load levels and the point of the
    /// highest rate differently. More blocks extend the same plan.
    #[must_use]
    pub fn plan(&self) -> Vec<Block> {
        let (points, entrants) = (self.points.len(), self.entrants().len());
        // Each point has its own plan, which balances the orders at this point.
        let plans: Vec<Vec<Vec<usize>>> = (0..)
            .take(points)
            .map(|point| blocks(entrants, self.blocks, self.seed.wrapping_add(point)))
            .collect();
        let mut rounds = self.rounds();
        // If errors can end the sweep, the first round takes the points in ascending order.
        if self.max_error_ratio.is_some()
            && let Some(first) = rounds.first_mut()
        {
            first.sort_unstable();
        }
        rounds
            .iter()
            .enumerate()
            .flat_map(|(round, order)| order.iter().map(move |point| (round, *point)))
            .map(|(round, point)| Block {
                point,
                order: plans[point][round].clone(),
            })
            .collect()
    }

    /// The order of the points in each round. Load levels follow the point whose rates they are shares of.
    fn rounds(&self) -> Vec<Vec<usize>> {
        let points = self.points.len();
        if self.levels_of.is_none() {
            return blocks(points, self.blocks, !self.seed);
        }
        let of_levels = blocks(points - 1, self.blocks, !self.seed).into_iter();
        of_levels
            .map(|round| {
                let levels = round.into_iter().map(|level| level + 1);
                std::iter::once(POINT_OF_HIGHEST_RATE)
                    .chain(levels)
                    .collect()
            })
            .collect()
    }

    /// When the injector sends requests at a point.
    #[must_use]
    pub fn sending_at(&self, point: &Point) -> Sending {
        if self.levels_of.is_some() && point.level.is_none() {
            Sending::Closed
        } else {
            self.sending
        }
    }

    /// Whether k6 sends the load of a point, and not Fortio.
    #[must_use]
    pub fn is_sent_by_k6_at(&self, point: &Point) -> bool {
        self.kind.rules().is_sent_by_k6(self.sending_at(point))
    }

    /// The block that measures the highest rates for the load levels of a block's round. Blocks begin with 1.
    #[must_use]
    pub fn block_of_highest_rates(&self, block: i32) -> usize {
        let index = usize::try_from(block - 1).unwrap_or(0);
        index - index % self.points.len().max(1) + 1
    }

    /// Whether the load of a point has a rate.
    #[must_use]
    pub fn has_rate_at(&self, point: &Point) -> bool {
        self.rate.is_some() || point.level.is_some()
    }

    /// The point with this name.
    #[must_use]
    pub fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name)
    }

    /// The point of a block; the first block has number 1.
    #[must_use]
    pub fn point_of(&self, block: i32) -> Option<&Point> {
        let index = usize::try_from(block).ok()?.checked_sub(1)?;
        self.points.get(self.plan().get(index)?.point)
    }

    /// Name of the block's point. If the block is unknown, the name is empty, or the only point's name.
    #[must_use]
    pub fn point_name_of(&self, block: i32) -> &str {
        match self.points.as_slice() {
            [only] => &only.name,
            _ => self.point_of(block).map_or("", |point| &point.name),
        }
    }
}

/// The hidden name is a hash, and differs from all candidates' names.
fn control(spec: &FrugalityBenchmarkSpec) -> Result<Option<Control>, SettingsError> {
    let Some(candidate) = &spec.trials.control else {
        return Ok(None);
    };
    let is_taken = |name: &str| spec.candidates.iter().any(|c| c.name == name);
    if !is_taken(candidate) {
        return Err(no_candidate("trials.control", candidate));
    }
    // There is one salt more than candidates, so at least one of these names is free.
    let hidden = (0..=spec.candidates.len())
        .map(|salt| format!("{candidate} {} {salt}", spec.trials.seed))
        .map(|text| format!("c{}", hex_digest(text.as_bytes(), 4)))
        .find(|name| !is_taken(name));
    Ok(hidden.map(|hidden| Control {
        candidate: candidate.clone(),
        hidden,
    }))
}
