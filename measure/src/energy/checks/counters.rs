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

/// A counter of a reading, with its name in messages.
type Counter = (&'static str, fn(&Reading) -> Option<f64>);

/// The node's counters behind figures and checks.
const OF_NODE: [Counter; 8] = [
    ("node energy", |it| Some(it.node_joules)),
    ("active node energy", |it| it.active_joules),
    ("idle node energy", |it| it.idle_joules),
    ("node CPU time", |it| it.node_cpu_seconds),
    ("the processors' busy time", |it| it.processors_busy_seconds),
    ("the processors' time for interrupts", |it| {
        it.processors_interrupt_seconds
    }),
    ("the processors' stolen time", |it| {
        it.processors_stolen_seconds
    }),
    ("readings at the end of the scale", |it| {
        it.saturated_readings
    }),
];

/// Every counter behind a figure or a check is in every reading, and it never decreases. Some checks need a counter that
/// not every meter reports, and pass without it. Next to the end of a window, a reading without the counter would switch
/// such a check off.
pub(super) fn counters_go_on(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence.series.steps().try_for_each(|(a, b)| {
        for (name, counter) in OF_NODE {
            goes_on(|| name.to_owned(), [a, b], [counter(a), counter(b)])?;
        }
        let causes = a.throttled_seconds.keys().chain(b.throttled_seconds.keys());
        for cause in causes {
            let seconds = [a, b].map(|reading| reading.throttled_seconds.get(cause).copied());
            goes_on(|| format!("throttled time by {cause}"), [a, b], seconds)?;
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
            goes_on(named("energy"), [a, b], [earlier.joules, later.joules])?;
            if attempt.candidate_pods.contains(uid) || attempt.database_pods.contains(uid) {
                let seconds = [earlier.cpu_seconds, later.cpu_seconds];
                goes_on(named("CPU time"), [a, b], seconds)?;
            }
        }
        Ok(())
    })
}

/// Checks the values of one counter in two consecutive readings. A counter that neither reading has is one that the meter
/// does not report.
fn goes_on(
    name: impl FnOnce() -> String,
    [earlier, later]: [&Reading; 2],
    values: [Option<f64>; 2],
) -> Result<(), Void> {
    let missing_in = match values {
        [Some(from), Some(to)] if to < from => {
            return Err(Void::CounterDecreased {
                counter: name(),
                from,
                to,
                at_unix_seconds: later.at_unix_seconds(),
            });
        }
        [Some(_), Some(_)] | [None, None] => return Ok(()),
        [None, Some(_)] => earlier,
        [Some(_), None] => later,
    };
    Err(Void::CounterMissing {
        counter: name(),
        at_unix_seconds: missing_in.at_unix_seconds(),
    })
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
