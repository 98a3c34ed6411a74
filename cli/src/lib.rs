//! `kubectl-frugality`: prints Frugality's results for people and tools, and generates texts from the API's types.
//!
//! - [`estimate`]: how long a benchmark will take; [`manifest`]: benchmarks in files, checked as admission does;
//! - [`run`]: from an image to a verdict; [`watch`]: follows a run to its verdict;
//! - [`summarize`]: a benchmark's status as text; [`export`]: the ledger as JSON or CSV;
//! - [`compare`]: two benchmarks side by side;
//! - [`report`]: a benchmark with its ledger as one page, or in another form;
//! - [`gate`]: waits for a verdict, for pipelines, or answers Flagger; [`doctor`]: checks an installation;
//! - [`reference`]: the API reference; [`definitions`]: the custom resource definitions as files;
//! - [`input`]: where a command reads resources from; [`items`]: the objects in such a text; [`cluster`]: the cluster that it asks; [`completion`]: words for shells.

pub mod cluster;
pub mod compare;
pub mod completion;
pub mod definitions;
pub mod doctor;
pub mod estimate;
pub mod export;
pub mod gate;
pub mod input;
pub mod items;
pub mod manifest;
pub mod reference;
pub mod report;
pub mod run;
pub mod summarize;
pub mod table;
pub mod watch;
