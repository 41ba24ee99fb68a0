"""What nothing refers to goes once it is old; what anybody may still need stays."""

from __future__ import annotations

import errno
import fnmatch
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from care_lakes import DAY, DEAD_LOCK, document, fill, later, lines, put
from faulty_store import FaultyStore

from burler.errors import LockLost, StorageError, UsageError
from burler.lake import FileStats, LakeDriver, PartWriter, care
from support.internals import layout, manifest

TIME = "2024-01-02T12:00:00.000000Z"


def aged(path: Path, days: float) -> None:
    moment = path.stat().st_mtime - days * DAY
    os.utime(path, (moment, moment))


def reasons(done: care.Vacuum) -> list[str]:
    return [file.reason for file in done.files]


def test_without_yes_nothing_goes(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    before = sorted(lake.path.rglob("*"))
    manifest_before = lake.manifest_path().read_bytes()

    done = care.vacuum(lake.store, now=later(8))

    assert reasons(done) == ["replaced", "replaced"]
    assert (done.removed, done.size_bytes) == (False, sum((lake.path / one.path).stat().st_size for one in done.files))
    assert sorted(lake.path.rglob("*")) == before
    assert lake.manifest_path().read_bytes() == manifest_before


def test_replaced_files_go_when_they_have_been_so_for_long(lake: Any) -> None:
    fill(lake, 2, 2, 2)
    before = lines(lake)
    for path in lake.files():
        aged(path, 30)  # old files, replaced just now: somebody may be reading them
    care.compact(lake.store)

    assert care.vacuum(lake.store, yes=True).files == ()
    assert care.vacuum(lake.store, yes=True, now=later(6.9)).files == ()
    assert reasons(care.vacuum(lake.store, yes=True, now=later(7.1))) == ["replaced"] * 3

    assert len(lake.files("**/*.singer.gz")) == 1
    assert lines(lake) == before
    assert care.check(lake.store).findings == ()
    (name,) = document(lake)["files"]
    assert list(document(lake)["file_stats"]) == [name]
    assert sorted(document(lake)["file_stats"][name]["replaces"].values()) == [1, 3]
    (note,) = lake.files("**/*.replaces.json")
    assert json.loads(note.read_bytes())["replaces"] == []
    lake.manifest_path().unlink()
    assert lines(lake) == before


def test_a_file_between_two_compactions_goes_with_its_note(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    fill(lake, 2, 2, start=4)
    care.compact(lake.store)

    done = care.vacuum(lake.store, yes=True, now=later(8))

    assert reasons(done) == ["replaced"] * 5
    assert len(lake.files("**/*.singer.gz")) == len(lake.files("**/*.replaces.json")) == 1
    assert lake.ids() == list(range(8))


def test_orphans_go_when_they_are_old_and_can_then_never_be_committed(lake: Any) -> None:
    fill(lake, 1)
    orphan = put(lake, "users", "users-{times}-9.singer.gz", [{"id": 5}], lake.clock.moment, lake.schema())
    digest, line = lake.load().hashes[0], lake.load().schema_lines[lake.load().hashes[0]]
    mine = manifest.claim(lake.store, "tap-x", "users", hash=digest, writer_id="slept for a week")
    assert care.vacuum(lake.store, yes=True).files == ()

    assert reasons(care.vacuum(lake.store, yes=True, now=later(8))) == ["orphan"]

    assert not orphan.exists()
    with pytest.raises(LockLost, match="removed by 'burler lake vacuum'"):
        stats = FileStats(1, 1, TIME, TIME)
        manifest.commit(lake.store, mine, [(f"{digest}/{orphan.name}", stats)], schema_line=line)
    assert lake.ids() == [0]


def test_names_that_went_are_not_given_again(lake: Any) -> None:
    fill(lake, 1)
    same = {"at": lake.clock.moment}
    for number in (2, 3, 5, 6):
        put(lake, "users", f"users-{{times}}-{number}.singer.gz", [{"id": 5}], lake.clock.moment, lake.schema())
    assert reasons(care.vacuum(lake.store, yes=True, now=later(8))) == ["orphan"] * 4
    with lake.writer(max_file_records=1) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, 2, 3, **same))
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 4, **same))
    with PartWriter(lake.store, "tap-x", clock=lake.clock) as part:
        part.schema(lake.schema())
        part.records(lake.page("users", 5, **same))
    with LakeDriver(lake.store, "tap-x", clock=lake.clock) as driver:
        driver.commit(part.close())
    assert sorted(lake.ids()) == list(range(6))
    names = [layout.parse_file_name(path.name) for path in lake.files()]
    assert sorted(name.n for name in names if name) == [1, 4, 7, 8, 9, 10]


