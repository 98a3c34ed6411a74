//! A small cluster in memory. Objects become pods, pods become ready, and the power of the node is known. The
//! world executes plans pass by pass, as the operator does. It stops the test if two loads overlap or if the
//! ledger is rewritten.

use std::{collections::BTreeMap, sync::Arc};

use frugality_operator::{
    api::{
        FrugalityBaseline, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrace,
        FrugalityTrial, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL, LABEL_WORKLOAD, Role,
    },
    plan::{
        action::{Action, BaselineWrite, ChildObject, EventNote, LockAction, MeterWatch, Plan},
        baseline::is_frozen_entry,
        facts::{
            ChildKind, ClusterFacts, Config, ForeignPod, Lock, NodeFacts, Observed, Peer, Session,
            addresses::{Endpoint, Endpoints},
            is_preflight,
        },
        ledger::{outcome_of, record::patch},
        names::lock_name,
        plan,
        report::events::event_name,
    },
    time,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::{
    T0, config, edited,
    manner::Manner,
    objects::{SimChild, SimPod, ending, label, pod_of},
    schema::assert_taken,
    truth::{LoadOn, Work, reading},
};

/// Transactions that the database has counted before each load.
const TRANSACTIONS_BEFORE: u64 = 1000;

/// One benchmark with its objects, and the operator's memory of it.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) benchmark: FrugalityBenchmark,
    pub(crate) children: Vec<SimChild>,
    pub(crate) pods: Vec<SimPod>,
    /// Secrets by name, with the UID of their owner.
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) trials: Vec<FrugalityTrial>,
    /// Courses of the attempts.
    pub(crate) traces: Vec<FrugalityTrace>,
    /// Whether the pass could not store a course.
    pub(crate) lacks_course: bool,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) watch: Vec<MeterWatch>,
    pub(crate) next_pass: f64,
    pub(crate) waiting_since: Option<(String, f64)>,
    /// Whether the benchmark was deleted.
    pub(crate) gone: bool,
    /// Events about the benchmark, by name, as the API server stores them.
    pub(crate) events: Vec<(String, EventNote)>,
    /// Memory of a second operator, if the test has two.
    pub(crate) second: Memory,
}

/// An operator's memory of one benchmark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) watch: Vec<MeterWatch>,
    pub(crate) next_pass: f64,
    pub(crate) waiting_since: Option<(String, f64)>,
}

impl Slot {
    /// Time of an operator's next pass: a change of a pod starts it before it is due.
    pub(crate) fn next_pass_from(&self, due: f64, now: f64) -> f64 {
        let changes = self.pods.iter().flat_map(SimPod::changes);
        changes.filter(|at| *at > now).fold(due, f64::min)
    }

    /// Swaps the memories of the first and the second operator.
    pub(crate) fn swap_operators(&mut self) {
        let second = &mut self.second;
        std::mem::swap(&mut self.sessions, &mut second.sessions);
        std::mem::swap(&mut self.watch, &mut second.watch);
        std::mem::swap(&mut self.next_pass, &mut second.next_pass);
        std::mem::swap(&mut self.waiting_since, &mut second.waiting_since);
    }
}

/// A fault at one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The operator dies right after the write.
    Dies,
    /// The write succeeds, but the operator gets an error.
    LooksFailed,
}

/// Time that a pod of a benchmark spent on a node.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) slot: usize,
    pub(crate) node: String,
    pub(crate) begin: f64,
    pub(crate) end: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: f64,
    pub(crate) manner: Manner,
    pub(crate) config: Config,
    pub(crate) nodes: Vec<NodeFacts>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) slots: Vec<Slot>,
    /// The baselines of the benchmarks' namespace, by name.
    pub(crate) baselines: BTreeMap<String, FrugalityBaseline>,
    pub(crate) loads: Vec<LoadOn>,
    /// The spans of all pods that are gone.
    pub(crate) spans: Vec<Span>,
    /// Every reason that the condition `Reconciling` or `Complete` had, in order, with the benchmark's name.
    pub(crate) reasons: Vec<(String, String)>,
    /// Writes to the API server so far.
    pub(crate) writes: u32,
    /// Number of the write at which a fault occurs, and the fault.
    pub(crate) fault: Option<(u32, Fault)>,
    /// Loads that began while another load was on one of their nodes.
    pub(crate) overlaps: u32,
    next_scrape: f64,
    names: u32,
    versions: u32,
}

