//! What else went on around the load: the board and its neighbours.
//!
//! The thresholds must let a real board pass on which k3s, kubelet and a metrics server work in
//! bursts every ten or fifteen seconds: `tests/k3s_pi.rs` tries them against a quiet and a noisy one.

use std::collections::BTreeMap;

use super::{Evidence, deciding_joules};
use crate::energy::baseline::{Gross, Net};
use crate::energy::{Conditions, Void, Window};
use crate::reading::PodReading;

/// How much busier other pods may be than in the idle baselines, as a share of the measured pods' own
/// CPU use: so much of the joules would be theirs.
const MAX_NEIGHBOUR_SHARE: f64 = 0.05;
/// And at least this, in CPUs: ten times what the pods of k3s use at rest, since one burst of theirs
/// may fall into a baseline of 5 s or beside it. At about a watt a core it is a tenth of a watt.
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

/// How much the idle baselines' difference may do to the net energy, as a share of it. Their mean is
/// right to first order if the power drifts evenly, and off by half their difference at worst.
const MAX_DRIFT_SHARE: f64 = 0.05;
/// A difference within this many of its standard errors is chance (for normal errors, 99.7 %).
const DRIFT_STANDARD_ERRORS: f64 = 3.0;
/// By how much a warmer board draws more, as a share of its idle power for each kelvin: the leakage of
/// silicon about doubles with every 25 to 30 K, 2.5 % a kelvin, and is less than 40 % of an idle
/// board's power. So much is the candidate's own heat, which is an outcome.
const HEAT_PER_KELVIN: f64 = 0.01;

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

/// Other pods, and the node beside its pods, were not busier in the measured window than in the idle
/// baselines. What is there all the time is in the baselines as well, and k3s itself is.
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
    let (unit, floor) = if in_cpus {
        ("CPUs", MAX_NEIGHBOUR_CPUS)
    } else {
        ("of the node", MAX_NEIGHBOUR_NODE_SHARE)
    };
    let mut extra: Vec<(&str, f64)> = window
        .others
        .iter()
        .map(|(uid, now)| (*uid, now - idle.others.get(uid).copied().unwrap_or(0.0)))
        .collect();
    extra.sort_by(|a, b| b.1.total_cmp(&a.1));
    // One that rested in the window does not make up for another that did not.
    let sum: f64 = extra.iter().map(|(_, more)| more.max(0.0)).sum();
    let allowed = floor.max(MAX_NEIGHBOUR_SHARE * window.measured);
    if sum > allowed {
        let named = extra
            .iter()
            .filter(|(_, more)| *more > allowed / 10.0)
            .map(|(uid, more)| format!("{} {more:.3}", evidence.pod_name(uid)))
            .collect::<Vec<_>>();
        return Err(Void::NeighbourActive {
            who: named.join(", "),
            extra: sum,
            allowed,
            unit: unit.to_owned(),
        });
    }
    // What a pod used before it crashed may be counted as nobody's.
    let system = window.system.zip(idle.system);
    let Some((now, at_rest)) = system.filter(|_| attempt.restarted_pods.is_empty()) else {
        return Ok(());
    };
    let allowed = MAX_SYSTEM_CPUS + MAX_SYSTEM_SHARE * window.measured;
    if now - at_rest > allowed {
        return Err(Void::NeighbourActive {
            who: "processes outside of pods".to_owned(),
            extra: now - at_rest,
            allowed,
            unit: unit.to_owned(),
        });
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
    let Evidence { attempt, series } = evidence;
    let variances = [attempt.idle_before, attempt.idle_after]
        .map(|window| variance_of_mean(&series.watts(window)));
    let gross = Gross::of(evidence)?;
    let (before_watts, after_watts) = (gross.idle_before_watts, gross.idle_after_watts);
    // Of fewer than three readings chance is not known. The effect alone decides then, if net energy is told
    // at all.
    let standard_error_watts = match variances {
        [Some(before), Some(after)] => (before + after).sqrt(),
        _ if Net::of(&gross).joules.is_some() => 0.0,
        _ => return Ok(()),
    };
    let difference = after_watts - before_watts;
    let conditions = Conditions::of(evidence);
    let warmer = conditions
        .idle_before_celsius
        .zip(conditions.idle_after_celsius)
        .map_or(0.0, |(before, after)| after - before);
    let heat_watts = HEAT_PER_KELVIN * warmer * before_watts;
    let unexplained = if heat_watts * difference > 0.0 {
        (difference.abs() - heat_watts.abs()).max(0.0)
    } else {
        difference.abs()
    };
    let effect_joules = unexplained / 2.0 * gross.window_seconds;
    let allowed_joules = MAX_DRIFT_SHARE * deciding_joules(&gross);
    if unexplained > DRIFT_STANDARD_ERRORS * standard_error_watts && effect_joules > allowed_joules
    {
        return Err(Void::BaselineDrift {
            before_watts,
            after_watts,
            standard_error_watts,
            effect_joules,
            allowed_joules,
        });
    }
    Ok(())
}

/// The squared standard error of a mean; unknown for fewer than two values.
fn variance_of_mean(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (count - 1.0) / count)
}
