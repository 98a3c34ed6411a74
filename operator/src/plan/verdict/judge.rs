//! The verdict of a run, once its ledger allows one.

use std::collections::BTreeMap;

use frugality_measure::{fortio::Amount, model::LinearModel, reading::Provenance};

use crate::{
    api::{
        self, BoardRange, BudgetOutcome, BudgetResult, CostPerMillion, Figure, FrugalityTrial,
        FrugalityTrialStatus, LevelsOf, LoadCurveResult, MIN_BLOCKS, Reason, TrialLoad, Verdict,
        WhenMissing,
    },
    digest::hex_digest,
    plan::{
        ledger::{Ledger, Next, Part},
        settings::{ERROR, NoBaseline, PlannedLook, Quantity, Settings},
        verdict::{
            budgets::{UNKNOWN_MODEL, budgets},
            evidence::Evidence,
            judgement::{BudgetText, Figures, Judgement, Subject, is_limited, without_figures},
            point_result::{self, PointResult},
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
    // A sweep until errors expects errors, except at the point with the fewest connections.
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
                "Candidate {} {}{}{}.",
                hopeless.spec.candidate,
                settings.kind.rules().never_succeeded(),
                text::at(&hopeless.spec.point, settings.points.len() > 1),
                answers(hopeless)
            ),
        ));
    }
    // The run ends at the first look that decides. Later trials, measured under budgets that were edited since, are
    // ignored.
    for (index, look) in settings.looks.iter().enumerate() {
        let is_last = index + 1 == settings.looks.len();
        if let Some(message) = too_low(settings, ledger, look.blocks) {
            return Some(without_figures(
                Verdict::Invalid,
                Reason::LevelTooLow,
                message,
            ));
        }
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

/// A load level of these blocks whose rate is too low: Fortio would use fewer connections.
fn too_low(settings: &Settings, ledger: &Ledger<'_>, blocks: usize) -> Option<String> {
    let lowest = settings.points.last()?;
    let level = lowest.level?;
    let Amount::DurationSeconds(seconds) = settings.amount else {
        return None;
    };
    let planned = (1..).zip(settings.plan());
    let (rate, entrant) = planned
        .take(blocks * settings.points.len())
        .filter(|(_, planned)| settings.points.get(planned.point) == Some(lowest))
        .find_map(|(block, _)| {
            settings.entrants().into_iter().find_map(|entrant| {
                let rate = ledger.level_rate(settings, block, entrant)?;
                let is_too_low = rate * seconds < 2.0 * f64::from(lowest.connections);
                is_too_low.then_some((rate, entrant))
            })
        })?;
    let of = match settings.levels_of {
        Some(LevelsOf::Common) => "the lowest highest rate of all candidates",
        _ => "the candidate's highest rate",
    };
    Some(format!(
        "{} would get {} {}s/s at {}, {level} % of {of}. That is too low for {} connections and a window of {} s: write fewer load.connections, a longer load.duration, or higher load.sweep.levels.",
        settings.candidate_of(entrant),
        text::all_digits(rate),
        settings.units.one,
        lowest.name,
        lowest.connections,
        text::all_digits(seconds),
    ))
}

/// Whether a look decides. With budgets, a Pass or a Fail decides. Without budgets, a winner or a tie decides. An end that
/// more blocks could not change decides too.
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
            "Block {}{} was void {} times, the maximum by spec.trials.maxAttempts. The last void attempt was {}, {}: {}",
            trial.spec.block,
            text::at(&trial.spec.point, settings.points.len() > 1),
            ledger.voids_of(trial.spec.block),
            trial.spec.candidate,
            reason_of(trial).unwrap_or_default(),
            message_of(trial)
        ),
    )
}

/// A user who suspends because of the trials' results chooses among the results.
fn suspended(ledger: &Ledger<'_>) -> Option<String> {
    let count = ledger.suspensions();
    (count > 0).then(|| {
        format!("The run was suspended {count}× during a block. The interrupted blocks were measured again.")
    })
}

