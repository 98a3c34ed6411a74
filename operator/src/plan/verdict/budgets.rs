//! Limits against figures. The bounds of the interval decide, never its middle.
//!
//! "All budgets met" needs every claim and therefore no correction. One exceeded budget is enough for a Fail. Therefore the
//! required confidence rises with the number of limits (Holm).

use frugality_measure::{
    pace::Limited,
    statistics::{control::is_below_floor, multiplicity::holm},
};

use crate::{
    api::{Arrivals, BoardRange, BudgetOutcome, BudgetResult, Figure, MAX_BLOCKS, NoiseFloor},
    plan::{
        settings::{CurveFigure, Limit, Quantity},
        verdict::{
            evidence::Evidence,
            judgement::BudgetText,
            latency_target::{Fewest, fewest_joules},
            load_curve,
            pace::limit_words,
            point_result::PointResult,
        },
    },
    text::{self, Span},
};

/// The result of every limit at the point that decides it.
pub(super) fn budgets(
    points: &[Evidence<'_>],
    point_results: &[PointResult],
) -> Vec<(BudgetResult, BudgetText)> {
    let Some(settings) = points.first().map(|evidence| evidence.settings) else {
        return Vec::new();
    };
    // Limit by limit, and for each limit point by point.
    let judged: Vec<Judged<'_>> = settings
        .limits
        .iter()
        .flat_map(|limit| {
            let is_of_all = is_of_all_points(limit);
            let judges = |evidence: &Evidence<'_>| {
                // A load level has less than the highest rate on purpose.
                evidence.point.level.is_none() || limit.quantity != Quantity::RequestsPerSecond
            };
            let of_limit = points.iter().zip(point_results);
            let of_limit = of_limit.filter(|(evidence, _)| is_of_all || judges(evidence));
            let most = if is_of_all { 1 } else { points.len() };
            let of_limit: Vec<_> = of_limit.take(most).collect();
            let count = of_limit.len();
            of_limit.into_iter().map(move |(evidence, of_point)| {
                Judged::of(
                    points,
                    evidence,
                    limit,
                    of_point.noise_floor.as_ref(),
                    count,
                )
            })
        })
        .collect();
    // Half of an interval's error is at each end. Each limit's share of the error is spread over the looks (Y. Ye, A. Li,
    // L. Liu and B. Yao, Statistics in Medicine 32 (2013), 1112–1124).
    let exceeded = holm(
        judged.len(),
        settings.claim_error() / 2.0,
        |share| settings.level_of_looks(2.0 * share),
        |index, level| level.is_some_and(|level| judged[index].is_broken(level)),
    );
    let results: Vec<_> = judged
        .iter()
        .zip(exceeded)
        .map(|(limit, is_exceeded)| (limit, limit.result(is_exceeded)))
        .collect();
    results
        .chunk_by(|(one, _), (other, _)| std::ptr::eq(one.limit, other.limit))
        .filter_map(decisive)
        .collect()
}

/// Whether one figure of all points together is limited.
fn is_of_all_points(limit: &Limit) -> bool {
    matches!(limit.quantity, Quantity::OfCurve(_)) || limit.p99_milliseconds.is_some()
}

/// Whether a point is part of a figure of all points.
fn concerns(limit: &Limit, point: &Evidence<'_>) -> bool {
    match limit.quantity {
        Quantity::OfCurve(_) => point.point.level.is_some(),
        _ => point.has_comparable_times(),
    }
}

/// The result that decides a limit for all points: the worst outcome. If several points have it, the figure that is
/// nearest to the wrong side of the limit.
fn decisive(
    of_limit: &[(&Judged<'_>, (BudgetResult, BudgetText))],
) -> Option<(BudgetResult, BudgetText)> {
    let room = |judged: &Judged<'_>, result: &BudgetResult| {
        let figure = result.figure.as_ref();
        figure.map_or(0.0, |figure| judged.room(figure))
    };
    let worst = of_limit.iter().min_by(|(a, (one, _)), (b, (other, _))| {
        let by_outcome = severity(other.outcome).cmp(&severity(one.outcome));
        by_outcome.then(room(a, one).total_cmp(&room(b, other)))
    });
    worst.map(|(_, result)| result.clone())
}

/// Order in which the outcomes of several points decide: the largest wins.
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
    /// All points.
    all: &'a [Evidence<'a>],
    /// The point at which the limit is judged; the first if the figure is of all points.
    evidence: &'a Evidence<'a>,
    limit: &'a Limit,
    is_below_floor: bool,
    /// The noise floor, if the limit is a ratio and there is a control.
    floor: Option<f64>,
    /// Whether the spec has a control that gave no noise floor.
    has_no_floor: bool,
    /// How the injector limited the figure.
    limited: Option<Limited>,
    /// Number of points at which the limit is judged.
    points: usize,
}

