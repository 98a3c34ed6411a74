//! Which benchmark may measure now. A node runs one benchmark at a time, because two benchmarks would measure each
//! other.
//!
//! A run needs its measured node and its injector's node exclusively. The injector of another run on its measured
//! node would add energy, and two runs that share an injector node would starve each other. Each node has a lock. A
//! benchmark takes the locks of all its nodes or none, so it never holds a node while it waits for another one.
//! Runs on different nodes proceed at the same time.
//!
//! The cluster has one queue, in the order of [`Turns`]: namespaces take turns, and within a namespace the oldest
//! benchmark goes first. A waiting benchmark reserves the nodes that it wants, and a benchmark behind it takes none
//! of them. It blocks no other node.

use crate::plan::{
    action::{LockAction, Wait},
    facts::{Lock, NodeFacts, Observed, Peer},
    names::lock_name,
    placement::{
        nodes::{self, Nodes},
        reservations::{BenchmarkRef, Reservations},
        turns::Turns,
    },
};

use std::sync::Arc;

/// Whether this benchmark may measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The benchmark holds the locks of exactly its nodes.
    Mine,
    /// The nodes are free, and the benchmark is first in the queue for them. It releases and takes these locks.
    Take(Vec<LockAction>),
    /// Another benchmark goes first.
    WaitFor {
        /// `namespace/name` of the other benchmark.
        name: String,
        /// The node that both want.
        node: String,
    },
}

/// The nodes from one benchmark's view: its own nodes, and the nodes that others hold or reserve before it.
#[derive(Clone, Debug)]
pub struct Queue<'a> {
    me: &'a Peer,
    locks: &'a [Lock],
    own: Vec<&'a Lock>,
    reservations: Reservations<'a>,
}

impl<'a> Queue<'a> {
    /// The queue before a benchmark: first the holders of nodes, then the reservations of the waiting benchmarks ahead
    /// of it, in the order of their turns.
    #[must_use]
    pub fn before(me: &'a Peer, observed: &'a Observed) -> Self {
        let Observed {
            peers,
            locks,
            nodes,
            ..
        } = observed;
        let others = || peers.iter().map(AsRef::as_ref);
        let references = others().chain([me]).map(reference);
        let mut reservations = of_holders(references, locks, nodes);
        let ahead = waiting(others(), locks);
        let turns = Turns::of(
            others().chain([me]),
            ahead.iter().copied().chain([me]),
            nodes,
        );
        let mine = turns.position(me);
        for peer in turns.sorted(ahead) {
            // Without a position this benchmark wants no node, so the order of the others does not matter.
            if mine.is_some() && turns.position(peer) > mine {
                break;
            }
            for node in nodes::wanted(peer, nodes, &reservations) {
                reservations.reserve(node, reference(peer));
            }
        }
        Self {
            me,
            locks,
            own: held(locks, &me.uid).collect(),
            reservations,
        }
    }

