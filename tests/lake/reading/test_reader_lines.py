"""Lines that are read back: untouched where nothing is left out, else exactly what a slow reference gives."""

from __future__ import annotations

import copy
import datetime as dt
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lake_reads import replay
from memory_lakes import in_memory

from burler.errors import LakeError
from burler.lake import LakeWriter, Store, read
from burler.singer.messages import ActivateVersion, Schema, format_time
from support.internals import hashing

NOON = dt.datetime(2024, 1, 2, 12, tzinfo=dt.UTC)
TIMES = [format_time(NOON + dt.timedelta(seconds=seconds)) for seconds in range(4)]
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "a": {"type": ["null", "object"], "properties": {"x": {}, "y": {"type": "object", "properties": {"z": {}}}}},
        "b": {"type": "array", "items": {"type": "object", "properties": {"x": {}, "z": {}}}},
        "c": {},
        "ü \u2028": {},
    },
}
CRUMBS = [
    ("properties", "a"),
    ("properties", "a", "properties", "x"),
    ("properties", "a", "properties", "y", "properties", "z"),
    ("properties", "b"),
    ("properties", "b", "items", "properties", "x"),
    ("properties", "c"),
    ("properties", "ü \u2028"),
]
NUMBERS = ["0", "-0.0", "1.10", "1e400", "123456789012345678901234567890", "0.1000000000000000055511151231257827"]


class Number(str):
    """A number as it is written."""


scalars = st.none() | st.booleans() | st.sampled_from(NUMBERS).map(Number) | st.text(max_size=5)
small = st.dictionaries(st.sampled_from(["x", "y", "z", "n"]), scalars, max_size=3)
values = scalars | small | st.lists(small | scalars, max_size=3) | st.fixed_dictionaries({"x": scalars, "y": small})
rows = st.dictionaries(st.sampled_from(["id", "a", "b", "c", "ü \u2028", "unknown", "type"]), values, max_size=5)
lines = st.lists(st.tuples(rows, st.sampled_from(TIMES), st.none() | st.just(7), st.booleans()), min_size=1, max_size=8)


