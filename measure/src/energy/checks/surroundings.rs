//! Checks of the surroundings of the load: the board and its neighbours.
//!
//! The thresholds must let a real board pass on which k3s, kubelet and a metrics server work in bursts every
//! ten or fifteen seconds. `tests/k3s_pi.rs` tests them with a quiet and a noisy board.

use std::collections::BTreeMap;

use crate::energy::baseline::{Gross, Net};
use crate::energy::drift::Drift;
use crate::energy::evidence::AttemptEvidence;
use crate::reading::PodReading;
use crate::void::Busier;
use crate::{energy::attempt::Window, void::Void};

/// The largest difference of other pods' CPU use between the window and the idle baselines, in CPUs, in
/// either direction. It is ten times what the pods of k3s use at rest, because one of their bursts may fall
/// into a baseline of 5 s or next to it. At about a watt per core it is a tenth of a watt. It does not depend
/// on the candidate's use: the attempts of a frugal candidate are not void more often.
const MAX_NEIGHBOUR_CPUS: f64 = 0.1;
/// The same limit as a share of the node's CPUs, if the meter reports no CPU time: a tenth of a CPU of four.
const MAX_NEIGHBOUR_NODE_SHARE: f64 = 0.025;
/// The node's work outside pods grows with the load: interrupts, packets, kubelet, containerd. The limit is
/// half of the measured pods' CPU use plus half a CPU. A board that receives packets by USB needs less. A
/// host process beyond the limit did not come with the load.
const MAX_SYSTEM_SHARE: f64 = 0.5;
/// The constant part of the limit of [`MAX_SYSTEM_SHARE`], in CPUs.
const MAX_SYSTEM_CPUS: f64 = 0.5;

/// The largest difference of the others' active power between the window's halves, as a share of the node's
/// mean power. At half of the window this is 5 % of the gross energy. A burst of k3s of one CPU-second in one
/// half of the shortest window is 2.5 % on four CPUs.
const MAX_HALVES_SHARE: f64 = 0.1;

/// The largest difference between a baseline and the mean of both, as a share of that mean. A drift therefore
/// changes the gross energy by at most 5 %, and the limit does not depend on the candidate's energy. The
/// uncertainty of the net energy contains the remaining drift.
const MAX_DRIFT_SHARE: f64 = 0.05;

/// The meter's name for a supply that is too weak.
const UNDER_VOLTAGE: &str = "under_voltage";

/// Checks that the supply's voltage held. If the supply is too weak, the board throttles. The candidate
/// cannot change this.
pub(super) fn voltage_held(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let times = evidence.series.throttled_seconds(evidence.attempt.span());
    match times.get(UNDER_VOLTAGE).copied() {
        Some(seconds) if seconds > 0.0 => Err(Void::UnderVoltage { seconds }),
        _ => Ok(()),
    }
}

/// Checks that the board was not throttled before the load. Under load the candidate causes the heat:
/// throttling is then an outcome and is recorded.
pub(super) fn cool_before_load(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let times = series.throttled_seconds(attempt.idle_before);
    match times.into_iter().find(|(_, seconds)| *seconds > 0.0) {
        Some((cause, seconds)) => Err(Void::NodeThrottled { cause, seconds }),
        None => Ok(()),
    }
}

/// CPU use per user of the node's CPUs.
struct Uses<'a> {
    /// Use per pod, without the measured pods and the injector's.
    others: BTreeMap<&'a str, f64>,
    measured: f64,
    /// Use outside all pods, if known.
    system: Option<f64>,
}

