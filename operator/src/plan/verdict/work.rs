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

/// Different work of two candidates.
struct WorkDifference {
    reason: Reason,
    /// What differs, as a clause.
    what: String,
    /// How to make it equal, as the begin of a sentence.
    remedy: &'static str,
    /// The field of the spec that allows it.
    field: String,
    is_allowed: bool,
    /// The larger amount of work over the smaller. Infinite if one candidate does none.
    factor: f64,
}

impl WorkDifference {
    fn not_compared(self) -> NotCompared {
        let Self {
            reason,
            what,
            remedy,
            field,
            ..
        } = self;
        NotCompared {
            reason,
            message: format!("Not compared: {what}. {remedy}, or write {field}: true."),
        }
    }

    fn note(self) -> String {
        format!("Different work, as {} allows: {}.", self.field, self.what)
    }
}

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
    /// Why two candidates are not compared. They do different work and the spec does not allow it, or many requests failed. Or the
    /// meters measure different parts of their nodes, or a meter's accuracy is unknown, or the injector limited one of them. [`Self::unknown_work`] reports what could not be checked.
    pub(super) fn why_not_compared(&self, one: &str, other: &str) -> Option<NotCompared> {
        let of_work = || {
            let mut differences = self.differences(one, other);
            Some(differences.find(|it| !it.is_allowed)?.not_compared())
        };
        let of_errors = || {
            let mut both = [one, other].into_iter();
            both.find_map(|candidate| self.too_many_errors(candidate))
        };
        of_work()
            .or_else(of_errors)
            .or_else(|| self.zones_differ(one, other))
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

    /// What differs in the work of two candidates.
    fn differences(&self, one: &str, other: &str) -> impl Iterator<Item = WorkDifference> {
        let (may_differ, rules) = (self.settings.may_differ, self.settings.kind.rules());
        // The queries of an execution are part of its program.
        let of_requests = (!rules.is_executed()).then(|| self.queries_differ(one, other));
        [
            (
                self.responses_differ(one, other),
                Reason::ResponsesDiffer,
                "Make the answers equal",
                "responsesMayDiffer",
                may_differ.responses,
            ),
            (
                self.requests_differ(one, other),
                Reason::RequestsDiffer,
                "Make the cycles equal",
                "requestsMayDiffer",
                may_differ.requests,
            ),
            (
                of_requests.flatten(),
                Reason::QueriesDiffer,
                "Make the queries equal",
                "queriesMayDiffer",
                may_differ.queries,
            ),
        ]
        .into_iter()
        .filter_map(move |(found, reason, remedy, field, is_allowed)| {
            let (what, factor) = found?;
            Some(WorkDifference {
                reason,
                what,
                remedy,
                field: format!("spec.{}.{field}", rules.field()),
                is_allowed,
                factor,
            })
        })
    }

    fn responses_differ(&self, one: &str, other: &str) -> Option<(String, f64)> {
        self.differs_somewhere(|point| {
            let (first, second) = (self.body_bytes(one, point)?, self.body_bytes(other, point)?);
            let (most, least) = (first.max(second), first.min(second));
            (most > least * (1.0 + RESPONSE_SHARE)).then(|| {
                let what = format!(
                    "{one} answers with {} bytes on average and {other} with {}{}",
                    text::number(first),
                    text::number(second),
                    self.at_point(point)
                );
                (what, most / least)
            })
        })
    }

    fn requests_differ(&self, one: &str, other: &str) -> Option<(String, f64)> {
        self.differs_somewhere(|point| {
            let (first, second) = (
                self.mean_cycles(one, point)?,
                self.mean_cycles(other, point)?,
            );
            let most = first.requests.max(second.requests);
            // A cycle that fails may end after any of its requests.
            let allowed = RESPONSE_SHARE + first.error_rate + second.error_rate;
            ((first.requests - second.requests).abs() > allowed * most).then(|| {
                let what = format!(
                    "a cycle makes {} requests to {one} on average and {} to {other}{}",
                    text::number(first.requests),
                    text::number(second.requests),
                    self.at_point(point)
                );
                (what, most / first.requests.min(second.requests))
            })
        })
    }

    /// Why the errors of a candidate forbid a comparison at this point: figures cover successes only. A budget of the candidate
    /// on errors may allow more.
    pub(super) fn too_many_errors(&self, candidate: &str) -> Option<NotCompared> {
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
    fn differs_somewhere<T>(&self, compared: impl Fn(&str) -> Option<T>) -> Option<T> {
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

    fn queries_differ(&self, one: &str, other: &str) -> Option<(String, f64)> {
        self.differs_somewhere(|point| {
            let first = self.transactions(one, point)?;
            let second = self.transactions(other, point)?;
            let difference = (first.per_request - second.per_request).abs();
            let most = first.per_request.max(second.per_request);
            let others = first.of_others.max(second.of_others);
            (difference > QUERY_SHARE * most + others).then(|| {
                let what = format!(
                    "{one} makes {} database transactions per request and {other} {}{}",
                    text::number(first.per_request),
                    text::number(second.per_request),
                    self.at_point(point)
                );
                (what, most / first.per_request.min(second.per_request))
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

    /// Notes about different work that the spec allows: of each kind, the two candidates that differ most.
    pub(super) fn allowed_differences(&self) -> Vec<String> {
        let mut allowed: Vec<WorkDifference> = Vec::new();
        let of_pairs = self
            .candidate_pairs()
            .flat_map(|(one, other)| self.differences(one, other));
        for difference in of_pairs.filter(|it| it.is_allowed) {
            let mut same = allowed.iter_mut();
            match same.find(|it| it.reason == difference.reason) {
                Some(largest) if largest.factor < difference.factor => *largest = difference,
                Some(_) => {}
                None => allowed.push(difference),
            }
        }
        allowed.into_iter().map(WorkDifference::note).collect()
    }

    /// The first two candidates that are not compared, with the reason.
    pub(super) fn not_compared(&self) -> Option<NotCompared> {
        self.candidate_pairs().find_map(|(one, other)| {
            self.why_not_compared(one, other)
                .filter(|why| !self.is_expected(why))
        })
    }

    fn candidate_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = &self.settings.candidates;
        names.iter().enumerate().flat_map(|(index, one)| {
            let others = names[index + 1..].iter();
            others.map(move |other| (one.as_str(), other.as_str()))
        })
    }
}
