//! The power and CPU time of each actor on the node, with their times.
//!
//! All levels differ, so the size of an error shows which actor's energy a wrong figure includes.

use std::collections::BTreeMap;

use crate::{
    MILLISECOND, SECOND, Time,
    cases::{Asked, Case, Edges, Meter, Trouble},
    load::{Amount, Candidate, Run},
    schedule::{Chance, Schedule, TRIALS},
};

/// CPUs of the measured node.
pub(crate) const CPUS: u32 = 4;
/// Status codes that count as success.
pub(crate) const EXPECTED_STATUS: [u16; 1] = [200];
/// Rest between the end of all load and the idle baseline.
pub(crate) const SETTLE: Time = 3 * SECOND;

pub(crate) const DATABASE: &str = "uid-database";
pub(crate) const NEIGHBOUR: &str = "uid-neighbour";
/// CPU time outside pods.
pub(crate) const SYSTEM: &str = "system";

const IDLE_MILLIWATTS: i64 = 3000;
/// Increase of the node's idle power from one trial to the next.
const IDLE_STEP_MILLIWATTS: i64 = 170;
/// Increase of the node's idle power from before a load to after it.
const WARMTH_MILLIWATTS: i64 = 20;
const DATABASE_MILLIWATTS: i64 = 370;
const INJECTOR_MILLIWATTS: i64 = 11_000;
const NEIGHBOUR_MILLIWATTS: i64 = 29_000;
const WARM_UP_MILLIWATTS: i64 = 50_000;
const TAIL_MILLIWATTS: i64 = 70_000;

/// Short bursts in the measured run, because samples of power must not be enough to compute energy.
const RIPPLE_MILLIWATTS: i64 = 2000;
const RIPPLE_LENGTH: Time = 50 * MILLISECOND;
const RIPPLE_PERIOD: Time = 437 * MILLISECOND;

const CANDIDATES: [Candidate; 2] = [
    Candidate {
        name: "a",
        milliwatts: 1000,
        latency: 50 * MILLISECOND,
        error_latency: 15 * MILLISECOND,
        server_cpu: 18 * MILLISECOND,
        error_cpu: 9 * MILLISECOND,
        database_cpu: 6 * MILLISECOND,
    },
    Candidate {
        name: "b",
        milliwatts: 1600,
        latency: 80 * MILLISECOND,
        error_latency: 25 * MILLISECOND,
        server_cpu: 33 * MILLISECOND,
        error_cpu: 14 * MILLISECOND,
        database_cpu: 7 * MILLISECOND,
    },
];

/// The power and CPU use that one actor adds for a time.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) what: &'static str,
    pub(crate) from: Time,
    pub(crate) to: Time,
    /// Power that the act adds to the node's.
    pub(crate) milliwatts: i64,
    /// CPU time that pods or the system use: nanoseconds per second, by UID.
    pub(crate) nanocpus: BTreeMap<String, i64>,
}

/// A pod on the measured node, with its start and end.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) namespace: &'static str,
    pub(crate) from: Time,
    pub(crate) to: Time,
}

/// One trial.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) candidate: Candidate,
    /// Start and end of the operator's session. It takes the trial's readings between these times.
    pub(crate) session: [Time; 2],
    pub(crate) candidate_pods: Vec<String>,
    pub(crate) database_pods: Vec<String>,
    pub(crate) injector_pods: Vec<String>,
    pub(crate) idle_before: [Time; 2],
    pub(crate) warm_up: Run,
    pub(crate) measured: Run,
    pub(crate) tail: Run,
    /// Whether the case's trouble happens in this trial.
    pub(crate) is_troubled: bool,
}

/// A whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) acts: Vec<Act>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) trials: Vec<Trial>,
}

impl Script {
    pub(crate) fn of(case: &Case, schedule: &Schedule) -> Self {
        let mut script = Self::default();
        let mut chance = Chance::new(case.seed() ^ 1);
        let mut now = 2 * SECOND;
        for number in 0..TRIALS {
            now = script.trial(case, schedule, number, now, &mut chance);
        }
        let always = |milli: i64| milli * MILLISECOND;
        let mut idle = vec![(SYSTEM, always(60)), (NEIGHBOUR, always(30))];
        if case.database_on_node {
            idle.push((DATABASE, always(10)));
            script.pod(DATABASE, "contacts-1", "shop", [0, now]);
        }
        script.pod(NEIGHBOUR, "neighbour", "elsewhere", [0, now]);
        script.act("idle", [0, now], IDLE_MILLIWATTS, &idle);
        script
    }

