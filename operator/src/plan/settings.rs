//! A benchmark's spec, parsed: what admission could not check is checked here, and everything
//! after this works on numbers.

pub mod costs;
mod error;
mod limits;
mod load;
mod looks;
pub mod pods;
pub mod postgresql;
mod servers;

use crate::{
    api::{Boundary, DecidingFigure, FrugalityBenchmarkSpec},
    digest::hex_digest,
    load::{
        LoadKind,
        read::{number, seconds},
        rules::{MayDiffer, Sending},
        units::Units,
    },
    plan::settings::{
        costs::{Cost, NodeRates, Rates},
        error::no_candidate,
        limits::limits,
        load::{DEFAULT_WINDOW_SECONDS, check_size, points, rate, sending},
        looks::{claim_error, claim_levels, level_of, looks},
    },
};
use std::borrow::Cow;

use frugality_measure::{energy::LONG_WINDOW_SECONDS, fortio::Amount, order::blocks};

pub use self::{
    error::SettingsError,
    limits::{Limit, Quantity},
    load::Point,
    looks::{ERROR, Look},
};

/// Requests at the greatest rate that are taken for an endurance run: ten minutes at 1,667 requests/s. To have each
/// written down costs the injector some time, which shorter runs shall not have.
const ENDURANCE_REQUESTS: u64 = 1_000_000;

/// One pass over all entrants at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the point in [`Settings::points`].
    pub point: usize,
    /// The entrants by index, in the order of their places.
    pub order: Vec<usize>,
}

/// A candidate that takes part twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Its name.
    pub candidate: String,
    /// Its other name, which tells nobody who it is.
    pub hidden: String,
}

/// A spec in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Names of the candidates, in the spec's order.
    pub candidates: Vec<String>,
    /// Amount of the measured run.
    pub amount: Amount,
    /// Requests per second over all connections; `None` is as fast as possible.
    pub rate: Option<f64>,
    /// When requests are sent.
    pub sending: Sending,
    /// Under which loads the candidates are tried; at least one, and by connections and replicas, ascending.
    pub points: Vec<Point>,
    /// Share of errors of every candidate beyond which no further points are tried.
    pub max_error_ratio: Option<f64>,
    /// Warm-up in seconds.
    pub warm_up_seconds: f64,
    /// For how long at its beginning agents join, in seconds.
    pub ramp_up_seconds: f64,
    /// Timeout of a request, a cycle or an execution, in seconds.
    pub timeout_seconds: f64,
    /// The kind of load.
    pub kind: LoadKind,
    /// What figures are told in.
    pub units: Units,
    /// Whether the load leaves the data as they are.
    pub only_reads: bool,
    /// Codes that count as success; none with a scenario, whose script says itself what it expects, or a batch.
    pub expected_status: Vec<u16>,
    /// Blocks at each point, at most: those of the last look.
    pub blocks: usize,
    /// When the run is judged, ascending; at least one, and the last one after all blocks.
    pub looks: Vec<Look>,
    /// Two-sided error of each interval that describes one candidate, such that all looks together have [`ERROR`].
    pub level: f64,
    /// Which try of the same measurement this is, from 1.
    pub try_number: usize,
    /// Two-sided error of each interval that a claim is decided on (a winner, a budget), such that all looks of all
    /// tries together have [`ERROR`].
    pub claim_level: f64,
    /// Error of each of the two one-sided tests for a tie, such that all looks of all tries together have [`ERROR`].
    pub tie_level: f64,
    /// Share by which candidates may differ and still be called equal.
    pub tie_within: Option<f64>,
    /// The A/A control.
    pub control: Option<Control>,
    /// In what candidates that are compared may differ.
    pub may_differ: MayDiffer,
    /// Tries at a block.
    pub max_attempts: i32,
    /// Seed of the order.
    pub seed: u64,
    /// Length of each idle baseline in seconds.
    pub idle_seconds: f64,
    /// Longest time of a run in seconds.
    pub deadline_seconds: f64,
    /// How long after its end the benchmark is deleted, in seconds; `None`: never.
    pub ttl_seconds: Option<f64>,
    /// Figure that decides.
    pub deciding: DecidingFigure,
    /// What attributed joules cover.
    pub boundary: Boundary,
    /// Limits, in the spec's order.
    pub limits: Vec<Limit>,
    /// Whether modelled joules may decide a budget.
    pub allow_modelled: bool,
    /// What a joule and a second of each candidate's node cost, in the order of the candidates.
    pub rates: Vec<NodeRates>,
}

