//! Where and when a run is measured: its nodes, and its position in their queue.

pub mod nodes;
pub mod queue;
pub mod reservations;
mod turns;
