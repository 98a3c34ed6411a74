//! Benchmarks whose last pass changed nothing and whose next pass would change nothing either: they have ended, are
//! suspended, can't be read, or wait for their turn or for a node. The operator makes a pass over such a benchmark when something
//! changes, and otherwise rarely. A thousand of them cost hardly more requests than one.

use std::{
    collections::{HashMap, HashSet},
    mem::discriminant,
    time::{Duration, Instant},
};

use crate::plan::action::Wait;

/// Time between two passes over benchmarks that wait for the same thing, all of them together. The passes find
/// changes that the operator does not watch.
const ROUND: Duration = Duration::from_secs(30);
/// Longest time between two passes over a benchmark that waits for a change of the cluster, if at most a hundred of them wait. Its
/// message promises that the run then begins.
const LONGEST_FOR_CLUSTER: Duration = Duration::from_secs(600);
/// Time between two passes over all benchmarks that wait for a change of the cluster, if more of them wait. A pass costs
/// a dozen requests.
const ROUND_FOR_CLUSTER: Duration = Duration::from_secs(6);
/// Most benchmarks that one look at the queue wakes for one cause. Each pass costs a dozen requests, and the passes of
/// a run under way must not wait for hundreds of others.
const MOST_WOKEN: usize = 20;
/// The same for benchmarks that only wait for another benchmark than before.
const MOST_RENAMED: usize = 10;

/// The benchmarks at rest, by UID.
#[derive(Debug, Default)]
pub(crate) struct Resting(HashMap<String, Rest>);

#[derive(Debug)]
struct Rest {
    /// Version of the benchmark that the pass read.
    version: String,
    wait: Wait,
    /// Count of changes of the nodes before the pass.
    nodes_version: u64,
    since: Instant,
    until: Instant,
}

/// A pass that changed nothing.
#[derive(Debug)]
pub(crate) struct IdlePass<'a> {
    /// UID of the benchmark.
    pub(crate) uid: &'a str,
    /// Version of the benchmark that the pass read.
    pub(crate) version: &'a str,
    /// What the plan waits for.
    pub(crate) wait: Wait,
    /// Time until a pass that must not be later.
    pub(crate) due: Option<Duration>,
    /// Count of changes of the nodes before the pass.
    pub(crate) nodes_version: u64,
}

impl Resting {
    /// Lets a benchmark rest. Returns the time until its next pass; `None` if it does not rest.
    pub(crate) fn settle(&mut self, pass: IdlePass<'_>, now: Instant) -> Option<Duration> {
        self.rise(pass.uid);
        if pass.wait == Wait::Time {
            return None;
        }
        let alike = |rest: &&Rest| discriminant(&rest.wait) == discriminant(&pass.wait);
        let alike = self.0.values().filter(alike).count();
        let resting = u32::try_from(alike + 1).unwrap_or(u32::MAX);
        let mut left = ROUND.saturating_mul(resting);
        if pass.wait == Wait::Cluster {
            left = left.min(LONGEST_FOR_CLUSTER.max(ROUND_FOR_CLUSTER.saturating_mul(resting)));
        }
        left = pass.due.map_or(left, |due| due.min(left));
        let rest = Rest {
            version: pass.version.to_owned(),
            wait: pass.wait,
            nodes_version: pass.nodes_version,
            since: now,
            until: now + left,
        };
        self.0.insert(pass.uid.to_owned(), rest);
        Some(left)
    }

    /// Ends the rest of a benchmark. Whether it rested.
    pub(crate) fn rise(&mut self, uid: &str) -> bool {
        self.0.remove(uid).is_some()
    }

    /// Time until the next pass over a benchmark that has this version now. `None` if the pass is due.
    pub(crate) fn left(&self, uid: &str, version: &str, now: Instant) -> Option<Duration> {
        let rest = self.0.get(uid).filter(|rest| rest.version == version)?;
        let left = rest.until.saturating_duration_since(now);
        Some(left).filter(|left| !left.is_zero())
    }

    /// Whether a benchmark waits for something that the nodes and their locks show.
    pub(crate) fn depends_on_nodes(&self) -> bool {
        let mut waits = self.0.values().map(|rest| &rest.wait);
        waits.any(|wait| matches!(wait, Wait::Turn { .. } | Wait::Cluster))
    }

