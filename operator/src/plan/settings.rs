//! A benchmark's spec, parsed: what admission could not check is checked here, and everything
//! after this works on numbers.

use frugality_measure::fortio::Amount;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::api::{Boundary, DecidingFigure, FrugalityBenchmarkSpec, HumanDuration, QuantityError};

/// Window where the spec names neither duration nor requests.
const DEFAULT_WINDOW_SECONDS: f64 = 60.0;

/// Load after the measured window, so that its end lies inside steady load. Longer than the
/// largest clock offset that passes the checks, and than a meter's interval.
pub const TAIL_SECONDS: f64 = 3.0;

/// A spec that can't be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A duration or decimal that can't be read.
    #[error("{field}: {source}")]
    Quantity {
        /// Field of the spec.
        field: &'static str,
        /// What is wrong.
        source: QuantityError,
    },
    /// A rate that is neither `Max` nor a positive number.
    #[error("load.rate must be Max or a whole number of requests per second, not `{0}`")]
    Rate(String),
}

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
        }
    }

    /// Unit for people.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::JoulesPerRequest => "J/request",
            Self::MillisecondsPerRequest => "ms/request",
            Self::RequestsPerSecond => "requests/s",
            Self::ErrorRatio => "errors/request",
        }
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
    /// Connections.
    pub connections: u32,
    /// Warm-up in seconds.
    pub warm_up_seconds: f64,
    /// Timeout of a request in seconds.
    pub timeout_seconds: f64,
    /// Codes that count as success.
    pub expected_status: Vec<u16>,
    /// Blocks.
    pub blocks: usize,
    /// Tries at a block.
    pub max_attempts: i32,
    /// Seed of the order.
    pub seed: u64,
    /// Length of each idle baseline in seconds.
    pub idle_seconds: f64,
    /// Longest time of a run in seconds.
    pub deadline_seconds: f64,
    /// Figure that decides.
    pub deciding: DecidingFigure,
    /// What attributed joules cover.
    pub boundary: Boundary,
    /// Limits, in the spec's order.
    pub limits: Vec<Limit>,
    /// Whether modelled joules may decide a budget.
    pub allow_modelled: bool,
    /// Name of the point, for example `c4-max`.
    pub point: String,
}

impl Settings {
    /// Reads a spec.
    pub fn parse(spec: &FrugalityBenchmarkSpec) -> Result<Self, SettingsError> {
        let load = &spec.load;
        let rate = rate(&load.rate)?;
        let amount = match (&load.requests, &load.duration) {
            (Some(requests), _) => Amount::Requests(requests.unsigned_abs()),
            (None, Some(duration)) => Amount::DurationSeconds(seconds("load.duration", duration)?),
            (None, None) => Amount::DurationSeconds(DEFAULT_WINDOW_SECONDS),
        };
        Ok(Self {
            candidates: spec.candidates.iter().map(|c| c.name.clone()).collect(),
            amount,
            rate,
            connections: load.connections.unsigned_abs(),
            warm_up_seconds: seconds("load.warmUp", &load.warm_up)?,
            timeout_seconds: seconds("load.timeout", &load.timeout)?,
            expected_status: spec
                .request
                .expected_status
                .iter()
                .filter_map(|code| u16::try_from(*code).ok())
                .collect(),
            blocks: usize::try_from(spec.trials.blocks).unwrap_or_default(),
            max_attempts: spec.trials.max_attempts,
            seed: spec.trials.seed.unsigned_abs(),
            idle_seconds: seconds("trials.idleBaseline", &spec.trials.idle_baseline)?,
            deadline_seconds: seconds("deadline", &spec.deadline)?,
            deciding: spec.energy.deciding_figure.unwrap_or(match rate {
                None => DecidingFigure::Gross,
                Some(_) => DecidingFigure::Net,
            }),
            boundary: spec.energy.boundary,
            limits: limits(spec)?,
            allow_modelled: spec.energy.allow_modelled,
            point: match rate {
                None => format!("c{}-max", load.connections),
                Some(rate) => format!("c{}-r{rate}", load.connections),
            },
        })
    }

    /// Whether a joule decides a budget.
    #[must_use]
    pub fn gates_on_joules(&self) -> bool {
        self.limits
            .iter()
            .any(|limit| limit.quantity == Quantity::JoulesPerRequest)
    }

    /// Order of the candidates in each block.
    #[must_use]
    pub fn order(&self) -> Vec<Vec<usize>> {
        frugality_measure::order::blocks(self.candidates.len(), self.blocks, self.seed)
    }
}

fn rate(rate: &IntOrString) -> Result<Option<f64>, SettingsError> {
    match rate {
        IntOrString::String(text) if text == "Max" => Ok(None),
        IntOrString::Int(rate) if *rate > 0 => Ok(Some(f64::from(*rate))),
        IntOrString::Int(rate) => Err(SettingsError::Rate(rate.to_string())),
        IntOrString::String(text) => Err(SettingsError::Rate(text.clone())),
    }
}

fn seconds(field: &'static str, duration: &HumanDuration) -> Result<f64, SettingsError> {
    duration
        .seconds()
        .map_err(|source| SettingsError::Quantity { field, source })
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
        ] {
            let Some(decimal) = decimal else { continue };
            limits.push(Limit {
                candidate: budget.candidate.clone(),
                quantity,
                value: decimal.number().map_err(|source| SettingsError::Quantity {
                    field: quantity.field(),
                    source,
                })?,
            });
        }
    }
    Ok(limits)
}
