//! Reconcile: observe, plan, apply. Also handles failures of these.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        Controller,
        controller::{self, Action},
        reflector::{ObjectRef, Store},
        utils::Backoff,
        watcher,
    },
};
use tracing::{debug, error, info, warn};

use crate::{
    api::{FrugalityBenchmark, LABEL_BENCHMARK_UID, Reason},
    io::{
        apply::{Applied, Applier, ApplyError},
        calls::{Caller, Signals},
        known::KnownBenchmark,
        memory::{MIN_BACKOFF, Memory},
        metrics::{AttemptLabels, Metrics, ReconcileResult},
        moments::Moments,
        observe::{ObserveError, Places, observe, services_of, stored},
        pods::{ChangedPod, PodStages},
        probe::Prober,
        reader::Reader,
        resting::IdlePass,
        tidy::Tidy,
        unreadable,
    },
    plan::{
        action::Wait,
        facts::{Config, Observed, Peer},
        plan,
    },
    time::unix_seconds,
};

/// Longest time of a pass. A longer pass hangs, because the client itself retries for minutes.
const PASS_TIMEOUT: Duration = Duration::from_secs(30);
/// Most passes at once. When the operator starts, each benchmark has one, and each pass keeps a ledger in memory.
const MOST_PASSES: u16 = 16;
/// Pause of all watches after an error of one of them.
const WATCH_PAUSE: Duration = Duration::from_secs(1);
/// Benchmarks per page of the first list. A whole page is in memory at once.
const PAGE: u32 = 50;

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
pub struct PassContext {
    client: Client,
    places: Places,
    config: Config,
    applier: Applier,
    reader: Reader,
    prober: Prober,
    metrics: Metrics,
    memory: Arc<Memory>,
    signals: Arc<Signals>,
    stages: Arc<PodStages>,
}

impl PassContext {
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
            memory: Arc::default(),
            signals: Arc::default(),
            stages: Arc::default(),
        }
    }

    async fn pass(
        &self,
        benchmark: &FrugalityBenchmark,
        peers: Vec<Arc<Peer>>,
    ) -> Result<Action, PassError> {
        let remembered = self.memory.of(benchmark);
        let in_doubt = remembered.rights_in_doubt;
        let nodes_version = self.memory.nodes_version();
        let seen = unix_seconds(Timestamp::now());
        let mut observed = Box::pin(observe(
            &self.client,
            &self.places,
            &self.reader,
            benchmark,
            peers,
            remembered,
        ))
        .await?;
        self.memory
            .remember_services(benchmark, services_of(&observed.children));
        if in_doubt {
            let has_rights = !observed.namespace_forbidden;
            self.memory.end_doubt(benchmark, has_rights);
        }
        // Under load, the probe's request would be measured.
        if !observed.is_under_load() {
            let seen_by_cluster = seen - observed.operator_ahead_seconds;
            self.prober.ask(&mut observed.pods, seen_by_cluster).await;
        }
        self.wake_owners(&observed);
        let now = unix_seconds(Timestamp::now());
        let plan = plan(benchmark, &observed, &self.config, now);
        debug!(?plan, "planned");
        self.memory.remember_reason(benchmark, &plan);
        let duration = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(MIN_BACKOFF);
        let due = plan.due_seconds.map(duration);
        let requeue = duration(plan.requeue_seconds);
        // A plan that waits for time never rests, so it is not asked what it changes.
        let rests = plan.wait != Wait::Time && plan.changes_nothing(benchmark.current_status());
        let wait = if rests { plan.wait.clone() } else { Wait::Time };
        let changes_locks = !plan.locks.is_empty();
        let ended = AttemptLabels::of(&plan);
        let status = plan.status.clone();
        let applied = self.applier.apply(benchmark, plan, seen).await;
        let is_forbidden = match &applied {
            Ok(Applied::Refused(refusal)) => refusal.reason == Reason::ChildRefused,
            Ok(_) => false,
            Err(error) => error.is_forbidden(),
        };
        if is_forbidden {
            self.memory.doubt_rights(benchmark);
        }
        let applied = applied?;
        if changes_locks {
            self.signals.locks_changed.notify_one();
        }
        // After a conflict, or without room for its entry, the next plan has the same attempt, so it is not counted here. The
        // operator writes records before objects that the API server may refuse.
        let is_recorded = match &applied {
            Applied::Done => true,
            Applied::Refused(refusal) => !refusal.is_entry,
            Applied::Overtaken => false,
        };
        if let Some(ended) = ended.filter(|_| is_recorded) {
            self.metrics.count_attempt(&ended);
        }
        if !matches!(applied, Applied::Overtaken) {
            let since = self.memory.waiting_since(benchmark).map(|(_, since)| since);
            self.metrics.show(benchmark, &status, since);
        }
        match applied {
            Applied::Done => {
                self.memory.forget_temporary_refusal(benchmark);
                let pass = IdlePass {
                    uid: &benchmark.uid().unwrap_or_default(),
                    version: &benchmark.resource_version().unwrap_or_default(),
                    wait,
                    due,
                    nodes_version,
                };
                let left = self.memory.settle(pass);
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
                self.memory.remember_refusal(benchmark, refusal);
                Ok(Action::requeue(wait))
            }
        }
    }

    /// Ends the rest of benchmarks whose pods this pass has seen: such a pod may be left over.
    fn wake_owners(&self, observed: &Observed) {
        let owners = observed.foreign_pods.iter();
        let owners = owners.map(|pod| pod.benchmark_uid.as_str());
        if self.memory.disturb(owners) {
            self.signals.woken.notify_one();
        }
    }

    /// Time until the next pass over a benchmark at rest.
    fn rest_left(&self, known: &KnownBenchmark) -> Option<Duration> {
        let (uid, version) = (known.uid()?, known.resource_version()?);
        self.memory.rest_left(&uid, &version)
    }
}