fn decide(settings: &Settings, ledger: &Ledger<'_>, look: PlannedLook) -> Judgement {
    if look.blocks < MIN_BLOCKS as usize {
        return without_figures(
            Verdict::Inconclusive,
            Reason::TooFewBlocks,
            format!(
                "{} blocks were measured, and a verdict needs {MIN_BLOCKS}. Write spec.trials.blocks: {MIN_BLOCKS} or more. kubectl get fbt shows the single trials.",
                look.blocks
            ),
        );
    }
    let mut figures = rounded(figures(settings, ledger, look));
    let modelled = figures.provenance == Some(Provenance::Modelled);
    if modelled && settings.gates_on_joules() && !settings.allow_modelled {
        return modelled_not_allowed();
    }
    let Decision {
        verdict,
        reason,
        message,
        about,
    } = verdict(&figures, settings.no_baseline.as_ref());
    figures.about = about;
    let mut parts = Vec::new();
    if figures.tries > 1 {
        parts.push(format!(
            "This is try {} of {} with these settings, decided at an error of {} %. All tries together have {} %.",
            settings.try_number,
            figures.tries,
            text::number(100.0 * settings.claim_error()),
            text::number(100.0 * ERROR)
        ));
    }
    parts.push(message);
    if settings.looks.len() > 1 {
        parts.push(look_text(settings, look, &figures));
    }
    if modelled {
        // A message that says that the accuracy is unknown does not say it again.
        let is_said = parts.iter().any(|part| part.contains(UNKNOWN_MODEL));
        let model = figures.model.filter(|_| !is_said);
        let model = model.map(|it| format!(" ({it})")).unwrap_or_default();
        let caveat = format!("Power is modelled from CPU use{model}, not measured.");
        figures.caveat = Some(caveat.clone());
        parts.push(caveat);
    }
    for note in &figures.notes {
        // The message may have said some sentences of a note.
        let unsaid = |sentence: &&str| !parts.iter().any(|part| part.contains(sentence.trim_end()));
        let left: String = note.split_inclusive(". ").filter(unsaid).collect();
        if !left.is_empty() {
            parts.push(format!("Note: {}", left.trim_end()));
        }
    }
    Judgement {
        verdict,
        reason: reason.as_ref().to_owned(),
        message: parts.join(" "),
        figures: Some(Box::new(figures)),
    }
}

/// The look at which the run ended, with the confidence of the intervals.
fn look_text(settings: &Settings, look: PlannedLook, figures: &Figures) -> String {
    let confidence = |level: f64| text::confidence(1.0 - level);
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
        " The meter's part of joule intervals keeps 95 %, because its error is the same at every look."
    } else {
        ""
    };
    format!(
        "Look {} of {}, after {} of at most {} blocks. The intervals have {}, the intervals of ratios and budgets {}.{of_meter}",
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
        "A budget limits energy, and the measured node's power is modelled from CPU use, not measured. Connect a meter, remove the budget's limits on energy, or write spec.energy.allowModelled: true.",
    )
}

/// What a look decides.
struct Decision {
    verdict: Verdict,
    reason: Reason,
    message: String,
    about: Option<Subject>,
}

