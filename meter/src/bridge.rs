//! Lets stock Kepler read this node's energy: a powercap tree that Kepler takes for RAPL.
//!
//! Kepler's `host.sysfs` must be this tree's directory. Kepler then finds one zone, `psys`. The bridge
//! replaces the counter file by a rename: a reader never sees the file empty or half written. The counter
//! never falls, not even when the meter restarts. Its range is so large that it never wraps: Kepler takes a
//! falling counter for a wrapped one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::power::SourceProvenance;

const MICROJOULES_PER_JOULE: f64 = 1e6;
/// A year at 30 kW, in microjoules.
const RANGE_MICROJOULES: u64 = 1_000_000_000_000_000_000;
const COUNTER: &str = "energy_uj";

/// Kepler reports no timestamp. Its readers therefore take its values for current. Late energy shifts their
/// windows by the same time. The operator's settling time of 3 s covers this lag and the age of a snapshot.
const MOST_LAG: Duration = Duration::from_secs(2);

/// Why there is no bridge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    /// The bridge can't write the tree.
    #[error("cannot write Kepler's powercap tree at {}: {source}", .path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The counter of the last meter can't be read. A new counter would begin at 0, which Kepler takes for a full turn.
    #[error(
        "the last counter of Kepler's powercap tree, {}, is not a number: {found}. Delete the tree and restart Kepler.",
        .path.display()
    )]
    NoCounter {
        /// The counter's file.
        path: PathBuf,
        /// Content of the file, or the system's error.
        found: String,
    },
    /// The meter polls the instrument too seldom.
    #[error(
        "--bridge: the energy of this source is known {:.1} s late, and Kepler cannot report a delay: write polling.intervalSeconds: 1 or less",
        .lag.as_secs_f64()
    )]
    Late {
        /// How late the energy is known.
        lag: Duration,
    },
    /// The instrument measures too seldom.
    #[error(
        "--bridge: this source measures every {:.0} s, and Kepler cannot report the age of a value: use a \
         source that measures every {} s or more often",
        .refresh.as_secs_f64(),
        MOST_LAG.as_secs()
    )]
    Seldom {
        /// The stated time between two measurements.
        refresh: Duration,
    },
}

/// The only writer of the tree.
#[derive(Debug)]
pub(crate) struct Bridge {
    zone: PathBuf,
    /// The counter's value when the meter began.
    base_microjoules: u64,
    written_microjoules: u64,
}

impl Bridge {
    /// Makes the tree in `directory`, or continues an existing tree. The name of the zone's directory states
    /// the provenance of the joules, for readers of Kepler's `path` label. `lag` is the usual delay until
    /// energy is known, and `refresh` the stated time between two measurements, if any.
    pub(crate) fn open(
        directory: &Path,
        provenance: SourceProvenance,
        lag: Duration,
        refresh: Option<Duration>,
    ) -> Result<Self, BridgeError> {
        if let Some(refresh) = refresh.filter(|it| *it > MOST_LAG) {
            return Err(BridgeError::Seldom { refresh });
        }
        if lag > MOST_LAG {
            return Err(BridgeError::Late { lag });
        }
        let class = directory.join("class/powercap");
        let zone = class.join(match provenance {
            SourceProvenance::Metered => "frugality-metered:0",
            SourceProvenance::Modelled => "frugality-modelled:0",
        });
        let make = |path: &Path| {
            fs::create_dir_all(path).map_err(|source| BridgeError::Unwritable {
                path: path.to_owned(),
                source,
            })
        };
        make(&class)?;
        // Kepler would read a zone of the other provenance as a second counter.
        for other in crate::power::sysfs::entries(&class) {
            if other != zone {
                fs::remove_dir_all(&other).map_err(|source| BridgeError::Unwritable {
                    path: other.clone(),
                    source,
                })?;
            }
        }
        make(&zone)?;
        let base_microjoules = last_counter(&zone.join(COUNTER))?;
        let bridge = Self {
            zone,
            base_microjoules,
            written_microjoules: base_microjoules,
        };
        bridge.replace("max_energy_range_uj", RANGE_MICROJOULES)?;
        bridge.replace(COUNTER, base_microjoules)?;
        // Kepler takes a directory for a zone once the directory has a name.
        bridge.replace("name", "psys")?;
        Ok(bridge)
    }

    /// Writes the node's energy since the meter began, in joules.
    pub(crate) fn write(&mut self, joules: f64) -> Result<(), BridgeError> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "joules are not negative, and far below the range"
        )]
        let microjoules = self.base_microjoules + (joules * MICROJOULES_PER_JOULE) as u64;
        // Kepler sets the pods' counters to 0 if the zone stands still. Writing the same value again would
        // not help.
        if microjoules > self.written_microjoules {
            self.replace(COUNTER, microjoules)?;
            self.written_microjoules = microjoules;
        }
        Ok(())
    }

    fn replace(&self, file: &str, value: impl std::fmt::Display) -> Result<(), BridgeError> {
        let (path, fresh) = (self.zone.join(file), self.zone.join(format!(".{file}.new")));
        fs::write(&fresh, format!("{value}\n"))
            .and_then(|()| fs::rename(&fresh, &path))
            .map_err(|source| BridgeError::Unwritable { path, source })
    }
}

/// The counter that the last meter wrote; 0 if no meter wrote one.
fn last_counter(path: &Path) -> Result<u64, BridgeError> {
    let no_counter = |found: String| BridgeError::NoCounter {
        path: path.to_owned(),
        found,
    };
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(no_counter(error.to_string())),
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| no_counter(format!("{:?}", text.trim()))),
    }
}

#[cfg(test)]
mod tests;
