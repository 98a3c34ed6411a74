//! A benchmark's status as a table for a terminal or a report.

// Writing to a String can't fail, so the results of `writeln!` below are not looked at.
use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    api::{
        Arrivals, BoardVerdict, CandidateResult, CostPerMillion, DecidingFigure, Expanded, Figure,
        FrugalityBenchmark, FrugalityBenchmarkStatus, Optimum, SweepResult,
    },
    text,
};

/// What percentiles of a closed loop leave out.
const CLOSED_LOOP: &str = "the percentiles are those of a closed loop: what waits behind a slow answer is not in them (coordinated omission; load.arrivals: Open has it)";

const MEBIBYTE: f64 = 1_048_576.0;

/// The status as text: the verdict, a row for each candidate, the comparisons and the budgets. A
/// figure that was withheld is a dash, and the reason stands below.
#[must_use]
pub fn summary(benchmark: &FrugalityBenchmark) -> String {
    let name = benchmark.metadata.name.as_deref().unwrap_or_default();
    let Some(status) = benchmark.current_status() else {
        return format!("{name}: not seen by the operator yet\n");
    };
    let columns = status.columns.clone().unwrap_or_default();
    let mut text = format!(
        "{name}: {} ({})\n",
        status
            .verdict
            .map_or_else(|| "running".to_owned(), |verdict| format!("{verdict:?}")),
        columns.reason.unwrap_or_default()
    );
    if let Some(message) = columns.message {
        let _ = writeln!(text, "  {message}");
    }
    if status.results.is_empty() {
        return text;
    }
    text.push('\n');
    text.push_str(&table(&rows(status)));
    text.push('\n');
    for further in [
        boards(status),
        workloads(status),
        executions(status),
        checks(status),
        latencies(status),
        costs(status),
    ] {
        if further.len() > 1 {
            text.push_str(&table(&further));
            text.push('\n');
        }
    }
    let mut results = status.results.iter();
    if results.any(|result| result.arrivals == Some(Arrivals::Closed)) {
        let _ = writeln!(text, "  {CLOSED_LOOP}");
    }
    for line in notes(status).into_iter().chain(cost_note(status)) {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// From CPU time on.
const COLUMNS_BEHIND_JOULES: usize = 6;

fn rows(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let power = status.provenance.clone().unwrap_or_default();
    let header = [
        "POINT",
        "CANDIDATE",
        "REQUESTS/S",
        "MS/REQUEST",
        "GROSS MJ/REQUEST",
        "NET MJ/REQUEST",
        "ATTRIBUTED MJ/REQUEST",
        "CPU MS/REQUEST",
        "IDLE CPUS",
        "PEAK MEMORY",
        "POWER",
        "TRIALS",
        "VOID",
    ];
    let mut header = header.map(|title| title.replace("MJ", "mJ")).to_vec();
    let mut rows: Vec<_> = status.results.iter().map(|it| row(it, &power)).collect();
    if status.deciding_figure == Some(DecidingFigure::NetAttributed) {
        let at = header.len() - COLUMNS_BEHIND_JOULES;
        header.insert(at, "NET ATTRIBUTED mJ/REQUEST".to_owned());
        for (row, result) in rows.iter_mut().zip(&status.results) {
            row.insert(at, milli(result.net_attributed_joules_per_request));
        }
    }
    let header = of_unit(header, status);
    under(header, rows.into_iter(), has_several_points(status))
}

/// The rows under their header, of which the first column is the point, and goes without saying where there
/// is one only.
fn under(
    header: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
    several_points: bool,
) -> Vec<Vec<String>> {
    let hidden = usize::from(!several_points);
    let rows = std::iter::once(header).chain(rows);
    rows.map(|row| row.into_iter().skip(hidden).collect())
        .collect()
}

/// What is counted: with a scenario, its cycles; with a batch, executions or what their work counts.
fn unit(status: &FrugalityBenchmarkStatus) -> &str {
    let mut batches = status.results.iter().filter_map(|it| it.batch.as_ref());
    if let Some(batch) = batches.next() {
        batch.work_unit.as_deref().unwrap_or("execution")
    } else {
        whole(status)
    }
}

/// What takes its time as a whole.
fn whole(status: &FrugalityBenchmarkStatus) -> &'static str {
    if status.results.iter().any(|result| result.cycles.is_some()) {
        "cycle"
    } else if status.results.iter().any(|result| result.batch.is_some()) {
        "execution"
    } else {
        "request"
    }
}

/// Titles that name what is counted.
fn of_unit(titles: Vec<String>, status: &FrugalityBenchmarkStatus) -> Vec<String> {
    let unit = unit(status).to_uppercase();
    let titles = titles.into_iter();
    titles
        .map(|title| match title.as_str() {
            "MS/REQUEST" => format!("MS/{}", whole(status).to_uppercase()),
            _ => title.replace("REQUEST", &unit),
        })
        .collect()
}

fn has_several_points(status: &FrugalityBenchmarkStatus) -> bool {
    let mut points = status.results.iter().map(|result| &result.point);
    let first = points.next();
    points.any(|point| Some(point) != first)
}

fn row(result: &CandidateResult, power: &str) -> Vec<String> {
    vec![
        result.point.clone(),
        result.candidate.clone(),
        plain(result.requests_per_second),
        plain(result.milliseconds_per_request),
        milli(result.gross_joules_per_request),
        milli(result.net_joules_per_request),
        milli(result.attributed_joules_per_request),
        plain(result.cpu_milliseconds_per_request),
        result.idle_cpus.map_or_else(dash, text::number),
        memory(result.peak_memory_bytes),
        power.to_owned(),
        result.trials.to_string(),
        result.void_attempts.to_string(),
    ]
}

fn plain(figure: Option<Figure>) -> String {
    figure.map_or_else(dash, |figure| text::figure(&figure))
}

fn milli(figure: Option<Figure>) -> String {
    plain(figure.map(|figure| figure.times(1000.0)))
}

fn memory(bytes: Option<i64>) -> String {
    bytes.map_or_else(dash, |bytes| format!("{:.1} MiB", bytes as f64 / MEBIBYTE))
}

/// In the place of a figure that there is none of.
fn dash() -> String {
    "–".to_owned()
}

/// What the node of each candidate draws; a header alone where all have the same.
fn boards(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let header = ["POINT", "CANDIDATE", "NODE", "IDLE W", "W UNDER LOAD"];
    let rows = status.results.iter().filter_map(|result| {
        let node = result.node.as_ref()?;
        Some(vec![
            result.point.clone(),
            result.candidate.clone(),
            node.name.clone(),
            plain(node.idle_watts),
            plain(node.load_watts),
        ])
    });
    under(
        header.map(str::to_owned).to_vec(),
        rows,
        has_several_points(status),
    )
}

/// What each of a candidate's servers took; a header alone where no candidate has several.
fn workloads(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let header = [
        "POINT",
        "CANDIDATE",
        "WORKLOAD",
        "ATTRIBUTED mJ/REQUEST",
        "CPU MS/REQUEST",
        "PEAK MEMORY",
    ];
    let rows = status.results.iter().flat_map(|result| {
        result.workloads.iter().map(|workload| {
            vec![
                result.point.clone(),
                result.candidate.clone(),
                workload.name.clone(),
                milli(workload.attributed_joules_per_request),
                plain(workload.cpu_milliseconds_per_request),
                memory(workload.peak_memory_bytes),
            ]
        })
    });
    under(
        of_unit(header.map(str::to_owned).to_vec(), status),
        rows,
        has_several_points(status),
    )
}

/// What the executions of each candidate came to; a header alone where there are none.
fn executions(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let batches = || {
        let results = status.results.iter();
        results.filter_map(|result| Some((result, result.batch.as_ref()?)))
    };
    let score = batches().find_map(|(_, batch)| batch.score.as_ref());
    let work = batches().find_map(|(_, batch)| batch.work_unit.as_ref());
    let deciding = status.deciding_figure.map_or("", |figure| figure.word());
    let titles = [
        Some("POINT".to_owned()),
        Some("CANDIDATE".to_owned()),
        Some("EXECUTIONS".to_owned()),
        score.map(|score| format!("SCORE ({})", score.unit)),
        score.map(|_| "STANDARD DEVIATION".to_owned()),
        work.map(|unit| format!("{}S/EXECUTION", unit.to_uppercase())),
        Some(format!("{} J/EXECUTION", deciding.to_uppercase())),
    ];
    let rows = batches().map(|(result, batch)| {
        let told = |number: Option<f64>| number.map_or_else(dash, text::number);
        let of_score = batch.score.as_ref();
        let cells = [
            Some(result.point.clone()),
            Some(result.candidate.clone()),
            Some(batch.executions.to_string()),
            score.map(|_| told(of_score.map(|it| it.mean))),
            score.map(|_| told(of_score.and_then(|it| it.standard_deviation))),
            work.map(|_| told(batch.work_per_execution)),
            Some(plain(batch.joules_per_execution)),
        ];
        cells.into_iter().flatten().collect()
    });
    let header = titles.into_iter().flatten().collect();
    under(header, rows, has_several_points(status))
}

/// How often each check of a script did not hold; a header alone where there is none.
fn checks(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let header = ["POINT", "CANDIDATE", "CHECK", "FAILED", "OF", "SHARE"];
    let rows = status.results.iter().flat_map(|result| {
        let checks = result.cycles.iter().flat_map(|cycles| &cycles.checks);
        checks.map(|check| {
            let all = check.passed.saturating_add(check.failed);
            vec![
                result.point.clone(),
                result.candidate.clone(),
                check.name.clone(),
                check.failed.to_string(),
                all.to_string(),
                text::number(check.failed as f64 / all.max(1) as f64),
            ]
        })
    });
    under(
        header.map(str::to_owned).to_vec(),
        rows,
        has_several_points(status),
    )
}

/// The percentiles of each candidate's latency, each with the range of the single trials; a header alone
/// where there are none.
fn latencies(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let with_latency = || status.results.iter().filter(|r| !r.latency.is_empty());
    // Those of fewer requests have fewer, from the same beginning.
    let percentiles = with_latency()
        .map(|r| r.latency.as_slice())
        .max_by_key(|told| told.len())
        .unwrap_or_default();
    let titles = percentiles.iter().map(|p| format!("P{} ms", p.percentile));
    let header = ["POINT".to_owned(), "CANDIDATE".to_owned()];
    let header: Vec<String> = header.into_iter().chain(titles).collect();
    let rows = with_latency().map(|result| {
        let cells = result.latency.iter().map(|p| {
            format!(
                "{} ({}–{})",
                text::number(p.milliseconds),
                text::number(p.least_milliseconds),
                text::number(p.most_milliseconds)
            )
        });
        let names = [result.point.clone(), result.candidate.clone()];
        let unknown = std::iter::repeat_n(dash(), percentiles.len() - result.latency.len());
        names.into_iter().chain(cells).chain(unknown).collect()
    });
    under(header, rows, has_several_points(status))
}

/// What a million requests of each candidate cost, with every term; a header alone where nobody asked. All
/// of it is from the status: the spec may have been edited since.
fn costs(status: &FrugalityBenchmarkStatus) -> Vec<Vec<String>> {
    let of_cost = |cost: fn(&CandidateResult) -> Option<&CostPerMillion>| {
        let unit = &status.results.iter().find_map(cost)?.unit;
        let titles = ["/MILLION", " FOR ENERGY", " FOR THE NODE"];
        Some((titles.map(|title| format!("{unit}{title}")), cost))
    };
    let asked: Vec<_> = [
        of_cost(|r| r.money.as_ref()),
        of_cost(|r| r.carbon.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let names = ["POINT".to_owned(), "CANDIDATE".to_owned()];
    let titles = asked.iter().flat_map(|(titles, _)| titles.clone());
    let terms = ["kWh/MILLION", "NODE'S LIFE/MILLION"].map(str::to_owned);
    let header = names.into_iter().chain(titles).chain(terms).collect();
    let row = |result: &CandidateResult| {
        let names = [result.point.clone(), result.candidate.clone()];
        // These two are the same of money and of carbon.
        let terms = asked
            .iter()
            .find_map(|(_, cost)| cost(result)?.terms)
            .map_or([dash(), dash()], |terms| {
                [terms.kilowatt_hours, terms.lifetime_share].map(text::number)
            });
        let cells = asked.iter().flat_map(|(_, cost)| match cost(result) {
            Some(cost) => [
                text::figure(&cost.total),
                text::number(cost.energy),
                text::number(cost.node),
            ],
            None => [dash(), dash(), dash()],
        });
        names.into_iter().chain(cells).chain(terms).collect()
    };
    let rows = status.results.iter().filter(|_| !asked.is_empty()).map(row);
    under(header, rows, has_several_points(status))
}

/// What the costs are of.
fn cost_note(status: &FrugalityBenchmarkStatus) -> Option<String> {
    let unit = unit(status);
    let has_carbon = status.results.iter().any(|result| result.carbon.is_some());
    if !has_carbon && status.results.iter().all(|result| result.money.is_none()) {
        return None;
    }
    let power = status.provenance.as_deref().unwrap_or("unknown");
    let sci = if has_carbon {
        format!("; gCO2e/million is the SCI of ISO/IEC 21031 for a million successful {unit}s")
    } else {
        String::new()
    };
    Some(format!(
        "costs are of gross joules ({}), at {}, and of a node that does nothing else all its life{sci}",
        power.to_lowercase(),
        prices(status).join("; ")
    ))
}

/// What a kilowatt-hour and a node cost, by the spec of the run; where nodes differ, of which candidate.
fn prices(status: &FrugalityBenchmarkStatus) -> Vec<String> {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for result in &status.results {
        let costs = [&result.money, &result.carbon].into_iter().flatten();
        for (unit, terms) in costs.filter_map(|cost| Some((&cost.unit, cost.terms?))) {
            let price = format!(
                "{} {unit}/kWh and {} {unit} a node",
                text::number(terms.per_kilowatt_hour),
                text::number(terms.node)
            );
            let index = told.iter().position(|(known, _)| *known == price);
            let index = index.unwrap_or_else(|| {
                told.push((price, Vec::new()));
                told.len() - 1
            });
            let candidates = &mut told[index].1;
            if !candidates.contains(&result.candidate.as_str()) {
                candidates.push(&result.candidate);
            }
        }
    }
    let all: BTreeSet<&str> = status
        .results
        .iter()
        .map(|it| it.candidate.as_str())
        .collect();
    told.iter()
        .map(|(price, candidates)| {
            if candidates.len() == all.len() {
                price.clone()
            } else {
                format!("{price} ({})", candidates.join(", "))
            }
        })
        .collect()
}

/// Who wins; nothing of one candidate alone.
fn winner(status: &FrugalityBenchmarkStatus, deciding: &str) -> Option<String> {
    let unit = unit(status);
    let several_points = has_several_points(status);
    let everywhere = if several_points {
        ", at every point"
    } else {
        ""
    };
    match &status.winner {
        Some(winner) => Some(format!(
            "winner: {winner}, by {deciding} joules per {unit}{everywhere}"
        )),
        None if status.tie == Some(true) => Some(format!(
            "a tie: shown to be equal by {deciding} joules per {unit}{everywhere}"
        )),
        None if is_one_candidate(status) => None,
        None if depends_on_board(status) => Some(format!(
            "no winner: it depends on the board by {deciding} joules per {unit}"
        )),
        None if status.comparisons.is_empty() => Some("no winner: not compared".into()),
        None if several_points => Some(format!(
            "no winner: none at every point by {deciding} joules per {unit}"
        )),
        None => Some(format!(
            "no winner: not separated by {deciding} joules per {unit}"
        )),
    }
}

/// Whether it is the board that decides who wins.
fn depends_on_board(status: &FrugalityBenchmarkStatus) -> bool {
    let columns = status.columns.as_ref();
    columns.and_then(|columns| columns.winner.as_deref()) == Some(text::DEPENDS_ON_BOARD)
}

fn notes(status: &FrugalityBenchmarkStatus) -> Vec<String> {
    let mut notes = Vec::new();
    let deciding = status.deciding_figure.map_or("", |figure| figure.word());
    let unit = unit(status);
    let several_points = has_several_points(status);
    notes.extend(winner(status, deciding));
    notes.extend(
        status
            .comparisons
            .iter()
            .filter(|c| {
                status
                    .winner
                    .as_ref()
                    .is_none_or(|winner| c.candidate == *winner)
            })
            .map(|c| {
                let at = text::at(&c.point, several_points);
                let boards = match c.board {
                    Some(BoardVerdict::EveryBoard) => ", on every board",
                    Some(BoardVerdict::StatedAccuracy) => ", by the stated accuracy of this board",
                    Some(BoardVerdict::DependsOnBoard) => ": depends on the board",
                    None => "",
                };
                format!(
                    "{} / {}{at}: {}{boards}",
                    c.candidate,
                    c.against,
                    text::comparison(c)
                )
            }),
    );
    let joules = match status.provenance.as_deref() {
        Some("Metered") | None => deciding.to_owned(),
        Some(provenance) => format!("{deciding} {}", provenance.to_lowercase()),
    };
    notes.extend(
        status
            .sweep
            .iter()
            .flat_map(|sweep| best(sweep, &joules, unit)),
    );
    notes.extend(
        status
            .budgets
            .iter()
            .map(|b| format!("budget {:?}: {}", b.outcome, b.message)),
    );
    for result in &status.results {
        notes.extend(result.withheld.iter().map(|why| {
            let at = text::at(&result.point, several_points);
            format!("withheld for {}{at}: {why}", result.candidate)
        }));
    }
    if let Some(floor) = &status.noise_floor {
        notes.push(format!(
            "noise floor {} %: {} against itself is {}",
            text::number(100.0 * floor.share),
            floor.candidate,
            text::ratio(&floor.ratio)
        ));
    }
    notes.extend(failures(status));
    notes.extend(growth(status));
    notes.extend(cycles(status));
    if status
        .results
        .iter()
        .any(|result| !result.latency.is_empty())
    {
        notes.push(format!(
            "latencies are over the successful {}s of all trials, in ( ) the range of the single trials",
            whole(status)
        ));
    }
    notes.push(intervals(status));
    if let Some(meter) = &status.meter {
        // Of several nodes each is told beside its meter.
        let on = match &status.measured_node {
            Some(_) if status.results.iter().any(|result| result.node.is_some()) => String::new(),
            node => format!(" on node {}", node.as_deref().unwrap_or("?")),
        };
        notes.push(format!(
            "power: {} by {meter}{on}; load from node {}{}",
            status.provenance.as_deref().unwrap_or("unknown"),
            status.injector_node.as_deref().unwrap_or("?"),
            if status.shared_node == Some(true) {
                " (the same node: gross and net joules are withheld)"
            } else {
                ""
            }
        ));
    }
    notes
}

/// How much of the load failed, where some of it did: every other figure leaves that out.
fn failures(status: &FrugalityBenchmarkStatus) -> impl Iterator<Item = String> {
    let several_points = has_several_points(status);
    let whole = whole(status);
    status.results.iter().filter_map(move |result| {
        let ratio = result.error_ratio.filter(|ratio| ratio.value > 0.0)?;
        let [value, lower, upper] =
            [ratio.value, ratio.lower, ratio.upper].map(|share| text::number(100.0 * share));
        let at = text::at(&result.point, several_points);
        let candidate = &result.candidate;
        Some(format!(
            "{value} % [{lower}–{upper}] of the {whole}s of {candidate}{at} failed: its figures are per successful {whole}"
        ))
    })
}

/// What a cycle is made of.
fn cycles(status: &FrugalityBenchmarkStatus) -> impl Iterator<Item = String> {
    let several_points = has_several_points(status);
    status.results.iter().filter_map(move |result| {
        let requests = result.cycles.as_ref()?.requests_per_cycle;
        let at = text::at(&result.point, several_points);
        let candidate = &result.candidate;
        let requests = text::number(requests);
        Some(format!("a cycle of {candidate}{at}: {requests} requests"))
    })
}

/// How fast the memory of each candidate grows and its latency rises, where the windows are long enough to tell.
fn growth(status: &FrugalityBenchmarkStatus) -> impl Iterator<Item = String> {
    let several_points = has_several_points(status);
    status.results.iter().flat_map(move |result| {
        let at = text::at(&result.point, several_points);
        let candidate = &result.candidate;
        let told = |figure: &Figure, of_unit: f64| {
            let [value, lower, upper] =
                [figure.value, figure.lower, figure.upper].map(|it| text::number(it / of_unit));
            format!("{value} [{lower}–{upper}]")
        };
        let memory = result.memory_growth_bytes_per_hour.as_ref();
        let latency = result.latency_drift_milliseconds_per_hour.as_ref();
        let memory = memory.map(|growth| {
            let growth = told(growth, MEBIBYTE);
            format!("memory of {candidate}{at} grows by {growth} MiB/h")
        });
        let latency = latency.map(|drift| {
            let drift = told(drift, 1.0);
            format!("mean latency of {candidate}{at} rises by {drift} ms/h")
        });
        memory.into_iter().chain(latency)
    })
}

fn is_one_candidate(status: &FrugalityBenchmarkStatus) -> bool {
    let mut candidates = status.results.iter().map(|result| &result.candidate);
    let first = candidates.next();
    candidates.all(|candidate| Some(candidate) == first)
}

/// Where a candidate does best.
fn best(sweep: &SweepResult, joules: &str, unit: &str) -> Vec<String> {
    let told = |what: &str, optimum: &Option<Optimum>| {
        let optimum = optimum.as_ref()?;
        let others = match optimum.among.as_slice() {
            [_] => String::new(),
            among => format!(" (may be any of {})", among.join(", ")),
        };
        Some(format!(
            "{}: {what} at {}{others}",
            sweep.candidate, optimum.point
        ))
    };
    [
        told(&format!("most {unit}s/s"), &sweep.most_requests_per_second),
        told(
            &format!("most {unit}s per {joules} joule"),
            &sweep.most_requests_per_joule,
        ),
        told("knee", &sweep.knee),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the intervals are.
fn intervals(status: &FrugalityBenchmarkStatus) -> String {
    let percent = |confidence: f64| (confidence * 1000.0).round() / 10.0;
    let figures = percent(status.look.map_or(0.95, |look| look.confidence));
    let claims = status
        .look
        .map(|look| percent(look.claim_confidence))
        .filter(|claims| *claims > figures)
        .map(|claims| format!(", [ ] of ratios and budgets {claims} %"))
        .unwrap_or_default();
    let of_joules = status.results.iter().filter_map(|result| {
        result
            .gross_joules_per_request
            .or(result.net_joules_per_request)
            .or(result.net_attributed_joules_per_request)
            .or(result.attributed_joules_per_request)?
            .expanded
    });
    let is_modelled = status.provenance.as_deref() == Some("Modelled");
    let between_nodes = status.results.iter().any(|result| result.node.is_some());
    let of_joules: Vec<Expanded> = of_joules.collect();
    let covers = match of_joules.iter().map(|e| e.covers_meter).min() {
        _ if of_joules.iter().any(|e| e.repeatability_only) => {
            "; ≈ has none, because the accuracy of the power model is unknown; a ratio of modelled joules is told from the least to the most over all boards"
        }
        Some(true) if between_nodes => {
            "; those of joules, and of ratios between nodes, cover the meters' own accuracy and what the windows' ends cost too"
        }
        Some(true) if is_modelled => {
            "; those of joules cover the stated accuracy of the power model and what the windows' ends cost too; a ratio is told from the least to the most over all boards, unless that accuracy decides"
        }
        Some(true) => {
            "; those of joules cover the meter's own accuracy and what the windows' ends cost too, and ratios have no need to"
        }
        Some(false) => {
            "; those of joules cover what the windows' ends cost too, but not the meter's own accuracy, which it does not tell"
        }
        None => "",
    };
    format!("± and [ ] are {figures} % t-intervals over trials{claims}{covers}")
}

/// Columns as wide as their widest cell, two spaces apart.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}
