"""One stream written by several processes, part by part."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from faulty_store import FaultyStore

from burler.errors import LakeError, LockLost, MessageError, StorageError, UsageError
from burler.lake import LakeDriver, LockSettings, PartWriter, RollSettings, WrittenFile, read_catalogue, read_singerlake
from burler.singer.messages import ActivateVersion


@pytest.fixture
def driver(lake: Any) -> Any:
    with LakeDriver(lake.store, lake.tap_id, writer_id="driver", clock=lake.clock) as one:
        yield one


def part(lake: Any, *ids: int, **settings: Any) -> list[WrittenFile]:
    writer = PartWriter(lake.store, lake.tap_id, clock=lake.clock, settings=RollSettings(**settings))
    writer.schema(lake.schema())
    writer.records(lake.page("users", *ids))
    return writer.close()


def epochs(lake: Any) -> list[int]:
    return [entry["epoch"] for entry in json.loads(lake.manifest_path().read_bytes())["writers"].values()]


def test_what_workers_wrote_counts_once_the_driver_has_committed_it(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    (lock,) = lake.path.glob("raw/*/*/*/singerlake.lock")
    assert json.loads(lock.read_bytes())["writer-id"] == "driver"
    files = [*part(lake, 1, 2), *part(lake, 3)]  # the same names but for their numbers
    assert [file.name.rpartition("/")[2] for file in files] == [path.name for path in lake.files("raw/*/*/*/*.gz")][
        ::-1
    ]
    assert lake.load().files == ()
    driver.commit(files)
    assert lake.ids() == [1, 2, 3]
    driver.close()
    assert not lock.exists()
    catalog, about = read_catalogue(lake.store, "tap-x"), read_singerlake(lake.store)
    assert catalog is not None
    assert about is not None
    assert [entry["key_properties"] for entry in catalog["streams"]] == [["id"]]
    assert about["taps"]["tap-x"]["status"]["state"] == "complete"


def test_a_stream_of_which_no_worker_had_rows_is_known(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    driver.close()
    snapshot, catalog = lake.load(), read_catalogue(lake.store, "tap-x")
    assert snapshot.files == ()
    assert list(snapshot.versions.values()) == ["v1"]
    assert catalog is not None
    assert [entry["stream"] for entry in catalog["streams"]] == ["users"]


def test_a_schema_version_whose_claim_failed_is_claimed_at_the_next_try(lake: Any) -> None:
    store = FaultyStore(lake.store)
    store.fail("create", StorageError("no answer"), path="*/manifest.json")
    with LakeDriver(store, lake.tap_id, clock=lake.clock) as driver:
        with pytest.raises(StorageError):
            driver.begin(lake.schema())
        driver.begin(lake.schema())
        driver.commit(part(lake, 1))
    assert (epochs(lake), lake.ids(), lake.files("raw/*/*/*/singerlake.lock")) == ([1], [1], [])


def test_files_come_back_from_json_and_pickle(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    files = part(lake, 1, 2, 3, max_file_records=2)
    assert len(files) == 2
    assert [WrittenFile.from_wire(json.loads(json.dumps(file.to_wire()))) for file in files] == files
    assert pickle.loads(pickle.dumps(files)) == files


def test_a_file_that_is_committed_twice_counts_once(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    files = part(lake, 1)
    driver.commit(files)
    before = lake.manifest_path().read_bytes()
    driver.commit(files)
    assert lake.manifest_path().read_bytes() == before
    driver.commit([*files, *part(lake, 2)])
    assert [file.sequence for file in lake.load().files] == [1, 2]


def test_all_files_of_a_schema_version_are_committed_in_one_step(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    driver.commit(part(lake, *range(10), max_file_records=1))
    assert {file.sequence for file in lake.load().files} == {1}


def test_a_schema_version_that_only_a_worker_met_is_begun_by_its_commit(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    writer = PartWriter(lake.store, lake.tap_id, clock=lake.clock)
    writer.schema(lake.schema(price={"type": "number", "multipleOf": 0.01}))
    writer.records(lake.page("users", {"id": 1, "price": 1.25}))
    driver.commit([*writer.close(), *part(lake, 2)])
    assert sorted(lake.ids()) == [1, 2]
    assert sorted(lake.load().versions.values()) == ["v1", "v2"]
    assert len(list(lake.path.glob("raw/*/*/*/singerlake.lock"))) == 2
    assert epochs(lake) == [1, 1]


def test_a_worker_that_goes_on_hands_out_what_is_done(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    writer = PartWriter(lake.store, lake.tap_id, clock=lake.clock, settings=RollSettings(max_file_records=2))
    writer.schema(lake.schema())
    writer.records(lake.page("users", 1, 2, 3))
    driver.commit(writer.drain())
    assert lake.ids() == [1, 2]
    assert writer.drain() == []
    lake.clock.forward(61)
    writer.tick()
    driver.commit(writer.drain())
    assert lake.ids() == [1, 2, 3]
    assert writer.close() == []


def test_versions_and_activations_are_kept(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    with PartWriter(lake.store, lake.tap_id, clock=lake.clock) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1, version=7))
        writer.activate_version(ActivateVersion("users", 7))
    driver.commit(writer.drain())
    assert [message["type"] for message in lake.messages()] == ["SCHEMA", "RECORD", "ACTIVATE_VERSION"]


def test_a_worker_in_trouble_leaves_nothing(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    with pytest.raises(ZeroDivisionError), PartWriter(lake.store, lake.tap_id) as writer:
        writer.schema(lake.schema())
        writer.records(lake.page("users", 1))
        raise ZeroDivisionError
    assert writer.drain() == []
    assert (lake.files(), lake.hidden()) == ([], [])
    with pytest.raises(MessageError, match="data came before its SCHEMA"):
        PartWriter(lake.store, lake.tap_id).records(lake.page("users", 1))


def test_a_driver_that_was_taken_over_commits_nothing(lake: Any) -> None:
    old = LakeDriver(lake.store, lake.tap_id, writer_id="old")
    old.begin(lake.schema())
    files = part(lake, 1)
    new = LakeDriver(lake.store, lake.tap_id, writer_id="new", clock=lake.impatient())
    new.begin(lake.schema())
    new.commit(part(lake, 2))
    with pytest.raises(LockLost, match="new, epoch 2"):
        old.commit(files)
    old.close()
    assert lake.ids() == [2]
    new.commit(part(lake, 3))
    new.close()
    assert not list(lake.path.rglob("singerlake.lock"))


def test_a_schema_that_only_workers_hear_takes_the_place_of_what_was_expected(lake: Any, driver: LakeDriver) -> None:
    expected = dataclasses.replace(lake.schema(), bookmark_properties=("id",))
    driver.expect(expected)
    files = part(lake, 1)
    assert lake.load().files == (), "there is a manifest, and it names none"
    driver.commit(files)
    driver.close()
    with LakeDriver(lake.store, lake.tap_id) as second:
        second.expect(expected)
        waiting = LakeDriver(lake.store, lake.tap_id, locks=LockSettings(timeout_seconds=0))
        with pytest.raises(LockLost, match="waited 0 s"):
            waiting.expect(expected)
    assert (lake.ids(), list(lake.load().versions.values())) == ([1], ["v1"])
    with LakeDriver(lake.store, lake.tap_id) as third:
        third.expect(dataclasses.replace(expected, stream="other"))
    assert list(lake.load("other").versions.values()) == ["v1"], "where the tap says none"


def test_two_drivers_of_one_stream_take_turns(lake: Any) -> None:
    first = LakeDriver(lake.store, lake.tap_id)
    first.begin(lake.schema())
    waiting = LakeDriver(lake.store, lake.tap_id, locks=LockSettings(timeout_seconds=0))
    with pytest.raises(LockLost, match="waited 0 s"):
        waiting.begin(lake.schema())
    first.close()
    waiting.begin(lake.schema())
    waiting.close()


def test_under_tail_the_lock_goes_with_each_commit(lake: Any) -> None:
    one, two = (LakeDriver(lake.store, lake.tap_id, writer_id=name, tail=True) for name in ("one", "two"))
    for number in range(4):
        (one, two)[number % 2].commit(part(lake, number))
        assert not list(lake.path.rglob("singerlake.lock"))
    assert lake.ids() == [0, 1, 2, 3]
    assert epochs(lake) == [4]


@pytest.mark.parametrize(
    ("change", "error", "fact"),
    [
        ({"tap_id": "tap-y"}, UsageError, "is of tap 'tap-y'"),
        ({"name": "x/../../../../etc/passwd"}, UsageError, "no name of a data file"),
        ({"name": "manifest.json"}, UsageError, "no name of a data file"),
        ({"hash": "11111111111"}, UsageError, "no name of a data file of schema 1111"),
    ],
)
def test_what_is_no_file_of_this_tap_is_refused(
    lake: Any, driver: LakeDriver, change: dict[str, Any], error: type[Exception], fact: str
) -> None:
    driver.begin(lake.schema())
    (file,) = part(lake, 1)
    with pytest.raises(error, match=fact):
        driver.commit([file, dataclasses.replace(file, **change)])
    assert lake.load().files == ()


def test_a_file_that_is_not_here_is_named(lake: Any, driver: LakeDriver) -> None:
    driver.begin(lake.schema())
    (file,) = part(lake, 1)
    lake.files()[0].unlink()
    with pytest.raises(LakeError, match="Did the worker write to another disk"):
        driver.commit([file])


def test_the_worker_names_folders_as_the_lake_does(lake: Any) -> None:
    with LakeDriver(lake.store, lake.tap_id, encoding="base85") as driver:
        driver.begin(lake.schema())
        driver.commit(part(lake, 1))
    assert len(lake.load().files[0].hash) == 10
    assert lake.ids() == [1]


# --- real processes

WORKER = """
import datetime as dt, json, os, signal, sys
from burler.lake import RollSettings, open_store
from burler.lake import PartWriter
from burler.singer.messages import Records, Schema
path, start, rows, fail = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "fail"
writer = PartWriter(open_store(path), "tap-x", settings=RollSettings(max_file_records=100))
writer.schema(Schema("users", {"type": "object", "properties": {"id": {"type": "integer"}}}, ("id",)))
at = dt.datetime(2024, 1, 2, tzinfo=dt.UTC)
line = b'{"type":"RECORD","stream":"users","record":{"id":%d},"time_extracted":"2024-01-02T00:00:00.000000Z"}\\n'
for row in range(start, start + rows):
    writer.records(Records("users", line % row, 1, at))
