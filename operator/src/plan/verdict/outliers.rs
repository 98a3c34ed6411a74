//! Blocks in which something was disturbed though every check passed: named, with the ratio with and without them. They
//! stay in all figures, because whoever leaves blocks out chooses the result.

use frugality_measure::statistics::{
    outliers::{Outlier, outliers},
    paired_ratio,
};

use crate::{api::FrugalityTrial, plan::verdict::evidence::Evidence, text};

/// The series in which a block lies apart: of one entrant, or of the ratio of two.
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
            // What lies farthest says most.
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
            None => format!("the deciding figure of {}", self.told(found.one)),
            Some(other) => format!("{} / {}", self.told(found.one), self.told(other)),
        };
        let beside = entrants.iter().find(|it| **it != found.one).copied();
        // A ratio that is not reported as such does not come in by this door.
        let is_compared = |other: &&str| {
            self.why_not_compared(found.one, other).is_none()
                && self.is_on_one_node(found.one, other)
        };
        let ratios = found
            .other
            .or(beside)
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
                    "; {} / {} is {} with this block and {} without it",
                    self.told(found.one),
                    self.told(other),
                    ratio(&pairs)?,
                    ratio(&without)?
                ))
            });
        format!(
            "block {number} is an outlier: {what} is {} times the median there, {} robust standard deviations off ({} \
             are exceeded by chance in 1 % of series){}",
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

    /// An entrant's name for people: the control's is hidden.
    fn told(&self, entrant: &str) -> String {
        match &self.settings.control {
            Some(control) if control.hidden == entrant => {
                format!("{} (control)", control.candidate)
            }
            _ => entrant.to_owned(),
        }
    }
}
