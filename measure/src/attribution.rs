//! Attribution of the node's energy to pods. Pure functions: two observations in, joules out.
//!
//! The formulas are Kepler's:
//!
//! - usage ratio = ΔCPU(node) / (CPUs × Δt), between 0 and 1;
//! - active = ΔE × usage ratio; idle = ΔE − active;
//! - a pod's share of active is ΔCPU(pod) / ΔCPU(node).
//!
//! Active energy that no pod used belongs to the system. At any time Σ pods + ended pods + system = active.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The CPU counters of a node and its pods at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Unix time, on the node's clock, at which the counters were read.
    pub unix_seconds: f64,
    /// The same moment on the monotonic clock, counted from the meter's start.
    pub elapsed: Duration,
    /// Identity of the node's cgroup. A different number means a different cgroup with different counters.
    pub node_cgroup: u64,
    /// CPU time of the node's cgroup since the cgroup was created.
    pub node_cpu_nanoseconds: u64,
    /// The kernel's count of the node's processors, if it can be read.
    pub processors: Option<ProcessorTimes>,
    /// Every pod that has a cgroup, by UID. A meter observes the same pods ten times per second, so their UIDs are shared.
    pub pods: BTreeMap<Arc<str>, PodObservation>,
}

/// Time that the node's processors worked since the machine started, for any user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorWork {
    /// Processes and the kernel, without interrupts.
    pub busy_nanoseconds: u64,
    /// Interrupts, which include the network's packets.
    pub interrupt_nanoseconds: u64,
}

/// CPU time of the node's processors since the machine started, for any user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// Work. Unknown if the node is the whole machine, because the node's cgroup then contains everything.
    /// The kernel samples this count, so it would differ from the cgroup's count by chance.
    pub work: Option<ProcessorWork>,
    /// Time that the hypervisor gave to other machines.
    pub stolen_nanoseconds: u64,
}

/// The counters of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodObservation {
    /// Identity of the pod's cgroup.
    pub cgroup: u64,
    /// CPU time of the pod's cgroup since the cgroup was created.
    pub cpu_nanoseconds: u64,
    /// Memory that the kernel cannot easily reclaim. Unknown if the kernel has no files for it.
    pub working_set_bytes: Option<u64>,
}

/// The change on the node between two observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Time passed on the monotonic clock, in seconds, above 0.
    pub elapsed_seconds: f64,
    /// CPU time that the whole node used, in CPU-seconds.
    pub node_cpu_seconds: f64,
}

/// Why an observation cannot follow the previous one. No energy is counted across such a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Break {
    /// The node's counter is below its last value.
    #[error("the node's CPU counter went back from {from} to {to} ns")]
    WentBack {
        /// Last value, in nanoseconds.
        from: u64,
        /// Value now, in nanoseconds.
        to: u64,
    },
    /// The node's cgroup was removed and created again. Its counter started again.
    #[error("the node's cgroup was replaced by another of the same name")]
    Replaced,
    /// Two observations at the same moment.
    #[error("no time has passed since the last reading")]
    NoTime,
}

impl Break {
    /// Whether a later observation may still follow.
    #[must_use]
    pub fn heals(self) -> bool {
        self == Self::NoTime
    }
}

/// Energy of the node since the meter began, in joules. None of these values ever decreases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEnergy {
    /// The sum: active + idle.
    pub total_joules: f64,
    /// The part in proportion to CPU use.
    pub active_joules: f64,
    /// The remainder. It is not an idle baseline.
    pub idle_joules: f64,
    /// The part of active that was used outside pods: kernel, kubelet, container runtime, this meter.
    pub system_joules: f64,
    /// The part of active that was used by pods that have ended since.
    pub ended_pods_joules: f64,
}

/// Mean power and use over the last interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// The node, in watts.
    pub total_watts: f64,
    /// Active part, in watts.
    pub active_watts: f64,
    /// Idle part, in watts.
    pub idle_watts: f64,
    /// CPU use, 0..=1.
    pub usage_ratio: f64,
}

/// One pod's account.
#[derive(Clone, Debug, PartialEq)]
pub struct PodAccount {
    /// Active energy given to the pod since the meter first saw the pod, in joules.
    pub joules: f64,
    /// Active power of the pod over the last interval, in watts. Unknown until the pod was observed for one
    /// interval.
    pub watts: Option<f64>,
    /// CPU time since the pod began, in nanoseconds.
    pub cpu_nanoseconds: u64,
    /// Working set at the last observation.
    pub working_set_bytes: Option<u64>,
}

/// The node's accounts up to the latest observation.
#[derive(Clone, Debug)]
pub struct Accounts {
    cpus: u32,
    latest: Observation,
    /// The node.
    pub node: NodeEnergy,
    /// Absent until there are two observations.
    pub rates: Option<Rates>,
    /// The pods that exist, by UID.
    pub pods: BTreeMap<Arc<str>, PodAccount>,
}

impl Accounts {
    /// Begins the count. Energy that pods used earlier is not counted.
    #[must_use]
    pub fn open(first: Observation, cpus: u32) -> Self {
        let pods = first
            .pods
            .iter()
            .map(|(uid, pod)| {
                let account = PodAccount {
                    joules: 0.0,
                    watts: None,
                    cpu_nanoseconds: pod.cpu_nanoseconds,
                    working_set_bytes: pod.working_set_bytes,
                };
                (Arc::clone(uid), account)
            })
            .collect();
        Self {
            cpus,
            latest: first,
            node: NodeEnergy::default(),
            rates: None,
            pods,
        }
    }

