//! One program holds all of the operator's tests. With one program per file, cargo would compile and link the
//! Kubernetes client again for each file.

#![allow(clippy::unwrap_used, reason = "an unwrap in a helper fails the test")]

mod baseline;
mod batch;
mod boards;
mod cel;
mod check;
mod columns;
mod common;
mod crd;
mod golden;
mod identity;
mod kstatus;
mod layers;
mod life;
mod plan_attempt;
mod plan_levels;
mod plan_points;
mod plan_run;
mod plan_start;
mod plan_void;
mod report_data;
mod restoring;
mod retention;
mod scenario;
mod scripts;
mod simulation;
mod summarize_data;
mod survival;
mod verbatim;
mod verdict;
mod verdict_budgets;
mod verdict_claims;
mod verdict_control;
mod verdict_costs;
mod verdict_detection;
mod verdict_endurance;
mod verdict_errors;
mod verdict_latency;
mod verdict_levels;
mod verdict_looks;
mod verdict_modelled;
mod verdict_optimum;
mod verdict_outliers;
mod verdict_pace;
mod verdict_sweep;
mod verdict_sweep_errors;
mod verdict_target;
mod workloads;

/// Without its `mod` line above, a file's tests would not run.
#[test]
fn every_test_file_is_a_module_of_this_program() {
    let lines: Vec<&str> = include_str!("all.rs").lines().collect();
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "all") {
            let line = format!("mod {module};");
            assert!(lines.contains(&line.as_str()), "{name}");
        }
    }
}
