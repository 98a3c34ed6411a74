//! Load curves of a server whose power over the rate is known: how often the intervals of its figures contain the true
//! values, and how far the means are from them.

use std::cell::Cell;

use frugality_measure::load_curve::{LoadCurve, LoadLevel, proportionality};
use frugality_operator::api::{Figure, FrugalityTrialStatus, LoadCurveResult};
use serde_json::json;

use crate::{
    Error,
    experiment::Experiment,
    parallel,
    random::Random,
    table::{Table, percent},
    trials::{measured, pattern},
};

/// Load levels of the runs.
const LEVELS: [i32; 6] = [100, 80, 60, 40, 20, 10];
/// Blocks at each level.
const BLOCKS: usize = 5;
/// True idle power, in watts.
const IDLE_WATTS: f64 = 2.0;
/// True energy of one more request, in joules.
const MARGINAL_JOULES: f64 = 0.005;
/// True highest rate, in requests per second.
const HIGHEST_RATE: f64 = 400.0;
/// Standard deviation of the logarithm of a trial's power, and of its highest rate: 1 % from trial to trial.
const TRIAL_CV: f64 = 0.01;
/// Sections of the random numbers.
const SECTION: u64 = 960;
/// The minimum share of intervals that contain the true value.
const LEAST_COVERAGE: f64 = 0.94;
/// The greatest share, for figures whose uncertainty is known without an upper bound.
const MOST_COVERAGE: f64 = 0.975;
/// Largest relative error of the mean over all runs.
const MOST_BIAS: f64 = 0.003;

/// What disturbs a run.
#[derive(Clone, Copy, Debug)]
struct Disturbance {
    name: &'static str,
    /// Change of the idle power over the run, as a share.
    drift: f64,
    /// Relative standard uncertainty of the meter's gain, which the meter states.
    gain: f64,
}

const DISTURBANCES: [Disturbance; 3] = [
    Disturbance {
        name: "noise alone",
        drift: 0.0,
        gain: 0.0,
    },
    Disturbance {
        name: "idle power drifts by 5 %",
        drift: 0.05,
        gain: 0.0,
    },
    Disturbance {
        name: "meter of 2 %",
        drift: 0.0,
        gain: 0.02,
    },
];

/// Names of the figures, with whether their coverage has an upper limit. A meter's gain cancels in the last two.
const FIGURES: [(&str, bool); 4] = [
    ("requests/joule", true),
    ("marginal joules", true),
    ("idle share", false),
    ("proportionality", false),
];

fn figures(result: &LoadCurveResult) -> Option<[Figure; 4]> {
    Some([
        result.requests_per_joule?,
        result.marginal_joules_per_request?,
        result.idle_share?,
        result.proportionality?,
    ])
}

/// The true values of the figures.
fn truth() -> Result<[f64; 4], Error> {
    let levels = LEVELS.map(|level| {
        let requests_per_second = HIGHEST_RATE * f64::from(level) / 100.0;
        LoadLevel {
            requests_per_second,
            watts: IDLE_WATTS + MARGINAL_JOULES * requests_per_second,
        }
    });
    let curve = LoadCurve::new(IDLE_WATTS, levels.to_vec())
        .ok_or_else(|| Error::Unexpected("the true curve is none".to_owned()))?;
    Ok([
        curve.requests_per_joule(),
        curve.marginal_joules_per_request(),
        curve.idle_share(),
        proportionality(curve.double_area()),
    ])
}

/// Results of one figure under one disturbance.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Share of intervals that contain the true value.
    held: f64,
    /// Relative error of the mean over the runs.
    bias: f64,
    /// Mean half width of an interval, as a share of the value.
    half_width: f64,
}

/// The results of the section.
#[derive(Clone, Debug)]
pub struct LoadCurves {
    runs: u64,
    /// By disturbance and figure.
    rows: Vec<[Row; 4]>,
}

struct Server {
    experiment: Experiment,
    pattern: FrugalityTrialStatus,
}

