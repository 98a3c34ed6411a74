//! Carries out a plan, in the plan's order.
//!
//! Child objects are created and never overwritten. If an object of the same name exists without this benchmark's
//! label, it belongs to another program, and the creation fails.

use crate::{
    api::{
        FrugalityBaseline, FrugalityBenchmark, FrugalityBenchmarkStatus, FrugalityTrace,
        FrugalityTrial, FrugalityTrialStatus, LABEL_BENCHMARK_UID, LABEL_LOCK, LOCK_OF_NODE,
        Reason,
    },
    io::{moments::Moments, password, reader::Reader},
    plan::{
        action::{
            Action, BaselineWrite, ChildObject, Deletion, EventNote, ForgottenEntry, LockAction,
            Plan,
        },
        database::cloud_native_pg,
        facts::{ChildKind, Refusal},
        names::lock_name,
        report::events::event_name,
    },
    text::within_bytes,
    time::{self, unix_seconds},
};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Event, Service},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, Time},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

/// Name under which the API server records who set a field.
const FIELD_MANAGER: &str = "frugality-operator";
/// Most bytes that the API server accepts in an event's note (`NoteLengthLimit` of its validation of events).
const NOTE_BYTES: usize = 1024;
/// A plan from older observations is dropped at the next action. The process may have been stopped, and another
/// operator may have continued. A pass takes a fraction of a second.
const STALE_AFTER_SECONDS: f64 = 10.0;

/// Longest wait for the answer to the course of an attempt. A pass has 30 s in all.
const TRACE_TIMEOUT: Duration = Duration::from_secs(5);

/// A plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The API server refused, or the operator could not reach it.
    #[error("cannot {what}: {source}")]
    Api {
        /// The attempted action.
        what: &'static str,
        /// Cause.
        source: kube::Error,
    },
    /// The system gave no random numbers.
    #[error("cannot make a password: {0}")]
    Password(#[source] getrandom::Error),
}

impl ApplyError {
    /// Whether the API server forbids the action. The operator may have lost its rights in the namespace.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Api {
                source: kube::Error::Api(status),
                ..
            } => status.code == 403,
            Self::Api { .. } | Self::Password(_) => false,
        }
    }
}

/// Result of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// All of it was done.
    Done,
    /// Another writer was first, or the plan is too old. The operator did not carry out the rest.
    Overtaken,
    /// The API server refused an object. The refusal shows whether another try helps.
    Refused(Refusal),
}

/// Carries out plans.
#[derive(Clone)]
pub struct Applier {
    /// Client of the API server.
    pub client: Client,
    /// Namespace of the locks.
    pub namespace: String,
    /// Name of this operator's pod, in the events that it publishes.
    pub instance: String,
    /// Reader of the meters.
    pub reader: Reader,
    /// Times of the events, in order.
    pub moments: Moments,
}

