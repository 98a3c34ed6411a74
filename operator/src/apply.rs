//! Does what a plan says, in the plan's order.
//!
//! Objects are only ever created, and only under names that nobody else has: an object that exists
//! and does not bear this benchmark's label is somebody else's, and creating it fails.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{ObjectReference, Service},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::events::{Event, EventType, Recorder},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    api::{FrugalityBenchmark, FrugalityTrial, FrugalityTrialStatus, LABEL_BENCHMARK_UID, reason},
    cnpg,
    observe::LOCK_NAME,
    plan::{
        EventNote, LockAction, Plan,
        facts::{ChildKind, Refusal},
        resources::ChildObject,
    },
    reader::Reader,
};

/// Name under which the API server records who set a field.
const FIELD_MANAGER: &str = "frugality-operator";

/// A plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API server refused or was not reached.
    #[error("cannot {what}: {source}")]
    Api {
        /// What was tried.
        what: &'static str,
        /// Cause.
        source: kube::Error,
    },
}

/// What became of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All of it was done.
    Done,
    /// Another benchmark took the lock first; nothing was done.
    LockLost,
    /// An object was refused for good: trying again will not help.
    Refused(Refusal),
}

/// The means to carry out plans.
#[derive(Clone)]
pub struct Applier {
    /// Client.
    pub client: Client,
    /// Namespace of the lock.
    pub namespace: String,
    /// Publishes events.
    pub recorder: Recorder,
    /// Reads meters.
    pub reader: Reader,
}

impl Applier {
    /// Carries out a plan for a benchmark.
    pub async fn apply(
        &self,
        benchmark: &FrugalityBenchmark,
        plan: Plan,
    ) -> Result<Applied, ApplyError> {
        let Plan {
            lock,
            watch,
            open,
            record,
            create,
            delete,
            status,
            events,
            requeue_seconds: _,
        } = plan;
        let namespace = benchmark.namespace().unwrap_or_default();
        if let Some(action) = lock
            && !self.lock(benchmark, action).await?
        {
            return Ok(Applied::LockLost);
        }
        self.reader
            .watch(&benchmark.uid().unwrap_or_default(), watch);
        if let Some(trial) = open {
            self.open(&namespace, &trial).await?;
        }
        if let Some((name, record)) = record {
            self.record(&namespace, &name, &record).await?;
        }
        // Before the objects: where one can't be created, people still read what is tried.
        if benchmark.status.as_ref() != Some(&status) {
            let api = Api::<FrugalityBenchmark>::namespaced(self.client.clone(), &namespace);
            let patch = json!({
                "apiVersion": FrugalityBenchmark::api_version(&()),
                "kind": FrugalityBenchmark::kind(&()),
                "status": status,
            });
            gone_is_fine(
                api.patch_status(&benchmark.name_any(), &manager(), &Patch::Apply(patch))
                    .await,
            )
            .map_err(failed("write the status"))?;
        }
        let mut refused = None;
        for child in create {
            if let Some(refusal) = self.create(benchmark, child).await? {
                refused = Some(refusal);
                break;
            }
        }
        for (kind, name) in delete {
            self.delete(&namespace, kind, &name).await?;
        }
        for note in &events {
            self.publish(benchmark, note).await;
        }
        Ok(refused.map_or(Applied::Done, Applied::Refused))
    }

