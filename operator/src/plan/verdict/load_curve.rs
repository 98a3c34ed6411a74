//! What each candidate costs at part load, from the trials at all load levels.

use frugality_measure::{
    load_curve::{Level, LoadCurve, proportionality},
    statistics::{Estimate, geometric_mean, serial},
};

use crate::{
    api::{DecidingFigure, Expanded, Figure, FrugalityTrialStatus, LevelsOf, LoadCurveResult},
    plan::verdict::evidence::{Evidence, Measure, expanded_by},
    text,
};

/// What a candidate costs at part load. `None` without load levels.
pub(super) fn load_curve(points: &[Evidence<'_>], candidate: &str) -> Option<LoadCurveResult> {
    let levels: Vec<&Evidence<'_>> = points
        .iter()
        .filter(|evidence| evidence.point.level.is_some())
        .collect();
    let highest = *levels.first()?;
    let curves = match Curves::of(&levels, candidate) {
        Ok(curves) => curves,
        Err(why) => {
            return Some(LoadCurveResult {
                withheld: vec![why],
                ..LoadCurveResult::default()
            });
        }
    };
    if let Some(why) = limited(&levels, candidate).or_else(|| failing(points, candidate)) {
        return Some(LoadCurveResult {
            withheld: vec![why],
            ..LoadCurveResult::default()
        });
    }
    let mut withheld = Vec::new();
    let mut figure = |name: &str, of: fn(&LoadCurve) -> f64, hidden: Hidden<'_>| {
        let figure = curves.figure(candidate, of, hidden);
        if let Err(why) = &figure {
            withheld.push(format!("{name}: {why}"));
        }
        figure.ok()
    };
    let trials: Vec<_> = levels.iter().flat_map(|it| it.trials(candidate)).collect();
    let load = highest.uncertainty(&trials, Measure::LoadWatts, f64::hypot);
    let idle = highest.uncertainty(&trials, Measure::IdleWatts, f64::hypot);
    let of_load = Hidden::new(load, &trials, Measure::LoadWatts);
    let of_idle = Hidden::new(idle, &trials, Measure::IdleWatts);
    // A wrong gain of the meter cancels in a share. A wrong offset does not, and the meter does not say which it is.
    let of_share = Hidden::new(
        load.zip(idle).map(|(a, b)| a.hypot(b)),
        &trials,
        Measure::LoadWatts,
    );
    let at_highest = highest.trials(candidate);
    let net = Measure::Joules(DecidingFigure::Net);
    let of_slope = Hidden::new(
        highest.uncertainty(&at_highest, net, f64::hypot),
        &at_highest,
        net,
    );
    // A common level 100 is below the highest rates of the faster candidates.
    let is_own = highest.settings.levels_of == Some(LevelsOf::Own);
    let mut share = |name: &str, of: fn(&LoadCurve) -> f64| {
        is_own.then(|| figure(name, of, of_share)).flatten()
    };
    let double_area = share("proportionality", LoadCurve::double_area);
    let idle_share = share("idle share", LoadCurve::idle_share);
    Some(LoadCurveResult {
        requests_per_joule: figure("requests/joule", LoadCurve::requests_per_joule, of_load),
        marginal_joules_per_request: figure(
            "marginal joules",
            LoadCurve::marginal_joules_per_request,
            of_slope,
        ),
        idle_watts: figure("idle watts", LoadCurve::idle_watts, of_idle),
        idle_share,
        proportionality: double_area.map(of_area),
        withheld: if is_own {
            withheld
        } else {
            let why = "idle share and proportionality: with load.sweep.of: Common, level 100 is not each candidate's highest rate";
            withheld.into_iter().chain([why.to_owned()]).collect()
        },
    })
}

/// Why levels are no shares of a rate that the candidate set.
fn limited(levels: &[&Evidence<'_>], candidate: &str) -> Option<String> {
    let is_limited = |evidence: &&&Evidence<'_>| {
        let limited = evidence.limited_by_injector(candidate);
        limited.is_some_and(|limited| limited.is_rate)
    };
    let first = levels.iter().find(is_limited)?;
    Some(format!(
        "the injector limited {candidate}, at {} or at its highest rate",
        first.point.name
    ))
}

/// The largest share of requests without an expected answer at any point. Such requests take energy and are in no rate.
const MOST_ERRORS: f64 = 0.01;

/// Why a candidate's rates do not say what it can do.
fn failing(points: &[Evidence<'_>], candidate: &str) -> Option<String> {
    let of_point = |evidence: &Evidence<'_>| {
        let errors = evidence.error_ratio(candidate, evidence.settings.level)?;
        (errors.value > MOST_ERRORS).then(|| {
            format!(
                "{} % of the requests at {} had no expected answer, and at most {} % may",
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

/// The uncertainty that the spread between blocks does not show.
#[derive(Clone, Copy)]
struct Hidden<'a> {
    /// Relative standard uncertainty; `None` if it is not known.
    relative: Option<f64>,
    trials: &'a [&'a FrugalityTrialStatus],
    measure: Measure<'static>,
}

impl<'a> Hidden<'a> {
    fn new(
        relative: Option<f64>,
        trials: &'a [&'a FrugalityTrialStatus],
        measure: Measure<'static>,
    ) -> Self {
        Self {
            relative,
            trials,
            measure,
        }
    }
}

/// The curves of all entrants, block by block.
struct Curves<'a> {
    by_block: Vec<Vec<(&'a str, LoadCurve)>>,
    entrants: Vec<&'a str>,
    /// Two-sided error of each interval.
    level: f64,
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
                            "in block {}, power or rate is missing at a level, or a rate is not below that of the level before",
                            block + 1
                        ));
                    }
                    None => {}
                }
            }
            by_block.push(curves);
        }
        Ok(Self {
            by_block,
            entrants,
            level: first.settings.level,
        })
    }

    /// The mean over the blocks. Its interval is wider if blocks are correlated. Otherwise, why there is none.
    fn figure(
        &self,
        candidate: &str,
        of: fn(&LoadCurve) -> f64,
        hidden: Hidden<'_>,
    ) -> Result<Figure, &'static str> {
        let estimate = self
            .estimate(candidate, of)
            .ok_or("power does not rise with the rate in each block")?;
        let figure = hidden
            .relative
            .and_then(|relative| expanded_by(relative, &estimate, hidden.trials, hidden.measure));
        figure.ok_or("the uncertainty is too large for an interval")
    }

    fn estimate(&self, candidate: &str, of: fn(&LoadCurve) -> f64) -> Option<Estimate> {
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
        let confidence = 1.0 - self.level;
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
        of_levels.push(Level {
            requests_per_second: value(Measure::RequestsPerSecond)?,
            watts: value(Measure::LoadWatts)?,
        });
    }
    LoadCurve::new(idle_watts / of_levels.len() as f64, of_levels)
}
