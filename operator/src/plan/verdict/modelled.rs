//! Modelled power. Joules are idle watts × time + watts per CPU × CPU time, and both watts may be wrong. On any board with
//! such a linear model, the ratio of two candidates lies between two extremes: the ratio on a board that draws only idle
//! watts, and the ratio on a board that draws power only for CPU time (the mediant inequality). A claim that holds at both
//! extremes holds on every board.

use frugality_measure::{
    model::{LinearModel, Parts},
    statistics::{IntervalEstimate, paired_ratio, uncertainty::expanded},
};

use crate::{
    api::{
        BoardRange, BoardVerdict, Comparison, DecidingFigure, Expanded, Figure, FrugalityTrial,
        FrugalityTrialStatus, Reason,
    },
    plan::verdict::{
        evidence::Evidence,
        measure::{Measure, is_modelled, meter_uncertainty},
        not_compared::NotCompared,
    },
    text,
};

/// A ratio of two candidates on one node.
pub(super) struct Ratio {
    /// With this node's power. The expanded interval decides.
    pub(super) figure: Figure,
    /// For modelled power, the extremes over all boards.
    pub(super) boards: Option<BoardRange>,
    /// The ratio at both ends of the stated accuracy of the model's watts, if the expanded interval uses this accuracy.
    stated: Option<[f64; 2]>,
}

impl Ratio {
    /// A ratio of measured power, or a ratio in which the board cancels.
    pub(super) fn plain(figure: Figure) -> Self {
        Self {
            figure,
            boards: None,
            stated: None,
        }
    }

    /// Whether the expanded interval uses the stated accuracy of the model's watts.
    pub(super) fn is_by_stated_accuracy(&self) -> bool {
        self.stated.is_some()
    }

    /// The ratio on each board that a claim about it covers: the extremes, or the node's own board.
    pub(super) fn values(&self) -> Vec<f64> {
        match (&self.stated, &self.boards) {
            (Some(stated), _) => stated.to_vec(),
            (None, Some(range)) => vec![range.idle_only.value, range.cpu_only.value],
            (None, None) => vec![self.figure.value],
        }
    }

    /// The boards on which the ratio is on one side of 1, and beyond the noise floor of a control.
    pub(super) fn verdict(&self, is_beyond_floor: impl Fn(f64) -> bool) -> Option<BoardVerdict> {
        let range = self.boards.as_ref()?;
        let extremes = [range.idle_only, range.cpu_only];
        let is_shown = |extreme: &Figure| extreme.excludes_one() && is_beyond_floor(extreme.value);
        let is_beyond = || self.values().into_iter().all(&is_beyond_floor);
        if range.is_separated() && extremes.iter().all(is_shown) {
            Some(BoardVerdict::EveryBoard)
        } else if self.stated.is_some() && self.figure.excludes_one() && is_beyond() {
            Some(BoardVerdict::StatedAccuracy)
        } else if extremes.iter().any(is_shown) {
            Some(BoardVerdict::DependsOnBoard)
        } else {
            None
        }
    }
}

/// One trial of each of two entrants in a block, with the factors of the model's watts.
type Pair<'a> = [(&'a FrugalityTrialStatus, Parts); 2];

impl<'a> Evidence<'a> {
    /// Whether an entrant's power is modelled in any trial here.
    pub(super) fn is_modelled(&self, entrant: &str) -> bool {
        self.trials(entrant).iter().any(|trial| is_modelled(trial))
    }

