//! From the ledger to the verdict.

mod budgets;

use frugality_measure::{
    reading::Provenance,
    statistics::{Estimate, arithmetic_mean, geometric_mean, paired_ratio},
};

use super::{
    identity::hex_digest,
    ledger::{Ledger, Next},
    settings::Settings,
};
use crate::api::{
    Boundary, BudgetOutcome, BudgetResult, CandidateResult, Comparison, DecidingFigure, Figure,
    FrugalityTrial, FrugalityTrialStatus, Outcome, Verdict, reason,
};
use budgets::budget;

/// Share of repetitions in which an interval is to hold the true value.
pub const CONFIDENCE: f64 = 0.95;
/// Blocks below which nothing is reported: with fewer, a t-interval says next to nothing.
pub const MIN_BLOCKS: usize = 5;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Reason code.
    pub reason: String,
    /// For people, with numbers.
    pub message: String,
    /// The figures, unless the verdict withholds them.
    pub figures: Option<Figures>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// By candidate.
    pub results: Vec<CandidateResult>,
    /// The winner, or else the candidate of the least figure, against each other one.
    pub comparisons: Vec<Comparison>,
    /// By limit.
    pub budgets: Vec<BudgetResult>,
    /// Candidate that beats every other.
    pub winner: Option<String>,
    /// Figure that decides: the spec's, or attributed joules where the injector shared the node.
    pub deciding: Option<DecidingFigure>,
    /// Where the power came from: the worst of all trials.
    pub provenance: Option<Provenance>,
    /// Meter and source.
    pub meter: Option<String>,
    /// SHA-256 over the entries that count.
    pub ledger_digest: String,
}

impl Figures {
    /// A candidate without the figure that decides.
    fn undecidable(&self) -> Option<&CandidateResult> {
        let deciding = self.deciding?;
        self.results
            .iter()
            .find(|result| deciding_figure(result, deciding).is_none())
    }
}

/// An end without figures.
#[must_use]
pub fn without_figures(verdict: Verdict, reason: &str, message: impl Into<String>) -> Judgement {
    Judgement {
        verdict,
        reason: reason.to_owned(),
        message: message.into(),
        figures: None,
    }
}

/// The judgement, once the ledger allows one.
#[must_use]
pub fn judge(settings: &Settings, ledger: &Ledger<'_>) -> Option<Judgement> {
    if let Some(fake) = ledger
        .entries()
        .iter()
        .find(|e| reason_of(e) == Some(reason::METER_FAKE))
    {
        return Some(without_figures(
            Verdict::Invalid,
            reason::METER_FAKE,
            message_of(fake),
        ));
    }
    if let Some(hopeless) = ledger
        .valid()
        .concat()
        .into_iter()
        .find(|e| successes(e) == Some(0))
    {
        return Some(without_figures(
            Verdict::Error,
            reason::NO_SUCCESSFUL_REQUEST,
            format!(
                "candidate {} answered no request as expected: {}",
                hopeless.spec.candidate,
                answers(hopeless)
            ),
        ));
    }
    match ledger.next(settings) {
        Next::Open(_) | Next::Start(_) => None,
        Next::Failed(trial) => Some(without_figures(
            Verdict::Error,
            reason_of(trial).unwrap_or_default(),
            message_of(trial),
        )),
        Next::Exhausted(trial) => Some(without_figures(
            Verdict::Invalid,
            reason::TOO_MANY_VOID_ATTEMPTS,
            format!(
                "block {} was void {} times, as often as spec.trials.maxAttempts allows; last {} ({}): {}",
                trial.spec.block,
                trial.spec.attempt,
                reason_of(trial).unwrap_or_default(),
                trial.spec.candidate,
                message_of(trial)
            ),
        )),
        Next::Finished => Some(decide(settings, ledger)),
    }
}

fn decide(settings: &Settings, ledger: &Ledger<'_>) -> Judgement {
    let figures = figures(settings, ledger);
    if settings.blocks < MIN_BLOCKS {
        return without_figures(
            Verdict::Inconclusive,
            reason::TOO_FEW_BLOCKS,
            format!(
                "{} blocks were measured and {MIN_BLOCKS} are the least that is reported; write spec.trials.blocks: {MIN_BLOCKS} or more (kubectl get fbt shows the single trials)",
                settings.blocks
            ),
        );
    }
    let modelled = figures.provenance == Some(Provenance::Modelled);
    if modelled && settings.gates_on_joules() && !settings.allow_modelled {
        return modelled_not_allowed();
    }
    let (verdict, reason, mut message) = verdict(&figures);
    if modelled {
        message.push_str(
            ". Power is modelled from CPU use: joules here compare CPU-seconds and time, not measured watts",
        );
    }
    Judgement {
        verdict,
        reason: reason.to_owned(),
        message,
        figures: Some(figures),
    }
}

