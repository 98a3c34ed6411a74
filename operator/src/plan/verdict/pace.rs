//! Candidates that the injector limited. Their rate, their times and all figures that depend on the rate are the injector's
//! figures. They are withheld, and no other candidate is compared with them at that point.

use frugality_measure::pace::{LEAST_OCCUPANCY, Limited, MAX_SHORTFALL, Pace, Sign, limited};

use crate::{
    api::{
        DecidingFigure, FrugalityTrialStatus, InjectorLimits, InjectorResult, LevelsOf, Reason,
        TrialLoad,
    },
    plan::{
        settings::{POINT_OF_HIGHEST_RATE, Quantity},
        verdict::{
            evidence::{Evidence, in_every},
            measure::Measure,
            not_compared::NotCompared,
        },
    },
    text,
};

/// Steps of the share of a window's cycles that may be open at its ends, in percent, the largest first.
const CYCLES_AT_ENDS: [f64; 4] = [20.0, 10.0, 3.0, 1.0];

impl Evidence<'_> {
    /// How the injector limited an entrant at this point, if it did. A load level is limited too if it is a share of a
    /// rate that the injector set: the real level would have a higher rate.
    pub(super) fn limited_by_injector(&self, entrant: &str) -> Option<Limited> {
        self.limited_at_highest_rate(entrant)
            .or_else(|| limited(&self.paces(entrant)))
    }

    /// The limit on the highest rate that this point's load level is a share of. A common rate is the same for all
    /// entrants, so its figures stand.
    fn limited_at_highest_rate(&self, entrant: &str) -> Option<Limited> {
        let is_own = self.settings.levels_of == Some(LevelsOf::Own);
        let highest = self.settings.points.get(POINT_OF_HIGHEST_RATE)?;
        let trials = self.trials_everywhere(entrant, Some(&highest.name));
        let paces: Vec<Pace> = trials.filter_map(pace).collect();
        let is_level = is_own && self.point.level.is_some();
        limited(&paces).filter(|limited| is_level && limited.is_rate)
    }

    /// Notes about candidates that did not reach this point's rate.
    pub(super) fn shortfall_notes(&self) -> Vec<String> {
        let of_candidate = |name: &String| {
            let paces = self.paces(name);
            let shortfall =
                frugality_measure::pace::median(paces.iter().filter_map(|it| it.shortfall))?;
            (shortfall > MAX_SHORTFALL).then(|| {
                format!(
                    "{name} reached {} % of the {}s/s that were due. The figures hold for the rate that was reached.",
                    text::number(100.0 * (1.0 - shortfall)),
                    self.settings.units.one
                )
            })
        };
        let candidates = self.settings.candidates.iter();
        candidates.filter_map(of_candidate).collect()
    }

    /// A note about few cycles, or few requests of an open load. One that is open at an end of the window counts whole, or
    /// does not count.
    pub(super) fn few_cycles_note(&self) -> Option<String> {
        if !self.settings.is_sent_by_k6_at(self.point) {
            return None;
        }
        let share_of = |name: &String| {
            let trials = self.trials(name);
            let shares = trials.iter().filter_map(|trial| self.open_share(trial));
            shares.reduce(f64::max)
        };
        let shares = self.settings.candidates.iter().filter_map(share_of);
        let largest = shares.reduce(f64::max)?;
        // With few different texts, the notes of several points are one.
        let percent = CYCLES_AT_ENDS
            .into_iter()
            .find(|percent| largest > percent / 100.0)?;
        let unit = &self.settings.units.one;
        let few = if self.settings.has_rate_at(self.point) {
            format!("Few {unit}s ended in a window.")
        } else {
            format!("Each agent completed few {unit}s in a window.")
        };
        Some(format!(
            "{few} Figures per {unit} and {unit}s/s may be wrong by more than {percent} %. No interval includes this error. Write a longer load.duration."
        ))
    }

    /// The share of a trial's cycles that may be open at one end of the window. Without a rate, every agent has an open one.
    fn open_share(&self, trial: &FrugalityTrialStatus) -> Option<f64> {
        let requests = trial.requests.as_ref()?;
        let agents = f64::from(self.point.connections);
        let seconds = trial.window?.seconds();
        let open = if self.settings.has_rate_at(self.point) {
            let mean = requests.ms_per_request.map_or(agents, |milliseconds| {
                requests.requests as f64 * milliseconds / 1000.0 / seconds
            });
            mean.clamp(1.0, agents.max(1.0))
        } else {
            agents
        };
        Some(open / requests.requests as f64)
    }

    /// The smallest occupancy of an entrant's trials; absent if a trial has none.
    pub(super) fn least_occupancy(&self, entrant: &str) -> Option<f64> {
        let each = in_every(&self.trials(entrant), |trial| {
            trial.requests.as_ref()?.occupancy
        })?;
        each.into_iter().reduce(f64::min)
    }

    fn paces(&self, entrant: &str) -> Vec<Pace> {
        let trials = self.trials(entrant);
        trials.iter().filter_map(|trial| pace(trial)).collect()
    }

    /// Whether the injector's limit affects a figure of a limited entrant.
    pub(super) fn depends_on_pace(&self, measure: Measure<'_>, limited: Limited) -> bool {
        match measure {
            Measure::MillisecondsPerRequest | Measure::EnergyDelay(_) => true,
            Measure::RequestsPerSecond | Measure::Cost(..) | Measure::LoadWatts => limited.is_rate,
            // At another rate these joules would include another share of idle power.
            Measure::Joules(which) => {
                limited.is_rate && (which == DecidingFigure::Gross || which == self.deciding)
            }
            Measure::CpuMilliseconds | Measure::IdleWatts => false,
        }
    }

    /// How the injector limited the figure of a budget. Ratios of limited candidates are not compared.
    pub(super) fn limits_budget(&self, candidate: &str, quantity: Quantity) -> Option<Limited> {
        let limited = self.limited_by_injector(candidate)?;
        let is_limited = match quantity {
            Quantity::MillisecondsPerRequest | Quantity::EnergyDelay => true,
            Quantity::RequestsPerSecond
            | Quantity::JoulesPerRequest
            | Quantity::ErrorRatio
            | Quantity::OfCurve(_) => limited.is_rate,
            Quantity::EnergyRatio => false,
        };
        is_limited.then_some(limited)
    }

    /// The remedy against a limit of the injector.
    pub(super) fn limit_remedy(&self) -> &'static str {
        let has_rate = self.settings.has_rate_at(self.point);
        self.settings.kind.rules().pace_remedy(has_rate)
    }

    /// Why two candidates are not compared: the injector set the rate of one.
    pub(super) fn injector_limits(&self, one: &str, other: &str) -> Option<NotCompared> {
        let (name, limited) = [one, other].into_iter().find_map(|name| {
            let limited = self.limited_by_injector(name).filter(|it| it.is_rate)?;
            Some((name, limited))
        })?;
        Some(NotCompared {
            reason: Reason::InjectorLimited,
            message: format!(
                "Not compared: {one} and {other}. {} To compare them, {}.",
                limit_words(name, limited),
                self.limit_remedy()
            ),
        })
    }

    /// Notes about the candidates that the injector limited.
    pub(super) fn limit_notes(&self) -> Vec<String> {
        let of_candidate = |name: &String| {
            // The note about the highest rate says it for its levels.
            if self.limited_at_highest_rate(name).is_some() {
                return None;
            }
            let limited = self.limited_by_injector(name)?;
            let words = limit_words(name, limited);
            if !limited.is_rate {
                return Some(format!(
                    "{words} The rate was reached, so the joules do not depend on the injector. The times include waiting in the injector and are withheld."
                ));
            }
            let rate = self.measured(name, Measure::RequestsPerSecond, self.settings.level)?;
            // Of several candidates, the reason why they are not compared has the remedy.
            let remedy = match self.settings.candidates.as_slice() {
                [_] => format!(" To measure it, {}.", self.limit_remedy()),
                _ => String::new(),
            };
            Some(format!(
                "{words} The injector's limit is {} {}s/s, and {name} may reach more.{remedy}",
                text::number(rate.value),
                self.settings.units.one
            ))
        };
        let candidates = self.settings.candidates.iter();
        candidates.filter_map(of_candidate).collect()
    }

    /// Medians over the candidate's trials; absent if nothing is known.
    pub(super) fn injector(&self, candidate: &str) -> Option<InjectorResult> {
        let paces = self.paces(candidate);
        let median = |value: fn(&Pace) -> Option<f64>| {
            frugality_measure::pace::median(paces.iter().filter_map(value))
        };
        let limits = self.limited_by_injector(candidate).map(|limited| {
            if limited.is_rate {
                InjectorLimits::Rate
            } else {
                InjectorLimits::Times
            }
        });
        let cpu_share = median(|pace| pace.injector_share);
        let rounded = |share: f64| (share * 1000.0).round() / 1000.0;
        (cpu_share.is_some() || limits.is_some()).then(|| InjectorResult {
            cpu_share: cpu_share.map(rounded),
            node_cpu_share: median(|pace| pace.node_share).map(rounded),
            limits,
        })
    }
}

