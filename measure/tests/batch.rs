//! Programs that run to completion: the parsed output, and the result of the executions.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use frugality_measure::{
    batch::{
        Execution, ExecutionError, ExecutionOutcome, ExecutionsResult, NumberError, NumberPattern,
        PatternError, Readers, Spread, WorkSource,
    },
    load::LoadResult,
    report::{InjectionReport, LIMIT_BYTES, REPORT_VERSION},
};
use proptest::prelude::*;
use rstest::rstest;

const STOCKFISH: &str = include_str!("data/batch/stockfish.txt");
const POVRAY: &str = include_str!("data/batch/povray.txt");
const IPERF: &str = include_str!("data/batch/iperf3.txt");
const BONNIE: &str = include_str!("data/batch/bonnie.txt");

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

fn ended(exit_code: Option<i32>, output: &str) -> Execution {
    Execution {
        exit_code,
        duration_seconds: 1.5,
        output: output.to_owned(),
    }
}

fn scored(pattern: &str) -> Readers {
    Readers {
        score: Some(NumberPattern::new(pattern).unwrap()),
        work: None,
    }
}

#[rstest]
#[case(STOCKFISH, "Nodes/second *: ([0-9]+)", 937_287.0)]
#[case(STOCKFISH, "Nodes searched *: ([0-9]+)", 858_555.0)]
#[case(POVRAY, r"Trace Time: .*\(([0-9.]+) seconds\)", 1.332)]
#[case(IPERF, r#""bits_per_second":\s*([0-9.e+]+)"#, 9_145_825_980.618_023)]
#[case(IPERF, r#""bytes":\s*([0-9]+)"#, 2_295_070_720.0)]
#[case(BONNIE, r"(?:^|\n)(?:[^,\n]*,){11}([0-9]+),", 287_464.0)]
fn the_output_of_real_programs_is_parsed(
    #[case] output: &str,
    #[case] pattern: &str,
    #[case] expected: f64,
) {
    let number = NumberPattern::new(pattern).unwrap().last_in(output);
    assert!(near(number.clone().unwrap(), expected), "{number:?}");
}

#[test]
fn the_examples_patterns_match_the_output_of_these_programs() {
    let example = include_str!("../../examples/boards-cpu.yaml");
    for pattern in [
        "Nodes/second *: ([0-9]+)",
        "Nodes searched *: ([0-9]+)",
        r"Trace Time: .*\(([0-9.]+) seconds\)",
        r#""bits_per_second":\s*([0-9.e+]+)"#,
        r#""bytes":\s*([0-9]+)"#,
        r"(?:^|\n)(?:[^,\n]*,){11}([0-9]+),",
    ] {
        assert!(example.contains(pattern), "{pattern}");
    }
}

#[test]
fn the_last_match_counts_and_only_a_number_above_zero() {
    let pattern = NumberPattern::new("score (.*)").unwrap();
    assert_eq!(pattern.last_in("score 1\nscore 2.5\nend"), Ok(2.5));
    for none in [
        "",
        "score x",
        "score 0",
        "score -1",
        "score inf",
        "score nan",
        "score 1e300",
    ] {
        let error = pattern.last_in(none).unwrap_err();
        assert_eq!(error, NumberError::NotThere, "{none}");
    }
}