/// Modelled joules may not gate unless the spec says so.
#[must_use]
pub fn modelled_not_allowed() -> Judgement {
    without_figures(
        Verdict::Invalid,
        reason::MODELLED_POWER_NOT_ALLOWED,
        "a budget limits joules, and the measured node's power is modelled from CPU use, not measured; connect a meter, drop maxJoulesPerRequest, or write spec.energy.allowModelled: true to gate on the model",
    )
}

fn verdict(figures: &Figures) -> (Verdict, &'static str, String) {
    let of = |outcome: BudgetOutcome| -> Vec<&str> {
        figures
            .budgets
            .iter()
            .filter(|b| b.outcome == outcome)
            .map(|b| b.message.as_str())
            .collect()
    };
    let exceeded = of(BudgetOutcome::Exceeded);
    let withheld = of(BudgetOutcome::Withheld);
    let undecided = of(BudgetOutcome::Undecided);
    if !exceeded.is_empty() {
        (Verdict::Fail, reason::BUDGET_EXCEEDED, exceeded.join("; "))
    } else if let Some(candidate) = figures.undecidable() {
        (
            Verdict::Inconclusive,
            reason::FIGURE_WITHHELD,
            format!(
                "no trustworthy deciding figure for {}: {}",
                candidate.candidate,
                candidate.withheld.join("; ")
            ),
        )
    } else if !withheld.is_empty() {
        (
            Verdict::Inconclusive,
            reason::FIGURE_WITHHELD,
            withheld.join("; "),
        )
    } else if !undecided.is_empty() {
        (
            Verdict::Inconclusive,
            reason::BUDGET_WITHIN_UNCERTAINTY,
            format!(
                "{}; raise spec.trials.blocks, which measures anew",
                undecided.join("; ")
            ),
        )
    } else if figures.budgets.is_empty() {
        (
            Verdict::Pass,
            reason::NO_BUDGETS,
            "no budgets: the figures are reported, nothing is gated".into(),
        )
    } else {
        (
            Verdict::Pass,
            reason::BUDGETS_MET,
            of(BudgetOutcome::Met).join("; "),
        )
    }
}

fn figures(settings: &Settings, ledger: &Ledger<'_>) -> Figures {
    let blocks = ledger.valid();
    let counted: Vec<_> = blocks.concat();
    let is_shared = counted
        .iter()
        .any(|e| e.spec.measured_node == e.spec.injector_node);
    let settings = &Settings {
        deciding: if is_shared {
            DecidingFigure::Attributed
        } else {
            settings.deciding
        },
        ..settings.clone()
    };
    let results: Vec<_> = settings
        .candidates
        .iter()
        .map(|candidate| result(settings, ledger, &counted, candidate, is_shared))
        .collect();
    let comparisons = comparisons(settings, &blocks);
    let winner = winner(settings, &comparisons);
    let worst = counted
        .iter()
        .filter_map(|e| e.status.as_ref()?.energy.as_ref())
        .max_by_key(|energy| energy.provenance);
    Figures {
        winner: winner.clone(),
        deciding: Some(settings.deciding),
        budgets: settings
            .limits
            .iter()
            .map(|limit| budget(settings, &results, limit))
            .collect(),
        comparisons: told(comparisons, winner.as_deref(), settings, &results),
        results,
        provenance: worst.map(|energy| energy.provenance),
        meter: worst.map(|energy| {
            let meter = &energy.meter;
            let board = meter.board.as_deref().unwrap_or_default();
            format!("{} {} {} {board}", meter.name, meter.version, meter.source)
                .trim_end()
                .to_owned()
        }),
        ledger_digest: digest(&counted),
    }
}