/// The limit of a candidate as a sentence.
pub(super) fn limit_words(candidate: &str, limited: Limited) -> String {
    let percent = |share: f64| text::number(100.0 * share);
    let node = |share: Option<f64>| match share {
        Some(share) => format!("{} % of the measured node's CPU", percent(share)),
        None => "an unknown part of the measured node's CPU".to_owned(),
    };
    match limited.sign {
        Sign::Busy {
            injector_share,
            node_share,
        } => format!(
            "The injector limited {candidate}: the injector's CPUs were {} % busy, and {candidate} left CPU unused ({} in use).",
            percent(injector_share),
            node(node_share)
        ),
        Sign::Throttled {
            throttled_share,
            node_share,
        } => format!(
            "The injector limited {candidate}: a CPU limit throttled the injector for {} % of the time, and {candidate} left CPU unused ({} in use).",
            percent(throttled_share),
            node(node_share)
        ),
        Sign::Idle { occupancy } => format!(
            "The injector limited {candidate}: the connections waited for answers for only {} % of the time (at least {} % are needed).",
            percent(occupancy),
            percent(LEAST_OCCUPANCY)
        ),
    }
}

/// Whether the injector set the rate of one trial, as far as this trial alone shows.
#[must_use]
pub fn is_rate_limited_alone(trial: &FrugalityTrialStatus) -> bool {
    let pace = pace(trial);
    pace.is_some_and(|pace| limited(&[pace]).is_some_and(|it| it.is_rate))
}

/// The pace in one trial.
fn pace(trial: &FrugalityTrialStatus) -> Option<Pace> {
    let requests = trial.requests.as_ref()?;
    let is_paced = trial.load().is_none_or(TrialLoad::is_paced_by_injector);
    let injector = trial.injector_cpu.as_ref().filter(|_| is_paced);
    let seconds = trial.window?.seconds();
    Some(Pace::new(requests, injector, node_share(trial), seconds))
}

/// Share of the measured node's CPUs in use in the window. Active energy is node energy × that share, interval by interval
/// (`frugality_measure::attribution`, and Kepler).
fn node_share(trial: &FrugalityTrialStatus) -> Option<f64> {
    let energy = trial.energy.as_ref()?;
    let attributed = energy.attributed.as_ref()?;
    let active = attributed.candidate_joules
        + attributed.database_joules.unwrap_or(0.0)
        + attributed.system_joules?;
    (energy.node_joules > 0.0).then(|| active / energy.node_joules)
}
