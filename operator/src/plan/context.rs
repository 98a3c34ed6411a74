//! The input that all stages of a pass share. [`plans`] builds the plans.

mod plans;

use std::ops::ControlFlow;

use kube::ResourceExt;

use crate::{
    api::{
        FrozenBaselines, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial,
        FrugalityTrialSpec, Reason, Role,
    },
    plan::{
        action::{Deletion, MeterWatch, Plan},
        facts::{
            Child, ChildKind, Config, ForeignPod, NodeFacts, Observed, Refusal,
            placement::PlacementRequest, preflight,
        },
        images,
        ledger::{Ledger, Start, finished_at},
        names,
        objects::{Builder, PREPARE_CONTAINER},
        placement::{nodes::Nodes, queue::Queue},
        report::estimate::Estimate,
        settings::Settings,
    },
    time,
};

/// The garbage collector removes an object without an owner within seconds. If a pod's label names no existing
/// benchmark and the pod is older than this, the operator did not make the pod.
const COLLECTED_WITHIN_SECONDS: f64 = 60.0;
/// A pod of a deleted benchmark is gone after this time, with any grace period. A pod that a user created with the
/// operator's label can stay longer.
const REMOVED_WITHIN_SECONDS: f64 = 180.0;

/// Interval between passes while a state changes without a write of the operator.
pub(in crate::plan) const BUSY_REQUEUE_SECONDS: f64 = 1.0;
/// Interval after a write whose effect the next pass needs.
pub(in crate::plan) const SOON_SECONDS: f64 = BUSY_REQUEUE_SECONDS / 5.0;
/// Message while the operator restores the database between two attempts.
pub(in crate::plan) const RESTORING: &str = "restoring the database for the next attempt";
/// Result of a stage: the input of the next stage, or the plan that ends the pass.
pub(in crate::plan) type Stage<T> = ControlFlow<Plan, T>;

/// One pass over one benchmark.
pub(in crate::plan) struct Context<'a> {
    pub(in crate::plan) benchmark: &'a FrugalityBenchmark,
    pub(in crate::plan) observed: &'a Observed,
    pub(in crate::plan) config: &'a Config,
    /// The cluster's time.
    pub(in crate::plan) now_unix_seconds: f64,
    /// ID of the run for the current spec.
    pub(in crate::plan) run: &'a str,
    pub(in crate::plan) ledger: &'a Ledger<'a>,
    pub(in crate::plan) queue: &'a Queue<'a>,
    /// The releases that the run measures against. They may change until they are frozen.
    pub(in crate::plan) releases: &'a FrozenBaselines,
    /// Name of the ledger entry for the releases.
    pub(in crate::plan) frozen_name: &'a str,
    /// Whether the ledger holds the releases.
    pub(in crate::plan) is_frozen: bool,
    /// `None` if the spec can't be read.
    pub(in crate::plan) settings: Option<&'a Settings>,
}

