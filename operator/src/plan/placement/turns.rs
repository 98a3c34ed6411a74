//! The order of the queue. Namespaces take turns at each node. A namespace with a hundred benchmarks therefore delays
//! another namespace by one run.
//!
//! The benchmarks of one namespace that want the same nodes are a lane. In each round every lane has one turn. In a
//! round, the lane goes first that has waited longest: since its last run ended, or since its oldest waiting benchmark
//! was created. Lanes are separate, because a namespace that waits for one node must not lose its turn on another.

use std::collections::BTreeMap;

use crate::plan::{
    facts::{NodeFacts, Peer},
    placement::{nodes, reservations::Reservations},
};

/// The turns of all waiting benchmarks. A benchmark that can't be placed has no turn, and delays no other benchmark of
/// its namespace.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    by_uid: BTreeMap<&'a str, TurnPosition<'a>>,
}

/// A benchmark's position in the queue. Compared field by field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnPosition<'a> {
    /// Number of waiting benchmarks of the same lane that are older.
    round: usize,
    /// Since when the lane has waited, in Unix seconds.
    waiting_since: i64,
    /// Creation time and UID of the lane's oldest waiting benchmark.
    first_of_lane: (i64, &'a str),
}

/// Namespace, and names of nodes.
type Lane<'a> = (&'a str, Vec<&'a str>);

impl<'a> Turns<'a> {
    /// The turns of these waiting benchmarks. `all` includes benchmarks at rest, because their last turns count.
    pub(super) fn of(
        all: impl Iterator<Item = &'a Peer>,
        waiting: impl Iterator<Item = &'a Peer>,
        nodes: &'a [NodeFacts],
    ) -> Self {
        let mut last_turns: BTreeMap<Lane<'_>, i64> = BTreeMap::new();
        for peer in all {
            if let Some((lane, ended)) = lane(peer, nodes).zip(peer.last_turn_unix_seconds) {
                let last = last_turns.entry(lane).or_insert(ended);
                *last = ended.max(*last);
            }
        }
        let mut by_age: Vec<&Peer> = waiting.collect();
        by_age.sort_by(|a, b| age(a).cmp(&age(b)));
        let mut rounds: BTreeMap<Lane<'_>, (usize, (i64, &str))> = BTreeMap::new();
        let by_uid = by_age.into_iter().filter_map(|peer| {
            let lane = lane(peer, nodes)?;
            let last_turn = last_turns.get(&lane).copied();
            let (round, first) = rounds.entry(lane).or_insert((0, age(peer)));
            let position = TurnPosition {
                round: *round,
                waiting_since: last_turn.map_or(first.0, |last| last.max(first.0)),
                first_of_lane: *first,
            };
            *round += 1;
            Some((peer.uid.as_str(), position))
        });
        Self {
            by_uid: by_uid.collect(),
        }
    }

    /// A benchmark's position; `None` if it can't be placed or does not wait.
    pub(super) fn position(&self, peer: &Peer) -> Option<&TurnPosition<'a>> {
        self.by_uid.get(peer.uid.as_str())
    }

    /// Benchmarks in the order of their turns.
    pub(super) fn sorted<'p>(&self, mut peers: Vec<&'p Peer>) -> Vec<&'p Peer> {
        peers.sort_by_key(|peer| self.position(peer));
        peers
    }
}

/// `None` if the benchmark can't be placed now.
fn lane<'a>(peer: &'a Peer, nodes: &'a [NodeFacts]) -> Option<Lane<'a>> {
    let namespace = peer.name.split_once('/').map_or("", |(first, _)| first);
    // Without reservations: the choice must not depend on the order that it gives.
    let none = Reservations::default();
    let wanted = nodes::wanted(peer, nodes, &none);
    // Not the nodes that a run began on: those depend on what was free then, and the benchmarks of a namespace would be
    // in several lanes.
    let asked = nodes::asked(peer, nodes, &none);
    let lane = if asked.is_empty() { &wanted } else { &asked };
    let names: Vec<&str> = lane.iter().map(|node| node.name.as_str()).collect();
    (!wanted.is_empty()).then_some((namespace, names))
}

