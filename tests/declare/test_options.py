"""Options of streams, late registration, and the gaps that ``seal()`` reports."""

from __future__ import annotations

import pytest

import burler
from burler.errors import DeclarationError
from burler.testing import run_tap

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}
OPTIONS = (
    "key_properties, replication_key, replication_method, bookmark_strategy, order, on_unsorted, resume, lookback, "
    "bookmark_format, signpost, resumable_by, retry_sync_on, setup_retry, max_retries, workers, rollup, versions, "
    "on_bad_record, check_constraints, source_state, records_path, new_record_polling_interval_ms, "
    "max_full_table_age_seconds, schema, parent, emitted_by."
)


@pytest.fixture
def tap():
    return burler.tap("tap-x")


def rows():
    return [{"id": 1}]


def line_of(mark):
    """The line of this file that ends in a mark."""
    with open(__file__) as lines:
        return next(i for i, line in enumerate(lines, 1) if line.rstrip().endswith(f"# {mark}"))


# Each way of saying an option, for the tests that say a wrong one.
FORMS = {
    "sync": lambda tap, **options: tap.sync("a", **options)(rows),
    "stream": lambda tap, **options: tap.stream("a", **options),
    "handle.sync": lambda tap, **options: tap.stream("a").sync(**options)(rows),
    "handle.sync text": lambda tap, **options: tap.stream("a").sync("rows", **options),
    "substream": lambda tap, **options: tap.stream("b").substream("a", **options),
    "class": lambda tap, **options: tap.stream(
        type("A", (burler.Stream,), {**options, "name": "a", "sync": lambda self: []})
    ),
    "emits": lambda tap, **options: tap.stream(
        type("B", (burler.Stream,), {"sync": lambda self: [], "emits": {"a": options}})
    ),
}


@pytest.mark.parametrize("form", [form for form in FORMS if form != "class"])
def test_a_misspelt_option(tap, form):
    with pytest.raises(DeclarationError) as caught:
        FORMS[form](tap, replication_kye="id")
    text = str(caught.value)
    assert text.startswith("stream 'a' (") and "test_options.py:" in text
    assert "unknown option 'replication_kye'. Did you mean 'replication_key'? Options: " + OPTIONS in text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("primary_key", "key_properties"),
        ("primary_keys", "key_properties"),
        ("merge_key", "key_properties"),
        ("cursor_field", "replication_key"),
        ("incremental_key", "replication_key"),
        ("bookmark_properties", "replication_key"),
        ("valid_replication_keys", "replication_key"),
        ("forced_replication_method", "replication_method"),
        ("sync_mode", "replication_method"),
        ("is_sorted", "order"),
        ("check_sorted", "on_unsorted"),
        ("parent_stream_type", "parent"),
        ("records_jsonpath", "records_path"),
        ("state_checkpoint_interval", "bookmark_strategy"),
    ],
)
def test_a_word_of_another_framework(tap, form, theirs, ours):
    """In a class, too, where it would be an attribute of the author's own: a stream without keys, in silence."""
    with pytest.raises(DeclarationError, match=rf"'{theirs}'\. Did you mean '{ours}'\?"):
        FORMS[form](tap, **{theirs: "id"})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"key_properties": 5}, "key_properties must be different field names, not 5"),
        ({"key_properties": ["id", "id"]}, "key_properties must be different field names"),
        ({"key_properties": ["id", 5]}, "key_properties must be different field names"),
        ({"key_properties": [""]}, "key_properties must be different field names"),
        ({"replication_key": ["id"]}, "replication_key must be a field's name, not ['id']"),
        ({"replication_key": ""}, "replication_key must be a field's name"),
        ({"replication_method": "incremental"}, "is unknown. Did you mean 'INCREMENTAL'? Known: FULL_TABLE"),
        ({"bookmark_strategy": "end_of_snyc"}, "Did you mean 'end_of_sync'?"),
        ({"order": "desc"}, "order 'desc' is unknown. Known: asc, none"),
        ({"versions": "no"}, "versions must be True or False, not 'no'"),
        ({"emitted_by": 5}, "emitted_by must be a stream's name, not 5"),
        ({"schema": 5}, "schema"),
    ],
)
def test_wrong_values(tap, form, options, says):
    with pytest.raises(DeclarationError) as caught:
        FORMS[form](tap, **options)
    text = str(caught.value)
    assert says in text and "'a'" in text and len(text.splitlines()) <= 3


