"""Tests of the chart's values: documentation, schema, and agreement with the meter."""

import json
import re
import sys

import pytest
import yaml

from rendered import CHART, KUBERNETES, PI, binary, helm, refusal, render, run

sys.path.insert(0, str(CHART.parent))
import values

TEXT = (CHART / "values.yaml").read_text()
DEFAULTS = yaml.safe_load(TEXT)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
SOURCES = SCHEMA["definitions"]["source"]


def resolved(part):
    name = part.get("$ref", "").removeprefix("#/definitions/")
    return SCHEMA["definitions"][name] if name else part


def subschemas(part, path="#"):
    """Every schema inside a schema, with its path."""
    if isinstance(part, dict):
        yield path, part
        for key, inner in part.items():
            yield from subschemas(inner, f"{path}/{key}")
    elif isinstance(part, list):
        for index, inner in enumerate(part):
            yield from subschemas(inner, f"{path}/{index}")


# ---- documents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "written"), [("README.md", values.readme), ("values.schema.json", values.schema)]
)
def test_documents_agree_with_values_yaml(name, written):
    text = (CHART / name).read_text()
    assert written(text, values.values(TEXT)) == text, f"{name} is out of date: make generate"


def test_a_value_without_a_comment_is_refused():
    with pytest.raises(values.UndocumentedError, match=r"b\.d has no comment"):
        values.values("# One.\na: 1\nb:\n  # Two.\n  c: 2\n  d: 3\n")


def test_a_comment_belongs_to_the_key_directly_below_it():
    text = "# About the file.\n\n# ---- First ----\n\n# Of a,\n# on two lines.\na: [1]\nb:\n  # Of c.\n  c: {d: 1}\n"
    found = {v.path: (v.section, v.description, v.default) for v in values.values(text)}
    assert found == {
        "a": ("First", "Of a, on two lines.", [1]),
        "b.c": ("First", "Of c.", {"d": 1}),
    }


# ---- the schema ---------------------------------------------------------------------------------


def test_every_value_is_in_the_schema_and_the_reverse():
    documented = {v.path for v in values.values(TEXT)}
    leaves = {v.path for v in values.values(TEXT) if not v.is_group}
    known = set()

    def walk(part, path):
        properties = resolved(part).get("properties", {})
        if path in leaves or not properties:
            known.add(path)
            return
        for name, inner in properties.items():
            walk(inner, f"{path}.{name}".removeprefix("."))

    walk(SCHEMA, "")
    assert known - {"global"} == leaves
    assert leaves <= documented


def test_objects_with_named_fields_refuse_other_fields():
    loose = [
        path
        for path, part in subschemas(SCHEMA)
        if isinstance(part.get("properties"), dict)
        and part.get("type") == "object"
        and part.get("additionalProperties") is not False
    ]
    # The fields of a source depend on its type.
    assert loose == ["#/definitions/source"]
    for case in SOURCES["allOf"]:
        assert case["then"]["additionalProperties"] is False
    cases = [case["if"]["properties"]["type"]["const"] for case in SOURCES["allOf"]]
    assert cases == SOURCES["properties"]["type"]["enum"]


