//! The custom resource definitions as YAML, made from the Rust types.

use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
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
