//! A line that changes its slope at one unknown place.
//!
//! Segmented regression with one breakpoint (D. J. Hudson, Journal of the American Statistical Association 61
//! (1966), 1097–1129): for every place of the break, least squares gives the two slopes. The result is the
//! place with the smallest residual.

/// The least-squares line with one bend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BrokenLine {
    /// The x of the bend.
    pub at: f64,
    /// Slope before the bend.
    pub slope_before: f64,
    /// Slope after the bend.
    pub slope_after: f64,
}

/// The minimum number of points on either side of the break. With fewer, a slope follows any single point.
const LEAST_POINTS: usize = 2;
/// The number of places tried between every two points.
const PLACES: u32 = 20;

/// The line through points (x, y) with ascending x. `None` with fewer than two points on either side of a
/// break.
#[must_use]
pub fn broken_line(points: &[(f64, f64)]) -> Option<BrokenLine> {
    let last = points.len().checked_sub(LEAST_POINTS)?;
    let between = (LEAST_POINTS..=last).flat_map(|index| {
        let (from, to) = (points[index - 1].0, points[index].0);
        (0..PLACES).map(move |place| {
            let share = (f64::from(place) + 0.5) / f64::from(PLACES);
            from + (to - from) * share
        })
    });
    between
        .filter_map(|at| fitted(points, at))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, line)| line)
}

/// The line that bends at `at`, with the sum of its squared residuals.
fn fitted(points: &[(f64, f64)], at: f64) -> Option<(f64, BrokenLine)> {
    let parts = |x: f64| [1.0, (x - at).min(0.0), (x - at).max(0.0)];
    let mut rows = [[0.0; 4]; 3];
    for (x, y) in points {
        let part = parts(*x);
        for (row, of_row) in rows.iter_mut().zip(part) {
            for (cell, of_cell) in row.iter_mut().zip([part[0], part[1], part[2], *y]) {
                *cell += of_row * of_cell;
            }
        }
    }
    let [level, slope_before, slope_after] = solved(rows)?;
    let residual = |(x, y): &(f64, f64)| {
        let [one, before, after] = parts(*x);
        (y - level * one - slope_before * before - slope_after * after).powi(2)
    };
    let line = BrokenLine {
        at,
        slope_before,
        slope_after,
    };
    Some((points.iter().map(residual).sum(), line))
}

/// Solves three equations in three unknowns, by elimination with pivots. `None` if the solution is not
/// unique.
fn solved(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3).max_by(|a, b| {
            let size = |row: usize| rows[row][column].abs();
            size(*a).total_cmp(&size(*b))
        })?;
        rows.swap(column, pivot);
        let first = rows[column];
        if first[column] == 0.0 {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / first[column];
                for (cell, of_first) in row.iter_mut().zip(first) {
                    *cell -= factor * of_first;
                }
            }
        }
    }
    let solution = [0, 1, 2].map(|index| rows[index][3] / rows[index][index]);
    solution
        .iter()
        .all(|value| value.is_finite())
        .then_some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points every half second from 0 to 6 s, with slope `before` up to 3.2 s and slope `after` from then
    /// on.
    fn points(before: f64, after: f64, noise: f64) -> Vec<(f64, f64)> {
        (0..13)
            .map(|index| {
                let x = f64::from(index) / 2.0;
                let y = before * x.min(3.2) + after * (x - 3.2).max(0.0);
                let sign = if index % 2 == 0 { 1.0 } else { -1.0 };
                (x, 100.0 + y + sign * noise)
            })
            .collect()
    }

    #[test]
    fn the_break_is_found_for_any_slopes() {
        for (before, after) in [(0.9, 0.01), (0.3, 0.0), (5.0, 1.0), (0.0, 2.0)] {
            let line = broken_line(&points(before, after, 0.0)).unwrap();
            assert!((line.at - 3.2).abs() < 0.02, "{line:?}");
            assert!((line.slope_before - before).abs() < 0.02 * before.max(after));
            assert!((line.slope_after - after).abs() < 0.02 * before.max(after));
        }
    }

    #[test]
    fn noise_of_a_tenth_of_a_second_moves_the_break_by_less() {
        let line = broken_line(&points(0.9, 0.0, 0.09)).unwrap();
        assert!((line.at - 3.2).abs() < 0.1, "{line:?}");
    }

    #[test]
    fn a_straight_line_has_no_step() {
        let line = broken_line(&points(0.5, 0.5, 0.0)).unwrap();
        assert!((line.slope_before - line.slope_after).abs() < 1e-9);
    }

    #[test]
    fn three_points_have_no_break() {
        assert_eq!(broken_line(&points(1.0, 0.0, 0.0)[..3]), None);
        assert!(broken_line(&points(1.0, 0.0, 0.0)[5..9]).is_some());
    }
}
