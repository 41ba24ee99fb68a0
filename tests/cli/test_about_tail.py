"""--about on tail runs: what each stream promises there, and what its settings take."""

from __future__ import annotations

import json

import jsonschema
import pytest

import burler
from support.cli import script


def about(tap):
    """What a tap's own command says of it, as data."""
    return json.loads(script(tap, "--about=json").stdout)


def delivery(tap):
    """What it promises of each stream."""
    return {one["name"]: one["delivery"] for one in about(tap)["streams"]}


SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}
KEYED = {"replication_key": "id", "order": "asc"}


def rows():
    yield {"id": 1}


def said_of(declare):
    """The items of a stream ``s``, as one text in which no backquote and no line end stands."""
    tap = burler.tap("tap-x")
    declare(tap)
    items = delivery(tap)["s"]
    for sentence in items:
        assert sentence.endswith(".") and ".." not in sentence and "  " not in sentence, sentence
    return " ".join(items).replace("`", "")


def polled(**options):
    return lambda tap: tap.sync("s", schema=SCHEMA, **options)(rows)


def pushed(sync=None, *, overlap=False, **options):
    def declare(tap):
        if sync is not None:
            tap.sync("s", **sync)(rows)
        tap.tail("s", schema=SCHEMA, overlap=overlap, **options)(rows)

    return declare


def woken(tap):
    polled(**KEYED)(tap)
    tap.wake("s")(rows)


def woken_table(tap):
    polled()(tap)
    tap.wake("s")(rows)


def keyless_with_bookmark_function(tap):
    polled(replication_key="id")(tap)
    tap.bookmark("s")(lambda record: record["id"])


@pytest.mark.parametrize(
    ("declare", "says", "never"),
    [
        (
            polled(**KEYED),
            "In a tail run (--tail) it is polled again new_record_polling_interval_ms after each poll, from the "
            "bookmark "
            "at which the one before ended; a row that is read once more and is the same as in the poll before does "
            "not "
            "go out again. STATE comes at the latest state_message_min_interval_ms after the first row that none "
            "covers, "
            "even where the bookmark stands still.",
            "wake",
        ),
        (
            polled(**KEYED, new_record_polling_interval_ms=5000),
            "polled again 5,000 ms (the catalog may say otherwise) after each poll",
            "new_record_polling_interval_ms",
        ),
        (
            polled(**KEYED, resume="exclusive"),
            "from the bookmark at which the one before ended. STATE",
            "once more and",
        ),
        (
            woken,
            "at once where its wake function says so; a call that gets lost costs time, and no row",
            "tail function",
        ),
        (
            polled(),
            "it is read whole once, and again only when that is older than max_full_table_age_seconds, if it is set. "
            "STATE comes at the latest state_message_min_interval_ms after the first row that none covers.",
            "polled",
        ),
        (
            woken_table,
            "max_full_table_age_seconds, if it is set; and at once where its wake function says so. STATE",
            "polled",
        ),
        (
            keyless_with_bookmark_function,
            "from the bookmark at which the one before ended. STATE",
            "once more and",
        ),
        (
            polled(max_full_table_age_seconds=86400),
            "it is read whole, and again 86,400 seconds after that began (the catalog may say otherwise)",
            "max_full_table_age_seconds",
        ),
        (
            polled(replication_method="LOG_BASED"),
            "polled again new_record_polling_interval_ms after each poll, with the stream.state that the one before",
            "read whole",
        ),
        (
            pushed(),
            "It comes in tail runs (--tail) only; plain runs leave it out, with a warning. Each time that its function "
            "ends or fails, it is called again, with stream.state of what is out; after a kill, of the last STATE. "
            "What "
            "the source gives once more from there comes twice; what it no longer has by then is lost.",
            "at the end of the stream",
        ),
        (
            pushed(),
            "after the first row that none covers, also while the function waits for the source; it holds what the "
            "function keeps in stream.state, as it stood when the rows before it were out.",
            "the bookmark",
        ),
        (
            pushed(**KEYED),
            "waits for the source; the bookmark is the greatest value out, since rows rise by it (checked).",
            "moves only when",
        ),
        (
            pushed(replication_key="id"),
            "the bookmark moves only when the function comes to its end, since its rows are not said to rise (order); "
            "before that, stream.state alone is saved.",
            "greatest",
        ),
        (
            pushed(replication_key="id", bookmark_strategy="manual"),
            "waits for the source; the bookmark is what the function saves.",
            "moves only when",
        ),
        (
            pushed({"replication_key": "id", "order": "asc"}),
            "In a tail run (--tail) its sync function brings what is there, then its tail function goes on where "
            "that has "
            "ended; each time that it ends or fails, the same again, with the bookmark and stream.state of what is out",
            "leave it out",
        ),
        (
            pushed({"replication_key": "id", "order": "asc"}),
            "While its tail function goes on, STATE comes at the latest state_message_min_interval_ms after",
            "polled",
        ),
        (
            pushed({"replication_key": "id", "order": "asc"}),
            "STATE comes at the end of the stream, and when it is stopped or fails; the bookmark is the greatest",
            "leave it out",
        ),
        (
            pushed({"replication_key": "id"}, overlap=True),
            "its tail function is called first, and brings the rows of its sync function once it has subscribed; each "
            "time that it ends or fails, the same again. So nothing gets lost in between, if it calls "
            "stream.catch_up() "
            "after it has subscribed, and rows that come both ways come twice.",
            "is lost",
        ),
    ],
)
def test_what_a_stream_promises_in_a_tail_run(declare, says, never):
    said = said_of(declare)
    assert says in said
    assert never not in said


