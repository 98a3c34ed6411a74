//! What a provider of databases does.

use crate::{
    api::{Database, Reason},
    plan::{
        action::{ChildObject, Deletion},
        facts::{Child, ChildKind, Observed, placement::Labels},
        objects::Builder,
    },
};

/// Who runs PostgreSQL.
pub trait DatabaseProvider {
    /// What the cluster lacks for this provider: a reason and what to do about it.
    fn missing_in_cluster(&self, observed: &Observed) -> Option<(Reason, &'static str)>;

    /// What there is of the run's database, on the node with these labels.
    fn state(
        &self,
        observed: &Observed,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> DatabaseState;

    /// The objects that queries go through, as the operator made them. An attempt is void if one of them was edited.
    fn query_path(
        &self,
        builder: &Builder<'_>,
        database: &Database,
        on: &Labels,
    ) -> Vec<ChildObject>;
}

/// What there is of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseState {
    /// Not all of it.
    Missing {
        /// Objects to create.
        create: Vec<ChildObject>,
        /// Objects to delete.
        delete: Vec<Deletion>,
    },
    /// All of it.
    Made(Made),
}

/// A database all of whose objects exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// When it was created, in Unix seconds.
    pub created_unix_seconds: f64,
    /// Since when its data can exist: earlier data are gone.
    pub data_since_unix_seconds: f64,
    /// Whether it works.
    pub ready: bool,
    /// Whether it never will.
    pub broken: bool,
    /// How far it is, for people.
    pub phase: String,
    /// Why its pod can't be created, if so.
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
