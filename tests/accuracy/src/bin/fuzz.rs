//! `make fuzz`: sends damaged input to every parser of foreign text.

use std::{
    path::PathBuf,
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use clap::Parser as _;
use frugality_accuracy::{
    Error,
    fuzz::{Corpus, Parser, Summary, quiet_panics, run},
};

/// Sends damaged input to the parsers of foreign text. Fails after a panic, and after NaN or infinity in a status.
#[derive(Debug, clap::Parser)]
struct Arguments {
    /// Seed of the damage. Default: the time in seconds.
    #[arg(long, env = "FRUGALITY_SEED")]
    seed: Option<u64>,
    /// Inputs per parser.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    inputs: u64,
    /// Test only this parser.
    #[arg(long)]
    only: Option<Parser>,
    /// Add an input to the corpus for each failure, and for each end that no input of the corpus reached.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    });
    println!("seed {seed} (repeat with FRUGALITY_SEED={seed})");
    quiet_panics();
    let mut failed = false;
    let chosen = |parser: &Parser| arguments.only.is_none_or(|only| only == *parser);
    for parser in Parser::ALL.into_iter().filter(chosen) {
        let begun = Instant::now();
        match one(parser, seed, &arguments) {
            Ok(summary) => {
                print_summary(parser, &summary, begun.elapsed().as_secs_f64());
                failed |= !summary.failures.is_empty();
            }
            Err(error) => {
                println!("\nFAILED {error}");
                failed = true;
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        println!("\nno panic, and no number that is none in a status");
        ExitCode::SUCCESS
    }
}

fn one(parser: Parser, seed: u64, arguments: &Arguments) -> Result<Summary, Error> {
    let corpus = Corpus::read(parser)?;
    let summary = run(parser, &corpus, seed, arguments.inputs)?;
    if arguments.keep {
        let kept: Vec<PathBuf> =
            corpus.keep(summary.news.values().chain(summary.failures.values()))?;
        for path in kept {
            println!("kept {}", path.display());
        }
    }
    Ok(summary)
}

fn print_summary(parser: Parser, summary: &Summary, seconds: f64) {
    println!(
        "\n{}: {} inputs in {seconds:.0} s",
        parser.name(),
        summary.inputs
    );
    for (end, count) in &summary.ends {
        println!("  {count:>9}  {end}");
    }
    for (failure, input) in &summary.failures {
        println!("  FAILED {failure}");
        println!("         {} bytes: {}", input.len(), shown(input));
    }
}

/// The first 400 characters of an input. `--keep` writes the whole input.
fn shown(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    text.chars()
        .take(400)
        .collect::<String>()
        .escape_debug()
        .to_string()
}