    /// Adds a trial that begins at `begin`. Returns the earliest start of the next trial.
    fn trial(
        &mut self,
        case: &Case,
        schedule: &Schedule,
        number: usize,
        begin: Time,
        chance: &mut Chance,
    ) -> Time {
        let candidate = CANDIDATES[[0, 1, 1, 0][number]];
        let is_troubled = number == 1 && case.trouble.is_some();
        let times = Timeline::of(case, schedule, &candidate, is_troubled, begin, chance);
        let server = format!("uid-{}-{number}", candidate.name);
        let name = format!("{}-{number}", candidate.name);
        let life = [begin + SECOND / 2, times.next - SECOND];
        self.pod(&server, &name, "shop", life);
        self.at_rest(case, &times, number);
        self.under_load(case, &times, &candidate, &server);
        let injector = format!("uid-injector-{number}");
        if case.injector_on_node {
            let load = times.load;
            let life = [load[0] - SECOND, load[1] + SECOND / 2];
            self.pod(&injector, &format!("injector-{number}"), "shop", life);
            let cpu = [(injector.as_str(), 600 * MILLISECOND)];
            self.act("injector", load, INJECTOR_MILLIWATTS, &cpu);
        }
        let Timeline {
            idle_before,
            warm_up,
            measured,
            tail,
            next,
            ..
        } = times;
        let if_there = |is_there: bool, uid: &str| Vec::from_iter(is_there.then(|| uid.to_owned()));
        self.trials.push(Trial {
            candidate,
            session: [begin, next],
            candidate_pods: vec![server],
            database_pods: if_there(case.database_on_node, DATABASE),
            injector_pods: if_there(case.injector_on_node, &injector),
            idle_before,
            warm_up,
            measured,
            tail,
            is_troubled,
        });
        next
    }

    /// Adds the node's power without load, and the neighbour's acts next to both idle baselines.
    fn at_rest(&mut self, case: &Case, times: &Timeline, number: usize) {
        let Timeline {
            begin,
            before,
            load,
            after,
            next,
            ..
        } = *times;
        let more = i64::try_from(number).unwrap() * IDLE_STEP_MILLIWATTS;
        self.act("footprint", [begin, next], more, &[]);
        self.act("warmth", [load[1], next], WARMTH_MILLIWATTS, &[]);
        let settling = if load_shows_in_power(case) {
            [load[1], load[1]]
        } else {
            [load[1], after[0]]
        };
        for span in [
            [begin, before[0]],
            [before[1], load[0] - SECOND / 2],
            settling,
            [after[1], after[1] + 2 * SECOND],
        ] {
            let cpu = [(NEIGHBOUR, 1_500 * MILLISECOND)];
            self.act("neighbour", span, NEIGHBOUR_MILLIWATTS, &cpu);
        }
    }

    /// Adds the acts of the candidate and the database.
    fn under_load(&mut self, case: &Case, times: &Timeline, candidate: &Candidate, server: &str) {
        let Timeline {
            load,
            steady,
            measured,
            tail,
            ..
        } = times;
        let of_both = |server_cpu: i64, database_cpu: i64| {
            let mut cpu = vec![(server, server_cpu)];
            if case.database_on_node {
                cpu.push((DATABASE, database_cpu));
            }
            cpu
        };
        let used_by = |run: &Run| {
            of_both(
                run.nanocpus(|one| one.server_cpu),
                run.nanocpus(|one| one.database_cpu),
            )
        };
        let starting = of_both(2200 * MILLISECOND, 700 * MILLISECOND);
        let before = [load[0], steady[0]];
        self.act("warm-up", before, WARM_UP_MILLIWATTS, &starting);
        let used = used_by(measured);
        self.act("plateau", *steady, candidate.milliwatts, &used);
        if case.database_on_node {
            self.act("database", *steady, DATABASE_MILLIWATTS, &[]);
        }
        let milliwatts = if load_shows_in_power(case) {
            candidate.milliwatts
        } else {
            TAIL_MILLIWATTS
        };
        self.act("tail", [steady[1], load[1]], milliwatts, &used_by(tail));
        let margin = 3 * SECOND / 2;
        let mut ripple = measured.start() + margin;
        while ripple + RIPPLE_LENGTH < measured.end() - margin {
            let span = [ripple, ripple + RIPPLE_LENGTH];
            self.act("ripple", span, RIPPLE_MILLIWATTS, &[]);
            ripple += RIPPLE_PERIOD;
        }
    }

