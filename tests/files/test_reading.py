"""A folder of files, run after run: what is new, late, changed or gone."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from filebox import ids, tap_of
from shelf import shelf

from burler.errors import FileError
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
    without_states = [one for one in first.types if one != "STATE"]  # one more comes where a file took a second
    assert without_states == ["SCHEMA", "ACTIVATE_VERSION", "RECORD", "RECORD", "ACTIVATE_VERSION"]
    assert first.types[-1] == "STATE"
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


def test_a_file_that_changes_while_it_is_read_is_read_again(caplog, monkeypatch):
    with shelf() as store:
        store.files["in/a.csv"], store.said["in/a.csv"] = b"id\n1\n", {"ETag": "1"}
        tap = tap_of("shelf://in/*.csv", declared={"replication_key": "id"})
        real = store._open

        def grown(self, path, mode="rb", **more):
            opened = real(self, path, mode, **more)
            self.files[path], self.said[path] = b"id\n1\n12\n", {"ETag": "2"}
            return opened

        monkeypatch.setattr(store, "_open", grown)
        first = run_tap(tap)
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