/// Creation time, then UID for benchmarks of the same second.
fn age(peer: &Peer) -> (i64, &str) {
    (peer.created_unix_seconds, &peer.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::facts::placement::PlacementRequest;

    /// Two boards, and a node for the injector.
    fn cluster() -> Vec<NodeFacts> {
        ["injector", "pi-1", "pi-2"]
            .map(|name| NodeFacts {
                name: name.into(),
                schedulable: true,
                labels: [("node".to_owned(), name.to_owned())].into(),
                meter_ip: name.starts_with("pi").then(|| "10.0.0.1".into()),
                machine: None,
            })
            .into()
    }

    /// A benchmark for `pi-1`, in the namespace that its UID begins with.
    fn peer(uid: &str, created_unix_seconds: i64) -> Peer {
        on("pi-1", uid, created_unix_seconds)
    }

    fn on(node: &str, uid: &str, created_unix_seconds: i64) -> Peer {
        let labels = |node: &str| [("node".to_owned(), node.to_owned())].into();
        Peer {
            name: format!("{}/{uid}", &uid[..1]),
            uid: uid.into(),
            created_unix_seconds,
            last_turn_unix_seconds: None,
            rests: false,
            request: Some(PlacementRequest {
                measured: vec![("rust".into(), labels(node))],
                injector: labels("injector"),
                allow_shared_node: false,
            }),
            began_on: Vec::new(),
        }
    }

    fn ended(uid: &str, last_turn_unix_seconds: i64) -> Peer {
        Peer {
            rests: true,
            last_turn_unix_seconds: Some(last_turn_unix_seconds),
            ..peer(uid, 1)
        }
    }

    /// The UIDs of the waiting benchmarks in order.
    fn order(peers: &[Peer]) -> String {
        let nodes = cluster();
        let waiting = || peers.iter().filter(|it| !it.rests);
        let turns = Turns::of(peers.iter(), waiting(), &nodes);
        let sorted = turns.sorted(waiting().collect());
        let placed = sorted.iter().filter(|it| turns.position(it).is_some());
        let uids: Vec<&str> = placed.map(|it| it.uid.as_str()).collect();
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
        assert_eq!(order(&peers), "a4 a1 a2 a3");
    }

    /// The injector's node of a begun run is the one that was free then.
    #[test]
    fn a_run_that_has_begun_stays_in_the_lane_of_its_namespace() {
        let begun = |uid: &str, created, nodes: [&str; 2]| Peer {
            began_on: nodes.map(str::to_owned).into(),
            ..peer(uid, created)
        };
        let peers = [
            begun("a1", 1, ["pi-1", "pi-2"]),
            peer("a2", 2),
            peer("b1", 3),
        ];
        assert_eq!(order(&peers), "a1 b1 a2");
        let peers = [
            begun("a1", 1, ["gone", "injector"]),
            peer("a2", 2),
            peer("b1", 3),
        ];
        assert_eq!(order(&peers), "a2 b1");
    }

    #[test]
    fn a_namespace_with_many_benchmarks_delays_another_by_one_turn() {
        let many = |n: i64| (1..=n).map(|i| peer(&format!("a{i}"), i));
        let others = [peer("b1", 100), peer("b2", 101)];
        let mut peers: Vec<_> = many(5).chain(others).collect();
        assert_eq!(order(&peers), "a1 b1 a2 b2 a3 a4 a5");
        (peers[0].rests, peers[0].last_turn_unix_seconds) = (true, Some(200));
        assert_eq!(order(&peers), "b1 a2 b2 a3 a4 a5");
    }

    #[test]
    fn the_namespace_that_has_waited_longest_goes_first() {
        let mut peers = vec![ended("a9", 500), ended("b9", 300), ended("b8", 400)];
        // The last turn of `d` was before its benchmark was created.
        peers.extend([ended("d9", 20), peer("a1", 10), peer("b1", 20)]);
        peers.extend([peer("c1", 450), peer("d1", 350)]);
        assert_eq!(order(&peers), "d1 b1 c1 a1");
    }

    /// New namespaces come again and again, for example one for each pull request.
    #[test]
    fn new_namespaces_do_not_pass_one_that_waits() {
        let waits = [ended("a9", 100), peer("a1", 50)];
        let new = [peer("p1", 200), peer("q1", 201), peer("r1", 202)];
        let peers: Vec<_> = waits.into_iter().chain(new).collect();
        assert_eq!(order(&peers), "a1 p1 q1 r1");
    }

    #[test]
    fn a_turn_on_one_node_costs_none_on_another() {
        let mut peers = vec![
            peer("a1", 1),
            on("pi-2", "a2", 2),
            on("pi-2", "b1", 3),
            on("pi-2", "b2", 4),
        ];
        // a1 waits for pi-1, and a2 is the first of its namespace on pi-2.
        assert_eq!(order(&peers), "a1 a2 b1 b2");
        // Runs on pi-1 end all the time.
        peers.push(ended("a9", 1000));
        assert_eq!(order(&peers), "a2 b1 a1 b2");
    }

    #[test]
    fn a_benchmark_that_cannot_be_placed_delays_no_other_of_its_namespace() {
        let unreadable = Peer {
            request: None,
            ..peer("a1", 1)
        };
        let peers = [
            unreadable,
            on("no-such-node", "a2", 2),
            peer("a3", 3),
            peer("b1", 4),
            peer("b2", 5),
        ];
        assert_eq!(order(&peers), "a3 b1 b2");
    }

    #[test]
    fn namespaces_take_turns_until_all_have_run() {
        let mut peers: Vec<Peer> = (1..=4).map(|i| peer(&format!("a{i}"), i)).collect();
        peers.extend((1..=2).map(|i| peer(&format!("b{i}"), 50 + i)));
        peers.extend((1..=3).map(|i| peer(&format!("c{i}"), 90 + i)));
        let mut ran = Vec::new();
        for now in 100..109 {
            let first = order(&peers);
            let first = first.split(' ').next().unwrap().to_owned();
            let peer = peers.iter_mut().find(|it| it.uid == first).unwrap();
            (peer.rests, peer.last_turn_unix_seconds) = (true, Some(now));
            ran.push(first);
        }
        assert_eq!(ran.join(" "), "a1 b1 c1 a2 b2 c2 a3 c3 a4");
    }
}
