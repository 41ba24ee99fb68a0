"""Settings: what a config may say, null and 'for ever', limits."""

from __future__ import annotations

import functools
import json
import threading
from typing import Any

import pytest

import burler
from burler.config import load
from burler.errors import ConfigError
from burler.testing import FakeClock, canary, run_tap
from support.cli import script
from support.taps import command

FOREVER = [None, "null", "none", "forever", " Forever "]


def tap_of() -> burler.Tap:
    tap = burler.tap("tap-x")
    tap.sync("rows", key_properties="id", schema={"properties": {"id": {"type": "integer"}}})(lambda: [{"id": 1}])
    return tap


@functools.cache
def known() -> dict[str, dict[str, Any]]:
    """All settings: name -> what ``--about`` says of it."""
    told: dict[str, dict[str, Any]] = json.loads(script(tap_of(), "--about=json").stdout)["settings"]["properties"]
    return told


def wrong(config: dict[str, Any]) -> str:
    """What a run with these settings ends with before it begins."""
    with pytest.raises(ConfigError) as caught:
        run_tap(tap_of(), config)
    return str(caught.value)


def is_number(name: str) -> bool:
    return bool({"integer", "number"} & {*known()[name]["type"]})


def failures_until_it_ends(config: dict[str, Any]) -> int:
    """How often a source is asked that fails 15 times and then is well again."""
    tap, asked = burler.tap("tap-x"), []

    @tap.sync("rows", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
    def rows():
        asked.append(1)
        if len(asked) <= 15:
            raise ConnectionError("gone")
        return [{"id": 1}]

    run_tap(tap, {"tail": True, "tail_max_rounds": 16, **config}, clock=FakeClock())
    return len(asked)


def test_retries_of_a_tail_and_those_without_an_end():
    """Ten where nothing is said; 0 is none at all."""
    for value in FOREVER:
        assert failures_until_it_ends({"tail_max_retries": value}) == 16, value
    assert failures_until_it_ends({}) == 11
    assert [failures_until_it_ends({"tail_max_retries": value}) for value in (0, "0", 7.0)] == [1, 1, 8]


def test_null_is_the_default_of_every_other_setting():
    others = {name: None for name in known() if name != "tail_max_retries"}
    assert run_tap(tap_of(), others).records("rows") == [{"id": 1}]
    assert json.loads(script(tap_of(), "--about=json").stdout)["settings"]["properties"]["page_max_rows"]["default"]


def test_the_environment_can_say_that_there_is_no_end(tmp_path):
    (tmp_path / "c.json").write_text('{"tail_max_retries": 3, "tail_max_rounds": 5, "tail": true}')
    environment = {"TAP_X_TAIL_MAX_RETRIES": "forever", "TAP_X_TAIL_MAX_ROUNDS": "none", "TAP_X_TAIL": "False"}
    given = load([tmp_path / "c.json"], environment=environment, tap_name="tap-x").config
    assert len(run_tap(tap_of(), given).records("rows")) == 1, "it has an end: it is no tail"
    assert failures_until_it_ends({**given, "tail": True, "tail_max_rounds": 16}) == 16


WRONG = [-1, -0.5, "-1", "x", "", " ", "nan", float("nan"), "inf", float("inf"), True, False, [], {}, "1_0", 10**400]


def test_numbers_that_are_none_and_what_they_must_be():
    for name in filter(is_number, known()):
        for value in WRONG:
            said = wrong({name: value})
            assert f"setting '{name}' must be " in said and " number" in said, (name, value)
            assert len(said) < 160, "a number of 400 digits is not shown"
    assert wrong({"max_failures": -1}).endswith("'max_failures' must be a whole number, 0 or more")
    assert wrong({"tail_max_retries": -1}).endswith(
        "must be a whole number, 0 or more, or null or 'forever' for no end"
    )


@pytest.mark.parametrize(
    ("name", "values", "wants"),
    [
        ("page_max_rows", [0, 1.5, "1.5", "1e3"], "a whole number above 0"),
        ("page_max_age_seconds", [0, 1e300], "a number above 0"),
        ("full_table_versions", [1, "yes", "", 0.0, "maybe"], "true or false"),
        ("start_date", [5, True, {}], "text"),
        ("start_date", ["2024-01-01"], "an RFC 3339 date-time with a zone"),
        ("state_scope", ["half"], "one of full, touched$"),
        ("tap_id", [5], "text"),
        ("tail_max_rounds", ["forever"], "a whole number above 0$"),
        ("new_record_polling_interval_ms", ["none"], "a whole number above 0"),
        ("lake_options", [*(one for one in WRONG if one != {}), "{", "[]", "1"], "a JSON object$"),
        ("metrics_port", [65_536], ".*number above 0 and no more than 65535$"),
        ("tail_max_seconds", [1e9 + 1], ".*number above 0 and no more than 1000000000$"),
    ],
)
def test_settings_of_the_wrong_kind(name, values, wants):
    for value in values:
        with pytest.raises(ConfigError, match=f"setting '{name}' must be {wants}"):
            run_tap(tap_of(), {name: value})


@pytest.mark.parametrize(
    "given",
    [
        {"page_max_rows": "5", "max_file_records": 7.0, "page_max_age_seconds": "0.5", "full_table_versions": "False"},
        {"tap_id": "none", "metrics_file": "null", "full_table_versions": True, "start_date": "2024-01-01T00:00:00Z"},
        {"metrics_port": 65_535, "tail_max_seconds": 1e9, "new_record_polling_interval_ms": 10**12},
        {"lake_options": {"key": "a", "n": 1}, "more": 1},
        {"lake_options": '{"anon": true}'},
        {"lake_options": "null"},
    ],
)
def test_numbers_and_truths_may_be_text_and_limits_may_be_reached(given):
    assert run_tap(tap_of(), given).records("rows") == [{"id": 1}]


@pytest.mark.parametrize("value", [one for one in WRONG if one != {}], ids=repr)
def test_what_is_no_object_is_no_batch_config(value):
    said = wrong({"batch_config": value})
    assert "batch_config must be a" in said and len(said) < 160


def test_options_of_a_lake_that_are_wrong_are_not_shown():
    secret = canary("options")
    assert secret not in wrong({"lake_options": '{"secret": "' + secret})


def test_zero_is_refused_but_where_it_means_something():
    for name in filter(is_number, known()):
        for zero in (0, 0.0, "0", -0.0):
            if name in ("max_failures", "tail_max_retries", "lock_timeout_seconds"):
                assert run_tap(tap_of(), {name: zero}).records("rows")
            else:
                assert "number above 0" in wrong({name: zero})


def test_no_setting_of_time_is_more_than_a_clock_can_wait():
    for name in known():
        for unit, ending in ((1, "_seconds"), (1000, "_ms")):
            if name.endswith(ending):
                assert "no more than" in wrong({name: int(threading.TIMEOUT_MAX) * unit})


def test_all_that_is_wrong_is_said_at_once():
    said = wrong({"tail": "maybe", "metrics_port": 0, "tail_max_rounds": 1.5, "start_date": "2024-01-01"})
    assert [line.split("'")[1] for line in said.splitlines()] == [
        "start_date",
        "tail",
        "tail_max_rounds",
        "metrics_port",
    ]


def test_every_setting_says_what_it_is():
    assert len(known()) > 30
    assert all(len(told["description"]) > 20 for told in known().values())


def test_none_is_a_name_where_text_is_asked_for(tmp_path):
    (tmp_path / "c.json").write_text('{"tap_id": "none"}')
    assert command(tap_of(), "run", "--sink", "lake:lake", "--config", "c.json", cwd=tmp_path).code == 0
    folders = {path.name for path in (tmp_path / "lake").rglob("*") if path.is_dir()}
    assert "none" in folders and not {"tap-x", "tap_x"} & folders
