//! All attempts of the run over time, void ones with their reason; temperature and clock of the node.

mod conditions;

use std::collections::{BTreeMap, BTreeSet};

use frugality_measure::energy::Window;
use frugality_operator::{
    api::{FrugalityTrial, Outcome},
    text,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use maud::{Markup, html};

use super::{
    method::DOCS,
    parts::{self, absent, chart, legend},
    view::{PageView, distinct},
};
use crate::{
    report::chart::{
        Align, Canvas, Chart, ChartError, SMALL, TEXT, WIDTH,
        axis::Axis,
        ink::{Ink, VOIDS},
    },
    table::{Table, dash},
};

const ROW: i32 = 54;
const TOP: i32 = 26;
const BOTTOM: i32 = 54;
const PLOT: (i32, i32) = (170, WIDTH - 10);
const TICKS: usize = 8;
/// Most attempts with a row each. The file with the ledger has all of them.
pub(super) const MOST_ROWS: usize = 500;
/// Narrowest bar.
const LEAST: i32 = 3;

/// An attempt, with its times in Unix seconds if the ledger has them.
struct Attempt<'a> {
    trial: &'a FrugalityTrial,
    outcome: Option<Outcome>,
    /// Letter of the reason, if the attempt is void or failed.
    letter: Option<char>,
    times: Option<(f64, f64)>,
}

pub(super) fn section(view: &PageView<'_>) -> Result<Markup, ChartError> {
    let letters = letters(view);
    let attempts: Vec<_> = view
        .attempts
        .iter()
        .map(|trial| Attempt::of(trial, &letters))
        .collect();
    let content = if attempts.is_empty() {
        absent(
            "No attempts: the input has no FrugalityTrial of this run. Add them: kubectl get fb,fbt -o json",
        )
    } else {
        drawn(view, &attempts, &letters)?
    };
    let lead = "Every attempt of the run, void ones included. Something outside the candidate disturbed a void attempt. Its block is measured again.";
    Ok(parts::section("attempts", "All attempts", lead, &content))
}

/// A letter for each reason of attempts that do not count.
fn letters(view: &PageView<'_>) -> BTreeMap<String, char> {
    let reasons = view.attempts.iter().filter_map(|trial| {
        let status = trial.status.as_ref()?;
        let is_lost = matches!(status.outcome, Some(Outcome::Void | Outcome::Failed));
        status.reason.as_deref().filter(|_| is_lost)
    });
    distinct(reasons)
        .into_iter()
        .zip(('A'..='Z').chain('a'..='z'))
        .collect()
}

impl<'a> Attempt<'a> {
    fn of(trial: &'a FrugalityTrial, letters: &BTreeMap<String, char>) -> Self {
        let status = trial.status.as_ref();
        let outcome = status.and_then(|it| it.outcome);
        let reason = status.and_then(|it| it.reason.as_ref());
        Self {
            trial,
            outcome,
            letter: reason.and_then(|it| letters.get(it)).copied(),
            times: times(trial),
        }
    }

    /// Colour and pattern of the candidate if the attempt counts, otherwise of the reason.
    fn ink(&self, series: usize) -> Ink {
        match self.outcome {
            Some(Outcome::Measured) => Ink::Series(series),
            Some(Outcome::Void) => self.letter.map_or(Ink::Faint, |it| Ink::Void(number(it))),
            Some(Outcome::Failed) => Ink::Failed,
            None => Ink::Running,
        }
    }

    fn outcome(&self) -> &'static str {
        match self.outcome {
            Some(Outcome::Measured) => "Measured",
            Some(Outcome::Void) => "Void",
            Some(Outcome::Failed) => "Failed",
            None => "under way",
        }
    }

    fn reason(&self) -> String {
        let status = self.trial.status.as_ref();
        status.and_then(|it| it.reason.clone()).unwrap_or_default()
    }

    fn message(&self) -> String {
        let status = self.trial.status.as_ref();
        status.and_then(|it| it.message.clone()).unwrap_or_default()
    }
}

/// A reason's number, from its letter.
fn number(letter: char) -> usize {
    ('A'..letter).count()
}

/// From the creation of the entry to its outcome. Without these times, from the first to the last window.
fn times(trial: &FrugalityTrial) -> Option<(f64, f64)> {
    let status = trial.status.as_ref();
    let created = trial.creation_timestamp().map(|it| it.0);
    let finished: Option<Timestamp> = status
        .and_then(|it| it.finished_at.as_ref())
        .and_then(|it| it.parse().ok());
    let windows: Vec<Window> = status
        .map(|it| [it.idle_before, it.window, it.idle_after])
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    let seconds = |time: Timestamp| time.as_millisecond() as f64 / 1000.0;
    let begin = created
        .map(seconds)
        .or_else(|| Some(windows.first()?.start_unix_seconds))?;
    let end = finished
        .map(seconds)
        .or_else(|| Some(windows.last()?.end_unix_seconds))?;
    (end >= begin).then_some((begin, end))
}

