//! The run's PostgreSQL: the objects that are still missing, and its state. One file per provider.

pub mod cloud_native_pg;
pub mod provider;
pub mod standalone;

use self::{cloud_native_pg::CloudNativePg, provider::DatabaseProvider, standalone::Standalone};
use crate::api::{Database, Provider};

/// The provider of a database.
#[must_use]
pub fn of(database: &Database) -> &'static dyn DatabaseProvider {
    match database.provider {
        Provider::CloudNativePg => &CloudNativePg,
        Provider::Standalone => &Standalone,
    }
}
