//! The combinations of factors that the bench runs.

/// The meter whose text the product reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meter {
    /// frugality-meter: it reads at its interval and reports the time of each reading.
    Own,
    /// Unmodified Kepler: no timestamps. If its snapshot is old, a scrape makes it take a new one.
    Kepler,
}

/// The places before and after a window where power changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edges {
    /// At the last known reading before the window and the first after it, less than a quarter of a second away. A
    /// window that is wrong by that much includes other power.
    Tight,
    /// Beyond the readings around the window, at any phase of the meter.
    Wide,
}

/// The unit of the requested load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A time.
    Duration,
    /// A number of requests.
    Count,
}

/// The disturbance of the run's second trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The clocks are compared with a round trip of 0.6 s.
    SlowClockExchange,
    /// The measured run has six seconds without a scrape.
    NoScrapes,
    /// The meter's counter goes back by 15 J.
    CounterBack,
    /// The measured run lasts 15 s.
    ShortRun,
}

impl Trouble {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SlowClockExchange => "slow clock exchange",
            Self::NoScrapes => "no scrapes",
            Self::CounterBack => "counter back",
            Self::ShortRun => "short run",
        }
    }
}

/// One combination of factors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) meter: Meter,
    pub(crate) edges: Edges,
    /// Time between two readings of the meter.
    pub(crate) interval_milliseconds: i64,
    /// The readings' clock minus the injector's.
    pub(crate) offset_milliseconds: i64,
    /// Share of the requests that are answered with an error.
    pub(crate) errors_percent: i64,
    /// Whether the database runs on the measured node. Otherwise its power and pod are on another node.
    pub(crate) database_on_node: bool,
    /// Whether the injector runs on the measured node.
    pub(crate) injector_on_node: bool,
    pub(crate) asked: Asked,
    pub(crate) trouble: Option<Trouble>,
}

/// The default factors of the cases in the short form.
const USUAL: Case = Case {
    meter: Meter::Own,
    edges: Edges::Tight,
    interval_milliseconds: 1000,
    offset_milliseconds: 0,
    errors_percent: 0,
    database_on_node: true,
    injector_on_node: false,
    asked: Asked::Duration,
    trouble: None,
};

impl Case {
    /// The factors in words.
    pub(crate) fn name(&self) -> String {
        let place = |on_node| if on_node { "on node" } else { "elsewhere" };
        let mut name = format!(
            "{} {} s, clocks {:+} s, {} % errors, database {}, injector {}, {}, {} edges",
            match self.meter {
                Meter::Own => "meter",
                Meter::Kepler => "kepler",
            },
            self.interval_milliseconds as f64 / 1000.0,
            self.offset_milliseconds as f64 / 1000.0,
            self.errors_percent,
            place(self.database_on_node),
            place(self.injector_on_node),
            match self.asked {
                Asked::Duration => "duration",
                Asked::Count => "count",
            },
            match self.edges {
                Edges::Tight => "tight",
                Edges::Wide => "wide",
            },
        );
        if let Some(trouble) = self.trouble {
            name = format!("{name}, {}", trouble.name());
        }
        name
    }

    /// The seed of the case's phases and latencies.
    pub(crate) fn seed(&self) -> u64 {
        // FNV-1a hash of the name.
        self.name()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
    }
}

/// A few cases that include every level of every factor, and every trouble.
pub(crate) fn short() -> Vec<Case> {
    let mut cases = vec![
        USUAL,
        Case {
            interval_milliseconds: 100,
            offset_milliseconds: 200,
            errors_percent: 30,
            asked: Asked::Count,
            ..USUAL
        },
        Case {
            offset_milliseconds: -1000,
            errors_percent: 1,
            injector_on_node: true,
            ..USUAL
        },
        Case {
            edges: Edges::Wide,
            interval_milliseconds: 100,
            offset_milliseconds: 1000,
            errors_percent: 1,
            database_on_node: false,
            ..USUAL
        },
        Case {
            edges: Edges::Wide,
            offset_milliseconds: -200,
            errors_percent: 30,
            injector_on_node: true,
            asked: Asked::Count,
            ..USUAL
        },
        Case {
            interval_milliseconds: 10_000,
            ..USUAL
        },
    ];
    for (interval_milliseconds, offset_milliseconds, asked) in [
        (100, -200, Asked::Duration),
        (1000, 1000, Asked::Count),
        (10_000, 200, Asked::Duration),
    ] {
        cases.push(Case {
            meter: Meter::Kepler,
            edges: Edges::Wide,
            interval_milliseconds,
            offset_milliseconds,
            errors_percent: 1,
            asked,
            ..USUAL
        });
    }
    cases.extend(troubled());
    cases
}

fn troubled() -> impl Iterator<Item = Case> {
    [
        Trouble::SlowClockExchange,
        Trouble::NoScrapes,
        Trouble::CounterBack,
        Trouble::ShortRun,
    ]
    .map(|trouble| Case {
        trouble: Some(trouble),
        ..USUAL
    })
    .into_iter()
}

/// All combinations of the levels of all factors. Kepler's edges are always wide, because Kepler reports no times and
/// cannot resolve a change of power at a window's edge.
pub(crate) fn whole() -> Vec<Case> {
    let mut cases: Vec<Case> = short()
        .into_iter()
        .filter(|case| case.trouble.is_some())
        .collect();
    for (meter, edges) in [
        (Meter::Own, Edges::Tight),
        (Meter::Own, Edges::Wide),
        (Meter::Kepler, Edges::Wide),
    ] {
        for interval_milliseconds in [100, 1000, 10_000] {
            for offset_milliseconds in [0, 200, -200, 1000, -1000] {
                for errors_percent in [0, 1, 30] {
                    for bits in 0..8 {
                        cases.push(Case {
                            meter,
                            edges,
                            interval_milliseconds,
                            offset_milliseconds,
                            errors_percent,
                            database_on_node: bits & 1 == 0,
                            injector_on_node: bits & 2 != 0,
                            asked: if bits & 4 == 0 {
                                Asked::Duration
                            } else {
                                Asked::Count
                            },
                            trouble: None,
                        });
                    }
                }
            }
        }
    }
    cases
}
