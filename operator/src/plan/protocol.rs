//! The fixed times and limits of an attempt. docs/measurement.md gives the reasons.

use std::time::Duration;

/// Time between two scrapes of a meter. Load changes within a second around a window's edge are interpolated
/// linearly. At 1 s this cost up to 3 % of a 20 s window on a noisy machine, at half a second about 1 %.
pub const SCRAPE_INTERVAL: Duration = Duration::from_millis(500);

/// Wait from the readiness of the pods to the first idle baseline. During start-up work the node is not idle. On the
/// cluster in a box this work lasted a second. Kubelet cuts the time of readiness to whole seconds, so the wait has one
/// second more.
pub const SETTLE_SECONDS: f64 = 2.0;

/// How much warmer than the first trial of its block a trial may start, in kelvins. At about 1 % of idle power per
/// kelvin (leakage) this is at most 3 % of idle power. It is a much smaller share of the window's power, because
/// both trials warm up in their windows.
pub const START_BAND_KELVIN: f64 = 3.0;

/// Longest load after the measured window, and longest wait from the end of the load to the second idle baseline.
pub const LONGEST_EDGE_SECONDS: f64 = 3.0;

/// The part of [`tail_seconds`] for everything but the readings: the error of the clocks' comparison (at most 0.1 s), the gap
/// between two runs of the load generator (0.05 s), and a late look at the meter.
const TAIL_SPARE_SECONDS: f64 = 0.4;

/// The part of [`settle_seconds`] for everything but the readings: the error of the clocks' comparison, and the end of the
/// last requests. On the cluster in a box the node is idle half a second after the load.
const SETTLE_SPARE_SECONDS: f64 = 1.0;

/// Load after the measured window, in seconds. The reading before the window's end and the reading after it then both lie
/// in the load.
///
/// A meter that samples its sensor itself reports `own_interval_seconds`: its counters are at most this old. `None`: a
/// meter that asks another instrument, or that reports no interval. How far its counters lie behind is not known.
#[must_use]
pub fn tail_seconds(own_interval_seconds: Option<f64>) -> f64 {
    edge_seconds(own_interval_seconds, TAIL_SPARE_SECONDS)
}

/// Wait from the end of a load to an idle baseline, in seconds. The reading before the baseline's start and the reading
/// after it then both lie after the load. For the interval, see [`tail_seconds`].
#[must_use]
pub fn settle_seconds(own_interval_seconds: Option<f64>) -> f64 {
    edge_seconds(own_interval_seconds, SETTLE_SPARE_SECONDS)
}

fn edge_seconds(own_interval_seconds: Option<f64>, spare_seconds: f64) -> f64 {
    own_interval_seconds
        .map_or(LONGEST_EDGE_SECONDS, |interval| {
            spare_seconds + SCRAPE_INTERVAL.as_secs_f64() + interval
        })
        .min(LONGEST_EDGE_SECONDS)
}

/// Longest time from the end of a trial to the baseline of the next one in its block, without the candidate's own
/// `readyWithin`. A block pairs trials because slow changes, such as the room's temperature, then affect both alike. The
/// value is a judgement: a server's start takes up to 3 minutes, cooling 1, and the restore of a usual database less than
/// a minute.
pub const LONGEST_BETWEEN_TRIALS_SECONDS: f64 = 1800.0;

/// Longest time from the end of the first idle baseline to the load. An injector that gets its pod starts within two
/// minutes; a quota or a cordon can delay the pod for hours.
pub const LONGEST_FROM_BASELINE_TO_LOAD_SECONDS: f64 = 300.0;

/// If pods have been forbidden for this long, the operator expects no change. A user may apply a namespace and its
/// policies together with the benchmark.
pub const FORBIDDEN_TIMEOUT_SECONDS: f64 = 30.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_covers_a_scrape_and_the_meters_interval() {
        for (interval, tail, settle) in [
            (Some(0.1), 1.0, 1.6),
            (Some(0.5), 1.4, 2.0),
            (Some(60.0), LONGEST_EDGE_SECONDS, LONGEST_EDGE_SECONDS),
            (None, LONGEST_EDGE_SECONDS, LONGEST_EDGE_SECONDS),
        ] {
            assert!((tail_seconds(interval) - tail).abs() < 1e-9);
            assert!((settle_seconds(interval) - settle).abs() < 1e-9);
        }
    }
}