impl Applier {
    /// Carries out a benchmark's plan. `seen_unix_seconds` is the time of the observations behind the plan.
    ///
    /// # Errors
    ///
    /// The API server can't be reached or fails, or the system gives no random numbers.
    pub async fn apply(
        &self,
        benchmark: &FrugalityBenchmark,
        plan: Plan,
        seen_unix_seconds: f64,
    ) -> Result<Applied, ApplyError> {
        let namespace = benchmark.namespace().unwrap_or_default();
        let mut opened = None;
        let mut refused = None;
        let mut has_course = true;
        let mut forgets = true;
        let decided = time::timestamp(plan.decided_unix_seconds).unwrap_or_default();
        let recorded = plan.record().map(|(name, _)| name);
        let attempt_ends = recorded.is_some();
        let attempt = recorded.or_else(|| plan.opened().map(ResourceExt::name_any));
        for action in plan.actions(benchmark.current_status()) {
            let age = unix_seconds(jiff::Timestamp::now()) - seen_unix_seconds;
            // The course of an attempt that has ended is the same at any later time. So are entries of old runs.
            let expires = !matches!(
                action,
                Action::Trace(_) | Action::WatchOnly(_) | Action::Forget(_)
            );
            if expires && age.abs() > STALE_AFTER_SECONDS {
                tracing::warn!(
                    benchmark = benchmark.name_any(),
                    age_seconds = age,
                    "plan dropped, because it is too old"
                );
                return Ok(Applied::Overtaken);
            }
            let mut goes_on = true;
            match action {
                Action::Lock(action) => goes_on = self.lock(benchmark, action, decided).await?,
                Action::Watch(watch) => {
                    let uid = benchmark.uid().unwrap_or_default();
                    self.reader.watch(&uid, watch);
                }
                Action::Open(entry) => {
                    match self.open(&namespace, &entry, attempt_ends).await? {
                        Opening::Created(version) => opened = version,
                        Opening::Exists => goes_on = false,
                        // The next pass says why and tries again.
                        Opening::Refused(refusal) => refused = Some(refusal),
                    }
                }
                Action::Record {
                    name,
                    version,
                    record,
                } => {
                    let version = version.or(opened.take());
                    goes_on = self
                        .record(&namespace, &name, version.as_deref(), &record)
                        .await?;
                }
                Action::Status(status) => self.tell(benchmark, *status).await?,
                Action::Create(_) if refused.is_some() => {}
                Action::Create(child) => refused = self.create(benchmark, child).await?,
                Action::Delete(deletion) => self.delete(&namespace, deletion).await?,
                Action::Publish(note) => self.publish(benchmark, attempt.as_deref(), &note).await,
                Action::Trace(trace) => has_course = self.keep(&namespace, &trace).await,
                Action::WatchOnly(_) if !has_course => {}
                Action::WatchOnly(trials) => {
                    self.reader
                        .watch_only(&benchmark.uid().unwrap_or_default(), &trials);
                }
                Action::Promote(write) => goes_on = self.promote(&namespace, *write).await?,
                Action::Forget(_) if !forgets => {}
                Action::Forget(entry) => forgets = self.forget(&namespace, &entry).await,
                Action::Expire => self.expire(benchmark).await?,
            }
            if !goes_on {
                return Ok(Applied::Overtaken);
            }
        }
        Ok(refused.map_or(Applied::Done, Applied::Refused))
    }

    /// Writes a baseline over the version that the pass read. False if it has changed since: the next pass decides
    /// again.
    async fn promote(&self, namespace: &str, write: BaselineWrite) -> Result<bool, ApplyError> {
        let api = Api::<FrugalityBaseline>::namespaced(self.client.clone(), namespace);
        let result = match &write {
            BaselineWrite::Create(new) => api.create(&post(), new).await,
            BaselineWrite::Replace(new) => api.replace(&new.name_any(), &post(), new).await,
            BaselineWrite::Status(new) => api.replace_status(&new.name_any(), &post(), new).await,
        };
        overtaken_is_fine(result).map_err(failed("promote a candidate"))
    }

