//! Where a node's cgroups are: v1, v2 or both, with either of kubelet's cgroup drivers.

use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::CgroupError;

/// Names under which v1 CPU accounting is mounted.
const V1_CPU: [&str; 2] = ["cpuacct", "cpu,cpuacct"];
/// Name under which v1 memory accounting is mounted.
const V1_MEMORY: &str = "memory";
/// Where a machine that is mostly v1 mounts v2.
const V2_BESIDE_V1: &str = "unified";

/// Which of the kernel's two cgroup interfaces a tree speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// One tree a controller.
    V1,
    /// One tree.
    V2,
}

impl Version {
    /// File with the CPU time of a cgroup.
    pub(crate) fn cpu_file(self) -> &'static str {
        match self {
            Self::V1 => "cpuacct.usage",
            Self::V2 => "cpu.stat",
        }
    }
}

/// The node's cgroup in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Interface of the files in it.
    pub(crate) version: Version,
    /// Directory of the node's cgroup.
    pub(crate) root: PathBuf,
}

/// Where CPU time and memory are accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// CPU time.
    pub(crate) cpu: Tree,
    /// Memory.
    pub(crate) memory: Tree,
}

impl Layout {
    /// Looks for the node's cgroup `root` below `fs`: v1 first, because on a machine with both
    /// the controllers, and so the pods' counters, are in v1.
    pub(crate) fn detect(fs: &Path, root: &str) -> Result<Self, CgroupError> {
        let root = root.trim_matches('/');
        let tree = |version, base: PathBuf| Tree {
            version,
            root: if root.is_empty() {
                base
            } else {
                base.join(root)
            },
        };
        let candidates: Vec<Tree> = V1_CPU
            .iter()
            .map(|name| tree(Version::V1, fs.join(name)))
            .chain([
                tree(Version::V2, fs.to_owned()),
                tree(Version::V2, fs.join(V2_BESIDE_V1)),
            ])
            .collect();
        let cpu_file = |tree: &Tree| tree.root.join(tree.version.cpu_file());
        let Some(cpu) = candidates.iter().find(|tree| cpu_file(tree).is_file()) else {
            return Err(CgroupError::NotFound {
                tried: candidates.iter().map(cpu_file).collect(),
            });
        };
        // Where the chosen tree has no memory files, pods simply have no working set.
        let memory = [
            tree(Version::V1, fs.join(V1_MEMORY)),
            tree(Version::V2, fs.join(V2_BESIDE_V1)),
        ]
        .into_iter()
        .find(|tree| tree.root.is_dir())
        .unwrap_or_else(|| tree(Version::V2, fs.to_owned()));
        Ok(Self {
            cpu: cpu.clone(),
            memory,
        })
    }
}

/// A pod's cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodCgroup {
    /// The pod's UID, as the API writes it.
    pub(crate) uid: String,
    /// Path from the node's cgroup, the same in every hierarchy.
    pub(crate) path: PathBuf,
    /// Inode of the directory: a pod's cgroup that is made anew has another.
    pub(crate) identity: u64,
}

/// The pods of a node, and how to tell that there are others now.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The pods.
    pub(crate) pods: Vec<PodCgroup>,
    /// Every directory that was looked into, with the number of its links.
    directories: Vec<(PathBuf, u64)>,
    listed: Instant,
}

/// A listing is never older than this.
const LONGEST_LISTING: Duration = Duration::from_secs(1);
/// The least links of a directory whose file system counts its subdirectories in them.
const LEAST_LINKS: u64 = 2;

