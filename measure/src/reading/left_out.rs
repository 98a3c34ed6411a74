//! Summaries of readings that were left out of a long window.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Reading, Rise};

/// Summary of the readings that were left out between a reading and the reading before it.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// Number of these readings.
    pub readings: usize,
    /// The two readings in a row that are farthest apart, in Unix seconds of the readings' clock.
    pub largest_gap_unix_seconds: [f64; 2],
    /// Mean powers from reading to reading, in watts.
    pub watts: Variation,
    /// The smallest rise of the node's energy from reading to reading, in joules.
    pub least_rise_joules: f64,
    /// The two steps with the largest power.
    pub largest_rises: [Rise; 2],
    /// Temperatures of the node's processor, in degrees Celsius.
    pub celsius: Extent,
    /// Clocks of the node's processor, in hertz.
    pub hertz: Extent,
    /// The largest age of the last reading of the instrument itself, in seconds.
    pub source_age_seconds: Option<f64>,
    /// The largest relative standard uncertainty of the node's energy.
    pub relative_uncertainty: Option<f64>,
    /// Working sets of groups of pods.
    pub working_sets: Vec<WorkingSets>,
}

impl LeftOut {
    /// No readings yet, and these groups of pods.
    pub(super) fn of(groups: &[Arc<BTreeSet<String>>]) -> Self {
        Self {
            readings: 0,
            largest_gap_unix_seconds: [0.0; 2],
            watts: Variation::default(),
            least_rise_joules: f64::INFINITY,
            largest_rises: [Rise::NONE; 2],
            celsius: Extent::default(),
            hertz: Extent::default(),
            source_age_seconds: None,
            relative_uncertainty: None,
            working_sets: groups.iter().map(WorkingSets::of).collect(),
        }
    }

    /// The longest time between two of all the readings, in seconds.
    #[must_use]
    pub fn largest_gap_seconds(&self) -> f64 {
        let [from, to] = self.largest_gap_unix_seconds;
        to - from
    }

    /// The working sets of exactly these pods. `None` if they are not known as a group.
    #[must_use]
    pub fn working_sets_of(&self, pods: &BTreeSet<String>) -> Option<&WorkingSets> {
        self.working_sets.iter().find(|it| *it.pods == *pods)
    }

    /// Adds the step between two readings in a row.
    pub(super) fn add_step(&mut self, from: &Reading, to: &Reading) {
        let times = [from.at_unix_seconds(), to.at_unix_seconds()];
        let seconds = times[1] - times[0];
        let rise_joules = to.node_joules - from.node_joules;
        if seconds > self.largest_gap_seconds() {
            self.largest_gap_unix_seconds = times;
        }
        self.least_rise_joules = self.least_rise_joules.min(rise_joules);
        self.watts.add(rise_joules / seconds);
        let [first, second] = self.largest_rises;
        let rise = Rise::largest(from, to);
        if rise.watts() > first.watts() {
            self.largest_rises = [rise, first];
        } else if rise.watts() > second.watts() {
            self.largest_rises = [first, rise];
        }
    }

    /// Adds a reading, `since_seconds` after the last reading that is kept.
    pub(super) fn add_reading(&mut self, reading: &Reading, since_seconds: f64) {
        let largest =
            |one: Option<f64>, other: Option<f64>| one.into_iter().chain(other).reduce(f64::max);
        self.readings += 1;
        self.celsius.extend(reading.temperature_celsius);
        self.hertz.extend(reading.frequency_hertz);
        self.source_age_seconds = largest(self.source_age_seconds, reading.source_age_seconds);
        self.relative_uncertainty =
            largest(self.relative_uncertainty, reading.relative_uncertainty);
        for group in &mut self.working_sets {
            if let Some(bytes) = reading.pods.working_set_bytes(&group.pods) {
                group.add(since_seconds, bytes);
            }
        }
    }
}

/// Mean and sum of squares of numbers that are not kept (B. P. Welford, Technometrics 4 (1962) 419).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Variation {
    /// How many.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// The sum of their squared distances from the mean.
    pub squares: f64,
}

impl Variation {
    /// Of one number.
    #[must_use]
    pub fn of(value: f64) -> Self {
        Self {
            count: 1.0,
            mean: value,
            squares: 0.0,
        }
    }

    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let off = value - self.mean;
        self.mean += off / self.count;
        self.squares += off * (value - self.mean);
    }
}

/// Mean and extremes of numbers that are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Extent {
    count: f64,
    sum: f64,
    ends: Option<(f64, f64)>,
}

impl Extent {
    /// Adds the numbers of another extent.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.ends = match (self.ends, other.ends) {
            (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
            (own, other) => own.or(other),
        };
    }

    /// The mean. `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    /// The least number.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        self.ends.map(|(least, _)| least)
    }

    /// The largest number.
    #[must_use]
    pub fn most(&self) -> Option<f64> {
        self.ends.map(|(_, most)| most)
    }
}

impl Extend<f64> for Extent {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        for value in values {
            self.add(&Self {
                count: 1.0,
                sum: value,
                ends: Some((value, value)),
            });
        }
    }
}

/// Working sets of a group of pods in readings that are not kept: the sum of all its pods in each reading.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingSets {
    pods: Arc<BTreeSet<String>>,
    /// The largest, in bytes. `None` if no reading has all of the pods.
    pub peak_bytes: Option<f64>,
    /// Number of readings.
    pub count: f64,
    /// Their sum, in bytes.
    pub bytes: f64,
    /// Sum of the readings' times since the last reading that is kept, in seconds.
    pub seconds: f64,
    /// Sum of the squares of these times, in square seconds.
    pub square_seconds: f64,
    /// Sum of the products of time and working set, in byte-seconds.
    pub byte_seconds: f64,
}

impl WorkingSets {
    fn of(pods: &Arc<BTreeSet<String>>) -> Self {
        Self {
            pods: Arc::clone(pods),
            peak_bytes: None,
            count: 0.0,
            bytes: 0.0,
            seconds: 0.0,
            square_seconds: 0.0,
            byte_seconds: 0.0,
        }
    }

    fn add(&mut self, seconds: f64, bytes: f64) {
        self.peak_bytes = Some(self.peak_bytes.map_or(bytes, |peak| peak.max(bytes)));
        self.count += 1.0;
        self.bytes += bytes;
        self.seconds += seconds;
        self.square_seconds += seconds * seconds;
        self.byte_seconds += seconds * bytes;
    }
}
