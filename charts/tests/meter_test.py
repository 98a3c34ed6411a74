"""The meter as the chart installs it."""

import json

import pytest

from rendered import (
    AUTO,
    GENERIC,
    GROUP,
    PI,
    PLUG,
    container,
    environment,
    find,
    may_get_the_meters_daemonsets,
    meter,
    operator,
    pod,
    refusal,
    render,
    template,
)


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ((), "no meter.idleWatts and no meter.wattsPerCpu is set"),
        (("--set", "meter.idleWatts=2"), "no meter.wattsPerCpu is set"),
        (("--set", "meter.wattsPerCpu=2"), "no meter.idleWatts is set"),
    ],
)
def test_an_unknown_board_without_watts_is_refused_and_the_message_says_what_to_write(
    settings, missing
):
    message = refusal(*settings)
    assert missing in message
    assert "--set meter.idleWatts=" in message
    assert "--set meter.wattsPerCpu=" in message
    assert "--set meter.board=pi-4b" in message
    assert "Raspberry Pi" in message
    assert "--set meter.enabled=false" in message


def test_a_model_s_accuracy_is_stated_for_both_watts_or_neither():
    names = ("meter.idleWattsRelativeUncertainty", "meter.wattsPerCpuRelativeUncertainty")
    both = ("--set", f"{names[0]}=0.05", "--set", f"{names[1]}=0.1")
    for board in (GENERIC, PI):
        env = environment(meter(*board, *both))
        assert env["FRUGALITY_METER_IDLE_WATTS_RELATIVE_UNCERTAINTY"] == "0.05"
        assert env["FRUGALITY_METER_WATTS_PER_CPU_RELATIVE_UNCERTAINTY"] == "0.1"
        assert not [name for name in environment(meter(*board)) if "UNCERTAINTY" in name]
        for name in names:
            message = refusal(*board, "--set", f"{name}=0.1")
            assert f"Only {name} is set" in message
            assert "or neither" in message
    assert "write idleWattsRelativeUncertainty and" in refusal(*AUTO, *both)


def test_a_known_board_with_watts_is_refused():
    message = refusal(*PI, "--set", "meter.idleWatts=2")
    assert "leave out meter.idleWatts" in message
    assert "meter.board=generic" in message


