//! Checks how far the figures can be trusted, with data of known true values.
//!
//! This crate measures no hardware. It draws nodes, meters and trials at random from a seed. They go through the code
//! of a real run, from the meter's text to the verdict. The same seed gives the same numbers for any number of threads.
//!
//! - [`energy`]: virtual nodes of known energy, by kind of meter;
//! - [`trials`]: false winners, power and coverage over runs with a known true ratio;
//! - [`releases`]: verdicts of a release against the release before, at the margin and at equal energy;
//! - [`fuzz`]: results of the parsers of foreign text for damaged input.
//!
//! Shared modules: [`experiment`] carries out a run with the operator's own plan, [`node`] is a node
//! with its meter, [`exact`] computes the theoretical values for comparison.

pub mod energy;
pub mod exact;
pub mod experiment;
pub mod fuzz;
pub mod load_curves;
pub mod node;
pub mod parallel;
pub mod random;
pub mod releases;
pub mod table;
pub mod trials;

/// The reason why a section failed to run. These errors are defects of this crate, not findings about the product.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The section's benchmark is not valid JSON of its type.
    #[error("the section's benchmark: {0}")]
    Benchmark(#[from] serde_json::Error),
    /// The operator rejects the settings of the section's benchmark.
    #[error("the section's benchmark: {0}")]
    Settings(#[from] frugality_operator::plan::settings::SettingsError),
    /// The product cannot parse the virtual injector's report.
    #[error("the virtual injector's report: {0}")]
    Report(#[from] frugality_measure::report::ReportError),
    /// The product cannot parse the virtual Fortio's result.
    #[error("the virtual Fortio's result: {0}")]
    Fortio(#[from] frugality_measure::fortio::FortioError),
    /// The product cannot parse the virtual meter's text.
    #[error("the virtual meter's text: {0}")]
    Reading(#[from] frugality_measure::reading::ReadingError),
    /// An unexpected result, for example a run without a judgement or an undisturbed attempt that is void.
    #[error("{0}")]
    Unexpected(String),
    /// The corpus cannot be read or written.
    #[error("{path}: {source}")]
    Corpus {
        /// The file or folder.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
