//! Which side set the pace of the load: the candidate or the injector.
//!
//! A closed loop sends the next request after the answer. If the injector has no CPU left, requests wait
//! inside the injector, within the time that it measures. Requests/s and ms/request are then the injector's
//! figures.
//!
//! A single trial decides nothing. A fast candidate needs more of the injector's CPU, so a check per trial
//! would discard the fastest trials and keep the slow ones. The medians over all trials of one candidate at
//! one point decide.

use serde::{Deserialize, Serialize};

use crate::NUMBERS_END;
use crate::figures::RequestFigures;

pub use crate::statistics::median;

/// From this busy share of its CPU on, the injector can limit the load. In the experiment of
/// `docs/measurement.md`, more CPU for the injector raised the rate by 12 to 152 % in 12 of the 14 cases
/// above this share, and by at most 2 % in the others.
pub const BUSY_SHARE: f64 = 0.8;

/// From this busy share of its CPUs on, the measured node sets the pace: at most a tenth of its CPU is left.
/// In the same experiment, more CPU for the injector changed the rate by at most 2 % there.
pub const NODE_BUSY_SHARE: f64 = 0.9;

/// The largest share of the measured run in which the injector's CPU may be throttled. The injector may have
/// sent this share of the requests late.
pub const MAX_THROTTLED_SHARE: f64 = 0.01;

/// From this share of the connections' time on that they wait for answers, the target sets the pace. Fortio's
/// own work took 1 to 3 % of 0.1 to 0.7 ms per request on one machine (see `tests/data/fortio`). A tenth
/// allows for smaller machines.
pub const LEAST_OCCUPANCY: f64 = 0.9;

/// The largest share of a fixed rate that may be missing, due to Fortio's clock and its last requests.
pub const MAX_SHORTFALL: f64 = 0.01;

/// How busy the injector's CPUs were in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InjectorCpu {
    /// CPUs that the injector may run on, by its affinity.
    pub cpus: u32,
    /// CPU limit of its container, in CPUs; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_cpus: Option<f64>,
    /// CPU time that its container used, in seconds; absent if its cgroup does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_seconds: Option<f64>,
    /// Time for which its container was throttled, in seconds, summed over its CPUs; absent if its cgroup
    /// does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_seconds: Option<f64>,
    /// Share of the time of `cpus` in which these CPUs were busy with the injector, interrupts, other
    /// programs, or another virtual machine (stolen time). From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// The busy share of the busiest of these CPUs. One CPU may serve all interrupts of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_share: Option<f64>,
}

impl InjectorCpu {
    /// The used share of the injector's CPU in a window of this length: the largest of the shares of its
    /// CPUs, of the busiest CPU, and of its limit. At least 0; absent if nothing is known.
    #[must_use]
    pub fn share(&self, window_seconds: f64) -> Option<f64> {
        let of_limit = self
            .used_seconds
            .zip(self.limit_cpus)
            .filter(|(_, limit)| limit * window_seconds > 0.0)
            .map(|(used, limit)| used / (limit * window_seconds));
        [self.busy_share, self.busiest_share, of_limit]
            .into_iter()
            .flatten()
            .reduce(f64::max)
    }

    /// Whether these values are possible times and shares.
    pub(crate) fn is_possible(&self) -> bool {
        [
            self.limit_cpus,
            self.used_seconds,
            self.throttled_seconds,
            self.busy_share,
            self.busiest_share,
        ]
        .into_iter()
        .flatten()
        .all(|number| (0.0..NUMBERS_END).contains(&number))
    }
}

/// One trial's evidence of who set the pace. Unknown values are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Share of the injector's CPU in use ([`InjectorCpu::share`]).
    pub injector_share: Option<f64>,
    /// Share of the window for which the injector was throttled.
    pub throttled_share: Option<f64>,
    /// Share of the measured node's CPUs in use.
    pub node_share: Option<f64>,
    /// Share of the connections' time that they waited for an answer.
    pub occupancy: Option<f64>,
    /// Share of the requested rate that was not reached; absent at the maximum rate.
    pub shortfall: Option<f64>,
}

impl Pace {
    /// The evidence of one trial, from its figures, its injector's CPU and the busy share of the measured
    /// node.
    #[must_use]
    pub fn new(
        requests: &RequestFigures,
        injector: Option<&InjectorCpu>,
        node_share: Option<f64>,
        window_seconds: f64,
    ) -> Self {
        Self {
            injector_share: injector.and_then(|cpu| cpu.share(window_seconds)),
            throttled_share: injector
                .and_then(|cpu| cpu.throttled_seconds)
                .filter(|_| window_seconds > 0.0)
                .map(|seconds| seconds / window_seconds),
            node_share,
            occupancy: requests.occupancy,
            shortfall: requests.shortfall,
        }
    }
}

/// The evidence that the injector limited the load: medians over a candidate's trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sign {
    /// The injector used all of its CPU, and the measured node did not.
    Busy {
        /// Share of the injector's CPU in use.
        injector_share: f64,
        /// Share of the measured node's CPUs in use, if known.
        node_share: Option<f64>,
    },
    /// A CPU limit held the injector back, and the measured node had CPU left.
    Throttled {
        /// Share of the window in which the injector was throttled.
        throttled_share: f64,
        /// Share of the measured node's CPUs in use, if known.
        node_share: Option<f64>,
    },
    /// The connections did not wait for answers.
    Idle {
        /// Share of the connections' time that they waited for answers.
        occupancy: f64,
    },
}

/// How the injector limited a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limited {
    /// The evidence.
    pub sign: Sign,
    /// Whether the injector limited the rate. If not, a fixed rate was reached, and only the times of the
    /// requests include waiting in the injector.
    pub is_rate: bool,
}

