//! The head of the page: verdict, source of the power, and the figures of each candidate.

use frugality_operator::{
    api::{CandidateResult, Figure, FrugalityBenchmark, Reason, Verdict},
    text,
};
use maud::{Markup, html};

use super::{
    parts::absent,
    quantity::energy_unit,
    view::{PageProvenance, PageView},
};
use crate::summarize;

/// What a Pass of a first release says.
const WITHOUT_BASELINE: &str = "There was no release to compare with, and spec.baseline.whenMissing lets it pass. The other budgets are met.";

/// Most candidates with a card each. The tables have all of them.
const MOST_CARDS: usize = 6;

pub(super) fn header(view: &PageView<'_>) -> Markup {
    let status = &view.status;
    let columns = status.columns.clone().unwrap_or_default();
    let (class, sign, word, sentence) = words(status.verdict);
    let reason = columns.reason.as_deref();
    let is_first = reason == Some(Reason::NoBaseline.as_str());
    let sentence = match status.verdict {
        Some(Verdict::Pass) if is_first => WITHOUT_BASELINE,
        _ => sentence,
    };
    let outdated = summarize::outdated(&view.objects.benchmark);
    let class = if outdated.is_some() { "plain" } else { class };
    html! {
        header {
            p class="kicker" { "Frugality · energy report" }
            h1 { (view.key) }
            div class={ "verdict " (class) } {
                p class="badge" {
                    span aria-hidden="true" { (sign) } " " (word)
                    @if outdated.is_some() { " for an earlier spec" }
                }
                div {
                    p class="sentence" {
                        @if let Some(outdated) = &outdated { strong { (outdated) } " " }
                        (sentence) (winner(view))
                    }
                    @if let Some(message) = &columns.message { p class="message" { (message) } }
                }
            }
            (banner(view))
            (cards(view))
        }
    }
}

/// Class, sign, word and sentence of a verdict.
fn words(verdict: Option<Verdict>) -> (&'static str, &'static str, &'static str, &'static str) {
    match verdict {
        Some(Verdict::Pass) => ("good", "✓", "Pass", "Every budget is met."),
        Some(Verdict::Fail) => ("bad", "✗", "Fail", "At least one budget is exceeded."),
        Some(Verdict::Inconclusive) => ("open", "≈", "Inconclusive", "The data do not decide."),
        Some(Verdict::Invalid) => (
            "bad",
            "!",
            "Invalid",
            "The experiment can’t give a trustworthy figure.",
        ),
        Some(Verdict::Error) => ("bad", "!", "Error", "The run ended with an error."),
        Some(Verdict::Reported) => (
            "plain",
            "●",
            "Reported",
            "The figures are reported. There are no budgets, so nothing was judged.",
        ),
        None => (
            "plain",
            "…",
            "No verdict yet",
            "The run has not ended. What follows may change.",
        ),
    }
}

/// Who wins, in a sentence with the ratio.
fn winner(view: &PageView<'_>) -> Markup {
    let status = &view.status;
    if status.results.is_empty() {
        return html! {};
    }
    let by = format!(
        "{} joules per {}{}",
        view.kind_word(),
        view.unit(),
        view.provenance.mark()
    );
    let of_winner = |winner: &String| {
        let mut comparisons = status.comparisons.iter();
        comparisons.find(|it| it.candidate == *winner)
    };
    let Some(winner) = &status.winner else {
        let of_summary = summarize::view::View::of(status, &view.units);
        return html! {
            @if let Some(note) = summarize::notes::winner(&of_summary) { " Result: " (note) "." }
        };
    };
    if let (Some(it), 1) = (of_winner(winner), status.comparisons.len()) {
        return html! {
            " " strong { (winner) } " needs " strong { (text::comparison(it)) } " times the "
            (by) " of " (it.against) "."
        };
    }
    html! {
        " " strong { (winner) } " needs the least " (by)
        @if view.has_several_points() { ", at every point" } "."
    }
}

/// Where the power is from.
fn banner(view: &PageView<'_>) -> Markup {
    let status = &view.status;
    let meter = status.meter.as_deref().unwrap_or("an unknown meter");
    let node = status.measured_node.as_deref().unwrap_or("unknown");
    let (sign, word, text) = match view.provenance {
        PageProvenance::Metered => (
            "◉",
            "Metered",
            format!("A physical instrument measured the power of node {node}: {meter}."),
        ),
        PageProvenance::Modelled => (
            "≈",
            "Modelled, not measured",
            format!(
                "No instrument measured power. {meter} computed it from the CPU use of node {node}. All joules on this page are modelled."
            ),
        ),
        PageProvenance::Fake => (
            "⚠",
            "Fake",
            format!(
                "The meter is fake ({meter} on node {node}). Ignore all energy figures on this page."
            ),
        ),
        PageProvenance::Unknown => (
            "?",
            "Source of power unknown",
            "The status does not say where the power is from.".to_owned(),
        ),
    };
    html! {
        div class={ "banner " (view.provenance.class()) } role="note" {
            strong { span aria-hidden="true" { (sign) } " " (word) } " " (text)
        }
    }
}

/// The figures of each candidate, if there is one point.
fn cards(view: &PageView<'_>) -> Markup {
    let results = &view.status.results;
    if results.is_empty() {
        let seen = FrugalityBenchmark::current_status(&view.objects.benchmark).is_some();
        return absent(if seen {
            "No figures: the status has no results."
        } else {
            "No figures: the operator has not seen this version of the benchmark yet."
        });
    }
    if view.has_several_points() || results.len() > MOST_CARDS {
        return html! {};
    }
    html! {
        div class="cards" {
            @for result in results { (card(view, result)) }
        }
        @for (reason, names) in summarize::view::withheld(&view.status, false) {
            p class="absent" { "Absent for " (names.join(", ")) ": " (reason) }
        }
    }
}

fn card(view: &PageView<'_>, result: &CandidateResult) -> Markup {
    let series = view.series(&result.candidate) % super::super::chart::ink::SERIES;
    let joules = view.joules(result);
    let unit = energy_unit(view);
    let is_winner = view.status.winner.as_deref() == Some(&result.candidate);
    let whole = view.units.whole;
    let row = |name: String, figure: Option<Figure>| {
        html! {
            div { dt { (name) } dd { (figure.map_or_else(|| "absent".to_owned(), |it| text::figure(&it))) } }
        }
    };
    html! {
        article class={ "card c" (series) } {
            h2 { (result.candidate) @if is_winner { span class="tag" { "least energy" } } }
            p class="big" {
                @match joules {
                    Some(joules) => { (text::figure(&joules.times(unit.factor))) " " span class="unit" { (unit.text) } },
                    None => { span class="none" { "absent" } " " span class="unit" { (unit.text) } },
                }
            }
            dl {
                (row(format!("{}s/s", view.unit()), result.requests_per_second))
                (row(format!("ms/{whole}"), result.milliseconds_per_request))
                (row(format!("CPU ms/{}", view.unit()), result.cpu_milliseconds_per_request))
                div { dt { "trials" } dd { (result.trials) } }
            }
        }
    }
}
