//! Load by a script that k6 repeats: one run of k6, which contains warm-up, window and tail.

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
    load::LoadEnd,
    process::{Ended, Output, Process, Watch},
};

/// The script that k6 runs. It calls the benchmark's script and records its failures.
const CYCLE: &str = include_str!("../k6/cycle.js");

/// The whole environment of k6. Variables named K6_… would override the injector's options, and a file in the home
/// directory would change defaults. k6 must not rebuild itself for missing modules. With GOGC=400 the garbage may grow
/// to four times the live memory before a collection (the default is one time). That takes about 10 MB more memory and
/// saves CPU time, for which answers would wait.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("GOGC", "400"),
    ("HOME", "/nonexistent"),
    ("K6_AUTO_EXTENSION_RESOLUTION", "false"),
];

/// Time that an interrupted k6 gets to write its result. After it the injector kills k6.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Runs k6 with the script and reads its result.
pub(crate) fn put_on(plan: &CyclePlan, watch: &mut Watch) -> Result<LoadEnd, Failure> {
    let folder = Scripts::write(&plan.script)
        .map_err(|error| Failure::of(&format!("cannot write the script to a file: {error}")))?;
    let arguments = plan.settings.argv(&folder.path("cycle.js"));
    let mut process = Process::spawn_apart(&plan.k6, &arguments, &ENVIRONMENT)
        .map_err(|error| Failure::of(&format!("cannot start {}: {error}", plan.k6.display())))?;
    let ended = watch
        .wait(&mut process, plan.limit, GRACE)
        .map_err(|error| Failure::of(&format!("cannot wait for k6: {error}")))?;
    let output = process.output();
    let K6Output {
        measured,
        warm_up,
        tail,
        slices,
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
        None if measured.is_interrupted() => Some("the load: ended early".to_owned()),
        None => None,
    };
    Ok(LoadEnd {
        warm_up: Some(warm_up).filter(|_| plan.settings.warm_up_seconds > 0.0),
        measured,
        tail: Some(tail).filter(|_| plan.settings.tail_seconds > 0.0),
        interrupted,
        asked_warm_up_seconds: plan.settings.warm_up_seconds,
        asked_tail_seconds: plan.settings.tail_seconds,
        slices,
        with_course: plan.with_course,
        json_line: result_line(&output.stdout).unwrap_or_default().to_owned(),
    })
}

/// The failure if there is no result. The usual cause is a script that k6 cannot run: k6 prints the reason.
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

/// The last line with a message. Lines that begin with `at` are locations in the script.
fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    let says = |line: &&str| !line.is_empty() && !line.starts_with("at ");
    lines.find(says).unwrap_or("k6 printed no message")
}

/// A temporary folder with the two scripts, deleted on drop.
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
        // After an error two small files stay in the container, which does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
