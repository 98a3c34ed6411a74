//! Behaviour of the world, and small views of the world.

use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::Role,
    plan::facts::{Observed, PodFacts},
};

/// Rows and digest, as the seed and the check before each trial print them.
pub(crate) const ROWS: &str = "10000 -77";

/// Behaviour of the world that a test can change.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// Provenance of the meter's power. `None`: no meter answers.
    pub(crate) meter: Option<Provenance>,
    /// Seconds from a server's creation to its readiness. `None`: the server never becomes ready.
    pub(crate) server_ready: Option<f64>,
    /// Reason and message of a server's container that waits.
    pub(crate) server_waiting: Option<(String, String)>,
    /// Seconds from the database's creation to its readiness. `None`: the database never becomes ready.
    pub(crate) database_ready: Option<f64>,
    /// Share of the requests that get the expected answer.
    pub(crate) success_share: f64,
    /// Output of the seed.
    pub(crate) seeded: String,
    /// What the Job prints that checks the database before a load: rows and digest.
    pub(crate) prepared: String,
    /// Whether CloudNativePG is installed in the cluster.
    pub(crate) cloud_native_pg: bool,
    /// Whether the meter reports the time of its counters. Stock Kepler does not.
    pub(crate) meter_has_clock: bool,
    /// Seconds by which the operator's clock is ahead of the nodes' clocks.
    pub(crate) operator_ahead: f64,
    /// Longest time between two passes, in seconds. `None`: the time that the plan asks for.
    pub(crate) hurry: Option<f64>,
    /// If true, the world counts loads that overlap on a node. If false, the first overlap stops the test.
    pub(crate) overlaps: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            meter: Some(Provenance::Metered),
            server_ready: Some(1.6),
            server_waiting: None,
            database_ready: Some(4.0),
            success_share: 1.0,
            seeded: ROWS.into(),
            prepared: ROWS.into(),
            cloud_native_pg: true,
            meter_has_clock: true,
            operator_ahead: 0.0,
            hurry: None,
            overlaps: false,
        }
    }
}

/// A benchmark's only pod of a role, as a pass sees it.
pub(crate) fn pod_in(observed: &mut Observed, role: Role) -> &mut PodFacts {
    observed
        .pods
        .iter_mut()
        .find(|pod| pod.role == role.as_str())
        .unwrap()
}
