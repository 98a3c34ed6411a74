//! Frugality's operator: reads an [`api::FrugalityBenchmark`] and reports joules per request and a verdict.
//!
//! The modules are layers. Each layer uses only the layers above it in this list:
//!
//! - [`api`]: the resource, its status, the ledger and the reason codes; [`crd`]: their definitions for a cluster;
//! - [`digest`], [`text`], [`time`]: digests, figures as text, times in Kubernetes' formats;
//! - [`load`]: the kinds of load;
//! - [`plan`]: every decision, as pure functions;
//! - [`io`]: reads the cluster, carries out plans, reads meters, answers probes and Prometheus.

pub mod api;
pub mod crd;
pub mod digest;
pub mod io;
pub mod load;
pub mod plan;
pub mod text;
pub mod time;