impl<'a> Uses<'a> {
    /// Use over several windows together, in CPUs. If the meter reports no CPU time: as shares of the node.
    /// By the meters' formula a pod's joules are the node's joules times this share.
    fn over(evidence: &AttemptEvidence<'a>, windows: &[Window], in_cpus: bool) -> Option<Self> {
        let AttemptEvidence { attempt, series } = evidence;
        let counter = |pod: &PodReading| if in_cpus { pod.cpu_seconds } else { pod.joules };
        let (mut of_pods, mut all, mut node) = (BTreeMap::new(), 0.0, Some(0.0));
        for window in windows {
            for (uid, amount) in series.pods_used(*window, counter) {
                *of_pods.entry(uid).or_default() += amount;
            }
            all += if in_cpus {
                window.seconds()
            } else {
                series.node_joules(*window).ok()?
            };
            let of_node = series.delta(*window, |reading| reading.node_cpu_seconds);
            node = node.zip(of_node).map(|(sum, more): (f64, f64)| sum + more);
        }
        let total: f64 = of_pods.values().sum();
        let (measured, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
            of_pods.into_iter().partition(|(uid, _)| {
                attempt.candidate_pods.contains(*uid) || attempt.database_pods.contains(*uid)
            });
        Some(Self {
            others: rest
                .into_iter()
                .filter(|(uid, _)| !attempt.injector_pods.contains(*uid))
                .map(|(uid, amount)| (uid, amount / all))
                .collect(),
            measured: measured.values().sum::<f64>() / all,
            system: node
                .filter(|_| in_cpus)
                .map(|node| (node - total).max(0.0) / all),
        })
    }
}

/// Checks that other pods, and the node's work outside pods, used about the same CPU time in the measured
/// window as in the idle baselines. Constant use is in the baselines too; k3s itself is such use. A burst in
/// a baseline lowers net energy as much as a burst in the window raises it. Both directions are therefore
/// checked.
pub(super) fn neighbours_quiet(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let mut pods = series.last().pods.iter();
    let in_cpus = pods.any(|pod| pod.cpu_seconds.is_some());
    let baselines = [attempt.idle_before, attempt.idle_after];
    let Some((window, idle)) = Uses::over(evidence, &[attempt.measured], in_cpus)
        .zip(Uses::over(evidence, &baselines, in_cpus))
    else {
        return Ok(());
    };
    let (unit, allowed) = if in_cpus {
        ("CPUs", MAX_NEIGHBOUR_CPUS)
    } else {
        ("of the node", MAX_NEIGHBOUR_NODE_SHARE)
    };
    let active = |busier: Busier, who: String, extra: f64, allowed: f64| Void::NeighbourActive {
        who,
        extra,
        allowed,
        unit: unit.to_owned(),
        busier,
    };
    for (busier, there, elsewhere) in [
        (Busier::InWindow, &window, &idle),
        (Busier::InBaselines, &idle, &window),
    ] {
        let mut extra: Vec<(&str, f64)> = there
            .others
            .iter()
            .map(|(uid, now)| {
                (
                    *uid,
                    now - elsewhere.others.get(uid).copied().unwrap_or(0.0),
                )
            })
            .collect();
        extra.sort_by(|a, b| b.1.total_cmp(&a.1));
        // A pod that used less does not compensate for a pod that used more.
        let sum: f64 = extra.iter().map(|(_, more)| more.max(0.0)).sum();
        if sum > allowed {
            let named = extra
                .iter()
                .filter(|(_, more)| *more > allowed / 10.0)
                .map(|(uid, more)| format!("{} {more:.3}", evidence.pod_name(uid)))
                .collect::<Vec<_>>();
            return Err(active(busier, named.join(", "), sum, allowed));
        }
    }
    // CPU time that a pod used before a crash may be counted outside all pods.
    let system = window.system.zip(idle.system);
    let Some((now, at_rest)) = system.filter(|_| attempt.restarted_pods.is_empty()) else {
        return Ok(());
    };
    let outside = || "processes outside of pods".to_owned();
    let allowed = MAX_SYSTEM_CPUS + MAX_SYSTEM_SHARE * window.measured;
    if now - at_rest > allowed {
        return Err(active(Busier::InWindow, outside(), now - at_rest, allowed));
    }
    if at_rest - now > MAX_SYSTEM_CPUS {
        let extra = at_rest - now;
        return Err(active(
            Busier::InBaselines,
            outside(),
            extra,
            MAX_SYSTEM_CPUS,
        ));
    }
    Ok(())
}

/// Checks that others drew as much in the first half of the window as in the second. The check uses the
/// *active* power outside the measured pods. The whole remaining power would also contain an effect of the
/// candidate: by the meters' formula idle power falls when the load rises.
pub(super) fn halves_alike(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let Window {
        start_unix_seconds,
        end_unix_seconds,
    } = attempt.measured;
    let middle = f64::midpoint(start_unix_seconds, end_unix_seconds);
    let half_seconds = attempt.measured.seconds() / 2.0;
    let own = |uid: &str| {
        attempt.candidate_pods.contains(uid)
            || attempt.database_pods.contains(uid)
            || attempt.injector_pods.contains(uid)
    };
    let others_watts = |start_unix_seconds, end_unix_seconds| {
        let half = Window {
            start_unix_seconds,
            end_unix_seconds,
        };
        let active = series.delta(half, |reading| reading.active_joules)?;
        let used = series.pods_used(half, |pod| pod.joules);
        let of_own: f64 = used
            .iter()
            .filter(|(uid, _)| own(uid))
            .map(|(_, joules)| joules)
            .sum();
        Some((active - of_own) / half_seconds)
    };
    let halves = others_watts(start_unix_seconds, middle)
        .zip(others_watts(middle, end_unix_seconds))
        .filter(|_| attempt.restarted_pods.is_empty());
    let Some((first_watts, second_watts)) = halves else {
        return Ok(());
    };
    let mean_watts = series.node_joules(attempt.measured)? / attempt.measured.seconds();
    let allowed_watts = MAX_HALVES_SHARE * mean_watts;
    if (first_watts - second_watts).abs() > allowed_watts {
        return Err(Void::HalfWindowDrift {
            first_watts,
            second_watts,
            allowed_watts,
        });
    }
    Ok(())
}

/// Checks that the idle baselines agree within chance, or that their difference is small.
pub(super) fn baselines_alike(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let gross = Gross::of(evidence)?;
    // Baselines of one or two readings depend mostly on the power between them. Without net energy they change no
    // joules.
    if gross.idle_noise.is_none() && Net::of(&gross).joules.is_none() {
        return Ok(());
    }
    let (before_watts, after_watts) = (gross.idle_before_watts, gross.idle_after_watts);
    let drift = Drift::of(evidence, gross.idle_noise, before_watts, after_watts);
    let effect_joules = drift.effect_joules(gross.window_seconds);
    let idle_joules = f64::midpoint(before_watts, after_watts) * gross.window_seconds;
    let allowed_joules = MAX_DRIFT_SHARE * idle_joules;
    if drift.is_real() && effect_joules > allowed_joules {
        return Err(Void::BaselineDrift {
            before_watts,
            after_watts,
            standard_error_watts: drift.standard_error_watts,
            effect_joules,
            allowed_joules,
        });
    }
    Ok(())
}
