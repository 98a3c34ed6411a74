//! The lines below the tables of a summary.

use frugality_operator::{
    api::{
        Arrivals, BoardVerdict, BudgetOutcome, CandidateResult, Comparison, Expanded,
        FrugalityBenchmarkStatus, Optimum, Reason, SweepResult, Verdict,
    },
    text,
};

use super::view::{self, MEBIBYTE, View, interval};

/// What percentiles of a closed loop leave out.
const CLOSED_LOOP: &str = "The percentiles are from a closed loop: they leave out the time that requests wait behind a slow answer (coordinated omission). load.arrivals: Open includes it.";

/// All notes, in the order in which they are read.
pub(super) fn all(view: &View<'_>) -> Vec<String> {
    let status = view.status;
    let of_results = |note: fn(&View<'_>, &CandidateResult) -> Option<String>| {
        status.results.iter().filter_map(move |it| note(view, it))
    };
    let mut notes: Vec<String> = winner(view).into_iter().collect();
    notes.extend(comparisons(view));
    notes.extend(status.sweep.iter().flat_map(|sweep| best(view, sweep)));
    notes.extend(budgets(view));
    notes.extend(withheld(view));
    notes.extend(noise_floor(view));
    notes.extend(of_results(failures));
    notes.extend(of_results(memory_growth));
    notes.extend(of_results(latency_drift));
    notes.extend(of_results(cycle));
    notes.extend(latencies(view));
    if view.any(|it| it.arrivals == Some(Arrivals::Closed)) {
        notes.push(CLOSED_LOOP.to_owned());
    }
    notes.extend(confidence(view));
    notes.extend(accuracy(view).map(str::to_owned));
    notes.extend(power(view));
    notes.extend(unsaid(view.status));
    notes
}

/// Notes of the operator that the message above the tables lacks, because it was cut.
fn unsaid(status: &FrugalityBenchmarkStatus) -> impl Iterator<Item = String> {
    let columns = status.columns.as_ref();
    let message = columns.and_then(|it| it.message.as_deref());
    let message = message.unwrap_or_default();
    // A message leaves out the sentences of a note that it has already.
    let is_said = move |note: &str| {
        let mut sentences = note.split_inclusive(". ");
        sentences.all(|sentence| message.contains(sentence.trim_end()))
    };
    let left = status.notes.iter().filter(move |note| !is_said(note));
    left.map(|note| format!("note: {note}"))
}

/// Who wins, and by what; nothing about one candidate alone.
pub(crate) fn winner(view: &View<'_>) -> Option<String> {
    let status = view.status;
    let by = format!("by {} joules per {}", view.deciding, view.unit);
    let everywhere = if view.has_several_points {
        ", at every point"
    } else {
        ""
    };
    if let Some(winner) = &status.winner {
        return Some(format!("winner: {winner}, {by}{everywhere}"));
    }
    if status.tie == Some(true) {
        return Some(format!("a tie, {by}{everywhere}"));
    }
    let columns = status.columns.as_ref();
    let shown = columns.and_then(|columns| columns.winner.as_deref());
    let why = if !view.any(|it| it.candidate != view.results[0].candidate) {
        return None;
    } else if shown == Some(text::DEPENDS_ON_BOARD) {
        "it depends on the board"
    } else if status.comparisons.is_empty() {
        return Some("no winner: not compared".to_owned());
    } else if view.has_several_points {
        "none at every point"
    } else if status.comparisons.iter().any(Comparison::is_within_margin) {
        "a difference is within energy.tieWithin"
    } else {
        "not separated"
    };
    Some(format!("no winner: {why} {by}"))
}

/// Each ratio; with a winner, only the winner's.
fn comparisons(view: &View<'_>) -> impl Iterator<Item = String> {
    let winner = view.status.winner.as_ref();
    let is_shown = move |it: &&Comparison| winner.is_none_or(|winner| it.candidate == *winner);
    view.status.comparisons.iter().filter(is_shown).map(|it| {
        let boards = match it.board {
            Some(BoardVerdict::EveryBoard) => ", on every board",
            Some(BoardVerdict::StatedAccuracy) => ", by the stated accuracy of this board",
            Some(BoardVerdict::DependsOnBoard) => ": depends on the board",
            None => "",
        };
        let (candidate, against, at) = (&it.candidate, &it.against, view.at(&it.point));
        format!(
            "{candidate} / {against}{at}: {}{boards}",
            text::comparison(it)
        )
    })
}

