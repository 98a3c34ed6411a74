//! Names of the units that figures are per.

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

    /// An amount per unit. The unit `request` is left out, as in the headings of `kubectl get`.
    #[must_use]
    pub fn each(&self, amount: String) -> String {
        self.with_unit(amount, '/', &self.one, "")
    }

    /// A number of units per second.
    #[must_use]
    pub fn rate(&self, amount: String) -> String {
        self.with_unit(amount, ' ', &self.one, "s")
    }

    /// The duration of one request, cycle or execution.
    #[must_use]
    pub fn time(&self, amount: String) -> String {
        self.with_unit(amount, '/', self.whole, "")
    }

    fn with_unit(&self, amount: String, before: char, unit: &str, after: &str) -> String {
        if self.whole == "request" {
            amount
        } else {
            format!("{amount}{before}{unit}{after}")
        }
    }
}
