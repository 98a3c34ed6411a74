//! The temperature of the node at the start of the trials.

use std::collections::BTreeMap;

use crate::{
    plan::{protocol::START_BAND_KELVIN, verdict::evidence::Evidence},
    text,
};

impl Evidence<'_> {
    /// A note that trials of one block started at different temperatures, although the operator waits for the node to cool.
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
            "In {} of {} blocks, trials started at temperatures more than {START_BAND_KELVIN} K apart (at most {} K). A warmer node draws more power.",
            differences.len(),
            self.blocks.len(),
            text::number(most)
        ))
    }
}
