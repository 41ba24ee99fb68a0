"""What a user's catalog can change of a stream, and what is told where it can't."""

from __future__ import annotations

import re
from typing import Any

import pytest
from taps import FIELDS, ids, make

import burler
from burler.errors import CatalogError
from burler.testing import run_tap

INTEGER, TEXT = {"type": "integer"}, {"type": "string"}
NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": INTEGER,
        "secret": TEXT,
        "o": {"type": "object", "properties": {"ssn": TEXT}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"ssn": TEXT}}},
        "items": {"type": "object", "properties": {"anyOf": TEXT}},
    },
}


def _entry(name: str = "a", root: dict[str, Any] | None = None, fields: Any = (), **more: Any) -> dict[str, Any]:
    metadata = [{"breadcrumb": [], "metadata": {"selected": True, **(root or {})}}]
    metadata += [{"breadcrumb": crumb, "metadata": said} for crumb, said in fields]
    return {"tap_stream_id": name, "metadata": metadata, **more}


def _run(tap: burler.Tap, *entries: dict[str, Any]) -> Any:
    return run_tap(tap, catalog={"streams": list(entries)})


def _nested() -> burler.Tap:
    tap = burler.tap("tap-n")
    tap.sync("a", key_properties="id", schema=NESTED)(lambda: [{"id": 1, "secret": "s"}])
    return tap


# ---- breadcrumbs that no field has ----------------------------------------------------------------

OFF = {"selected": False}


@pytest.mark.parametrize(
    ("crumb", "says"),
    [
        (["secret"], '["secret"] (did you mean ["properties","secret"]?)'),
        (["secrte"], '["secrte"] (did you mean ["properties","secret"]?)'),
        (["properties"], '["properties"]'),
        (["properties", "l", "items"], '["properties","l","items"] (did you mean ["properties","l"]?)'),
        (
            ["properties", "l", "properties", "ssn"],
            '["properties","l","properties","ssn"] (did you mean ["properties","l","items","properties","ssn"]?)',
        ),
        (["properties", "o", "ssn"], '["properties","o","ssn"] (did you mean '),
        (["properties", "Secret"], '["properties","Secret"] (did you mean ["properties","secret"]?)'),
        (["", "properties", "secret"], '["","properties","secret"] (did you mean ["properties","secret"]?)'),
    ],
)
def test_each_is_told_once(caplog: pytest.LogCaptureFixture, crumb: list[str], says: str):
    assert _run(_nested(), _entry(fields=[(crumb, OFF)])).records("a") == [{"id": 1, "secret": "s"}]
    told = [one.getMessage() for one in caplog.records if "does not have" in one.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("stream 'a': the catalog speaks of fields that its schema does not have: " + says)


def test_of_many_none_is_left_out_that_fits(caplog: pytest.LogCaptureFixture):
    _run(_nested(), _entry(fields=[([f"x{i}"], OFF) for i in range(30)]))
    assert '["x19"] and 10 more' in caplog.text


@pytest.mark.parametrize(
    ("crumb", "said"),
    [
        (["properties", "l", "items"], {"inclusion": "available"}),
        (["properties", "l", "items"], {"selected": True}),
        (["properties", "items", "properties", "anyOf"], OFF),
        (["properties", "l", "items", "properties", "ssn"], OFF),
        (["properties", "o", "anyOf", "0", "properties", "ssn"], OFF),
        ([], {"selected": True}),
    ],
)
def test_what_is_fine_is_not_told(caplog: pytest.LogCaptureFixture, crumb: list[str], said: dict[str, Any]):
    assert _run(_nested(), _entry(fields=[(crumb, said)])).records("a")
    assert "does not have" not in caplog.text


def test_of_a_stream_that_is_not_selected_nothing_is_told(caplog: pytest.LogCaptureFixture):
    _run(_nested(), _entry(root={"selected": False}, fields=[(["secret"], OFF)]))
    assert "does not have" not in caplog.text


# ---- schemas that nothing can follow --------------------------------------------------------------


@pytest.mark.parametrize("levels", [1000, 5000])
def test_a_schema_that_is_nested_too_deep_is_one_error(levels: int):
    schema: dict[str, Any] = INTEGER
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    with pytest.raises(CatalogError, match="too deep") as caught:
        _run(_nested(), _entry(schema={"type": "object", "properties": {"id": INTEGER, "x": schema}}))
    assert len(str(caught.value).splitlines()) == 1


def test_one_that_is_deep_as_a_taps_own_may_be_is_fine():
    schema: dict[str, Any] = INTEGER
    for _ in range(60):
        schema = {"anyOf": [{"type": "object", "properties": {"x": schema}}]}
    deep = {"type": "object", "properties": {"id": INTEGER, "x": schema}}
    assert _run(_nested(), _entry(schema=deep)).records("a")


# ---- what the tap alone decides -------------------------------------------------------------------


@pytest.mark.parametrize("inclusion", ["unsupported", "available"])
def test_a_catalog_does_not_switch_an_automatic_field_off(inclusion: str):
    tap = make(a=lambda: [{"id": 1, "at": "x"}])
    tap.metadata("a", {"at": {"inclusion": "automatic"}})
    off = {"inclusion": inclusion, "selected": False}
    assert _run(tap, _entry(fields=[(["properties", "at"], off)])).records("a") == [{"id": 1, "at": "x"}]


def _pair(**emitted: Any) -> burler.Tap:
    """``a`` gives only what is new; ``b`` comes out of its function, ``k`` hangs on it."""

    def rows(stream: Any) -> Any:
        start = stream.bookmark or 1
        yield from ids(start, start + 1)
        yield "b", ids(start + 100)

    tap = make(a=rows)
    tap.stream("b", emitted_by="a", key_properties="id", schema=FIELDS, **emitted)
    tap.sync("k", parent="a", key_properties="id", schema=FIELDS)(lambda parent: ids(parent["id"] + 10))
    return tap


@pytest.mark.parametrize("valid", [None, ["id"], ["id", "at"]])
@pytest.mark.parametrize("name", ["b", "k"])
def test_a_stream_that_only_increments_feed_is_never_activated(name: str, valid: list[str] | None):
    """ACTIVATE_VERSION would make a target drop all rows of earlier runs."""
    tap = _pair()
    if valid is not None:
        tap.metadata(name, {"": {"valid-replication-keys": valid}})
    asked = {"replication-method": "FULL_TABLE"}
    run = _run(tap, _entry("a"), _entry(name, asked))
    assert run.records(name)
    assert "ACTIVATE_VERSION" not in run.types
    assert not any("version" in m for m in run.messages if m["type"] == "RECORD")


@pytest.mark.parametrize("name", ["b", "k"])
def test_a_stream_beside_has_no_key_that_a_catalog_could_choose(name: str):
    with pytest.raises(CatalogError, match=rf"gives stream '{name}' the replication key 'at'. It can have: none"):
        _run(_pair(), _entry("a"), _entry(name, {"replication-key": "at"}))


@pytest.mark.parametrize("name", ["b", "k"])
def test_and_needs_none_though_it_is_incremental(name: str):
    run = _run(_pair(), _entry("a"), _entry(name, {"replication-method": "INCREMENTAL"}))
    assert run.records(name)
    assert re.fullmatch("(SCHEMA )+(RECORD )+STATE", " ".join(run.types))