/// Whether the injector limited one candidate at one point, from all of its trials there.
#[must_use]
pub fn limited(trials: &[Pace]) -> Option<Limited> {
    let median_of = |value: fn(&Pace) -> Option<f64>| median(trials.iter().filter_map(value));
    let node_share = median_of(|trial| trial.node_share);
    let has_node_left = node_share.is_none_or(|share| share < NODE_BUSY_SHARE);
    let shortfall = median_of(|trial| trial.shortfall);
    let is_rate = shortfall.is_none_or(|shortfall| shortfall > MAX_SHORTFALL);
    let throttled = median_of(|trial| trial.throttled_share)
        .filter(|share| *share > MAX_THROTTLED_SHARE && has_node_left)
        .map(|throttled_share| Sign::Throttled {
            throttled_share,
            node_share,
        });
    let busy = || {
        median_of(|trial| trial.injector_share)
            .filter(|share| *share >= BUSY_SHARE && has_node_left)
            .map(|injector_share| Sign::Busy {
                injector_share,
                node_share,
            })
    };
    // At a fixed rate that is reached, connections normally wait for their next request.
    let idle = || {
        median_of(|trial| trial.occupancy)
            .filter(|share| *share < LEAST_OCCUPANCY && is_rate)
            .map(|occupancy| Sign::Idle { occupancy })
    };
    let sign = throttled.or_else(busy).or_else(idle)?;
    Some(Limited { sign, is_rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(injector_share: f64, node_share: f64) -> Pace {
        Pace {
            injector_share: Some(injector_share),
            throttled_share: Some(0.0),
            node_share: Some(node_share),
            occupancy: Some(0.97),
            shortfall: None,
        }
    }

    #[test]
    fn a_busy_injector_limits_a_candidate_that_leaves_cpu_unused() {
        let found = limited(&[pace(0.97, 0.48); 5]);
        let sign = Sign::Busy {
            injector_share: 0.97,
            node_share: Some(0.48),
        };
        assert_eq!(
            found,
            Some(Limited {
                sign,
                is_rate: true
            })
        );
    }

    #[test]
    fn a_busy_injector_alone_proves_nothing() {
        assert_eq!(limited(&[pace(0.97, 0.9); 5]), None);
        assert!(limited(&[pace(0.8, 0.89); 5]).is_some());
        assert_eq!(limited(&[pace(0.79, 0.4); 5]), None);
    }

    #[test]
    fn a_node_of_unknown_use_counts_as_one_with_cpu_left() {
        let unknown = Pace {
            node_share: None,
            ..pace(0.97, 0.0)
        };
        assert!(limited(&[unknown; 5]).is_some());
    }

    #[test]
    fn all_trials_together_decide() {
        let (busy, quiet) = (pace(0.99, 0.4), pace(0.7, 0.4));
        assert_eq!(limited(&[busy, busy, quiet, quiet, quiet]), None);
        assert!(limited(&[busy, quiet, busy, quiet, busy]).is_some());
        assert_eq!(limited(&[]), None);
    }

    #[test]
    fn a_throttled_injector_limits_unless_the_node_is_used_up() {
        let throttled = |throttled_share: f64, node_share: f64| Pace {
            throttled_share: Some(throttled_share),
            ..pace(0.3, node_share)
        };
        let sign = limited(&[throttled(0.011, 0.5); 5]).map(|found| found.sign);
        assert!(matches!(sign, Some(Sign::Throttled { .. })), "{sign:?}");
        assert_eq!(limited(&[throttled(0.01, 0.5); 5]), None);
        assert_eq!(limited(&[throttled(0.5, 0.95); 5]), None);
    }

    #[test]
    fn connections_that_do_not_wait_for_answers_show_a_limit() {
        let waited = |occupancy: f64, shortfall: Option<f64>| {
            limited(
                &[Pace {
                    occupancy: Some(occupancy),
                    shortfall,
                    ..pace(0.5, 0.5)
                }; 5],
            )
        };
        assert_eq!(waited(0.9, None), None);
        assert!(waited(0.89, None).is_some());
        // A reached rate leaves connections idle. A busy target that misses the rate is an outcome.
        for (occupancy, shortfall) in [(0.02, 0.0), (0.02, 0.01), (0.9, 0.5)] {
            assert_eq!(waited(occupancy, Some(shortfall)), None);
        }
        assert!(waited(0.89, Some(0.011)).is_some());
    }

    #[test]
    fn at_a_reached_rate_the_injector_limits_only_the_times() {
        let at_rate = |shortfall: f64| {
            let trial = Pace {
                shortfall: Some(shortfall),
                ..pace(0.97, 0.4)
            };
            limited(&[trial; 5]).map(|found| found.is_rate)
        };
        assert_eq!(at_rate(0.0), Some(false));
        assert_eq!(at_rate(0.02), Some(true));
    }

    #[test]
    fn the_share_is_the_largest_of_the_known_shares() {
        let cpu = InjectorCpu {
            cpus: 4,
            limit_cpus: None,
            used_seconds: Some(9.0),
            throttled_seconds: None,
            busy_share: Some(0.3),
            busiest_share: Some(0.4),
        };
        assert_eq!(cpu.share(20.0), Some(0.4));
        let limited = InjectorCpu {
            limit_cpus: Some(0.5),
            ..cpu
        };
        assert_eq!(limited.share(20.0), Some(0.9));
        assert_eq!(InjectorCpu::default().share(20.0), None);
        assert_eq!(limited.share(0.0), Some(0.4));
    }
}
