//! Whether two candidates can be compared. If they do different work per request, their costs do not show which is better. If
//! the work differs at one point, they are compared at no point, because all points have the same request.

use crate::{
    api::Reason,
    load::rules::Sending,
    plan::{
        settings::Quantity,
        verdict::{evidence::Evidence, load_curve::MOST_ERRORS, not_compared::NotCompared},
    },
    text,
};

/// Mean sizes of answers that differ by more than this share are different work.
const RESPONSE_SHARE: f64 = 0.01;
/// Numbers of transactions per request that differ by more than this share are different work. PostgreSQL's open sessions
/// report transactions up to a second late (`PGSTAT_MIN_INTERVAL` in its pgstat.c): 4 % of the shortest load.
const QUERY_SHARE: f64 = 0.1;
/// Most transactions without a request: a readiness probe per second, and PostgreSQL itself.
const OTHER_TRANSACTIONS_PER_SECOND: f64 = 2.0;

/// Largest number of transactions without a request, as a share of the transactions per request. With more, a candidate
/// that sends twice as many queries would not be seen.
const MOST_OF_OTHERS: f64 = 0.5;

/// Transactions per request below which two candidates hardly use the database.
const FEW_QUERIES: f64 = 0.1;

/// A candidate's transactions.
struct Transactions {
    per_request: f64,
    /// Most of these that belong to no request.
    of_others: f64,
}

/// A candidate's cycles.
struct Cycles {
    /// HTTP requests per cycle.
    requests: f64,
    /// Share of failed cycles.
    error_rate: f64,
}

