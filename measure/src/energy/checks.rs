//! The checks that readings must pass before figures are computed from them, in order.

mod load_end;
mod surroundings;

use super::baseline::{Gross, Net};
use super::counters::Series;
use super::{evidence::AttemptEvidence, taken};
use crate::model::LinearModel;
use crate::reading::{MeterIdentity, PodReading, Provenance, Reading};
use crate::{
    energy::attempt::{AttemptReadings, ROUNDING_SECONDS},
    void::Void,
};

type Check = fn(&AttemptEvidence<'_>) -> Result<(), Void>;

/// Causes come before their effects. The check for a restarted meter comes before the check for its fallen
/// counters. The check for wrong clocks comes before the check for an idle baseline that the clocks moved
/// into the load.
const CHECKS: [Check; 21] = [
    windows_in_order,
    meter_is_genuine,
    meter_moves_on,
    meter_did_not_restart,
    meter_is_the_same,
    meter_within_its_scale,
    node_is_the_same,
    counters_never_fall,
    energy_within_node,
    pods_within_node,
    readings_uninterrupted,
    pods_all_the_time,
    window_long_enough,
    counter_fine_enough,
    load_end::load_ends_when_reported,
    surroundings::voltage_held,
    surroundings::cool_before_load,
    taken::cpu_not_taken,
    surroundings::neighbours_quiet,
    surroundings::halves_alike,
    surroundings::baselines_alike,
];

/// Runs all checks in order; the first failure is the reason.
pub(super) fn run(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    CHECKS.iter().try_for_each(|check| check(evidence))
}

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

/// The largest error of the time between two readings, in seconds, with the meter's own timestamps: the
/// counters of one reading are read one after the other.
const READING_SECONDS: f64 = 0.05;

/// As [`READING_SECONDS`], for stock Kepler, which may answer from a snapshot as old as its staleness.
const KEPLER_STALENESS_SECONDS: f64 = 0.5;

/// How far the pods' sum may exceed the node's active energy, because the counters are read one after the
/// other: a factor and an amount in joules.
const PODS_MARGIN: f64 = 1.02;
const PODS_SLACK_JOULES: f64 = 0.1;

/// The largest share of the net energy that one step of the meter's counter may be. A counter is up to a step
/// behind at either end, evenly distributed: u = step·√(2/12) (JCGM 100:2008, 4.3.7). The limit therefore
/// keeps u below a thousandth for a meter that reports its step.
const MAX_STEP_SHARE: f64 = 0.002;

/// If a counter stood still between more than this share of the readings, its steps are large. Otherwise its
/// source was only late at times.
const STILL_SHARE: f64 = 0.05;

/// No node draws less, in watts. If a counter has stood still for longer than this power needs for one step,
/// the counter is dead.
const LEAST_WATTS: f64 = 0.1;

/// How much longer than the meter's true interval the median time between scrapes may be.
const SCRAPE_JITTER: f64 = 1.05;

/// The three windows are not empty and follow one another.
fn windows_in_order(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptReadings {
        idle_before,
        measured,
        idle_after,
        ..
    } = evidence.attempt;
    let windows = [idle_before, measured, idle_after];
    let apart = windows
        .windows(2)
        .all(|w| w[0].end_unix_seconds <= w[1].start_unix_seconds);
    let real = windows
        .iter()
        .all(|w| w.seconds().is_finite() && w.seconds() > 0.0);
    if apart && real {
        return Ok(());
    }
    let text = windows.map(|w| format!("{:.3} to {:.3}", w.start_unix_seconds, w.end_unix_seconds));
    Err(Void::WindowsOutOfOrder {
        windows: text.join(", "),
    })
}

/// The meter does not invent its values.
fn meter_is_genuine(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let mut readings = evidence
        .series
        .readings()
        .iter()
        .chain(evidence.series.scrapes());
    match readings.find(|reading| reading.meter.provenance == Provenance::Fake) {
        Some(fake) => Err(Void::MeterFake {
            source_name: fake.meter.source.clone(),
        }),
        None => Ok(()),
    }
}

/// The meter takes new readings while it is scraped, and its source gives it new values. Every node draws
/// power. A counter that stands still is therefore as dead as a timestamp that stands still. Only a counter
/// of known, large steps may stand still for a while.
fn meter_moves_on(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let limit_seconds = evidence.attempt.limits.max_reading_gap_seconds;
    let stands_still = |a: &Reading, b: &Reading| {
        let seconds = b.scraped_at_unix_seconds - a.scraped_at_unix_seconds;
        (a.meter_unix_seconds.is_some() && a.meter_unix_seconds == b.meter_unix_seconds)
            || (a.node_joules.total_cmp(&b.node_joules).is_eq()
                && b.resolution_joules
                    .is_none_or(|step| step < LEAST_WATTS * seconds))
    };
    let age = evidence.series.max_of(|reading| reading.source_age_seconds);
    if let Some(seconds) = age.filter(|seconds| *seconds > limit_seconds) {
        return Err(Void::MeterStale {
            seconds,
            limit_seconds,
        });
    }
    let mut since: Option<&Reading> = None;
    for scrape in evidence.series.scrapes() {
        match since {
            Some(first) if stands_still(first, scrape) => {
                let seconds = scrape.scraped_at_unix_seconds - first.scraped_at_unix_seconds;
                if seconds > limit_seconds {
                    return Err(Void::MeterStale {
                        seconds,
                        limit_seconds,
                    });
                }
            }
            _ => since = Some(scrape),
        }
    }
    Ok(())
}

/// The meter did not restart its counters.
fn meter_did_not_restart(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence.series.steps().try_for_each(|(a, b)| {
        match (a.meter_start_unix_seconds, b.meter_start_unix_seconds) {
            (Some(from_unix_seconds), Some(to_unix_seconds))
                if from_unix_seconds.total_cmp(&to_unix_seconds).is_ne() =>
            {
                Err(Void::MeterRestarted {
                    from_unix_seconds,
                    to_unix_seconds,
                })
            }
            _ => Ok(()),
        }
    })
}

/// Meter, source, provenance, zone and the model's watts never change.
fn meter_is_the_same(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence
        .series
        .steps()
        .try_for_each(|(a, b)| same_meter((&a.meter, &a.zone), (&b.meter, &b.zone)))
}

/// Checks that two meters, each with its zone, are one.
pub fn same_meter(
    (earlier, earlier_zone): (&MeterIdentity, &str),
    (later, later_zone): (&MeterIdentity, &str),
) -> Result<(), Void> {
    let traits = |meter: &MeterIdentity, zone: &str| {
        [
            ("name", meter.name.clone()),
            ("version", meter.version.clone()),
            ("source", meter.source.clone()),
            (
                "board",
                meter.board.clone().unwrap_or_else(|| "none".to_owned()),
            ),
            ("provenance", meter.provenance.to_string()),
            ("zone", zone.to_owned()),
            ("model", coefficients(meter.model)),
        ]
    };
    if earlier == later && earlier_zone == later_zone {
        return Ok(());
    }
    let differing = traits(earlier, earlier_zone)
        .into_iter()
        .zip(traits(later, later_zone))
        .find(|(from, to)| from != to);
    differing.map_or(Ok(()), |((what, from), (_, to))| {
        Err(Void::MeterChanged {
            what: what.to_owned(),
            from,
            to,
        })
    })
}

/// All digits of a model. Two different models therefore have different texts.
fn coefficients(model: Option<LinearModel>) -> String {
    let Some(model) = model else {
        return "none".to_owned();
    };
    let uncertainty = model.uncertainty.map_or_else(
        || "accuracy unknown".to_owned(),
        |known| format!("u = {} and {}", known.idle_watts, known.watts_per_cpu),
    );
    let (idle_watts, watts_per_cpu) = (model.idle_watts, model.watts_per_cpu);
    format!("{idle_watts} W + {watts_per_cpu} W per CPU, {uncertainty}")
}

/// The instrument was never at the end of its scale. There it would report too little, by an unknown amount.
fn meter_within_its_scale(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let readings: f64 = evidence
        .series
        .steps()
        .filter_map(|(a, b)| Some(b.saturated_readings? - a.saturated_readings?))
        .sum();
    if readings > 0.0 {
        return Err(Void::MeterSaturated { readings });
    }
    Ok(())
}

/// Kernel, governor and firmware never change.
fn node_is_the_same(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence.series.steps().try_for_each(|(a, b)| {
        a.platform
            .change(&b.platform)
            .map_or(Ok(()), |(what, from, to)| {
                Err(Void::NodeChanged {
                    what: what.to_owned(),
                    from,
                    to,
                })
            })
    })
}

/// No counter behind a figure or a check decreases.
fn counters_never_fall(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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

/// The largest error of the time between two readings, in seconds.
fn slack_seconds(a: &Reading, b: &Reading) -> f64 {
    match (a.meter_unix_seconds, b.meter_unix_seconds) {
        (Some(_), Some(_)) => READING_SECONDS,
        _ => KEPLER_STALENESS_SECONDS,
    }
}

/// The node's counters, and the joules by which they rose.
fn risen(a: &Reading, b: &Reading) -> [(&'static str, Option<f64>); 3] {
    let rise = |from: Option<f64>, to: Option<f64>| Some(to? - from?);
    [
        (
            "node energy",
            rise(Some(a.node_joules), Some(b.node_joules)),
        ),
        ("active node energy", rise(a.active_joules, b.active_joules)),
        ("idle node energy", rise(a.idle_joules, b.idle_joules)),
    ]
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
            leaps.steps += 1;
            let seconds = b.at_unix_seconds() - a.at_unix_seconds() + slack_seconds(a, b);
            let joules = risen(a, b).into_iter().filter_map(|(_, joules)| joules);
            let watts = joules.fold(0.0, f64::max) / seconds;
            if watts > leaps.most_watts {
                leaps.else_watts = leaps.most_watts;
                leaps.most_watts = watts;
                leaps.at = index;
            } else if watts > leaps.else_watts {
                leaps.else_watts = watts;
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
fn energy_within_node(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let reported = evidence.attempt.limits.max_node_watts;
    let leaps = Leaps::of(&evidence.series);
    evidence
        .series
        .steps()
        .enumerate()
        .try_for_each(|(index, (a, b))| {
            let known = reported.into_iter().chain(b.max_watts).reduce(f64::min);
            let max_watts = known.unwrap_or_else(|| leaps.most_watts_at(index));
            let seconds = b.at_unix_seconds() - a.at_unix_seconds();
            let slack = slack_seconds(a, b);
            let limit_joules = max_watts * POWER_MARGIN * (seconds + slack);
            for (counter, joules) in risen(a, b) {
                let Some(joules) = joules else {
                    continue;
                };
                if joules > limit_joules {
                    let counter = counter.to_owned();
                    return Err(Void::EnergyBeyondNode {
                        counter,
                        joules,
                        seconds,
                        max_watts,
                    });
                }
            }
            Ok(())
        })
}

/// The pods did not receive more energy than the node's active energy. Pods that came or went are left out,
/// so they cannot make the sum too large.
fn pods_within_node(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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

/// Readings exist from before the first baseline to after the second, without a long gap.
fn readings_uninterrupted(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let span = attempt.span();
    let covered = |at| series.around(at).is_some();
    if !covered(span.start_unix_seconds) || !covered(span.end_unix_seconds) {
        return Err(series.outside(span));
    }
    let limit_seconds = attempt.limits.max_reading_gap_seconds;
    series.steps().try_for_each(|(a, b)| {
        let (from_unix_seconds, to_unix_seconds) = (a.at_unix_seconds(), b.at_unix_seconds());
        if to_unix_seconds - from_unix_seconds > limit_seconds {
            return Err(Void::ReadingsInterrupted {
                from_unix_seconds,
                to_unix_seconds,
                limit_seconds,
            });
        }
        Ok(())
    })
}

/// Every reading within the attempt contains every measured pod. The readings just outside are not checked:
/// pods may start after the one and end before the other.
fn pods_all_the_time(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let span = attempt.span();
    let attempt_time = span.start_unix_seconds..=span.end_unix_seconds;
    let inside = |reading: &&&Reading| attempt_time.contains(&reading.at_unix_seconds());
    for reading in series.readings().iter().filter(inside) {
        for uid in attempt
            .pods()
            .filter(|uid| !attempt.restarted_pods.contains(*uid))
        {
            if reading.pods.get(uid).is_none() {
                let pod = evidence.pod_name(uid);
                let at_unix_seconds = reading.at_unix_seconds();
                return Err(Void::PodReplaced {
                    pod,
                    at_unix_seconds,
                });
            }
        }
    }
    Ok(())
}

/// The measured window is long enough in the meter's intervals and in seconds.
fn window_long_enough(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    let jitter = if series.last().interval_seconds.is_some() {
        1.0
    } else {
        SCRAPE_JITTER
    };
    let by_intervals = attempt.limits.min_intervals * series.interval_seconds() / jitter;
    let required_seconds = attempt.limits.min_window_seconds.max(by_intervals);
    let seconds = attempt.measured.seconds();
    if seconds + ROUNDING_SECONDS < required_seconds {
        return Err(Void::WindowTooShort {
            seconds,
            required_seconds,
        });
    }
    Ok(())
}

/// The meter's counter moves in small enough steps. If the meter reports no step, the smallest observed step
/// counts, but only if the counter often stood still between two readings. A counter of fine steps does not
/// stand still.
fn counter_fine_enough(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let series = &evidence.series;
    let seen = || {
        let rises: Vec<f64> = series
            .steps()
            .map(|(a, b)| b.node_joules - a.node_joules)
            .collect();
        let moving: Vec<f64> = rises.iter().copied().filter(|rise| *rise > 0.0).collect();
        let still = (rises.len() - moving.len()) as f64;
        let is_coarse = still > STILL_SHARE * rises.len() as f64;
        moving.into_iter().reduce(f64::min).filter(|_| is_coarse)
    };
    let reported = series.max_of(|reading| reading.resolution_joules);
    let Some(resolution_joules) = reported.or_else(seen) else {
        return Ok(());
    };
    let gross = Gross::of(evidence)?;
    // Below its detection limit, the net energy appears in no figure.
    let joules = Net::of(&gross).joules.unwrap_or(gross.node_joules);
    if resolution_joules > MAX_STEP_SHARE * joules {
        return Err(Void::MeterTooCoarse {
            resolution_joules,
            joules,
            limit_share: MAX_STEP_SHARE,
        });
    }
    Ok(())
}
