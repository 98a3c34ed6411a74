//! A benchmark's spec, parsed: what admission could not check is checked here, and everything
//! after this works on numbers.

mod batch;
pub mod costs;
mod error;
pub mod pods;
pub mod postgresql;
mod servers;
mod units;

use std::borrow::Cow;

use frugality_measure::{
    energy::LONG_WINDOW_SECONDS,
    fortio::Amount,
    order::blocks,
    statistics::{multiplicity::share_of_try, sequential::nominal_level},
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

pub use crate::plan::settings::{error::SettingsError, units::Units};
use crate::{
    api::{
        Arrivals, Boundary, Budget, DEFAULT_CONNECTIONS, DecidingFigure, Decimal,
        FrugalityBenchmarkSpec, HumanDuration, MAX_BLOCKS_OF_SWEEP, MAX_POINTS, MAX_RESULTS,
        MIN_BLOCKS, Sweep,
    },
    digest::hex_digest,
    plan::settings::costs::{Cost, NodeRates, Rates},
};

/// Window where the spec names neither duration nor requests.
const DEFAULT_WINDOW_SECONDS: f64 = 60.0;

/// Requests at the greatest rate that are taken for an endurance run: ten minutes at 1,667 requests/s. To have each
/// written down costs the injector some time, which shorter runs shall not have.
const ENDURANCE_REQUESTS: u64 = 1_000_000;

/// Chance of an interval to miss the true value, and of all looks of all tries together to call something
/// different that is not.
pub const ERROR: f64 = 0.05;

/// A limit on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Joules per successful request, of the deciding figure.
    JoulesPerRequest,
    /// Mean milliseconds of a successful request.
    MillisecondsPerRequest,
    /// Successful requests per second.
    RequestsPerSecond,
    /// Share of requests without an expected answer.
    ErrorRatio,
    /// Deciding figure over another candidate's.
    EnergyRatio,
}

impl Quantity {
    /// Field of the budget.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::JoulesPerRequest => "maxJoulesPerRequest",
            Self::MillisecondsPerRequest => "maxMillisecondsPerRequest",
            Self::RequestsPerSecond => "minRequestsPerSecond",
            Self::ErrorRatio => "maxErrorRatio",
            Self::EnergyRatio => "maxEnergyRatio",
        }
    }

    /// Whether a candidate that the injector limits would be as good or better without that limit, in a closed loop:
    /// more requests/s, and by Little's law less time for each.
    #[must_use]
    pub fn gains_by_pace(self) -> bool {
        matches!(self, Self::RequestsPerSecond | Self::MillisecondsPerRequest)
    }

    /// Whether the limit is the least (else the most) that is allowed.
    #[must_use]
    pub fn is_minimum(self) -> bool {
        self == Self::RequestsPerSecond
    }
}

/// One limit of a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Candidate.
    pub candidate: String,
    /// What is limited.
    pub quantity: Quantity,
    /// Limit, in the unit of the quantity.
    pub value: f64,
    /// The same as the user wrote it.
    pub written: String,
    /// The other candidate of a ratio.
    pub against: Option<String>,
}

/// A number of blocks after which the run is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Which one, from 1.
    pub number: usize,
    /// Blocks that it rests on.
    pub blocks: usize,
}

/// One combination of load settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its name, for example `c4-max`, or with three replicas of every server that scales `c4-max-x3`.
    pub name: String,
    /// Connections.
    pub connections: u32,
    /// Pods of every candidate, or of each of its backends where it has some; `None`: each one's own number.
    pub replicas: Option<i32>,
}

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

/// In what candidates that are compared may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayDiffer {
    /// The size of their answers; so it is with a scenario.
    pub responses: bool,
    /// The requests of a cycle; so it is without a scenario.
    pub requests: bool,
    /// The database's transactions for a request; so it is without a database, and with a batch.
    pub queries: bool,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// After the answer to the connection's last one. At a rate, a connection that is late sends what it missed.
    Closed,
    /// The same, but a connection that is late skips what it missed.
    Skipping,
    /// When they are due, whether or not earlier ones are answered.
    Open,
}

