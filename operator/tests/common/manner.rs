//! How the world behaves, and small views of it.

use frugality_measure::reading::Provenance;
use frugality_operator::{
    api::{FrugalityBenchmark, Role},
    plan::facts::{Observed, Peer, PodFacts, placement::PlacementRequest},
};
use kube::ResourceExt;

/// Rows and digest, as the seed and the check before each trial print them.
pub(crate) const ROWS: &str = "10000 -77";

/// How the world behaves.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// Where the meter's power comes from; `None`: there is no meter.
    pub(crate) meter: Option<Provenance>,
    /// Seconds from a server's creation to its readiness; `None`: never.
    pub(crate) server_ready: Option<f64>,
    /// Why a server's container waits.
    pub(crate) server_waiting: Option<(String, String)>,
    /// The same for the database.
    pub(crate) database_ready: Option<f64>,
    /// Share of the requests that are answered as expected.
    pub(crate) success_share: f64,
    /// What the seed prints.
    pub(crate) seeded: String,
    /// Whether the cluster knows CloudNativePG.
    pub(crate) cloud_native_pg: bool,
    /// How far the operator's clock is ahead of the nodes'.
    pub(crate) operator_ahead: f64,
    /// Between two passes at most this long; `None`: as the plans ask.
    pub(crate) hurry: Option<f64>,
    /// Whether two loads on a node at one time are counted instead of stopping the test.
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
            cloud_native_pg: true,
            operator_ahead: 0.0,
            hurry: None,
            overlaps: false,
        }
    }
}

/// A benchmark as another one sees it.
pub(crate) fn peer(benchmark: &FrugalityBenchmark) -> Peer {
    Peer {
        name: format!(
            "{}/{}",
            benchmark.namespace().unwrap(),
            benchmark.name_any()
        ),
        uid: benchmark.uid().unwrap(),
        created_unix_seconds: benchmark.creation_timestamp().unwrap().0.as_second(),
        rests: benchmark.is_complete() || benchmark.spec.suspend,
        request: Some(PlacementRequest::of(&benchmark.spec)),
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
