//! The backends: their addresses, their turns, and their counts.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::uri::Authority;
use serde::Serialize;

/// Counts requests, those under way, and failures.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    requests: AtomicU64,
    current: AtomicU64,
    failures: AtomicU64,
}

impl Tally {
    /// Counts a request, and counts it as under way until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.current.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub(crate) fn current(&self) -> u64 {
        self.current.load(Ordering::Relaxed)
    }

    /// Requests that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Tally>);

impl UnderWay {
    /// Counts the request as failed.
    pub(crate) fn fail(&self) {
        self.0.failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.current.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One address of the service.
#[derive(Debug)]
pub(crate) struct Backend {
    address: SocketAddr,
    /// The address in a URI's form.
    pub(crate) authority: Authority,
    /// Counts of the requests to this backend.
    pub(crate) tally: Arc<Tally>,
    healthy: AtomicBool,
}

impl Backend {
    fn new(address: SocketAddr) -> Option<Self> {
        Some(Self {
            address,
            authority: address.to_string().parse().ok()?,
            tally: Arc::default(),
            healthy: AtomicBool::new(false),
        })
    }

    fn is_healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Stores the result of the last check, and logs a change.
    pub(crate) fn set_healthy(&self, healthy: bool) {
        if self.healthy.swap(healthy, Ordering::Relaxed) != healthy {
            let now = if healthy { "is" } else { "is not" };
            tracing::info!("the backend {} {now} healthy", self.address);
        }
    }
}

/// The part of `GET /stats` for one backend.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(crate) struct BackendStats {
    requests: u64,
    current: u64,
    failures: u64,
    healthy: bool,
}

/// All backends, and the number of the next turn.
#[derive(Debug, Default)]
pub(crate) struct Backends {
    rotation: RwLock<Arc<Rotation>>,
    turn: AtomicUsize,
}

impl Backends {
    /// The current backends.
    pub(crate) fn rotation(&self) -> Arc<Rotation> {
        Arc::clone(&self.rotation.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of earlier calls.
    pub(crate) fn turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Replaces the backends by these addresses. Known backends keep their counts.
    pub(crate) fn set(&self, addresses: &[SocketAddr]) {
        let known = self.rotation();
        let backends = addresses.iter().filter_map(|address| {
            let backend = known.backends.iter().find(|one| one.address == *address);
            backend.cloned().or_else(|| {
                tracing::info!("new backend {address}");
                Backend::new(*address).map(Arc::new)
            })
        });
        let rotation = Rotation::new(backends.collect());
        for gone in &known.backends {
            if !addresses.contains(&gone.address) {
                tracing::info!("the backend {} is gone", gone.address);
            }
        }
        *self
            .rotation
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(rotation);
    }
}

/// The backends at one time, the healthy ones first.
#[derive(Debug, Default)]
pub(crate) struct Rotation {
    backends: Vec<Arc<Backend>>,
    healthy: usize,
}

impl Rotation {
    fn new(mut backends: Vec<Arc<Backend>>) -> Self {
        // The cached key reads each health once, because it may change meanwhile.
        backends.sort_by_cached_key(|backend| (!backend.is_healthy(), backend.address));
        let healthy = backends.iter().take_while(|one| one.is_healthy()).count();
        Self { backends, healthy }
    }

    /// Each backend once, in the order of this turn: the healthy backends from the turn's backend on, then the
    /// others.
    pub(crate) fn order(&self, turn: usize) -> impl Iterator<Item = &Arc<Backend>> {
        let (healthy, others) = self.backends.split_at(self.healthy);
        rotated(healthy, turn).chain(rotated(others, turn))
    }

    /// All backends, the healthy backends first.
    pub(crate) fn all(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// Whether at least one backend was healthy at the last check.
    pub(crate) fn is_healthy(&self) -> bool {
        self.healthy > 0
    }

    /// The counts of each backend, by its address.
    pub(crate) fn stats(&self) -> BTreeMap<String, BackendStats> {
        let of = |(place, backend): (usize, &Arc<Backend>)| {
            let stats = BackendStats {
                requests: backend.tally.requests(),
                current: backend.tally.current(),
                failures: backend.tally.failures(),
                // The state that turns use. A check that has just ended is not part of it yet.
                healthy: place < self.healthy,
            };
            (backend.address.to_string(), stats)
        };
        self.backends.iter().enumerate().map(of).collect()
    }
}

fn rotated<T>(list: &[T], turn: usize) -> impl Iterator<Item = &T> {
    let (before, from) = list.split_at(turn % list.len().max(1));
    from.iter().chain(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 8080))
    }

    fn tried(backends: &Backends, turn: usize) -> Vec<u8> {
        let rotation = backends.rotation();
        let last = |backend: &Arc<Backend>| match backend.address {
            SocketAddr::V4(address) => address.ip().octets()[3],
            SocketAddr::V6(_) => 0,
        };
        rotation.order(turn).map(last).collect()
    }

    fn set_healthy(backends: &Backends, healthy: &[SocketAddr]) {
        let rotation = backends.rotation();
        for backend in rotation.all() {
            backend.set_healthy(healthy.contains(&backend.address));
        }
        let addresses: Vec<_> = rotation.all().iter().map(|one| one.address).collect();
        backends.set(&addresses);
    }

    #[test]
    fn without_backends_the_order_is_empty() {
        assert!(tried(&Backends::default(), 3).is_empty());
    }

    #[test]
    fn healthy_backends_take_turns_and_the_others_come_last() {
        let backends = Backends::default();
        backends.set(&[address(3), address(1), address(2), address(4)]);
        assert_eq!(tried(&backends, 1), [2, 3, 4, 1]);
        set_healthy(&backends, &[address(4), address(1), address(3)]);
        assert_eq!(tried(&backends, 0), [1, 3, 4, 2]);
        assert_eq!(tried(&backends, 1), [3, 4, 1, 2]);
        assert_eq!(tried(&backends, 2), [4, 1, 3, 2]);
        assert_eq!(tried(&backends, 3), [1, 3, 4, 2]);
    }

    #[test]
    fn a_backend_keeps_its_counts_while_it_is_known() {
        let backends = Backends::default();
        backends.set(&[address(1), address(2)]);
        for backend in backends.rotation().order(0) {
            backend.tally.begin().fail();
        }
        backends.set(&[address(2), address(3)]);
        let stats = backends.rotation().stats();
        let counts = |last| {
            let stats = &stats[&address(last).to_string()];
            (stats.requests, stats.current, stats.failures)
        };
        assert_eq!(stats.len(), 2);
        assert_eq!(counts(2), (1, 0, 1));
        assert_eq!(counts(3), (0, 0, 0));
    }

    #[test]
    fn a_request_is_under_way_until_it_is_dropped() {
        let tally = Arc::new(Tally::default());
        let under_way = tally.begin();
        assert_eq!((tally.requests(), tally.current()), (1, 1));
        drop(under_way);
        assert_eq!((tally.requests(), tally.current()), (1, 0));
    }
}
