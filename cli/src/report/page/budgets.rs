//! Each budget as a bullet chart: the limit, the figure and its interval.

use frugality_operator::{
    api::{BudgetOutcome, BudgetResult},
    text::{self, Span},
};
use maud::Markup;

use super::{
    parts::{self, absent, chart, legend},
    view::PageView,
};
use crate::{
    gate::report::word,
    report::chart::{Align, Canvas, Chart, ChartError, SMALL, TEXT, WIDTH, axis::Axis, ink::Ink},
    table::{Table, dash},
};

const ROW: i32 = 108;
/// From the top of a row to the bar, and the bar's height.
const BAR: (i32, i32) = (36, 30);

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let budgets: Vec<Budget<'_>> = view
        .status
        .budgets
        .iter()
        .map(|it| Budget::of(view, it))
        .collect();
    let content = if budgets.is_empty() {
        absent(
            "No budget was judged: the status has none. Write spec.budgets to have figures judged.",
        )
    } else {
        let height = ROW * i32::try_from(budgets.len()).unwrap_or(i32::MAX / ROW);
        let sentences: Vec<_> = budgets
            .iter()
            .map(|it| it.result.message.as_str())
            .collect();
        let drawing = Chart {
            id: "budgets",
            title: "Budgets: limit, figure and interval".to_owned(),
            description: sentences.join(" "),
            height,
        }
        .draw(0, |canvas| {
            for (row, budget) in (0..).zip(&budgets) {
                budget.draw(canvas, row * ROW);
            }
        })?;
        let numbers = Table::of(&budgets)
            .text("CANDIDATE", |it| it.result.candidate.clone())
            .text("LIMIT", |it| it.name())
            .right("AT", |it| it.limit())
            .right("FIGURE", |it| it.figure().unwrap_or_else(dash))
            .text("RESULT", |it| word(it.result.outcome).to_owned())
            .text("IN WORDS", |it| it.result.message.clone())
            .grid();
        let legend = legend([
            ("k-limit", "limit"),
            ("k-beyond", "beyond the limit"),
            ("k-interval", "interval that decides, with the figure in it"),
        ]);
        let caption = "Figure and interval of each budget";
        chart(caption, &drawing, &legend, numbers.as_ref())
    };
    Ok(parts::section(
        "budgets",
        "Budgets",
        "A budget is met or exceeded only if the whole interval is on one side of the limit.",
        &content,
    ))
}

/// A budget in the unit in which it is shown.
struct Budget<'a> {
    result: &'a BudgetResult,
    /// From the unit of the field to the unit that is shown.
    factor: f64,
    unit: String,
    at: String,
}

impl<'a> Budget<'a> {
    fn of(view: &PageView<'_>, result: &'a BudgetResult) -> Self {
        let per = view.unit();
        let (kind, mark) = (view.kind_word(), view.provenance.mark());
        let (of_joules, joules) = text::joule_unit(result.limit_value);
        let (factor, unit) = match result.limit.as_str() {
            "maxJoulesPerRequest" => (of_joules, format!(" {kind} {joules}/{per}{mark}")),
            "maxMillisecondsPerRequest" => (1.0, format!(" ms/{}", view.units.whole)),
            "minRequestsPerSecond" => (1.0, format!(" {per}s/s")),
            "maxErrorRatio" => (100.0, " %".to_owned()),
            "maxEnergyRatio" | "minProportionality" => (1.0, mark.to_owned()),
            "maxEnergyDelayJouleSeconds" => (of_joules, format!(" {kind} {joules}·s/{per}{mark}")),
            "minRequestsPerJoule" => (1.0, format!(" {per}s/J{mark}")),
            "maxMarginalJoulesPerRequest" => {
                (of_joules, format!(" {joules} per additional {per}{mark}"))
            }
            "maxIdleWatts" => (1.0, format!(" W{mark}")),
            "maxIdleShare" => (100.0, format!(" %{mark}")),
            _ => (1.0, String::new()),
        };
        Self {
            result,
            factor,
            unit,
            // A figure of all load levels has no point.
            at: text::at(
                &result.point,
                view.has_several_points() && !result.point.is_empty(),
            ),
        }
    }

