"""The pass-through benchmark runs, compares what the files hold, and says what it measured."""

import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def bench_module(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    spec = importlib.util.spec_from_file_location("passthrough_bench", HERE / "passthrough_bench.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "passthrough_bench", module)
    spec.loader.exec_module(module)
    return module


def test_the_benchmark_runs_on_a_few_rows_and_compares_them(bench_module, monkeypatch):
    import psycopg

    from support import postgres

    try:
        postgres.programs()
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    with bench_module.prepared(500) as bench:
        assert bench_module.compare(bench) == 500
        lines, found = bench_module.measure(bench, 500, 1)
        assert all(len(runs.walls) == 1 and runs.wall > 0 for runs in found.values())
        assert lines[-1].startswith("pass-through: ") and " x plain COPY, at most 1.2: " in lines[-1]
        run = bench.run

        def run_and_change(*given):
            last = run(*given)
            with psycopg.connect(bench.url) as connection:
                connection.execute("update few.standard set note = 'another' where id = 7")
            return last

        monkeypatch.setattr(bench, "run", run_and_change)
        with pytest.raises(SystemExit, match="row 7 is not what PostgreSQL says"):
            bench_module.compare(bench)
        with pytest.raises(SystemExit, match="did not pass all rows through"):
            bench_module._check_passed(b"", 500)