impl Settings {
    /// Reads a spec.
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
        let most = points.iter().map(|point| point.connections).max();
        if own_amount.is_none() && requests < 2.0 * most.map_or(0.0, f64::from) {
            return Err(SettingsError::TooManyConnections);
        }
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
            only_reads: rules.only_reads(spec),
            blocks,
            looks,
            candidates: spec.candidates.iter().map(|c| c.name.clone()).collect(),
            amount,
            rate,
            sending: sending(spec, rules, rate)?,
            points,
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
            limits: limits(spec)?,
            allow_modelled: spec.energy.allow_modelled,
            rates: NodeRates::of_candidates(spec)?,
        })
    }

    /// Whether windows are so long that what shows only in time is told, as far as that is known beforehand: a number
    /// of requests at the greatest rate may be over at any time.
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

    /// Whether a joule decides a budget.
    #[must_use]
    pub fn gates_on_joules(&self) -> bool {
        self.limits.iter().any(|limit| {
            matches!(
                limit.quantity,
                Quantity::JoulesPerRequest | Quantity::EnergyRatio
            )
        })
    }

    /// The same settings for a later try of the same measurement: what it claims is decided more strictly.
    #[must_use]
    pub fn at_try(&self, number: usize) -> Cow<'_, Self> {
        if number == self.try_number {
            return Cow::Borrowed(self);
        }
        // Where the level of several looks is not found, the error divided among them is a stricter one.
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

    /// Chance that this try claims anything wrong, over all its looks: [`ERROR`], divided among the tries.
    #[must_use]
    pub fn claim_error(&self) -> f64 {
        claim_error(self.try_number)
    }

    /// Two-sided error of an interval at each look such that all looks together have `overall`.
    #[must_use]
    pub fn level_of_looks(&self, overall: f64) -> Option<f64> {
        level_of(&self.looks, overall)
    }

    /// What a joule and a second of an entrant's node cost.
    #[must_use]
    pub fn rates(&self, entrant: &str, cost: Cost) -> Option<&Rates> {
        let candidate = self.candidate_of(entrant);
        let index = self.candidates.iter().position(|name| name == candidate)?;
        self.rates.get(index)?.get(cost)
    }

    /// Names of all that take part in a block: the candidates, and the control's hidden name.
    #[must_use]
    pub fn entrants(&self) -> Vec<&str> {
        let hidden = self.control.iter().map(|control| control.hidden.as_str());
        let names = self.candidates.iter().map(String::as_str);
        names.chain(hidden).collect()
    }

    /// The candidate that takes part under a name.
    #[must_use]
    pub fn candidate_of<'a>(&'a self, entrant: &'a str) -> &'a str {
        match &self.control {
            Some(control) if control.hidden == entrant => &control.candidate,
            _ => entrant,
        }
    }

    /// The blocks in their order, numbered from 1. They go in rounds of one block at each point, so that what
    /// drifts in the course of the run is in all points alike; more blocks continue the same plan.
    #[must_use]
    pub fn plan(&self) -> Vec<Block> {
        let (points, entrants) = (self.points.len(), self.entrants().len());
        // Each point has a plan of its own, so that its orders are balanced by themselves.
        let plans: Vec<Vec<Vec<usize>>> = (0..)
            .take(points)
            .map(|point| blocks(entrants, self.blocks, self.seed.wrapping_add(point)))
            .collect();
        let mut rounds = blocks(points, self.blocks, !self.seed);
        // Where errors end the sweep, the points are tried from below once.
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

    /// The point of that name.
    #[must_use]
    pub fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name)
    }

    /// The point of the block of that number, from 1.
    #[must_use]
    pub fn point_of(&self, block: i32) -> Option<&Point> {
        let index = usize::try_from(block).ok()?.checked_sub(1)?;
        self.points.get(self.plan().get(index)?.point)
    }

    /// The name of that point; empty for what is of no block, unless there is one point only.
    #[must_use]
    pub fn point_name_of(&self, block: i32) -> &str {
        match self.points.as_slice() {
            [only] => &only.name,
            _ => self.point_of(block).map_or("", |point| &point.name),
        }
    }
}

/// The hidden name is a hash, and no candidate's.
fn control(spec: &FrugalityBenchmarkSpec) -> Result<Option<Control>, SettingsError> {
    let Some(candidate) = &spec.trials.control else {
        return Ok(None);
    };
    let is_taken = |name: &str| spec.candidates.iter().any(|c| c.name == name);
    if !is_taken(candidate) {
        return Err(no_candidate("trials.control", candidate));
    }
    // One more than there are candidates: one of them is free.
    let hidden = (0..=spec.candidates.len())
        .map(|salt| format!("{candidate} {} {salt}", spec.trials.seed))
        .map(|text| format!("c{}", hex_digest(text.as_bytes(), 4)))
        .find(|name| !is_taken(name));
    Ok(hidden.map(|hidden| Control {
        candidate: candidate.clone(),
        hidden,
    }))
}