impl Server {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            experiment: Experiment::new(&json!({
                "candidates": [{"name": "server", "image": "example.org/server:1"}],
                "request": {"path": "/"},
                "load": {"duration": "60s", "sweep": {"levels": LEVELS}},
                "trials": {"blocks": BLOCKS},
                "deadline": "24h",
            }))?,
            pattern: pattern()?,
        })
    }

    /// The figures of one run.
    fn run(&self, disturbance: Disturbance, random: &mut Random) -> Result<[Figure; 4], Error> {
        let order = random.bits();
        let gain = (disturbance.gain * random.normal()).exp();
        let trials = ((LEVELS.len() + 1) * BLOCKS) as f64;
        let highest = Cell::new(HIGHEST_RATE);
        // The order of the points depends on the seed, so the run's own settings say the point of a block.
        let settings = frugality_operator::plan::settings::Settings {
            seed: order,
            ..self.experiment.settings().clone()
        };
        let ended = self.experiment.carry_out(order, |start| {
            let level = settings.point_of(start.block).and_then(|point| point.level);
            if level.is_none() {
                highest.set(HIGHEST_RATE * (TRIAL_CV * random.normal()).exp());
            }
            let rate = highest.get() * f64::from(level.unwrap_or(100)) / 100.0;
            let along = (f64::from(start.block) - 0.5) / trials - 0.5;
            let idle = IDLE_WATTS * (1.0 + disturbance.drift * along);
            let watts = (idle + MARGINAL_JOULES * rate) * (TRIAL_CV * random.normal()).exp();
            let idle_measured = idle * (TRIAL_CV * random.normal()).exp();
            Ok(self.trial(rate, gain * watts, gain * idle_measured, disturbance.gain))
        })?;
        let judged = ended.judgement.figures.as_ref();
        let result = judged.and_then(|it| it.sweep.first()?.load_curve.as_ref());
        result.and_then(figures).ok_or_else(|| {
            Error::Unexpected(format!(
                "a run without a load curve: {result:?} {}",
                ended.judgement.message
            ))
        })
    }

    fn trial(&self, rate: f64, watts: f64, idle_watts: f64, meter: f64) -> FrugalityTrialStatus {
        let seconds = self.pattern.window.map_or(0.0, |window| window.seconds());
        let requests = rate * seconds;
        let mut status = measured(&self.pattern, watts / rate, meter);
        if let Some(figures) = &mut status.requests {
            figures.requests_per_second = Some(rate);
            figures.shortfall = Some(0.0);
        }
        if let Some(energy) = &mut status.energy {
            energy.node_joules = watts * seconds;
            energy.idle_before_watts = idle_watts;
            energy.idle_after_watts = idle_watts;
            let net = (watts - idle_watts) * seconds;
            energy.net_joules = Some(net);
            energy.net_joules_per_request = Some(net / requests);
            energy.net_drift_joules = None;
        }
        status
    }
}

/// Carries out `runs` runs per disturbance.
pub fn measure(seed: u64, runs: u64) -> Result<LoadCurves, Error> {
    let server = Server::new()?;
    let truth = truth()?;
    let mut rows = Vec::new();
    for (section, disturbance) in (SECTION..).zip(DISTURBANCES) {
        let found = parallel::map(runs, |index| {
            let mut random = Random::new(seed, section, index);
            server.run(disturbance, &mut random)
        });
        let found: Vec<[Figure; 4]> = found.into_iter().collect::<Result<_, _>>()?;
        rows.push(std::array::from_fn(|figure| {
            row(found.iter().map(|run| run[figure]), truth[figure], runs)
        }));
    }
    Ok(LoadCurves { runs, rows })
}

fn row(figures: impl Iterator<Item = Figure>, truth: f64, runs: u64) -> Row {
    let mut row = Row::default();
    let share = 1.0 / runs as f64;
    for figure in figures {
        let (lower, upper) = figure.bounds();
        if (lower..=upper).contains(&truth) {
            row.held += share;
        }
        row.bias += share * (figure.value / truth - 1.0);
        row.half_width += share * (upper - lower) / 2.0 / truth;
    }
    row
}

impl LoadCurves {
    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, bool, Row)> + '_ {
        let rows = DISTURBANCES.iter().zip(&self.rows);
        rows.flat_map(|(disturbance, of)| {
            // With a drift, trials resemble the trials before. The verdict then widens the intervals.
            let drifts = disturbance.drift > 0.0;
            FIGURES
                .iter()
                .zip(of)
                .map(move |((figure, has_most), row)| {
                    (disturbance.name, *figure, *has_most && !drifts, *row)
                })
        })
    }

    /// The broken promises.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let chance = |share: f64| 4.0 * (share * (1.0 - share) / self.runs as f64).sqrt();
        let is_broken = |has_most: bool, row: Row| {
            row.held < LEAST_COVERAGE - chance(LEAST_COVERAGE)
                || (has_most && row.held > MOST_COVERAGE + chance(MOST_COVERAGE))
                || row.bias.abs() > MOST_BIAS
        };
        self.all()
            .filter(|(_, _, has_most, row)| is_broken(*has_most, *row))
            .map(|(disturbance, figure, _, row)| {
                format!(
                    "{figure} of a load curve, {disturbance}: {} of intervals, bias {:.2} %",
                    percent(row.held),
                    100.0 * row.bias
                )
            })
            .collect()
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(["run", "figure", "runs", "contain", "half width", "bias"]);
        for (disturbance, figure, _, row) in self.all() {
            table.row(&[
                disturbance.to_owned(),
                figure.to_owned(),
                self.runs.to_string(),
                percent(row.held),
                percent(row.half_width),
                format!("{:.2} %", 100.0 * row.bias),
            ]);
        }
        table.text()
    }
}
