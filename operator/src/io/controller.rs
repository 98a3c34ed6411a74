//! Reconcile: observe, plan, apply. Also handles failures of these.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::DeserializeGuard,
    runtime::{Controller, controller::Action, reflector::ObjectRef, watcher},
};
use tracing::{debug, error, info, warn};

use crate::{
    api::{FrugalityBenchmark, LABEL_LOCK, LOCK_OF_NODE},
    io::{
        apply::{Applied, Applier, ApplyError, only},
        metrics::{AttemptLabels, Metrics, ReconcileResult},
        moments::Moments,
        observe::{ObserveError, Places, lock, observe},
        probe::Prober,
        reader::Reader,
        unreadable,
    },
    plan::{
        action::Plan,
        facts::{Config, Refusal},
        names::run_id,
        plan,
    },
    time::unix_seconds,
};

/// Longest time of a pass. A longer pass hangs, because the client itself retries for minutes.
const PASS_TIMEOUT: Duration = Duration::from_secs(30);
/// First wait after a failed pass. It doubles with each failure, up to [`MAX_BACKOFF`].
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Time between two clean-ups after deleted benchmarks.
const TIDY_INTERVAL: Duration = Duration::from_secs(300);
/// Longest wait after failed passes.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// A pass that could not be completed. Every cause may be temporary; no error here is final.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The cluster could not be read.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The plan could not be carried out.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The status of an unreadable benchmark could not be written.
    #[error("cannot write the status of a benchmark that can't be read: {0}")]
    Unreadable(#[source] kube::Error),
    /// The pass took too long.
    #[error("the pass took longer than {} s", PASS_TIMEOUT.as_secs())]
    Timeout,
}

impl PassError {
    fn label(&self) -> ReconcileResult {
        match self {
            Self::Observe(_) => ReconcileResult::ObserveError,
            Self::Apply(_) | Self::Unreadable(_) => ReconcileResult::ApplyError,
            Self::Timeout => ReconcileResult::Timeout,
        }
    }
}

/// State that all passes share.
pub struct Context {
    client: Client,
    places: Places,
    config: Config,
    applier: Applier,
    reader: Reader,
    prober: Prober,
    metrics: Metrics,
    memory: Mutex<Memory>,
}

/// State between passes, by the benchmark's UID. A restart loses it without harm.
#[derive(Default)]
struct Memory {
    failures: HashMap<String, u32>,
    refusals: HashMap<String, (String, Refusal)>,
    reasons: HashMap<String, (String, f64)>,
}

impl Memory {
    /// Forgets all benchmarks except these.
    fn keep(&mut self, uids: &HashSet<String>) {
        self.failures.retain(|uid, _| uids.contains(uid));
        self.refusals.retain(|uid, _| uids.contains(uid));
        self.reasons.retain(|uid, _| uids.contains(uid));
    }
}

impl Context {
    /// The context of an operator.
    #[must_use]
    pub fn new(
        client: Client,
        places: Places,
        config: Config,
        reader: Reader,
        prober: Prober,
        metrics: Metrics,
        instance: Option<String>,
    ) -> Self {
        Self {
            applier: Applier {
                client: client.clone(),
                namespace: places.namespace.clone(),
                instance: instance.unwrap_or_else(|| "frugality-operator".into()),
                reader: reader.clone(),
                moments: Moments::default(),
            },
            client,
            places,
            config,
            reader,
            prober,
            metrics,
            memory: Mutex::default(),
        }
    }

