//! Limits against figures: decided on the bound of the interval, never on its middle.
//!
//! Met by all is a conclusion that needs every claim and so no correction; one exceeded is enough for a
//! Fail, and so the more limits there are, the stricter each is asked (Holm).

use frugality_measure::{
    pace::Limited,
    statistics::{control::is_below_floor, multiplicity::holm},
};

use crate::{
    api::{BoardRange, BudgetOutcome, BudgetResult, Figure, MAX_BLOCKS, NoiseFloor},
    plan::{
        settings::{Limit, Quantity},
        verdict::{evidence::Evidence, pace::limit_words, standing::Standing},
    },
    text,
};

/// What became of every limit, each at the point that decides it.
pub(super) fn budgets(points: &[Evidence<'_>], standings: &[Standing]) -> Vec<BudgetResult> {
    let Some(settings) = points.first().map(|evidence| evidence.settings) else {
        return Vec::new();
    };
    // Limit by limit, and of each point by point.
    let judged: Vec<Judged<'_>> = settings
        .limits
        .iter()
        .flat_map(|limit| {
            points
                .iter()
                .zip(standings)
                .map(move |(evidence, standing)| {
                    Judged::of(evidence, limit, standing.noise_floor.as_ref(), points.len())
                })
        })
        .collect();
    // An interval's error is half at each end; each limit's share of it is spread over the looks (Y. Ye,
    // A. Li, L. Liu and B. Yao, Statistics in Medicine 32 (2013), 1112–1124).
    let exceeded = holm(
        judged.len(),
        settings.claim_error() / 2.0,
        |share| settings.level_of_looks(2.0 * share),
        |index, level| level.is_some_and(|level| judged[index].is_broken(level)),
    );
    let results: Vec<BudgetResult> = judged
        .iter()
        .zip(exceeded)
        .map(|(limit, is_exceeded)| limit.result(is_exceeded))
        .collect();
    results.chunks(points.len()).filter_map(decisive).collect()
}

/// The result that decides a limit that has to be kept at every point: the worst, and of several such the
/// one that is nearest to the limit's wrong side.
fn decisive(of_limit: &[BudgetResult]) -> Option<BudgetResult> {
    let margin = |result: &BudgetResult| {
        result.figure.map_or(0.0, |figure| {
            let (lower, upper) = figure.bounds();
            if result.limit == Quantity::RequestsPerSecond.field() {
                lower / result.limit_value
            } else {
                result.limit_value / upper
            }
        })
    };
    of_limit
        .iter()
        .min_by(|a, b| {
            let by_outcome = severity(b.outcome).cmp(&severity(a.outcome));
            by_outcome.then(margin(a).total_cmp(&margin(b)))
        })
        .cloned()
}

/// In which order outcomes at several points decide.
fn severity(outcome: BudgetOutcome) -> u8 {
    match outcome {
        BudgetOutcome::Met => 0,
        BudgetOutcome::Undecided => 1,
        BudgetOutcome::BelowNoiseFloor => 2,
        BudgetOutcome::Withheld => 3,
        BudgetOutcome::Exceeded => 4,
    }
}

struct Judged<'a> {
    evidence: &'a Evidence<'a>,
    limit: &'a Limit,
    is_below_floor: bool,
    /// A control was asked for, and has no figure.
    has_no_floor: bool,
    /// How the injector limited the figure.
    limited: Option<Limited>,
    /// At how many points the limit is judged.
    points: usize,
}

impl<'a> Judged<'a> {
    fn of(
        evidence: &'a Evidence<'a>,
        limit: &'a Limit,
        floor: Option<&NoiseFloor>,
        points: usize,
    ) -> Self {
        let is_ratio = limit.quantity == Quantity::EnergyRatio;
        Self {
            evidence,
            limit,
            is_below_floor: is_ratio
                && floor.is_some_and(|f| is_below_floor(limit.value, f.share.ln_1p())),
            has_no_floor: is_ratio && evidence.settings.control.is_some() && floor.is_none(),
            limited: evidence.limits_budget(&limit.candidate, limit.quantity),
            points,
        }
    }

