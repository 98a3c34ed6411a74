//! The detection limit of net energy from all trials of a run. In one attempt, slow changes of idle power
//! appear only in the difference of its two baselines: one number. The run's trials together show the
//! variance of such differences.

use super::baseline::detection_factor;

/// The movement of idle power between a trial's two baselines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PooledIdle {
    /// Variance of half the difference, in square watts.
    watts2: f64,
    /// Degrees of freedom of this variance.
    degrees_of_freedom: f64,
}

/// One trial's measured energy and the lengths of its windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Gross energy, in joules.
    pub node_joules: f64,
    /// Its relative standard uncertainty, from the window's ends.
    pub relative_uncertainty: f64,
    /// Length of the measured window, in seconds.
    pub window_seconds: f64,
    /// Length of each idle baseline, in seconds.
    pub idle_seconds: f64,
}

impl PooledIdle {
    /// From groups of trials under equal load: each group holds (B⁺ − B⁻)/2 of its trials in watts. The
    /// variance is around each group's own mean, because a load's constant effect on the second baseline
    /// (heat) is not random. That effect is in each trial's own limit. `None` if no group has two trials.
    #[must_use]
    pub fn of(groups: &[Vec<f64>]) -> Option<Self> {
        let (mut squares, mut degrees_of_freedom) = (0.0, 0.0);
        for group in groups.iter().filter(|group| group.len() > 1) {
            let n = group.len() as f64;
            let mean = group.iter().sum::<f64>() / n;
            squares += group.iter().map(|it| (it - mean).powi(2)).sum::<f64>();
            degrees_of_freedom += n - 1.0;
        }
        (degrees_of_freedom > 0.0).then(|| Self {
            watts2: squares / degrees_of_freedom,
            degrees_of_freedom,
        })
    }

    /// Standard deviation of half the difference, in watts.
    #[must_use]
    pub fn watts(&self) -> f64 {
        self.watts2.sqrt()
    }

    /// The detection limit of a trial's net energy, in joules: Student's t of the pooled degrees of freedom
    /// (Welch and Satterthwaite) times the standard uncertainty. Half the difference of two independent means
    /// varies as their mean does. Idle power in the window varies as one baseline. Its variance is twice that
    /// of the mean, or less if the window is longer.
    #[must_use]
    pub fn detection_limit_joules(&self, trial: &Measured) -> f64 {
        let of_window = 2.0 * (trial.idle_seconds / trial.window_seconds).min(1.0);
        let of_noise = self.watts2 * (1.0 + of_window) * trial.window_seconds.powi(2);
        let variance = of_noise + (trial.node_joules * trial.relative_uncertainty).powi(2);
        if of_noise <= 0.0 {
            return detection_factor(f64::INFINITY) * variance.sqrt();
        }
        let factor = detection_factor(self.degrees_of_freedom * (variance / of_noise).powi(2));
        factor * variance.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_difference_is_not_noise() {
        let pooled =
            PooledIdle::of(&[vec![0.1, 0.2, 0.3], vec![1.1, 1.2, 1.3], vec![7.0]]).unwrap();
        assert!((pooled.watts() - 0.1).abs() < 1e-12);
        assert_eq!(PooledIdle::of(&[vec![0.1], vec![]]), None);
    }

    #[test]
    fn the_limit_is_students_t_of_all_trials_times_the_uncertainty() {
        // Two groups of five: 8 degrees of freedom, t = 5.0413.
        let group = vec![-0.02, -0.01, 0.0, 0.01, 0.02];
        let pooled = PooledIdle::of(&[group.clone(), group]).unwrap();
        let trial = Measured {
            node_joules: 100.0,
            relative_uncertainty: 0.0,
            window_seconds: 30.0,
            idle_seconds: 15.0,
        };
        let u = 30.0 * (0.00025_f64 * 2.0).sqrt();
        let limit = pooled.detection_limit_joules(&trial);
        assert!((limit / u - 5.0413).abs() < 1e-3, "{}", limit / u);
        // The window's ends have more than eight degrees of freedom.
        let ends = Measured {
            relative_uncertainty: 0.1,
            ..trial
        };
        let limit = pooled.detection_limit_joules(&ends);
        assert!((limit / u.hypot(10.0) - 3.29).abs() < 0.01);
        let steady = PooledIdle::of(&[vec![0.0; 5]]).unwrap();
        assert!(steady.detection_limit_joules(&trial) <= 0.0);
    }
}
