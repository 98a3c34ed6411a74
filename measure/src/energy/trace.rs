//! The course of an attempt in few points: energy, CPU time and the node's conditions over time.
//!
//! The ledger has the totals of an attempt. The course shows when they arose. That matters most for an
//! attempt without totals, because it is void.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    attempt::{Limits, Window},
    counters::{Series, gap_seconds},
};
use crate::reading::{Extent, LeftOut, Reading};

/// The largest number of points of an attempt. It bounds the size of the course for any length of run.
pub const MOST_POINTS: usize = 100;
/// The largest number of phases of an attempt.
pub const MOST_PHASES: usize = 5;
/// The shortest point, in seconds: two readings at the usual two per second. A meter with a longer interval
/// gets longer points.
const LEAST_POINT_SECONDS: f64 = 1.0;

const MILLI: f64 = 1e3;
const MICRO: f64 = 1e6;
const KIBI: f64 = 1.0 / 1024.0;
const MEGA: f64 = 1e-6;

/// The readings of an attempt, and its times as far as they are known.
#[derive(Clone, Copy, Debug)]
pub struct TraceReadings<'a> {
    /// Readings of the measured node, in any order.
    pub readings: &'a [Reading],
    /// The idle baseline before the load.
    pub idle_before: Window,
    /// The measured window and the idle baseline after the load. `None` if the attempt ended before they were
    /// known.
    pub windows: Option<(Window, Window)>,
    /// UIDs of the candidate's pods.
    pub candidate_pods: &'a BTreeSet<String>,
    /// UIDs of the database's pods; empty if the boundary contains no database.
    pub database_pods: &'a BTreeSet<String>,
}

/// Name of a phase of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PhaseName {
    /// Idle baseline before the load.
    IdleBefore,
    /// From the end of the first idle baseline to the measured window: start of the injector, and warm-up.
    WarmUp,
    /// Measured window.
    Window,
    /// From the measured window to the second idle baseline: tail, and time to settle.
    Tail,
    /// Idle baseline after the load.
    IdleAfter,
    /// From the end of the first idle baseline to the last reading of an attempt that ended before its windows were known.
    Load,
}

/// The course of one phase, in points of equal length. A list has one value per point. A value is null if a
/// reading of the point lacks it. A list is absent if all of its values are unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TracePhase {
    /// Name of the phase.
    pub phase: PhaseName,
    /// Begin of the phase, in Unix seconds of the measured node's clock.
    pub start_unix_seconds: f64,
    /// End of the phase, in Unix seconds of the measured node's clock.
    pub end_unix_seconds: f64,
    /// Number of points of the phase.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::points"))]
    pub points: usize,
    /// Energy of the node, in millijoules per point. Divided by the point's seconds, it is mean power in milliwatts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub node_millijoules: Option<Vec<Option<i64>>>,
    /// CPU time of the node, in microseconds per point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub node_cpu_microseconds: Option<Vec<Option<i64>>>,
    /// CPU time of the candidate's pods, in microseconds per point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub candidate_cpu_microseconds: Option<Vec<Option<i64>>>,
    /// CPU time of the database's pods, in microseconds per point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub database_cpu_microseconds: Option<Vec<Option<i64>>>,
    /// Largest working set of the candidate's pods in a reading of the point, all pods together, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub candidate_working_set_kibibytes: Option<Vec<Option<i64>>>,
    /// Largest working set of the database's pods in a reading of the point, all pods together, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub database_working_set_kibibytes: Option<Vec<Option<i64>>>,
    /// Mean temperature of the node's processor, in thousandths of a degree Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub temperature_millicelsius: Option<Vec<Option<i64>>>,
    /// Mean clock of the node's processor, in megahertz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::numbers"))]
    pub frequency_megahertz: Option<Vec<Option<i64>>>,
}

impl TracePhase {
    /// Length of each point, in seconds.
    #[must_use]
    pub fn point_seconds(&self) -> f64 {
        (self.end_unix_seconds - self.start_unix_seconds) / self.points.max(1) as f64
    }

    /// The quantities that the phase has: name of the field, and one value per point.
    pub fn quantities(&self) -> impl Iterator<Item = (&'static str, &[Option<i64>])> {
        [
            ("nodeMillijoules", &self.node_millijoules),
            ("nodeCpuMicroseconds", &self.node_cpu_microseconds),
            ("candidateCpuMicroseconds", &self.candidate_cpu_microseconds),
            ("databaseCpuMicroseconds", &self.database_cpu_microseconds),
            (
                "candidateWorkingSetKibibytes",
                &self.candidate_working_set_kibibytes,
            ),
            (
                "databaseWorkingSetKibibytes",
                &self.database_working_set_kibibytes,
            ),
            ("temperatureMillicelsius", &self.temperature_millicelsius),
            ("frequencyMegahertz", &self.frequency_megahertz),
        ]
        .into_iter()
        .filter_map(|(name, values)| Some((name, values.as_deref()?)))
    }

