//! Sends runs of two candidates with a known true ratio through the ledger, the order of blocks, void attempts and the
//! judgement. Counts false winners, right winners, and intervals that contain the true value.

use frugality_measure::statistics::multiplicity::share_of_try;
use frugality_operator::{
    api::{Figure, FrugalityTrial, FrugalityTrialStatus, Outcome},
    plan::settings::ERROR,
};
use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::{
    Error, energy,
    exact::power,
    experiment::{Experiment, record},
    parallel,
    random::Random,
    table::{Table, percent},
};

/// Standard deviation of the logarithm of a trial's energy: 3 % from trial to trial.
pub const TRIAL_CV: f64 = 0.03;
/// Blocks of each run.
pub const BLOCKS: usize = 10;
/// Numbers of blocks after which the operator judges a run with several looks.
pub const LOOKS: [usize; 3] = [10, 15, 20];
/// True gross energy of the second candidate, in joules per request.
const TRUE_JOULES: f64 = 0.01;
/// Share of attempts that a cause outside the candidate makes void.
const VOID_SHARE: f64 = 0.02;

/// Tolerance of the share of false winners around the error that a try may spend.
const FALSE_WINNERS_MARGIN: f64 = 0.006;
/// Limits of the share of a candidate's intervals that contain the true value. The upper limit is above 95 % for two
/// reasons. Independent trials look correlated in one run of ten, and the interval is then wider. The parts of trials
/// and meter add as squares, each with its own coverage factor.
pub const COVERAGE: (f64, f64) = (0.94, 0.97);
/// The minimum share for correlated trials: below 95 %, because the correlation is not always detected.
pub const COVERAGE_OF_CORRELATED: f64 = 0.915;
/// Tolerance of the share of ratios' intervals that contain the true ratio, around their confidence.
const RATIO_MARGIN: f64 = 0.01;
/// Tries of a user who runs again until there is a winner.
pub const TRIES: usize = 3;
/// The minimum share of runs whose status notes void attempts that depend on the outcome.
pub const NOTED: f64 = 0.94;

/// The error that a first try may spend on its claims.
fn first_error() -> f64 {
    ERROR * share_of_try(1)
}

fn around(exact: f64, margin: f64) -> (f64, f64) {
    (exact - margin, exact + margin)
}
/// Tolerance of the power around the exact value.
pub const POWER_MARGIN: f64 = 0.01;

/// The deviations of trials from a candidate's true energy, in logarithms. Each kind has [`TRIAL_CV`] from trial to
/// trial, and the deviation of its variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Independent and normal: the assumption of the intervals.
    Independent,
    /// AR(1) with this coefficient, over the run's trials in time.
    Remembered(f64),
    /// A steady change over the run. The value is the total change.
    Drift(f64),
    /// This share of trials takes this factor more energy.
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

/// Draws the deviations of a run's trials in time order.
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
                // Minus its mean, because a candidate's true energy must be the same for every kind of noise.
                more - share * factor.ln() + TRIAL_CV * self.random.normal()
            }
            Noise::HeavyTails => TRIAL_CV * self.random.heavy_tailed(),
        }
    }
}

/// The void attempts that depend on the outcome. One in fifty attempts is also void by an outside cause.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Voids {
    /// None.
    Independent,
    /// This share of the first candidate's attempts: those with the least energy.
    Least(f64),
    /// This share of both candidates' attempts: those with the least energy.
    LeastOfBoth(f64),
}

/// The parameters of a run, without its seed.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    noise: Noise,
    ratio: f64,
    voids: Voids,
    /// The meter's true relative standard uncertainty, which it also states.
    meter: f64,
}

impl Conditions {
    fn usual(noise: Noise, ratio: f64) -> Self {
        Self {
            noise,
            ratio,
            voids: Voids::Independent,
            meter: 0.0,
        }
    }

