//! From the ledger to the verdict.

mod answers;
mod batch;
mod boards;
mod budgets;
mod candidate_result;
mod comparisons;
mod costs;
mod cycles;
mod decision;
mod detection;
mod endurance;
mod evidence;
mod figures;
mod intervals;
mod judge;
mod judgement;
mod latency;
mod latency_target;
mod load_curve;
mod measure;
mod modelled;
mod not_compared;
mod outliers;
mod pace;
mod point_result;
mod rounding;
mod sweep;
mod temperature;
mod voids;
mod work;
mod workloads;

pub use self::{
    judge::{judge, modelled_not_allowed},
    judgement::{BudgetText, Figures, Judgement, Subject, deciding_figure, without_figures},
    measure::joules,
    not_compared::NotCompared,
    pace::is_rate_limited_alone,
};
