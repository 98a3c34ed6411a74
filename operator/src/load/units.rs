//! Names of the units that figures are per.

use crate::text::shortened;

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

    /// Whether figures are per request. The headings of `kubectl get` then name the unit.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        self.whole == "request"
    }

    /// An amount per counted unit, for a cell: with the unit, unless the heading names it.
    #[must_use]
    pub fn each(&self, amount: String) -> String {
        self.with_unit(amount, '/', "")
    }

    /// A number of counted units per second, for a cell.
    #[must_use]
    pub fn rate(&self, amount: String) -> String {
        self.with_unit(amount, ' ', "s")
    }

    fn with_unit(&self, amount: String, before: char, after: &str) -> String {
        if self.is_of_requests() {
            return amount;
        }
        let unit = match self.one.as_str() {
            "execution" => "exec".to_owned(),
            one => shortened(one, MOST_UNIT_CHARS),
        };
        format!("{amount}{before}{unit}{after}")
    }
}
