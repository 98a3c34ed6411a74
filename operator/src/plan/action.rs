//! What a pass may do: a [`Plan`] and the [`Action`]s that it is made of.

use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{PodTemplateSpec, Secret, Service},
};
use kube::{ResourceExt, api::DynamicObject};

use crate::{
    api::{FrugalityBenchmarkStatus, FrugalityTrial, FrugalityTrialStatus},
    plan::facts::{Child, ChildKind},
};

/// All that one pass is to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Nodes' locks to give back and to take.
    pub locks: Vec<LockAction>,
    /// Read this meter for this trial; no other of this benchmark.
    pub watch: Vec<Watch>,
    /// The ledger's next entry or record.
    pub ledger: Option<LedgerWrite>,
    /// Objects to create.
    pub create: Vec<ChildObject>,
    /// Objects to delete, with their pods first.
    pub delete: Vec<Deletion>,
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

impl Plan {
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

    /// What is to be done, in the order in which it is done. Whoever is overtaken at one of the first
    /// three writes (lock, entry, record) does nothing of the rest: that another operator was faster
    /// means that the plan rests on what is no more.
    #[must_use]
    pub fn actions(self, told: Option<&FrugalityBenchmarkStatus>) -> Vec<Action> {
        let status = (told != Some(&self.status)).then(|| Box::new(self.status));
        let locks = self.locks.into_iter().map(Action::Lock);
        locks
            .chain([Action::Watch(self.watch)])
            .chain(self.ledger.into_iter().flat_map(LedgerWrite::actions))
            // Before the objects: where one can't be created, people still read what is tried.
            .chain(status.map(Action::Status))
            .chain(self.create.into_iter().map(Action::Create))
            .chain(self.delete.into_iter().map(Action::Delete))
            .chain(self.events.into_iter().map(Action::Publish))
            .chain(self.expire.then_some(Action::Expire))
            .collect()
    }
}

/// A write to the ledger; a pass has at most one.
#[derive(Clone, Debug, PartialEq)]
pub enum LedgerWrite {
    /// Create an entry, and write its record at once if it has ended.
    Open {
        /// The entry.
        entry: Box<FrugalityTrial>,
        /// Its record.
        record: Option<Box<FrugalityTrialStatus>>,
    },
    /// Write the record of an entry that exists.
    Record {
        /// Name of the entry.
        name: String,
        /// Version of the entry that the pass has seen. The write fails if the entry has changed since.
        version: Option<String>,
        /// The record.
        record: Box<FrugalityTrialStatus>,
    },
}

impl LedgerWrite {
    /// Creates an entry.
    #[must_use]
    pub fn open(entry: FrugalityTrial) -> Self {
        Self::Open {
            entry: Box::new(entry),
            record: None,
        }
    }

    /// Creates an entry that has ended.
    #[must_use]
    pub fn open_ended(entry: FrugalityTrial, record: FrugalityTrialStatus) -> Self {
        Self::Open {
            entry: Box::new(entry),
            record: Some(Box::new(record)),
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
        /// Version to be replaced. `None`: the version that `Open` has just created.
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
    /// Delete the benchmark, its ledger with it.
    Expire,
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

/// An object to delete: the one that was seen, and no other of its name.
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

/// An object to be created.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildObject {
    /// A candidate's server.
    Deployment(Box<Deployment>),
    /// Its address.
    Service(Box<Service>),
    /// Seed or injector.
    Job(Box<Job>),
    /// The login of a database that CloudNativePG does not run; whoever creates it adds the password.
    Secret(Box<Secret>),
    /// The database, where CloudNativePG runs it.
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

    /// What its pods are made from, where Kubernetes makes them.
    #[must_use]
    pub fn into_pod(self) -> Option<PodTemplateSpec> {
        match self {
            Self::Deployment(object) => Some(object.spec?.template),
            Self::Job(object) => Some(object.spec?.template),
            Self::Service(_) | Self::Secret(_) | Self::Cluster(_) => None,
        }
    }
}
