//! Follows a run to its verdict: a live view on a terminal, a line per change elsewhere.

mod display;
pub mod view;

use std::{process::ExitCode, time::Duration};

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrial, LABEL_BENCHMARK_UID, Reason};
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::{
    ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, watch_object},
    },
};
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::{
    display::Display,
    view::{attempts, view},
};
use crate::{
    cluster::{Access, Cluster, ClusterError, refusal},
    gate::outcome::{GateOutcome, GateState, state},
    summarize::summary,
};

/// Help below the options.
pub const HELP: &str = "\
On a terminal the view changes in place. Elsewhere, for example in a pipeline, each change is a line with its time. Progress
goes to standard error, the result to standard output. Ctrl-C ends the view. The run continues.

Exit codes: the ones of gate (docs/cli.md has all of them)
   0  Pass
  10  Fail          11  Inconclusive    12  Invalid    13  Error
  15  Reported: there are no budgets, so nothing was judged
   1  the benchmark could not be read, or it was deleted
   2  the command line is wrong
 130  ended with Ctrl-C; the run goes on

Examples:
  kubectl frugality watch shop-release
  kubectl frugality watch shop-release --namespace shop 2>progress.log >result.txt";

/// Longest time for one answer of the API server.
const ANSWER: Duration = Duration::from_secs(30);
/// Time between two views on a terminal, whose time left counts down.
const TICK: Duration = Duration::from_secs(1);
/// Exit code after Ctrl-C, as shells have it: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// The options of `kubectl frugality watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct WatchOptions {
    /// Benchmark to follow.
    name: String,
    /// The cluster.
    #[command(flatten)]
    access: Access,
}

/// Why a run could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The cluster refused.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The benchmark is gone.
    #[error(
        "the benchmark {0} was deleted or is being deleted, so it will have no verdict. Apply it again."
    )]
    Deleted(String),
    /// Ctrl-C can't be caught.
    #[error("cannot catch Ctrl-C: {0}")]
    Signal(#[from] std::io::Error),
}

/// How following a run ended.
#[derive(Clone, Debug)]
pub enum Followed {
    /// With the run.
    Ended {
        /// Its outcome.
        outcome: GateOutcome,
        /// The reason code of the status.
        reason: Option<String>,
        /// The text for standard output.
        text: String,
    },
    /// With Ctrl-C.
    Interrupted,
}

impl Followed {
    /// The program's exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Ended { outcome, .. } => outcome.exit_code().into(),
            Self::Interrupted => INTERRUPTED.into(),
        }
    }

    /// The text for standard output.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Ended { text, .. } => text,
            Self::Interrupted => "",
        }
    }

    /// Whether the run ended for this reason.
    #[must_use]
    pub fn is_because(&self, of: Reason) -> bool {
        matches!(self, Self::Ended { reason: Some(reason), .. } if reason == of.as_str())
    }
}

impl WatchOptions {
    /// Follows the run.
    pub async fn run(&self) -> Result<Followed, WatchError> {
        let cluster = self.access.connect().await?;
        // A name that does not exist is an error, and no benchmark that was deleted.
        timeout(ANSWER, cluster.get::<FrugalityBenchmark>(&self.name))
            .await
            .unwrap_or(Err(ClusterError::Silent(ANSWER.as_secs())))?;
        follow(&cluster, &self.name).await
    }
}

/// Follows the run of a benchmark that exists, until it has a verdict for the current generation of its spec.
pub async fn follow(cluster: &Cluster, name: &str) -> Result<Followed, WatchError> {
    let display = Display::new(name);
    let followed = tokio::select! {
        followed = until_verdict(cluster, name, &display) => followed,
        interrupted = tokio::signal::ctrl_c() => interrupted.map(|()| Followed::Interrupted).map_err(WatchError::from),
    };
    display.close();
    if let Ok(Followed::Interrupted) = followed {
        let namespace = &cluster.namespace;
        eprintln!(
            "The run continues. To follow it: kubectl frugality watch {name} --namespace {namespace}\n\
             To end it: kubectl delete fb {name} --namespace {namespace}"
        );
    }
    followed
}

