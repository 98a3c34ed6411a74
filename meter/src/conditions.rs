//! Throttling, under-voltage, temperature and frequency of a node while it is measured. Also the node's
//! kernel, governor and firmware, which must stay the same. If the node does not report a value, the value is
//! absent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::power::sysfs::{NumberFile, entries, file_name, read_text};

/// Conditions change over seconds, and reading them wakes processors.
const INTERVAL: Duration = Duration::from_millis(900);
/// After a longer time between two observations, the time in between does not count as throttled.
const LONGEST_STEP: Duration = Duration::from_secs(10);

/// Why a processor runs slower than it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The supply gives too little voltage.
    UnderVoltage,
    /// The firmware limits the frequency.
    FrequencyCapped,
    /// The processor is throttled.
    Throttled,
    /// The soft temperature limit is reached.
    SoftTemperatureLimit,
}

impl Cause {
    /// All causes, in the order of the firmware's bits.
    pub(crate) const ALL: [Self; 4] = [
        Self::UnderVoltage,
        Self::FrequencyCapped,
        Self::Throttled,
        Self::SoftTemperatureLimit,
    ];

    /// The label's value.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::UnderVoltage => "under_voltage",
            Self::FrequencyCapped => "frequency_capped",
            Self::Throttled => "throttled",
            Self::SoftTemperatureLimit => "soft_temperature_limit",
        }
    }
}

/// The platform of a node. A change of one field changes the energy of the same work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlatformSettings {
    /// Release of the kernel, as `uname -r` prints it.
    pub(crate) kernel: Option<String>,
    /// The processors' frequency governors, each once.
    pub(crate) governor: Option<String>,
    /// Version of the firmware: of a Raspberry Pi's bootloader (its EEPROM), or of the BIOS.
    pub(crate) firmware: Option<String>,
}

impl PlatformSettings {
    /// Label and value of each known field.
    pub(crate) fn labels(&self) -> Vec<(&'static str, &str)> {
        [
            ("firmware", &self.firmware),
            ("governor", &self.governor),
            ("kernel", &self.kernel),
        ]
        .into_iter()
        .filter_map(|(label, value)| Some((label, value.as_deref()?)))
        .collect()
    }
}

/// Reads a node's conditions and adds up how long each lasted.
#[derive(Debug)]
pub(crate) struct ConditionReader {
    /// `get_throttled` of the firmware's driver: see [`states`].
    firmware: Option<PathBuf>,
    under_voltage: Option<NumberFile>,
    processors: Vec<NumberFile>,
    throttled_milliseconds: Vec<Option<u64>>,
    temperatures: Vec<NumberFile>,
    frequencies: Vec<NumberFile>,
    governors: Vec<PathBuf>,
    observed: Option<Duration>,
    seconds: [Option<f64>; 4],
    /// Kernel, governor, firmware.
    pub(crate) platform: PlatformSettings,
    /// Highest temperature of the processor, in °C.
    pub(crate) temperature_celsius: Option<f64>,
    /// Mean frequency of the processors, in hertz.
    pub(crate) frequency_hertz: Option<f64>,
}

impl ConditionReader {
    /// Finds the files that this node has.
    pub(crate) fn find(sysfs: &Path, procfs: &Path) -> Self {
        let numbers = |paths: Vec<PathBuf>| -> Vec<NumberFile> {
            paths
                .into_iter()
                .filter(|path| path.is_file())
                .map(NumberFile::new)
                .collect()
        };
        let processors: Vec<PathBuf> = entries(&sysfs.join("devices/system/cpu"))
            .iter()
            .map(|cpu| cpu.join("thermal_throttle/core_throttle_total_time_ms"))
            .collect();
        let policies = entries(&sysfs.join("devices/system/cpu/cpufreq"));
        let of_policies = |file: &str| -> Vec<PathBuf> {
            policies.iter().map(|policy| policy.join(file)).collect()
        };
        let (frequencies, governors) = (
            of_policies("scaling_cur_freq"),
            of_policies("scaling_governor"),
        );
        let processors = numbers(processors);
        let driver = driver(sysfs);
        Self {
            firmware: driver.as_ref().and_then(|_| firmware(sysfs)),
            under_voltage: driver
                .map(|driver| driver.join("in0_lcrit_alarm"))
                .filter(|path| path.is_file())
                .map(NumberFile::new),
            throttled_milliseconds: vec![None; processors.len()],
            processors,
            temperatures: numbers(thermal_zones(sysfs)),
            frequencies: numbers(frequencies),
            platform: PlatformSettings {
                kernel: known(&procfs.join("sys/kernel/osrelease")),
                governor: governor(&governors),
                firmware: firmware_version(sysfs, procfs),
            },
            governors,
            observed: None,
            seconds: [None; 4],
            temperature_celsius: None,
            frequency_hertz: None,
        }
    }

    /// Paths of the found files, for people.
    pub(crate) fn found(&self) -> Vec<String> {
        let path = |file: &NumberFile| file.path().display().to_string();
        let firmware = self.firmware.iter().map(|it| it.display().to_string());
        firmware
            .chain(self.under_voltage.iter().map(path))
            .chain(self.processors.first().map(path))
            .chain(self.temperatures.iter().map(path))
            .chain(self.frequencies.iter().map(path))
            .collect()
    }

    /// How long a condition was observed so far, in seconds; `None` if the node does not report it.
    pub(crate) fn seconds(&self, cause: Cause) -> Option<f64> {
        self.seconds[cause as usize]
    }