    /// Whether an attempt is void because of its deviation (in standard deviations).
    fn is_void(&self, is_first: bool, deviation: f64) -> bool {
        let share = match self.voids {
            Voids::Independent => return false,
            Voids::Least(_) if !is_first => return false,
            Voids::Least(share) | Voids::LeastOfBoth(share) => share,
        };
        normal_share_below(deviation) < share
    }
}

/// Share of a standard normal distribution below a value.
fn normal_share_below(value: f64) -> f64 {
    Normal::standard().cdf(value)
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
struct RunResult {
    /// Index of the winner, if there is one.
    winner: Option<usize>,
    /// Whether the ratio's interval contains the true ratio.
    ratio_held: bool,
    /// Whether the second candidate's interval contains its true energy.
    candidate_held: bool,
    /// Number of blocks that the judgement uses.
    blocks: i32,
    /// Relative error of the ratio of the first candidate's energy to the second's.
    bias: f64,
    /// Number of void attempts, and of all attempts.
    voids: (usize, usize),
    /// Whether the status notes many void attempts, or different numbers of them per candidate.
    is_noted: bool,
}

/// A benchmark of two candidates, and a record that supplies the fields which do not vary.
#[derive(Clone, Debug)]
pub struct Contest {
    experiment: Experiment,
    pattern: FrugalityTrialStatus,
}

const NAMES: [&str; 2] = ["first", "second"];

/// A record that supplies the fields which do not vary. Without Fortio's result, because the judgement does not need it
/// and its digest in the ledger takes longer than all the statistics.
pub(crate) fn pattern() -> Result<FrugalityTrialStatus, Error> {
    Ok(FrugalityTrialStatus {
        fortio: None,
        ..energy::clean_attempt()?
    })
}

/// The record of an attempt with this gross energy, in joules per request, and this relative standard uncertainty of the
/// meter.
pub(crate) fn measured(
    pattern: &FrugalityTrialStatus,
    joules: f64,
    meter: f64,
) -> FrugalityTrialStatus {
    let mut status = pattern.clone();
    if let Some(energy) = &mut status.energy {
        let requests = status.requests.as_ref().map_or(0, |r| r.successes);
        energy.node_joules = joules * requests as f64;
        energy.gross_joules_per_request = Some(joules);
        energy.meter_relative_uncertainty = (meter > 0.0).then_some(meter);
        // No timing error at the window's edges: part 1 covers it. Here the true value is the trial's own energy.
        energy.node_joules_relative_uncertainty = 0.0;
    }
    status
}

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
        Ok(Self {
            experiment: Experiment::new(&json!({
                "candidates": NAMES.map(candidate),
                "request": {"path": "/"},
                "trials": trials,
            }))?,
            pattern: pattern()?,
        })
    }

    /// A run under these conditions, after others.
    fn run(
        &self,
        conditions: Conditions,
        earlier: &[FrugalityTrial],
        seed: u64,
        random: &mut Random,
    ) -> Result<(RunResult, Vec<FrugalityTrial>), Error> {
        let ratio = conditions.ratio;
        let gain = 1.0 + conditions.meter * random.normal();
        let mut deviations = Deviations::new(conditions.noise, random);
        let ended = self.experiment.carry_out_after(earlier, seed, |start| {
            let is_first = start.candidate == NAMES[0];
            let times = if is_first { ratio } else { 1.0 };
            let deviation = deviations.next();
            let joules = TRUE_JOULES * times * deviation.exp();
            let is_void = deviations.random.chance(VOID_SHARE)
                || conditions.is_void(is_first, deviation / TRIAL_CV);
            if is_void {
                let message = "the readings were interrupted".to_owned();
                return Ok(record(Outcome::Void, "ReadingsInterrupted", message));
            }
            Ok(measured(&self.pattern, joules * gain, conditions.meter))
        })?;
        let problem = || Error::Unexpected(format!("no figures: {}", ended.judgement.message));
        let figures = ended.judgement.figures.as_ref().ok_or_else(problem)?;
        let comparison = figures.comparisons.first().ok_or_else(problem)?;
        let of = |name: &str| {
            let mut results = figures.results.iter();
            results.find(|result| result.candidate == name)
        };
        let second = of(NAMES[1]).ok_or_else(problem)?;
        let gross = second.gross_joules_per_request.ok_or_else(problem)?;
        let holds = |figure: Figure, truth: f64| {
            let (lower, upper) = figure.bounds();
            lower <= truth && truth <= upper
        };
        // `candidate` of a comparison is the winner, or without a winner the candidate with the lower figure.
        let (true_ratio, bias) = if comparison.candidate == NAMES[0] {
            (ratio, comparison.ratio.value / ratio - 1.0)
        } else {
            (1.0 / ratio, 1.0 / (comparison.ratio.value * ratio) - 1.0)
        };
        let own = &ended.entries[earlier.len()..];
        let is_void = |entry: &&FrugalityTrial| {
            entry.status.as_ref().and_then(|status| status.outcome) == Some(Outcome::Void)
        };
        let reported = RunResult {
            winner: figures
                .winner
                .as_deref()
                .and_then(|winner| NAMES.iter().position(|name| *name == winner)),
            ratio_held: holds(comparison.ratio, true_ratio),
            candidate_held: holds(gross, TRUE_JOULES),
            blocks: second.trials,
            bias,
            voids: (own.iter().filter(is_void).count(), own.len()),
            is_noted: figures
                .notes
                .iter()
                .any(|note| note.starts_with("Void attempts: ")),
        };
        Ok((reported, ended.entries))
    }

    fn runs(
        &self,
        noise: (u64, Noise),
        ratio: f64,
        runs: u64,
        seed: u64,
    ) -> Result<Vec<RunResult>, Error> {
        let section = 100 + 10 * noise.0 + ratio_number(ratio);
        self.under(Conditions::usual(noise.1, ratio), section, runs, seed)
    }

    fn under(
        &self,
        conditions: Conditions,
        section: u64,
        runs: u64,
        seed: u64,
    ) -> Result<Vec<RunResult>, Error> {
        parallel::map(runs, |index| {
            let mut random = Random::new(seed, section, index);
            let order = random.bits();
            Ok(self.run(conditions, &[], order, &mut random)?.0)
        })
        .into_iter()
        .collect()
    }
}

