//! Axes: where a value is, and which values have a label.

use std::ops::Range;

use plotters::coord::{
    combinators::{IntoLogRange as _, LogCoord},
    ranged1d::Ranged as _,
    types::RangedCoordf64,
};

/// An axis from one position to another.
pub(in crate::report) struct Axis {
    scale: Scale,
    values: Range<f64>,
    positions: (i32, i32),
}

enum Scale {
    Linear(RangedCoordf64),
    Logarithmic(LogCoord<f64>),
}

/// Positions of labels per decade.
const OF_DECADE: [f64; 3] = [1.0, 2.0, 5.0];

impl Axis {
    /// A linear axis over these values.
    pub(in crate::report) fn linear(values: Range<f64>, positions: (i32, i32)) -> Self {
        Self {
            scale: Scale::Linear(values.clone().into()),
            values,
            positions,
        }
    }

    /// A logarithmic axis over these values, all above 0.
    pub(in crate::report) fn logarithmic(values: Range<f64>, positions: (i32, i32)) -> Self {
        Self {
            scale: Scale::Logarithmic(values.clone().log_scale().into()),
            values,
            positions,
        }
    }

    /// Position of a value; of a value outside of the axis, the nearer end.
    pub(in crate::report) fn at(&self, value: f64) -> i32 {
        let value = value.clamp(self.values.start, self.values.end);
        match &self.scale {
            Scale::Linear(scale) => scale.map(&value, self.positions),
            Scale::Logarithmic(scale) => scale.map(&value, self.positions),
        }
    }

    /// Whether equal distances are equal ratios.
    pub(in crate::report) fn is_logarithmic(&self) -> bool {
        matches!(self.scale, Scale::Logarithmic(_))
    }

    /// At most so many round values.
    pub(in crate::report) fn ticks(&self, most: usize) -> Vec<f64> {
        let linear = |most: usize| -> Vec<f64> {
            let scale: RangedCoordf64 = self.values.clone().into();
            scale.key_points(most)
        };
        if !self.is_logarithmic() {
            return linear(most);
        }
        let Range { start, end } = self.values;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the exponent of a finite f64 has three digits"
        )]
        let [first, last] = [start, end].map(|it| it.log10().floor() as i32);
        let of = |steps: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|exponent| steps.iter().map(move |step| step * 10f64.powi(exponent)))
                .filter(|tick| (start..=end).contains(tick))
                .collect()
        };
        let fine = of(&OF_DECADE);
        match fine.len() {
            0..4 => linear(most),
            count if count <= most => fine,
            _ => of(&OF_DECADE[..1]),
        }
    }
}