/// The end of a run that only the missing release keeps from Pass.
fn without_baseline(figures: &Figures, missing: &NoBaseline) -> Decision {
    let met = Budgets::of(figures, BudgetOutcome::Met);
    let nothing = format!(
        "There was no FrugalityBaseline {} when the run began, so the candidate was compared with nothing.",
        missing.name
    );
    let (verdict, advice) = match missing.verdict {
        WhenMissing::Pass => (
            Verdict::Pass,
            "By spec.baseline.whenMissing this is a Pass.",
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

fn verdict(figures: &Figures, missing: Option<&NoBaseline>) -> Decision {
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
        let reason = if is_limited(candidate) {
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

/// The figures with the digits of a status. Nothing is decided after this.
fn rounded(mut figures: Figures) -> Figures {
    for result in &mut figures.results {
        for figure in [
            &mut result.requests_per_second,
            &mut result.milliseconds_per_request,
            &mut result.gross_joules_per_request,
            &mut result.net_joules_per_request,
            &mut result.attributed_joules_per_request,
            &mut result.net_attributed_joules_per_request,
            &mut result.energy_delay_joule_seconds,
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
    for sweep in &mut figures.sweep {
        sweep.load_curve = sweep.load_curve.take().map(LoadCurveResult::rounded);
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

fn figures(settings: &Settings, ledger: &Ledger<'_>, look: PlannedLook) -> Figures {
    let evidence = Evidence::at(look, settings, ledger);
    let counted: Vec<_> = evidence.iter().flat_map(|e| e.blocks.concat()).collect();
    let point_results: Vec<PointResult> = evidence.iter().map(PointResult::of).collect();
    let judged = evidence.iter().filter(|point| point.is_judged).count();
    let (judged_evidence, judged) = (&evidence[..judged], &point_results[..judged]);
    let worst = counted
        .iter()
        .filter_map(|e| e.status.as_ref()?.energy.as_ref())
        .max_by_key(|energy| energy.provenance);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let notes = point_result::by_point(judged)
        .into_iter()
        .chain(left_out(settings, ledger))
        .chain(point_result::notes(&point_results))
        .chain(voids::note(settings, ledger))
        .chain(suspended(ledger));
    let (budgets, budget_texts) = budgets(judged_evidence, judged).into_iter().unzip();
    Figures {
        deciding: evidence.first().map(|point| point.deciding),
        about: None,
        caveat: None,
        budgets,
        budget_texts,
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
        winner: point_result::winner(judged),
        depends_on_load: point_result::depends_on_load(judged),
        depends_on_board: point_result::depends_on_board(judged),
        judged: judged.iter().map(|of_point| of_point.results.len()).sum(),
        tie: point_result::is_tie(judged),
        sweep: sweep(&evidence),
        noise_floor: point_result::noise_floor(judged),
        comparisons: point_results
            .iter()
            .flat_map(|of_point| of_point.comparisons.clone())
            .collect(),
        results: point_results.into_iter().flat_map(|s| s.results).collect(),
        provenance: worst.map(|energy| energy.provenance),
        meter: meters(&counted),
        model: model(&counted),
        ledger_digest: digest(&counted),
    }
}

/// Meter and source for each measured node.
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

/// The model of the power, if all trials have the same.
fn model(trials: &[&FrugalityTrial]) -> Option<LinearModel> {
    let mut models = trials
        .iter()
        .map(|e| e.status.as_ref()?.energy.as_ref()?.meter.model);
    let first = models.next()??;
    models.all(|model| model == Some(first)).then_some(first)
}

/// The points at which errors ended a sweep, in one note. Each number of replicas has a separate end.
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
            (name, Part::End) => (name, "This point is shown and not judged"),
            (name, _) if !beyond.is_empty() => (name, "This point is judged"),
            _ => return None,
        };
        let left_out = if beyond.is_empty() {
            String::new()
        } else {
            let names: Vec<&str> = beyond.iter().map(|(name, _)| *name).collect();
            format!("; not measured: {}", names.join(", "))
        };
        Some(format!(
            "At {name} the errors of every candidate passed load.sweep.maxErrorRatio. {judged}{left_out}."
        ))
    });
    let ends: Vec<String> = ends.collect();
    (!ends.is_empty()).then(|| ends.join(" "))
}

fn successes(trial: &FrugalityTrial) -> Option<u64> {
    Some(trial.status.as_ref()?.requests.as_ref()?.successes)
}

/// Most characters about answers in a message, because an object's size is limited.
const MOST_ANSWER_CHARS: usize = 2000;

/// The unexpected answers, and what the script or the runner reported about them, as the end of a sentence.
fn answers(trial: &FrugalityTrial) -> String {
    let all: Vec<String> = match trial.status.as_ref().and_then(FrugalityTrialStatus::load) {
        Some(TrialLoad::Fortio(fortio)) => {
            let codes = fortio.codes.iter().map(|(code, count)| match code {
                -1 => format!("{count} × no answer"),
                code => format!("{count} × {code}"),
            });
            codes.collect()
        }
        Some(TrialLoad::K6(k6)) => {
            let codes = k6.requests.codes.iter();
            let codes = codes.map(|(code, count)| match code.as_str() {
                "0" => format!("{count} × no answer"),
                code => format!("{count} × {code}"),
            });
            let checks = k6.checks.iter().filter(|(_, check)| check.failed > 0);
            let checks = checks.map(|(name, check)| format!("{} × not {name}", check.failed));
            let thrown = k6.first_failures.iter().cloned();
            codes.chain(checks).chain(thrown).collect()
        }
        Some(TrialLoad::Batch(batch)) => batch.first_failures.clone(),
        None => Vec::new(),
    };
    if all.is_empty() {
        return String::new();
    }
    text::shortened(&format!(": {}", all.join(", ")), MOST_ANSWER_CHARS)
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
