//! The run's objects. One function per kind of object builds it from the spec.

pub(in crate::plan) mod builder;
mod candidate;
mod injector;
pub(in crate::plan) mod parts;
mod prepare;
mod seed;

pub use self::{
    builder::Builder,
    candidate::{SERVER_CONTAINER, is_of_candidate},
    injector::{INJECTOR_CONTAINER, PointLoad},
    prepare::PREPARE_CONTAINER,
    seed::{SEED_CONTAINER, expected_rows},
};
