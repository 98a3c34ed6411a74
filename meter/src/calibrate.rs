//! Fits the two numbers of a board's model to an attached instrument.
//!
//! The user alternately loads the node and lets it idle. The meter records the instrument's power and the CPU
//! time in use. Ordinary least squares gives the line P = idle watts + watts per CPU × CPUs in use (Draper
//! and Smith, Applied Regression Analysis, ch. 1). The uncertainty of the two numbers on this board follows
//! from the fit, the scatter about the line and the instrument's own uncertainty.

use std::fmt::Write as _;
use std::time::Duration;

use crate::cgroup::CgroupError;
use crate::feed::Feed;
use frugality_measure::attribution::{Observation, seconds};
use frugality_measure::model::ModelUncertainty;

/// Least duration of one point: a plug's own delay and the kernel's ticks then do not matter.
const POINT: Duration = Duration::from_secs(5);
/// Least number of points for a fit.
const LEAST_POINTS: usize = 12;
/// Least range of CPUs in use: a smaller range shows no slope.
const LEAST_RANGE_CPUS: f64 = 0.5;

/// CPUs in use and power over one span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CalibrationPoint {
    /// CPU time used per time.
    pub(crate) cpus: f64,
    /// Mean power, in watts.
    pub(crate) watts: f64,
}

/// Why there is no fit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrateError {
    /// Energy was lost.
    #[error("the measurement was interrupted: {0}")]
    Broken(String),
    /// The meter can't read CPU time.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// There is only a model, and a model cannot calibrate itself.
    #[error("calibrate needs an instrument: name one with --power-config")]
    NoInstrument,
    /// The instrument measures so seldom that a point's power may be of another point.
    #[error(
        "this source measures every {:.0} s, and a point of the fit covers {} s: calibrate with a source that \
         measures every {} s or more often",
        .0.as_secs_f64(),
        POINT.as_secs(),
        POINT.as_secs()
    )]
    Seldom(Duration),
    /// The measurement was too short.
    #[error(
        "only {0} points of 5 s, but the fit needs {LEAST_POINTS}: check that the instrument answers, or measure for longer"
    )]
    TooFew(usize),
    /// The node was not loaded.
    #[error(
        "between {least:.2} and {most:.2} CPUs were in use, a range below {LEAST_RANGE_CPUS}: alternately let the \
         node idle and load all of its CPUs, each for half of the time"
    )]
    NoRange {
        /// Least CPUs in use.
        least: f64,
        /// Most CPUs in use.
        most: f64,
    },
}

/// The instrument's own relative standard uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InstrumentUncertainty {
    /// The share that grows with power.
    pub(crate) share: f64,
    /// The part that does not grow with power, in watts.
    pub(crate) fixed_watts: f64,
}

/// The line, and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fit {
    /// Idle power, in watts.
    pub(crate) idle_watts: f64,
    /// Power that one busy CPU adds, in watts.
    pub(crate) watts_per_cpu: f64,
    /// Standard uncertainty of `idle_watts`, in watts.
    pub(crate) idle_uncertainty: f64,
    /// Standard uncertainty of `watts_per_cpu`, in watts.
    pub(crate) slope_uncertainty: f64,
    /// Standard deviation of the points about the line, in watts.
    pub(crate) residual_watts: f64,
    /// Difference between the most and the least CPUs in use.
    pub(crate) range_cpus: f64,
    /// Number of points.
    pub(crate) points: usize,
}

/// Records points for `duration`.
pub(crate) async fn measure(
    mut feed: Feed,
    interval: Duration,
    duration: Duration,
) -> Result<Vec<CalibrationPoint>, CalibrateError> {
    if !feed.has_instrument() {
        return Err(CalibrateError::NoInstrument);
    }
    if let Some(refresh) = feed.supply().stated_refresh().filter(|it| *it > POINT) {
        return Err(CalibrateError::Seldom(refresh));
    }
    let mut ticks = tokio::time::interval(interval);
    let mut points = Points::default();
    while feed.now() < duration + feed.supply().lag() {
        ticks.tick().await;
        feed.read()?;
        if feed.is_broken() {
            return Err(CalibrateError::Broken(feed.trouble()));
        }
        while let Some(settled) = feed.next() {
            points.add(&settled.observation, settled.joules);
        }
    }
    Ok(points.done)
}

/// The finished points, and where the next point began.
#[derive(Debug, Default)]
struct Points {
    done: Vec<CalibrationPoint>,
    began: Option<(Duration, u64, f64)>,
}

