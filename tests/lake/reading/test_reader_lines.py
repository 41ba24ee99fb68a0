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

from burler.errors import LakeError
from burler.lake import DataFile, LakeWriter, load
from burler.singer.messages import ActivateVersion, Schema, format_time
from support.internals import canonical, lake_head, memory_store, reading_choice, reading_cut, reading_lines

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
    ("properties", "id"),
    ("properties", "a"),
    ("properties", "a", "properties", "x"),
    ("properties", "a", "properties", "y", "properties", "z"),
    ("properties", "b"),
    ("properties", "b", "items", "properties", "x"),
    ("properties", "c"),
    ("properties", "ü \u2028"),
    ("properties", "unknown"),
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
    messages: list[Any], wanted: reading_lines.Wanted, off: list[tuple[str, ...]], keep: list[str] | None
) -> list[Any]:
    out = []
    for message in copy.deepcopy(messages):
        if message["type"] == "ACTIVATE_VERSION":
            out += [message] if wanted.activations and not wanted.bare else []
            continue
        time = message.get("time_extracted")
        if time is not None and not wanted.times.holds(time):
            continue
        row = message["record"]
        for crumb in off:
            without(row, crumb)
        if keep is not None:
            message["record"] = {name: row[name] for name in keep if name in row}
        out.append(message["record"] if wanted.bare else message)
    for message in out:
        if wanted.name is not None and not wanted.bare:
            message["stream"] = wanted.name
    return out


def written(found: list[tuple[Any, str, int | None, bool]]) -> tuple[memory_store.MemoryStore, DataFile]:
    """A lake with one file that burler wrote; an activation behind each row that is marked so."""
    store = memory_store.MemoryStore()
    with LakeWriter(store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", SCHEMA, ("id",)))
        for row, time, version, activates in found:
            tail = "" if version is None else f',"version":{version}'
            line = f'{{"type":"RECORD","stream":"s","record":{text(row)},"time_extracted":"{time}"{tail}}}\n'
            writer.page("s", line.encode(), 1, [time], 7 if version is None else version)
            if activates:
                writer.activate_version(ActivateVersion("s", 7))
    (file,) = load(store, "tap", "s").files
    return store, file


def foreign(found: list[tuple[Any, str, int | None, bool]]) -> tuple[memory_store.MemoryStore, DataFile]:
    """The same as another program may write it: no manifest, blanks, further keys, lower case, odd messages."""
    schema = canonical.schema_line(Schema("s", SCHEMA, ("id",)))
    out = [schema.decode()]
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
    store = memory_store.MemoryStore()
    path = f"raw/tap/s/{canonical.schema_hash(schema)}/year=2024/s-20240102T120000Z-20240102T120003Z.singer"
    store.create(path, "\n".join([*out, ""]).encode())
    return store, load(store, "tap", "s").files[0]


def read(store: memory_store.MemoryStore, file: DataFile, wanted: reading_lines.Wanted) -> tuple[list[Any], int]:
    with reading_lines.FileLines(store, file) as opened:
        assert opened.head.message.stream == "s"
        pages = list(opened.lines(wanted))
    assert all(page.endswith(b"\n") for page, _ in pages)
    whole = b"".join(page for page, _ in pages)
    return [parsed(line) for line in whole.split(b"\n")[:-1]], sum(count for _, count in pages)


@given(
    lines,
    st.lists(st.sampled_from(CRUMBS), max_size=3),
    st.none() | st.lists(st.sampled_from(["id", "a", "b", "none"]), max_size=2, unique=True),
    st.sampled_from([(None, None), (TIMES[1], None), (None, TIMES[2]), (TIMES[1], TIMES[3])]),
    st.sampled_from([None, 'other "name"']),
    st.booleans(),
    st.booleans(),
)
def test_what_is_read_is_what_a_slow_reference_gives(
    found: Any, off: Any, keep: Any, times: Any, name: Any, activations: bool, bare: bool
) -> None:
    cut = reading_cut.cut_of(off, keep)
    wanted = reading_lines.Wanted(reading_choice.Window(*times), cut or None, name, activations, bare)
    for make in (written, foreign):
        store, file = make(found)
        with reading_lines.FileLines(store, file) as opened:
            whole = [
                parsed(line) for page, _ in opened.lines(reading_lines.Wanted()) for line in page.split(b"\n")[:-1]
            ]
        plain = [message for message in whole if message["type"] == "RECORD"]
        assert [(one["record"], one["time_extracted"]) for one in plain] == [
            (parsed(text(row)), time) for row, time, _, _ in found
        ]
        assert len(whole) - len(plain) == sum(activates for *_, activates in found)
        got, count = read(store, file, wanted)
        right = expected(whole, wanted, off, keep)
        assert got == right
        assert count == sum(bare or one["type"] == "RECORD" for one in right)


def test_lines_go_out_as_they_stand(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(30_000)))
    (file,) = lake.load().files
    content = gzip.decompress(Path(lake.store.locate(file.path)).read_bytes())
    first, _, rest = content.partition(b"\n")
    with reading_lines.FileLines(lake.store, file) as opened:
        assert opened.head.line_out() == first + b"\n"
        pages = list(opened.lines(reading_lines.Wanted()))
    assert len(pages) > 2
    assert b"".join(page for page, _ in pages) == rest
    assert sum(count for _, count in pages) == 30_000


