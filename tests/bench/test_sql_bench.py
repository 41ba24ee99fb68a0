"""The database benchmark runs, compares its output, and says what it measured."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def sql_bench(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    spec = importlib.util.spec_from_file_location("sql_bench", HERE / "sql_bench.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "sql_bench", module)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_runs_on_a_few_rows_and_compares_them(sql_bench, monkeypatch):
    from support import postgres

    try:
        postgres.programs()
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    with sql_bench.prepared(2000) as bench:
        for table in sql_bench.TABLES:
            assert sql_bench.compare(bench, f"{table}_part") == 100
        said = sql_bench.measure(bench, 2000, 1, peers=False)
        assert sum("| burler | 2,000 |" in line for line in said) == 2
        assert sum("| burler, BATCH parquet | 2,000 |" in line for line in said) == 2
        assert sum(": x COPY: " in line for line in said) == 2
        assert sum(": BATCH parquet x COPY: " in line for line in said) == 2
        for candidate in (bench.copy, bench.burler, bench.batch):
            with pytest.raises(SystemExit, match="gave 100 rows, not 2,000"):
                bench.run(candidate("standard_part"), sql_bench.Runs(2000))
        for name, told in (("batch", "files"), ("burler", "records")):
            wrong = getattr(bench, name)("standard_part")
            monkeypatch.setattr(bench, name, lambda table, wrong=wrong: wrong)
            with pytest.raises(SystemExit, match=rf"is not what PostgreSQL says \({told}\)"):
                sql_bench.compare(bench, "standard")
