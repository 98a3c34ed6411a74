//! Checks that one genuine meter was read, that it went on, and that its node did not change.

use crate::energy::{attempt::Window, evidence::AttemptEvidence};
use crate::model::LinearModel;
use crate::reading::{MeterIdentity, Provenance, Reading};
use crate::void::Void;

/// No node draws less, in watts. If a counter has stood still for longer than this power needs for one step,
/// the counter is dead.
const LEAST_WATTS: f64 = 0.1;

/// CPU use under load above idle from which on the power of every node rises, in CPUs.
const LEAST_LOAD_CPUS: f64 = 0.5;

/// Largest share by which power may rise without a load, because counters are rounded.
const LEAST_RISE: f64 = 1e-3;

/// The meter does not invent its values.
pub(super) fn meter_is_genuine(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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
pub(super) fn meter_moves_on(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let limit_seconds = evidence.attempt.limits.max_reading_gap_seconds;
    let has_one_time = |a: &Reading, b: &Reading| {
        a.meter_unix_seconds.is_some() && a.meter_unix_seconds == b.meter_unix_seconds
    };
    let has_one_count = |a: &Reading, b: &Reading| a.node_joules.total_cmp(&b.node_joules).is_eq();
    let age = evidence.series.source_age_seconds();
    if let Some(seconds) = age.filter(|seconds| *seconds > limit_seconds) {
        return Err(Void::MeterStale {
            seconds,
            limit_seconds,
        });
    }
    let mut since: Option<&Reading> = None;
    for scrape in evidence.series.scrapes() {
        match since {
            Some(first) if has_one_time(first, scrape) || has_one_count(first, scrape) => {
                let seconds = scrape.scraped_at_unix_seconds - first.scraped_at_unix_seconds;
                let step = scrape.resolution_joules;
                let is_dead = has_one_time(first, scrape)
                    || step.is_none_or(|step| step < LEAST_WATTS * seconds);
                if seconds > limit_seconds && is_dead {
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

/// An instrument follows the load. A device that is gone may leave its last power in a program that repeats it for ever,
/// and an instrument may feed another board. The counter then rises, but not more under load than without. The CPU time
/// of the same readings shows the load. Each half of the load is compared with the baseline next to it, because the device
/// may go during the attempt.
pub(super) fn power_follows_load(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    let AttemptEvidence { attempt, series } = evidence;
    if series.last().meter.provenance != Provenance::Metered {
        return Ok(());
    }
    let rate = |window: Window, counter: fn(&Reading) -> Option<f64>| {
        Some(series.delta(window, counter)? / window.seconds())
    };
    let step_joules = series.step_joules().unwrap_or_default();
    let (first, second) = attempt.measured.halves();
    for (idle, load) in [(attempt.idle_before, first), (attempt.idle_after, second)] {
        let both = |counter| rate(idle, counter).zip(rate(load, counter));
        let Some((idle_cpus, load_cpus)) = both(|reading| reading.node_cpu_seconds) else {
            continue;
        };
        let Some((idle_watts, load_watts)) = both(|reading| Some(reading.node_joules)) else {
            continue;
        };
        // A window may have one step of the counter more or less.
        let steps_watts = step_joules / idle.seconds() + step_joules / load.seconds();
        let rise_watts = load_watts - idle_watts + steps_watts;
        if load_cpus - idle_cpus >= LEAST_LOAD_CPUS && rise_watts <= LEAST_RISE * idle_watts {
            return Err(Void::PowerWithoutLoad {
                idle_watts,
                load_watts,
                cpus: load_cpus - idle_cpus,
            });
        }
    }
    Ok(())
}

/// The meter did not restart its counters.
pub(super) fn meter_did_not_restart(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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
pub(super) fn meter_is_the_same(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    evidence
        .series
        .steps()
        .try_for_each(|(a, b)| same_meter((&a.meter, &a.zone), (&b.meter, &b.zone)))
}

/// Checks that two meters, each with its zone, are one. Digests of settings are compared if both meters report one.
pub fn same_meter(
    (earlier, earlier_zone): (&MeterIdentity, &str),
    (later, later_zone): (&MeterIdentity, &str),
) -> Result<(), Void> {
    if earlier == later && earlier_zone == later_zone {
        return Ok(());
    }
    let traits = |meter: &MeterIdentity, zone: &str| {
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        [
            ("name", meter.name.clone()),
            ("version", meter.version.clone()),
            ("source", meter.source.clone()),
            ("board", known(&meter.board)),
            ("provenance", meter.provenance.to_string()),
            ("zone", zone.to_owned()),
            ("model", coefficients(meter.model)),
        ]
    };
    let settings = earlier
        .configuration
        .clone()
        .zip(later.configuration.clone());
    let pairs = traits(earlier, earlier_zone)
        .into_iter()
        .zip(traits(later, later_zone))
        .map(|((what, from), (_, to))| (what, from, to));
    let differing = pairs
        .chain(settings.map(|(from, to)| ("configuration", from, to)))
        .find(|(_, from, to)| from != to);
    differing.map_or(Ok(()), |(what, from, to)| {
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
pub(super) fn meter_within_its_scale(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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
pub(super) fn node_is_the_same(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
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
