//! Why there is no reading of a cgroup.

use std::{io, path::PathBuf};

/// Why there is no reading.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CgroupError {
    /// No file below the given paths holds CPU time.
    #[error(
        "no CPU accounting found for the node's cgroup; tried {}. Check --cgroup-fs (where the \
         host's /sys/fs/cgroup is mounted) and --cgroup-root (the node's cgroup)",
        .tried.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// The files that the meter looked for.
        tried: Vec<PathBuf>,
    },
    /// A file or directory is unreadable.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content of a file is not in the kernel's format.
    #[error("{} holds no CPU time", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

impl CgroupError {
    /// Whether the cgroup was removed between its listing and its reading.
    pub(super) fn is_gone(&self) -> bool {
        // For a file whose cgroup was removed, the kernel answers a read with ENODEV.
        const ENODEV: i32 = 19;
        matches!(self, Self::Unreadable { source, .. }
            if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(ENODEV))
    }
}
