//! The effect of a trial's place in its block.
//!
//! The orders are balanced, so an expensive place affects every candidate equally. This test checks whether
//! places have an effect.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// A test of the places within the blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PositionEffect {
    /// F: the places' mean square divided by the residual mean square.
    pub f: f64,
    /// Its degrees of freedom: places − 1, and (blocks − 2)·(places − 1).
    pub degrees_of_freedom: (usize, usize),
    /// Probability of such an F if places have no effect, 0 to 1.
    pub p: f64,
    /// The most expensive place divided by the cheapest, as a ratio of the figures: at least 1.
    pub ratio: f64,
}

/// Sums of squares of logarithms below this are rounding, not spread.
const ROUNDING: f64 = 1e-20;

/// Tests whether places affect the logarithms of the figures, after blocks and candidates are accounted for.
///
/// It is the F test of two nested linear models, block + candidate and block + candidate + place (G. W.
/// Snedecor and W. G. Cochran, Statistical Methods (8th ed. 1989), chapter 14, for Latin squares; adjusted
/// for candidates, because the blocks may form an incomplete square). With 2 candidates it is the squared t
/// test of the differences in blocks AB against the differences in blocks BA (M. Hills and P. Armitage,
/// British Journal of Clinical Pharmacology 8 (1979), 7–20).
///
/// Each block contains, by place, the candidate (by index) and its figure (> 0). `None` in these cases:
///
/// - the blocks do not contain the same candidates once each;
/// - fewer than 3 blocks or 2 candidates;
/// - the order was the same in every block: places and candidates are then indistinguishable;
/// - the figures have no spread.
#[must_use]
pub fn position_effect(blocks: &[Vec<(usize, f64)>]) -> Option<PositionEffect> {
    let places = blocks.first()?.len();
    let count = blocks.len();
    if places < 2 || count < 3 || !blocks.iter().all(|block| is_whole(block, places)) {
        return None;
    }
    // Subtracting the mean of their block removes the block effect: each block contains every place and
    // candidate once.
    let mut figures = Vec::with_capacity(count * places);
    for block in blocks {
        let logarithms: Vec<f64> = block.iter().map(|(_, figure)| figure.ln()).collect();
        let mean = logarithms.iter().sum::<f64>() / places as f64;
        for (place, (candidate, _)) in block.iter().enumerate() {
            figures.push((place, *candidate, logarithms[place] - mean));
        }
    }
    let n = count as f64;
    let mut of_candidate = vec![0.0; places];
    let mut times = vec![vec![0.0; places]; places];
    for &(place, candidate, value) in &figures {
        of_candidate[candidate] += value / n;
        times[place][candidate] += 1.0;
    }
    let mut without_places = 0.0;
    let mut of_place = vec![0.0; places];
    for &(place, candidate, value) in &figures {
        let rest = value - of_candidate[candidate];
        without_places += rest * rest;
        of_place[place] += rest;
    }
    // The normal equations of the places, with the candidates eliminated. The last place is the reference for
    // the others.
    let free = places - 1;
    let matrix: Vec<Vec<f64>> = (0..free)
        .map(|row| {
            (0..free)
                .map(|column| {
                    let shared: f64 = times[row]
                        .iter()
                        .zip(&times[column])
                        .map(|(a, b)| a * b)
                        .sum();
                    if row == column {
                        n - shared / n
                    } else {
                        -shared / n
                    }
                })
                .collect()
        })
        .collect();
    let mut effects = solve(matrix, of_place[..free].to_vec())?;
    let explained: f64 = effects.iter().zip(&of_place).map(|(a, b)| a * b).sum();
    let rest = without_places - explained;
    if rest < ROUNDING {
        return None;
    }
    effects.push(0.0);
    let most = effects.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = effects.iter().copied().fold(f64::INFINITY, f64::min);
    let degrees_of_freedom = (free, (count - 2) * free);
    let (above, below) = (degrees_of_freedom.0 as f64, degrees_of_freedom.1 as f64);
    let f = (explained.max(0.0) / above) / (rest / below);
    Some(PositionEffect {
        f,
        degrees_of_freedom,
        p: FisherSnedecor::new(above, below).ok()?.sf(f),
        ratio: (most - least).exp(),
    })
}

/// Whether a block contains the candidates 0 to `places` − 1 once each, with figures above 0.
fn is_whole(block: &[(usize, f64)], places: usize) -> bool {
    let mut candidates: Vec<usize> = block.iter().map(|(candidate, _)| *candidate).collect();
    candidates.sort_unstable();
    candidates.into_iter().eq(0..places)
        && block
            .iter()
            .all(|(_, figure)| *figure > 0.0 && figure.is_finite())
}

/// Gaussian elimination with partial pivoting; `None` if the matrix is singular.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for step in 0..size {
        let pivot = (step..size)
            .max_by(|a, b| matrix[*a][step].abs().total_cmp(&matrix[*b][step].abs()))?;
        // The entries are counts of blocks.
        if matrix[pivot][step].abs() < 1e-9 {
            return None;
        }
        matrix.swap(step, pivot);
        right.swap(step, pivot);
        let (upper, lower) = matrix.split_at_mut(step + 1);
        let row = &upper[step];
        for (index, below) in lower.iter_mut().enumerate() {
            let times = below[step] / row[step];
            for (value, above) in below.iter_mut().zip(row).skip(step) {
                *value -= times * above;
            }
            right[step + 1 + index] -= times * right[step];
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size)
            .map(|column| matrix[row][column] * solution[column])
            .sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    Some(solution)
}
