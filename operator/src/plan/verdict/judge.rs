//! The verdict of a run, once its ledger allows one.

use std::collections::BTreeMap;

use frugality_measure::{model::LinearModel, reading::Provenance};

use crate::{
    api::{
        self, BoardRange, BudgetOutcome, BudgetResult, CostPerMillion, Figure, FrugalityTrial,
        MIN_BLOCKS, Reason, Verdict,
    },
    digest::hex_digest,
    plan::{
        ledger::{Ledger, Next, Part},
        settings::{ERROR, Look, Quantity, Settings},
        verdict::{
            budgets::budgets,
            evidence::Evidence,
            judgement::{Figures, Judgement, is_limited, without_figures},
            standing::{self, Standing},
            sweep::sweep,
            voids,
        },
    },
    text,
};

/// The judgement, once the ledger allows one.
#[must_use]
pub fn judge(settings: &Settings, ledger: &Ledger<'_>) -> Option<Judgement> {
    let at_try = settings.at_try(ledger.try_number());
    let settings = &*at_try;
    if let Some(fake) = ledger
        .entries()
        .iter()
        .find(|e| reason_of(e) == Some(Reason::MeterFake.as_str()))
    {
        return Some(without_figures(
            Verdict::Invalid,
            Reason::MeterFake,
            message_of(fake),
        ));
    }
    // A sweep that goes on until there are errors has asked for them, but not with the fewest connections.
    let fewest = settings.points.first().map(|point| point.connections);
    let is_asked_for = |e: &FrugalityTrial| {
        let connections = settings.point(&e.spec.point).map(|point| point.connections);
        settings.max_error_ratio.is_some() && connections != fewest
    };
    let hopeless = ledger
        .valid()
        .concat()
        .into_iter()
        .find(|e| successes(e) == Some(0) && !is_asked_for(e));
    if let Some(hopeless) = hopeless {
        return Some(without_figures(
            Verdict::Error,
            Reason::NoSuccessfulRequest,
            format!(
                "candidate {} {}{}: {}",
                hopeless.spec.candidate,
                settings.kind.rules().never_succeeded(),
                text::at(&hopeless.spec.point, settings.points.len() > 1),
                answers(hopeless)
            ),
        ));
    }
    // The first look that decides ends the run, and whatever was measured after it (under budgets that
    // were edited since) does not count.
    for (index, look) in settings.looks.iter().enumerate() {
        let is_last = index + 1 == settings.looks.len();
        match ledger.next_within(settings, look.blocks) {
            Next::Open(_) | Next::Start(_) => return None,
            Next::Failed(trial) => {
                return Some(without_figures(
                    Verdict::Error,
                    reason_of(trial).unwrap_or_default(),
                    message_of(trial),
                ));
            }
            Next::Exhausted(trial) => return Some(exhausted(settings, trial, ledger)),
            Next::Finished => {
                let judgement = decide(settings, ledger, *look);
                if is_last || is_certain(&judgement) {
                    return Some(judgement);
                }
            }
        }
    }
    None
}

/// Whether a look decides: with budgets, where it is a Pass or a Fail; without, where there is a winner
/// or a tie; and where nothing that more blocks could bring would change the end.
fn is_certain(judgement: &Judgement) -> bool {
    match judgement.reason.parse() {
        Ok(Reason::BudgetWithinUncertainty | Reason::BudgetBelowNoiseFloor) => false,
        Ok(Reason::NoBudgets) => judgement
            .figures
            .as_ref()
            .is_some_and(|figures| figures.tie || figures.winner.is_some()),
        _ => true,
    }
}

fn exhausted(settings: &Settings, trial: &FrugalityTrial, ledger: &Ledger<'_>) -> Judgement {
    without_figures(
        Verdict::Invalid,
        Reason::TooManyVoidAttempts,
        format!(
            "block {}{} was void {} times, as often as spec.trials.maxAttempts allows; last {} ({}): {}",
            trial.spec.block,
            text::at(&trial.spec.point, settings.points.len() > 1),
            ledger.voids_of(trial.spec.block),
            reason_of(trial).unwrap_or_default(),
            trial.spec.candidate,
            message_of(trial)
        ),
    )
}

/// Whoever suspends because of what the trials show chooses among them.
fn suspended(ledger: &Ledger<'_>) -> Option<String> {
    let count = ledger.suspensions();
    (count > 0)
        .then(|| format!("suspended {count}× during a block: what it had was measured again"))
}

