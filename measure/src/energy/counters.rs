//! Counters over time: the readings that count, and a counter's value between two of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::reading::{Extent, LeftOut, PodReading, Reading, WorkingSets};
use crate::statistics::median;
use crate::{
    energy::{
        attempt::Window,
        brackets::{Bracket, ReadingMark},
    },
    void::Void,
};

/// If a counter stood still between more than this share of the readings, its steps are large. Otherwise its
/// source was only late at times.
const STILL_SHARE: f64 = 0.05;

/// The different readings of a span of time, in order, with one reading on either side of it if there is one.
pub(super) struct Series<'a> {
    readings: Vec<&'a Reading>,
    /// Every scrape of the span, including repeated scrapes of the same reading.
    scrapes: Vec<&'a Reading>,
    /// Never empty.
    last: &'a Reading,
}

impl<'a> Series<'a> {
    /// `None` without readings.
    pub(super) fn over(readings: &'a [Reading], span: Window) -> Option<Self> {
        let mut scrapes: Vec<&Reading> = readings.iter().collect();
        scrapes.sort_by(|a, b| {
            let by_time = a.at_unix_seconds().total_cmp(&b.at_unix_seconds());
            by_time.then(
                a.scraped_at_unix_seconds
                    .total_cmp(&b.scraped_at_unix_seconds),
            )
        });
        let mut readings = scrapes.clone();
        readings.dedup_by(|later, earlier| later.repeats(earlier));

        let first = readings.partition_point(|r| r.at_unix_seconds() <= span.start_unix_seconds);
        readings.drain(..first.saturating_sub(1));
        let end = readings.partition_point(|r| r.at_unix_seconds() < span.end_unix_seconds);
        readings.truncate(end + 1);

        let (first, last) = (*readings.first()?, *readings.last()?);
        scrapes.retain(|scrape| {
            let at = scrape.at_unix_seconds();
            at >= first.at_unix_seconds() && at < span.end_unix_seconds
        });
        Some(Self {
            readings,
            scrapes,
            last,
        })
    }

    pub(super) fn readings(&self) -> &[&'a Reading] {
        &self.readings
    }

    pub(super) fn scrapes(&self) -> &[&'a Reading] {
        &self.scrapes
    }

