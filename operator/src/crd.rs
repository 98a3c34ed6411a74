//! The custom resource definitions as YAML, made from the Rust types.

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

use crate::api::{FrugalityBenchmark, FrugalityTrial};

/// The definitions could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// Not representable as YAML.
    #[error("cannot write YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    File {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

/// The definitions, by the name of the file that holds them.
#[must_use]
pub fn definitions() -> [(&'static str, CustomResourceDefinition); 2] {
    [
        ("frugalitybenchmarks.yaml", FrugalityBenchmark::crd()),
        ("frugalitytrials.yaml", FrugalityTrial::crd()),
    ]
    .map(|(name, mut definition)| {
        let versions = definition.spec.versions.iter_mut();
        for schema in versions.filter_map(|version| version.schema.as_mut()) {
            schema.open_api_v3_schema.iter_mut().for_each(join_lines);
        }
        (name, definition)
    })
}

/// Descriptions without the line ends of the source: `kubectl explain` keeps them, and breaks lines of its
/// own.
fn join_lines(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<String> = description
            .split("\n\n")
            .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|map| map.values_mut())
    {
        join_lines(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        join_lines(item);
    }
}

/// One definition as YAML.
pub fn to_yaml(definition: &CustomResourceDefinition) -> Result<String, CrdError> {
    Ok(serde_yaml::to_string(definition)?)
}

/// Prints all definitions, parted by `---`.
pub fn print() -> Result<(), CrdError> {
    for (_, definition) in definitions() {
        println!("---\n{}", to_yaml(&definition)?.trim_end());
    }
    Ok(())
}

/// Writes each definition to its file in `folder`.
pub fn write(folder: &Path) -> Result<(), CrdError> {
    for (name, definition) in definitions() {
        let path = folder.join(name);
        std::fs::write(&path, to_yaml(&definition)?)
            .map_err(|source| CrdError::File { path, source })?;
    }
    Ok(())
}
