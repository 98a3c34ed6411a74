//! The load that a benchmark asks for: connections, rate, amount, and several loads in turn.

// The derives repeat the types in a private scope of their own.
#![allow(unreachable_pub)]

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    candidate::MAX_REPLICAS,
    quantity::{Decimal, HumanDuration},
};

/// Connections where the spec names none; a batch has 1.
pub const DEFAULT_CONNECTIONS: i32 = 4;
/// The most points that a sweep may have: nine numbers of connections, each with three of replicas, and a few more.
pub const MAX_POINTS: usize = 32;
/// The most blocks over all points: their numbers have three digits in the names of trials.
pub const MAX_BLOCKS_OF_SWEEP: usize = 999;
/// The most results of a sweep, points × candidates: a result takes about 2 kB of the status, of which the API server
/// takes 1.5 MB, and comparisons come on top.
pub const MAX_RESULTS: usize = 128;
/// The most numbers of connections of a sweep: 1 to 1024 in doublings, and a few more.
const MAX_CONNECTIONS: usize = 16;

/// The load of one trial: a closed loop over a number of connections.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!(has(self.duration) && has(self.requests))").message("load takes duration or requests, not both"),
    validation = Rule::new("!has(self.duration) || (duration(self.duration) >= duration('20s') && duration(self.duration) <= duration('1h'))").message("load.duration must be from 20s to 1h: a shorter window is too short for the meters of small boards"),
    validation = Rule::new("(has(self.requests) ? self.requests : self.rate == 'Max' ? 1000000 : int(self.rate) * (has(self.duration) ? duration(self.duration).getSeconds() : 60)) >= 2 * (has(self.sweep) && has(self.sweep.connections) && self.sweep.connections.size() > 0 ? self.sweep.connections[self.sweep.connections.size() - 1] : has(self.connections) ? self.connections : 4)").message("load has less than two requests for each connection, and Fortio would use fewer connections: write fewer of them, or more requests, a longer duration or a higher rate"),
    validation = Rule::new("!has(self.requests) || self.rate == 'Max' || self.requests >= 20 * int(self.rate)").message("load.requests are sent in less than 20s at this load.rate, which is too short for the meters of small boards: write at least 20 × rate, or load.duration instead"),
    validation = Rule::new("!has(self.arrivals) || self.arrivals != 'Open' || (self.rate != 'Max' && !has(self.requests) && (!has(self.catchUp) || self.catchUp))").message("load.arrivals: Open sends requests at a rate for some time: write load.rate, for example 100, and leave load.requests and load.catchUp out"),
    validation = Rule::new("!has(self.catchUp) || self.catchUp || (self.rate != 'Max' && !has(self.requests))").message("load.catchUp: false skips requests that a rate makes due: write load.rate, for example 100, and load.duration instead of load.requests"),
)]
pub struct Load {
    /// Connections that each send one request at a time, 4 unless given; with a scenario, agents that each run it; with a
    /// batch 1. With `sweep.connections`, those count instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub connections: Option<i32>,
    /// Several loads in turn, instead of one: the figures at each, and where each candidate does best. A
    /// candidate wins, and a budget is kept, where it is so at all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Length of the measured window; 60s unless `requests` is given. With a batch, executions begin for that long, and
    /// the window ends when the last one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<HumanDuration>,
    /// Requests of the measured run, instead of a duration. A run of less than 20 s is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 100_000_000))]
    pub requests: Option<i64>,
    /// `Max`, or requests per second over all connections; with a scenario, cycles that begin each second. At an
    /// equal rate below every candidate's maximum, net energy decides; at `Max`, gross energy.
    #[serde(default = "default_rate")]
    #[x_kube(validation = Rule::new("type(self) == int ? (int(self) >= 1 && int(self) <= 1000000) : string(self) == 'Max'").message("load.rate must be Max or a whole number of requests per second from 1 to 1000000"))]
    pub rate: IntOrString,
    /// `Closed`: each connection sends its next request after the answer, at a `rate` when it is due. A slow answer delays
    /// the requests behind it, and their waiting is in no percentile (coordinated omission). `Open`, at a `rate`: k6 sends
    /// each request when it is due, whether or not earlier ones are answered. At most `connections` are under way; a request
    /// that finds none free is dropped, and times are then withheld. A scenario at a `rate` is always open.
    #[serde(default, skip_serializing_if = "Arrivals::is_closed")]
    pub arrivals: Arrivals,
    /// At a `rate`, whether a connection that is late sends the missed requests as soon as it can. `false`: it skips them.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub catch_up: bool,
    /// Load before the measured window, so that it begins in a steady state; with a batch, at least one execution.
    #[serde(default = "default_warm_up")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('2s') && duration(self) <= duration('10m')").message("load.warmUp must be from 2s to 10m"))]
    pub warm_up: HumanDuration,
    /// Longest time to wait for an answer; what takes longer counts as an error. With a scenario, the longest time
    /// of a cycle; with a batch, see `batch.timeout`.
    #[serde(default = "default_timeout")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('100ms') && duration(self) <= duration('1m')").message("load.timeout must be from 100ms to 1m"))]
    pub timeout: HumanDuration,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Arrivals {
    /// After the answer to the connection's last one.
    #[default]
    Closed,
    /// When they are due.
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

/// Several loads in turn, each a point of its own: every number of connections with every number of
/// replicas.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(
    validation = Rule::new("!has(self.connections) || [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15].all(i, i >= self.connections.size() || self.connections[i - 1] < self.connections[i])").message("load.sweep.connections must ascend, for example [1, 2, 4, 8, 16, 32, 64, 128, 256]"),
    validation = Rule::new("!has(self.replicas) || [1, 2, 3, 4, 5, 6, 7].all(i, i >= self.replicas.size() || self.replicas[i - 1] < self.replicas[i])").message("load.sweep.replicas must ascend, for example [1, 2, 3]"),
    validation = Rule::new("[(has(self.connections) && self.connections.size() > 0 ? self.connections.size() : 1) * (has(self.replicas) && self.replicas.size() > 0 ? self.replicas.size() : 1)].all(points, points >= 2 && points <= 32)").message("load.sweep has from 2 to 32 points, connections × replicas: write for example connections: [1, 2, 4, 8], or leave load.sweep out"),
    validation = Rule::new("!has(self.maxErrorRatio) || (has(self.connections) && self.connections.size() > 1)").message("load.sweep.maxErrorRatio ends a sweep over connections: write several of these, for example [1, 2, 4, 8]"),
)]
pub struct Sweep {
    /// Numbers of connections, ascending, for example `[1, 2, 4, 8, 16]`; absent: `load.connections`.
    /// `trials.blocks` counts the blocks at each point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_CONNECTIONS), inner(range(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub connections: Vec<i32>,
    /// Numbers of replicas, ascending, for example `[1, 2, 3]`: of every candidate, and where one has backends,
    /// of each of these instead. Absent: each one's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(range(min = 1, max = MAX_REPLICAS)), extend("x-kubernetes-list-type" = "atomic"))]
    pub replicas: Vec<i32>,
    /// Largest share of requests without an expected answer up to which more connections are tried, for
    /// example `0.01`: once every candidate's passes it in the first block at a point, the points above it
    /// are left out; that point itself is shown, but nobody has to win or to keep a budget there. The first
    /// blocks then go through the points from below. With replicas too, each number of them has an end of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) < 1.0").message("load.sweep.maxErrorRatio is a share from 0 to less than 1, for example 0.01"))]
    pub max_error_ratio: Option<Decimal>,
}
