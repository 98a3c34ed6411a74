//! The status: conditions by kstatus' rules, and the texts of `kubectl get`.

use std::collections::BTreeSet;

use frugality_measure::reading::Provenance;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{
    api::{
        CandidateResult, Columns, Comparison, Figure, FrugalityBenchmark, FrugalityBenchmarkStatus,
        Outcome, Progress, Reason, Verdict, condition,
    },
    plan::{
        ledger::{Ledger, Part},
        placement::nodes::Nodes,
        report::{
            estimate::{Estimate, about},
            history::history,
        },
        settings::Settings,
        verdict::{Figures, Judgement, deciding_figure},
    },
    text, time,
};

/// Longest message of a condition that Kubernetes accepts is 32768; people read less.
const MAX_MESSAGE_CHARS: usize = 2000;

/// Where the benchmark stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// At work or waiting for its turn.
    Running {
        /// Reason code.
        reason: Reason,
        /// For people.
        message: String,
    },
    /// Paused at the user's wish.
    Suspended {
        /// For people: how to go on.
        message: String,
    },
    /// Ended.
    Ended(Judgement),
}

/// What a status is made from.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The benchmark.
    pub benchmark: &'a FrugalityBenchmark,
    /// Its spec in numbers, where it could be read.
    pub settings: Option<&'a Settings>,
    /// The run's ID.
    pub run: &'a str,
    /// Its ledger.
    pub ledger: &'a Ledger<'a>,
    /// When the run got its turn, in Unix seconds, if it has it.
    pub turn_unix_seconds: Option<f64>,
    /// Where it runs, once that is known.
    pub nodes: Option<&'a Nodes>,
    /// The attempt in hand.
    pub current: Option<String>,
    /// Where it stands.
    pub state: &'a State,
    /// The time, in Unix seconds.
    pub now_unix_seconds: f64,
}

