//! The data for download, in the page.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use maud::{Markup, html};
use serde_json::json;

use super::{
    super::input::{Objects, ReportCommandError},
    parts::{self, absent},
};
use crate::export::csv;

/// Largest page, in bytes. Larger files do not pass many mail servers and chats.
const MOST_BYTES: usize = 1_500_000;
/// Room for the section around the data.
const MARGIN: usize = 4096;

/// Media type of JSON.
const JSON: &str = "application/json";

/// A file in the page.
struct File {
    name: String,
    meaning: &'static str,
    kind: &'static str,
    /// The command that writes these data, for a page without room for the file.
    command: String,
    bytes: Vec<u8>,
}

/// Links to the files. A file that would make the page too large is absent, and the page says how to get it.
pub(super) fn section(objects: &Objects, page_bytes: usize) -> Result<Markup, ReportCommandError> {
    let metadata = &objects.benchmark.metadata;
    let name = metadata.name.as_deref().unwrap_or("benchmark");
    let target = match &metadata.namespace {
        Some(namespace) => format!("{name} --namespace {namespace}"),
        None => name.to_owned(),
    };
    let mut files = vec![File {
        name: format!("{name}.json"),
        meaning: "the benchmark with its status, as the API server has it",
        kind: JSON,
        command: format!("kubectl frugality report {target} -o json"),
        bytes: serde_json::to_vec(&objects.source)?,
    }];
    if !objects.trials.is_empty() {
        files.push(File {
            name: format!("{name}-ledger.csv"),
            meaning: "the attempts, as kubectl frugality export writes them",
            kind: "text/csv",
            command: format!("kubectl frugality report {target} -o csv"),
            bytes: csv(&objects.trials)?,
        });
    }
    if !objects.traces.is_empty() {
        // As CSV they would need twenty times the room.
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects.traces });
        files.push(File {
            name: format!("{name}-traces.json"),
            meaning: "the courses of the attempts; kubectl frugality export --traces --filename makes a table of this file",
            kind: JSON,
            command: format!("kubectl frugality export {target} --traces"),
            bytes: serde_json::to_vec(&list)?,
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
            file.item(fits.then_some(link))
        })
        .collect();
    let content = html! { ul class="downloads" { @for item in &items { (item) } } };
    let lead = "The files are in this page; the links need no network.";
    Ok(parts::section("data", "Data", lead, &content))
}

impl File {
    fn item(&self, link: Option<String>) -> Markup {
        let Some(link) = link else {
            let text = format!(
                "{} is too large for this page. Write it with: {}",
                self.name, self.command
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
