use std::fs;

use rstest::rstest;
use tempfile::TempDir;

use super::*;

const BURSTABLE: &str = "bed27566-8352-495a-8672-08132c7957e6";
const BEST_EFFORT: &str = "8bcd67cf-5338-4db6-a3e3-0512ae806712";
const GUARANTEED: &str = "ef242d7d-0f35-43c3-b2f2-8362f3f6e16d";
/// Kubelet gives a pod from a manifest file a hash as its UID.
const STATIC: &str = "0b5c2e4fd1a84b0f9d0c3b7a55e0c1d2";

/// Paths of the four pods, by UID.
fn cgroupfs() -> [(&'static str, String); 4] {
    [
        (BURSTABLE, format!("kubepods/burstable/pod{BURSTABLE}")),
        (BEST_EFFORT, format!("kubepods/besteffort/pod{BEST_EFFORT}")),
        (GUARANTEED, format!("kubepods/pod{GUARANTEED}")),
        (STATIC, format!("kubepods/burstable/pod{STATIC}")),
    ]
}

fn systemd() -> [(&'static str, String); 4] {
    let slice = |qos: &str, uid: &str| {
        let pod = uid.replace('-', "_");
        match qos {
            "" => format!("kubepods.slice/kubepods-pod{pod}.slice"),
            qos => format!("kubepods.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{pod}.slice"),
        }
    };
    [
        (BURSTABLE, slice("burstable", BURSTABLE)),
        (BEST_EFFORT, slice("besteffort", BEST_EFFORT)),
        (GUARANTEED, slice("", GUARANTEED)),
        (STATIC, slice("burstable", STATIC)),
    ]
}

/// A kubelet whose `--cgroup-root` is `/kubelet`, as in nodes that are containers.
fn below_kubelet() -> [(&'static str, String); 4] {
    cgroupfs().map(|(uid, path)| (uid, format!("kubelet/{path}")))
}

fn below_kubelet_slice() -> [(&'static str, String); 4] {
    systemd().map(|(uid, path)| {
        let path = path.replace("kubepods", "kubelet-kubepods");
        (uid, format!("kubelet.slice/{path}"))
    })
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn v1(fs: &Path, cpu: &str, cgroup: &str, nanoseconds: u64) {
    write(
        &fs.join(cpu).join(cgroup).join("cpuacct.usage"),
        &format!("{nanoseconds}\n"),
    );
    let memory = fs.join("memory").join(cgroup);
    write(&memory.join("memory.usage_in_bytes"), "5000\n");
    write(
        &memory.join("memory.stat"),
        "cache 1\ninactive_file 7\ntotal_inactive_file 2000\n",
    );
}

fn v2(fs: &Path, cgroup: &str, nanoseconds: u64) {
    let directory = fs.join(cgroup);
    write(
        &directory.join("cpu.stat"),
        &format!("usage_usec {}\nuser_usec 1\n", nanoseconds / 1000),
    );
    write(&directory.join("memory.current"), "5000\n");
    write(
        &directory.join("memory.stat"),
        "anon 1\nfile 2\ninactive_file 2000\n",
    );
}

/// Of the machine's root, many kernels count stolen time in `usage_usec`.
#[test]
fn stolen_time_is_no_cpu_time_of_the_root() {
    let directory = TempDir::new().unwrap();
    write(
        &directory.path().join("cpu.stat"),
        "usage_usec 9000\nuser_usec 5000\nsystem_usec 1000\nnice_usec 0\n",
    );
    let nanoseconds = || {
        let counter = CpuCounter::open(directory.path(), layout::Version::V2).unwrap();
        counter.read_nanoseconds().unwrap()
    };
    assert_eq!(nanoseconds(), 6_000_000);
    // Every other cgroup has this file.
    write(&directory.path().join("cgroup.events"), "populated 1\n");
    assert_eq!(nanoseconds(), 9_000_000);
}

#[rstest]
#[case::v1_cgroupfs("cpuacct", cgroupfs(), "/")]
#[case::v1_systemd("cpu,cpuacct", systemd(), "/")]
#[case::v1_below_a_root("cpuacct", cgroupfs(), "/lab/pi-1")]
#[case::v2_cgroupfs("", cgroupfs(), "/")]
#[case::v2_systemd("", systemd(), "/")]
#[case::v1_below_kubelet("cpuacct", below_kubelet(), "/")]
#[case::v2_below_kubelet("", below_kubelet_slice(), "/")]
#[case::v2_beside_v1("unified", systemd(), "/lab/pi-1")]
fn node_and_pods_are_found_with_their_cpu_time_and_memory(
    #[case] cpu: &str,
    #[case] pods: [(&'static str, String); 4],
    #[case] root: &str,
) {
    let fs = TempDir::new().unwrap();
    let below = root.trim_start_matches('/');
    let put = |cgroup: &str, nanoseconds| {
        let cgroup = format!("{below}/{cgroup}");
        let cgroup = cgroup.trim_matches('/');
        match cpu {
            "" => v2(fs.path(), cgroup, nanoseconds),
            "unified" => v2(&fs.path().join(cpu), cgroup, nanoseconds),
            _ => v1(fs.path(), cpu, cgroup, nanoseconds),
        }
    };
    put("", 70_000_000_000);
    // Neighbouring cgroups that are not pods.
    put("system.slice", 9);
    put("podman", 9);
    put("kubelet/kubelet", 9);
    for (index, (_, cgroup)) in pods.iter().enumerate() {
        put(cgroup, (index as u64 + 1) * 1_000_000);
    }

    let observation = CgroupReader::new(fs.path(), root).unwrap().read().unwrap();
    assert_eq!(observation.node_cpu_nanoseconds, 70_000_000_000);
    let seen: Vec<_> = observation
        .pods
        .iter()
        .map(|(uid, pod)| (uid.as_ref(), pod.cpu_nanoseconds, pod.working_set_bytes))
        .collect();
    let mut expected: Vec<_> = pods
        .iter()
        .enumerate()
        .map(|(index, (uid, _))| (*uid, (index as u64 + 1) * 1_000_000, Some(3_000)))
        .collect();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

/// The processors' work is read unless the node's cgroup contains all processes of the machine. In a node that is a
/// container, `/` is the container's own cgroup.
#[rstest]
#[case::v2_root("", "/", None, false)]
#[case::v2_container("", "/", Some("cgroup.events"), true)]
#[case::v2_below_a_root("", "/lab/pi-1", Some("cgroup.events"), true)]
#[case::v1_root("cpuacct", "/", Some("release_agent"), false)]
#[case::v1_container("cpuacct", "/", None, true)]
#[case::v1_below_a_root("cpuacct", "/lab/pi-1", None, true)]
fn only_the_root_of_the_machine_contains_all_work(
    #[case] cpu: &str,
    #[case] root: &str,
    #[case] file: Option<&str>,
    #[case] has_work_outside: bool,
) {
    let fs = TempDir::new().unwrap();
    let below = root.trim_start_matches('/');
    match cpu {
        "" => v2(fs.path(), below, 1_000_000),
        _ => v1(fs.path(), cpu, below, 1_000_000),
    }
    if let Some(file) = file {
        write(&fs.path().join(cpu).join(below).join(file), "");
    }
    let mut reader = CgroupReader::new(fs.path(), root)
        .unwrap()
        .with_processors(Path::new("/proc"));
    let processors = reader.read().unwrap().processors.unwrap();
    assert_eq!(processors.work.is_some(), has_work_outside);
}

#[test]
fn unknown_memory_is_unknown_and_not_0() {
    let fs = TempDir::new().unwrap();
    let pod = format!("kubepods/pod{GUARANTEED}");
    v1(fs.path(), "cpuacct", "", 1);
    v1(fs.path(), "cpuacct", &pod, 1);
    fs::remove_file(fs.path().join("memory").join(&pod).join("memory.stat")).unwrap();
    let observation = CgroupReader::new(fs.path(), "/").unwrap().read().unwrap();
    assert_eq!(observation.pods[GUARANTEED].working_set_bytes, None);

    fs::remove_dir_all(fs.path().join("memory")).unwrap();
    let observation = CgroupReader::new(fs.path(), "/").unwrap().read().unwrap();
    assert_eq!(observation.pods[GUARANTEED].working_set_bytes, None);
}

#[test]
fn pods_come_and_go_between_readings() {
    let fs = TempDir::new().unwrap();
    v2(fs.path(), "", 1_000_000);
    let mut reader = CgroupReader::new(fs.path(), "/").unwrap();
    assert!(reader.read().unwrap().pods.is_empty());

    let pod = format!("kubepods/pod{GUARANTEED}");
    v2(fs.path(), &pod, 5_000);
    let before = reader.read().unwrap();
    assert_eq!(before.pods[GUARANTEED].cpu_nanoseconds, 5_000);

    // The old directory is kept elsewhere, because the new one must not get its inode.
    fs::rename(fs.path().join(&pod), fs.path().join("gone")).unwrap();
    assert!(reader.read().unwrap().pods.is_empty());
    v2(fs.path(), &pod, 7_000);
    let after = reader.read().unwrap();
    assert_eq!(after.pods[GUARANTEED].cpu_nanoseconds, 7_000);
    assert_ne!(
        after.pods[GUARANTEED].cgroup,
        before.pods[GUARANTEED].cgroup
    );
    assert_eq!(after.node_cgroup, before.node_cgroup);
    assert!(after.elapsed > before.elapsed);
}

#[test]
fn a_counter_that_cannot_be_understood_gives_no_reading() {
    let fs = TempDir::new().unwrap();
    let pod = format!("kubepods/pod{GUARANTEED}");
    v2(fs.path(), "", 1_000_000);
    v2(fs.path(), &pod, 5_000);
    let mut reader = CgroupReader::new(fs.path(), "/").unwrap();
    reader.read().unwrap();
    let stat = fs.path().join(&pod).join("cpu.stat");
    fs::write(&stat, "user_usec 1\n").unwrap();
    let error = reader.read().unwrap_err().to_string();
    assert!(error.contains(&*stat.to_string_lossy()), "{error}");
}

#[test]
fn a_wrong_mount_is_explained() {
    let fs = TempDir::new().unwrap();
    let error = CgroupReader::new(fs.path(), "/lab/pi-1")
        .unwrap_err()
        .to_string();
    for part in [
        "cpuacct/lab/pi-1/cpuacct.usage",
        "lab/pi-1/cpu.stat",
        "--cgroup-fs",
        "--cgroup-root",
    ] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}
