//! Frugality's operator: one [`api::FrugalityBenchmark`] in, joules per request and a verdict out.
//!
//! A pass of the [`controller`] is three steps: [`observe`] reads what exists, [`plan`] decides
//! without doing anything, [`apply`] does it. Beside it, [`reader`] reads the meters about once a
//! second, and [`server`] answers probes and Prometheus.
//!
//! - [`api`]: the resource, its status, the ledger, and the reason codes;
//! - [`plan`]: every decision, as pure functions;
//! - [`check`]: whether an installation works;
//! - [`cnpg`]: the few fields of CloudNativePG that matter here;
//! - [`crd`]: the definitions that a cluster needs;
//! - [`export`]: the ledger as JSON or CSV;
//! - [`metrics`]: what Prometheus is told;
//! - [`reference`](mod@reference): the API's description for people;
//! - [`summary`]: a status as a table;
//! - [`unreadable`]: a benchmark that this version can't read is told so.

pub mod api;
pub mod apply;
pub mod check;
pub mod cnpg;
pub mod controller;
pub mod crd;
pub mod export;
pub mod metrics;
pub mod moments;
pub mod observe;
pub mod password;
pub mod plan;
pub mod probe;
pub mod reader;
pub mod reference;
pub mod server;
pub mod summary;
pub mod unreadable;
