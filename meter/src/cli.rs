//! The command line, and the settings that follow from it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use sha2::{Digest as _, Sha256};
use tracing_subscriber::filter::LevelFilter;

use crate::power::board::GENERIC;
use crate::power::choice::Surroundings;
use crate::power::config::{ConfigError, NodePower, PowerConfig, SourceConfig};

const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// Kepler refreshes every few seconds or with a scrape. The counter must have moved on at each refresh.
const LONGEST_BRIDGE_INTERVAL: Duration = Duration::from_millis(100);
const PROCFS: &str = "/proc";
const ONLINE_CPUS: &str = "/sys/devices/system/cpu/online";

/// Node meter of Frugality: how much energy this node draws, and which pods use it.
#[derive(Debug, Parser)]
#[command(name = "frugality-meter", version, about)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: MeterCommand,
}

/// The command to execute.
#[derive(Debug, Subcommand)]
pub(crate) enum MeterCommand {
    /// Measure this node and serve its metrics until SIGTERM.
    Run(MeterArguments),
    /// Report what this node can measure, and the chart's values for it.
    Probe(NodeArguments),
    /// Fit a board's watts to the attached instrument, while you load the node and let it idle.
    Calibrate(CalibrateArguments),
    /// Print the boards whose power is known, with the source of every number.
    Boards,
}

/// Flags of `run`. Each flag can be an environment variable as well.
#[derive(Args, Debug)]
pub(crate) struct MeterArguments {
    #[command(flatten)]
    node: NodeArguments,
    /// Address and port to serve on; 28282 is Kepler's port.
    #[arg(long, env = "FRUGALITY_METER_LISTEN", default_value = "[::]:28282")]
    listen: SocketAddr,
    /// Directory in which to write a powercap tree. Stock Kepler reads the tree as RAPL if Kepler's
    /// host.sysfs is this directory. Needs an interval of 100ms or less.
    #[arg(long, env = "FRUGALITY_METER_BRIDGE")]
    bridge: Option<PathBuf>,
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

/// Flags of `calibrate`.
#[derive(Args, Debug)]
pub(crate) struct CalibrateArguments {
    #[command(flatten)]
    node: NodeArguments,
    /// How long to measure, such as 600s or 3600s.
    #[arg(long, default_value = "600s", value_parser = parse_duration)]
    pub(crate) duration: Duration,
}

/// Flags about the node. Each flag can be an environment variable as well.
#[derive(Args, Debug)]
pub(crate) struct NodeArguments {
    /// Name of the Kubernetes node: the `node_name` of every series.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
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
    /// The node's cgroup: `/` unless several nodes share one cgroup file system. `{node}` is replaced by the node's name.
    #[arg(long, env = "FRUGALITY_METER_CGROUP_ROOT", default_value = "/")]
    cgroup_root: String,
    /// Kubelet's pod log directory. The meter reads the names of pods from it.
    #[arg(
        long,
        env = "FRUGALITY_METER_POD_LOGS",
        default_value = "/var/log/pods"
    )]
    pod_logs: PathBuf,
    /// Where the host's sysfs is mounted, such as /host/sys.
    #[arg(long, env = "FRUGALITY_METER_SYSFS", default_value = "/sys")]
    sysfs: PathBuf,
    /// Where the devices are, such as /dev/vcio_gencmd of a Raspberry Pi 5.
    #[arg(long, env = "FRUGALITY_METER_DEV", default_value = "/dev")]
    dev: PathBuf,
    /// CPUs of the node [default: the number of online CPUs].
    #[arg(long, env = "FRUGALITY_METER_CPUS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: Option<u32>,
    /// JSON file with each node's power source; see docs/power-on-a-pi.md. A node that the file does not name
    /// uses the file's `default`, and without a default the board's model.
    #[arg(long, env = "FRUGALITY_METER_POWER_CONFIG")]
    power_config: Option<PathBuf>,
    /// Board whose power model to use: `generic`, or one that `frugality-meter boards` lists.
    #[arg(long, env = "FRUGALITY_METER_BOARD", default_value = GENERIC)]
    board: String,
    /// Idle power of a generic board, in watts.
    #[arg(long, env = "FRUGALITY_METER_IDLE_WATTS", value_parser = parse_watts)]
    idle_watts: Option<f64>,
    /// Power that one busy CPU of a generic board adds, in watts.
    #[arg(long, env = "FRUGALITY_METER_WATTS_PER_CPU", value_parser = parse_watts)]
    watts_per_cpu: Option<f64>,
    /// Relative standard uncertainty of the board's idle watts, such as 0.1 [default: the value in the table
    /// of boards; unknown for `generic`].
    #[arg(long, env = "FRUGALITY_METER_IDLE_WATTS_RELATIVE_UNCERTAINTY", value_parser = parse_share)]
    idle_watts_relative_uncertainty: Option<f64>,
    /// Relative standard uncertainty of the board's watts per CPU. Write both uncertainties or neither.
    #[arg(long, env = "FRUGALITY_METER_WATTS_PER_CPU_RELATIVE_UNCERTAINTY", value_parser = parse_share)]
    watts_per_cpu_relative_uncertainty: Option<f64>,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// One line of text per entry.
    Text,
    /// One JSON object per line.
    Json,
}

