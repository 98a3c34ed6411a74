//! When the meter is read and when it is scraped. Nothing here depends on power.

use crate::{
    MILLISECOND, SECOND, Time,
    cases::{Case, Edges, Meter},
};

/// Time between two scrapes, as the operator scrapes.
const SCRAPE_INTERVAL: Time = SECOND / 2;
/// Age at which a scrape makes Kepler take a new snapshot (its default).
const KEPLER_STALENESS: Time = SECOND / 2;
/// After this many trials the script ends.
pub(crate) const TRIALS: usize = 4;

/// Pseudo-random numbers of a seed: splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to `below`, that not included.
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
    /// When the reading that it shows was taken.
    pub(crate) shows: Time,
    /// When its answer was whole.
    pub(crate) arrived: Time,
}

/// A run's readings and scrapes.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// When the meter was read, in order.
    pub(crate) readings: Vec<Time>,
    pub(crate) scrapes: Vec<Scrape>,
}

impl Schedule {
    pub(crate) fn of(case: &Case) -> Self {
        let mut chance = Chance::new(case.seed());
        let interval = case.interval_milliseconds * MILLISECOND;
        let length = longest(case);
        // Readings of a timer come a little late. The first one is taken when the meter starts.
        let mut due = (0..length / interval)
            .map(|tick| tick * interval + chance.time(3 * MILLISECOND))
            .collect::<Vec<_>>()
            .into_iter()
            .peekable();
        // Tight: a scrape falls 40 to 60 ms behind a reading, so that readings of 0.1 s are known
        // every 0.5 s on the dot. Wide: it falls wherever it falls.
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

    /// The last reading that is both scraped and not after a time.
    pub(crate) fn before(&self, at: Time) -> Time {
        let after = self.scrapes.partition_point(|scrape| scrape.shows <= at);
        self.scrapes[after - 1].shows
    }

    /// The first reading that is both scraped and not before a time.
    pub(crate) fn after(&self, at: Time) -> Time {
        let after = self.scrapes.partition_point(|scrape| scrape.shows < at);
        self.scrapes[after].shows
    }
}

/// More than any script of the case lasts.
fn longest(case: &Case) -> Time {
    let trial = if case.interval_milliseconds > 1000 {
        190
    } else {
        100
    };
    Time::try_from(TRIALS).unwrap() * trial * SECOND
}
