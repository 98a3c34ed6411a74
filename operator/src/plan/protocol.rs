//! The fixed times and limits of an attempt. docs/measurement.md gives the reasons.

/// Wait between the readiness of the pods, or the end of the load, and the idle baseline. During start-up work and
/// with half-closed connections the node is not idle.
pub const SETTLE_SECONDS: f64 = 3.0;

/// How much warmer than the first trial of its block a trial may start, in kelvins. At about 1 % of idle power per
/// kelvin (leakage) this is at most 3 % of idle power. It is a much smaller share of the window's power, because
/// both trials warm up in their windows.
pub const START_BAND_KELVIN: f64 = 3.0;

/// Load after the measured window: the window ends during steady load. It is longer than the largest clock offset
/// error that passes the checks, and longer than a meter's interval.
pub const TAIL_SECONDS: f64 = 3.0;

/// If pods have been forbidden for this long, the operator expects no change. A user may apply a namespace and its
/// policies together with the benchmark.
pub const FORBIDDEN_TIMEOUT_SECONDS: f64 = 30.0;
