//! From the ledger to the verdict.

mod batch;
mod boards;
mod budgets;
mod comparisons;
mod costs;
mod cycles;
mod detection;
mod endurance;
mod evidence;
mod judge;
mod judgement;
mod latency;
mod latency_target;
mod load_curve;
mod modelled;
mod not_compared;
mod outliers;
mod pace;
mod point_result;
mod sweep;
mod temperature;
mod voids;
mod work;
mod workloads;

pub use self::{
    evidence::joules,
    judge::{judge, modelled_not_allowed},
    judgement::{BudgetText, Figures, Judgement, Subject, deciding_figure, without_figures},
    not_compared::NotCompared,
};