impl Listing {
    /// Finds the pods of a node:
    ///
    /// | driver | path from the node's cgroup |
    /// |---|---|
    /// | cgroupfs | `kubepods/{,burstable/,besteffort/}pod<UID>` |
    /// | systemd | `kubepods.slice/{,kubepods-<qos>.slice/}kubepods-{,<qos>-}pod<UID with _>.slice` |
    ///
    /// Static pods are among them; their UID is the hash that kubelet made of their manifest. A
    /// kubelet with a cgroup root of its own, as in nodes that are containers, has all of this
    /// below `kubelet` or `kubelet.slice`, where systemd's names begin with `kubelet-`.
    pub(crate) fn of(node: &Path) -> Result<Self, CgroupError> {
        let mut listing = Self {
            pods: Vec::new(),
            directories: Vec::new(),
            listed: Instant::now(),
        };
        for (name, _) in listing.look_into(node, Path::new(""))? {
            if is_kubepods(&name) {
                listing.add_level(node, &PathBuf::from(name), true)?;
            } else if KUBELET_ROOTS.contains(&name.as_str()) {
                let root = PathBuf::from(name);
                for (name, _) in listing.look_into_or_nothing(node, &root)? {
                    if is_kubepods(&name) {
                        listing.add_level(node, &root.join(name), true)?;
                    }
                }
            }
        }
        Ok(listing)
    }

    /// Whether the pods are still the same: a cgroup file system counts the subdirectories of a
    /// directory in its links, which costs less to ask than to read the directories. Where one pod
    /// has come and another gone, the open counter of the one that went tells.
    pub(crate) fn is_current(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.listed) < LONGEST_LISTING
            && self.directories.iter().all(|(path, links)| {
                *links >= LEAST_LINKS && fs::metadata(path).is_ok_and(|it| it.nlink() == *links)
            })
    }

    fn add_level(
        &mut self,
        node: &Path,
        level: &Path,
        has_qos_classes: bool,
    ) -> Result<(), CgroupError> {
        for (name, identity) in self.look_into_or_nothing(node, level)? {
            let path = level.join(&name);
            if let Some(uid) = pod_uid(&name) {
                self.pods.push(PodCgroup {
                    uid,
                    path,
                    identity,
                });
            } else if has_qos_classes && is_qos_class(&name) {
                self.add_level(node, &path, false)?;
            }
        }
        Ok(())
    }

    /// The directories in a directory; none if it was removed since its parent was listed.
    fn look_into_or_nothing(
        &mut self,
        node: &Path,
        below: &Path,
    ) -> Result<Vec<(String, u64)>, CgroupError> {
        match self.look_into(node, below) {
            Err(error) if error.is_gone() => Ok(Vec::new()),
            other => other,
        }
    }

    fn look_into(&mut self, node: &Path, below: &Path) -> Result<Vec<(String, u64)>, CgroupError> {
        let path = node.join(below);
        // Before it is read: what comes in between makes the listing old.
        let links = fs::metadata(&path).map_or(0, |it| it.nlink());
        let found = directories(&path)?;
        self.directories.push((path, links));
        Ok(found)
    }
}

/// Kubelet's `--cgroup-root`, where it is not the node's own root.
const KUBELET_ROOTS: [&str; 2] = ["kubelet", "kubelet.slice"];

fn is_kubepods(name: &str) -> bool {
    name == "kubepods" || name.ends_with("kubepods.slice")
}

fn is_qos_class(name: &str) -> bool {
    let name = name.strip_suffix(".slice").unwrap_or(name);
    name.ends_with("burstable") || name.ends_with("besteffort")
}

/// The UID in the name of a pod's cgroup.
fn pod_uid(name: &str) -> Option<String> {
    let uid = match name.strip_suffix(".slice") {
        // systemd reads `-` as a level, so kubelet writes `_` for it.
        Some(slice) => slice.rsplit_once("-pod")?.1.replace('_', "-"),
        None => name.strip_prefix("pod")?.to_owned(),
    };
    (!uid.is_empty()).then_some(uid)
}

/// The directories in a directory, with their inodes.
fn directories(path: &Path) -> Result<Vec<(String, u64)>, CgroupError> {
    let unreadable = |source: io::Error| CgroupError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            found.push((name, entry.ino()));
        }
    }
    Ok(found)
}
