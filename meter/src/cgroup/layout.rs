//! Finds a node's cgroups: v1, v2 or both, with either of kubelet's cgroup drivers.

use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::CgroupError;

/// Names under which v1 CPU accounting is mounted.
const V1_CPU: [&str; 2] = ["cpuacct", "cpu,cpuacct"];
/// Name under which v1 memory accounting is mounted.
const V1_MEMORY: &str = "memory";
/// Where a machine that mostly uses v1 mounts v2.
const V2_BESIDE_V1: &str = "unified";

/// The kernel's two cgroup interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// One tree per controller.
    V1,
    /// One tree for all controllers.
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

    /// Whether the cgroup in `directory` contains all processes of the machine. In a node that is a container, the top
    /// directory is the container's own cgroup. In v2 only the machine's root has no `cgroup.events`, and in v1 only it has
    /// `release_agent` (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cgroups.rst).
    pub(crate) fn is_root_of_machine(self, directory: &Path) -> bool {
        match self {
            Self::V1 => directory.join("release_agent").exists(),
            Self::V2 => !directory.join("cgroup.events").exists(),
        }
    }
}

/// The node's cgroup in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// Interface of the tree's files.
    pub(crate) version: Version,
    /// Directory of the node's cgroup.
    pub(crate) root: PathBuf,
}

/// The trees that account for CPU time and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) cpu: Tree,
    pub(crate) memory: Tree,
    /// Whether the node's cgroup contains all processes of the machine.
    pub(crate) is_whole_machine: bool,
}

impl Layout {
    /// Looks for the node's cgroup `root` below `fs`. v1 comes first: on a machine with both, the controllers
    /// are in v1, and therefore the pods' counters too.
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
        // If the chosen tree has no memory files, pods have no working set.
        let memory = [
            tree(Version::V1, fs.join(V1_MEMORY)),
            tree(Version::V2, fs.join(V2_BESIDE_V1)),
        ]
        .into_iter()
        .find(|tree| tree.root.is_dir())
        .unwrap_or_else(|| tree(Version::V2, fs.to_owned()));
        Ok(Self {
            is_whole_machine: root.is_empty() && cpu.version.is_root_of_machine(&cpu.root),
            cpu: cpu.clone(),
            memory,
        })
    }
}

/// A pod's cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodCgroup {
    /// The pod's UID, as the API writes it.
    pub(crate) uid: Arc<str>,
    /// Path from the node's cgroup. It is the same in every hierarchy.
    pub(crate) path: PathBuf,
    /// Inode of the directory. A pod's cgroup that is created again has another inode.
    pub(crate) identity: u64,
}

/// The data that reveal a change of a node's pods.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Every directory that was read, with its number of links.
    directories: Vec<(PathBuf, u64)>,
    listed: Instant,
}

/// The greatest age of a listing.
const LONGEST_LISTING: Duration = Duration::from_secs(1);
/// Least number of links of a directory, if its file system counts subdirectories as links.
const LEAST_LINKS: u64 = 2;

impl Listing {
    /// Finds the pods of a node:
    ///
    /// | driver | path from the node's cgroup |
    /// |---|---|
    /// | cgroupfs | `kubepods/{,burstable/,besteffort/}pod<UID>` |
    /// | systemd | `kubepods.slice/{,kubepods-<qos>.slice/}kubepods-{,<qos>-}pod<UID with _>.slice` |
    ///
    /// Static pods are among them. Their UID is the hash of their manifest, which kubelet computes. In nodes
    /// that are containers, kubelet has its own cgroup root. The paths above are then below `kubelet` or
    /// `kubelet.slice`, and systemd's names begin with `kubelet-`.
    pub(crate) fn of(node: &Path) -> Result<(Self, Vec<PodCgroup>), CgroupError> {
        let mut pods = Vec::new();
        let mut listing = Self {
            directories: Vec::new(),
            listed: Instant::now(),
        };
        for (name, _) in listing.look_into(node, Path::new(""))? {
            if is_kubepods(&name) {
                listing.add_level(&mut pods, node, &PathBuf::from(name), true)?;
            } else if KUBELET_ROOTS.contains(&name.as_str()) {
                let root = PathBuf::from(name);
                for (name, _) in listing.look_into_or_nothing(node, &root)? {
                    if is_kubepods(&name) {
                        listing.add_level(&mut pods, node, &root.join(name), true)?;
                    }
                }
            }
        }
        Ok((listing, pods))
    }

    /// Whether the pods are still the same. A cgroup file system counts the subdirectories of a directory as
    /// links. Checking the number of links costs less than reading the directories. If one pod has come and
    /// another has gone, the open counter of the pod that has gone reveals this.
    pub(crate) fn is_current(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.listed) < LONGEST_LISTING
            && self.directories.iter().all(|(path, links)| {
                *links >= LEAST_LINKS && fs::metadata(path).is_ok_and(|it| it.nlink() == *links)
            })
    }

    fn add_level(
        &mut self,
        pods: &mut Vec<PodCgroup>,
        node: &Path,
        level: &Path,
        has_qos_classes: bool,
    ) -> Result<(), CgroupError> {
        for (name, identity) in self.look_into_or_nothing(node, level)? {
            let path = level.join(&name);
            if let Some(uid) = pod_uid(&name) {
                pods.push(PodCgroup {
                    uid,
                    path,
                    identity,
                });
            } else if has_qos_classes && is_qos_class(&name) {
                self.add_level(pods, node, &path, false)?;
            }
        }
        Ok(())
    }

    /// The subdirectories of a directory; empty if the directory was removed after its parent was listed.
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
        // Before the directory is read: a later change then makes the listing outdated.
        let links = fs::metadata(&path).map_or(0, |it| it.nlink());
        let found = directories(&path)?;
        self.directories.push((path, links));
        Ok(found)
    }
}

/// Kubelet's `--cgroup-root`, if it is not the node's own root.
const KUBELET_ROOTS: [&str; 2] = ["kubelet", "kubelet.slice"];

fn is_kubepods(name: &str) -> bool {
    name == "kubepods" || name.ends_with("kubepods.slice")
}

fn is_qos_class(name: &str) -> bool {
    let name = name.strip_suffix(".slice").unwrap_or(name);
    name.ends_with("burstable") || name.ends_with("besteffort")
}

/// The UID in the name of a pod's cgroup.
fn pod_uid(name: &str) -> Option<Arc<str>> {
    let uid: Arc<str> = match name.strip_suffix(".slice") {
        // systemd takes `-` for a level, so kubelet writes `_` instead.
        Some(slice) => slice.rsplit_once("-pod")?.1.replace('_', "-").into(),
        None => name.strip_prefix("pod")?.into(),
    };
    (!uid.is_empty()).then_some(uid)
}

/// The subdirectories of a directory, with their inodes.
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
