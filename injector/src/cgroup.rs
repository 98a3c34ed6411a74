//! For how long this container's CPU was throttled, by its own cgroup.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where container runtimes mount the cgroup file systems.
const MOUNT: &str = "/sys/fs/cgroup";

/// How long the CPU of this cgroup has been throttled so far, in seconds: the sum over its CPUs.
/// `None` where the kernel does not tell.
pub(crate) fn throttled_seconds() -> Option<f64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    stat_files(&own)
        .iter()
        .find_map(|path| in_stat(&fs::read_to_string(path).ok()?))
}

/// Where `cpu.stat` may be, from what `/proc/self/cgroup` says. A container sees either the path from
/// the machine's root or, with a cgroup namespace or a bind mount of its own, itself as the root.
fn stat_files(own: &str) -> Vec<PathBuf> {
    own.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            // Version 2 has one line, without the name of a controller.
            let is_cpu = controllers.is_empty() || controllers.split(',').any(|one| one == "cpu");
            is_cpu.then(|| (Path::new(MOUNT).join(controllers), path))
        })
        .flat_map(|(mount, path)| {
            let from_root = mount.join(path.trim_start_matches('/'));
            [from_root.join("cpu.stat"), mount.join("cpu.stat")]
        })
        .collect()
}

/// The time in a `cpu.stat`: microseconds in version 2, nanoseconds in version 1.
fn in_stat(text: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        let value: f64 = value.trim().parse().ok()?;
        match key {
            "throttled_usec" => Some(value / 1e6),
            "throttled_time" => Some(value / 1e9),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_tell_the_time_in_their_own_unit() {
        let version_2 = "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 1500000\n";
        assert_eq!(in_stat(version_2), Some(1.5));
        let version_1 = "nr_periods 4\nnr_throttled 3\nthrottled_time 2500000000\n";
        assert_eq!(in_stat(version_1), Some(2.5));
    }

    #[test]
    fn what_is_not_told_is_unknown_and_not_zero() {
        // The root of version 2, and a kernel without bandwidth control.
        for text in [
            "usage_usec 9\nuser_usec 5\nsystem_usec 4\n",
            "",
            "throttled_usec x\n",
        ] {
            assert_eq!(in_stat(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_file_is_looked_for_as_the_machine_and_as_the_container_sees_it() {
        let paths = |own: &str| {
            let files = stat_files(own);
            files
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths("0::/kubepods/pod1/c1\n"),
            [
                "/sys/fs/cgroup/kubepods/pod1/c1/cpu.stat",
                "/sys/fs/cgroup/cpu.stat"
            ]
        );
        assert_eq!(
            paths("5:memory:/kubepods/m\n4:cpu,cpuacct:/kubepods/c\n1:name=systemd:/s\n"),
            [
                "/sys/fs/cgroup/cpu,cpuacct/kubepods/c/cpu.stat",
                "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"
            ]
        );
    }
}
