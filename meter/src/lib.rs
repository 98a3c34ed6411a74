//! `frugality-meter`: the node meter.
//!
//! Once an interval it reads the node's and its pods' CPU time from the cgroups (`cgroup`) and
//! learns from a power source how much energy the node drew (`power`, brought together with CPU
//! time in `feed`), shares that energy among the pods (`frugality_measure::attribution`), gives the pods their
//! names (`pods`), notes what the node does to itself (`conditions`) and publishes the whole
//! (`sampler`), which the HTTP server (`server`) writes in Kepler's format (`exposition`).
//! `bridge` lets stock Kepler read the same energy, `calibrate` fits a board's model to an
//! instrument, and `probe` tells what a node can measure. [`program`] is the command line around it.

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
