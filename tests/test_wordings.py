"""What other libraries say in their errors, wherever burler goes by it: the words themselves, and that another wording
costs time, never rows. A new release with other words is told here; see also the bound of msgspec in pyproject.toml."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import sqlite3
import tomllib
from pathlib import Path

import msgspec
import pytest

import burler
from burler.spec import check_messages
from burler.testing import run_tap

# ---- msgspec: how a page is read, what verify finds, where a file breaks -------------------------------

Inner = msgspec.defstruct("Inner", [("id", int)], forbid_unknown_fields=True)
Row = msgspec.defstruct(
    "Row", [("id", int), ("of", Inner | None, None), ("map", dict[str, list[int]] | None, None)],
    forbid_unknown_fields=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": 1, "new": 2}, "Object contains unknown field `new` - at `$[0]`"),
        ({"id": 1, "of": {"id": 1, "new": 2}}, "Object contains unknown field `new` - at `$[0].of`"),
        ({}, "Object missing required field `id` - at `$[0]`"),
        ({"id": "5"}, "Expected `int`, got `str` - at `$[0].id`"),
        ({"id": 1, "map": {"a": [1, "2"]}}, "Expected `int`, got `str` - at `$[0].map[...][1]`"),
    ],
)
def test_msgspec_names_the_place_and_what_is_wrong_there(row, words):
    """``shape.compile.FastPath`` reads these."""
    for read in (
        lambda: msgspec.convert([row], list[Row]),
        lambda: msgspec.json.decode(json.dumps([row]), type=list[Row]),
        lambda: msgspec.json.Decoder(Row).decode_lines(json.dumps(row)),
    ):
        with pytest.raises(msgspec.ValidationError) as caught:
            read()
        assert str(caught.value) == words


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (b'{"a": [1', msgspec.DecodeError, "Input data was truncated"),
        (b'{"a" 1}', msgspec.DecodeError, "JSON is malformed: expected ':' (byte 5)"),
        (b"[1e999]", msgspec.ValidationError, "Number out of range - at `$[0]`"),
    ],
)
def test_msgspec_says_where_json_breaks(text, kind, words):
    """Errors of pages, configs and files say line and column of "(byte 5)", and "it breaks off"; verify's M219 goes by
    "out of range"."""
    with pytest.raises(kind) as caught:
        msgspec.json.decode(text)
    assert (type(caught.value), str(caught.value)) == (kind, words)


def test_no_release_of_msgspec_comes_unseen():
    requirement = pytest.importorskip("packaging.requirements").Requirement
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    (bounds,) = [one.specifier for one in map(requirement, project["dependencies"]) if one.name == "msgspec"]
    assert msgspec.__version__ in bounds
    assert "1000" not in bounds


def no_words(_text):
    return "no"


def other_words(text):
    text = text.replace("Object contains unknown field", "Found the unexpected key")
    return text.replace("Object missing required field", "Found no key")


def no_place(text):
    return re.sub(r" - at `.*", "", text)


def other_place(text):
    return re.sub(r" - at `\$(.*)`", lambda found: f" (/{found[1].replace('.', '/')})", text)


def wrong_place(text):
    return no_place(text) + " - at `$[0].tags[1]`"


def swapped(text):
    unknown, missing = "Object contains unknown field", "Object missing required field"
    return text.replace(missing, unknown) if missing in text else text.replace(unknown, missing)


OBJECT = {"type": ["null", "object"], "properties": {"id": {"type": "integer"}, "at": {"type": "string"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "n": {"type": ["null", "number"]},
        "of": OBJECT,
        "all": {"type": ["null", "array"], "items": OBJECT},
        "map": {"type": ["null", "object"], "additionalProperties": OBJECT},
        "tags": {"type": ["null", "array"], "items": {"type": "string"}},
        "at": {"type": ["null", "string"], "format": "date-time"},
    },
    "required": ["id"],
}
PLAIN = {"id": 1, "n": 1.5, "of": {"id": 1, "at": "x"}, "all": [{"id": 1}], "map": {"a": {"id": 1}}, "tags": ["x"]}
ODD = {
    "an unknown field": {"new": 1},
    "one in an object": {"of": {"id": 1, "new": 2}},
    "one in an array": {"all": [{"id": 1}, {"id": 2, "new": 2}]},
    "one in a map": {"map": {"a": {"id": 1, "new": 2}}},
    "a number as text": {"n": "1.50"},
    "one in an object's": {"of": {"id": "5"}},
    "one in a map's": {"map": {"a": {"id": "5"}}},
    "a date-time with a zone": {"at": "2024-01-02T03:04:05+01:00"},
    "no value that fits": {"of": {"id": "x"}},
    "a number in an array of texts": {"tags": ["x", 5]},
    "no id": {"id": None},
}
FORMS = {
    "dicts": lambda rows: rows,
    "an array": lambda rows: json.dumps(rows).encode(),
    "lines": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "a document": lambda rows: json.dumps({"of": 1, "data": {"all": rows}}).encode(),
}


def outcome(form, odd, *, open_, caplog):
    """Rows, errors, and what is told of rows and fields that are left out."""
    rows = [{**PLAIN, "id": number, **(odd if number == 3 else {})} for number in range(1, 41)]
    rows = [{name: value for name, value in row.items() if name != "id" or value is not None} for row in rows]
    schema = {**SCHEMA, "additionalProperties": True} if open_ else SCHEMA
    tap = burler.tap("t")
    options = {"records_path": "data.all"} if form == "a document" else {}

    @tap.sync("a", schema=schema, key_properties="id", on_bad_record="skip", **options)
    def a():
        yield FORMS[form](rows)
        yield FORMS[form](rows[:2])

    caplog.clear()
    with caplog.at_level(logging.WARNING):
        out = run_tap(tap)
    told = [record.getMessage() for record in caplog.records]
    return out.records("a"), {name: str(error) for name, error in out.result.errors.items()}, told


@pytest.mark.parametrize("open_", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("form", FORMS)
def test_whatever_msgspec_says_the_rows_are_the_same(form, open_, monkeypatch, caplog):
    """Pages go slower where its words are others, and come out the same: rows, errors, what is told."""
    wanted = {name: outcome(form, odd, open_=open_, caplog=caplog) for name, odd in ODD.items()}
    reword, reworded = None, []

    def other(read):
        def reading(*given, **named):
            try:
                return read(*given, **named)
            except msgspec.ValidationError as error:
                reworded.append(str(error))
                raise msgspec.ValidationError(reword(str(error))) from None

        return reading

    class Decoder:
        def __init__(self, *given, **named):
            real = decoder(*given, **named)
            self.decode, self.decode_lines = other(real.decode), other(real.decode_lines)

    decoder = msgspec.json.Decoder
    monkeypatch.setattr(msgspec, "convert", other(msgspec.convert))
    monkeypatch.setattr(msgspec.json, "Decoder", Decoder)
    for reword in (no_words, other_words, no_place, other_place, wrong_place, swapped):
        reworded.clear()
        for name, odd in ODD.items():
            assert outcome(form, odd, open_=open_, caplog=caplog) == wanted[name], (reword, name)
        assert len(reworded) >= len(ODD) - 3


def test_verify_tells_odd_numbers_by_words_and_depth_without():
    """M219 for what no double holds; a line that is too deep is known by the kind of its error."""
    schema = b'{"type":"SCHEMA","stream":"a","schema":{"properties":{}},"key_properties":[]}\n'
    deep = b'{"type":"RECORD","stream":"a","record":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}}\n"
    for line, rule in (
        (b'{"type":"RECORD","stream":"a","record":{"x":1e999}}\n', "M219"),
        (b'{"type":"RECORD","stream":"a","record":{"x":"\\ud800"}}\n', "M219"),
        (deep, "M201"),
    ):
        assert rule in {one.code for one in check_messages(io.BytesIO(schema + line))}, line[:60]


# ---- pyarrow, Python's csv and json, SQLite ------------------------------------------------------------


def arrow_error(text, *, block_bytes=1 << 20):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv

    read = arrow_csv.ReadOptions(use_threads=False, block_size=block_bytes)
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(column_types={"b": pa.string()})
    with pytest.raises(pa.ArrowInvalid) as caught:
        arrow_csv.open_csv(io.BytesIO(text), read, parse, convert).read_all()
    return str(caught.value)


def test_pyarrow_says_that_a_row_is_longer_than_a_block():
    """``burler.files`` reads such a file with greater blocks; with other words it would be an error."""
    assert "straddling" in arrow_error(b"a,b\n1," + b"x" * 5000 + b"\n2,y\n", block_bytes=1000)


def test_pyarrow_says_which_row_has_other_fields():
    """In errors alone."""
    assert re.search(r"Row #2: Expected 2 columns, got 3: 1,2,3", arrow_error(b"a,b\n1,2,3\n"))
    assert "UTF8" in arrow_error(b"a,b\n1,\xff\n")


def test_pythons_csv_says_that_a_quote_never_ends():
    """``burler.files`` refuses a first row that would hold the whole file; other faults are not its matter."""
    with pytest.raises(csv.Error, match=r"^unexpected end of data$"):
        list(csv.reader(['a,"b\n', "1,2\n"], strict=True))


def test_pythons_json_says_that_a_text_never_ends():
    """``burler infer`` leaves out the last row of a sample that breaks off within a text."""
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads('{"a": "x')
    assert caught.value.msg.startswith("Unterminated string")


def test_sqlite_says_that_what_a_view_needs_is_gone():
    """Discovery leaves out such a view, and tells so; another error ends it."""
    base = sqlite3.connect(":memory:")
    base.execute("create table a (x)")
    base.execute("create view b as select x from a")
    base.execute("drop table a")
    with pytest.raises(sqlite3.OperationalError, match="no such"):
        base.execute("select * from b")