impl Context<'_> {
    /// Estimates the remaining time of the run.
    pub(in crate::plan) fn estimate(&self, settings: &Settings) -> Estimate {
        Estimate::of(
            settings,
            self.ledger,
            self.benchmark.spec.database.is_some(),
        )
    }

    /// When the run's turn began, in Unix seconds; `None` if it has not begun. After an edit, the new run has the
    /// locks of the old one. Its turn begins when the last entry of the old run got its outcome.
    pub(in crate::plan) fn turn_unix_seconds(&self) -> Option<f64> {
        let got_nodes = self.queue.started_unix_seconds()?;
        let of_others = self.observed.trials.iter();
        let of_others = of_others.filter(|trial| trial.spec.run != self.run);
        let ended = of_others.filter_map(|trial| Some(time::unix_seconds(finished_at(trial)?)));
        Some(ended.fold(got_nodes, f64::max))
    }

    pub(in crate::plan) fn builder<'b>(&'b self, settings: &'b Settings) -> Builder<'b> {
        Builder {
            benchmark: self.benchmark,
            settings,
            config: self.config,
            run: self.run,
        }
    }

    /// A new entry of the ledger, on these nodes. Without nodes, it names the nodes that the run has used so far.
    pub(in crate::plan) fn entry(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        start: &Start,
    ) -> FrugalityTrial {
        let benchmark = self.benchmark.name_any();
        let name = if start.block == 0 {
            names::setup_name(&benchmark, self.run, start.attempt)
        } else {
            names::trial_name(
                &benchmark,
                self.run,
                start.block,
                &start.candidate,
                start.attempt,
            )
        };
        let (measured_node, injector_node) = self.node_names(settings, nodes, &start.candidate);
        self.builder(settings).trial(
            &name,
            FrugalityTrialSpec {
                benchmark,
                run: self.run.to_owned(),
                point: settings.point_name_of(start.block).to_owned(),
                block: start.block,
                position: start.position,
                attempt: start.attempt,
                candidate: start.candidate.clone(),
                rate_per_second: self
                    .ledger
                    .level_rate(settings, start.block, &start.candidate),
                measured_node,
                injector_node,
                seed: self.benchmark.spec.trials.seed,
                frozen: None,
                images: images::recorded(self.ledger)
                    .is_none()
                    .then(|| images::of_a_new_run(self.config)),
            },
        )
    }

    /// The entry of the ledger that freezes the releases.
    pub(in crate::plan) fn frozen_entry(
        &self,
        settings: &Settings,
        nodes: &Nodes,
    ) -> FrugalityTrial {
        let (measured_node, injector_node) = self.node_names(settings, Some(nodes), "");
        self.builder(settings).trial(
            self.frozen_name,
            FrugalityTrialSpec {
                benchmark: self.benchmark.name_any(),
                run: self.run.to_owned(),
                point: String::new(),
                block: 0,
                position: 0,
                attempt: 0,
                candidate: String::new(),
                rate_per_second: None,
                measured_node,
                injector_node,
                seed: self.benchmark.spec.trials.seed,
                frozen: Some(Box::new(self.releases.clone())),
                images: None,
            },
        )
    }

    /// Names of the entrant's measured node and of the injector's node. They come from these nodes, or else from
    /// the run's trials. Without an entrant, as for a preparation, the function takes the first measured node. A
    /// name is empty if no trial has recorded it yet.
    fn node_names(
        &self,
        settings: &Settings,
        nodes: Option<&Nodes>,
        entrant: &str,
    ) -> (String, String) {
        let candidate = settings.candidate_of(entrant);
        if let Some(nodes) = nodes {
            let of_candidate = nodes.of(candidate);
            let measured = of_candidate.or_else(|| nodes.measured().first().copied());
            return (
                measured.map(|node| node.name.clone()).unwrap_or_default(),
                nodes.injector.name.clone(),
            );
        }
        let entries = self.ledger.entries();
        let request = PlacementRequest::of(&self.benchmark.spec);
        let is_there = |e: &&&FrugalityTrial| {
            let there = settings.candidate_of(&e.spec.candidate);
            candidate.is_empty() || request.alike(candidate).any(|name| name == there)
        };
        let name = |of: Option<&&FrugalityTrial>, node: fn(&FrugalityTrialSpec) -> &String| {
            of.map(|entry| node(&entry.spec).clone())
                .unwrap_or_default()
        };
        (
            name(entries.iter().find(is_there), |spec| &spec.measured_node),
            name(entries.first(), |spec| &spec.injector_node),
        )
    }

    /// The status, if it shows a verdict for this spec and run. After a restart the operator keeps that verdict
    /// until it has its own readings.
    pub(in crate::plan) fn judged_status(&self) -> Option<&FrugalityBenchmarkStatus> {
        self.benchmark.current_status().filter(|status| {
            status.verdict.is_some()
                && status.run.as_deref() == Some(self.run)
                && status.observed_generation == self.benchmark.metadata.generation
        })
    }

    /// The status of a benchmark that waits for its turn, if it belongs to this run of this spec.
    pub(in crate::plan) fn queued_status(&self) -> Option<&FrugalityBenchmarkStatus> {
        self.benchmark.current_status().filter(|status| {
            let reason = status.columns.as_ref().and_then(|it| it.reason.as_deref());
            reason == Some(Reason::Queued.as_str())
                && status.run.as_deref() == Some(self.run)
                && status.observed_generation == self.benchmark.metadata.generation
        })
    }

    /// Why the API server does not accept the next entry of the ledger.
    pub(in crate::plan) fn entry_refused(&self) -> Option<&Refusal> {
        let refusal = self.observed.refused.as_ref();
        refusal.filter(|refusal| refusal.is_entry)
    }

    pub(in crate::plan) fn has_ended_with(&self, reason: Reason) -> bool {
        self.judged_status()
            .and_then(|status| status.columns.as_ref()?.reason.as_deref())
            == Some(reason.as_str())
    }

    /// An object that the API server refuses permanently.
    pub(in crate::plan) fn refused_for_good(&self) -> Option<&Refusal> {
        let refusal = self.observed.refused.as_ref();
        refusal.filter(|refusal| !refusal.may_pass())
    }

    /// Whether an attempt began after this time. If it did, the database and the seed of that time worked. After a
    /// suspension both are new.
    pub(in crate::plan) fn has_attempt_since(&self, unix_seconds: f64) -> bool {
        let mut opened = self
            .ledger
            .entries()
            .iter()
            .filter_map(|it| it.creation_timestamp());
        opened.any(|opened| time::unix_seconds(opened.0) > unix_seconds)
    }

    /// Whether the benchmark has no objects and no pods, except its ledger.
    pub(in crate::plan) fn is_clean(&self) -> bool {
        self.observed.children.is_empty() && self.observed.pods.is_empty()
    }

    /// Pods of other benchmarks on these nodes. Every pod that the operator makes names its node. Therefore a pod
    /// without a node does not count.
    pub(in crate::plan) fn foreign_pods(&self, nodes: &Nodes) -> Vec<&str> {
        let ours = nodes.names();
        let is_ours = |node: &str| ours.contains(&node);
        self.observed
            .foreign_pods
            .iter()
            .filter(|pod| pod.node.as_deref().is_some_and(is_ours) && self.is_of_benchmark(pod))
            .map(|pod| pod.name.as_str())
            .collect()
    }

    /// Whether a pod belongs to a benchmark that exists in the pod's namespace, or to a deleted benchmark whose
    /// objects the cluster still removes.
    fn is_of_benchmark(&self, pod: &ForeignPod) -> bool {
        let namespace = |name: &str| name.split('/').next().map(str::to_owned);
        let exists = self.observed.peers.iter().any(|peer| {
            peer.uid == pod.benchmark_uid && namespace(&peer.name) == namespace(&pod.name)
        });
        let is_within = |since: f64, seconds: f64| self.now_unix_seconds - since < seconds;
        exists
            || pod
                .deleting_since_unix_seconds
                .is_some_and(|since| is_within(since, REMOVED_WITHIN_SECONDS))
            || (pod.running && is_within(pod.created_unix_seconds, COLLECTED_WITHIN_SECONDS))
    }

    /// Meters to read before a run begins: one per measured node.
    pub(in crate::plan) fn preflight_watches(&self, nodes: &Nodes) -> Vec<MeterWatch> {
        let measured = nodes.measured().into_iter();
        measured
            .map(|node| self.watch(&preflight(&node.name), node))
            .collect()
    }

    /// Meter to read for a trial: the meter of its measured node.
    pub(in crate::plan) fn trial_watch(
        &self,
        settings: &Settings,
        nodes: &Nodes,
        trial: &FrugalityTrial,
    ) -> Vec<MeterWatch> {
        let measured = nodes.of(settings.candidate_of(&trial.spec.candidate));
        measured
            .map(|node| self.watch(&trial.name_any(), node))
            .into_iter()
            .collect()
    }

    fn watch(&self, trial: &str, node: &NodeFacts) -> MeterWatch {
        MeterWatch {
            trial: trial.to_owned(),
            node: node.name.clone(),
            meter_ip: node.meter_ip.clone(),
            injector_seen: self
                .observed
                .children
                .iter()
                .any(|child| child.kind == ChildKind::Job && child.name == trial),
            check_ended: self.observed.pods.iter().any(|pod| {
                pod.trial.as_deref() == Some(trial)
                    && pod.terminated.contains_key(PREPARE_CONTAINER)
            }),
            steady: None,
        }
    }

    /// Deletions of the benchmark's objects that match the filter.
    pub(in crate::plan) fn children_where(
        &self,
        is_selected: impl Fn(&Child) -> bool,
    ) -> Vec<Deletion> {
        self.observed
            .children
            .iter()
            .filter(|child| is_selected(child))
            .map(Deletion::of)
            .collect()
    }

    pub(in crate::plan) fn all_children(&self) -> Vec<Deletion> {
        self.children_where(|_| true)
    }
}

/// Whether the pods of a role belong to one attempt.
pub(in crate::plan) fn is_of_attempt(role: &str) -> bool {
    [Role::Candidate, Role::Prepare, Role::Injector]
        .iter()
        .any(|of_attempt| of_attempt.as_str() == role)
}
