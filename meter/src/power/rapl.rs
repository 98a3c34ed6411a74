//! Energy counters of x86 processors (RAPL), in the kernel's powercap class.
//!
//! Files: <https://docs.kernel.org/power/powercap/powercap.html>.

use std::path::{Path, PathBuf};

use super::sysfs::{NumberFile, entries, file_name, read_text};
use super::{BOARD_ZONE, InstrumentError, LocalInstrument, PACKAGE_ZONE, PowerOrEnergy};

const CLASS: &str = "class/powercap";
const MICRO: f64 = 1e-6;
/// The processor's unit of energy. Its counter is a multiple of this unit: 2⁻¹⁴ J unless the processor states
/// another unit (Intel SDM, vol. 3, MSR_RAPL_POWER_UNIT).
pub(crate) const STEP_JOULES: f64 = 1.0 / 16384.0;
/// If a counter seems to have wrapped by more than this between two readings, it was set back instead: no
/// machine draws so much between two readings.
const MOST_JOULES_BETWEEN_READINGS: f64 = 20_000.0;

/// The zones that are read together: the platform, else every processor package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Zones {
    /// `psys` or `package`.
    pub(crate) zone: &'static str,
    /// The zones' directories.
    pub(crate) directories: Vec<PathBuf>,
}

/// Finds the counter that covers most: `psys` if there is one, else all packages. The same counter can appear
/// twice, through the processor's registers and through memory (`intel-rapl-mmio`). It counts once.
pub(crate) fn find(sysfs: &Path) -> Option<Zones> {
    let mut zones: Vec<(String, PathBuf)> = entries(&sysfs.join(CLASS))
        .into_iter()
        .filter(|directory| directory.join("energy_uj").exists())
        .filter_map(|directory| Some((read_text(&directory.join("name"))?, directory)))
        .collect();
    zones.sort_by_key(|(name, directory)| (name.clone(), file_name(directory).contains("mmio")));
    zones.dedup_by(|(later, _), (earlier, _)| later == earlier);
    let named = |wanted: fn(&str) -> bool| -> Vec<PathBuf> {
        zones
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(_, directory)| directory.clone())
            .collect()
    };
    let platform = named(|name| name == "psys");
    let packages = named(|name| name.starts_with("package"));
    let (zone, directories) = if platform.is_empty() {
        (PACKAGE_ZONE, packages)
    } else {
        (BOARD_ZONE, platform)
    };
    (!directories.is_empty()).then_some(Zones { zone, directories })
}

/// Open counters, added up.
#[derive(Debug)]
pub(crate) struct Rapl {
    counters: Vec<Counter>,
}

/// A counter that starts again at 0 when it reaches its range.
#[derive(Debug)]
struct Counter {
    file: NumberFile,
    range_microjoules: Option<u64>,
    last: Option<u64>,
    total_microjoules: u64,
}

impl Rapl {
    pub(crate) fn open(zones: &Zones) -> Self {
        let counters = zones
            .directories
            .iter()
            .map(|directory| Counter {
                file: NumberFile::new(directory.join("energy_uj")),
                range_microjoules: read_text(&directory.join("max_energy_range_uj"))
                    .and_then(|text| text.parse().ok()),
                last: None,
                total_microjoules: 0,
            })
            .collect();
        Self { counters }
    }
}

impl Counter {
    fn advance(&mut self) -> Result<(), InstrumentError> {
        let now = self.file.read_unsigned()?;
        let Some(last) = self.last else {
            self.last = Some(now);
            return Ok(());
        };
        let risen = match now.checked_sub(last) {
            Some(risen) => risen,
            None => self
                .range_microjoules
                .and_then(|range| range.checked_sub(last)?.checked_add(now))
                .filter(|wrapped| *wrapped as f64 * MICRO <= MOST_JOULES_BETWEEN_READINGS)
                .ok_or_else(|| InstrumentError::WentBack {
                    path: self.file.path().display().to_string(),
                    from: last,
                    to: now,
                })?,
        };
        self.total_microjoules += risen;
        self.last = Some(now);
        Ok(())
    }
}

impl LocalInstrument for Rapl {
    /// The energy since the first reading. If a counter is unreadable, its last value is kept, and the next
    /// reading includes all of the energy.
    fn read(&mut self) -> Result<PowerOrEnergy, InstrumentError> {
        for counter in &mut self.counters {
            counter.advance()?;
        }
        let total: u64 = self.counters.iter().map(|it| it.total_microjoules).sum();
        Ok(PowerOrEnergy::Joules(total as f64 * MICRO))
    }
}