def test_a_file_that_is_committed_at_the_last_moment_stays(lake: Any) -> None:
    fill(lake, 1)
    orphan = put(lake, "users", "users-{times}-9.singer.gz", [{"id": 5}], lake.clock.moment, lake.schema())
    digest, line = lake.load().hashes[0], lake.load().schema_lines[lake.load().hashes[0]]

    class Quick:
        def __getattr__(self, name: str) -> Any:
            return getattr(lake.store, name)

        def replace(self, path: str, data: bytes, /, *, tag: str) -> str:
            if orphan.name.encode() in data and b"5" not in written:
                written.append(b"5")
                mine = manifest.claim(lake.store, "tap-x", "users", hash=digest, writer_id="quick")
                stats = FileStats(1, 1, TIME, TIME)
                manifest.commit(lake.store, mine, [(f"{digest}/{orphan.name}", stats)], schema_line=line)
            return str(lake.store.replace(path, data, tag=tag))

    written: list[bytes] = []
    done = care.vacuum(Quick(), yes=True, now=later(8))  # type: ignore[arg-type]

    assert written
    assert done.files == ()
    assert lake.ids() == [0, 5]


def test_without_a_readable_manifest_every_data_file_counts(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    kept = lake.manifest_path().read_bytes()
    lake.manifest_path().write_bytes(kept[:-10])

    done = care.vacuum(lake.store, yes=True, now=later(100))

    assert done.files == ()
    assert "manifest.json" in done.problems[0]
    lake.manifest_path().unlink()
    assert care.vacuum(lake.store, yes=True, now=later(100)).files == ()
    assert len(lake.files("**/*.singer.gz")) == 3


def test_where_a_note_cannot_be_read_nothing_goes(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    (note,) = lake.files("**/*.replaces.json")
    note.write_text("{")

    done = care.vacuum(lake.store, yes=True, now=later(100))

    assert done.files == ()
    assert note.name in done.problems[0]
    assert len(lake.files("**/*.singer.gz")) == 3
    assert [one.kind for one in care.check(lake.store).findings] == ["json"]


def test_what_killed_processes_left_goes(lake: Any) -> None:
    fill(lake, 1)
    for folder in ("raw", "raw/tap-x", "raw/tap-x/users", lake.files()[0].parent.relative_to(lake.path)):
        (lake.path / folder / ".tmp-0123").write_bytes(b"half")
    note = lake.files()[0].with_name("users-20240102T120000Z-20240102T120000Z-123456789.singer.gz.replaces.json")
    note.write_text('{"format": 1, "replaces": []}')
    sidecars = [path for path in lake.path.rglob(".*") if path.suffix in (".lock", ".hold")]
    assert sidecars

    assert care.vacuum(lake.store, yes=True).files == ()
    done = care.vacuum(lake.store, yes=True, now=later(8))

    assert reasons(done) == ["leftover"] * 5
    assert lake.hidden() == []
    assert not note.exists()
    assert all(path.exists() for path in sidecars)
    assert lake.ids() == [0]


@pytest.mark.parametrize("harm", ["cut", "another schema", "no message"])
def test_what_rebuild_left_out_as_damaged_stays(lake: Any, harm: str) -> None:
    fill(lake, 2, 2)
    path = lake.files()[0]
    whole = gzip.decompress(path.read_bytes())
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    elif harm == "another schema":
        path.write_bytes(gzip.compress(whole.replace(b"integer", b"string")))
    else:
        path.write_bytes(gzip.compress(whole + b"{\n"))
    assert [one.path for one in care.rebuild(lake.store).streams[0].damaged] == [path.relative_to(lake.path).as_posix()]
    for yes in (False, True):
        done = care.vacuum(lake.store, yes=yes, now=later(100))
        assert (done.files, len(done.problems), path.name in done.problems[0]) == ((), 1, True)
    assert path.exists()


def test_a_compacted_file_stays_while_nothing_else_has_its_rows(lake: Any) -> None:
    fill(lake, 2, 2)
    before = lake.manifest_path().read_bytes()
    care.compact(lake.store)
    care.vacuum(lake.store, yes=True, now=later(8))
    lake.manifest_path().write_bytes(before)  # an old copy comes back: it names files that are gone

    done = care.vacuum(lake.store, yes=True, now=later(100))

    assert done.files == () and "rebuild" in done.problems[0]
    care.rebuild(lake.store)
    assert lake.ids() == [0, 1, 2, 3]
    assert care.vacuum(lake.store, yes=True, now=later(100)).problems == ()


def test_on_a_full_disk_what_needs_no_manifest_goes_first_and_other_streams_go_on(lake: Any) -> None:
    for stream in ("orders", "users"):
        fill(lake, 2, 2, stream=stream)
    care.compact(lake.store)
    (lake.path / "raw/tap-x/users/.tmp-0123").write_bytes(b"half")
    orphan = lake.files("**/users/**/*.singer.gz")[0].with_name("users-20240101T000000Z-20240101T000000Z.singer.gz")
    orphan.write_bytes(lake.files("**/users/**/*.singer.gz")[0].read_bytes())
    store = full_disk(lake.store, path="raw/tap-x/orders/manifest.json")

    done = care.vacuum(store, yes=True, now=later(8))

    assert (sorted(reasons(done)), done.problems) == (["leftover", "orphan", *["replaced"] * 4], ("no room",))
    assert next(call.path for call in store.calls if call.operation == "remove").endswith("/.tmp-0123")
    assert lake.hidden() == [] and lake.ids("orders") == lake.ids("users") == [0, 1, 2, 3]
    assert care.vacuum(lake.store, yes=True, now=later(8)).files == ()


class TestAFullDisk:
    """Replaced files make room for the manifest that says that they are gone."""

    def test_what_goes_makes_room_for_the_manifest(self, lake: Any) -> None:
        fill(lake, 2, 2)
        care.compact(lake.store)
        orphan = lake.files()[0].with_name("users-20240101T000000Z-20240101T000000Z.singer.gz")
        orphan.write_bytes(lake.files()[0].read_bytes())
        done = care.vacuum(full_disk(lake.store, until_removed="*.singer.gz"), yes=True, now=later(8))
        assert (sorted(reasons(done)), done.problems) == (["orphan", "replaced", "replaced"], ())
        assert len(lake.files("**/*.singer.gz")) == 1 and lake.ids() == [0, 1, 2, 3]
        assert "removed" in document(lake) and care.check(lake.store).findings == ()
        assert care.vacuum(lake.store, yes=True, now=later(8)).files == ()

    def test_one_stream_makes_room_for_another(self, lake: Any) -> None:
        for stream in ("orders", "users"):
            fill(lake, 2, 2, stream=stream)
        care.compact(lake.store, streams=["users"])
        listed = lake.files("**/orders/**/*.singer.gz")[0]
        orphan = listed.with_name("orders-20240101T000000Z-20240101T000000Z.singer.gz")
        orphan.write_bytes(listed.read_bytes())
        done = care.vacuum(full_disk(lake.store, until_removed="*/users/*.singer.gz"), yes=True, now=later(8))
        assert (sorted(reasons(done)), done.problems) == (["orphan", "replaced", "replaced"], ())

    def test_without_any_room_for_the_manifest_it_still_knows_all_names(self, lake: Any) -> None:
        fill(lake, 2, 2)
        names = document(lake)["files"]
        care.compact(lake.store)
        done = care.vacuum(full_disk(lake.store), yes=True, now=later(8))
        assert (reasons(done), done.problems) == (["replaced", "replaced"], ("no room",))
        assert len(lake.files("**/*.singer.gz")) == 1 and care.check(lake.store).findings == ()
        lake.clock.forward(-120)
        fill(lake, 2, 2, start=4)  # at the same times
        assert not set(names) & set(document(lake)["files"])
        care.vacuum(lake.store, yes=True, now=later(8))
        lake.manifest_path().unlink()
        care.rebuild(lake.store)
        assert sorted(lake.ids()) == list(range(8)) and care.check(lake.store).findings == ()

    def test_orphans_stay_and_so_do_the_parts_of_a_damaged_file(self, lake: Any) -> None:
        fill(lake, 2, 2)
        parts = lake.files("**/*.singer.gz")
        care.compact(lake.store)
        (compacted,) = set(lake.files("**/*.singer.gz")) - set(parts)
        orphan = compacted.with_name("users-20240101T000000Z-20240101T000000Z.singer.gz")
        orphan.write_bytes(compacted.read_bytes())
        whole = compacted.read_bytes()
        compacted.write_bytes(whole[:-9])
        done = care.vacuum(full_disk(lake.store), yes=True, now=later(8))
        assert (done.files, done.problems) == ((), ("no room",))
        assert set(lake.files("**/*.singer.gz")) == {*parts, compacted, orphan}


def full_disk(inner: Any, *, path: str = "*", until_removed: str | None = None) -> FaultyStore:
    """A store in which nothing more can be written, until a file was removed."""
    store = FaultyStore(inner)

    def before(call: Any) -> None:
        if call.operation not in ("create", "replace", "publish") or not fnmatch.fnmatch(call.path, path):
            return
        removed = [one.path for one in store.calls if one.operation == "remove"]
        if until_removed is None or not fnmatch.filter(removed, until_removed):
            full = StorageError("no room")
            full.__cause__ = OSError(errno.ENOSPC, "No space left on device")
            raise full

    store.before_call = before
    return store


def test_a_dead_lock_goes_and_a_living_one_stays(lake: Any) -> None:
    fill(lake, 1)
    lock = lake.files()[0].with_name("singerlake.lock")
    lock.write_bytes(DEAD_LOCK)
    assert care.vacuum(lake.store, yes=True).files == ()
    assert reasons(care.vacuum(lake.store, yes=True, now=later(8))) == ["lock"]
    assert not lock.exists()

    writer = lake.writer()
    writer.schema(lake.schema())
    writer.records(lake.page("users", 7))
    assert lock.exists()
    assert care.vacuum(lake.store, yes=True, now=later(8)).files == ()
    writer.close()
    assert lake.ids() == [0, 7]


def test_one_stream_alone(lake: Any) -> None:
    for stream in ("users", "orders"):
        fill(lake, 2, 2, stream=stream)
    care.compact(lake.store)

    done = care.vacuum(lake.store, streams=["orders"], yes=True, now=later(8))

    assert {file.path.split("/")[2] for file in done.files} == {"orders"}
    assert len(lake.files("**/users/**/*.singer.gz")) == 3


def test_an_age_below_zero_is_refused(lake: Any) -> None:
    with pytest.raises(UsageError):
        care.vacuum(lake.store, older_than_seconds=float("nan"))


KILLED = """
import sys
from burler.lake import LakeWriter, open_store
from burler.singer.messages import Schema, State
import os, signal, datetime as dt
writer = LakeWriter(open_store(sys.argv[1]), "tap-x", emit_state=print)
writer.schema(Schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
at = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
row = b'{"type":"RECORD","stream":"users","record":{"id":1},"time_extracted":"2024-05-01T00:00:00.000000Z"}\\n'
writer.record_line("users", row, at)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_check_names_what_is_left_and_vacuum_removes_it(lake: Any) -> None:
    fill(lake, 1)
    subprocess.run([sys.executable, "-c", KILLED, str(lake.path)], check=False, timeout=60)
    assert lake.hidden()

    found = care.check(lake.store, now=later(1.5)).findings
    assert sorted(one.kind for one in found) == ["leftover", "lock"]
    care.vacuum(lake.store, yes=True, now=later(8))

    assert care.check(lake.store, now=later(8)).findings == ()
    assert lake.ids() == [0]


class TestNamesThatAreUsedAgain:
    """Once a file is gone a writer may give its name to another: rows of one second, or of an older time once more."""

    @pytest.fixture
    def used_again(self, lake: Any) -> Any:
        fill(lake, 2, 2)
        names = document(lake)["files"]
        care.compact(lake.store)
        care.vacuum(lake.store, yes=True, now=later(8))
        lake.clock.forward(-120)
        fill(lake, 2, 2, start=4)
        assert set(names) < set(document(lake)["files"])
        return lake

    def test_their_rows_are_read(self, used_again: Any) -> None:
        assert used_again.ids() == list(range(8))
        assert care.check(used_again.store).findings == ()

    @pytest.mark.parametrize("first", ["rebuild", "compact", "vacuum"])
    def test_neither_care_nor_listing_loses_them(self, used_again: Any, first: str) -> None:
        getattr(care, first)(used_again.store)
        care.vacuum(used_again.store, yes=True, now=later(8))
        assert sorted(used_again.ids()) == list(range(8))
        used_again.manifest_path().unlink()
        assert sorted(used_again.ids()) == list(range(8))
        care.rebuild(used_again.store)
        assert sorted(used_again.ids()) == list(range(8))

    def test_a_vacuum_that_was_killed_is_mended_by_the_next(self, lake: Any) -> None:
        fill(lake, 2, 2)
        care.compact(lake.store)
        (note,) = lake.files("**/*.replaces.json")
        kept = note.read_bytes()
        care.vacuum(lake.store, yes=True, now=later(8))
        lake.clock.forward(-120)
        fill(lake, 2, 2, start=4)
        note.write_bytes(kept)  # as if it had been killed before its last step

        assert care.check(lake.store).findings == ()
        care.rebuild(lake.store)
        assert sorted(lake.ids()) == list(range(8))
        care.vacuum(lake.store, yes=True, now=later(2))
        lake.manifest_path().unlink()
        assert sorted(lake.ids()) == list(range(8))

    def test_the_name_of_a_replaced_file_that_was_removed_by_hand_is_not_given_again(self, lake: Any) -> None:
        fill(lake, 2, 2)
        care.compact(lake.store)
        for name in json.loads(lake.files("**/*.replaces.json")[0].read_bytes())["replaces"]:
            (lake.manifest_path().parent / name).unlink()
        lake.clock.forward(-120)
        fill(lake, 3, start=4)
        assert sorted(lake.ids()) == list(range(7))
        care.vacuum(lake.store, yes=True, now=later(8))
        fill(lake, 3, start=10)
        assert sorted(lake.ids()) == [*range(7), 10, 11, 12]