    fn name(&self) -> String {
        format!("{}{}", text::limit(self.result), self.at)
    }

    fn is_minimum(&self) -> bool {
        self.result.limit.starts_with("min")
    }

    fn limit_value(&self) -> f64 {
        self.result.limit_value * self.factor
    }

    fn limit(&self) -> String {
        let side = if self.is_minimum() {
            "at least"
        } else {
            "at most"
        };
        let limit = text::all_digits(self.limit_value());
        format!("{side} {limit}{}", self.unit)
    }

    /// The figure with its interval. `None` if it was withheld.
    fn figure(&self) -> Option<String> {
        let figure = self.result.figure?.times(self.factor);
        let limit = [self.limit_value()];
        let number = if figure.is_repeatability_only() {
            text::rough(figure.value, &limit)
        } else {
            Span::from(&figure).beside(&limit)
        };
        Some(format!("{number}{}", self.unit))
    }

    fn ink(&self) -> (Ink, &'static str) {
        match self.result.outcome {
            BudgetOutcome::Met => (Ink::Good, "✓"),
            BudgetOutcome::Exceeded => (Ink::Bad, "✗"),
            BudgetOutcome::Undecided | BudgetOutcome::BelowNoiseFloor => (Ink::Open, "≈"),
            BudgetOutcome::Withheld => (Ink::Faint, "–"),
        }
    }

    fn draw(&self, canvas: &mut Canvas<'_>, top: i32) {
        let (ink, sign) = self.ink();
        let (candidate, name) = (&self.result.candidate, self.name());
        canvas.bold(
            &format!("{candidate}  ·  {name}"),
            (0, top + 18),
            Align::Start,
            TEXT,
            Ink::Text,
        );
        let outcome = format!("{sign} {}", word(self.result.outcome));
        canvas.bold(&outcome, (WIDTH, top + 18), Align::End, TEXT, ink);
        let figure = self.result.figure.map(|it| it.times(self.factor));
        let limit = self.limit_value();
        let bounds = figure.map(|it| it.bounds());
        let most = bounds.map_or(limit, |(_, upper)| upper.max(limit));
        let axis = Axis::linear(0.0..(most * 1.25).max(f64::MIN_POSITIVE), (0, WIDTH));
        let (from, to) = (top + BAR.0, top + BAR.0 + BAR.1);
        let at_limit = axis.at(limit);
        canvas.rectangle((0, from), (WIDTH, to), Ink::Track);
        let beyond = if self.is_minimum() {
            (0, at_limit)
        } else {
            (at_limit, WIDTH)
        };
        canvas.rectangle((beyond.0, from), (beyond.1, to), Ink::Beyond);
        let middle = i32::midpoint(from, to);
        if let Some(figure) = figure {
            let at = axis.at(figure.value);
            canvas.rectangle((0, middle - 5), (at, middle + 5), ink);
            if let Some((lower, upper)) = bounds.filter(|_| !figure.is_repeatability_only()) {
                canvas.interval(axis.at(lower), axis.at(upper), middle, Ink::Text);
            }
            canvas.polygon(
                [
                    (at, middle - 11),
                    (at + 9, middle),
                    (at, middle + 11),
                    (at - 9, middle),
                ],
                Ink::Text,
            );
        }
        canvas.rectangle((at_limit - 2, from - 6), (at_limit + 2, to + 6), Ink::Limit);
        let figure = self.figure();
        let below = to + 18;
        let figure = figure.as_deref().unwrap_or("no trustworthy figure");
        canvas.text(figure, (0, below), Align::Start, SMALL, Ink::Text);
        canvas.text(&self.limit(), (WIDTH, below), Align::End, SMALL, Ink::Faint);
    }
}
