"""What is in a lake, told without opening a data file."""

from __future__ import annotations

from typing import Any

import pytest
from care_lakes import fill

from burler.errors import UsageError
from burler.lake import care


class Closed:
    """A store that opens no data file."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        assert name != "open", "a data file was opened"
        return getattr(self._store, name)


def test_taps_streams_versions_and_files(rich: Any) -> None:
    care.describe(rich.store, "tap-x", owner="crm team")

    found = care.ls(Closed(rich.store))  # type: ignore[arg-type]

    assert [(tap.tap_id, tap.owner) for tap in found.taps] == [("tap-x", "crm team"), ("tap-y", None)]
    orders, users = found.taps[0].streams
    assert (users.stream, users.files, users.records, users.manifest) == ("users", 4, 11, True)
    assert [(one.version, one.files, one.records) for one in users.versions] == [
        ("v1", 2, 5),
        ("v2", 1, 4),
        ("v3", 1, 2),
    ]
    assert (orders.stream, orders.records, len(orders.all_files)) == ("orders of/us", 5, 3)
    assert users.last == "2024-01-02T12:03:00.000000Z"
    assert users.bytes == sum(file.bytes or 0 for file in users.all_files)
    assert users.stored_bytes == sum((rich.path / file.path).stat().st_size for file in users.all_files)
    assert users.written is not None


def test_without_manifests_it_goes_by_folders(rich: Any) -> None:
    for path in rich.path.rglob("*.json"):
        path.unlink()

    found = care.ls(Closed(rich.store))  # type: ignore[arg-type]

    users = found.taps[0].streams[1]
    assert (users.files, users.records, users.bytes, users.manifest, users.problem) == (5, None, None, False, None)
    assert users.stored_bytes == sum((rich.path / file.path).stat().st_size for file in users.all_files)
    assert users.last == "2024-01-02T13:03:00.000000Z"


def test_a_broken_manifest_is_said_and_the_others_are_told(rich: Any) -> None:
    rich.manifest_path().write_text("{")
    (rich.path / "raw/singerlake.json").write_text("{")

    found = care.ls(rich.store)

    orders, users = found.taps[0].streams
    assert (users.manifest, users.files) == (False, 5)
    assert "manifest.json is broken" in (users.problem or "")
    assert "singerlake.json" in (found.problem or "")
    assert (orders.problem, orders.records) == (None, 5)


def test_an_empty_lake_and_streams_that_are_not_there(lake: Any) -> None:
    assert care.ls(lake.store).taps == ()
    fill(lake, 1)
    with pytest.raises(UsageError, match="It has: users"):
        care.ls(lake.store, streams=["nope"])


def test_a_stream_without_rows_is_told(lake: Any) -> None:
    with lake.writer() as writer:
        writer.schema(lake.schema())
    (stream,) = care.ls(lake.store).taps[0].streams
    assert (stream.files, stream.records, stream.last, len(stream.versions)) == (0, 0, None, 1)
