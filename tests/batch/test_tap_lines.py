"""Lines between a tap and a target: what is no Singer message passes, and somebody is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from piped import SCHEMA, batch, config, converted, expanded, file, lines, record, rows, state

from burler.testing import canary


def told(number: int) -> list[str]:
    return [f"line {number}: it is no Singer message, and passes as it came; further ones without a word"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_line_that_is_no_singer_message_is_remarked_once_with_its_number(tmp_path: Path, processes: int) -> None:
    url = file(tmp_path / "a.jsonl", rows(1))
    odd = [b"loading users ...", b'"text"', b"[]", b"done"]
    out = expanded(SCHEMA, record(0), *odd, batch(url), state(1), odd[0], processes=processes)
    assert out.error is None, out.error
    assert out.warnings == told(3)
    assert out.raw.startswith(lines(SCHEMA, record(0), *odd))
    assert out.raw.endswith(lines(state(1), odd[0]))


def test_convert_says_it_as_well(tmp_path: Path) -> None:
    out = converted(config(tmp_path), SCHEMA, b"hello", state(1))
    assert (out.raw, out.warnings) == (lines(SCHEMA, b"hello", state(1)), told(2))


@pytest.mark.parametrize("first", [b"hello", b"{}", b'{"type":5}', b'{"token":', b"  ", b"5"])
def test_input_that_begins_like_no_taps(first: bytes) -> None:
    out = expanded(b"", first, state(1))
    assert out.raw == lines(b"", first, state(1))
    assert out.warnings == (told(2) if first.strip()[:1] not in (b"", b"{") else [])
    out = expanded(first, state(1))
    assert out.raw == lines(first, state(1))
    assert out.warnings == (told(1) if first.strip() else [])


def test_a_config_file_in_place_of_a_taps_output_shows_no_secret() -> None:
    secret = canary("token")
    out = expanded(b'{"token": "%s"}' % secret.encode())
    assert out.warnings == told(1)
    assert secret not in "".join(out.warnings)


def test_what_a_tap_may_write_is_no_stranger() -> None:
    blank = [b"", b" \t", b"\r", b' {"type":"STATE","value":{}}\r', b'{"type":"LOG","more":1}', b'\t{"type":"STATE"}']
    assert expanded(*blank, SCHEMA, record(1), state(1)).warnings == []
    assert expanded(SCHEMA, record(1), *blank, state(1)).warnings == []
    assert expanded(b'{"type":"RECORD","record":{"a":"\\ud800"}}').warnings == []
