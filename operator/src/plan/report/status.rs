//! The status: conditions by kstatus' rules, and the columns of `kubectl get`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{
    api::{
        ANCHOR, BASELINE, BaselineResult, Columns, FrugalityBenchmark, FrugalityBenchmarkStatus,
        Outcome, Progress, Reason, ReleaseRatio, Verdict, condition,
    },
    plan::{
        baseline::compared,
        ledger::{Ledger, Part},
        placement::nodes::Nodes,
        report::{
            columns,
            estimate::{Estimate, about, briefly},
            history::{DecidingJoules, ShownResult, history, other_joules_note},
        },
        settings::Settings,
        verdict::{Figures, Judgement},
    },
    text::shortened,
    time,
};

/// Longest message. Kubernetes accepts 32768 characters in a condition, but people read less.
const MAX_MESSAGE_CHARS: usize = 2000;
/// Longest message that an event and a pipeline's output show whole. Both have 1024 bytes, and an event names the winner first.
const MAX_EVENT_CHARS: usize = 700;
/// No number of a message is longer, with its interval.
const MOST_NUMBER_CHARS: usize = 64;

/// The state of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Measuring, or waiting.
    Running {
        /// Reason code.
        reason: Reason,
        /// For people.
        message: String,
    },
    /// Paused by the user.
    Suspended {
        /// For people: how to continue.
        message: String,
    },
    /// Ended.
    Ended(Judgement),
}