impl<'a> Judged<'a> {
    fn of(
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
    fn boards(&self) -> Option<BoardRange> {
        let against = self.limit.against.as_ref()?;
        let level = self.evidence.settings.claim_level;
        let ratio = self.evidence.ratio(&self.limit.candidate, against, level)?;
        ratio.boards.filter(|_| !ratio.is_by_stated_accuracy)
    }

    fn figure(&self, level: f64) -> Option<Figure> {
        let figure = self.measured(level);
        match self.limited {
            // With a faster injector the candidate would be as good or better, so a limit that is met stays met.
            Some(_) if self.limit.quantity.gains_by_pace() => {
                figure.filter(|figure| self.is_kept(figure))
            }
            Some(_) => None,
            None => figure,
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
            None => self
                .evidence
                .limited(&limit.candidate, limit.quantity, level),
        }
    }

    /// The one figure of all points. Otherwise, why there is none.
    fn of_all_points(&self, level: f64) -> Result<Fewest, String> {
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
            _ => Err("the figure is of one point".to_owned()),
        }
    }

    /// The point that decides. Empty for a figure of all load levels.
    fn point(&self) -> String {
        if is_of_all_points(self.limit) {
            let level = self.evidence.settings.claim_level;
            let found = self.of_all_points(level).ok();
            let found = found.filter(|_| self.limited.is_none());
            return found.map(|it| it.point).unwrap_or_default();
        }
        self.evidence.point.name.clone()
    }