/// A node. It has a meter if `meter_ip` is given.
pub(crate) fn node(name: &str, meter_ip: Option<&str>) -> NodeFacts {
    NodeFacts {
        name: name.into(),
        schedulable: true,
        labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]),
        meter_ip: meter_ip.map(str::to_owned),
        machine: Some(format!("machine-of-{name}")),
    }
}

impl World {
    /// A cluster of two nodes with these benchmarks, at [`T0`].
    pub(crate) fn new(benchmarks: impl IntoIterator<Item = FrugalityBenchmark>) -> Self {
        Self {
            now: T0 + 0.4,
            manner: Manner::default(),
            config: config(),
            nodes: vec![node("injector-1", None), node("pi-1", Some("10.0.0.1"))],
            locks: Vec::new(),
            slots: benchmarks
                .into_iter()
                .map(|benchmark| Slot {
                    benchmark,
                    children: Vec::new(),
                    pods: Vec::new(),
                    secrets: BTreeMap::new(),
                    trials: Vec::new(),
                    traces: Vec::new(),
                    lacks_course: false,
                    sessions: BTreeMap::new(),
                    watch: Vec::new(),
                    next_pass: T0 + 0.4,
                    waiting_since: None,
                    gone: false,
                    events: Vec::new(),
                    second: Memory::default(),
                })
                .collect(),
            baselines: BTreeMap::new(),
            loads: Vec::new(),
            spans: Vec::new(),
            reasons: Vec::new(),
            writes: 0,
            fault: None,
            overlaps: 0,
            next_scrape: T0 + 0.5,
            names: 1,
            versions: 0,
        }
    }

    /// The observation in a pass for this benchmark.
    pub(crate) fn observed(&self, slot: usize) -> Observed {
        let mine = &self.slots[slot];
        let others = || {
            self.slots
                .iter()
                .enumerate()
                .filter(move |(other, _)| *other != slot)
                .map(|(_, slot)| slot)
                .filter(|slot| !slot.gone)
        };
        let foreign = |other: &Slot| {
            let namespace = other.benchmark.namespace().unwrap();
            let pods = other.pods.iter().filter(|pod| !pod.facts(self.now).ended);
            let uid = other.benchmark.uid().unwrap();
            pods.map(|pod| ForeignPod {
                name: format!("{namespace}/{}", pod.facts.name),
                benchmark_uid: uid.clone(),
                node: Some(pod.node.clone()),
                created_unix_seconds: pod.facts.created_unix_seconds,
                running: pod.facts.ready_since_unix_seconds.is_some(),
                deleting_since_unix_seconds: pod.facts.deleting.then_some(self.now),
            })
            .collect::<Vec<_>>()
        };
        Observed {
            peers: others()
                .map(|other| Arc::new(Peer::of(&other.benchmark)))
                .collect(),
            locks: self.locks.clone(),
            nodes: self.nodes.clone(),
            pods: mine.pods.iter().map(|pod| pod.facts(self.now)).collect(),
            foreign_pods: others().flat_map(foreign).collect(),
            children: mine
                .children
                .iter()
                .map(|child| child.facts.clone())
                .collect(),
            endpoints: self.endpoints(mine),
            database: self.database(mine),
            cloud_native_pg_installed: self.manner.cloud_native_pg,
            namespace_forbidden: false,
            trials: mine.trials.clone(),
            baselines: self.baselines.clone(),
            unreadable: Vec::new(),
            operator_ahead_seconds: self.manner.operator_ahead,
            sessions: mine.sessions.clone(),
            refused: None,
            waiting_since: mine.waiting_since.clone(),
        }
    }

