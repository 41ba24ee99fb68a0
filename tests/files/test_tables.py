"""Names of sources, tables that are not whole, folders that are not there, and what is said of them."""

from __future__ import annotations

import json

import pytest
from filebox import ORDER, ids, tap_of
from shelf import shelf

import burler
import burler.files
from burler.errors import BurlerError, FileError
from burler.files import read
from burler.testing import run_tap


def tap_with(function, **declared):
    tap = burler.tap("tap-files")
    tap.sync("orders", key_properties="id", schema=ORDER, **{"replication_key": "id", **declared})(function)
    return tap


def noted(state):
    entries = state.get("bookmarks", {}).get("orders", {}).get("source_state")
    return json.loads(entries[0]["value"])["files"] if entries else 0


# ---- names of sources --------------------------------------------------------------------------------


def test_two_reads_of_one_source_are_refused(box):
    box.put("a.csv", "id\n1\n"), box.put("b.csv", "id\n2\n")

    def both(stream):
        yield from read(box["a*.csv"], stream=stream)
        yield from read(box["b*.csv"], stream=stream)

    out = run_tap(tap_with(both))
    assert "source 'odf/polling' stands for other files" in str(out.result.errors["orders"])
    assert isinstance(out.result.errors["orders"], BurlerError)

    def again(stream):
        yield from read(box["a*.csv"], stream=stream)
        yield from read(box["a*.csv"], stream=stream)

    assert not run_tap(tap_with(again)).result.errors, "the same files, which have been read by then"


def test_two_exports_of_one_name_are_refused_where_jobs_are_kept():
    def both(stream):
        for text in ("1", "2"):
            yield from burler.files.export(
                request=lambda: "job",
                ready=lambda job: "/x.csv",
                download=lambda part, path, text=text: path.write_text(f"id\n{text}\n") and None,
                keep_job=True,
                what="orders",
                stream=stream,
                sleep=lambda seconds: None,
            )

    out = run_tap(tap_with(both))
    assert "what='orders' was asked for twice" in str(out.result.errors["orders"])


def test_a_job_is_kept_under_a_name_of_the_authors_and_beside_his_own_state():
    given = {"request": lambda: 1, "ready": lambda job: [], "download": lambda part, path: None, "keep_job": True}
    with pytest.raises(burler.errors.DeclarationError, match="keep_job needs what="):
        burler.files.export(**given)

    def function(stream):
        stream.state["exports"] = {"mine": {"n": 5}}
        yield from burler.files.export(stream=stream, what="orders", sleep=lambda seconds: None, **given)

    out = run_tap(tap_with(function))
    assert out.states[-1]["bookmarks"]["orders"]["stream_state"] == {"exports": {"mine": {"n": 5}}}


# ---- tables that are not whole -----------------------------------------------------------------------


def test_a_full_table_without_a_broken_file_is_not_activated(box):
    box.put("1.csv", "id,name\n1,a\n"), box.put("2.csv", "id,name\n2\n"), box.put("3.csv", "id,name\n3,a\n")
    for more in ({}, {"remember": False}):
        tap = tap_of(box["*.csv"], on_bad_file="skip", **more)
        out = run_tap(tap)
        said = str(out.result.errors["orders"])
        assert "1 file was left out" in said and isinstance(out.result.errors["orders"], FileError)
        assert ids(out) == [1, 3], "the other files came first"
        assert out.types.count("ACTIVATE_VERSION") == 1 and out.types[1] == "ACTIVATE_VERSION"
        assert out.result.exit_code == 1


def test_a_full_table_without_a_file_that_went_is_not_activated(box):
    box.put("1.csv", "id\n1\n"), box.put("2.csv", "id\n2\n")

    def function(stream):
        pages = read(box["*.csv"], stream=stream)
        yield next(pages)
        (box.folder / "2.csv").unlink()
        yield from pages

    out = run_tap(tap_with(function, replication_key=None))
    assert "1 file was left out" in str(out.result.errors["orders"])
    assert out.types.count("ACTIVATE_VERSION") == 1


