//! Checks that the counters rise as energy on this node can.

use crate::energy::{counters::Series, evidence::AttemptEvidence};
use crate::reading::{PodReading, Reading, Rise};
use crate::void::Void;

/// How far a counter may seem to exceed the node's power: the limit is a round number, and CPU time is
/// accounted in ticks.
const POWER_MARGIN: f64 = 1.1;

/// The limit of a node's power, in watts, if neither the chart nor the meter reports one.
const MOST_WATTS: f64 = 2000.0;

/// The limit of a counter's power between two readings, relative to the largest power between any two other
/// readings. It applies if neither the chart nor the meter reports how much the node can draw. A counter that
/// Kepler mistakes for a wrapped one rises once, by thousands of joules. Load and its baselines contain many
/// readings each.
const LEAP: f64 = 4.0;

/// With fewer readings than these, the usual power is unknown.
const LEAST_STEPS: usize = 10;

/// How far the pods' sum may exceed the node's active energy, because the counters are read one after the
/// other: a factor and an amount in joules.
const PODS_MARGIN: f64 = 1.02;
const PODS_SLACK_JOULES: f64 = 0.1;

/// No counter behind a figure or a check decreases.
pub(super) fn counters_never_fall(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence.series.steps().try_for_each(|(a, b)| {
        let of_node = [
            ("node energy", Some(a.node_joules), Some(b.node_joules)),
            ("active node energy", a.active_joules, b.active_joules),
            ("idle node energy", a.idle_joules, b.idle_joules),
            ("node CPU time", a.node_cpu_seconds, b.node_cpu_seconds),
        ];
        for (counter, from, to) in of_node {
            never_falls(|| counter.to_owned(), from, to, b)?;
        }
        let attempt = evidence.attempt;
        for earlier in &a.pods {
            let uid = earlier.uid();
            let Some(later) = b.pods.get(uid) else {
                continue;
            };
            if attempt.restarted_pods.contains(uid) {
                continue;
            }
            let pod = &later.identity;
            let named =
                |what| move || format!("{what} of pod {}/{} ({uid})", pod.namespace, pod.name);
            never_falls(named("energy"), earlier.joules, later.joules, b)?;
            if attempt.candidate_pods.contains(uid) || attempt.database_pods.contains(uid) {
                never_falls(named("CPU time"), earlier.cpu_seconds, later.cpu_seconds, b)?;
            }
        }
        Ok(())
    })
}

fn never_falls(
    counter: impl FnOnce() -> String,
    from: Option<f64>,
    to: Option<f64>,
    later: &Reading,
) -> Result<(), Void> {
    match (from, to) {
        (Some(from), Some(to)) if to < from => Err(Void::CounterDecreased {
            counter: counter(),
            from,
            to,
            at_unix_seconds: later.at_unix_seconds(),
        }),
        _ => Ok(()),
    }
}

/// The largest power between two readings, and the largest power between all others.
struct Leaps {
    steps: usize,
    at: usize,
    most_watts: f64,
    else_watts: f64,
}

impl Leaps {
    fn of(series: &Series<'_>) -> Self {
        let mut leaps = Self {
            steps: 0,
            at: 0,
            most_watts: 0.0,
            else_watts: 0.0,
        };
        for (index, (a, b)) in series.steps().enumerate() {
            leaps.steps += 1 + b.left_out.as_ref().map_or(0, |it| it.readings);
            for watts in largest_watts(a, b) {
                if watts > leaps.most_watts {
                    leaps.else_watts = leaps.most_watts;
                    leaps.most_watts = watts;
                    leaps.at = index;
                } else if watts > leaps.else_watts {
                    leaps.else_watts = watts;
                }
            }
        }
        leaps
    }

    /// The limit of the power between these two readings, from all other readings of the attempt, in watts.
    fn most_watts_at(&self, index: usize) -> f64 {
        if self.steps < LEAST_STEPS {
            return MOST_WATTS;
        }
        let others = if index == self.at {
            self.else_watts
        } else {
            self.most_watts
        };
        (LEAP * others).min(MOST_WATTS)
    }
}

/// No counter rises faster than the node can draw power. The check includes active and idle energy: a lost
/// joule that Kepler mistakes for a wrapped counter shows only there.
pub(super) fn energy_within_node(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let reported = evidence.attempt.limits.max_node_watts;
    let leaps = Leaps::of(&evidence.series);
    evidence
        .series
        .steps()
        .enumerate()
        .try_for_each(|(index, (a, b))| {
            let known = reported.into_iter().chain(b.max_watts).reduce(f64::min);
            let max_watts = known.unwrap_or_else(|| leaps.most_watts_at(index));
            let most_joules =
                |rise: &Rise| max_watts * POWER_MARGIN * (rise.seconds + rise.slack_seconds);
            let beyond = rises(a, b)
                .into_iter()
                .find(|rise| rise.joules > most_joules(rise));
            beyond.map_or(Ok(()), |rise| {
                Err(Void::EnergyBeyondNode {
                    counter: rise.counter.to_owned(),
                    joules: rise.joules,
                    seconds: rise.seconds,
                    max_watts,
                })
            })
        })
}

/// The rises of the counters between two readings in a row. If readings between them were left out: the largest.
fn rises(a: &Reading, b: &Reading) -> Vec<Rise> {
    match &b.left_out {
        Some(left_out) => left_out.largest_rises.to_vec(),
        None => Rise::between(a, b).collect(),
    }
}

/// The largest power of a step, in watts. If readings were left out: of the two steps with the largest.
fn largest_watts(a: &Reading, b: &Reading) -> Vec<f64> {
    match &b.left_out {
        Some(left_out) => left_out.largest_rises.iter().map(Rise::watts).collect(),
        None => vec![Rise::largest(a, b).watts()],
    }
}

/// The pods did not receive more energy than the node's active energy. Pods that came or went are left out,
/// so they cannot make the sum too large.
pub(super) fn pods_within_node(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let window = attempt.measured;
    let Some(active_joules) = series.delta(window, |reading| reading.active_joules) else {
        return Ok(());
    };
    let pods = series
        .around(window.start_unix_seconds)
        .map(|(earlier, _)| earlier.pods.iter().map(PodReading::uid));
    let pods_joules: f64 = pods
        .into_iter()
        .flatten()
        .filter(|uid| !attempt.restarted_pods.contains(*uid))
        .filter_map(|uid| series.delta(window, |reading| reading.pods.get(uid)?.joules))
        .sum();
    if pods_joules > active_joules * PODS_MARGIN + PODS_SLACK_JOULES {
        return Err(Void::PodsBeyondNode {
            pods_joules,
            active_joules,
        });
    }
    Ok(())
}
