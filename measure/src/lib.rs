//! The arithmetic of the product: everything that turns a meter's text and an injector's JSON into
//! figures with intervals. It knows no Kubernetes, does no I/O and reads no clock.
//!
//! The story of one trial, module by module:
//!
//! 1. [`order`] says in which order the candidates of a block are tried;
//! 2. [`fortio`] and [`k6`] write the injector's arguments and read its result, [`batch`] reads what a program
//!    printed: each is a [`load`] with its [`latency`];
//! 3. [`report`] carries that result from the injector's pod to the operator;
//! 4. [`exposition`] and [`reading`] turn Kepler's text into readings;
//! 5. [`energy`] turns readings and a window into joules, or says why it cannot;
//! 6. [`attempt`] puts the steps from 2 to 5 together: from a report and readings to one attempt's figures;
//! 7. [`statistics`] turns trials into a figure with its interval, and [`pace`] says whether the injector limited them.
//!
//! [`attribution`] is the other end of 4: how the node meter shares a node's energy among its pods.
//! [`model`] is what a power model knows of its joules, and what it does not.
//! [`void`] has every reason for which an attempt does not count.

pub mod attempt;
pub mod attribution;
pub mod batch;
pub mod course;
pub mod energy;
pub mod exposition;
pub mod fortio;
pub mod k6;
pub mod latency;
pub mod load;
pub mod model;
pub mod order;
pub mod pace;
pub mod reading;
pub mod report;
pub mod statistics;
pub mod void;

/// Every foreign number must be below this: 2⁵³, beyond which a double no longer holds every whole
/// number. A counter that large would stand still by rounding, and with smaller ones no sum, difference or
/// product that is made here overflows.
pub(crate) const NUMBERS_END: f64 = 9_007_199_254_740_992.0;

/// What load is divided by must be this long at least: the step of the load generators' clocks. Counts over less
/// overflow.
pub(crate) const LEAST_SECONDS: f64 = 1e-9;
