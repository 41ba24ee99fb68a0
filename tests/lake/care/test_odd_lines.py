r"""Lines that decoders refuse, and the lake keeps: all that care for it must keep them, too.

Half of a surrogate pair (``"\ud83d"``), and what is nested deeper than the stack allows.
"""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from care_lakes import document, fill, lines, put

from burler.lake import care, read_lines, schema_message

HALVES = ({"id": 2, "name": "\ud800"}, {"id": 3, "\udfff": ["\ud83d\ude00 \ud83d", {"a": "\udc00"}]})


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture
def halved(lake: Any) -> Any:
    """Two files, one of them with such rows beside a plain one."""
    fill(lake, 1)
    with lake.writer() as writer:
        writer.schema(lake.schema())
        lake.clock.forward(60)
        writer.records(lake.page("users", 1, *HALVES, at=lake.clock.moment))
    return lake


def test_check_finds_nothing_wrong_with_them(halved: Any) -> None:
    assert care.check(halved.store).findings == ()


def test_rebuild_keeps_their_files(halved: Any) -> None:
    before, known = lines(halved), document(halved)["file_stats"]
    assert care.rebuild(halved.store).is_whole
    assert document(halved)["file_stats"] == known
    halved.manifest_path().unlink()

    done = care.rebuild(halved.store)

    assert done.is_whole and done.streams[0].records == 4
    assert lines(halved) == before
    assert [stats["clean"] for stats in document(halved)["file_stats"].values()] == [True, False]


def test_compact_puts_them_together_with_others(halved: Any) -> None:
    before = lines(halved)
    (done,) = care.compact(halved.store).streams
    assert (done.after, done.problems) == (1, ())
    assert lines(halved) == before
    assert care.check(halved.store).findings == ()


def test_a_write_after_the_manifest_was_removed_knows_their_rows(halved: Any) -> None:
    halved.manifest_path().unlink()
    fill(halved, 1, start=9)
    assert [file.stats and file.stats.records for file in halved.load().files] == [1, 3, 1]


def test_a_line_that_is_no_message_is_still_named_beside_them(halved: Any) -> None:
    half: Path = halved.files()[-1]
    plain = half.with_name(half.name.removesuffix(".gz"))
    head = next(read_lines(halved.store, halved.load().files[0].path)).rstrip()
    body = [rb'{"type":"RECORD","stream":"users","record":{"id":"\ud800"}}', b'{"type":1}']
    plain.write_bytes(b"\n".join([head, *body, b""]))
    finding = next(one for one in care.check(halved.store).findings if one.path.endswith(plain.name))
    assert finding.kind == "message" and "line 3" in finding.fact


def test_rows_that_are_nested_very_deeply_stay_in_the_lake(halved: Any) -> None:
    old: Path = halved.files()[-1]
    new = old.with_name(old.name.replace(".singer", "-2.singer"))
    head = next(read_lines(halved.store, halved.load().files[0].path)).rstrip()
    stamp = b'"time_extracted":"2024-01-02T12:02:00.000000Z"}'
    row = b'{"type":"RECORD","stream":"users","record":{"id":5,"name":"\\ud800","d":' + DEEP + b"}," + stamp
    new.write_bytes(gzip.compress(b"\n".join([head, row, row, b""])))

    done = care.rebuild(halved.store)

    assert done.is_whole and done.streams[0].records == 6
    assert care.check(halved.store).findings == ()
    (compacted,) = care.compact(halved.store).streams
    assert (compacted.after, compacted.problems) == (1, ())
    assert lines(halved).count(row + b"\n") == 2


NO_MESSAGES = {
    "more behind it": b'{"type":"RECORD","stream":"users","record":{"d":' + DEEP + b"}} x",
    "type": b'{"type":1,"stream":"users","record":{"d":' + DEEP + b"}}",
    "time": b'{"type":"RECORD","stream":"users","record":{},"time_extracted":' + DEEP + b"}",
    "open": b'{"type":"RECORD","stream":"users","record":{"d":' + DEEP,
    "no object": DEEP,
    "half an escape": rb'{"type":"RECORD","stream":"users","record":{"d":"\ud80"}}',
    "empty": b"",
}


def test_what_is_no_message_is_none_however_deep(lake: Any) -> None:
    for number, line in enumerate(NO_MESSAGES.values(), 1):
        path = put(lake, "users", f"users-{{times}}-{number}.singer", [{"id": 1}], lake.clock.moment, lake.schema())
        path.write_bytes(path.read_bytes() + line + b"\n")
    found = care.check(lake.store).findings
    assert [(one.kind, "line 3" in one.fact) for one in found] == [("message", True)] * len(NO_MESSAGES)


BEYOND = {"type": "integer", "maximum": Decimal("1e999"), "default": Decimal("-1e999")}


def test_numbers_beyond_floats_in_a_schema(lake: Any) -> None:
    fill(lake, 2, 1, id=BEYOND)
    for _ in range(2):
        assert care.check(lake.store).findings == ()
        assert care.rebuild(lake.store).is_whole
        for name in ("catalogue.json", "users/manifest.json"):
            (lake.path / "raw/tap-x" / name).unlink()
        assert care.rebuild(lake.store).is_whole
        catalogue = json.loads((lake.path / "raw/tap-x/catalogue.json").read_bytes(), parse_float=Decimal)
        assert catalogue["streams"][0]["schema"]["properties"]["id"] == BEYOND
        care.compact(lake.store)
    assert lake.load().files[0].clean
    assert schema_message(lake.store, lake.load(), lake.load().hashes[0]).schema["properties"]["id"] == BEYOND


def test_a_catalogue_with_a_byte_order_mark_is_none_the_worse(lake: Any) -> None:
    fill(lake, 1)
    path = lake.path / "raw/tap-x/catalogue.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert care.check(lake.store).findings == ()
