//! The tests of `kubectl-frugality` as one program.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails the test")]

mod api;
mod command;
mod compare;
mod definitions;
mod doctor;
mod estimate;
mod export;
mod gate;
mod reference;
mod report;
mod run;
mod serve_gate;
mod summarize;
mod watch;

use std::path::{Path, PathBuf};

/// A file of this folder's `data`: what kubectl printed, or what an export must be.
fn data(name: &str) -> String {
    std::fs::read_to_string(data_path(name)).unwrap()
}

fn data_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// Without a line above, a file's tests would not be run.
#[test]
fn every_file_next_to_this_one_is_part_of_it() {
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
