"""An export by a master with two workers on this machine (``local-cluster``): the same table as by ``local[2]``.

    python tests/spark/sessions/cluster_run.py

Executors are processes of their own there, as on a cluster: what they need must reach them. Half a minute of CPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

EXPORT = """
import json, sys
from burler.spark import export, session
from support.internals import export_options
export_options.SMALL_ROWS = 0
spark = session("cluster", {"spark.driver.memory": "1g", "spark.executor.memory": "512m"}, master=sys.argv[1])
results = export(spark, sys.argv[2], sys.argv[3])
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
print(json.dumps([executors, [[one.stream, one.rows_read, one.rows_written] for one in results]]))
"""


def exported(master, lake, out):
    """Executors beside the driver, what the export said, and each table's rows by delta-rs."""
    import deltalake

    command = [sys.executable, "-c", EXPORT, master, str(lake), str(out)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=900)
    executors, said = json.loads(done.stdout.splitlines()[-1])
    tables = {}
    for folder in sorted((out / "tap-x").iterdir()):
        table = deltalake.DeltaTable(str(folder)).to_pyarrow_table().drop_columns(["_sdc_batched_at"])
        tables[folder.name] = sorted(map(repr, table.to_pylist()))
    return executors, said, tables


def main():
    """Compare, and say how it went."""
    spec = importlib.util.spec_from_file_location("lakes", Path(__file__).parents[1] / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["lakes"] = module
    spec.loader.exec_module(module)
    import pyspark

    where = [str(Path(module.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(where)
    with tempfile.TemporaryDirectory() as folder:
        lake = module.Lake(Path(folder) / "lake")
        for number in range(4):
            lake.commit("users", [{"id": one % 50, "name": f"{number}/{one}"} for one in range(100)])
            lake.commit("odd", [b'{"id":%d.0,"name":null}' % one for one in range(10)], keys=())  # read in Python
        here = exported("local[2]", lake.root, Path(folder) / "here")
        there = exported("local-cluster[2,1,1024]", lake.root, Path(folder) / "there")
    assert there[1:] == here[1:], (here[:2], there[:2])
    assert (here[0], there[0]) == (0, 2), (here[0], there[0])
    print(f"pyspark {pyspark.__version__}: 2 executors made the tables that local[2] makes: {there[1]}")


if __name__ == "__main__":
    main()
