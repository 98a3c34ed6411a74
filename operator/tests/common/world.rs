//! A small cluster in memory: objects that are created become pods that become ready, and a node
//! whose power is known. It carries out plans as the operator does, pass by pass, and stops the test
//! where two loads would overlap or the ledger would be rewritten.

use std::collections::BTreeMap;

use frugality_operator::{
    api::{FrugalityBenchmark, FrugalityTrial, Role},
    plan::{
        LockAction, Plan, Watch,
        facts::{ChildKind, ClusterFacts, Config, Lock, NodeFacts, Observed, PREFLIGHT, Session},
        ledger::outcome_of,
        plan,
        resources::ChildObject,
        time,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{
    T0, config,
    manner::{Manner, ROWS, peer},
    objects::{SimChild, SimPod, ending, label, pod_of},
    run_of,
    truth::{LoadOn, Work, reading},
};

/// One benchmark with all that was made for it.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) benchmark: FrugalityBenchmark,
    pub(crate) children: Vec<SimChild>,
    pub(crate) pods: Vec<SimPod>,
    pub(crate) trials: Vec<FrugalityTrial>,
    pub(crate) sessions: BTreeMap<String, Session>,
    pub(crate) watch: Option<Watch>,
    pub(crate) next_pass: f64,
    pub(crate) waiting_since: Option<(String, f64)>,
}

/// The cluster.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: f64,
    pub(crate) manner: Manner,
    pub(crate) config: Config,
    pub(crate) nodes: Vec<NodeFacts>,
    pub(crate) lock: Option<Lock>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) loads: Vec<LoadOn>,
    /// Every reason that the condition `Reconciling` or `Complete` had, in order.
    pub(crate) reasons: Vec<(String, String)>,
    next_scrape: f64,
    names: u32,
}

