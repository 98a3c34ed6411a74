//! Strata of the meters, and the random draw of a case.

use frugality_operator::plan::protocol::{settle_seconds, tail_seconds};

use crate::{
    node::{Kind, Meter, Pods, Power, Timeline},
    random::Random,
};

/// A stratum: the kind of meter, and the interval between its readings in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stratum {
    pub(super) name: &'static str,
    kind: Kind,
    interval_seconds: f64,
}

const fn stratum(name: &'static str, kind: Kind, interval_seconds: f64) -> Stratum {
    Stratum {
        name,
        kind,
        interval_seconds,
    }
}

/// From meters with ten readings per second to a meter whose interval is too long for every window here.
pub(super) const STRATA: [Stratum; 10] = [
    stratum("own times, every 0.1 s", Kind::NodeMeter, 0.1),
    stratum("own times, every 0.5 s", Kind::NodeMeter, 0.5),
    stratum("own times, every 1 s", Kind::NodeMeter, 1.0),
    stratum("own times, every 2 s", Kind::NodeMeter, 2.0),
    stratum("own times, every 4 s", Kind::NodeMeter, 4.0),
    stratum("own times, every 10 s", Kind::NodeMeter, 10.0),
    stratum("no times, every 0.1 s", Kind::Untimed, 0.1),
    stratum("no times, every 1 s", Kind::Untimed, 1.0),
    stratum("no times, every 3 s", Kind::Untimed, 3.0),
    stratum("Kepler, when scraped", Kind::Kepler, 5.0),
];

/// The operator voids an attempt with older readings (docs/measurement.md).
const MAX_AGE_SECONDS: f64 = 5.0;

/// A disturbance of an attempt, from outside the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The meter restarts under load, and its counters restart.
    Restart,
    /// Another version of the meter answers under load.
    Update,
    /// A counter wraps around: thousands of joules too much.
    Wrap,
    /// The counter loses a few joules.
    Loss,
    /// The meter shows the same counters for longer than the limit.
    StandStill,
    /// The meter does not answer for longer than the limit.
    Silence,
    /// Other pods replace the candidate's pods under load.
    Replaced,
    /// The injector's clock comparison has a large uncertainty.
    Clock,
    /// Fortio was interrupted.
    Interrupted,
    /// The meter invents its numbers.
    Fake,
}

impl Fault {
    /// The possible reason codes: the attempt must be void for one of them.
    fn reasons(self) -> &'static [&'static str] {
        match self {
            Self::Restart => &["MeterRestarted"],
            Self::Update => &["MeterChanged"],
            Self::Wrap => &["EnergyBeyondNode"],
            Self::Loss => &["CounterDecreased"],
            // A counter with large steps may stand still without a fault. The operator then reports a gap in the
            // readings.
            Self::StandStill => &["MeterStale", "ReadingsInterrupted"],
            // For a meter without times, the age of the first reading after the silence is unknown. Its next change may
            // follow at once, with the energy of a whole interval.
            Self::Silence => &["ReadingsInterrupted", "EnergyBeyondNode"],
            Self::Replaced => &["PodReplaced"],
            Self::Clock => &["ClockOffsetUnknown"],
            Self::Interrupted => &["LoadInterrupted"],
            Self::Fake => &["MeterFake"],
        }
    }
}

/// Whether a meter's interval is so long that its readings are sometimes too old, even without a fault.
fn is_too_slow(kind: Kind, interval_seconds: f64) -> bool {
    kind != Kind::Kepler && interval_seconds > MAX_AGE_SECONDS
}

/// A node, its meter and its candidate.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) meter: Meter,
    pub(super) power: Power,
    pub(super) pods: Pods,
    pub(super) window_seconds: f64,
    pub(super) idle_seconds: f64,
    /// Seconds without load between Fortio's runs.
    pub(super) gap_seconds: f64,
    /// Answers per second, errors included.
    pub(super) rate: f64,
    pub(super) error_share: f64,
    /// Standard deviation from trial to trial, in the logarithm of the rate.
    pub(super) trial_cv: f64,
    /// The meter's clock minus the injector's, in seconds.
    pub(super) clock_offset: f64,
    pub(super) clock_uncertainty: f64,
    /// Share of attempts in which a scrape hangs around the window's end.
    pub(super) hung_share: f64,
    /// Block in which the fault occurs, and the fault.
    pub(super) fault: Option<(i32, Fault)>,
}

impl Case {
    /// The interval of a meter that samples its sensor itself.
    fn own_interval_seconds(&self) -> Option<f64> {
        let meter = &self.meter;
        (meter.kind == Kind::NodeMeter).then_some(meter.interval_seconds)
    }

