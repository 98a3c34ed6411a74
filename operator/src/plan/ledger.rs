//! What the ledger records, and what comes next.

pub mod record;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt;

use crate::{
    api::{FrugalityTrial, FrugalityTrialSpec, LABEL_MEASUREMENT, LevelsOf, Outcome, Reason},
    plan::{
        baseline::is_frozen_entry,
        settings::{Block, Settings},
    },
};

/// The trials of one run.
#[derive(Clone, Debug)]
pub struct Ledger<'a> {
    entries: Vec<&'a FrugalityTrial>,
    tries: usize,
    try_number: usize,
}

/// How the verdict uses a point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The verdict judges every candidate at this point.
    Judged,
    /// Errors ended the sweep here: in the first block every entrant had too many. The status shows the point, and
    /// the verdict ignores it.
    End,
    /// The point is beyond the end of the sweep, and the operator does not try it.
    LeftOut,
}

/// What the ledger requires next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<'a> {
    /// Every block is valid.
    Finished,
    /// An entry ended the run.
    Failed(&'a FrugalityTrial),
    /// A block has used all its attempts: its newest void entry.
    Exhausted(&'a FrugalityTrial),
    /// An attempt is under way.
    Open(&'a FrugalityTrial),
    /// Start this attempt.
    Start(Start),
}

/// An attempt to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Block, from 1.
    pub block: i32,
    /// Position in the block, from 1.
    pub position: i32,
    /// Attempt at the block, from 1.
    pub attempt: i32,
    /// Candidate.
    pub candidate: String,
}

impl<'a> Ledger<'a> {
    /// The entries of `run`. Entries of other runs never count.
    #[must_use]
    pub fn of(run: &str, trials: &'a [FrugalityTrial]) -> Self {
        let mut entries: Vec<_> = trials
            .iter()
            .filter(|trial| trial.spec.run == run && !is_frozen_entry(trial))
            .collect();
        entries.sort_by_key(|entry| key(&entry.spec));
        let (try_number, tries) = tries(run, &entries, trials);
        Self {
            entries,
            tries,
            try_number,
        }
    }

    /// This run's number among these tries, from 1. The tries are ordered by the time of their first measured
    /// trial, because a user can know results of a try from then on.
    #[must_use]
    pub fn try_number(&self) -> usize {
        self.try_number
    }

    /// Number of runs of the same measurement, this run included. `spec.rerun` starts another run.
    #[must_use]
    pub fn tries(&self) -> usize {
        self.tries
    }

    /// Every entry, in the order of blocks, attempts and positions.
    #[must_use]
    pub fn entries(&self) -> &[&'a FrugalityTrial] {
        &self.entries
    }

    /// The newest entry for the run's preparation, if there is one.
    #[must_use]
    pub fn setup(&self) -> Option<&'a FrugalityTrial> {
        self.newest_attempt(0).pop()
    }

    /// Whether any attempt was ever started.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        self.entries.iter().any(|e| e.spec.block > 0)
    }

    /// Number of entries with this outcome that match the filter.
    #[must_use]
    pub fn count(
        &self,
        outcome: Outcome,
        is_selected: impl Fn(&FrugalityTrialSpec) -> bool,
    ) -> usize {
        self.entries
            .iter()
            .filter(|e| outcome_of(e) == Some(outcome) && is_selected(&e.spec))
            .count()
    }

    /// Numbers of attempts that match the filter: void attempts (without pauses), and measured attempts.
    #[must_use]
    pub fn void_and_measured(
        &self,
        is_selected: impl Fn(&FrugalityTrialSpec) -> bool,
    ) -> (u64, u64) {
        let selected = || self.entries.iter().filter(|e| is_selected(&e.spec));
        let is_void = |e: &&&FrugalityTrial| outcome_of(e) == Some(Outcome::Void) && !is_pause(e);
        let is_measured = |e: &&&FrugalityTrial| outcome_of(e) == Some(Outcome::Measured);
        (
            selected().filter(is_void).count() as u64,
            selected().filter(is_measured).count() as u64,
        )
    }

    /// Number of attempts that are void because the run paused during their block.
    #[must_use]
    pub fn pauses(&self) -> usize {
        self.entries.iter().filter(|e| is_pause(e)).count()
    }

    /// Number of a block's void attempts, without suspended and superseded ones. Neither cluster nor candidate caused
    /// those.
    #[must_use]
    pub fn voids_of(&self, block: i32) -> i32 {
        let void: BTreeSet<i32> = self
            .entries
            .iter()
            .filter(|e| e.spec.block == block && outcome_of(e) == Some(Outcome::Void))
            .filter(|e| {
                !is_void_because(e, Reason::Suspended) && !is_void_because(e, Reason::Superseded)
            })
            .map(|e| e.spec.attempt)
            .collect();
        i32::try_from(void.len()).unwrap_or(i32::MAX)
    }

    /// Name of the entry that was opened last.
    #[must_use]
    pub fn last_opened(&self) -> Option<&'a str> {
        let entries = self.entries.iter();
        let opened = entries.max_by_key(|entry| (entry.creation_timestamp(), entry.name_any()))?;
        opened.metadata.name.as_deref()
    }

    /// When the last entry got its outcome.
    #[must_use]
    pub fn last_finished(&self) -> Option<Timestamp> {
        self.entries.iter().copied().filter_map(finished_at).max()
    }

    /// How the verdict uses each point, in their order. Errors end the sweep over connections separately for each
    /// number of replicas. The verdict judges the fewest connections in any case.
    #[must_use]
    pub fn parts(&self, settings: &Settings) -> Vec<Part> {
        let is_beyond = |trial: &&FrugalityTrial, limit: f64| {
            let requests = trial.status.as_ref().and_then(|s| s.requests.as_ref());
            requests.is_some_and(|r| r.error_rate.is_none_or(|rate| rate > limit))
        };
        let entrants = settings.entrants().len();
        let is_end = |trials: &[&FrugalityTrial]| {
            settings.max_error_ratio.is_some_and(|limit| {
                trials.len() == entrants && trials.iter().all(|trial| is_beyond(trial, limit))
            })
        };
        // The blocks of the first round take the points in ascending order.
        let first_round = self.valid();
        let (mut seen, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let parts = settings.points.iter().enumerate().map(|(index, point)| {
            let is_lowest = seen.insert(point.replicas);
            if ended.contains(&point.replicas) {
                return Part::LeftOut;
            }
            if !first_round.get(index).is_some_and(|trials| is_end(trials)) {
                return Part::Judged;
            }
            ended.insert(point.replicas);
            if is_lowest { Part::Judged } else { Part::End }
        });
        parts.collect()
    }

    /// Valid trials per block: the measured trials of the newest attempt. A block with a void trial in that attempt
    /// is empty. The last block may be incomplete.
    #[must_use]
    pub fn valid(&self) -> Vec<Vec<&'a FrugalityTrial>> {
        let newest = self.entries.iter().map(|e| e.spec.block).max().unwrap_or(0);
        (1..=newest).map(|block| self.valid_in(block)).collect()
    }

    /// Valid trials of one block.
    #[must_use]
    pub fn valid_in(&self, block: i32) -> Vec<&'a FrugalityTrial> {
        let attempt = self.newest_attempt(block);
        if attempt.iter().any(|e| outcome_of(e) == Some(Outcome::Void)) {
            return Vec::new();
        }
        let is_measured = |e: &&FrugalityTrial| outcome_of(e) == Some(Outcome::Measured);
        attempt.into_iter().filter(is_measured).collect()
    }

    /// What comes next for all blocks of the run. A look judges fewer blocks but does not change their order. A
    /// void attempt repeats its whole block, because a block pairs the candidates and its trials must be neighbours
    /// in time.
    #[must_use]
    pub fn next(&self, settings: &Settings) -> Next<'a> {
        self.next_within(settings, settings.blocks)
    }

    /// What comes next until the first `blocks` blocks at each point are valid. If they are, a later failure does not
    /// count.
    #[must_use]
    pub fn next_within(&self, settings: &Settings, blocks: usize) -> Next<'a> {
        let is_failed = |e: &&&FrugalityTrial| outcome_of(e) == Some(Outcome::Failed);
        let next = self.next_of_valid(settings, blocks);
        match self.entries.iter().find(is_failed) {
            Some(failed) if next != Next::Finished => Next::Failed(failed),
            _ => next,
        }
    }

    /// What comes next if no entry ended the run. A block with a failed entry is not valid.
    fn next_of_valid(&self, settings: &Settings, blocks: usize) -> Next<'a> {
        let parts = self.parts(settings);
        let plan = settings.plan();
        let planned = (1..).zip(&plan).take(blocks * settings.points.len());
        for (block, Block { order, .. }) in planned.filter(|(_, b)| parts[b.point] != Part::LeftOut)
        {
            let newest = self.newest_attempt(block);
            if let Some(open) = newest.iter().find(|e| outcome_of(e).is_none()) {
                return Next::Open(open);
            }
            if let Some(failed) = newest
                .iter()
                .find(|e| outcome_of(e) == Some(Outcome::Failed))
            {
                return Next::Failed(failed);
            }
            let attempt = newest.first().map_or(1, |e| e.spec.attempt);
            if let Some(void) = newest.iter().find(|e| outcome_of(e) == Some(Outcome::Void)) {
                if self.voids_of(block) >= settings.max_attempts {
                    return Next::Exhausted(void);
                }
                return Next::Start(start(settings, order, block, attempt + 1, 0));
            }
            if newest.len() < order.len() {
                let begun = &order[..newest.len()];
                let is_begun = |name: &str| begun.iter().any(|it| settings.entrants()[*it] == name);
                return Next::Start(if newest.iter().all(|e| is_begun(&e.spec.candidate)) {
                    start(settings, order, block, attempt, newest.len())
                } else {
                    // A person has deleted an earlier entry of the block.
                    start(settings, order, block, attempt + 1, 0)
                });
            }
        }
        Next::Finished
    }

    /// Rate of an entrant at a block's load level, in requests per second: the share of the highest rate that the same
    /// round has measured. `None` if the block's point is not a level, or if the highest rate is not known.
    #[must_use]
    pub fn level_rate(&self, settings: &Settings, block: i32, entrant: &str) -> Option<f64> {
        let of = settings.levels_of?;
        let point = settings.point_of(block)?;
        let level = f64::from(point.level?);
        let valid = self.valid();
        let highest_of = |trial: &&FrugalityTrial| {
            let requests = trial.status.as_ref()?.requests.as_ref()?;
            requests.requests_per_second
        };
        let trials = valid.get(settings.block_of_highest_rates(block) - 1)?;
        // A block that is not complete may become void.
        if trials.len() < settings.entrants().len() {
            return None;
        }
        let highest = match of {
            LevelsOf::Own => trials
                .iter()
                .find(|trial| trial.spec.candidate == entrant)
                .and_then(highest_of)?,
            LevelsOf::Common => {
                let rates: Option<Vec<f64>> = trials.iter().map(highest_of).collect();
                rates?.into_iter().reduce(f64::min)?
            }
        };
        // A rate above the share could be above the highest rate.
        Some((highest * level).floor() / 100.0)
    }

    fn newest_attempt(&self, block: i32) -> Vec<&'a FrugalityTrial> {
        let of_block = || self.entries.iter().filter(move |e| e.spec.block == block);
        let newest = of_block().map(|e| e.spec.attempt).max();
        of_block()
            .filter(|e| Some(e.spec.attempt) == newest)
            .copied()
            .collect()
    }
}