    /// Ends the rest of some benchmarks whose last pass was before this change of the nodes, if they wait for a change of
    /// the cluster. Whether any rest ended.
    pub(crate) fn nodes_changed(&mut self, nodes_version: u64) -> bool {
        let is_outdated =
            |rest: &Rest| rest.wait == Wait::Cluster && rest.nodes_version != nodes_version;
        let outdated = self.0.iter().filter(|(_, rest)| is_outdated(rest));
        let uids: Vec<String> = outdated
            .map(|(uid, _)| uid.clone())
            .take(MOST_WOKEN)
            .collect();
        for uid in &uids {
            self.rise(uid);
        }
        !uids.is_empty()
    }

    /// Ends the rest of benchmarks whose turn may have come, and of some that wait for another benchmark than before.
    /// `waits` is what each waiting benchmark waits for now, in the order of their turns. Whether any rest ended.
    pub(crate) fn call_up(&mut self, waits: &[(&str, Wait)]) -> bool {
        let (mut called, mut renamed) = (0, 0);
        // Those that rest as if they waited, but are not in the queue: they were suspended, or their node is not ready.
        let waiting: HashSet<&str> = waits.iter().map(|(uid, _)| *uid).collect();
        let is_unknown = |uid: &&String| !waiting.contains(uid.as_str());
        let unknown: Vec<String> = self.0.keys().filter(is_unknown).cloned().collect();
        let known = waits.iter().map(|(uid, wait)| (*uid, Some(wait)));
        for (uid, wait) in known.chain(unknown.iter().map(|uid| (uid.as_str(), None))) {
            let Some(rest) = self.0.get(uid) else {
                continue;
            };
            if !matches!(rest.wait, Wait::Turn { .. }) || wait == Some(&rest.wait) {
                continue;
            }
            let (woken, most) = match wait {
                Some(Wait::Turn { .. }) => (&mut renamed, MOST_RENAMED),
                _ => (&mut called, MOST_WOKEN),
            };
            if *woken < most {
                *woken += 1;
                self.rise(uid);
            }
        }
        called + renamed > 0
    }

