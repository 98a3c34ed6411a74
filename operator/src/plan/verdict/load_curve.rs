//! What each candidate costs at part load, from the trials at all load levels.

use frugality_measure::{
    load_curve::{LoadCurve, LoadLevel, proportionality},
    statistics::{IntervalEstimate, geometric_mean, serial},
};

use crate::{
    api::{DecidingFigure, Expanded, Figure, LevelsOf, LoadCurveResult},
    plan::{
        settings::CurveFigure,
        verdict::{
            evidence::Evidence,
            intervals::{combined, expanded_by},
            measure::Measure,
        },
    },
    text,
};

/// What a candidate costs at part load. `None` without load levels.
pub(super) fn load_curve(points: &[Evidence<'_>], candidate: &str) -> Option<LoadCurveResult> {
    let level = points.first()?.settings.level;
    let curve = match Curve::of(points, candidate)? {
        Ok(curve) => curve,
        Err(why) => {
            return Some(LoadCurveResult {
                withheld: vec![why],
                ..LoadCurveResult::default()
            });
        }
    };
    let mut withheld = Vec::new();
    let mut figure = |which: CurveFigure| {
        let figure = curve.figure(which, level);
        if let Err(why) = &figure {
            withheld.push(format!("{}: {why}", name(which)));
        }
        figure.ok()
    };
    Some(LoadCurveResult {
        requests_per_joule: figure(CurveFigure::RequestsPerJoule),
        marginal_joules_per_request: figure(CurveFigure::MarginalJoules),
        idle_watts: figure(CurveFigure::IdleWatts),
        idle_share: figure(CurveFigure::IdleShare),
        proportionality: figure(CurveFigure::Proportionality),
        withheld,
    })
}

/// One figure of a candidate's load curve, with an interval of two-sided error `level`. Otherwise, why there is none.
pub(super) fn figure(
    points: &[Evidence<'_>],
    candidate: &str,
    which: CurveFigure,
    level: f64,
) -> Result<Figure, String> {
    let curve = Curve::of(points, candidate).ok_or("there are no load levels")?;
    curve?.figure(which, level).map_err(str::to_owned)
}

/// The name of a figure.
pub(super) fn name(which: CurveFigure) -> &'static str {
    match which {
        CurveFigure::RequestsPerJoule => "requests/joule",
        CurveFigure::MarginalJoules => "marginal joules",
        CurveFigure::IdleWatts => "idle watts",
        CurveFigure::IdleShare => "idle share",
        CurveFigure::Proportionality => "proportionality",
    }
}

/// The curves of all blocks, for one candidate.
struct Curve<'a> {
    candidate: &'a str,
    curves: Curves<'a>,
    levels: Vec<&'a Evidence<'a>>,
    highest: &'a Evidence<'a>,
}

impl<'a> Curve<'a> {
    /// Why there is no curve, otherwise. `None` without load levels.
    fn of(points: &'a [Evidence<'a>], candidate: &'a str) -> Option<Result<Self, String>> {
        let of_level = points.iter().filter(|it| it.point.level.is_some());
        let levels: Vec<&Evidence<'_>> = of_level.collect();
        let highest = *levels.first()?;
        let curves = Curves::of(&levels, candidate).and_then(|curves| {
            let why = limited(&levels, candidate).or_else(|| failing(points, candidate));
            why.map_or(Ok(curves), Err)
        });
        Some(curves.map(|curves| Self {
            candidate,
            curves,
            levels,
            highest,
        }))
    }

    fn figure(&self, which: CurveFigure, level: f64) -> Result<Figure, &'static str> {
        let is_share = matches!(which, CurveFigure::IdleShare | CurveFigure::Proportionality);
        if is_share && self.highest.settings.levels_of != Some(LevelsOf::Own) {
            return Err(
                "with load.sweep.of: Common, level 100 is not each candidate's highest rate",
            );
        }
        let candidate = self.candidate;
        let everywhere = self.levels.iter().flat_map(|it| it.trials(candidate));
        let everywhere: Vec<_> = everywhere.collect();
        let of = |measure| {
            self.highest
                .uncertainty(&everywhere, measure, f64::hypot)
                .ok_or(UNKNOWN)
        };
        let (load, idle) = (Measure::LoadWatts, Measure::IdleWatts);
        let net = Measure::Joules(DecidingFigure::Net);
        let mean = |of: fn(&LoadCurve) -> f64| self.curves.mean(candidate, of, level);
        // A wrong gain of the meter cancels in a share. A wrong offset does not, and the meter does not say which it is.
        let of_share = || -> Result<f64, &'static str> {
            let is_model = self.highest.is_modelled(candidate);
            Ok(combined(of(load)?, of(idle)?, is_model))
        };
        let expanded = |estimate: IntervalEstimate, relative, trials: &[_], measure| {
            expanded_by(relative, &estimate, trials, measure).ok_or(UNKNOWN)
        };
        match which {
            CurveFigure::RequestsPerJoule => expanded(
                mean(LoadCurve::requests_per_joule)?,
                of(load)?,
                &everywhere,
                load,
            ),
            CurveFigure::MarginalJoules => {
                let trials = self.highest.trials(candidate);
                let relative = self.highest.uncertainty(&trials, net, f64::hypot);
                expanded(
                    mean(LoadCurve::marginal_joules_per_request)?,
                    relative.ok_or(UNKNOWN)?,
                    &trials,
                    net,
                )
            }
            CurveFigure::IdleWatts => {
                expanded(mean(LoadCurve::idle_watts)?, of(idle)?, &everywhere, idle)
            }
            CurveFigure::IdleShare => {
                expanded(mean(LoadCurve::idle_share)?, of_share()?, &everywhere, load)
            }
            CurveFigure::Proportionality => {
                let area = mean(LoadCurve::double_area)?;
                expanded(area, of_share()?, &everywhere, load).map(of_area)
            }
        }
    }
}

