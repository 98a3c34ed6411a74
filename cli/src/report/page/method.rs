//! How the figures came about: what ran where, by which settings, and where the definitions are.

use std::collections::BTreeSet;

use frugality_operator::text;
use maud::{Markup, html};

use super::{parts, view::PageView};

/// The documents of the project.
pub(super) const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");

pub(super) fn section(view: &PageView<'_>) -> Markup {
    let content = html! {
        dl class="method" {
            @for (term, values) in terms(view) {
                div {
                    dt { (term) }
                    @if values.is_empty() {
                        dd class="none" { "unknown: neither status nor ledger has it" }
                    } @else {
                        @for value in &values { dd { (value) } }
                    }
                }
            }
        }
        (images(view))
        @if !view.status.notes.is_empty() {
            h3 { "Notes of the operator" }
            ul class="notes" { @for note in &view.status.notes { li { (note) } } }
        }
        p class="links" {
            "Definitions: "
            a href={ (DOCS) "measurement.md" } { "how it is measured" } ", "
            a href={ (DOCS) "measurement.md#what-decides" } { "what decides" } ", "
            a href={ (DOCS) "measurement.md#validity-checks" } { "validity checks" } ", "
            a href={ (DOCS) "runbook.md" } { "reason codes" } ", "
            a href={ (DOCS) "limits.md" } { "limits" } "."
        }
    };
    parts::section("method", "Method", "", &content)
}

type Term = (&'static str, Vec<String>);

fn terms(view: &PageView<'_>) -> Vec<Term> {
    let status = &view.status;
    let spec = &view.objects.benchmark.spec;
    let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<_>>();
    let of_ledger = |of: &dyn Fn(&frugality_operator::api::FrugalityTrial) -> Option<String>| {
        let values: BTreeSet<String> = view.attempts.iter().filter_map(|it| of(it)).collect();
        values.into_iter().collect::<Vec<_>>()
    };
    let platform = |of: fn(&frugality_measure::reading::Platform) -> Option<String>| {
        of_ledger(&move |trial| {
            let energy = trial.status.as_ref()?.energy.as_ref()?;
            of(&energy.conditions.platform)
        })
    };
    let look = status.look.map(|look| {
        format!(
            "{} of {}, after {} blocks per point; intervals {}, of ratios and budgets {}{}",
            look.number,
            look.of,
            look.blocks,
            text::confidence(look.confidence),
            text::confidence(look.claim_confidence),
            if status.has_stricter_ratios() {
                " or more"
            } else {
                ""
            },
        )
    });
    let blocks = spec.trials.looks.last().unwrap_or(&spec.trials.blocks);
    let mut terms = vec![
        ("Power", one(&status.provenance)),
        ("Meter", one(&status.meter)),
        ("Measured node", one(&status.measured_node)),
        ("Load from node", one(&status.injector_node)),
        ("Kernel", platform(|it| it.kernel.clone())),
        ("Frequency governor", platform(|it| it.governor.clone())),
        ("Firmware", platform(|it| it.firmware.clone())),
        (
            "Deciding figure",
            vec![view.kind_word().to_owned()]
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect(),
        ),
        ("Blocks at most", vec![blocks.to_string()]),
        ("Look", one(&look)),
        (
            "Seed of the order",
            of_ledger(&|it| Some(it.spec.seed.to_string())),
        ),
        ("Run", one(&status.run)),
        (
            "Tries with these settings",
            status.tries.iter().map(ToString::to_string).collect(),
        ),
        ("Digest of the ledger", one(&status.ledger_digest)),
    ];
    if let Some(end) = status.end() {
        terms.push(("Ended", vec![end.last_transition_time.0.to_string()]));
    }
    terms
}

/// The images by digest, as the ledger recorded them, next to those of the spec.
fn images(view: &PageView<'_>) -> Markup {
    let spec = &view.objects.benchmark.spec;
    let written = spec.candidates.iter().flat_map(|candidate| {
        let backends = candidate.backends.iter().map(|it| &it.server);
        let servers = std::iter::once(&candidate.server).chain(backends);
        servers.map(|server| (candidate.name.clone(), server.image.clone()))
    });
    let ran: BTreeSet<(String, String, String)> = view
        .attempts
        .iter()
        .filter_map(|trial| Some((trial, trial.status.as_ref()?)))
        .flat_map(|(trial, status)| {
            let candidate = &trial.spec.candidate;
            let images = status.images.iter();
            images.map(move |(container, digest)| {
                (candidate.clone(), container.clone(), digest.clone())
            })
        })
        .collect();
    let written = crate::table::Table::of(written)
        .text("CANDIDATE", |(candidate, _)| candidate.clone())
        .text("IMAGE IN THE SPEC", |(_, image)| image.clone())
        .grid();
    let ran = crate::table::Table::of(ran)
        .text("CANDIDATE", |(candidate, ..)| candidate.clone())
        .text("CONTAINER", |(_, container, _)| container.clone())
        .text("DIGEST THAT RAN", |(.., digest)| digest.clone())
        .grid();
    html! {
        h3 { "Images" }
        @if let Some(written) = &written { (parts::table("images in the spec", written)) }
        @match &ran {
            Some(ran) => { (parts::table("digests that ran", ran)) },
            None => { (parts::absent("No digests: the ledger that was given recorded none.")) }
        }
    }
}
