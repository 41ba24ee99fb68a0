"""Broken files, wrong options, what is saved of what was read, what is shown."""

from __future__ import annotations

import json

import pytest
from filebox import ids, tap_of
from shelf import shelf

from burler.errors import DeclarationError, FileError
from burler.files import read
from burler.testing import run_tap


def entry(out):
    return out.states[-1]["bookmarks"]["orders"]["source_state"][0]


def day(box, number, **more):
    return box.put(f"orders-{number:02}.csv", f"id,name\n{number},day {number}\n", **more)


def test_a_broken_file_ends_the_stream_and_what_was_read_before_is_noted(box):
    day(box, 1)
    box.put("orders-02.csv", "id,name\n2,ok\n3\n")
    day(box, 4)
    tap = tap_of(box["*.csv"], declared={"versions": False})
    out = run_tap(tap)
    assert ids(out) == [1]
    assert "orders-02.csv', row 3" in str(out.result.errors["orders"])
    box.put("orders-02.csv", "id,name\n2,ok\n3,ok\n")
    assert sorted(ids(run_tap(tap, state=out.states[-1]))) == [2, 3, 4]


def test_broken_files_may_be_left_for_the_next_run(box, caplog):
    day(box, 1)
    box.put("orders-02.csv", "id,name\n2\n")
    day(box, 3)
    tap = tap_of(box["*.csv"], on_bad_file="skip", declared={"replication_key": "id"})
    out = run_tap(tap)
    assert not out.result.errors and ids(out) == [1, 3]
    assert "orders-02.csv' is left out" in caplog.text and "row 2" in caplog.text
    box.put("orders-02.csv", "id,name\n2,now\n")
    assert ids(run_tap(tap, state=out.states[-1])) == [2]


def test_columns_that_say_where_a_row_comes_from(box):
    moment = {"type": "string", "format": "date-time"}
    kinds = {"id": {"type": "integer"}, "_file": {"type": "string"}, "_row": {"type": "integer"}, "_modified": moment}
    schema = {"properties": kinds}
    box.put("b/x.csv", "id\n5\n6\n", at=86400)
    box.put("b/y.jsonl", '{"id": 7}\n\n{}\n{ "id" : 8}', at=86401)
    out = run_tap(tap_of(box["b/*"], schema=schema, key=(), add=("_file", "_row", "_modified")))
    assert not out.result.errors
    assert out.records("orders") == [
        {"id": 5, "_file": "x.csv", "_row": 1, "_modified": "1970-01-02T00:00:00Z"},
        {"id": 6, "_file": "x.csv", "_row": 2, "_modified": "1970-01-02T00:00:00Z"},
        {"id": 7, "_file": "y.jsonl", "_row": 1, "_modified": "1970-01-02T00:00:01Z"},
        {"_file": "y.jsonl", "_row": 2, "_modified": "1970-01-02T00:00:01Z"},
        {"id": 8, "_file": "y.jsonl", "_row": 3, "_modified": "1970-01-02T00:00:01Z"},
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xls"},
        {"compression": "rar"},
        {"order": "size"},
        {"on_bad_file": "maybe"},
        {"on_no_files": "x"},
        {"settle_seconds": -1},
        {"settle_seconds": float("inf")},
        {"settle_seconds": float("nan")},
        {"max_line_bytes": "3"},
        {"max_document_bytes": float("inf")},
        {"max_unpacked_bytes": 2.5},
        {"add": ("_nothing",)},
    ],
)
def test_options_that_can_not_be_are_refused_at_once(options):
    with pytest.raises(DeclarationError):
        read("x.csv", **options)


@pytest.mark.parametrize("pattern", ["", [], 5, [""], None])
def test_a_pattern_that_is_none(pattern):
    with pytest.raises((DeclarationError, TypeError)):
        read(pattern)


def test_a_url_that_no_store_has(box):
    """It ends this stream and no other: it may come from the config."""
    with pytest.raises(FileError, match="no store has lke://"):
        list(read("lke://x/*.csv"))
    with pytest.raises(FileError, match=r"no store has htp://\. Did you mean 'http'\?"):
        list(read("htp://x/*.csv"))


def test_files_in_memory_of_fsspec_show_that_nothing_is_local_only(box):
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/inbox/a.csv", b"id\n1\n")
    try:
        tap = tap_of("memory://inbox/*.csv")
        first = run_tap(tap)
        assert ids(first) == [1]
        assert ids(run_tap(tap, state=first.states[-1])) == []
        store.pipe("/inbox/b.csv", b"id\n2\n")
        assert ids(run_tap(tap, state=first.states[-1])) == [2]
    finally:
        store.rm("/inbox", recursive=True)