    /// Where the figure is from, as a part of a sentence.
    fn at(&self) -> String {
        let target = self.limit.p99_milliseconds;
        let target = target.map(|it| format!(" with p99 ≤ {} ms", text::all_digits(it)));
        let point = self.point();
        let at = text::at(&point, self.evidence.points > 1 && !point.is_empty());
        format!("{at}{}", target.unwrap_or_default())
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
            quantity if quantity.is_minimum() => lower > limit,
            // A limit of 0 requires a run without errors. No run can show that the true share is 0.
            Quantity::ErrorRatio => upper <= limit || (limit == 0.0 && figure.value == 0.0),
            _ => upper < limit,
        }
    }

    /// How far the interval's worse end is within the limit. Below 0 it is beyond the limit. All points have the same limit, so
    /// their distances compare.
    fn room(&self, figure: &Figure) -> f64 {
        let (limit, (lower, upper)) = (self.limit.value, figure.bounds());
        if self.limit.quantity.is_minimum() {
            lower - limit
        } else {
            limit - upper
        }
    }

    fn result(&self, is_exceeded: bool) -> (BudgetResult, BudgetText) {
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

    /// The figure and the limit, as a part of a sentence.
    fn clause(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> String {
        let at = self.at();
        let limit = self.limit_words();
        let Some(figure) = figure else {
            return format!("no trustworthy {}{at} ({limit})", self.name());
        };
        let unit = self.unit(figure);
        match outcome {
            BudgetOutcome::Met => format!("{}{at} ({limit})", unit.of(&unit.kept(figure))),
            BudgetOutcome::Undecided => {
                let broken = self.is_broken(self.evidence.settings.claim_level);
                let relation = match broken {
                    true if self.limit.quantity.is_minimum() => "is below",
                    true => "is above",
                    false if figure.is_repeatability_only() => "is too close to",
                    false => "contains",
                };
                let found = if figure.is_repeatability_only() {
                    unit.of(&unit.value(figure))
                } else {
                    format!("the interval {}", unit.of(&unit.ends(figure)))
                };
                format!("{found}{at} {relation} the {limit}")
            }
            BudgetOutcome::BelowNoiseFloor => {
                let found = unit.of(&unit.range(figure));
                let from_one = self.limit.value.max(1.0 / self.limit.value) - 1.0;
                let floor = self.floor.unwrap_or_default();
                let floor = text::number_beside(100.0 * floor, &[100.0 * from_one]);
                format!("{found}{at}; the {limit} is closer to 1 than the noise floor of {floor} %")
            }
            BudgetOutcome::Exceeded | BudgetOutcome::Withheld => {
                format!("{}{at} ({limit})", unit.of(&unit.range(figure)))
            }
        }
    }

    /// The limit exactly as the user wrote it, with its unit, and in the unit of its size if that is another one.
    fn limit_words(&self) -> String {
        let (limit, units) = (self.limit, &self.evidence.settings.units);
        let (value, written) = (limit.value, &limit.written);
        let of_joules = |times: &str| {
            let (factor, unit) = text::joule_unit(value);
            if unit == "J" {
                return format!("limit {written} J{times}");
            }
            let shown = text::all_digits(value * factor);
            format!("limit {written} J{times} = {shown} {unit}{times}")
        };
        match limit.quantity {
            Quantity::JoulesPerRequest | Quantity::OfCurve(CurveFigure::MarginalJoules) => {
                of_joules("")
            }
            Quantity::EnergyDelay => of_joules("·s"),
            Quantity::MillisecondsPerRequest => format!("limit {written} ms"),
            Quantity::RequestsPerSecond => format!("minimum {written} {}s/s", units.one),
            Quantity::ErrorRatio | Quantity::OfCurve(CurveFigure::IdleShare) if value > 0.0 => {
                format!("limit {written} = {} %", text::all_digits(100.0 * value))
            }
            Quantity::OfCurve(CurveFigure::RequestsPerJoule) => {
                format!("minimum {written} {}s/J", units.one)
            }
            Quantity::OfCurve(CurveFigure::IdleWatts) => format!("limit {written} W"),
            Quantity::OfCurve(CurveFigure::Proportionality) => format!("minimum {written}"),
            Quantity::ErrorRatio
            | Quantity::EnergyRatio
            | Quantity::OfCurve(CurveFigure::IdleShare) => format!("limit {written}"),
        }
    }

    /// The limited quantity in words.
    fn name(&self) -> String {
        let word = self.evidence.deciding.word();
        let units = &self.evidence.settings.units;
        let against = self.limit.against.as_deref().unwrap_or_default();
        match self.limit.quantity {
            Quantity::JoulesPerRequest => format!("{word} joules/{}", units.one),
            Quantity::EnergyRatio => format!("ratio to {against}'s {word} joules"),
            Quantity::MillisecondsPerRequest => format!("ms/{}", units.whole),
            Quantity::RequestsPerSecond => format!("{}s/s", units.one),
            Quantity::ErrorRatio => "share of errors".to_owned(),
            Quantity::EnergyDelay => "energy-delay product".to_owned(),
            Quantity::OfCurve(which) => load_curve::name(which).to_owned(),
        }
    }

    /// The unit for this figure.
    fn unit(&self, figure: &Figure) -> Unit<'_> {
        let word = self.evidence.deciding.word();
        let units = &self.evidence.settings.units;
        let against = self.limit.against.as_deref().unwrap_or_default();
        let (factor, before, after) = match self.limit.quantity {
            Quantity::JoulesPerRequest => {
                let (factor, unit) = text::joule_unit(figure.value);
                (factor, "", format!(" {word} {unit}/{}", units.one))
            }
            Quantity::EnergyRatio if self.boards().is_some() => (
                1.0,
                "",
                format!(" of {against}'s {word} joules on every board"),
            ),
            Quantity::EnergyRatio => (1.0, "", format!(" of {against}'s {word} joules")),
            Quantity::MillisecondsPerRequest => (1.0, "", format!(" ms/{}", units.whole)),
            Quantity::RequestsPerSecond => (1.0, "", format!(" {}s/s", units.one)),
            Quantity::ErrorRatio => (100.0, "errors ", " %".to_owned()),
            Quantity::EnergyDelay => {
                let (factor, unit) = text::joule_unit(figure.value);
                (factor, "", format!(" {word} {unit}·s/{}", units.one))
            }
            Quantity::OfCurve(CurveFigure::RequestsPerJoule) => {
                (1.0, "", format!(" {}s/J", units.one))
            }
            Quantity::OfCurve(CurveFigure::MarginalJoules) => {
                let (factor, unit) = text::joule_unit(figure.value);
                (factor, "", format!(" {unit} per additional {}", units.one))
            }
            Quantity::OfCurve(CurveFigure::IdleWatts) => (1.0, "idle power ", " W".to_owned()),
            Quantity::OfCurve(CurveFigure::IdleShare) => (100.0, "idle share ", " %".to_owned()),
            Quantity::OfCurve(CurveFigure::Proportionality) => {
                (1.0, "proportionality ", String::new())
            }
        };
        Unit {
            factor,
            before,
            after,
            boards: self.boards(),
            limit: self.limit,
        }
    }

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
            return Vec::new();
        };
        if let (true, Some(control)) = (self.has_no_floor, &self.evidence.settings.control) {
            return vec![format!(
                "The noise floor is not known, because the deciding figure is missing in a trial of {} or of its control.",
                control.candidate
            )];
        }
        let why = self
            .evidence
            .why_not_compared(&self.limit.candidate, against);
        why.map(|why| why.message).into_iter().collect()
    }

    /// What follows from the outcome, in sentences.
    fn remarks(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> Vec<String> {
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

    /// Whether requests waited for the answers before them.
    fn has_closed_loop(&self) -> bool {
        let candidate = &self.limit.candidate;
        let mut points = self.all.iter().filter(|it| concerns(self.limit, it));
        points.any(|it| it.arrivals(candidate) == Some(Arrivals::Closed))
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
                "With {of} a Fail needs a higher confidence, at which the interval contains the limit."
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
                "About {more} more blocks would decide: raise the last of spec.trials.looks, which starts a new run."
            ),
            Blocks::More(more) => format!(
                "About {more} more blocks would decide: raise spec.trials.blocks, which starts a new run."
            ),
            Blocks::TooMany => format!(
                "More blocks would not help: {MAX_BLOCKS}, the maximum, are not enough."
            ),
            Blocks::NoNumber => "More blocks would not help: the error of the meter and of the window's edges is too large.".into(),
        }
    }
}