impl Evidence<'_> {
    /// Why two candidates are not compared. They do different work and the spec does not allow it, or many requests failed. Or a
    /// meter's accuracy is unknown, or the injector limited one of them. [`Self::unknown_work`] reports what could not be checked.
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
        let of_errors = || {
            let mut both = [one, other].into_iter();
            both.find_map(|candidate| self.too_many_errors(candidate))
        };
        of_answers()
            .or_else(of_cycles)
            .or_else(of_queries)
            .or_else(of_errors)
            .or_else(|| self.meters_unknown(one, other))
            .or_else(|| self.injector_limits(one, other))
            .or_else(|| self.model_unknown(one, other))
    }

    /// Whether a search for the end of a sweep expects this: one candidate fails before the others, except at the fewest
    /// connections.
    fn is_expected(&self, why: &NotCompared) -> bool {
        let connections = self.settings.points.iter().map(|point| point.connections);
        why.reason == Reason::TooManyErrors
            && self.settings.max_error_ratio.is_some()
            && Some(self.point.connections) != connections.min()
    }

    fn responses_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.responses {
            return None;
        }
        self.differs_somewhere(|point| {
            let (first, second) = (self.body_bytes(one, point)?, self.body_bytes(other, point)?);
            let (most, least) = (first.max(second), first.min(second));
            (most > least * (1.0 + RESPONSE_SHARE)).then(|| {
                format!(
                    "Not compared: {one} answers with {} bytes on average and {other} with {}{}. Make the answers equal, or write spec.request.responsesMayDiffer: true.",
                    text::number(first),
                    text::number(second),
                    self.at_point(point)
                )
            })
        })
    }

    fn requests_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.requests {
            return None;
        }
        self.differs_somewhere(|point| {
            let (first, second) = (self.mean_cycles(one, point)?, self.mean_cycles(other, point)?);
            let most = first.requests.max(second.requests);
            // A cycle that fails may end after any of its requests.
            let allowed = RESPONSE_SHARE + first.error_rate + second.error_rate;
            ((first.requests - second.requests).abs() > allowed * most).then(|| {
                format!(
                    "Not compared: a cycle makes {} requests to {one} on average and {} to {other}{}. Make the cycles equal, or write spec.scenario.requestsMayDiffer: true.",
                    text::number(first.requests),
                    text::number(second.requests),
                    self.at_point(point)
                )
            })
        })
    }

    /// Why the errors of a candidate forbid a comparison at this point: figures cover successes only. A budget of the candidate
    /// on errors may allow more.
    fn too_many_errors(&self, candidate: &str) -> Option<NotCompared> {
        let settings = self.settings;
        let accepted = settings
            .limits
            .iter()
            .filter(|limit| limit.quantity == Quantity::ErrorRatio && limit.candidate == candidate)
            .map(|limit| limit.value);
        let most = accepted.fold(MOST_ERRORS, f64::max);
        let errors = self.error_ratio(candidate, settings.level)?;
        (errors.value > most).then(|| NotCompared {
            reason: Reason::TooManyErrors,
            message: format!(
                "Not compared: {} % of the {}s of {candidate} failed{}, and its figures cover the others only (limit {} %). Correct the errors, or write the accepted share as maxErrorRatio of a budget.",
                text::number(100.0 * errors.value),
                settings.units.whole,
                self.at_point(&self.point.name),
                text::all_digits(100.0 * most),
            ),
        })
    }

    /// The first difference at a point. `compared` returns `None` also if a candidate reports nothing there.
    fn differs_somewhere(&self, compared: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut points = self.settings.points.iter();
        points.find_map(|point| compared(&point.name))
    }

    /// The point as the end of a clause, if there are several.
    fn at_point(&self, point: &str) -> String {
        if self.settings.points.len() > 1 {
            format!(" at {point}")
        } else {
            String::new()
        }
    }

    /// Mean over the trials.
    fn mean_cycles(&self, candidate: &str, point: &str) -> Option<Cycles> {
        let reported: Vec<Cycles> = self
            .trials_everywhere(candidate, Some(point))
            .filter_map(|trial| {
                let figures = trial.requests.as_ref()?;
                Some(Cycles {
                    requests: figures.requests_per_cycle?,
                    error_rate: figures.error_rate?,
                })
            })
            .collect();
        let count = reported.len() as f64;
        let mean = |of: fn(&Cycles) -> f64| reported.iter().map(of).sum::<f64>() / count;
        (!reported.is_empty()).then(|| Cycles {
            requests: mean(|it| it.requests),
            error_rate: mean(|it| it.error_rate),
        })
    }

    fn queries_differ(&self, one: &str, other: &str) -> Option<String> {
        if self.settings.may_differ.queries {
            return None;
        }
        self.differs_somewhere(|point| {
            let first = self.transactions(one, point)?;
            let second = self.transactions(other, point)?;
            let difference = (first.per_request - second.per_request).abs();
            let most = first.per_request.max(second.per_request);
            let others = first.of_others.max(second.of_others);
            (difference > QUERY_SHARE * most + others).then(|| {
                format!(
                    "Not compared: {one} makes {} database transactions per request and {other} {}{}. Make the queries equal, or write spec.{}.queriesMayDiffer: true.",
                    text::number(first.per_request),
                    text::number(second.per_request),
                    self.at_point(point),
                    self.settings.kind.rules().field()
                )
            })
        })
    }

    /// Mean over the trials without an error. A failed request may not have reached the database.
    fn transactions(&self, candidate: &str, point: &str) -> Option<Transactions> {
        let counted: Vec<Transactions> = self
            .trials_everywhere(candidate, Some(point))
            .filter_map(|trial| {
                let requests = trial.requests.as_ref().filter(|r| r.errors == 0)?;
                Some(Transactions {
                    per_request: trial.transactions_per_request?,
                    of_others: OTHER_TRANSACTIONS_PER_SECOND / requests.requests_per_second?,
                })
            })
            .collect();
        let count = counted.len() as f64;
        let mean = |of: fn(&Transactions) -> f64| counted.iter().map(of).sum::<f64>() / count;
        (!counted.is_empty()).then(|| Transactions {
            per_request: mean(|t| t.per_request),
            of_others: mean(|t| t.of_others),
        })
    }

    /// Mean over the trials in which Fortio reports the size of a success: trials without errors whose expected codes are
    /// successes for Fortio.
    fn body_bytes(&self, candidate: &str, point: &str) -> Option<f64> {
        let sizes: Vec<f64> = self
            .trials_everywhere(candidate, Some(point))
            .filter_map(|trial| trial.requests.as_ref()?.mean_body_bytes)
            .collect();
        (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
    }

    /// Notes about work that no trial of this point could compare.
    pub(super) fn unknown_work(&self) -> impl Iterator<Item = String> {
        let settings = self.settings;
        let point = self.point.name.as_str();
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
            .then(|| unknown(&|candidate| self.body_bytes(candidate, point).is_some()))
            .flatten()
            .map(|names| {
                if settings.sending_at(self.point) == Sending::Open {
                    return "The size of the answers was not checked, because load.arrivals: Open does not count it. The candidates may do different work.".to_owned();
                }
                format!(
                    "The size of the answers of {names} is not known, because Fortio reports it only for a trial without errors. The candidates may do different work."
                )
            });
        let queries = (!settings.may_differ.queries)
            .then(|| {
                let counted = |candidate: &str| self.transactions(candidate, point);
                let counts = settings.candidates.iter().filter_map(|it| counted(it));
                let most = counts.map(|it| it.per_request).fold(FEW_QUERIES, f64::max);
                unknown(&|candidate| {
                    counted(candidate).is_some_and(|it| it.of_others <= MOST_OF_OTHERS * most)
                })
            })
            .flatten()
            .map(|names| {
                format!(
                    "The number of transactions per request of {names} is not known: it needs a trial without errors, a database that answers after the load, a script without setup(), and a rate that is not too low. The candidates may send different queries."
                )
            });
        let executions = (!settings.may_differ.executions && settings.candidates.len() > 1).then(|| {
            "The work of an execution was not checked, because batch.work.pattern is not set. The candidates may do different work.".to_owned()
        });
        answers.into_iter().chain(queries).chain(executions)
    }

    /// The first two candidates that are not compared, with the reason.
    pub(super) fn not_compared(&self) -> Option<NotCompared> {
        let names = &self.settings.candidates;
        names.iter().enumerate().find_map(|(index, one)| {
            names[index + 1..].iter().find_map(|other| {
                self.why_not_compared(one, other)
                    .filter(|why| !self.is_expected(why))
            })
        })
    }
}