/// Why flags do not fit together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeterSettingsError {
    /// The kernel does not report the number of CPUs.
    #[error("the number of online CPUs is unknown: write --cpus=<number>")]
    UnknownCpus,
    /// The interval is so long that Kepler would see an unchanged counter.
    #[error(
        "--bridge needs --interval=100ms or less: Kepler must never see an unchanged energy counter"
    )]
    BridgeTooSlow,
    /// The power configuration is unusable.
    #[error("--power-config: {0}")]
    Power(#[from] ConfigError),
}

/// The settings that the meter runs with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeterSettings {
    pub(crate) node_name: String,
    pub(crate) listen: SocketAddr,
    pub(crate) bridge: Option<PathBuf>,
    pub(crate) interval: Duration,
    pub(crate) cgroup_fs: PathBuf,
    pub(crate) cgroup_root: String,
    pub(crate) pod_logs: PathBuf,
    pub(crate) power: NodePower,
    pub(crate) surroundings: Surroundings,
}

impl MeterSettings {
    /// 16 digits that are different for other settings that change joules. The operator never averages joules of different
    /// settings.
    pub(crate) fn digest(&self) -> String {
        let node = (self.surroundings.cpus, self.interval, &self.cgroup_root);
        let digest = Sha256::digest(format!("{:?} {node:?}", self.power));
        digest.iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl MeterArguments {
    /// Checks the flags together.
    pub(crate) fn into_settings(self) -> Result<MeterSettings, MeterSettingsError> {
        if self.bridge.is_some() && self.node.interval > LONGEST_BRIDGE_INTERVAL {
            return Err(MeterSettingsError::BridgeTooSlow);
        }
        Ok(MeterSettings {
            listen: self.listen,
            bridge: self.bridge,
            ..self.node.into_settings()?
        })
    }
}

impl CalibrateArguments {
    /// Checks the flags together.
    pub(crate) fn into_settings(self) -> Result<MeterSettings, MeterSettingsError> {
        self.node.into_settings()
    }
}

impl NodeArguments {
    /// Checks the flags together.
    pub(crate) fn into_settings(self) -> Result<MeterSettings, MeterSettingsError> {
        let cpus = match self.cpus {
            Some(cpus) => cpus,
            None => online_cpus().ok_or(MeterSettingsError::UnknownCpus)?,
        };
        let config = match &self.power_config {
            Some(path) => PowerConfig::load(path)?,
            None => PowerConfig::default(),
        };
        let power = config
            .of(&self.node_name)
            .cloned()
            .unwrap_or_else(|| NodePower {
                board: Some(self.board),
                idle_watts: self.idle_watts,
                watts_per_cpu: self.watts_per_cpu,
                idle_watts_relative_uncertainty: self.idle_watts_relative_uncertainty,
                watts_per_cpu_relative_uncertainty: self.watts_per_cpu_relative_uncertainty,
                ..NodePower::only(SourceConfig::Model {})
            });
        Ok(MeterSettings {
            cgroup_root: self.cgroup_root.replace("{node}", &self.node_name),
            node_name: self.node_name,
            // Only `run` listens.
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            bridge: None,
            interval: self.interval,
            cgroup_fs: self.cgroup_fs,
            pod_logs: self.pod_logs,
            power,
            surroundings: Surroundings {
                sysfs: self.sysfs,
                dev: self.dev,
                procfs: PathBuf::from(PROCFS),
                cpus,
                interval: self.interval,
            },
        })
    }
}

/// Starts logging to standard error.
pub(crate) fn start_logging(arguments: &MeterArguments) {
    let log = tracing_subscriber::fmt()
        .with_max_level(arguments.log_level)
        .with_writer(std::io::stderr);
    match arguments.log_format {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .ok()
        .filter(|interval| (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(interval))
        .ok_or_else(|| "write a time between 50ms and 60s, such as 500ms or 1s".into())
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit_seconds) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err("write a number with its unit, such as 500ms or 1s".into()),
    };
    number
        .parse()
        .ok()
        .and_then(|number: f64| Duration::try_from_secs_f64(number * unit_seconds).ok())
        .ok_or_else(|| "write a number with its unit, such as 500ms or 1s".into())
}

fn parse_watts(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|watts: &f64| watts.is_finite() && *watts >= 0.0)
        .ok_or_else(|| "write watts, such as 3.33".into())
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0 to 1, such as 0.1".into())
}

/// Not [`std::thread::available_parallelism`]: it counts the CPUs that this process may use, and the meter's
/// container may be allowed fewer CPUs than the node has.
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::power::choice::{ChoiceError, choose};
    use crate::power::{Source, SourceProvenance};
    use rstest::rstest;

