//! CPU time that the node did not get: another virtual machine's, or of processes beside a node that is a container.

use super::Evidence;
use crate::energy::{Void, Window};
use crate::reading::Reading;

/// How much of the node's processors others may take, in CPUs: what a neighbour on the node may use more than at rest, 0.1,
/// and 0.05 for the kernel's own threads and its counting in ticks: 0.01 to 0.04 were seen beside a node of one processor
/// under load, and 0.2 to 1.0 while programs were compiled beside it.
const MAX_TAKEN_CPUS: f64 = 0.15;

/// Some kernels count interrupts for the process that they interrupt, and so in its cgroup, others for nobody
/// (`CONFIG_IRQ_TIME_ACCOUNTING`). If the node's cgroup has this much more than the processors did without interrupts, in
/// CPUs over [`LEAST_SECONDS`], they are in it: ticks alone made 0.07 at most.
const IN_CGROUP_CPUS: f64 = 0.1;
/// A tick is a hundredth of a second, of which five seconds have 500.
const LEAST_SECONDS: f64 = 5.0;

/// CPU time that others took of the node's processors in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::energy) struct Taken {
    /// Together, in CPUs.
    pub(in crate::energy) cpus: f64,
    /// By the hypervisor.
    stolen_cpus: f64,
}

impl Taken {
    /// `None` if the meter does not report stolen time. It reports the processors' work only if the node is a part of the
    /// machine.
    pub(in crate::energy) fn of(evidence: &Evidence<'_>, window: Window) -> Option<Self> {
        let series = &evidence.series;
        let stolen = series.delta(window, |reading| reading.processors_stolen_seconds)?;
        let of_node = series.delta(window, |reading| reading.node_cpu_seconds);
        let with_interrupts = has_interrupts_in_cgroup(evidence);
        let worked = series.delta(window, |reading| {
            let interrupts = reading.processors_interrupt_seconds?;
            let busy = reading.processors_busy_seconds?;
            Some(if with_interrupts {
                busy + interrupts
            } else {
                busy
            })
        });
        let outside = worked
            .zip(of_node)
            .map_or(0.0, |(worked, of_node)| (worked - of_node).max(0.0));
        let stolen_cpus = stolen / window.seconds();
        Some(Self {
            cpus: outside / window.seconds() + stolen_cpus,
            stolen_cpus,
        })
    }
}

/// Whether the node's cgroup counted more at any time than the processors did without interrupts.
fn has_interrupts_in_cgroup(evidence: &Evidence<'_>) -> bool {
    let readings = evidence.series.readings();
    let counts = |reading: &Reading| {
        let at = reading.at_unix_seconds();
        Some((
            at,
            reading.node_cpu_seconds? - reading.processors_busy_seconds?,
        ))
    };
    let mut from: Option<(f64, f64)> = None;
    readings
        .iter()
        .filter_map(|it| counts(it))
        .any(|(at, more)| {
            let (since, before) = *from.get_or_insert((at, more));
            let seconds = at - since;
            if seconds < LEAST_SECONDS {
                return false;
            }
            from = Some((at, more));
            more - before > IN_CGROUP_CPUS * seconds
        })
}

/// The node had its processors for itself. Asked of the baselines as of the window, and with a limit that no candidate
/// moves.
pub(super) fn cpu_not_taken(evidence: &Evidence<'_>) -> Result<(), Void> {
    let attempt = evidence.attempt;
    for (when, window) in [
        ("in the idle baseline before the load", attempt.idle_before),
        ("in the measured window", attempt.measured),
        ("in the idle baseline after the load", attempt.idle_after),
    ] {
        if let Some(taken) = Taken::of(evidence, window)
            && taken.cpus > MAX_TAKEN_CPUS
        {
            return Err(Void::CpuTaken {
                when: when.to_owned(),
                cpus: taken.cpus,
                stolen_cpus: taken.stolen_cpus,
                allowed_cpus: MAX_TAKEN_CPUS,
            });
        }
    }
    Ok(())
}
