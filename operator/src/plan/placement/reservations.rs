//! Who holds or claims which node.

use std::collections::BTreeMap;

use crate::plan::facts::NodeFacts;

/// Who has a claim on a node, by its name.
#[derive(Clone, Debug, Default)]
pub struct Reservations<'a>(BTreeMap<&'a str, Claimant<'a>>);

#[derive(Clone, Copy, Debug)]
pub(super) struct Claimant<'a> {
    pub(super) uid: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Reservations<'a> {
    pub(super) fn claim(&mut self, node: &'a NodeFacts, claimant: Claimant<'a>) {
        self.0.entry(&node.name).or_insert(claimant);
    }

    pub(super) fn on(&self, node: &str) -> Option<Claimant<'a>> {
        self.0.get(node).copied()
    }

    /// How much longer choosing this node beside that measured one makes the wait. Whoever waits for
    /// the measured node gets the injector of the same run with it, and leaves the others to others.
    #[must_use]
    pub fn wait_at(&self, node: &str, measured: &str) -> u8 {
        match (self.on(measured), self.on(node)) {
            (Some(first), Some(other)) if first.uid == other.uid => 0,
            (_, None) => 1,
            (_, Some(_)) => 2,
        }
    }
}
