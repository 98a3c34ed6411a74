//! CPU time and CPU limit of this container, from its own cgroup.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where container runtimes mount the cgroup file systems.
const MOUNT: &str = "/sys/fs/cgroup";

/// Time that this cgroup has been throttled so far, in seconds, summed over its CPUs.
/// `None` if the kernel does not report it.
pub(crate) fn throttled_seconds() -> Option<f64> {
    files("cpu", "cpu.stat").find_map(|text| throttled_in(&text))
}

/// CPU time that this cgroup has used so far, in seconds. `None` if the kernel does not report it.
pub(crate) fn used_seconds() -> Option<f64> {
    files("cpu", "cpu.stat")
        .find_map(|text| number_of(&text, "usage_usec"))
        .map(|microseconds| microseconds / 1e6)
        .or_else(|| {
            let nanoseconds: f64 =
                files("cpuacct", "cpuacct.usage").find_map(|text| text.trim().parse().ok())?;
            Some(nanoseconds / 1e9)
        })
}

/// The CPU limit of this cgroup, in CPUs. `None` without a limit, or if the kernel does not report it.
pub(crate) fn limit_cpus() -> Option<f64> {
    let version_2 = || files("cpu", "cpu.max").find_map(|text| limit_in(&text));
    let version_1 = || {
        let quota = files("cpu", "cpu.cfs_quota_us").next()?;
        let period = files("cpu", "cpu.cfs_period_us").next()?;
        limit_in(&format!("{} {}", quota.trim(), period.trim()))
    };
    version_2().or_else(version_1)
}

/// Contents of the files with this name that may belong to this cgroup, the most likely file first.
fn files(controller: &'static str, name: &'static str) -> impl Iterator<Item = String> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    paths(&own, controller, name)
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
}

/// Possible paths of a file of this cgroup, from the text of `/proc/self/cgroup`. A container sees its path from the
/// machine's root. If it has a cgroup namespace or a bind mount, it sees its own cgroup as the root.
fn paths(own: &str, controller: &str, name: &str) -> Vec<PathBuf> {
    own.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            // cgroup version 2 has one line, which names no controller.
            let is_asked =
                controllers.is_empty() || controllers.split(',').any(|one| one == controller);
            is_asked.then(|| (Path::new(MOUNT).join(controllers), path))
        })
        .flat_map(|(mount, path)| {
            let from_root = mount.join(path.trim_start_matches('/'));
            [from_root.join(name), mount.join(name)]
        })
        .collect()
}

/// Throttled time in a `cpu.stat`, in seconds. cgroup version 2 counts microseconds, version 1 nanoseconds.
fn throttled_in(text: &str) -> Option<f64> {
    let version_2 = || Some(number_of(text, "throttled_usec")? / 1e6);
    let version_1 = || Some(number_of(text, "throttled_time")? / 1e9);
    version_2().or_else(version_1)
}

fn number_of(text: &str, wanted: &str) -> Option<f64> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == wanted).then(|| value.trim().parse().ok())?
    })
}

/// The CPU limit in the text `QUOTA PERIOD`, both in microseconds. For no limit, version 2 writes `max` and version 1
/// writes -1.
fn limit_in(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cgroup_version_has_its_own_unit_of_time() {
        let version_2 = "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 1500000\n";
        assert_eq!(throttled_in(version_2), Some(1.5));
        assert_eq!(number_of(version_2, "usage_usec"), Some(9.0));
        let version_1 = "nr_periods 4\nnr_throttled 3\nthrottled_time 2500000000\n";
        assert_eq!(throttled_in(version_1), Some(2.5));
    }

    #[test]
    fn a_missing_counter_is_unknown_and_not_zero() {
        // The root cgroup of version 2, a kernel without bandwidth control, and an invalid number.
        for text in [
            "usage_usec 9\nuser_usec 5\nsystem_usec 4\n",
            "",
            "throttled_usec x\n",
        ] {
            assert_eq!(throttled_in(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_limit_is_the_quota_over_its_period() {
        assert_eq!(limit_in("30000 100000\n"), Some(0.3));
        for unlimited in ["max 100000", "-1 100000", "0 100000", "", "x y"] {
            assert_eq!(limit_in(unlimited), None, "{unlimited:?}");
        }
    }

    #[test]
    fn the_paths_of_the_machine_and_of_the_container_are_both_tried() {
        let paths = |own: &str, controller: &str, name: &str| {
            let files = paths(own, controller, name);
            files
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths("0::/kubepods/pod1/c1\n", "cpu", "cpu.stat"),
            [
                "/sys/fs/cgroup/kubepods/pod1/c1/cpu.stat",
                "/sys/fs/cgroup/cpu.stat"
            ]
        );
        let version_1 = "5:memory:/kubepods/m\n4:cpu,cpuacct:/kubepods/c\n1:name=systemd:/s\n";
        assert_eq!(
            paths(version_1, "cpuacct", "cpuacct.usage"),
            [
                "/sys/fs/cgroup/cpu,cpuacct/kubepods/c/cpuacct.usage",
                "/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage"
            ]
        );
    }
}
