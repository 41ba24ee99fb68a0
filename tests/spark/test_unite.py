"""Several schema versions of one stream: one set of columns, and nothing of any version lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from burler.spark import export

pytestmark = pytest.mark.usefixtures("packages")

INTEGER, NUMBER, TEXT, FLAG = ({"type": name} for name in ("integer", "number", "string", "boolean"))
DECIMAL = {"type": "number", "multipleOf": 0.01}
FINE = {"type": "number", "multipleOf": 1e-25}
BIG = {"type": "integer", "maximum": 10**30}
DATE, MOMENT = ({"type": "string", "format": name} for name in ("date", "date-time"))
BASE64 = {"type": "string", "contentEncoding": "base64"}
OBJECT, MAP = {"properties": {"a": INTEGER}}, {"type": "object", "additionalProperties": INTEGER}
ARRAY = {"type": "array", "items": INTEGER}
STRUCT = "struct<a: int64>"

WIDENED = [
    (INTEGER, INTEGER, "int64"),
    (INTEGER, NUMBER, "double"),
    (INTEGER, BIG, "decimal128(38, 0)"),
    (INTEGER, DECIMAL, "decimal128(38, 2)"),
    (BIG, DECIMAL, "decimal128(38, 2)"),
    ({"type": "null"}, MOMENT, "timestamp[us, tz=UTC]"),
    ({"type": "null"}, OBJECT, STRUCT),
]
HELD_AS_TEXT = [
    *((kind, TEXT) for kind in (INTEGER, NUMBER, FLAG, MOMENT, DATE, BASE64)),
    (FLAG, INTEGER),
    (DATE, MOMENT),
    (NUMBER, DECIMAL),
    (INTEGER, FINE),  # 13 digits are left before the point, an integer has 19
    (OBJECT, ARRAY),
    (OBJECT, MAP),
    (OBJECT, INTEGER),
    (OBJECT, {}),
]


@pytest.fixture
def exported(lake: Any, tmp_path: Path) -> Any:
    """``exported(stream=[properties, ...])``: by stream, the types of its own columns, and what was noted."""

    def made(*, keys: tuple[str, ...] = (), **streams: list[dict[str, Any]]) -> dict[str, tuple[dict[str, str], Any]]:
        import deltalake

        for stream, versions in streams.items():
            for properties in versions:
                lake.register(stream, {"properties": properties}, keys if properties is versions[-1] else ())
        found = {}
        for result in export(None, str(lake.root), tmp_path / "out"):
            schema = deltalake.DeltaTable(result.table).to_pyarrow_table().schema
            types = {field.name: str(field.type) for field in schema if not field.name.startswith("_sdc_")}
            found[result.stream] = (types, result.notes)
        return found

    return made


def test_types_widen_in_either_order_without_a_word(exported: Any) -> None:
    pairs = {f"s{at}": [{"x": left}, {"x": right}] for at, (left, right, _) in enumerate(WIDENED)}
    found = exported(**pairs, **{f"{name}-back": both[::-1] for name, both in pairs.items()})

    for at, (_, _, both) in enumerate(WIDENED):
        assert found[f"s{at}"] == found[f"s{at}-back"] == ({"x": both}, ())


def test_what_no_type_holds_is_text_and_a_note_says_so(exported: Any) -> None:
    found = exported(
        **{f"s{at}": [{"x": left, "y": INTEGER}, {"x": right}] for at, (left, right) in enumerate(HELD_AS_TEXT)}
    )

    assert len(found) == len(HELD_AS_TEXT)
    for types, notes in found.values():
        assert types == {"x": "string", "y": "int64"}
        (note,) = notes
        assert note.startswith("field 'x': ") and " in v1, " in note and note.endswith(" in v2: held as text")


def test_a_conflict_inside_leaves_all_around_it_as_it_is(exported: Any) -> None:
    versions = [
        {"o": {"properties": {"a": FLAG, "b": TEXT}}, "l": {"type": "array", "items": INTEGER}, "m": MAP},
        {"o": {"properties": {"a": INTEGER}}, "l": {"type": "array", "items": FLAG}, "m": {**MAP, "type": "object"}},
    ]

    types, notes = exported(s=versions)["s"]

    assert types["o"] == "struct<a: string, b: string>"
    assert types["l"].startswith("list<") and "string" in types["l"] and types["m"].startswith("map<string, int64")
    assert set(notes) == {
        "field 'o.a': boolean in v1, integer in v2: held as text",
        "field 'l.[]': integer in v1, boolean in v2: held as text",
    }


def test_order_and_names_of_columns(exported: Any) -> None:
    """New fields come after the old ones, dropped ones stay, keys are first; what differs in case is told."""
    found = exported(
        ordered=[{"a": INTEGER, "b": TEXT}, {"c": FLAG, "a": NUMBER, "k": TEXT}],
        respelled=[{"ID": INTEGER, "c": TEXT, "k": TEXT}, {"Id": INTEGER}, {"id": NUMBER, "c": TEXT, "k": TEXT}],
        twins=[{"id": INTEGER, "c": TEXT}, {"ID": TEXT, "id": INTEGER, "ID_2": FLAG, "c": TEXT, "k": TEXT}],
        keys=("k", "c"),
    )

    assert list(found["ordered"][0]) == ["k", "c", "a", "b"]
    types, notes = found["respelled"]
    assert types == {"k": "string", "c": "string", "id": "double"}
    assert notes == ("field 'id': also spelled 'ID', 'Id' in older schemas",)
    types, notes = found["twins"]
    assert types == {"k": "string", "c": "string", "id": "int64", "ID_3": "string", "ID_2": "bool"}
    assert "field 'ID': it differs from another by case: held in column 'ID_3'" in notes