def test_nothing_is_decoded_where_nothing_is_left_out(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(100)))
    (file,) = lake.load().files

    def decode(*_args: Any) -> Any:
        raise AssertionError("a line was decoded")

    monkeypatch.setattr(reading_lines, "decode_all", decode)
    monkeypatch.setattr(reading_lines._Way, "_typed", decode)
    covering = reading_choice.Window(TIMES[0], TIMES[1])
    with reading_lines.FileLines(lake.store, file) as opened:
        ((_, count),) = opened.lines(reading_lines.Wanted(covering))
    assert count == 100
    with pytest.raises(AssertionError, match="was decoded"), reading_lines.FileLines(lake.store, file) as opened:
        list(opened.lines(reading_lines.Wanted(reading_choice.Window(TIMES[1], None))))


def test_half_surrogate_pairs_stay_while_fields_go() -> None:
    row = r'{"id":1,"a":{"x":"\ud83d","y":2},"c":"\ude00"}'
    store = memory_store.MemoryStore()
    with LakeWriter(store, "tap", emit_state=lambda _state: None) as writer:
        writer.schema(Schema("s", SCHEMA, ("id",)))
        line = f'{{"type":"RECORD","stream":"s","record":{row},"time_extracted":"{TIMES[0]}"}}\n'
        writer.page("s", line.encode() + line.replace('"id":1', '"id":2').encode(), 2, [TIMES[0]])
    (file,) = load(store, "tap", "s").files
    with reading_lines.FileLines(store, file) as opened:
        off = [("properties", "a", "properties", "y")]
        ((page, count),) = opened.lines(reading_lines.Wanted(cut=reading_cut.cut_of(off), bare=True))
    assert (page, count) == (
        rb'{"id":1,"a":{"x":"\ud83d"},"c":"\ude00"}' + b"\n" + rb'{"id":2,"a":{"x":"\ud83d"},"c":"\ude00"}' + b"\n",
        2,
    )


def put(*messages: str) -> tuple[memory_store.MemoryStore, DataFile]:
    schema = canonical.schema_line(Schema("s", SCHEMA, ("id",)))
    store = memory_store.MemoryStore()
    path = f"raw/tap/s/{canonical.schema_hash(schema)}/s-20240102T120000Z-20240102T120003Z.singer"
    store.create(path, b"\n".join([schema, *(one.encode() for one in messages), b""]))
    return store, load(store, "tap", "s").files[0]


RECORD = '{"type":"RECORD","stream":"s","record":{"id":1}}'


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ('{"type":"RECORD","stream":"s","record":{"id":1}', "it is no JSON"),
        ('{"type":"RECORD","stream":"t","record":{"id":1}}', "a message of stream 't' in a file of stream 's'"),
        ('{"type":"RECORD","stream":"s","record":[1]}', "must be a JSON object"),
        ('{"type":"RECORD","stream":"s"}', "must be a JSON object"),
        ('{"type":"ACTIVATE_VERSION","stream":"s"}', "without 'version'"),
        ("[1]", "it is no Singer message"),
        ('{"type":"RECORD","stream":"s","record":{"id":1},"time_extracted":"soon"}', "no RFC 3339 date-time"),
    ],
)
def test_a_line_that_is_no_message_is_named_by_its_number(line: str, fact: str) -> None:
    store, file = put(RECORD, line)
    wanted = reading_lines.Wanted(reading_choice.Window(TIMES[0], None) if "soon" in line else reading_choice.ALL_TIMES)
    with pytest.raises(LakeError, match=fact) as caught, reading_lines.FileLines(store, file) as opened:
        list(opened.lines(wanted))
    assert file.path in str(caught.value)
    assert "line 3" in str(caught.value) or "time_extracted" in str(caught.value)
    assert "Restore" in str(caught.value)


