//! The load of a benchmark: connections, rate, amount, and several loads in turn.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    candidate::MAX_REPLICAS,
    quantity::{Decimal, HumanDuration},
};

/// Connections if the spec gives no number; a batch has 1.
pub const DEFAULT_CONNECTIONS: i32 = 4;
/// Most points of a sweep: nine numbers of connections, each with three numbers of replicas, and a few more.
pub const MAX_POINTS: usize = 32;
/// Most blocks over all points, because block numbers have three digits in the names of trials.
pub const MAX_BLOCKS_OF_SWEEP: usize = 999;
/// Most results of a sweep, points × candidates. A result takes about 2 kB of the status, and comparisons take
/// more. The API server accepts 1.5 MB.
pub const MAX_RESULTS: usize = 128;
/// Most numbers of connections in a sweep: 1 to 1024 in doublings, and a few more.
const MAX_CONNECTIONS: usize = 16;
/// Most load levels in a sweep: the ten of SPECpower_ssj2008.
const MAX_LEVELS: usize = 10;

/// The load of one trial: a closed loop over a number of connections, unless `arrivals` is `Open`.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!(has(self.duration) && has(self.requests))").message("load takes duration or requests, not both"),
    validation = Rule::new("!has(self.duration) || (duration(self.duration) >= duration('20s') && duration(self.duration) <= duration('1h'))").message("load.duration must be from 20s to 1h: a shorter window is too short for the meters of small boards"),
    validation = Rule::new("(has(self.requests) ? self.requests : self.rate == 'Max' ? 1000000 : int(self.rate) * (has(self.duration) ? duration(self.duration).getSeconds() : 60)) >= 2 * (has(self.sweep) && has(self.sweep.connections) && self.sweep.connections.size() > 0 ? self.sweep.connections[self.sweep.connections.size() - 1] : has(self.connections) ? self.connections : 4)").message("load has less than two requests for each connection, and Fortio would use fewer connections: write fewer connections, more requests, a longer duration or a higher rate"),
    validation = Rule::new("!has(self.requests) || self.rate == 'Max' || self.requests >= 20 * int(self.rate)").message("load.requests are sent in less than 20s at this load.rate, which is too short for the meters of small boards: write at least 20 × rate, or load.duration instead"),
    validation = Rule::new("!has(self.requests) || self.rate == 'Max' || ((has(self.sweep) && has(self.sweep.connections) && self.sweep.connections.size() > 0) ? self.sweep.connections : [has(self.connections) ? self.connections : 4]).all(it, self.requests % it == 0)").message("load.requests must be a multiple of the connections at a load.rate: write another number of requests or connections, or load.duration instead"),
    validation = Rule::new("!has(self.arrivals) || self.arrivals != 'Open' || ((self.rate != 'Max' || (has(self.sweep) && has(self.sweep.levels) && self.sweep.levels.size() > 0)) && !has(self.requests) && (!has(self.catchUp) || self.catchUp))").message("load.arrivals: Open sends requests at a rate for some time: write load.rate, for example 100, or load.sweep.levels, and leave load.requests and load.catchUp out"),
    validation = Rule::new("!has(self.sweep) || !has(self.sweep.levels) || self.sweep.levels.size() == 0 || (self.rate == 'Max' && !has(self.requests))").message("load.sweep.levels are shares of the highest rate, which each block measures: leave load.rate and load.requests out, and write load.duration"),
    validation = Rule::new("!has(self.catchUp) || self.catchUp || (self.rate != 'Max' && !has(self.requests))").message("load.catchUp: false skips requests that a rate makes due: write load.rate, for example 100, and load.duration instead of load.requests"),
)]
pub struct Load {
    /// Number of connections; each sends one request at a time. Default: 4. With a scenario: number of agents;
    /// each runs the script. With a batch: 1. `sweep.connections` replaces this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub connections: Option<i32>,
    /// Several loads in turn, instead of one. The status shows the figures at each load, and where each candidate
    /// does best. A candidate wins only if it wins at every load. A limit of a budget is met only if it is met at
    /// every load, unless its description says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Length of the measured window. Default: 60s, unless `requests` is given. With a batch, executions begin
    /// within this time, and the window ends when the last execution ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<HumanDuration>,
    /// Number of requests in the measured run, instead of a duration. A run shorter than 20 s is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 100_000_000))]
    pub requests: Option<i64>,
    /// Rate of the load: `Max`, or requests per second over all connections. With a scenario: cycles that begin
    /// per second. At an equal rate below every candidate's maximum, net energy decides. At `Max`, gross energy
    /// decides.
    #[serde(default = "default_rate")]
    #[x_kube(validation = Rule::new("type(self) == int ? (int(self) >= 1 && int(self) <= 1000000) : string(self) == 'Max'").message("load.rate must be Max or a whole number of requests per second from 1 to 1000000"))]
    pub rate: IntOrString,
    /// When requests are sent. `Closed` (default): each connection sends its next request after the answer; at a
    /// `rate`, when the request is due. A slow answer delays the requests behind it, and no percentile includes
    /// their waiting (coordinated omission). `Open`, only at a `rate`: k6 sends each request when it is due, even
    /// if earlier requests are not answered. At most `connections` requests are under way. A request without a
    /// free connection is dropped, and times are then withheld. A scenario at a `rate` is always open.
    #[serde(default, skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// Whether a late connection sends missed requests as soon as it can, at a `rate`. Default: true. If false,
    /// the connection skips them.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub catch_up: bool,
    /// Length of the load before the measured window, which must begin in a steady state. With a batch, at least
    /// one execution.
    #[serde(default = "default_warm_up")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('2s') && duration(self) <= duration('10m')").message("load.warmUp must be from 2s to 10m"))]
    pub warm_up: HumanDuration,
    /// Longest time to wait for an answer. A request that takes longer counts as an error. With a scenario:
    /// longest time of a cycle. With a batch, `batch.timeout` applies instead.
    #[serde(default = "default_timeout")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('100ms') && duration(self) <= duration('1m')").message("load.timeout must be from 100ms to 1m"))]
    pub timeout: HumanDuration,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arrivals {
    /// After the answer to the connection's previous request.
    #[default]
    Closed,
    /// At their due times.
    Open,
}

impl Arrivals {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is serde's"
    )]
    fn is_closed(&self) -> bool {
        *self == Self::Closed
    }
}