impl Report<'_> {
    /// The status.
    #[must_use]
    pub fn status(&self) -> FrugalityBenchmarkStatus {
        let (verdict, figures) = match self.state {
            State::Ended(judgement) => (Some(judgement.verdict), judgement.figures.as_deref()),
            State::Running { .. } | State::Suspended { .. } => (None, None),
        };
        let (measured, injector) = self.node_names();
        FrugalityBenchmarkStatus {
            observed_generation: self.benchmark.metadata.generation,
            conditions: self.conditions(),
            verdict,
            winner: figures.and_then(|f| f.winner.clone()),
            tie: figures.and_then(|f| f.tie.then_some(true)),
            look: figures.and_then(|f| f.look),
            noise_floor: figures.and_then(|f| f.noise_floor.clone()),
            tries: figures.map(|f| i32::try_from(f.tries).unwrap_or(i32::MAX)),
            notes: figures.map(|f| f.notes.clone()).unwrap_or_default(),
            phase: Some(self.phase().to_owned()),
            run: Some(self.run.to_owned()),
            shared_node: measured
                .as_ref()
                .zip(injector.as_ref())
                .map(|(m, i)| m == i),
            measured_node: measured,
            injector_node: injector,
            progress: self.progress(figures),
            provenance: figures.and_then(|f| f.provenance).map(|p| p.to_string()),
            meter: figures.and_then(|f| f.meter.clone()),
            deciding_figure: figures.and_then(|f| f.deciding),
            results: figures.map(|f| f.results.clone()).unwrap_or_default(),
            sweep: figures.map(|f| f.sweep.clone()).unwrap_or_default(),
            comparisons: figures.map(|f| f.comparisons.clone()).unwrap_or_default(),
            budgets: figures.map(|f| f.budgets.clone()).unwrap_or_default(),
            ledger_digest: figures.map(|f| f.ledger_digest.clone()),
            history: history(
                self.benchmark,
                self.run,
                verdict,
                figures.and_then(|f| f.winner.as_deref()),
                figures.and_then(|f| f.deciding),
            ),
            columns: Some(self.columns(figures)),
        }
    }

    /// The measured nodes, in one text, and the injector; where they are not chosen, those of the run so far.
    fn node_names(&self) -> (Option<String>, Option<String>) {
        if let Some(nodes) = self.nodes {
            let measured = nodes.measured().into_iter();
            let names: Vec<&str> = measured.map(|node| node.name.as_str()).collect();
            return (Some(names.join(", ")), Some(nodes.injector.name.clone()));
        }
        let entries = self.ledger.entries().iter();
        let begun = entries.filter(|e| !e.spec.measured_node.is_empty());
        let names: BTreeSet<&str> = begun
            .clone()
            .map(|e| e.spec.measured_node.as_str())
            .collect();
        let names: Vec<&str> = names.into_iter().collect();
        (
            (!names.is_empty()).then(|| names.join(", ")),
            begun.map(|e| e.spec.injector_node.clone()).next(),
        )
    }

    fn reason(&self) -> &str {
        match self.state {
            State::Running { reason, .. } => reason.as_str(),
            State::Suspended { .. } => Reason::Suspended.as_str(),
            State::Ended(judgement) => &judgement.reason,
        }
    }

    fn message(&self) -> String {
        let message = match self.state {
            State::Running { message, .. } | State::Suspended { message } => message,
            State::Ended(judgement) => &judgement.message,
        };
        message.chars().take(MAX_MESSAGE_CHARS).collect()
    }

    fn phase(&self) -> &str {
        match self.state {
            State::Running { .. } | State::Suspended { .. } => self.reason(),
            State::Ended(_) => "Ended",
        }
    }

    /// A run that a look has ended planned no more than that.
    fn progress(&self, figures: Option<&Figures>) -> Option<Progress> {
        let settings = self.settings?;
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        let entrants = settings.entrants();
        let blocks = figures
            .and_then(|f| usize::try_from(f.look?.blocks).ok())
            .unwrap_or(settings.blocks);
        let mut valid = self.ledger.valid();
        valid.truncate(blocks * settings.points.len());
        let parts = self.ledger.parts(settings);
        let points = parts.iter().filter(|part| **part != Part::LeftOut).count();
        Some(Progress {
            trials_done: count(valid.concat().len()),
            trials_planned: count(blocks * points * entrants.len()),
            void_attempts: count(self.ledger.count(Outcome::Void, |spec| spec.block > 0)),
            current: self.current.clone(),
            remaining_seconds: self.remaining_seconds().and_then(time::whole_seconds),
            estimated_end: self.estimated_end(),
        })
    }

    fn estimate(&self) -> Option<Estimate> {
        let has_ended = matches!(self.state, State::Ended(_));
        let has_database = self.benchmark.spec.database.is_some();
        self.settings
            .filter(|_| !has_ended)
            .map(|settings| Estimate::of(settings, self.ledger, has_database))
    }

    fn remaining_seconds(&self) -> Option<f64> {
        self.estimate()?.seconds
    }

    fn estimated_end(&self) -> Option<String> {
        let is_running = matches!(self.state, State::Running { .. });
        let turn = self.turn_unix_seconds.filter(|_| is_running)?;
        let end = self.estimate()?.end_unix_seconds(self.ledger, turn)?;
        time::timestamp(end).and_then(time::whole_second)
    }

    fn columns(&self, figures: Option<&Figures>) -> Columns {
        let mut columns = Columns {
            trials: self
                .progress(figures)
                .map(|p| format!("{}/{}", p.trials_done, p.trials_planned)),
            left: self.remaining_seconds().map(about),
            reason: Some(self.reason().to_owned()),
            message: Some(self.message()),
            ..Columns::default()
        };
        let Some(figures) = figures else {
            return columns;
        };
        columns.power = figures.provenance.map(|p| p.to_string());
        if !figures.comparisons.is_empty() {
            columns.winner = Some(match &figures.winner {
                Some(winner) => winner.clone(),
                None if figures.tie => "tie".into(),
                None if figures.depends_on_load => "depends on load".into(),
                None if figures.depends_on_board => text::DEPENDS_ON_BOARD.into(),
                None => "not separated".into(),
            });
        }
        if figures.depends_on_board {
            columns.ratio = nearest(figures.comparisons.iter()).map(|c| {
                let ratio = text::comparison(c);
                format!(
                    "{} / {} {ratio}{}",
                    c.candidate,
                    c.against,
                    figures.at(&c.point)
                )
            });
        }
        let shown = shown(figures);
        if !shown.is_empty() {
            columns.ratio = ratio(figures, &shown);
            columns.energy = energy(figures, &shown);
            columns.rate = over_points(&shown, |result| result.requests_per_second);
            columns.latency = over_points(&shown, |result| result.milliseconds_per_request);
            if let Some(Settings { units, .. }) = self.settings {
                columns.energy = columns.energy.map(|text| units.each(text));
                columns.rate = columns.rate.map(|text| units.rate(text));
                columns.latency = columns.latency.map(|text| units.time(text));
            }
        }
        columns
    }

    /// The table of `docs/architecture.md`.
    fn conditions(&self) -> Vec<Condition> {
        let ended = match self.state {
            State::Running { .. } | State::Suspended { .. } => None,
            State::Ended(judgement) => Some(judgement.verdict),
        };
        let passed = ended == Some(Verdict::Pass);
        let mut conditions = vec![
            self.condition(
                condition::COMPLETE,
                if ended.is_some() { "True" } else { "False" },
            ),
            self.condition(
                condition::SUCCEEDED,
                match ended {
                    // Without budgets nothing was asked that could succeed or fail.
                    None | Some(Verdict::Reported) => "Unknown",
                    Some(Verdict::Pass) => "True",
                    Some(_) => "False",
                },
            ),
            self.condition(condition::READY, if passed { "True" } else { "False" }),
        ];
        match self.state {
            State::Running { .. } => {
                conditions.push(self.condition(condition::RECONCILING, "True"));
            }
            State::Ended(_) if !passed => {
                conditions.push(self.condition(condition::STALLED, "True"));
            }
            State::Suspended { .. } | State::Ended(_) => {}
        }
        conditions
    }

    fn condition(&self, kind: &str, status: &str) -> Condition {
        let earlier = self
            .benchmark
            .current_status()
            .into_iter()
            .flat_map(|status| &status.conditions)
            .find(|c| c.type_ == kind && c.status == status);
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason().to_owned(),
            message: self.message(),
            observed_generation: self.benchmark.metadata.generation,
            last_transition_time: earlier
                .map_or_else(|| Time(self.since()), |c| c.last_transition_time.clone()),
        }
    }

    /// When this state began. An end that follows from the ledger began with its last entry, so that a
    /// wiped status comes back with its times; one that follows from an edit begins now.
    fn since(&self) -> Timestamp {
        let now = time::timestamp(self.now_unix_seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let told = self.benchmark.current_status();
        let is_first_end = matches!(self.state, State::Ended(_))
            && told.is_none_or(|status| {
                status.verdict.is_none()
                    && status.observed_generation == self.benchmark.metadata.generation
            });
        self.ledger
            .last_finished()
            .filter(|_| is_first_end)
            .and_then(|last| Timestamp::from_second(last.as_second()).ok())
            .unwrap_or(now)
    }
}

