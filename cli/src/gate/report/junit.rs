//! The report as JUnit XML: a suite per benchmark, a case for the verdict and for each budget.

use frugality_operator::{
    api::{BudgetOutcome, BudgetResult},
    text,
};
use quick_junit::{NonSuccessKind, Property, Report as Junit, TestCase, TestCaseStatus, TestSuite};

use super::{GateReport, word};
use crate::gate::{images::measured, outcome::GateOutcome};

/// A budget that is not decided is a failure and not skipped, because tools show skipped cases as success.
pub(in crate::gate) fn junit(
    report: &GateReport<'_>,
) -> Result<String, quick_junit::SerializeError> {
    let mut suite = TestSuite::new(report.key.as_str());
    suite.add_test_case(verdict(report));
    suite.add_test_cases(report.budgets().iter().map(budget));
    for (name, value) in properties(report) {
        suite.add_property(Property::new(name, value));
    }
    let mut junit = Junit::new(match report.images {
        Some(_) => "energy gate",
        None => "energy report",
    });
    junit.add_test_suite(suite);
    junit.to_string()
}

fn verdict(report: &GateReport<'_>) -> TestCase {
    let outcome = report.outcome();
    let status = match outcome {
        GateOutcome::Pass => TestCaseStatus::success(),
        GateOutcome::Fail | GateOutcome::Inconclusive => not_met(
            NonSuccessKind::Failure,
            &format!("{outcome:?}"),
            &report.ended.message,
        ),
        GateOutcome::Invalid
        | GateOutcome::Error
        | GateOutcome::NotEnded
        | GateOutcome::NotJudged
        | GateOutcome::OtherImage
        | GateOutcome::Unknown => not_met(
            NonSuccessKind::Error,
            &format!("{outcome:?}"),
            &report.ended.message,
        ),
    };
    case("verdict", &report.key, status)
}

fn budget(budget: &BudgetResult) -> TestCase {
    let status = match budget.outcome {
        BudgetOutcome::Met => TestCaseStatus::success(),
        outcome => not_met(NonSuccessKind::Failure, word(outcome), &budget.message),
    };
    let name = match budget.point.as_str() {
        "" => text::limit(budget),
        point => format!("{} at {point}", text::limit(budget)),
    };
    case(&name, &budget.candidate, status)
}

fn case(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}

fn not_met(kind: NonSuccessKind, type_: &str, message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(type_).set_message(message);
    status
}

/// Where the figures come from.
fn properties(report: &GateReport<'_>) -> Vec<(&'static str, String)> {
    let requested = report.images.map(|it| ("requestedImages", it.join(" ")));
    let Some(benchmark) = report.benchmark() else {
        return requested.into_iter().collect();
    };
    let images: Vec<_> = measured(benchmark).map(|(_, image)| image).collect();
    let status = benchmark.current_status().cloned().unwrap_or_default();
    let columns = status.columns.unwrap_or_default();
    let deciding = status.deciding_figure.map(|it| it.word().to_owned());
    let properties = [
        ("measuredImages", Some(images.join(" "))),
        ("run", status.run),
        ("node", status.measured_node),
        ("meter", status.meter),
        ("power", status.provenance),
        ("ledgerDigest", status.ledger_digest),
        ("tries", status.tries.map(|tries| tries.to_string())),
        ("decidingFigure", deciding),
        ("message", columns.message),
    ];
    let known = |(name, value): (_, Option<String>)| Some((name, value?));
    let properties = properties.into_iter().filter_map(known);
    requested.into_iter().chain(properties).collect()
}