def text(value: Any) -> str:
    """JSON of a value in which numbers stand as they are written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}: {text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return json.dumps(value)


def parsed(line: bytes | str) -> Any:
    """A message, its numbers as they are written."""
    return json.loads(line, parse_float=Number, parse_int=Number)


def without(value: Any, crumb: tuple[str, ...]) -> None:
    """Take one field out, wherever it stands; the slow way."""
    if crumb[0] == "items":
        for one in value if isinstance(value, list) else ():
            without(one, crumb[1:])
    elif isinstance(value, dict) and len(crumb) == 2:
        value.pop(crumb[1], None)
    elif isinstance(value, dict):
        without(value.get(crumb[1]), crumb[2:])


def expected(
    messages: list[Any], off: list[tuple[str, ...]], keep: list[str] | None, times: Any, name: str | None
) -> Any:
    out = []
    for message in copy.deepcopy(messages):
        if message["type"] == "ACTIVATE_VERSION":
            out += [] if any(times) else [message]
            continue
        if not (times[0] or "") <= message["time_extracted"] < (times[1] or "9"):
            continue
        for crumb in off:
            without(message["record"], crumb)
        if keep is not None:
            message["record"] = {name: one for name, one in message["record"].items() if name in ("id", *keep)}
        out.append(message)
    for message in out:
        message["stream"] = name or "s"
    return out


class Held:
    """A lake in memory."""

    def __init__(self) -> None:
        self.store: Store = in_memory()

    def messages(self, *options: str, catalog: Any = None) -> list[Any]:
        """What comes out beside SCHEMAs and STATEs."""
        found = [parsed(line) for line in replay(self, *options, catalog=catalog).lines]
        return [one for one in found if one["type"] in ("RECORD", "ACTIVATE_VERSION")]

    def put(self, stream: str, *lines: str) -> None:
        """A data file of another writer, as it stands."""
        path = f"raw/tap/{stream}/by-another-program/year=2024/{stream}-20240102T120000Z-20240102T120003Z.singer"
        self.store.create(path, "\n".join([*lines, ""]).encode())


Rows = list[tuple[Any, str, int | None, bool]]


def written(found: Rows) -> Held:
    """A lake with one file that burler wrote; an activation behind each row that is marked so."""
    here = Held()
    with LakeWriter(here.store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", SCHEMA, ("id",)))
        for row, time, version, activates in found:
            tail = "" if version is None else f',"version":{version}'
            line = f'{{"type":"RECORD","stream":"s","record":{text(row)},"time_extracted":"{time}"{tail}}}\n'
            writer.page("s", line.encode(), 1, [time], 7 if version is None else version)
            if activates:
                writer.activate_version(ActivateVersion("s", 7))
    return here


def foreign(found: Rows) -> Held:
    """The same as another program may write it: no manifest, blanks, further keys, lower case, odd messages."""
    out = [hashing.schema_line(Schema("s", SCHEMA, ("id",))).decode()]
    for at, (row, time, version, activates) in enumerate(found):
        message = {"stream": "s", "type": "record" if at % 2 else "RECORD", "record": row, "time_extracted": time}
        if version is not None:
            message["version"] = Number(version)
        if activates:
            message["x-further"] = [Number("1.50")]
        out.append(text(message))
        out += ["", '{"type": "STATE", "value": {}}'] if at == 1 else []
        if activates:
            out.append('{"type": "activate_version", "version": 7, "stream": "s"}')
    here = Held()
    here.put("s", *out)
    return here


@given(
    lines,
    st.lists(st.sampled_from(CRUMBS), max_size=3),
    st.none() | st.lists(st.sampled_from(["id", "a", "b"]), min_size=1, max_size=2, unique=True),
    st.sampled_from([(None, None), (TIMES[1], None), (None, TIMES[2]), (TIMES[1], TIMES[3])]),
    st.sampled_from([None, 'other "name"']),
)
def test_what_is_read_is_what_a_slow_reference_gives(found: Any, off: Any, keep: Any, times: Any, name: Any) -> None:
    chosen = [{"breadcrumb": [], "metadata": {"selected": True}}]
    chosen += [{"breadcrumb": list(crumb), "metadata": {"selected": False}} for crumb in off]
    entry = {"tap_stream_id": "s", "stream": "s", "metadata": chosen, **({"stream_alias": name} if name else {})}
    options = [part for name, time in zip(("--since", "--until"), times, strict=True) if time for part in (name, time)]
    if keep is not None and not off:
        options += ["--columns", ",".join(keep)]
    else:
        keep = None
    for make in (written, foreign):
        here = make(found)
        whole = here.messages()
        plain = [message for message in whole if message["type"] == "RECORD"]
        assert [(one["record"], one["time_extracted"]) for one in plain] == [
            (parsed(text(row)), time) for row, time, _, _ in found
        ]
        assert len(whole) - len(plain) == sum(activates for *_, activates in found)
        got = here.messages(*options, catalog={"streams": [entry]} if off or name else None)
        assert got == expected(whole, off, keep, times, name)


def test_lines_go_out_as_they_stand(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(30_000)))
    (file,) = lake.load().files
    content = gzip.decompress(Path(lake.store.locate(file.path)).read_bytes())
    assert b"".join(line + b"\n" for line in replay(lake).lines[:-1]) == content
    pages = list(read(lake.store).pages())
    assert len(pages) > 2
    assert b"".join(page.lines for page in pages) == content.partition(b"\n")[2]
    assert sum(page.count for page in pages) == 30_000


def test_half_surrogate_pairs_stay_while_fields_go() -> None:
    row = r'{"id":1,"a":{"x":"\ud83d","y":2},"c":"\ude00"}'
    here = Held()
    with LakeWriter(here.store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", SCHEMA, ("id",)))
        line = f'{{"type":"RECORD","stream":"s","record":{row},"time_extracted":"{TIMES[0]}"}}\n'
        writer.page("s", line.encode() + line.replace('"id":1', '"id":2').encode(), 2, [TIMES[0]])
    off = {"breadcrumb": ["properties", "a", "properties", "y"], "metadata": {"selected": False}}
    entry = {"tap_stream_id": "s", "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}, off]}
    out = replay(here, catalog={"streams": [entry]}).lines
    for line, number in zip(out[1:3], (b"1", b"2"), strict=True):
        assert rb'"record":{"id":%s,"a":{"x":"\ud83d"},"c":"\ude00"}' % number in line


HEAD = '{"type":"SCHEMA","stream":"%s","schema":{},"key_properties":[]}'
RECORD = '{"type":"RECORD","stream":"%s","record":{"id":1}}'
NO_MESSAGES = [
    ('{"type":"RECORD","stream":"%s","record":{"id":1}', "it is no JSON"),
    ('{"type":"RECORD","stream":"t","record":{"id":1}}', "a message of stream 't' in a file of stream"),
    ('{"type":"RECORD","stream":"%s","record":[1]}', "must be a JSON object"),
    ('{"type":"RECORD","stream":"%s"}', "must be a JSON object"),
    ('{"type":"ACTIVATE_VERSION","stream":"%s"}', "without 'version'"),
    ("[1]", "it is no Singer message"),
    ('{"type":"RECORD","stream":"%s","record":{"id":1},"time_extracted":"soon"}', "no RFC 3339 date-time"),
]


def named(line: str, stream: str) -> str:
    return line.replace("%s", stream)


def test_a_line_that_is_no_message_is_named_by_its_number() -> None:
    here = Held()
    for at, (line, _) in enumerate(NO_MESSAGES):
        here.put(f"s{at}", *(named(one, f"s{at}") for one in (HEAD, RECORD, line)))
    for at, (_, fact) in enumerate(NO_MESSAGES):
        with pytest.raises(LakeError, match=fact) as caught:
            list(read(here.store, stream=f"s{at}", since=TIMES[0] if "RFC" in fact else None).pages())
        assert f"raw/tap/s{at}/by-another-program/year=2024/s{at}-2024" in str(caught.value)
        assert "line 3" in str(caught.value) or "time_extracted" in str(caught.value)
        assert "Restore" in str(caught.value)


def test_messages_that_do_not_belong_into_a_file_are_left_out_and_noted() -> None:
    here = Held()
    here.put("s", *(named(one, "s") for one in (HEAD, RECORD, '{"type":"STATE","value":{}}', RECORD, HEAD)))
    out = replay(here)
    assert out.ids == [1, 1]
    assert [one["type"] for one in out.messages] == ["SCHEMA", "RECORD", "RECORD", "STATE"]
    said = "\n".join(out.warnings)
    assert "STATE" in said and "SCHEMA" in said and "line 3" in said and "line 5" in said


def test_a_file_with_other_rows_than_the_manifest_says_is_an_error(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(10)))
    (file,) = lake.load().files
    path = Path(lake.store.locate(file.path))
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[: content[:-1].rindex(b"\n") + 1]))
    with pytest.raises(LakeError, match="holds 9 rows where the manifest says 10"):
        list(read(lake.store).pages())


def test_times_of_other_writers_are_read_as_they_are_written() -> None:
    forms = ["2024-01-02T14:00:01+02:00", "2024-01-02 12:00:01", "2024-01-02T12:00:01.0Z", "2024-01-02T12:00:00.9999Z"]
    here, record = Held(), named(RECORD, "s")
    here.put("s", named(HEAD, "s"), *(record[:-1] + f',"time_extracted":"{form}"}}' for form in forms), record)
    out = replay(here, "--since", TIMES[1], "--until", TIMES[2])
    found = [one.get("time_extracted") for one in out.messages if one["type"] == "RECORD"]
    assert found == [*forms[:3], None]  # as they stand; who does not say when is taken


def test_types_go_out_as_singer_spells_them() -> None:
    here = Held()
    here.put("s", named(HEAD, "s"), '{"type":"record","stream":"s","record":{"id":1.10},"version":3}')
    assert replay(here).lines[1] == b'{"type":"RECORD","stream":"s","record":{"id":1.10},"version":3}'


HEADS: list[tuple[str, list[str] | None]] = [
    ('{"type":"SCHEMA","stream":"%s","schema":{},"key_properties":[],"x":1}', None),
    ('{"type":"schema","stream":"%s","schema":{},"key_properties":["a"]}', ["a"]),
    ('{"type":"SCHEMA","stream":"%s","schema":{}}', []),
    ('{"type":"SCHEMA","stream":"%s","schema":{},"key_properties":null}', []),
    ('{"type":"SCHEMA","stream":"%s","schema":{},"key_properties":"a"}', ["a"]),
]


def test_a_schema_goes_out_as_every_target_reads_it() -> None:
    here = Held()
    for at, (line, _) in enumerate(HEADS):
        here.put(f"s{at}", named(line, f"s{at}"), named(RECORD, f"s{at}"))
    lines = {json.loads(line)["stream"]: line for line in replay(here).lines if b'"SCHEMA"' in line}
    for at, (line, keys) in enumerate(HEADS):
        if keys is None:
            assert lines[f"s{at}"] == named(line, f"s{at}").encode()
        else:
            wanted = {"type": "SCHEMA", "stream": f"s{at}", "schema": {}, "key_properties": keys}
            assert json.loads(lines[f"s{at}"]) == wanted


def test_a_first_line_that_is_no_schema_is_named() -> None:
    here = Held()
    heads = ["", "{", '{"type":"RECORD","stream":"s"}', '{"type":"SCHEMA","stream":"s","schema":[]}']
    for at, line in enumerate(heads):
        here.put(f"s{at}", line, named(RECORD, f"s{at}"))
        with pytest.raises(
            LakeError, match=r"(?s)raw/tap/s.*(line 1 is no SCHEMA message.*move it away|Restore it from a copy)"
        ):
            list(read(here.store, stream=f"s{at}").pages())