    fn settings_of(node: &str, flags: &[&str]) -> Result<MeterSettings, MeterSettingsError> {
        let line = ["frugality-meter", "run", "--cpus=2", "--node-name", node];
        let MeterCommand::Run(arguments) =
            CommandLine::parse_from(line.iter().chain(flags)).command
        else {
            panic!("not a run");
        };
        arguments.into_settings()
    }

    fn settings(flags: &[&str]) -> Result<MeterSettings, MeterSettingsError> {
        settings_of("pi-1", flags)
    }

    fn source(flags: &[&str]) -> Result<Source, ChoiceError> {
        source_of("pi-1", flags)
    }

    fn source_of(node: &str, flags: &[&str]) -> Result<Source, ChoiceError> {
        let settings = settings_of(node, flags).unwrap();
        let chosen = choose(&settings.power, &settings.surroundings)?;
        Ok(chosen.supply.source().clone())
    }

    #[test]
    fn a_generic_board_must_be_given_its_watts_and_the_error_says_what_to_write() {
        let error = source(&[]).unwrap_err().to_string();
        assert!(error.contains("--idle-watts") && error.contains("--watts-per-cpu"));
        assert!(source(&["--idle-watts=2"]).is_err());
        let generic = source(&["--idle-watts=2", "--watts-per-cpu=3"]).unwrap();
        assert!((generic.max_watts.unwrap() - 8.0).abs() < 1e-12);
        assert_eq!(generic.provenance, SourceProvenance::Modelled);
        assert_eq!(generic.relative_uncertainty, None);
        assert_eq!(generic.model.unwrap().uncertainty, None);
    }

    #[test]
    fn a_models_accuracy_is_stated_for_both_watts_or_for_neither() {
        let watts = ["--idle-watts=2", "--watts-per-cpu=3"];
        let stating = |flags: &[&str]| source(&[&watts, flags].concat());
        let both = [
            "--idle-watts-relative-uncertainty=0.05",
            "--watts-per-cpu-relative-uncertainty=0.1",
        ];
        let known = stating(&both).unwrap().model.unwrap().uncertainty.unwrap();
        assert!((known.idle_watts - 0.05).abs() < 1e-12);
        assert!((known.watts_per_cpu - 0.1).abs() < 1e-12);
        for one in both {
            let error = stating(&[one]).unwrap_err().to_string();
            assert!(error.contains("wattsPerCpuRelativeUncertainty"), "{error}");
        }
        // A board of the table has its own uncertainty. The user's value replaces it.
        let pi = |flags: &[&str]| source(flags).unwrap().model.unwrap().uncertainty.unwrap();
        assert!((pi(&["--board=pi-4b"]).idle_watts - 0.15).abs() < 1e-12);
        let flags = [&["--board=pi-4b"], both.as_slice()].concat();
        assert!((pi(&flags).idle_watts - 0.05).abs() < 1e-12);
        assert!(parse_share("1.5").is_err() && parse_share("5%").is_err());
    }

