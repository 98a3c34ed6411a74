//! The variation of idle power without load, from the readings of the two idle baselines.

use super::counters::Series;
use crate::energy::attempt::Window;
use crate::energy::evidence::AttemptEvidence;

/// Noise of idle power: the random error of a mean over some seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IdleNoise {
    /// Variance of a mean over one second, in square watts times seconds. Over L seconds the variance is this
    /// divided by L.
    watts2_seconds: f64,
    /// Degrees of freedom of this variance.
    pub(super) degrees_of_freedom: f64,
}

/// The largest correlation of consecutive steps that can be estimated from a few dozen steps. Slower noise
/// appears in the difference of the two baselines.
const MAX_CORRELATION: f64 = 0.8;

/// The smallest part of the single steps' noise that is assumed to remain in a mean of many steps, if the
/// meter reports no times.
const LEAST_MEMORY: f64 = 0.1;

impl IdleNoise {
    /// From the mean powers between readings in both baselines, each around its own mean. `None` if each
    /// baseline has fewer than two of them.
    ///
    /// An instrument that is read less often than the meter is scraped shows straight lines in between. Steps
    /// are therefore at least as long as the time between its readings in that baseline. If one step resembles the next
    /// (correlation r), a mean of many varies (1 + r)/(1 − r) times as much as without memory (G. V. Bayley
    /// and J. M. Hammersley, Journal of the Royal Statistical Society Supplement 8 (1946) 184), and has that
    /// many times fewer degrees of freedom.
    pub(super) fn of(evidence: &AttemptEvidence<'_>) -> Option<Self> {
        let attempt = evidence.attempt;
        // If a reading's time is uncertain, the reading may belong to the time before or after the baseline.
        let margin_seconds = evidence.series.timestamp_uncertainty_seconds();
        let baselines = [attempt.idle_before, attempt.idle_after].map(|it| {
            let certainly_inside = Window {
                start_unix_seconds: it.start_unix_seconds + margin_seconds,
                end_unix_seconds: it.end_unix_seconds - margin_seconds,
            };
            steps(&evidence.series, certainly_inside)
        });
        let (mut squares, mut products, mut seconds) = (0.0, 0.0, 0.0);
        let (mut count, mut degrees_of_freedom, mut segments) = (0.0, 0.0, 0.0);
        for steps in baselines.iter().filter(|steps| steps.len() > 1) {
            let n = steps.len() as f64;
            let mean = steps.iter().map(|step| step.watts).sum::<f64>() / n;
            let off: Vec<f64> = steps.iter().map(|step| step.watts - mean).collect();
            squares += off.iter().map(|it| it.powi(2)).sum::<f64>();
            products += off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
            seconds += steps.iter().map(|step| step.seconds).sum::<f64>();
            count += n;
            degrees_of_freedom += n - 1.0;
            segments += 1.0;
        }
        if degrees_of_freedom <= 0.0 {
            return None;
        }
        // Around a mean of n steps the estimated correlation is lower, by (1 + 3 r)/n (F. H. C. Marriott and
        // J. A. Pope, Biometrika 41 (1954) 390).
        let seen = if squares > 0.0 {
            products / squares
        } else {
            0.0
        };
        let correlation = (seen + (1.0 + 3.0 * seen) * segments / count).min(MAX_CORRELATION);
        // If the meter reports no times, one step is too long and the next too short: a moving average. Its
        // mean varies 1 + 2 r times as much (M. S. Bartlett, Journal of the Royal Statistical Society
        // Supplement 8 (1946) 27). The error of a baseline due to the times is counted separately. Noise
        // without memory also gives a negative r by chance. Therefore r counts only as far as it exceeds its
        // standard error, 1/√n.
        let memory = if correlation >= 0.0 {
            (1.0 + correlation) / (1.0 - correlation)
        } else if evidence.series.timestamp_uncertainty_seconds() > 0.0 {
            (1.0 + 2.0 * (correlation + count.sqrt().recip()).min(0.0)).max(LEAST_MEMORY)
        } else {
            1.0
        };
        Some(Self {
            watts2_seconds: squares / degrees_of_freedom * (seconds / count) * memory,
            degrees_of_freedom: degrees_of_freedom / memory.max(1.0),
        })
    }

    /// Variance of the mean power over `seconds`, in square watts.
    pub(super) fn variance_of(&self, seconds: f64) -> f64 {
        self.watts2_seconds / seconds
    }
}

/// Mean power over one step.
struct Step {
    watts: f64,
    seconds: f64,
}

/// The steps of a window from reading to reading, none shorter than the instrument's largest age in the window. Each answer of
/// the instrument inside ends an age as long as the time since its last answer. An age outside, for example while the load
/// starts, says nothing about the window.
fn steps(series: &Series<'_>, window: Window) -> Vec<Step> {
    let inside = window.start_unix_seconds..=window.end_unix_seconds;
    let readings = series.readings().iter();
    let readings = readings.filter(|reading| inside.contains(&reading.at_unix_seconds()));
    let ages = readings
        .clone()
        .filter_map(|reading| reading.source_age_seconds);
    let least_seconds = ages.fold(0.0, f64::max);
    let mut steps = Vec::new();
    let mut from = None;
    for reading in readings {
        let at = reading.at_unix_seconds();
        let Some((since, joules)) = from else {
            from = Some((at, reading.node_joules));
            continue;
        };
        let seconds = at - since;
        if seconds > 0.0 && seconds >= least_seconds {
            let watts = (reading.node_joules - joules) / seconds;
            steps.push(Step { watts, seconds });
            from = Some((at, reading.node_joules));
        }
    }
    steps
}
