"""The script that people write: PySpark as it comes, a lake's files to the latest row of each key, in Parquet.

Run as: default_script.py LAKE OUT. Nothing is set, nothing is checked.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

RECORD = (
    "id: bigint, a: string, b: string, c: string, email: string, `long`: string, f1: double, f2: double, ok: boolean, "
    "ts: timestamp, nested: struct<x: bigint, y: string, w: double>, arr: array<bigint>"
)

lake, out = sys.argv[1:3]
spark = SparkSession.builder.master("local[*]").getOrCreate()
files = [str(path) for path in sorted(Path(lake).rglob("*.singer.gz"))]
read = spark.read.schema(f"type string, record struct<{RECORD}>, time_extracted timestamp").json(files)
rows = read.where("type = 'RECORD'").select("record.*", "time_extracted")
order = Window.partitionBy("id").orderBy(F.desc("ts"), F.desc("time_extracted"))
rows.withColumn("place", F.row_number().over(order)).where("place = 1").drop("place").write.mode("overwrite").parquet(
    out
)
spark.stop()
