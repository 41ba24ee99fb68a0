"""Manifests, catalogues and singerlake.json made anew from paths and files."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from care_lakes import document, fill, lines, put, save

from burler.errors import LakeError, LockLost
from burler.lake import FileStats, care
from support.internals import layout, manifest

ORDERS = "orders%20of%2Fus"
KEPT = ("records", "bytes", "first", "last", "clean", "activate_version", "versions", "stored_bytes")


def known(wire: dict[str, Any]) -> dict[str, Any]:
    """What files alone can tell, of each file."""
    return {name: {key: stats.get(key) for key in KEPT} for name, stats in wire["file_stats"].items()}


def descriptive(lake: Any) -> list[Path]:
    return [path for path in sorted(lake.path.rglob("*.json")) if not path.name.endswith(".replaces.json")]


def test_what_was_deleted_comes_back(rich: Any) -> None:
    care.rebuild(rich.store)  # takes in the file of the partition folder
    care.compact(rich.store)
    before = {stream: document(rich, stream) for stream in ("users", ORDERS)}
    catalogue = json.loads((rich.path / "raw/tap-x/catalogue.json").read_bytes())
    for path in descriptive(rich):
        path.unlink()

    done = care.rebuild(rich.store)

    assert done.is_whole
    assert [(one.tap_id, one.stream, one.adopted) for one in done.streams] == [
        ("tap-x", "orders of/us", None),
        ("tap-x", "users", None),
        ("tap-y", "users", None),
    ]
    for stream, old in before.items():
        new = document(rich, stream)
        assert new["files"] == old["files"]
        listed = {name: one for name, one in known(old).items() if name in old["files"]}
        assert {name: one for name, one in known(new).items() if name in new["files"]} == listed
        with_data = {name.partition("/")[0] for name in old["files"]}
        assert set(new["versions"]) == with_data
        assert {digest: new["schemas"][digest] for digest in with_data} == {
            digest: old["schemas"][digest] for digest in with_data
        }
        assert new["generation"] != old["generation"]
        assert (new["tap_id"], new["stream"]) == (old["tap_id"], old["stream"])
    again = json.loads((rich.path / "raw/tap-x/catalogue.json").read_bytes())
    by_stream = {entry["stream"]: entry for entry in again["streams"]}
    assert by_stream == {entry["stream"]: entry for entry in catalogue["streams"]}
    assert set(json.loads((rich.path / "raw/singerlake.json").read_bytes())["taps"]) == {"tap-x", "tap-y"}
    assert care.check(rich.store).findings == ()


def test_a_readable_manifest_keeps_what_files_cannot_say(rich: Any) -> None:
    with rich.writer() as writer:
        writer.schema(rich.schema(never={"type": "integer"}))
    old = document(rich)
    order = [file.path for file in rich.load().files]

    done = care.rebuild(rich.store, streams=["users"], taps=["tap-x"])

    new = document(rich)
    (orphan,) = done.streams[0].adopted or ()
    assert "/year=2024/month=1/" in orphan
    assert new["versions"] == old["versions"]
    assert new["schemas"] == old["schemas"]
    for name, stats in old["file_stats"].items():
        assert new["file_stats"][name] == stats
    assert [file.path for file in rich.load().files] == [*order, orphan]


def test_from_files_alone_versions_follow_the_times_of_their_first_files(lake: Any) -> None:
    fill(lake, 1, name={"type": "string"})
    fill(lake, 1)
    hashes = list(document(lake)["versions"])
    lake.manifest_path().unlink()

    care.rebuild(lake.store)

    assert document(lake)["versions"] == {hashes[0]: "v1", hashes[1]: "v2"}


def test_a_broken_manifest_is_made_anew_and_a_newer_one_is_not_touched(lake: Any) -> None:
    fill(lake, 2)
    lake.manifest_path().write_text('{"files": [')
    assert care.rebuild(lake.store).streams[0].adopted is None
    assert lake.ids() == [0, 1]

    save(lake, {**document(lake), "format": 2})
    before = lake.manifest_path().read_bytes()
    with pytest.raises(LakeError, match="Upgrade burler"):
        care.rebuild(lake.store)
    assert lake.manifest_path().read_bytes() == before


def test_broken_descriptive_files_are_made_anew(lake: Any) -> None:
    fill(lake, 2)
    for name in ("raw/tap-x/catalogue.json", "raw/singerlake.json"):
        (lake.path / name).write_text("[")

    assert care.rebuild(lake.store).is_whole

    assert json.loads((lake.path / "raw/tap-x/catalogue.json").read_bytes())["streams"][0]["stream"] == "users"
    assert list(json.loads((lake.path / "raw/singerlake.json").read_bytes())["taps"]) == ["tap-x"]


def test_what_people_wrote_into_the_catalogue_stays(lake: Any) -> None:
    fill(lake, 2)
    path = lake.path / "raw/tap-x/catalogue.json"
    catalogue = json.loads(path.read_bytes())
    catalogue["streams"][0]["note"] = "ours"
    catalogue["streams"].append({"tap_stream_id": "planned", "schema": {}})
    path.write_text(json.dumps(catalogue))

    care.rebuild(lake.store)

    assert json.loads(path.read_bytes()) == catalogue


@pytest.mark.parametrize("harm", ["cut", "garbage", "wrong folder", "no message"])
def test_damaged_files_are_left_out_and_named(lake: Any, harm: str) -> None:
    fill(lake, 2, 3)
    bad, good = lake.files()
    if harm == "cut":
        bad.write_bytes(bad.read_bytes()[:-9])
    elif harm == "garbage":
        bad.write_bytes(b"garbage")
    elif harm == "wrong folder":
        other = bad.parent.with_name("1" * 11)
        other.mkdir()
        bad = bad.rename(other / bad.name)
    else:
        bad = put(lake, "users", "users-{times}-7.singer", [], lake.clock.moment, lake.schema())
        bad.write_bytes(bad.read_bytes() + b'{"type": \n')

    done = care.rebuild(lake.store)

    assert not done.is_whole
    (damaged,) = done.streams[0].damaged
    assert lake.path / damaged.path == bad
    assert good.relative_to(lake.manifest_path().parent).as_posix() in document(lake)["files"]
    assert bad.relative_to(lake.manifest_path().parent).as_posix() not in document(lake)["files"]
    assert lake.ids() == ([0, 1, 2, 3, 4] if harm == "no message" else [2, 3, 4])


def test_files_that_are_gone_are_told_and_no_longer_listed(lake: Any) -> None:
    fill(lake, 2, 3)
    gone = lake.files()[0]
    gone.unlink()

    done = care.rebuild(lake.store)

    assert [lake.path / path for path in done.streams[0].gone] == [gone]
    assert not done.is_whole
    assert lake.ids() == [2, 3, 4]


def test_a_running_writer_is_fenced_out_and_its_orphan_is_not_committed_twice(lake: Any) -> None:
    writer = lake.writer(max_file_records=2)
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1, 2))
    writer.state(lake.state("safe"))
    writer.records(lake.page("users", 3))
    put(lake, "users", "users-{times}-9.singer.gz", [{"id": 9}], lake.clock.moment, lake.schema())

    care.rebuild(lake.store)

    writer.state(lake.state("too far"))
    with pytest.raises(LockLost):
        writer.close()
    assert lake.states == [{"at": "safe"}]
    assert lake.ids() == [1, 2, 9]
    assert len(care.rebuild(lake.store).streams[0].adopted or ()) == 1
    assert lake.ids() == [1, 2, 9, 3]
    assert care.check(lake.store).findings == ()


def test_a_fenced_writer_cannot_commit_what_a_rebuild_took_in(lake: Any) -> None:
    fill(lake, 1)
    line = (lake.load().schema_lines[lake.load().hashes[0]]).decode()
    mine = manifest.claim(lake.store, "tap-x", "users", hash=lake.load().hashes[0], writer_id="slow")
    orphan = put(lake, "users", "users-{times}-9.singer.gz", [{"id": 5}], lake.clock.moment, lake.schema())
    lake.manifest_path().unlink()

    care.rebuild(lake.store)

    name = f"{orphan.parent.name}/{orphan.name}"
    stats = FileStats(1, 1, "2024-01-02T12:00:00.000000Z", "2024-01-02T12:00:00.000000Z")
    with pytest.raises(LockLost):
        manifest.commit(lake.store, mine, [(name, stats)], schema_line=line.encode())
    assert document(lake)["file_stats"][name]["records"] == 1


class Meddling:
    """A store in which others are at work right after a listing."""

    def __init__(self, store: Any, deed: Any) -> None:
        self._store, self._deed = store, deed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def files(self, folder: str, /, *, hidden: bool = False) -> Any:
        found = list(self._store.files(folder, hidden=hidden))
        deed, self._deed = self._deed, None
        if deed is not None:
            deed()
        return iter(found)


def test_a_commit_between_listing_and_writing_is_not_forgotten(lake: Any) -> None:
    fill(lake, 1)
    meddling = Meddling(lake.store, lambda: fill(lake, 2, start=7))

    done = care.rebuild(meddling)

    assert lake.ids() == [0, 7, 8]
    assert done.streams[0].files == 2


def test_names_that_were_cut_are_found_again(lake: Any) -> None:
    stream = "s" * 300
    fill(lake, 1, stream=stream)
    lake.manifest_path(layout.component(stream)).unlink()

    done = care.rebuild(lake.store)

    assert [one.stream for one in done.streams] == [stream]
    assert lake.ids(stream) == [0]


def test_an_unfinished_compaction_is_taken_in_its_parts_are_not(lake: Any) -> None:
    fill(lake, 2, 2, 2)
    shutil.copytree(lake.path, lake.path.with_name("before"))
    care.compact(lake.store)
    shutil.copy(lake.path.with_name("before") / "raw/tap-x/users/manifest.json", lake.manifest_path())
    assert len(lake.load().files) == 3

    care.rebuild(lake.store)

    assert len(lake.load().files) == 1
    assert lake.ids() == [0, 1, 2, 3, 4, 5]


def test_parts_that_are_there_are_known_as_such_after_the_manifest_was_lost(lake: Any) -> None:
    fill(lake, 2, 2)
    care.compact(lake.store)
    lake.manifest_path().unlink()
    care.rebuild(lake.store)
    (first,) = (lake.path / file.path for file in lake.load().files)
    fill(lake, 2, start=4)
    parts = {path.name for path in lake.files("**/*.singer.gz") if path != first}
    care.compact(lake.store)
    assert care.check(lake.store).findings == ()

    long_ago = 1e9  # so that vacuum takes it before its parts: a copy of a lake has times of its own
    for path in (path for path in first.parent.iterdir() if path.name not in parts):
        os.utime(path, (long_ago, long_ago))
    assert [one.path for one in care.vacuum(lake.store, yes=True).files] == [first.relative_to(lake.path).as_posix()]

    assert parts < {path.name for path in lake.files("**/*.singer.gz")}
    assert care.check(lake.store).findings == ()
    for _ in range(2):
        care.rebuild(lake.store)
        assert lake.ids() == list(range(6))
        lake.manifest_path().unlink()
        assert lake.ids() == list(range(6))


def test_a_damaged_compacted_file_gives_way_to_its_parts(lake: Any) -> None:
    fill(lake, 2, 2, 2)
    before = lines(lake)
    care.compact(lake.store)
    (compacted,) = (lake.path / file.path for file in lake.load().files)
    compacted.write_bytes(b"garbage")
    for keep in (True, False):
        if not keep:
            lake.manifest_path().unlink()

        done = care.rebuild(lake.store)

        assert [lake.path / one.path for one in done.streams[0].damaged] == [compacted]
        assert lines(lake) == before


def test_any_mixture_of_lost_files_ends_with_every_row_once(lake: Any, rng: random.Random) -> None:
    """Compactions, killed ones too, in several layers; then the manifest is lost: rows are all there, once."""
    for _ in range(6):
        fill(lake, *(rng.randrange(1, 5) for _ in range(4)), start=rng.randrange(10**6))
        kept = lake.manifest_path().read_bytes()
        care.compact(lake.store, below_bytes=rng.choice([600, 2000, 10**6]))
        if rng.random() < 0.5:
            lake.manifest_path().write_bytes(kept)  # as if it had been killed before its commit
    before = sorted(lines(lake))
    lake.manifest_path().unlink()
    assert sorted(lines(lake)) == before  # by listing

    care.rebuild(lake.store)

    assert sorted(lines(lake)) == before
    assert not [one for one in care.check(lake.store).findings if one.kind != "unfinished"]


@pytest.mark.parametrize("jobs", [1, 3])
def test_it_tells_how_many_files_of_a_stream_it_has_read(lake: Any, jobs: int) -> None:
    fill(lake, *[1] * 5)
    lake.manifest_path().unlink()
    seen: list[tuple[int, int]] = []

    care.rebuild(lake.store, jobs=jobs, on_file=lambda *told: seen.append(told))

    assert seen == [(done, 5) for done in range(1, 6)]
