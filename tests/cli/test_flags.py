"""Settings as options of the command line: one table, two commands, and the command line wins."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tapprocess import write_tap

from support.cli import Ended, burler, script

TAIL = [
    "tail",
    "state_message_min_interval_ms",
    "new_record_polling_interval_ms",
    "max_full_table_age_seconds",
    "tail_drain",
    "tail_retry",
    "tail_max_retries",
    "tail_full_table_on_failure",
    "tail_stop_on_failure",
    "tail_max_rounds",
    "tail_max_seconds",
    "tail_rediscover_seconds",
    "acknowledge_state_file",
    "metrics_port",
    "metrics_file",
    "metrics_interval_seconds",
]

TAP = """
import burler

tap = burler.tap("tap-flags")


@tap.sync("a", key_properties="id", replication_key="id", schema={"properties": {"id": {"type": "integer"}}})
def rows():
    print("poll")
    yield [{"id": n} for n in range(9)]


if __name__ == "__main__":
    tap.cli()
"""


OTHERS = ["ignore_source_state", "batch", "log_values", "metrics"]
YES_OR_NO = ["ignore_source_state", "tail", "tail_drain", "tail_retry", "tail_full_table_on_failure"]
YES_OR_NO += ["tail_stop_on_failure", "batch", "log_values"]
VALUES = {"metrics": "requests", "acknowledge_state_file": "acknowledged", "metrics_file": "x.prom"}


def _option(setting: str, no: bool = False) -> str:
    return ("--no-" if no else "--") + setting.replace("_", "-")


@pytest.mark.parametrize("command", ["burler", "script"])
def test_every_setting_of_tail_is_an_option_of_both_commands(tmp_path: Path, command: str):
    """All of them at once, in both spellings, and without the switches."""
    (tmp_path / "acknowledged").write_text("{}")
    values = {**dict.fromkeys([*TAIL, *OTHERS], "17"), "tail_max_rounds": "1", **VALUES}
    for name in ("metrics_port", *YES_OR_NO):
        del values[name]
    pairs = [(_option(name), value) for name, value in values.items()]
    switches = [_option(name) for name in YES_OR_NO if name != "tail_stop_on_failure"]
    for args in (
        [*switches, *(word for pair in pairs for word in pair)],
        [*switches, *(f"{option}={value}" for option, value in pairs)],
        [*(_option(name, no=True) for name in YES_OR_NO), "--metrics-port", "none", "--tail-stop-on-failure"],
    ):
        ended = _run(tmp_path, *args) if command == "burler" else _script(tmp_path, *args)
        assert ended.code == 0, ended.stderr
        assert ended.stderr.count("poll\n") == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--tail-max-retries", "-1"], "'--tail-max-retries': '-1' must be a whole number, 0 or more, or null or 'for"),
        (["--tail-max-seconds", "nan"], "'--tail-max-seconds': 'nan' must be a number above 0"),
        (
            ["--metrics-port", "70000"],
            "'--metrics-port': '70000' must be a whole number above 0 and no more than 65535",
        ),
        (["--state-message-min-interval-ms", ""], "'' must be a whole number above 0"),
        (["--new-record-polling-interval-ms", "5s"], "'5s' must be a whole number above 0"),
        (["--tail-max-rounds", "1" + "0" * 400], "must be a whole number above 0 and no more than"),
        (["--tail=yes"], "does not take a value"),
        (["--tail-max-rounds"], "requires an argument"),
    ],
)
def test_a_bad_value_is_told_in_one_line(tmp_path: Path, args: list[str], says: str):
    for ended in (_run(tmp_path, *args), _script(tmp_path, *args)):
        assert (ended.code, ended.stdout) == (2, b"")
        assert says in ended.one_critical()
        assert len(ended.one_critical()) < 250


@pytest.mark.parametrize("run", ["burler", "script"])
def test_help_has_the_options_of_tail_under_a_heading_with_units_and_defaults(tmp_path: Path, run: str):
    text = (_run(tmp_path, "--help") if run == "burler" else _script(tmp_path, "--help")).text
    above, _, rest = text.partition("\nTail (")
    tail, _, below = rest.partition("\nSettings (")
    assert "--ignore-source-state" in above and "--tail" not in above
    shown = " ".join(tail.split())
    for name in TAIL:
        assert f"--{name.replace('_', '-')} " in shown
        assert f"\n  {name} " not in below  # once is enough
    for line in (
        "--state-message-min-interval-ms MS A STATE comes at the latest",
        "[default: 60000]",
        "--tail-max-retries COUNT|forever So many failures of a stream in a row",
        "--tail-retry / --no-tail-retry A stream that failed is tried again",
        "--metrics-port PORT Numbers",
        "--acknowledge-state-file FILE",
    ):
        assert line in shown
    about = json.loads(burler("about", "tap_flags.py", "--format", "json", cwd=tmp_path).stdout)
    for name in set(about["settings"]["properties"]):
        assert name in TAIL or name.replace("_", "-") in text or f"\n  {name} " in below, name


def test_the_command_line_wins_over_environment_and_that_over_the_config(tmp_path: Path):
    told = {"tail": True, "tail_max_rounds": 9, "new_record_polling_interval_ms": 600_000}
    (tmp_path / "c.json").write_text(json.dumps(told))
    config = ("--config", "c.json")
    environment = {"TAP_FLAGS_TAIL_MAX_ROUNDS": "3", "TAP_FLAGS_NEW_RECORD_POLLING_INTERVAL_MS": "5"}
    assert _run(tmp_path, *config, **environment).stderr.count("poll\n") == 3
    ended = _run(tmp_path, *config, "--tail-max-rounds", "2", **environment)
    assert (ended.code, ended.stderr.count("poll\n")) == (0, 2)
    ended = _run(tmp_path, *config, "--tail-max-rounds=none", "--tail-max-seconds=0.3", **environment)
    assert (ended.code, ended.stderr.count("poll\n") > 3) == (0, True)
    assert _run(tmp_path, *config, "--no-tail", **environment).stderr.count("poll\n") == 1


def test_a_bad_interval_in_a_catalog_is_told_before_the_first_message(tmp_path: Path):
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, "new-record-polling-interval-ms": "5 s"}}]
    (tmp_path / "catalog.json").write_text(json.dumps({"streams": [{"tap_stream_id": "a", "metadata": metadata}]}))
    ended = _run(tmp_path, "--catalog", "catalog.json", "--tail", "--tail-max-rounds=1")
    assert (ended.code, ended.stdout) == (2, b"")
    assert "'new-record-polling-interval-ms' must be a whole number above 0, not '5 s'." in ended.one_critical()
    assert _run(tmp_path, "--catalog", "catalog.json").code == 0


# ---- what makes no sense ---------------------------------------------------------------------------


IDLE = "without effect in a run without tail. Add --tail, or leave it out."


@pytest.mark.parametrize(
    ("config", "args", "told"),
    [
        ({}, [], None),
        ({"tail": True}, ["--tail-max-rounds", "1"], None),
        # A config that serves both kinds of runs is not remarked upon ...
        ({"new_record_polling_interval_ms": 5, "tail_drain": True, "tail_max_retries": None}, [], None),
        ({"metrics_port": 9000}, [], None),
        ({"page_max_rows": 5}, ["--ignore-source-state", "--no-tail"], None),
        # ... but who bounds a run expects it to be one, and who types an option wants an effect.
        (
            {"tail_max_rounds": 3, "tail_max_seconds": 2.0},
            [],
            f"setting 'tail_max_rounds', setting 'tail_max_seconds': {IDLE}",
        ),
        ({}, ["--new-record-polling-interval-ms", "5"], f"--new-record-polling-interval-ms: {IDLE}"),
        (
            {"tail": True, "tail_max_rounds": 1, "tail_retry": False, "tail_max_retries": None},
            [],
            "tail_max_retries: without effect, since tail_retry is false: the first failure of a stream counts.",
        ),
        ({"tail": True, "tail_max_rounds": 1, "tail_retry": False}, [], None),
        ({"tail_retry": False, "tail_max_retries": 3}, [], None),
    ],
)
def test_what_has_no_effect_is_told_and_the_run_goes_on(tmp_path: Path, config: Any, args: list[str], told: str | None):
    (tmp_path / "c.json").write_text(json.dumps(config))
    ended = _run(tmp_path, "--config", "c.json", *args)
    assert ended.code == 0, ended.stderr
    assert ended.lines("WARNING") == ([f"tap-flags: {told}"] if told else [])


def _run(folder: Path, *args: str, **env: str) -> Ended:
    write_tap(folder, TAP, "tap_flags.py")
    return burler("run", "tap_flags.py", *args, cwd=folder, **env)


def _script(folder: Path, *args: str, **env: str) -> Ended:
    write_tap(folder, TAP, "tap_flags.py")
    return script("tap_flags.py", *args, cwd=folder, **env)


@pytest.mark.parametrize("look", [["--limit", "2"], ["--test"], ["--test=schema"]])
@pytest.mark.parametrize("tail", ["flag", "config", "environment"])
def test_a_look_at_the_rows_is_one_round(tmp_path: Path, look: list[str], tail: str):
    (tmp_path / "c.json").write_text(json.dumps({"tail": tail == "config"}))
    more = ["--tail"] if tail == "flag" else []
    environment = {"TAP_FLAGS_TAIL": "true"} if tail == "environment" else {}
    ended = _run(tmp_path, "--config", "c.json", *look, *more, **environment)
    assert ended.code == 0
    records = [line for line in ended.stdout.splitlines() if b'"RECORD"' in line]
    assert len(records) == {"--limit": 2, "--test": 5, "--test=schema": 0}[look[0]]
    option = look[0].partition("=")[0]
    assert f"INFO tap-flags: {option}: one round, then the run ends; tail is left out" in ended.stderr


def test_no_tail_on_the_command_line_ends_a_run_that_the_config_would_go_on_with(tmp_path: Path):
    (tmp_path / "c.json").write_text(json.dumps({"tail": True}))
    ended = _run(tmp_path, "--config", "c.json", "--no-tail", TAP_FLAGS_TAIL="true")
    assert ended.code == 0
    assert len([line for line in ended.stdout.splitlines() if b'"RECORD"' in line]) == 9
    assert not re.search(r"tail", ended.stderr.replace("tap_flags", ""))


# ---- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--metrics-file", "c.json", "--config", "c.json"], "metrics_file c.json is the file of --config, too"),
        (["--metrics-file", "s", "--out-file", "s"], "metrics_file s is the file of --out-file, too"),
        (["--metrics-file", "s", "--state", "s"], "metrics_file s is the file of --state, too"),
        (["--metrics-file", "s", "--report", "s"], "metrics_file s is the file of --report, too"),
        (["--metrics-file", "s", "--acknowledge-state-file", "s"], "the file of acknowledge_state_file, too"),
        (["--report", "s", "--acknowledge-state-file", "s"], "--report s is the file of acknowledge_state_file, too"),
    ],
)
def test_no_output_takes_the_place_of_another_file(tmp_path: Path, args: list[str], says: str):
    (tmp_path / "c.json").write_text("{}")
    (tmp_path / "s").write_text("{}")
    ended = _run(tmp_path, *args)
    assert (ended.code, ended.stdout) == (2, b"")
    assert says in ended.one_critical()
    assert (tmp_path / "c.json").read_text() == "{}"


def test_a_tap_that_confirms_itself_is_told_on_stdout_and_not_with_a_lake(tmp_path: Path):
    both = ("--out-file", "s.json", "--acknowledge-state-file", "./s.json")
    ended = _run(tmp_path, *both)
    assert ended.code == 0
    assert "WARNING acknowledge_state_file is the file of --out-file, which this tap writes itself" in ended.stderr
    ended = _run(tmp_path, *both, "--sink", "lake:lake")
    assert ended.code == 0
    assert "which this tap writes itself" not in ended.stderr
