//! The Job that sends the load of an attempt.

use crate::{
    api::{Candidate, Role},
    load::rules::LoadArguments,
    plan::{
        action::ChildObject,
        objects::{
            builder::{Builder, INJECTOR_UID, TERMINATION_LOG},
            parts::{literal, restricted_container, words},
            seed::{ROWS_SQL, read_table, shell},
        },
        protocol::{SETTLE_SECONDS, TAIL_SECONDS},
        settings::{Point, postgresql::database_user},
    },
    time,
};
use std::collections::BTreeMap;

use frugality_measure::fortio::Amount;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::ResourceExt;

/// Container that sends the load.
pub const INJECTOR_CONTAINER: &str = "injector";
/// Container that makes the database ready for a trial.
pub const PREPARE_CONTAINER: &str = "prepare";
/// Container that counts the database's transactions after the load.
pub const TRANSACTIONS_CONTAINER: &str = "transactions";
/// Prints the number of transactions that PostgreSQL has counted in the benchmark's database. A session that is
/// still open reports its transactions late (`COUNTED_WITHIN_SECONDS`).
const COUNT_TRANSACTIONS: &str = "psql \"$DATABASE_URL\" -X -qAt -v ON_ERROR_STOP=1 -c \"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()\"";
/// An idle session reports its last transactions within 10 s (`PGSTAT_IDLE_INTERVAL` in pgstat.c of PostgreSQL 15
/// and later). One second is added for the delay on the way.
const COUNTED_WITHIN_SECONDS: f64 = 11.0;
/// Time limit for the injector to write its result after an interrupt, in seconds.
const INTERRUPT_SECONDS: f64 = 30.0;
/// A candidate can change the settings of its role, and create views with the names that are looked up here. The
/// connection's options override both.
const SESSION_SETTINGS: &str = "export PGCONNECT_TIMEOUT=5 PGOPTIONS='-c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=0'";
/// Waits up to a minute for the database to answer: a node may learn a Service's address shortly after the pod
/// behind it is ready. If the database never answers, the next command reports the reason.
const AWAIT_DATABASE: &str = "end=$(($(date +%s) + 60))
until psql \"$DATABASE_URL\" -X -q -c SELECT > /dev/null 2>&1 || [ \"$(date +%s)\" -ge \"$end\" ]; do
  sleep 1
done";
/// The injector accepts spans shorter than a day.
const MAX_INJECTION_SECONDS: f64 = 86_399.0;

/// The load of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct PointLoad<'a> {
    /// Its point.
    pub point: &'a Point,
    /// Requests per second, if the point is a load level.
    pub level_rate: Option<f64>,
}

impl<'a> PointLoad<'a> {
    /// The load at a point that is no load level.
    #[must_use]
    pub fn at(point: &'a Point) -> Self {
        Self {
            point,
            level_rate: None,
        }
    }
}

impl Builder<'_> {
    /// The Job that sends the load of one attempt.
    #[must_use]
    pub fn injector(
        &self,
        candidate: &Candidate,
        trial: &str,
        load: PointLoad<'_>,
        injector: &BTreeMap<String, String>,
        clock_url: Option<&str>,
    ) -> ChildObject {
        let rules = self.settings.kind.rules();
        let image = if rules.is_sent_by_k6(self.settings.sending_at(load.point)) {
            &self.config.injector_k6_image
        } else {
            &self.config.injector_image
        };
        let container = Container {
            name: INJECTOR_CONTAINER.into(),
            image: Some(image.clone()),
            args: Some(words(self.injector_args(candidate, trial, load, clock_url))),
            resources: Some(self.config.pods.injector_resources.clone()),
            ..restricted_container(INJECTOR_UID)
        };
        // The count waits for the end of the idle baseline, because its connection to the database would use energy
        // in the baseline. It waits at most `INTERRUPT_SECONDS`: in a long baseline its share of the energy is
        // small, and a deleted pod must not wait longer.
        let count_after_seconds = (SETTLE_SECONDS + self.settings.idle_seconds)
            .ceil()
            .clamp(COUNTED_WITHIN_SECONDS, INTERRUPT_SECONDS);
        let database_containers = self.benchmark.spec.database.as_ref().map(|database| {
            let container = |name: &str, script: &str| Container {
                name: name.into(),
                image: Some(self.database_image(database).to_owned()),
                command: Some(shell(script)),
                env: Some([self.database_env(), vec![literal("ROWS_SQL", ROWS_SQL)]].concat()),
                resources: Some(self.config.pods.helper_resources.clone()),
                ..restricted_container(database_user(database))
            };
            let prepare = format!(
                "{SESSION_SETTINGS}\n{AWAIT_DATABASE}\npsql \"$DATABASE_URL\" -X -q -v ON_ERROR_STOP=1 -c CHECKPOINT\nprintf '%s\\n' \"$ROWS_SQL\" | {}\n{COUNT_TRANSACTIONS} >> {TERMINATION_LOG}",
                read_table(&database.seed)
            );
            let count = format!(
                "{SESSION_SETTINGS}\ntrap 'sleep {count_after_seconds:.0}; {COUNT_TRANSACTIONS} > {TERMINATION_LOG}; exit 0' TERM\nwhile :; do sleep 60 & wait \"$!\" || :; done"
            );
            vec![
                container(PREPARE_CONTAINER, &prepare),
                // A sidecar: kubelet ends it after the injector has ended.
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
                init_containers: database_containers,
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
        load: PointLoad<'_>,
        clock_url: Option<&str>,
    ) -> Vec<String> {
        let spec = &self.benchmark.spec;
        let settings = self.settings;
        let rules = settings.kind.rules();
        let namespace = self.benchmark.namespace().unwrap_or_default();
        let mut args = vec![
            "run".to_owned(),
            format!(
                "--url=http://{trial}.{namespace}.svc:{}{}",
                candidate.server.port,
                rules.path(spec)
            ),
            format!("--connections={}", load.point.connections),
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
        if let Some(rate) = load.level_rate.or(settings.rate) {
            args.push(format!("--rate={rate}"));
        }
        args.extend(rules.injector_args(
            spec,
            &LoadArguments {
                trial,
                sending: settings.sending_at(load.point),
                expected_status: &settings.expected_status,
                ramp_up_seconds: settings.ramp_up_seconds,
            },
        ));
        if settings.is_endurance() {
            args.push("--course".to_owned());
        }
        if let Some(url) = clock_url {
            args.push(format!("--clock-url={url}"));
        }
        args
    }
}
