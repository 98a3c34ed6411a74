//! Asks the cluster again and again until a gate ends.

use std::time::Duration;

use frugality_operator::api::FrugalityBenchmark;
use tokio::time::{Instant, sleep, timeout};

use super::outcome::{GateOutcome, GateState, state};
use crate::cluster::{Cluster, ClusterError};

/// Longest time for one answer of the API server.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a gate waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Longest time until the verdict.
    pub(super) verdict: Duration,
    /// Longest time until the benchmark exists and measures the image of the release.
    pub(super) image: Duration,
    /// Time between two questions to the API server.
    pub(super) interval: Duration,
}

/// Why a gate could not be asked. The gate stays closed.
#[derive(Debug, thiserror::Error)]
pub(super) enum GateError {
    /// The cluster refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The answer is not a benchmark of this version.
    #[error(
        "the benchmark is not understood: {0}. Either its spec can't be read (`kubectl describe fb` has the reason), or kubectl-frugality has another version than the operator."
    )]
    NotABenchmark(#[from] serde_json::Error),
    /// The benchmark is being deleted.
    #[error("the benchmark {0} is being deleted, so it will have no verdict. Apply it again.")]
    Deleted(String),
}

/// How a gate ended.
#[derive(Debug)]
pub(super) struct GateEnd {
    /// Outcome.
    pub(super) outcome: GateOutcome,
    /// Reason for the outcome, for people.
    pub(super) message: String,
    /// The benchmark, if the outcome is its verdict. Otherwise its figures are not about this release.
    pub(super) benchmark: Option<FrugalityBenchmark>,
}

/// Waits for the verdict of the benchmark's current generation. `progress` gets a line for each change.
pub(super) async fn wait(
    cluster: &Cluster,
    name: &str,
    images: &[String],
    patience: Patience,
    mut progress: impl FnMut(&str),
) -> Result<GateEnd, GateError> {
    let start = Instant::now();
    let mut last = String::new();
    let mut is_matched = false;
    loop {
        let waited = start.elapsed();
        let line = match ask(cluster, name).await {
            Ok(benchmark) => {
                let state = state(&benchmark, images);
                is_matched |= !matches!(state, GateState::Ended(GateOutcome::OtherImage, _));
                match state {
                    GateState::Ended(GateOutcome::OtherImage, message)
                        if waited < patience.image =>
                    {
                        message
                    }
                    GateState::Ended(outcome, message) => {
                        return Ok(GateEnd {
                            outcome,
                            message,
                            benchmark: Some(benchmark).filter(|it| verdict_of(it) == Some(outcome)),
                        });
                    }
                    GateState::Waiting(line) => line,
                }
            }
            // A pipeline may replace the benchmark of the release before.
            Err(
                error @ (GateError::Deleted(_) | GateError::Cluster(ClusterError::NotFound { .. })),
            ) if !is_matched && waited < patience.image => match error {
                GateError::Deleted(name) => {
                    format!("the benchmark {name} is being deleted. Waiting for its replacement.")
                }
                other => other.to_string(),
            },
            Err(GateError::Cluster(error)) if error.passes() => error.to_string(),
            Err(error) => return Err(error),
        };
        if line != last {
            progress(&line);
            last = line;
        }
        if waited >= patience.verdict {
            return Ok(GateEnd {
                outcome: GateOutcome::NotEnded,
                message: format!(
                    "No verdict within {} s. Last state: {last}. Give a longer --timeout.",
                    patience.verdict.as_secs()
                ),
                benchmark: None,
            });
        }
        sleep(
            patience
                .interval
                .min(patience.verdict.saturating_sub(waited)),
        )
        .await;
    }
}

fn verdict_of(benchmark: &FrugalityBenchmark) -> Option<GateOutcome> {
    benchmark.current_status()?.verdict.map(GateOutcome::from)
}

impl GateEnd {
    /// What a gate without images would say about the benchmark now.
    pub(super) fn of(benchmark: &FrugalityBenchmark) -> Self {
        let (outcome, message) = match state(benchmark, &[]) {
            GateState::Ended(outcome, message) => (outcome, message),
            GateState::Waiting(line) => (GateOutcome::NotEnded, line),
        };
        Self {
            outcome,
            message,
            benchmark: Some(benchmark.clone()).filter(|it| verdict_of(it) == Some(outcome)),
        }
    }
}

impl From<GateError> for GateEnd {
    fn from(error: GateError) -> Self {
        Self {
            outcome: GateOutcome::Unknown,
            message: error.to_string(),
            benchmark: None,
        }
    }
}

async fn ask(cluster: &Cluster, name: &str) -> Result<FrugalityBenchmark, GateError> {
    let text = timeout(ANSWER, cluster.get::<FrugalityBenchmark>(name))
        .await
        .unwrap_or(Err(ClusterError::Silent(ANSWER.as_secs())))?;
    read(&text, name)
}

/// The benchmark in an answer of the API server, unless it is being deleted.
pub(super) fn read(text: &str, name: &str) -> Result<FrugalityBenchmark, GateError> {
    let benchmark: FrugalityBenchmark = serde_json::from_str(text)?;
    if benchmark.metadata.deletion_timestamp.is_some() {
        return Err(GateError::Deleted(name.to_owned()));
    }
    Ok(benchmark)
}
