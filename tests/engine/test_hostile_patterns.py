"""A regular expression that would take Python's engine for ever (a schema's, or one of our own): the run goes on, and
hears signals.

Each run is a process of its own: Python's engine would hold its only thread for hours.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
from tapprocess import PYTHON, burler, environment, python, write_tap

NESTED = "^(a+)+$"
EMAIL = r"^\w+([.-]?\w+)*@\w+([.-]?\w+)*(\.\w{2,3})+$"
REFERRING = r"^(a+)+\1$"
GOOD = {NESTED: "aaa", EMAIL: "ada.lovelace@example.com"}
LONG = "a" * 40 + "!"
SECONDS = 30.0  # a limit, not a time that is waited

SOURCES = {
    "dicts": "yield row",
    "bytes": "yield burler.json_page(json.dumps([row]).encode())",
    "arrow": "yield pyarrow.Table.from_pylist([row])",
}


def schema_of(mail):
    return {"type": "object", "properties": {"id": {"type": "integer"}, "mail": {"type": "string", **mail}}}


def tap(folder, mails, *, how="dicts", config_spec=None, **mail):
    """A tap of rows with a ``mail`` (``mails`` is Python), given one by one; of the field the schema says ``mail``."""
    source = f"""
        import itertools
        import json
        {"import pyarrow" if how == "arrow" else ""}
        import burler
        tap = burler.tap("tap-x", config_spec={config_spec!r})

        @tap.sync("rows", key_properties="id", schema={schema_of(mail)!r})
        def rows():
            for number, mail in enumerate({mails}, 1):
                row = {{"id": number, "mail": mail}}
                {SOURCES[how]}

        if __name__ == "__main__":
            tap.cli()
        """
    return write_tap(folder, source)


def ids(ended):
    return [message["record"]["id"] for message in ended.messages if message["type"] == "RECORD"]


def wire(mails, **mail):
    """The messages of a tap that somebody else wrote."""
    messages = [{"type": "SCHEMA", "stream": "rows", "key_properties": ["id"], "schema": schema_of(mail)}]
    messages += [{"type": "RECORD", "stream": "rows", "record": {"id": i, "mail": one}} for i, one in enumerate(mails)]
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


@pytest.mark.parametrize(("how", "pattern"), [("dicts", EMAIL), ("bytes", NESTED), ("arrow", EMAIL)])
def test_a_row_that_breaks_the_pattern_is_told_and_the_row_before_it_is_out(tmp_path, how, pattern):
    path = tap(tmp_path, [GOOD[pattern], LONG], how=how, pattern=pattern)
    ended = python(path, cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 1
    assert ids(ended) == [1]
    assert "stream 'rows', row id=2: field 'mail' is" in ended.one_critical()
    assert "the schema wants a value that keeps pattern" in ended.one_critical()


def test_rows_that_fit_go_into_batch_files(tmp_path):
    config = {"on_bad_record": "skip", "batch_config": {"encoding": {"format": "parquet"}, "storage": {"root": "out"}}}
    (tmp_path / "c.json").write_text(json.dumps(config))
    path = tap(tmp_path, [GOOD[EMAIL], LONG, "charles@example.org"], pattern=EMAIL)
    ended = python(path, "--config", "c.json", cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 0
    assert ids(burler("batch", "expand", stdin=ended.stdout, cwd=tmp_path, timeout=SECONDS)) == [1, 3]


def test_sigterm_is_heard_among_such_rows(tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"on_bad_record": "skip", "max_bad_records": 10**9}))
    path = tap(tmp_path, f"itertools.chain(['aaa'], itertools.repeat({LONG!r}))", pattern=NESTED)
    command = [PYTHON, str(path), "--config", "c.json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # SCHEMA: the rows are next
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "tap-x: stopped" in log.decode()


def with_names(path, pattern):
    """The tap's rows get fields whose names a pattern must know."""
    text = path.read_text().replace('"mail": mail}', '"mail": mail, mail: 1, "aaa": 2}')
    path.write_text(
        text.replace("'properties': {'id'", f"'patternProperties': {{{pattern!r}: {{}}}}, 'properties': {{'id'")
    )
    return path


