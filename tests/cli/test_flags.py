"""Settings as options of the command line: one table, two commands, and the command line wins."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tapprocess import write_tap

import burler as package
from burler.errors import ConfigError
from support.cli import Ended, burler, python
from support.internals import cli_flags as flags
from support.internals import cli_main as main
from support.internals import cli_running as running
from support.internals import settings, singer_flags

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


def _given(monkeypatch: pytest.MonkeyPatch, own_script: bool, *args: str) -> dict[str, Any]:
    """What of the settings the command line hands on."""
    seen: list[dict[str, Any]] = []

    def run_command(load_tap: Any, **options: Any) -> int:
        seen.append(options)
        running.Asked(**options)
        return 0

    monkeypatch.setattr(running, "run_command", run_command)
    if own_script:
        command: Any = singer_flags._command(package.tap("tap-flags"))
        done = CliRunner().invoke(command, list(args))
    else:
        done = CliRunner().invoke(main.cli, ["run", "tap_flags.py", *args])
    assert done.exit_code == 0, (done.output, done.exception)
    assert set(settings.Settings.__dataclass_fields__) & set(seen[0]) == {"lake_options"}  # JSON or a file: not a flag
    return dict(seen[0]["flags"])


@pytest.mark.parametrize("own_script", [False, True])
def test_every_setting_of_tail_is_an_option_of_both_commands(monkeypatch: pytest.MonkeyPatch, own_script: bool):
    assert [item.name for item in flags.SETTINGS] == ["ignore_source_state", *TAIL, "batch", "log_values", "metrics"]
    assert _given(monkeypatch, own_script) == {}
    for item in flags.SETTINGS:
        option = "--" + item.name.replace("_", "-")
        if str(item.type).startswith("bool"):
            assert _given(monkeypatch, own_script, option) == {item.name: True}
            assert _given(monkeypatch, own_script, "--no" + option[1:]) == {item.name: False}
        else:
            value = (*item.metadata["choices"], "17")[0]
            assert _given(monkeypatch, own_script, option, value) == {item.name: value}
            assert _given(monkeypatch, own_script, f"{option}={value}") == {item.name: value}


def test_what_an_option_says_comes_before_environment_and_config():
    below = settings.Settings(tail=True, tail_max_retries=3, metrics_port=9000, tail_retry=False)
    given = {"tail": False, "tail_max_retries": "forever", "metrics_port": "none", "tail_max_seconds": "2.5"}
    assert flags.with_flags(below, given) == settings.Settings(
        tail_max_retries=None, tail_retry=False, tail_max_seconds=2.5
    )
    assert flags.with_flags(below, {}) == below
    with pytest.raises(ConfigError) as caught:
        flags.with_flags(below, {"tail_max_rounds": "0", "metrics_port": "x"})
    assert str(caught.value).splitlines() == [
        "--tail-max-rounds must be a whole number above 0",
        "  --metrics-port must be a whole number above 0",
    ]


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
    write_tap(tmp_path, TAP, "tap_flags.py")
    for ended in (
        burler("run", "tap_flags.py", *args, cwd=tmp_path),
        python("tap_flags.py", *args, cwd=tmp_path),
    ):
        assert (ended.code, ended.stdout) == (2, b"")
        assert says in ended.one_critical()
        assert len(ended.one_critical()) < 250


@pytest.mark.parametrize("own_script", [False, True])
def test_help_has_the_options_of_tail_under_a_heading_with_units_and_defaults(tmp_path: Path, own_script: bool):
    write_tap(tmp_path, TAP, "tap_flags.py")
    help_of = ["tap_flags.py", "--help"] if own_script else ["-m", "burler", "run", "--help"]
    text = python(*help_of, cwd=tmp_path).stdout.decode()
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
    for item in dataclasses.fields(settings.Settings):
        assert item.name in TAIL or item.name.replace("_", "-") in text or f"\n  {item.name} " in below


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


def test_what_counts_in_a_tail_run_only_is_told_where_there_is_none():
    assert flags.remarks(settings.Settings(), {}) == []
    assert flags.remarks(settings.Settings(tail=True, tail_max_rounds=3), {"tail_max_rounds": "3"}) == []
    # A config that serves both kinds of runs is not remarked upon ...
    assert (
        flags.remarks(settings.Settings(new_record_polling_interval_ms=5, tail_drain=True, tail_max_retries=None), {})
        == []
    )
    # ... but who bounds a run expects it to be one, and who types an option wants an effect.
    assert flags.remarks(settings.Settings(tail_max_rounds=3, tail_max_seconds=2.0), {}) == [
        "setting 'tail_max_rounds', setting 'tail_max_seconds': without effect in a run without tail. "
        "Add --tail, or leave it out."
    ]
    assert flags.remarks(
        settings.Settings(new_record_polling_interval_ms=5), {"new_record_polling_interval_ms": "5"}
    ) == ["--new-record-polling-interval-ms: without effect in a run without tail. Add --tail, or leave it out."]
    assert flags.remarks(settings.Settings(metrics_port=9000), {}) == []
    assert flags.remarks(settings.Settings(page_max_rows=5), {"ignore_source_state": True, "tail": False}) == []


def test_retries_that_are_off_and_counted_are_told():
    assert len(flags.remarks(settings.Settings(tail=True, tail_retry=False, tail_max_retries=None), {})) == 1
    assert flags.remarks(settings.Settings(tail=True, tail_retry=False), {}) == []
    assert flags.remarks(settings.Settings(tail=False, tail_retry=False, tail_max_retries=3), {}) == []


def _run(folder: Path, *args: str, **env: str) -> Ended:
    write_tap(folder, TAP, "tap_flags.py")
    return python("tap_flags.py", *args, cwd=folder, **env)


def test_a_remark_is_a_warning_and_the_run_goes_on(tmp_path: Path):
    ended = _run(tmp_path, "--tail-max-rounds=2")
    assert ended.code == 0
    assert "WARNING tap-flags: --tail-max-rounds: without effect in a run without tail. Add --tail" in ended.stderr


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


def test_what_makes_sense_is_not_remarked_upon(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO):
        asked = running.Asked(flags={"tail": True, "tail_max_rounds": "3"})
        got = running._of_this_run(package.tap("tap-x"), settings.Settings(), asked)
    assert got == settings.Settings(tail=True, tail_max_rounds=3)
    assert caplog.records == []