def test_every_value_has_a_description():
    silent = [
        f"{path}/{name}"
        for path, part in subschemas(SCHEMA)
        if isinstance(part.get("properties"), dict) and "/if" not in path
        for name, inner in part["properties"].items()
        if isinstance(inner, dict)
        and not {"description", "properties"} & set(inner)
        and "description" not in resolved(inner)
        and not path.startswith("#/definitions/tolerations")
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("meter.bord=pi-4b", "'/meter': additional properties 'bord' not allowed"),
        ("Meter.board=pi-4b", "additional properties 'Meter' not allowed"),
        ("meter.board=pi4", "'/meter/board': value must be one of 'generic', 'pi-zero-2w'"),
        ("benchmarkNamespaces[0]=Shop", "'/benchmarkNamespaces/0': 'Shop' does not match pattern"),
        ("benchmarkNamespaces=shop", "'/benchmarkNamespaces': got string, want array"),
        ("networkPolicies.apiServerPorts[0]=https", "got string, want integer"),
        ("resource.limits.memory=1Gi", "additional properties 'resource' not allowed"),
        ("resources.limit.memory=1Gi", "'/resources': additional properties 'limit' not allowed"),
        ("image.pullPolicy=ifNotPresent", "'/image/pullPolicy': value must be one of"),
        ("image.repository=localhost/operator:1", "'/image/repository': 'localhost/operator:1'"),
        ("image.tag=7", "'/image/tag': got number, want string"),
        ("crds.install=yes", "'/crds/install': got string, want boolean"),
        ("meter.interval=500", "'/meter/interval': got number, want string"),
        ("meter.interval=5m", "'/meter/interval': '5m' does not match pattern"),
        ("meter.idleWatts=2W", "'/meter/idleWatts': '2W' does not match pattern"),
        ("meter.idleWatts=-1", "'/meter/idleWatts': minimum: got -1, want 0"),
        (
            "meter.idleWattsRelativeUncertainty=5",
            "'/meter/idleWattsRelativeUncertainty': maximum: got 5, want 1",
        ),
        (
            "meter.wattsPerCpuRelativeUncertainty=5%",
            "'/meter/wattsPerCpuRelativeUncertainty': '5%' does not match pattern",
        ),
        ("meter.cpus=0", "'/meter/cpus': minimum: got 0, want 1"),
        ("energy.maxNodeWatts=0", "'/energy/maxNodeWatts': exclusiveMinimum: got 0, want 0"),
        ("energy.maxNodeWatts=0.0", "'/energy/maxNodeWatts': '0.0' does not match pattern"),
        ("energy.kepler.port=http", "'/energy/kepler/port': got string, want integer"),
        ("log.format=yaml", "'/log/format': value must be one of 'json', 'text'"),
        ("podAnnotations.a=true", "'/podAnnotations/a': got boolean, want string"),
        ("meter.bridge.interval=200ms", "'/meter/bridge/interval': '200ms' does not match"),
        ("database.image=postgres", "'/database/image': 'postgres' does not match pattern"),
        ("meter.power.default.source.type=shelly", "value must be one of 'auto', 'model', 'hwmon'"),
        ("meter.power.default.maxWatts=12", "missing property 'source'"),
        ("meter.power.nodes.pi-1.source.type=tasmota", "missing property 'host'"),
        ("meter.power.node.pi-1.source.type=auto", "additional properties 'node' not allowed"),
    ],
)
def test_a_mistake_is_refused_and_named(setting, told):
    assert told in refusal(*PI, "--set", setting)
    linted = helm("lint", str(CHART), *KUBERNETES, *PI, "--set", setting)
    assert linted.returncode != 0
    assert told in linted.stdout + linted.stderr


ONE_SOURCE = "source/type': value must be one of 'model', 'hwmon'"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"relativeUncertainty": 0.003}, ONE_SOURCE),
        (
            {"idleWattsRelativeUncertainty": 0.1, "wattsPerCpuRelativeUncertainty": 0.1},
            "missing property 'board'",
        ),
    ],
)
def test_an_accuracy_belongs_to_one_source(values, told):
    power = {"source": {"type": "auto"}, **values}
    for place in ("default", "nodes.pi-1"):
        setting = f"meter.power.{place}={json.dumps(power)}"
        assert told in refusal(*PI, "--set-json", setting)
    kinds = SOURCES["properties"]["type"]["enum"]
    [named_source, _] = SCHEMA["definitions"]["nodePower"]["allOf"]
    of_source = named_source["then"]["properties"]["source"]["properties"]["type"]["enum"]
    assert of_source == [kind for kind in kinds if kind != "auto"]
    named = {**power, "source": {"type": "model"}, "board": "pi-4b"}
    render(*PI, "--set-json", f"meter.power.nodes.pi-1={json.dumps(named)}")


@pytest.mark.parametrize(
    "setting",
    [
        "resources.limits.cpu=1",
        "meter.power.nodes.pi-1.source.type=model",
        "energy.maxNodeWatts=12.5",
        "tolerations[0].operator=Exists",
        "podAnnotations.a=b",
        "global.anything=1",
        "meter.cpus=4",
        "meter.interval=0.25s",
        "database.allowedImages={registry:5000/pg,example.com/}",
        "image.repository=registry:5000/frugality/operator",
    ],
)
def test_valid_settings_are_accepted(setting):
    render(*PI, "--set", setting)