    fn is_unknown(&self) -> bool {
        self.quantities().next().is_none()
    }
}

/// The course of an attempt, from the begin of the first idle baseline to the end of the second. Without
/// known windows, to the last reading. Empty if the readings show nothing of it.
///
/// Each value is rounded from the phase's begin, and not by itself. If all points of the measured window are
/// known, their sums are therefore the ledger's totals, in whole millijoules and microseconds.
#[must_use]
pub fn trace(attempt: &TraceReadings<'_>) -> Vec<TracePhase> {
    let times = attempt.readings.iter().map(Reading::at_unix_seconds);
    let Some(last_unix_seconds) = times.reduce(f64::max) else {
        return Vec::new();
    };
    let phases: Vec<_> = phases(attempt, last_unix_seconds)
        .into_iter()
        .filter(|(_, window)| window.seconds() > 0.0)
        .collect();
    let (Some((_, first)), Some((_, last))) = (phases.first(), phases.last()) else {
        return Vec::new();
    };
    let span = Window {
        start_unix_seconds: first.start_unix_seconds,
        end_unix_seconds: last.end_unix_seconds,
    };
    let Some(series) = Series::over(attempt.readings, span) else {
        return Vec::new();
    };
    let seconds: f64 = phases.iter().map(|(_, window)| window.seconds()).sum();
    // One point per phase is for a phase shorter than a point. One more is for the rounding of a quotient.
    let point_seconds = (seconds / (MOST_POINTS - 2 * MOST_PHASES) as f64)
        .max(LEAST_POINT_SECONDS)
        .max(series.interval_seconds());
    let of = |(phase, window): (PhaseName, Window)| {
        let points = Points::new(&series, window, point_seconds);
        points.course(phase, attempt)
    };
    let course: Vec<_> = phases.into_iter().map(of).collect();
    if course.iter().all(TracePhase::is_unknown) {
        return Vec::new();
    }
    course
}

fn phases(attempt: &TraceReadings<'_>, last_unix_seconds: f64) -> Vec<(PhaseName, Window)> {
    let between = |start_unix_seconds, end_unix_seconds| Window {
        start_unix_seconds,
        end_unix_seconds,
    };
    let before = attempt.idle_before;
    let Some((measured, after)) = attempt.windows else {
        let rest = between(before.end_unix_seconds, last_unix_seconds);
        return vec![(PhaseName::IdleBefore, before), (PhaseName::Load, rest)];
    };
    let warm_up = between(before.end_unix_seconds, measured.start_unix_seconds);
    let tail = between(measured.end_unix_seconds, after.start_unix_seconds);
    vec![
        (PhaseName::IdleBefore, before),
        (PhaseName::WarmUp, warm_up),
        (PhaseName::Window, measured),
        (PhaseName::Tail, tail),
        (PhaseName::IdleAfter, after),
    ]
}

/// The points of a phase.
struct Points<'s, 'r> {
    series: &'s Series<'r>,
    phase: Window,
    windows: Vec<Window>,
}