    pub(super) fn last(&self) -> &'a Reading {
        self.last
    }

    /// The number of readings, with those that were left out.
    pub(super) fn len(&self) -> usize {
        let left_out = self
            .steps()
            .filter_map(|(_, later)| later.left_out.as_ref());
        self.readings.len() + left_out.map(|it| it.readings).sum::<usize>()
    }

    /// Every pair of consecutive readings.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&'a Reading, &'a Reading)> {
        self.readings.windows(2).map(|pair| (pair[0], pair[1]))
    }

    /// The summaries of the readings that were left out in a window, each with the reading before them.
    fn left_out(&self, window: Window) -> impl Iterator<Item = (&'a Reading, &'a LeftOut)> {
        let inside = window.start_unix_seconds..=window.end_unix_seconds;
        self.steps()
            .filter(move |(_, later)| inside.contains(&later.at_unix_seconds()))
            .filter_map(|(earlier, later)| Some((earlier, later.left_out.as_deref()?)))
    }

    /// Mean and extremes of one quantity over the readings within a window.
    pub(super) fn extent(
        &self,
        window: Window,
        value: impl Fn(&Reading) -> Option<f64>,
        of_left_out: impl Fn(&LeftOut) -> &Extent,
    ) -> Extent {
        let inside = window.start_unix_seconds..=window.end_unix_seconds;
        let mut extent = Extent::default();
        let readings = self.readings.iter();
        extent.extend(
            readings
                .filter(|reading| inside.contains(&reading.at_unix_seconds()))
                .filter_map(|reading| value(reading)),
        );
        self.left_out(window)
            .for_each(|(_, left_out)| extent.add(of_left_out(left_out)));
        extent
    }

    /// The readings around a time: the last reading not after it, and the first reading not before it. `None`
    /// outside the readings.
    pub(super) fn around(&self, at_unix_seconds: f64) -> Option<(&'a Reading, &'a Reading)> {
        let after = self
            .readings
            .partition_point(|r| r.at_unix_seconds() < at_unix_seconds);
        let later = *self.readings.get(after)?;
        if later.at_unix_seconds() <= at_unix_seconds {
            return Some((later, later));
        }
        Some((*self.readings.get(after.checked_sub(1)?)?, later))
    }

    /// The rise of a counter over a window, linear between readings. `None` if an end of the window has no
    /// reading on both sides, or if one of these readings lacks the counter.
    pub(super) fn delta(
        &self,
        window: Window,
        counter: impl Fn(&Reading) -> Option<f64>,
    ) -> Option<f64> {
        let value_at = |at: f64| {
            let (earlier, later) = self.around(at)?;
            let (from, to) = (counter(earlier)?, counter(later)?);
            let step = later.at_unix_seconds() - earlier.at_unix_seconds();
            let share = if step > 0.0 {
                (at - earlier.at_unix_seconds()) / step
            } else {
                0.0
            };
            Some(from + (to - from) * share)
        };
        Some(value_at(window.end_unix_seconds)? - value_at(window.start_unix_seconds)?)
    }

    /// The node's energy over a window, in joules.
    pub(super) fn node_joules(&self, window: Window) -> Result<f64, Void> {
        self.delta(window, |reading| Some(reading.node_joules))
            .ok_or_else(|| self.outside(window))
    }

    /// The readings around the ends of a window.
    pub(super) fn bracket(&self, window: Window) -> Result<Bracket, Void> {
        let marks = |at| {
            self.around(at)
                .map(|(earlier, later)| [mark(earlier), mark(later)])
        };
        marks(window.start_unix_seconds)
            .zip(marks(window.end_unix_seconds))
            .map(|(start, end)| Bracket { start, end })
            .ok_or_else(|| self.outside(window))
    }

    /// The void reason for a window that reaches beyond the readings.
    pub(super) fn outside(&self, window: Window) -> Void {
        let first = self
            .readings
            .first()
            .map_or(f64::INFINITY, |r| r.at_unix_seconds());
        let (from_unix_seconds, to_unix_seconds) = if first > window.start_unix_seconds {
            (window.start_unix_seconds, first)
        } else {
            (self.last.at_unix_seconds(), window.end_unix_seconds)
        };
        Void::ReadingsInterrupted {
            from_unix_seconds,
            to_unix_seconds,
            limit_seconds: 0.0,
        }
    }

    /// The rise of a counter of all these pods together over a window. `None` without pods, and if the
    /// counter of one of them is unknown.
    pub(super) fn pods_delta(
        &self,
        window: Window,
        pods: &BTreeSet<String>,
        counter: impl Fn(&PodReading) -> Option<f64> + Copy,
    ) -> Option<f64> {
        if pods.is_empty() {
            return None;
        }
        pods.iter()
            .map(|uid| self.delta(window, |reading| counter(reading.pods.get(uid)?)))
            .sum()
    }

    /// The rise of a counter of every pod over a window, linear between readings. Unlike
    /// [`Series::pods_delta`] it includes pods that came or went: a new pod counts from its start, an ended
    /// pod up to its last reading, and a counter that fell counts from 0 again.
    pub(super) fn pods_used(
        &self,
        window: Window,
        counter: impl Fn(&PodReading) -> Option<f64>,
    ) -> BTreeMap<&'a str, f64> {
        let mut last = BTreeMap::new();
        let counts = |reading: &'a Reading| {
            let pods = reading.pods.iter();
            pods.filter_map(|pod| Some((pod.uid(), counter(pod)?)))
                .collect::<Vec<_>>()
        };
        if let Some(first) = self.readings.first() {
            last.extend(counts(first));
        }
        let mut used = BTreeMap::new();
        for (earlier, later) in self.steps() {
            let (from, to) = (earlier.at_unix_seconds(), later.at_unix_seconds());
            let inside = to.min(window.end_unix_seconds) - from.max(window.start_unix_seconds);
            let share = (inside / (to - from)).max(0.0);
            for (uid, count) in counts(later) {
                let before = last.insert(uid, count).filter(|before| *before <= count);
                if share > 0.0 {
                    *used.entry(uid).or_default() += share * (count - before.unwrap_or(0.0));
                }
            }
        }
        used
    }

    /// How long the node was throttled in a window, in seconds by cause.
    pub(super) fn throttled_seconds(&self, window: Window) -> BTreeMap<String, f64> {
        self.last
            .throttled_seconds
            .keys()
            .filter_map(|cause| {
                let of = |reading: &Reading| reading.throttled_seconds.get(cause).copied();
                Some((cause.clone(), self.delta(window, of)?))
            })
            .collect()
    }

    /// The largest age of the instrument's own last reading, in seconds.
    pub(super) fn source_age_seconds(&self) -> Option<f64> {
        self.largest(
            |reading| reading.source_age_seconds,
            |left_out| left_out.source_age_seconds,
        )
    }

    /// The largest relative standard uncertainty of the node's energy that the meter reports.
    pub(super) fn relative_uncertainty(&self) -> Option<f64> {
        self.largest(
            |reading| reading.relative_uncertainty,
            |left_out| left_out.relative_uncertainty,
        )
    }

    /// The largest step of the counter that the meter reports, in joules. It is the same in readings that were left out.
    pub(super) fn resolution_joules(&self) -> Option<f64> {
        self.largest(|reading| reading.resolution_joules, |_| None)
    }

    fn largest(
        &self,
        value: impl Fn(&Reading) -> Option<f64>,
        of_left_out: impl Fn(&LeftOut) -> Option<f64>,
    ) -> Option<f64> {
        let of_left_out = |reading: &Reading| of_left_out(reading.left_out.as_deref()?);
        self.readings
            .iter()
            .flat_map(|reading| [value(reading), of_left_out(reading)])
            .flatten()
            .reduce(f64::max)
    }

    /// Whether a pod's counters do not cover the whole window: the pod is missing from a reading in or around
    /// the window, or a counter falls.
    pub(super) fn lost_count_of(&self, window: Window, uid: &str) -> bool {
        self.states_of(window, uid)
            .is_none_or(|states| states.iter().any(Option::is_none) || falls(&states))
    }

    /// Whether a pod's counter falls in or around the window.
    pub(super) fn count_falls(&self, window: Window, uid: &str) -> bool {
        self.states_of(window, uid)
            .is_some_and(|states| falls(&states))
    }

    /// The pod in the readings in and around a window. `None` if the readings do not cover it.
    fn states_of(&self, window: Window, uid: &str) -> Option<Vec<Option<&PodReading>>> {
        let (first, _) = self.around(window.start_unix_seconds)?;
        let (_, last) = self.around(window.end_unix_seconds)?;
        let (first, last) = (first.at_unix_seconds(), last.at_unix_seconds());
        let within = |r: &&&Reading| (first..=last).contains(&r.at_unix_seconds());
        let readings = self.readings.iter().filter(within);
        Some(readings.map(|r| r.pods.get(uid)).collect())
    }

    /// The largest sum of these pods' working sets in any reading inside a window, in bytes. `None` if it is not known of
    /// readings that were left out.
    pub(super) fn peak_working_set_bytes(
        &self,
        window: Window,
        pods: &BTreeSet<String>,
    ) -> Option<f64> {
        let left_out = self.working_sets_left_out(window, pods)?;
        let peaks = left_out.iter().filter_map(|(_, sets)| sets.peak_bytes);
        self.working_sets(window, pods)
            .map(|(_, bytes)| bytes)
            .chain(peaks)
            .max_by(f64::total_cmp)
    }

    /// The slope of the sum of these pods' working sets inside a window by least squares, in bytes per second.
    pub(super) fn working_set_growth_bytes_per_second(
        &self,
        window: Window,
        pods: &BTreeSet<String>,
    ) -> Option<f64> {
        let points: Vec<(f64, f64)> = self.working_sets(window, pods).collect();
        let left_out = self.working_sets_left_out(window, pods)?;
        let (mut count, mut times, mut sum) = (points.len() as f64, 0.0, 0.0);
        for (at, bytes) in &points {
            times += at;
            sum += bytes;
        }
        for (since, sets) in &left_out {
            count += sets.count;
            times += sets.count * since + sets.seconds;
            sum += sets.bytes;
        }
        let (middle, level) = (times / count, sum / count);
        let (mut together, mut spread) = (0.0, 0.0);
        for (at, bytes) in &points {
            together += (at - middle) * (bytes - level);
            spread += (at - middle).powi(2);
        }
        for (since, sets) in &left_out {
            let off = since - middle;
            together +=
                off * sets.bytes + sets.byte_seconds - level * (sets.count * off + sets.seconds);
            spread += sets.count * off.powi(2) + 2.0 * off * sets.seconds + sets.square_seconds;
        }
        (spread > 0.0).then(|| together / spread)
    }

    /// The time of each reading within a window, and the sum of these pods' working sets, in bytes. Readings
    /// that lack one of the pods are left out.
    fn working_sets(
        &self,
        window: Window,
        pods: &BTreeSet<String>,
    ) -> impl Iterator<Item = (f64, f64)> {
        let inside = window.start_unix_seconds..=window.end_unix_seconds;
        self.readings
            .iter()
            .filter(move |reading| !pods.is_empty() && inside.contains(&reading.at_unix_seconds()))
            .filter_map(|reading| {
                Some((
                    reading.at_unix_seconds(),
                    reading.pods.working_set_bytes(pods)?,
                ))
            })
    }

    /// As [`Series::working_sets`], for the readings that were left out. The time is the begin of each summary. `None` if
    /// a summary does not know these pods.
    fn working_sets_left_out(
        &self,
        window: Window,
        pods: &BTreeSet<String>,
    ) -> Option<Vec<(f64, &'a WorkingSets)>> {
        self.left_out(window)
            .filter(|_| !pods.is_empty())
            .map(|(before, left_out)| {
                Some((before.at_unix_seconds(), left_out.working_sets_of(pods)?))
            })
            .collect()
    }

    /// The longest time between two readings, in seconds.
    pub(super) fn largest_gap_seconds(&self) -> f64 {
        self.gaps()
            .into_iter()
            .max_by(f64::total_cmp)
            .unwrap_or_default()
    }

    /// The meter's own interval, else the median time between readings, in seconds.
    pub(super) fn interval_seconds(&self) -> f64 {
        self.last
            .interval_seconds
            .or_else(|| median(self.gaps().into_iter()))
            .unwrap_or_default()
    }

    /// The largest error of a reading's time, in seconds. Without the meter's own timestamps the counters may
    /// belong to any time between two scrapes: half of the longest time between two scrapes, in either
    /// direction.
    pub(super) fn timestamp_uncertainty_seconds(&self) -> f64 {
        if self
            .readings
            .iter()
            .all(|reading| reading.meter_unix_seconds.is_some())
        {
            0.0
        } else {
            self.largest_gap_seconds() / 2.0
        }
    }

    /// How late the counter may be at a time, in seconds; 0 with the meter's own timestamps. A reading
    /// without a timestamp was taken after the previous scrape, which showed another reading, and not after
    /// its own scrape. It is therefore late by at most the time between these two scrapes. Half of that is
    /// returned, for either direction. The two readings around the time are weighted by their distance. Their
    /// delays may be correlated, so the delays add up.
    pub(super) fn lateness_seconds(&self, at_unix_seconds: f64) -> f64 {
        let Some((earlier, later)) = self.around(at_unix_seconds) else {
            return self.timestamp_uncertainty_seconds();
        };
        let step = later.at_unix_seconds() - earlier.at_unix_seconds();
        let share = if step > 0.0 {
            (at_unix_seconds - earlier.at_unix_seconds()) / step
        } else {
            0.0
        };
        (1.0 - share) * self.late_by(earlier) + share * self.late_by(later)
    }

    /// Half of the time since the scrape before a reading. For the first reading: half of the longest time
    /// between two.
    fn late_by(&self, reading: &Reading) -> f64 {
        if reading.meter_unix_seconds.is_some() {
            return 0.0;
        }
        let at = reading.at_unix_seconds();
        let before = self
            .scrapes
            .partition_point(|scrape| scrape.at_unix_seconds() < at);
        before.checked_sub(1).map_or_else(
            || self.timestamp_uncertainty_seconds(),
            |before| (at - self.scrapes[before].at_unix_seconds()) / 2.0,
        )
    }

    /// The step of the meter's counter, in joules. If the meter reports no step, the smallest observed step counts, but only
    /// if the counter often stood still between two readings. A counter of fine steps does not stand still.
    pub(super) fn step_joules(&self) -> Option<f64> {
        let seen = || {
            // The counter rose between all readings that were left out.
            let rises = self.steps().map(|(a, b)| {
                b.left_out
                    .as_ref()
                    .map_or(b.node_joules - a.node_joules, |it| it.least_rise_joules)
            });
            let moving: Vec<f64> = rises.filter(|rise| *rise > 0.0).collect();
            let steps = self.len() - 1;
            let still = self.steps().count() - moving.len();
            let is_coarse = still as f64 > STILL_SHARE * steps as f64;
            moving.into_iter().reduce(f64::min).filter(|_| is_coarse)
        };
        let reported = self.resolution_joules();
        reported.or_else(seen)
    }

    fn gaps(&self) -> Vec<f64> {
        self.steps().map(|(a, b)| gap_seconds(a, b)).collect()
    }
}

/// The longest time without a reading between two readings in a row: its begin and its end, in Unix seconds.
pub(super) fn gap_unix_seconds(earlier: &Reading, later: &Reading) -> [f64; 2] {
    later.left_out.as_ref().map_or_else(
        || [earlier.at_unix_seconds(), later.at_unix_seconds()],
        |left_out| left_out.largest_gap_unix_seconds,
    )
}

/// The longest time without a reading between two readings in a row, in seconds.
pub(super) fn gap_seconds(earlier: &Reading, later: &Reading) -> f64 {
    let [from, to] = gap_unix_seconds(earlier, later);
    to - from
}

fn mark(reading: &Reading) -> ReadingMark {
    ReadingMark {
        at_unix_seconds: reading.at_unix_seconds(),
        node_joules: reading.node_joules,
    }
}

/// Whether a counter of the pod is smaller than in the reading before that has the pod.
fn falls(states: &[Option<&PodReading>]) -> bool {
    let known: Vec<&PodReading> = states.iter().copied().flatten().collect();
    let mut pairs = known.windows(2);
    pairs.any(|pair| pair[0].joules > pair[1].joules || pair[0].cpu_seconds > pair[1].cpu_seconds)
}
