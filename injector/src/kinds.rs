//! The kinds of load. Each is one module; this file registers them.

use frugality_measure::report::Failure;

use crate::{arguments::LoadPlan, cycles, executions, load::LoadEnd, process::Watch, requests};

/// Applies the load and waits for its end.
pub(crate) fn put_on(plan: &LoadPlan, watch: &mut Watch) -> Result<LoadEnd, Failure> {
    match plan {
        LoadPlan::Requests(plan) => requests::put_on(plan, watch),
        LoadPlan::Cycles(plan) => cycles::put_on(plan, watch),
        LoadPlan::Executions(plan) => executions::put_on(plan, watch),
    }
}