/// What counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Requests, each like the others.
    Requests,
    /// Runs of a script.
    Cycles,
    /// Executions of a program.
    Executions,
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
    /// What is counted.
    pub counted: Counted,
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
        let (request, scenario) = (spec.request.as_ref(), spec.scenario.as_ref());
        let batch = spec.batch.as_ref();
        let counted = match (request, scenario, batch) {
            (Some(_), None, None) => Counted::Requests,
            (None, Some(_), None) => Counted::Cycles,
            (None, None, Some(_)) => Counted::Executions,
            _ => return Err(SettingsError::OneLoad),
        };
        let rate = rate(&load.rate)?;
        let of_batch = batch::amount(batch);
        let amount = match (of_batch, &load.requests, &load.duration) {
            (Some(executions), _, _) => executions,
            (None, Some(requests), _) => Amount::Requests(requests.unsigned_abs()),
            (None, None, Some(duration)) => {
                Amount::DurationSeconds(seconds("load.duration", duration)?)
            }
            (None, None, None) => Amount::DurationSeconds(DEFAULT_WINDOW_SECONDS),
        };
        let points = points(spec, rate)?;
        servers::check(spec, &points)?;
        batch::check(spec, rate)?;
        let requests = match (amount, rate) {
            (Amount::Requests(requests), _) => requests as f64,
            (Amount::DurationSeconds(seconds), Some(rate)) => rate * seconds,
            (Amount::DurationSeconds(_), None) => f64::INFINITY,
        };
        let most = points.iter().map(|point| point.connections).max();
        if of_batch.is_none() && requests < 2.0 * most.map_or(0.0, f64::from) {
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
            may_differ: may_differ(spec),
            counted,
            units: Units::of(spec),
            only_reads: request.is_some_and(|it| it.method.is_safe()),
            blocks,
            looks,
            candidates: spec.candidates.iter().map(|c| c.name.clone()).collect(),
            amount,
            rate,
            sending: sending(spec, rate)?,
            points,
            max_error_ratio: match load.sweep.as_ref().and_then(|s| s.max_error_ratio.as_ref()) {
                None => None,
                Some(share) => Some(number("load.sweep.maxErrorRatio", share)?),
            },
            warm_up_seconds: seconds("load.warmUp", &load.warm_up)?,
            ramp_up_seconds: match scenario.and_then(|it| it.ramp_up.as_ref()) {
                None => 0.0,
                Some(length) => seconds("scenario.rampUp", length)?,
            },
            timeout_seconds: match batch {
                None => seconds("load.timeout", &load.timeout)?,
                Some(batch) => seconds("batch.timeout", &batch.timeout)?,
            },
            expected_status: request
                .iter()
                .flat_map(|it| &it.expected_status)
                .filter_map(|code| u16::try_from(*code).ok())
                .collect(),
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
            (Amount::Requests(_), _) if self.counted == Counted::Executions => true,
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

/// Arrivals that only requests at a rate for some time have are refused.
fn sending(spec: &FrugalityBenchmarkSpec, rate: Option<f64>) -> Result<Sending, SettingsError> {
    let load = &spec.load;
    let is_at_rate = spec.request.is_some() && rate.is_some() && load.requests.is_none();
    match (load.arrivals, load.catch_up) {
        (Arrivals::Closed, true) => Ok(Sending::Closed),
        (Arrivals::Closed, false) if is_at_rate => Ok(Sending::Skipping),
        (Arrivals::Open, true) if is_at_rate => Ok(Sending::Open),
        _ => Err(SettingsError::Arrivals),
    }
}

fn may_differ(spec: &FrugalityBenchmarkSpec) -> MayDiffer {
    let (request, scenario) = (spec.request.as_ref(), spec.scenario.as_ref());
    MayDiffer {
        responses: request.is_none_or(|it| it.responses_may_differ),
        requests: scenario.is_none_or(|it| it.requests_may_differ),
        queries: spec.database.is_none()
            || spec.batch.is_some()
            || request.is_some_and(|it| it.queries_may_differ)
            || scenario.is_some_and(|it| it.queries_may_differ),
    }
}

fn points(spec: &FrugalityBenchmarkSpec, rate: Option<f64>) -> Result<Vec<Point>, SettingsError> {
    let sweep = spec.load.sweep.as_ref();
    let one = [spec.load.connections.unwrap_or(match spec.batch {
        Some(_) => 1,
        None => DEFAULT_CONNECTIONS,
    })];
    let of = |list: fn(&Sweep) -> &[i32]| sweep.map(list).filter(|list| !list.is_empty());
    let connections = of(|sweep| &sweep.connections).unwrap_or(&one);
    let replicas = of(|sweep| &sweep.replicas);
    let points: Vec<Point> = connections
        .iter()
        .flat_map(|connections| match replicas {
            None => vec![point(*connections, rate, None)],
            Some(replicas) => replicas
                .iter()
                .map(|replicas| point(*connections, rate, Some(*replicas)))
                .collect(),
        })
        .collect();
    let ascends = |list: &[i32]| list.windows(2).all(|pair| pair[0] < pair[1]);
    let is_possible = ascends(connections)
        && replicas.is_none_or(ascends)
        && (2..=MAX_POINTS).contains(&points.len());
    match sweep {
        Some(sweep)
            if !is_possible || (sweep.max_error_ratio.is_some() && connections.len() < 2) =>
        {
            Err(SettingsError::Sweep)
        }
        _ => Ok(points),
    }
}

/// Blocks have names, and results room, up to some number of them.
fn check_size(
    spec: &FrugalityBenchmarkSpec,
    points: usize,
    blocks: usize,
) -> Result<(), SettingsError> {
    let is_too_large =
        points * blocks > MAX_BLOCKS_OF_SWEEP || points * spec.candidates.len() > MAX_RESULTS;
    if spec.load.sweep.is_some() && is_too_large {
        return Err(SettingsError::SweepTooLarge);
    }
    Ok(())
}

fn point(connections: i32, rate: Option<f64>, replicas: Option<i32>) -> Point {
    let rate = rate.map_or_else(|| "max".to_owned(), |rate| format!("r{rate}"));
    let pods = replicas.map_or_else(String::new, |replicas| format!("-x{replicas}"));
    Point {
        name: format!("c{connections}-{rate}{pods}"),
        connections: connections.unsigned_abs(),
        replicas,
    }
}

fn claim_error(try_number: usize) -> f64 {
    ERROR * share_of_try(try_number)
}

/// Two-sided error of each claim's interval, and error of each of the two one-sided tests for a tie, at each look. Two
/// one-sided tests are an interval of twice their error.
fn claim_levels(looks: &[Look], asks_for_tie: bool, try_number: usize) -> Option<(f64, f64)> {
    let error = claim_error(try_number);
    let tie = if asks_for_tie {
        level_of(looks, 2.0 * error)? / 2.0
    } else {
        error
    };
    Some((level_of(looks, error)?, tie))
}

fn level_of(looks: &[Look], overall: f64) -> Option<f64> {
    match looks {
        [_] => Some(overall),
        several => {
            let blocks: Vec<usize> = several.iter().map(|look| look.blocks).collect();
            nominal_level(&blocks, overall)
        }
    }
}

fn looks(spec: &FrugalityBenchmarkSpec) -> Result<Vec<Look>, SettingsError> {
    let counts = match spec.trials.looks.as_slice() {
        [] => std::slice::from_ref(&spec.trials.blocks),
        looks => {
            if looks[0] < MIN_BLOCKS || looks.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(SettingsError::Looks);
            }
            looks
        }
    };
    Ok((1..)
        .zip(counts)
        .map(|(number, blocks)| Look {
            number,
            blocks: usize::try_from(*blocks).unwrap_or_default(),
        })
        .collect())
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

fn no_candidate(field: &'static str, name: &str) -> SettingsError {
    SettingsError::NoCandidate {
        field,
        name: name.to_owned(),
    }
}

pub(super) fn number(field: &'static str, decimal: &Decimal) -> Result<f64, SettingsError> {
    decimal
        .number()
        .map_err(|source| SettingsError::Quantity { field, source })
}

fn rate(rate: &IntOrString) -> Result<Option<f64>, SettingsError> {
    match rate {
        IntOrString::String(text) if text == "Max" => Ok(None),
        IntOrString::Int(rate) if *rate > 0 => Ok(Some(f64::from(*rate))),
        IntOrString::Int(rate) => Err(SettingsError::Rate(rate.to_string())),
        IntOrString::String(text) => Err(SettingsError::Rate(text.clone())),
    }
}

pub(super) fn seconds(field: &'static str, duration: &HumanDuration) -> Result<f64, SettingsError> {
    duration
        .seconds()
        .map_err(|source| SettingsError::Quantity { field, source })
}

fn against(spec: &FrugalityBenchmarkSpec, budget: &Budget) -> Result<String, SettingsError> {
    let name = budget.against.clone().unwrap_or_default();
    if name == budget.candidate || !spec.candidates.iter().any(|c| c.name == name) {
        return Err(no_candidate("budgets.against", &name));
    }
    Ok(name)
}

fn limits(spec: &FrugalityBenchmarkSpec) -> Result<Vec<Limit>, SettingsError> {
    let mut limits = Vec::new();
    for budget in &spec.budgets {
        for (quantity, decimal) in [
            (Quantity::JoulesPerRequest, &budget.max_joules_per_request),
            (
                Quantity::MillisecondsPerRequest,
                &budget.max_milliseconds_per_request,
            ),
            (Quantity::RequestsPerSecond, &budget.min_requests_per_second),
            (Quantity::ErrorRatio, &budget.max_error_ratio),
            (Quantity::EnergyRatio, &budget.max_energy_ratio),
        ] {
            let Some(decimal) = decimal else { continue };
            let against = match quantity {
                Quantity::EnergyRatio => Some(against(spec, budget)?),
                _ => None,
            };
            limits.push(Limit {
                candidate: budget.candidate.clone(),
                quantity,
                value: number(quantity.field(), decimal)?,
                written: decimal.to_string(),
                against,
            });
        }
    }
    Ok(limits)
}