    fn act(
        &mut self,
        what: &'static str,
        [from, to]: [Time; 2],
        milliwatts: i64,
        cpu: &[(&str, i64)],
    ) {
        if from < to {
            let nanocpus = cpu.iter().map(|(who, rate)| ((*who).to_owned(), *rate));
            self.acts.push(Act {
                what,
                from,
                to,
                milliwatts,
                nanocpus: nanocpus.collect(),
            });
        }
    }

    fn pod(&mut self, uid: &str, name: &str, namespace: &'static str, [from, to]: [Time; 2]) {
        self.pods.push(Pod {
            uid: uid.to_owned(),
            name: name.to_owned(),
            namespace,
            from,
            to,
        });
    }
}

/// Whether the product finds the end of the load in the node's power. It does this for Kepler, which serves no CPU
/// time, if the injector is on the node. Tail and neighbour must not hide the end of the load then.
fn load_shows_in_power(case: &Case) -> bool {
    case.meter == Meter::Kepler && case.injector_on_node
}

/// The times of a trial's phases.
#[derive(Clone, Debug)]
struct Timeline {
    begin: Time,
    idle_before: [Time; 2],
    /// Rest around the first idle baseline.
    before: [Time; 2],
    warm_up: Run,
    measured: Run,
    tail: Run,
    /// From the first request to the last answer.
    load: [Time; 2],
    /// Steady power around the measured run.
    steady: [Time; 2],
    /// Rest around the second idle baseline.
    after: [Time; 2],
    next: Time,
}

impl Timeline {
    fn of(
        case: &Case,
        schedule: &Schedule,
        candidate: &Candidate,
        is_troubled: bool,
        begin: Time,
        chance: &mut Chance,
    ) -> Self {
        // `guard`: the time before and after a window with steady power. `nudge`: the time from a known reading to the
        // start of the window.
        let (guard, nudge) = match case.edges {
            Edges::Tight => (0, 100 * MILLISECOND),
            Edges::Wide => (3 * SECOND / 2, chance.time(SECOND)),
        };
        let quiet =
            |[from, to]: [Time; 2]| [schedule.before(from - guard), schedule.after(to + guard)];
        let idle_length = match (case.interval_milliseconds, case.edges) {
            (10_000, _) => 29_800 * MILLISECOND,
            (_, Edges::Tight) => 9_800 * MILLISECOND,
            (_, Edges::Wide) => 10 * SECOND,
        };
        let idle_from = schedule.after(begin + 6 * SECOND) + nudge;
        let idle_before = [idle_from, idle_from + idle_length];
        let before = quiet(idle_before);

        let run = |amount, start, chance: &mut Chance| {
            Run::new(candidate, amount, case.errors_percent, start, chance)
        };
        let warm_up = run(Amount::Duration(5 * SECOND), 0, chance);
        let length = warm_up.end();
        let start = schedule.after(before[1] + 3 * SECOND + length) + nudge;
        let warm_up = warm_up.shifted(start - 30 * MILLISECOND - length);
        let measured = run(asked(case, is_troubled), start, chance);
        let end = measured.end();
        let tail = run(Amount::Duration(3 * SECOND), end + 25 * MILLISECOND, chance);
        let load = [warm_up.start(), tail.end()];
        let steady = quiet([start, end]);

        let idle_start = load[1] + SETTLE;
        let after = quiet([idle_start, idle_start + idle_length]);
        Self {
            begin,
            idle_before,
            before,
            warm_up,
            measured,
            tail,
            load,
            steady: [steady[0].max(load[0]), steady[1].min(load[1])],
            after: [after[0].max(load[1]), after[1]],
            next: after[1] + 5 * SECOND,
        }
    }
}

/// The amount of the measured run. It is a little shorter than a whole number of readings, so a reading also follows
/// soon after its end.
fn asked(case: &Case, is_troubled: bool) -> Amount {
    let usual = 20_700 * MILLISECOND;
    match case.asked {
        _ if is_troubled && case.trouble == Some(Trouble::ShortRun) => {
            Amount::Duration(14_700 * MILLISECOND)
        }
        Asked::Duration => Amount::Duration(usual),
        Asked::Count => Amount::CountFor(usual),
    }
}