def test_where_no_table_hangs_on_it_a_broken_file_is_left_for_the_next_run(box):
    box.put("1.csv", "id,name\n1,a\n")
    tap = tap_of(box["*.csv"], on_bad_file="skip")
    first = run_tap(tap)
    box.put("2.csv", "id,name\n2\n"), box.put("3.csv", "id,name\n3,a\n")
    second = run_tap(tap, state=first.states[-1])
    assert not second.result.errors and ids(second) == [3], "rows are added to the table as it stands"


def test_without_versions_a_broken_file_is_left_for_the_next_run(box):
    box.put("1.csv", "id,name\n1,a\n"), box.put("2.csv", "id,name\n2\n"), box.put("3.csv", "id,name\n3,a\n")
    plain = run_tap(tap_of(box["*.csv"], on_bad_file="skip", declared={"versions": False}))
    assert not plain.result.errors and ids(plain) == [1, 3] and noted(plain.states[-1]) == 2


# ---- what is said ------------------------------------------------------------------------------------


def test_files_from_the_future(box, caplog):
    box.put("soon.csv", "id\n1\n", at=2030), box.put("never.csv", "id\n2\n", at=900_000)
    out = run_tap(tap_of(box["*.csv"], settle_seconds=60, now=lambda: 2000.0))
    assert ids(out) == [2], "a clock that is a little ahead is waited for"
    assert "never.csv' changed in the future" in caplog.text
    assert ids(run_tap(tap_of(box["*.csv"], settle_seconds=60, now=lambda: 2090.0), state=out.states[-1])) == [1]


def test_a_folder_that_is_not_there_is_not_one_whose_files_are_gone(box, caplog):
    box.put("in/1.csv", "id\n1\n")
    tap = tap_of(box["in/*.csv"])
    first = run_tap(tap)
    (box.folder / "in").rename(box.folder / "elsewhere")
    second = run_tap(tap, state=first.states[-1])
    said = str(second.result.errors["orders"])
    assert "the folder of" in said and "in/*.csv' is not there, and files of it were read before" in said
    assert noted(second.states[-1]) == 1
    patient = run_tap(tap_of(box["in/*.csv"], on_no_files="empty"), state=first.states[-1])
    assert not patient.result.errors and noted(patient.states[-1]) == 1
    assert "what was read of it is kept in mind" in caplog.text
    (box.folder / "elsewhere").rename(box.folder / "in")
    assert ids(run_tap(tap, state=second.states[-1])) == []
    one = tap_of(box["in/1.csv"])
    state = run_tap(one).states[-1]
    (box.folder / "in").rename(box.folder / "elsewhere")
    assert "is not there" in str(run_tap(one, state=state).result.errors["orders"])


def test_files_that_are_all_gone_are_said(box, caplog):
    path = box.put("1.csv", "id\n1\n")
    tap = tap_of(box["*.csv"])
    state = run_tap(tap).states[-1]
    path.unlink()
    caplog.clear()
    out = run_tap(tap, state=state)
    assert not out.result.errors and noted(out.states[-1]) == 0
    assert "any more; 1 were read before, and are forgotten" in caplog.text


def test_why_files_are_read_again_is_said(box, caplog):
    box.put("1.csv", "id,name\n1,a\n"), box.put("2.csv", "id,name\n2,a\n")
    tap = tap_of(box["*.csv"])
    state = run_tap(tap).states[-1]
    run_tap(tap, state=state)
    assert "does not count" not in caplog.text
    assert ids(run_tap(tap, state=state, select="orders.id")) == [1, 2]
    assert "2 files were read before, with another pattern, other options, other fields" in caplog.text


def test_states_stay_small_beside_many_small_files():
    """A list of many files is not sent again for each few of them."""
    with shelf() as store:
        for number in range(2_000):
            name = f"in/{number:04}.csv"
            store.files[name], store.said[name] = b"id\n1\n", {"ETag": "1"}
        out = run_tap(tap_of("shelf://in/*.csv", declared={"replication_key": "id"}))
    sizes = [len(json.dumps(state)) for state in out.states]
    assert len(ids(out)) == 2_000 and sum(sizes) < 6 * sizes[-1], "all states together beside the last"
