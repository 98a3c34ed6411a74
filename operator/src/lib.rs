//! Frugality's operator: one [`api::FrugalityBenchmark`] in, joules per request and a verdict out.
//!
//! The modules are layers; each uses only the ones above it in this list:
//!
//! - [`api`]: the resource, its status, the ledger and the reason codes; [`crd`]: their definitions for a cluster;
//! - [`digest`], [`text`], [`time`]: digests, figures in words, times in Kubernetes' forms;
//! - [`plan`]: every decision, as pure functions;
//! - [`io`]: reads what exists, does what a plan says, reads meters, answers probes and Prometheus.

pub mod api;
pub mod crd;
pub mod digest;
pub mod io;
pub mod plan;
pub mod text;
pub mod time;
