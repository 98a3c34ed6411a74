//! The requested load, and k6's options and arguments for it.

use serde_json::{Value, json};
use thiserror::Error;

/// The name of k6's scenario whose cycles count. The output `cycles` looks for this name.
const SCENARIO: &str = "cycles";

/// Load in addition to the request, in seconds: k6 needs a moment to begin the first cycle.
const SPARE_SECONDS: f64 = 1.0;

/// One load of cycles: warm-up, measured window and tail, without a break.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleSettings {
    /// Scheme, host and port of the target. A script finds them as `__ENV.URL`.
    pub url: String,
    /// Number of agents that each run the script, one cycle after another. At a rate: the maximum number. At
    /// least 1.
    pub agents: u32,
    /// Cycles to begin each second, even if earlier ones have not ended: a number of hundredths, at least one.
    /// Absent: as many as the agents can run.
    pub rate: Option<f64>,
    /// Length of the load before the window, in seconds.
    pub warm_up_seconds: f64,
    /// Length of the ramp-up at the start of the warm-up, in seconds: the number of agents (or the rate)
    /// grows to its full value.
    pub ramp_up_seconds: f64,
    /// Length of the window, in seconds.
    pub duration_seconds: f64,
    /// Length of the load after the window, in seconds.
    pub tail_seconds: f64,
    /// A longer cycle counts as failed, in seconds.
    pub timeout_seconds: f64,
}

/// Why k6 cannot run with these settings.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CycleSettingsError {
    /// The scheme is not HTTP or HTTPS, or the host is missing.
    #[error("the URL must start with http:// or https:// and name a host, not {0:?}")]
    Url(String),
    /// No agent would run the script.
    #[error("there must be at least 1 agent")]
    Agents,
    /// No cycles.
    #[error(
        "the rate must be from 0.01 to 1000000 cycles per second; omit it for as many as the agents can run"
    )]
    Rate,
    /// No load, or an endless load.
    #[error("the {name} must be {least} seconds or more and less than a day, not {seconds}")]
    Span {
        /// The setting's name.
        name: &'static str,
        /// The smallest allowed value: more than 0, or 0.
        least: &'static str,
        /// The configured value.
        seconds: f64,
    },
    /// The window would not begin in a steady load.
    #[error("the ramp-up must not be longer than the warm-up, because the warm-up includes it")]
    RampUp,
}

impl CycleSettings {
    /// Checks the settings before any load is generated.
    pub fn check(&self) -> Result<(), CycleSettingsError> {
        let host = self
            .url
            .strip_prefix("http://")
            .or_else(|| self.url.strip_prefix("https://"));
        if host.is_none_or(str::is_empty) || self.url.contains(char::is_whitespace) {
            return Err(CycleSettingsError::Url(self.url.clone()));
        }
        if self.agents == 0 {
            return Err(CycleSettingsError::Agents);
        }
        if self.rate.is_some_and(|rate| !(0.01..=1e6).contains(&rate)) {
            return Err(CycleSettingsError::Rate);
        }
        for (name, least, seconds) in [
            ("warm-up", "0", self.warm_up_seconds),
            ("ramp-up", "0", self.ramp_up_seconds),
            ("duration", "more than 0", self.duration_seconds),
            ("tail", "0", self.tail_seconds),
            ("timeout", "more than 0", self.timeout_seconds),
        ] {
            let is_enough = seconds > 0.0 || (seconds == 0.0 && least == "0");
            if !(is_enough && seconds < 86_400.0) {
                return Err(CycleSettingsError::Span {
                    name,
                    least,
                    seconds,
                });
            }
        }
        if self.ramp_up_seconds > self.warm_up_seconds {
            return Err(CycleSettingsError::RampUp);
        }
        Ok(())
    }

    /// Length of the whole load, in seconds.
    #[must_use]
    pub fn load_seconds(&self) -> f64 {
        self.warm_up_seconds + self.duration_seconds + self.tail_seconds + SPARE_SECONDS
    }

    /// k6's options: one scenario with one of its executors.
    #[must_use]
    pub fn options(&self) -> Value {
        let agents = self.agents;
        let whole = self.load_seconds();
        let is_ramped = self.ramp_up_seconds > 0.0;
        // k6 takes a whole number of cycles per unit of time.
        let arrivals = self.rate.map(|rate| {
            if rate.fract() == 0.0 {
                (rate, 1.0, "1s")
            } else {
                ((rate * 100.0).round(), 100.0, "100s")
            }
        });
        let stages = |target: u32| {
            json!([
                { "duration": seconds(self.ramp_up_seconds), "target": target },
                { "duration": seconds(whole - self.ramp_up_seconds), "target": target },
            ])
        };
        let mut scenario = match (arrivals, is_ramped) {
            (None, false) => json!({
                "executor": "constant-vus", "vus": agents, "duration": seconds(whole),
            }),
            (None, true) => json!({
                "executor": "ramping-vus", "startVUs": 1, "stages": stages(agents),
                "gracefulRampDown": "0s",
            }),
            (Some((rate, _, unit)), false) => json!({
                "executor": "constant-arrival-rate", "rate": whole_number(rate), "timeUnit": unit,
                "duration": seconds(whole), "preAllocatedVUs": agents, "maxVUs": agents,
            }),
            (Some((rate, begin, unit)), true) => json!({
                "executor": "ramping-arrival-rate", "startRate": whole_number(begin), "timeUnit": unit,
                "stages": stages(whole_number(rate)), "preAllocatedVUs": agents, "maxVUs": agents,
            }),
        };
        // Cycles that are open at the end of the load do not count.
        scenario["gracefulStop"] = json!("0s");
        json!({ "scenarios": { SCENARIO: scenario } })
    }

    /// k6's arguments (without the program) to run the script at `path`.
    #[must_use]
    pub fn argv(&self, path: &str) -> Vec<String> {
        let window = format!(
            "warmUp={}&measured={}&timeout={}",
            self.warm_up_seconds, self.duration_seconds, self.timeout_seconds
        );
        let mut arguments: Vec<String> = [
            "run",
            "--quiet",
            "--no-color",
            // The messages alone, for people.
            "--log-format=raw",
            "--no-usage-report",
            "--summary-mode=disabled",
            "--no-thresholds",
            // No HTTP server, because others could stop k6 with it.
            "--address=",
            "--include-system-env-vars=false",
        ]
        .map(String::from)
        .to_vec();
        arguments.push(format!("--out=cycles={window}"));
        arguments.push(format!("--env=URL={}", self.url));
        arguments.push(format!("--env=OPTIONS={}", self.options()));
        arguments.push(path.to_owned());
        arguments
    }
}

fn seconds(length: f64) -> String {
    format!("{length:.3}s")
}

/// A whole number of at most 100 million, for k6's options.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`check` limits the rate"
)]
fn whole_number(number: f64) -> u32 {
    number as u32
}
