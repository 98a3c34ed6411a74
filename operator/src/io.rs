//! All input and output. These modules are thin, and tests run them against a real API server.

pub mod apply;
mod calls;
pub mod check;
pub mod controller;
pub mod known;
mod memory;
pub mod metrics;
pub mod moments;
pub mod observe;
pub mod password;
mod pods;
pub mod probe;
pub mod reader;
mod resting;
pub mod server;
mod tidy;
pub mod unreadable;
