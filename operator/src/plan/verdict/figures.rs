//! Everything that a look shows: results, comparisons, budgets and notes.

use std::collections::BTreeMap;

use frugality_measure::{
    model::LinearModel,
    reading::{BOARD_ZONE, PACKAGE_ZONE},
};

use crate::{
    api::{self, FrugalityTrial, LevelsOf},
    digest::hex_digest,
    plan::{
        ledger::{Ledger, Part},
        protocol::LONGEST_BETWEEN_TRIALS_SECONDS,
        settings::{PlannedLook, Settings},
        verdict::{
            budgets::budgets,
            evidence::Evidence,
            judgement::Figures,
            measure::covers_database,
            point_result::{self, PointResult},
            sweep::sweep,
            voids,
        },
    },
};

pub(super) fn figures(settings: &Settings, ledger: &Ledger<'_>, look: PlannedLook) -> Figures {
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
    let notes = zones(&counted)
        .into_iter()
        .chain(boundary(settings, &counted))
        .chain(own_rates(settings))
        .chain(point_result::by_point(judged))
        .chain(left_out(settings, ledger))
        .chain(point_result::notes(&point_results))
        .chain(voids::note(settings, ledger))
        .chain(paused(ledger))
        .chain(paused_rounds(settings, ledger));
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
        sweep: sweep(judged_evidence),
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

/// A meter may measure less than the node.
fn zones(trials: &[&FrugalityTrial]) -> Option<String> {
    let of_trial = |it: &&FrugalityTrial| {
        let energy = it.status.as_ref()?.energy.as_ref()?;
        Some((it.spec.measured_node.clone(), energy.zone.clone()))
    };
    let zones: BTreeMap<String, String> = trials.iter().filter_map(of_trial).collect();
    let parts = zones.iter().filter(|(_, zone)| *zone != BOARD_ZONE);
    let notes: Vec<String> = parts
        .map(|(node, zone)| {
            let reach = if zone == PACKAGE_ZONE {
                "the processors without the rest of the node"
            } else {
                "the meter does not say whether this is the whole node"
            };
            format!("The meter of node {node} measures the zone {zone}: {reach}.")
        })
        .collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// At its own rate, a faster candidate spreads the idle power over more requests.
fn own_rates(settings: &Settings) -> Option<String> {
    let is_own = settings.levels_of == Some(LevelsOf::Own) && settings.candidates.len() > 1;
    is_own.then(|| {
        "At a load level a candidate has a share of the highest rate that it reaches (load.sweep.of: Own). Ratios at that level compare different rates.".to_owned()
    })
}

/// A figure of the candidate alone has the same unit and name as one of candidate and database.
fn boundary(settings: &Settings, trials: &[&FrugalityTrial]) -> Option<String> {
    let mut trials = trials.iter().filter_map(|it| it.status.as_ref());
    let leaves_out =
        trials.any(|it| !it.database_pods.is_empty() && !covers_database(it, settings.boundary));
    leaves_out.then(|| {
        "Attributed joules and CPU time cover the candidate's pods, and leave out the database (energy.boundary).".to_owned()
    })
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
            "At {name} the error ratio of every candidate exceeded load.sweep.maxErrorRatio. {judged}{left_out}."
        ))
    });
    let ends: Vec<String> = ends.collect();
    (!ends.is_empty()).then(|| ends.join(" "))
}

/// A user who suspends or edits because of the trials' results chooses among the results.
fn paused(ledger: &Ledger<'_>) -> Option<String> {
    let count = ledger.pauses();
    (count > 0).then(|| {
        format!(
            "The run paused {count}× during a block. The interrupted blocks were measured again."
        )
    })
}

/// Figures about several points, such as a load curve, combine the blocks of a round. Those of a round with a pause are
/// as far apart as the trials of no block may be.
fn paused_rounds(settings: &Settings, ledger: &Ledger<'_>) -> Option<String> {
    let of_blocks = ledger.valid();
    let count = of_blocks
        .chunks(settings.points.len().max(1))
        .filter(|round| has_pause(round))
        .count();
    (count > 0).then(|| {
        format!(
            "In {count} of the rounds, more than half an hour passed between two points. Figures over several points (load curve, best points) include this drift."
        )
    })
}

fn has_pause(round: &[Vec<&FrugalityTrial>]) -> bool {
    let span = |block: &Vec<&FrugalityTrial>| {
        let statuses = || block.iter().filter_map(|it| it.status.as_ref());
        let starts = statuses().filter_map(|it| Some(it.idle_before?.start_unix_seconds));
        let ends = statuses().filter_map(|it| Some(it.idle_after?.end_unix_seconds));
        starts.reduce(f64::min).zip(ends.reduce(f64::max))
    };
    let spans: Vec<(f64, f64)> = round.iter().filter_map(span).collect();
    spans
        .windows(2)
        .any(|pair| pair[1].0 - pair[0].1 > LONGEST_BETWEEN_TRIALS_SECONDS)
}

fn digest(trials: &[&FrugalityTrial]) -> String {
    let entries: Vec<_> = trials.iter().map(|e| (&e.spec, &e.status)).collect();
    let text = serde_json::to_string(&entries).unwrap_or_default();
    format!("sha256:{}", hex_digest(text.as_bytes(), 32))
}