def test_field_names_are_held_against_such_patterns(tmp_path):
    path = with_names(tap(tmp_path, [LONG]), NESTED)
    ended = python(path, cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 0
    records = [message["record"] for message in ended.messages if message["type"] == "RECORD"]
    assert records == [{"id": 1, "mail": LONG, "aaa": 2}]
    assert LONG in ended.stderr  # a field that no schema knows was left out


def test_a_config_is_held_against_such_patterns(tmp_path):
    spec = {
        "type": "object",
        "properties": {"mail": {"type": "string", "pattern": EMAIL}},
        "patternProperties": {NESTED: {"type": "string"}},
        "additionalProperties": False,
    }
    (tmp_path / "c.json").write_text(json.dumps({"mail": LONG, LONG: "x"}))
    ended = python(tap(tmp_path, [], config_spec=spec), "--config", "c.json", cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 2
    assert f"config 'mail' must match the pattern {EMAIL}" in ended.stderr
    assert f"config '{LONG}' is not known" in ended.stderr


@pytest.mark.parametrize(
    ("pattern", "said"),
    [(NESTED, {"pattern": NESTED}), (EMAIL, {"anyOf": [{"pattern": EMAIL}, {"maxLength": 1}]})],
    ids=["own", "branch"],
)
def test_verify_holds_rows_of_any_tap_against_it(tmp_path, said, pattern):
    lines = wire([GOOD[pattern], LONG], **said)
    ended = burler("verify", "-", stdin=lines, cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 1
    assert "M205 mail: 'mail' came as 'aaaa" in ended.stdout.decode()
    assert "[line 3]" in " ".join(ended.stdout.decode().split())


def test_verify_holds_names_of_fields_against_it(tmp_path):
    schema = {"type": "object", "patternProperties": {NESTED: {"type": "integer"}}, "additionalProperties": False}
    messages = [{"type": "SCHEMA", "stream": "rows", "key_properties": [], "schema": schema}]
    messages += [{"type": "RECORD", "stream": "rows", "record": {name: 1}} for name in ("aaa", LONG)]
    lines = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    ended = burler("verify", "-", stdin=lines, cwd=tmp_path, timeout=SECONDS)
    assert f"R501 {LONG}" in ended.stdout.decode()


def test_what_no_engine_can_check_in_time_is_told_once_and_the_rows_go_out(tmp_path):
    ended = python(tap(tmp_path, [LONG] * 3, pattern=REFERRING), cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 0
    assert ids(ended) == [1, 2, 3]
    (told,) = ended.lines("WARNING")
    assert told.startswith(
        "stream 'rows' (tap_x.py:8): schema: mail: pattern '^(a+)+\\\\1$': no text is held against it"
    )
    assert "RE2, which never does, has no references to groups" in told


def test_verify_says_what_it_did_not_look_at(tmp_path):
    ended = burler("verify", "-", stdin=wire([LONG], pattern=REFERRING), cwd=tmp_path, timeout=SECONDS)
    said = " ".join(ended.stdout.decode().split())
    assert "not looked at: M205: in part: pattern '^(a+)+\\\\1$' of 'rows.mail': no text is held against it" in said


def test_where_re2_is_missing_the_warning_says_how_to_get_it(tmp_path):
    (tmp_path / "re2.py").write_text("raise ImportError('not here')\n")
    ended = python(tap(tmp_path, [LONG], pattern=NESTED), cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 0
    (told,) = ended.lines("WARNING")
    assert told.endswith("RE2, which never does, is not installed. pip install google-re2")


def test_field_names_need_a_pattern_that_can_be_checked(tmp_path):
    path = with_names(tap(tmp_path, [LONG]), REFERRING)
    ended = python(path, cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 2
    assert "patternProperties '^(a+)+\\\\1$': no text is held against it" in ended.one_critical()


def test_a_page_of_html_goes_into_a_lake_at_once(tmp_path):
    """A megabyte with many quotes, in a row with a map."""
    schema = schema_of({})
    schema["properties"]["tags"] = {"type": "object", "additionalProperties": {"type": "string"}}
    path = write_tap(
        tmp_path,
        f"""
        import burler
        tap = burler.tap("tap-x")

        @tap.sync("rows", key_properties="id", schema={schema!r})
        def rows():
            yield {{"id": 1, "mail": '<a href="https://example.com" class="link">a page</a>' * 20_000, "tags": {{}}}}

        tap.cli()
        """,
    )
    ended = python(path, "--sink", "lake:lake", cwd=tmp_path, timeout=SECONDS)
    assert ended.code == 0
    assert burler("lake", "read", "lake", cwd=tmp_path, timeout=SECONDS).stdout.count(b"class=") == 20_000
