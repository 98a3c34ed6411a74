//! `frugality-meter`: the node meter.
//!
//! Once per interval the meter does this:
//!
//! - It reads the CPU time of the node and its pods from the cgroups (`cgroup`).
//! - It gets the node's energy from a power source (`power`). `feed` joins this energy with the CPU time.
//! - It shares the energy among the pods (`frugality_measure::attribution`) and adds the pods' names
//!   (`pods`).
//! - It records throttling, temperature and frequency of the node (`conditions`).
//! - It publishes the result (`sampler`). The HTTP server (`server`) writes it in Kepler's format
//!   (`exposition`).
//!
//! `bridge` lets stock Kepler read the same energy. `calibrate` fits a board's model to an instrument.
//! `probe` reports what a node can measure. [`program`] is the command line for all of these.

mod bridge;
mod calibrate;
mod cgroup;
mod cli;
mod conditions;
mod exposition;
mod feed;
mod own_cost;
mod pods;
mod power;
mod probe;
mod processors;
pub mod program;
mod sampler;
mod server;