fn drawn(
    view: &PageView<'_>,
    attempts: &[Attempt<'_>],
    letters: &BTreeMap<String, char>,
) -> Result<Markup, ChartError> {
    let rows = distinct(attempts.iter().map(|it| it.trial.spec.candidate.as_str()));
    let timed = || attempts.iter().filter_map(|it| Some((it, it.times?)));
    let begin = timed().map(|(_, (begin, _))| begin).reduce(f64::min);
    let end = timed().map(|(_, (_, end))| end).reduce(f64::max);
    let lost = lost(attempts, letters);
    let said: Vec<_> = lost
        .iter()
        .map(|it| format!("{}: {}, {}", it.letter, it.reason, it.count))
        .collect();
    let caption = caption(view, attempts);
    let description = format!("{caption}. {}", said.join("; "));
    let energy = format!("GROSS ENERGY{}", view.provenance.mark().to_uppercase());
    let has_room = attempts.len() <= MOST_ROWS;
    let with_row = attempts.iter().filter(|it| has_room || it.letter.is_some());
    let numbers = Table::of(with_row.take(MOST_ROWS))
        .text("ATTEMPT", |it| it.trial.name_any())
        .text("POINT", |it| it.trial.spec.point.clone())
        .right("BLOCK", |it| it.trial.spec.block.to_string())
        .text("CANDIDATE", |it| it.trial.spec.candidate.clone())
        .text("OUTCOME", |it| it.outcome().to_owned())
        .text("REASON", |it| it.reason())
        .text("IN WORDS", |it| it.message())
        .right(energy, |it| column(it, |columns| columns.energy.clone()))
        .right("RATE", |it| column(it, |columns| columns.rate.clone()))
        .grid();
    let drawing = match (begin, end) {
        (Some(begin), Some(end)) => {
            let axis = Axis::linear(0.0..((end - begin) / 60.0).max(0.1), PLOT);
            let count = i32::try_from(rows.len()).unwrap_or(i32::MAX / ROW);
            let bottom = TOP + count * ROW;
            Some(
                Chart {
                    id: "attempts",
                    title: "Attempts over time".to_owned(),
                    description,
                    height: bottom + BOTTOM,
                }
                .draw(0, |canvas| {
                    let names: Vec<_> = rows.iter().map(|it| view.label(it)).collect();
                    frame(canvas, &axis, &names, bottom);
                    // Of many attempts, some have the same place in the chart.
                    let mut places = BTreeSet::new();
                    for (attempt, times) in timed() {
                        let row = rows
                            .iter()
                            .position(|it| *it == attempt.trial.spec.candidate)
                            .and_then(|it| i32::try_from(it).ok())
                            .unwrap_or(0);
                        let [from, to] =
                            <[f64; 2]>::from(times).map(|it| axis.at((it - begin) / 60.0));
                        if !places.insert((row, from, to, attempt.letter)) {
                            continue;
                        }
                        let series = view.series(&attempt.trial.spec.candidate);
                        bar(canvas, attempt, series, (from, to), TOP + row * ROW);
                    }
                })?,
            )
        }
        _ => None,
    };
    let legend = legend_of(attempts, &lost);
    if let Some(drawing) = &drawing {
        return Ok(html! {
            (chart(&caption, drawing, &legend, numbers.as_ref()))
            (conditions::charts(view, attempts, begin.zip(end))?)
        });
    }
    Ok(html! {
        p { (caption) }
        (legend)
        @if let Some(numbers) = &numbers { (parts::folded("The numbers as a table", "attempts", numbers)) }
    })
}

/// The number of attempts with each outcome, and of measured attempts that do not count.
fn caption(view: &PageView<'_>, attempts: &[Attempt<'_>]) -> String {
    let counts = [
        (Some(Outcome::Measured), "measured"),
        (Some(Outcome::Void), "void"),
        (Some(Outcome::Failed), "failed"),
        (None, "under way"),
    ];
    let count = |outcome| attempts.iter().filter(|it| it.outcome == outcome).count();
    let counts: Vec<_> = counts
        .into_iter()
        .map(|(outcome, word)| (count(outcome), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let is_valid = |trial: &FrugalityTrial| view.valid.iter().any(|it| std::ptr::eq(*it, trial));
    let measured = attempts
        .iter()
        .filter(|it| it.outcome == Some(Outcome::Measured));
    let repeated = measured.filter(|it| !is_valid(it.trial)).count();
    let repeated = match repeated {
        0 => String::new(),
        count => format!(
            ". {count} measured attempts are of blocks that were repeated, and do not count"
        ),
    };
    format!(
        "{} attempts: {}{repeated}",
        attempts.len(),
        counts.join(", ")
    )
}

/// A reason of attempts that do not count.
struct Lost<'a> {
    reason: &'a str,
    letter: char,
    /// Number of attempts with this reason.
    count: usize,
    /// Class of the sample in the legend.
    sample: String,
}

fn lost<'a>(attempts: &[Attempt<'_>], letters: &'a BTreeMap<String, char>) -> Vec<Lost<'a>> {
    let mut lost: Vec<_> = letters
        .iter()
        .map(|(reason, letter)| {
            let of_reason = || attempts.iter().filter(|it| it.letter == Some(*letter));
            let is_void = of_reason().any(|it| it.outcome == Some(Outcome::Void));
            Lost {
                reason,
                letter: *letter,
                count: of_reason().count(),
                sample: if is_void {
                    format!("swatch k-void{}", number(*letter) % VOIDS)
                } else {
                    "swatch k-failed".to_owned()
                },
            }
        })
        .collect();
    lost.sort_by_key(|it| it.letter);
    lost
}