/// The points at which a candidate does best.
fn best(view: &View<'_>, sweep: &SweepResult) -> Vec<String> {
    let (candidate, unit, deciding) = (&sweep.candidate, view.unit, view.deciding);
    let power = match view.status.provenance.as_deref() {
        Some("Metered") | None => String::new(),
        Some(provenance) => format!("{} ", provenance.to_lowercase()),
    };
    let best = [
        (format!("most {unit}s/s"), &sweep.most_requests_per_second),
        (
            format!("most {unit}s per {deciding} {power}joule"),
            &sweep.most_requests_per_joule,
        ),
        ("knee".to_owned(), &sweep.knee),
        (
            format!("least {deciding} {power}energy × time"),
            &sweep.least_energy_delay,
        ),
    ];
    let note = |(what, optimum): (String, &Option<Optimum>)| {
        let Optimum { point, among } = optimum.as_ref()?;
        let others = match among.as_slice() {
            [_] => String::new(),
            among => format!(" (may be any of {})", among.join(", ")),
        };
        Some(format!("{candidate}: {what} at {point}{others}"))
    };
    best.into_iter().filter_map(note).collect()
}

/// The budgets that the message above does not name. It names those that decided, unless it was cut.
fn budgets(view: &View<'_>) -> impl Iterator<Item = String> {
    let columns = view.status.columns.as_ref();
    let message = columns.and_then(|it| it.message.as_deref());
    let is_cut = message.is_some_and(|message| message.ends_with('…'));
    let said = decisive(view).filter(|_| !is_cut);
    let budgets = view.status.budgets.iter();
    let unsaid = budgets.filter(move |budget| Some(budget.outcome) != said);
    unsaid.map(|budget| budget.message.clone())
}

/// The outcome of the budgets that decided the verdict. `None` if a candidate without its deciding figure decided.
fn decisive(view: &View<'_>) -> Option<BudgetOutcome> {
    let status = view.status;
    match status.verdict? {
        Verdict::Pass => Some(BudgetOutcome::Met),
        Verdict::Fail => Some(BudgetOutcome::Exceeded),
        Verdict::Inconclusive => {
            let reason = status.columns.as_ref()?.reason.as_deref()?;
            match reason.parse() {
                Ok(Reason::BudgetWithinUncertainty) => Some(BudgetOutcome::Undecided),
                Ok(Reason::BudgetBelowNoiseFloor) => Some(BudgetOutcome::BelowNoiseFloor),
                _ if view.any(|it| is_undecidable(status, it)) => None,
                _ => Some(BudgetOutcome::Withheld),
            }
        }
        Verdict::Reported | Verdict::Invalid | Verdict::Error => None,
    }
}

/// Whether a candidate has no deciding figure, and not because the injector limited it: a budget then says so.
fn is_undecidable(status: &FrugalityBenchmarkStatus, result: &CandidateResult) -> bool {
    let joules = status.deciding_figure.and_then(|kind| result.joules(kind));
    let injector = result.injector.as_ref();
    joules.is_none() && injector.is_none_or(|injector| injector.limits.is_none())
}

/// Each reason once, with all candidates whose figure it withholds.
fn withheld(view: &View<'_>) -> Vec<String> {
    let reasons = view::withheld(view.status, view.has_several_points).into_iter();
    reasons
        .map(|(reason, names)| format!("withheld for {}: {reason}", names.join(", ")))
        .collect()
}

fn noise_floor(view: &View<'_>) -> Option<String> {
    let floor = view.status.noise_floor.as_ref()?;
    let (percent, ratio) = (text::number(100.0 * floor.share), text::ratio(&floor.ratio));
    let candidate = &floor.candidate;
    Some(format!(
        "noise floor {percent} %: {candidate} against itself is {ratio}"
    ))
}

/// How much of the load failed. All other figures leave it out.
fn failures(view: &View<'_>, result: &CandidateResult) -> Option<String> {
    let ratio = result.error_ratio.filter(|ratio| ratio.value > 0.0)?;
    let (whole, name) = (view.whole, view.name(result));
    let [value, lower, upper] =
        [ratio.value, ratio.lower, ratio.upper].map(|share| text::number(100.0 * share));
    Some(format!(
        "{value} % [{lower}–{upper}] of the {whole}s of {name} failed. Its figures are per successful {whole}."
    ))
}

fn memory_growth(view: &View<'_>, result: &CandidateResult) -> Option<String> {
    let growth = interval(result.memory_growth_bytes_per_hour.as_ref()?, MEBIBYTE);
    let name = view.name(result);
    Some(format!("memory of {name} changes by {growth} MiB/h"))
}

fn latency_drift(view: &View<'_>, result: &CandidateResult) -> Option<String> {
    let drift = interval(result.latency_drift_milliseconds_per_hour.as_ref()?, 1.0);
    let name = view.name(result);
    Some(format!("mean latency of {name} changes by {drift} ms/h"))
}