    /// Reservations of all benchmarks before this one, and its own.
    #[must_use]
    pub fn reservations(&self) -> &Reservations<'a> {
        &self.reservations
    }

    /// Whether this benchmark holds the lock of this node.
    #[must_use]
    pub fn holds(&self, node: &str) -> bool {
        let name = lock_name(node);
        self.own.iter().any(|lock| lock.name == name)
    }

    /// Releases of all locks that this benchmark holds.
    #[must_use]
    pub fn releases(&self) -> Vec<LockAction> {
        self.releases_except(&[])
    }

    /// When this benchmark's turn began, in Unix seconds; `None` if it has not begun.
    #[must_use]
    pub fn started_unix_seconds(&self) -> Option<f64> {
        self.own
            .iter()
            .filter_map(|lock| lock.acquired_unix_seconds)
            .reduce(f64::max)
    }

    /// Whether a benchmark that needs these nodes may measure.
    #[must_use]
    pub fn admission(&self, nodes: &Nodes) -> Admission {
        let mut wanted = nodes.names();
        for node in &wanted {
            if let Some(other) = self.reservations.on(node)
                && other.uid != self.me.uid
            {
                return Admission::WaitFor {
                    name: other.name.to_owned(),
                    node: (*node).to_owned(),
                };
            }
        }
        // All benchmarks take locks in the same order: of two that take locks at once, one gets all of them.
        wanted.sort_unstable();
        let mut actions = self.releases_except(&wanted);
        actions.extend(
            wanted
                .iter()
                .filter(|node| !self.holds(node))
                .map(|node| self.take(node)),
        );
        if actions.is_empty() {
            Admission::Mine
        } else {
            Admission::Take(actions)
        }
    }

    fn take(&self, node: &str) -> LockAction {
        let name = lock_name(node);
        let lock = self.locks.iter().find(|lock| lock.name == name);
        LockAction::Take {
            node: node.to_owned(),
            resource_version: lock.map(|lock| lock.resource_version.clone()),
        }
    }

    fn releases_except(&self, wanted: &[&str]) -> Vec<LockAction> {
        let kept: Vec<_> = wanted.iter().map(|node| lock_name(node)).collect();
        self.own
            .iter()
            .filter(|lock| !kept.contains(&lock.name))
            .map(|lock| LockAction::Release {
                name: lock.name.clone(),
                resource_version: lock.resource_version.clone(),
            })
            .collect()
    }
}

/// The waiting benchmarks in the order of their turns, with what each waits for: another benchmark's node, or nothing
/// ([`Wait::Time`]). A benchmark that waits for nothing may take its nodes, or it can't be placed. This is one walk
/// through the queue, where [`Queue::before`] is one for each benchmark.
#[must_use]
pub fn waits<'a>(
    peers: &'a [Arc<Peer>],
    locks: &[Lock],
    nodes: &[NodeFacts],
) -> Vec<(&'a str, Wait)> {
    let all = || peers.iter().map(AsRef::as_ref);
    let mut reservations = of_holders(all().map(reference), locks, nodes);
    let waiting = waiting(all(), locks);
    let turns = Turns::of(all(), waiting.iter().copied(), nodes);
    let mut waits = Vec::new();
    for peer in turns.sorted(waiting) {
        let wanted = nodes::wanted(peer, nodes, &reservations);
        let wait = wanted.iter().find_map(|node| {
            let other = reservations.on(&node.name)?;
            Some(Wait::Turn {
                name: other.name.to_owned(),
                node: node.name.clone(),
            })
        });
        waits.push((peer.uid.as_str(), wait.unwrap_or_default()));
        for node in wanted {
            reservations.reserve(node, reference(peer));
        }
    }
    waits
}

/// The nodes that these benchmarks hold.
fn of_holders<'a>(
    benchmarks: impl Iterator<Item = BenchmarkRef<'a>>,
    locks: &[Lock],
    nodes: &'a [NodeFacts],
) -> Reservations<'a> {
    let mut reservations = Reservations::default();
    for benchmark in benchmarks {
        for lock in held(locks, benchmark.uid) {
            let mut nodes = nodes.iter();
            if let Some(node) = nodes.find(|node| lock.name == lock_name(&node.name)) {
                reservations.reserve(node, benchmark);
            }
        }
    }
    reservations
}

/// The benchmarks that hold no lock and are not at rest.
fn waiting<'a>(peers: impl Iterator<Item = &'a Peer>, locks: &[Lock]) -> Vec<&'a Peer> {
    peers
        .filter(|peer| !peer.rests && held(locks, &peer.uid).next().is_none())
        .collect()
}

fn reference(peer: &Peer) -> BenchmarkRef<'_> {
    BenchmarkRef {
        uid: &peer.uid,
        name: &peer.name,
    }
}