    /// Takes or gives back the lock; false where somebody else was faster.
    async fn lock(
        &self,
        benchmark: &FrugalityBenchmark,
        action: LockAction,
    ) -> Result<bool, ApplyError> {
        let api = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let holder = format!(
            "{} {}/{}",
            benchmark.uid().unwrap_or_default(),
            benchmark.namespace().unwrap_or_default(),
            benchmark.name_any()
        );
        let lease = |resource_version: Option<String>, holder: Option<String>| Lease {
            metadata: ObjectMeta {
                name: Some(LOCK_NAME.into()),
                namespace: Some(self.namespace.clone()),
                resource_version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                acquire_time: holder.as_ref().map(|_| MicroTime(jiff::Timestamp::now())),
                holder_identity: holder,
                ..LeaseSpec::default()
            }),
        };
        let params = PostParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PostParams::default()
        };
        let result = match action {
            LockAction::Take {
                resource_version: None,
            } => api.create(&params, &lease(None, Some(holder))).await,
            LockAction::Take { resource_version } => {
                api.replace(LOCK_NAME, &params, &lease(resource_version, Some(holder)))
                    .await
            }
            LockAction::Release { resource_version } => {
                api.replace(LOCK_NAME, &params, &lease(Some(resource_version), None))
                    .await
            }
        };
        match result {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(source) => Err(failed("take or give back the lock")(source)),
        }
    }

    async fn open(&self, namespace: &str, trial: &FrugalityTrial) -> Result<(), ApplyError> {
        let api = Api::<FrugalityTrial>::namespaced(self.client.clone(), namespace);
        match api.create(&post(), trial).await {
            Ok(_) => Ok(()),
            // An earlier pass created it and was ended before it could go on.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(source) => Err(failed("open an entry of the ledger")(source)),
        }
    }

    async fn record(
        &self,
        namespace: &str,
        name: &str,
        record: &FrugalityTrialStatus,
    ) -> Result<(), ApplyError> {
        let api = Api::<FrugalityTrial>::namespaced(self.client.clone(), namespace);
        let patch = json!({
            "apiVersion": FrugalityTrial::api_version(&()),
            "kind": FrugalityTrial::kind(&()),
            "status": record,
        });
        gone_is_fine(
            api.patch_status(name, &manager(), &Patch::Apply(patch))
                .await,
        )
        .map_err(failed("record an attempt"))
    }

    async fn create(
        &self,
        benchmark: &FrugalityBenchmark,
        child: ChildObject,
    ) -> Result<Option<Refusal>, ApplyError> {
        let namespace = &benchmark.namespace().unwrap_or_default();
        let kind = child.kind();
        let name = child.name();
        let result = match child {
            ChildObject::Deployment(object) => self.post(namespace, &*object).await,
            ChildObject::Service(object) => self.post(namespace, &*object).await,
            ChildObject::Job(object) => self.post(namespace, &*object).await,
            ChildObject::Cluster(object) => {
                let api = self.clusters(namespace);
                api.create(&post(), &object).await.map(|_| ())
            }
        };
        match result {
            Ok(()) => Ok(None),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                if self.is_ours(benchmark, kind, &name).await? {
                    return Ok(None);
                }
                Ok(Some(Refusal {
                    reason: reason::NAME_CONFLICT,
                    message: format!(
                        "{kind:?} {name} exists and is not this benchmark's; delete or rename it, then start the run anew with the annotation frugality.dev/rerun"
                    ),
                }))
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                Ok(Some(Refusal {
                    reason: reason::CHILD_REFUSED,
                    message: format!("the API server refused {kind:?} {name}: {}", status.message),
                }))
            }
            Err(source) => Err(failed("create an object")(source)),
        }
    }

    /// Whether an object that is in the way is this benchmark's; then an earlier pass made it, and
    /// this pass had not seen it yet.
    async fn is_ours(
        &self,
        benchmark: &FrugalityBenchmark,
        kind: ChildKind,
        name: &str,
    ) -> Result<bool, ApplyError> {
        let namespace = &benchmark.namespace().unwrap_or_default();
        let labels = match kind {
            ChildKind::Deployment => self.labels::<Deployment>(namespace, name).await,
            ChildKind::Service => self.labels::<Service>(namespace, name).await,
            ChildKind::Job => self.labels::<Job>(namespace, name).await,
            ChildKind::Cluster => self
                .clusters(namespace)
                .get_metadata_opt(name)
                .await
                .map(|object| object.map(|object| object.labels().clone())),
        };
        let labels = labels.map_err(failed("look at an object that is in the way"))?;
        Ok(labels.is_none_or(|labels| labels.get(LABEL_BENCHMARK_UID) == benchmark.uid().as_ref()))
    }

    async fn labels<K>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<std::collections::BTreeMap<String, String>>, kube::Error>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        let object = api.get_metadata_opt(name).await?;
        Ok(object.map(|object| object.labels().clone()))
    }

    async fn post<K>(&self, namespace: &str, object: &K) -> Result<(), kube::Error>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        api.create(&post(), object).await.map(|_| ())
    }

    /// Foreground: an injector's pod ends before its Job is gone. Background would let Fortio load
    /// the next candidate.
    async fn delete(&self, namespace: &str, kind: ChildKind, name: &str) -> Result<(), ApplyError> {
        let params = DeleteParams::foreground();
        let client = self.client.clone();
        let result = match kind {
            ChildKind::Deployment => Api::<Deployment>::namespaced(client, namespace)
                .delete(name, &params)
                .await
                .map(|_| ()),
            ChildKind::Service => Api::<Service>::namespaced(client, namespace)
                .delete(name, &params)
                .await
                .map(|_| ()),
            ChildKind::Job => Api::<Job>::namespaced(client, namespace)
                .delete(name, &params)
                .await
                .map(|_| ()),
            ChildKind::Cluster => self
                .clusters(namespace)
                .delete(name, &params)
                .await
                .map(|_| ()),
        };
        gone_is_fine(result).map_err(failed("delete an object"))
    }

    fn clusters(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &cnpg::api_resource())
    }

    /// An event that can't be published is no reason to stop measuring.
    async fn publish(&self, benchmark: &FrugalityBenchmark, note: &EventNote) {
        let reference: ObjectReference = benchmark.object_ref(&());
        let event = Event {
            type_: if note.warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: note.reason.clone(),
            // The API server takes at most 1024 bytes.
            note: Some(note.note.chars().take(500).collect()),
            action: "Measure".into(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &reference).await {
            tracing::warn!(%error, reason = note.reason, "event not published");
        }
    }
}

fn gone_is_fine<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

fn failed(what: &'static str) -> impl Fn(kube::Error) -> ApplyError {
    move |source| ApplyError::Api { what, source }
}

fn manager() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PostParams::default()
    }
}
