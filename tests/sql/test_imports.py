"""Reading PostgreSQL loads no package that it does not use: pandas and polars take longer than 100,000 rows."""

import subprocess
import sys

SCRIPT = """
import sys, burler
from burler.testing import run_tap

tap = burler.tap("tap-sql", config_spec={"url": ""})

@tap.client
def client(config):
    return burler.sql.Database(config["url"])

@tap.discover
def discover(client):
    return client.discover(tables="t")

@tap.sync("*")
def rows(client, stream):
    return client.pages(stream)

for batch in ({}, {"batch_config": {"encoding": {"format": "parquet"}, "storage": {"root": sys.argv[2]}}}):
    out = run_tap(tap, {"url": sys.argv[1], **batch})
    assert out.result.exit_code == 0 and out.result.rows == {"public.t": 20}, out.result
    print(*sorted({"pandas", "polars", "pyarrow.dataset", "pyarrow"} & set(sys.modules)))
"""


def test_rows_come_without_pandas(pg, tmp_path):
    pg.execute(
        "create table t as select i as id, 'name ' || i as name, i / 7.0::float8 as rate, i > 3 as big, "
        "(i / 10.0)::numeric(8, 2) as amount, timestamptz '2024-01-01 00:00+00' + i * interval '1 s' as at, "
        "case when i > 5 then date '2024-01-01' + i end as day from generate_series(1, 20) i"
    )
    command = [sys.executable, "-c", SCRIPT, pg.url, str(tmp_path / "files")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["pyarrow", "pyarrow"]
