//! The interface that each database provider implements.

use crate::{
    api::{Database, Reason},
    plan::{
        action::{ChildObject, Deletion},
        facts::{Child, ChildKind, Observed, placement::Labels},
        objects::Builder,
    },
};

/// The software that runs PostgreSQL.
pub trait DatabaseProvider {
    /// What the cluster lacks for this provider: a reason code, and what the user can do.
    fn missing_in_cluster(&self, observed: &Observed) -> Option<(Reason, &'static str)>;

    /// State of the run's database. `on` has the labels of its node.
    fn state(
        &self,
        observed: &Observed,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> DatabaseState;

    /// The objects between a candidate and the database, as the operator made them. If a user edits one of them,
    /// the attempt is void.
    fn query_path(
        &self,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> Vec<ChildObject>;
}

/// State of the database's objects.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseState {
    /// Some of the objects do not exist.
    Missing {
        /// Objects to create.
        create: Vec<ChildObject>,
        /// Objects to delete.
        delete: Vec<Deletion>,
    },
    /// All objects exist.
    Made(Made),
}

/// A database whose objects all exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// Time of the oldest possible data, in Unix seconds. Older data are gone.
    pub data_since_unix_seconds: f64,
    /// Whether the database accepts queries.
    pub ready: bool,
    /// Whether the database will never be ready.
    pub broken: bool,
    /// State, as text for people.
    pub phase: String,
    /// Why its pod can't be created, if the API server refuses it.
    pub refused: Option<String>,
}

impl DatabaseState {
    pub(super) fn to_create(create: Vec<ChildObject>) -> Self {
        Self::Missing {
            create,
            delete: Vec::new(),
        }
    }
}

pub(super) fn child<'a>(observed: &'a Observed, kind: ChildKind, name: &str) -> Option<&'a Child> {
    let mut children = observed.children.iter();
    children.find(|child| child.kind == kind && child.name == name)
}