fn decide(settings: &Settings, ledger: &Ledger<'_>, look: Look) -> Judgement {
    if look.blocks < MIN_BLOCKS as usize {
        return without_figures(
            Verdict::Inconclusive,
            Reason::TooFewBlocks,
            format!(
                "{} blocks were measured and {MIN_BLOCKS} are the least that is reported; write spec.trials.blocks: {MIN_BLOCKS} or more (kubectl get fbt shows the single trials)",
                look.blocks
            ),
        );
    }
    let figures = rounded(figures(settings, ledger, look));
    let modelled = figures.provenance == Some(Provenance::Modelled);
    if modelled && settings.gates_on_joules() && !settings.allow_modelled {
        return modelled_not_allowed();
    }
    let (verdict, reason, message) = verdict(&figures);
    let mut parts = Vec::new();
    if figures.tries > 1 {
        parts.push(format!(
            "try {} of {} with these settings, decided at an error of {} % so that all tries together have {} %: {message}",
            settings.try_number,
            figures.tries,
            text::number(100.0 * settings.claim_error()),
            text::number(100.0 * ERROR)
        ));
    } else {
        parts.push(message);
    }
    if settings.looks.len() > 1 {
        parts.push(look_text(settings, look, &figures));
    }
    if modelled {
        parts.push(format!(
            "Power is modelled from CPU use{}: joules here compare CPU-seconds and time, not measured watts",
            figures
                .model
                .map(|model| format!(" ({model})"))
                .unwrap_or_default()
        ));
    }
    parts.extend(figures.notes.iter().map(|note| format!("Note: {note}")));
    Judgement {
        verdict,
        reason: reason.as_ref().to_owned(),
        message: parts.join(". "),
        figures: Some(Box::new(figures)),
    }
}

/// At which look the run ended, and with what confidence its intervals are.
fn look_text(settings: &Settings, look: Look, figures: &Figures) -> String {
    let confidence = |level: f64| 100.0 * (1.0 - level);
    let results = figures.results.iter();
    let has_meter = results
        .flat_map(|result| {
            [
                result.gross_joules_per_request,
                result.net_joules_per_request,
            ]
        })
        .flatten()
        .any(|figure| {
            figure
                .expanded
                .is_some_and(|expanded| expanded.covers_meter)
        });
    let of_meter = if has_meter {
        "; the meter's part of joules keeps 95 %, because its error is the same at every look"
    } else {
        ""
    };
    format!(
        "Look {} of {}, after {} of at most {} blocks: intervals have {:.1} %, those of ratios and budgets {:.1} %{of_meter}",
        look.number,
        settings.looks.len(),
        look.blocks,
        settings.blocks,
        confidence(settings.level),
        confidence(settings.claim_level)
    )
}

/// Modelled joules may not gate unless the spec says so.
#[must_use]
pub fn modelled_not_allowed() -> Judgement {
    without_figures(
        Verdict::Invalid,
        Reason::ModelledPowerNotAllowed,
        "a budget limits joules, and the measured node's power is modelled from CPU use, not measured; connect a meter, drop maxJoulesPerRequest and maxEnergyRatio, or write spec.energy.allowModelled: true to gate on the model",
    )
}

fn verdict(figures: &Figures) -> (Verdict, Reason, String) {
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
    let below_floor = of(BudgetOutcome::BelowNoiseFloor);
    let undecided = of(BudgetOutcome::Undecided);
    if !exceeded.is_empty() {
        (Verdict::Fail, Reason::BudgetExceeded, exceeded.join("; "))
    } else if let Some(candidate) = figures.undecidable() {
        let reason = if is_limited(candidate) {
            Reason::InjectorLimited
        } else {
            Reason::FigureWithheld
        };
        (
            Verdict::Inconclusive,
            reason,
            format!(
                "no trustworthy deciding figure for {}{}: {}",
                candidate.candidate,
                figures.at(&candidate.point),
                candidate.withheld.join("; ")
            ),
        )
    } else if !withheld.is_empty() {
        // What keeps a limit on one candidate from being judged weighs more than what keeps two apart.
        let of_withheld = || {
            let budgets = figures.budgets.iter();
            budgets.filter(|b| b.outcome == BudgetOutcome::Withheld)
        };
        let is_ratio = |b: &BudgetResult| b.limit == Quantity::EnergyRatio.field();
        let is_by_injector = |b: &BudgetResult| {
            let why = figures.not_compared.as_ref();
            if is_ratio(b) {
                return why.is_some_and(|why| why.reason == Reason::InjectorLimited);
            }
            let mut results = figures.results.iter();
            results.any(|r| r.candidate == b.candidate && r.point == b.point && is_limited(r))
        };
        let reason = match &figures.not_compared {
            Some(why) if of_withheld().all(is_ratio) => why.reason,
            _ if of_withheld().all(is_by_injector) => Reason::InjectorLimited,
            _ => Reason::FigureWithheld,
        };
        (Verdict::Inconclusive, reason, withheld.join("; "))
    } else if !below_floor.is_empty() {
        (
            Verdict::Inconclusive,
            Reason::BudgetBelowNoiseFloor,
            below_floor.join("; "),
        )
    } else if !undecided.is_empty() {
        (
            Verdict::Inconclusive,
            Reason::BudgetWithinUncertainty,
            undecided.join("; "),
        )
    } else if let (true, Some(why)) = (figures.budgets.is_empty(), &figures.not_compared) {
        (Verdict::Inconclusive, why.reason, why.message.clone())
    } else if figures.budgets.is_empty() {
        (
            Verdict::Reported,
            Reason::NoBudgets,
            "no budgets: the figures are reported, and no gate opens; write spec.budgets to have them judged".into(),
        )
    } else {
        (
            Verdict::Pass,
            Reason::BudgetsMet,
            of(BudgetOutcome::Met).join("; "),
        )
    }
}