# ---- power sources: the schema agrees with the meter --------------------------------------------

EXAMPLES = {
    "auto": {},
    "model": {},
    "hwmon": {"chip": "ina226", "label": "1"},
    "rapl": {},
    "pmic": {"file": "/x", "slope": 1.1, "offsetWatts": 0.5, "intervalSeconds": 1},
    "power-supply": {"name": "rpi-poe", "volts": 5.1},
    "shelly-gen1": {
        "host": "h",
        "channel": 0,
        "component": "emeter",
        "polling": {"intervalSeconds": 1},
    },
    "shelly-gen2": {
        "host": "h",
        "channel": 0,
        "component": "em-a",
        "polling": {"tokenFile": "/x"},
    },
    "tasmota": {"host": "h", "polling": {"username": "u", "passwordFile": "/x"}},
    "fritz-dect": {
        "host": "fritz.box",
        "ain": "11657 0000001",
        "polling": {"username": "u", "passwordFile": "/x"},
    },
    "mqtt": {
        "broker": "h:1883",
        "topic": "a/b",
        "path": "c.0",
        "timePath": "e",
        "unit": "W",
        "resolutionJoules": 1,
        "request": {"topic": "d", "payload": "8"},
        "polling": {"intervalSeconds": 1},
    },
    "snmp": {
        "host": "h",
        "oid": "1.3.6.1.2.1.105.1.3.1.1.4.1",
        "unit": "dW",
        "resolutionJoules": 1,
        "communityFile": "/x",
        "polling": {"timeoutSeconds": 1},
    },
    "json": {
        "url": "https://h/",
        "path": "a.0",
        "timePath": "b",
        "unit": "W",
        "resolutionJoules": 1,
        "polling": {"caFile": "/x"},
    },
    "prometheus": {"url": "http://h/", "metric": "m", "labels": {"a": "b"}, "unit": "J"},
}


def meter_says(tmp_path, power):
    """The meter's error message for an invalid power configuration."""
    file = tmp_path / "power.json"
    file.write_text(json.dumps({"default": power}))
    environment = {"NODE_NAME": "pi-1", "FRUGALITY_METER_POWER_CONFIG": str(file)}
    result = run(binary("frugality-meter"), "run", env=environment)
    assert result.returncode != 0
    return result.stderr


def expected_names(message):
    [names] = re.findall(r"expected (?:one of )?((?:`[\w-]+`(?:, | or )?)+)", message)
    return set(re.findall(r"`([\w-]+)`", names))


def test_the_schema_knows_the_meter_s_sources(tmp_path):
    message = meter_says(tmp_path, {"source": {"type": "typo"}})
    assert expected_names(message) == set(SOURCES["properties"]["type"]["enum"]) == set(EXAMPLES)


@pytest.mark.parametrize("source", EXAMPLES)
def test_the_schema_knows_the_fields_of_a_source(source, tmp_path):
    [fields] = [
        set(case["then"]["properties"]) - {"type"}
        for case in SOURCES["allOf"]
        if case["if"]["properties"]["type"]["const"] == source
    ]
    example = {"type": source, **EXAMPLES[source]}
    render(*PI, "--set-json", f"meter.power.default={json.dumps({'source': example})}")
    message = meter_says(tmp_path, {"source": {**example, "typo": 1}})
    assert "unknown field `typo`" in message
    assert (expected_names(message) if fields else set()) == fields


def test_the_schema_knows_the_fields_of_a_node(tmp_path):
    message = meter_says(tmp_path, {"source": {"type": "auto"}, "typo": 1})
    assert expected_names(message) == set(SCHEMA["definitions"]["nodePower"]["properties"])
    polling = {"host": "h", "polling": {"typo": 1}}
    message = meter_says(tmp_path, {"source": {"type": "tasmota", **polling}})
    assert expected_names(message) == set(SCHEMA["definitions"]["polling"]["properties"])
