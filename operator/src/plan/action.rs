//! What a pass may do: a [`Plan`], and the [`Action`]s that the operator executes for it.

use frugality_measure::reading::Steady;
use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{PodTemplateSpec, Secret, Service},
};
use kube::{ResourceExt, api::DynamicObject};

use crate::{
    api::{
        FrugalityBaseline, FrugalityBenchmarkStatus, FrugalityTrace, FrugalityTrial,
        FrugalityTrialStatus,
    },
    plan::facts::{Child, ChildKind},
};

/// Everything that one pass does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Locks of nodes to release and to take.
    pub locks: Vec<LockAction>,
    /// Meters to read, each for one trial. A pass without an error drops the readings of all other trials of this
    /// benchmark at its end. It also drops the readings of a trial that it ends.
    pub watch: Vec<MeterWatch>,
    /// The next entry or record of the ledger.
    pub ledger: Option<LedgerWrite>,
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// Objects to delete. The operator deletes their pods first.
    pub delete: Vec<Deletion>,
    /// The new status.
    pub status: FrugalityBenchmarkStatus,
    /// Events to publish on the benchmark.
    pub events: Vec<EventNote>,
    /// The course of an attempt that ends in this plan, or whose course an earlier pass did not store.
    pub trace: Option<Box<FrugalityTrace>>,
    /// The next write of a promotion.
    pub promotion: Option<Box<BaselineWrite>>,
    /// Entries of the ledger to delete, with their traces.
    pub forget: Vec<ForgottenEntry>,
    /// Whether the operator deletes the benchmark: it has ended, and its time to live is over.
    pub expire: bool,
    /// Time until the next pass, in seconds.
    pub requeue_seconds: f64,
    /// What ends the wait if this plan changes nothing.
    pub wait: Wait,
    /// Time until a pass that must not be later, in seconds; `None` if there is none.
    pub due_seconds: Option<f64>,
    /// The cluster's time of this decision, in Unix seconds.
    pub decided_unix_seconds: f64,
}

impl Plan {
    /// Whether the plan changes nothing in the cluster that another pass must follow soon.
    #[must_use]
    pub fn changes_nothing(&self, current_status: Option<&FrugalityBenchmarkStatus>) -> bool {
        let actions = self.clone().actions(current_status);
        let is_idle = |it: &Action| {
            matches!(
                it,
                Action::Watch(_) | Action::WatchOnly(_) | Action::Forget(_)
            )
        };
        actions.iter().all(is_idle)
    }

    /// The entry that this plan creates.
    #[must_use]
    pub fn opened(&self) -> Option<&FrugalityTrial> {
        match self.ledger.as_ref()? {
            LedgerWrite::Open { entry, .. } => Some(entry),
            LedgerWrite::Record { .. } => None,
        }
    }

    /// The record that this plan writes, with the name of its entry.
    #[must_use]
    pub fn record(&self) -> Option<(String, &FrugalityTrialStatus)> {
        match self.ledger.as_ref()? {
            LedgerWrite::Open { entry, record } => Some((entry.name_any(), record.as_deref()?)),
            LedgerWrite::Record { name, record, .. } => Some((name.clone(), record)),
        }
    }

    /// The actions in their order. If another operator was faster at one of the first three writes (lock, entry,
    /// record), this operator skips all later actions: the plan's input is out of date.
    #[must_use]
    pub fn actions(self, current_status: Option<&FrugalityBenchmarkStatus>) -> Vec<Action> {
        let ends = self.record().filter(|(_, record)| record.outcome.is_some());
        let ended = ends.map(|(name, _)| name);
        let watched = self.watch.iter().map(|it| it.trial.clone());
        let watched = watched.filter(|it| Some(it) != ended.as_ref()).collect();
        let status = (current_status != Some(&self.status)).then(|| Box::new(self.status));
        let locks = self.locks.into_iter().map(Action::Lock);
        locks
            .chain([Action::Watch(self.watch)])
            .chain(self.ledger.into_iter().flat_map(LedgerWrite::actions))
            // The status comes before the objects: if the API server refuses an object, the status still says what
            // the operator tries.
            .chain(status.map(Action::Status))
            .chain(self.create.into_iter().map(Action::Create))
            .chain(self.delete.into_iter().map(Action::Delete))
            .chain(self.events.into_iter().map(Action::Publish))
            // After all that the run needs: no figure depends on the course.
            .chain(self.trace.map(Action::Trace))
            // After the course, which is made of readings. A pass that goes wrong before this keeps them for the next.
            .chain([Action::WatchOnly(watched)])
            // After the status: a verdict does not depend on its promotion.
            .chain(self.promotion.map(Action::Promote))
            .chain(self.forget.into_iter().map(Action::Forget))
            .chain(self.expire.then_some(Action::Expire))
            .collect()
    }
}

/// What ends the wait of a benchmark whose pass changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Time: the next pass is due after `requeue_seconds`.
    #[default]
    Time,
    /// A change of the benchmark itself. It has ended, or it is suspended.
    Benchmark,
    /// A change of the cluster: a node, a meter, a right, CloudNativePG, a FrugalityBaseline.
    Cluster,
    /// The benchmark's turn. Another benchmark goes first.
    Turn {
        /// `namespace/name` of the other benchmark.
        name: String,
        /// The node that both want.
        node: String,
    },
}

/// A write to the ledger. Each pass has at most one.
#[derive(Clone, Debug, PartialEq)]
pub enum LedgerWrite {
    /// Creates an entry, and writes its first record if it has one.
    Open {
        /// The entry.
        entry: Box<FrugalityTrial>,
        /// Its record.
        record: Option<Box<FrugalityTrialStatus>>,
    },
    /// Writes the record of an existing entry.
    Record {
        /// Name of the entry.
        name: String,
        /// Version of the entry that the pass read. The write fails if the entry has changed since.
        version: Option<String>,
        /// The record.
        record: Box<FrugalityTrialStatus>,
    },
}

