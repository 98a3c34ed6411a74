//! CPU time and memory of the node and its pods, read from the cgroup file system.

mod counters;
mod error;
mod layout;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::counters::{CpuCounter, MemoryFiles};
pub(crate) use self::error::CgroupError;
use self::layout::{Layout, Listing, PodCgroup, Tree};
use crate::processors::Processors;
use frugality_measure::attribution::{Observation, PodObservation};

/// A longer reading of clock and counter was interrupted, and is tried again.
const LONGEST_READ: Duration = Duration::from_micros(200);
/// Least time between two readings of memory. Reading memory costs several times as much as reading CPU time.
/// A working set changes slowly, so a scrape in between gets the last value.
const MEMORY_INTERVAL: Duration = Duration::from_millis(900);
/// Tries before the meter accepts a slow reading.
const READ_TRIES: u32 = 3;

/// Reads observations of one node.
#[derive(Debug)]
pub(crate) struct CgroupReader {
    layout: Layout,
    began: Instant,
    /// Stays open, like the pods' counters.
    node: Option<CpuCounter>,
    listing: Option<Listing>,
    /// By UID. Of several cgroups of one pod, the one that was found first comes last.
    pods: Vec<OpenPod>,
    memory_read: Instant,
    processors: Option<Processors>,
}

/// A pod between two readings.
#[derive(Debug)]
struct OpenPod {
    cgroup: PodCgroup,
    /// Stays open: the less time between the node's counter and the last pod's, the better they fit together.
    cpu: CpuCounter,
    memory: Option<MemoryFiles>,
    /// The last value.
    working_set_bytes: Option<u64>,
}

impl CgroupReader {
    /// Finds the hierarchies below `cgroup_fs` in which the node's cgroup is `cgroup_root`.
    pub(crate) fn new(cgroup_fs: &Path, cgroup_root: &str) -> Result<Self, CgroupError> {
        let layout = Layout::detect(cgroup_fs, cgroup_root)?;
        tracing::info!(
            cpu = %layout.cpu.root.display(),
            memory = %layout.memory.root.display(),
            "cgroups found"
        );
        let began = Instant::now();
        Ok(Self {
            layout,
            began,
            node: None,
            listing: None,
            pods: Vec::new(),
            memory_read: began,
            processors: None,
        })
    }

    /// Also reads the kernel's count per processor from `procfs`, if the file exists.
    pub(crate) fn with_processors(self, procfs: &Path) -> Self {
        let processors = Processors::find(procfs, self.layout.is_whole_machine);
        if processors.is_none() {
            tracing::warn!(
                procfs = %procfs.display(),
                "no CPU time per processor found: the meter does not see work outside the node's cgroups"
            );
        }
        Self { processors, ..self }
    }

