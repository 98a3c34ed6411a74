//! The kinds of load. Each is one module; this file registers them.

use frugality_measure::report::Failure;

use crate::{arguments::Plan, cycles, executions, load::Outcome, process::Watch, requests};

/// Applies the load and waits for its end.
pub(crate) fn put_on(plan: &Plan, watch: &mut Watch) -> Result<Outcome, Failure> {
    match plan {
        Plan::Requests(plan) => requests::put_on(plan, watch),
        Plan::Cycles(plan) => cycles::put_on(plan, watch),
        Plan::Executions(plan) => executions::put_on(plan, watch),
    }
}
