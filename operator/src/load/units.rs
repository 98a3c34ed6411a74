//! Names of the units that figures are per.

use crate::{api::CandidateResult, text::shortened};

/// The unit of a load that repeats one request.
pub(super) const REQUEST: &str = "request";
/// The unit of a load that runs a script.
pub(super) const CYCLE: &str = "cycle";
/// The unit of a load that executes a program.
const EXECUTION: &str = "execution";

/// Most characters of a unit in a cell.
const MOST_UNIT_CHARS: usize = 8;

/// Names of the units, in the singular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The unit of joules and rates: `request`, `cycle`, `execution`, or the unit of a batch's work.
    pub one: String,
    /// The unit of duration and of success: `request`, `cycle` or `execution`.
    pub whole: &'static str,
    /// The unit of a score; `None` if the batch has no score.
    pub score: Option<String>,
    /// The unit of work; `None` if the batch counts no work.
    pub work: Option<String>,
}

impl Units {
    /// The units of a load without score and work.
    pub(super) fn plain(whole: &'static str) -> Self {
        Self {
            one: whole.to_owned(),
            whole,
            score: None,
            work: None,
        }
    }

    /// The units of a batch.
    pub(super) fn of_batch(score: Option<String>, work: Option<String>) -> Self {
        Self {
            one: work.clone().unwrap_or_else(|| EXECUTION.to_owned()),
            whole: EXECUTION,
            score,
            work,
        }
    }

    /// The units of the figures in a status. The results decide, not the spec, because the spec may have been edited
    /// since.
    #[must_use]
    pub fn of_results(results: &[CandidateResult]) -> Self {
        let batches = || results.iter().filter_map(|it| it.batch.as_ref());
        if batches().next().is_some() {
            Self::of_batch(
                batches().find_map(|it| Some(it.score.as_ref()?.unit.clone())),
                batches().find_map(|it| it.work_unit.clone()),
            )
        } else if results.iter().any(|it| it.cycles.is_some()) {
            Self::plain(CYCLE)
        } else {
            Self::plain(REQUEST)
        }
    }

    /// Whether figures are per request. The headings of `kubectl get` then name the unit.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        self.whole == REQUEST
    }

    /// An amount per counted unit, for a cell: with the unit, unless the heading names it.
    #[must_use]
    pub fn each(&self, amount: String) -> String {
        self.with_unit(amount, "/", "")
    }

    /// A number of counted units per second, for a cell.
    #[must_use]
    pub fn rate(&self, amount: String) -> String {
        self.with_unit(amount, " ", "s/s")
    }

    /// A time, for a cell: with its unit if joules and rates are per another unit.
    #[must_use]
    pub fn each_whole(&self, time: String) -> String {
        if self.one == self.whole {
            return time;
        }
        format!("{time}/{}", brief(self.whole))
    }

    fn with_unit(&self, amount: String, before: &str, after: &str) -> String {
        if self.is_of_requests() {
            return amount;
        }
        format!("{amount}{before}{}{after}", brief(&self.one))
    }
}

/// A unit that fits a cell.
fn brief(unit: &str) -> String {
    match unit {
        EXECUTION => "exec".to_owned(),
        unit => shortened(unit, MOST_UNIT_CHARS),
    }
}
