//! PostgreSQL's settings, for all providers.

use std::collections::BTreeMap;

use crate::api::Database;

/// Database and role that the candidates use.
pub const APPLICATION: &str = "app";

/// User ID of `postgres` in CloudNativePG's images.
pub const POSTGRES_UID: i64 = 26;

/// Settings for a small node; the spec's settings override them. Autovacuum and archiving are off because they
/// would run during some requests and be measured with them.
const PARAMETERS: [(&str, &str); 8] = [
    ("archive_timeout", "0"),
    ("autovacuum", "off"),
    ("jit", "off"),
    ("max_connections", "60"),
    ("max_worker_processes", "8"),
    ("shared_buffers", "64MB"),
    ("wal_keep_size", "64MB"),
    ("checkpoint_timeout", "1d"),
];

/// PostgreSQL's settings for every provider. The spec's settings override the settings for a small node.
#[must_use]
pub fn parameters(database: &Database) -> BTreeMap<String, String> {
    let mut parameters: BTreeMap<String, String> = PARAMETERS
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    parameters.extend(database.parameters.clone());
    parameters
}

/// User ID of PostgreSQL and of its tools in the database's image.
#[must_use]
pub fn database_user(database: &Database) -> i64 {
    database.run_as_user.unwrap_or(POSTGRES_UID)
}
