//! Runs of two candidates whose true ratio is known, through the ledger, the order of blocks, void
//! attempts and the judgement: how often there is a winner where none should be, how often the right
//! one is found, and how often the intervals hold the truth.

use frugality_operator::{
    api::{Figure, FrugalityTrialStatus, Outcome},
    plan::settings::ERROR,
};
use serde_json::{Value, json};

use crate::{
    Error, energy,
    exact::power,
    experiment::{Experiment, record},
    parallel,
    random::Random,
    table::{Table, percent},
};

/// Standard deviation of a trial's logarithm: 3 % from trial to trial.
pub const TRIAL_CV: f64 = 0.03;
/// Blocks of each run.
pub const BLOCKS: usize = 10;
/// Numbers of blocks after which a run of several looks is judged.
pub const LOOKS: [usize; 3] = [10, 15, 20];
/// True gross energy of the second candidate, in joules per request.
const TRUE_JOULES: f64 = 0.01;
/// Share of attempts that a cause outside the candidate makes void.
const VOID_SHARE: f64 = 0.02;

/// Interval of the share of false winners that is allowed at the nominal 5 %.
pub const FALSE_WINNERS: (f64, f64) = (0.044, 0.056);
/// The same of intervals that hold the truth.
pub const COVERAGE: (f64, f64) = (0.94, 0.96);
/// How far the power may be from the exact value.
pub const POWER_MARGIN: f64 = 0.01;

/// How trials deviate from a candidate's true energy, in logarithms. Every one has [`TRIAL_CV`] from
/// trial to trial but for what is said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Independent and normal: what the intervals assume.
    Independent,
    /// What came before remains in part: AR(1) with this coefficient, over the run's trials in time.
    Remembered(f64),
    /// A steady change over the run, in all by this much.
    Drift(f64),
    /// This share of trials takes more energy by this factor.
    Outliers(f64, f64),
    /// Student's t with 3 degrees of freedom.
    HeavyTails,
}

/// All kinds of noise, with their names in the table.
pub const NOISES: [(&str, Noise); 7] = [
    ("independent, normal", Noise::Independent),
    ("AR(1), phi 0.3", Noise::Remembered(0.3)),
    ("AR(1), phi 0.6", Noise::Remembered(0.6)),
    ("drift of +10 % over the run", Noise::Drift(0.10)),
    ("drift of -30 % over the run", Noise::Drift(-0.30)),
    ("5 % of trials x 1.2", Noise::Outliers(0.05, 1.2)),
    ("heavy tails: t, 3 df", Noise::HeavyTails),
];

/// Trials in time.
struct Deviations<'a> {
    noise: Noise,
    random: &'a mut Random,
    last: f64,
    number: usize,
}

impl<'a> Deviations<'a> {
    fn new(noise: Noise, random: &'a mut Random) -> Self {
        let last = random.normal();
        Self {
            noise,
            random,
            last,
            number: 0,
        }
    }

    fn next(&mut self) -> f64 {
        let number = self.number;
        self.number += 1;
        match self.noise {
            Noise::Independent => TRIAL_CV * self.random.normal(),
            Noise::Remembered(phi) => {
                self.last = phi * self.last + (1.0 - phi * phi).sqrt() * self.random.normal();
                TRIAL_CV * self.last
            }
            Noise::Drift(whole) => {
                let trials = (2 * BLOCKS - 1) as f64;
                let drift = (1.0 + whole).ln() * (number as f64 / trials - 0.5);
                drift + TRIAL_CV * self.random.normal()
            }
            Noise::Outliers(share, factor) => {
                let more = if self.random.chance(share) {
                    factor.ln()
                } else {
                    0.0
                };
                // About its mean, so that a candidate's truth is the same for every kind of noise.
                more - share * factor.ln() + TRIAL_CV * self.random.normal()
            }
            Noise::HeavyTails => TRIAL_CV * self.random.heavy_tailed(),
        }
    }
}

