//! What the operator remembers between passes, by the benchmark's UID. A restart loses it without harm.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kube::ResourceExt;

use crate::{
    api::FrugalityBenchmark,
    io::{
        observe::Remembered,
        resting::{IdlePass, Resting},
    },
    plan::{
        action::{Plan, Wait},
        facts::{Lock, NodeFacts, Refusal},
        names::run_id,
    },
};

/// First wait after a failed pass. It doubles with each failure, up to [`MAX_BACKOFF`].
pub(crate) const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Longest wait after failed passes.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The memory that all passes share.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<Contents>);

#[derive(Debug, Default)]
struct Contents {
    failures: HashMap<String, u32>,
    refusals: HashMap<String, (String, Refusal)>,
    reasons: HashMap<String, (String, f64)>,
    /// Benchmarks in whose namespace the operator may have lost its rights.
    in_doubt: HashSet<String>,
    /// Names of the Services that the last pass has seen.
    services: HashMap<String, BTreeSet<String>>,
    resting: Resting,
    /// The nodes at the last look. Empty if no benchmark depended on them.
    nodes: Vec<NodeFacts>,
    /// Count of the looks that found other nodes than the look before.
    nodes_version: u64,
}

/// The passes over one benchmark.
impl Memory {
    /// What the memory holds about a benchmark.
    pub(crate) fn of(&self, benchmark: &FrugalityBenchmark) -> Remembered {
        let uid = benchmark.uid().unwrap_or_default();
        let contents = self.contents();
        let refusal = contents.refusals.get(&uid);
        Remembered {
            refused: refusal
                .filter(|(run, _)| *run == run_id(benchmark))
                .map(|(_, refusal)| refusal.clone()),
            waiting_since: contents.reasons.get(&uid).cloned(),
            rights_in_doubt: contents.in_doubt.contains(&uid),
            services: contents.services.get(&uid).cloned().unwrap_or_default(),
        }
    }

    /// Stores the names of the Services that a pass has seen.
    pub(crate) fn remember_services(
        &self,
        benchmark: &FrugalityBenchmark,
        names: BTreeSet<String>,
    ) {
        let Some(uid) = benchmark.uid() else {
            return;
        };
        let mut contents = self.contents();
        if names.is_empty() {
            contents.services.remove(&uid);
        } else {
            contents.services.insert(uid, names);
        }
    }

    /// Stores that the API server has forbidden an action.
    pub(crate) fn doubt_rights(&self, benchmark: &FrugalityBenchmark) {
        if let Some(uid) = benchmark.uid() {
            self.contents().in_doubt.insert(uid);
        }
    }

    /// Stores the API server's answer to whether the operator has its rights. Without them, every action is refused, so a
    /// refusal says nothing about the object.
    pub(crate) fn end_doubt(&self, benchmark: &FrugalityBenchmark, has_rights: bool) {
        if let Some(uid) = benchmark.uid() {
            let mut contents = self.contents();
            if has_rights {
                contents.in_doubt.remove(&uid);
            } else {
                contents.refusals.remove(&uid);
            }
        }
    }

    /// Stores a refusal in this run.
    pub(crate) fn remember_refusal(&self, benchmark: &FrugalityBenchmark, refusal: Refusal) {
        if let Some(uid) = benchmark.uid() {
            let refusal = (run_id(benchmark), refusal);
            self.contents().refusals.insert(uid, refusal);
        }
    }

    /// Forgets a temporary refusal after a complete plan was carried out.
    pub(crate) fn forget_temporary_refusal(&self, benchmark: &FrugalityBenchmark) {
        if let Some(uid) = benchmark.uid() {
            let mut contents = self.contents();
            let refusal = contents.refusals.get(&uid);
            if refusal.is_some_and(|(_, it)| it.may_pass()) {
                contents.refusals.remove(&uid);
            }
        }
    }

    /// The last plan's reason, and the time since which the plans have given it.
    pub(crate) fn waiting_since(&self, benchmark: &FrugalityBenchmark) -> Option<(String, f64)> {
        self.contents().reasons.get(&benchmark.uid()?).cloned()
    }

    /// Stores the time since which the plan has given the same reason.
    pub(crate) fn remember_reason(&self, benchmark: &FrugalityBenchmark, plan: &Plan) {
        let reason = plan
            .status
            .columns
            .as_ref()
            .and_then(|columns| columns.reason.clone());
        if let (Some(uid), Some(reason)) = (benchmark.uid(), reason) {
            let mut contents = self.contents();
            let entry = contents.reasons.entry(uid).or_default();
            if entry.0 != reason {
                *entry = (reason, plan.decided_unix_seconds);
            }
        }
    }

    /// Forgets the failed passes over a benchmark.
    pub(crate) fn forget_failures(&self, uid: &str) {
        self.contents().failures.remove(uid);
    }

    /// Counts a failed pass. Returns the time until the next pass.
    pub(crate) fn backoff(&self, uid: &str) -> Duration {
        let mut contents = self.contents();
        let failures = contents.failures.entry(uid.to_owned()).or_default();
        *failures += 1;
        MIN_BACKOFF
            .saturating_mul(2_u32.saturating_pow(*failures - 1))
            .min(MAX_BACKOFF)
    }
}

