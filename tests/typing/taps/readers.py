"""Lakes, tables, Spark: what a data engineer calls."""

from typing import Any, assert_type

from pyspark.sql import DataFrame, SparkSession

import burler
import burler.lake
import burler.spark
import burler.testing
from burler.engine.run.sync import SyncResult
from burler.lake import LakeReading, LakeWriter, Page, Snapshot, Store
from burler.singer import Catalog, State
from burler.spark import Landed, StreamResult
from burler.verify import Verification

tap = burler.tap("tap-weather")

store = burler.lake.open_store("./lake")
assert_type(store, Store)
reading = burler.lake.read(store, stream="contacts", since="2024-05-01", columns=["name"])
assert_type(reading, LakeReading)
for page in reading.pages():
    assert_type(page, Page)
    assert_type(page.lines, bytes)
for row in reading.rows():
    assert_type(row, dict[str, Any])
assert_type(burler.lake.load(store, "tap-crm", "contacts"), Snapshot)


def keep(value: Any) -> None:
    print(value)


with LakeWriter(store, "tap-crm", emit_state=keep) as writer:
    assert_type(writer, LakeWriter)

spark = burler.spark.session("weather", conf={"spark.sql.shuffle.partitions": 4})
assert_type(spark, SparkSession)
frame = burler.spark.read(spark, tap, stream="readings")
assert_type(frame, DataFrame)
assert_type(burler.spark.table(spark, "./tables/crm/contacts"), DataFrame)

results = burler.spark.export(None, "./lake", "./tables", streams=["contacts"], format="delta")
assert_type(results, list[StreamResult])
assert_type(results[0].rows_written, int)
landed = burler.spark.land(spark, tap, "./tables", config={"token": "x"})
assert_type(landed, Landed)
assert_type(landed.state, dict[str, Any])
done = burler.spark.extract(spark, tap, "./lake", emit=keep)
assert_type(done, SyncResult)
assert_type(done.rows, dict[str, int])

merged = burler.singer.merge_states([{"bookmarks": {}}, {"bookmarks": {}}])
assert_type(merged, dict[str, Any])
catalog: Catalog = burler.singer.catalog_from_wire({"streams": []})
line: bytes = burler.singer.to_line(State({"bookmarks": {}}))
found = burler.schema.infer_schema([{"id": 1}])
assert_type(found, dict[str, Any])


def verified() -> Verification:
    return burler.testing.verify_tap(tap, {}, select=["R1"], max_records=100, resume=False)
