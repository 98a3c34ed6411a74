//! Net energy that all trials of the run together cannot distinguish from 0.

use std::collections::BTreeMap;

use frugality_measure::energy::{Measured, PooledIdle};

use crate::api::{FrugalityTrial, FrugalityTrialStatus};

/// A trial whose net energy is below the run's detection limit, and the reason for people.
pub(super) type Undetected<'a> = (&'a FrugalityTrialStatus, String);

/// The trials whose net energy is below the detection limit of all trials on their node.
pub(super) fn undetected<'a>(trials: &[&'a FrugalityTrial]) -> Vec<Undetected<'a>> {
    let mut nodes: BTreeMap<&str, BTreeMap<(&str, &str), Vec<f64>>> = BTreeMap::new();
    for trial in trials {
        let energy = trial.status.as_ref().and_then(|it| it.energy.as_ref());
        if let Some(energy) = energy {
            let spec = &trial.spec;
            let groups = nodes.entry(&spec.measured_node).or_default();
            let group = groups.entry((&spec.point, &spec.candidate)).or_default();
            group.push((energy.idle_after_watts - energy.idle_before_watts) / 2.0);
        }
    }
    let pooled: BTreeMap<&str, PooledIdle> = nodes
        .into_iter()
        .filter_map(|(node, groups)| {
            let groups: Vec<_> = groups.into_values().collect();
            Some((node, PooledIdle::of(&groups)?))
        })
        .collect();
    let below = |trial: &&'a FrugalityTrial| {
        let pooled = pooled.get(trial.spec.measured_node.as_str())?;
        let status = trial.status.as_ref()?;
        let energy = status.energy.as_ref()?;
        let limit_joules = pooled.detection_limit_joules(&Measured {
            node_joules: energy.node_joules,
            relative_uncertainty: energy.node_joules_relative_uncertainty,
            window_seconds: status.window?.seconds(),
            idle_seconds: status.idle_before?.seconds(),
        });
        let joules = energy.net_joules.filter(|joules| *joules < limit_joules)?;
        let why = format!(
            "net energy of {joules:.3} J is below the detection limit of {limit_joules:.3} J, which follows from all trials \
             of the run: half the difference of their two idle baselines has a standard deviation of {:.4} W",
            pooled.watts()
        );
        Some((status, why))
    };
    trials.iter().filter_map(below).collect()
}
