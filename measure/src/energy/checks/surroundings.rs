//! What else went on around the load: the board and its neighbours.
//!
//! The thresholds must let a real board pass on which k3s, kubelet and a metrics server work in
//! bursts every ten or fifteen seconds: `tests/k3s_pi.rs` tries them against a quiet and a noisy one.

use std::collections::BTreeMap;

use super::Evidence;
use crate::energy::baseline::{Gross, Net};
use crate::energy::drift::Drift;
use crate::energy::{Void, Window};
use crate::reading::PodReading;
use crate::void::Busier;

/// How much busier other pods may be in the window than in the idle baselines, or in these than in the window, in CPUs:
/// ten times what the pods of k3s use at rest, since one burst of theirs may fall into a baseline of 5 s or beside it. At
/// about a watt a core it is a tenth of a watt. It does not depend on what the candidate uses: a frugal one is not void
/// more often.
const MAX_NEIGHBOUR_CPUS: f64 = 0.1;
/// The same as a share of the node's CPUs, where the meter serves no CPU time: a tenth of a CPU of four.
const MAX_NEIGHBOUR_NODE_SHARE: f64 = 0.025;
/// What the node does beside its pods grows with the load: interrupts, packets, kubelet's and
/// containerd's work. Half of the measured pods' CPU use on top of half a CPU is more than a board
/// needs that takes packets by USB; a host process beyond that did not come with the load.
const MAX_SYSTEM_SHARE: f64 = 0.5;
/// See [`MAX_SYSTEM_SHARE`], in CPUs.
const MAX_SYSTEM_CPUS: f64 = 0.5;

/// How much active power of others may differ between the window's halves, as a share of the node's
/// mean power: at half of the window, 5 % of the gross energy. A burst of k3s of one CPU-second in
/// one half of the shortest window is 2.5 % on four CPUs.
const MAX_HALVES_SHARE: f64 = 0.1;

/// How much idle power may differ between a baseline and the mean of the two, as a share of that mean. So it moves no
/// gross energy by more than 5 %, and does not depend on how much energy the candidate took. Net energy has what is left
/// of a drift in its uncertainty.
const MAX_DRIFT_SHARE: f64 = 0.05;

/// The meter's word for a supply that is too weak.
const UNDER_VOLTAGE: &str = "under_voltage";

/// The supply held. A weak one is nothing that a candidate could do anything about, and the board
/// throttles for it.
pub(super) fn voltage_held(evidence: &Evidence<'_>) -> Result<(), Void> {
    let times = evidence.series.throttled_seconds(evidence.attempt.span());
    match times.get(UNDER_VOLTAGE).copied() {
        Some(seconds) if seconds > 0.0 => Err(Void::UnderVoltage { seconds }),
        _ => Ok(()),
    }
}

/// The board was not throttled before the load. Under load, heat is the candidate's own doing: an
/// outcome, which the record has.
pub(super) fn cool_before_load(evidence: &Evidence<'_>) -> Result<(), Void> {
    let Evidence { attempt, series } = evidence;
    let times = series.throttled_seconds(attempt.idle_before);
    match times.into_iter().find(|(_, seconds)| *seconds > 0.0) {
        Some((cause, seconds)) => Err(Void::NodeThrottled { cause, seconds }),
        None => Ok(()),
    }
}

/// Who used how much of the node's CPUs.
struct Uses<'a> {
    /// By pod; the injector's are left out.
    others: BTreeMap<&'a str, f64>,
    measured: f64,
    /// What no pod used, where known.
    system: Option<f64>,
}

impl<'a> Uses<'a> {
    /// Over some windows together, in CPUs; where the meter serves no CPU time, as shares of the node:
    /// by the meters' formula a pod's joules are the node's times that share.
    fn over(evidence: &Evidence<'a>, windows: &[Window], in_cpus: bool) -> Option<Self> {
        let Evidence { attempt, series } = evidence;
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

/// Other pods, and the node beside its pods, were neither busier in the measured window than in the idle baselines nor
/// less busy. What is there all the time is in the baselines as well, and k3s itself is. A burst in a baseline lowers net
/// energy as much as one in the window raises it, so both are asked for alike.
pub(super) fn neighbours_quiet(evidence: &Evidence<'_>) -> Result<(), Void> {
    let Evidence { attempt, series } = evidence;
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
        // One that rested does not make up for another that did not.
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
    // What a pod used before it crashed may be counted as nobody's.
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

/// Others drew as much in the first half of the window as in the second. Asked of the *active* power
/// of all but the measured pods: of the whole remaining power it would also see the candidate's own
/// doings, for by the meters' formula idle power falls where the load rises.
pub(super) fn halves_alike(evidence: &Evidence<'_>) -> Result<(), Void> {
    let Evidence { attempt, series } = evidence;
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

/// The idle baselines agree within chance, or their difference does not matter.
pub(super) fn baselines_alike(evidence: &Evidence<'_>) -> Result<(), Void> {
    let gross = Gross::of(evidence)?;
    // Baselines of a reading or two are mostly what is between them. Without net energy they are in no figure.
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
            standard_error_watts: drift.standard_error_watts.unwrap_or(0.0),
            effect_joules,
            allowed_joules,
        });
    }
    Ok(())
}
