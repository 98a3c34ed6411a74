//! A script, again and again: one run of k6, whose window lies within it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
};

use frugality_measure::{
    k6::{K6Output, parse, result_line},
    load::LoadResult,
    report::Failure,
};

use crate::{
    arguments::CyclePlan,
    load::Outcome,
    process::{Ended, Output, Process, Watch},
};

/// What k6 runs: the benchmark's script, with what failed in it noted.
const CYCLE: &str = include_str!("../k6/cycle.js");

/// Variables named K6_… would be options over ours, and a file in the home folder below them. k6 shall not
/// build itself anew for modules that it has not. Its garbage is collected when it is four times what is in use, and
/// not as much: some ten MB more, for CPU time that answers would wait for.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("GOGC", "400"),
    ("HOME", "/nonexistent"),
    ("K6_AUTO_EXTENSION_RESOLUTION", "false"),
];

/// How long an interrupted k6 is given to write its result, before it is killed.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Runs the script as `plan` says.
pub(crate) fn put_on(plan: &CyclePlan, watch: &mut Watch) -> Result<Outcome, Failure> {
    let folder = Scripts::write(&plan.script)
        .map_err(|error| Failure::of(&format!("cannot write the script down: {error}")))?;
    let arguments = plan.settings.argv(&folder.path("cycle.js"));
    let mut process = Process::spawn_apart(&plan.k6, &arguments, &ENVIRONMENT)
        .map_err(|error| Failure::of(&format!("cannot start {}: {error}", plan.k6.display())))?;
    let ended = watch
        .wait(&mut process, plan.limit, GRACE)
        .map_err(|error| Failure::of(&format!("lost k6: {error}")))?;
    let output = process.output();
    let K6Output {
        measured,
        warm_up,
        tail,
        course,
    } = parse(&output.stdout, &plan.settings).map_err(|error| failure(&error, &output, &ended))?;
    let measured = LoadResult::K6(measured);
    let span = measured.span();
    eprintln!(
        "{} cycles in {:.3} s, {} of them failed",
        span.requests, span.duration_seconds, span.errors
    );
    eprint!("{}", output.stderr_tail);
    let interrupted = match ended.stop {
        Some(stop) => Some(format!("the load: {stop}")),
        None if !ended.status.success() => Some(format!(
            "the load: k6 ended with {}: {}",
            ended.status,
            last_line(&output.stderr_tail)
        )),
        None if measured.is_interrupted() => Some("the load: ended before its time".to_owned()),
        None => None,
    };
    Ok(Outcome {
        warm_up: Some(warm_up).filter(|_| plan.settings.warm_up_seconds > 0.0),
        measured,
        tail: Some(tail).filter(|_| plan.settings.tail_seconds > 0.0),
        interrupted,
        asked_warm_up_seconds: plan.settings.warm_up_seconds,
        asked_tail_seconds: plan.settings.tail_seconds,
        course: course.filter(|_| plan.with_course),
        json_line: result_line(&output.stdout).unwrap_or_default().to_owned(),
    })
}

/// Nothing was measured; mostly it is the script that k6 could not run, and it says why.
fn failure(error: &dyn std::fmt::Display, output: &Output, ended: &Ended) -> Failure {
    Failure {
        error: match ended.stop {
            Some(stop) => format!("no result of the load ({stop}): {error}"),
            None if ended.status.success() => format!("no result of the load: {error}"),
            None => format!(
                "the script could not be run: {}",
                last_line(&output.stderr_tail)
            ),
        },
        exit_code: ended.status.code(),
        stderr_tail: output.stderr_tail.clone(),
    }
}

/// The last line that says something, and not where in a script.
fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    let says = |line: &&str| !line.is_empty() && !line.starts_with("at ");
    lines.find(says).unwrap_or("it said nothing")
}

/// A folder with the two scripts, for as long as this lives.
struct Scripts(PathBuf);

impl Scripts {
    fn write(script: &str) -> io::Result<Self> {
        let folder = Self(env::temp_dir().join(format!("frugality-{}", process::id())));
        fs::create_dir_all(&folder.0)?;
        fs::write(folder.0.join("script.js"), script)?;
        fs::write(folder.0.join("cycle.js"), CYCLE)?;
        Ok(folder)
    }

    fn path(&self, name: &str) -> String {
        Path::new(&self.0).join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        // What stays behind is two small files in the container.
        let _ = fs::remove_dir_all(&self.0);
    }
}