impl World {
    /// A cluster of two nodes with these benchmarks, at [`T0`].
    pub(crate) fn new(benchmarks: impl IntoIterator<Item = FrugalityBenchmark>) -> Self {
        let node = |name: &str, meter_ip: Option<&str>| NodeFacts {
            name: name.into(),
            schedulable: true,
            labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]),
            meter_ip: meter_ip.map(str::to_owned),
        };
        Self {
            now: T0 + 0.4,
            manner: Manner::default(),
            config: config(),
            nodes: vec![node("injector-1", None), node("pi-1", Some("10.0.0.1"))],
            lock: None,
            slots: benchmarks
                .into_iter()
                .map(|benchmark| Slot {
                    benchmark,
                    children: Vec::new(),
                    pods: Vec::new(),
                    trials: Vec::new(),
                    sessions: BTreeMap::new(),
                    watch: None,
                    next_pass: T0 + 0.4,
                    waiting_since: None,
                })
                .collect(),
            loads: Vec::new(),
            reasons: Vec::new(),
            next_scrape: T0 + 0.5,
            names: 0,
        }
    }

    /// What a pass for this benchmark sees.
    pub(crate) fn observed(&self, slot: usize) -> Observed {
        let mine = &self.slots[slot];
        let others = || {
            self.slots
                .iter()
                .enumerate()
                .filter(move |(other, _)| *other != slot)
                .map(|(_, slot)| slot)
        };
        Observed {
            peers: others().map(|other| peer(&other.benchmark)).collect(),
            lock: self.lock.clone(),
            nodes: self.nodes.clone(),
            pods: mine.pods.iter().map(|pod| pod.facts(self.now)).collect(),
            foreign_pods: others()
                .flat_map(|other| &other.pods)
                .map(|pod| pod.facts(self.now))
                .filter(|pod| !pod.ended)
                .map(|pod| format!("shop/{}", pod.name))
                .collect(),
            children: mine
                .children
                .iter()
                .map(|child| child.facts.clone())
                .collect(),
            database: self.database(mine),
            cloud_native_pg_installed: self.manner.cloud_native_pg,
            trials: mine.trials.clone(),
            sessions: mine.sessions.clone(),
            refused: None,
            waiting_since: mine.waiting_since.clone(),
        }
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
            hostname: "pi-1".into(),
        })
    }

    /// What the operator would do for this benchmark now.
    pub(crate) fn plan(&self, slot: usize) -> Plan {
        plan(
            &self.slots[slot].benchmark,
            &self.observed(slot),
            &self.config,
            self.now + self.manner.operator_ahead,
        )
    }

    /// Lets time go on to the next pass, and says whose it is.
    pub(crate) fn wait(&mut self) -> usize {
        let slot = (0..self.slots.len())
            .min_by(|a, b| {
                self.slots[*a]
                    .next_pass
                    .total_cmp(&self.slots[*b].next_pass)
            })
            .unwrap();
        self.advance_to(self.slots[slot].next_pass);
        slot
    }

    /// Lets time go on, meters being read.
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

    /// One pass, carried out whole.
    pub(crate) fn pass(&mut self, slot: usize) -> Plan {
        let plan = self.plan(slot);
        self.remember_reason(slot, &plan);
        self.apply(slot, &plan, usize::MAX);
        plan
    }

    fn remember_reason(&mut self, slot: usize, plan: &Plan) {
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

    /// Goes on until a condition holds after a pass.
    #[track_caller]
    pub(crate) fn run_until(&mut self, what: &str, is_met: impl Fn(&Self) -> bool) {
        let limit = self.now + 4.0 * 3600.0;
        while !is_met(self) {
            let slot = self.wait();
            self.pass(slot);
            assert!(self.now < limit, "never: {what}; {:#?}", self.reasons);
        }
    }

    /// Goes on until every benchmark has ended and nothing is left of it.
    #[track_caller]
    pub(crate) fn run_to_end(&mut self) {
        self.run_until("the end", Self::is_over);
    }

    /// Whether every benchmark has ended and nothing is left of it.
    pub(crate) fn is_over(&self) -> bool {
        self.lock.as_ref().is_none_or(|lock| lock.holder.is_none())
            && self.slots.iter().all(|slot| {
                peer(&slot.benchmark).complete && slot.children.is_empty() && slot.pods.is_empty()
            })
    }

    /// The operator's process ends, and another begins a little later: readings are forgotten.
    pub(crate) fn kill_operator(&mut self) {
        for slot in &mut self.slots {
            slot.sessions.clear();
            slot.watch = None;
            slot.next_pass = self.now + 2.3;
        }
    }

    /// Carries out the first `steps` actions of a plan, in the operator's order; says how many there
    /// were.
    pub(crate) fn apply(&mut self, slot: usize, plan: &Plan, steps: usize) -> usize {
        type Action<'a> = Box<dyn FnOnce(&mut World) + 'a>;
        let mut actions: Vec<Action<'_>> = Vec::new();
        if let Some(lock) = &plan.lock {
            actions.push(Box::new(move |world| world.change_lock(slot, lock)));
        }
        actions.push(Box::new(move |world| {
            world.watch(slot, plan.watch.as_ref());
        }));
        if let Some(trial) = &plan.open {
            actions.push(Box::new(move |world| world.open(slot, trial)));
        }
        if let Some((name, record)) = &plan.record {
            actions.push(Box::new(move |world| {
                let trials = &mut world.slots[slot].trials;
                let trial = trials.iter_mut().find(|t| t.name_any() == *name).unwrap();
                assert!(outcome_of(trial).is_none(), "{name} is rewritten");
                trial.status = Some((**record).clone());
            }));
        }
        for child in &plan.create {
            actions.push(Box::new(move |world| world.create(slot, child)));
        }
        for (kind, name) in &plan.delete {
            actions.push(Box::new(move |world| world.delete(slot, *kind, name)));
        }
        actions.push(Box::new(move |world| world.tell(slot, plan)));
        let count = actions.len();
        for action in actions.into_iter().take(steps) {
            action(self);
        }
        let wait = self
            .manner
            .hurry
            .map_or(plan.requeue_seconds, |most| most.min(plan.requeue_seconds));
        self.slots[slot].next_pass = self.now + wait;
        count
    }

    fn tell(&mut self, slot: usize, plan: &Plan) {
        let benchmark = &mut self.slots[slot].benchmark;
        benchmark.status = Some(plan.status.clone());
        let told = (
            benchmark.name_any(),
            plan.status.conditions[0].reason.clone(),
        );
        if self.reasons.last() != Some(&told) {
            self.reasons.push(told);
        }
    }

    fn change_lock(&mut self, slot: usize, action: &LockAction) {
        let benchmark = &self.slots[slot].benchmark;
        let uid = benchmark.uid().unwrap();
        let now = self.lock.as_ref().map(|lock| lock.resource_version.clone());
        let (based_on, holder) = match action {
            LockAction::Take { resource_version } => (
                resource_version.clone(),
                Some((uid, format!("shop/{}", benchmark.name_any()))),
            ),
            LockAction::Release { resource_version } => (Some(resource_version.clone()), None),
        };
        assert_eq!(based_on, now, "no pass runs beside another here");
        self.names += 1;
        self.lock = Some(Lock {
            acquired_unix_seconds: holder.as_ref().map(|_| self.now),
            holder,
            resource_version: self.names.to_string(),
        });
    }

    fn watch(&mut self, slot: usize, watch: Option<&Watch>) {
        let slot = &mut self.slots[slot];
        slot.watch = watch.cloned();
        slot.sessions
            .retain(|trial, _| watch.is_some_and(|watch| watch.trial == *trial));
        if let Some(watch) = watch {
            let session = slot.sessions.entry(watch.trial.clone()).or_default();
            session.injector_seen |= watch.injector_seen;
        }
    }

    fn scrape(&mut self) {
        let at = self.now - 0.12;
        let pods: Vec<String> = self
            .slots
            .iter()
            .flat_map(|slot| &slot.pods)
            .map(|pod| pod.facts.uid.clone())
            .collect();
        for slot in &mut self.slots {
            let Some(watch) = &slot.watch else { continue };
            let session = slot.sessions.entry(watch.trial.clone()).or_default();
            match (&watch.meter_ip, self.manner.meter) {
                (Some(_), Some(provenance)) => {
                    session.last_error = None;
                    if watch.trial == PREFLIGHT {
                        session.readings = std::sync::Arc::default();
                    }
                    let mut reading = reading(at, provenance, &self.loads, &pods);
                    reading.scraped_at_unix_seconds = self.now + self.manner.operator_ahead;
                    std::sync::Arc::make_mut(&mut session.readings).push(reading);
                }
                _ => session.last_error = Some("no answer from the meter".into()),
            }
        }
    }

    fn open(&mut self, slot: usize, trial: &FrugalityTrial) {
        // An entry of a run that an edit has ended stays as it was.
        let open: Vec<String> = self
            .slots
            .iter()
            .flat_map(|slot| {
                let run = run_of(&slot.benchmark);
                slot.trials
                    .iter()
                    .filter(move |trial| trial.spec.run == run)
            })
            .filter(|trial| trial.spec.block > 0 && outcome_of(trial).is_none())
            .map(ResourceExt::name_any)
            .collect();
        assert!(
            open.is_empty() || trial.spec.block == 0,
            "{} begins beside {open:?}",
            trial.name_any()
        );
        let mut trial = trial.clone();
        trial.metadata.creation_timestamp = time::timestamp(self.now.floor()).map(Time);
        let trials = &mut self.slots[slot].trials;
        trials.push(trial);
        // The API server lists by name.
        trials.sort_by_key(ResourceExt::name_any);
    }

    fn create(&mut self, slot: usize, object: &ChildObject) {
        let (kind, name) = (object.kind(), object.name());
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
        } else if role == Role::Database.as_str() {
            pod.ready_at = self.manner.database_ready.map(|seconds| self.now + seconds);
        } else if role == Role::Seed.as_str() {
            pod.ends
                .push((self.now + 2.5, "seed".into(), ending(&self.manner.seeded)));
        } else {
            let load = self.load(slot, child)?;
            let report = load.report(self.manner.success_share).encode().unwrap();
            pod.ends
                .push((self.now + 0.8, "prepare".into(), ending(ROWS)));
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
        let overlapping = self.loads.iter().find(|load| load.end > self.now);
        assert_eq!(overlapping, None, "{name} begins under another's load");
        let trial = slot.trials.iter().find(|t| t.name_any() == name)?;
        let uid = |role: Role| {
            slot.pods
                .iter()
                .find(|pod| pod.facts.role == role.as_str() && !pod.facts.deleting)
                .map(|pod| pod.facts.uid.clone())
        };
        Some(LoadOn::new(
            &name,
            self.now + 1.3,
            2.0,
            Work::of(&trial.spec.candidate, trial.spec.block),
            (uid(Role::Candidate)?, uid(Role::Database)),
        ))
    }

    /// Deletes an object as an operator or a stranger does, its pods first.
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
            }
        }
        if kind == ChildKind::Job {
            for load in self.loads.iter_mut().filter(|load| load.trial == name) {
                load.end = load.end.min(now + 0.1);
            }
        }
    }

    /// The pod of a role is replaced by a new one, as when somebody deletes it.
    pub(crate) fn replace_pod(&mut self, slot: usize, role: Role) {
        self.names += 1;
        let (now, number) = (self.now, self.names);
        for pod in &mut self.slots[slot].pods {
            if pod.facts.role == role.as_str() {
                pod.facts.uid = format!("{}-uid-{number}", pod.facts.role);
                pod.ready_at = Some(now + 1.0);
            }
        }
    }

    fn collect(&mut self) {
        let now = self.now;
        for slot in &mut self.slots {
            slot.children
                .retain(|child| child.gone_at.is_none_or(|gone| gone > now));
            slot.pods
                .retain(|pod| pod.gone_at.is_none_or(|gone| gone > now));
        }
    }
}
