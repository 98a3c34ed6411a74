//! The load settings under which the operator measures the candidates.

use crate::{
    api::{Arrivals, FrugalityBenchmarkSpec, MAX_BLOCKS_OF_SWEEP, MAX_POINTS, MAX_RESULTS, Sweep},
    load::rules::{LoadRules, Sending},
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::error::SettingsError;

/// Length of the window, in seconds, if the spec sets neither duration nor requests.
pub(super) const DEFAULT_WINDOW_SECONDS: f64 = 60.0;

/// One combination of load settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// Name, for example `c4-max`, or `c4-50%` for a load level. If the sweep sets three replicas of every scaled server: `c4-max-x3`.
    pub name: String,
    /// Connections.
    pub connections: u32,
    /// Number of pods of every candidate, or of each of its backends if it has backends. `None`: the candidate's
    /// own numbers.
    pub replicas: Option<i32>,
    /// Load level: the rate in percent of the highest rate. `None`: not a level.
    pub level: Option<i32>,
}

/// Where the highest rates come from in a sweep over load levels.
pub const POINT_OF_HIGHEST_RATE: usize = 0;

/// The load levels of the spec; empty if there are none.
pub(super) fn levels(spec: &FrugalityBenchmarkSpec) -> &[i32] {
    let sweep = spec.load.sweep.as_ref();
    sweep.map_or(&[], |sweep| &sweep.levels)
}

/// Refuses arrivals that only requests at a rate, for a duration, can have.
pub(super) fn sending(
    spec: &FrugalityBenchmarkSpec,
    rules: &dyn LoadRules,
    rate: Option<f64>,
) -> Result<Sending, SettingsError> {
    let load = &spec.load;
    let has_rate = rate.is_some() || !levels(spec).is_empty();
    let is_at_rate = rules.has_arrivals() && has_rate && load.requests.is_none();
    match (load.arrivals, load.catch_up) {
        (Arrivals::Closed, true) => Ok(Sending::Closed),
        (Arrivals::Closed, false) if is_at_rate && rate.is_some() => Ok(Sending::Skipping),
        (Arrivals::Open, true) if is_at_rate => Ok(Sending::Open),
        _ => Err(SettingsError::Arrivals),
    }
}

pub(super) fn rate(rate: &IntOrString) -> Result<Option<f64>, SettingsError> {
    match rate {
        IntOrString::String(text) if text == "Max" => Ok(None),
        IntOrString::Int(rate) if *rate > 0 => Ok(Some(f64::from(*rate))),
        IntOrString::Int(rate) => Err(SettingsError::Rate(rate.to_string())),
        IntOrString::String(text) => Err(SettingsError::Rate(text.clone())),
    }
}

pub(super) fn points(
    spec: &FrugalityBenchmarkSpec,
    rules: &dyn LoadRules,
    rate: Option<f64>,
) -> Result<Vec<Point>, SettingsError> {
    if !levels(spec).is_empty() {
        return points_of_levels(spec, rules, rate);
    }
    let sweep = spec.load.sweep.as_ref();
    let one = [spec.load.connections.unwrap_or(rules.default_connections())];
    let of = |list: fn(&Sweep) -> &[i32]| sweep.map(list).filter(|list| !list.is_empty());
    let connections = of(|sweep| &sweep.connections).unwrap_or(&one);
    let replicas = of(|sweep| &sweep.replicas);
    let points: Vec<Point> = connections
        .iter()
        .flat_map(|connections| match replicas {
            None => vec![point(*connections, rate, None)],
            Some(replicas) => replicas
                .iter()
                .map(|replicas| point(*connections, rate, Some(*replicas)))
                .collect(),
        })
        .collect();
    let ascends = |list: &[i32]| list.windows(2).all(|pair| pair[0] < pair[1]);
    let is_possible = ascends(connections)
        && replicas.is_none_or(ascends)
        && (2..=MAX_POINTS).contains(&points.len());
    match sweep {
        Some(sweep)
            if !is_possible || (sweep.max_error_ratio.is_some() && connections.len() < 2) =>
        {
            Err(SettingsError::Sweep)
        }
        _ => Ok(points),
    }
}

fn point(connections: i32, rate: Option<f64>, replicas: Option<i32>) -> Point {
    let rate = rate.map_or_else(|| "max".to_owned(), |rate| format!("r{rate}"));
    let pods = replicas.map_or_else(String::new, |replicas| format!("-x{replicas}"));
    Point {
        name: format!("c{connections}-{rate}{pods}"),
        connections: connections.unsigned_abs(),
        replicas,
        level: None,
    }
}

/// The point of the highest rate, and one point for each level.
fn points_of_levels(
    spec: &FrugalityBenchmarkSpec,
    rules: &dyn LoadRules,
    rate: Option<f64>,
) -> Result<Vec<Point>, SettingsError> {
    let levels = levels(spec);
    let is_alone = spec.load.sweep.as_ref().is_some_and(|sweep| {
        sweep.connections.is_empty()
            && sweep.replicas.is_empty()
            && sweep.max_error_ratio.is_none()
            && spec.load.requests.is_none()
            && rate.is_none()
    });
    let descends = levels.windows(2).all(|pair| pair[0] > pair[1]);
    let is_possible = levels.first() == Some(&100) && levels.len() > 1 && descends;
    if !is_alone || !is_possible || levels.iter().any(|level| *level < 1) {
        return Err(SettingsError::Levels);
    }
    let connections = spec.load.connections.unwrap_or(rules.default_connections());
    let highest = point(connections, None, None);
    let of_levels = levels.iter().map(|level| Point {
        name: format!("c{connections}-{level}%"),
        level: Some(*level),
        ..highest.clone()
    });
    Ok(std::iter::once(highest.clone()).chain(of_levels).collect())
}

/// Refuses a sweep with more blocks than names allow, or more results than the status can hold.
pub(super) fn check_size(
    spec: &FrugalityBenchmarkSpec,
    points: usize,
    blocks: usize,
) -> Result<(), SettingsError> {
    let is_too_large =
        points * blocks > MAX_BLOCKS_OF_SWEEP || points * spec.candidates.len() > MAX_RESULTS;
    if spec.load.sweep.is_some() && is_too_large {
        return Err(SettingsError::SweepTooLarge);
    }
    Ok(())
}
