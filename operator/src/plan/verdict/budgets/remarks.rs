//! What follows from the outcome of a limit, in sentences: why it is withheld, and what would decide it.

use crate::{
    api::{BoardRange, BudgetOutcome, Figure, MAX_BLOCKS},
    plan::{
        settings::{Limit, Quantity},
        verdict::{
            budgets::judged::{Judged, concerns, is_of_all_points},
            load_curve::MOST_ERRORS,
            pace::limit_words,
        },
    },
    text,
};

/// The remark on a limit that is decided without the accuracy of the model's joules.
pub(in crate::plan::verdict) const UNKNOWN_MODEL: &str = "The model's accuracy is unknown, so only the spread between trials decides, as energy.allowModelled allows.";
pub(in crate::plan::verdict) const UNKNOWN_METER: &str =
    "The interval excludes the meter's accuracy, which the meter does not report.";
pub(in crate::plan::verdict) const MET_WITHOUT_METER: &str =
    "The decision excludes the meter's accuracy, which the meter does not report.";
const DROPPED: &str = "Withheld: the limit is met without the dropped cycles, and not if they count as errors. k6 drops a cycle if all agents are busy. Write more load.connections.";
const CLOSED_LOOP: &str = "The latency is from a closed loop: it leaves out the time that requests wait behind a slow answer.";
const UNKNOWN_FLOOR: &str = "The noise floor is not known, because trials.control is not set.";

impl Judged<'_> {
    fn why_withheld(&self) -> Vec<String> {
        if let Some(limited) = self.limited {
            return vec![
                limit_words(&self.limit.candidate, limited),
                format!("To judge this budget, {}.", self.evidence.limit_remedy()),
            ];
        }
        if is_of_all_points(self.limit) {
            let found = self.of_all_points(self.evidence.settings.claim_level);
            let why = found.err().map(|why| format!("Withheld: {why}."));
            return why.into_iter().collect();
        }
        let Some(against) = &self.limit.against else {
            let why = (self.limit.quantity == Quantity::ErrorRatio).then(|| DROPPED.to_owned());
            return why.into_iter().collect();
        };
        if let (true, Some(control)) = (self.has_no_floor, &self.evidence.settings.control) {
            return vec![format!(
                "The noise floor is not known, because the deciding figure is missing in a trial of {} or of its control, or the injector limited it.",
                control.candidate
            )];
        }
        let why = self
            .evidence
            .why_not_compared(&self.limit.candidate, against);
        why.map(|why| why.message).into_iter().collect()
    }

    /// What follows from the outcome, in sentences.
    pub(super) fn remarks(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> Vec<String> {
        let settings = self.evidence.settings;
        let Some(figure) = figure else {
            return self.why_withheld();
        };
        let mut remarks = Vec::new();
        if outcome == BudgetOutcome::Undecided {
            remarks.push(self.outlook(figure));
        }
        if outcome == BudgetOutcome::BelowNoiseFloor {
            return remarks;
        }
        if outcome == BudgetOutcome::Met && self.limited.is_some() {
            let candidate = &self.limit.candidate;
            remarks.push(format!(
                "The injector limited {candidate}, so {candidate} may be better."
            ));
        }
        if let Some(errors) = self.many_errors() {
            remarks.push(format!(
                "{} % of the {}s failed. The figure covers the successful {1}s only.",
                text::number(100.0 * errors),
                settings.units.whole
            ));
        }
        if self.limit.p99_milliseconds.is_some() && self.has_closed_loop() {
            remarks.push(CLOSED_LOOP.to_owned());
        }
        if figure.is_repeatability_only() {
            remarks.push(UNKNOWN_MODEL.to_owned());
        } else if figure.expanded.is_some_and(|it| !it.covers_meter) {
            // What met a limit shows no interval.
            let remark = match outcome {
                BudgetOutcome::Met => MET_WITHOUT_METER,
                _ => UNKNOWN_METER,
            };
            remarks.push(remark.to_owned());
        }
        if self.limit.against.is_some()
            && settings.control.is_none()
            && outcome != BudgetOutcome::Undecided
        {
            remarks.push(UNKNOWN_FLOOR.to_owned());
        }
        remarks
    }

    /// The candidate's error ratio at this point, if it is large and the limit is not about errors.
    fn many_errors(&self) -> Option<f64> {
        if self.limit.quantity == Quantity::ErrorRatio || is_of_all_points(self.limit) {
            return None;
        }
        let level = self.evidence.settings.claim_level;
        let errors = self.evidence.error_ratio(&self.limit.candidate, level)?;
        (errors.value > MOST_ERRORS).then_some(errors.value)
    }

    /// Whether requests waited for the answers before them.
    fn has_closed_loop(&self) -> bool {
        let candidate = &self.limit.candidate;
        let mut points = self.all.iter().filter(|it| concerns(self.limit, it));
        points.any(|it| it.has_closed_loop(candidate))
    }

    /// What would decide a limit that is not decided.
    fn outlook(&self, figure: &Figure) -> String {
        let settings = self.evidence.settings;
        if self.limit.p99_milliseconds.is_some() {
            // The ends of the interval may be those of different points.
            return "More blocks help only if all trials of a point agree on the latency."
                .to_owned();
        }
        if self.is_broken(settings.claim_level) {
            let of = match (settings.limits.len(), self.points) {
                (limits, 1) => format!("{limits} limits"),
                (1, points) => format!("{points} points"),
                (limits, points) => format!("{limits} limits at {points} points"),
            };
            return format!(
                "With {of} a Fail needs a higher confidence. At that confidence the interval contains the limit."
            );
        }
        let of_all_points = is_of_all_points(self.limit);
        if of_all_points
            && let Ok(found) = self.of_all_points(settings.claim_level)
            && !found.is_certain
        {
            // The lower end of the interval is that of a point that may not keep the latency.
            return "More blocks help only if all trials of a point agree on the latency."
                .to_owned();
        }
        let blocks = self.evidence.blocks.len();
        let needed = match self.boards() {
            None => more_blocks(blocks, figure, self.limit),
            Some(range) => match extreme(&range, self.limit.value) {
                Some(extreme) => more_blocks(blocks, extreme, self.limit),
                None => {
                    return "More blocks would not help: the ratio depends on the board.".into();
                }
            },
        };
        match needed {
            Blocks::More(more) if settings.looks.len() > 1 => format!(
                "About {more} more blocks would decide. Write a larger last value of spec.trials.looks. This starts a new run."
            ),
            Blocks::More(more) => format!(
                "About {more} more blocks would decide. Write a larger spec.trials.blocks. This starts a new run."
            ),
            Blocks::TooMany => format!(
                "More blocks would not help: {MAX_BLOCKS}, the maximum, are not enough."
            ),
            Blocks::NoNumber => "More blocks would not help: the error of the meter and of the window's edges is too large.".into(),
        }
    }
}

