//! The checks that readings must pass before figures are computed from them, in order.

mod counters;
mod load_end;
mod meter;
mod readings;
mod surroundings;

pub use meter::same_meter;

use super::{evidence::AttemptEvidence, taken};
use crate::void::Void;

type Check = fn(&AttemptEvidence<'_>) -> Result<(), Void>;

/// Causes come before their effects. The check for a restarted meter comes before the check for its fallen
/// counters. The check for wrong clocks comes before the check for an idle baseline that the clocks moved
/// into the load.
const CHECKS: [Check; 23] = [
    readings::windows_in_order,
    meter::meter_is_genuine,
    meter::meter_moves_on,
    meter::meter_did_not_restart,
    meter::meter_is_the_same,
    meter::meter_within_its_scale,
    meter::node_is_the_same,
    counters::counters_go_on,
    counters::energy_within_node,
    counters::pods_within_node,
    readings::readings_uninterrupted,
    readings::pods_all_the_time,
    readings::window_long_enough,
    readings::ends_read_in_time,
    meter::power_follows_load,
    readings::counter_fine_enough,
    load_end::load_ends_when_reported,
    surroundings::voltage_held,
    surroundings::cool_before_load,
    taken::cpu_not_taken,
    surroundings::neighbours_quiet,
    surroundings::halves_alike,
    surroundings::baselines_alike,
];

/// Runs all checks in order; the first failure is the reason.
pub(super) fn run(evidence: &AttemptEvidence<'_>) -> Result<(), Void> {
    CHECKS.iter().try_for_each(|check| check(evidence))
}