impl Points {
    fn add(&mut self, observation: &Observation, joules: f64) {
        let (at, cpu) = (observation.elapsed, observation.node_cpu_nanoseconds);
        let Some((began, began_cpu, began_joules)) = self.began else {
            self.began = Some((at, cpu, joules));
            return;
        };
        let elapsed = at.saturating_sub(began);
        if elapsed < POINT {
            return;
        }
        let elapsed = elapsed.as_secs_f64();
        self.done.push(CalibrationPoint {
            cpus: seconds(cpu.saturating_sub(began_cpu)) / elapsed,
            watts: (joules - began_joules) / elapsed,
        });
        self.began = Some((at, cpu, joules));
    }
}

/// The least-squares line.
pub(crate) fn fit(points: &[CalibrationPoint]) -> Result<Fit, CalibrateError> {
    let count = points.len();
    if count < LEAST_POINTS {
        return Err(CalibrateError::TooFew(count));
    }
    let least = points
        .iter()
        .map(|it| it.cpus)
        .fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|it| it.cpus).fold(0.0, f64::max);
    if most - least < LEAST_RANGE_CPUS {
        return Err(CalibrateError::NoRange { least, most });
    }
    let n = count as f64;
    let mean_cpus = points.iter().map(|it| it.cpus).sum::<f64>() / n;
    let mean_watts = points.iter().map(|it| it.watts).sum::<f64>() / n;
    let sxx: f64 = points.iter().map(|it| (it.cpus - mean_cpus).powi(2)).sum();
    let sxy: f64 = points
        .iter()
        .map(|it| (it.cpus - mean_cpus) * (it.watts - mean_watts))
        .sum();
    let watts_per_cpu = sxy / sxx;
    let idle_watts = mean_watts - watts_per_cpu * mean_cpus;
    let squares: f64 = points
        .iter()
        .map(|it| (it.watts - idle_watts - watts_per_cpu * it.cpus).powi(2))
        .sum();
    // The fit has two parameters.
    let residual_watts = (squares / (n - 2.0)).sqrt();
    Ok(Fit {
        idle_watts,
        watts_per_cpu,
        idle_uncertainty: residual_watts * (1.0 / n + mean_cpus.powi(2) / sxx).sqrt(),
        slope_uncertainty: residual_watts / sxx.sqrt(),
        residual_watts,
        range_cpus: most - least,
        points: count,
    })
}

impl Fit {
    /// Relative standard uncertainties of the two watts on this board. Independent parts: the fit itself, the scatter about
    /// the line, because power is not exactly linear, and the instrument's own uncertainty. Parts in watts count relative to
    /// the watts that they may falsify: the idle watts, or the rise over the range that the slope describes. The
    /// instrument's fixed part is an offset, which changes no slope.
    fn uncertainty(&self, instrument: InstrumentUncertainty) -> ModelUncertainty {
        let of = |share: f64, watts: f64, fit: f64| share.hypot(watts).hypot(fit);
        let idle_watts = self.residual_watts.hypot(instrument.fixed_watts) / self.idle_watts;
        let rise_watts = self.watts_per_cpu * self.range_cpus;
        ModelUncertainty {
            idle_watts: of(
                instrument.share,
                idle_watts,
                self.idle_uncertainty / self.idle_watts,
            ),
            watts_per_cpu: of(
                instrument.share,
                self.residual_watts / rise_watts,
                self.slope_uncertainty / self.watts_per_cpu,
            ),
        }
    }

    /// The fit for people, with the chart's values.
    pub(crate) fn report(&self, instrument: Option<InstrumentUncertainty>) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "# {} points: {:.3} ± {:.3} W idle, {:.3} ± {:.3} W per CPU, {:.3} W about the line (standard uncertainties)",
            self.points,
            self.idle_watts,
            self.idle_uncertainty,
            self.watts_per_cpu,
            self.slope_uncertainty,
            self.residual_watts,
        );
        let _ = write!(
            text,
            "meter:\n  power:\n    default:\n      source: {{type: model}}\n      board: generic\n      \
             idleWatts: {:.4}\n      wattsPerCpu: {:.4}\n",
            self.idle_watts, self.watts_per_cpu,
        );
        match instrument.map(|instrument| self.uncertainty(instrument)) {
            Some(known) if known.largest() <= 1.0 => {
                let _ = write!(
                    text,
                    "      idleWattsRelativeUncertainty: {:.4}\n      wattsPerCpuRelativeUncertainty: {:.4}\n",
                    known.idle_watts, known.watts_per_cpu
                );
            }
            Some(_) => text.push_str(
                "      # the fit is too uncertain to state an accuracy: measure for longer, idle and loaded\n",
            ),
            None => text.push_str(
                "      # the accuracy of these watts is unknown, because the instrument's accuracy is unknown\n",
            ),
        }
        text
    }
}

#[cfg(test)]
mod tests;
