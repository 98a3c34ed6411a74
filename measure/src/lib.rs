//! The arithmetic of the product: it turns a meter's text and an injector's JSON into figures with intervals.
//! It does not depend on Kubernetes, does no I/O and reads no clock.
//!
//! One trial, module by module:
//!
//! 1. [`order`] gives the order of the candidates in a block;
//! 2. [`fortio`] and [`k6`] write the injector's arguments and read its result, [`batch`] reads a program's
//!    output: each is a [`load`] with its [`latency`];
//! 3. [`report`] carries that result from the injector's pod to the operator;
//! 4. [`exposition`] and [`reading`] turn Kepler's text into readings;
//! 5. [`energy`] turns readings and a window into joules, or reports why it cannot;
//! 6. [`attempt`] combines the steps 2 to 5: from a report and readings to one attempt's figures;
//! 7. [`statistics`] turns trials into a figure with its interval, and [`pace`] reports whether the injector
//!    limited them; [`load_curve`] turns the trials of several loads into figures of part load.
//!
//! [`attribution`] is the counterpart of step 4: the node meter uses it to share a node's energy among its
//! pods. [`model`] contains the uncertainty of a power model's joules. [`void`] contains all reasons for void
//! attempts.

pub mod attempt;
pub mod attribution;
pub mod batch;
pub mod course;
pub mod energy;
pub mod exposition;
pub mod figures;
pub mod fortio;
pub mod k6;
pub mod latency;
pub mod load;
pub mod load_curve;
pub mod model;
pub mod order;
pub mod pace;
pub mod reading;
pub mod report;
pub mod slices;
pub mod statistics;
pub mod void;

/// Every number from outside must be below this: 2⁵³, the limit up to which a double represents every whole
/// number. A larger counter would stand still by rounding. With smaller numbers no sum, difference or product
/// in this crate overflows.
pub(crate) const NUMBERS_END: f64 = 9_007_199_254_740_992.0;

/// The shortest time by which a load may be divided, in seconds: the step of the load generators' clocks.
/// Counts over a shorter time overflow.
pub(crate) const LEAST_SECONDS: f64 = 1e-9;

/// The number rounded to so many significant digits, at least one.
#[must_use]
pub fn significant(value: f64, digits: usize) -> f64 {
    let decimals = digits.saturating_sub(1);
    format!("{value:.decimals$e}").parse().unwrap_or(value)
}
