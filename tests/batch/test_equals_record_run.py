"""A BATCH run gives what the RECORD run of the same tap gives: rows, order, versions, bookmarks, errors, reports.

Rows are read from the files by plain programs (batch_plain). One tap at a time: declare, run twice, compare.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from batch_rows import KINDS, KINDS_ROWS, NAMED, NAMED_ROWS, ODD, UNKNOWN
from batch_same import ENCODINGS, FORMATS, both, check, check_messages, states
from batch_taps import as_arrow, as_bytes, bad_rows, family, hooked, odd_arrow, parted, shop, strategy, table

formats = pytest.mark.parametrize("encoding", FORMATS, ids="-".join)


def rows_of(pair: Any, stream: str) -> list[Any]:
    return [m["record"] for m in pair.records if m["type"] == "RECORD" and m["stream"] == stream]


def sizes(pair: Any, stream: str) -> list[int]:
    return [m["size"] for m in pair.batches if m["type"] == "BATCH" and m["stream"] == stream]


# ---- rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ENCODINGS, ids="-".join)
def test_rows_are_shaped_alike(tmp_path, encoding):
    """Dates, decimals, numbers of all sizes, text of all kinds, nested, null, missing."""
    pair = check(both(lambda: shop(ODD), encoding, tmp_path, batch_size=7))
    assert sizes(pair, "orders") == [7, 7, 7, 7, 3]
    assert rows_of(pair, "orders")[0]["at"] == "2024-05-01T10:30:00.000250Z"


@formats
@pytest.mark.parametrize(("schema", "rows"), [(NAMED, NAMED_ROWS), (KINDS, KINDS_ROWS)], ids=["names", "schemas"])
def test_names_and_schemas_of_all_kinds(tmp_path, encoding, schema, rows):
    pair = check(both(lambda: shop(rows, schema=schema), encoding, tmp_path))
    assert len(rows_of(pair, "orders")) == len(rows)


@formats
def test_a_field_whose_schema_is_true_may_hold_anything(tmp_path, encoding):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "any": True}}
    rows = [{"id": 1, "any": [1, {"a": "b"}]}, {"id": 2}, {"id": 3, "any": "x"}]
    pair = check(both(lambda: shop(rows, schema=schema), encoding, tmp_path))
    assert len(rows_of(pair, "orders")) == 3


SELECTIONS = {
    "a field": "orders,!orders.text,!orders.price",
    "nested": "orders,!orders.owner.email,!orders.owner.home.zip,!orders.items.price",
    "all of an object": "orders,!orders.owner,!orders.items.tags,!orders.labels",
    "one field": "orders.price",
    "keys alone": ",".join(["orders.id"]),
}


@formats
@pytest.mark.parametrize("patterns", SELECTIONS.values(), ids=SELECTIONS)
def test_what_is_not_selected_stays_out_at_every_depth(tmp_path, encoding, patterns):
    pair = check(both(lambda: shop(ODD), encoding, tmp_path, batch_size=100, options=lambda: {"select": patterns}))
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    if encoding[1] == "none" and "email" in patterns:
        assert b"ann@example.org" not in content and b"3000" not in content
    assert sizes(pair, "orders") == [len(ODD)]


@formats
def test_unknown_fields_are_dropped_counted_and_reported_alike(tmp_path, encoding):
    pair = check(both(lambda: shop(UNKNOWN), encoding, tmp_path))
    assert "colour (2 of 2 rows" in pair.batch_said[0] and "owner.shoe_size (1 of 2 rows" in pair.batch_said[0]
    assert "this keeps them" in pair.batch_said[1]


@formats
def test_hooks_have_seen_each_row(tmp_path, encoding):
    pair = check(both(hooked, encoding, tmp_path))
    assert all(row["text"].startswith("seen: ") and row["id"] % 4 for row in rows_of(pair, "orders"))
    assert len(rows_of(pair, "orders")) > 20


@formats
def test_pages_of_bytes_and_rows_alike(tmp_path, encoding):
    pair = check(both(lambda: shop(as_bytes), encoding, tmp_path, batch_size=5))
    assert len(rows_of(pair, "orders")) == len(ODD) - 3 + 2


@formats
@pytest.mark.parametrize("select", [None, "orders,!orders.owner.home,!orders.price"])
def test_arrow_pages_and_rows_alike(tmp_path, encoding, select):
    """Also where the columns of a page go into the columns of a file without becoming lines."""
    options = {} if select is None else {"select": select}
    pair = check(both(lambda: shop(as_arrow), encoding, tmp_path, batch_size=4, options=lambda: dict(options)))
    assert [row["id"] for row in rows_of(pair, "orders")] == [1, 2, 3, 4, 8, 9, 5, 6, 7]
    assert sizes(pair, "orders") == [4, 4, 1]


@formats
def test_columns_of_other_types_and_rows_alike(tmp_path, encoding):
    pair = check(both(lambda: shop(odd_arrow), encoding, tmp_path, batch_size=4))
    assert sizes(pair, "orders") == [4, 2]


@formats
@pytest.mark.parametrize("policy", ["error", "skip", "null"])
@pytest.mark.parametrize("paged", [False, True], ids=["rows", "bytes"])
def test_rows_that_do_not_fit_are_treated_alike(tmp_path, encoding, policy, paged):
    def rows() -> Any:
        given = bad_rows()
        return [json.dumps(given).encode()] if paged else given

    pair = check(both(lambda: shop(rows), encoding, tmp_path, {"on_bad_record": policy}))
    assert len(rows_of(pair, "orders")) == {"error": 1, "skip": 2, "null": 4}[policy]
    assert bool(pair.batch_result.errors) == (policy == "error")


# ---- versions, order, bookmarks -------------------------------------------------------------------------------


@formats
def test_full_tables_carry_the_same_versions(tmp_path, encoding):
    first = check(both(table, encoding, tmp_path / "first", batch_size=5))
    state = states(first.batches)[-1]
    later = check(both(table, encoding, tmp_path / "later", options=lambda: {"state": state}))
    kinds = [m["type"] for m in later.batches if m["type"] != "STATE"]
    assert kinds == ["SCHEMA", *["BATCH"] * 4, "ACTIVATE_VERSION"]
    kinds = [m["type"] for m in first.batches if m["type"] != "STATE"]
    assert kinds == ["SCHEMA", "ACTIVATE_VERSION", *["BATCH"] * 3, "ACTIVATE_VERSION"], "the first is shown as it comes"


@formats
def test_an_interrupted_full_table_goes_on_alike(tmp_path, encoding):
    old = {"bookmarks": {"things": {"version": 5}}}
    first = check(both(lambda: table(fail_at=7), encoding, tmp_path / "first", options=lambda: {"state": old}))
    assert sum(sizes(first, "things")) == 7
    state = states(first.batches)[-1]
    assert state["bookmarks"]["things"]["full_table"]["id"] == 6
    second = check(both(table, encoding, tmp_path / "second", options=lambda: {"state": state}))
    assert sum(sizes(second, "things")) == 6
    (version,) = {m["version"] for pair in (first, second) for m in pair.batches if m["type"] == "BATCH"}
    assert [m["version"] for m in second.batches if m["type"] == "ACTIVATE_VERSION"] == [version]


@pytest.mark.parametrize("dialect", ["both", "meltano"])
def test_dialects_of_targets_that_know_no_versions_keep_activate_version_back(tmp_path, dialect):
    """Such targets would drop the rows that they have just loaded."""
    pair = both(table, ("jsonl", "none"), tmp_path / "back", dialect=dialect)
    assert {m["type"] for m in pair.batches} == {"SCHEMA", "BATCH", "STATE"}
    assert states(pair.batches)[-1]["bookmarks"]["things"].keys() == {"version"}
    sent = both(table, ("jsonl", "none"), tmp_path / "sent", dialect=dialect, activate_version=True)
    kept = [m for m in sent.batches if m["type"] == "ACTIVATE_VERSION"]
    assert len(kept) == 2 and len({m["version"] for m in kept}) == 1


@formats
def test_substreams_and_emitted_streams_and_failures_alike(tmp_path, encoding):
    pair = check(both(family, encoding, tmp_path, {"parent_buffer_rows": 2}))
    assert set(pair.batch_result.errors) == {"children", "broken"}
    assert sum(sizes(pair, "children")) == 30 and sum(sizes(pair, "broken")) == 5
    assert not sizes(pair, "empty"), "no file without rows"
    assert states(pair.batches)[-1]["bookmarks"]["parents"]["id"] == 9, "it passes no row whose children are missing"


@formats
@pytest.mark.parametrize("order", ["none", "asc"])
def test_partitions_alike(tmp_path, encoding, order):
    pair = check(both(lambda: parted(order), encoding, tmp_path))
    assert sum(sizes(pair, "tickets")) == 20 and pair.batch_result.errors


@formats
@pytest.mark.parametrize("name", ["every_n(3)", "on_page", "manual", "end_of_sync"])
def test_bookmarks_move_alike_with_every_strategy(tmp_path, encoding, name):
    pair = check(both(lambda: strategy(name), encoding, tmp_path, batch_size=16))
    assert sizes(pair, "tickets") == [16, 16, 8], "no STATE makes a file smaller"
    assert states(pair.batches)[-1] == {"bookmarks": {"tickets": {"id": 39}}}
    state = states(pair.batches)[-1]
    again = check(both(lambda: strategy(name), encoding, tmp_path / "again", options=lambda: {"state": state}))
    assert [row["id"] for row in rows_of(again, "tickets")] == [39, 40, 41, 42]


# ---- what columns can't hold ----------------------------------------------------------------------------------


@formats
def test_digits_of_a_second_beyond_the_sixth_are_cut_in_columns_and_counted(tmp_path, encoding):
    rows = [{"id": 1, "at": "2024-05-01T00:00:00.123456789Z"}, {"id": 2, "at": "2024-05-01T00:00:00.1234560Z"}]
    pair = both(lambda: shop(rows), encoding, tmp_path)
    if encoding[0] in ("jsonl", "csv"):
        check(pair)
        return
    (said,) = pair.batch_said
    assert "'orders'" in said and "at" in said and "1 " in said
    pair.batch_said.clear()
    check(pair)


@pytest.mark.usefixtures("values_in_logs")
@formats
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("count", 2**63),
        ("exact", "1.0000000000000000001"),
        ("huge", 10**39),
    ],
)
def test_a_value_that_a_column_cannot_hold_ends_its_stream_and_is_never_rounded(tmp_path, encoding, field, value):
    rows = [{"id": 1}, {"id": 2, field: value}, {"id": 3}]
    pair = both(lambda: shop(rows, check_constraints=False), encoding, tmp_path)
    if encoding[0] in ("jsonl", "csv"):
        check(pair)
        return
    error = str(pair.batch_result.errors["orders"])
    assert "'orders'" in error and f"'{field}'" in error and str(value)[:20] in error
    assert not pair.result.errors
    check_messages(pair)
    written = sum(sizes(pair, "orders"))
    assert written <= 1, "nothing of the row that does not fit, nor behind it"


@formats
def test_fields_that_only_an_open_schema_lets_in_have_no_column_and_are_said(tmp_path, encoding):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": True}
    pair = both(lambda: shop([{"id": 1, "more": {"a": 1}}, {"id": 2}], schema=schema), encoding, tmp_path)
    if encoding[0] == "jsonl":
        check(pair)
        return
    (said,) = pair.batch_said
    assert "'orders'" in said and "more" in said and "1 row" in said
    pair.batch_said.clear()
    check(pair)


@formats
def test_files_end_by_bytes_and_nothing_is_lost_between_them(tmp_path, encoding):
    rows = [{"id": number, "text": "x" * 100} for number in range(60)]
    pair = check(both(lambda: shop(rows), encoding, tmp_path, {"page_max_rows": 5}, batch_size=1000, batch_bytes=1500))
    assert len(sizes(pair, "orders")) >= 4 and sum(sizes(pair, "orders")) == 60
