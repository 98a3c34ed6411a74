//! Lets stock Kepler read this node's energy: a powercap tree that it takes for RAPL.
//!
//! Kepler's `host.sysfs` must be the directory that is given. It then finds one zone, `psys`. The
//! counter is replaced as a whole, by a rename, so that a reader never sees it empty or half
//! written; it never falls, not even over a restart of the meter, and its range is so large that
//! it never wraps, because Kepler takes a counter that falls for one that has wrapped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::power::Provenance;
use crate::power::sysfs::read_text;

const MICROJOULES_PER_JOULE: f64 = 1e6;
/// A year at 30 kW, in microjoules.
const RANGE_MICROJOULES: u64 = 1_000_000_000_000_000_000;
const COUNTER: &str = "energy_uj";

/// Kepler tells no time, so its readers take what it says for true now. What is known late shifts
/// their windows by as much; the operator's settling of 3 s covers this and the age of a snapshot.
const MOST_LAG: Duration = Duration::from_secs(2);

/// Why there is no bridge.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BridgeError {
    /// The tree cannot be written.
    #[error("cannot write Kepler's powercap tree at {}: {source}", .path.display())]
    Unwritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The instrument is asked too seldom.
    #[error(
        "--bridge: energy of this source is known {:.1} s late, and Kepler cannot say so: write polling.intervalSeconds: 1 or less",
        .lag.as_secs_f64()
    )]
    Late {
        /// How late.
        lag: Duration,
    },
}

/// The tree's one writer.
#[derive(Debug)]
pub(crate) struct Bridge {
    zone: PathBuf,
    /// Where the counter stood when the meter began.
    base_microjoules: u64,
    written_microjoules: u64,
}

impl Bridge {
    /// Makes the tree in `directory`, or goes on with the one that is there. The zone's directory
    /// says how far its joules can be trusted, for whoever reads Kepler's `path` label. `lag` is how
    /// late energy is usually known.
    pub(crate) fn open(
        directory: &Path,
        provenance: Provenance,
        lag: Duration,
    ) -> Result<Self, BridgeError> {
        if lag > MOST_LAG {
            return Err(BridgeError::Late { lag });
        }
        let class = directory.join("class/powercap");
        let zone = class.join(match provenance {
            Provenance::Metered => "frugality-metered:0",
            Provenance::Modelled => "frugality-modelled:0",
        });
        let make = |path: &Path| {
            fs::create_dir_all(path).map_err(|source| BridgeError::Unwritable {
                path: path.to_owned(),
                source,
            })
        };
        make(&class)?;
        // A zone of the other provenance would be read beside this one.
        for other in crate::power::sysfs::entries(&class) {
            if other != zone {
                fs::remove_dir_all(&other).map_err(|source| BridgeError::Unwritable {
                    path: other.clone(),
                    source,
                })?;
            }
        }
        make(&zone)?;
        let base_microjoules = read_text(&zone.join(COUNTER))
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let bridge = Self {
            zone,
            base_microjoules,
            written_microjoules: base_microjoules,
        };
        bridge.replace("max_energy_range_uj", RANGE_MICROJOULES)?;
        bridge.replace(COUNTER, base_microjoules)?;
        // Kepler takes a directory for a zone once it has a name.
        bridge.replace("name", "psys")?;
        Ok(bridge)
    }

    /// The node's energy since the meter began, in joules.
    pub(crate) fn write(&mut self, joules: f64) -> Result<(), BridgeError> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "joules are not negative, and far below the range"
        )]
        let microjoules = self.base_microjoules + (joules * MICROJOULES_PER_JOULE) as u64;
        // Kepler sets the pods' counters to 0 when the zone stands still, so there is nothing to
        // gain from writing the same again.
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

#[cfg(test)]
mod tests;
