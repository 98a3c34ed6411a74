//! How PostgreSQL is set up, by every provider.

use std::collections::BTreeMap;

use crate::api::Database;

/// Database and role that the candidates use.
pub const APPLICATION: &str = "app";

/// User ID of `postgres` in CloudNativePG's images.
pub const POSTGRES_UID: i64 = 26;

/// Settings for a small node, over which the spec's own go. Autovacuum and archiving would work at
/// times of their own and be measured as somebody's request.
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

/// Settings of PostgreSQL, whoever runs it: the spec's own over those for a small node.
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
