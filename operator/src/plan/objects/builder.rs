//! The builder of a run's objects, and the parts that they share.

use crate::{
    api::{
        Database, FrugalityBenchmark, FrugalityTrial, FrugalityTrialSpec, LABEL_BENCHMARK_UID,
        LABEL_MEASUREMENT, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL, Role,
    },
    plan::{
        action::ChildObject,
        facts::Config,
        names,
        objects::parts::{composed, restricted_pod},
        settings::{Settings, postgresql::APPLICATION},
    },
};
use std::collections::BTreeMap;

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{EnvVar, EnvVarSource, PodSpec, PodTemplateSpec, SecretKeySelector},
};
use kube::{Resource, ResourceExt, api::ObjectMeta};

/// PostgreSQL's default port.
pub(in crate::plan) const DATABASE_PORT: i32 = 5432;
/// Path from which kubelet reads a container's termination message.
pub(super) const TERMINATION_LOG: &str = "/dev/termination-log";
/// Non-root user of the injector's image. The image declares the same number.
pub(super) const INJECTOR_UID: i64 = 65532;

/// Builds a run's objects.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    /// The benchmark that owns them.
    pub benchmark: &'a FrugalityBenchmark,
    /// The parsed spec.
    pub settings: &'a Settings,
    /// The operator's configuration.
    pub config: &'a Config,
    /// The run's ID.
    pub run: &'a str,
}

impl Builder<'_> {
    /// A new entry of the ledger.
    #[must_use]
    pub fn trial(&self, name: &str, spec: FrugalityTrialSpec) -> FrugalityTrial {
        let mut metadata = self.metadata(name, None, None);
        metadata.labels.get_or_insert_default().insert(
            LABEL_MEASUREMENT.to_owned(),
            names::measurement_id(self.benchmark),
        );
        FrugalityTrial {
            metadata,
            spec,
            status: None,
        }
    }

    /// The settings that all pods share.
    pub(in crate::plan) fn pod(&self) -> PodSpec {
        let policy = &self.config.pods;
        PodSpec {
            tolerations: given(&policy.tolerations),
            priority_class_name: policy.priority_class_name.clone(),
            image_pull_secrets: given(&policy.image_pull_secrets),
            ..restricted_pod()
        }
    }

    pub(super) fn job(
        &self,
        name: &str,
        role: Role,
        trial: Option<&str>,
        pod: PodSpec,
    ) -> ChildObject {
        let metadata = self.metadata(name, Some(role), trial);
        ChildObject::Job(Box::new(Job {
            spec: Some(JobSpec {
                // A second try of the Job would send load, or insert rows, that the measurement does not count.
                backoff_limit: Some(0),
                template: PodTemplateSpec {
                    metadata: Some(ObjectMeta {
                        labels: metadata.labels.clone(),
                        ..ObjectMeta::default()
                    }),
                    spec: Some(PodSpec {
                        restart_policy: Some("Never".into()),
                        ..pod
                    }),
                },
                ..JobSpec::default()
            }),
            metadata,
            status: None,
        }))
    }

    pub(in crate::plan) fn metadata(
        &self,
        name: &str,
        role: Option<Role>,
        trial: Option<&str>,
    ) -> ObjectMeta {
        let mut labels = BTreeMap::from([
            (
                LABEL_BENCHMARK_UID.to_owned(),
                self.benchmark.uid().unwrap_or_default(),
            ),
            (LABEL_RUN.to_owned(), self.run.to_owned()),
        ]);
        if let Some(role) = role {
            labels.insert(LABEL_ROLE.to_owned(), role.as_str().to_owned());
        }
        if let Some(trial) = trial {
            labels.insert(LABEL_TRIAL.to_owned(), trial.to_owned());
        }
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: self.benchmark.namespace(),
            labels: Some(labels),
            owner_references: self
                .benchmark
                .controller_owner_ref(&())
                .map(|owner| vec![owner]),
            ..ObjectMeta::default()
        }
    }

    /// Name of the object that represents the run's database.
    #[must_use]
    pub fn database_name(&self) -> String {
        names::database_name(&self.benchmark.name_any(), self.run)
    }

    /// Name of the database's Service, as CloudNativePG names it.
    #[must_use]
    pub fn database_host(&self) -> String {
        format!("{}-rw", self.database_name())
    }

    /// Secret with the application's login, as CloudNativePG names it.
    pub(in crate::plan) fn database_secret_name(&self) -> String {
        format!("{}-app", self.database_name())
    }

    pub(in crate::plan) fn database_image<'b>(&'b self, database: &'b Database) -> &'b str {
        database
            .image
            .as_deref()
            .unwrap_or(&self.config.database_image)
    }

    /// Variables with the database's address, TLS mode and role. They are equal for the seed, every candidate and
    /// the check before each trial. The password stays in the database's Secret. TLS is off for all, because the
    /// defaults of client libraries differ.
    pub(super) fn database_env(&self) -> Vec<EnvVar> {
        let mut env = self.database_login();
        env.push(composed(
            "DATABASE_URL",
            &format!(
                "postgresql://$(PGUSER):$(PGPASSWORD)@{}:{DATABASE_PORT}/{}?sslmode=disable",
                self.database_host(),
                APPLICATION
            ),
        ));
        env
    }

    /// User and password from the database's Secret.
    pub(in crate::plan) fn database_login(&self) -> Vec<EnvVar> {
        let from_secret = |variable: &str, key: &str| EnvVar {
            name: variable.into(),
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(SecretKeySelector {
                    name: self.database_secret_name(),
                    key: key.into(),
                    ..SecretKeySelector::default()
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        };
        vec![
            from_secret("PGUSER", "username"),
            from_secret("PGPASSWORD", "password"),
        ]
    }
}

/// A list for an object's field. An empty list is left out.
fn given<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}