if fail:
    os.kill(os.getpid(), signal.SIGKILL)
print(json.dumps([file.to_wire() for file in writer.close()]))
"""


def test_workers_in_processes_of_which_one_is_killed(lake: Any) -> None:
    with LakeDriver(lake.store, lake.tap_id) as driver:
        driver.begin(lake.schema())
        workers = []
        for number in range(4):
            arguments = [str(lake.path), str(number * 10_000), "250", "fail" if number == 1 else "-"]
            workers.append(subprocess.Popen([sys.executable, "-c", WORKER, *arguments], stdout=subprocess.PIPE))
        for worker in workers:
            out, _ = worker.communicate(timeout=60)
            driver.commit(map(WrittenFile.from_wire, json.loads(out or b"[]")))
    assert [worker.returncode for worker in workers] == [0, -signal.SIGKILL, 0, 0]
    expected = [number * 10_000 + row for number in (0, 2, 3) for row in range(250)]
    assert sorted(lake.ids()) == expected
    names = [Path(file.path).name for file in lake.load().files]
    assert len(set(names)) == len(names) == 9
    assert len(lake.files()) == 11  # the two that the killed one had published are in no manifest


def test_the_snippets_of_the_docs_run(lake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs" / "lake-writers.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(lake.path.parent)
    scope: dict[str, Any] = {"__name__": "snippet"}
    for snippet in snippets:
        exec(compile(snippet, "docs/lake-writers.md", "exec", dont_inherit=True), scope)
    lake.tap_id = "tap-crm"
    assert len(snippets) == 2
    assert lake.ids() == [part * 100 + row for part in range(4) for row in range(3)]
    assert {(file.clean, file.stats.records) for file in lake.load().files} == {(True, 3)}