@pytest.mark.parametrize("value", [["asc"], {}, object()])
@pytest.mark.parametrize("option", ["order", "replication_method"])
def test_values_of_strange_types(tap, option, value):
    with pytest.raises(DeclarationError, match="is unknown"):
        tap.sync("a", **{option: value})(rows)


def test_none_is_nothing_said(tap):
    tap.sync("a", replication_key=None, replication_method=None, order=None, versions=None, emitted_by=None)(rows)
    tap.schema("a", SCHEMA)
    assert tap.seal().streams["a"].replication_method == burler.FULL_TABLE


def test_a_parent_may_be_named_by_text_handle_or_class(tap):
    @tap.stream
    class CallNotes(burler.Stream):
        schema = SCHEMA

        def sync(self):
            return [{"id": 1}]

    handle = tap.stream("h", schema=SCHEMA)
    handle.sync(rows)
    for name, parent in [("a", CallNotes), ("b", "call_notes"), ("c", handle)]:
        tap.sync(name, parent=parent, schema=SCHEMA)(lambda parent: [parent])
    specs = tap.seal().streams
    assert [specs[name].parent for name in "abc"] == ["call_notes", "call_notes", "h"]
    assert run_tap(tap).records("c") == [{"id": 1}]


def test_a_substream_says_its_parent_once(tap):
    with pytest.raises(DeclarationError, match=r"stream 'b' .*its parent is 'a'; leave out parent="):
        tap.stream("a").substream("b", parent="c")


@pytest.mark.parametrize("name", ["", None, 5, b"a"])
def test_names_of_streams_are_text(tap, name):
    for declare in (tap.sync, tap.stream, tap.bookmark, tap.post_transform, tap.metadata, tap.stream("x").substream):
        with pytest.raises(DeclarationError, match=r"test_options\.py:\d+.*must be text|must be text"):
            declare(name)
    with pytest.raises(DeclarationError, match="must be text"):
        tap.schema(name, SCHEMA)


@pytest.mark.parametrize("part", ["sync", "bookmark", "schema", "metadata", "post_transform"])
def test_forgotten_parentheses(tap, part):
    with pytest.raises(DeclarationError, match=r"needs the stream's name first: @tap\."):
        getattr(tap, part)(rows)


def test_nothing_is_said_twice_across_styles(tap):
    tap.sync("a", key_properties="id")(rows)
    with pytest.raises(DeclarationError, match=r"stream 'a' \(.*has a key_properties already \(.*test_options"):
        tap.stream("a", key_properties="id")


# ---- late registration ---------------------------------------------------------------------------

LATE = {
    "tap.sync": lambda tap: tap.sync("late")(rows),
    "tap.stream": lambda tap: tap.stream("late"),
    "tap.stream, class": lambda tap: tap.stream(type("Late", (burler.Stream,), {"sync": lambda self: []})),
    "tap.schema": lambda tap: tap.schema("late", SCHEMA),
    "tap.schema, function": lambda tap: tap.schema("late")(lambda: SCHEMA),
    "tap.bookmark": lambda tap: tap.bookmark("late")(lambda record: 1),
    "tap.metadata": lambda tap: tap.metadata("late")(lambda field: None),
    "tap.metadata, mapping": lambda tap: tap.metadata("late", {}),
    "tap.post_transform": lambda tap: tap.post_transform("late")(lambda record: record),
    "tap.discover": lambda tap: tap.discover(lambda: {}),
    "tap.client": lambda tap: tap.client(lambda config: 1),
    "tap.load_streams": lambda tap: tap.load_streams("json"),
    "handle.sync": lambda tap: tap.early.sync(rows),
    "handle.sync, text": lambda tap: tap.early.sync("rows"),
    "handle.schema": lambda tap: tap.early.schema(SCHEMA),
    "handle.bookmark": lambda tap: tap.early.bookmark(lambda record: 1),
    "handle.metadata": lambda tap: tap.early.metadata({}),
    "handle.post_transform": lambda tap: tap.early.post_transform(lambda record: record),
    "handle.substream": lambda tap: tap.early.substream("late"),
    "handle on a class": lambda tap: tap.early(type("Late", (burler.Stream,), {"sync": lambda self: []})),
    "handle on a function": lambda tap: tap.early(rows),
}