async fn until_verdict(
    cluster: &Cluster,
    name: &str,
    display: &Display,
) -> Result<Followed, WatchError> {
    let changes = watch_object(cluster.api::<FrugalityBenchmark>(), name).default_backoff();
    // On the heap, because it is large.
    let mut changes = Box::pin(changes);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen: Option<FrugalityBenchmark> = None;
    let mut trials: Vec<FrugalityTrial> = Vec::new();
    loop {
        tokio::select! {
            change = changes.next() => match change {
                Some(Ok(Some(benchmark))) if benchmark.metadata.deletion_timestamp.is_some() => {
                    return Err(WatchError::Deleted(name.to_owned()));
                }
                Some(Ok(Some(benchmark))) => {
                    if let Some(ended) = ended(cluster, &benchmark) {
                        return Ok(ended);
                    }
                    if is_of_other_trials(seen.as_ref(), &benchmark) {
                        trials = ledger(cluster, &benchmark).await.unwrap_or(trials);
                    }
                    seen = Some(benchmark);
                }
                Some(Ok(None)) | None => return Err(WatchError::Deleted(name.to_owned())),
                Some(Err(error)) => display.note(&lasting(error)?.to_string()),
            },
            _ = tick.tick() => {}
        }
        if let Some(benchmark) = &seen {
            display.attempts(&attempts(benchmark, &trials));
            display.show(&view(benchmark, &trials, Timestamp::now()));
        }
    }
}

/// The end of a run that has a verdict.
fn ended(cluster: &Cluster, benchmark: &FrugalityBenchmark) -> Option<Followed> {
    match state(benchmark, &[]) {
        GateState::Waiting(_) => None,
        GateState::Ended(outcome, message) => {
            let status = benchmark.current_status()?;
            let verdict = status.verdict?;
            let key = format!("{}/{}", cluster.namespace, benchmark.name_any());
            let text = format!("{}{key}: {verdict:?}: {message}\n", summary(benchmark));
            Some(Followed::Ended {
                outcome,
                reason: status.columns.as_ref().and_then(|it| it.reason.clone()),
                text,
            })
        }
    }
}

/// Whether the ledger has changed since the last look at it.
fn is_of_other_trials(seen: Option<&FrugalityBenchmark>, now: &FrugalityBenchmark) -> bool {
    let state = |benchmark: &FrugalityBenchmark| {
        let status = benchmark.current_status()?;
        let progress = status.progress.as_ref()?;
        let counts = (progress.trials_done, progress.void_attempts);
        Some((status.run.clone(), counts))
    };
    seen.is_none_or(|seen| state(seen) != state(now))
}

/// The benchmark's attempts. `None` if the user may not read them, or if the API server does not answer: the view then has
/// no figures.
async fn ledger(cluster: &Cluster, benchmark: &FrugalityBenchmark) -> Option<Vec<FrugalityTrial>> {
    let uid = benchmark.metadata.uid.as_ref()?;
    let selector = format!("{LABEL_BENCHMARK_UID}={uid}");
    let list = cluster.labelled::<FrugalityTrial>(&selector);
    timeout(ANSWER, list).await.ok()?.ok()
}

/// An error that the watch outlives. `Err` for one that would come again, such as a missing right.
fn lasting(error: watcher::Error) -> Result<ClusterError, ClusterError> {
    let error = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => refusal(error),
        watcher::Error::WatchError(status) => {
            // An old resource version: the watch lists again.
            return Ok(ClusterError::Refused {
                code: status.code,
                message: status.message.clone(),
            });
        }
        watcher::Error::NoResourceVersion => {
            return Err(ClusterError::NotInstalled(error.to_string()));
        }
    };
    if error.passes() {
        Ok(error)
    } else {
        Err(error)
    }
}
