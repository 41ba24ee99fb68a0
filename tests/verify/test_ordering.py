"""``@ensure_ordering``: outside of a run, in a run, and in a run that is verified."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from decimal import Decimal

import pytest

import burler
import burler.verify
from burler.errors import DeclarationError
from burler.testing import run_tap, verify_tap
from burler.verify import OrderingError, ensure_ordering

ROWS = [{"id": 1, "at": "2024-05-01"}, {"id": 2, "at": "2024-05-02"}, {"id": 3, "at": "2024-05-01"}]
SCHEMA = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date"}}}


def through(given, key="at", order="ASC"):
    """What comes out of a function that gives this."""

    @ensure_ordering(key, order)
    def give():
        return given

    found = give()
    return list(found) if isinstance(found, Iterator) else found


@pytest.mark.parametrize(
    "given",
    [ROWS, iter(ROWS), [ROWS[:2], ROWS[2:]], iter([ROWS]), (row for row in ROWS)],
    ids=lambda given: type(given).__name__,
)
def test_what_falls_is_told_with_both_values(given):
    with pytest.raises(OrderingError, match="record 3 has 'at' '2024-05-01' after '2024-05-02', against ASC") as told:
        through(given)
    assert (told.value.key, told.value.order, told.value.row) == ("at", "ASC", 3)
    assert (told.value.before, told.value.value) == ("2024-05-02", "2024-05-01")


def test_a_generator_gives_what_stands_before_the_fault():
    @ensure_ordering("at", "ASC")
    def give():
        yield from ROWS

    came = []
    with pytest.raises(OrderingError):
        came.extend(give())
    rows = give()
    assert [next(rows), next(rows)] == ROWS[:2]


@pytest.mark.parametrize("order", ["ASC", "DESC", "asc", "desc"])
def test_what_keeps_its_order_comes_as_it_is(order):
    rows = ROWS[:2] if order.lower() == "asc" else ROWS[1::-1]
    assert through([*rows, rows[-1]], order=order) == [*rows, rows[-1]]
    assert through({"at": 1}) == {"at": 1}
    assert through([]) == []
    assert through(None) is None
    assert through([("others", [{"at": 9}]), {"at": 1}]) == [("others", [{"at": 9}]), {"at": 1}]


def test_moments_are_compared_and_not_their_text():
    assert len(through([{"at": "2024-05-01T01:00:00+02:00"}, {"at": "2024-05-01T00:00:00Z"}])) == 2
    with pytest.raises(OrderingError):
        through([{"at": "2024-05-01T01:00:00Z"}, {"at": "2024-05-01T02:00:00+02:00"}])
    assert through([{"a": {"b": 1}}, {"a": {"b": 2}}], key="a.b") == [{"a": {"b": 1}}, {"a": {"b": 2}}]


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ([{"id": 1}], "record 1 comes without the field 'at'"),
        ([{"at": None}], "record 1 comes with null in 'at'"),
        ([{"at": 1}, {"at": "x"}], "against ASC"),
        ([{"at": [1]}, {"at": {}}], "against ASC"),
    ],
    ids=["missing", "null", "mixed", "odd"],
)
def test_what_has_no_place_is_told(rows, fact):
    with pytest.raises(OrderingError, match=fact):
        through(rows)


@pytest.mark.parametrize("wrong", [("at", "UP"), ("", "ASC"), (1, "ASC"), ("at", None)], ids=repr)
def test_a_wrong_declaration_is_refused_at_once(wrong):
    with pytest.raises(DeclarationError, match="ensure_ordering"):
        ensure_ordering(*wrong)


def test_a_coroutine_is_refused():
    with pytest.raises(DeclarationError, match="gives records"):

        @ensure_ordering("at")
        async def give():
            return []


def make_tap(rows):
    tap = burler.tap("tap-sorted")

    @tap.sync("days", key_properties="id", schema=SCHEMA)
    @burler.verify.ensure_ordering("at", "ASC")
    def days():
        yield from rows

    return tap


def test_in_a_run_the_stream_fails():
    errors = run_tap(make_tap(ROWS)).result.errors
    assert "stream 'days'" in str(errors["days"]) and "against ASC" in str(errors["days"])
    assert run_tap(make_tap(ROWS[:2])).result.errors == {}


def test_verify_notes_it_and_goes_on():
    verification = verify_tap(make_tap(ROWS))
    (found,) = verification.findings
    assert (found.code, found.stream, found.path, found.places) == ("O401", "days", "at", ("record 3",))
    assert "test_ordering.py" in found.message
    facts = verification.runs[0].streams["days"]
    assert facts.rows == 3
    (flip,) = facts.order["declared"]
    assert (flip["row"], flip["before"], flip["value"]) == (3, "2024-05-02", "2024-05-01")
    assert verify_tap(make_tap(ROWS[:2])).findings == []


def test_the_decorated_function_keeps_its_name_and_parameters():
    tap = burler.tap("tap-named")

    @tap.client
    def client(config):
        return config["rows"]

    @tap.sync("days", key_properties="id", schema=SCHEMA)
    @ensure_ordering("at")
    def days(client, stream):
        """The days."""
        return client

    assert days.__doc__ == "The days."
    assert run_tap(tap, {"rows": ROWS[:1]}).records("days") == ROWS[:1]


class Pages:
    """Something of an author's that can be gone through."""

    def __iter__(self):
        return iter(ROWS)


@pytest.mark.parametrize(
    "rows",
    [
        [{"at": 1}, {"at": Decimal("1.5")}],
        [{"at": "10"}, {"at": "9"}],
        [{"at": "9"}, {"at": "10"}],
        [{"at": "123"}, {"at": "abc"}],
    ],
    ids=["decimals", "as-text", "as-numbers", "words"],
)
def test_what_rises_in_one_way_or_another_is_no_fault(rows):
    assert through(rows) == rows


def test_a_field_with_a_dot_in_its_name():
    assert through([{"a.b": 1}, {"a.b": 2}], key="a.b") == [{"a.b": 1}, {"a.b": 2}]


@pytest.mark.parametrize(
    "given", [deque(ROWS), dict(enumerate(ROWS)).values(), Pages()], ids=["deque", "values", "pages"]
)
def test_whatever_gives_records_is_looked_at(given):
    with pytest.raises(OrderingError):
        list(through(given))