    /// Ends the rest of benchmarks whose pods a pass over another benchmark has seen. Whether any rest ended. A user can
    /// create such pods, so each benchmark is woken once per round at most.
    pub(crate) fn disturb<'a>(
        &mut self,
        uids: impl Iterator<Item = &'a str>,
        now: Instant,
    ) -> bool {
        let mut any = false;
        for uid in uids {
            let has_rested = |rest: &Rest| now.saturating_duration_since(rest.since) >= ROUND;
            if self.0.get(uid).is_some_and(has_rested) {
                self.rise(uid);
                any = true;
            }
        }
        any
    }

    /// Forgets all benchmarks except these.
    pub(crate) fn keep(&mut self, uids: &HashSet<String>) {
        self.0.retain(|uid, _| uids.contains(uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(name: &str) -> Wait {
        Wait::Turn {
            name: name.into(),
            node: "pi-1".into(),
        }
    }

    fn pass(uid: &str, wait: Wait) -> IdlePass<'_> {
        IdlePass {
            uid,
            version: "1",
            wait,
            due: None,
            nodes_version: 1,
        }
    }

    /// Benchmarks `0` to `n - 1`, all waiting for this.
    fn resting(n: usize, wait: &Wait, now: Instant) -> Resting {
        let mut resting = Resting::default();
        for uid in 0..n {
            resting.settle(pass(&uid.to_string(), wait.clone()), now);
        }
        resting
    }

    #[test]
    fn passes_over_many_benchmarks_are_as_rare_as_over_one() {
        let now = Instant::now();
        let mut resting = resting(1000, &Wait::Benchmark, now);
        let left = resting.settle(pass("7", Wait::Benchmark), now);
        assert_eq!(left, Some(ROUND * 1000));
        // Others that wait for something else have their own round.
        let left = resting.settle(pass("cluster", Wait::Cluster), now);
        assert_eq!(left, Some(ROUND));
        // One that is to be deleted is not late.
        let due = Some(Duration::from_secs(90));
        let to_be_deleted = IdlePass {
            due,
            ..pass("8", Wait::Benchmark)
        };
        assert_eq!(resting.settle(to_be_deleted, now), due);
    }

    #[test]
    fn benchmarks_that_wait_for_the_cluster_have_a_pass_every_ten_minutes_unless_they_are_many() {
        let now = Instant::now();
        let left = |n: usize| {
            let mut resting = resting(n, &Wait::Cluster, now);
            let left = resting.settle(pass("0", Wait::Cluster), now);
            left.unwrap().as_secs()
        };
        assert_eq!([left(1), left(20), left(100)], [30, 600, 600]);
        assert_eq!(left(1000), 6000, "one pass in 6 s");
    }

    #[test]
    fn rest_ends_with_its_time_with_a_change_and_with_a_pass_that_waits_for_time() {
        let now = Instant::now();
        let mut resting = resting(1, &Wait::Benchmark, now);
        assert_eq!(resting.left("0", "1", now), Some(ROUND));
        assert_eq!(resting.left("0", "2", now), None);
        assert_eq!(resting.left("0", "1", now + ROUND), None);
        assert_eq!(resting.left("1", "1", now), None);
        assert_eq!(resting.settle(pass("0", Wait::Time), now), None);
        assert_eq!(resting.left("0", "1", now), None);
    }

    #[test]
    fn the_queue_calls_up_whose_turn_it_is_and_some_that_wait_for_another() {
        let now = Instant::now();
        let uids: Vec<String> = (0..50).map(|uid| format!("{uid:02}")).collect();
        let uids = || uids.iter().map(String::as_str);
        let queue = || {
            let mut queue = Resting::default();
            for uid in uids() {
                queue.settle(pass(uid, turn("lab/a")), now);
            }
            queue
        };
        let risen = |resting: &Resting| {
            let risen = uids().filter(|uid| resting.left(uid, "1", now).is_none());
            risen.collect::<Vec<_>>()
        };
        let waits = |last: Wait, others: &Wait| {
            let others = uids().take(49).map(|uid| (uid, others.clone()));
            others.chain([("49", last)]).collect::<Vec<_>>()
        };
        let mut same = queue();
        assert!(same.depends_on_nodes());
        assert!(!same.call_up(&waits(turn("lab/a"), &turn("lab/a"))));
        assert_eq!(risen(&same), [""; 0]);
        // The youngest, on another node than the others.
        assert!(same.call_up(&waits(Wait::Time, &turn("lab/a"))));
        assert_eq!(risen(&same), ["49"]);
        let mut renamed = queue();
        assert!(renamed.call_up(&waits(Wait::Time, &turn("lab/b"))));
        let expected: Vec<_> = uids().take(MOST_RENAMED).chain(["49"]).collect();
        assert_eq!(risen(&renamed), expected);
        // The queue knows none of them: they were suspended, or their node is not ready.
        let mut unknown = queue();
        assert!(unknown.call_up(&[]));
        assert_eq!(risen(&unknown).len(), MOST_WOKEN);
        let mut ended = resting(1, &Wait::Benchmark, now);
        assert!(!ended.depends_on_nodes() && !ended.call_up(&[]));
    }

    #[test]
    fn a_change_of_the_nodes_wakes_those_whose_pass_was_before_it() {
        let now = Instant::now();
        let mut resting = resting(MOST_WOKEN + 1, &Wait::Cluster, now);
        resting.settle(pass("ended", Wait::Benchmark), now);
        let later = IdlePass {
            nodes_version: 2,
            ..pass("later", Wait::Cluster)
        };
        resting.settle(later, now);
        assert!(resting.nodes_changed(2));
        assert_eq!(resting.0.len(), 3, "one is left for the next look");
        assert!(resting.nodes_changed(2));
        assert!(!resting.nodes_changed(2));
        assert!(resting.left("later", "1", now).is_some());
        assert!(resting.left("ended", "1", now).is_some());
    }

    #[test]
    fn pods_of_a_benchmark_at_rest_wake_it_once_per_round() {
        let now = Instant::now();
        let mut resting = resting(1, &Wait::Benchmark, now);
        let pods = || ["0", "0", "unknown"].into_iter();
        assert!(!resting.disturb(pods(), now));
        let later = now + ROUND;
        assert!(resting.disturb(pods(), later));
        resting.settle(pass("0", Wait::Benchmark), later);
        assert!(!resting.disturb(pods(), later + Duration::from_secs(1)));
        assert!(resting.disturb(pods(), later + ROUND));
    }

    #[test]
    fn a_deleted_benchmark_is_forgotten() {
        let now = Instant::now();
        let mut resting = resting(3, &Wait::Cluster, now);
        resting.keep(&HashSet::from(["1".to_owned()]));
        assert_eq!(resting.0.len(), 1);
    }
}
