//! What a gate writes for people and for pipelines, one module per form.

pub(super) mod annotations;
pub(super) mod junit;
pub(super) mod markdown;
pub(super) mod outputs;

use frugality_operator::api::{BudgetOutcome, BudgetResult, FrugalityBenchmark};

use super::{images::is_fixed, outcome::GateOutcome, wait::GateEnd};

/// Everything that a report is about.
pub(super) struct GateReport<'a> {
    /// Namespace and name of the benchmark.
    pub(super) key: String,
    /// How the gate ended.
    pub(super) ended: &'a GateEnd,
    /// Images of the release. `None` if the report is about the benchmark, whatever it measures, and not about a gate.
    pub(super) images: Option<&'a [String]>,
}

/// The benchmark's verdict and budgets as Markdown.
pub(crate) fn verdict_markdown(benchmark: &FrugalityBenchmark) -> String {
    markdown::markdown(&GateReport::about(benchmark, &GateEnd::of(benchmark)))
}

/// The benchmark's verdict and budgets as JUnit XML.
pub(crate) fn verdict_junit(
    benchmark: &FrugalityBenchmark,
) -> Result<String, quick_junit::SerializeError> {
    junit::junit(&GateReport::about(benchmark, &GateEnd::of(benchmark)))
}

impl<'a> GateReport<'a> {
    fn about(benchmark: &FrugalityBenchmark, ended: &'a GateEnd) -> Self {
        let metadata = &benchmark.metadata;
        let parts = [metadata.namespace.as_deref(), metadata.name.as_deref()];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        Self {
            key: parts.join("/"),
            ended,
            images: None,
        }
    }
}

impl GateReport<'_> {
    fn outcome(&self) -> GateOutcome {
        self.ended.outcome
    }

    /// The verdict in one word; without a verdict, how the gate ended.
    fn verdict(&self) -> String {
        let status = self
            .benchmark()
            .and_then(FrugalityBenchmark::current_status);
        status.and_then(|status| status.verdict).map_or_else(
            || format!("{:?}", self.outcome()),
            |verdict| format!("{verdict:?}"),
        )
    }

    fn benchmark(&self) -> Option<&FrugalityBenchmark> {
        self.ended.benchmark.as_ref()
    }

    /// The budgets of the verdict.
    fn budgets(&self) -> &[BudgetResult] {
        self.benchmark()
            .and_then(FrugalityBenchmark::current_status)
            .map_or(&[], |status| &status.budgets)
    }

    /// The first line of every report.
    pub(super) fn heading(&self) -> String {
        let (key, outcome) = (&self.key, self.outcome());
        if self.images.is_none() {
            return format!("{key}: {}", self.verdict());
        }
        let gate = if outcome.is_open() { "open" } else { "closed" };
        format!("Energy gate {gate} for {key}: {outcome:?}")
    }

    /// What a reader of the verdict must know about how it came about.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let tries = self
            .benchmark()
            .and_then(FrugalityBenchmark::current_status)
            .and_then(|status| status.tries);
        if let Some(tries) = tries.filter(|tries| *tries > 1) {
            warnings.push(format!(
                "This verdict is one of {tries} tries with the same settings."
            ));
        }
        let Some(images) = self.images else {
            return warnings;
        };
        if images.is_empty() {
            warnings.push(
                "No --image was given, so the gate did not check that the verdict is about the release's image."
                    .to_owned(),
            );
        }
        for image in images.iter().filter(|image| !is_fixed(image)) {
            warnings.push(format!(
                "{image} is a tag. A tag can be moved to an image that was not measured; use a digest (@sha256:…)."
            ));
        }
        warnings
    }
}

/// The text on one line, without control characters. A message can contain what a container wrote to its log.
pub(crate) fn on_one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A budget's result in one word or two.
pub(crate) fn word(outcome: BudgetOutcome) -> &'static str {
    match outcome {
        BudgetOutcome::Met => "met",
        BudgetOutcome::Exceeded => "exceeded",
        BudgetOutcome::Undecided => "undecided",
        BudgetOutcome::BelowNoiseFloor => "below the noise floor",
        BudgetOutcome::Withheld => "no trustworthy figure",
    }
}
