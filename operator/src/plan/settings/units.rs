//! What is counted, in words.

use crate::api::FrugalityBenchmarkSpec;

/// Names of what figures are told in, in the singular.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// What joules and rates are of: `request`, `cycle`, `execution`, or what a batch's work counts.
    pub one: String,
    /// What takes its time, and goes well or fails, as a whole: `request`, `cycle` or `execution`.
    pub whole: &'static str,
    /// What a score counts; `None` where none is read.
    pub score: Option<String>,
    /// What work counts; `None` where none is counted.
    pub work: Option<String>,
}

impl Units {
    /// Those of a spec.
    #[must_use]
    pub fn of(spec: &FrugalityBenchmarkSpec) -> Self {
        let batch = spec.batch.as_ref();
        let whole = match (&spec.scenario, batch) {
            (Some(_), _) => "cycle",
            (None, Some(_)) => "execution",
            (None, None) => "request",
        };
        let work = batch.and_then(|it| Some(it.work.as_ref()?.unit.clone()));
        Self {
            one: work.clone().unwrap_or_else(|| whole.to_owned()),
            whole,
            score: batch.and_then(|it| Some(it.score.as_ref()?.unit.clone())),
            work,
        }
    }

    /// An amount for each of what is counted. Of requests that goes without saying, as in the headings of `kubectl get`.
    #[must_use]
    pub fn each(&self, amount: String) -> String {
        self.told(amount, '/', &self.one, "")
    }

    /// So many of what is counted, each second.
    #[must_use]
    pub fn rate(&self, amount: String) -> String {
        self.told(amount, ' ', &self.one, "s")
    }

    /// A time that one takes as a whole.
    #[must_use]
    pub fn time(&self, amount: String) -> String {
        self.told(amount, '/', self.whole, "")
    }

    fn told(&self, amount: String, before: char, unit: &str, after: &str) -> String {
        if self.whole == "request" {
            amount
        } else {
            format!("{amount}{before}{unit}{after}")
        }
    }
}