fn start(settings: &Settings, order: &[usize], block: i32, attempt: i32, done: usize) -> Start {
    Start {
        block,
        attempt,
        position: i32::try_from(done + 1).unwrap_or(i32::MAX),
        candidate: settings.entrants()[order[done]].to_owned(),
    }
}

/// Number of this run among the runs of its measurement, and the number of those runs. A run without a measured
/// trial has shown no result and does not count as a try.
fn tries(run: &str, entries: &[&FrugalityTrial], trials: &[FrugalityTrial]) -> (usize, usize) {
    let measurement = |trial: &FrugalityTrial| trial.labels().get(LABEL_MEASUREMENT).cloned();
    let Some(this) = entries.first().copied().and_then(measurement) else {
        return (1, 1);
    };
    let is_measured = |trial: &&FrugalityTrial| outcome_of(trial) == Some(Outcome::Measured);
    // For each run, the time of its first measured trial.
    let mut others: BTreeMap<&str, Option<Timestamp>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.spec.run != run) {
        if is_measured(&trial) && measurement(trial).as_ref() == Some(&this) {
            let first = others.entry(&trial.spec.run).or_insert(None);
            *first = earliest(*first, finished_at(trial));
        }
    }
    let own = entries
        .iter()
        .copied()
        .filter(is_measured)
        .map(finished_at)
        .fold(None, earliest);
    let is_earlier = |(name, first): &(&&str, &Option<Timestamp>)| match (own, **first) {
        (Some(own), Some(first)) => (first, **name) < (own, run),
        // This run comes last if it has measured no trial yet, or if the times are not known.
        _ => true,
    };
    let earlier = others.iter().filter(is_earlier).count();
    (1 + earlier, 1 + others.len())
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn key(spec: &FrugalityTrialSpec) -> (i32, i32, i32) {
    (spec.block, spec.attempt, spec.position)
}

/// When an entry got its outcome.
#[must_use]
pub fn finished_at(trial: &FrugalityTrial) -> Option<Timestamp> {
    let finished = trial.status.as_ref()?.finished_at.as_ref()?;
    finished.parse().ok()
}

fn is_pause(trial: &FrugalityTrial) -> bool {
    [Reason::Suspended, Reason::Superseded, Reason::PausedTooLong]
        .iter()
        .any(|reason| is_void_because(trial, *reason))
}

fn is_void_because(trial: &FrugalityTrial, reason: Reason) -> bool {
    let found = trial.status.as_ref().and_then(|s| s.reason.as_deref());
    outcome_of(trial) == Some(Outcome::Void) && found == Some(reason.as_str())
}

/// Outcome of an entry, if it has one.
#[must_use]
pub fn outcome_of(trial: &FrugalityTrial) -> Option<Outcome> {
    trial.status.as_ref().and_then(|status| status.outcome)
}