/// The remark on a limit that is decided without the accuracy of the model's joules.
pub(super) const UNKNOWN_MODEL: &str = "The model's accuracy is unknown, so only the spread between trials decides, as energy.allowModelled allows.";
const UNKNOWN_METER: &str =
    "The interval excludes the meter's accuracy, which the meter does not report.";
const MET_WITHOUT_METER: &str =
    "The decision excludes the meter's accuracy, which the meter does not report.";
const CLOSED_LOOP: &str = "The latency is from a closed loop: it leaves out the time that requests wait behind a slow answer.";
const UNKNOWN_FLOOR: &str = "The noise floor is not known, because trials.control is not set.";

/// A unit for people, with the factor from the figure to the unit. Each number is shown on its side of the limit.
struct Unit<'a> {
    factor: f64,
    before: &'static str,
    after: String,
    boards: Option<BoardRange>,
    limit: &'a Limit,
}

impl Unit<'_> {
    fn of(&self, amount: &str) -> String {
        format!("{}{amount}{}", self.before, self.after)
    }

    /// The limit in this unit.
    fn edge(&self) -> f64 {
        self.limit.value * self.factor
    }

    /// What keeps the limit: the figure, or the upper bound of an error ratio. That bound says how much the trials have shown,
    /// even if no request failed.
    fn kept(&self, figure: &Figure) -> String {
        let (_, upper) = figure.bounds();
        if self.limit.quantity == Quantity::ErrorRatio && upper <= self.limit.value {
            let bound = text::at_most(upper * self.factor, self.edge());
            return format!("at most {bound}");
        }
        self.value(figure)
    }

    /// The figure alone, with the digits that its interval allows.
    fn value(&self, figure: &Figure) -> String {
        let edges = [self.edge()];
        if let Some(range) = &self.boards {
            return Span::from(range).values_beside(&edges);
        }
        let figure = figure.times(self.factor);
        if figure.is_repeatability_only() {
            return text::rough(figure.value, &edges);
        }
        let (lower, upper) = figure.bounds();
        text::beside(figure.value, (upper - lower) / 2.0, &edges)
    }

    /// The figure with its interval; without one if the interval says nothing about joules.
    fn range(&self, figure: &Figure) -> String {
        if self.boards.is_none() && figure.is_repeatability_only() {
            return self.value(figure);
        }
        self.span(figure).beside(&self.edges())
    }

    /// The interval alone.
    fn ends(&self, figure: &Figure) -> String {
        self.span(figure).interval_beside(&self.edges())
    }

    fn span(&self, figure: &Figure) -> Span {
        match &self.boards {
            Some(range) => range.into(),
            None => (&figure.times(self.factor)).into(),
        }
    }

    /// The numbers with which a reader compares an interval: the limit, and 1 if it is a ratio's.
    fn edges(&self) -> Vec<f64> {
        let one = (self.limit.quantity == Quantity::EnergyRatio).then_some(1.0);
        one.into_iter().chain([self.edge()]).collect()
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