/// The results whose figures stand in the table: the winner's, or the only candidate's, at every point.
fn shown(figures: &Figures) -> Vec<&CandidateResult> {
    let judged = figures.judged();
    let first = judged.first().map(|result| &result.candidate);
    let is_alone = judged.iter().all(|result| Some(&result.candidate) == first);
    let candidate = figures.winner.as_ref().or(first.filter(|_| is_alone));
    judged
        .iter()
        .filter(|result| Some(&result.candidate) == candidate)
        .collect()
}

/// A figure, and of several points the least and the most: an interval of the best one of them would not
/// hold what it seems to.
fn over_points(
    results: &[&CandidateResult],
    figure: impl Fn(&CandidateResult) -> Option<Figure>,
) -> Option<String> {
    let figures: Vec<Figure> = results
        .iter()
        .map(|result| figure(result))
        .collect::<Option<_>>()?;
    let [first, rest @ ..] = figures.as_slice() else {
        return None;
    };
    if rest.is_empty() {
        return Some(text::figure(first));
    }
    let values = || figures.iter().map(|figure| figure.value);
    Some(format!(
        "{}–{}",
        text::number(values().fold(f64::INFINITY, f64::min)),
        text::number(values().fold(0.0, f64::max))
    ))
}

/// The winner's figure over the next best; of several points, where they are closest.
fn ratio(figures: &Figures, shown: &[&CandidateResult]) -> Option<String> {
    let is_shown = |c: &&Comparison| {
        shown
            .iter()
            .any(|result| c.candidate == result.candidate && c.point == result.point)
    };
    nearest(figures.comparisons.iter().filter(is_shown))
        .map(|c| format!("{}{}", text::comparison(c), figures.at(&c.point)))
}

/// Where two candidates are closest.
fn nearest<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Option<&'a Comparison> {
    comparisons.max_by(|a, b| a.ratio.value.total_cmp(&b.ratio.value))
}

/// The deciding figure of a candidate. Modelled joules stand behind the CPU time that they were
/// computed from.
fn energy(figures: &Figures, shown: &[&CandidateResult]) -> Option<String> {
    let (deciding, provenance) = (figures.deciding?, figures.provenance?);
    let joules = over_points(shown, |result| deciding_figure(result, deciding))?;
    let text = text::joules(&joules, deciding, provenance)?;
    let cpu = match shown {
        [only] => only
            .cpu_milliseconds_per_request
            .map(|cpu| text::number(cpu.value)),
        several => over_points(several, |result| result.cpu_milliseconds_per_request),
    };
    Some(match (provenance, cpu) {
        (Provenance::Modelled, Some(cpu)) => format!("{cpu} ms CPU ({text})"),
        _ => text,
    })
}
