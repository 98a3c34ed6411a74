//! Where a node's cgroups are: v1, v2 or both, with either of kubelet's cgroup drivers.

use std::fs;
use std::io;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

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

/// Finds the pods of a node:
///
/// | driver | path from the node's cgroup |
/// |---|---|
/// | cgroupfs | `kubepods/{,burstable/,besteffort/}pod<UID>` |
/// | systemd | `kubepods.slice/{,kubepods-<qos>.slice/}kubepods-{,<qos>-}pod<UID with _>.slice` |
///
/// Static pods are among them; their UID is the hash that kubelet made of their manifest. A kubelet
/// with a cgroup root of its own, as in nodes that are containers, has all of this below
/// `kubelet` or `kubelet.slice`, where systemd's names begin with `kubelet-`.
pub(crate) fn list_pods(node: &Path) -> Result<Vec<PodCgroup>, CgroupError> {
    let mut pods = Vec::new();
    for (name, _) in directories(node)? {
        if is_kubepods(&name) {
            list_level(node, &PathBuf::from(name), true, &mut pods)?;
        } else if KUBELET_ROOTS.contains(&name.as_str()) {
            let root = PathBuf::from(name);
            let below = match directories(&node.join(&root)) {
                Err(error) if error.is_gone() => Vec::new(),
                other => other?,
            };
            for (name, _) in below.iter().filter(|(name, _)| is_kubepods(name)) {
                list_level(node, &root.join(name), true, &mut pods)?;
            }
        }
    }
    Ok(pods)
}

/// Kubelet's `--cgroup-root`, where it is not the node's own root.
const KUBELET_ROOTS: [&str; 2] = ["kubelet", "kubelet.slice"];

fn is_kubepods(name: &str) -> bool {
    name == "kubepods" || name.ends_with("kubepods.slice")
}

fn list_level(
    node: &Path,
    level: &Path,
    has_qos_classes: bool,
    pods: &mut Vec<PodCgroup>,
) -> Result<(), CgroupError> {
    let entries = match directories(&node.join(level)) {
        // Removed since its parent was listed.
        Err(error) if error.is_gone() => return Ok(()),
        other => other?,
    };
    for (name, identity) in entries {
        let path = level.join(&name);
        if let Some(uid) = pod_uid(&name) {
            pods.push(PodCgroup {
                uid,
                path,
                identity,
            });
        } else if has_qos_classes && is_qos_class(&name) {
            list_level(node, &path, false, pods)?;
        }
    }
    Ok(())
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
