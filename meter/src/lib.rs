//! `frugality-meter`: the node meter.
//!
//! Once an interval it reads the node's and its pods' CPU time from the cgroups (`cgroup`),
//! asks a power source how much energy the node drew (`power`), shares that energy among the
//! pods ([`attribution`]), gives the pods their names (`pods`) and publishes the whole as one
//! immutable snapshot (`sampler`), which the HTTP server (`server`) writes in Kepler's
//! format (`exposition`). [`program`] is the command line around it.

pub mod attribution;
mod cgroup;
mod cli;
mod exposition;
mod pods;
mod power;
pub mod program;
mod sampler;
mod server;
