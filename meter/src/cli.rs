//! The command line, and what it comes to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

use crate::power::{BOARDS, BoardModel, GENERIC};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

/// Node meter of Frugality: how much energy this node draws, and which pods use it.
#[derive(Debug, Parser)]
#[command(name = "frugality-meter", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, for a moment")]
pub(crate) enum Command {
    /// Measure this node and serve its metrics until SIGTERM.
    Run(RunArguments),
    /// Print the boards whose power is known, with the source of every number.
    Boards,
}

/// Flags of `run`; each can be an environment variable as well.
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// Name of the Kubernetes node: the `node_name` of every series.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// Address and port to serve on; 28282 is Kepler's port.
    #[arg(long, env = "FRUGALITY_METER_LISTEN", default_value = "0.0.0.0:28282")]
    listen: SocketAddr,
    /// Time between two readings, such as `500ms` or `1s`; 50ms to 60s.
    #[arg(long, env = "FRUGALITY_METER_INTERVAL", default_value = "500ms", value_parser = parse_interval)]
    interval: Duration,
    /// Where the host's cgroup file system is mounted, such as /host/sys/fs/cgroup.
    #[arg(
        long,
        env = "FRUGALITY_METER_CGROUP_FS",
        default_value = "/sys/fs/cgroup"
    )]
    cgroup_fs: PathBuf,
    /// The node's cgroup: `/` where the node is the whole machine. `{node}` stands for its name.
    #[arg(long, env = "FRUGALITY_METER_CGROUP_ROOT", default_value = "/")]
    cgroup_root: String,
    /// Kubelet's pod log directory, which the names of pods are read from.
    #[arg(
        long,
        env = "FRUGALITY_METER_POD_LOGS",
        default_value = "/var/log/pods"
    )]
    pod_logs: PathBuf,
    /// CPUs of the node [default: those that are online].
    #[arg(long, env = "FRUGALITY_METER_CPUS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: Option<u32>,
    /// Board whose power model to use: `generic`, or one that `frugality-meter boards` lists.
    #[arg(long, env = "FRUGALITY_METER_BOARD", default_value = GENERIC)]
    board: String,
    /// Power of a generic board with nothing to do, in watts.
    #[arg(long, env = "FRUGALITY_METER_IDLE_WATTS", value_parser = parse_watts)]
    idle_watts: Option<f64>,
    /// What one busy CPU of a generic board adds, in watts.
    #[arg(long, env = "FRUGALITY_METER_WATTS_PER_CPU", value_parser = parse_watts)]
    watts_per_cpu: Option<f64>,
    /// Least severe message to log: error, warn, info, debug or trace.
    #[arg(long, env = "FRUGALITY_METER_LOG_LEVEL", default_value = "info")]
    log_level: LevelFilter,
    /// Form of the log, on standard error.
    #[arg(
        long,
        env = "FRUGALITY_METER_LOG_FORMAT",
        value_enum,
        default_value = "text"
    )]
    log_format: LogFormat,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object a line.
    Json,
}

/// Flags that do not go together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The generic board has no numbers of its own.
    #[error(
        "the board `generic` needs its two numbers: write --idle-watts=<watts with nothing to do> \
         and --watts-per-cpu=<(watts with all CPUs busy - idle watts) / CPUs>, or choose a board \
         from `frugality-meter boards` with --board"
    )]
    GenericNeedsWatts,
    /// A board of the table has its own numbers.
    #[error(
        "the board `{0}` has its own watts: leave out --idle-watts and --watts-per-cpu, or write \
         --board=generic to use yours"
    )]
    BoardHasWatts(String),
    /// Not in the table.
    #[error("no board `{0}`: write --board=generic or one of {known}", known = known_boards())]
    UnknownBoard(String),
    /// The kernel does not tell.
    #[error("cannot tell how many CPUs are online: write --cpus=<number>")]
    UnknownCpus,
}

/// What the meter runs with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) node_name: String,
    pub(crate) listen: SocketAddr,
    pub(crate) interval: Duration,
    pub(crate) cgroup_fs: PathBuf,
    pub(crate) cgroup_root: String,
    pub(crate) pod_logs: PathBuf,
    pub(crate) cpus: u32,
    pub(crate) model: BoardModel,
}

impl RunArguments {
    /// Checks what one flag alone cannot tell.
    pub(crate) fn into_settings(self) -> Result<Settings, SettingsError> {
        let cpus = match self.cpus {
            Some(cpus) => cpus,
            None => online_cpus().ok_or(SettingsError::UnknownCpus)?,
        };
        let (idle_watts, watts_per_cpu) = self.watts()?;
        Ok(Settings {
            model: BoardModel::new(&self.board, idle_watts, watts_per_cpu, cpus),
            cgroup_root: self.cgroup_root.replace("{node}", &self.node_name),
            node_name: self.node_name,
            listen: self.listen,
            interval: self.interval,
            cgroup_fs: self.cgroup_fs,
            pod_logs: self.pod_logs,
            cpus,
        })
    }

