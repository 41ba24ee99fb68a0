"""Catalogs between programs: singer-sdk's own taps and reader, singer-python's reader, and burler."""

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TAPS = HERE / "same_taps.py"
BENCH = HERE.parent / "bench" / "discovery_taps.py"
SDK, OURS = "singer-sdk", "burler"

# What singer-sdk's Catalog says of a file; in the environment of the peers.
SDK_READER = """
import json, sys
from singer_sdk.singerlib import Catalog
found = {}
for name, entry in Catalog.from_dict(json.load(open(sys.argv[1]))).items():
    chosen = [".".join(at[1::2]) for at, yes in entry.metadata.resolve_selection().items() if yes]
    found[name] = [entry.stream, entry.key_properties, entry.replication_key, entry.replication_method,
                   entry.schema.to_dict(), chosen]
print(json.dumps(found))
"""
# What singer-python's says.
PYTHON_READER = """
import json, sys, warnings
warnings.simplefilter("ignore")
from singer import metadata
from singer.catalog import Catalog
catalog = Catalog.load(sys.argv[1])
found = {}
for entry in catalog.streams:
    known = metadata.to_map(entry.metadata)
    chosen = [".".join(at[1::2]) for at in known if metadata.get(known, at, "selected")]
    found[entry.tap_stream_id] = [entry.stream, entry.key_properties, entry.replication_key, entry.replication_method,
                                  entry.schema.to_dict(), chosen, bool(entry.is_selected())]
print(json.dumps([found, [entry.tap_stream_id for entry in catalog.get_selected_streams({})]]))
"""


def call(python, *args):
    done = subprocess.run([python, *map(str, args)], capture_output=True, check=False, timeout=120, cwd=HERE)
    assert done.returncode == 0, done.stderr.decode()
    return done


@pytest.fixture(scope="module")
def pythons(peers):
    """Each tap's interpreter: burler is not in the peers' environment, and singer-sdk not in ours."""
    return {SDK: peers / "python", OURS: sys.executable}


@pytest.fixture(scope="module")
def discovered(pythons):
    """What each of the two taps prints with --discover."""
    return {name: json.loads(call(python, TAPS, name, "--discover").stdout) for name, python in pythons.items()}


def nodes(catalog, stream):
    (entry,) = [one for one in catalog["streams"] if one["tap_stream_id"] == stream]
    return {tuple(node["breadcrumb"]): node["metadata"] for node in entry["metadata"]}


def choose(catalog, *fields_off):
    """The catalog with 'contacts' selected but for some fields, and 'companies' not, as a user edits it."""
    catalog = deepcopy(catalog)
    nodes(catalog, "contacts")[()]["selected"] = True
    nodes(catalog, "companies")[()]["selected"] = False
    for field in fields_off:
        nodes(catalog, "contacts")[tuple(field.split("/"))]["selected"] = False
    return catalog


def what_comes(stdout):
    """Of each stream: the fields of its SCHEMA, its keys, its rows."""
    messages = [json.loads(line) for line in stdout.splitlines()]
    schemas = {m["stream"]: (m["schema"]["properties"], m["key_properties"]) for m in messages if m["type"] == "SCHEMA"}
    rows = {name: [m["record"] for m in messages if m.get("stream") == name and "record" in m] for name in schemas}
    return schemas, rows


def test_the_two_taps_are_the_same(discovered):
    """Streams, fields, keys and methods: else the other tests would compare nothing."""
    found = {
        name: {
            one["tap_stream_id"]: (
                one["schema"],
                one["key_properties"],
                one.get("replication_key"),
                one["replication_method"],
            )
            for one in catalog["streams"]
        }
        for name, catalog in discovered.items()
    }
    assert found[SDK] == found[OURS]
    assert set(found[OURS]) == {"contacts", "companies"}