    /// The factors of the model's watts in a trial's deciding figure, per unit. `None` for measured power and for a model that
    /// is not linear. `None` also for net joules and their shares, in which the board is one factor.
    pub(super) fn parts(&self, trial: &FrugalityTrialStatus) -> Option<Parts> {
        let of_window = trial
            .energy
            .as_ref()?
            .parts(trial.window?.seconds())
            .filter(|_| is_modelled(trial))?;
        match self.deciding {
            DecidingFigure::Gross => {
                let units = trial.requests.as_ref()?.units();
                Some(Parts {
                    idle_seconds: of_window.idle_seconds / units,
                    cpu_seconds: of_window.cpu_seconds / units,
                })
            }
            // The share is energy × use of the CPUs × the pods' part of that use: idle watts × the pods' CPU time, and watts
            // per CPU × that time × the node's use.
            DecidingFigure::Attributed => {
                let pods = self.value(trial, Measure::CpuMilliseconds)? / 1000.0;
                Some(Parts {
                    idle_seconds: pods,
                    cpu_seconds: pods * of_window.cpu_seconds / of_window.idle_seconds,
                })
            }
            DecidingFigure::Net | DecidingFigure::NetAttributed => None,
        }
    }

    /// Two entrants' parts, block by block.
    fn pairs_of_parts(&self, one: &str, other: &str) -> Option<Vec<Pair<'a>>> {
        let of = |block: &[&'a FrugalityTrial], name: &str| {
            let trial = block.iter().find(|e| e.spec.candidate == name)?;
            let trial = trial.status.as_ref()?;
            Some((trial, self.parts(trial)?))
        };
        self.blocks
            .iter()
            .map(|block| Some([of(block, one)?, of(block, other)?]))
            .collect()
    }

    /// The ratio on a board that draws only idle watts, and on a board that draws power only for CPU time, with intervals of
    /// two-sided error `level`.
    pub(super) fn extremes(
        &self,
        one: &str,
        other: &str,
        level: f64,
    ) -> Option<[IntervalEstimate; 2]> {
        let pairs = self.pairs_of_parts(one, other)?;
        let ratio = |of: fn(Parts) -> f64| {
            let pairs: Vec<(f64, f64)> = pairs
                .iter()
                .map(|[(_, one), (_, other)]| (of(*one), of(*other)))
                .collect();
            paired_ratio(&pairs, 1.0 - level)
        };
        Some([
            ratio(|parts| parts.idle_seconds)?,
            ratio(|parts| parts.cpu_seconds)?,
        ])
    }

    /// The ratio at both ends of the boards that the stated accuracy of the model's watts allows, with the spread of the pairs.
    /// `None` if no accuracy is stated, or for attributed joules, which also depend on the moments of CPU use.
    fn stated_ends(&self, one: &str, other: &str, level: f64) -> Option<[IntervalEstimate; 2]> {
        if self.deciding != DecidingFigure::Gross {
            return None;
        }
        let pairs = self.pairs_of_parts(one, other)?;
        let at = |end: usize| {
            let joules = |(trial, parts): &(&FrugalityTrialStatus, Parts)| {
                let model: LinearModel = trial.energy.as_ref()?.meter.model?;
                Some(model.extremes()?[end].joules(*parts))
            };
            let pairs: Vec<(f64, f64)> = pairs
                .iter()
                .map(|[one, other]| Some((joules(one)?, joules(other)?)))
                .collect::<Option<_>>()?;
            paired_ratio(&pairs, 1.0 - level)
        };
        Some([at(0)?, at(1)?])
    }

    /// The ratio of two entrants on one node, from the ratio by the node's meter. `None` if neither shape nor accuracy of the
    /// power model is known.
    pub(super) fn on_one_node(
        &self,
        one: &str,
        other: &str,
        level: f64,
        own: IntervalEstimate,
    ) -> Option<Ratio> {
        let of_drift = self
            .drift_uncertainty(one)
            .hypot(self.drift_uncertainty(other));
        let plain = |hidden: f64| {
            if hidden == 0.0 {
                return Some(Ratio::plain(own.into()));
            }
            let bounds = expanded(&own, hidden)?;
            Some(Ratio::plain(widened(own, bounds.lower, bounds.upper)))
        };
        if !self.is_modelled(one) && !self.is_modelled(other) {
            return plain(of_drift);
        }
        if !self.is_line(one) || !self.is_line(other) {
            // A model of unknown shape may be wrong in opposite directions at two loads.
            let of_model = self.stated_of(one)? + self.stated_of(other)?;
            return plain(of_model.hypot(of_drift));
        }
        if matches!(
            self.deciding,
            DecidingFigure::Net | DecidingFigure::NetAttributed
        ) {
            // Watts per CPU × CPU time above the baselines: the board is one factor, which cancels.
            return plain(of_drift);
        }
        let [idle_only, cpu_only] = self.extremes(one, other, level)?.map(Figure::from);
        let range = BoardRange {
            idle_only,
            cpu_only,
        };
        let stated = self.stated_ends(one, other, level);
        let (lower, upper) = if let Some([a, b]) = &stated {
            (a.lower.min(b.lower), a.upper.max(b.upper))
        } else {
            let (lower, upper) = range.bounds();
            (lower.min(own.lower), upper.max(own.upper))
        };
        Some(Ratio {
            figure: widened(own, lower.min(own.value), upper.max(own.value)),
            boards: Some(range),
            stated: stated.map(|ends| ends.map(|end| end.value)),
        })
    }

    /// Whether an entrant's power is linear in CPU use in every trial.
    pub(super) fn is_line(&self, entrant: &str) -> bool {
        self.trials(entrant)
            .iter()
            .all(|trial| model_of(trial).is_some())
    }

    /// The stated accuracy of an entrant's deciding figure: the worst of its trials, if each has one.
    pub(super) fn stated_of(&self, entrant: &str) -> Option<f64> {
        let deciding = Measure::Joules(self.deciding);
        let trials = self.trials(entrant);
        trials
            .iter()
            .map(|trial| meter_uncertainty(trial, deciding))
            .collect::<Option<Vec<f64>>>()?
            .into_iter()
            .reduce(f64::max)
    }

    /// Two candidates on one node are not compared if neither shape nor accuracy of the model is known.
    pub(super) fn model_unknown(&self, one: &str, other: &str) -> Option<NotCompared> {
        let is_known = |entrant: &str| {
            !self.is_modelled(entrant) || self.is_line(entrant) || self.stated_of(entrant).is_some()
        };
        let is_compared = !self.is_on_one_node(one, other) || (is_known(one) && is_known(other));
        (!is_compared).then(|| NotCompared {
            reason: Reason::MeterAccuracyUnknown,
            message: format!(
                "Not compared: {one} and {other}. Their power is modelled, and the meter reports neither the model's watts nor its accuracy, so an error of the model could reverse the ratio. Connect a meter, use the node meter's own model, or set relativeUncertainty for the model."
            ),
        })
    }
}

