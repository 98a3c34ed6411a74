//! The files of one cgroup.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::error::CgroupError;
use super::layout::Version;

/// An open CPU counter of a cgroup.
#[derive(Debug)]
pub(crate) struct CpuCounter {
    file: File,
    path: PathBuf,
    version: Version,
    /// Whether this is the root of the hierarchy: all processes of the machine.
    is_root: bool,
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
            is_root: version.is_root_of_machine(directory),
            identity,
        })
    }

    /// Whether the cgroup at the path is still the one that was opened.
    pub(crate) fn is_current(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|it| it.ino() == self.identity)
    }

    /// A number that no other cgroup's counter has had since the machine started.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    /// CPU time since the cgroup began, in nanoseconds.
    pub(crate) fn read_nanoseconds(&self) -> Result<u64, CgroupError> {
        // In every kernel, `usage_usec` is among the first lines of `cpu.stat`.
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
                Version::V2 => self.microseconds(text).and_then(|us| us.checked_mul(1000)),
            })
            .ok_or_else(|| CgroupError::Malformed {
                path: self.path.clone(),
            })
    }

    /// CPU time by the lines of `cpu.stat`. Of the root, `usage_usec` includes stolen time in many kernels
    /// (`root_cgroup_cputime` in kernel/cgroup/rstat.c); the sum of its two parts never does.
    fn microseconds(&self, text: &str) -> Option<u64> {
        let parts = || value_of(text, "user_usec")?.checked_add(value_of(text, "system_usec")?);
        let of_root = self.is_root.then(parts).flatten();
        of_root.or_else(|| value_of(text, "usage_usec"))
    }
}

/// The open memory files of a cgroup.
#[derive(Debug)]
pub(crate) struct MemoryFiles {
    usage: File,
    stat: File,
    inactive: &'static str,
}

/// Bytes of `memory.stat` that are read. The kernel's files have under half of this.
const LARGEST_STAT: usize = 8192;

impl MemoryFiles {
    /// Opens the files; `None` if the cgroup has none.
    pub(crate) fn open(directory: &Path, version: Version) -> Option<Self> {
        let (usage, inactive) = match version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        let open = |file| File::open(directory.join(file)).ok();
        Some(Self {
            usage: open(usage)?,
            stat: open("memory.stat")?,
            inactive,
        })
    }

    /// Usage − inactive file cache, as kubelet computes the working set: the memory that the pod would miss
    /// if it were taken away. `None` if the cgroup does not report it: unknown is not 0.
    pub(crate) fn working_set_bytes(&self) -> Option<u64> {
        let mut buffer = [0; LARGEST_STAT];
        let usage: u64 = read(&self.usage, &mut buffer)?.trim().parse().ok()?;
        let inactive = value_of(read(&self.stat, &mut buffer)?, self.inactive)?;
        // The two files are read one after the other, so cache may seem to exceed usage.
        Some(usage.saturating_sub(inactive))
    }
}

fn read<'b>(file: &File, buffer: &'b mut [u8]) -> Option<&'b str> {
    let length = file.read_at(buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()
}

/// The value of a line `key value`.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.parse().ok())?
    })
}