    /// The operator's wait between the end of the load and the idle baseline.
    pub(super) fn settle_seconds(&self) -> f64 {
        settle_seconds(self.own_interval_seconds())
    }

    /// The phases of an attempt of this case.
    pub(super) fn timeline(&self, start: f64) -> Timeline {
        Timeline::new(
            start,
            self.window_seconds,
            self.idle_seconds,
            self.gap_seconds,
            tail_seconds(self.own_interval_seconds()),
            self.settle_seconds(),
        )
    }

    pub(super) fn draw(stratum: usize, random: &mut Random) -> Self {
        let Stratum {
            kind,
            interval_seconds,
            ..
        } = STRATA[stratum];
        let windows = [20.0, 30.0, 60.0, 120.0];
        // One case in ten may have a window that is too short for its meter.
        let least = if random.chance(0.1) {
            20.0
        } else {
            20.0 * interval_seconds
        };
        let long_enough: Vec<f64> = windows.into_iter().filter(|w| *w >= least).collect();
        let window_seconds = match long_enough.len() {
            0 => 120.0,
            some => long_enough[random.below(some)],
        };
        // Stock Kepler states no accuracy.
        let relative_uncertainty = random
            .of([None, Some(0.001), Some(0.003), Some(0.01)])
            .filter(|_| kind != Kind::Kepler);
        // The gain's standard deviation is the uncertainty that the meter states, and the gain may lie outside U. If a
        // meter states no uncertainty, its joules are the true energy.
        let gain = 1.0 + relative_uncertainty.unwrap_or_default() * random.normal();
        let resolution_joules = match kind {
            Kind::Kepler => 6.1e-5,
            Kind::NodeMeter | Kind::Untimed => random.of([1e-6, 1e-6, 1e-3, 0.01, 0.02, 0.1]),
        };
        let idle_watts = random.between(1.5, 6.0);
        Self {
            meter: Meter {
                kind,
                interval_seconds,
                gain,
                relative_uncertainty,
                resolution_joules,
                begun_joules: random.between(0.0, 1e6),
            },
            power: Power {
                idle_watts,
                load_watts: idle_watts * random.between(0.1, 2.0),
                load_noise: random.of([0.0, 0.02, 0.1]),
                noise_seconds: random.of([0.1, 1.0, 5.0]),
            },
            pods: Pods::new(1 + random.below(3), random.below(2), random.below(10)),
            window_seconds: window_seconds + random.between(0.0, 0.05),
            idle_seconds: random.of([10.0, 20.0]),
            gap_seconds: random.between(0.015, 0.05),
            rate: random.between(50.0, 8000.0),
            error_share: random.of([0.0, 0.0, 0.01, 0.3]),
            trial_cv: random.of([0.0, 0.01, 0.03]),
            clock_offset: random.between(-30.0, 30.0),
            clock_uncertainty: random.between(0.0005, 0.09),
            hung_share: 0.05,
            fault: (random.chance(0.3) && !is_too_slow(kind, interval_seconds)).then(|| {
                let faults = [
                    Fault::Update,
                    Fault::Wrap,
                    Fault::Loss,
                    Fault::StandStill,
                    Fault::Silence,
                    Fault::Replaced,
                    Fault::Clock,
                    Fault::Interrupted,
                    Fault::Fake,
                    Fault::Restart,
                ];
                // Without the last two faults: Kepler reports no start time, and a fake source only by a path.
                let known = if kind == Kind::Kepler { 8 } else { 10 };
                let block = i32::try_from(1 + random.below(5)).unwrap_or(1);
                (block, faults[random.below(known)])
            }),
        }
    }

    /// The possible reason codes of an attempt that must be void. `None` if the attempt may be measured.
    pub(super) fn reasons(&self, fault: Option<Fault>) -> Option<&'static [&'static str]> {
        if is_too_slow(self.meter.kind, self.meter.interval_seconds) {
            Some(&["MeterStale"])
        } else {
            fault.map(Fault::reasons)
        }
    }

    /// The candidate's true gross joules per successful request.
    pub(super) fn true_gross(&self) -> f64 {
        (self.power.idle_watts + self.power.load_watts) / (self.rate * (1.0 - self.error_share))
    }

    /// Whether the meter's properties keep the error below 1 %. It must report the time of its counters, or read them
    /// at the scrape. It must be accurate to 0.3 %. Its counter's step must be at most a thousandth of the window's
    /// energy.
    pub(super) fn allows_one_percent(&self) -> bool {
        let joules = (self.power.idle_watts + self.power.load_watts) * self.window_seconds;
        self.meter.kind != Kind::Untimed
            && self.meter.relative_uncertainty.unwrap_or_default() <= 0.003
            && self.meter.resolution_joules <= 0.001 * joules
    }
}