fn result(
    settings: &Settings,
    ledger: &Ledger<'_>,
    counted: &[&FrugalityTrial],
    candidate: &str,
    is_shared: bool,
) -> CandidateResult {
    let trials: Vec<&FrugalityTrialStatus> = counted
        .iter()
        .filter(|e| e.spec.candidate == candidate)
        .filter_map(|e| e.status.as_ref())
        .collect();
    let mut withheld = Vec::new();
    let mut figure = |name: &str, value: &dyn Fn(&FrugalityTrialStatus) -> Option<f64>| {
        let values: Option<Vec<f64>> = trials.iter().map(|trial| value(trial)).collect();
        let estimate = values.and_then(|values| geometric_mean(&values, CONFIDENCE));
        if estimate.is_none() {
            withheld.push(withheld_because(name, &trials, value, is_shared));
        }
        estimate.map(Figure::from)
    };
    let requests_per_second = figure("requests/s", &|t| t.requests.as_ref()?.requests_per_second);
    let milliseconds_per_request = figure("ms/request", &|t| t.requests.as_ref()?.ms_per_request);
    let gross_joules_per_request = figure("gross joules", &|t| {
        joules(t, DecidingFigure::Gross, settings.boundary).filter(|_| !is_shared)
    });
    let net_joules_per_request = figure("net joules", &|t| {
        joules(t, DecidingFigure::Net, settings.boundary).filter(|_| !is_shared)
    });
    let attributed_joules_per_request = figure("attributed joules", &|t| {
        joules(t, DecidingFigure::Attributed, settings.boundary)
    });
    let cpu_milliseconds_per_request = figure("CPU time", &|t| {
        let cpu = t.energy.as_ref()?.cpu.as_ref()?;
        let seconds = if covers_database(t, settings.boundary) {
            cpu.candidate_and_database_seconds_per_request
        } else {
            cpu.candidate_seconds_per_request
        };
        seconds.map(|seconds| seconds * 1000.0)
    });
    let requests: u64 = trials
        .iter()
        .filter_map(|t| t.requests.as_ref())
        .map(|r| r.requests)
        .sum();
    let errors: Option<Vec<f64>> = trials
        .iter()
        .map(|t| t.requests.as_ref()?.error_rate)
        .collect();
    CandidateResult {
        point: settings.point.clone(),
        candidate: candidate.to_owned(),
        trials: i32::try_from(trials.len()).unwrap_or(i32::MAX),
        void_attempts: i32::try_from(ledger.count(candidate, Outcome::Void)).unwrap_or(i32::MAX),
        requests_per_second,
        milliseconds_per_request,
        gross_joules_per_request,
        net_joules_per_request,
        attributed_joules_per_request,
        cpu_milliseconds_per_request,
        error_ratio: errors
            .and_then(|errors| arithmetic_mean(&errors, CONFIDENCE))
            .map(|estimate| Figure {
                value: estimate.value,
                lower: estimate.lower.max(0.0),
                // Without any error the t-interval is empty; 3/n is the 95 % bound then (Hanley and
                // Lippman-Hand, JAMA 249:1743, 1983).
                upper: if estimate.value > 0.0 {
                    estimate.upper.min(1.0)
                } else {
                    3.0 / requests.max(3) as f64
                },
            }),
        peak_memory_bytes: trials
            .iter()
            .map(|t| t.energy.as_ref()?.candidate_peak_working_set_bytes)
            .collect::<Option<Vec<f64>>>()
            .and_then(|peaks| peaks.into_iter().reduce(f64::max))
            .map(whole),
        withheld,
    }
}

fn withheld_because(
    name: &str,
    trials: &[&FrugalityTrialStatus],
    value: &dyn Fn(&FrugalityTrialStatus) -> Option<f64>,
    is_shared: bool,
) -> String {
    if is_shared && matches!(name, "gross joules" | "net joules") {
        return format!("{name}: the injector ran on the measured node and is part of its energy");
    }
    let missing = trials.iter().filter(|trial| value(trial).is_none()).count();
    let why = trials
        .iter()
        .filter_map(|trial| trial.energy.as_ref())
        .find_map(|energy| match name {
            "net joules" => energy.net_withheld.clone(),
            "attributed joules" | "CPU time" => energy.pods_withheld.clone(),
            _ => None,
        })
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    format!(
        "{name} missing in {missing} of {} trials{why}",
        trials.len()
    )
}

/// Joules per request of one trial, by definition.
#[must_use]
pub fn joules(
    trial: &FrugalityTrialStatus,
    figure: DecidingFigure,
    boundary: Boundary,
) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    match figure {
        DecidingFigure::Gross => energy.gross_joules_per_request,
        DecidingFigure::Net => energy.net_joules_per_request,
        DecidingFigure::Attributed => {
            let attributed = energy.attributed.as_ref()?;
            if covers_database(trial, boundary) {
                attributed.candidate_and_database_joules_per_request
            } else {
                attributed.candidate_joules_per_request
            }
        }
    }
}

