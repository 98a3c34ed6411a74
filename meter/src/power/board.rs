//! Models of boards: power as a straight line of CPU use.

use std::fmt::Write as _;

use super::{BOARD_ZONE, Source, SourceProvenance};
use frugality_measure::attribution::Interval;
use frugality_measure::model::{LinearModel, ModelUncertainty, Parts};

/// Name of the board whose two watts the user states.
pub(crate) const GENERIC: &str = "generic";

/// A board whose power was measured idle and with all cores busy.
#[derive(Debug)]
pub(crate) struct Board {
    /// Value of `--board`.
    pub(crate) name: &'static str,
    /// Full name.
    pub(crate) title: &'static str,
    /// Beginning of the board's name in the kernel's device tree.
    pub(crate) device_tree: &'static str,
    /// Idle power, in watts.
    pub(crate) idle_watts: f64,
    /// Power with every core busy, in watts.
    pub(crate) full_watts: f64,
    /// Cores that were busy at `full_watts`.
    pub(crate) cores: u32,
    /// Relative standard uncertainties of the two watts.
    pub(crate) uncertainty: ModelUncertainty,
    /// Publication of the measurement.
    pub(crate) source: &'static str,
}

impl Board {
    /// Slope of the model in watts per busy CPU: (full − idle) / cores.
    pub(crate) fn watts_per_cpu(&self) -> f64 {
        (self.full_watts - self.idle_watts) / f64::from(self.cores)
    }

    pub(crate) fn line(&self) -> LinearModel {
        LinearModel {
            idle_watts: self.idle_watts,
            watts_per_cpu: self.watts_per_cpu(),
            uncertainty: Some(self.uncertainty),
        }
    }

    /// Whether the board has this name in the kernel's device tree, such as `Raspberry Pi 4 Model B Rev 1.2`.
    pub(crate) fn is_named(&self, model: &str) -> bool {
        model
            .strip_prefix(self.device_tree)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(" Rev"))
    }
}

/// The same share for both watts.
pub(crate) const fn both(share: f64) -> ModelUncertainty {
    ModelUncertainty {
        idle_watts: share,
        watts_per_cpu: share,
    }
}

const PI_DRAMBLE: &str = "J. Geerling, Raspberry Pi Dramble, \"Power Consumption Benchmarks\": idle, and 4 busy cores (stress --cpu 4)";

/// The boards known by name. Two boards of the same model differ by tens of percent, depending on supply,
/// peripherals and revision. The table is for nodes without an instrument.
///
/// The uncertainties are judgements, not calibrations. Each is half of the difference between two
/// publications in idle watts and in watts per CPU, over their mean, and never below 15 %. The other
/// publication is Joular power models (github.com/joular/powermodels). It gives for idle to full load 1.4–2.4
/// W for a 2B, 1.5–4.6 W for a 3B, 2.5–5.3 W for a 3B+ and 3.0–6.4 or 3.4–6.8 W for a 4B. If there is only
/// one publication, the uncertainty is 20 %.
pub(crate) const BOARDS: &[Board] = &[
    Board {
        name: "pi-zero-2w",
        title: "Raspberry Pi Zero 2 W",
        device_tree: "Raspberry Pi Zero 2 W",
        idle_watts: 0.5,
        full_watts: 2.3,
        cores: 4,
        uncertainty: both(0.2),
        source: "J. Geerling, \"Disabling cores to reduce the Pi Zero 2 W's power consumption by half\", 2021: 100 mA idle, 2.3 W with stress-ng -c 4, by a USB meter",
    },
    Board {
        name: "pi-2b",
        title: "Raspberry Pi 2 Model B",
        device_tree: "Raspberry Pi 2 Model B",
        idle_watts: 3.33,
        full_watts: 4.8,
        cores: 4,
        uncertainty: ModelUncertainty {
            idle_watts: 0.41,
            watts_per_cpu: 0.19,
        },
        source: "P. Montens, \"Erlang: cluster ARM Pi2 contre une VM Xeon\", 2016: idle and full load, slightly overclocked",
    },
    Board {
        name: "pi-3b",
        title: "Raspberry Pi 3 Model B",
        device_tree: "Raspberry Pi 3 Model B",
        idle_watts: 1.4,
        full_watts: 3.7,
        cores: 4,
        uncertainty: both(0.15),
        source: PI_DRAMBLE,
    },
    Board {
        name: "pi-3b-plus",
        title: "Raspberry Pi 3 Model B+",
        device_tree: "Raspberry Pi 3 Model B Plus",
        idle_watts: 1.9,
        full_watts: 5.1,
        cores: 4,
        uncertainty: both(0.15),
        source: PI_DRAMBLE,
    },
    Board {
        name: "pi-4b",
        title: "Raspberry Pi 4 Model B",
        device_tree: "Raspberry Pi 4 Model B",
        idle_watts: 2.7,
        full_watts: 6.4,
        cores: 4,
        uncertainty: both(0.15),
        source: PI_DRAMBLE,
    },
    Board {
        name: "pi-5b",
        title: "Raspberry Pi 5 Model B",
        device_tree: "Raspberry Pi 5 Model B",
        idle_watts: 4.4,
        full_watts: 7.86,
        cores: 4,
        uncertainty: both(0.2),
        source: "A. Noureddine, Joular power models (github.com/joular/powermodels), rbp5b1.0-64: its straight line at 0 and 100 % CPU; its polynomial disagrees near idle",
    },
];

