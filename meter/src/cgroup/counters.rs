//! The files of one cgroup.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::CgroupError;
use super::layout::Version;

/// An open CPU counter of a cgroup.
#[derive(Debug)]
pub(crate) struct CpuCounter {
    file: File,
    path: PathBuf,
    version: Version,
    identity: u64,
}

impl CpuCounter {
    /// Opens the counter of the cgroup in `directory`.
    pub(crate) fn open(directory: &Path, version: Version) -> Result<Self, CgroupError> {
        let path = directory.join(version.cpu_file());
        let unreadable = |source| CgroupError::Unreadable {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).map_err(unreadable)?;
        let identity = file.metadata().map_err(unreadable)?.ino();
        Ok(Self {
            file,
            path,
            version,
            identity,
        })
    }

    /// A number that no other cgroup's counter has had since the machine started.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// CPU time since the cgroup began, in nanoseconds.
    pub(crate) fn read_nanoseconds(&self) -> Result<u64, CgroupError> {
        // `usage_usec` is within the first lines of `cpu.stat`, wherever the kernel puts it.
        let mut buffer = [0; 512];
        let length =
            self.file
                .read_at(&mut buffer, 0)
                .map_err(|source| CgroupError::Unreadable {
                    path: self.path.clone(),
                    source,
                })?;
        std::str::from_utf8(&buffer[..length])
            .ok()
            .and_then(|text| match self.version {
                Version::V1 => text.trim().parse().ok(),
                Version::V2 => value_of(text, "usage_usec").and_then(|us| us.checked_mul(1000)),
            })
            .ok_or_else(|| CgroupError::Malformed {
                path: self.path.clone(),
            })
    }
}

/// Usage − inactive file cache, as kubelet computes the working set: what would be missing if
/// it were taken away. `None` where the cgroup does not tell: unknown is not 0.
pub(crate) fn working_set_bytes(directory: &Path, version: Version) -> Option<u64> {
    let (usage_file, inactive_file) = match version {
        Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
        Version::V2 => ("memory.current", "inactive_file"),
    };
    let usage: u64 = read(directory, usage_file).ok()?.trim().parse().ok()?;
    let inactive = value_of(&read(directory, "memory.stat").ok()?, inactive_file)?;
    // The two files are read one after the other, so cache may seem to exceed usage.
    Some(usage.saturating_sub(inactive))
}

fn read(directory: &Path, file: &str) -> io::Result<String> {
    fs::read_to_string(directory.join(file))
}

/// The value of a line `key value`.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.parse().ok())?
    })
}