/// What is decided is decided by now: the figures as they are told.
fn rounded(mut figures: Figures) -> Figures {
    for result in &mut figures.results {
        for figure in [
            &mut result.requests_per_second,
            &mut result.milliseconds_per_request,
            &mut result.gross_joules_per_request,
            &mut result.net_joules_per_request,
            &mut result.attributed_joules_per_request,
            &mut result.net_attributed_joules_per_request,
            &mut result.cpu_milliseconds_per_request,
            &mut result.error_ratio,
            &mut result.memory_growth_bytes_per_hour,
            &mut result.latency_drift_milliseconds_per_hour,
        ] {
            *figure = figure.map(Figure::rounded);
        }
        if let Some(node) = &mut result.node {
            for figure in [&mut node.idle_watts, &mut node.load_watts] {
                *figure = figure.map(Figure::rounded);
            }
        }
        if let Some(batch) = &mut result.batch {
            batch.joules_per_execution = batch.joules_per_execution.map(Figure::rounded);
        }
        for workload in &mut result.workloads {
            for figure in [
                &mut workload.attributed_joules_per_request,
                &mut workload.cpu_milliseconds_per_request,
            ] {
                *figure = figure.map(Figure::rounded);
            }
        }
        for cost in [&mut result.money, &mut result.carbon] {
            *cost = cost.take().map(CostPerMillion::rounded);
        }
    }
    for comparison in &mut figures.comparisons {
        comparison.ratio = comparison.ratio.rounded();
        comparison.boards = comparison.boards.map(BoardRange::rounded);
    }
    for budget in &mut figures.budgets {
        budget.figure = budget.figure.map(Figure::rounded);
    }
    figures
}

fn figures(settings: &Settings, ledger: &Ledger<'_>, look: Look) -> Figures {
    let evidence = Evidence::at(look, settings, ledger);
    let counted: Vec<_> = evidence.iter().flat_map(|e| e.blocks.concat()).collect();
    let standings: Vec<Standing> = evidence.iter().map(Standing::of).collect();
    let judged = evidence.iter().filter(|point| point.is_judged).count();
    let (judged_evidence, judged) = (&evidence[..judged], &standings[..judged]);
    let worst = counted
        .iter()
        .filter_map(|e| e.status.as_ref()?.energy.as_ref())
        .max_by_key(|energy| energy.provenance);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let notes = standing::by_point(judged)
        .into_iter()
        .chain(left_out(settings, ledger))
        .chain(standing::notes(&standings))
        .chain(voids::note(settings, ledger))
        .chain(suspended(ledger));
    Figures {
        deciding: evidence.first().map(|point| point.deciding),
        budgets: budgets(judged_evidence, judged),
        notes: notes.collect(),
        not_compared: judged.iter().find_map(|s| s.not_compared.clone()),
        look: Some(api::Look {
            number: count(look.number),
            of: count(settings.looks.len()),
            blocks: count(look.blocks),
            confidence: 1.0 - settings.level,
            claim_confidence: 1.0 - settings.claim_level,
        }),
        tries: ledger.tries(),
        winner: standing::winner(judged),
        depends_on_load: standing::depends_on_load(judged),
        depends_on_board: standing::depends_on_board(judged),
        judged: judged.iter().map(|standing| standing.results.len()).sum(),
        tie: standing::is_tie(judged),
        sweep: sweep(&evidence),
        noise_floor: standing::noise_floor(judged),
        comparisons: standings
            .iter()
            .flat_map(|standing| standing.comparisons.clone())
            .collect(),
        results: standings.into_iter().flat_map(|s| s.results).collect(),
        provenance: worst.map(|energy| energy.provenance),
        meter: meters(&counted),
        model: model(&counted),
        ledger_digest: digest(&counted),
    }
}

