//! Carries out a plan, in the plan's order.
//!
//! Child objects are created and never overwritten. If an object of the same name exists without this benchmark's
//! label, it belongs to another program, and the creation fails.

mod answer;
mod ledger;

pub use self::answer::ApplyError;
pub(crate) use self::answer::only;
use self::{
    answer::{FIELD_MANAGER, failed, overtaken_is_fine, post, refusal},
    ledger::Opening,
};
use crate::{
    api::{
        FrugalityBaseline, FrugalityBenchmark, FrugalityBenchmarkStatus, LABEL_BENCHMARK_UID,
        LABEL_LOCK, LOCK_OF_NODE, Reason,
    },
    io::{moments::Moments, password, reader::Reader},
    plan::{
        action::{Action, BaselineWrite, ChildObject, Deletion, EventNote, LockAction, Plan},
        database::cloud_native_pg,
        facts::{ChildKind, Refusal},
        names::lock_name,
        report::events::event_name,
    },
    text::within_bytes,
    time::{self, unix_seconds},
};
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
    api::{DeleteParams, DynamicObject, ObjectMeta, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};

/// Most bytes that the API server accepts in an event's note (`NoteLengthLimit` of its validation of events).
const NOTE_BYTES: usize = 1024;
/// A plan from older observations is dropped at the next action. The process may have been stopped, and another
/// operator may have continued. A pass takes a fraction of a second.
const STALE_AFTER_SECONDS: f64 = 10.0;

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
                    match ledger::open(&self.client, &namespace, &entry).await? {
                        Opening::Created(version) => opened = version,
                        Opening::Exists => goes_on = false,
                        // The next pass says why and tries again.
                        Opening::Refused(refusal) => refused = Some(refusal),
                    }
                }
                // Without its entry a record has no place, and an attempt no objects.
                Action::Record { .. } | Action::Create(_) if refused.is_some() => {}
                Action::Record {
                    name,
                    version,
                    record,
                } => {
                    let version = version.or(opened.take());
                    goes_on = ledger::write_record(
                        &self.client,
                        &namespace,
                        &name,
                        version.as_deref(),
                        &record,
                    )
                    .await?;
                }
                Action::Status(status) => self.write_status(benchmark, *status).await?,
                Action::Create(child) => refused = self.create(benchmark, child).await?,
                Action::Delete(deletion) => self.delete(&namespace, deletion).await?,
                Action::Publish(note) => self.publish(benchmark, attempt.as_deref(), &note).await,
                Action::Trace(trace) => {
                    has_course = ledger::store_course(&self.client, &namespace, &trace).await;
                }
                Action::WatchOnly(_) if !has_course => {}
                Action::WatchOnly(trials) => {
                    self.reader
                        .watch_only(&benchmark.uid().unwrap_or_default(), &trials);
                }
                Action::Promote(write) => goes_on = self.promote(&namespace, *write).await?,
                Action::Forget(_) if !forgets => {}
                Action::Forget(entry) => {
                    forgets = ledger::forget(&self.client, &namespace, &entry).await;
                }
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

    /// Replaces the status that the plan was made from. If the status has changed since, the next pass writes the
    /// current one.
    async fn write_status(
        &self,
        benchmark: &FrugalityBenchmark,
        status: FrugalityBenchmarkStatus,
    ) -> Result<(), ApplyError> {
        let namespace = benchmark.namespace().unwrap_or_default();
        let api = Api::<FrugalityBenchmark>::namespaced(self.client.clone(), &namespace);
        let reported = FrugalityBenchmark {
            status: Some(status),
            ..benchmark.clone()
        };
        let result = api
            .replace_status(&benchmark.name_any(), &post(), &reported)
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
        let Some(refusal) = refusal(&source, &format!("{kind:?} {name}")) else {
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
}