const UNKNOWN: &str = "the uncertainty is unknown, or too large for an interval";

/// Why levels are not shares of a rate that the candidate set.
fn limited(levels: &[&Evidence<'_>], candidate: &str) -> Option<String> {
    let is_limited = |evidence: &&&Evidence<'_>| {
        let limited = evidence.limited_by_injector(candidate);
        limited.is_some_and(|limited| limited.is_rate)
    };
    let first = levels.iter().find(is_limited)?;
    Some(format!(
        "the injector limited {candidate} at {}, or at the highest rate that its levels follow from",
        first.point.name
    ))
}

/// Share of requests without an expected answer from which on figures of the successes mislead. Such requests take energy
/// and are in no rate.
pub(super) const MOST_ERRORS: f64 = 0.01;

/// Why a candidate's rates do not say what it can do.
fn failing(points: &[Evidence<'_>], candidate: &str) -> Option<String> {
    let of_point = |evidence: &Evidence<'_>| {
        let errors = evidence.error_ratio(candidate, evidence.settings.level)?;
        (errors.value > MOST_ERRORS).then(|| {
            format!(
                "{} % of the requests at {} failed (limit {} %)",
                text::number(100.0 * errors.value),
                evidence.point.name,
                text::all_digits(100.0 * MOST_ERRORS)
            )
        })
    };
    points.iter().find_map(of_point)
}

/// Proportionality falls as the area rises.
fn of_area(double_area: Figure) -> Figure {
    Figure {
        value: proportionality(double_area.value),
        lower: proportionality(double_area.upper),
        upper: proportionality(double_area.lower),
        expanded: double_area.expanded.map(|it| Expanded {
            lower: proportionality(it.upper),
            upper: proportionality(it.lower),
            ..it
        }),
    }
}

/// The curves of all entrants, block by block.
struct Curves<'a> {
    by_block: Vec<Vec<(&'a str, LoadCurve)>>,
    entrants: Vec<&'a str>,
}

impl<'a> Curves<'a> {
    /// Why the candidate's curve is not known, otherwise.
    fn of(levels: &[&'a Evidence<'a>], candidate: &str) -> Result<Self, String> {
        let Some(first) = levels.first() else {
            return Err("there are no load levels".into());
        };
        if first.is_shared {
            return Err(
                "the injector ran on the measured node and is part of its energy".to_owned(),
            );
        }
        let entrants = first.settings.entrants();
        let blocks = 0..first.blocks.len();
        let mut by_block = Vec::new();
        for block in blocks {
            let mut curves = Vec::new();
            for entrant in &entrants {
                match curve(levels, entrant, block) {
                    Some(curve) => curves.push((*entrant, curve)),
                    None if first.settings.candidate_of(entrant) == candidate => {
                        return Err(format!(
                            "in block {}, power, idle power or rate is missing at a level, or a rate is not below that of the level before",
                            block + 1
                        ));
                    }
                    None => {}
                }
            }
            by_block.push(curves);
        }
        Ok(Self { by_block, entrants })
    }

    /// The mean over the blocks. Its interval, of two-sided error `level`, is wider if blocks are correlated. Otherwise, why
    /// there is none.
    fn mean(
        &self,
        candidate: &str,
        of: fn(&LoadCurve) -> f64,
        level: f64,
    ) -> Result<IntervalEstimate, &'static str> {
        self.estimate(candidate, of, level)
            .ok_or("power does not rise with the rate in each block, or a value is 0")
    }

    fn estimate(
        &self,
        candidate: &str,
        of: fn(&LoadCurve) -> f64,
        level: f64,
    ) -> Option<IntervalEstimate> {
        let values: Vec<Vec<(usize, f64)>> = self
            .by_block
            .iter()
            .map(|curves| {
                let place = |name: &str| self.entrants.iter().position(|it| *it == name);
                let curves = curves.iter();
                curves
                    .filter_map(|(name, curve)| Some((place(name)?, of(curve))))
                    .collect()
            })
            .collect();
        let own = self.entrants.iter().position(|it| *it == candidate)?;
        let of_candidate: Vec<(usize, f64)> = values
            .iter()
            .flatten()
            .enumerate()
            .filter(|(_, (entrant, _))| *entrant == own)
            .map(|(place, (_, value))| (place, *value))
            .collect();
        let confidence = 1.0 - level;
        if let Some(found) = serial::correlation(&values) {
            return serial::geometric_mean(&of_candidate, found.coefficient, confidence);
        }
        let values: Vec<f64> = of_candidate.iter().map(|(_, value)| *value).collect();
        geometric_mean(&values, confidence)
    }
}

/// An entrant's curve in one block at each level.
fn curve(levels: &[&Evidence<'_>], entrant: &str, block: usize) -> Option<LoadCurve> {
    let mut idle_watts = 0.0;
    let mut of_levels = Vec::new();
    for evidence in levels {
        let trials = evidence.blocks.get(block)?;
        let trial = trials.iter().find(|it| it.spec.candidate == entrant)?;
        let value = |measure| evidence.value(trial.status.as_ref()?, measure);
        idle_watts += value(Measure::IdleWatts)?;
        of_levels.push(LoadLevel {
            requests_per_second: value(Measure::RequestsPerSecond)?,
            watts: value(Measure::LoadWatts)?,
        });
    }
    LoadCurve::new(idle_watts / of_levels.len() as f64, of_levels)
}
