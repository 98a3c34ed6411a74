//! Whether two candidates can be compared. Where they do not do the same work for a request, what they cost
//! says nothing about which is better, and they are not: at no point, if it is seen at any, for the request is
//! the same at all.

use crate::{
    api::Reason,
    load::rules::Sending,
    plan::verdict::{evidence::Evidence, not_compared::NotCompared},
    text,
};

/// Answers whose mean sizes differ by more than this share are not the same work.
const RESPONSE_SHARE: f64 = 0.01;
/// Nor are requests whose transactions differ by more than this share. PostgreSQL's open sessions tell
/// theirs up to a second late (`PGSTAT_MIN_INTERVAL` in its pgstat.c): 4 % of the shortest load.
const QUERY_SHARE: f64 = 0.1;
/// Transactions that are nobody's request, at most: a readiness probe each second, and PostgreSQL's own.
const OTHER_TRANSACTIONS_PER_SECOND: f64 = 2.0;

/// A candidate's transactions.
struct Transactions {
    per_request: f64,
    /// Of these, those at most that are not the request's own.
    of_others: f64,
}

/// A candidate's cycles.
struct Cycles {
    /// HTTP requests of one.
    requests: f64,
    /// Share of them that failed.
    error_rate: f64,
}

impl Evidence<'_> {
    /// Why two candidates are not compared, if they do not do the same work and the spec does not allow it, or if the
    /// injector limited one of them.
    /// Where that is not known, [`Self::unknown_work`] says so.
    pub(super) fn why_not_compared(&self, one: &str, other: &str) -> Option<NotCompared> {
        let of_answers = || {
            Some(NotCompared {
                reason: Reason::ResponsesDiffer,
                message: self.responses_differ(one, other)?,
            })
        };
        let of_queries = || {
            Some(NotCompared {
                reason: Reason::QueriesDiffer,
                message: self.queries_differ(one, other)?,
            })
        };
        let of_cycles = || {
            Some(NotCompared {
                reason: Reason::RequestsDiffer,
                message: self.requests_differ(one, other)?,
            })
        };
        of_answers()
            .or_else(of_cycles)
            .or_else(of_queries)
            .or_else(|| self.meters_unknown(one, other))
            .or_else(|| self.injector_limits(one, other))
            .or_else(|| self.model_unknown(one, other))
    }

    fn responses_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.responses {
            return None;
        }
        let (first, second) = (self.body_bytes(one)?, self.body_bytes(other)?);
        let (most, least) = (first.max(second), first.min(second));
        (most > least * (1.0 + RESPONSE_SHARE)).then(|| {
            format!(
                "{one} answers with {} bytes on average and {other} with {}, which is not the same work: not compared; make the answers equal, or write spec.request.responsesMayDiffer: true",
                text::number(first),
                text::number(second)
            )
        })
    }

    fn requests_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.requests {
            return None;
        }
        let (first, second) = (self.cycles_everywhere(one)?, self.cycles_everywhere(other)?);
        let most = first.requests.max(second.requests);
        // A cycle that fails may end after any of its requests.
        let allowed = RESPONSE_SHARE + first.error_rate + second.error_rate;
        ((first.requests - second.requests).abs() > allowed * most).then(|| {
            format!(
                "a cycle makes {} requests to {one} on average and {} to {other}, which is not the same work: not compared; make the cycles equal, or write spec.scenario.requestsMayDiffer: true",
                text::number(first.requests),
                text::number(second.requests)
            )
        })
    }

    /// Mean over the trials.
    fn cycles_everywhere(&self, candidate: &str) -> Option<Cycles> {
        let told: Vec<Cycles> = self
            .trials_everywhere(candidate)
            .filter_map(|trial| {
                let figures = trial.requests.as_ref()?;
                Some(Cycles {
                    requests: figures.requests_per_cycle?,
                    error_rate: figures.error_rate?,
                })
            })
            .collect();
        let mean = |of: fn(&Cycles) -> f64| told.iter().map(of).sum::<f64>() / told.len() as f64;
        (!told.is_empty()).then(|| Cycles {
            requests: mean(|it| it.requests),
            error_rate: mean(|it| it.error_rate),
        })
    }

    fn queries_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.queries {
            return None;
        }
        let (first, second) = (self.transactions(one)?, self.transactions(other)?);
        let difference = (first.per_request - second.per_request).abs();
        let most = first.per_request.max(second.per_request);
        let others = first.of_others.max(second.of_others);
        (difference > QUERY_SHARE * most + others).then(|| {
            format!(
                "a request of {one} makes {} transactions in the database and one of {other} {}, which is not the same work: not compared; make the queries equal, or write spec.{}.queriesMayDiffer: true",
                text::number(first.per_request),
                text::number(second.per_request),
                self.settings.kind.rules().field()
            )
        })
    }

    /// Mean over the trials without an error: what fails may not have asked the database.
    fn transactions(&self, candidate: &str) -> Option<Transactions> {
        let told: Vec<Transactions> = self
            .trials_everywhere(candidate)
            .filter_map(|trial| {
                let requests = trial.requests.as_ref().filter(|r| r.errors == 0)?;
                Some(Transactions {
                    per_request: trial.transactions_per_request?,
                    of_others: OTHER_TRANSACTIONS_PER_SECOND / requests.requests_per_second?,
                })
            })
            .collect();
        let mean =
            |of: fn(&Transactions) -> f64| told.iter().map(of).sum::<f64>() / told.len() as f64;
        (!told.is_empty()).then(|| Transactions {
            per_request: mean(|t| t.per_request),
            of_others: mean(|t| t.of_others),
        })
    }

    /// Mean over the trials in which Fortio tells the size of a success: those without any error, where
    /// what is expected is what Fortio takes for a success.
    fn body_bytes(&self, candidate: &str) -> Option<f64> {
        let sizes: Vec<f64> = self
            .trials_everywhere(candidate)
            .filter_map(|trial| trial.requests.as_ref()?.mean_body_bytes)
            .collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
    }

    /// The candidates of which it is known from no trial whether they do the same work as the others.
    pub(super) fn unknown_work(&self) -> impl Iterator<Item = String> {
        let settings = self.settings;
        let unknown = |is_known: &dyn Fn(&str) -> bool| {
            let names: Vec<&str> = settings
                .candidates
                .iter()
                .map(String::as_str)
                .filter(|candidate| !is_known(candidate))
                .collect();
            (settings.candidates.len() > 1 && !names.is_empty()).then(|| names.join(", "))
        };
        let answers = (!settings.may_differ.responses)
            .then(|| unknown(&|candidate| self.body_bytes(candidate).is_some()))
            .flatten()
            .map(|names| {
                if settings.sending == Sending::Open {
                    return "with load.arrivals: Open the size of the answers is not counted: whether the candidates do the same work was not checked".to_owned();
                }
                format!(
                    "the size of the answers of {names} is not known, for Fortio tells it only of a trial in which every answer is what it takes for a success: whether the candidates do the same work was not checked"
                )
            });
        let queries = (!settings.may_differ.queries)
            .then(|| unknown(&|candidate| self.transactions(candidate).is_some()))
            .flatten()
            .map(|names| {
                format!(
                    "how many transactions a request of {names} makes is not known, for that takes a trial without errors after which the database answered: whether the candidates ask it the same was not checked"
                )
            });
        let is_unknown = settings.kind.rules().is_executed() && settings.units.work.is_none();
        let executions = (is_unknown && settings.candidates.len() > 1).then(|| {
            "batch.work is not counted: whether an execution is the same work for all candidates was not checked".to_owned()
        });
        answers.into_iter().chain(queries).chain(executions)
    }

    /// The first two candidates that are not compared, and why.
    pub(super) fn not_compared(&self) -> Option<NotCompared> {
        let names = &self.settings.candidates;
        names.iter().enumerate().find_map(|(index, one)| {
            names[index + 1..]
                .iter()
                .find_map(|other| self.why_not_compared(one, other))
        })
    }
}
