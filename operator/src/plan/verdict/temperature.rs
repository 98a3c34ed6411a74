//! How warm the node was when trials began.

use std::collections::BTreeMap;

use crate::{
    plan::{protocol::START_BAND_KELVIN, verdict::evidence::Evidence},
    text,
};

impl Evidence<'_> {
    /// That trials which are compared with each other did not start alike, although the operator waits for a while
    /// until they do.
    pub(super) fn start_note(&self) -> Option<String> {
        let differences: Vec<f64> = self
            .blocks
            .iter()
            .filter_map(|block| {
                let mut of_nodes: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
                for trial in block {
                    let energy = trial.status.as_ref()?.energy.as_ref()?;
                    let celsius = energy.conditions.idle_before_celsius?;
                    let node = trial.spec.measured_node.as_str();
                    let (least, most) = of_nodes.entry(node).or_insert((celsius, celsius));
                    *least = least.min(celsius);
                    *most = most.max(celsius);
                }
                let of_node = of_nodes.values().map(|(least, most)| most - least);
                of_node.max_by(f64::total_cmp)
            })
            .filter(|difference| *difference > START_BAND_KELVIN)
            .collect();
        let most = differences.iter().copied().max_by(f64::total_cmp)?;
        Some(format!(
            "in {} of {} blocks trials started at temperatures more than {START_BAND_KELVIN} K apart (at most {} K): a warmer node draws more power",
            differences.len(),
            self.blocks.len(),
            text::number(most)
        ))
    }
}
