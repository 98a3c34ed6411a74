//! The Job that checks the database of an attempt, after the candidate's start and before the idle baseline.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::ResourceExt;

use crate::{
    api::{Database, Role},
    plan::{
        action::ChildObject,
        names,
        objects::{
            builder::{Builder, TERMINATION_LOG},
            parts::{literal, restricted_container},
            seed::{ROWS_SQL, read_table, shell},
        },
        settings::postgresql::database_user,
    },
};

/// Container that makes the database ready for a trial.
pub const PREPARE_CONTAINER: &str = "prepare";
/// Prints the number of transactions that PostgreSQL has counted in the benchmark's database.
const COUNT_TRANSACTIONS: &str = "psql \"$DATABASE_URL\" -X -qAt -v ON_ERROR_STOP=1 -c \"SELECT 'transactions:' || xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()\"";
/// A candidate can change the settings of its role, and create views with the names that are looked up here. The
/// connection's options override both.
const SESSION_SETTINGS: &str = "export PGCONNECT_TIMEOUT=5 PGOPTIONS='-c search_path=pg_catalog -c statement_timeout=0 -c lock_timeout=0'";
/// Waits up to a minute for the database to answer: a node may learn a Service's address shortly after the pod
/// behind it is ready. If the database never answers, the next command reports the reason.
const AWAIT_DATABASE: &str = "end=$(($(date +%s) + 60))
until psql \"$DATABASE_URL\" -X -q -c SELECT > /dev/null 2>&1 || [ \"$(date +%s)\" -ge \"$end\" ]; do
  sleep 1
done";

impl Builder<'_> {
    /// The Job that makes a checkpoint, reads the rows and their digest, and counts the transactions so far.
    #[must_use]
    pub fn prepare(
        &self,
        database: &Database,
        trial: &str,
        injector: &BTreeMap<String, String>,
    ) -> ChildObject {
        let script = format!(
            "{SESSION_SETTINGS}\n{AWAIT_DATABASE}\npsql \"$DATABASE_URL\" -X -q -v ON_ERROR_STOP=1 -c CHECKPOINT\nprintf '%s\\n' \"$ROWS_SQL\" | {}\n{COUNT_TRANSACTIONS} >> {TERMINATION_LOG}",
            read_table(&database.seed)
        );
        let container = Container {
            name: PREPARE_CONTAINER.into(),
            image: Some(self.database_image(database).to_owned()),
            command: Some(shell(&script)),
            env: Some([self.database_env(), vec![literal("ROWS_SQL", ROWS_SQL)]].concat()),
            resources: Some(self.config.pods.helper_resources.clone()),
            ..restricted_container(database_user(database))
        };
        self.job(
            &names::prepare_name(&self.benchmark.name_any(), trial),
            Role::Prepare,
            Some(trial),
            PodSpec {
                containers: vec![container],
                node_selector: Some(injector.clone()),
                ..self.pod()
            },
        )
    }
}
