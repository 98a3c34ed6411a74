//! Reconcile: observe, plan, apply. Also handles failures of these.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ListParams,
    runtime::{
        Controller,
        controller::{self, Action},
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use tokio::{sync::Notify, time::MissedTickBehavior};
use tracing::{debug, error, info, warn};

use crate::{
    api::{FrugalityBenchmark, LABEL_LOCK, LOCK_OF_NODE},
    io::{
        apply::{Applied, Applier, ApplyError, only},
        known::KnownBenchmark,
        metrics::{AttemptLabels, Metrics, ReconcileResult},
        moments::Moments,
        observe::{ObserveError, Places, lock, nodes_and_locks, observe, stored},
        probe::Prober,
        reader::Reader,
        resting::{IdlePass, Resting},
        unreadable,
    },
    plan::{
        action::{Plan, Wait},
        facts::{Config, NodeFacts, Observed, Peer, Refusal},
        names::run_id,
        placement::queue::{QueuePosition, waits},
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
/// Most passes at once. When the operator starts, each benchmark has one, and each pass keeps a ledger in memory.
const MOST_PASSES: u16 = 16;
/// Benchmarks per page of the first list. A whole page is in memory at once.
const PAGE: u32 = 50;
/// Time between two looks at the queue while no lock changes. They find new nodes and deleted benchmarks.
const QUEUE_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two calls of all benchmarks. A benchmark at rest needs no request for a call. When kube's reflector
/// lists all benchmarks again, it announces the new versions before its store has them.
const ROLL_CALL_INTERVAL: Duration = Duration::from_secs(60);

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
    /// A pass has taken or released a lock.
    locks_changed: Notify,
    /// The rest of some benchmarks has ended.
    woken: Notify,
}

/// State between passes, by the benchmark's UID. A restart loses it without harm.
#[derive(Default)]
struct Memory {
    failures: HashMap<String, u32>,
    refusals: HashMap<String, (String, Refusal)>,
    reasons: HashMap<String, (String, f64)>,
    resting: Resting,
    /// The nodes at the last look. Empty if no benchmark depended on them.
    nodes: Vec<NodeFacts>,
    /// Count of the looks that found other nodes than the look before.
    nodes_version: u64,
}

impl Memory {
    /// Forgets all benchmarks except these.
    fn keep(&mut self, uids: &HashSet<String>) {
        self.failures.retain(|uid, _| uids.contains(uid));
        self.refusals.retain(|uid, _| uids.contains(uid));
        self.reasons.retain(|uid, _| uids.contains(uid));
        self.resting.keep(uids);
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
            locks_changed: Notify::new(),
            woken: Notify::new(),
        }
    }

    async fn pass(
        &self,
        benchmark: &FrugalityBenchmark,
        peers: Vec<Arc<Peer>>,
    ) -> Result<Action, PassError> {
        let refused = self.refusal(benchmark);
        let nodes_version = self.memory().nodes_version;
        let seen = unix_seconds(Timestamp::now());
        let mut observed = Box::pin(observe(
            &self.client,
            &self.places,
            &self.reader,
            benchmark,
            peers,
            refused,
            self.waiting_since(benchmark),
        ))
        .await?;
        // Under load, the probe's request would be measured.
        if !observed.is_under_load() {
            let seen_by_cluster = seen - observed.operator_ahead_seconds;
            self.prober.ask(&mut observed.pods, seen_by_cluster).await;
        }
        self.wake_owners(&observed);
        let now = unix_seconds(Timestamp::now());
        let plan = plan(benchmark, &observed, &self.config, now);
        debug!(?plan, "planned");
        self.remember_reason(benchmark, &plan);
        let duration = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(MIN_BACKOFF);
        let due = plan.due_seconds.map(duration);
        let requeue = duration(plan.requeue_seconds);
        // A plan that waits for time never rests, so it is not asked what it changes.
        let rests = plan.wait != Wait::Time && plan.changes_nothing(benchmark.current_status());
        let wait = if rests { plan.wait.clone() } else { Wait::Time };
        let changes_locks = !plan.locks.is_empty();
        let ended = AttemptLabels::of(&plan);
        let status = plan.status.clone();
        let applied = self.applier.apply(benchmark, plan, seen).await?;
        if changes_locks {
            self.locks_changed.notify_one();
        }
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
                let pass = IdlePass {
                    uid: &benchmark.uid().unwrap_or_default(),
                    version: &benchmark.resource_version().unwrap_or_default(),
                    wait,
                    due,
                    nodes_version,
                };
                let left = self.memory().resting.settle(pass, Instant::now());
                Ok(Action::requeue(left.unwrap_or(requeue)))
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

    /// Ends the rest of benchmarks whose pods this pass has seen: such a pod may be left over.
    fn wake_owners(&self, observed: &Observed) {
        let owners = observed.foreign_pods.iter();
        let owners = owners.map(|pod| pod.benchmark_uid.as_str());
        if self.memory().resting.disturb(owners, Instant::now()) {
            self.woken.notify_one();
        }
    }

    /// Time until the next pass over a benchmark at rest.
    fn rest_left(&self, known: &KnownBenchmark) -> Option<Duration> {
        let (uid, version) = (known.uid()?, known.resource_version()?);
        self.memory().resting.left(&uid, &version, Instant::now())
    }

    /// Looks at the nodes and at the whole queue. Ends the rest of those whose turn it is, and of those that ended
    /// because of the nodes as they were.
    async fn call_up(&self, known: &Store<KnownBenchmark>) -> Result<(), ObserveError> {
        {
            let mut memory = self.memory();
            if !memory.resting.depends_on_nodes() {
                memory.nodes.clear();
                return Ok(());
            }
        }
        let (nodes, locks) = nodes_and_locks(&self.client, &self.places).await?;
        let mut peers: Vec<Arc<Peer>> = known.state().iter().map(|it| it.peer.clone()).collect();
        peers.sort_by_key(|peer| QueuePosition::of(peer));
        let waits = waits(&peers, &locks, &nodes);
        let uids = peers.iter().map(|peer| peer.uid.as_str());
        let mut memory = self.memory();
        let called = memory.resting.call_up(uids, &waits);
        if memory.nodes != nodes {
            memory.nodes = nodes;
            memory.nodes_version += 1;
        }
        let version = memory.nodes_version;
        let changed = memory.resting.nodes_changed(version);
        drop(memory);
        if called || changed {
            self.woken.notify_one();
        }
        Ok(())
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

/// What the passes of one operator need: its context, and all benchmarks of the cluster.
struct Passes {
    context: Arc<Context>,
    known: Store<KnownBenchmark>,
}

impl Passes {
    /// Reads the benchmark and makes a pass over it. `None` if the benchmark needs no pass.
    async fn pass(&self, known: &KnownBenchmark) -> Result<Option<Action>, PassError> {
        let context = &self.context;
        let namespace = known.namespace().unwrap_or_default();
        let stored = stored(&context.client, &namespace, &known.name_any()).await?;
        let Some(stored) = stored else {
            return Ok(None);
        };
        let benchmark = match &stored.0 {
            Ok(benchmark) => benchmark,
            Err(invalid) => {
                error!(name = known.name_any(), error = %invalid.error, "stored benchmark can't be read");
                unreadable::tell(&context.client, invalid)
                    .await
                    .map_err(PassError::Unreadable)?;
                return Ok(None);
            }
        };
        if benchmark.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let uid = benchmark.uid();
        let peers = self.known.state().into_iter().map(|it| it.peer.clone());
        let peers = peers.filter(|peer| Some(&peer.uid) != uid.as_ref());
        let pass = context.pass(benchmark, peers.collect());
        Box::pin(pass).await.map(Some)
    }
}

async fn reconcile(known: Arc<KnownBenchmark>, passes: Arc<Passes>) -> Result<Action, PassError> {
    let context = &passes.context;
    let uid = known.uid().unwrap_or_default();
    if known.meta().deletion_timestamp.is_some() {
        // Kubernetes deletes the benchmark's objects with it, because it owns them.
        context.metrics.forget(&uid);
        return Ok(Action::await_change());
    }
    if let Some(left) = context.rest_left(&known) {
        return Ok(Action::requeue(left));
    }
    let started = Instant::now();
    let result = tokio::time::timeout(PASS_TIMEOUT, Box::pin(passes.pass(&known)))
        .await
        .unwrap_or(Err(PassError::Timeout));
    let label = result
        .as_ref()
        .map_or_else(PassError::label, |_| ReconcileResult::Ok);
    context.metrics.count_pass(label, started.elapsed());
    if result.is_ok() {
        context.succeeded(&uid);
    }
    Ok(result?.unwrap_or_else(Action::await_change))
}

#[allow(clippy::needless_pass_by_value, reason = "the signature is kube's")]
fn error_policy(known: Arc<KnownBenchmark>, error: &PassError, passes: Arc<Passes>) -> Action {
    let wait = passes.context.backoff(&known.uid().unwrap_or_default());
    warn!(name = %ObjectRef::from_obj(&*known), %error, wait_seconds = wait.as_secs(), "pass failed");
    Action::requeue(wait)
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

async fn call_up_for_ever(passes: Arc<Passes>) {
    let context = &passes.context;
    let mut ticks = tokio::time::interval(QUEUE_INTERVAL);
    let mut roll_calls = tokio::time::interval(ROLL_CALL_INTERVAL);
    for ticks in [&mut ticks, &mut roll_calls] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = context.locks_changed.notified() => {}
            _ = roll_calls.tick() => context.woken.notify_one(),
        }
        let look = Box::pin(context.call_up(&passes.known));
        match tokio::time::timeout(PASS_TIMEOUT, look).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "cannot look at the queue"),
            Err(_) => warn!("the look at the queue took too long"),
        }
    }
}

/// Reconciles every benchmark of the cluster until the process gets a signal to end.
pub async fn run(context: Arc<Context>) {
    let tidying = tokio::spawn(tidy_for_ever(context.clone()));
    let benchmarks = Api::<KnownBenchmark>::all(context.client.clone());
    let config = watcher::Config::default().page_size(PAGE);
    let controller = Controller::new(benchmarks, config)
        .with_config(controller::Config::default().concurrency(MOST_PASSES));
    let woken = stream::unfold(context.clone(), |context| async move {
        context.woken.notified().await;
        Some(((), context))
    });
    let passes = Arc::new(Passes {
        known: controller.store(),
        context,
    });
    let calling = tokio::spawn(call_up_for_ever(passes.clone()));
    controller
        .reconcile_all_on(woken)
        .shutdown_on_signal()
        .run(reconcile, error_policy, passes)
        .for_each(|result| async move {
            match result {
                Ok((object, _)) => debug!(%object, "reconciled"),
                // The error policy has logged it. A deleted object is no error.
                Err(error) => debug!(%error, "not reconciled"),
            }
        })
        .await;
    tidying.abort();
    calling.abort();
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
