//! The Job that fills the database and restores it for each attempt.

use crate::{
    api::{Database, Role, Seed},
    plan::{
        action::ChildObject,
        names,
        objects::{
            builder::{Builder, TERMINATION_LOG},
            parts::{literal, restricted_container, words},
        },
        settings::postgresql::database_user,
    },
};
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, KeyToPath, PodSpec, Volume, VolumeMount,
};
use kube::ResourceExt;

/// SQL of the built-in address book.
const SEED_CONTACTS: &str = include_str!("seed-contacts.sql");
/// Table of the built-in address book.
const CONTACTS_TABLE: &str = "contacts";
/// SQL that prints, after [`ROWS_SQL`], the digests of everything else in the database.
const STATE_SQL: &str = include_str!("state.sql");
/// Calls `fill` if the database has never been filled. Otherwise it counts the transactions of the attempt before. Then
/// it restores the database from its template.
const RESTORE: &str = include_str!("restore.sh");
/// Container that fills the database.
pub const SEED_CONTAINER: &str = "seed";
/// SQL that prints the number of rows in the seeded table, and their digest.
pub(super) const ROWS_SQL: &str = include_str!("rows.sql");

impl Builder<'_> {
    /// The Job that fills the database, or restores it `after` an attempt, as the application's own role.
    #[must_use]
    pub fn seed(
        &self,
        database: &Database,
        measured: &BTreeMap<String, String>,
        after: Option<&str>,
    ) -> ChildObject {
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
            "fill() {{\n{fill}\n}}\n{RESTORE}\nprintf '%s\\n' \"$ROWS_SQL\" \"$STATE_SQL\" | {}\necho \"$transactions\" >> {TERMINATION_LOG}",
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
        let name = names::seed_name(&self.benchmark.name_any(), self.run, after);
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
}

/// Number of rows that the seeded table must have after the seed.
#[must_use]
pub fn expected_rows(seed: &Seed) -> i64 {
    match &seed.config_map {
        Some(own) => own.rows,
        None => seed.contacts.unwrap_or_default(),
    }
}

/// A command that executes SQL from its standard input, with the seeded table as `table`, and writes the result as
/// the container's termination message.
pub(super) fn read_table(seed: &Seed) -> String {
    let table = seed
        .config_map
        .as_ref()
        .map_or(CONTACTS_TABLE, |own| own.table.as_str());
    format!(
        "psql \"$DATABASE_URL\" -X -qAt -v ON_ERROR_STOP=1 -v table={table} -f - > {TERMINATION_LOG}"
    )
}

pub(super) fn shell(script: &str) -> Vec<String> {
    words(["/bin/sh", "-ec", script])
}
