//! The order of the queue. Namespaces take turns, so that a namespace with a hundred benchmarks delays a benchmark of
//! another namespace by one run, not by a hundred.

use std::collections::BTreeMap;

use crate::plan::facts::Peer;

/// The turns of all waiting benchmarks, as if every run took the same time. In each round every namespace has one
/// turn. First is the namespace whose last run ended longest ago. Namespaces without such a run go before it, in the
/// order of their oldest waiting benchmarks.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    by_uid: BTreeMap<&'a str, TurnPosition<'a>>,
}

/// A benchmark's position in the queue. Compared field by field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnPosition<'a> {
    /// Number of waiting benchmarks of the same namespace that are older.
    round: usize,
    /// When the last turn of the namespace ended, in Unix seconds. The latest possible time if a benchmark of the
    /// namespace holds a node now.
    namespaces_last_turn: Option<i64>,
    /// The oldest waiting benchmark of the namespace.
    namespaces_first: (i64, &'a str),
}

impl<'a> Turns<'a> {
    /// The turns of these waiting benchmarks. `all` includes benchmarks at rest: their last turns count.
    pub(super) fn of(
        all: impl Iterator<Item = &'a Peer>,
        waiting: impl Iterator<Item = &'a Peer>,
        holds_node: impl Fn(&Peer) -> bool,
    ) -> Self {
        let mut last_turns: BTreeMap<&str, Option<i64>> = BTreeMap::new();
        for peer in all {
            let last = last_turns.entry(namespace(peer)).or_default();
            let of_peer = if holds_node(peer) {
                Some(i64::MAX)
            } else {
                peer.last_turn_unix_seconds
            };
            *last = (*last).max(of_peer);
        }
        let mut by_age: Vec<&Peer> = waiting.collect();
        by_age.sort_by(|a, b| age(a).cmp(&age(b)));
        let mut rounds: BTreeMap<&str, (usize, (i64, &str))> = BTreeMap::new();
        let by_uid = by_age.into_iter().map(|peer| {
            let namespace = namespace(peer);
            let (round, first) = rounds.entry(namespace).or_insert((0, age(peer)));
            let position = TurnPosition {
                round: *round,
                namespaces_last_turn: last_turns.get(namespace).copied().flatten(),
                namespaces_first: *first,
            };
            *round += 1;
            (peer.uid.as_str(), position)
        });
        Self {
            by_uid: by_uid.collect(),
        }
    }

    /// A benchmark's position; `None` if it does not wait.
    pub(super) fn position(&self, peer: &Peer) -> Option<&TurnPosition<'a>> {
        self.by_uid.get(peer.uid.as_str())
    }

    /// Benchmarks in the order of their turns.
    pub(super) fn sorted<'p>(&self, mut peers: Vec<&'p Peer>) -> Vec<&'p Peer> {
        peers.sort_by_key(|peer| self.position(peer));
        peers
    }
}

/// Creation time, then UID for benchmarks of the same second.
fn age(peer: &Peer) -> (i64, &str) {
    (peer.created_unix_seconds, &peer.uid)
}

fn namespace(peer: &Peer) -> &str {
    peer.name
        .split_once('/')
        .map_or("", |(namespace, _)| namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A benchmark in the namespace that its UID begins with.
    fn peer(uid: &str, created_unix_seconds: i64) -> Peer {
        Peer {
            name: format!("{}/{uid}", &uid[..1]),
            uid: uid.into(),
            created_unix_seconds,
            last_turn_unix_seconds: None,
            rests: false,
            request: None,
        }
    }

    fn ended(uid: &str, last_turn_unix_seconds: i64) -> Peer {
        Peer {
            rests: true,
            last_turn_unix_seconds: Some(last_turn_unix_seconds),
            ..peer(uid, 1)
        }
    }

    /// The UIDs of the waiting benchmarks in order. `holder` holds a node.
    fn order(peers: &[Peer], holder: &str) -> String {
        let waiting = || peers.iter().filter(|it| !it.rests && it.uid != holder);
        let turns = Turns::of(peers.iter(), waiting(), |it| it.uid == holder);
        let sorted = turns.sorted(waiting().collect());
        let uids: Vec<&str> = sorted.iter().map(|it| it.uid.as_str()).collect();
        uids.join(" ")
    }

    #[test]
    fn in_one_namespace_the_oldest_goes_first() {
        let peers = [
            peer("a3", 30),
            peer("a2", 10),
            peer("a1", 10),
            peer("a4", 5),
        ];
        assert_eq!(order(&peers, ""), "a4 a1 a2 a3");
    }

    #[test]
    fn a_namespace_with_many_benchmarks_delays_another_by_one_turn() {
        let many = |n: i64| (1..=n).map(|i| peer(&format!("a{i}"), i));
        let peers: Vec<_> = many(5).chain([peer("b1", 100), peer("b2", 101)]).collect();
        assert_eq!(order(&peers, ""), "a1 b1 a2 b2 a3 a4 a5");
        assert_eq!(order(&peers, "a1"), "b1 a2 b2 a3 a4 a5");
    }

    #[test]
    fn the_namespace_whose_turn_is_longest_ago_goes_first() {
        let waiting = [
            peer("a1", 10),
            peer("b1", 20),
            peer("c1", 30),
            peer("d1", 40),
        ];
        let mut peers = vec![ended("a9", 500), ended("b9", 300), ended("b8", 400)];
        peers.extend(waiting);
        assert_eq!(order(&peers, ""), "c1 d1 b1 a1");
    }

    /// Each namespace gets its turn, for as long as its benchmarks wait.
    #[test]
    fn namespaces_take_turns_until_all_have_run() {
        let mut peers: Vec<Peer> = (1..=4).map(|i| peer(&format!("a{i}"), i)).collect();
        peers.extend((1..=2).map(|i| peer(&format!("b{i}"), 50 + i)));
        peers.extend((1..=3).map(|i| peer(&format!("c{i}"), 90 + i)));
        let mut ran = Vec::new();
        for now in 100..109 {
            let first = order(&peers, "");
            let first = first.split(' ').next().unwrap().to_owned();
            let peer = peers.iter_mut().find(|it| it.uid == first).unwrap();
            (peer.rests, peer.last_turn_unix_seconds) = (true, Some(now));
            ran.push(first);
        }
        assert_eq!(ran.join(" "), "a1 b1 c1 a2 b2 c2 a3 c3 a4");
    }
}
