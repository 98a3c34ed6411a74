//! What is told of a candidate's executions, beside what is told of requests.

use frugality_measure::{batch::Spread, statistics::geometric_mean};

use crate::{
    api::{BatchResult, Figure, FrugalityTrialStatus, ScoreResult},
    plan::verdict::evidence::{Evidence, Measure},
};

impl Evidence<'_> {
    /// Absent without a batch, and where no execution succeeded.
    pub(super) fn batch(&self, candidate: &str) -> Option<BatchResult> {
        let trials = self.trials(candidate);
        let told = || trials.iter().filter_map(|trial| trial.batch.as_ref());
        let executions: u64 = told().map(|it| it.executions.count).sum();
        let score = Spread::over(told().filter_map(|it| it.score));
        let work = Spread::over(told().filter_map(|it| it.work));
        let units = &self.settings.units;
        (executions > 0).then(|| BatchResult {
            executions: i64::try_from(executions).unwrap_or(i64::MAX),
            score: score
                .zip(units.score.clone())
                .map(|(score, unit)| ScoreResult {
                    unit,
                    mean: score.mean,
                    standard_deviation: score.standard_deviation(),
                    least: score.least,
                    most: score.most,
                }),
            work_per_execution: work.map(|work| work.mean),
            work_unit: units.work.clone(),
            joules_per_execution: self.joules_per_execution(&trials),
        })
    }

    /// Of the joules that decide; the interval is that of the trials' spread, and what this does not show, which as a
    /// share is the same for an execution as for a unit of its work.
    fn joules_per_execution(&self, trials: &[&FrugalityTrialStatus]) -> Option<Figure> {
        let measure = Measure::Joules(self.deciding);
        let of_trial = |trial: &&FrugalityTrialStatus| {
            let requests = trial.requests.as_ref()?;
            let of_unit = self.value(trial, measure)?;
            Some(of_unit * requests.units() / requests.successes as f64)
        };
        let each: Option<Vec<f64>> = trials.iter().map(of_trial).collect();
        let estimate = geometric_mean(&each?, 1.0 - self.settings.level)?;
        self.expanded(&estimate, trials, measure)
    }
}