    /// Observes the conditions if the interval has passed. `now` is the time since the meter began.
    pub(crate) fn observe(&mut self, now: Duration) {
        let since = self.observed.map(|before| now.saturating_sub(before));
        let step = match since {
            Some(since) if since < INTERVAL => return,
            Some(since) if since <= LONGEST_STEP => since,
            _ => Duration::ZERO,
        };
        self.observed = Some(now);
        self.observe_firmware(step.as_secs_f64());
        self.observe_processors();
        self.platform.governor = governor(&self.governors);
        self.temperature_celsius = self
            .temperatures
            .iter_mut()
            .filter_map(|file| Some(file.read().ok()? as f64 / 1e3))
            .max_by(f64::total_cmp);
        let hertz: Vec<f64> = self
            .frequencies
            .iter_mut()
            .filter_map(|file| Some(file.read_unsigned().ok()? as f64 * 1e3))
            .collect();
        self.frequency_hertz =
            (!hertz.is_empty()).then(|| hertz.iter().sum::<f64>() / hertz.len() as f64);
    }

    /// A condition counts for the whole step if the driver's last answer has it.
    fn observe_firmware(&mut self, step_seconds: f64) {
        if let Some(path) = &self.firmware
            && let Some(bits) = read_text(path).and_then(|text| states(&text))
        {
            for cause in Cause::ALL {
                let there = bits & (1 << (cause as u32)) != 0;
                self.count(cause, there, step_seconds);
            }
        } else if let Some(file) = &mut self.under_voltage
            && let Ok(alarm) = file.read()
        {
            self.count(Cause::UnderVoltage, alarm != 0, step_seconds);
        }
    }

    /// The processor with the most throttled time counts: a single throttled processor delays its work.
    fn observe_processors(&mut self) {
        let mut longest = None;
        for (file, before) in self
            .processors
            .iter_mut()
            .zip(&mut self.throttled_milliseconds)
        {
            let Ok(now) = file.read_unsigned() else {
                continue;
            };
            let risen = before.map_or(0, |before| now.saturating_sub(before));
            *before = Some(now);
            longest = longest.max(Some(risen));
        }
        if let Some(milliseconds) = longest {
            self.count(Cause::Throttled, true, milliseconds as f64 / 1e3);
        }
    }

    fn count(&mut self, cause: Cause, there: bool, seconds: f64) {
        let total = self.seconds[cause as usize].get_or_insert(0.0);
        if there {
            *total += seconds;
        }
    }
}

/// Bits 0 to 3: the states that held at the driver's last question to the firmware, or at some time since the question
/// before. The text is a hexadecimal number. Its bits 0 to 3 are the present state. Bits 16 to 19 are the states that have
/// occurred since they were cleared, and each question of the driver clears them.
fn states(text: &str) -> Option<u32> {
    let bits = u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
    Some((bits | (bits >> 16)) & 0xf)
}

/// `devices/platform/soc/soc:firmware` on most boards, `devices/platform/soc@…/soc@…:firmware` on
/// newer kernels.
fn firmware(sysfs: &Path) -> Option<PathBuf> {
    entries(&sysfs.join("devices/platform"))
        .iter()
        .filter(|device| file_name(device).starts_with("soc"))
        .flat_map(|soc| entries(soc))
        .filter(|device| file_name(device).ends_with(":firmware"))
        .map(|device| device.join("get_throttled"))
        .find(|path| path.is_file())
}

/// The text of a file; `None` if the file is missing or empty.
fn known(path: &Path) -> Option<String> {
    read_text(path).filter(|text| !text.is_empty())
}

/// The governors of all processors, each once, in alphabetical order.
fn governor(files: &[PathBuf]) -> Option<String> {
    let mut governors: Vec<String> = files.iter().filter_map(|file| known(file)).collect();
    governors.sort_unstable();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(","))
}

/// A Raspberry Pi's bootloader writes its version into the device tree (Raspberry Pi documentation,
/// config.txt, device trees: `/proc/device-tree/chosen/bootloader/version`). DMI holds the version of a PC's
/// BIOS.
fn firmware_version(sysfs: &Path, procfs: &Path) -> Option<String> {
    known(&sysfs.join("firmware/devicetree/base/chosen/bootloader/version"))
        .or_else(|| known(&procfs.join("device-tree/chosen/bootloader/version")))
        .or_else(|| known(&sysfs.join("class/dmi/id/bios_version")))
}

/// The device of the driver `raspberrypi-hwmon`. Every 2 s the driver asks the firmware for its states
/// (drivers/hwmon/raspberrypi-hwmon.c). The file `get_throttled` holds the last answer, and never changes without the driver.
/// The mainline kernel has no such file, only the driver's alarm about the voltage.
fn driver(sysfs: &Path) -> Option<PathBuf> {
    entries(&sysfs.join("class/hwmon"))
        .into_iter()
        .find(|device| read_text(&device.join("name")).as_deref() == Some("rpi_volt"))
}

/// The zones of the processor. If there are none, all zones.
fn thermal_zones(sysfs: &Path) -> Vec<PathBuf> {
    let zones: Vec<PathBuf> = entries(&sysfs.join("class/thermal"))
        .into_iter()
        .filter(|zone| file_name(zone).starts_with("thermal_zone"))
        .collect();
    let of_processor: Vec<PathBuf> = zones
        .iter()
        .filter(|zone| {
            read_text(&zone.join("type"))
                .is_some_and(|kind| kind.contains("cpu") || kind.contains("x86_pkg"))
        })
        .cloned()
        .collect();
    let chosen = if of_processor.is_empty() {
        zones
    } else {
        of_processor
    };
    chosen.into_iter().map(|zone| zone.join("temp")).collect()
}

#[cfg(test)]
mod tests;
