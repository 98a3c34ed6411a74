//! Work of the measured pods without requests. The idle baselines contain such work, and net energy subtracts
//! it. Net energy is then less than the candidate's cost.

use std::collections::BTreeSet;

use crate::energy::attempt::Window;
use crate::energy::evidence::AttemptEvidence;
use crate::reading::PodReading;

/// The largest CPU use of the candidate's pods in the idle baselines, in CPUs. Runtimes with a timer use less
/// than a hundredth of a CPU of a small board. Three hundredths are 3 % of the net energy of a load of one
/// CPU.
const MAX_CANDIDATE_CPUS: f64 = 0.03;
/// The same limit for the database's pods together. `CloudNativePG`'s instance manager answers probes all the
/// time. On a slow board this takes some hundredths of a CPU, equally for every candidate.
const MAX_DATABASE_CPUS: f64 = 0.1;
/// If the meter reports no CPU time, shares of the node replace CPUs. By the meters' formula a pod's joules
/// are the node's joules times the pod's part of all CPUs, and small boards have four.
const CPUS: f64 = 4.0;

/// CPU use in the two idle baselines together.
pub(super) struct IdleUse {
    /// The candidate's pods, in CPUs, if the meter reports CPU time.
    pub(super) candidate_cpus: Option<f64>,
    /// Why the net figure is absent, if the pods used too much.
    pub(super) withheld: Option<String>,
}

impl IdleUse {
    pub(super) fn of(evidence: &AttemptEvidence<'_>) -> Self {
        let attempt = evidence.attempt;
        let limits = [
            ("candidate", attempt.candidate_pods, MAX_CANDIDATE_CPUS),
            ("database", attempt.database_pods, MAX_DATABASE_CPUS),
        ];
        let withheld = limits.into_iter().find_map(|(whose, pods, limit)| {
            let used = cpus(evidence, pods).or_else(|| cpus_by_joules(evidence, pods))?;
            (used > limit).then(|| {
                format!(
                    "the {whose}'s pods used {used:.3} CPUs in the idle baselines (limit {limit}), and net energy would \
                     exclude that work"
                )
            })
        });
        Self {
            candidate_cpus: cpus(evidence, attempt.candidate_pods),
            withheld,
        }
    }
}

/// Mean CPU use of these pods over both baselines. `None` without pods, and if a reading lacks their CPU
/// time.
fn cpus(evidence: &AttemptEvidence<'_>, pods: &BTreeSet<String>) -> Option<f64> {
    let used = used(evidence, pods, |pod| pod.cpu_seconds)?;
    let seconds: f64 = baselines(evidence).iter().map(Window::seconds).sum();
    Some(used / seconds)
}

/// Mean CPU use of these pods over both baselines, computed from joules.
fn cpus_by_joules(evidence: &AttemptEvidence<'_>, pods: &BTreeSet<String>) -> Option<f64> {
    let used = used(evidence, pods, |pod| pod.joules)?;
    let of_node = baselines(evidence)
        .into_iter()
        .map(|window| evidence.series.node_joules(window).ok())
        .sum::<Option<f64>>()?;
    (of_node > 0.0).then(|| CPUS * used / of_node)
}

/// The rise of these pods' counter over both baselines. Unknown if a pod started or its counters fell in
/// between.
fn used(
    evidence: &AttemptEvidence<'_>,
    pods: &BTreeSet<String>,
    counter: impl Fn(&PodReading) -> Option<f64> + Copy,
) -> Option<f64> {
    let of_window = |window| {
        let used = evidence.series.pods_delta(window, pods, counter)?;
        (used >= 0.0).then_some(used)
    };
    baselines(evidence).into_iter().map(of_window).sum()
}

fn baselines(evidence: &AttemptEvidence<'_>) -> [Window; 2] {
    [evidence.attempt.idle_before, evidence.attempt.idle_after]
}
