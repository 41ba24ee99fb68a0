"""A folder of files, run after run: what is new, late, changed or gone."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from filebox import ids, tap_of

from burler.errors import DeclarationError, FileError
from burler.files import read
from burler.testing import bind_stream, run_tap


def entry(out):
    return out.states[-1]["bookmarks"]["orders"]["source_state"][0]


def day(box, number, **more):
    return box.put(f"orders-{number:02}.csv", f"id,name\n{number},day {number}\n", **more)


def test_the_first_run_reads_all_and_the_second_nothing(box):
    day(box, 1), day(box, 2)
    tap = tap_of(box["orders-*.csv"])
    first = run_tap(tap)
    assert ids(first) == [1, 2]
    assert first.types == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "ACTIVATE_VERSION", "STATE"]
    assert entry(first)["kind"] == "burler/files" and entry(first)["source"] == "odf/polling"
    assert json.loads(entry(first)["value"])["files"] == 2
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors and second.types == ["SCHEMA", "STATE"]
    assert second.states[-1]["bookmarks"] == first.states[-1]["bookmarks"]


def test_new_late_and_changed_files_are_read_and_no_other(box):
    for number in (2, 3, 4):
        day(box, number)
    tap = tap_of(box["orders-*.csv"])
    first = run_tap(tap)
    day(box, 5)
    day(box, 1, at=1_000_000_000)  # sorts before all others, and is older than all others
    box.put("orders-03.csv", "id,name\n3,changed\n")
    second = run_tap(tap, state=first.states[-1])
    assert sorted(ids(second)) == [1, 3, 5]
    assert "ACTIVATE_VERSION" not in second.types, "rows belong to the table as it stands"
    third = run_tap(tap, state=second.states[-1])
    assert ids(third) == []


def test_a_file_of_the_same_length_and_another_time_is_a_changed_file(box):
    path = day(box, 1)
    tap = tap_of(box["*.csv"])
    first = run_tap(tap)
    os.utime(path, (5, 5))
    assert ids(run_tap(tap, state=first.states[-1])) == [1]


def test_a_file_of_the_same_time_and_another_length_is_a_changed_file(box):
    day(box, 1, at=7)
    tap = tap_of(box["*.csv"])
    first = run_tap(tap)
    box.put("orders-01.csv", "id,name\n11,longer\n", at=7)
    assert ids(run_tap(tap, state=first.states[-1])) == [11]


def test_files_that_are_gone_are_forgotten_and_found_again(box):
    path = day(box, 1)
    day(box, 2)
    tap = tap_of(box["*.csv"])
    first = run_tap(tap)
    data, times = path.read_bytes(), path.stat()
    path.unlink()
    second = run_tap(tap, state=first.states[-1])
    assert ids(second) == [] and json.loads(entry(second)["value"])["files"] == 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ids(run_tap(tap, state=second.states[-1])) == [1]


def test_files_come_oldest_first_or_by_name(box):
    day(box, 1, at=300), day(box, 2, at=100), day(box, 3, at=200)
    assert ids(run_tap(tap_of(box["*.csv"]))) == [2, 3, 1]
    assert ids(run_tap(tap_of(box["*.csv"], order="name"))) == [1, 2, 3]


def test_no_file_is_an_error_at_first_and_nothing_new_afterwards(box):
    tap = tap_of(box["*.csv"])
    nothing = run_tap(tap)
    assert "no file fits" in str(nothing.result.errors["orders"]) and nothing.result.exit_code == 1
    assert isinstance(nothing.result.errors["orders"], FileError)
    path = day(box, 1)
    first = run_tap(tap)
    path.unlink()
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors and second.types == ["SCHEMA", "STATE"]
    third = run_tap(tap, state=second.states[-1])
    assert not third.result.errors, "the state still says that there were files"
    assert not run_tap(tap_of(box["*.csv"], on_no_files="empty")).result.errors


def test_another_pattern_option_or_selection_reads_all_again(box):
    day(box, 1)
    state = run_tap(tap_of(box["*.csv"])).states[-1]
    assert ids(run_tap(tap_of(box["orders*.csv"]), state=state)) == [1]
    assert ids(run_tap(tap_of(box["*.csv"], csv=Csv_(null_values=("", "-"))), state=state)) == [1]
    again = run_tap(tap_of(box["*.csv"]), state=state, select="orders.id")
    assert ids(again) == [1]
    assert ids(run_tap(tap_of(box["*.csv"], max_line_bytes=1 << 20), state=state)) == [], "limits change no rows"


def Csv_(**options):
    from burler.files import Csv

    return Csv(**options)


def test_ignore_source_state_and_remember(box):
    day(box, 1)
    tap = tap_of(box["*.csv"])
    state = run_tap(tap).states[-1]
    again = run_tap(tap, {"ignore_source_state": True}, state=state)
    assert ids(again) == [1] and again.types.count("ACTIVATE_VERSION") == 1, "a whole table anew"
    assert ids(run_tap(tap, state=again.states[-1])) == []
    tap = tap_of(box["*.csv"], remember=False)
    first = run_tap(tap)
    assert "source_state" not in first.states[-1]["bookmarks"]["orders"]
    assert ids(run_tap(tap, state=first.states[-1])) == [1]


def test_two_sources_in_one_stream_do_not_disturb_each_other(box):
    import burler
    import burler.files

    day(box, 1)
    box.put("late/x.csv", "id\n9\n")
    tap = burler.tap("tap-files")

    @tap.sync("orders", key_properties="id", schema={"properties": {"id": {"type": "integer"}}}, versions=False)
    def orders(stream):
        yield from burler.files.read(box["*.csv"], stream=stream, source="daily")
        yield from burler.files.read(box["late/*.csv"], stream=stream, source="late")

    first = run_tap(tap)
    assert ids(first) == [1, 9]
    assert [one["source"] for one in first.states[-1]["bookmarks"]["orders"]["source_state"]] == ["daily", "late"]
    box.put("late/y.csv", "id\n10\n")
    assert ids(run_tap(tap, state=first.states[-1])) == [10]


def test_a_file_name_that_another_tool_left_counts_as_read_up_to_it(box):
    for number in (1, 2, 3):
        day(box, number)
    state = {
        "bookmarks": {
            "orders": {"source_state": [{"kind": "odf/etag", "source": "odf/polling", "value": "orders-02.csv"}]}
        }
    }
    tap = tap_of(box["*.csv"])
    first = run_tap(tap, state=state)
    assert ids(first) == [3]
    assert [one["kind"] for one in first.states[-1]["bookmarks"]["orders"]["source_state"]] == ["burler/files"]
    assert ids(run_tap(tap, state=first.states[-1])) == []
    day(box, 0)
    assert ids(run_tap(tap, state=first.states[-1])) == [0], "from now on late files are found"


@pytest.mark.parametrize("value", ["", "{}", "[]", '{"read": 5}', '{"read": "abc"}', "\x00", '{"read":null}'])
def test_a_state_that_says_nothing_reads_all(box, value, caplog):
    day(box, 1)
    tap = tap_of(box["*.csv"])
    state = run_tap(tap).states[-1]
    state["bookmarks"]["orders"]["source_state"][0]["value"] = value
    caplog.clear()
    out = run_tap(tap, state=state)
    assert ids(out) == [1] and not out.result.errors
    assert "does not say which files were read" in caplog.text


def test_files_that_changed_lately_wait_for_the_next_run(box):
    day(box, 1, at=1000), day(box, 2, at=1990)
    out = run_tap(tap_of(box["*.csv"], settle_seconds=60, now=lambda: 2000.0))
    assert ids(out) == [1]
    later = run_tap(tap_of(box["*.csv"], settle_seconds=60, now=lambda: 2051.0), state=out.states[-1])
    assert ids(later) == [2]
    fresh = run_tap(tap_of(box["*.csv"], settle_seconds=5000, now=lambda: 2000.0))
    assert ids(fresh) == [] and not fresh.result.errors, "there are files: no error"


def test_a_file_that_changes_while_it_is_read_is_read_again(box, caplog):
    path = day(box, 1, at=50)
    tap = tap_of(box["*.csv"])

    import burler.files.reading as reading

    real = reading.again

    def grown(file):
        with path.open("a") as more:
            more.write("12,late\n")
        return real(file)

    reading.again = grown
    try:
        first = run_tap(tap)
    finally:
        reading.again = real
    assert ids(first) == [1] and "was changed while it was read" in caplog.text
    assert ids(run_tap(tap, state=first.states[-1])) == [1, 12]


def test_a_file_that_is_gone_since_it_was_listed_is_left_out_and_said(box, caplog):
    day(box, 1), day(box, 2), day(box, 3)
    tap = tap_of(box["*.csv"])
    with bind_stream(tap, "orders", schema={"properties": {"id": {}, "name": {}}}) as stream:
        pages = read(box["*.csv"], stream=stream)
        assert next(pages).to_pylist() == [{"id": "1", "name": "day 1"}]
        (box.folder / "orders-02.csv").unlink()
        assert [page.to_pylist()[0]["id"] for page in pages] == ["3"]
        assert stream.tally.to_json()["files_skipped"] == {"gone": 1}
        assert stream.tally.to_json()["files"] == 2
    assert "orders-02.csv' is left out: it is gone" in caplog.text


def test_folders_dot_files_pipes_and_broken_links_are_no_files(box, caplog):
    day(box, 1)
    (box.folder / "orders-99.csv").mkdir()
    box.put(".orders-98.csv", "id\n98\n")
    os.mkfifo(box.folder / "orders-97.csv")
    (box.folder / "orders-96.csv").symlink_to("nowhere.csv")
    (box.folder / "orders-95.csv").symlink_to("elsewhere/real.txt")
    box.put("elsewhere/real.txt", "id\n95\n")
    out = run_tap(tap_of(box["*.csv"]))
    assert not out.result.errors and sorted(ids(out)) == [1, 95]
    assert "leads nowhere" in caplog.text


def test_hostile_names(box):
    for number, name in enumerate(["a b.csv", "ä€.csv", "x[1].csv", "q?.csv", "'\";rm -rf.csv", "new\nline.csv"]):
        box.put(name, f"id\n{number}\n")
    out = run_tap(tap_of(box["*.csv"]))
    assert not out.result.errors and ids(out) == list(range(6))
    assert ids(run_tap(tap_of(box["*.csv"]), state=out.states[-1])) == []
    assert ids(run_tap(tap_of(box["x[[]1].csv"]))) == [2]


def test_folders_below_and_several_patterns(box):
    box.put("2024/01/orders.csv", "id\n1\n", at=5)
    box.put("2024/02/orders.csv", "id\n2\n", at=5)
    assert sorted(ids(run_tap(tap_of(box["**/*.csv"])))) == [1, 2]
    two = tap_of([box["2024/01/*.csv"], box["2024/02/*.csv"], box["2024/0*/*.csv"]])
    out = run_tap(two)
    assert sorted(ids(out)) == [1, 2], "each file once, although name, size and time are the same"
    assert ids(run_tap(two, state=out.states[-1])) == []


def test_a_folder_that_moved_is_no_reason_to_read_again_with_a_relative_pattern(box, monkeypatch):
    day(box, 1)
    monkeypatch.chdir(box.folder)
    state = run_tap(tap_of("orders-*.csv")).states[-1]
    moved = box.folder.parent / f"{box.folder.name}-moved"
    shutil.copytree(box.folder, moved)
    monkeypatch.chdir(moved)
    assert ids(run_tap(tap_of("orders-*.csv"), state=state)) == []


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
    tap = tap_of(box["*.csv"], on_bad_file="skip")
    out = run_tap(tap)
    assert not out.result.errors and ids(out) == [1, 3]
    assert "orders-02.csv' is left out" in caplog.text and "row 2" in caplog.text
    box.put("orders-02.csv", "id,name\n2,now\n")
    assert ids(run_tap(tap, state=out.states[-1])) == [2]


def test_columns_that_say_where_a_row_comes_from(box):
    from burler.files.added import SCHEMAS

    schema = {"properties": {"id": {"type": "integer"}, **SCHEMAS}}
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
    with pytest.raises(DeclarationError, match="can't be opened"):
        list(read("nowhere+such://x/*.csv"))


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
    assert "can't be reached" in said and "ftp://user:***@127.0.0.1:9/in/*.csv" in said
    with pytest.raises((DeclarationError, FileError)) as raised:  # the store's package may not be installed
        list(read(f"https://127.0.0.1:9/a.csv?sig={secret}"))
    assert secret not in str(raised.value) + caplog.text


def test_a_folder_that_may_not_be_listed(box):
    class Denied:
        def glob(self, *args, **more):
            raise RuntimeError("access denied for key abc")

        def invalidate_cache(self, *args):
            pass

    from burler.files import listing

    with pytest.raises(FileError, match="can't be listed: access denied"):
        listing._listed(Denied(), "x", "s3://x/*.csv")


def test_a_store_that_lists_names_alone_is_asked_for_each_file(box):
    """As web servers do, whose lists are links."""
    from burler.files import listing

    class Web:
        def glob(self, *args, **more):
            return {"h/a.csv": {"name": "h/a.csv", "size": None, "type": "file"}}

        def info(self, path):
            return {"name": path, "size": 7, "type": "file", "ETag": '"x"'}

        def invalidate_cache(self, *args):
            pass

    (info,) = listing._listed(Web(), "h/*.csv", "http://h/*.csv")
    assert info == {"name": "h/a.csv", "size": 7, "type": "file", "ETag": '"x"'}
    known = listing.File("h/a.csv", "a.csv", 7, None, "", store=Web())
    assert not listing.again(known).differs(known), "a tag that the list did not show is no change"
