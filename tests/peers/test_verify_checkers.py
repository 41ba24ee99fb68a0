"""``burler verify`` beside two others that check taps, singer-check-tap and the standard tests of the Singer SDK: what
they find it finds, and what two of those tests could never find, too."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import peers_environment
import pytest
from verify_broken import KEEPS, MESSAGES, RECORDS, lines

from burler.spec import check_messages
from support.cli import burler

PROGRAMS = Path(__file__).parent / "programs"


def codes_of(messages, catalog=None):
    return {one.code for one in check_messages(messages.encode(), catalog=catalog)}


# singer-check-tap.


@pytest.fixture(scope="module")
def singer_tools():
    """What singer-check-tap says of each of ours."""
    try:
        programs = peers_environment.make_tap("gitlab")
    except peers_environment.NotInstalled as error:
        pytest.skip(f"singer-tools can't be installed: {error}")
    every = {name: lines(one[1]) for table in (MESSAGES, RECORDS) for name, one in table.items()}
    every |= {f"keeps {name}": lines(one) for name, one in KEEPS.items()}
    done = subprocess.run(
        [programs / "python", PROGRAMS / "singer_tools_checked.py"],
        input=json.dumps(every),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", {**MESSAGES, **RECORDS})
def test_what_singer_check_tap_finds_is_found(singer_tools, name):
    code, messages = {**MESSAGES, **RECORDS}[name]
    assert singer_tools[name] is not None or name in NOT_THEIRS
    assert code in codes_of(lines(messages))


# The singer-python that goes with the tap of its years knows less than that of today, which says these, too.
NOT_THEIRS = {"bookmark_properties that are no names", "time_extracted without a zone"}


@pytest.mark.parametrize("name", KEEPS)
def test_what_is_right_is_right_to_both(singer_tools, name):
    assert singer_tools[f"keeps {name}"] is None
    assert codes_of(lines(KEEPS[name])) == set()


# The standard tests of the Singer SDK.

SDK = {
    "good": ([], set()),
    "incremental": ([], set()),
    "no-rows": (["tap_stream_returns_record"], {"M226"}),
    "schema": (["tap_stream_record_matches_stream_schema", "tap_stream_schema_is_valid"], {"C123"}),
    "field-not-in-schema": (["tap_stream_record_schema_matches_transformed_catalog"], {"R501"}),
    "field-never-seen": ([], {"R503"}),  # theirs warns, and passes
    "does-not-fit": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    "bound": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    "format": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    "uuid": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    "key-missing": (["tap_stream_attribute_not_null", "tap_stream_primary_keys"], {"M207", "M208"}),
    "key-null-last": (
        ["tap_stream_attribute_not_null", "tap_stream_primary_keys", "tap_stream_record_matches_stream_schema"],
        {"M205", "M207"},
    ),
    "boolean": (["tap_stream_attribute_is_boolean", "tap_stream_record_matches_stream_schema"], {"M205"}),
    "date-time": (["tap_stream_attribute_is_datetime"], {"M205"}),
    "date": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    "integer": (["tap_stream_attribute_is_integer", "tap_stream_record_matches_stream_schema"], {"M205"}),
    "number": (["tap_stream_attribute_is_numeric", "tap_stream_record_matches_stream_schema"], {"M205"}),
    "object": (["tap_stream_attribute_is_object", "tap_stream_record_matches_stream_schema"], {"M205"}),
    "null": (["tap_stream_attribute_not_null", "tap_stream_record_matches_stream_schema"], {"M205"}),
    # What theirs can't find: see the tests below.
    "key-twice": ([], {"M208"}),
    "progress-markers": ([], {"B315"}),
    "key-null-first": (["tap_stream_attribute_not_null", "tap_stream_record_matches_stream_schema"], {"M205", "M207"}),
    "second-date-time": ([], {"M205"}),
    "second-integer": (["tap_stream_record_matches_stream_schema"], {"M205"}),
    # Where theirs is wrong, or looks at what is no part of Singer.
    "optional": (["tap_stream_attribute_not_null"], set()),
    "may-be-text": ([], {"C124"}),
    "cli": (["tap_cli_prints"], set()),
}


@pytest.fixture(scope="module")
def sdk(peers):
    """Of each broken tap which standard tests fail, and what it writes."""
    folder = Path(pytest.__file__).parents[1]
    done = subprocess.run(
        [peers / "python", PROGRAMS / "sdk_checked.py", folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", SDK)
def test_what_the_sdks_tests_find_is_found(sdk, name):
    theirs, ours = SDK[name]
    failed = sorted({test.partition("[")[0].removeprefix("test_") for test in sdk["failed"][name]})
    assert failed == theirs, sdk["said"]
    wrote = sdk["wrote"][name]
    assert codes_of(wrote["messages"], wrote["catalog"]) == ours


def test_duplicate_keys_pass_the_sdks_test_and_not_ours(sdk):
    """Theirs makes a set of generators, of which no two are equal: ``len(set(...)) == len(...)`` holds for any rows."""
    wrote = sdk["wrote"]["key-twice"]
    keys = [
        line["record"]["id"] for line in map(json.loads, wrote["messages"].splitlines()) if line["type"] == "RECORD"
    ]
    assert keys == [1, 2, 1]
    assert sdk["failed"]["key-twice"] == []
    assert codes_of(wrote["messages"]) == {"M208"}


def test_progress_markers_pass_the_sdks_test_and_not_ours(sdk):
    """Theirs looks for 'progress_markers' among the keys of the last STATE message, which are 'type' and 'value'."""
    wrote = sdk["wrote"]["progress-markers"]
    last = json.loads(wrote["messages"].splitlines()[-1])
    assert last["type"] == "STATE" and "progress_markers" in last["value"]["bookmarks"]["a"]
    assert sdk["failed"]["progress-markers"] == []
    assert codes_of(wrote["messages"]) == {"B315"}


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        pytest.param("connection", "test_tap_stream_connections", marks=pytest.mark.nightly),
        pytest.param("catalog-refused", "test_tap_discovery", marks=pytest.mark.nightly),
        ("catalog-not-applied", ""),
    ],
    ids=["connection", "catalog-refused", "catalog-not-applied"],
)
def test_a_tap_that_can_not_run(tmp_path, peers, sdk, name, theirs):
    """Theirs does not apply the catalog that it has discovered, so that it does not see what that ends in."""
    assert theirs in sdk["failed"][name] if theirs else sdk["failed"][name] == []
    config = tmp_path / "config.json"
    config.write_text("{}")
    command = f"{peers / 'python'} {PROGRAMS / 'sdk_checked.py'} --tap {name} --config {config}"
    words = ["verify", "--exec", command, "--no-resume", "--no-behaviour", "--no-requests", "--format", "json"]
    done = burler(*words, "--select", "P609,P614")
    assert done.code == 1, done.stderr
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["P609"]
