//! What reads and writes: thin, and tested against a real API server.

pub mod apply;
pub mod check;
pub mod controller;
pub mod metrics;
pub mod moments;
pub mod observe;
pub mod password;
pub mod probe;
pub mod reader;
pub mod server;
pub mod unreadable;
