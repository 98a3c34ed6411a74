//! A program that runs to completion, instead of a server that is asked.

// The derives repeat the types in a private scope of their own.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    quantity::{Decimal, HumanDuration},
    status::Figure,
};

/// Candidates are programs that run to completion, such as a chess engine's benchmark or a ray tracer: the operator
/// has each one's `command` executed in its pod, one execution after another, and the measured window is made of
/// whole executions. An execution counts where a request does, or with `work` each unit of it: joules, rates, costs
/// and budgets are then per unit. One has failed that takes longer than `timeout`, ends with another exit code than
/// 0, or does not print its score or its work.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batch {
    /// Executions of each measured window. Absent: as many as begin within `load.duration`. A window of less than 20
    /// s is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub executions: Option<i32>,
    /// Longest time of an execution; then it is killed.
    #[serde(default = "default_timeout")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('1h')").message("batch.timeout must be from 1s to 1h; write for example 10m"))]
    pub timeout: HumanDuration,
    /// The score of an execution, as the program prints it: told as mean and standard deviation over all executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// The work that an execution is, where it is not the same for all candidates: for example the nodes that a chess
    /// engine has searched, or the bytes that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
}

fn default_timeout() -> HumanDuration {
    "10m".into()
}

/// How the score of an execution is read.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Score {
    /// Regular expression (of the Rust crate `regex-lite`, which is close to RE2) with one group, around the number:
    /// for example `Nodes/second *: ([0-9]+)`. It is looked for in what the program prints to standard output and
    /// standard error, of which the last 64 KiB are kept; where it matches several times, the last one counts.
    #[schemars(length(min = 3, max = 256))]
    #[x_kube(validation = Rule::new("self.contains('(')").message("batch.score.pattern has no group: put parentheses around the number, for example Nodes/second *: ([0-9]+)"))]
    pub pattern: String,
    /// What it counts, for people: for example `nodes/s`.
    #[schemars(length(min = 1, max = 24))]
    pub unit: String,
}

/// How the work of an execution is known.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.pattern) != has(self.amount)").message("batch.work needs either pattern (how it is read from what the program prints) or amount (how much each execution is), and not both"))]
pub struct Work {
    /// Regular expression with one group, around the number, as that of `score`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 256))]
    #[x_kube(validation = Rule::new("self.contains('(')").message("batch.work.pattern has no group: put parentheses around the number, for example Nodes searched *: ([0-9]+)"))]
    pub pattern: Option<String>,
    /// How much each execution is, for example `1000000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("batch.work.amount must be above 0"))]
    pub amount: Option<Decimal>,
    /// What it counts, in the singular: for example `node`. Joules are then per that.
    #[schemars(length(min = 1, max = 16))]
    pub unit: String,
}

/// What is told of a candidate's executions, beside what is told of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult {
    /// Executions that succeeded, of all trials together.
    pub executions: i64,
    /// Their scores; absent where none is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreResult>,
    /// Mean work of an execution; absent where it is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_per_execution: Option<f64>,
    /// What the work counts: joules and rates of this candidate are those of one of it. Absent: of an execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub work_unit: Option<String>,
    /// The joules that decide, of an execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules_per_execution: Option<Figure>,
}

/// Scores of all executions together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreResult {
    /// What it counts.
    #[schemars(length(max = 24))]
    pub unit: String,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation, of executions and not of the mean; absent for one alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_deviation: Option<f64>,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}
