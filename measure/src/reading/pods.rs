//! The pods of one reading. A window has thousands of readings of the same pods. Their names are therefore
//! shared and their counters packed.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The identity of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodIdentity {
    /// The pod's UID.
    pub uid: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
}

/// A running pod's counters. A counter that the meter does not report is `None`, never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct PodReading {
    /// The identity of the pod.
    pub identity: Arc<PodIdentity>,
    /// Energy that the meter gave to the pod so far, in joules: a share of the node's energy by CPU time.
    pub joules: Option<f64>,
    /// CPU time of the pod's cgroup so far, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Working set of the pod's cgroup, in bytes.
    pub working_set_bytes: Option<f64>,
}

impl PodReading {
    /// A pod without known counters.
    #[must_use]
    pub fn of(uid: &str, namespace: &str, name: &str) -> Self {
        Self {
            identity: Arc::new(PodIdentity {
                uid: uid.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            }),
            joules: None,
            cpu_seconds: None,
            working_set_bytes: None,
        }
    }

    /// The pod's UID.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.identity.uid
    }
}

/// Pods with distinct UIDs, sorted by UID.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods(Vec<PodReading>);

impl Pods {
    /// The pod with this UID.
    #[must_use]
    pub fn get(&self, uid: &str) -> Option<&PodReading> {
        self.place(uid).ok().map(|at| &self.0[at])
    }

    /// The pod with this UID, mutable.
    pub fn get_mut(&mut self, uid: &str) -> Option<&mut PodReading> {
        self.place(uid).ok().map(|at| &mut self.0[at])
    }

    /// Adds a pod. It replaces a pod with the same UID.
    pub fn insert(&mut self, pod: PodReading) {
        match self.place(pod.uid()) {
            Ok(at) => self.0[at] = pod,
            Err(at) => self.0.insert(at, pod),
        }
    }

    /// Removes the pod with this UID.
    pub fn remove(&mut self, uid: &str) -> Option<PodReading> {
        self.place(uid).ok().map(|at| self.0.remove(at))
    }

    /// All pods, sorted by UID.
    pub fn iter(&self) -> std::slice::Iter<'_, PodReading> {
        self.0.iter()
    }

    /// All pods, mutable, sorted by UID.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, PodReading> {
        self.0.iter_mut()
    }

    /// The number of pods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The working sets of these pods together, in bytes. `None` if one of them is unknown.
    #[must_use]
    pub fn working_set_bytes(&self, uids: &BTreeSet<String>) -> Option<f64> {
        uids.iter()
            .map(|uid| self.get(uid)?.working_set_bytes)
            .sum()
    }

    /// Shares equal identities with an earlier reading's pods, and releases unused memory.
    pub(super) fn share(&mut self, earlier: &Self) {
        self.0.shrink_to_fit();
        for pod in &mut self.0 {
            if let Some(same) = earlier.get(pod.uid()) {
                super::share(&mut pod.identity, &same.identity);
            }
        }
    }

    fn place(&self, uid: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|pod| pod.uid().cmp(uid))
    }
}

impl FromIterator<PodReading> for Pods {
    fn from_iter<I: IntoIterator<Item = PodReading>>(pods: I) -> Self {
        let mut all = Self::default();
        pods.into_iter().for_each(|pod| all.insert(pod));
        all
    }
}

impl<'a> IntoIterator for &'a Pods {
    type Item = &'a PodReading;
    type IntoIter = std::slice::Iter<'a, PodReading>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Pods {
    type Item = &'a mut PodReading;
    type IntoIter = std::slice::IterMut<'a, PodReading>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