fn legend_of(attempts: &[Attempt<'_>], lost: &[Lost<'_>]) -> Markup {
    let untimed = attempts.iter().filter(|it| it.times.is_none()).count();
    html! {
        (legend([
            ("k-measured", "measured, in the colour of the candidate"),
            ("k-void0", "void, with a letter for each reason"),
            ("k-failed", "failed"),
            ("k-running", "under way"),
        ]))
        @if !lost.is_empty() {
            ul class="reasons" {
                @for Lost { reason, letter, count, sample } in lost {
                    li { span class=(sample) aria-hidden="true" {} b { (letter) } " " (reason) ": " (count) " "
                        a href={ (DOCS) "runbook.md#void-attempts" } { "meaning of " (reason) } }
                }
            }
        }
        @if attempts.len() > MOST_ROWS {
            p class="small" { "The table has only attempts that do not count, at most " (MOST_ROWS) ". The ledger as a file has all attempts." }
        }
        @if untimed > 0 {
            (absent(&format!("Not drawn: {untimed} attempts whose times the ledger does not have. The table has them.")))
        }
    }
}

fn column(
    attempt: &Attempt<'_>,
    of: impl Fn(&frugality_operator::api::TrialColumns) -> Option<String>,
) -> String {
    let status = attempt.trial.status.as_ref();
    let columns = status.and_then(|it| it.columns.as_ref());
    columns.and_then(of).unwrap_or_else(dash)
}

fn frame(canvas: &mut Canvas<'_>, axis: &Axis, rows: &[&str], bottom: i32) {
    for tick in axis.ticks(TICKS) {
        let x = axis.at(tick);
        canvas.line([(x, TOP), (x, bottom)], Ink::Grid, 1);
        let label = text::all_digits(tick);
        canvas.text(&label, (x, bottom + 18), Align::Middle, SMALL, Ink::Faint);
    }
    let unit = "minutes since the first attempt";
    canvas.text(unit, (PLOT.1, bottom + 42), Align::End, SMALL, Ink::Faint);
    for (row, name) in (0..).zip(rows) {
        let middle = TOP + row * ROW + ROW / 2;
        let name = text::shortened(name, 16);
        canvas.bold(&name, (0, middle), Align::Start, TEXT, Ink::Text);
    }
}

fn bar(
    canvas: &mut Canvas<'_>,
    attempt: &Attempt<'_>,
    series: usize,
    (from, to): (i32, i32),
    top: i32,
) {
    // A gap separates neighbours.
    let to = (to - 2).max(from + LEAST);
    let ends = ((from, top + 14), (to, top + ROW - 8));
    canvas.rectangle(ends.0, ends.1, attempt.ink(series));
    if attempt.outcome != Some(Outcome::Measured) {
        canvas.frame(ends.0, ends.1, Ink::Axis);
    }
    if let Some(letter) = attempt.letter {
        let above = (i32::midpoint(from, to), top + 4);
        canvas.bold(&letter.to_string(), above, Align::Middle, SMALL, Ink::Text);
    }
}