/// The inputs of a status.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The benchmark.
    pub benchmark: &'a FrugalityBenchmark,
    /// Its spec in numbers, if it could be read.
    pub settings: Option<&'a Settings>,
    /// The run's ID.
    pub run: &'a str,
    /// Its ledger.
    pub ledger: &'a Ledger<'a>,
    /// When the run got its nodes, in Unix seconds; `None` while it waits.
    pub turn_unix_seconds: Option<f64>,
    /// Its nodes, once they are known.
    pub nodes: Option<&'a Nodes>,
    /// The current attempt.
    pub current: Option<String>,
    /// Its state.
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
        let deciding = figures
            .and_then(|f| f.deciding)
            .map(|figure| DecidingJoules::of(figure, &self.benchmark.spec));
        let winner = figures.and_then(|f| f.winner.clone());
        let tie = figures.and_then(|f| f.tie.then_some(true));
        let shown = ShownResult {
            verdict,
            winner: winner.as_deref(),
            tie,
            deciding,
        };
        let history = history(self.benchmark, self.run, &shown);
        let notes = figures.map(|f| f.notes.clone()).into_iter().flatten();
        let other_joules = other_joules_note(&history, self.run, deciding);
        let message = self.message(other_joules.as_deref());
        FrugalityBenchmarkStatus {
            observed_generation: self.benchmark.metadata.generation,
            conditions: self.conditions(&message),
            verdict,
            winner,
            tie,
            look: figures.and_then(|f| f.look),
            noise_floor: figures.and_then(|f| f.noise_floor.clone()),
            tries: figures.map(|f| i32::try_from(f.tries).unwrap_or(i32::MAX)),
            notes: notes.chain(other_joules).collect(),
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
            deciding_figure: deciding.map(|it| it.figure),
            boundary: deciding.and_then(|it| it.boundary),
            results: figures.map(|f| f.results.clone()).unwrap_or_default(),
            sweep: figures.map(|f| f.sweep.clone()).unwrap_or_default(),
            comparisons: figures.map(|f| f.comparisons.clone()).unwrap_or_default(),
            budgets: figures.map(|f| f.budgets.clone()).unwrap_or_default(),
            baseline: self.baseline(figures),
            ledger_digest: figures.map(|f| f.ledger_digest.clone()),
            history,
            columns: Some(self.columns(figures, message)),
        }
    }

    /// The comparison with the release before. The ratios appear with the verdict.
    fn baseline(&self, figures: Option<&Figures>) -> Option<BaselineResult> {
        let spec = &self.benchmark.spec;
        let asked = spec.baseline.as_ref()?;
        let candidate = compared(asked, &spec.candidates);
        let release = |entrant: &str, name: &str| {
            let is_of = |against: &Option<String>| against.as_deref() == Some(entrant);
            let measured = spec.candidates.iter().find(|it| it.name == entrant);
            let result = figures.and_then(|it| it.budgets.iter().find(|it| is_of(&it.against)));
            let limits = self.settings.map(|settings| settings.limits.as_slice());
            let limit = limits.and_then(|it| it.iter().find(|it| is_of(&it.against)));
            ReleaseRatio {
                name: name.to_owned(),
                image: measured.map(|it| it.server.image.clone()),
                energy_ratio: result.and_then(|it| it.figure),
                max_energy_ratio: limit.map(|it| it.value),
            }
        };
        let anchor = asked.anchor.as_ref();
        Some(BaselineResult {
            candidate: candidate.to_owned(),
            baseline: release(BASELINE, &asked.name),
            anchor: anchor.map(|name| release(ANCHOR, name)),
            promotion: None,
            not_promoted_because: None,
        })
    }

    /// The measured nodes in one text, and the injector's node. Before they are chosen, the nodes of the run so far.
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

    /// The message of the state, with a note that only the status knows.
    fn message(&self, note: Option<&str>) -> String {
        let (message, figures) = match self.state {
            State::Running { message, .. } | State::Suspended { message } => (message, None),
            State::Ended(judgement) => (&judgement.message, judgement.figures.as_deref()),
        };
        let caveat = figures.and_then(|figures| figures.caveat.as_deref());
        let noted = note.map(|note| format!("{message} Note: {note}"));
        within(noted.as_ref().unwrap_or(message), caveat, MAX_MESSAGE_CHARS)
    }

    fn phase(&self) -> &str {
        match self.state {
            State::Running { .. } | State::Suspended { .. } => self.reason(),
            State::Ended(_) => "Ended",
        }
    }

    /// A run that a look has ended needed no more blocks.
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

    fn columns(&self, figures: Option<&Figures>, message: String) -> Columns {
        let left = self.remaining_seconds();
        let is_running = matches!(self.state, State::Running { .. });
        let short = left.filter(|_| is_running).map(briefly);
        let short = short.map(|time| format!(" {time}")).unwrap_or_default();
        let cells = figures
            .zip(self.settings)
            .map_or_else(Columns::default, |(figures, settings)| {
                columns::of_figures(figures, &settings.units)
            });
        Columns {
            verdict: Some(match self.state {
                State::Ended(judgement) => format!("{:?}", judgement.verdict),
                State::Running { .. } | State::Suspended { .. } => self.reason().to_owned(),
            }),
            trials: self
                .progress(figures)
                .map(|p| format!("{}/{}{short}", p.trials_done, p.trials_planned)),
            left: left.map(about),
            reason: Some(self.reason().to_owned()),
            message: Some(message),
            ..cells
        }
    }

    /// The table of `docs/architecture.md`.
    fn conditions(&self, message: &str) -> Vec<Condition> {
        let ended = match self.state {
            State::Running { .. } | State::Suspended { .. } => None,
            State::Ended(judgement) => Some(judgement.verdict),
        };
        let passed = ended == Some(Verdict::Pass);
        let mut conditions = vec![
            self.condition(
                condition::COMPLETE,
                if ended.is_some() { "True" } else { "False" },
                message,
            ),
            self.condition(
                condition::SUCCEEDED,
                match ended {
                    // Without budgets nothing can succeed or fail.
                    None | Some(Verdict::Reported) => "Unknown",
                    Some(Verdict::Pass) => "True",
                    Some(_) => "False",
                },
                message,
            ),
            self.condition(
                condition::READY,
                if passed { "True" } else { "False" },
                message,
            ),
        ];
        match self.state {
            State::Running { .. } => {
                conditions.push(self.condition(condition::RECONCILING, "True", message));
            }
            State::Ended(_) if !passed => {
                conditions.push(self.condition(condition::STALLED, "True", message));
            }
            State::Suspended { .. } | State::Ended(_) => {}
        }
        conditions
    }

    fn condition(&self, kind: &str, status: &str, message: &str) -> Condition {
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
            message: message.to_owned(),
            observed_generation: self.benchmark.metadata.generation,
            last_transition_time: earlier
                .map_or_else(|| Time(self.since()), |c| c.last_transition_time.clone()),
        }
    }

    /// When this state began. An end that follows from the ledger began with the ledger's last entry, so a deleted status comes
    /// back with its times. An end that follows from an edit begins now.
    fn since(&self) -> Timestamp {
        let now = time::timestamp(self.now_unix_seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let reported = self.benchmark.current_status();
        let is_first_end = matches!(self.state, State::Ended(_))
            && reported.is_none_or(|status| {
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

/// The message in at most `most` characters. A longer message is cut after a word and ends with `…`. A caveat limits
/// what the rest may be read as. If the message is cut, here or in an event, the caveat stands at its beginning.
fn within(message: &str, caveat: Option<&str>, most: usize) -> String {
    let length = message.chars().count();
    if length <= most.min(MAX_EVENT_CHARS) {
        return message.to_owned();
    }
    let parts = caveat.and_then(|caveat| {
        let (before, after) = message.split_once(caveat)?;
        Some([caveat, before, after].map(str::trim).join(" "))
    });
    let message = parts.as_deref().unwrap_or(message);
    if length <= most {
        return message.to_owned();
    }
    let cut = shortened(message, most);
    // The last word may be a part of a number. A longer word is a name or a quotation, and stays in part.
    match cut.rsplit_once(' ') {
        Some((words, last)) if last.chars().count() <= MOST_NUMBER_CHARS => format!("{words} …"),
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_after_a_word() {
        let message = "Budget exceeded: limit 0.0041 J.";
        assert_eq!(within(message, None, 32), message);
        for (most, text) in [
            (31, "Budget exceeded: limit 0.0041 …"),
            (30, "Budget exceeded: limit …"),
            (25, "Budget exceeded: limit …"),
            (24, "Budget exceeded: limit …"),
            (23, "Budget exceeded: …"),
            (4, "Bud…"),
        ] {
            let cut = within(message, None, most);
            assert_eq!(cut, text);
            assert!(cut.chars().count() <= most);
        }
        let quoted = format!("answered: {}", "x".repeat(100));
        assert_eq!(
            within(&quoted, None, 100),
            format!("answered: {}…", "x".repeat(89))
        );
    }

    #[test]
    fn a_caveat_survives_the_cut() {
        let caveat = "Power is modelled.";
        let message = "Budget exceeded: limit 0.0041 J. Power is modelled. Note: two runs.";
        assert_eq!(within(message, Some(caveat), 67), message);
        for (most, text) in [
            (
                66,
                "Power is modelled. Budget exceeded: limit 0.0041 J. Note: two …",
            ),
            (45, "Power is modelled. Budget exceeded: limit …"),
        ] {
            assert_eq!(within(message, Some(caveat), most), text);
        }
        // An event cuts such a message.
        let long = format!("{} {caveat} End.", "Budget exceeded.".repeat(60));
        let whole = within(&long, Some(caveat), MAX_MESSAGE_CHARS);
        assert!(
            whole.starts_with(caveat) && whole.ends_with("End."),
            "{whole}"
        );
        assert_eq!(whole.matches(caveat).count(), 1);
    }
}