#[rstest]
#[case("n ([0-9]+)", "n 390,786 x", "390", "390,786")]
#[case("n ([0-9]+)", "n 9.5", "9", "9.5")]
#[case("n ([0-9.]+)", "n 9.14e+09,", "9.14", "9.14e+09,")]
#[case("n.*([0-9]+)", "n 937287", "7", "937287")]
#[case("n ([0-9]{3})[0-9]*", "n 937287", "937", "937287")]
#[case("n: ([0-9]+).*", "n: 390,786 in all", "390", "390,786")]
#[case("([0-9]+) nodes/s", "at 390,786 nodes/s", "786", "390,786")]
#[case(".*?([0-9]+) nodes/s", "at 390,786 nodes/s", "786", "390,786")]
#[case("([0-9.]+) MB/s", "1,234.5 MB/s", "234.5", "1,234.5")]
#[case("([0-9]+) s", "0.5 s", "5", "0.5")]
#[case("([0-9]+) ops", "1.5e+09 ops", "09", "1.5e+09")]
#[case("ops: ([0-9.]+)", "ops: 1.2M", "1.2", "1.2M")]
#[case("n ([0-9]+)", "n 12ms, 7", "12", "12ms, 7")]
#[case("r: ([0-9.]+)", "r: 1.09 GBytes", "1.09", "1.09 GBytes")]
#[case("([0-9.]+).*nodes", "1.2M nodes", "1.2", "1.2M nodes")]
#[case("ops: ([0-9.]+)\\s*", "ops: 1.2 M", "1.2", "1.2 M")]
#[case("n ([0-9]+)", "n 1\u{202f}234", "1", "1 234")]
#[case("n ([0-9]+)", "n 1 234", "1", "1 234")]
#[case("n ([0-9.]+)", "n 1.2  GB", "1.2", "1.2 GB")]
#[case("n ([0-9]+)", "n 1\u{2019}234", "1", "1\u{2019}234")]
#[case("([0-9]+) nodes", "1 234 567 nodes", "567", "234 567")]
fn a_part_of_a_number_is_refused(
    #[case] pattern: &str,
    #[case] output: &str,
    #[case] taken: &str,
    #[case] printed: &str,
) {
    let number = NumberPattern::new(pattern).unwrap().last_in(output);
    let expected = NumberError::Part {
        taken: taken.to_owned(),
        printed: printed.to_owned(),
    };
    assert_eq!(number, Err(expected));
}

#[rstest]
#[case("n ([0-9]+),", "n 390,786", 390.0)]
#[case("n ([0-9]+)", "n 12.", 12.0)]
#[case("n ([0-9]+)ms", "n 12ms, 7", 12.0)]
#[case("r: ([0-9.]+) GB", "r: 1.09 GBytes", 1.09)]
#[case("r: ([0-9.]+)\\s*GB", "r: 1.09 GBytes", 1.09)]
#[case("n ([0-9]+) ", "n 1 234", 1.0)]
#[case("size [0-9]+ ([0-9]+)", "size 64 512", 512.0)]
#[case("n ([0-9]+)[ \\t]+[0-9]+", "n 12 345", 12.0)]
#[case("n ([0-9]+)\\tops", "n 12\tops", 12.0)]
#[case("n ([0-9.]+)\\w+", "n 1.2ms", 1.2)]
#[case("n ([0-9]+)", "n 12\nms", 12.0)]
#[case("n ([0-9]+)", "n 12 34", 12.0)]
#[case("n ([0-9.]+)[a-z]+", "n 1.2ms", 1.2)]
#[case("n ([0-9]+)", "n 12e", 12.0)]
#[case("(?:[^,]*,){2}([0-9]+)", "5,6,7", 7.0)]
#[case(r"[0-9]+\.([0-9]+)(?:,.*)?", "5.6,7", 6.0)]
#[case("(?:n|[(]m) ([0-9]+) s", "1, n 12 s", 12.0)]
#[case("took ([0-9]+)", "3-took 12", 12.0)]
fn the_end_of_a_number_is_not_a_part_of_it(
    #[case] pattern: &str,
    #[case] output: &str,
    #[case] expected: f64,
) {
    let number = NumberPattern::new(pattern).unwrap().last_in(output);
    assert_eq!(number, Ok(expected));
}

#[test]
fn a_pattern_has_one_group() {
    assert!(matches!(
        NumberPattern::new("(").unwrap_err(),
        PatternError::Syntax(_)
    ));
    for (pattern, groups) in [("score [0-9]+", 0), ("(a)(b)", 2)] {
        let error = NumberPattern::new(pattern).unwrap_err();
        assert_eq!(error, PatternError::Groups(groups));
    }
    assert!(NumberPattern::new("(?:a|b) ([0-9]+)").is_ok());
}

