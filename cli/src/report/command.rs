//! The command line of a report.

use std::path::{Path, PathBuf};

use frugality_operator::api::{FrugalityBenchmark, FrugalityTrace, FrugalityTrial};

use super::{
    input::{Objects, ReportCommandError},
    report,
};
use crate::{cluster::ClusterError, input::InputSource};

/// Help below the options.
pub const HELP: &str = "\
Forms, and the extensions that mean them:
  html      .html  one page with charts, tables and the data; loads nothing
  markdown  .md    verdict, budgets and figures
  text      .txt   what summarize prints
  json      .json  the benchmark and its attempts
  csv       .csv   the attempts, as export writes them
  junit     .xml   verdict and budgets as test cases

Examples:
  # A page to send to others
  kubectl frugality report rust-vs-python --namespace shop -o report.html

  # The same on standard output
  kubectl frugality report rust-vs-python -o html > report.html

  # Without a cluster, from what kubectl printed before
  kubectl get fb,fbt,fbtr --namespace shop -o json > shop.json
  kubectl frugality report --filename shop.json -o report.html";

/// The options of `kubectl frugality report`.
#[derive(Clone, Debug, clap::Args)]
pub struct ReportOptions {
    #[command(flatten)]
    source: InputSource,
    /// A form, written to standard output, or a file, whose extension names the form.
    #[arg(long, short, value_name = "FORM|FILE", default_value = "text", value_parser = output)]
    output: Output,
}

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// One page that loads nothing.
    Html,
    /// Verdict, budgets and figures for a pipeline's summary page.
    Markdown,
    /// Tables for a terminal.
    Text,
    /// The benchmark and its attempts.
    Json,
    /// The attempts.
    Csv,
    /// Verdict and budgets as JUnit XML.
    Junit,
}

/// Each form with its name and with the extensions that mean it.
const FORMATS: [(ReportFormat, &str, &[&str]); 6] = [
    (ReportFormat::Html, "html", &["html", "htm"]),
    (ReportFormat::Markdown, "markdown", &["md", "markdown"]),
    (ReportFormat::Text, "text", &["txt"]),
    (ReportFormat::Json, "json", &["json"]),
    (ReportFormat::Csv, "csv", &["csv"]),
    (ReportFormat::Junit, "junit", &["xml"]),
];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Output {
    format: ReportFormat,
    /// `None` is standard output.
    file: Option<PathBuf>,
}

/// A form by its name, or else a file by its extension.
fn output(text: &str) -> Result<Output, String> {
    if let Some((format, ..)) = FORMATS.iter().find(|(_, name, _)| *name == text) {
        return Ok(Output {
            format: *format,
            file: None,
        });
    }
    let file = PathBuf::from(text);
    let extension = file.extension().and_then(|it| it.to_str());
    let extension = extension.map(str::to_lowercase).unwrap_or_default();
    FORMATS
        .iter()
        .find(|(.., extensions)| extensions.contains(&extension.as_str()))
        .map(|(format, ..)| Output {
            format: *format,
            file: Some(file.clone()),
        })
        .ok_or_else(|| {
            let names: Vec<_> = FORMATS.iter().map(|(_, name, _)| *name).collect();
            format!(
                "write {}, or a file that ends in .html, .md, .txt, .json, .csv or .xml",
                names.join(", ")
            )
        })
}

impl ReportOptions {
    /// File to write. `None` is standard output.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.output.file.as_deref()
    }

    /// Reads the objects and returns the report.
    pub async fn run(&self) -> Result<Vec<u8>, ReportCommandError> {
        report(&self.objects().await?, self.output.format)
    }

    async fn objects(&self) -> Result<Objects, ReportCommandError> {
        let source = &self.source;
        if !source.is_cluster() {
            return Objects::in_list(source.open("fb,fbt,fbtr")?);
        }
        let name = source.name.as_deref().ok_or(ReportCommandError::NoName)?;
        let cluster = source.access.connect().await?;
        let benchmark = cluster.get::<FrugalityBenchmark>(name).await?;
        let ledger = cluster.list::<FrugalityTrial>(false).await?;
        let traces = match self.output.format {
            ReportFormat::Html => cluster.list::<FrugalityTrace>(false).await.map(Some),
            _ => Ok(None),
        };
        // An installation of an earlier version has no traces, or gives no right to read them.
        let traces = match traces {
            Err(ClusterError::NotInstalled(_) | ClusterError::Refused { code: 403, .. }) => None,
            traces => traces?,
        };
        Objects::of(&benchmark, &ledger, traces.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_a_form_or_a_file_whose_extension_names_the_form() {
        for (text, format, file) in [
            ("html", ReportFormat::Html, None),
            ("junit", ReportFormat::Junit, None),
            ("report.html", ReportFormat::Html, Some("report.html")),
            ("out/REPORT.HTM", ReportFormat::Html, Some("out/REPORT.HTM")),
            ("energy.xml", ReportFormat::Junit, Some("energy.xml")),
            ("./json.csv", ReportFormat::Csv, Some("./json.csv")),
        ] {
            let file = file.map(PathBuf::from);
            assert_eq!(output(text), Ok(Output { format, file }), "{text}");
        }
        for text in ["pdf", "report.pdf", "HTML", "", "./html"] {
            assert!(output(text).unwrap_err().contains(".html"), "{text}");
        }
    }
}