def test_a_name_that_says_nothing_is_an_error_before_any_row(box):
    day(box, 1)
    box.put("orders-02.dat", "id\n2\n")
    out = run_tap(tap_of(box["orders*"]))
    assert ids(out) == [] and "does not say what it holds" in str(out.result.errors["orders"])


def test_without_a_stream_files_are_simply_read(box):
    day(box, 1)
    assert [page.to_pylist() for page in read(box["*.csv"])] == [[{"id": "1", "name": "day 1"}]]


def test_a_file_that_was_read_is_not_read_again_because_it_is_fresh(box):
    day(box, 1, at=1990)
    tap = tap_of(box["*.csv"])
    state = run_tap(tap).states[-1]
    patient = tap_of(box["*.csv"], settle_seconds=60, now=lambda: 2000.0)
    second = run_tap(patient, state=state)
    assert ids(second) == []
    assert ids(run_tap(tap, state=second.states[-1])) == []


def test_progress_of_many_small_files_is_saved_now_and_then_and_at_the_end(box):
    for number in range(300):
        box.put(f"{number:03}.csv", f"id\n{number}\n")
    clock = [0.0]

    def monotonic():
        clock[0] += 0.01
        return clock[0]

    out = run_tap(tap_of(box["*.csv"], monotonic=monotonic, declared={"versions": False}))
    counts = [
        json.loads(state["bookmarks"]["orders"]["source_state"][0]["value"])["files"]
        for state in out.states
        if "source_state" in state.get("bookmarks", {}).get("orders", {})
    ]
    assert counts[-1] == 300 and 3 <= len(set(counts)) <= 5, "one a second: 300 files take three"


def test_progress_of_big_files_is_saved_with_each(box):
    for number in range(5):
        box.put(f"{number}.csv", "id\n" + f"{number}\n" * 500)
    out = run_tap(tap_of(box["*.csv"], monotonic=lambda: 0.0, declared={"versions": False}))
    found = {
        json.loads(state["bookmarks"]["orders"]["source_state"][0]["value"])["files"]
        for state in out.states
        if "source_state" in state.get("bookmarks", {}).get("orders", {})
    }
    assert found == {1, 2, 3, 4, 5}


def test_what_was_read_counts_in_a_full_table_only_once_it_is_whole(box):
    """Rows of a version that no ACTIVATE_VERSION has followed are none."""
    day(box, 1)
    box.put("orders-02.csv", "id,name\n2\n")
    tap = tap_of(box["*.csv"])
    first = run_tap(tap)
    assert first.result.errors and ids(first) == [1] and first.types.count("ACTIVATE_VERSION") == 1
    day(box, 2)
    second = run_tap(tap, state=first.states[-1])
    assert ids(second) == [1, 2] and second.types[-2] == "ACTIVATE_VERSION"


def test_no_secret_is_shown(box, caplog, capfd):
    from burler.testing import canary

    secret = canary("ftp")
    tap = tap_of(f"ftp://user:{secret}@127.0.0.1:9/in/*.csv", storage_options={"timeout": 1})
    out = run_tap(tap)
    said = str(out.result.errors["orders"])
    assert secret not in said + caplog.text + json.dumps(out.messages) + "".join(capfd.readouterr())
    assert "can't be opened: Connection refused" in said and "ftp://user:***@127.0.0.1:9/in/*.csv" in said
    with pytest.raises((DeclarationError, FileError)) as raised:  # the store's package may not be installed
        list(read(f"https://127.0.0.1:9/a.csv?sig={secret}"))
    assert secret not in str(raised.value) + caplog.text


def test_a_folder_that_may_not_be_listed():
    with shelf() as store:
        store.fails["x"] = RuntimeError("access denied for key abc")
        with pytest.raises(FileError, match="can't be listed: access denied"):
            list(read("shelf://x/*.csv"))


def test_a_store_that_lists_names_alone_is_asked_for_each_file(monkeypatch):
    """As web servers do, whose lists are links: a tag that the list did not show is no change."""
    with shelf() as store:
        store.files["h/a.csv"], store.said["h/a.csv"] = b"id\n1\n", {"ETag": '"x"'}
        real = store.ls

        def ls(self, path, detail=True, **more):
            return [{"name": info["name"], "size": None, "type": "file"} for info in real(self, path, detail, **more)]

        monkeypatch.setattr(store, "ls", ls)
        tap = tap_of("shelf://h/*.csv", declared={"replication_key": "id"})
        first = run_tap(tap)
        assert ids(first) == [1] and ids(run_tap(tap, state=first.states[-1])) == []
        store.said["h/a.csv"] = {"ETag": '"y"'}
        assert ids(run_tap(tap, state=first.states[-1])) == [1]