    /// The moment from which all times count.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Reads everything once. Only a pod that has just ended may be missing. If any other file is unreadable,
    /// there is no observation. Otherwise a pod would seem to end and to begin, and would get CPU time that
    /// it used long before.
    pub(crate) fn read(&mut self) -> Result<Observation, CgroupError> {
        let Tree { version, root } = &self.layout.cpu;
        let listing = match self.listing.take() {
            Some(listing) if listing.is_current(Instant::now()) => listing,
            _ => {
                let (listing, cgroups) = Listing::of(root)?;
                follow(&mut self.pods, &self.layout, cgroups)?;
                listing
            }
        };
        let node = match self.node.take().filter(CpuCounter::is_current) {
            Some(node) => node,
            None => CpuCounter::open(root, *version)?,
        };
        let (unix_seconds, at, node_cpu_nanoseconds) = read_beside_the_clock(&node)?;

        let processors = self.processors.as_mut().and_then(Processors::read);
        let mut seen = Vec::with_capacity(self.pods.len());
        let mut all_there = true;
        for pod in &self.pods {
            match pod.cpu.read_nanoseconds() {
                Ok(cpu_nanoseconds) => {
                    let observation = PodObservation {
                        cgroup: pod.cgroup.identity,
                        cpu_nanoseconds,
                        working_set_bytes: pod.working_set_bytes,
                    };
                    seen.push((Arc::clone(&pod.cgroup.uid), observation));
                }
                Err(error) if error.is_gone() => all_there = false,
                Err(error) => return Err(error),
            }
        }
        // A change of kubelet's driver can leave an empty cgroup of the same pod. The map keeps the last one.
        let mut pods: BTreeMap<_, _> = seen.into_iter().collect();
        if self.read_memory(at) {
            for pod in &self.pods {
                if let Some(observation) = pods.get_mut(&pod.cgroup.uid)
                    && observation.cgroup == pod.cgroup.identity
                {
                    observation.working_set_bytes = pod.working_set_bytes;
                }
            }
        }
        let node_cgroup = node.identity();
        self.node = Some(node);
        // Another pod may have replaced a pod that has gone.
        self.listing = Some(listing).filter(|_| all_there);
        Ok(Observation {
            unix_seconds,
            elapsed: at - self.began,
            node_cgroup,
            node_cpu_nanoseconds,
            processors,
            pods,
        })
    }

    /// Reads the memory of all pods if the interval has passed, and returns whether it has.
    fn read_memory(&mut self, now: Instant) -> bool {
        let is_due = now - self.memory_read >= MEMORY_INTERVAL;
        if is_due {
            self.memory_read = now;
            for pod in &mut self.pods {
                pod.read_memory(&self.layout);
            }
        }
        is_due
    }
}

/// Opens the counters of new pods and closes the counters of pods that are gone.
fn follow(
    pods: &mut Vec<OpenPod>,
    layout: &Layout,
    cgroups: Vec<PodCgroup>,
) -> Result<(), CgroupError> {
    let mut known: HashMap<u64, OpenPod> = pods
        .drain(..)
        .map(|pod| (pod.cgroup.identity, pod))
        .collect();
    let Tree { version, root } = &layout.cpu;
    for cgroup in cgroups.into_iter().rev() {
        if let Some(pod) = known.remove(&cgroup.identity) {
            pods.push(pod);
            continue;
        }
        match CpuCounter::open(&root.join(&cgroup.path), *version) {
            Ok(cpu) => {
                let mut pod = OpenPod {
                    cgroup,
                    cpu,
                    memory: None,
                    working_set_bytes: None,
                };
                pod.read_memory(layout);
                pods.push(pod);
            }
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error),
        }
    }
    // A stable sort: the first cgroup of a pod stays behind its others.
    pods.sort_by(|one, other| one.cgroup.uid.cmp(&other.cgroup.uid));
    Ok(())
}

impl OpenPod {
    /// Missing files may appear later.
    fn read_memory(&mut self, layout: &Layout) {
        let Tree { version, root } = &layout.memory;
        if self.memory.is_none() {
            self.memory = MemoryFiles::open(&root.join(&self.cgroup.path), *version);
        }
        self.working_set_bytes = self
            .memory
            .as_ref()
            .and_then(MemoryFiles::working_set_bytes);
        if self.working_set_bytes.is_none() {
            self.memory = None;
        }
    }
}

/// The counter, with the Unix time and the monotonic time of its reading.
fn read_beside_the_clock(counter: &CpuCounter) -> Result<(f64, Instant, u64), CgroupError> {
    let mut tries = 1;
    loop {
        let began = Instant::now();
        let clock = SystemTime::now();
        let nanoseconds = counter.read_nanoseconds()?;
        let took = began.elapsed();
        if took <= LONGEST_READ || tries == READ_TRIES {
            let middle = took / 2;
            return Ok((unix_seconds(clock + middle), began + middle, nanoseconds));
        }
        tries += 1;
    }
}

/// Seconds since 1970. An earlier time counts as 1970.
pub(crate) fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

#[cfg(test)]
mod tests;
