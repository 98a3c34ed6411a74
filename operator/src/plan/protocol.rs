//! The fixed times and bands of an attempt; docs/measurement.md gives the reasons.

/// Rest between a pod's readiness, or the end of the load, and the idle baseline: start-up work and
/// half-closed connections are not idle.
pub const SETTLE_SECONDS: f64 = 3.0;

/// How much warmer than the first trial of its block a trial may start, in kelvins. At about 1 % of idle power per kelvin
/// (leakage) this is 3 % of idle power at most, and far less of the window, in which both warm up.
pub const START_BAND_KELVIN: f64 = 3.0;

/// Load after the measured window, so that its end lies inside steady load. Longer than the
/// largest error of the clocks' offset that passes the checks, and than a meter's interval.
pub const TAIL_SECONDS: f64 = 3.0;

/// What forbids a pod for this long is not about to be changed: a namespace and its policies may be applied
/// together with the benchmark.
pub const FORBIDDEN_PATIENCE_SECONDS: f64 = 30.0;