def test_the_meter_is_root_without_any_privilege():
    spec = pod(meter(*PI))
    inner = container(meter(*PI))["securityContext"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & set(spec)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inner == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_meter_mounts_host_paths_for_its_sources_and_can_write_to_none():
    daemonset = meter(*PI)
    sources = {
        v["name"]: v["hostPath"]["path"] for v in daemonset["spec"]["template"]["spec"]["volumes"]
    }
    mounts = container(daemonset)["volumeMounts"]
    assert {sources[m["name"]]: m["mountPath"] for m in mounts} == {
        "/sys/class": "/host/sys/class",
        "/sys/devices": "/host/sys/devices",
        "/sys/fs/cgroup": "/host/sys/fs/cgroup",
        "/var/log/pods": "/var/log/pods",
    }
    for mount in mounts:
        assert mount["readOnly"] is True
        assert mount["recursiveReadOnly"] == "IfPossible"
        assert "mountPropagation" not in mount


def test_the_meter_sees_the_device_tree_only_if_asked_and_never_all_of_the_firmware():
    daemonset = meter(*PI, "--set", "meter.deviceTree=true")
    paths = [v["hostPath"]["path"] for v in daemonset["spec"]["template"]["spec"]["volumes"]]
    assert [path for path in paths if "firmware" in path] == ["/sys/firmware/devicetree"]
    mount = next(m for m in container(daemonset)["volumeMounts"] if m["name"] == "device-tree")
    assert mount["readOnly"] is True
    assert mount["mountPath"] == "/host/sys/firmware/devicetree"


def power_files(*arguments):
    data = find(render(*arguments), "ConfigMap", "frugality-meter-power")["data"]
    return {name: json.loads(text) for name, text in data.items()}


def test_every_node_gets_its_power_source():
    assert power_files(*PI, *PLUG) == {
        "_default.json": {
            "nodes": {"pi-1": {"source": {"type": "shelly-gen2", "host": "192.168.1.20"}}}
        }
    }
    daemonset = meter(*PI, *PLUG)
    env = environment(daemonset)
    mounts = {m["name"]: m for m in container(daemonset)["volumeMounts"]}
    assert env["FRUGALITY_METER_POWER_CONFIG"] == mounts["power"]["mountPath"] + "/_default.json"
    assert mounts["power"]["readOnly"] is True
    # Nodes without a source use the board's model.
    assert env["FRUGALITY_METER_BOARD"] == "pi-4b"


def test_without_power_sources_there_is_no_configuration():
    objects = render(*PI)
    assert not [o for o in objects if o["kind"] == "ConfigMap"]
    assert "FRUGALITY_METER_POWER_CONFIG" not in environment(meter(*PI))


def test_a_source_for_all_nodes_needs_no_board_and_refuses_watts():
    assert power_files(*AUTO)["_default.json"]["default"] == {"source": {"type": "auto"}}
    assert "FRUGALITY_METER_IDLE_WATTS" not in environment(meter(*AUTO))
    assert "below meter.power.default" in refusal(*AUTO, "--set", "meter.idleWatts=2")


def test_a_changed_source_restarts_the_meters():
    def annotation(*arguments):
        return meter(*arguments)["spec"]["template"]["metadata"]["annotations"]

    other = annotation(*AUTO, "--set", "meter.power.default.maxWatts=12")
    assert annotation(*AUTO) != other


def test_nodes_with_a_label_have_a_meter_of_their_own_and_never_two():
    objects = render(*PI, *GROUP)
    rest, group = (
        find(objects, "DaemonSet", name) for name in ("frugality-meter", "frugality-meter-ina")
    )
    assert group["spec"]["template"]["spec"]["nodeSelector"] == {"frugality.dev/power": "ina226"}
    [term] = rest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "frugality.dev/power", "operator": "NotIn", "values": ["ina226"]}
    ]
    assert environment(group)["FRUGALITY_METER_POWER_CONFIG"].endswith("/ina.json")
    assert power_files(*PI, *GROUP)["ina.json"]["default"] == {"source": {"type": "hwmon"}}
    # The operator finds the pods of both DaemonSets by the same label, and treats them as meters.
    names = environment(operator(*PI, *GROUP))["FRUGALITY_METER_DAEMON_SETS"]
    assert names == "frugality-meter,frugality-meter-ina"
    may_get_the_meters_daemonsets(objects, "frugality-system", names.split(","))
    label, value = environment(operator(*PI))["FRUGALITY_METER_SELECTOR"].split("=")
    for daemonset in (rest, group):
        labels = daemonset["spec"]["template"]["metadata"]["labels"]
        assert labels[label] == value
        assert daemonset["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_node_with_the_labels_of_two_groups_has_the_meter_of_the_first():
    second = ("name=plug", "label=frugality.dev/plug=yes", "power.source.type=hwmon")
    settings = [("--set", f"meter.power.groups[1].{it}") for it in second]
    objects = render(*PI, *GROUP, *(word for setting in settings for word in setting))
    specs = [
        find(objects, "DaemonSet", f"frugality-meter-{name}")["spec"]["template"]["spec"]
        for name in ("ina", "plug")
    ]
    assert "affinity" not in specs[0]
    [term] = specs[1]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchExpressions"] == [
        {"key": "frugality.dev/power", "operator": "NotIn", "values": ["ina226"]}
    ]


@pytest.mark.parametrize("name", ["power", "default"])
def test_no_group_reads_the_source_of_the_other_nodes(name):
    settings = (*PI, *GROUP, "--set", f"meter.power.groups[0].name={name}")
    paths = [
        environment(find(render(*settings), "DaemonSet", daemonset))["FRUGALITY_METER_POWER_CONFIG"]
        for daemonset in ("frugality-meter", f"frugality-meter-{name}")
    ]
    files = power_files(*settings)
    rest, group = (files[path.rpartition("/")[2]] for path in paths)
    assert group["default"] == {"source": {"type": "hwmon"}}
    assert "default" not in rest
    # A YAML parser keeps the last of two equal keys, so the keys are counted in the text.
    text = template(*settings).stdout
    assert [text.count(f"\n  {file}: |") for file in files] == [1, 1]


def second_group(name, label):
    values = {"name": name, "label": label, "power.source.type": "pmic"}
    return tuple(
        word
        for field, value in values.items()
        for word in ("--set", f"meter.power.groups[1].{field}={value}")
    )


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (GROUP[:4], "missing property 'power'"),
        ((*GROUP, "--set", "meter.affinity.podAffinity.x=1"), "exclude each other"),
        ((*GROUP, *second_group("ina", "a/b=c")), "More than one group of meter.power.groups has the name ina"),
        (
            (*GROUP, *second_group("pmic", "frugality.dev/power=ina226")),
            "More than one group of meter.power.groups has the label frugality.dev/power=ina226",
        ),
    ],
)
def test_groups_that_would_leave_a_node_without_or_with_two_meters_are_refused(settings, told):
    assert told in refusal(*PI, *settings)


