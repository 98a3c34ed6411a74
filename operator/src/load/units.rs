//! What is counted, in words.

/// Names of what figures are per, in the singular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// What joules and rates are per: `request`, `cycle`, `execution`, or the unit of a batch's work.
    pub one: String,
    /// What takes its time, and succeeds or fails, as a whole: `request`, `cycle` or `execution`.
    pub whole: &'static str,
    /// The unit of a score; `None` if none is read.
    pub score: Option<String>,
    /// The unit of work; `None` if no work is counted.
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

    /// An amount per counted unit. Requests are not named, as in the headings of `kubectl get`.
    #[must_use]
    pub fn each(&self, amount: String) -> String {
        self.with_unit(amount, '/', &self.one, "")
    }

    /// A number of counted units per second.
    #[must_use]
    pub fn rate(&self, amount: String) -> String {
        self.with_unit(amount, ' ', &self.one, "s")
    }

    /// The time that one takes as a whole.
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
