//! CPU time that the node did not get: a hypervisor gave it to another machine, or processes outside a node
//! that is a container used it.

use super::evidence::AttemptEvidence;
use crate::{energy::attempt::Window, void::Void};

/// The limit of the processors' time that others take from the node, in CPUs. It is 0.1, a neighbour's limit
/// above rest, plus 0.05 for the kernel's own threads and its counting in ticks. Next to a node of one
/// processor under load, 0.01 to 0.04 were observed, and 0.2 to 1.0 while programs were compiled there. For a
/// node with one processor the limit is 15 %.
const MAX_TAKEN_CPUS: f64 = 0.15;

/// Some kernels count interrupts for the interrupted process, and therefore in its cgroup. Other kernels
/// count them for no process (`CONFIG_IRQ_TIME_ACCOUNTING`). The node's cgroup then exceeds the processors'
/// time without interrupts by all of the interrupts' time, or by nothing. The middle between the two decides.
const IN_CGROUP_SHARE: f64 = 0.5;
/// A tick, in seconds: the unit in which the kernel counts processors' time.
const TICK_SECONDS: f64 = 0.01;
/// A surplus below this number of standard deviations may be due to the ticks (for normal errors, 0.13 %).
const TICK_DEVIATIONS: f64 = 3.0;

/// CPU time of the node's processors that others took in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::energy) struct Taken {
    /// The sum, in CPUs.
    pub(in crate::energy) cpus: f64,
    /// The hypervisor's part, in CPUs.
    stolen_cpus: f64,
}

impl Taken {
    /// `None` if the meter does not report stolen time. It reports the processors' work only if the node is a part of the
    /// machine.
    pub(in crate::energy) fn of(evidence: &AttemptEvidence<'_>, window: Window) -> Option<Self> {
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

/// Whether the node's cgroup also counted the interrupts. It did if the measured window or the rest of the
/// attempt shows a surplus. Work outside the node's cgroups hides interrupts, and is often in only one of the
/// two. Shorter pieces are not tested. Among many pieces, one exceeds any limit by chance.
fn has_interrupts_in_cgroup(evidence: &AttemptEvidence<'_>) -> bool {
    let series = &evidence.series;
    let counted = |window: Window| {
        let of_node = series.delta(window, |reading| reading.node_cpu_seconds)?;
        let busy = series.delta(window, |reading| reading.processors_busy_seconds)?;
        let interrupts = series.delta(window, |reading| reading.processors_interrupt_seconds)?;
        Some([of_node, busy, interrupts])
    };
    let attempt = evidence.attempt;
    let (Some(measured), Some(whole)) = (counted(attempt.measured), counted(attempt.span())) else {
        return false;
    };
    let [of_node, busy, interrupts] = measured;
    let rest = [whole[0] - of_node, whole[1] - busy, whole[2] - interrupts];
    [measured, rest]
        .into_iter()
        .any(|[of_node, busy, interrupts]| {
            // The number of ticks at which a processor is busy has at most a Poisson distribution's variance,
            // which equals its mean.
            let of_ticks = (TICK_SECONDS * busy.max(0.0)).sqrt();
            let least = (IN_CGROUP_SHARE * interrupts).max(TICK_DEVIATIONS * of_ticks);
            of_node - busy > least
        })
}

/// Checks that others did not take the node's processors, in the baselines and in the window. No candidate
/// affects this limit.
pub(super) fn cpu_not_taken(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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
