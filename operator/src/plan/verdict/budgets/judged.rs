//! One limit at one point, or at all points together: its figure, and the outcome.

use frugality_measure::{pace::Limited, statistics::control::is_below_floor};

use crate::{
    api::{BoardRange, BudgetOutcome, BudgetResult, Figure, NoiseFloor},
    plan::{
        settings::{Limit, Quantity},
        verdict::{
            evidence::Evidence,
            judgement::BudgetText,
            latency_target::{Fewest, fewest_joules},
            load_curve,
        },
    },
};

/// A limit with the figures that decide it.
pub(super) struct Judged<'a> {
    /// All points.
    pub(super) all: &'a [Evidence<'a>],
    /// The point at which the limit is judged; the first point if one figure covers all points.
    pub(super) evidence: &'a Evidence<'a>,
    pub(super) limit: &'a Limit,
    is_below_floor: bool,
    /// The noise floor, if the limit is a ratio and there is a control.
    pub(super) floor: Option<f64>,
    /// Whether the spec has a control that gave no noise floor.
    pub(super) has_no_floor: bool,
    /// How the injector limited the figure.
    pub(super) limited: Option<Limited>,
    /// Number of points at which the limit is judged.
    pub(super) points: usize,
}

impl<'a> Judged<'a> {
    pub(super) fn of(
        all: &'a [Evidence<'a>],
        evidence: &'a Evidence<'a>,
        limit: &'a Limit,
        floor: Option<&NoiseFloor>,
        points: usize,
    ) -> Self {
        let is_ratio = limit.quantity == Quantity::EnergyRatio;
        Self {
            all,
            evidence,
            limit,
            is_below_floor: is_ratio
                && floor.is_some_and(|f| is_below_floor(limit.value, f.share.ln_1p())),
            floor: floor.map(|it| it.share),
            has_no_floor: is_ratio && evidence.settings.control.is_some() && floor.is_none(),
            limited: if is_of_all_points(limit) {
                let mut points = all.iter().filter(|it| concerns(limit, it));
                points.find_map(|it| it.limits_budget(&limit.candidate, limit.quantity))
            } else {
                evidence.limits_budget(&limit.candidate, limit.quantity)
            },
            points,
        }
    }

    /// The extremes over all boards of a ratio of modelled joules. `None` if the stated accuracy of the board's watts decides.
    pub(super) fn boards(&self) -> Option<BoardRange> {
        let against = self.limit.against.as_ref()?;
        let level = self.evidence.settings.claim_level;
        let ratio = self.evidence.ratio(&self.limit.candidate, against, level)?;
        let is_by_stated_accuracy = ratio.is_by_stated_accuracy();
        ratio.boards.filter(|_| !is_by_stated_accuracy)
    }

    fn figure(&self, level: f64) -> Option<Figure> {
        let figure = self.measured(level);
        match self.limited {
            Some(limited) => figure.filter(|figure| self.stays_met(figure, limited)),
            None => figure,
        }
    }

    /// Whether a limit that is met stays met with a faster injector. In a closed loop the rate then rises or stays. By Little's
    /// law, (time per request + the injector's own time) · rate = connections. So with a faster injector the time per request
    /// is at most connections / rate, which is today's time / occupancy.
    fn stays_met(&self, figure: &Figure, limited: Limited) -> bool {
        let candidate = &self.limit.candidate;
        match self.limit.quantity {
            Quantity::RequestsPerSecond => self.is_kept(figure),
            // The rate is given and was reached. The injector's waits only add to the times.
            Quantity::MillisecondsPerRequest if !limited.is_rate => self.is_kept(figure),
            Quantity::MillisecondsPerRequest => {
                let occupancy = self.evidence.least_occupancy(candidate);
                occupancy.is_some_and(|it| figure.bounds().1 / it < self.limit.value)
            }
            _ => false,
        }
    }

    fn measured(&self, level: f64) -> Option<Figure> {
        let limit = self.limit;
        if is_of_all_points(limit) {
            return Some(self.of_all_points(level).ok()?.figure);
        }
        match &limit.against {
            _ if self.has_no_floor => None,
            Some(against) => {
                let ratio = self.evidence.ratio(&limit.candidate, against, level);
                ratio.map(|ratio| ratio.figure)
            }
            None if limit.quantity == Quantity::ErrorRatio => self.errors(level),
            None => self
                .evidence
                .limited(&limit.candidate, limit.quantity, level),
        }
    }

    /// The error ratio that decides. Whether the candidate or the script caused dropped cycles is not known. The limit is
    /// therefore met only with them, and broken only without them. `None` if it is met without them, and not with them.
    fn errors(&self, level: f64) -> Option<Figure> {
        let candidate = &self.limit.candidate;
        let without = self.evidence.error_ratio(candidate, level)?;
        let Some(with) = self.evidence.error_ratio_with_dropped(candidate, level) else {
            return Some(without);
        };
        match (self.is_kept(&without), self.is_kept(&with)) {
            (_, true) => Some(with),
            (true, false) => None,
            (false, false) => Some(without),
        }
    }

    /// The one figure of all points. The error says why it is missing.
    pub(super) fn of_all_points(&self, level: f64) -> Result<Fewest, String> {
        let limit = self.limit;
        match (limit.quantity, limit.p99_milliseconds) {
            (Quantity::OfCurve(which), _) => {
                let figure = load_curve::figure(self.all, &limit.candidate, which, level)?;
                Ok(Fewest {
                    point: String::new(),
                    figure,
                    is_certain: true,
                })
            }
            (_, Some(target)) => fewest_joules(self.all, &limit.candidate, target, level),
            _ => Err("the figure belongs to one point".to_owned()),
        }
    }

    /// The point that decides. Empty for a figure of all load levels.
    pub(super) fn point(&self) -> String {
        if is_of_all_points(self.limit) {
            let level = self.evidence.settings.claim_level;
            let found = self.of_all_points(level).ok();
            let found = found.filter(|_| self.limited.is_none());
            return found.map(|it| it.point).unwrap_or_default();
        }
        self.evidence.point.name.clone()
    }

    /// Whether the whole interval of two-sided error `level` breaks the limit.
    pub(super) fn is_broken(&self, level: f64) -> bool {
        let limit = self.limit.value;
        !self.is_below_floor
            && self.figure(level).is_some_and(|figure| {
                let (lower, upper) = figure.bounds();
                if self.limit.quantity.is_minimum() {
                    upper < limit
                } else {
                    lower > limit
                }
            })
    }

    fn is_kept(&self, figure: &Figure) -> bool {
        let limit = self.limit.value;
        let (lower, upper) = figure.bounds();
        match self.limit.quantity {
            quantity if quantity.is_minimum() => lower > limit,
            // A limit of 0 requires a run without errors. No run can show that the true share is 0.
            Quantity::ErrorRatio => upper <= limit || (limit == 0.0 && figure.value == 0.0),
            _ => upper < limit,
        }
    }

    /// How far the interval's worse end is within the limit. Below 0 it is beyond the limit. All points have the same limit, so
    /// their distances compare.
    pub(super) fn room(&self, figure: &Figure) -> f64 {
        let (limit, (lower, upper)) = (self.limit.value, figure.bounds());
        if self.limit.quantity.is_minimum() {
            lower - limit
        } else {
            limit - upper
        }
    }

    pub(super) fn result(&self, is_exceeded: bool) -> (BudgetResult, BudgetText) {
        let figure = self.figure(self.evidence.settings.claim_level);
        let outcome = match &figure {
            None => BudgetOutcome::Withheld,
            Some(_) if self.is_below_floor => BudgetOutcome::BelowNoiseFloor,
            Some(figure) if self.is_kept(figure) => BudgetOutcome::Met,
            Some(_) if is_exceeded => BudgetOutcome::Exceeded,
            Some(_) => BudgetOutcome::Undecided,
        };
        let text = BudgetText {
            clause: self.clause(figure.as_ref(), outcome),
            remarks: self.remarks(figure.as_ref(), outcome),
            is_by_injector: self.limited.is_some(),
        };
        let candidate = &self.limit.candidate;
        let begin = match outcome {
            BudgetOutcome::Met => "Met",
            BudgetOutcome::Exceeded => "Exceeded",
            _ => "Undecided",
        };
        let sentence = format!("{begin} for {candidate}: {}.", text.clause);
        let sentences: Vec<&str> = std::iter::once(sentence.as_str())
            .chain(text.remarks.iter().map(String::as_str))
            .collect();
        let result = BudgetResult {
            point: self.point(),
            candidate: candidate.clone(),
            limit: self.limit.quantity.field().to_owned(),
            limit_value: self.limit.value,
            p99_milliseconds: self.limit.p99_milliseconds,
            against: self.limit.against.clone(),
            message: sentences.join(" "),
            figure,
            outcome,
        };
        (result, text)
    }
}

/// Whether one figure of all points together is limited.
pub(super) fn is_of_all_points(limit: &Limit) -> bool {
    matches!(limit.quantity, Quantity::OfCurve(_)) || limit.p99_milliseconds.is_some()
}

/// Whether a point is part of a figure of all points.
pub(super) fn concerns(limit: &Limit, point: &Evidence<'_>) -> bool {
    match limit.quantity {
        Quantity::OfCurve(_) => point.point.level.is_some(),
        _ => point.has_comparable_times(),
    }
}