/// Without a database the boundary is the candidate alone.
fn covers_database(trial: &FrugalityTrialStatus, boundary: Boundary) -> bool {
    boundary == Boundary::CandidateAndDatabase && !trial.database_pods.is_empty()
}

/// The comparisons that are told: those of the winner, else those of the least figure. All pairs of
/// sixteen candidates would not fit a status.
fn told(
    comparisons: Vec<Comparison>,
    winner: Option<&str>,
    settings: &Settings,
    results: &[CandidateResult],
) -> Vec<Comparison> {
    let figure = |result: &CandidateResult| deciding_figure(result, settings.deciding);
    let least = results
        .iter()
        .filter_map(|result| Some((figure(result)?.value, result.candidate.as_str())))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate);
    let subject = winner.or(least);
    comparisons
        .into_iter()
        .filter(|c| Some(c.candidate.as_str()) == subject)
        .collect()
}

/// The figure that decides.
#[must_use]
pub fn deciding_figure(result: &CandidateResult, deciding: DecidingFigure) -> Option<Figure> {
    match deciding {
        DecidingFigure::Gross => result.gross_joules_per_request,
        DecidingFigure::Net => result.net_joules_per_request,
        DecidingFigure::Attributed => result.attributed_joules_per_request,
    }
}

fn comparisons(settings: &Settings, blocks: &[Vec<&FrugalityTrial>]) -> Vec<Comparison> {
    let value = |block: &[&FrugalityTrial], candidate: &str| -> Option<f64> {
        let trial = block.iter().find(|e| e.spec.candidate == candidate)?;
        joules(trial.status.as_ref()?, settings.deciding, settings.boundary)
    };
    let mut comparisons = Vec::new();
    for candidate in &settings.candidates {
        for against in settings.candidates.iter().filter(|c| *c != candidate) {
            let pairs: Option<Vec<(f64, f64)>> = blocks
                .iter()
                .map(|block| Some((value(block, candidate)?, value(block, against)?)))
                .collect();
            let ratio = pairs.and_then(|pairs| paired_ratio(&pairs, CONFIDENCE));
            if let Some(ratio) = ratio {
                comparisons.push(Comparison {
                    point: settings.point.clone(),
                    candidate: candidate.clone(),
                    against: against.clone(),
                    separated: ratio.upper < 1.0 || ratio.lower > 1.0,
                    ratio: ratio.into(),
                });
            }
        }
    }
    comparisons
}

fn winner(settings: &Settings, comparisons: &[Comparison]) -> Option<String> {
    let others = settings.candidates.len().saturating_sub(1);
    settings
        .candidates
        .iter()
        .find(|candidate| {
            let beaten = comparisons
                .iter()
                .filter(|c| c.candidate == **candidate && c.ratio.upper < 1.0)
                .count();
            others > 0 && beaten == others
        })
        .cloned()
}

fn successes(trial: &FrugalityTrial) -> Option<u64> {
    Some(trial.status.as_ref()?.requests.as_ref()?.successes)
}

fn answers(trial: &FrugalityTrial) -> String {
    trial
        .status
        .as_ref()
        .and_then(|status| status.fortio.as_ref())
        .map(|fortio| {
            let codes: Vec<_> = fortio
                .codes
                .iter()
                .map(|(code, count)| match code {
                    -1 => format!("{count} × no answer"),
                    code => format!("{count} × {code}"),
                })
                .collect();
            codes.join(", ")
        })
        .unwrap_or_default()
}

fn digest(trials: &[&FrugalityTrial]) -> String {
    let entries: Vec<_> = trials.iter().map(|e| (&e.spec, &e.status)).collect();
    let text = serde_json::to_string(&entries).unwrap_or_default();
    format!("sha256:{}", hex_digest(text.as_bytes(), 32))
}

fn reason_of(trial: &FrugalityTrial) -> Option<&str> {
    trial.status.as_ref()?.reason.as_deref()
}

fn message_of(trial: &FrugalityTrial) -> String {
    trial
        .status
        .as_ref()
        .and_then(|status| status.message.clone())
        .unwrap_or_default()
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "bytes of memory are far below 2^53"
)]
fn whole(bytes: f64) -> i64 {
    bytes as i64
}

impl From<Estimate> for Figure {
    fn from(estimate: Estimate) -> Self {
        Self {
            value: estimate.value,
            lower: estimate.lower,
            upper: estimate.upper,
        }
    }
}
