"""Which formats there are, what is refused before anything starts, and where tables lie."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from format_names import FILES
from format_samples import arrow, change, row

from burler.errors import ExportError, UsageError
from support.internals import opening


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("delta", {"x": "1"}, "takes no options"),
        ("parquet", {"keep_versions": "0"}, "a number from 1 on"),
        ("parquet", {"compression": "zstd"}, "compression"),
        ("icberg", {}, "Did you mean 'iceberg'"),
        ("Parquet", {}, "Did you mean 'parquet'"),
        ("no such", {}, "no name of a format"),
        ("session:orc", {}, "delta and iceberg"),
    ],
    ids=["options-of-delta", "keep-none", "options-of-parquet", "typing-error", "capital", "space", "session"],
)
def test_nonsense_is_refused_first(kind: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        opening.check_format(kind, options)
    with pytest.raises(UsageError, match=said):
        opening.open_target(
            kind, "/x/y/z", source="y/z", options=options, spark=lambda: pytest.fail("Spark was asked for")
        )


def test_files_lie_in_folders_named_as_in_the_lake() -> None:
    assert opening.place_of("delta", "/out", "tap%2Fx", "a%20b", "tap/x", "a b") == "/out/tap~2Fx/a~20b"
    assert opening.place_of("orc", "out", "t", "s", "t", "s") == str(Path("out/t/s").absolute())
    with pytest.raises(UsageError, match="mounted file system"):
        opening.place_of("delta", "s3://bucket/tables", "t", "s", "t", "s")


def test_places_in_databases_hold_names_and_no_password() -> None:
    place = opening.place_of("jdbc", "postgresql://me@host:1/db?sslmode=require", "", "", "tap/x", "a #table= b")
    assert place.startswith("postgresql://me@host:1/db?sslmode=require")
    for url in ("postgresql://me:hunter22@host/db", "jdbc:postgresql://host/db?password=hunter22"):
        with pytest.raises(UsageError, match="PGPASSWORD") as caught:
            opening.place_of("jdbc", url, "", "", "t", "s")
        assert "hunter22" not in str(caught.value)
    with pytest.raises(UsageError, match="URL of a database"):
        opening.place_of("jdbc", "/some/folder", "", "", "t", "s")


@pytest.mark.parametrize("kind", FILES)
def test_folder_of_another_format_stays_untouched(kind: str, tmp_path: Path, packages: None) -> None:
    def target(kind: str) -> Any:
        place = opening.place_of(kind, str(tmp_path), "t", "s", "t", "s")
        return opening.open_target(kind, place, source="t/s", options={}, spark=lambda: None)

    first = target(kind)
    first.open()
    first.publish(arrow([row(1)]), change("replace"))
    for other in set(FILES) - {kind}:
        with pytest.raises(ExportError, match=f"holds a table of format {kind}"):
            second = target(other)
            second.open()
            second.publish(arrow([row(2)]), change("replace"))
    assert target(kind).open().version is not None


def test_asking_for_a_format_loads_no_other() -> None:
    code = (
        "import sys; from support.internals import opening\n"
        "place = opening.place_of('parquet', '/o', 't', 's', 't', 's')\n"
        "t = opening.open_target('parquet', place, source='t/s', options={}, spark=None)\n"
        "heavy = {'pyspark', 'pyarrow', 'deltalake', 'pyiceberg', 'psycopg'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
