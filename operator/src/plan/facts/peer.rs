//! Another benchmark, as the queue for the nodes sees it.

use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    api::{FrugalityBenchmark, FrugalityBenchmarkStatus, PastVerdict, Reason, Verdict},
    plan::facts::placement::PlacementRequest,
};

/// Another benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    /// `namespace/name`.
    pub name: String,
    /// UID.
    pub uid: String,
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: i64,
    /// When its last run with nodes ended, in Unix seconds; `None` if it never had nodes.
    pub last_turn_unix_seconds: Option<i64>,
    /// Whether the benchmark needs no nodes now: its current generation has ended, it is suspended, or it is being
    /// deleted.
    pub rests: bool,
    /// Where it is to run; `None` if its stored form can't be read.
    pub request: Option<PlacementRequest>,
    /// Names of the nodes that its run began on, the injector's last. The run continues on no others. Empty if the run
    /// has no attempt, or if the benchmark rests.
    pub began_on: Vec<String>,
}

impl Peer {
    /// A readable benchmark as the others see it.
    #[must_use]
    pub fn of(benchmark: &FrugalityBenchmark) -> Self {
        let stored = Self::unreadable(benchmark);
        let rests = benchmark.is_complete() || benchmark.spec.suspend || stored.rests;
        Self {
            last_turn_unix_seconds: last_turn_unix_seconds(benchmark),
            request: Some(PlacementRequest::of(&benchmark.spec)),
            began_on: if rests {
                Vec::new()
            } else {
                began_on(benchmark)
            },
            rests,
            ..stored
        }
    }

    /// A benchmark whose metadata alone can be read. It may hold locks, but never waits for any.
    #[must_use]
    pub fn unreadable(stored: &impl ResourceExt) -> Self {
        Self {
            name: format!(
                "{}/{}",
                stored.namespace().unwrap_or_default(),
                stored.name_any()
            ),
            uid: stored.uid().unwrap_or_default(),
            created_unix_seconds: stored
                .creation_timestamp()
                .map_or(0, |time| time.0.as_second()),
            last_turn_unix_seconds: None,
            rests: stored.meta().deletion_timestamp.is_some(),
            request: None,
            began_on: Vec::new(),
        }
    }
}

/// The nodes of the spec's run, if the status describes that run and the run has attempts.
fn began_on(benchmark: &FrugalityBenchmark) -> Vec<String> {
    let is_of_run = |it: &&FrugalityBenchmarkStatus| {
        it.observed_generation == benchmark.metadata.generation && has_attempts(it)
    };
    let Some(status) = benchmark.current_status().filter(is_of_run) else {
        return Vec::new();
    };
    let measured = status.measured_node.iter().flat_map(|it| it.split(", "));
    let mut names: Vec<String> = measured.map(str::to_owned).collect();
    names.extend(status.injector_node.clone());
    names.dedup();
    names
}

fn has_attempts(status: &FrugalityBenchmarkStatus) -> bool {
    let progress = status.progress.as_ref();
    progress.is_some_and(|it| it.trials_done + it.void_attempts > 0)
}

/// The end of the newest run that had nodes.
fn last_turn_unix_seconds(benchmark: &FrugalityBenchmark) -> Option<i64> {
    let status = benchmark.current_status()?;
    let current = status
        .end()
        .filter(|end| had_turn(has_attempts(status), status.verdict, Some(&end.reason)))
        .map(|end| end.last_transition_time.0.as_second());
    let is_turn = |past: &&PastVerdict| {
        let verdict = Some(past.verdict);
        had_turn(past.provenance.is_some(), verdict, past.reason.as_deref())
    };
    let earlier = status.history.iter().filter(is_turn).filter_map(|past| {
        let ended: Timestamp = past.ended_at.as_ref()?.parse().ok()?;
        Some(ended.as_second())
    });
    earlier.chain(current).max()
}

/// Whether a run with this end had nodes. A run without attempts had nodes if its preparation failed, for example the
/// start of the database. If CloudNativePG or a permission is missing, the run ends before its turn.
fn had_turn(has_attempts: bool, verdict: Option<Verdict>, reason: Option<&str>) -> bool {
    let before_turn = [Reason::CloudNativePgMissing, Reason::NamespaceNotAllowed];
    has_attempts
        || (verdict == Some(Verdict::Error)
            && before_turn.iter().all(|it| Some(it.as_str()) != reason))
}
