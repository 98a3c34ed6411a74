//! The data for download, in the page.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use maud::{Markup, html};

use super::{
    super::input::{Objects, ReportError},
    parts::{self, absent},
};
use crate::export::csv;

/// Largest page, in bytes. Larger files do not pass many mail servers and chats.
const MOST_BYTES: usize = 1_500_000;
/// Room for the section around the data.
const MARGIN: usize = 4096;

/// A file in the page.
struct File {
    name: String,
    meaning: &'static str,
    kind: &'static str,
    bytes: Vec<u8>,
}

/// Links to the files. A file that would make the page too large is absent, and the page says how to get it.
pub(super) fn section(objects: &Objects, page_bytes: usize) -> Result<Markup, ReportError> {
    let name = objects.benchmark.metadata.name.as_deref();
    let name = name.unwrap_or("benchmark");
    let mut files = vec![File {
        name: format!("{name}.json"),
        meaning: "the benchmark with its status, as the API server has it",
        kind: "application/json",
        bytes: serde_json::to_vec(&objects.source)?,
    }];
    if !objects.trials.is_empty() {
        files.push(File {
            name: format!("{name}-ledger.csv"),
            meaning: "the attempts, as kubectl frugality export writes them",
            kind: "text/csv",
            bytes: csv(&objects.trials)?,
        });
    }
    let mut room = MOST_BYTES.saturating_sub(page_bytes + MARGIN);
    let items: Vec<_> = files
        .iter()
        .map(|file| {
            let link = file.link();
            let fits = link.len() <= room;
            if fits {
                room -= link.len();
            }
            file.item(name, fits.then_some(link))
        })
        .collect();
    let content = html! { ul class="downloads" { @for item in &items { (item) } } };
    let lead = "The files are in this page; the links need no network.";
    Ok(parts::section("data", "Data", lead, &content))
}

impl File {
    fn item(&self, benchmark: &str, link: Option<String>) -> Markup {
        let Some(link) = link else {
            let form = if self.kind == "text/csv" {
                "csv"
            } else {
                "json"
            };
            let text = format!(
                "{} is too large for this page. Write it with: kubectl frugality report {benchmark} -o {form}",
                self.name
            );
            return html! { li { (absent(&text)) } };
        };
        html! {
            li { a download=(self.name) href=(link) { (self.name) } ": " (self.meaning) }
        }
    }

    fn link(&self) -> String {
        let data = BASE64_STANDARD.encode(&self.bytes);
        format!("data:{};base64,{data}", self.kind)
    }
}