/// What became of one run.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// First, second or none.
    winner: Option<usize>,
    /// Whether the ratio's interval holds the true ratio.
    ratio_held: bool,
    /// Whether the second candidate's interval holds its true energy.
    candidate_held: bool,
    /// Blocks that the judgement rests on.
    blocks: i32,
}

/// A benchmark of two candidates, and an attempt to take every other field from.
#[derive(Clone, Debug)]
pub struct Contest {
    experiment: Experiment,
    pattern: FrugalityTrialStatus,
}

const NAMES: [&str; 2] = ["first", "second"];

impl Contest {
    /// Two candidates over [`BLOCKS`] blocks, judged once.
    pub fn new() -> Result<Self, Error> {
        Self::over(&json!({"blocks": BLOCKS, "maxAttempts": 20}))
    }

    /// Two candidates, judged at each of [`LOOKS`] until there is a winner.
    pub fn with_looks() -> Result<Self, Error> {
        let last = LOOKS[LOOKS.len() - 1];
        Self::over(&json!({"looks": LOOKS, "blocks": last, "maxAttempts": 20}))
    }

    fn over(trials: &Value) -> Result<Self, Error> {
        let candidate = |name| json!({"name": name, "image": format!("example.org/{name}:1")});
        let pattern = energy::clean_attempt()?;
        Ok(Self {
            experiment: Experiment::new(&json!({
                "candidates": NAMES.map(candidate),
                "request": {"path": "/"},
                "trials": trials,
            }))?,
            // Of what the judgement needs: the ledger's digest over Fortio's result takes longer than
            // all the statistics.
            pattern: FrugalityTrialStatus {
                fortio: None,
                ..pattern
            },
        })
    }

    /// A run in which the first candidate truly takes `ratio` times the second one's energy.
    fn run(&self, noise: Noise, ratio: f64, seed: u64, random: &mut Random) -> Result<Told, Error> {
        let mut deviations = Deviations::new(noise, random);
        let ended = self.experiment.carry_out(seed, |start| {
            let times = if start.candidate == NAMES[0] {
                ratio
            } else {
                1.0
            };
            let joules = TRUE_JOULES * times * deviations.next().exp();
            if deviations.random.chance(VOID_SHARE) {
                let message = "the readings were interrupted".to_owned();
                return Ok(record(Outcome::Void, "ReadingsInterrupted", message));
            }
            Ok(self.measured(joules))
        })?;
        let problem = || Error::Unexpected(format!("no figures: {}", ended.judgement.message));
        let figures = ended.judgement.figures.as_ref().ok_or_else(problem)?;
        let comparison = figures.comparisons.first().ok_or_else(problem)?;
        let second = figures
            .results
            .iter()
            .find(|result| result.candidate == NAMES[1])
            .ok_or_else(problem)?;
        let gross = second.gross_joules_per_request.ok_or_else(problem)?;
        let holds = |figure: Figure, truth: f64| figure.lower <= truth && truth <= figure.upper;
        // The comparison is the winner's, or that of the one with the least figure.
        let true_ratio = if comparison.candidate == NAMES[0] {
            ratio
        } else {
            1.0 / ratio
        };
        Ok(Told {
            winner: figures
                .winner
                .as_deref()
                .and_then(|winner| NAMES.iter().position(|name| *name == winner)),
            ratio_held: holds(comparison.ratio, true_ratio),
            candidate_held: holds(gross, TRUE_JOULES),
            blocks: second.trials,
        })
    }

    fn measured(&self, joules: f64) -> FrugalityTrialStatus {
        let mut status = self.pattern.clone();
        if let Some(energy) = &mut status.energy {
            let requests = status.requests.as_ref().map_or(0, |r| r.successes);
            energy.node_joules = joules * requests as f64;
            energy.gross_joules_per_request = Some(joules);
        }
        status
    }

    fn runs(
        &self,
        noise: (u64, Noise),
        ratio: f64,
        runs: u64,
        seed: u64,
    ) -> Result<Vec<Told>, Error> {
        let section = 100 + 10 * noise.0 + ratio_number(ratio);
        parallel::map(runs, |index| {
            let mut random = Random::new(seed, section, index);
            let order = random.bits();
            self.run(noise.1, ratio, order, &mut random)
        })
        .into_iter()
        .collect()
    }
}