/// The true ratios, in the table's order.
const RATIOS: [f64; 3] = [1.0, 1.05, 0.95];

fn ratio_number(ratio: f64) -> u64 {
    RATIOS
        .iter()
        .position(|r| r.total_cmp(&ratio).is_eq())
        .unwrap_or_default() as u64
}

/// The results of runs with several looks.
#[derive(Clone, Debug)]
pub struct Looks {
    runs: u64,
    /// Per ratio, in the order of the table: the share of runs with a winner (for different candidates, with the right
    /// winner), and the mean number of blocks.
    by_ratio: [(f64, f64); 3],
}

/// Section of the random numbers for runs with several looks.
const LOOKS_NOISE: u64 = 50;

/// Carries out `runs` runs of equal candidates with several looks, and an eighth of that number per other ratio.
pub fn measure_looks(seed: u64, runs: u64) -> Result<Looks, Error> {
    let contest = Contest::with_looks()?;
    let noise = (LOOKS_NOISE, Noise::Independent);
    let of = |ratio: f64, runs: u64, winner: Option<usize>| {
        let reported = contest.runs(noise, ratio, runs, seed)?;
        let is_right = |reported: &RunResult| match winner {
            None => reported.winner.is_some(),
            right => reported.winner == right,
        };
        let blocks = reported
            .iter()
            .map(|reported| f64::from(reported.blocks))
            .sum::<f64>();
        Ok::<_, Error>((
            share(reported.iter(), is_right),
            blocks / reported.len() as f64,
        ))
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
    /// The broken promises. The promise: all looks together have the error of one.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let false_winners = self.by_ratio[0].0;
        let (low, high) = around(first_error(), FALSE_WINNERS_MARGIN);
        let room = room(first_error(), self.runs, FALSE_WINNERS_MARGIN);
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
        let mut table = Table::new(["true ratio", "runs", "named a winner", "mean blocks"]);
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
    /// Whether trials depend on earlier trials.
    pub is_correlated: bool,
    /// Runs per ratio.
    pub runs: u64,
    /// Share of runs of equal candidates with a winner.
    pub false_winners: f64,
    /// Share of runs that find the second candidate better, if the first takes 5 % more.
    pub power_more: f64,
    /// Share of runs that find the first candidate better, if it takes 5 % less.
    pub power_less: f64,
    /// Share of runs, over all ratios, whose interval of the ratio contains the true ratio.
    pub ratio_coverage: f64,
    /// Share of runs, over all ratios, whose interval of a candidate's figure contains the true energy.
    pub candidate_coverage: f64,
}

/// The table of all kinds of noise.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The rows. The first row has the noise that the intervals assume.
    pub rows: Vec<Row>,
}

