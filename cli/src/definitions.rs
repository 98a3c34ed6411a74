//! The custom resource definitions as YAML, printed or as files.

use std::path::{Path, PathBuf};

use frugality_operator::crd::definitions;

/// Why the definitions were not written.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// Not representable as YAML.
    #[error("cannot write YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// A file could not be written.
    #[error("cannot write {path}: {source}. Name a folder that exists and that you may write to.", path = path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
}

/// All definitions as one text, each after a line `---`, in the order of the files' names.
pub fn print() -> Result<String, DefinitionsError> {
    let yaml = |(_, definition)| {
        let yaml = serde_yaml::to_string(&definition)?;
        Ok(format!("---\n{}\n", yaml.trim_end()))
    };
    let mut all = definitions();
    all.sort_by_key(|(name, _)| *name);
    all.into_iter().map(yaml).collect()
}

/// Writes each definition to its file in `folder`.
pub fn write(folder: &Path) -> Result<(), DefinitionsError> {
    for (name, definition) in definitions() {
        let path = folder.join(name);
        std::fs::write(&path, serde_yaml::to_string(&definition)?)
            .map_err(|source| DefinitionsError::Write { path, source })?;
    }
    Ok(())
}
