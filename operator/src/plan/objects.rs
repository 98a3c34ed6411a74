//! The objects of a run, each built from the spec in one place.

mod candidate;
pub(in crate::plan) mod parts;

use crate::{
    api::{
        Batch, Candidate, Database, FrugalityBenchmark, FrugalityTrial, FrugalityTrialSpec,
        LABEL_BENCHMARK_UID, LABEL_MEASUREMENT, LABEL_ROLE, LABEL_RUN, LABEL_TRIAL, Role, Seed,
    },
    plan::{
        action::ChildObject,
        facts::Config,
        names,
        objects::parts::{composed, literal, restricted_container, restricted_pod, words},
        protocol::{SETTLE_SECONDS, TAIL_SECONDS},
        settings::{
            Sending, Settings,
            postgresql::{APPLICATION, database_user},
        },
    },
    time,
};
use std::collections::BTreeMap;

use frugality_measure::fortio::Amount;
use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{
        ConfigMapVolumeSource, Container, EnvVar, EnvVarSource, KeyToPath, PodSpec,
        PodTemplateSpec, SecretKeySelector, Volume, VolumeMount,
    },
};
use kube::{Resource, ResourceExt, api::ObjectMeta};

pub use self::candidate::{SERVER_CONTAINER, is_of_candidate};

/// SQL of the built-in address book.
const SEED_CONTACTS: &str = include_str!("objects/seed-contacts.sql");
/// Table of the built-in address book.
const CONTACTS_TABLE: &str = "contacts";
/// Container that sends the load.
pub const INJECTOR_CONTAINER: &str = "injector";
/// Container that makes the database ready for a trial.
pub const PREPARE_CONTAINER: &str = "prepare";
/// Container that counts the database's transactions once the load is over.
pub const TRANSACTIONS_CONTAINER: &str = "transactions";
/// All transactions that PostgreSQL has counted in the benchmark's database; those of a session that is
/// still open reach the count late (`COUNTED_WITHIN_SECONDS`).
const COUNT_TRANSACTIONS: &str = "psql \"$DATABASE_URL\" -X -qAt -v ON_ERROR_STOP=1 -c \"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()\"";
/// A session that has nothing more to do tells what it has not told yet within 10 s
/// (`PGSTAT_IDLE_INTERVAL` in pgstat.c of PostgreSQL 15 and later); one more for the way.
const COUNTED_WITHIN_SECONDS: f64 = 11.0;
/// Longest time that the injector takes to write its result after an interrupt.
const INTERRUPT_SECONDS: f64 = 30.0;
/// A candidate can change the settings of its role, and make views of the names that are looked up here. Options of the
/// connection count more.
const OWN_SETTINGS: &str = "export PGCONNECT_TIMEOUT=5 PGOPTIONS='-c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=0'";
/// Waits for the database to answer, for a minute: a node may learn of a service's address a moment
/// after the pod behind it is ready. If it never does, the next command says why.
const AWAIT_DATABASE: &str = "end=$(($(date +%s) + 60))
until psql \"$DATABASE_URL\" -X -q -c SELECT > /dev/null 2>&1 || [ \"$(date +%s)\" -ge \"$end\" ]; do
  sleep 1
done";
/// SQL that says how many rows the seeded table has, and their digest.
const ROWS_SQL: &str = include_str!("objects/rows.sql");
/// SQL that says, after [`ROWS_SQL`], what else is in the database.
const STATE_SQL: &str = include_str!("objects/state.sql");
/// Calls `fill` if the database was never filled, and then restores it from its template.
const RESTORE: &str = include_str!("objects/restore.sh");
/// Container that fills the database.
pub const SEED_CONTAINER: &str = "seed";
/// PostgreSQL's own port.
pub(in crate::plan) const DATABASE_PORT: i32 = 5432;
/// The injector takes spans below a day.
const MAX_INJECTION_SECONDS: f64 = 86_399.0;
/// Where Kubernetes takes a container's last words.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// Non-root user of the injector's image, which names it too.
const INJECTOR_UID: i64 = 65532;

