//! The benchmark for some images. It has only the fields that differ from the defaults.

use frugality_operator::api::FrugalityBenchmark;
use kube::Resource as _;
use serde_json::{Map, Value, json};

use super::budget::{BudgetError, ImageLimit, budget};

/// The API's default of `load.connections`.
pub(super) const CONNECTIONS: i32 = 4;
/// The API's default of `trials.blocks`.
pub(super) const BLOCKS: i32 = 10;
/// The API's default of `candidates[].port`.
const PORT: i32 = 8080;
/// The API's default of `candidates[].readinessPath`.
const READINESS_PATH: &str = "/healthz";
/// The API's default of `load.duration`.
const DURATION: &str = "60s";
/// The API's default of `spec.deadline`, in seconds.
const DEADLINE_SECONDS: f64 = 6.0 * 3600.0;
/// The longest `spec.deadline` that the API accepts.
pub(super) const LONGEST_DEADLINE: &str = "336h";
/// The same in hours.
const MOST_HOURS: f64 = 336.0;
/// Time for void attempts and image pulls, as a multiple of the estimate.
const DEADLINE_FACTOR: f64 = 1.5;
/// Most characters of a candidate's name.
const MOST_NAME_CHARS: usize = 15;
/// Most characters of a benchmark's name.
const MOST_BENCHMARK_CHARS: usize = 30;
/// Name of the measured image, if the images have no distinct names.
const NEW: &str = "new";

/// What the benchmark is about.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    /// The measured image, and the images to compare it with.
    pub(super) images: Vec<&'a str>,
    /// Fields that all candidates have.
    pub(super) server: &'a Map<String, Value>,
    pub(super) path: &'a str,
    pub(super) readiness_path: Option<&'a str>,
    pub(super) port: Option<i32>,
    pub(super) connections: i32,
    pub(super) blocks: i32,
    pub(super) duration: Option<&'a str>,
    pub(super) budgets: &'a [ImageLimit],
    pub(super) allows_modelled: bool,
}

impl Draft<'_> {
    /// The benchmark.
    pub(super) fn object(&self, deadline: Option<&str>) -> Result<Value, BudgetError> {
        let names = candidate_names(&self.images);
        let candidates: Vec<Value> = names
            .iter()
            .zip(&self.images)
            .map(|(name, image)| self.candidate(name, image))
            .collect();
        let mut spec = json!({
            "candidates": candidates,
            "request": {"path": self.path},
        });
        let mut load = Map::new();
        if self.connections != CONNECTIONS {
            load.insert("connections".to_owned(), self.connections.into());
        }
        if let Some(duration) = self.duration.filter(|it| *it != DURATION) {
            load.insert("duration".to_owned(), duration.into());
        }
        if !load.is_empty() {
            spec["load"] = load.into();
        }
        if self.blocks != BLOCKS {
            spec["trials"] = json!({"blocks": self.blocks});
        }
        if self.allows_modelled {
            spec["energy"] = json!({"allowModelled": true});
        }
        if let Some(deadline) = deadline {
            spec["deadline"] = deadline.into();
        }
        let (first, others) = names.split_at(1);
        if let Some(budget) = budget(self.budgets, &first.concat(), others)? {
            spec["budgets"] = json!([budget]);
        }
        let mut metadata = Map::new();
        let name = self.name.map_or_else(|| self.default_name(), str::to_owned);
        metadata.insert("name".to_owned(), name.into());
        if let Some(namespace) = self.namespace {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        Ok(json!({
            "apiVersion": FrugalityBenchmark::api_version(&()),
            "kind": FrugalityBenchmark::kind(&()),
            "metadata": metadata,
            "spec": spec,
        }))
    }

    fn candidate(&self, name: &str, image: &str) -> Value {
        let mut candidate = self.server.clone();
        let mut set = |field: &str, value: Value| candidate.insert(field.to_owned(), value);
        set("name", name.into());
        set("image", image.into());
        if let Some(port) = self.port {
            set("port", port.into());
        }
        if let Some(path) = self.readiness_path {
            set("readinessPath", path.into());
        }
        candidate.retain(|field, value| match field.as_str() {
            "port" => *value != PORT,
            "readinessPath" => *value != READINESS_PATH,
            _ => true,
        });
        candidate.into()
    }

    fn default_name(&self) -> String {
        let name = self.images.first().map_or("", |image| base_name(image));
        let name = label(name, MOST_BENCHMARK_CHARS);
        let name = name.trim_start_matches(|it: char| !it.is_ascii_lowercase());
        if name.is_empty() {
            "benchmark".to_owned()
        } else {
            name.to_owned()
        }
    }
}

/// A deadline for a run of this length, if the default is too short.
pub(super) fn deadline(seconds: Option<f64>) -> Option<String> {
    let needed = seconds? * DEADLINE_FACTOR;
    (needed > DEADLINE_SECONDS).then(|| {
        let hours = (needed / 3600.0).ceil().min(MOST_HOURS);
        format!("{hours}h")
    })
}

/// The images' own names if they are distinct; else `new`, `old`, `old-2`.
fn candidate_names(images: &[&str]) -> Vec<String> {
    let own: Vec<String> = images
        .iter()
        .map(|image| label(base_name(image), MOST_NAME_CHARS))
        .collect();
    let is_distinct =
        |(index, name): (usize, &String)| !name.is_empty() && !own[..index].contains(name);
    if own.iter().enumerate().all(is_distinct) {
        return own;
    }
    (0..images.len())
        .map(|index| match index {
            0 => NEW.to_owned(),
            1 => "old".to_owned(),
            index => format!("old-{index}"),
        })
        .collect()
}

/// The last part of an image's name, without tag and digest.
fn base_name(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

/// The text as a DNS label of at most so many characters; empty if nothing is left.
fn label(text: &str, most: usize) -> String {
    let allowed = |it: char| {
        if it.is_ascii_alphanumeric() {
            it.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let text: String = text.chars().map(allowed).collect();
    let text: String = text.trim_matches('-').chars().take(most).collect();
    text.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_the_names_of_their_images_if_these_differ() {
        for (images, names) in [
            (&["ghcr.io/you/shop:1.2"][..], &["shop"][..]),
            (&["host:5000/rust@sha256:0", "python"], &["rust", "python"]),
            (
                &["you/shop:1.3", "you/shop:1.2", "you/shop:1"],
                &["new", "old", "old-2"],
            ),
            (&["You_Shop.Server-of-today"], &["you-shop-server"]),
            (&["___"], &["new"]),
        ] {
            assert_eq!(candidate_names(images), names);
        }
    }

    #[test]
    fn a_long_run_has_a_longer_deadline() {
        assert_eq!(deadline(None), None);
        assert_eq!(deadline(Some(4.0 * 3600.0)), None);
        assert_eq!(deadline(Some(5.0 * 3600.0)).as_deref(), Some("8h"));
        assert_eq!(deadline(Some(1e9)).as_deref(), Some("336h"));
    }
}
