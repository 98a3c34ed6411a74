//! A limit and its figure in words.

use crate::{
    api::{BoardRange, BudgetOutcome, Figure},
    plan::{
        settings::{CurveFigure, Limit, Quantity},
        verdict::{budgets::judged::Judged, load_curve},
    },
    text::{self, Span},
};

impl Judged<'_> {
    /// Where the figure is from, as a part of a sentence.
    fn at(&self) -> String {
        let target = self.limit.p99_milliseconds;
        let target = target.map(|it| format!(" with p99 ≤ {} ms", text::all_digits(it)));
        let point = self.point();
        let at = text::at(&point, self.evidence.points > 1 && !point.is_empty());
        format!("{at}{}", target.unwrap_or_default())
    }

    /// The figure and the limit, as a part of a sentence.
    pub(super) fn clause(&self, figure: Option<&Figure>, outcome: BudgetOutcome) -> String {
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
                let (from_one, floor) = (100.0 * from_one, 100.0 * floor);
                let away = text::number_beside(from_one, &[floor]);
                let floor = text::number_beside(floor, &[from_one]);
                format!(
                    "{found}{at}; the {limit} is {away} % from 1, less than the noise floor of {floor} %"
                )
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
}

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