/// Carries out `runs` runs per ratio with the noise that the intervals assume, and an eighth of that number with every
/// other noise.
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
            is_correlated: matches!(noise, Noise::Remembered(_)),
            runs,
            false_winners: share(equal.iter(), |reported| reported.winner.is_some()),
            power_more: share(more.iter(), |reported| reported.winner == Some(1)),
            power_less: share(less.iter(), |reported| reported.winner == Some(0)),
            ratio_coverage: share(all(), |reported| reported.ratio_held),
            candidate_coverage: share(all(), |reported| reported.candidate_held),
        });
    }
    Ok(Summary { rows })
}

fn share<'a>(
    reported: impl Iterator<Item = &'a RunResult>,
    counts: impl Fn(&RunResult) -> bool,
) -> f64 {
    let (mut all, mut counted) = (0_u64, 0_u64);
    for one in reported {
        all += 1;
        counted += u64::from(counts(one));
    }
    counted as f64 / all as f64
}

/// Extra tolerance for chance, because with few runs a correct program may leave the band. It is four standard
/// deviations of a share. A normal value exceeds them on either side three in 10⁵ times.
fn room(share: f64, runs: u64, band: f64) -> f64 {
    (4.0 * (share * (1.0 - share) / runs as f64).sqrt() - band).max(0.0)
}

/// The exact power for a ratio, with the noise that the intervals assume.
#[must_use]
pub fn exact_power(ratio: f64) -> f64 {
    power(ratio, TRIAL_CV, BLOCKS, 1.0 - first_error()).unwrap_or(f64::NAN)
}

