//! Where the node's power comes from.
//!
//! [`PowerSource`] is the seam: whatever can say how much energy the node drew in an interval.
//! There is one so far, the [`BoardModel`]: power as a straight line of CPU use.

use std::fmt::Write as _;

use crate::attribution::Interval;

/// How far a source's joules can be trusted: the provenance of the node's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provenance {
    /// Computed from CPU use.
    Modelled,
}

impl Provenance {
    /// The word that readers of the exposition look for.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Modelled => "Modelled",
        }
    }
}

/// What joules come from, for the reader of the exposition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// Kind of source.
    pub(crate) name: &'static str,
    /// Provenance of the joules.
    pub(crate) provenance: Provenance,
    /// Board that is measured.
    pub(crate) board: String,
    /// Kepler's `path` label: what the energy is read from.
    pub(crate) path: String,
    /// The most that the source can report for the node over time, in watts.
    pub(crate) max_watts: f64,
}

/// Something that knows the node's energy.
pub(crate) trait PowerSource {
    /// What it is.
    fn source(&self) -> Source;
    /// Energy that the node drew in the interval, in joules, never negative.
    fn joules(&mut self, interval: Interval) -> f64;
}

/// Name of the board whose two numbers the user gives.
pub(crate) const GENERIC: &str = "generic";

/// A board whose power was measured idle and with all cores busy.
#[derive(Debug)]
pub(crate) struct Board {
    /// Value of `--board`.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) title: &'static str,
    /// Power with nothing to do, in watts.
    pub(crate) idle_watts: f64,
    /// Power with every core busy, in watts.
    pub(crate) full_watts: f64,
    /// Cores that were busy at `full_watts`.
    pub(crate) cores: u32,
    /// Who measured it.
    pub(crate) source: &'static str,
}

impl Board {
    /// Slope of the model in watts per busy CPU: (full − idle) / cores.
    pub(crate) fn watts_per_cpu(&self) -> f64 {
        (self.full_watts - self.idle_watts) / f64::from(self.cores)
    }
}

const PI_DRAMBLE: &str = "J. Geerling, Raspberry Pi Dramble, \"Power Consumption Benchmarks\": idle, and 4 busy cores (stress --cpu 4)";

/// The boards known by name. Two boards of one model differ by tens of percent with their
/// supply, their peripherals and their revision: the table is for lack of a meter.
pub(crate) const BOARDS: &[Board] = &[
    Board {
        name: "pi-2b",
        title: "Raspberry Pi 2 Model B",
        idle_watts: 3.33,
        full_watts: 4.8,
        cores: 4,
        source: "P. Montens, \"Erlang: cluster ARM Pi2 contre une VM Xeon\", 2016: idle and full load, slightly overclocked",
    },
    Board {
        name: "pi-3b",
        title: "Raspberry Pi 3 Model B",
        idle_watts: 1.4,
        full_watts: 3.7,
        cores: 4,
        source: PI_DRAMBLE,
    },
    Board {
        name: "pi-3b-plus",
        title: "Raspberry Pi 3 Model B+",
        idle_watts: 1.9,
        full_watts: 5.1,
        cores: 4,
        source: PI_DRAMBLE,
    },
    Board {
        name: "pi-4b",
        title: "Raspberry Pi 4 Model B",
        idle_watts: 2.7,
        full_watts: 6.4,
        cores: 4,
        source: PI_DRAMBLE,
    },
];

/// The table that `frugality-meter boards` prints.
pub(crate) fn boards_table() -> String {
    let mut table = String::from(
        "Modelled power: P = idle watts + watts per CPU x (CPU-seconds used per second)\n\n",
    );
    let _ = writeln!(
        table,
        "{:<12} {:<24} {:>6} {:>7} {:>6} {:>10}  SOURCE",
        "BOARD", "", "IDLE W", "FULL W", "CORES", "W PER CPU"
    );
    for board in BOARDS {
        let _ = writeln!(
            table,
            "{:<12} {:<24} {:>6} {:>7} {:>6} {:>10.4}  {}",
            board.name,
            board.title,
            board.idle_watts,
            board.full_watts,
            board.cores,
            board.watts_per_cpu(),
            board.source
        );
    }
    let _ = writeln!(
        table,
        "{:<12} {:<24} {:>6} {:>7} {:>6} {:>10}  yours: --idle-watts and --watts-per-cpu",
        GENERIC, "any other board", "-", "-", "-", "-"
    );
    table
}

/// P = `idle_watts` + `watts_per_cpu` × (ΔCPU / Δt), integrated exactly: the energy of an
/// interval follows from its length and its CPU time alone, so no load between two snapshots
/// is missed and the length of the interval does not matter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoardModel {
    board: String,
    idle_watts: f64,
    watts_per_cpu: f64,
    cpus: u32,
}

impl BoardModel {
    /// A model of a node with `cpus` CPUs. Both coefficients must be finite and not negative.
    pub(crate) fn new(board: &str, idle_watts: f64, watts_per_cpu: f64, cpus: u32) -> Self {
        Self {
            board: board.to_owned(),
            idle_watts,
            watts_per_cpu,
            cpus,
        }
    }
}

impl PowerSource for BoardModel {
    fn source(&self) -> Source {
        Source {
            name: "board-model",
            provenance: Provenance::Modelled,
            board: self.board.clone(),
            path: format!("model:{}", self.board),
            max_watts: self.idle_watts + self.watts_per_cpu * f64::from(self.cpus),
        }
    }

    fn joules(&mut self, interval: Interval) -> f64 {
        self.idle_watts * interval.elapsed_seconds + self.watts_per_cpu * interval.node_cpu_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pi_2b_draws_its_measured_power_idle_and_fully_busy() {
        let pi = BOARDS.iter().find(|board| board.name == "pi-2b").unwrap();
        let mut model = BoardModel::new(pi.name, pi.idle_watts, pi.watts_per_cpu(), 4);
        let second_with = |node_cpu_seconds| Interval {
            elapsed_seconds: 1.0,
            node_cpu_seconds,
        };
        assert!((model.joules(second_with(0.0)) - 3.33).abs() < 1e-12);
        assert!((model.joules(second_with(4.0)) - 4.8).abs() < 1e-12);
        assert!((model.source().max_watts - 4.8).abs() < 1e-12);
    }

    #[test]
    fn the_table_names_every_board_its_slope_and_its_source() {
        let table = boards_table();
        for board in BOARDS {
            let row = table
                .lines()
                .find(|line| line.starts_with(&format!("{} ", board.name)))
                .unwrap();
            assert!(row.contains(&format!("{:.4}", board.watts_per_cpu())));
            assert!(row.ends_with(board.source));
            assert!(board.full_watts > board.idle_watts);
        }
        assert!(table.contains("--idle-watts"));
    }
}