    async fn pass(&self, benchmark: &FrugalityBenchmark) -> Result<Action, PassError> {
        let refused = self.refusal(benchmark);
        let seen = unix_seconds(Timestamp::now());
        let mut observed = Box::pin(observe(
            &self.client,
            &self.places,
            &self.reader,
            benchmark,
            refused,
            self.waiting_since(benchmark),
        ))
        .await?;
        // Under load, the probe's request would be measured.
        if !observed.is_under_load() {
            let seen_by_cluster = seen - observed.operator_ahead_seconds;
            self.prober.ask(&mut observed.pods, seen_by_cluster).await;
        }
        let now = unix_seconds(Timestamp::now());
        let plan = plan(benchmark, &observed, &self.config, now);
        debug!(?plan, "planned");
        self.remember_reason(benchmark, &plan);
        let requeue = Duration::try_from_secs_f64(plan.requeue_seconds).unwrap_or(MIN_BACKOFF);
        let ended = AttemptLabels::of(&plan);
        let status = plan.status.clone();
        let applied = self.applier.apply(benchmark, plan, seen).await?;
        // After a conflict the next plan has the same attempt, so it is not counted here. The operator writes
        // records before objects that the API server may refuse.
        if let (Some(ended), Applied::Done | Applied::Refused(_)) = (ended, &applied) {
            self.metrics.count_attempt(&ended);
        }
        if !matches!(applied, Applied::Overtaken) {
            let since = self.waiting_since(benchmark).map(|(_, since)| since);
            self.metrics.show(benchmark, &status, since);
        }
        match applied {
            Applied::Done => {
                self.forget_what_passed(benchmark);
                Ok(Action::requeue(requeue))
            }
            Applied::Overtaken => Ok(Action::requeue(MIN_BACKOFF)),
            Applied::Refused(refusal) => {
                warn!(reason = refusal.reason.as_str(), refusal.message, "refused");
                let wait = if refusal.may_pass() {
                    requeue.max(MIN_BACKOFF)
                } else {
                    MIN_BACKOFF
                };
                self.remember(benchmark, refusal);
                Ok(Action::requeue(wait))
            }
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The refusal in this run. An edited spec starts another run, without the refusal.
    fn refusal(&self, benchmark: &FrugalityBenchmark) -> Option<Refusal> {
        let memory = self.memory();
        let (run, refusal) = memory.refusals.get(&benchmark.uid()?)?;
        (*run == run_id(benchmark)).then(|| refusal.clone())
    }

    fn remember(&self, benchmark: &FrugalityBenchmark, refusal: Refusal) {
        if let Some(uid) = benchmark.uid() {
            self.memory()
                .refusals
                .insert(uid, (run_id(benchmark), refusal));
        }
    }

    /// Forgets a temporary refusal after a complete plan was carried out.
    fn forget_what_passed(&self, benchmark: &FrugalityBenchmark) {
        if let Some(uid) = benchmark.uid() {
            let mut memory = self.memory();
            if memory
                .refusals
                .get(&uid)
                .is_some_and(|(_, it)| it.may_pass())
            {
                memory.refusals.remove(&uid);
            }
        }
    }

    fn waiting_since(&self, benchmark: &FrugalityBenchmark) -> Option<(String, f64)> {
        self.memory().reasons.get(&benchmark.uid()?).cloned()
    }

    /// Stores the time since which the plan has given the same reason.
    fn remember_reason(&self, benchmark: &FrugalityBenchmark, plan: &Plan) {
        let reason = plan
            .status
            .columns
            .as_ref()
            .and_then(|columns| columns.reason.clone());
        if let (Some(uid), Some(reason)) = (benchmark.uid(), reason) {
            let mut memory = self.memory();
            let entry = memory.reasons.entry(uid).or_default();
            if entry.0 != reason {
                *entry = (reason, plan.decided_unix_seconds);
            }
        }
    }

    fn succeeded(&self, uid: &str) {
        self.memory().failures.remove(uid);
    }

    fn backoff(&self, uid: &str) -> Duration {
        let mut memory = self.memory();
        let failures = memory.failures.entry(uid.to_owned()).or_default();
        *failures += 1;
        MIN_BACKOFF
            .saturating_mul(2_u32.saturating_pow(*failures - 1))
            .min(MAX_BACKOFF)
    }
}

async fn reconcile(
    object: Arc<DeserializeGuard<FrugalityBenchmark>>,
    context: Arc<Context>,
) -> Result<Action, PassError> {
    let benchmark = match &object.0 {
        Ok(benchmark) => benchmark,
        Err(invalid) => {
            error!(name = object.name_any(), error = %invalid.error, "stored benchmark can't be read");
            unreadable::tell(&context.client, invalid)
                .await
                .map_err(PassError::Unreadable)?;
            return Ok(Action::await_change());
        }
    };
    if benchmark.metadata.deletion_timestamp.is_some() {
        // Kubernetes deletes the benchmark's objects with it, because it owns them.
        context.metrics.forget(&benchmark.uid().unwrap_or_default());
        return Ok(Action::await_change());
    }
    let started = std::time::Instant::now();
    let result = tokio::time::timeout(PASS_TIMEOUT, Box::pin(context.pass(benchmark)))
        .await
        .unwrap_or(Err(PassError::Timeout));
    let label = result
        .as_ref()
        .map_or_else(PassError::label, |_| ReconcileResult::Ok);
    context.metrics.count_pass(label, started.elapsed());
    if result.is_ok() {
        context.succeeded(&object.uid().unwrap_or_default());
    }
    result
}

#[allow(clippy::needless_pass_by_value, reason = "the signature is kube's")]
fn error_policy(
    object: Arc<DeserializeGuard<FrugalityBenchmark>>,
    error: &PassError,
    context: Arc<Context>,
) -> Action {
    let wait = context.backoff(&object.uid().unwrap_or_default());
    warn!(name = key(&object), %error, wait_seconds = wait.as_secs(), "pass failed");
    Action::requeue(wait)
}

fn key(object: &DeserializeGuard<FrugalityBenchmark>) -> String {
    ObjectRef::from_obj(object).to_string()
}

/// Removes the memory and the locks of deleted benchmarks.
async fn tidy(context: &Context) -> Result<(), kube::Error> {
    let client = &context.client;
    // Locks first: the holder of a lock in this list exists before the second list is made, or is gone.
    let leases = Api::<Lease>::namespaced(client.clone(), &context.places.namespace);
    let locks = ListParams::default().labels(&format!("{LABEL_LOCK}={LOCK_OF_NODE}"));
    let locks = leases.list(&locks).await?;
    let benchmarks = Api::<FrugalityBenchmark>::all(client.clone());
    let benchmarks = benchmarks.list_metadata(&ListParams::default()).await?;
    let uids = benchmarks.items.iter().filter_map(ResourceExt::uid);
    let uids: HashSet<String> = uids.collect();
    context.memory().keep(&uids);
    context.metrics.keep(&uids);
    for lease in &locks.items {
        let holder = lock(lease).holder;
        if holder.is_some_and(|(uid, _)| uids.contains(&uid)) {
            continue;
        }
        let version = lease.resource_version().unwrap_or_default();
        match leases.delete(&lease.name_any(), &only(version)).await {
            Ok(_) => info!(
                lock = lease.name_any(),
                "lock deleted, because its holder no longer exists"
            ),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn tidy_for_ever(context: Arc<Context>) {
    let mut ticks = tokio::time::interval(TIDY_INTERVAL);
    loop {
        ticks.tick().await;
        if let Err(error) = tidy(&context).await {
            warn!(%error, "cannot remove the locks of deleted benchmarks");
        }
    }
}

/// Reconciles every benchmark of the cluster until the process gets a signal to end.
pub async fn run(context: Arc<Context>) {
    let tidying = tokio::spawn(tidy_for_ever(context.clone()));
    let benchmarks = Api::<DeserializeGuard<FrugalityBenchmark>>::all(context.client.clone());
    Controller::new(benchmarks, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, context)
        .for_each(|result| async move {
            match result {
                Ok((object, _)) => debug!(%object, "reconciled"),
                // The error policy has logged it. A deleted object is no error.
                Err(error) => debug!(%error, "not reconciled"),
            }
        })
        .await;
    tidying.abort();
    info!("stopped");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_deleted_benchmark_is_removed() {
        let mut memory = Memory::default();
        let refusal = Refusal {
            reason: crate::api::Reason::ChildRefused,
            message: String::new(),
        };
        for uid in ["here", "gone"].map(str::to_owned) {
            memory.failures.insert(uid.clone(), 3);
            let refusal = (String::new(), refusal.clone());
            memory.refusals.insert(uid.clone(), refusal);
            memory.reasons.insert(uid, (String::new(), 1.0));
        }
        memory.keep(&HashSet::from(["here".to_owned()]));
        let left = (
            memory.failures.len(),
            memory.refusals.len(),
            memory.reasons.len(),
        );
        assert_eq!(left, (1, 1, 1));
        assert!(memory.failures.contains_key("here"));
    }
}
