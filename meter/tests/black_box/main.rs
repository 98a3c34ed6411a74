//! The real binary, with a cgroup tree of files, through its port.
#![expect(
    clippy::unwrap_used,
    reason = "a harness that cannot go on is a failed test"
)]

mod contract;
mod forks;
mod harness;
mod journeys;
mod sources;