#[test]
fn a_failed_execution_is_reported_with_its_last_line() {
    let readers = scored("score ([0-9]+)");
    let error = |execution: &Execution| readers.read(execution).unwrap_err();
    assert_eq!(
        error(&ended(Some(3), "score 1\nno board\n\n")).to_string(),
        "exit code 3: no board"
    );
    assert_eq!(
        error(&ended(None, "")).to_string(),
        "ended by a signal: it printed nothing"
    );
    let long = error(&ended(Some(0), &"é".repeat(1000)));
    assert_eq!(
        long,
        ExecutionError::NotPrinted {
            name: "batch.score",
            why: NumberError::NotThere,
            said: "é".repeat(200),
        }
    );
    assert!(
        long.to_string()
            .starts_with("batch.score is not in what the program printed: é")
    );
}

#[test]
fn work_is_printed_or_given() {
    let with = |work: WorkSource| Readers {
        score: None,
        work: Some(work),
    };
    let execution = ended(Some(0), STOCKFISH);
    let given = with(WorkSource::Amount(12.0)).read(&execution).unwrap();
    assert_eq!((given.score, given.work), (None, Some(12.0)));
    let pattern = NumberPattern::new("Nodes searched *: ([0-9]+)").unwrap();
    let printed = with(WorkSource::Printed(pattern)).read(&execution).unwrap();
    assert_eq!(printed.work, Some(858_555.0));
}

/// Executions of 2, 3 and 4 s, with a score and work each, and a failed one of 1 s, in a window of 10 s.
fn four(with_work: bool) -> ExecutionsResult {
    let mut result = ExecutionsResult::starting(1_700_000_000.0);
    for seconds in [3.0, 2.0, 4.0] {
        result.add(&ExecutionOutcome {
            duration_seconds: seconds,
            score: Some(10.0 * seconds),
            work: with_work.then_some(100.0 * seconds),
        });
    }
    result.add_failure(1.0, "exit code 1".to_owned());
    result.duration_seconds = 10.0;
    result
}

#[test]
fn executions_count_as_requests() {
    let figures = LoadResult::Batch(four(false)).figures(&[200]);
    assert_eq!(
        (figures.requests, figures.successes, figures.errors),
        (4, 3, 1)
    );
    assert!(near(figures.requests_per_second.unwrap(), 0.3));
    assert!(near(figures.ms_per_request.unwrap(), 3000.0));
    assert!(near(figures.percentiles_ms["p50"], 3000.0));
    assert!(near(figures.percentiles_ms["p99.9"], 4000.0));
    assert!(near(figures.error_rate.unwrap(), 0.25));
    assert!(near(figures.occupancy.unwrap(), 1.0));
    assert!(near(figures.units(), 3.0));
}

#[test]
fn with_work_the_units_count() {
    let figures = LoadResult::Batch(four(true)).figures(&[]);
    assert!(near(figures.work.unwrap(), 900.0));
    assert!(near(figures.units(), 900.0));
    assert!(near(figures.requests_per_second.unwrap(), 90.0));
    // An execution's time counts as a whole.
    assert!(near(figures.ms_per_request.unwrap(), 3000.0));
}

#[test]
fn scores_have_a_mean_and_a_standard_deviation_of_a_sample() {
    let score = four(false).score.unwrap();
    assert!(near(score.mean, 30.0));
    assert!(near(score.standard_deviation().unwrap(), 10.0));
    assert!(near(score.least, 20.0) && near(score.most, 40.0));
    assert_eq!(Spread::of(1.0).standard_deviation(), None);
    // Over the executions themselves, as in any histogram: 2, 3 and 4 s.
    let histogram = four(false).executions;
    assert!(near(
        histogram.standard_deviation_seconds,
        (2.0f64 / 3.0).sqrt()
    ));
}