    #[test]
    fn a_known_board_has_its_own_watts() {
        let pi = source(&["--board=pi-2b"]).unwrap();
        assert_eq!(pi.path, "model:pi-2b");
        assert!((pi.max_watts.unwrap() - (3.33 + 2.0 * 0.3675)).abs() < 1e-12);
        let both = source(&["--board=pi-2b", "--idle-watts=2"]).unwrap_err();
        assert!(matches!(both, ChoiceError::BoardHasWatts(board) if board == "pi-2b"));
        let unknown = source(&["--board=pi-9"]).unwrap_err().to_string();
        assert!(unknown.contains("pi-2b") && unknown.contains("pi-9"));
    }

    #[test]
    fn the_node_s_name_can_be_part_of_its_cgroup() {
        let settings = settings(&["--board=pi-2b", "--cgroup-root=/lab/{node}"]).unwrap();
        assert_eq!(settings.cgroup_root, "/lab/pi-1");
    }

    #[test]
    fn other_settings_that_change_joules_have_another_digest() {
        let digest_of = |flags: &[&str]| settings(flags).unwrap().digest();
        let digest = |flags: &[&str]| digest_of(&[&["--board=pi-2b"], flags].concat());
        assert_eq!(digest(&[]).len(), 16);
        assert_eq!(digest(&["--interval=500ms"]), digest(&[]));
        let mut four_cpus = settings(&["--board=pi-2b"]).unwrap();
        four_cpus.surroundings.cpus = 4;
        let others = [
            digest(&[]),
            four_cpus.digest(),
            digest_of(&["--board=pi-3b"]),
            digest(&["--interval=1s"]),
            digest(&["--cgroup-root=/lab/{node}"]),
        ];
        let distinct: BTreeSet<_> = others.iter().collect();
        assert_eq!(distinct.len(), others.len(), "{others:?}");
        let with = |config: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(&file, format!(r#"{{"default": {{"source": {config}}}}}"#)).unwrap();
            digest(&[&format!("--power-config={}", file.path().display())])
        };
        let pmic = |slope: &str| {
            with(&format!(
                r#"{{"type": "pmic", "command": ["a"], "slope": {slope}}}"#
            ))
        };
        assert_eq!(pmic("1.0"), pmic("1"));
        assert_ne!(pmic("1.0"), pmic("1.01"));
        let plug = |host: &str| with(&format!(r#"{{"type": "tasmota", "host": "{host}"}}"#));
        assert_ne!(plug("10.0.0.1"), plug("10.0.0.2"));
    }

    #[test]
    fn a_bridge_must_move_on_ten_times_a_second() {
        let bridge = ["--board=pi-2b", "--bridge=/run/kepler"];
        assert!(matches!(
            settings(&bridge),
            Err(MeterSettingsError::BridgeTooSlow)
        ));
        let fast = [bridge[0], bridge[1], "--interval=100ms"];
        assert!(settings(&fast).is_ok());
    }

    #[test]
    fn a_node_takes_its_own_part_of_the_power_configuration() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            &file,
            r#"{"default": {"source": {"type": "model"}, "board": "pi-3b"},
                "nodes": {"pi-1": {"source": {"type": "shelly-gen2", "host": "plug-1"}}}}"#,
        )
        .unwrap();
        let flag = format!("--power-config={}", file.path().display());
        let plug = source(&[&flag]).unwrap();
        assert_eq!(plug.path, "http://plug-1/rpc/Switch.GetStatus?id=0");
        assert_eq!(plug.provenance, SourceProvenance::Metered);
        let other = source_of("pi-2", &[&flag]).unwrap();
        assert_eq!(other.path, "model:pi-3b");
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
