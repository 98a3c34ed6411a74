//! Releases against the release before: how often a release passes whose true energy is exactly the margin above that
//! of the release before, and how often a release passes that needs the same energy.

use frugality_measure::statistics::multiplicity::share_of_try;
use frugality_operator::{
    api::{
        FrozenBaseline, FrozenBaselines, FrugalityBenchmark, FrugalityTrialStatus, Outcome, Verdict,
    },
    plan::{baseline::expanded, settings::ERROR},
};
use serde_json::json;

use crate::{
    Error,
    exact::power,
    experiment::{Experiment, record},
    parallel,
    random::Random,
    table::{Table, percent},
    trials::{BLOCKS, TRIAL_CV, measured, pattern},
};

/// Largest ratio to the release before.
const MARGIN: f64 = 1.05;
/// True gross energy of the release before, in joules per request.
const TRUE_JOULES: f64 = 0.01;
/// Share of attempts that a cause outside the candidate makes void.
const VOID_SHARE: f64 = 0.02;
/// The most that may pass of releases at the margin: one side of 5 %.
const MOST_AT_MARGIN: f64 = ERROR / 2.0;
/// Tolerance of the power around the exact value.
const POWER_MARGIN: f64 = 0.01;
/// Sections of the random numbers.
const SECTION: u64 = 930;
/// True ratios, in the table's order: at the margin, equal, and far above the margin.
const RATIOS: [f64; 3] = [MARGIN, 1.0, 1.16];

/// Shares of verdicts.
#[derive(Clone, Copy, Debug, Default)]
struct Verdicts {
    pass: f64,
    fail: f64,
}

/// The results, by the true ratios.
#[derive(Clone, Debug)]
pub struct Releases {
    runs: u64,
    by_ratio: [Verdicts; 3],
}

/// A benchmark with the release before, as the operator expands it.
struct ReleaseGate {
    experiment: Experiment,
    pattern: FrugalityTrialStatus,
}

impl ReleaseGate {
    fn new() -> Result<Self, Error> {
        let image = |digit: &str| format!("example.org/shop@sha256:{}", digit.repeat(64));
        let benchmark: FrugalityBenchmark = serde_json::from_value(json!({
            "apiVersion": "frugality.dev/v1alpha1",
            "kind": "FrugalityBenchmark",
            "metadata": { "name": "shop" },
            "spec": {
                "candidates": [{ "name": "new", "image": image("b") }],
                "baseline": { "name": "shop", "maxEnergyRatio": MARGIN },
                "request": { "path": "/" },
                "trials": { "blocks": BLOCKS, "maxAttempts": 20 },
            },
        }))?;
        let candidate = json!({ "name": "old", "image": image("a") });
        let releases = FrozenBaselines {
            baseline: Some(FrozenBaseline {
                name: "shop".to_owned(),
                uid: "uid".to_owned(),
                generation: 1,
                candidate: serde_json::from_value(candidate)?,
            }),
            anchor: None,
        };
        let spec = serde_json::to_value(&expanded(&benchmark, &releases).spec)?;
        Ok(Self {
            experiment: Experiment::new(&spec)?,
            pattern: pattern()?,
        })
    }

    fn verdict(&self, ratio: f64, random: &mut Random) -> Result<Verdict, Error> {
        let order = random.bits();
        let ended = self.experiment.carry_out(order, |start| {
            let times = if start.candidate == "new" { ratio } else { 1.0 };
            let joules = TRUE_JOULES * times * (TRIAL_CV * random.normal()).exp();
            if random.chance(VOID_SHARE) {
                let message = "the readings were interrupted".to_owned();
                return Ok(record(Outcome::Void, "ReadingsInterrupted", message));
            }
            Ok(measured(&self.pattern, joules, 0.0))
        })?;
        Ok(ended.judgement.verdict)
    }
}

/// Carries out `runs` runs of a release per true ratio.
pub fn measure(seed: u64, runs: u64) -> Result<Releases, Error> {
    let gate = ReleaseGate::new()?;
    let of = |section: u64, ratio: f64| -> Result<Verdicts, Error> {
        let verdicts = parallel::map(runs, |index| {
            let mut random = Random::new(seed, section, index);
            gate.verdict(ratio, &mut random)
        });
        let verdicts: Vec<Verdict> = verdicts.into_iter().collect::<Result<_, _>>()?;
        let share = |wanted: Verdict| {
            let found = verdicts.iter().filter(|verdict| **verdict == wanted);
            found.count() as f64 / runs as f64
        };
        Ok(Verdicts {
            pass: share(Verdict::Pass),
            fail: share(Verdict::Fail),
        })
    };
    let [at_margin, equal, above] = RATIOS;
    Ok(Releases {
        runs,
        by_ratio: [
            of(SECTION, at_margin)?,
            of(SECTION + 1, equal)?,
            of(SECTION + 2, above)?,
        ],
    })
}

impl Releases {
    /// The exact share of runs that pass. The interval of a first try has its share of the error.
    fn exact(ratio: f64) -> f64 {
        let error = ERROR * share_of_try(1);
        let distance = MARGIN / ratio;
        if distance > 1.0 {
            power(distance, TRIAL_CV, BLOCKS, 1.0 - error).unwrap_or(f64::NAN)
        } else if distance < 1.0 {
            0.0
        } else {
            error / 2.0
        }
    }

    /// The broken promises.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let [at_margin, equal, above] = self.by_ratio;
        let chance = |share: f64| 4.0 * (share * (1.0 - share) / self.runs as f64).sqrt();
        let mut failures = Vec::new();
        let exact = Self::exact(MARGIN);
        let passed = percent(at_margin.pass);
        if at_margin.pass > MOST_AT_MARGIN.max(exact + chance(exact)) {
            failures.push(format!("releases at the margin that passed: {passed}"));
        }
        if at_margin.fail > MOST_AT_MARGIN.max(exact + chance(exact)) {
            let failed = percent(at_margin.fail);
            failures.push(format!("releases at the margin that failed: {failed}"));
        }
        let exact = Self::exact(1.0);
        if (equal.pass - exact).abs() > POWER_MARGIN.max(chance(exact)) {
            let passed = percent(equal.pass);
            failures.push(format!("equal releases that passed: {passed}"));
        }
        if above.pass > 0.0 {
            let passed = percent(above.pass);
            failures.push(format!(
                "releases far above the margin that passed: {passed}"
            ));
        }
        failures
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new([
            "true ratio",
            "runs",
            "Pass",
            "exact",
            "Fail",
            "Inconclusive",
        ]);
        for (ratio, verdicts) in RATIOS.iter().zip(self.by_ratio) {
            table.row(&[
                format!("{ratio:.2}"),
                self.runs.to_string(),
                percent(verdicts.pass),
                percent(Self::exact(*ratio)),
                percent(verdicts.fail),
                percent(1.0 - verdicts.pass - verdicts.fail),
            ]);
        }
        table.text()
    }
}