/// Notes about ratios that another board would change.
pub(super) fn board_notes(comparisons: &[Comparison]) -> Vec<String> {
    let note = |c: &Comparison| {
        let range = c.boards.as_ref()?;
        let names = format!("{} / {}", c.candidate, c.against);
        match c.board? {
            BoardVerdict::EveryBoard => None,
            BoardVerdict::StatedAccuracy => Some(format!(
                "{names} is {} by the stated accuracy of this board's watts. Over all boards it is {}.",
                text::ratio(&c.ratio),
                text::board_range(range)
            )),
            BoardVerdict::DependsOnBoard => Some(format!(
                "{names} depends on the board. It is {} if power is the same at any load, and {} if all power is for CPU time. Connect a meter, or state the accuracy of the board's watts.",
                text::ratio(&range.idle_only),
                text::ratio(&range.cpu_only)
            )),
        }
    };
    comparisons.iter().filter_map(note).collect()
}

/// A figure with a separate interval that decides.
pub(super) fn widened(own: IntervalEstimate, lower: f64, upper: f64) -> Figure {
    Figure {
        expanded: Some(Expanded {
            lower,
            upper,
            covers_meter: true,
            repeatability_only: false,
        }),
        ..own.into()
    }
}

/// The linear model of a trial's power.
fn model_of(trial: &FrugalityTrialStatus) -> Option<&LinearModel> {
    trial.energy.as_ref()?.meter.model.as_ref()
}