impl<'s, 'r> Points<'s, 'r> {
    fn new(series: &'s Series<'r>, phase: Window, point_seconds: f64) -> Self {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is from 1 to the number of points"
        )]
        let count = (phase.seconds() / point_seconds).clamp(1.0, MOST_POINTS as f64) as usize;
        let end_of = |point: usize| {
            if point == count {
                phase.end_unix_seconds
            } else {
                phase.start_unix_seconds + phase.seconds() * point as f64 / count as f64
            }
        };
        let windows = (0..count)
            .map(|point| Window {
                start_unix_seconds: end_of(point),
                end_unix_seconds: end_of(point + 1),
            })
            .collect();
        Self {
            series,
            phase,
            windows,
        }
    }

    fn course(&self, phase: PhaseName, attempt: &TraceReadings<'_>) -> TracePhase {
        let node_joules = |reading: &Reading| Some(reading.node_joules);
        let node_cpu = |reading: &Reading| reading.node_cpu_seconds;
        TracePhase {
            phase,
            start_unix_seconds: self.phase.start_unix_seconds,
            end_unix_seconds: self.phase.end_unix_seconds,
            points: self.windows.len(),
            node_millijoules: self.amounts(
                MILLI,
                |window| self.series.delta(window, node_joules),
                |window| self.rises(window, node_joules),
            ),
            node_cpu_microseconds: self.amounts(
                MICRO,
                |window| self.series.delta(window, node_cpu),
                |window| self.rises(window, node_cpu),
            ),
            candidate_cpu_microseconds: self.cpu(attempt.candidate_pods),
            database_cpu_microseconds: self.cpu(attempt.database_pods),
            candidate_working_set_kibibytes: self.working_set(attempt.candidate_pods),
            database_working_set_kibibytes: self.working_set(attempt.database_pods),
            temperature_millicelsius: self.means(
                MILLI,
                |reading| reading.temperature_celsius,
                |left_out| &left_out.celsius,
            ),
            frequency_megahertz: self.means(
                MEGA,
                |reading| reading.frequency_hertz,
                |left_out| &left_out.hertz,
            ),
        }
    }

    fn cpu(&self, pods: &BTreeSet<String>) -> Option<Vec<Option<i64>>> {
        self.amounts(
            MICRO,
            |window| self.series.pods_delta(window, pods, |pod| pod.cpu_seconds),
            |window| {
                pods.iter()
                    .all(|uid| self.rises(window, |reading| reading.pods.get(uid)?.cpu_seconds))
            },
        )
    }

    fn working_set(&self, pods: &BTreeSet<String>) -> Option<Vec<Option<i64>>> {
        known(self.windows.iter().map(|point| {
            let bytes = self.series.peak_working_set_bytes(*point, pods)?;
            Some(rounded(bytes * KIBI))
        }))
    }

    /// The rise of a counter in each point. `rise` is its rise over any window. A point is unknown unless the
    /// counter `is_known` in all of it.
    fn amounts(
        &self,
        factor: f64,
        rise: impl Fn(Window) -> Option<f64>,
        is_known: impl Fn(Window) -> bool,
    ) -> Option<Vec<Option<i64>>> {
        // Readings may begin within the phase.
        let begins = self.windows.iter().map(|point| point.start_unix_seconds);
        let has_value = |at: &f64| {
            let moment = Window {
                start_unix_seconds: *at,
                end_unix_seconds: *at,
            };
            rise(moment).is_some()
        };
        let start_unix_seconds = begins.clone().find(has_value)?;
        let risen_to = |end_unix_seconds: f64| {
            let since = Window {
                start_unix_seconds,
                end_unix_seconds,
            };
            Some(rounded(rise(since)? * factor))
        };
        known(self.windows.iter().map(|point| {
            if !is_known(*point) || point.start_unix_seconds < start_unix_seconds {
                return None;
            }
            Some(risen_to(point.end_unix_seconds)? - risen_to(point.start_unix_seconds)?)
        }))
    }

    /// Whether a counter never falls in a window, each of its readings has the counter, and no two are further
    /// apart than readings of an attempt may be. A value over a longer gap would be interpolated.
    fn rises(&self, window: Window, counter: impl Fn(&Reading) -> Option<f64>) -> bool {
        let start = self.series.around(window.start_unix_seconds);
        let Some(((first, _), (_, last))) = start.zip(self.series.around(window.end_unix_seconds))
        else {
            return false;
        };
        let readings = self.series.readings();
        let position = |of: &Reading| {
            readings.partition_point(|it| it.at_unix_seconds() < of.at_unix_seconds())
        };
        let (first, last) = (position(first), position(last));
        let inside = readings.get(first..=last).unwrap_or_default();
        let value = |reading: &&'r Reading| Some((*reading, counter(reading)?));
        let values: Option<Vec<_>> = inside.iter().map(value).collect();
        values.is_some_and(|values| {
            values.windows(2).all(|pair| {
                let [(earlier, from), (later, to)] = [pair[0], pair[1]];
                to >= from && gap_seconds(earlier, later) <= Limits::MAX_READING_GAP_SECONDS
            })
        })
    }

    /// The mean of a quantity over the readings in each point.
    fn means(
        &self,
        factor: f64,
        value: impl Fn(&Reading) -> Option<f64>,
        of_left_out: impl Fn(&LeftOut) -> &Extent,
    ) -> Option<Vec<Option<i64>>> {
        known(self.windows.iter().map(|point| {
            let mean = self.series.extent(*point, &value, &of_left_out).mean()?;
            Some(rounded(mean * factor))
        }))
    }
}

/// The values, unless all are unknown.
fn known(values: impl Iterator<Item = Option<i64>>) -> Option<Vec<Option<i64>>> {
    let values: Vec<_> = values.collect();
    values.iter().any(Option::is_some).then_some(values)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "numbers from outside are below 2⁵³; a conversion beyond an i64 gives its end"
)]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// Schemas with their limits. No list has a least value: rounding may give −1 if a counter stands still.
#[cfg(feature = "schema")]
mod schema {
    use schemars::{Schema, SchemaGenerator, json_schema};

    use super::MOST_POINTS;

    pub(super) fn points(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": MOST_POINTS })
    }

    pub(super) fn numbers(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "maxItems": MOST_POINTS,
            "items": { "type": "integer", "format": "int64", "nullable": true },
        })
    }
}