/// The ratios that are tried, in the table's order.
const RATIOS: [f64; 3] = [1.0, 1.05, 0.95];

fn ratio_number(ratio: f64) -> u64 {
    RATIOS
        .iter()
        .position(|r| r.total_cmp(&ratio).is_eq())
        .unwrap_or_default() as u64
}

/// What came of runs of several looks.
#[derive(Clone, Debug)]
pub struct Looks {
    runs: u64,
    /// By ratio, in the order of the table: share of runs with a winner (the right one, where there is
    /// one), and the mean number of blocks that they took.
    by_ratio: [(f64, f64); 3],
}

/// Section of the random numbers of runs of several looks.
const LOOKS_NOISE: u64 = 50;

/// Carries out `runs` runs of equal candidates with several looks, and an eighth of that of different
/// ones.
pub fn measure_looks(seed: u64, runs: u64) -> Result<Looks, Error> {
    let contest = Contest::with_looks()?;
    let noise = (LOOKS_NOISE, Noise::Independent);
    let of = |ratio: f64, runs: u64, winner: Option<usize>| {
        let told = contest.runs(noise, ratio, runs, seed)?;
        let is_right = |told: &Told| match winner {
            None => told.winner.is_some(),
            right => told.winner == right,
        };
        let blocks = told.iter().map(|told| f64::from(told.blocks)).sum::<f64>();
        Ok::<_, Error>((share(told.iter(), is_right), blocks / told.len() as f64))
    };
    let [equal, more, less] = RATIOS;
    Ok(Looks {
        runs,
        by_ratio: [
            of(equal, runs, None)?,
            of(more, runs.div_ceil(8), Some(1))?,
            of(less, runs.div_ceil(8), Some(0))?,
        ],
    })
}

impl Looks {
    /// What does not keep to what is promised: all looks together have the error of one.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let false_winners = self.by_ratio[0].0;
        let (low, high) = FALSE_WINNERS;
        let room = room(ERROR, self.runs, (high - low) / 2.0);
        if (low - room..=high + room).contains(&false_winners) {
            Vec::new()
        } else {
            let found = percent(false_winners);
            vec![format!("false winners over all looks: {found}")]
        }
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(["true ratio", "runs", "told a winner", "mean blocks"]);
        for (ratio, (winners, blocks)) in RATIOS.iter().zip(self.by_ratio) {
            let runs = if ratio.total_cmp(&1.0).is_eq() {
                self.runs
            } else {
                self.runs.div_ceil(8)
            };
            table.row(&[
                format!("{ratio:.2}"),
                runs.to_string(),
                percent(winners),
                format!("{blocks:.1}"),
            ]);
        }
        table.text()
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Kind of noise.
    pub name: &'static str,
    /// Runs for each ratio.
    pub runs: u64,
    /// Share of runs of equal candidates with a winner.
    pub false_winners: f64,
    /// Share of runs in which the second candidate is found to be better by 5 %.
    pub power_more: f64,
    /// Share of runs in which the first candidate is found to be better by 5 %.
    pub power_less: f64,
    /// Share of runs, over all ratios, whose interval of the ratio holds the true one.
    pub ratio_coverage: f64,
    /// The same of a candidate's own figure.
    pub candidate_coverage: f64,
}

/// The table of all kinds of noise.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The first row is what the intervals assume.
    pub rows: Vec<Row>,
}

/// Carries out `runs` runs for each ratio with the noise that the intervals assume, and an eighth of
/// that with every other.
pub fn measure(contest: &Contest, seed: u64, runs: u64) -> Result<Summary, Error> {
    let mut rows = Vec::new();
    for (number, (name, noise)) in (0..).zip(NOISES) {
        let runs = if noise == Noise::Independent {
            runs
        } else {
            runs.div_ceil(8)
        };
        let [equal, more, less] =
            RATIOS.map(|ratio| contest.runs((number, noise), ratio, runs, seed));
        let (equal, more, less) = (equal?, more?, less?);
        let all = || equal.iter().chain(&more).chain(&less);
        rows.push(Row {
            name,
            runs,
            false_winners: share(equal.iter(), |told| told.winner.is_some()),
            power_more: share(more.iter(), |told| told.winner == Some(1)),
            power_less: share(less.iter(), |told| told.winner == Some(0)),
            ratio_coverage: share(all(), |told| told.ratio_held),
            candidate_coverage: share(all(), |told| told.candidate_held),
        });
    }
    Ok(Summary { rows })
}

