//! Blocks with a disturbance that passed every check. A note shows the ratio with and without the block. The block stays in all
//! figures, because a choice of blocks would be a choice of the result.

use frugality_measure::statistics::{
    outliers::{Outlier, outliers},
    paired_ratio,
};

use crate::{api::FrugalityTrial, plan::verdict::evidence::Evidence, text};

/// The series with an outlier: one entrant's figures, or the ratio of two entrants.
struct Found<'s> {
    one: &'s str,
    other: Option<&'s str>,
    outlier: Outlier,
}

impl Evidence<'_> {
    /// A note for each block whose deciding figure, or whose ratio of two neighbouring entrants, is an outlier.
    pub(super) fn outlier_notes(&self) -> Vec<String> {
        let entrants = self.settings.entrants();
        let mut found: Vec<Found<'_>> = Vec::new();
        let mut look = |one, other, series: Option<Vec<f64>>| {
            let outliers = outliers(&series.unwrap_or_default());
            found.extend(outliers.into_iter().map(|outlier| Found {
                one,
                other,
                outlier,
            }));
        };
        for entrant in &entrants {
            look(entrant, None, self.logarithms(entrant));
        }
        for pair in entrants.windows(2) {
            let ratios = self
                .logarithms(pair[0])
                .zip(self.logarithms(pair[1]))
                .map(|(one, other)| one.iter().zip(&other).map(|(a, b)| a - b).collect());
            look(pair[0], Some(pair[1]), ratios);
        }
        found.sort_by(|a, b| b.outlier.score.total_cmp(&a.outlier.score));
        let mut notes = Vec::new();
        for index in 0..self.blocks.len() {
            // Of several outliers in a block, the farthest.
            if let Some(it) = found.iter().find(|it| it.outlier.index == index) {
                notes.push(self.outlier_note(it, &entrants));
            }
        }
        notes
    }

    fn outlier_note(&self, found: &Found<'_>, entrants: &[&str]) -> String {
        let index = found.outlier.index;
        let number = self.blocks[index]
            .first()
            .map_or(0, |trial| trial.spec.block);
        let what = match found.other {
            None => format!("the deciding figure of {}", self.shown(found.one)),
            Some(other) => format!("{} / {}", self.shown(found.one), self.shown(other)),
        };
        let neighbour = entrants.iter().find(|it| **it != found.one).copied();
        // Only ratios that the status shows as plain ratios of the pairs. The interval of modelled power covers other boards.
        let is_compared = |other: &&str| {
            self.why_not_compared(found.one, other).is_none()
                && self.is_on_one_node(found.one, other)
                && !self.is_modelled(found.one)
                && !self.is_modelled(other)
        };
        let ratios = found
            .other
            .or(neighbour)
            .filter(is_compared)
            .and_then(|other| {
                let pairs = self.pairs(found.one, other)?;
                let mut without = pairs.clone();
                without.remove(index);
                let confidence = 1.0 - self.settings.claim_level;
                let ratio = |pairs: &[(f64, f64)]| {
                    Some(text::ratio(&paired_ratio(pairs, confidence)?.into()))
                };
                Some(format!(
                    " {} / {} is {} with this block and {} without it.",
                    self.shown(found.one),
                    self.shown(other),
                    ratio(&pairs)?,
                    ratio(&without)?
                ))
            });
        format!(
            "Block {number} is an outlier: {what} is {} times the median, {} robust standard deviations from it. By chance \
             1 % of series have more than {}.{}",
            text::number(found.outlier.distance.exp()),
            text::number(found.outlier.score),
            text::number(found.outlier.limit),
            ratios.unwrap_or_default()
        )
    }

    /// An entrant's deciding figure block by block, in logarithms.
    fn logarithms(&self, entrant: &str) -> Option<Vec<f64>> {
        let of_block = |block: &Vec<&FrugalityTrial>| {
            let trial = block.iter().find(|it| it.spec.candidate == entrant)?;
            self.decides(trial).filter(|it| *it > 0.0).map(f64::ln)
        };
        self.blocks.iter().map(of_block).collect()
    }

    /// An entrant's name for people, because the control has a hidden name.
    fn shown(&self, entrant: &str) -> String {
        match &self.settings.control {
            Some(control) if control.hidden == entrant => {
                format!("{} (control)", control.candidate)
            }
            _ => entrant.to_owned(),
        }
    }
}