def test_streams_that_come_in_another_ones_run_follow_that_one():
    tap = burler.tap("tap-x")
    tap.tail("events", schema=SCHEMA)(rows)
    tap.stream("errors", emitted_by="events", schema=SCHEMA)
    tap.sync("notes", schema=SCHEMA)(rows)
    tap.sync("lines", parent="notes", schema=SCHEMA)(rows)
    said = delivery(tap)
    errors, lines = (" ".join(said[name]) for name in ("errors", "lines"))
    assert "STATE moves with it. STATE comes at the latest `state_message_min_interval_ms`" in errors
    assert "at the end of the stream" not in errors
    assert "tail" not in errors and "tail" not in lines


def test_a_pattern_says_both_ways():
    tap = burler.tap("tap-x")
    tap.discover(lambda: {})
    tap.sync("*")(rows)
    said = " ".join(delivery(tap)["*"]).replace("`", "")
    assert "each stream is polled again new_record_polling_interval_ms after each poll" in said
    assert "; one that is a FULL_TABLE is read whole once, and again only when" in said
    tap = burler.tap("tap-x")
    tap.discover(lambda: {})
    tap.sync("*", replication_method=burler.FULL_TABLE)(rows)
    said = " ".join(delivery(tap)["*"])
    assert "it is read whole once" in said and "polled" not in said


def test_a_told_source_is_told_what_a_file_confirms_where_that_is_set():
    tap = burler.tap("tap-x")
    tap.tail("s", schema=SCHEMA)(rows)
    tap.ack("s")(lambda bookmark: None)
    last = delivery(tap)["s"][-1]
    assert last.startswith("The source is told how far it may forget once a STATE that moved the stream has left")
    assert "not that a target has stored it. With `acknowledge_state_file` it is told what that file confirms" in last


def test_every_form_shows_it_and_no_line_is_too_long():
    tap = burler.tap("tap-x")
    tap.tail("s", schema=SCHEMA)(rows)
    text = script(tap, "--about").text
    assert "s: LOG_BASED, keys: none" in text
    assert max(map(len, text.splitlines())) <= 120
    assert "- It comes in tail runs (`--tail`) only" in script(tap, "--about=markdown").text
    assert "It comes in tail runs" in " ".join(delivery(tap)["s"])
    assert "log-based" in about(tap)["capabilities"]


def test_settings_whose_null_is_a_value_take_it():
    tap = burler.tap("tap-x")
    schema = about(tap)["settings"]
    check = jsonschema.Draft4Validator(schema)
    assert check.is_valid({"tail": True, "tail_max_retries": None, "new_record_polling_interval_ms": 5000})
    assert check.is_valid({"tail_max_retries": 3})
    assert not check.is_valid({"tail_max_retries": "many"})
    assert not check.is_valid({"tail": "yes"})
    assert schema["properties"]["tail_max_retries"]["default"] == 10
    for name in ("tail", "state_message_min_interval_ms", "acknowledge_state_file", "tail_max_retries"):
        assert f"  {name} " in script(tap, "--about").text


@pytest.mark.parametrize(("keys", "again"), [({}, True), ({"key_properties": "id"}, False)])
def test_children_without_keys_come_again_with_each_poll(keys, again):
    tap = burler.tap("tap-x")
    tap.sync("s", schema=SCHEMA, **KEYED)(rows)
    tap.sync("lines", schema=SCHEMA, parent="s", **keys)(lambda parent: [])
    assert ("come again with each poll" in " ".join(delivery(tap)["lines"])) is again