impl LedgerWrite {
    /// Creates an entry, with its first record if it has one.
    #[must_use]
    pub fn open(entry: FrugalityTrial, record: Option<FrugalityTrialStatus>) -> Self {
        Self::Open {
            entry: Box::new(entry),
            record: record.map(Box::new),
        }
    }

    fn actions(self) -> Vec<Action> {
        match self {
            Self::Open { entry, record } => {
                let name = entry.name_any();
                let record = record.map(|record| Action::Record {
                    name,
                    version: None,
                    record,
                });
                [Some(Action::Open(entry)), record]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            Self::Record {
                name,
                version,
                record,
            } => vec![Action::Record {
                name,
                version,
                record,
            }],
        }
    }

    /// Writes the record of this entry.
    #[must_use]
    pub fn record(entry: &FrugalityTrial, record: FrugalityTrialStatus) -> Self {
        Self::Record {
            name: entry.name_any(),
            version: entry.resource_version(),
            record: Box::new(record),
        }
    }
}

/// One action. All actions except `Watch` and `WatchOnly` write to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Take or release a lock.
    Lock(LockAction),
    /// Read these meters for this benchmark.
    Watch(Vec<MeterWatch>),
    /// Drop the readings of all trials of this benchmark but these.
    WatchOnly(Vec<String>),
    /// Create an entry of the ledger.
    Open(Box<FrugalityTrial>),
    /// Write the record of an entry.
    Record {
        /// Name of the entry.
        name: String,
        /// Version that this write replaces. `None`: the version that `Open` has just created.
        version: Option<String>,
        /// The record.
        record: Box<FrugalityTrialStatus>,
    },
    /// Write the benchmark's status.
    Status(Box<FrugalityBenchmarkStatus>),
    /// Create an object.
    Create(ChildObject),
    /// Delete an object.
    Delete(Deletion),
    /// Publish an event.
    Publish(EventNote),
    /// Create the course of an attempt.
    Trace(Box<FrugalityTrace>),
    /// Write a FrugalityBaseline.
    Promote(Box<BaselineWrite>),
    /// Delete an entry of the ledger together with its trace.
    Forget(ForgottenEntry),
    /// Delete the benchmark together with its ledger.
    Expire,
}

/// An entry of the ledger that `spec.runsToKeep` does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenEntry {
    /// Name.
    pub name: String,
    /// UID: an entry created later under this name is kept.
    pub uid: String,
}

/// A write to a FrugalityBaseline. Each write is made over the version that the pass read.
#[derive(Clone, Debug, PartialEq)]
pub enum BaselineWrite {
    /// Create it.
    Create(FrugalityBaseline),
    /// Replace its spec and its annotations.
    Replace(FrugalityBaseline),
    /// Replace its status.
    Status(FrugalityBaseline),
}

/// An action on the lock of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockAction {
    /// Take the lock.
    Take {
        /// Node that the lock is for.
        node: String,
        /// Version that this write replaces; `None` creates the lock.
        resource_version: Option<String>,
    },
    /// Release the lock.
    Release {
        /// Name of the lock.
        name: String,
        /// Version that this write replaces.
        resource_version: String,
    },
}

/// An object to delete: the object that was observed, not a later one with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Kind.
    pub kind: ChildKind,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
}

impl Deletion {
    /// Deletes this object.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self {
            kind: child.kind,
            name: child.name.clone(),
            uid: child.uid.clone(),
        }
    }
}

/// A meter to read.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterWatch {
    /// Name of the trial, or the name from [`preflight`](crate::plan::facts::preflight).
    pub trial: String,
    /// Node that the meter measures.
    pub node: String,
    /// Address of the meter; `None` if it has none.
    pub meter_ip: Option<String>,
    /// Whether the trial's injector Job exists.
    pub injector_seen: bool,
    /// Whether the check of the trial's database has ended.
    pub check_ended: bool,
    /// The stretch of the load in which the reader keeps only some readings.
    pub steady: Option<Steady>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Whether it is a warning.
    pub warning: bool,
    /// Reason code.
    pub reason: String,
    /// Text of the event.
    pub note: String,
}

/// An object to create.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildObject {
    /// A candidate's server.
    Deployment(Box<Deployment>),
    /// The address of a server.
    Service(Box<Service>),
    /// Seed or injector.
    Job(Box<Job>),
    /// The login of a database that CloudNativePG does not run. The password is added when the object is created.
    Secret(Box<Secret>),
    /// The database, if CloudNativePG runs it.
    Cluster(Box<DynamicObject>),
}

impl ChildObject {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ChildKind {
        match self {
            Self::Deployment(_) => ChildKind::Deployment,
            Self::Service(_) => ChildKind::Service,
            Self::Job(_) => ChildKind::Job,
            Self::Secret(_) => ChildKind::Secret,
            Self::Cluster(_) => ChildKind::Cluster,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Deployment(object) => object.name_any(),
            Self::Service(object) => object.name_any(),
            Self::Job(object) => object.name_any(),
            Self::Secret(object) => object.name_any(),
            Self::Cluster(object) => object.name_any(),
        }
    }

    /// The template of its pods, if Kubernetes makes pods from it.
    #[must_use]
    pub fn into_pod(self) -> Option<PodTemplateSpec> {
        match self {
            Self::Deployment(object) => Some(object.spec?.template),
            Self::Job(object) => Some(object.spec?.template),
            Self::Service(_) | Self::Secret(_) | Self::Cluster(_) => None,
        }
    }
}
