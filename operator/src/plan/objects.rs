//! The run's objects. One function per kind of object builds it from the spec.

pub(in crate::plan) mod builder;
mod candidate;
mod injector;
pub(in crate::plan) mod parts;
mod seed;

pub use self::{
    builder::Builder,
    candidate::{SERVER_CONTAINER, is_of_candidate},
    injector::{INJECTOR_CONTAINER, PREPARE_CONTAINER, PointLoad, TRANSACTIONS_CONTAINER},
    seed::{SEED_CONTAINER, expected_rows},
};
