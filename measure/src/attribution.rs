//! Who used the node's energy. Pure: two observations in, joules out.
//!
//! The formulas are Kepler's: usage ratio = ΔCPU(node) / (CPUs × Δt), between 0 and 1;
//! active = ΔE × usage ratio; idle = ΔE − active; a pod's share of active is
//! ΔCPU(pod) / ΔCPU(node). What no pod used is the system's, so that at any time
//! Σ pods + ended pods + system = active.

use std::collections::BTreeMap;
use std::time::Duration;

const NANOSECONDS_PER_SECOND: f64 = 1e9;

/// The CPU counters of a node and its pods at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Unix time, on the node's clock, at which the counters were read.
    pub unix_seconds: f64,
    /// The same moment on the monotonic clock, since the meter began.
    pub elapsed: Duration,
    /// Identity of the node's cgroup: another number is another cgroup, with other counters.
    pub node_cgroup: u64,
    /// CPU time of the node's cgroup since that began.
    pub node_cpu_nanoseconds: u64,
    /// The kernel's count of the node's processors, if it can be read.
    pub processors: Option<ProcessorTimes>,
    /// Every pod that has a cgroup, by UID.
    pub pods: BTreeMap<String, PodObservation>,
}

/// What the node's processors worked since the machine started, whoever for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorWork {
    /// Processes and the kernel, but for interrupts.
    pub busy_nanoseconds: u64,
    /// Interrupts, those of the network's packets among them.
    pub interrupt_nanoseconds: u64,
}

/// CPU time of the node's processors, whoever used it, since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTimes {
    /// Work. Unknown if the node is the whole machine: nothing is outside of its cgroup then, and the kernel samples this
    /// count, which would differ from the cgroup's by chance.
    pub work: Option<ProcessorWork>,
    /// Given to others by the hypervisor.
    pub stolen_nanoseconds: u64,
}

/// The counters of one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodObservation {
    /// Identity of the pod's cgroup.
    pub cgroup: u64,
    /// CPU time of the pod's cgroup since that began.
    pub cpu_nanoseconds: u64,
    /// Memory that the kernel cannot easily take back, unknown where it has no files for it.
    pub working_set_bytes: Option<u64>,
}

/// What happened on the node between two observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Time passed on the monotonic clock, in seconds, above 0.
    pub elapsed_seconds: f64,
    /// CPU time that the whole node used, in CPU-seconds.
    pub node_cpu_seconds: f64,
}

/// Why an observation cannot follow the one before. No energy is made up across such a break.
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
    /// The node's cgroup was removed and made anew: its counter tells of another time.
    #[error("the node's cgroup was replaced by another of the same name")]
    Replaced,
    /// Two observations at the same moment.
    #[error("no time has passed since the last reading")]
    NoTime,
}

impl Break {
    /// Whether a later observation may follow all the same.
    #[must_use]
    pub fn heals(self) -> bool {
        self == Self::NoTime
    }
}

/// Energy of the node since the meter began, in joules. Nothing here ever decreases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeEnergy {
    /// All of it: active + idle.
    pub total_joules: f64,
    /// In proportion to use.
    pub active_joules: f64,
    /// The residual; not a baseline.
    pub idle_joules: f64,
    /// Part of active that was used outside pods: kernel, kubelet, container runtime, this meter.
    pub system_joules: f64,
    /// Part of active that pods used which have ended since.
    pub ended_pods_joules: f64,
}

/// Mean power and use over the last interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Node, in watts.
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
    /// Active energy given to the pod since the meter first saw it, in joules.
    pub joules: f64,
    /// The same over the last interval, in watts; unknown until the pod was seen for one.
    pub watts: Option<f64>,
    /// CPU time since the pod began, in nanoseconds.
    pub cpu_nanoseconds: u64,
    /// Working set at the last observation.
    pub working_set_bytes: Option<u64>,
}

/// The node's books: what has been counted up to the latest observation.
#[derive(Clone, Debug)]
pub struct Accounts {
    cpus: u32,
    latest: Observation,
    /// The node.
    pub node: NodeEnergy,
    /// Absent until there are two observations.
    pub rates: Option<Rates>,
    /// The pods that live, by UID.
    pub pods: BTreeMap<String, PodAccount>,
}

impl Accounts {
    /// Begins counting. What pods used before is not counted in joules.
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
                (uid.clone(), account)
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

    /// Unix time at which all of this was true.
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

    /// Counts the interval up to `now`, whose energy `joules` tells. On a break nothing changes.
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

        let used: BTreeMap<&str, u64> = now
            .pods
            .iter()
            .map(|(uid, pod)| (uid.as_str(), self.pod_delta(uid, pod)))
            .collect();
        let pods_cpu: u64 = used.values().sum();
        // Pods are read microseconds after the node, and the root of a v2 tree counts by the
        // tick: together they can seem to have used more than the node. They then share all.
        let whole = (now.node_cpu_nanoseconds - self.latest.node_cpu_nanoseconds).max(pods_cpu);

        let mut pods = BTreeMap::new();
        let mut pods_joules = 0.0;
        for (uid, pod) in &now.pods {
            let cpu = used[uid.as_str()];
            let share = if whole == 0 {
                0.0
            } else {
                active * (cpu as f64 / whole as f64)
            };
            pods_joules += share;
            let before = self.pods.remove(uid);
            let account = PodAccount {
                joules: before.as_ref().map_or(0.0, |account| account.joules) + share,
                watts: Some(share / interval.elapsed_seconds),
                cpu_nanoseconds: before.map_or(0, |account| account.cpu_nanoseconds) + cpu,
                working_set_bytes: pod.working_set_bytes,
            };
            pods.insert(uid.clone(), account);
        }
        // Who is left in the old books has ended.
        self.node.ended_pods_joules += self.pods.values().map(|pod| pod.joules).sum::<f64>();
        self.pods = pods;

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

    /// CPU time of a pod since the latest observation. A cgroup that was not there then has
    /// used all of its CPU time since.
    fn pod_delta(&self, uid: &str, pod: &PodObservation) -> u64 {
        self.latest
            .pods
            .get(uid)
            .filter(|before| before.cgroup == pod.cgroup)
            .and_then(|before| pod.cpu_nanoseconds.checked_sub(before.cpu_nanoseconds))
            .unwrap_or(pod.cpu_nanoseconds)
    }
}

/// Nanoseconds as seconds; exact to the nanosecond up to 104 days of CPU time.
#[must_use]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / NANOSECONDS_PER_SECOND
}

#[cfg(test)]
mod tests;