impl Row {
    /// The bands that the row leaves, in words.
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
        ask(
            self.false_winners,
            around(first_error(), FALSE_WINNERS_MARGIN),
            self.runs,
            "fewer false winners",
            "more false winners",
        );
        for (found, ratio) in [(self.power_more, 1.05), (self.power_less, 0.95)] {
            let band = around(exact_power(ratio), POWER_MARGIN);
            ask(found, band, self.runs, "less power", "more power");
        }
        ask(
            self.ratio_coverage,
            around(1.0 - first_error(), RATIO_MARGIN),
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
    /// The broken promises. The first row must stay in all bands. Rows of correlated trials must reach the minimum
    /// coverage of a candidate's interval.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let Some(first) = self.rows.first() else {
            return vec!["no runs".to_owned()];
        };
        let departures = first.departures().into_iter();
        let mut failures: Vec<String> = departures
            .map(|what| format!("noise {}: {what}", first.name))
            .collect();
        for row in self.rows.iter().filter(|row| row.is_correlated) {
            let least = COVERAGE_OF_CORRELATED - room(COVERAGE_OF_CORRELATED, 3 * row.runs, 0.0);
            if row.candidate_coverage.is_nan() || row.candidate_coverage < least {
                let held = percent(row.candidate_coverage);
                failures.push(format!(
                    "noise {}: a candidate's interval holds in {held}",
                    row.name
                ));
            }
        }
        failures
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
            percent(first_error()),
            percent(exact_power(1.05)),
            percent(exact_power(0.95)),
            percent(1.0 - first_error()),
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

/// The results of users who run again until there is a winner.
#[derive(Clone, Debug)]
pub struct Again {
    runs: u64,
    /// Share of users with a false winner after one, two and all tries.
    false_winners: [f64; TRIES],
}

/// Sections of the random numbers for tries, meters and void attempts.
const AGAIN: u64 = 900;
const METERS_SECTION: u64 = 910;
const VOIDS_SECTION: u64 = 920;

/// Carries out three tries for each of `runs` users whose candidates are equal.
pub fn measure_tries(contest: &Contest, seed: u64, runs: u64) -> Result<Again, Error> {
    let conditions = Conditions::usual(Noise::Independent, 1.0);
    let winners = parallel::map(runs, |index| {
        let mut random = Random::new(seed, AGAIN, index);
        let mut entries = Vec::new();
        let mut first = None;
        for number in 0..TRIES {
            let order = random.bits();
            let (reported, all) = contest.run(conditions, &entries, order, &mut random)?;
            entries = all;
            if reported.winner.is_some() && first.is_none() {
                first = Some(number);
            }
        }
        Ok::<_, Error>(first)
    });
    let winners: Vec<Option<usize>> = winners.into_iter().collect::<Result<_, _>>()?;
    let by = |tries: usize| {
        let found = winners
            .iter()
            .filter(|first| first.is_some_and(|it| it < tries));
        found.count() as f64 / runs as f64
    };
    Ok(Again {
        runs,
        false_winners: std::array::from_fn(|index| by(index + 1)),
    })
}

impl Again {
    /// The exact share after this number of independent tries.
    fn exact(tries: usize) -> f64 {
        let none: f64 = (1..=tries).map(|k| 1.0 - ERROR * share_of_try(k)).product();
        1.0 - none
    }

    /// The broken promises. The promise: all tries together have the error of one. A much lower error fails too.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        (1..=TRIES)
            .zip(self.false_winners)
            .filter_map(|(tries, found)| {
                let exact = Self::exact(tries);
                let room = room(exact, self.runs, FALSE_WINNERS_MARGIN);
                let (low, high) = around(exact, FALSE_WINNERS_MARGIN + room);
                let found_text = percent(found);
                (!(low..=high).contains(&found))
                    .then(|| format!("false winners over {tries} tries: {found_text}"))
            })
            .collect()
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(["tries", "users", "false winners", "exact", "limit"]);
        for (tries, found) in (1..=TRIES).zip(self.false_winners) {
            table.row(&[
                tries.to_string(),
                self.runs.to_string(),
                percent(found),
                percent(Self::exact(tries)),
                percent(ERROR),
            ]);
        }
        table.text()
    }
}

/// Relative standard uncertainties of the meters, with a spread of 3 % from trial to trial. The meter's part of a
/// candidate's interval is less than the trials' part, about equal to it, or far more.
const METERS: [f64; 4] = [0.003, 0.01, 0.02, 0.1];

/// The share of candidates' intervals that contain the true energy, for intervals that include the meter's accuracy.
#[derive(Clone, Debug)]
pub struct Meters {
    runs: u64,
    held: [f64; METERS.len()],
}

/// Carries out `runs` runs with each meter.
pub fn measure_meters(contest: &Contest, seed: u64, runs: u64) -> Result<Meters, Error> {
    let mut held = [0.0; METERS.len()];
    for ((number, meter), held) in (0..).zip(METERS).zip(&mut held) {
        let conditions = Conditions {
            meter,
            ..Conditions::usual(Noise::Independent, 1.0)
        };
        let reported = contest.under(conditions, METERS_SECTION + number, runs, seed)?;
        *held = share(reported.iter(), |reported| reported.candidate_held);
    }
    Ok(Meters { runs, held })
}