    fn watts(&self) -> Result<(f64, f64), SettingsError> {
        if self.board == GENERIC {
            return self
                .idle_watts
                .zip(self.watts_per_cpu)
                .ok_or(SettingsError::GenericNeedsWatts);
        }
        let board = BOARDS
            .iter()
            .find(|board| board.name == self.board)
            .ok_or_else(|| SettingsError::UnknownBoard(self.board.clone()))?;
        if self.idle_watts.is_some() || self.watts_per_cpu.is_some() {
            return Err(SettingsError::BoardHasWatts(self.board.clone()));
        }
        Ok((board.idle_watts, board.watts_per_cpu()))
    }
}

/// Starts logging to standard error.
pub(crate) fn start_logging(arguments: &RunArguments) {
    let log = tracing_subscriber::fmt()
        .with_max_level(arguments.log_level)
        .with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

fn known_boards() -> String {
    BOARDS
        .iter()
        .map(|board| board.name)
        .collect::<Vec<_>>()
        .join(", ")
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let (number, unit_seconds) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err("write a number with its unit, such as 500ms or 1s".into()),
    };
    number
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number * unit_seconds).ok())
        .filter(|interval| (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(interval))
        .ok_or_else(|| "write a time between 50ms and 60s".into())
}

fn parse_watts(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|watts: &f64| watts.is_finite() && *watts >= 0.0)
        .ok_or_else(|| "write watts, such as 3.33".into())
}

/// Not [`std::thread::available_parallelism`]: that tells what this process may use, and its
/// container may be allowed less than the node has.
fn online_cpus() -> Option<u32> {
    count_cpus(&std::fs::read_to_string(ONLINE_CPUS).ok()?)
}

/// Counts a kernel CPU list such as `0-3,5`.
fn count_cpus(list: &str) -> Option<u32> {
    list.trim()
        .split(',')
        .map(|range| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
            to.checked_sub(from)?.checked_add(1)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power::PowerSource as _;
    use rstest::rstest;

    fn settings(flags: &[&str]) -> Result<Settings, SettingsError> {
        let line = ["frugality-meter", "run", "--node-name=pi-1", "--cpus=2"];
        let Command::Run(arguments) = Cli::parse_from(line.iter().chain(flags)).command else {
            panic!("not a run");
        };
        arguments.into_settings()
    }

    #[test]
    fn a_generic_board_must_be_given_its_watts_and_the_error_says_what_to_write() {
        let error = settings(&[]).unwrap_err().to_string();
        assert!(error.contains("--idle-watts") && error.contains("--watts-per-cpu"));
        assert!(settings(&["--idle-watts=2"]).is_err());
        let model = settings(&["--idle-watts=2", "--watts-per-cpu=3"])
            .unwrap()
            .model;
        assert!((model.source().max_watts - 8.0).abs() < 1e-12);
    }

    #[test]
    fn a_known_board_has_its_own_watts() {
        let source = settings(&["--board=pi-2b"]).unwrap().model.source();
        assert_eq!(source.path, "model:pi-2b");
        assert!((source.max_watts - (3.33 + 2.0 * 0.3675)).abs() < 1e-12);
        assert_eq!(
            settings(&["--board=pi-2b", "--idle-watts=2"]),
            Err(SettingsError::BoardHasWatts("pi-2b".into()))
        );
        let unknown = settings(&["--board=pi-9"]).unwrap_err().to_string();
        assert!(unknown.contains("pi-2b") && unknown.contains("pi-9"));
    }

    #[test]
    fn the_node_s_name_can_be_part_of_its_cgroup() {
        let settings = settings(&["--board=pi-2b", "--cgroup-root=/lab/{node}"]).unwrap();
        assert_eq!(settings.cgroup_root, "/lab/pi-1");
    }

    #[rstest]
    #[case("500ms", Some(500))]
    #[case("1.5s", Some(1500))]
    #[case("500", None)]
    #[case("10ms", None)]
    #[case("2m", None)]
    #[case("-1s", None)]
    #[case("NaNs", None)]
    fn intervals_have_a_unit_and_bounds(#[case] text: &str, #[case] milliseconds: Option<u64>) {
        assert_eq!(
            parse_interval(text).ok(),
            milliseconds.map(Duration::from_millis)
        );
    }

    #[rstest]
    #[case("0-3\n", Some(4))]
    #[case("0", Some(1))]
    #[case("0-1,3,6-7\n", Some(5))]
    #[case("", None)]
    #[case("3-1", None)]
    fn online_cpus_are_counted(#[case] list: &str, #[case] cpus: Option<u32>) {
        assert_eq!(count_cpus(list), cpus);
    }
}