@pytest.mark.parametrize("form", LATE)
def test_late_registration_is_refused(tap, form):
    tap.early = tap.stream("early", schema=SCHEMA, emitted_by="a")
    tap.sync("a", schema=SCHEMA)(rows)
    before = tap.seal().streams
    with pytest.raises(
        DeclarationError, match=r"test_options\.py:\d+: the tap is running, or has run; declare all streams when"
    ):
        LATE[form](tap)
    assert tap.seal().streams is before


def test_late_means_from_the_first_run_on(tap):
    tap.sync("a", schema=SCHEMA)(rows)
    run_tap(tap)
    with pytest.raises(DeclarationError, match="the tap is running"):
        tap.sync("b", schema=SCHEMA)(rows)


# ---- gaps ----------------------------------------------------------------------------------------


def test_seal_reports_all_gaps_at_once_each_with_its_line(tap):
    tap.schema("contacs", SCHEMA)  # no sync
    tap.sync("contacts", replication_method="INCREMENTAL", schema=SCHEMA)(rows)
    tap.sync("deals")(rows)
    tap.stream("things", schema=SCHEMA).sync("no_such_function")  # no function
    tap.sync("notes", parent="contcats", schema=SCHEMA)(rows)
    tap.stream("x", emitted_by="deal", schema=SCHEMA)  # emitter
    tap.sync("lonely", schema=SCHEMA)(lambda parent: [])  # lonely
    tap.sync("a", parent="b", schema=SCHEMA)(rows)
    tap.sync("b", parent="a", schema=SCHEMA)(rows)
    tap.stream("c", parent="contacts", emitted_by="deals", schema=SCHEMA)
    tap.sync("d", parent="contacts", bookmark_strategy="every_n(5)", schema=SCHEMA)(rows)
    tap.sync("public.*")(rows)
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    lines = str(caught.value).splitlines()
    by_name = {}
    for line in lines:
        by_name.setdefault(line.split("'")[1], []).append(line)
    expected = {
        "contacs": "but no sync function. Did you mean 'contacts'?",
        "contacts": "INCREMENTAL needs a replication_key (or a @tap.bookmark function).",
        "deals": "has no schema. Add tap.schema('deals', burler.json_file(...)).",
        "things": "there is no function 'no_such_function' in this module.",
        "notes": "parent 'contcats' has no sync function. Did you mean 'contacts'?",
        "x": "emitted_by 'deal' has no sync function. Did you mean 'deals'?",
        "lonely": "its sync function asks for 'parent', but it has none.",
        "a": "its parents go round in a circle: a -> b -> a.",
        "b": "its parents go round in a circle: b -> a -> b.",
        "c": "has both parent and emitted_by: rows come by one way. Keep one of the two.",
        "d": "STATE follows the parent's strategy",
        "public.*": "nothing says which streams there are.",
    }
    assert list(dict.fromkeys(by_name)) and set(by_name) == set(expected)
    for name, text in expected.items():
        assert any(text in line for line in by_name[name]), by_name[name]
    assert all(":" in line.split("(")[1].split(")")[0] for line in lines)
    for name, mark in [("contacs", "no sync"), ("things", "no function"), ("x", "emitter"), ("lonely", "lonely")]:
        assert f"test_options.py:{line_of(mark)})" in by_name[name][0]


def test_after_a_gap_was_mended_the_tap_seals(tap):
    tap.sync("a")(rows)
    with pytest.raises(DeclarationError, match="has no schema"):
        tap.seal()
    tap.schema("a", SCHEMA)
    assert list(tap.seal().streams) == ["a"]


def test_a_stream_is_not_its_own_parent(tap):
    tap.sync("a", parent="a", schema=SCHEMA)(rows)
    with pytest.raises(DeclarationError, match="go round in a circle: a -> a"):
        tap.seal()


def test_a_stream_that_hangs_on_a_circle_is_reported_with_the_circle(tap):
    for name, parent in [("a", "b"), ("b", "a"), ("c", "a")]:
        tap.sync(name, parent=parent, schema=SCHEMA)(rows)
    with pytest.raises(DeclarationError) as caught:
        tap.seal()
    assert all("go round in a circle" in line for line in str(caught.value).splitlines())