/// Builds a run's objects.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    /// The benchmark that owns them.
    pub benchmark: &'a FrugalityBenchmark,
    /// Its spec in numbers.
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

    /// The Job that fills the database, as the application's own role.
    #[must_use]
    pub fn seed(&self, database: &Database, measured: &BTreeMap<String, String>) -> ChildObject {
        let mut env = self.database_env();
        env.push(literal("ROWS_SQL", ROWS_SQL));
        env.push(literal("STATE_SQL", STATE_SQL));
        let mut volumes = Vec::new();
        let mut mounts = Vec::new();
        let fill = match &database.seed {
            Seed {
                config_map: Some(own),
                ..
            } => {
                volumes.push(Volume {
                    name: "sql".into(),
                    config_map: Some(ConfigMapVolumeSource {
                        name: own.name.clone(),
                        items: Some(vec![KeyToPath {
                            key: own.key.clone(),
                            path: "seed.sql".into(),
                            ..KeyToPath::default()
                        }]),
                        ..ConfigMapVolumeSource::default()
                    }),
                    ..Volume::default()
                });
                mounts.push(VolumeMount {
                    name: "sql".into(),
                    mount_path: "/sql".into(),
                    read_only: Some(true),
                    ..VolumeMount::default()
                });
                "psql \"$DATABASE_URL\" -X -q -v ON_ERROR_STOP=1 -f /sql/seed.sql".to_owned()
            }
            Seed { contacts, .. } => {
                env.push(literal("SEED_SQL", SEED_CONTACTS));
                format!(
                    "printf '%s\\n' \"$SEED_SQL\" | psql \"$DATABASE_URL\" -X -q -v ON_ERROR_STOP=1 -v rows={} -f -",
                    contacts.unwrap_or_default()
                )
            }
        };
        let script = format!(
            "fill() {{\n{fill}\n}}\n{RESTORE}\nprintf '%s\\n' \"$ROWS_SQL\" \"$STATE_SQL\" | {}",
            read_table(&database.seed)
        );
        let container = Container {
            name: SEED_CONTAINER.into(),
            image: Some(self.database_image(database).to_owned()),
            command: Some(shell(&script)),
            env: Some(env),
            volume_mounts: Some(mounts),
            resources: Some(self.config.pods.helper_resources.clone()),
            ..restricted_container(database_user(database))
        };
        let name = names::seed_name(&self.benchmark.name_any(), self.run);
        self.job(
            &name,
            Role::Seed,
            None,
            PodSpec {
                containers: vec![container],
                volumes: Some(volumes),
                node_selector: Some(measured.clone()),
                ..self.pod()
            },
        )
    }

    /// The Job that sends the load of one attempt.
    #[must_use]
    pub fn injector(
        &self,
        candidate: &Candidate,
        trial: &str,
        connections: u32,
        injector: &BTreeMap<String, String>,
        clock_url: Option<&str>,
    ) -> ChildObject {
        let container = Container {
            name: INJECTOR_CONTAINER.into(),
            image: Some(self.config.injector_image.clone()),
            args: Some(words(self.injector_args(
                candidate,
                trial,
                connections,
                clock_url,
            ))),
            resources: Some(self.config.pods.injector_resources.clone()),
            ..restricted_container(INJECTOR_UID)
        };
        // Not in the idle baseline, of which a connection to the database would be a part. In a long one it
        // is a small part, and a pod that is deleted is not to wait for it.
        let count_after_seconds = (SETTLE_SECONDS + self.settings.idle_seconds)
            .ceil()
            .clamp(COUNTED_WITHIN_SECONDS, INTERRUPT_SECONDS);
        let beside = self.benchmark.spec.database.as_ref().map(|database| {
            let container = |name: &str, script: &str| Container {
                name: name.into(),
                image: Some(self.database_image(database).to_owned()),
                command: Some(shell(script)),
                env: Some([self.database_env(), vec![literal("ROWS_SQL", ROWS_SQL)]].concat()),
                resources: Some(self.config.pods.helper_resources.clone()),
                ..restricted_container(database_user(database))
            };
            let prepare = format!(
                "{OWN_SETTINGS}\n{AWAIT_DATABASE}\npsql \"$DATABASE_URL\" -X -q -v ON_ERROR_STOP=1 -c CHECKPOINT\nprintf '%s\\n' \"$ROWS_SQL\" | {}\n{COUNT_TRANSACTIONS} >> {TERMINATION_LOG}",
                read_table(&database.seed)
            );
            let count = format!(
                "{OWN_SETTINGS}\ntrap 'sleep {count_after_seconds:.0}; {COUNT_TRANSACTIONS} > {TERMINATION_LOG}; exit 0' TERM\nwhile :; do sleep 60 & wait \"$!\" || :; done"
            );
            vec![
                container(PREPARE_CONTAINER, &prepare),
                // A sidecar: kubelet ends it once the injector has ended.
                Container {
                    restart_policy: Some("Always".into()),
                    ..container(TRANSACTIONS_CONTAINER, &count)
                },
            ]
        });
        self.job(
            trial,
            Role::Injector,
            Some(trial),
            PodSpec {
                init_containers: beside,
                containers: vec![container],
                node_selector: Some(injector.clone()),
                termination_grace_period_seconds: time::whole_seconds(
                    INTERRUPT_SECONDS + count_after_seconds,
                ),
                ..self.pod()
            },
        )
    }

    fn injector_args(
        &self,
        candidate: &Candidate,
        trial: &str,
        connections: u32,
        clock_url: Option<&str>,
    ) -> Vec<String> {
        let spec = &self.benchmark.spec;
        let settings = self.settings;
        let namespace = self.benchmark.namespace().unwrap_or_default();
        let mut args = vec![
            "run".to_owned(),
            format!(
                "--url=http://{trial}.{namespace}.svc:{}{}",
                candidate.server.port,
                spec.request.as_ref().map_or("", |request| &request.path)
            ),
            format!("--connections={connections}"),
            format!("--warm-up-seconds={}", settings.warm_up_seconds),
            format!("--tail-seconds={TAIL_SECONDS}"),
            format!("--timeout-seconds={}", settings.timeout_seconds),
            format!("--termination-log={TERMINATION_LOG}"),
        ];
        args.push(match settings.amount {
            Amount::DurationSeconds(seconds) => format!("--duration-seconds={seconds}"),
            Amount::Requests(requests) => format!("--requests={requests}"),
        });
        if let Amount::Requests(_) = settings.amount {
            let limit = settings.deadline_seconds.min(MAX_INJECTION_SECONDS);
            args.push(format!("--limit-seconds={limit}"));
        }
        if let Some(rate) = settings.rate {
            args.push(format!("--rate={rate}"));
        }
        if let Some(request) = &spec.request {
            args.push(format!("--method={}", request.method.as_str()));
            args.push(format!("--labels={trial}"));
            for header in &request.headers {
                args.push(format!("--header={}:{}", header.name, header.value));
            }
            if let Some(body) = &request.body {
                args.push(format!("--body={body}"));
            }
            match settings.sending {
                Sending::Closed => {}
                Sending::Skipping => args.push("--skip-late".to_owned()),
                Sending::Open => {
                    args.push("--open".to_owned());
                    let codes = settings.expected_status.iter();
                    args.extend(codes.map(|code| format!("--expected-status={code}")));
                }
            }
        }
        if let Some(scenario) = &spec.scenario {
            args.push(format!("--script={}", scenario.script));
            args.push(format!("--ramp-up-seconds={}", settings.ramp_up_seconds));
        }
        if let Some(batch) = &spec.batch {
            args.extend(batch_args(batch));
        }
        if settings.is_endurance() {
            args.push("--course".to_owned());
        }
        if let Some(url) = clock_url {
            args.push(format!("--clock-url={url}"));
        }
        args
    }

    /// What all pods have in common.
    pub(in crate::plan) fn pod(&self) -> PodSpec {
        let tolerations = &self.config.pods.tolerations;
        PodSpec {
            tolerations: (!tolerations.is_empty()).then(|| tolerations.clone()),
            ..restricted_pod()
        }
    }

    fn job(&self, name: &str, role: Role, trial: Option<&str>, pod: PodSpec) -> ChildObject {
        let metadata = self.metadata(name, Some(role), trial);
        ChildObject::Job(Box::new(Job {
            spec: Some(JobSpec {
                // A second try would be load, or rows, that nobody counted.
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

    /// Name of the object that stands for the run's database.
    #[must_use]
    pub fn database_name(&self) -> String {
        names::database_name(&self.benchmark.name_any(), self.run)
    }

    /// Service by which the database is reached, as CloudNativePG names it.
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

    /// The same address, TLS mode and role for the seed, for every candidate and for the check
    /// before each trial. The password stays in the database's Secret. TLS is off for all alike:
    /// client libraries differ in what they do by default.
    fn database_env(&self) -> Vec<EnvVar> {
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

/// Rows that the seed must leave behind, and the table that has them.
#[must_use]
pub fn expected_rows(seed: &Seed) -> i64 {
    match &seed.config_map {
        Some(own) => own.rows,
        None => seed.contacts.unwrap_or_default(),
    }
}

/// Runs what it is told on its standard input, about the seeded table, and writes the answer as the container's last
/// words.
fn read_table(seed: &Seed) -> String {
    let table = seed
        .config_map
        .as_ref()
        .map_or(CONTACTS_TABLE, |own| own.table.as_str());
    format!(
        "psql \"$DATABASE_URL\" -X -qAt -v ON_ERROR_STOP=1 -v table={table} -f - > {TERMINATION_LOG}"
    )
}

/// That programs are executed, and how score and work are read.
fn batch_args(batch: &Batch) -> Vec<String> {
    let score = batch.score.as_ref();
    let score = score.map(|it| format!("--score-pattern={}", it.pattern));
    let work = batch.work.as_ref().and_then(|work| {
        let pattern = work.pattern.as_ref();
        let amount = work.amount.as_ref();
        pattern
            .map(|pattern| format!("--work-pattern={pattern}"))
            .or_else(|| amount.map(|amount| format!("--work-amount={amount}")))
    });
    let batch = ["--batch".to_owned()].into_iter();
    batch.chain(score).chain(work).collect()
}

fn shell(script: &str) -> Vec<String> {
    words(["/bin/sh", "-ec", script])
}