    /// The extremes over all boards of a ratio of modelled joules, unless the stated accuracy of the board's watts decides.
    fn boards(&self) -> Option<BoardRange> {
        let against = self.limit.against.as_ref()?;
        let level = self.evidence.settings.claim_level;
        let ratio = self.evidence.ratio(&self.limit.candidate, against, level)?;
        ratio.boards.filter(|_| !ratio.is_by_stated_accuracy)
    }

    fn figure(&self, level: f64) -> Option<Figure> {
        let figure = self.measured(level);
        match self.limited {
            // With more of the injector the candidate would be as good or better, which keeps to the limit all the same.
            Some(_) if self.limit.quantity.gains_by_pace() => {
                figure.filter(|figure| self.is_kept(figure))
            }
            Some(_) => None,
            None => figure,
        }
    }

    fn measured(&self, level: f64) -> Option<Figure> {
        let limit = self.limit;
        match &limit.against {
            _ if self.has_no_floor => None,
            Some(against) => {
                let ratio = self.evidence.ratio(&limit.candidate, against, level);
                ratio.map(|ratio| ratio.figure)
            }
            None => self
                .evidence
                .limited(&limit.candidate, limit.quantity, level),
        }
    }

    /// Whether the whole interval of two-sided error `level` breaks the limit.
    fn is_broken(&self, level: f64) -> bool {
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
            Quantity::RequestsPerSecond => lower > limit,
            // A limit of 0 asks for a run without any error, which can be seen; that the true share is 0
            // can never be shown.
            Quantity::ErrorRatio => upper <= limit || (limit == 0.0 && figure.value == 0.0),
            _ => upper < limit,
        }
    }

    fn result(&self, is_exceeded: bool) -> BudgetResult {
        let figure = self.figure(self.evidence.settings.claim_level);
        let outcome = match &figure {
            None => BudgetOutcome::Withheld,
            Some(_) if self.is_below_floor => BudgetOutcome::BelowNoiseFloor,
            Some(figure) if self.is_kept(figure) => BudgetOutcome::Met,
            Some(_) if is_exceeded => BudgetOutcome::Exceeded,
            Some(_) => BudgetOutcome::Undecided,
        };
        BudgetResult {
            point: self.evidence.point.name.clone(),
            candidate: self.limit.candidate.clone(),
            limit: self.limit.quantity.field().to_owned(),
            limit_value: self.limit.value,
            message: self.message(figure.as_ref(), outcome),
            figure,
            outcome,
        }
    }

    fn message(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> String {
        let limit = self.limit;
        let unit = self.unit();
        let side = if limit.quantity.is_minimum() {
            "least"
        } else {
            "most"
        };
        let found = figure.map_or_else(
            || format!("no trustworthy {unit}"),
            |f| {
                let remark = match f.expanded {
                    Some(e) if e.covers_meter => ", the meter's accuracy included",
                    Some(_) => ", without the meter's accuracy",
                    None => "",
                };
                let told = match self.boards() {
                    Some(range) => text::range(range.values(), range.bounds(), ", for every board"),
                    None if f.is_repeatability_only() => text::figure(f),
                    None => text::range((f.value, f.value), f.bounds(), remark),
                };
                let of = if limit.against.is_some() { " as" } else { "" };
                format!("{told}{of} {unit}")
            },
        );
        let of = match &limit.against {
            None => limit.candidate.clone(),
            Some(against) => format!("{} / {against}", limit.candidate),
        };
        let relation = match outcome {
            BudgetOutcome::Met => "keeps to",
            BudgetOutcome::Exceeded => "breaks",
            BudgetOutcome::Undecided => "does not decide",
            BudgetOutcome::BelowNoiseFloor | BudgetOutcome::Withheld => "for",
        };
        let at = text::at(&self.evidence.point.name, self.points > 1);
        format!(
            "{of}{at}: {found} {relation} the budget of at {side} {}{}",
            limit.written,
            self.remark(figure, outcome)
        )
    }

    fn why_withheld(&self) -> Option<String> {
        if let Some(limited) = self.limited {
            let words = limit_words(&self.limit.candidate, limited);
            return Some(format!("{words}; {}", self.evidence.limit_remedy()));
        }
        let against = self.limit.against.as_ref()?;
        if let (true, Some(control)) = (self.has_no_floor, &self.evidence.settings.control) {
            return Some(format!(
                "the deciding figure is missing in a trial of {} or of its control, and without the noise floor no ratio is judged",
                control.candidate
            ));
        }
        self.evidence
            .why_not_compared(&self.limit.candidate, against)
            .map(|why| why.message)
    }

    /// Unit for people; of a ratio, what it is a ratio of.
    fn unit(&self) -> String {
        let word = self.evidence.deciding.word();
        let units = &self.evidence.settings.units;
        match self.limit.quantity {
            Quantity::JoulesPerRequest => format!("{word} J/{}", units.one),
            Quantity::EnergyRatio => format!("ratio of {word} joules"),
            Quantity::MillisecondsPerRequest => format!("ms/{}", units.whole),
            Quantity::RequestsPerSecond => format!("{}s/s", units.one),
            Quantity::ErrorRatio => format!("errors/{}", units.whole),
        }
    }

    fn remark(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> String {
        let settings = self.evidence.settings;
        match (outcome, figure) {
            (BudgetOutcome::BelowNoiseFloor, _) => {
                ", which is closer to 1 than the noise floor".into()
            }
            (BudgetOutcome::Undecided, Some(_)) if self.is_broken(settings.claim_level) => format!(
                " (it is broken at this interval's confidence, not at the one that {} ask for)",
                match (settings.limits.len(), self.points) {
                    (limits, 1) => format!("{limits} limits"),
                    (1, points) => format!("{points} points"),
                    (limits, points) => format!("{limits} limits at {points} points"),
                }
            ),
            (BudgetOutcome::Undecided, Some(figure)) => {
                let blocks = self.evidence.blocks.len();
                if let Some(range) = self.boards() {
                    extreme(&range, self.limit.value).map_or_else(
                        || " (no number of blocks would: it depends on the board)".to_owned(),
                        |extreme| more_blocks(blocks, extreme, self.limit),
                    )
                } else {
                    let needed = more_blocks(blocks, figure, self.limit);
                    format!("{needed}{}", unknown_accuracy(figure))
                }
            }
            (BudgetOutcome::Met | BudgetOutcome::Exceeded, Some(figure))
                if figure.is_repeatability_only() =>
            {
                unknown_accuracy(figure).into()
            }
            (BudgetOutcome::Met, _) if self.limited.is_some() => {
                " (the injector limited it, so the candidate may be better)".into()
            }
            (BudgetOutcome::Met | BudgetOutcome::Exceeded, _)
                if self.limit.against.is_some() && settings.control.is_none() =>
            {
                " (without trials.control the noise floor is not known)".into()
            }
            (BudgetOutcome::Withheld, _) => self
                .why_withheld()
                .map(|why| format!(": {why}"))
                .unwrap_or_default(),
            _ => String::new(),
        }
    }
}

/// The extreme that keeps a limit from being decided by its interval alone; none where the limit lies between the two.
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

/// What must be said where a limit is decided without knowing how well the model's joules are known.
fn unknown_accuracy(figure: &Figure) -> &'static str {
    if figure.is_repeatability_only() {
        " (the model's accuracy is unknown: the trials' repeatability alone decides, as energy.allowModelled allows)"
    } else {
        ""
    }
}

/// A meter's part of an interval's square that is smaller than this share of the trials' part is rounding.
const ROUNDING: f64 = 1e-9;

/// Blocks that would decide, if figure and spread stayed as they are: the interval's half length falls
/// with the square root of the number of trials, and the meter's part of it does not. The bound of a
/// share of which nothing was seen falls with their number.
fn more_blocks(blocks: usize, figure: &Figure, limit: &Limit) -> String {
    let is_unseen = limit.quantity == Quantity::ErrorRatio && figure.value <= 0.0;
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
        return " (no number of blocks would: the meter and the ends of the windows are not known well enough)".into();
    }
    let times = if room > 0.0 {
        of_trials / room
    } else {
        f64::INFINITY
    };
    let needed = blocks as f64 * if is_unseen { times.sqrt() } else { times };
    let more = (needed - blocks as f64).ceil().max(1.0);
    if blocks as f64 + more <= f64::from(MAX_BLOCKS) {
        format!(
            " (about {more:.0} more blocks would: raise spec.trials.blocks, or the last of looks, which measures anew)"
        )
    } else {
        format!(" (the {MAX_BLOCKS} blocks that a run may have would not)")
    }
}
