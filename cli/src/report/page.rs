//! The page: one HTML file that loads nothing.

mod budgets;
mod comparisons;
mod course;
mod data;
mod figures;
mod latency;
mod method;
mod parts;
mod quantity;
mod slices;
mod sweep;
mod timeline;
mod verdict;
mod view;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::view::PageView;
use super::input::{Objects, ReportCommandError};

/// Style of the page.
const STYLE: &str = include_str!("page/style.css");
/// What the browser may load: nothing. The style is part of the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page for a benchmark and its attempts.
pub(super) fn html(objects: &Objects) -> Result<String, ReportCommandError> {
    let view = PageView::of(objects);
    let sections = [
        budgets::section(&view)?,
        comparisons::section(&view)?,
        figures::section(&view)?,
        sweep::section(&view)?,
        latency::section(&view)?,
        slices::section(&view)?,
        course::section(&view)?,
        timeline::section(&view)?,
        method::section(&view),
    ];
    let title = format!("{} – energy report", view.key);
    let page = |data: Markup| {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body class=(view.provenance.class()) {
                    (parts::patterns())
                    main {
                        (verdict::header(&view))
                        @for section in &sections { (section) }
                        (data)
                        footer {
                            p {
                                "Written by kubectl-frugality " (env!("CARGO_PKG_VERSION"))
                                ". Figures come from the benchmark’s status and ledger, and courses over time from its traces."
                            }
                        }
                    }
                }
            }
        }
    };
    let without_data = page(html! {}).into_string();
    let data = data::section(objects, without_data.len())?;
    Ok(page(data).into_string())
}