def test_messages_that_do_not_belong_into_a_file_are_left_out_and_noted() -> None:
    store, file = put(RECORD, '{"type":"STATE","value":{}}', RECORD, '{"type":"SCHEMA","stream":"s","schema":{}}')
    with reading_lines.FileLines(store, file) as opened:
        ((page, count),) = opened.lines(reading_lines.Wanted())
        assert opened.skipped == {"STATE": 3, "SCHEMA": 5}
    assert (page.decode(), count) == (f"{RECORD}\n{RECORD}\n", 2)


def test_a_file_with_other_rows_than_the_manifest_says_is_an_error(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", *range(10)))
    (file,) = lake.load().files
    path = Path(lake.store.locate(file.path))
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[: content[:-1].rindex(b"\n") + 1]))
    with (
        pytest.raises(LakeError, match="holds 9 rows where the manifest says 10"),
        reading_lines.FileLines(lake.store, file) as opened,
    ):
        list(opened.lines(reading_lines.Wanted()))


def test_times_of_other_writers_are_read_as_they_are_written() -> None:
    forms = ["2024-01-02T14:00:01+02:00", "2024-01-02 12:00:01", "2024-01-02T12:00:01.0Z", "2024-01-02T12:00:00.9999Z"]
    store, file = put(*(RECORD[:-1] + f',"time_extracted":"{form}"}}' for form in forms), RECORD)
    with reading_lines.FileLines(store, file) as opened:
        ((page, count),) = opened.lines(reading_lines.Wanted(reading_choice.Window(TIMES[1], TIMES[2])))
    found = [json.loads(line).get("time_extracted") for line in page.splitlines()]
    assert (found, count) == ([*forms[:3], None], 4)  # as they stand; who does not say when is taken


def test_types_go_out_as_singer_spells_them() -> None:
    store, file = put('{"type":"record","stream":"s","record":{"id":1.10},"version":3}')
    with reading_lines.FileLines(store, file) as opened:
        ((page, _),) = opened.lines(reading_lines.Wanted())
    assert page == b'{"type":"RECORD","stream":"s","record":{"id":1.10},"version":3}\n'


@pytest.mark.parametrize(
    ("off", "left"),
    [
        (("b", "items", "x"), {"a": {"x": 1, "y": {"z": 1, "q": 2}}, "b": [{"z": 2}, "t", None, {}]}),
        (("a", "y", "z"), {"a": {"x": 1, "y": {"q": 2}}, "b": [{"x": 1, "z": 2}, "t", None, {}]}),
        (("b",), {"a": {"x": 1, "y": {"z": 1, "q": 2}}}),
        (("a", "items", "x"), {"a": {"x": 1, "y": {"z": 1, "q": 2}}, "b": [{"x": 1, "z": 2}, "t", None, {}]}),
    ],
    ids=["in the items of a list", "in an object", "a field", "no list is there"],
)
def test_what_goes_inside_of_fields(off: tuple[str, ...], left: Any) -> None:
    crumb = [part for name in off for part in (("items",) if name == "items" else ("properties", name))]
    row = b'{"a":{"x":1,"y":{"z":1,"q":2}},"b":[{"x":1,"z":2},"t",null,{}]}'
    assert json.loads(reading_cut.cut_of([tuple(crumb)]).record(row)) == left


@pytest.mark.parametrize(
    ("line", "goes_out"),
    [
        ('{"type":"SCHEMA","stream":"s","schema":{},"key_properties":[],"x":1}', None),
        ('{"type":"schema","stream":"s","schema":{},"key_properties":["a"]}', ["a"]),
        ('{"type":"SCHEMA","stream":"s","schema":{}}', []),
        ('{"type":"SCHEMA","stream":"s","schema":{},"key_properties":null}', []),
        ('{"type":"SCHEMA","stream":"s","schema":{},"key_properties":"a"}', ["a"]),
    ],
    ids=["as it is", "lower case", "no keys", "null", "one name"],
)
def test_a_schema_goes_out_as_every_target_reads_it(line: str, goes_out: list[str] | None) -> None:
    out = lake_head.head_of(line.encode() + b"\n", "here").line_out()
    if goes_out is None:
        assert out == line.encode() + b"\n"
    else:
        wanted = {"type": "SCHEMA", "stream": "s", "schema": {}, "key_properties": goes_out}
        assert json.loads(out) == wanted


@pytest.mark.parametrize(
    "line", ["", "{", '{"type":"RECORD","stream":"s"}', '{"type":"SCHEMA","stream":"s","schema":[]}']
)
def test_a_first_line_that_is_no_schema_is_named(line: str) -> None:
    with pytest.raises(LakeError, match=r"(?s)^here: .*Restore it from a copy"):
        lake_head.head_of(line.encode(), "here")