/// Meter and source; of several measured nodes, that of each.
fn meters(trials: &[&FrugalityTrial]) -> Option<String> {
    let meters: BTreeMap<&str, String> = trials
        .iter()
        .filter_map(|e| {
            let energy = e.status.as_ref()?.energy.as_ref()?;
            Some((e.spec.measured_node.as_str(), energy.meter.to_string()))
        })
        .collect();
    match meters.len() {
        0 | 1 => meters.into_values().next(),
        _ => {
            let of_nodes = meters
                .iter()
                .map(|(node, meter)| format!("{meter} on {node}"));
            Some(of_nodes.collect::<Vec<_>>().join(" and "))
        }
    }
}

/// The model of the power, if all trials have one and the same.
fn model(trials: &[&FrugalityTrial]) -> Option<LinearModel> {
    let mut models = trials
        .iter()
        .map(|e| e.status.as_ref()?.energy.as_ref()?.meter.model);
    let first = models.next()??;
    models.all(|model| model == Some(first)).then_some(first)
}

/// Where errors ended a sweep: with each number of replicas for itself, in one note.
fn left_out(settings: &Settings, ledger: &Ledger<'_>) -> Option<String> {
    let mut of_replicas: BTreeMap<Option<i32>, Vec<(&str, Part)>> = BTreeMap::new();
    for (point, part) in settings.points.iter().zip(ledger.parts(settings)) {
        let points = of_replicas.entry(point.replicas).or_default();
        points.push((&point.name, part));
    }
    let ends = of_replicas.into_values().filter_map(|points| {
        let is_tried = |(_, part): &&(&str, Part)| *part != Part::LeftOut;
        let (tried, beyond) = points.split_at(points.iter().take_while(is_tried).count());
        let (name, judged) = match *tried.last()? {
            (name, Part::End) => (name, "is shown and not judged"),
            (name, _) if !beyond.is_empty() => (name, "is judged all the same"),
            _ => return None,
        };
        let left_out = if beyond.is_empty() {
            String::new()
        } else {
            let names: Vec<&str> = beyond.iter().map(|(name, _)| *name).collect();
            format!(", and {} left out", names.join(", "))
        };
        Some(format!(
            "at {name} the errors of every candidate passed load.sweep.maxErrorRatio: it {judged}{left_out}"
        ))
    });
    let ends: Vec<String> = ends.collect();
    (!ends.is_empty()).then(|| ends.join("; "))
}

fn successes(trial: &FrugalityTrial) -> Option<u64> {
    Some(trial.status.as_ref()?.requests.as_ref()?.successes)
}

/// The most characters that a message says of answers: an object has an end.
const MOST_ANSWER_CHARS: usize = 2000;

/// What it answered instead, and what the script or the runner had to say of it.
fn answers(trial: &FrugalityTrial) -> String {
    let status = trial.status.as_ref();
    let fortio = status.and_then(|status| status.fortio.as_ref());
    let k6 = status.and_then(|status| status.k6.as_ref());
    let of_fortio = fortio.iter().flat_map(|it| &it.codes);
    let of_fortio = of_fortio.map(|(code, count)| match code {
        -1 => format!("{count} × no answer"),
        code => format!("{count} × {code}"),
    });
    let of_k6 = k6.iter().flat_map(|it| &it.requests.codes);
    let of_k6 = of_k6.map(|(code, count)| match code.as_str() {
        "0" => format!("{count} × no answer"),
        code => format!("{count} × {code}"),
    });
    let checks = k6.iter().flat_map(|it| &it.checks);
    let checks = checks
        .filter(|(_, check)| check.failed > 0)
        .map(|(name, check)| format!("{} × not {name}", check.failed));
    let thrown = k6.iter().flat_map(|it| &it.first_failures).cloned();
    let batch = status.and_then(|status| status.batch.as_ref());
    let executions = batch.iter().flat_map(|it| &it.first_failures).cloned();
    let of_scripts = of_k6.chain(checks).chain(thrown);
    let all: Vec<String> = of_fortio.chain(of_scripts).chain(executions).collect();
    text::shortened(&all.join(", "), MOST_ANSWER_CHARS)
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
