"""Each kind of harm is found, named with its cure, and nothing else is; a check changes nothing."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from care_lakes import DEAD_LOCK, TEXT, document, fill, later, put, save

from burler.errors import UsageError
from burler.lake import care


def kinds(lake: Any, **options: Any) -> list[str]:
    return [one.kind for one in care.check(lake.store, **options).findings]


def state_of(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def first_file(lake: Any) -> Path:
    return lake.path / lake.load().files[0].path


def named(lake: Any) -> str:
    return str(document(lake)["files"][0])


def change_stats(lake: Any, **stats: Any) -> None:
    wire = document(lake)
    wire["file_stats"][named(lake)] |= stats
    save(lake, wire)


def drop(lake: Any) -> None:
    wire = document(lake)
    del wire["file_stats"][wire["files"].pop(0)]
    save(lake, wire)


def rename(path: Path, name: str) -> None:
    path.rename(path.with_name(name))


def other_name(lake: Any) -> None:
    old = named(lake)
    new = old.replace("20240102T120100Z", "20230102T120100Z", 1)
    rename(first_file(lake), new.rpartition("/")[2])
    lake.manifest_path().write_text(lake.manifest_path().read_text().replace(old, new))


def other_stream(lake: Any) -> None:
    path = first_file(lake)
    other = lake.schema("orders")
    made = put(lake, "users", "users-{times}-8.singer", [{"id": 1}], lake.clock.moment, other)
    path.parent.mkdir(exist_ok=True)
    made.rename(made.with_name(made.name))
    wire = document(lake)
    wire["files"].append(made.relative_to(lake.manifest_path().parent).as_posix())
    save(lake, wire)


def twice(lake: Any) -> None:
    parts, stats = document(lake)["files"], document(lake)["file_stats"]
    care.compact(lake.store)
    wire = document(lake)
    wire["files"] += parts
    wire["file_stats"] |= stats
    save(lake, wire)


def unfinished(lake: Any) -> None:
    kept = lake.manifest_path().read_bytes()
    care.compact(lake.store)
    lake.manifest_path().write_bytes(kept)


def old_lock(lake: Any) -> None:
    lock = first_file(lake).with_name("singerlake.lock")
    lock.write_bytes(DEAD_LOCK)


HARM: dict[str, tuple[Callable[[Any], object], list[str], list[str]]] = {
    # what is done; what a check finds; what a fast one finds
    "cut": (lambda lake: first_file(lake).write_bytes(first_file(lake).read_bytes()[:-9]), ["torn"], ["torn"]),
    "flipped": (
        lambda lake: first_file(lake).write_bytes(_flip(first_file(lake).read_bytes())),
        ["torn"],
        [],
    ),
    "gone": (lambda lake: first_file(lake).unlink(), ["missing"], ["missing"]),
    "not listed": (drop, ["orphan"], ["orphan"]),
    "in another folder": (
        lambda lake: put(lake, "users", f"../{'1' * 11}/users-{{times}}.singer", [], lake.clock.moment, lake.schema()),
        ["hash"],
        ["orphan"],
    ),
    "outside": (
        lambda lake: first_file(lake).rename(lake.manifest_path().with_name(first_file(lake).name)),
        ["missing", "misplaced"],
        ["missing", "misplaced"],
    ),
    "other rows": (lambda lake: change_stats(lake, records=7), ["count"], []),
    "other times": (lambda lake: change_stats(lake, last="2024-01-02T12:01:00.000001Z"), ["count"], []),
    "other name": (other_name, ["time"], []),
    "other stream": (other_stream, ["message"], []),
    "no JSON": (lambda lake: lake.manifest_path().write_text("{"), ["json"], ["json"]),
    "no manifest": (lambda lake: lake.manifest_path().write_text('{"entries": []}'), ["json"], ["json"]),
    "newer": (lambda lake: save(lake, {**document(lake), "format": 9}), ["json"], ["json"]),
    "no catalogue": (lambda lake: (lake.path / "raw/tap-x/catalogue.json").write_text("[]"), ["json"], ["json"]),
    "no singerlake": (lambda lake: (lake.path / "raw/singerlake.json").write_text("\xff"), ["json"], ["json"]),
    "lost manifest": (lambda lake: lake.manifest_path().unlink(), ["no manifest"], ["no manifest"]),
    "lost catalogue": (lambda lake: (lake.path / "raw/tap-x/catalogue.json").unlink(), ["json"], ["json"]),
    "lost singerlake": (lambda lake: (lake.path / "raw/singerlake.json").unlink(), ["json"], ["json"]),
    "twins": (lambda lake: fill(_other(lake, "Tap-X"), 1), ["twins"], ["twins"]),
    "double": (twice, ["double"] * 3, ["double"] * 3),
    "unfinished": (unfinished, ["unfinished"], ["unfinished"]),
    "lock": (old_lock, ["lock"], ["lock"]),
    "no lock": (lambda lake: first_file(lake).with_name("singerlake.lock").write_text("[]"), ["json"], ["json"]),
    "leftover": (lambda lake: first_file(lake).with_name(".tmp-1").write_text(""), ["leftover"], ["leftover"]),
}


def _flip(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 0x55]) + data[41:]


def _other(lake: Any, tap_id: str) -> Any:
    (lake.path / "raw" / tap_id).mkdir()  # the writer refuses twins: somebody made the folder by hand
    (lake.path / "raw" / tap_id / "empty").mkdir()
    return type(lake)(lake.path, lake.store, lake.clock, tap_id="tap-z")


@pytest.mark.parametrize("harm", list(HARM))
def test_harm_is_found_and_nothing_is_changed(lake: Any, harm: str) -> None:
    fill(lake, 2, 3, 1)
    deed, found, fast = HARM[harm]
    deed(lake)
    before = state_of(lake.path)

    done = care.check(lake.store, now=later(2))

    assert sorted(one.kind for one in done.findings) == sorted(found)
    assert all(one.fact and one.cure and "\n" not in one.fact for one in done.findings)
    assert sorted(kinds(lake, fast=True, now=later(2))) == sorted(fast)
    assert state_of(lake.path) == before


CURED = ["cut", "gone", "not listed", "other rows", "no manifest", "no catalogue", "double"]
CURED += ["lost manifest", "lost catalogue", "lost singerlake"]


@pytest.mark.parametrize("harm", CURED)
def test_the_cure_cures(lake: Any, harm: str) -> None:
    fill(lake, 2, 3, 1)
    HARM[harm][0](lake)
    if harm == "cut":
        first_file(lake).rename(lake.path / "moved away")

    care.rebuild(lake.store)

    assert kinds(lake) == []


def test_a_healthy_lake_has_no_findings(rich: Any) -> None:
    done = care.check(rich.store)
    assert [one.kind for one in done.findings] == ["orphan"]  # of the writer of another make
    care.rebuild(rich.store)
    care.compact(rich.store)
    done = care.check(rich.store)
    assert done.findings == ()
    assert (done.streams, done.files) == (3, len([one for one in rich.files() if not one.name.endswith(".json")]))
    assert 0 < done.opened < done.files
    assert care.check(rich.store, fast=True).opened == 0


def test_a_lake_without_manifests_is_read_by_listing(rich: Any) -> None:
    for path in rich.path.rglob("*.json"):
        path.unlink()
    done = care.check(rich.store)
    assert done.findings == ()  # writers of another make may leave a lake so
    assert "no stream has a manifest" in done.remarks[0]
    assert done.opened == done.files > 5
    care.rebuild(rich.store, streams=["orders of/us"])
    done = care.check(rich.store)
    assert [(one.kind, one.path) for one in done.findings] == [
        ("no manifest", "raw/tap-x/users/manifest.json"),
        ("json", "raw/tap-y/catalogue.json"),
        ("no manifest", "raw/tap-y/users/manifest.json"),
    ]
    assert done.remarks == ()
    assert kinds(rich, taps=["tap-y"]) == ["json", "no manifest"]
    assert kinds(rich, streams=["orders of/us"]) == []
    (rich.path / "raw/singerlake.json").unlink()
    assert kinds(rich, streams=["orders of/us"]) == []  # a part of the lake was looked at
    assert kinds(rich) == ["json", "no manifest", "json", "no manifest"]


def test_a_damaged_file_is_one_finding_with_the_cure_that_fits(lake: Any) -> None:
    fill(lake, 2, 3, 1)
    path = first_file(lake)
    path.write_bytes(path.read_bytes()[:-9])
    (before,) = care.check(lake.store).findings
    assert before.fact.startswith("is truncated or corrupt")  # its place is said once, as a path in the lake
    assert "move it out of the lake, run burler lake rebuild" in before.cure
    care.rebuild(lake.store)  # leaves it out
    (after,) = care.check(lake.store).findings
    assert (after.kind, after.path) == ("torn", before.path)
    assert "no manifest names it, so readers pass over it" in after.fact
    assert after.cure.startswith("Restore it from a copy; then burler lake rebuild.")
    (fast,) = care.check(lake.store, fast=True).findings
    assert (fast.kind, "left it out" in fast.fact) == ("orphan", True)


def test_what_a_writer_at_work_has_not_made_yet_is_no_finding(lake: Any) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1))
    put(lake, "users", "users-{times}-8.singer", [{"id": 8}], lake.clock.moment, lake.schema())
    assert not (lake.path / "raw/tap-x/catalogue.json").exists()
    assert kinds(lake) == []
    writer.close()
    assert kinds(lake) == ["orphan"]


def test_clean_that_is_not_clean_is_found(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", {"id": 1.5}))
    assert kinds(lake) == []
    change_stats(lake, clean=True)
    (found,) = care.check(lake.store).findings
    assert (found.kind, "clean" in found.fact) == ("count", True)


def test_a_file_that_is_committed_while_it_looks_is_no_finding(lake: Any) -> None:
    fill(lake, 1)
    orphan = named(lake)
    kept = document(lake)
    drop(lake)

    class Late:
        """A store whose manifest names the file from its second reading on."""

        reads = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(lake.store, name)

        def read(self, path: str, /) -> Any:
            if path.endswith("users/manifest.json"):
                self.reads += 1
                if self.reads == 2:
                    save(lake, kept)
            return lake.store.read(path)

    assert kinds(lake) == ["orphan"]
    late = Late()
    assert care.check(late).findings == ()  # type: ignore[arg-type]
    assert late.reads == 2
    assert orphan in document(lake)["files"]


def test_a_file_that_is_made_and_committed_while_it_looks_is_no_finding(lake: Any) -> None:
    fill(lake, 1)

    class Late:
        """A store in which a file is made and committed right after the listing."""

        def __getattr__(self, name: str) -> Any:
            return getattr(lake.store, name)

        def files(self, folder: str, /, *, hidden: bool = False) -> Any:
            found = list(lake.store.files(folder, hidden=hidden))
            fill(lake, 1, start=5)
            return iter(found)

    assert care.check(Late()).findings == ()  # type: ignore[arg-type]
    assert lake.ids() == [0, 5]


def test_the_lock_and_files_of_a_living_writer_are_no_findings(lake: Any) -> None:
    writer = lake.writer()
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1))

    assert kinds(lake) == kinds(lake, now=later(2)) == []
    old = put(lake, "users", "users-{times}-8.singer", [{"id": 8}], lake.clock.moment, lake.schema())
    put(lake, "users", "users-{times}-9.singer", [{"id": 9}], lake.clock.moment, lake.schema())
    assert kinds(lake) == []  # files of its workers: it has yet to commit them
    os.utime(old, (0, 0))
    assert kinds(lake) == ["orphan"]
    assert [one.path[-8:] for one in care.vacuum(lake.store, now=later(8)).files] == ["8.singer"]
    writer.close()
    assert kinds(lake) == ["orphan", "orphan"]


def test_parts_of_a_lake(rich: Any) -> None:
    assert care.check(rich.store, taps=["tap-y"]).streams == 1
    assert care.check(rich.store, streams=["orders of/us"]).streams == 1
    with pytest.raises(UsageError, match=r"no stream 'nope'.* It has: orders of/us, users"):
        care.check(rich.store, streams=["nope"])
    with pytest.raises(UsageError, match=r"no tap 'nope'.* It has: tap-x, tap-y"):
        care.check(rich.store, taps=["nope"])


@pytest.mark.parametrize("jobs", [1, 3])
def test_several_at_a_time_find_the_same(lake: Any, jobs: int) -> None:
    fill(lake, *[1] * 12)
    for file in lake.files()[::5]:
        file.write_bytes(file.read_bytes()[:-3])
    seen: list[tuple[int, int]] = []

    done = care.check(lake.store, jobs=jobs, on_progress=lambda *told: seen.append(told))

    assert [one.kind for one in done.findings] == ["torn"] * 3
    assert seen[-1] == (12, 12)


def test_processes_find_the_same(lake: Any) -> None:
    fill(lake, 1, 1, 1)
    os.truncate(first_file(lake), 65 << 20)  # fewer bytes are not worth a process
    assert kinds(lake, jobs=2, processes=True) == ["torn"]


def test_what_it_says_of_hostile_names_stays_text(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fill(lake, 1, stream="../../etc", name=TEXT)
    (path,) = lake.files()
    path.unlink()
    (found,) = care.check(lake.store).findings
    assert found.path.startswith("raw/tap-x/%2E.%2F..%2Fetc/")
    assert json.dumps(found.path)
