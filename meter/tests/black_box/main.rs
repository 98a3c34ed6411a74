//! The real binary, with a cgroup tree of files, through its port.
#![expect(
    clippy::unwrap_used,
    reason = "a harness that cannot go on is a failed test"
)]

mod contract;
mod forks;
#[path = "../parts/fritzbox.rs"]
mod fritzbox;
mod harness;
mod journeys;
#[expect(
    dead_code,
    clippy::expect_used,
    reason = "the unit tests use the rest, and a missing package fails the test with its name"
)]
#[path = "../parts/mosquitto.rs"]
mod mosquitto;
mod sources;
