//! The times of the meter's readings and of the scrapes. They do not depend on power.

use crate::{
    MILLISECOND, SECOND, Time,
    cases::{Case, Edges, Meter},
};

/// The operator's time between two scrapes.
const SCRAPE_INTERVAL: Time = SECOND / 2;
/// Age at which a scrape makes Kepler take a new snapshot (its default).
const KEPLER_STALENESS: Time = SECOND / 2;
/// Number of trials in a script.
pub(crate) const TRIALS: usize = 4;

/// Pseudo-random numbers from a seed: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A time of at least 0 and below `below`.
    pub(crate) fn time(&mut self, below: Time) -> Time {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let below = u64::try_from(below).unwrap();
        Time::try_from((bits ^ (bits >> 31)) % below).unwrap()
    }
}

/// One scrape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scrape {
    /// Time of the reading that the scrape shows.
    pub(crate) shows: Time,
    /// Time at which the answer was complete.
    pub(crate) arrived: Time,
}

/// A run's readings and scrapes.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Times of the meter's readings, in order.
    pub(crate) readings: Vec<Time>,
    pub(crate) scrapes: Vec<Scrape>,
}

impl Schedule {
    pub(crate) fn of(case: &Case) -> Self {
        let mut chance = Chance::new(case.seed());
        let interval = case.interval_milliseconds * MILLISECOND;
        let length = longest(case);
        // Readings come a little late, like those of a real timer. The meter takes the first one at its start.
        let mut due = (0..length / interval)
            .map(|tick| tick * interval + chance.time(3 * MILLISECOND))
            .collect::<Vec<_>>()
            .into_iter()
            .peekable();
        // Tight: a scrape comes 40 to 60 ms after a reading, so with an interval of 0.1 s a reading is known exactly
        // every 0.5 s. Wide: the phase is random.
        let (phase, slowest) = match case.edges {
            Edges::Tight => (40 * MILLISECOND, 18 * MILLISECOND),
            Edges::Wide => (chance.time(SCRAPE_INTERVAL), 60 * MILLISECOND),
        };
        let (mut readings, mut scrapes) = (Vec::new(), Vec::new());
        for tick in 0..(length / SCRAPE_INTERVAL) - 1 {
            let answered = tick * SCRAPE_INTERVAL + phase + chance.time(slowest) + 2 * MILLISECOND;
            while let Some(at) = due.next_if(|at| *at <= answered) {
                readings.push(at);
            }
            let Some(latest) = readings.last().copied() else {
                continue;
            };
            let is_old = answered - latest > KEPLER_STALENESS;
            let shows = if case.meter == Meter::Kepler && is_old {
                readings.push(answered);
                answered
            } else {
                latest
            };
            let arrived = answered + MILLISECOND + chance.time(slowest);
            scrapes.push(Scrape { shows, arrived });
        }
        Self { readings, scrapes }
    }

    /// The last scraped reading at or before a time.
    pub(crate) fn before(&self, at: Time) -> Time {
        let after = self.scrapes.partition_point(|scrape| scrape.shows <= at);
        self.scrapes[after - 1].shows
    }

    /// The first scraped reading at or after a time.
    pub(crate) fn after(&self, at: Time) -> Time {
        let after = self.scrapes.partition_point(|scrape| scrape.shows < at);
        self.scrapes[after].shows
    }
}

/// A time that is longer than the case's script.
fn longest(case: &Case) -> Time {
    let trial = if case.interval_milliseconds > 1000 {
        190
    } else {
        100
    };
    Time::try_from(TRIALS).unwrap() * trial * SECOND
}