/// The extreme whose interval keeps the limit undecided. `None` if the limit lies between the two extremes.
fn extreme(range: &BoardRange, limit: f64) -> Option<&Figure> {
    let (least, most) = range.values();
    let extremes = [&range.idle_only, &range.cpu_only].into_iter();
    if limit > most {
        extremes.max_by(|a, b| a.bounds().1.total_cmp(&b.bounds().1))
    } else if limit < least {
        extremes.min_by(|a, b| a.bounds().0.total_cmp(&b.bounds().0))
    } else {
        None
    }
}

/// A meter's part of an interval's square that is below this share of the trials' part is a rounding error.
const ROUNDING: f64 = 1e-9;

/// How many blocks would decide.
enum Blocks {
    /// About so many more.
    More(f64),
    /// More than a run may have.
    TooMany,
    /// None: the part of the interval that does not fall is too large.
    NoNumber,
}

/// Blocks that would decide if figure and spread stayed the same. Half of the interval falls with the square root of the
/// number of trials, and the meter's part of it does not fall. The bound of a share without any error falls with the
/// number of trials.
fn more_blocks(blocks: usize, figure: &Figure, limit: &Limit) -> Blocks {
    let has_no_error = limit.quantity == Quantity::ErrorRatio && figure.value <= 0.0;
    let limit = limit.value;
    let half = |lower: f64, upper: f64| {
        if limit > figure.value {
            upper - figure.value
        } else {
            figure.value - lower
        }
    };
    let (lower, upper) = figure.bounds();
    let of_trials = half(figure.lower, figure.upper).powi(2);
    let of_meter = half(lower, upper).powi(2) - of_trials;
    let room = (limit - figure.value).powi(2) - of_meter;
    if room <= 0.0 && of_meter > ROUNDING * of_trials {
        return Blocks::NoNumber;
    }
    let times = if room > 0.0 {
        of_trials / room
    } else {
        f64::INFINITY
    };
    let needed = blocks as f64 * if has_no_error { times.sqrt() } else { times };
    let more = (needed - blocks as f64).ceil().max(1.0);
    if blocks as f64 + more <= f64::from(MAX_BLOCKS) {
        Blocks::More(more)
    } else {
        Blocks::TooMany
    }
}