impl Meters {
    /// The broken promises: shares outside [`COVERAGE`].
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let (low, high) = COVERAGE;
        let room = room(ERROR, self.runs, (high - low) / 2.0);
        METERS
            .iter()
            .zip(self.held)
            .filter(|(_, held)| !(low - room..=high + room).contains(held))
            .map(|(meter, held)| {
                let (meter, held) = (percent(*meter), percent(held));
                format!("a candidate's interval holds in {held} with a meter of {meter}")
            })
            .collect()
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new(["meter's standard uncertainty", "runs", "candidate held"]);
        for (meter, held) in METERS.iter().zip(self.held) {
            table.row(&[percent(*meter), self.runs.to_string(), percent(held)]);
        }
        table.text()
    }
}

/// Void attempts by their dependence on the outcome, with their names in the table.
const VOIDS: [(&str, Voids); 3] = [
    ("whatever they show", Voids::Independent),
    ("the least 40 % of one candidate", Voids::Least(0.4)),
    ("the least 30 % of both", Voids::LeastOfBoth(0.3)),
];

/// One row of [`Discarded`].
#[derive(Clone, Debug)]
struct Discard {
    name: &'static str,
    void_share: f64,
    mean_bias: f64,
    false_winners: f64,
    candidate_held: f64,
    noted: f64,
}

/// The effect of void attempts that depend on the outcome, and the share of runs whose status notes them.
#[derive(Clone, Debug)]
pub struct Discarded {
    runs: u64,
    rows: Vec<Discard>,
}

/// Carries out `runs` runs of equal candidates with each kind of void attempts.
pub fn measure_voids(contest: &Contest, seed: u64, runs: u64) -> Result<Discarded, Error> {
    let mut rows = Vec::new();
    for (number, (name, voids)) in (0..).zip(VOIDS) {
        let conditions = Conditions {
            voids,
            ..Conditions::usual(Noise::Independent, 1.0)
        };
        let reported = contest.under(conditions, VOIDS_SECTION + number, runs, seed)?;
        let (void, all) = reported.iter().fold((0, 0), |(void, all), reported| {
            (void + reported.voids.0, all + reported.voids.1)
        });
        rows.push(Discard {
            name,
            void_share: void as f64 / all as f64,
            mean_bias: reported.iter().map(|reported| reported.bias).sum::<f64>()
                / reported.len() as f64,
            false_winners: share(reported.iter(), |reported| reported.winner.is_some()),
            candidate_held: share(reported.iter(), |reported| reported.candidate_held),
            noted: share(reported.iter(), |reported| reported.is_noted),
        });
    }
    Ok(Discarded { runs, rows })
}

impl Discarded {
    /// The broken promises. The promise: the status notes void attempts that depend on the outcome.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let least = NOTED - room(NOTED, self.runs, 0.0);
        self.rows
            .iter()
            .skip(1)
            .filter(|row| row.noted.is_nan() || row.noted < least)
            .map(|row| {
                let noted = percent(row.noted);
                format!("void attempts, {}: noted in {noted}", row.name)
            })
            .collect()
    }

    /// The section as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = Table::new([
            "void attempts",
            "runs",
            "share",
            "ratio off by",
            "false winners",
            "candidate held",
            "noted",
        ]);
        for row in &self.rows {
            table.row(&[
                row.name.to_owned(),
                self.runs.to_string(),
                percent(row.void_share),
                format!("{:+.2} %", 100.0 * row.mean_bias),
                percent(row.false_winners),
                percent(row.candidate_held),
                percent(row.noted),
            ]);
        }
        table.text()
    }
}
