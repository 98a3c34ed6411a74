//! A program that runs to completion, instead of a server that answers requests.

// The derive macros repeat the types in a private scope.
#![allow(unreachable_pub)]

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{
    figure::Figure,
    quantity::{Decimal, HumanDuration},
};

/// Candidates are programs that run to completion, such as a chess engine's benchmark or a ray tracer. The
/// operator executes each candidate's `command` in its pod, one execution after another. A measured window
/// contains whole executions. Figures are per execution. If `work` is set, joules, rates, costs and budgets are
/// per unit of work. An execution has failed if it takes longer than `timeout`, exits with a code other than 0, or
/// does not print its score or work.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Batch {
    /// Number of executions in each measured window. If absent, the window contains all executions that begin
    /// within `load.duration`. A window shorter than 20 s is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub executions: Option<i32>,
    /// Longest time of one execution. A longer execution is killed.
    #[serde(default = "default_timeout")]
    #[x_kube(validation = Rule::new("duration(self) >= duration('1s') && duration(self) <= duration('1h')").message("batch.timeout must be from 1s to 1h; write for example 10m"))]
    pub timeout: HumanDuration,
    /// How to read an execution's score from the program's output. The status reports mean and standard deviation
    /// over all executions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// How to determine the work of an execution, if it differs between candidates. Examples are the nodes that a
    /// chess engine searched, or the bytes that were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
}

fn default_timeout() -> HumanDuration {
    "10m".into()
}

/// How to read the score of an execution.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Score {
    /// Regular expression with one group, around the number: for example `Nodes/second *: ([0-9]+)`. The syntax is
    /// from the Rust crate `regex-lite`, which is close to RE2. The expression is matched against the program's
    /// standard output and standard error; the last 64 KiB are kept. If it matches several times, the last match
    /// counts.
    #[schemars(length(min = 3, max = 256))]
    #[x_kube(validation = Rule::new("self.contains('(')").message("batch.score.pattern has no group: put parentheses around the number, for example Nodes/second *: ([0-9]+)"))]
    pub pattern: String,
    /// Unit of the score, for people: for example `nodes/s`.
    #[schemars(length(min = 1, max = 24))]
    pub unit: String,
}

/// How to determine the work of an execution.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = Rule::new("has(self.pattern) != has(self.amount)").message("batch.work needs either pattern (finds the number in the program's output) or amount (work per execution), and not both"))]
pub struct Work {
    /// Regular expression with one group, around the number. Rules as for `score.pattern`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 256))]
    #[x_kube(validation = Rule::new("self.contains('(')").message("batch.work.pattern has no group: put parentheses around the number, for example Nodes searched *: ([0-9]+)"))]
    pub pattern: Option<String>,
    /// Work per execution, for example `1000000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("double(self) > 0.0").message("batch.work.amount must be above 0"))]
    pub amount: Option<Decimal>,
    /// Unit of work, in the singular: for example `node`. Joules are per unit.
    #[schemars(length(min = 1, max = 16))]
    pub unit: String,
}

/// Results of a candidate's executions, in addition to the results per request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult {
    /// Number of successful executions in all trials.
    pub executions: i64,
    /// Scores of these executions; absent if no score is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<ScoreResult>,
    /// Mean work per execution; absent if work is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_per_execution: Option<f64>,
    /// Unit of work. Joules and rates of this candidate are per unit. If absent, they are per execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub work_unit: Option<String>,
    /// Joules per execution, by the deciding figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joules_per_execution: Option<Figure>,
}

/// Statistics of the scores of all executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreResult {
    /// Unit of the score.
    #[schemars(length(max = 24))]
    pub unit: String,
    /// Arithmetic mean of the scores.
    pub mean: f64,
    /// Standard deviation of single executions, not of the mean; absent for a single execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_deviation: Option<f64>,
    /// Lowest score.
    pub least: f64,
    /// Highest score.
    pub most: f64,
}
