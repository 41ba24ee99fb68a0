"""docs/table-formats.md: its Python and SQL run as they stand, in order, on a small lake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "table-formats.md"
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "country": {"type": ["null", "string"]},
        "updated_at": {"type": "string", "format": "date-time"},
    },
}


def test_snippets_run_in_order(
    lake: Any, tmp_path: Path, monkeypatch: Any, spark: Any, server: Any, database: str, capsys: Any
) -> None:
    import duckdb

    from support import postgres

    lake.tap_id = "tap-shop"
    rows = [
        {"id": at, "country": [None, "NL", "a/b"][at], "updated_at": "2024-05-01T10:00:00.123456Z"} for at in range(3)
    ]
    lake.commit("orders", rows, schema=SCHEMA, bookmarks=("updated_at",))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", postgres.PASSWORD)
    url = f"postgresql://burler@127.0.0.1:{server.port}/{database}"
    found = re.findall(r"```(python|sql)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [kind for kind, _ in found].count("sql") == 1
    scope: dict[str, Any] = {"__name__": "snippet"}
    for kind, block in found:
        if kind == "sql":
            with duckdb.connect() as connection:
                assert sorted(connection.execute(block).fetchall())[1][:2] == (1, "NL")
            continue
        exec(compile(block.replace("postgresql://loader@db.example/shop", url), "table-formats.md", "exec"), scope)
        if "orders = " in block:
            assert sorted(row.id for row in scope["orders"].collect()) == [0, 1, 2]
    said = capsys.readouterr().out
    assert "['country']" in said
    assert "\n1\n" in said  # rows with id > 1 in Iceberg
    assert "[(0, {'burler" in said