fn yes() -> bool {
    true
}

fn default_rate() -> IntOrString {
    IntOrString::String("Max".into())
}

fn default_warm_up() -> HumanDuration {
    "10s".into()
}

fn default_timeout() -> HumanDuration {
    "3s".into()
}

impl Default for Load {
    fn default() -> Self {
        Self {
            connections: None,
            sweep: None,
            duration: None,
            requests: None,
            rate: default_rate(),
            arrivals: Arrivals::default(),
            catch_up: true,
            warm_up: default_warm_up(),
            timeout: default_timeout(),
        }
    }
}

/// Several loads in turn: points. Each combination of a number of connections and a number of replicas is a point, or
/// each load level.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.connections) || [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].all(i, i >= self.connections.size() || self.connections[i - 1] < self.connections[i])").message("load.sweep.connections must ascend, for example [1, 2, 4, 8, 16, 32, 64, 128, 256]"),
    validation = Rule::new("!has(self.replicas) || [1, 2, 3, 4, 5, 6, 7].all(i, i >= self.replicas.size() || self.replicas[i - 1] < self.replicas[i])").message("load.sweep.replicas must ascend, for example [1, 2, 3]"),
    validation = Rule::new("(has(self.levels) && self.levels.size() > 0) || [(has(self.connections) && self.connections.size() > 0 ? self.connections.size() : 1) * (has(self.replicas) && self.replicas.size() > 0 ? self.replicas.size() : 1)].all(points, points >= 2 && points <= 32)").message("load.sweep has from 2 to 32 points, connections × replicas: write for example connections: [1, 2, 4, 8], or leave load.sweep out"),
    validation = Rule::new("!has(self.maxErrorRatio) || (has(self.connections) && self.connections.size() > 1)").message("load.sweep.maxErrorRatio ends a sweep over connections: write several numbers of connections, for example [1, 2, 4, 8]"),
    validation = Rule::new("!has(self.levels) || self.levels.size() == 0 || (self.levels.size() > 1 && self.levels[0] == 100 && [1, 2, 3, 4, 5, 6, 7, 8, 9].all(i, i >= self.levels.size() || self.levels[i - 1] > self.levels[i]))").message("load.sweep.levels must begin with 100 and descend, for example [100, 80, 60, 40, 20, 10]"),
    validation = Rule::new("!has(self.levels) || self.levels.size() == 0 || ((!has(self.connections) || self.connections.size() == 0) && (!has(self.replicas) || self.replicas.size() == 0))").message("load.sweep takes levels, or connections and replicas: for levels with another number of connections, write load.connections"),
    validation = Rule::new("!has(self.of) || self.of == 'Own' || (has(self.levels) && self.levels.size() > 0)").message("load.sweep.of says whose highest rate the levels are shares of: write load.sweep.levels, for example [100, 80, 60, 40, 20, 10]"),
)]
pub struct Sweep {
    /// Numbers of connections, ascending, for example `[1, 2, 4, 8, 16]`. Default: `load.connections`.
    /// `trials.blocks` counts the blocks at each point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONNECTIONS), inner(range(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub connections: Vec<i32>,
    /// Numbers of replicas, ascending, for example `[1, 2, 3]`. They apply to every candidate's server. If a
    /// candidate has backends, they apply to each of its backends instead. Default: the `replicas` of each server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(range(min = 1, max = MAX_REPLICAS)), extend("x-kubernetes-list-type" = "atomic"))]
    pub replicas: Vec<i32>,
    /// Largest share of requests without an expected answer up to which the sweep tries more connections, for
    /// example `0.01`. If every candidate exceeds it in the first block at a point, the sweep leaves out the
    /// points with more connections. The status shows this last point, but the point affects neither winner nor
    /// budgets. The first blocks go through the points in ascending order. With `replicas`, each number of
    /// replicas has its own last point.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) < 1.0").message("load.sweep.maxErrorRatio is a share from 0 to less than 1, for example 0.01"))]
    pub max_error_ratio: Option<Decimal>,
    /// Load levels, in percent of the highest rate, for example `[100, 80, 60, 40, 20, 10]`. They begin with 100 and
    /// descend. Each block first measures every candidate at its highest rate, in a closed loop over
    /// `load.connections`. The other points then send that share of this rate, at even distances. The idle baselines
    /// are the level 0. The status shows what the candidates cost at part load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_LEVELS), inner(range(min = 1, max = 100)), extend("x-kubernetes-list-type" = "atomic"))]
    pub levels: Vec<i32>,
    /// Whose highest rate the levels are shares of. `Own` (default): the candidate's. `Common`: the lowest of the
    /// candidates' highest rates, so all candidates do the same work.
    #[serde(default, skip_serializing_if = "LevelsOf::is_own")]
    pub of: LevelsOf,
}

/// Whose highest rate load levels are shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LevelsOf {
    /// The candidate's own.
    #[default]
    Own,
    /// The lowest of all candidates' highest rates.
    Common,
}

impl LevelsOf {
    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is serde's"
    )]
    fn is_own(&self) -> bool {
        *self == Self::Own
    }
}