/// What the passes of one operator need: its context, and all benchmarks of the cluster.
struct Passes {
    context: Arc<PassContext>,
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
                unreadable::report(&context.client, invalid)
                    .await
                    .map_err(PassError::Unreadable)?;
                let uid = known.uid().unwrap_or_default();
                // Its gauges would show the verdict of the spec before.
                context.metrics.forget(&uid);
                let pass = IdlePass {
                    uid: &uid,
                    version: &invalid
                        .metadata
                        .resource_version
                        .clone()
                        .unwrap_or_default(),
                    // Another version of the CustomResourceDefinition can make it readable.
                    wait: Wait::Cluster,
                    due: None,
                    nodes_version: context.memory.nodes_version(),
                };
                return Ok(context.memory.settle(pass).map(Action::requeue));
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
        context.memory.forget_failures(&uid);
    }
    Ok(result?.unwrap_or_else(Action::await_change))
}

#[allow(clippy::needless_pass_by_value, reason = "the signature is kube's")]
fn error_policy(known: Arc<KnownBenchmark>, error: &PassError, passes: Arc<Passes>) -> Action {
    let wait = passes
        .context
        .memory
        .backoff(&known.uid().unwrap_or_default());
    warn!(name = %ObjectRef::from_obj(&*known), %error, wait_seconds = wait.as_secs(), "pass failed");
    Action::requeue(wait)
}

/// The pause after an error of a watch. kube-runtime pauses all watches together, so a watch of pods that the API server
/// refuses must not delay the watch of benchmarks for long.
#[derive(Debug)]
struct WatchPause;

impl Iterator for WatchPause {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(WATCH_PAUSE)
    }
}

impl Backoff for WatchPause {
    fn reset(&mut self) {}
}

/// Reconciles every benchmark of the cluster until the process gets a signal to end.
pub async fn run(context: Arc<PassContext>) {
    let tidy = Tidy {
        client: context.client.clone(),
        namespace: context.places.namespace.clone(),
        memory: context.memory.clone(),
        metrics: context.metrics.clone(),
        stages: context.stages.clone(),
        reader: context.reader.clone(),
    };
    let tidying = tokio::spawn(tidy.run());
    let benchmarks = Api::<KnownBenchmark>::all(context.client.clone());
    let config = watcher::Config::default().page_size(PAGE);
    let controller = Controller::new(benchmarks, config)
        .with_config(controller::Config::default().concurrency(MOST_PASSES))
        .trigger_backoff(WatchPause);
    let known = controller.store();
    let pods = Api::<ChangedPod>::all(context.client.clone());
    let of_benchmarks = watcher::Config::default().labels(LABEL_BENCHMARK_UID);
    let stages = context.stages.clone();
    let controller = controller.watches(pods, of_benchmarks, move |pod: ChangedPod| {
        stages.benchmark(&pod, &known)
    });
    let woken = stream::unfold(context.clone(), |context| async move {
        context.signals.woken.notified().await;
        Some(((), context))
    });
    let caller = Caller {
        client: context.client.clone(),
        places: context.places.clone(),
        memory: context.memory.clone(),
        signals: context.signals.clone(),
        known: controller.store(),
    };
    let calling = tokio::spawn(caller.run());
    let passes = Arc::new(Passes {
        known: controller.store(),
        context,
    });
    controller
        .reconcile_all_on(woken)
        .shutdown_on_signal()
        .run(reconcile, error_policy, passes)
        .for_each(|result| async move {
            match result {
                Ok((object, _)) => debug!(%object, "reconciled"),
                Err(controller::Error::QueueError(error)) => warn!(%error, "a watch failed"),
                // The error policy has logged it. A deleted object is not an error.
                Err(error) => debug!(%error, "not reconciled"),
            }
        })
        .await;
    tidying.abort();
    calling.abort();
    info!("stopped");
}