/// The benchmarks at rest.
impl Memory {
    /// Count of the looks that found other nodes than the look before.
    pub(crate) fn nodes_version(&self) -> u64 {
        self.contents().nodes_version
    }

    /// Lets a benchmark rest. Returns the time until its next pass; `None` if it does not rest.
    pub(crate) fn settle(&self, pass: IdlePass<'_>) -> Option<Duration> {
        self.contents().resting.settle(pass, Instant::now())
    }

    /// Time until the next pass over a benchmark that has this version now. `None` if the pass is due.
    pub(crate) fn rest_left(&self, uid: &str, version: &str) -> Option<Duration> {
        self.contents().resting.left(uid, version, Instant::now())
    }

    /// Ends the rest of benchmarks whose pods a pass over another benchmark has seen. Whether any rest ended.
    pub(crate) fn disturb<'a>(&self, uids: impl Iterator<Item = &'a str>) -> bool {
        self.contents().resting.disturb(uids, Instant::now())
    }

    /// Whether a benchmark depends on the nodes and their locks. If none does, the nodes are forgotten.
    pub(crate) fn needs_nodes(&self) -> bool {
        let mut contents = self.contents();
        let needs = contents.resting.depends_on_nodes();
        if !needs {
            contents.nodes.clear();
        }
        needs
    }

    /// Takes note of a look at the nodes and at the whole queue. Ends the rest of those whose turn it is, and of those
    /// that ended because of the nodes as they were. `waits` is what each waiting benchmark waits for now, in the order
    /// of their turns. A benchmark that holds a lock does not rest: a write that came late took the lock. Whether any rest
    /// ended.
    pub(crate) fn look(
        &self,
        nodes: Vec<NodeFacts>,
        waits: &[(&str, Wait)],
        locks: &[Lock],
    ) -> bool {
        let mut contents = self.contents();
        let mut called = contents.resting.call_up(waits);
        for (holder, _) in locks.iter().filter_map(|lock| lock.holder.as_ref()) {
            called |= contents.resting.rise(holder);
        }
        if contents.nodes != nodes {
            contents.nodes = nodes;
            contents.nodes_version += 1;
        }
        let version = contents.nodes_version;
        let changed = contents.resting.nodes_changed(version);
        called || changed
    }
}

impl Memory {
    /// Forgets all benchmarks except these.
    pub(crate) fn keep(&self, uids: &HashSet<String>) {
        let mut contents = self.contents();
        contents.failures.retain(|uid, _| uids.contains(uid));
        contents.refusals.retain(|uid, _| uids.contains(uid));
        contents.reasons.retain(|uid, _| uids.contains(uid));
        contents.in_doubt.retain(|uid| uids.contains(uid));
        contents.services.retain(|uid, _| uids.contains(uid));
        contents.resting.keep(uids);
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_deleted_benchmark_is_removed() {
        let memory = Memory::default();
        let refusal = Refusal {
            reason: crate::api::Reason::ChildRefused,
            message: String::new(),
            is_entry: false,
        };
        for uid in ["here", "gone"].map(str::to_owned) {
            let mut contents = memory.contents();
            contents.failures.insert(uid.clone(), 3);
            let refusal = (String::new(), refusal.clone());
            contents.refusals.insert(uid.clone(), refusal);
            contents.reasons.insert(uid.clone(), (String::new(), 1.0));
            contents.in_doubt.insert(uid.clone());
            let services = BTreeSet::from([String::new()]);
            contents.services.insert(uid, services);
        }
        memory.keep(&HashSet::from(["here".to_owned()]));
        let contents = memory.contents();
        let left = (
            contents.failures.len(),
            contents.refusals.len(),
            contents.reasons.len(),
            contents.in_doubt.len(),
            contents.services.len(),
        );
        assert_eq!(left, (1, 1, 1, 1, 1));
        assert!(contents.failures.contains_key("here"));
    }

    /// An operator that lost its node can take a lock late, for a benchmark that was suspended meanwhile.
    #[test]
    fn a_benchmark_at_rest_that_holds_a_lock_is_woken() {
        let memory = Memory::default();
        for uid in ["holder", "other"] {
            memory.settle(IdlePass {
                uid,
                version: "1",
                wait: Wait::Benchmark,
                due: None,
                nodes_version: 0,
            });
        }
        let lock = Lock {
            name: "node-pi-1".into(),
            holder: Some(("holder".into(), "shop/holder".into())),
            acquired_unix_seconds: None,
            resource_version: "1".into(),
        };
        assert!(memory.look(Vec::new(), &[], std::slice::from_ref(&lock)));
        assert_eq!(memory.rest_left("holder", "1"), None);
        assert!(memory.rest_left("other", "1").is_some());
        assert!(!memory.look(Vec::new(), &[], &[lock]));
    }

    #[test]
    fn the_wait_after_failed_passes_doubles_up_to_a_minute_until_a_pass_succeeds() {
        let memory = Memory::default();
        let waits: Vec<u64> = (0..8).map(|_| memory.backoff("uid").as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(memory.backoff("another"), MIN_BACKOFF);
        memory.forget_failures("uid");
        assert_eq!(memory.backoff("uid"), MIN_BACKOFF);
    }
}