def test_passwords_come_from_a_secret_and_files_of_the_host_are_read_only():
    daemonset = meter(
        *PI,
        *PLUG,
        "--set",
        "meter.power.secretName=plugs",
        "--set",
        "meter.power.hostDirectories={/run/frugality-pmic}",
    )
    volumes = {v["name"]: v for v in daemonset["spec"]["template"]["spec"]["volumes"]}
    mounts = {m["mountPath"]: m for m in container(daemonset)["volumeMounts"]}
    secret = mounts["/etc/frugality/secrets"]
    assert volumes[secret["name"]]["secret"] == {"secretName": "plugs", "defaultMode": 0o400}
    pmic = mounts["/run/frugality-pmic"]
    assert volumes[pmic["name"]]["hostPath"]["path"] == "/run/frugality-pmic"
    assert secret["readOnly"] is True
    assert pmic["readOnly"] is True


def test_the_bridge_writes_in_one_directory_ten_times_a_second():
    daemonset = meter(*PI, "--set", "meter.bridge.enabled=true")
    env = environment(daemonset)
    assert env["FRUGALITY_METER_INTERVAL"] == "100ms"
    [mount] = [m for m in container(daemonset)["volumeMounts"] if not m.get("readOnly")]
    assert mount["mountPath"] == env["FRUGALITY_METER_BRIDGE"]
    [volume] = [
        v for v in daemonset["spec"]["template"]["spec"]["volumes"] if v["name"] == mount["name"]
    ]
    assert volume["hostPath"] == {"path": "/run/frugality/kepler", "type": "DirectoryOrCreate"}
    assert "FRUGALITY_METER_BRIDGE" not in environment(meter(*PI))


def test_the_meter_runs_on_every_node_and_is_probed():
    daemonset = meter(*PI)
    assert daemonset["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]
    assert not {"nodeSelector", "affinity"} & set(daemonset["spec"]["template"]["spec"])
    [port] = container(daemonset)["ports"]
    assert port["containerPort"] == 28282
    assert container(daemonset)["livenessProbe"]["httpGet"] == {
        "path": "/healthz",
        "port": port["name"],
    }
    assert container(daemonset)["readinessProbe"]["httpGet"] == {
        "path": "/readyz",
        "port": port["name"],
    }


def test_the_meter_gets_the_settings_of_a_known_board():
    env = environment(meter(*PI))
    assert env["NODE_NAME"] == "[spec.nodeName]"
    assert env["FRUGALITY_METER_BOARD"] == "pi-4b"
    assert env["FRUGALITY_METER_INTERVAL"] == "500ms"
    assert env["FRUGALITY_METER_CGROUP_FS"] == "/host/sys/fs/cgroup"
    assert env["FRUGALITY_METER_CGROUP_ROOT"] == "/"
    assert env["FRUGALITY_METER_POD_LOGS"] == "/var/log/pods"
    # Without these variables the meter uses the board's own watts and the CPUs that it finds.
    assert not {
        "FRUGALITY_METER_IDLE_WATTS",
        "FRUGALITY_METER_WATTS_PER_CPU",
        "FRUGALITY_METER_CPUS",
    } & set(env)


def test_the_meter_gets_the_settings_of_a_board_with_given_watts():
    env = environment(meter(*GENERIC, "--set", "meter.cpus=1"))
    assert env["FRUGALITY_METER_BOARD"] == "generic"
    assert env["FRUGALITY_METER_IDLE_WATTS"] == "0"
    assert env["FRUGALITY_METER_WATTS_PER_CPU"] == "1.5"
    assert env["FRUGALITY_METER_CPUS"] == "1"


@pytest.mark.parametrize(
    ("path", "mounted", "read"),
    [
        ("/var/log/pods", "/var/log/pods", "/var/log/pods"),
        ("/run/lab/{node}/logs/pods", "/run/lab", "/var/log/pods/$(NODE_NAME)/logs/pods"),
        ("/run/lab/of-{node}", "/run/lab", "/var/log/pods/of-$(NODE_NAME)"),
    ],
)
def test_nodes_that_share_a_machine_have_cgroups_and_logs_of_their_own(path, mounted, read):
    daemonset = meter(
        *PI, "--set", f"meter.podLogsPath={path}", "--set", "meter.cgroupRoot=/lab/{node}"
    )
    [logs] = [
        v for v in daemonset["spec"]["template"]["spec"]["volumes"] if v["name"] == "pod-logs"
    ]
    assert logs["hostPath"]["path"] == mounted
    env = environment(daemonset)
    assert env["FRUGALITY_METER_POD_LOGS"] == read
    # The meter itself replaces {node} here.
    assert env["FRUGALITY_METER_CGROUP_ROOT"] == "/lab/{node}"
    # Kubernetes expands only variables that are defined earlier in the list.
    names = list(env)
    assert names.index("NODE_NAME") < names.index("FRUGALITY_METER_POD_LOGS")
