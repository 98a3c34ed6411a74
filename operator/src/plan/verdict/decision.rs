//! The verdict that follows from the figures of a look.

use crate::{
    api::{BudgetOutcome, BudgetResult, Reason, Verdict, WhenMissing},
    plan::{
        settings::{NoBaseline, Quantity},
        verdict::judgement::{BudgetText, Figures, Subject, is_rate_limited},
    },
};

/// What a look decides.
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) about: Option<Subject>,
}

/// The end of a run that only the missing release keeps from Pass.
fn without_baseline(figures: &Figures, missing: &NoBaseline) -> Decision {
    let met = Budgets::of(figures, BudgetOutcome::Met);
    let nothing = format!(
        "There was no FrugalityBaseline {} when the run began, so there is no comparison.",
        missing.name
    );
    let (verdict, advice) = match missing.verdict {
        WhenMissing::Pass => (
            Verdict::Pass,
            "spec.baseline.whenMissing: Pass makes this a Pass.",
        ),
        WhenMissing::Inconclusive => (
            Verdict::Inconclusive,
            "Create it and start another run with another number in spec.rerun, or write spec.baseline.whenMissing: Pass.",
        ),
    };
    let met_sentence = (!met.is_empty()).then(|| met.sentence("met"));
    let sentences = [Some(nothing), Some(advice.to_owned()), met_sentence];
    Decision {
        verdict,
        reason: Reason::NoBaseline,
        message: sentences
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" "),
        about: met.subject().map(|it| Subject { point: None, ..it }),
    }
}

pub(super) fn verdict(figures: &Figures, missing: Option<&NoBaseline>) -> Decision {
    let of = |outcome: BudgetOutcome| Budgets::of(figures, outcome);
    let inconclusive = |reason: Reason, budgets: &Budgets<'_>| Decision {
        verdict: Verdict::Inconclusive,
        reason,
        message: budgets.messages(),
        about: budgets.subject(),
    };
    let exceeded = of(BudgetOutcome::Exceeded);
    if !exceeded.is_empty() {
        return Decision {
            verdict: Verdict::Fail,
            reason: Reason::BudgetExceeded,
            message: exceeded.sentence("exceeded"),
            about: exceeded.subject(),
        };
    }
    if let Some(candidate) = figures.undecidable() {
        let reason = if is_rate_limited(candidate) {
            Reason::InjectorLimited
        } else {
            Reason::FigureWithheld
        };
        return Decision {
            verdict: Verdict::Inconclusive,
            reason,
            message: format!(
                "No trustworthy deciding figure for {}{}: {}.",
                candidate.candidate,
                figures.at(&candidate.point),
                candidate.withheld.join("; ")
            ),
            about: Some(Subject {
                candidate: candidate.candidate.clone(),
                point: Some(candidate.point.clone()),
            }),
        };
    }
    let withheld = of(BudgetOutcome::Withheld);
    if !withheld.is_empty() {
        return inconclusive(reason_of_withheld(figures, &withheld), &withheld);
    }
    for (outcome, reason) in [
        (
            BudgetOutcome::BelowNoiseFloor,
            Reason::BudgetBelowNoiseFloor,
        ),
        (BudgetOutcome::Undecided, Reason::BudgetWithinUncertainty),
    ] {
        let budgets = of(outcome);
        if !budgets.is_empty() {
            return inconclusive(reason, &budgets);
        }
    }
    match (&figures.not_compared, missing) {
        (Some(why), _) if figures.budgets.is_empty() => Decision {
            verdict: Verdict::Inconclusive,
            reason: why.reason,
            message: why.message.clone(),
            about: None,
        },
        (_, Some(missing)) => without_baseline(figures, missing),
        _ if figures.budgets.is_empty() => Decision {
            verdict: Verdict::Reported,
            reason: Reason::NoBudgets,
            message: "No budgets: nothing was judged, and no gate opens. Write spec.budgets to judge the figures.".into(),
            about: None,
        },
        _ => {
            let met = of(BudgetOutcome::Met);
            Decision {
                verdict: Verdict::Pass,
                reason: Reason::BudgetsMet,
                message: met.sentence("met"),
                // The limits may be decided at different points.
                about: met.subject().map(|it| Subject { point: None, ..it }),
            }
        }
    }
}

/// A withheld limit on one candidate weighs more than a withheld comparison of two candidates.
fn reason_of_withheld(figures: &Figures, withheld: &Budgets<'_>) -> Reason {
    let is_ratio = |b: &BudgetResult| b.limit == Quantity::EnergyRatio.field();
    let why = figures.not_compared.as_ref();
    let are_limited = why.is_some_and(|why| why.reason == Reason::InjectorLimited);
    let mut budgets = withheld.0.iter();
    let is_by_injector = budgets.all(|(it, text)| {
        if is_ratio(it) {
            are_limited
        } else {
            text.is_by_injector
        }
    });
    match &figures.not_compared {
        Some(why) if withheld.all(is_ratio) => why.reason,
        _ if is_by_injector => Reason::InjectorLimited,
        _ => Reason::FigureWithheld,
    }
}

/// The budgets with one outcome.
struct Budgets<'a>(Vec<(&'a BudgetResult, &'a BudgetText)>);

impl<'a> Budgets<'a> {
    fn of(figures: &'a Figures, outcome: BudgetOutcome) -> Self {
        let all = figures.budgets.iter().zip(&figures.budget_texts);
        Self(all.filter(|(it, _)| it.outcome == outcome).collect())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn all(&self, is_so: impl Fn(&BudgetResult) -> bool) -> bool {
        self.0.iter().all(|(it, _)| is_so(it))
    }

    /// The first one's candidate and point.
    fn subject(&self) -> Option<Subject> {
        let (first, _) = self.0.first()?;
        Some(Subject {
            candidate: first.candidate.clone(),
            // A figure of all load levels has no point.
            point: Some(first.point.clone()).filter(|point| !point.is_empty()),
        })
    }

    /// All in one sentence, and each remark once.
    fn sentence(&self, outcome: &str) -> String {
        let first = self.0.first().map(|(it, _)| it.candidate.as_str());
        let is_one = self.all(|it| Some(it.candidate.as_str()) == first);
        let count = match self.0.len() {
            1 => "Budget".to_owned(),
            several if outcome == "met" => format!("All {several} budgets"),
            several => format!("{several} budgets"),
        };
        let of = match first {
            Some(first) if is_one => format!(" for {first}"),
            _ => String::new(),
        };
        let clauses: Vec<String> = self
            .0
            .iter()
            .map(|(it, text)| {
                if is_one {
                    text.clause.clone()
                } else {
                    format!("{} {}", it.candidate, text.clause)
                }
            })
            .collect();
        let mut sentences = vec![format!("{count} {outcome}{of}: {}.", clauses.join(", "))];
        for remark in self.0.iter().flat_map(|(_, text)| &text.remarks) {
            if !sentences.contains(remark) {
                sentences.push(remark.clone());
            }
        }
        sentences.join(" ")
    }

    /// The message of each.
    fn messages(&self) -> String {
        let messages: Vec<&str> = self.0.iter().map(|(it, _)| it.message.as_str()).collect();
        messages.join(" ")
    }
}
