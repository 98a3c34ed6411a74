//! Reservations of nodes by benchmarks.

use std::collections::BTreeMap;

use crate::plan::facts::NodeFacts;

/// The benchmark that holds or has reserved each node, by the node's name.
#[derive(Clone, Debug, Default)]
pub struct Reservations<'a>(BTreeMap<&'a str, BenchmarkRef<'a>>);

#[derive(Clone, Copy, Debug)]
pub(super) struct BenchmarkRef<'a> {
    pub(super) uid: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Reservations<'a> {
    pub(super) fn reserve(&mut self, node: &'a NodeFacts, benchmark: BenchmarkRef<'a>) {
        self.0.entry(&node.name).or_insert(benchmark);
    }

    pub(super) fn on(&self, node: &str) -> Option<BenchmarkRef<'a>> {
        self.0.get(node).copied()
    }

    /// Rank of an injector node for a run on this measured node; a lower rank means a shorter wait. A run that
    /// waits for a held measured node prefers the injector node of the same holder, and leaves the free ones to
    /// other runs.
    #[must_use]
    pub fn wait_rank(&self, node: &str, measured: &str) -> u8 {
        match (self.on(measured), self.on(node)) {
            (Some(first), Some(other)) if first.uid == other.uid => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        }
    }
}
