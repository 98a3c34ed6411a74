//! Every decision, as pure functions from data to data: what has been seen goes in, all that is to
//! be done comes out. Nothing here is async, holds a client or reads a clock.
//!
//! State is derived: which step comes next follows from the objects that exist and from the
//! ledger. The status is only ever written.

pub mod addresses;
pub mod contents;
pub mod costs;
mod database;
pub mod estimate;
pub mod facts;
pub mod history;
pub mod identity;
pub mod ledger;
pub mod log;
pub mod nodes;
mod pass;
mod prepare;
pub mod resources;
pub mod settings;
pub mod status;
pub mod text;
pub mod time;
pub mod trial;
pub mod turn;
pub mod verdict;

use self::{
    facts::{ChildKind, Config, Observed},
    ledger::Ledger,
    pass::Pass,
    resources::ChildObject,
    settings::Settings,
    turn::{Place, Queue},
    verdict::without_figures,
};
use crate::api::{
    FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus, Outcome,
    Verdict, reason,
};
use kube::ResourceExt;

/// All that one pass is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Nodes' locks to give back and to take.
    pub locks: Vec<LockAction>,
    /// Read this meter for this trial; no other of this benchmark.
    pub watch: Vec<Watch>,
    /// A new entry of the ledger.
    pub open: Option<Box<FrugalityTrial>>,
    /// A new record of an entry, by its name.
    pub record: Option<(String, Box<FrugalityTrialStatus>)>,
    /// Version of the entry that the record replaces; `None` where this plan opens it.
    pub record_version: Option<String>,
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// Objects to delete, with their pods first.
    pub delete: Vec<(ChildKind, String)>,
    /// The new status.
    pub status: FrugalityBenchmarkStatus,
    /// Events to publish on the benchmark.
    pub events: Vec<EventNote>,
    /// Whether the benchmark is to be deleted: it has ended, and its time is over.
    pub expire: bool,
    /// When to look again, in seconds.
    pub requeue_seconds: f64,
    /// The cluster's time for which this was decided, in Unix seconds.
    pub decided_unix_seconds: f64,
}

/// What to do with the lock of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAction {
    /// Take it.
    Take {
        /// Node that it stands for.
        node: String,
        /// Version to be replaced; `None` creates it.
        resource_version: Option<String>,
    },
    /// Give it back.
    Release {
        /// Name of the lock.
        name: String,
        /// Version to be replaced.
        resource_version: String,
    },
}

/// One thing to do; all but `Watch` are writes to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Take or give back a lock.
    Lock(LockAction),
    /// Read these meters for this benchmark, and no others.
    Watch(Vec<Watch>),
    /// Create an entry of the ledger.
    Open(Box<FrugalityTrial>),
    /// Write the record of an entry.
    Record {
        /// Name of the entry.
        name: String,
        /// Version to be replaced; `None`: that which `Open` has just created.
        resource_version: Option<String>,
        /// The record.
        status: Box<FrugalityTrialStatus>,
    },
    /// Write the benchmark's status.
    Status(Box<FrugalityBenchmarkStatus>),
    /// Create an object.
    Create(ChildObject),
    /// Delete an object.
    Delete(ChildKind, String),
    /// Publish an event.
    Publish(EventNote),
    /// Delete the benchmark, its ledger with it.
    Expire,
}

impl Plan {
    /// What is to be done, in the order in which it is done. Whoever is overtaken at one of the first
    /// three writes (lock, entry, record) does nothing of the rest: that another operator was faster
    /// means that the plan rests on what is no more.
    #[must_use]
    pub fn actions(self, told: Option<&FrugalityBenchmarkStatus>) -> Vec<Action> {
        let status = (told != Some(&self.status)).then(|| Box::new(self.status));
        let record_version = self.record_version;
        let locks = self.locks.into_iter().map(Action::Lock);
        locks
            .chain([Action::Watch(self.watch)])
            .chain(self.open.map(Action::Open))
            .chain(self.record.map(|(name, status)| Action::Record {
                name,
                resource_version: record_version,
                status,
            }))
            // Before the objects: where one can't be created, people still read what is tried.
            .chain(status.map(Action::Status))
            .chain(self.create.into_iter().map(Action::Create))
            .chain(
                self.delete
                    .into_iter()
                    .map(|(kind, name)| Action::Delete(kind, name)),
            )
            .chain(self.events.into_iter().map(Action::Publish))
            .chain(self.expire.then_some(Action::Expire))
            .collect()
    }
}

/// A meter to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name of the trial, or [`facts::preflight`].
    pub trial: String,
    /// Node that the meter measures.
    pub node: String,
    /// Address of the meter; `None` while it has none.
    pub meter_ip: Option<String>,
    /// Whether the trial's injector Job exists.
    pub injector_seen: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether it is a warning.
    pub warning: bool,
    /// Reason code.
    pub reason: String,
    /// For people.
    pub note: String,
}

/// Decides what to do for one benchmark, at a time of the operator's clock.
#[must_use]
pub fn plan(
    benchmark: &FrugalityBenchmark,
    observed: &Observed,
    config: &Config,
    operator_unix_seconds: f64,
) -> Plan {
    // Everything that is compared or written below has the cluster's time.
    let now_unix_seconds = operator_unix_seconds - observed.operator_ahead_seconds;
    let run = identity::run_id(benchmark);
    let ledger = Ledger::of(&run, &observed.trials);
    let parsed = Settings::parse(&benchmark.spec);
    let place = Place::of_benchmark(benchmark);
    let queue = Queue::before(&place, observed);
    let pass = Pass {
        benchmark,
        observed,
        config,
        now_unix_seconds,
        run: &run,
        ledger: &ledger,
        queue: &queue,
        settings: parsed.as_ref().ok(),
    };
    let mut plan = match &parsed {
        Ok(settings) => pass.decide(settings),
        Err(error) => pass.conclude(
            None,
            without_figures(Verdict::Invalid, reason::INVALID_SPEC, error.to_string()),
        ),
    };
    // A run that has just failed is told as such with its verdict, by the next pass.
    let fails =
        |(_, record): &(_, Box<FrugalityTrialStatus>)| record.outcome == Some(Outcome::Failed);
    if !plan.record.as_ref().is_some_and(fails) {
        let told = benchmark.told();
        plan.events.extend(log::of_status(told, &plan.status));
    }
    // An attempt of a run that an edit has ended has nobody else who would end it.
    if plan.record.is_none() && plan.open.is_none() {
        let is_left_open =
            |trial: &&FrugalityTrial| trial.spec.run != run && ledger::outcome_of(trial).is_none();
        if let Some(trial) = observed.trials.iter().find(is_left_open) {
            let message = format!("the run ended with it, because the spec asks for run {run}");
            let record = trial::ended(
                trial.status.clone().unwrap_or_default(),
                Outcome::Void,
                reason::SUPERSEDED,
                &message,
                now_unix_seconds,
            );
            plan.events.extend(log::of_trial(trial, &record));
            plan.record = Some((trial.name_any(), Box::new(record)));
            plan.record_version = trial.resource_version();
        }
    }
    plan.decided_unix_seconds = now_unix_seconds;
    plan
}