fn held<'a>(locks: &'a [Lock], uid: &str) -> impl Iterator<Item = &'a Lock> {
    locks.iter().filter(move |lock| {
        lock.holder
            .as_ref()
            .is_some_and(|(holder, _)| holder == uid)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::facts::placement::PlacementRequest;

    /// Two boards and two injectors.
    fn cluster() -> Observed {
        let node = |name: &str, meter_ip: Option<&str>| NodeFacts {
            name: name.into(),
            schedulable: true,
            labels: BTreeMap::from([("node".to_owned(), name.to_owned())]),
            meter_ip: meter_ip.map(str::to_owned),
            machine: None,
        };
        Observed {
            nodes: vec![
                node("injector-1", None),
                node("injector-2", None),
                node("pi-1", Some("10.0.0.1")),
                node("pi-2", Some("10.0.0.2")),
            ],
            ..Observed::default()
        }
    }

    fn on(node: &str) -> PlacementRequest {
        PlacementRequest {
            measured: vec![(
                "rust".to_owned(),
                BTreeMap::from([("node".to_owned(), node.to_owned())]),
            )],
            ..PlacementRequest::default()
        }
    }

    fn peer(uid: &str, created: i64, request: PlacementRequest) -> Arc<Peer> {
        Arc::new(Peer {
            name: format!("default/{uid}"),
            uid: uid.into(),
            created_unix_seconds: created,
            last_turn_unix_seconds: None,
            rests: false,
            request: Some(request),
            began_on: Vec::new(),
        })
    }

    fn lock(node: &str, holder: Option<&str>) -> Lock {
        Lock {
            name: lock_name(node),
            holder: holder.map(|uid| (uid.into(), format!("default/{uid}"))),
            acquired_unix_seconds: holder.map(|_| 5.0),
            resource_version: "7".into(),
        }
    }

    /// The nodes that a benchmark chooses, and its admission.
    fn turn(
        created: i64,
        uid: &str,
        request: &PlacementRequest,
        observed: &Observed,
    ) -> (String, Admission) {
        let me = peer(uid, created, request.clone());
        let queue = Queue::before(&me, observed);
        let nodes = nodes::choose(
            request,
            |entrant, candidate| entrant == candidate,
            observed,
            &crate::plan::ledger::Ledger::of("run", &[]),
            |node| queue.holds(node),
            queue.reservations(),
        )
        .unwrap();
        let wanted = format!("{} {}", nodes.measured()[0].name, nodes.injector.name);
        (wanted, queue.admission(&nodes))
    }

    fn take(node: &str) -> LockAction {
        LockAction::Take {
            node: node.into(),
            resource_version: None,
        }
    }

    fn wait_for(name: &str, node: &str) -> Admission {
        Admission::WaitFor {
            name: format!("default/{name}"),
            node: node.into(),
        }
    }

    #[test]
    fn the_oldest_unfinished_benchmark_goes_first_on_a_node() {
        let mut observed = cluster();
        observed.peers = vec![peer("a", 99, on("pi-1"))];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert_eq!(mine, wait_for("a", "pi-1"));
        let mut ended = peer("z", 50, on("pi-1"));
        Arc::make_mut(&mut ended).rests = true;
        observed.peers = vec![peer("a", 101, on("pi-1")), ended];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert_eq!(
            mine,
            Admission::Take(vec![take("injector-1"), take("pi-1")])
        );
    }

    #[test]
    fn runs_on_different_nodes_proceed_at_the_same_time() {
        let mut observed = cluster();
        observed.peers = vec![peer("a", 1, on("pi-1")), peer("b", 2, on("pi-1"))];
        observed.locks = vec![lock("pi-1", Some("a")), lock("injector-1", Some("a"))];
        let (wanted, mine) = turn(100, "me", &on("pi-2"), &observed);
        // `b` waits for pi-1 and therefore does not reserve the free injector.
        assert_eq!(wanted, "pi-2 injector-2");
        assert_eq!(
            mine,
            Admission::Take(vec![take("injector-2"), take("pi-2")])
        );
    }

    #[test]
    fn an_injectors_node_is_not_measured_and_a_measured_node_does_not_inject() {
        let mut observed = cluster();
        observed.peers = vec![peer("a", 1, on("pi-1"))];
        observed.locks = vec![lock("pi-1", Some("a")), lock("pi-2", Some("a"))];
        let mine = turn(100, "me", &on("pi-2"), &observed).1;
        assert_eq!(mine, wait_for("a", "pi-2"));
        let injecting_from = |node: &str| PlacementRequest {
            injector: BTreeMap::from([("node".to_owned(), node.to_owned())]),
            ..on("pi-2")
        };
        observed.locks = vec![lock("pi-1", Some("a")), lock("injector-1", Some("a"))];
        let mine = turn(100, "me", &injecting_from("pi-1"), &observed).1;
        assert_eq!(mine, wait_for("a", "pi-1"));
        let mine = turn(100, "me", &injecting_from("injector-1"), &observed).1;
        assert_eq!(mine, wait_for("a", "injector-1"));
    }

    #[test]
    fn a_younger_benchmark_never_overtakes_on_a_free_node() {
        let mut observed = cluster();
        let needs = PlacementRequest {
            injector: BTreeMap::from([("node".to_owned(), "injector-1".to_owned())]),
            ..on("pi-1")
        };
        // `a` waits for the injector only. Its measured node is free and stays reserved for `a`.
        observed.peers = vec![peer("a", 1, needs), peer("b", 2, on("pi-2"))];
        observed.locks = vec![lock("pi-2", Some("b")), lock("injector-1", Some("b"))];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert_eq!(mine, wait_for("a", "pi-1"));
    }

    #[test]
    fn a_holder_keeps_its_locks_before_older_benchmarks() {
        let mut observed = cluster();
        observed.peers = vec![peer("a", 101, on("pi-1"))];
        observed.locks = vec![lock("pi-1", Some("a")), lock("injector-1", Some("a"))];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert_eq!(mine, wait_for("a", "pi-1"));
        observed.peers = vec![peer("a", 1, on("pi-1"))];
        // The benchmark keeps its own injector, although another free node comes first by name.
        observed.locks = vec![lock("pi-1", Some("me")), lock("injector-2", Some("me"))];
        let (wanted, mine) = turn(100, "me", &on("pi-1"), &observed);
        assert_eq!(
            (wanted.as_str(), mine),
            ("pi-1 injector-2", Admission::Mine)
        );
    }

    #[test]
    fn a_partly_locked_run_takes_the_rest_or_releases_all() {
        let mut observed = cluster();
        observed.locks = vec![lock("pi-1", Some("me")), lock("injector-1", None)];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        let rest = LockAction::Take {
            node: "injector-1".into(),
            resource_version: Some("7".into()),
        };
        assert_eq!(mine, Admission::Take(vec![rest]));
        let me = peer("me", 100, on("pi-1"));
        let back = LockAction::Release {
            name: lock_name("pi-1"),
            resource_version: "7".into(),
        };
        let queue = Queue::before(&me, &observed);
        assert_eq!(queue.releases(), std::slice::from_ref(&back));
        // After an edit of the placement the benchmark needs another node.
        let mine = turn(100, "me", &on("pi-2"), &observed).1;
        let Admission::Take(actions) = mine else {
            panic!("{mine:?}");
        };
        assert_eq!((&actions[0], actions.len()), (&back, 3));
    }

    /// The last turn of the other namespace was after this benchmark was created.
    #[test]
    fn a_benchmark_goes_before_an_older_one_whose_namespace_has_just_had_its_turn() {
        let mut ended = peer("ended", 1, on("pi-1"));
        let mut older = peer("older", 2, on("pi-1"));
        for other in [&mut ended, &mut older] {
            Arc::make_mut(other).name = format!("busy/{}", other.uid);
        }
        (
            Arc::make_mut(&mut ended).rests,
            Arc::make_mut(&mut ended).last_turn_unix_seconds,
        ) = (true, Some(500));
        let mut observed = cluster();
        observed.peers = vec![older.clone(), ended.clone()];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert!(matches!(mine, Admission::Take(_)), "{mine:?}");
        observed.peers = vec![peer("me", 100, on("pi-1")), ended];
        let queue = Queue::before(&older, &observed);
        assert_eq!(queue.reservations.on("pi-1").unwrap().name, "default/me");
    }

    /// The walk through the whole queue says of each benchmark what the benchmark's own pass says.
    #[test]
    fn each_benchmark_waits_for_what_its_own_pass_says() {
        let injecting_from = |node: &str, measured: &str| PlacementRequest {
            injector: BTreeMap::from([("node".to_owned(), node.to_owned())]),
            ..on(measured)
        };
        let mut both = on("pi-2");
        let labels = on("pi-1").measured[0].1.clone();
        both.measured.push(("go".to_owned(), labels));
        let mut all = vec![
            peer("a", 1, on("pi-1")),
            peer("b", 2, on("pi-1")),
            peer("c", 3, on("pi-2")),
            peer("d", 4, both.clone()),
            peer("e", 5, injecting_from("injector-2", "pi-2")),
            peer("f", 6, on("no-such-node")),
            peer(
                "g",
                7,
                PlacementRequest {
                    measured: both.measured,
                    ..injecting_from("pi-1", "pi-2")
                },
            ),
        ];
        Arc::make_mut(&mut all[1]).rests = true;
        // Three namespaces: `a`, `b` and `c` are in the first, and so on.
        for (index, peer) in all.iter_mut().enumerate() {
            Arc::make_mut(peer).name = format!("lab-{}/{}", index / 3, peer.uid);
        }
        Arc::make_mut(&mut all[1]).last_turn_unix_seconds = Some(5);
        let mut some_wait = 0;
        for locks in [
            vec![],
            vec![lock("pi-1", Some("a")), lock("injector-1", Some("a"))],
            vec![lock("pi-2", Some("c")), lock("injector-1", Some("c"))],
            vec![lock("pi-2", Some("e")), lock("injector-2", Some("e"))],
        ] {
            let nodes = cluster().nodes;
            let waits: BTreeMap<_, _> = waits(&all, &locks, &nodes).into_iter().collect();
            for me in all
                .iter()
                .filter(|it| !it.rests && held(&locks, &it.uid).next().is_none())
            {
                let observed = Observed {
                    peers: all.iter().filter(|it| it.uid != me.uid).cloned().collect(),
                    locks: locks.clone(),
                    ..cluster()
                };
                let request = me.request.as_ref().unwrap();
                let queue = Queue::before(me, &observed);
                let chosen = nodes::choose(
                    request,
                    |entrant, candidate| entrant == candidate,
                    &observed,
                    &crate::plan::ledger::Ledger::of("run", &[]),
                    |node| queue.holds(node),
                    queue.reservations(),
                );
                let own = match chosen.map(|nodes| queue.admission(&nodes)) {
                    Ok(Admission::WaitFor { name, node }) => Wait::Turn { name, node },
                    _ => Wait::Time,
                };
                assert_eq!(waits[me.uid.as_str()], own, "{} with {locks:?}", me.uid);
                some_wait += usize::from(own != Wait::Time);
            }
            assert!(!waits.contains_key("b"), "it rests");
        }
        assert!(some_wait > 5, "{some_wait}");
    }

    #[test]
    fn a_lock_whose_holder_was_deleted_is_free() {
        let mut observed = cluster();
        observed.locks = vec![lock("pi-1", Some("gone")), lock("injector-1", Some("gone"))];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        assert!(matches!(mine, Admission::Take(actions) if actions.len() == 2));
    }

    #[test]
    fn exactly_one_of_two_benchmarks_of_one_second_goes_first() {
        let mut observed = cluster();
        observed.peers = vec![peer("other", 100, on("pi-1"))];
        let mine = turn(100, "me", &on("pi-1"), &observed).1;
        observed.peers = vec![peer("me", 100, on("pi-1"))];
        let theirs = turn(100, "other", &on("pi-1"), &observed).1;
        assert!(matches!(mine, Admission::Take(_)));
        assert_eq!(theirs, wait_for("me", "pi-1"));
    }
}