/// The board with this name in the kernel's device tree.
pub(crate) fn by_device_tree(model: &str) -> Option<&'static Board> {
    BOARDS.iter().find(|board| board.is_named(model))
}

/// The boards' names, for people.
pub(crate) fn known_boards() -> String {
    BOARDS
        .iter()
        .map(|board| board.name)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The board of this name.
pub(crate) fn by_name(name: &str) -> Option<&'static Board> {
    BOARDS.iter().find(|board| board.name == name)
}

/// The table that `frugality-meter boards` prints.
pub(crate) fn boards_table() -> String {
    let mut table = String::from(
        "Modelled power: P = idle watts + watts per CPU x (CPU-seconds used per second)\n\n",
    );
    let _ = writeln!(
        table,
        "{:<12} {:<24} {:>6} {:>5} {:>7} {:>6} {:>10} {:>5}  SOURCE",
        "BOARD", "", "IDLE W", "±", "FULL W", "CORES", "W PER CPU", "±"
    );
    for board in BOARDS {
        let _ = writeln!(
            table,
            "{:<12} {:<24} {:>6} {:>3.0} % {:>7} {:>6} {:>10.4} {:>3.0} %  {}",
            board.name,
            board.title,
            board.idle_watts,
            board.uncertainty.idle_watts * 100.0,
            board.full_watts,
            board.cores,
            board.watts_per_cpu(),
            board.uncertainty.watts_per_cpu * 100.0,
            board.source
        );
    }
    let _ = writeln!(
        table,
        "{:<12} {:<24} {:>6} {:>5} {:>7} {:>6} {:>10} {:>5}  yours: --idle-watts and --watts-per-cpu; ± unknown unless you state it",
        GENERIC, "any other board", "-", "-", "-", "-", "-", "-"
    );
    table.push_str("\n±: relative standard uncertainty of the watts before it\n");
    table
}

/// P = `idle_watts` + `watts_per_cpu` × (ΔCPU / Δt), integrated exactly. The energy of an interval depends
/// only on its length and its CPU time. The model therefore misses no load between two readings, at any
/// length of the interval.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoardModel {
    board: String,
    line: LinearModel,
    cpus: u32,
}

impl BoardModel {
    /// A model of a node with `cpus` CPUs. Both coefficients must be finite and not negative.
    pub(crate) fn new(board: &str, line: LinearModel, cpus: u32) -> Self {
        Self {
            board: board.to_owned(),
            line,
            cpus,
        }
    }
}

impl BoardModel {
    /// The source of this model's joules, without the node's own settings.
    pub(crate) fn source(&self) -> Source {
        let line = self.line;
        Source {
            name: "board-model",
            provenance: SourceProvenance::Modelled,
            board: self.board.clone(),
            path: format!("model:{}", self.board),
            zone: BOARD_ZONE,
            max_watts: Some(line.idle_watts + line.watts_per_cpu * f64::from(self.cpus)),
            relative_uncertainty: line.uncertainty.map(|known| known.largest()),
            fixed_uncertainty_watts: 0.0,
            resolution_joules: None,
            model: Some(line),
        }
    }

    /// Energy that the node drew in the interval, in joules, never negative.
    pub(crate) fn joules(&self, interval: Interval) -> f64 {
        self.line.joules(Parts {
            idle_seconds: interval.elapsed_seconds,
            cpu_seconds: interval.node_cpu_seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pi_2b_draws_its_measured_power_idle_and_fully_busy() {
        let pi = BOARDS.iter().find(|board| board.name == "pi-2b").unwrap();
        let model = BoardModel::new(pi.name, pi.line(), 4);
        let second_with = |node_cpu_seconds| Interval {
            elapsed_seconds: 1.0,
            node_cpu_seconds,
        };
        assert!((model.joules(second_with(0.0)) - 3.33).abs() < 1e-12);
        assert!((model.joules(second_with(4.0)) - 4.8).abs() < 1e-12);
        let source = model.source();
        assert!((source.max_watts.unwrap() - 4.8).abs() < 1e-12);
        // The energy is at least as certain as the less certain of the model's two watts.
        assert_eq!(source.relative_uncertainty, Some(0.41));
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
            let known = board.uncertainty;
            for share in [known.idle_watts, known.watts_per_cpu] {
                assert!((0.15..=1.0).contains(&share), "{}: {share}", board.name);
                assert!(row.contains(&format!("{:.0} %", share * 100.0)));
            }
        }
        assert!(table.contains("--idle-watts") && table.contains("± unknown unless you state it"));
    }

    #[test]
    fn a_board_is_known_by_the_whole_name_in_its_device_tree() {
        let name = |model| by_device_tree(model).map(|board| board.name);
        assert_eq!(name("Raspberry Pi 3 Model B Rev 1.2"), Some("pi-3b"));
        assert_eq!(
            name("Raspberry Pi 3 Model B Plus Rev 1.3"),
            Some("pi-3b-plus")
        );
        assert_eq!(name("Raspberry Pi Zero 2 W Rev 1.0"), Some("pi-zero-2w"));
        assert_eq!(name("Raspberry Pi 5 Model B Rev 1.0"), Some("pi-5b"));
        assert_eq!(name("Raspberry Pi Compute Module 4 Rev 1.0"), None);
    }
}