    /// The ready pods behind each Service.
    fn endpoints(&self, slot: &Slot) -> Vec<Endpoints> {
        let behind = |selector: &BTreeMap<String, String>| {
            let pods = slot.pods.iter().map(|pod| pod.facts(self.now));
            let ready = pods.filter(|pod| pod.ready_since_unix_seconds.is_some());
            ready
                .filter(|pod| {
                    let labels = [
                        (LABEL_ROLE, Some(&pod.role)),
                        (LABEL_RUN, Some(&pod.run)),
                        (LABEL_TRIAL, pod.trial.as_ref()),
                        (LABEL_WORKLOAD, pod.workload.as_ref()),
                    ];
                    let is_selected = |(label, value): &(&str, Option<&String>)| {
                        selector
                            .get(*label)
                            .is_none_or(|asked| Some(asked) == *value)
                    };
                    labels.iter().all(is_selected)
                })
                .map(|pod| Endpoint {
                    name: pod.name,
                    pod_uid: Some(pod.uid),
                })
                .collect::<Vec<_>>()
        };
        let slice = |child: &SimChild| {
            let selector = &child.facts.service.as_ref()?.selector;
            Some(Endpoints {
                service: child.facts.name.clone(),
                version: format!("{}/1", child.facts.uid),
                behind: behind(selector),
            })
        };
        slot.children.iter().filter_map(slice).collect()
    }

    fn database(&self, slot: &Slot) -> Option<ClusterFacts> {
        let cluster = slot
            .children
            .iter()
            .find(|child| child.facts.kind == ChildKind::Cluster)?;
        let ready = self
            .manner
            .database_ready
            .is_some_and(|seconds| self.now >= cluster.created + seconds);
        let phase = if ready {
            "Cluster in healthy state"
        } else {
            "Setting up primary: Creating primary instance"
        };
        Some(ClusterFacts {
            ready,
            broken: false,
            phase: phase.into(),
            hostname: cluster.node.clone().unwrap(),
        })
    }

    /// The operator's plan for this benchmark now.
    pub(crate) fn plan(&self, slot: usize) -> Plan {
        plan(
            &self.slots[slot].benchmark,
            &self.observed(slot),
            &self.config,
            self.now + self.manner.operator_ahead,
        )
    }

    /// Advances the time to the next pass, and returns the slot of its benchmark.
    pub(crate) fn wait(&mut self) -> usize {
        let next_pass = |slot: &usize| {
            let slot = &self.slots[*slot];
            slot.next_pass_from(slot.next_pass, self.now)
        };
        let slots = (0..self.slots.len()).map(|slot| (next_pass(&slot), slot));
        let (at, slot) = slots.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        self.advance_to(at);
        slot
    }

    /// Advances the time. The operators read their meters meanwhile.
    pub(crate) fn advance_to(&mut self, time: f64) {
        while self.next_scrape <= time {
            self.now = self.next_scrape;
            self.collect();
            self.scrape();
            self.next_scrape += 1.0;
        }
        self.now = time.max(self.now);
        self.collect();
    }

    /// Executes one whole pass, unless a fault interrupts it.
    pub(crate) fn pass(&mut self, slot: usize) -> Plan {
        let plan = self.plan(slot);
        self.remember_reason(slot, &plan);
        self.apply(slot, &plan, usize::MAX);
        plan
    }

    pub(crate) fn remember_reason(&mut self, slot: usize, plan: &Plan) {
        let reason = plan
            .status
            .columns
            .as_ref()
            .unwrap()
            .reason
            .clone()
            .unwrap();
        let since = &mut self.slots[slot].waiting_since;
        if since.as_ref().is_none_or(|(earlier, _)| *earlier != reason) {
            *since = Some((reason, self.now));
        }
    }

    /// Runs until a condition holds after a pass.
    #[track_caller]
    pub(crate) fn run_until(&mut self, what: &str, is_met: impl Fn(&Self) -> bool) {
        let limit = self.now + 4.0 * 3600.0;
        while !is_met(self) {
            let slot = self.wait();
            self.pass(slot);
            assert!(self.now < limit, "never: {what}; {:#?}", self.reasons);
        }
    }

    /// Runs until every benchmark has ended and its objects are gone.
    #[track_caller]
    pub(crate) fn run_to_end(&mut self) {
        self.run_until("the end", Self::is_over);
    }

    /// Whether every benchmark has ended and its objects are gone.
    pub(crate) fn is_over(&self) -> bool {
        self.locks.iter().all(|lock| lock.holder.is_none())
            && self.slots.iter().filter(|slot| !slot.gone).all(|slot| {
                let is_empty = slot.children.is_empty() && slot.pods.is_empty();
                Peer::of(&slot.benchmark).rests && is_empty && slot.secrets.is_empty()
            })
    }