    /// Unix time of the latest observation.
    #[must_use]
    pub fn reading_unix_seconds(&self) -> f64 {
        self.latest.unix_seconds
    }

    /// CPU time of the node's cgroup, in seconds.
    #[must_use]
    pub fn node_cpu_seconds(&self) -> f64 {
        seconds(self.latest.node_cpu_nanoseconds)
    }

    /// The kernel's count of the node's processors, if it can be read.
    #[must_use]
    pub fn processors(&self) -> Option<ProcessorTimes> {
        self.latest.processors
    }

    /// Counts the interval up to `now`; `joules` returns the energy of that interval. On a break nothing
    /// changes.
    pub fn advance(
        &mut self,
        now: Observation,
        joules: impl FnOnce(Interval) -> f64,
    ) -> Result<(), Break> {
        let interval = self.interval(&now)?;
        let energy = joules(interval);
        let usage_ratio = (interval.node_cpu_seconds
            / (f64::from(self.cpus) * interval.elapsed_seconds))
            .clamp(0.0, 1.0);
        let active = energy * usage_ratio;
        let idle = energy - active;

        let mut before = self.latest.pods.iter().peekable();
        let used: Vec<u64> = now
            .pods
            .iter()
            .map(|(uid, pod)| pod.cpu_since(take_of(&mut before, uid, |_| ())))
            .collect();
        let pods_cpu: u64 = used.iter().sum();
        // Pods are read microseconds after the node, and the root of a v2 tree counts in ticks. Together the
        // pods can therefore seem to have used more than the node. They then share all of its energy.
        let whole = (now.node_cpu_nanoseconds - self.latest.node_cpu_nanoseconds).max(pods_cpu);

        let mut pods = Vec::with_capacity(used.len());
        let mut pods_joules = 0.0;
        let mut ended_joules = 0.0;
        let mut accounts = std::mem::take(&mut self.pods).into_iter().peekable();
        for ((uid, pod), cpu) in now.pods.iter().zip(used) {
            let share = if whole == 0 {
                0.0
            } else {
                active * (cpu as f64 / whole as f64)
            };
            pods_joules += share;
            let before = take_of(&mut accounts, uid, |ended| ended_joules += ended.joules);
            let account = PodAccount {
                joules: before.as_ref().map_or(0.0, |account| account.joules) + share,
                watts: Some(share / interval.elapsed_seconds),
                cpu_nanoseconds: before.map_or(0, |account| account.cpu_nanoseconds) + cpu,
                working_set_bytes: pod.working_set_bytes,
            };
            pods.push((Arc::clone(uid), account));
        }
        ended_joules += accounts.map(|(_, ended)| ended.joules).sum::<f64>();
        self.node.ended_pods_joules += ended_joules;
        self.pods = pods.into_iter().collect();

        self.node.total_joules += energy;
        self.node.active_joules += active;
        self.node.idle_joules += idle;
        self.node.system_joules += (active - pods_joules).max(0.0);
        self.rates = Some(Rates {
            total_watts: energy / interval.elapsed_seconds,
            active_watts: active / interval.elapsed_seconds,
            idle_watts: idle / interval.elapsed_seconds,
            usage_ratio,
        });
        self.latest = now;
        Ok(())
    }

    fn interval(&self, now: &Observation) -> Result<Interval, Break> {
        if now.node_cgroup != self.latest.node_cgroup {
            return Err(Break::Replaced);
        }
        let (from, to) = (self.latest.node_cpu_nanoseconds, now.node_cpu_nanoseconds);
        let node_cpu = to.checked_sub(from).ok_or(Break::WentBack { from, to })?;
        let elapsed = now.elapsed.saturating_sub(self.latest.elapsed);
        if elapsed.is_zero() {
            return Err(Break::NoTime);
        }
        Ok(Interval {
            elapsed_seconds: elapsed.as_secs_f64(),
            node_cpu_seconds: seconds(node_cpu),
        })
    }
}

impl PodObservation {
    /// CPU time since an earlier observation of the pod. If the pod's cgroup is new since then, all of its CPU time counts.
    fn cpu_since(&self, before: Option<&Self>) -> u64 {
        before
            .filter(|before| before.cgroup == self.cgroup)
            .and_then(|before| self.cpu_nanoseconds.checked_sub(before.cpu_nanoseconds))
            .unwrap_or(self.cpu_nanoseconds)
    }
}

/// Takes a pod's item from an earlier list. `ended` gets the items before it: their pods have ended. Both lists are in the
/// order of the UIDs, and share the UIDs of the pods that still exist. Ten times per second, a search for each pod would
/// cost more than the walk through both lists.
fn take_of<K: Borrow<Arc<str>>, V>(
    earlier: &mut Peekable<impl Iterator<Item = (K, V)>>,
    uid: &Arc<str>,
    mut ended: impl FnMut(V),
) -> Option<V> {
    loop {
        let known = earlier.peek()?.0.borrow();
        if Arc::ptr_eq(known, uid) {
            break;
        }
        match known.cmp(uid) {
            Ordering::Less => ended(earlier.next()?.1),
            Ordering::Equal => break,
            Ordering::Greater => return None,
        }
    }
    Some(earlier.next()?.1)
}

/// Converts nanoseconds to seconds; exact to the nanosecond up to 104 days of CPU time.
#[must_use]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / NANOSECONDS_PER_SECOND
}

#[cfg(test)]
mod tests;