ADDRESS = "properties/address"
OFF = [
    (),
    ("properties/email",),
    (f"{ADDRESS}/properties/zip",),
    (ADDRESS,),
    ("properties/email", "properties/tags"),
    ("properties/id", "properties/updated_at"),  # automatic: they come all the same
]


def named(value):
    return value if isinstance(value, str) else ",".join(value).replace("properties/", "") or "all"


@pytest.mark.parametrize(
    ("origin", "off"),
    [
        (SDK, OFF[2]),
        (OURS, OFF[4]),
        (SDK, OFF[5]),
        (OURS, OFF[0]),
        *(pytest.param(origin, off, marks=pytest.mark.nightly) for origin in (SDK, OURS) for off in OFF),
    ],
    ids=named,
)
def test_one_catalog_gives_the_same_from_both_taps(tmp_path, pythons, discovered, origin, off):
    """A catalog of either program selects in either tap: same SCHEMA fields, same keys, same rows."""
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(choose(discovered[origin], *off)))
    ours = call(pythons[OURS], TAPS, OURS, "--catalog", path)
    theirs = call(pythons[SDK], TAPS, SDK, "--catalog", path)
    assert what_comes(ours.stdout) == what_comes(theirs.stdout)
    schemas, rows = what_comes(ours.stdout)
    assert list(schemas) == ["contacts"] and len(rows["contacts"]) == 3
    assert ("email" in rows["contacts"][0]) == ("properties/email" not in off)
    assert {"id", "updated_at"} <= set(rows["contacts"][0])
    assert b"WARNING" not in ours.stderr, ours.stderr.decode()


def test_a_catalog_of_singer_sdk_as_it_is_printed(tmp_path, pythons, discovered):
    """Unedited it selects all, and burler has nothing to say of it."""
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(discovered[SDK]))
    done = call(pythons[OURS], TAPS, OURS, "--catalog", path)
    assert {name: len(rows) for name, rows in what_comes(done.stdout)[1].items()} == {"contacts": 3, "companies": 3}
    assert b"WARNING" not in done.stderr


def test_singer_sdks_reader_reads_a_catalog_of_burler(tmp_path, pythons, discovered):
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(choose(discovered[OURS], "properties/email")))
    read = json.loads(call(pythons[SDK], "-c", SDK_READER, path).stdout)
    schema = discovered[OURS]["streams"][0]["schema"]
    fields = ["", "id", "updated_at", "address", "address.city", "address.zip", "tags"]
    *facts, chosen = read["contacts"]
    assert facts == ["contacts", ["id"], "updated_at", "INCREMENTAL", schema]
    assert set(fields) <= set(chosen) and "email" not in chosen
    assert read["companies"] == ["companies", ["id"], None, "FULL_TABLE", schema, []]


def test_singer_pythons_reader_reads_a_catalog_of_burler(tmp_path, discovered):
    path = tmp_path / "catalog.json"
    path.write_text(json.dumps(choose(discovered[OURS], "properties/email")))
    read, selected = json.loads(call(sys.executable, "-c", PYTHON_READER, path).stdout)
    schema = discovered[OURS]["streams"][0]["schema"]
    assert read["contacts"] == ["contacts", ["id"], "updated_at", "INCREMENTAL", schema, [""], True]
    assert read["companies"] == ["companies", ["id"], None, "FULL_TABLE", schema, [], False]
    assert selected == ["contacts"]


def test_the_taps_of_the_benchmark_are_the_same(pythons):
    """The benchmark compares two discoveries (tests/bench): they must give the same streams and fields."""
    found = {}
    for name, python in pythons.items():
        catalog = json.loads(call(python, BENCH, name).stdout)
        found[name] = {
            one["tap_stream_id"]: (
                one["schema"],
                one["key_properties"],
                one["replication_key"],
                one["replication_method"],
            )
            for one in catalog["streams"]
        }
    assert found[SDK] == found[OURS]
    assert len(found[OURS]) == 200
    assert {len(schema["properties"]) for schema, *_more in found[OURS].values()} == {50}
