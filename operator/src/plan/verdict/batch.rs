//! Figures of a candidate's executions, in addition to the figures of requests.

use frugality_measure::batch::Spread;

use crate::{
    api::{BatchResult, Figure, ScoreResult},
    plan::verdict::{evidence::Evidence, measure::Measure},
};

impl Evidence<'_> {
    /// The figures of executions. `None` without a batch, or if no execution succeeded.
    pub(super) fn batch(&self, candidate: &str) -> Option<BatchResult> {
        let trials = self.trials(candidate);
        let results = || trials.iter().filter_map(|trial| trial.batch.as_ref());
        let executions: u64 = results().map(|it| it.executions.count).sum();
        let score = Spread::over(results().filter_map(|it| it.score));
        let work = Spread::over(results().filter_map(|it| it.work));
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
            joules_per_execution: self.joules_per_execution(candidate),
        })
    }

    /// Deciding joules per execution. The relative uncertainty that the trials' spread does not show is the same for an execution
    /// as for a unit of work.
    fn joules_per_execution(&self, candidate: &str) -> Option<Figure> {
        let measure = Measure::Joules(self.deciding);
        if self.is_of_injector(candidate, measure) {
            return None;
        }
        let estimate = self.mean(candidate, self.settings.level, |trial| {
            let requests = trial.requests.as_ref()?;
            let of_unit = self.value(trial, measure)?;
            Some(of_unit * requests.units() / requests.successes as f64)
        })?;
        self.expanded(&estimate, &self.trials(candidate), measure)
    }
}
