"""A run that was resumed from a STATE of another one, by the keys of its rows."""

import pytest
from said import codes, day, finding, lines, row, schema, state

FIRST = (
    schema(),
    *(row(at, day(at)) for at in range(1, 4)),
    state(a=day(3)),
    *(row(at, day(at)) for at in range(4, 8)),
)
WHOLE = (*FIRST, state(a=day(7)))


def resumed(*messages, state_number=1, first=WHOLE, **given):
    return {"resumed": {state_number: lines(*messages)}, **given}


def test_what_came_behind_the_state_comes_again():
    again = (schema(), *(row(at, day(at)) for at in range(3, 8)), state(a=day(7)))
    assert codes(*WHOLE, **resumed(*again)) == []


def test_more_than_that_may_come():
    """A window to look back; new rows."""
    again = (schema(), *(row(at, day(at)) for at in range(1, 10)), state(a=day(9)))
    assert codes(*WHOLE, **resumed(*again)) == []


def test_a_row_that_is_left_out():
    again = (schema(), *(row(at, day(at)) for at in (3, 4, 6, 7)), state(a=day(7)))
    one = finding("B312", *WHOLE, **resumed(*again))
    assert (one.stream, one.count, one.places) == ("a", 1, ("line 7 of the first run",))


def test_a_stream_that_does_not_come_at_all():
    one = finding("B312", *WHOLE, **resumed(state(a=day(7))))
    assert (one.count, one.places) == (4, ("line 6 of the first run",))


def test_ties_that_a_strict_tap_leaves_out():
    first = (schema(), row(1, day(1)), row(2, day(2)), state(a=day(2)), row(3, day(2)), row(4, day(3)), state(a=day(3)))
    again = (schema(), row(4, day(3)), state(a=day(3)))
    one = finding("B312", *first, **resumed(*again))
    assert (one.count, one.places) == (1, ("line 5 of the first run",))


def test_a_row_that_had_come_before_the_state_as_well():
    """As a row of two parents: a strict tap rightly sends it no more. Changed in between, it must come."""

    def first(again):
        return (schema(), row(1, day(1)), row(2, day(2)), state(a=day(2)), again, row(3, day(3)), state(a=day(3)))

    second = resumed(schema(), row(3, day(3)), state(a=day(3)))
    assert codes(*first(row(2, day(2))), **second) == ["B326"]  # the other row of day 2 might be a new one
    assert codes(*first(row(2, day(3))), **second) == ["B312"]


def test_rows_without_keys_are_compared_as_they_are():
    plain = schema(keys=())
    first = (plain, row(1, day(1)), state(a=day(1)), row(2, day(2)), row(3, day(3)), state(a=day(3)))
    assert "B312" not in codes(*first, **resumed(plain, row(2, day(2)), row(3, day(3)), state(a=day(3))))
    assert "B312" in codes(*first, **resumed(plain, row(3, day(3)), state(a=day(3))))
    changed = (plain, row(2, day(2), n=9), row(3, day(3), n=9), state(a=day(3)))
    assert "B312" not in codes(*first, **resumed(*changed))  # they hold the time of the run, or the like


def test_all_rows_again_from_the_last_state():
    assert codes(*WHOLE, **resumed(*WHOLE, state_number=2)) == ["B304", "B311"]
    assert codes(*WHOLE, **resumed(schema(), row(7, day(7)), state(a=day(7)), state_number=2)) == []


def test_few_rows_may_all_stand_at_the_bookmark():
    same = (schema(), *(row(at, day(1)) for at in range(9)), state(a=day(1)))
    assert codes(*same, **resumed(*same)) == []


def test_rows_that_the_first_run_missed():
    again = (schema(), *(row(at, day(at)) for at in range(3, 8)), row(99, day(7)), row(98, day(5)), state(a=day(7)))
    told = finding("B313", *WHOLE, **resumed(*again))
    assert (told.count, told.places) == (1, ("line 8 of the resumed run",))


def test_rows_below_the_state_that_the_first_run_was_given_are_not_missed():
    given = state(a=day(3))["value"]
    first = (schema(), *(row(at, day(at)) for at in range(3, 8)), state(a=day(7)))
    again = (schema(), row(1, day(1)), row(7, day(7)), state(a=day(7)))  # it looks back
    assert codes(*first, state=given, **resumed(*again)) == []


def test_a_first_run_that_was_stopped_missed_nothing():
    first = (schema(), row(1, day(5)), state(a=day(1)), row(2, day(3)))
    again = (schema(), row(1, day(5)), row(2, day(3)), row(3, day(4)), state(a=day(5)))
    assert "B313" not in codes(*first, whole=False, **resumed(*again))


def test_keys_of_several_kinds_are_the_same_in_each_run():
    """However they come together with others."""

    def run(*ids):
        return (
            schema(fields={"id": {}, "at": {"type": "string"}}),
            *(row(one, day(9)) for one in ids),
            state(a=day(9)),
        )

    told = codes(
        *run(1, 2, None, "x", 3.5, [1], 2**70), **resumed(*run(2**70), *run("x", 1)[1:-1], *run(2, None, [1], 3.5)[1:])
    )
    assert not {"B312", "B311", "B313"} & set(told)


def test_a_state_that_is_not_there():
    with pytest.raises(ValueError, match="no STATE 9"):
        codes(*WHOLE, **resumed(*WHOLE, state_number=9))


def test_a_row_at_the_bookmark_must_come_again():
    first = (schema(), row(1, day(1)), row(2, day(2)), state(a=day(2)), row(3, day(3)), state(a=day(3)))

    def after(*rows):
        return codes(*first, **resumed(schema(), *rows, state(a=day(3))))

    assert after(row(2, day(2)), row(3, day(3))) == []
    assert after(row(3, day(3))) == ["B326"]
    assert after(row(1, day(1)), row(3, day(3))) == ["B326"]


def test_rows_that_spell_the_bookmarks_moment_otherwise():
    def told(bookmark, at, *again):
        first = (schema(), row(1, day(1)), row(2, at), state(a=bookmark), row(3, day(3)), state(a=day(3)))
        return finding("B326", *first, **resumed(schema(), *again, row(3, day(3)), state(a=day(3)), first=first))

    millis, plain = "2024-01-02T00:00:00.000Z", "2024-01-02T00:00:00Z"
    lost = told(plain, millis)
    assert lost.severity == "error" and f"the rows say '{millis}' and the bookmark '{plain}'" in lost.message
    assert told(millis, millis).severity == "warning"
    # A tap that writes all its rows in one form, and keeps the source's in the state.
    assert told(millis, plain).severity == "warning"
