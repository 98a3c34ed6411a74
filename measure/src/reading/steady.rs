//! Leaves out readings that a long window does without.
//!
//! Twelve hours have 86,400 readings. Figures need the readings around the ends of a window. Checks need facts about the time
//! in between, such as the longest gap, the largest rise and the variance of power. So a stretch of steady load
//! keeps one reading of many, and a summary of the others. A reading with anything unusual is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LeftOut, Reading};

/// Parts of a stretch: the readings that are kept of it are at least this many.
const PARTS: f64 = 200.0;
/// The longest time between two readings that are kept, in seconds.
const LONGEST_PART_SECONDS: f64 = 40.0;
/// With shorter parts, the readings of a stretch fit into memory as they are. No window below a quarter of an hour
/// loses a reading.
const SHORTEST_PART_SECONDS: f64 = 5.0;

/// A stretch of steady load. No window of the attempt begins or ends in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Its begin, in Unix seconds of the readings' clock.
    pub from_unix_seconds: f64,
    /// Its end so far, in Unix seconds of the readings' clock.
    pub to_unix_seconds: f64,
    /// UIDs of the pods whose memory is needed as a sum: the candidate's pods, the database's pods, the pods of each server.
    pub groups: Vec<Arc<BTreeSet<String>>>,
}

impl Steady {
    /// Leaves out readings of the stretch, and adds a summary of them to the reading after them. The readings are in the
    /// order of scraping.
    ///
    /// The times between the readings that are kept grow with the stretch, up to 40 s.
    pub fn thin(&self, readings: &mut Vec<Reading>) {
        let seconds = self.to_unix_seconds - self.from_unix_seconds;
        let part_seconds = (seconds / PARTS).min(LONGEST_PART_SECONDS);
        if part_seconds < SHORTEST_PART_SECONDS {
            return;
        }
        let mut kept: Vec<Reading> = Vec::with_capacity(readings.len());
        for mut reading in readings.drain(..) {
            if kept.last().is_some_and(|last| self.repeats(last, &reading)) {
                continue;
            }
            if let [.., before, last] = kept.as_slice()
                && self.contains(before)
                && self.contains(&reading)
                && reading.at_unix_seconds() - before.at_unix_seconds() <= part_seconds
                && is_dispensable(before, last, &reading)
                && let Some(last) = kept.pop()
                && let Some(before) = kept.last()
            {
                reading.left_out = Some(self.summary(before, last, &reading));
            }
            kept.push(reading);
        }
        kept.shrink_to_fit();
        *readings = kept;
    }

    /// Whether a later scrape of the stretch shows the same reading, because the meter reads its source less often. A meter
    /// that stands still leaves a gap, which is void too.
    fn repeats(&self, last: &Reading, reading: &Reading) -> bool {
        self.contains(last)
            && self.contains(reading)
            && last.meter_unix_seconds.is_some()
            && last.meter_unix_seconds == reading.meter_unix_seconds
            && last.meter == reading.meter
            && last.node_joules.total_cmp(&reading.node_joules).is_eq()
    }

    fn contains(&self, reading: &Reading) -> bool {
        (self.from_unix_seconds..=self.to_unix_seconds).contains(&reading.at_unix_seconds())
    }

    /// The summary of the readings between `before` and `after`. The last of these readings is `last`.
    fn summary(&self, before: &Reading, mut last: Reading, after: &Reading) -> Box<LeftOut> {
        let mut summary = last.left_out.take().unwrap_or_else(|| {
            let mut summary = Box::new(LeftOut::of(&self.groups));
            summary.add_step(before, &last);
            summary
        });
        let since_seconds = last.at_unix_seconds() - before.at_unix_seconds();
        summary.add_reading(&last, since_seconds);
        summary.add_step(&last, after);
        summary
    }
}

/// Whether a reading between two others shows nothing that a check looks for: one meter and one node, the same pods,
/// and counters that rise.
fn is_dispensable(before: &Reading, reading: &Reading, after: &Reading) -> bool {
    after.left_out.is_none() && goes_on(before, reading) && goes_on(reading, after)
}

fn goes_on(earlier: &Reading, later: &Reading) -> bool {
    let rises = |of: fn(&Reading) -> Option<f64>| never_falls(of(earlier), of(later));
    let throttled = || {
        let earlier = earlier.throttled_seconds.values();
        earlier.zip(later.throttled_seconds.values())
    };
    let pods = || earlier.pods.iter().zip(&later.pods);
    earlier.meter_unix_seconds.is_some()
        && earlier.interval_seconds.is_some()
        && earlier.meter_unix_seconds < later.meter_unix_seconds
        && earlier.scraped_at_unix_seconds < later.scraped_at_unix_seconds
        && earlier.node_joules < later.node_joules
        && earlier.meter == later.meter
        && earlier.zone == later.zone
        && earlier.platform == later.platform
        && earlier.meter_start_unix_seconds == later.meter_start_unix_seconds
        && earlier.interval_seconds == later.interval_seconds
        && earlier.max_watts == later.max_watts
        && earlier.resolution_joules == later.resolution_joules
        && earlier
            .throttled_seconds
            .keys()
            .eq(later.throttled_seconds.keys())
        && throttled().all(|(from, to)| from <= to)
        && rises(|it| it.active_joules)
        && rises(|it| it.idle_joules)
        && rises(|it| it.node_cpu_seconds)
        && rises(|it| it.processors_busy_seconds)
        && rises(|it| it.processors_interrupt_seconds)
        && rises(|it| it.processors_stolen_seconds)
        && rises(|it| it.saturated_readings)
        && earlier.pods.len() == later.pods.len()
        && pods().all(|(from, to)| {
            from.uid() == to.uid()
                && never_falls(from.joules, to.joules)
                && never_falls(from.cpu_seconds, to.cpu_seconds)
                && from.working_set_bytes.is_some() == to.working_set_bytes.is_some()
        })
}

/// Whether both values are unknown, or both are known and the later is not less.
fn never_falls(from: Option<f64>, to: Option<f64>) -> bool {
    match (from, to) {
        (Some(from), Some(to)) => from <= to,
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
