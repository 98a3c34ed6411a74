//! How far the figures can be trusted, shown on data whose truth is known.
//!
//! Nothing here measures anything: nodes, meters and trials are drawn from a seed, and go through
//! the same code that a real run goes through, from the meter's text to the verdict. The same seed
//! gives the same numbers, whatever the number of threads.
//!
//! - [`energy`]: virtual nodes of known energy, by what their meters can do;
//! - [`trials`]: false winners, power and coverage over runs whose true ratio is known;
//! - [`fuzz`]: what the parsers of foreign text make of damaged input.
//!
//! What these share: [`experiment`] carries out a run by the operator's own plan, [`node`] is a node
//! with its meter, [`exact`] the theory to compare with.

pub mod energy;
pub mod exact;
pub mod experiment;
pub mod fuzz;
pub mod node;
pub mod parallel;
pub mod random;
pub mod table;
pub mod trials;

/// Why a section could not be carried out. None of these is a finding about the product.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The benchmark that the section is about cannot be read.
    #[error("the section's benchmark: {0}")]
    Benchmark(#[from] serde_json::Error),
    /// The same, found by the operator.
    #[error("the section's benchmark: {0}")]
    Settings(#[from] frugality_operator::plan::settings::SettingsError),
    /// The virtual injector's report is not one.
    #[error("the virtual injector's report: {0}")]
    Report(#[from] frugality_measure::report::ReportError),
    /// The virtual Fortio's result is not one.
    #[error("the virtual Fortio's result: {0}")]
    Fortio(#[from] frugality_measure::fortio::FortioError),
    /// The virtual meter's text is not one.
    #[error("the virtual meter's text: {0}")]
    Reading(#[from] frugality_measure::reading::ReadingError),
    /// A run without a judgement, an undisturbed attempt that is void, and their like.
    #[error("{0}")]
    Unexpected(String),
    /// The corpus cannot be read or written.
    #[error("{path}: {source}")]
    Corpus {
        /// File or folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}
