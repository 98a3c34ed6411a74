//! `make accuracy`: prints tables of how far the figures can be trusted. It fails if a figure breaks a promise of
//! docs/accuracy.md.

use std::{
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use clap::Parser;
use frugality_accuracy::{
    Error, energy, load_curves, releases,
    trials::{self, Contest},
};

/// Sends virtual nodes and runs with known true values through the code of a real run.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of all random numbers. Default: the time in seconds. The same seed gives the same numbers.
    #[arg(long, env = "FRUGALITY_SEED")]
    seed: Option<u64>,
    /// Number of virtual nodes.
    #[arg(long, default_value_t = 1_500)]
    cases: u64,
    /// Runs of two candidates, per true ratio.
    #[arg(long, default_value_t = 40_000)]
    runs: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(seed_of_now);
    println!("seed {seed} (repeat with FRUGALITY_SEED={seed})");
    match sections(&arguments, seed) {
        Ok(failures) if failures.is_empty() => {
            println!("\nall of it keeps to what is promised");
            ExitCode::SUCCESS
        }
        Ok(failures) => {
            for failure in failures {
                println!("\nFAILED {failure}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("\nFAILED {error}");
            ExitCode::FAILURE
        }
    }
}

fn sections(arguments: &Arguments, seed: u64) -> Result<Vec<String>, Error> {
    let begun = Instant::now();
    println!(
        "\n1. Joules per request of {} virtual nodes whose energy is known\n",
        arguments.cases
    );
    let energy = energy::measure(seed, arguments.cases)?;
    print!("{}", energy.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!(
        "\n2. Winners, power and intervals: 2 candidates, {} blocks, {} % from trial to trial\n",
        trials::BLOCKS,
        100.0 * trials::TRIAL_CV
    );
    let trials = trials::measure(&Contest::new()?, seed, arguments.runs)?;
    print!("{}", trials.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!(
        "\n3. Winners where a run is judged after {:?} blocks and ends with the first\n",
        trials::LOOKS
    );
    let looks = trials::measure_looks(seed, arguments.runs)?;
    print!("{}", looks.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let mut failures = energy.failures();
    failures.extend(trials.failures());
    failures.extend(looks.failures());
    failures.extend(claims(arguments.runs, seed)?);
    Ok(failures)
}

/// Parts 4 to 8: repeated tries, the meter's part of an interval, void attempts that depend on the outcome, releases
/// against the release before, and load curves.
fn claims(runs: u64, seed: u64) -> Result<Vec<String>, Error> {
    let contest = Contest::new()?;
    let begun = Instant::now();
    println!(
        "\n4. Winners of a user who tries up to {} times and takes the first, where none is better\n",
        trials::TRIES
    );
    let again = trials::measure_tries(&contest, seed, runs.div_ceil(2))?;
    print!("{}", again.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!("\n5. A candidate's interval with the meter's part: gains are normal\n");
    let meters = trials::measure_meters(&contest, seed, runs.div_ceil(4))?;
    print!("{}", meters.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!("\n6. Void attempts that depend on what they would have shown\n");
    let voids = trials::measure_voids(&contest, seed, runs.div_ceil(8))?;
    print!("{}", voids.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!("\n7. Releases against the release before, with a margin of 1.05\n");
    let releases = releases::measure(seed, runs)?;
    print!("{}", releases.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    println!("\n8. Load curves of a server whose power over the rate is known\n");
    let curves = load_curves::measure(seed, runs.div_ceil(8))?;
    print!("{}", curves.text());
    println!("  ({:.0} s)", begun.elapsed().as_secs_f64());

    let mut failures = again.failures();
    failures.extend(meters.failures());
    failures.extend(voids.failures());
    failures.extend(releases.failures());
    failures.extend(curves.failures());
    Ok(failures)
}

/// The time in seconds, as a seed.
fn seed_of_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