    /// The user's edit of a benchmark's spec reaches the operator.
    pub(crate) fn edit(&mut self, slot: usize, changes: &[(&str, Value)]) {
        let version = self.next_version();
        let slot = &mut self.slots[slot];
        slot.benchmark = edited(&slot.benchmark, changes);
        slot.benchmark.metadata.resource_version = Some(version);
        slot.next_pass = self.now;
    }

    /// The user's edit that requests another run.
    pub(crate) fn run_again(&mut self, slot: usize, number: i64) {
        self.edit(slot, &[("/rerun", json!(number))]);
    }

    /// The operator's process ends, and a new one begins a little later. The readings are lost.
    pub(crate) fn kill_operator(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| !slot.gone) {
            slot.sessions.clear();
            slot.watch.clear();
            slot.waiting_since = None;
            slot.next_pass = self.now + 2.3;
        }
    }

    /// Executes the first `steps` actions of a plan, in the operator's order. Returns the number of actions
    /// in the plan.
    pub(crate) fn apply(&mut self, slot: usize, plan: &Plan, steps: usize) -> usize {
        let seen = self.slots[slot].benchmark.clone();
        let actions = plan.clone().actions(seen.status.as_ref());
        let wait = self
            .manner
            .hurry
            .map_or(plan.requeue_seconds, |most| most.min(plan.requeue_seconds));
        self.slots[slot].next_pass = self.now + wait;
        let mut opened = None;
        for action in actions.iter().take(steps) {
            if !self.act(slot, &seen, action, &mut opened) {
                break;
            }
        }
        actions.len()
    }

    /// Executes one action of an operator that saw the benchmark as `seen`. Returns false if the operator
    /// skips the rest.
    pub(crate) fn act(
        &mut self,
        slot: usize,
        seen: &FrugalityBenchmark,
        action: &Action,
        opened: &mut Option<String>,
    ) -> bool {
        let goes_on = match action {
            Action::Watch(watch) => {
                self.watch(slot, watch);
                return true;
            }
            Action::WatchOnly(trials) => {
                self.watch_only(slot, trials);
                return true;
            }
            Action::Lock(action) => self.change_lock(slot, action),
            Action::Open(trial) => {
                *opened = self.open(slot, trial);
                opened.is_some()
            }
            Action::Record {
                name,
                version,
                record: status,
            } => {
                let version = version.clone().or(opened.take());
                let new = self.next_version();
                let trials = &mut self.slots[slot].trials;
                let trial = trials.iter_mut().find(|t| t.name_any() == *name).unwrap();
                let is_newest = trial.metadata.resource_version == version;
                if is_newest {
                    assert_taken("FrugalityTrial", status);
                    assert!(outcome_of(trial).is_none(), "{name} is rewritten");
                    let mut stored = json!(trial.status);
                    merge(&mut stored, &patch(status));
                    trial.status = serde_json::from_value(stored).unwrap();
                    trial.metadata.resource_version = Some(new);
                }
                is_newest
            }
            Action::Status(status) => {
                self.write_status(slot, seen, status);
                true
            }
            Action::Create(child) => {
                self.create(slot, child);
                true
            }
            Action::Delete(deletion) => {
                let children = &self.slots[slot].children;
                if children.iter().any(|it| it.facts.uid == deletion.uid) {
                    self.delete(slot, deletion.kind, &deletion.name);
                }
                true
            }
            Action::Publish(note) => {
                let name = event_name(seen, note);
                let events = &mut self.slots[slot].events;
                if events.iter().all(|(known, _)| *known != name) {
                    events.push((name, note.clone()));
                }
                true
            }
            Action::Trace(trace) => {
                self.trace(slot, trace);
                true
            }
            Action::Promote(write) => self.promote(write),
            Action::Forget(entry) => {
                let slot = &mut self.slots[slot];
                let is_meant = |trial: &FrugalityTrial| trial.name_any() == entry.name;
                for trial in slot.trials.iter().filter(|trial| is_meant(trial)) {
                    let has_ended = outcome_of(trial).is_some() || is_frozen_entry(trial);
                    assert!(has_ended, "{} has not ended", entry.name);
                }
                slot.trials.retain(|trial| !is_meant(trial));
                slot.traces.retain(|trace| trace.name_any() != entry.name);
                true
            }
            Action::Expire => {
                let slot = &mut self.slots[slot];
                if slot.benchmark.metadata.resource_version == seen.metadata.resource_version {
                    slot.gone = true;
                    slot.trials.clear();
                    slot.next_pass = f64::INFINITY;
                }
                true
            }
        };
        self.writes += 1;
        match self.fault {
            Some((write, fault)) if write == self.writes => {
                if fault == Fault::Dies {
                    self.kill_operator();
                } else {
                    self.slots[slot].next_pass = self.now + 1.0;
                }
                // The operator goes on after these.
                self.slots[slot].lacks_course |= matches!(action, Action::Trace(_));
                let is_optional = matches!(
                    action,
                    Action::Publish(_) | Action::Trace(_) | Action::Forget(_)
                );
                fault == Fault::LooksFailed && is_optional
            }
            _ => goes_on,
        }
    }

    /// A person's, or another benchmark's, change of a baseline.
    pub(crate) fn set_baseline(&mut self, name: &str, spec: &Value) {
        let version = self.next_version();
        let existing = self.baselines.remove(name);
        let mut baseline = existing.unwrap_or_else(|| FrugalityBaseline {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some("shop".to_owned()),
                uid: Some(format!("{name}-{version}-uid")),
                generation: Some(0),
                ..ObjectMeta::default()
            },
            spec: serde_json::from_value(spec.clone()).unwrap(),
            status: None,
        });
        baseline.spec = serde_json::from_value(spec.clone()).unwrap();
        baseline.metadata.resource_version = Some(version);
        baseline.metadata.generation = baseline.metadata.generation.map(|it| it + 1);
        self.baselines.insert(name.to_owned(), baseline);
    }

    /// A write of the operator to a baseline, as the API server takes it.
    fn promote(&mut self, write: &BaselineWrite) -> bool {
        let version = self.next_version();
        let (BaselineWrite::Create(new) | BaselineWrite::Replace(new) | BaselineWrite::Status(new)) =
            write;
        let name = new.name_any();
        let existing = self.baselines.get(&name);
        if existing.and_then(|it| it.metadata.resource_version.clone())
            != new.metadata.resource_version
        {
            return false;
        }
        let mut stored = new.clone();
        stored.metadata.resource_version = Some(version.clone());
        match (write, existing) {
            (BaselineWrite::Create(_), _) => {
                stored.metadata.uid = Some(format!("{name}-{version}-uid"));
                stored.metadata.generation = Some(1);
            }
            (BaselineWrite::Replace(_), Some(existing)) => {
                let changes = i64::from(existing.spec != new.spec);
                stored.metadata.generation = existing.metadata.generation.map(|it| it + changes);
                stored.status.clone_from(&existing.status);
            }
            (BaselineWrite::Status(_), Some(existing)) => {
                assert_taken("FrugalityBaseline", new.status.as_ref().unwrap());
                stored.spec = existing.spec.clone();
                stored
                    .metadata
                    .annotations
                    .clone_from(&existing.metadata.annotations);
            }
            (_, None) => return false,
        }
        self.baselines.insert(name, stored);
        true
    }

    fn next_version(&mut self) -> String {
        self.versions += 1;
        self.versions.to_string()
    }

    fn write_status(
        &mut self,
        slot: usize,
        seen: &FrugalityBenchmark,
        status: &FrugalityBenchmarkStatus,
    ) {
        let benchmark = &self.slots[slot].benchmark;
        if benchmark.metadata.resource_version != seen.metadata.resource_version {
            return;
        }
        assert_taken("FrugalityBenchmark", status);
        let version = self.next_version();
        let benchmark = &mut self.slots[slot].benchmark;
        benchmark.metadata.resource_version = Some(version);
        benchmark.status = Some(status.clone());
        let reported = (benchmark.name_any(), status.conditions[0].reason.clone());
        if self.reasons.last() != Some(&reported) {
            self.reasons.push(reported);
        }
    }

    fn change_lock(&mut self, slot: usize, action: &LockAction) -> bool {
        let benchmark = &self.slots[slot].benchmark;
        let mine = || {
            let name = format!(
                "{}/{}",
                benchmark.namespace().unwrap(),
                benchmark.name_any()
            );
            (benchmark.uid().unwrap(), name)
        };
        let (name, based_on, holder) = match action {
            LockAction::Take {
                node,
                resource_version,
            } => (lock_name(node), resource_version.clone(), Some(mine())),
            LockAction::Release {
                name,
                resource_version,
            } => (name.clone(), Some(resource_version.clone()), None),
        };
        let found = self.locks.iter().position(|lock| lock.name == name);
        let now = found.map(|index| self.locks[index].resource_version.clone());
        if based_on != now {
            return false;
        }
        let (Some(_), found) = (&holder, found) else {
            self.locks.remove(found.unwrap());
            return true;
        };
        let lock = Lock {
            name,
            acquired_unix_seconds: Some(self.now),
            holder,
            resource_version: self.next_version(),
        };
        match found {
            Some(index) => self.locks[index] = lock,
            None => self.locks.push(lock),
        }
        true
    }

    fn watch(&mut self, slot: usize, watches: &[MeterWatch]) {
        let started_unix_seconds = self.now + self.manner.operator_ahead;
        let slot = &mut self.slots[slot];
        for watch in watches {
            slot.watch.retain(|it| it.trial != watch.trial);
            slot.watch.push(watch.clone());
            let session = slot
                .sessions
                .entry(watch.trial.clone())
                .or_insert_with(|| Session {
                    started_unix_seconds,
                    ..Session::default()
                });
            session.injector_seen |= watch.injector_seen;
            if watch.check_ended {
                let now = self.now + self.manner.operator_ahead;
                session.check_ended_unix_seconds.get_or_insert(now);
            }
        }
    }

    fn trace(&mut self, slot: usize, trace: &FrugalityTrace) {
        let slot = &mut self.slots[slot];
        let name = trace.name_any();
        let ends = |trial: &FrugalityTrial| trial.name_any() == name && outcome_of(trial).is_some();
        assert!(slot.trials.iter().any(ends), "{name} has no end");
        match slot.traces.iter().find(|known| known.name_any() == name) {
            // Two operators have different readings.
            Some(known) if self.fault.is_some() => {
                assert_eq!(known.spec.phases, trace.spec.phases, "{name}");
            }
            Some(_) => {}
            None => slot.traces.push(trace.clone()),
        }
    }

    fn watch_only(&mut self, slot: usize, trials: &[String]) {
        let slot = &mut self.slots[slot];
        if std::mem::take(&mut slot.lacks_course) {
            return;
        }
        slot.sessions.retain(|trial, _| trials.contains(trial));
        slot.watch.retain(|it| trials.contains(&it.trial));
    }

    /// Every operator reads the meters that it watches.
    fn scrape(&mut self) {
        let at = self.now - 0.12;
        let pods: Vec<String> = self
            .slots
            .iter()
            .flat_map(|slot| &slot.pods)
            .map(|pod| pod.facts.uid.clone())
            .collect();
        let (manner, now, loads) = (&self.manner, self.now, &self.loads);
        let read = |watch: &MeterWatch, sessions: &mut BTreeMap<String, Session>| {
            let session = sessions.entry(watch.trial.clone()).or_default();
            match (&watch.meter_ip, manner.meter) {
                (Some(_), Some(provenance)) => {
                    session.last_error = None;
                    if is_preflight(&watch.trial) {
                        session.readings = std::sync::Arc::default();
                    }
                    let on_node: Vec<LoadOn> = loads
                        .iter()
                        .filter(|load| load.nodes[0] == watch.node)
                        .cloned()
                        .collect();
                    let mut reading = reading(at, provenance, &on_node, &pods);
                    reading.scraped_at_unix_seconds = now + manner.operator_ahead;
                    if !manner.meter_has_clock {
                        reading.scraped_at_unix_seconds = at + manner.operator_ahead;
                        reading.meter_unix_seconds = None;
                    }
                    // Every node has a separate meter.
                    if watch.node != "pi-1" {
                        Arc::make_mut(&mut reading.meter).source =
                            format!("meter of {}", watch.node);
                    }
                    let readings = std::sync::Arc::make_mut(&mut session.readings);
                    readings.push(reading);
                    if let Some(steady) = &watch.steady {
                        steady.thin(readings);
                    }
                }
                _ => session.last_error = Some("no answer from the meter".into()),
            }
        };
        for slot in &mut self.slots {
            for watch in &slot.watch {
                read(watch, &mut slot.sessions);
            }
            for watch in &slot.second.watch {
                read(watch, &mut slot.second.sessions);
            }
        }
    }

    fn open(&mut self, slot: usize, trial: &FrugalityTrial) -> Option<String> {
        let exists = |known: &FrugalityTrial| known.name_any() == trial.name_any();
        if self.slots[slot].trials.iter().any(exists) {
            return None;
        }
        let nodes = |trial: &FrugalityTrial| {
            let spec = &trial.spec;
            [spec.measured_node.clone(), spec.injector_node.clone()]
        };
        let mine = nodes(trial);
        let open: Vec<String> = self
            .slots
            .iter()
            .flat_map(|slot| &slot.trials)
            .filter(|trial| trial.spec.block > 0 && outcome_of(trial).is_none())
            .filter(|trial| nodes(trial).iter().any(|node| mine.contains(node)))
            .map(ResourceExt::name_any)
            .collect();
        assert!(
            open.is_empty() || trial.spec.block == 0,
            "{} begins next to the open {open:?}",
            trial.name_any()
        );
        let mut trial = trial.clone();
        trial.metadata.creation_timestamp = time::timestamp(self.now.floor()).map(Time);
        trial.metadata.uid = Some(format!("uid of {}", trial.name_any()));
        let version = self.next_version();
        trial.metadata.resource_version = Some(version.clone());
        let trials = &mut self.slots[slot].trials;
        trials.push(trial);
        // The API server sorts lists by name.
        trials.sort_by_key(ResourceExt::name_any);
        Some(version)
    }

    fn create(&mut self, slot: usize, object: &ChildObject) {
        let (kind, name) = (object.kind(), object.name());
        if let ChildObject::Secret(secret) = object {
            let owner = secret.owner_references()[0].uid.clone();
            self.slots[slot].secrets.entry(name).or_insert(owner);
            return;
        }
        let exists = self.slots[slot]
            .children
            .iter()
            .any(|child| child.facts.kind == kind && child.facts.name == name);
        if exists {
            return;
        }
        let child = SimChild::new(object, self.now);
        if let Some(role) = label(object, frugality_operator::api::LABEL_ROLE) {
            self.names += 1;
            let pod = self.pod(slot, &child, &role);
            self.slots[slot].pods.extend(pod);
        }
        self.slots[slot].children.push(child);
    }

    fn pod(&mut self, slot: usize, child: &SimChild, role: &str) -> Option<SimPod> {
        let mut pod = pod_of(child, role, self.names)?;
        if role == Role::Candidate.as_str() {
            pod.ready_at = self.manner.server_ready.map(|seconds| self.now + seconds);
            pod.facts.waiting.clone_from(&self.manner.server_waiting);
            let starts = self.manner.server_waiting.is_none();
            pod.facts.started_unix_seconds = starts.then(|| self.now.floor());
        } else if role == Role::Database.as_str() {
            let login = format!("{}-app", child.facts.name);
            assert!(
                child.facts.kind == ChildKind::Cluster
                    || self.slots[slot].secrets.contains_key(&login),
                "{} starts without its login",
                child.facts.name
            );
            pod.ready_at = self.manner.database_ready.map(|seconds| self.now + seconds);
            pod.facts.started_unix_seconds = Some(self.now.floor());
        } else if role == Role::Seed.as_str() {
            // One transaction per request.
            let of_slot = |load: &&LoadOn| {
                let mut trials = self.slots[slot].trials.iter();
                trials.any(|trial| trial.name_any() == load.trial)
            };
            let last = self.loads.iter().rev().find(of_slot);
            let counted = last.map_or(String::new(), |load| {
                let transactions = TRANSACTIONS_BEFORE + load.requests();
                format!("transactions:{transactions}\n")
            });
            let message = format!("{}\n{counted}", self.manner.seeded);
            pod.ends
                .push((self.now + 2.5, "seed".into(), ending(&message)));
        } else if role == Role::Prepare.as_str() {
            let before = format!(
                "{}\ntransactions:{TRANSACTIONS_BEFORE}\n",
                self.manner.prepared
            );
            pod.ends
                .push((self.now + 0.8, "prepare".into(), ending(&before)));
        } else {
            let load = self.load(slot, child)?;
            let is_beside = |other: &&LoadOn| {
                other.end > self.now && other.nodes.iter().any(|node| load.nodes.contains(node))
            };
            if let Some(other) = self.loads.iter().find(is_beside) {
                let trials = (&load.trial, &other.trial);
                assert!(self.manner.overlaps, "{trials:?} load one node at one time");
                self.overlaps += 1;
            }
            let mut report = load.report(self.manner.success_share);
            if !self.manner.meter_has_clock {
                // The injector compares its clock with the operator's.
                let clocks = [&mut report.clock, &mut report.clock_after];
                for clock in clocks.into_iter().flatten() {
                    clock.offset_seconds += self.manner.operator_ahead;
                }
            }
            let report = report.encode().unwrap();
            pod.ends
                .push((load.end + 0.2, "injector".into(), ending(&report)));
            self.loads.push(load);
        }
        Some(pod)
    }

    /// The load that an injector's Job puts on the trial's server.
    fn load(&self, slot: usize, job: &SimChild) -> Option<LoadOn> {
        let slot = &self.slots[slot];
        let name = job.facts.trial.clone()?;
        let trial = slot.trials.iter().find(|t| t.name_any() == name)?;
        let uids = |role: Role| {
            let of_role =
                move |pod: &&SimPod| pod.facts.role == role.as_str() && !pod.facts.deleting;
            let pods = slot.pods.iter().filter(of_role);
            pods.map(|pod| pod.facts.uid.clone())
        };
        let servers: Vec<String> = uids(Role::Candidate).collect();
        if servers.is_empty() {
            return None;
        }
        let mut load = LoadOn::new(
            &name,
            self.now + 1.3,
            2.0,
            Work::of(&trial.spec.candidate, trial.spec.block),
            (servers, uids(Role::Database).next()),
        );
        load.nodes = [
            trial.spec.measured_node.clone(),
            trial.spec.injector_node.clone(),
        ];
        Some(load)
    }

    /// Deletes an object as an operator or a user does. Its pods go first.
    pub(crate) fn delete(&mut self, slot: usize, kind: ChildKind, name: &str) {
        let now = self.now;
        let slot = &mut self.slots[slot];
        for child in &mut slot.children {
            if child.facts.kind == kind && child.facts.name == name && !child.facts.deleting {
                child.facts.deleting = true;
                child.gone_at = Some(now + 1.5);
            }
        }
        for pod in &mut slot.pods {
            if pod.owner == (kind, name.to_owned()) && !pod.facts.deleting {
                pod.facts.deleting = true;
                pod.gone_at = Some(now + 1.2);
                // A server runs until it is asked to end.
                if pod.ends.is_empty() {
                    let containers = pod.facts.images.keys().cloned();
                    let ends = containers.map(|container| (now + 0.8, container, ending("")));
                    pod.ends.extend(ends);
                }
            }
        }
        if kind == ChildKind::Job {
            for load in self.loads.iter_mut().filter(|load| load.trial == name) {
                load.end = load.end.min(now + 0.1);
            }
        }
    }

    /// Replaces the pod of a role by a new pod, as if a user had deleted it.
    pub(crate) fn replace_pod(&mut self, slot: usize, role: Role) {
        self.names += 1;
        let (now, number) = (self.now, self.names);
        for pod in &mut self.slots[slot].pods {
            if pod.facts.role == role.as_str() {
                pod.facts.uid = format!("{}-uid-{number}", pod.facts.role);
                pod.ready_at = Some(now + 1.0);
                pod.facts.created_unix_seconds = now.floor();
            }
        }
    }

    fn collect(&mut self) {
        let now = self.now;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.children
                .retain(|child| child.gone_at.is_none_or(|gone| gone > now));
            let children = &slot.children;
            slot.secrets
                .retain(|_, owner| children.iter().any(|child| child.facts.uid == *owner));
            slot.pods.retain(|pod| {
                let Some(end) = pod.gone_at.filter(|gone| *gone <= now) else {
                    return true;
                };
                self.spans.push(Span {
                    slot: index,
                    node: pod.node.clone(),
                    begin: pod.begin,
                    end,
                });
                false
            });
        }
    }
}

/// A merge patch, as the API server applies it (RFC 7386).
fn merge(stored: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *stored = patch.clone();
        return;
    };
    if !stored.is_object() {
        *stored = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            stored.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut stored[name], value);
        }
    }
}