fn cycle(view: &View<'_>, result: &CandidateResult) -> Option<String> {
    let requests = text::number(result.cycles.as_ref()?.requests_per_cycle);
    let name = view.name(result);
    Some(format!("a cycle of {name}: {requests} requests"))
}

/// What the latencies are over.
fn latencies(view: &View<'_>) -> Option<String> {
    let whole = view.whole;
    view.any(|it| !it.latency.is_empty()).then(|| {
        format!("Latencies are over the successful {whole}s of all trials. The range of the single trials is in ( ).")
    })
}

/// What the intervals are. Nothing if the status does not say at which look the run ended.
fn confidence(view: &View<'_>) -> Option<String> {
    let look = view.status.look?;
    let [figures, claims] = [look.confidence, look.claim_confidence].map(text::confidence);
    let of_claims = if claims == figures {
        String::new()
    } else {
        let or_more = if view.status.has_stricter_ratios() {
            " or more"
        } else {
            ""
        };
        format!(", [ ] of ratios and budgets {claims}{or_more}")
    };
    let has_errors = view.any(|it| it.error_ratio.is_some_and(|ratio| ratio.value > 0.0));
    let of_errors = if has_errors {
        let whole = view.whole;
        format!(
            " The interval of failed {whole}s also covers the binomial interval of all trials' {whole}s together."
        )
    } else {
        String::new()
    };
    Some(format!(
        "± and [ ] are {figures} t-intervals over trials{of_claims}.{of_errors}"
    ))
}

/// The expanded intervals of the candidates' joules.
fn expanded(view: &View<'_>) -> Vec<Expanded> {
    let of_joules = |it: &CandidateResult| {
        it.gross_joules_per_request
            .or(it.net_joules_per_request)
            .or(it.net_attributed_joules_per_request)
            .or(it.attributed_joules_per_request)?
            .expanded
    };
    view.results.iter().filter_map(of_joules).collect()
}

/// Whether a model of unknown accuracy computed joules.
fn is_of_unknown_accuracy(joules: &[Expanded]) -> bool {
    joules.iter().any(|interval| interval.repeatability_only)
}

/// Whether the verdict's message speaks of the model's accuracy. A message may have been cut.
fn message_names_accuracy(view: &View<'_>) -> bool {
    let columns = view.status.columns.as_ref();
    let message = columns.and_then(|columns| columns.message.as_deref());
    message.is_some_and(|message| message.contains("accuracy"))
}

/// What the intervals of joules include.
fn accuracy(view: &View<'_>) -> Option<&'static str> {
    let figures = expanded(view);
    let covers_meter = figures.iter().all(|figure| figure.covers_meter);
    Some(match () {
        () if figures.is_empty() => return None,
        () if is_of_unknown_accuracy(&figures) && !message_names_accuracy(view) => {
            "~ marks joules of a model whose accuracy is unknown. They have no interval, and their ratio is a range over all boards."
        }
        () if is_of_unknown_accuracy(&figures) => {
            "~ marks modelled joules. They have no interval, and their ratio is a range over all boards."
        }
        () if !covers_meter => {
            "Intervals of joules include the timing error at the windows' ends. They exclude the meter's own accuracy, which this meter does not report."
        }
        () if view.any(|it| it.node.is_some()) => {
            "Intervals of joules, and of ratios between nodes, include the meters' own accuracy and the timing error at the windows' ends."
        }
        () if view.status.provenance.as_deref() == Some("Modelled") => {
            "Intervals of joules include the stated accuracy of the power model and the timing error at the windows' ends. A ratio is a range over all boards, unless that accuracy decides."
        }
        () => {
            "Intervals of joules include the meter's own accuracy and the timing error at the windows' ends. Intervals of ratios include neither: an error of the meter's gain cancels in a ratio, and other errors of the meter do not."
        }
    })
}

/// Where the power and the load came from.
fn power(view: &View<'_>) -> Option<String> {
    let status = view.status;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let by = match &status.meter {
        // The message or the note about accuracy says it already.
        Some(meter) if is_of_unknown_accuracy(&expanded(view)) => {
            format!(" by {}", meter.replace(", accuracy unknown", ""))
        }
        Some(meter) => format!(" by {meter}"),
        None if status.provenance.is_none() => return None,
        None => String::new(),
    };
    // If candidates have nodes of their own, the meter's text names each node.
    let on = if view.any(|it| it.node.is_some()) {
        String::new()
    } else {
        format!(" on node {}", known(&status.measured_node))
    };
    let shared = if status.shared_node == Some(true) {
        " (the same node: gross and net joules are withheld)"
    } else {
        ""
    };
    let provenance = status.provenance.as_deref().unwrap_or("unknown");
    let injector = known(&status.injector_node);
    Some(format!(
        "power: {provenance}{by}{on}; load from node {injector}{shared}"
    ))
}
