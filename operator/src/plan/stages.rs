//! The stages of a pass, one per file. No stage uses another one; [`plan`](super::plan) defines their order.

pub mod attempt;
pub(in crate::plan) mod cleanup;
pub(in crate::plan) mod database;
pub(in crate::plan) mod freeze;
pub(in crate::plan) mod judge;
pub(in crate::plan) mod place;
pub(in crate::plan) mod preflight;
pub(in crate::plan) mod refusal;
pub(in crate::plan) mod rest;
pub(in crate::plan) mod turn;
