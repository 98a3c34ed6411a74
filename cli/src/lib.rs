//! `kubectl-frugality`: prints Frugality's results for people and tools, and generates texts from the API's types.
//!
//! - [`summarize`]: a benchmark's status as text; [`export`]: the ledger as JSON or CSV;
//! - [`report`]: a benchmark with its ledger as one page, or in another form;
//! - [`gate`]: waits for a verdict, for pipelines, or answers Flagger; [`doctor`]: checks an installation;
//! - [`reference`]: the API reference; [`definitions`]: the custom resource definitions as files;
//! - [`input`]: where a command reads resources from; [`cluster`]: the cluster that it asks.

pub mod cluster;
pub mod definitions;
pub mod doctor;
pub mod export;
pub mod gate;
pub mod input;
pub mod reference;
pub mod report;
pub mod summarize;
mod table;
