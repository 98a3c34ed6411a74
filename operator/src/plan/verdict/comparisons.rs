//! Candidates against each other and against themselves, always paired by block. An error of a meter's gain is in both
//! figures of a pair and cancels. A ratio therefore includes the meter's accuracy only if two meters measured the pair.

use frugality_measure::statistics::{
    IntervalEstimate,
    control::{is_below_floor, noise_floor as floor_of},
    equivalence::is_equivalent,
    paired_ratio,
    position::position_effect,
    uncertainty::expanded,
};

use crate::{
    api::{CandidateResult, Comparison, NoiseFloor},
    plan::verdict::{
        evidence::Evidence,
        judgement::deciding_figure,
        modelled::{Ratio, board_notes, widened},
    },
    text,
};

/// Chance that a position effect is reported by mistake.
const POSITION_LEVEL: f64 = 0.01;

impl Evidence<'_> {
    /// One entrant's deciding figure and another's, block by block.
    pub(super) fn pairs(&self, one: &str, other: &str) -> Option<Vec<(f64, f64)>> {
        let value = |block: &[&crate::api::FrugalityTrial], name: &str| {
            let trial = block.iter().find(|e| e.spec.candidate == name)?;
            self.decides(trial)
        };
        self.blocks
            .iter()
            .map(|block| Some((value(block, one)?, value(block, other)?)))
            .collect()
    }

    /// The ratio of two candidates, with an interval of two-sided error `level`. `None` if a figure is missing, or if the
    /// candidates do different work.
    ///
    /// A meter's gain cancels in a ratio by one meter. Baselines that differ by more than chance do not: each candidate has
    /// its own.
    pub(super) fn ratio(&self, one: &str, other: &str, level: f64) -> Option<Ratio> {
        if self.why_not_compared(one, other).is_some() {
            return None;
        }
        let estimate = paired_ratio(&self.pairs(one, other)?, 1.0 - level)?;
        if self.is_on_one_node(one, other) {
            return self.on_one_node(one, other, level, estimate);
        }
        let bounds = expanded(&estimate, self.of_meters(one, other)?)?;
        Some(Ratio::plain(widened(estimate, bounds.lower, bounds.upper)))
    }

    /// Whether two candidates are shown to differ by less than `tieWithin`. `None` without it.
    fn equivalent(&self, one: &str, other: &str) -> Option<bool> {
        let within = self.settings.tie_within?;
        let level = self.settings.tie_level;
        // Two one-sided tests are an interval of twice their level.
        let ratio = self.ratio(one, other, 2.0 * level)?.figure;
        if ratio.expanded.is_none() {
            return is_equivalent(&self.pairs(one, other)?, within, level);
        }
        let (lower, upper) = ratio.bounds();
        Some(lower > 1.0 / (1.0 + within) && upper < 1.0 + within)
    }

    /// Every candidate against every other.
    pub(super) fn comparisons(&self, floor: Option<&NoiseFloor>) -> Vec<Comparison> {
        let settings = self.settings;
        let of = |candidate: &String| self.comparisons_of(candidate, settings.claim_level, floor);
        settings.candidates.iter().flat_map(of).collect()
    }

    /// One candidate against every other, with intervals of two-sided error `level`.
    fn comparisons_of(
        &self,
        candidate: &str,
        level: f64,
        floor: Option<&NoiseFloor>,
    ) -> Vec<Comparison> {
        let others = self.settings.candidates.iter().filter(|c| *c != candidate);
        others
            .filter_map(|against| {
                let ratio = self.ratio(candidate, against, level)?;
                Some(Comparison {
                    point: self.point.name.clone(),
                    candidate: candidate.to_owned(),
                    against: against.clone(),
                    separated: ratio.figure.excludes_one() && self.is_beyond_floor(&ratio, floor),
                    equivalent: self.equivalent(candidate, against),
                    board: ratio.verdict(|value| self.exceeds_floor(value, floor)),
                    boards: ratio.boards,
                    ratio: ratio.figure,
                })
            })
            .collect()
    }

    /// The comparisons that the status shows: of the winner, else of the candidate of the least figure. All pairs of sixteen
    /// candidates do not fit into a status.
    ///
    /// Without a winner, the candidate is chosen by its figure. One of its n − 1 ratios then excludes 1 by chance more often
    /// than a single ratio, so each has 1/(n − 1) of the error (Bonferroni).
    pub(super) fn reported(
        &self,
        comparisons: &[Comparison],
        winner: Option<&str>,
        floor: Option<&NoiseFloor>,
        results: &[CandidateResult],
    ) -> Vec<Comparison> {
        if let Some(winner) = winner {
            let is_of_winner = |c: &&Comparison| c.candidate == winner;
            return comparisons.iter().filter(is_of_winner).cloned().collect();
        }
        let is_compared =
            |result: &&CandidateResult| comparisons.iter().any(|c| c.candidate == result.candidate);
        let least = results
            .iter()
            .filter(is_compared)
            .filter_map(|result| {
                let figure = deciding_figure(result, self.deciding)?;
                Some((figure.value, result.candidate.as_str()))
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let settings = self.settings;
        let others = settings.candidates.len().saturating_sub(1).max(1) as f64;
        let level = settings
            .level_of_looks(settings.claim_error() / others)
            .unwrap_or(settings.claim_level / others);
        least.map_or_else(Vec::new, |(_, least)| {
            self.comparisons_of(least, level, floor)
        })
    }

    /// Whether all candidates are shown to be equal.
    pub(super) fn is_tie(&self, comparisons: &[Comparison]) -> bool {
        let candidates = self.settings.candidates.len();
        candidates > 1
            && comparisons.len() == candidates * (candidates - 1)
            && comparisons.iter().all(|c| c.equivalent == Some(true))
    }

    /// How far candidates that count as equal may differ. They may be separated, too.
    pub(super) fn margin_note(&self, comparisons: &[Comparison], is_tie: bool) -> Option<String> {
        let within = self.settings.tie_within?;
        let (margin, limit) = (text::all_digits(within), text::all_digits(1.0 + within));
        if is_tie {
            return Some(format!(
                "A tie: each ratio of two candidates is shown to lie between 1/{limit} and {limit} (energy.tieWithin: {margin})."
            ));
        }
        let close = comparisons.iter().find(|it| it.is_within_margin())?;
        Some(format!(
            "{} and {} are separated, and are shown to differ by less than energy.tieWithin: {margin} allows. Neither counts as better.",
            close.candidate, close.against
        ))
    }

    /// The candidate that beats every other candidate. All claims must hold, so no claim needs correction. A candidate does not
    /// beat one that is shown to be equal.
    pub(super) fn winner(&self, comparisons: &[Comparison]) -> Option<String> {
        let candidates = &self.settings.candidates;
        candidates
            .iter()
            .find(|candidate| {
                let beaten = comparisons
                    .iter()
                    .filter(|c| c.candidate == **candidate && c.is_won())
                    .count();
                candidates.len() > 1 && beaten == candidates.len() - 1
            })
            .cloned()
    }

    /// Whether a ratio is beyond the noise floor of the control, if there is one, on all boards that it is about. A ratio
    /// closer to 1 than a candidate's ratio to itself is not a difference. The floor is already the far end of an interval.
    /// Therefore the ratio counts, not the near end of its interval: the same chance would count twice.
    fn is_beyond_floor(&self, ratio: &Ratio, floor: Option<&NoiseFloor>) -> bool {
        let mut values = ratio.values().into_iter();
        values.all(|value| self.exceeds_floor(value, floor))
    }

    fn exceeds_floor(&self, ratio: f64, floor: Option<&NoiseFloor>) -> bool {
        self.settings.control.is_none()
            || floor.is_some_and(|floor| !is_below_floor(ratio, floor.share.ln_1p()))
    }

    /// The candidate that beats every other candidate by the strict intervals for all points.
    pub(super) fn strict_winner(&self, floor: Option<&NoiseFloor>) -> Option<&str> {
        let candidates = &self.settings.candidates;
        let beats = |one: &String, other: &String| {
            let ratio = self.ratio(one, other, self.strict_level);
            ratio.is_some_and(|ratio| {
                ratio.figure.bounds().1 < 1.0 && self.is_beyond_floor(&ratio, floor)
            }) && self.equivalent(one, other) != Some(true)
        };
        let beats_all = |one: &&String| {
            let mut others = candidates.iter().filter(|other| other != one);
            candidates.len() > 1 && others.all(|other| beats(one, other))
        };
        candidates.iter().find(beats_all).map(String::as_str)
    }

    /// The difference of the control from itself.
    pub(super) fn noise_floor(&self) -> Option<NoiseFloor> {
        self.noise_floor_at(self.settings.level)
    }

    fn noise_floor_at(&self, level: f64) -> Option<NoiseFloor> {
        let control = self.settings.control.as_ref()?;
        // Two figures that the injector limits show the injector's noise.
        if self
            .limited_by_injector(&control.candidate)
            .is_some_and(|limited| limited.is_rate)
        {
            return None;
        }
        let pairs = self.pairs(&control.candidate, &control.hidden)?;
        let own = paired_ratio(&pairs, 1.0 - level)?;
        // For modelled power the noise of any board: times and CPU times have different noise.
        let estimates = self
            .extremes(&control.candidate, &control.hidden, level)
            .map_or_else(
                || vec![own],
                |[idle_only, cpu_only]| vec![own, idle_only, cpu_only],
            );
        let floors: Option<Vec<(f64, IntervalEstimate)>> = estimates
            .into_iter()
            .map(|estimate| Some((floor_of(&estimate)?, estimate)))
            .collect();
        let (floor, ratio) = floors?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(NoiseFloor {
            point: self.point.name.clone(),
            candidate: control.candidate.clone(),
            share: floor.exp_m1(),
            ratio: ratio.into(),
        })
    }

    /// Facts that a reader of the figures needs.
    pub(super) fn notes(
        &self,
        comparisons: &[Comparison],
        floor: Option<&NoiseFloor>,
    ) -> Vec<String> {
        let mut notes: Vec<String> = self
            .not_compared()
            .map(|why| why.message)
            .into_iter()
            .collect();
        notes.extend(self.allowed_differences());
        notes.extend(self.settings.equal.iter().map(|(one, other)| {
            format!(
                "{one} and {other} have the same image and settings, so their ratio compares a release with itself."
            )
        }));
        notes.extend(board_notes(comparisons));
        notes.extend(self.limit_notes());
        notes.extend(self.shortfall_notes());
        notes.extend(self.unknown_work());
        notes.extend(self.position_note());
        notes.extend(self.outlier_notes());
        notes.extend(self.correlation_note());
        notes.extend(self.start_note());
        notes.extend(self.restart_notes());
        notes.extend(self.few_cycles_note());
        let Some(floor) = floor else {
            notes.extend(self.settings.control.as_ref().map(|control| {
                format!(
                    "The noise floor is not known, because the deciding figure is missing in a trial of {} or of its control, or the injector limited it.",
                    control.candidate
                )
            }));
            return notes;
        };
        // With this level, all points together give a false note as often as one point.
        let strict = self.noise_floor_at(self.strict_level);
        if strict.is_some_and(|floor| floor.ratio.excludes_one()) {
            notes.push(format!(
                "The control differs from itself: {} / {0} is {}. Something other than the candidates changes the figures.",
                floor.candidate,
                text::ratio(&floor.ratio)
            ));
        }
        let is_within = |c: &&Comparison| {
            let share = c.ratio.value.ln().abs().exp_m1();
            !c.separated && c.ratio.excludes_one() && share <= floor.share
        };
        notes.extend(comparisons.iter().find(is_within).map(|c| {
            format!(
                "{} / {} is {}. This is closer to 1 than the noise floor of {} %, so no difference is claimed.",
                c.candidate,
                c.against,
                text::ratio(&c.ratio),
                text::number(100.0 * floor.share)
            )
        }));
        notes
    }

    fn position_note(&self) -> Option<String> {
        let entrants = self.settings.entrants();
        let blocks: Option<Vec<Vec<(usize, f64)>>> = self
            .blocks
            .iter()
            .map(|block| {
                block
                    .iter()
                    .map(|trial| {
                        let index = entrants.iter().position(|e| *e == trial.spec.candidate)?;
                        Some((index, self.decides(trial)?))
                    })
                    .collect()
            })
            .collect();
        let effect = position_effect(&blocks?)?;
        (effect.p < POSITION_LEVEL / self.points as f64).then(|| {
            format!(
                "The position within a block matters (F test, p = {}): the most expensive position costs {} % more than the cheapest. The order balances this, but an effect carries over from trial to trial.",
                text::number(effect.p),
                text::number(100.0 * (effect.ratio - 1.0))
            )
        })
    }
}