fn share<'a>(told: impl Iterator<Item = &'a Told>, counts: impl Fn(&Told) -> bool) -> f64 {
    let (mut all, mut counted) = (0_u64, 0_u64);
    for one in told {
        all += 1;
        counted += u64::from(counts(one));
    }
    counted as f64 / all as f64
}

/// Room for chance: with fewer runs than a band was made for, a correct program would leave it. Four
/// standard deviations of a share, of which a normal one exceeds three in 10⁵ times on either side.
fn room(share: f64, runs: u64, band: f64) -> f64 {
    (4.0 * (share * (1.0 - share) / runs as f64).sqrt() - band).max(0.0)
}

/// The exact power for a ratio, under what the intervals assume.
#[must_use]
pub fn exact_power(ratio: f64) -> f64 {
    power(ratio, TRIAL_CV, BLOCKS, 1.0 - ERROR).unwrap_or(f64::NAN)
}

impl Row {
    /// In what the row leaves the bands, in words.
    #[must_use]
    pub fn departures(&self) -> Vec<&'static str> {
        let mut departures = Vec::new();
        let mut ask = |found: f64, (low, high): (f64, f64), runs: u64, below, above| {
            let room = room(f64::midpoint(low, high), runs, (high - low) / 2.0);
            if found < low - room {
                departures.push(below);
            } else if found.is_nan() || found > high + room {
                departures.push(above);
            }
        };
        let around = |exact: f64| (exact - POWER_MARGIN, exact + POWER_MARGIN);
        ask(
            self.false_winners,
            FALSE_WINNERS,
            self.runs,
            "fewer false winners",
            "more false winners",
        );
        for (found, ratio) in [(self.power_more, 1.05), (self.power_less, 0.95)] {
            let band = around(exact_power(ratio));
            ask(found, band, self.runs, "less power", "more power");
        }
        ask(
            self.ratio_coverage,
            COVERAGE,
            3 * self.runs,
            "the ratio's interval is too narrow",
            "the ratio's interval is too wide",
        );
        ask(
            self.candidate_coverage,
            COVERAGE,
            3 * self.runs,
            "a candidate's interval is too narrow",
            "a candidate's interval is too wide",
        );
        departures.dedup();
        departures
    }
}

impl Summary {
    /// What does not keep to what is promised: the first row is held to it.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        self.rows.first().map_or_else(
            || vec!["no runs".to_owned()],
            |row| {
                let departures = row.departures().into_iter();
                departures
                    .map(|what| format!("noise {}: {what}", row.name))
                    .collect()
            },
        )
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new([
            "noise",
            "runs",
            "false winners",
            "power +5 %",
            "power -5 %",
            "ratio held",
            "candidate held",
            "what that does",
        ]);
        table.row(&[
            "exact, as the intervals assume".to_owned(),
            "–".to_owned(),
            percent(ERROR),
            percent(exact_power(1.05)),
            percent(exact_power(0.95)),
            percent(1.0 - ERROR),
            percent(1.0 - ERROR),
            String::new(),
        ]);
        for row in &self.rows {
            let departures = row.departures();
            table.row(&[
                row.name.to_owned(),
                format!("3 x {}", row.runs),
                percent(row.false_winners),
                percent(row.power_more),
                percent(row.power_less),
                percent(row.ratio_coverage),
                percent(row.candidate_coverage),
                if departures.is_empty() {
                    "nothing".to_owned()
                } else {
                    departures.join(", ")
                },
            ]);
        }
        table.text()
    }
}
