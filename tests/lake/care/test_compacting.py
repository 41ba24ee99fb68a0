"""Many small files become few: the same rows in the same order, for every reader, whoever else is at work."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from care_lakes import document, fill, later, lines, put, save

from burler.errors import StorageError, UsageError
from burler.lake import care
from burler.singer.messages import ActivateVersion
from support.internals import lake_store, manifest


def shape(lake: Any, stream: str = "users") -> list[int | None]:
    return [file.stats.records if file.stats else None for file in lake.load(stream).files]


def test_rows_and_their_order_stay(rich: Any) -> None:
    care.rebuild(rich.store)
    streams = ("users", "orders of/us")
    before = {stream: lines(rich, stream) for stream in streams}
    listed = {stream: len(rich.load(stream).files) for stream in streams}

    done = care.compact(rich.store)

    assert {stream: lines(rich, stream) for stream in streams} == before
    told = {one.stream: (one.before, one.after) for one in done.streams if one.tap_id == "tap-x"}
    assert told == {stream: (listed[stream], len(rich.load(stream).files)) for stream in streams}
    assert len(rich.load().files) < listed["users"]
    assert care.check(rich.store).findings == ()


def test_statistics_of_the_new_file_are_what_is_in_it(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        for version in (None, 3, 2):
            lake.clock.forward(90)
            writer.records(lake.page("users", 1, 2, at=lake.clock.moment, version=version))
            writer.flush()
        writer.records(lake.page("users", {"id": "odd"}, at=lake.clock.moment))
        writer.flush()
        writer.activate_version(ActivateVersion("users", 3))

    care.compact(lake.store)

    (file,) = lake.load().files
    stats = file.stats
    assert stats is not None
    assert (stats.records, stats.clean, stats.versions, stats.activate_version) == (7, False, (2, 3), 3)
    assert (stats.first, stats.last) == ("2024-01-02T12:01:30.000000Z", "2024-01-02T12:04:30.000000Z")
    assert (stats.sequence, stats.rank, sorted((stats.replaces or {}).values())) == (6, 5, [1, 2, 3, 4, 5])
    assert "/users-20240102T120130Z-20240102T120430Z-" in file.path
    (found,) = care.ls(lake.store).taps[0].streams
    assert found.stored_bytes == (lake.path / file.path).stat().st_size
    lake.manifest_path().unlink()
    care.rebuild(lake.store)
    (again,) = (file.stats for file in lake.load().files)
    for name in ("records", "bytes", "first", "last", "clean", "versions", "activate_version", "stored_bytes"):
        assert getattr(again, name) == getattr(stats, name), name


def test_only_neighbours_of_one_schema_become_one(lake: Any) -> None:
    fill(lake, 1, 1)
    fill(lake, 1, 1, name={"type": "string"})
    fill(lake, 1, 1)

    care.compact(lake.store)

    assert shape(lake) == [2, 2, 2]


def test_a_compacted_file_stands_where_its_last_part_stood(lake: Any) -> None:
    fill(lake, 1, 1)
    fill(lake, 1, 1, start=2, name={"type": "string"})
    before = lines(lake)
    care.compact(lake.store)
    fill(lake, 3, start=4)

    assert lines(lake)[:4] == before
    assert [file.order[0] for file in lake.load().files] == [2, 4, 6]


def test_it_keeps_its_place_among_files_of_the_same_commit(lake: Any) -> None:
    """A manifest made anew has one sequence for all files: then their names decide."""
    other = lake.schema(name={"type": "string"})
    for number, (name, schema) in enumerate(
        [("120000Z.singer", lake.schema()), ("120001Z.singer", lake.schema()), ("120001Z-2.singer", other)]
    ):
        at = lake.clock.moment + dt.timedelta(seconds=number)
        put(lake, "users", f"users-20240102T120000Z-20240102T{name}", [{"id": number}], at, schema)
    care.rebuild(lake.store)
    assert lake.ids() == [0, 1, 2]

    care.compact(lake.store)

    assert shape(lake) == [2, 1]
    assert lake.ids() == [0, 1, 2]


def test_size_and_age_say_which_files_are_left_alone(lake: Any) -> None:
    fill(lake, 2, 2, 60, 2, 2)
    size = [file.stats.bytes for file in lake.load().files if file.stats]

    def now() -> float:
        return float(lake.clock.moment.timestamp())

    assert care.compact(lake.store, older_than_seconds=3600, now=now).streams[0].files == ()
    care.compact(lake.store, below_bytes=size[2])

    assert shape(lake) == [4, 60, 4]
    assert care.compact(lake.store, below_bytes=size[2]).streams[0].files == ()
    lake.clock.forward(3600)
    fill(lake, 1)
    care.compact(lake.store, below_bytes=10 * size[2], older_than_seconds=3600, now=now)
    assert shape(lake) == [68, 1]


def test_a_file_that_outweighs_the_rest_is_not_written_again_each_time(lake: Any) -> None:
    fill(lake, 90, 1, 1)
    care.compact(lake.store)
    assert shape(lake) == [90, 2]


def test_it_tells_how_far_a_stream_is(lake: Any) -> None:
    fill(lake, *[1] * 12)
    (small,) = {file.stats.bytes for file in lake.load().files[:9] if file.stats}
    seen: list[tuple[int, int]] = []

    done = care.compact(lake.store, below_bytes=4 * small, on_file=lambda *told: seen.append(told))

    parts = [len(file.parts) for file in done.streams[0].files]
    assert len(parts) > 1
    assert seen == [(sum(parts[: place + 1]), sum(parts)) for place in range(len(parts))]


def test_a_second_round_takes_compacted_files_in(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    (first_note,) = lake.files("**/*.replaces.json")
    fill(lake, 2, 2, start=4)

    care.compact(lake.store)

    (file,) = lake.load().files
    assert file.stats is not None
    assert sorted((file.stats.replaces or {}).values()) == [1, 2, 4, 5]
    assert lake.ids() == list(range(8))
    lake.manifest_path().unlink()
    assert lake.ids() == list(range(8))  # by listing: neither the parts nor the file between
    first_note.unlink()
    assert lake.ids() == list(range(8))


class TestVersionsOfTables:
    """An ACTIVATE_VERSION drops rows by the files they stand in: none of that may change."""

    @pytest.fixture
    def commit(self, lake: Any) -> Any:
        def go(*steps: tuple[int | None, int | None]) -> list[int | None]:
            """Files of one row each: (version of the row, version that is activated after it)."""
            with lake.writer() as writer:
                writer.schema(lake.schema())
                for version, activated in steps:
                    writer.records(lake.page("users", 1, version=version))
                    if activated is not None:
                        writer.activate_version(ActivateVersion("users", activated))
                    writer.flush()
            care.compact(lake.store)
            return shape(lake)

        return go

    def test_an_activation_ends_a_file(self, commit: Any) -> None:
        assert commit((1, None), (1, 1), (2, None), (2, None), (2, 2)) == [2, 3]

    def test_rows_without_version_stay_behind_it(self, commit: Any) -> None:
        assert commit((None, None), (None, 1), (None, None), (None, None)) == [2, 2]

    def test_rows_of_a_later_version_before_it_stay_before_it(self, commit: Any) -> None:
        assert commit((9, None), (9, None), (2, None), (2, 2)) == [3, 1]


def test_writers_go_on_and_are_not_fenced_out(lake: Any) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    for number in range(6):
        writer.records(lake.page("users", number))
        writer.flush()
        if number % 2:
            care.compact(lake.store)
    writer.state(lake.state("end"))
    writer.close()

    assert lake.ids() == list(range(6))
    assert lake.states == [{"at": "end"}]
    assert document(lake)["writers"][lake.load().hashes[0]]["epoch"] == 1


class Odd:
    """A store whose ``replace`` of the manifest goes wrong once, after ``deed``."""

    def __init__(self, store: Any, deed: Any = None, *, error: Exception | None = None, done: bool = False) -> None:
        self._store, self._deed, self._error, self._done = store, deed, error, done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
        if path.endswith("manifest.json") and (self._deed or self._error):
            deed, error, self._deed, self._error = self._deed, self._error, None, None
            if deed is not None:
                deed()
            if self._done:
                self._store.replace(path, data, tag=tag)
            if error is not None:
                raise error
        return str(self._store.replace(path, data, tag=tag))


def test_a_commit_that_comes_between_stays(lake: Any) -> None:
    fill(lake, 2, 2)

    care.compact(Odd(lake.store, lambda: fill(lake, 3, start=4)))

    assert shape(lake) == [4, 3]
    assert lake.ids() == list(range(7))


def test_of_two_compactions_one_wins_and_leaves_nothing(lake: Any) -> None:
    fill(lake, 2, 2)

    done = care.compact(Odd(lake.store, lambda: care.compact(lake.store)))

    assert done.streams[0].files == ()
    assert lake.ids() == [0, 1, 2, 3]
    assert care.check(lake.store).findings == ()
    assert len(lake.files("**/*.replaces.json")) == 1


@pytest.mark.parametrize("done", [True, False])
def test_a_lost_reply_does_not_lose_or_double_rows(lake: Any, done: bool) -> None:
    fill(lake, 2, 2)

    told = care.compact(Odd(lake.store, error=lake_store.OutcomeUnknown("lost"), done=done))

    assert len(told.streams[0].files) == 1
    assert shape(lake) == [4]
    assert care.check(lake.store).findings == ()


def test_a_rebuild_that_comes_between_wins(lake: Any) -> None:
    fill(lake, 2, 2)

    care.compact(Odd(lake.store, lambda: care.rebuild(lake.store)))

    assert lake.ids() == [0, 1, 2, 3]
    lake.manifest_path().unlink()
    assert lake.ids() == [0, 1, 2, 3]


def test_sequences_of_another_generation_are_not_mixed_in(lake: Any) -> None:
    """A manifest made anew while files are put together may count commits otherwise: begin again."""
    fill(lake, 2, 2)

    class Meddled(Odd):
        def new_file(self, folder: str, /) -> Any:
            lake.manifest_path().unlink()
            care.rebuild(lake.store)
            return lake.store.new_file(folder)

    done = care.compact(Meddled(lake.store))

    assert done.streams[0].files == ()
    assert shape(lake) == [2, 2]
    assert care.check(lake.store).findings == ()


def test_killed_before_its_commit_it_changes_nothing_for_anybody(lake: Any) -> None:
    fill(lake, 2, 2)

    with pytest.raises(StorageError):
        care.compact(Odd(lake.store, error=StorageError("killed")))

    assert shape(lake) == [2, 2]
    assert [one.kind for one in care.check(lake.store).findings] == ["unfinished"]
    lake.manifest_path().unlink()
    assert sorted(lake.ids()) == [0, 1, 2, 3]


def test_a_damaged_part_leaves_its_group_as_it_is(lake: Any) -> None:
    fill(lake, 2, 2)
    fill(lake, 2, 2, start=4, name={"type": "string"})
    bad = lake.path / lake.load().files[0].path
    bad.write_bytes(bad.read_bytes()[:-5])

    done = care.compact(lake.store)

    assert shape(lake) == [2, 2, 4]
    assert bad.name in done.streams[0].problems[0]
    assert lake.hidden() == []
    assert len(lake.files("**/*.replaces.json")) == 1


def test_a_part_that_is_not_as_the_manifest_says_leaves_its_group_as_it_is(lake: Any) -> None:
    fill(lake, 2, 2)
    wire = document(lake)
    wire["file_stats"][wire["files"][0]]["records"] = 3
    save(lake, wire)

    done = care.compact(lake.store)

    assert "holds 2 rows" in done.streams[0].problems[0]
    assert len(lake.load().files) == 2


def test_what_has_no_manifest_or_no_statistics_is_left_alone(lake: Any) -> None:
    fill(lake, 2, 2)
    wire = document(lake)
    del wire["file_stats"][wire["files"][1]]
    save(lake, wire)
    assert care.compact(lake.store).streams[0].files == ()
    lake.manifest_path().unlink()
    assert care.compact(lake.store).streams[0].files == ()
    assert len(lake.files()) == 2


def test_a_commit_that_is_done_again_does_not_bring_replaced_files_back(lake: Any) -> None:
    fill(lake, 2, 2)
    files = [(file.path.removeprefix("raw/tap-x/users/"), file.stats) for file in lake.load().files]
    line = lake.load().schema_lines[lake.load().hashes[0]]
    care.compact(lake.store)

    mine = manifest.claim(lake.store, "tap-x", "users", hash=lake.load().hashes[0], writer_id="again")
    manifest.commit(lake.store, mine, files, schema_line=line)

    assert lake.ids() == [0, 1, 2, 3]


LONG_NAMES = ["x" * 181, "x" * 182, "x" * 187, "x" * 188, "x" * 200, "é" * 33 + "xx", "ü" * 300]


@pytest.mark.parametrize("stream", LONG_NAMES, ids=lambda name: f"{name[0]!a} {len(name)}")
def test_the_longest_names_are_compacted_as_well(lake: Any, stream: str) -> None:
    for start in (0, 4, 8):
        fill(lake, 2, 2, start=start, stream=stream)
        if start:
            (done,) = care.compact(lake.store).streams
            assert (done.after, done.problems) == (1, ())
    assert care.check(lake.store).findings == ()
    for path in lake.path.rglob("manifest.json"):
        kept = path.read_bytes()
        path.unlink()
        assert lake.ids(stream) == list(range(12))
        path.write_bytes(kept)
    assert len(care.vacuum(lake.store, yes=True, now=later(8)).files) == 7
    assert care.check(lake.store).findings == ()
    care.rebuild(lake.store)
    assert lake.ids(stream) == list(range(12))
    assert len(lake.files("**/*.replaces.json")) == 1


def test_the_note_beside_it_says_what_it_replaces(lake: Any) -> None:
    fill(lake, 2, 2)
    names = document(lake)["files"]
    care.compact(lake.store)
    (note,) = lake.files("**/*.replaces.json")
    assert json.loads(note.read_bytes())["replaces"] == names
    assert (lake.path / lake.load().files[0].path).name + ".replaces.json" == note.name


def test_sizes_ages_and_compressions_that_cannot_be(lake: Any) -> None:
    for wrong in ({"below_bytes": 0}, {"older_than_seconds": -1.0}, {"compression": "zip"}):
        with pytest.raises(UsageError):
            care.compact(lake.store, **wrong)


def test_conflicts_are_tried_again(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(Odd(lake.store, error=lake_store.Conflict("somebody")))
    assert shape(lake) == [4]