    /// Takes or releases a lock; false if another writer was first.
    async fn lock(
        &self,
        benchmark: &FrugalityBenchmark,
        action: LockAction,
        decided: Timestamp,
    ) -> Result<bool, ApplyError> {
        let api = Api::<Lease>::namespaced(self.client.clone(), &self.namespace);
        let holder = format!(
            "{} {}/{}",
            benchmark.uid().unwrap_or_default(),
            benchmark.namespace().unwrap_or_default(),
            benchmark.name_any()
        );
        let lease = |name: &str, resource_version: Option<String>| Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some([(LABEL_LOCK.to_owned(), LOCK_OF_NODE.to_owned())].into()),
                resource_version,
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                // The cluster's clock, because the deadline is counted by the same clock.
                acquire_time: Some(MicroTime(decided)),
                holder_identity: Some(holder.clone()),
                ..LeaseSpec::default()
            }),
        };
        let result = match action {
            LockAction::Take {
                node,
                resource_version: None,
            } => {
                let new = lease(&lock_name(&node), None);
                api.create(&post(), &new).await
            }
            LockAction::Take {
                node,
                resource_version,
            } => {
                let name = lock_name(&node);
                let taken = lease(&name, resource_version);
                api.replace(&name, &post(), &taken).await
            }
            LockAction::Release {
                name,
                resource_version,
            } => {
                let result = api.delete(&name, &only(resource_version)).await;
                return overtaken_is_fine(result).map_err(failed("release a lock"));
            }
        };
        overtaken_is_fine(result).map_err(failed("take a lock"))
    }

    /// Creates an entry. `is_recorded`: its record follows. Without its entry a record has no place, so a quota that has
    /// no room is then an error like any other.
    async fn open(
        &self,
        namespace: &str,
        trial: &FrugalityTrial,
        is_recorded: bool,
    ) -> Result<Opening, ApplyError> {
        let api = Api::<FrugalityTrial>::namespaced(self.client.clone(), namespace);
        let source = match api.create(&post(), trial).await {
            Ok(created) => return Ok(Opening::Created(created.resource_version())),
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(Opening::Exists),
            Err(source) => source,
        };
        let refusal = match &source {
            kube::Error::Api(status) => {
                let object = format!("FrugalityTrial {}", trial.name_any());
                Refusal::of(&object, status.code, &status.message)
            }
            _ => None,
        };
        match refusal.filter(|it| it.may_pass() && !is_recorded) {
            Some(refusal) => Ok(Opening::Refused(refusal)),
            None => Err(failed("open an entry of the ledger")(source)),
        }
    }

    /// Writes a record over the given version of the entry. False if the entry has changed since: an idle baseline
    /// that another operator recorded must not be replaced by a later one.
    async fn record(
        &self,
        namespace: &str,
        name: &str,
        resource_version: Option<&str>,
        record: &FrugalityTrialStatus,
    ) -> Result<bool, ApplyError> {
        let api = Api::<FrugalityTrial>::namespaced(self.client.clone(), namespace);
        let patch = json!({
            "metadata": { "resourceVersion": resource_version },
            "status": record,
        });
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.into()),
            ..PatchParams::default()
        };
        let result = api.patch_status(name, &params, &Patch::Merge(patch)).await;
        overtaken_is_fine(result).map_err(failed("record an attempt"))
    }

    /// Replaces the status that the plan was made from. If the status has changed since, the next pass writes the
    /// current one.
    async fn tell(
        &self,
        benchmark: &FrugalityBenchmark,
        status: FrugalityBenchmarkStatus,
    ) -> Result<(), ApplyError> {
        let namespace = benchmark.namespace().unwrap_or_default();
        let api = Api::<FrugalityBenchmark>::namespaced(self.client.clone(), &namespace);
        let told = FrugalityBenchmark {
            status: Some(status),
            ..benchmark.clone()
        };
        let result = api
            .replace_status(&benchmark.name_any(), &post(), &told)
            .await;
        overtaken_is_fine(result)
            .map(|_| ())
            .map_err(failed("write the status"))
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
            ChildObject::Secret(object) => {
                let object = password::filled(*object).map_err(ApplyError::Password)?;
                self.post(namespace, &object).await
            }
            ChildObject::Cluster(object) => {
                let api = self.clusters(namespace);
                api.create(&post(), &object).await.map(|_| ())
            }
        };
        let Err(source) = result else {
            return Ok(None);
        };
        let refusal = match &source {
            kube::Error::Api(status) => {
                Refusal::of(&format!("{kind:?} {name}"), status.code, &status.message)
            }
            _ => None,
        };
        let Some(refusal) = refusal else {
            return Err(failed("create an object")(source));
        };
        let exists = refusal.reason == Reason::NameConflict;
        if exists && self.is_ours(benchmark, kind, &name).await? {
            return Ok(None);
        }
        Ok(Some(refusal))
    }

    /// Whether an existing object belongs to this benchmark. If so, an earlier pass made it, and this pass had not
    /// seen it yet.
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
            // The operator may not read Secrets. The name contains the run's ID, so an earlier pass made it.
            ChildKind::Secret => return Ok(true),
            ChildKind::Cluster => self
                .clusters(namespace)
                .get_metadata_opt(name)
                .await
                .map(|object| object.map(|object| object.labels().clone())),
        };
        let labels = labels.map_err(failed("read an object that has the name of a child"))?;
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

    /// Foreground, because an injector's pod must end before its Job is gone. With background deletion, Fortio
    /// could load the next candidate.
    ///
    /// Deletes only the object that was observed. A seed Job or a database that was created again has the same name.
    async fn delete(&self, namespace: &str, deletion: Deletion) -> Result<(), ApplyError> {
        let Deletion { kind, name, uid } = deletion;
        let name = &name;
        let params = DeleteParams::foreground().preconditions(Preconditions {
            resource_version: None,
            uid: Some(uid),
        });
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
            // The Secret is deleted with its owner, the Service.
            ChildKind::Secret => Ok(()),
            ChildKind::Cluster => self
                .clusters(namespace)
                .delete(name, &params)
                .await
                .map(|_| ()),
        };
        overtaken_is_fine(result)
            .map(|_| ())
            .map_err(failed("delete an object"))
    }

    /// Deletes an entry of the ledger. False if that fails: no figure depends on it, and a later pass tries again.
    async fn forget(&self, namespace: &str, entry: &ForgottenEntry) -> bool {
        let api = Api::<FrugalityTrial>::namespaced(self.client.clone(), namespace);
        let params = DeleteParams::background().preconditions(Preconditions {
            resource_version: None,
            uid: Some(entry.uid.clone()),
        });
        match overtaken_is_fine(api.delete(&entry.name, &params).await) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(entry = entry.name, %error, "cannot delete an entry of the ledger");
                false
            }
        }
    }

    fn clusters(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            namespace,
            &cloud_native_pg::api_resource(),
        )
    }

    /// Deletes the observed benchmark with all objects that it owns, unless a user has edited it since.
    async fn expire(&self, benchmark: &FrugalityBenchmark) -> Result<(), ApplyError> {
        let namespace = benchmark.namespace().unwrap_or_default();
        let api = Api::<FrugalityBenchmark>::namespaced(self.client.clone(), &namespace);
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                resource_version: benchmark.resource_version(),
                uid: benchmark.uid(),
            }),
            ..DeleteParams::background()
        };
        let result = api.delete(&benchmark.name_any(), &params).await;
        overtaken_is_fine(result)
            .map(|_| ())
            .map_err(failed("delete a benchmark after its ttlAfterFinished"))
    }

    /// Publishes an event once, because its name follows from its content. A failure does not stop the
    /// measurement.
    async fn publish(
        &self,
        benchmark: &FrugalityBenchmark,
        attempt: Option<&str>,
        note: &EventNote,
    ) {
        let namespace = benchmark.namespace().unwrap_or_default();
        let now = jiff::Timestamp::now();
        let shown_at = self.moments.next(&benchmark.uid().unwrap_or_default(), now);
        let event = Event {
            metadata: ObjectMeta {
                name: Some(event_name(benchmark, note)),
                namespace: Some(namespace.clone()),
                ..ObjectMeta::default()
            },
            type_: Some(if note.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(note.reason.clone()),
            message: Some(within_bytes(&note.note, NOTE_BYTES)),
            action: Some("Measure".into()),
            event_time: Some(MicroTime(now)),
            first_timestamp: Some(Time(shown_at)),
            last_timestamp: Some(Time(shown_at)),
            count: Some(1),
            involved_object: benchmark.object_ref(&()),
            reporting_component: Some(FIELD_MANAGER.into()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        };
        let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
        let benchmark = format!("{namespace}/{}", benchmark.name_any());
        let EventNote { reason, note, .. } = note;
        match api.create(&post(), &event).await {
            Ok(_) => tracing::info!(benchmark, attempt, reason, note, "published"),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                tracing::warn!(%error, benchmark, attempt, reason, note, "event not published");
            }
        }
    }

    /// Creates the course of an attempt. A failure changes nothing else. Returns whether the readings may be dropped: the
    /// course is stored, or the API server refused it. After an upgrade the cluster may lack the definition or the right. An
    /// existing object is the course of the same attempt, because an attempt ends once.
    async fn keep(&self, namespace: &str, trace: &FrugalityTrace) -> bool {
        let creation = tokio::time::timeout(TRACE_TIMEOUT, self.post(namespace, trace)).await;
        let (error, is_refused) = match creation {
            Ok(Ok(())) => return true,
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => return true,
            Ok(Err(error)) => {
                let code = match &error {
                    kube::Error::Api(status) => status.code,
                    _ => 0,
                };
                (error.to_string(), code / 100 == 4 && code != 429)
            }
            Err(_) => (
                format!("no answer within {} s", TRACE_TIMEOUT.as_secs()),
                false,
            ),
        };
        let name = trace.name_any();
        tracing::warn!(error, name, is_refused, "course of the attempt not stored");
        is_refused
    }
}

/// What came of the creation of an entry.
enum Opening {
    /// The entry has this version.
    Created(Option<String>),
    /// An earlier pass created it and ended before it could continue, or another operator created it.
    Exists,
    /// A quota has no room for it.
    Refused(Refusal),
}

/// Parameters that delete only the given version.
pub(crate) fn only(resource_version: String) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            resource_version: Some(resource_version),
            uid: None,
        }),
        ..DeleteParams::default()
    }
}

/// Whether the write was done. False if the object has changed since it was observed, or is gone.
fn overtaken_is_fine<T>(result: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}

fn failed(what: &'static str) -> impl Fn(kube::Error) -> ApplyError {
    move |source| ApplyError::Api { what, source }
}

fn post() -> PostParams {
    PostParams {
        field_manager: Some(FIELD_MANAGER.into()),
        ..PostParams::default()
    }
}