fn report(measured: ExecutionsResult) -> InjectionReport {
    let span = measured.span();
    InjectionReport {
        version: REPORT_VERSION,
        measured: LoadResult::Batch(measured),
        histogram_dropped: false,
        asked_warm_up_seconds: 2.0,
        asked_tail_seconds: 3.0,
        warm_up: Some(span),
        tail: Some(span),
        gap_before_measured_seconds: Some(0.001),
        gap_after_measured_seconds: Some(0.001),
        interrupted: None,
        clock: None,
        clock_after: None,
        course: None,
        slices: None,
        cpu: None,
    }
}

#[test]
fn a_report_carries_any_number_of_executions_and_fits() {
    let few = report(four(true));
    let read = InjectionReport::decode(&few.encode().unwrap()).unwrap();
    assert_eq!(read, few);
    let mut many = four(true);
    for number in 1..20_000 {
        many.add(&ExecutionOutcome {
            duration_seconds: 1.0 + f64::from(number).sqrt(),
            score: Some(1.0),
            work: Some(1.0),
        });
    }
    let encoded = report(many).encode().unwrap();
    assert!(encoded.len() <= LIMIT_BYTES);
    let read = InjectionReport::decode(&encoded).unwrap();
    assert!(read.histogram_dropped);
    assert_eq!(read.measured.span().requests, 20_003);
}

#[test]
fn bytes_of_a_network_fit_a_report() {
    let mut result = ExecutionsResult::starting(1_700_000_000.0);
    for bytes in [9.1e9, 1.13e10, 1.02e10] {
        result.add(&ExecutionOutcome {
            duration_seconds: 10.2,
            score: Some(0.8 * bytes),
            work: Some(bytes),
        });
    }
    result.duration_seconds = 30.7;
    let whole = report(result);
    let read = InjectionReport::decode(&whole.encode().unwrap()).unwrap();
    assert_eq!(read, whole);
}

#[test]
fn an_impossible_report_is_refused() {
    let refused = |change: fn(&mut ExecutionsResult)| {
        let mut result = four(true);
        change(&mut result);
        let error = InjectionReport::decode(&report(result).encode().unwrap()).unwrap_err();
        error.to_string()
    };
    for (change, field) in [
        (
            (|it| it.duration_seconds = 0.0) as fn(&mut ExecutionsResult),
            "durationSeconds",
        ),
        (|it| it.start_unix_seconds = -1.0, "startUnixSeconds"),
        (|it| it.executions.sum_seconds = -1.0, "executions"),
        (|it| it.score.as_mut().unwrap().count = 4, "score"),
        (|it| it.work.as_mut().unwrap().mean = 1e6, "work"),
        (|it| it.work.as_mut().unwrap().least = -1.0, "work"),
        (|it| it.score.as_mut().unwrap().deviation = -1.0, "score"),
    ] {
        let error = refused(change);
        assert!(
            error.contains(&format!("has {field} =")),
            "{field}: {error}"
        );
    }
}

proptest! {
    #[test]
    fn groups_together_equal_the_numbers_themselves(
        numbers in prop::collection::vec(1e-3..1e6f64, 2..40),
        cut in 0usize..40,
    ) {
        let cut = cut % numbers.len();
        let over = |part: &[f64]| Spread::over(part.iter().copied().map(Spread::of));
        let (first, second) = numbers.split_at(cut);
        let together = Spread::over([over(first), over(second)].into_iter().flatten()).unwrap();
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        prop_assert_eq!(together.count, numbers.len() as u64);
        prop_assert!((together.mean - mean).abs() <= 1e-9 * mean);
        let deviation = (squares / (count - 1.0)).sqrt();
        prop_assert!((together.deviation - deviation).abs() <= 1e-7 * mean);
    }
}
