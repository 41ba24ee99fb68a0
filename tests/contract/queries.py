"""Two streams of Spark's, a lake and a tap, as queries that stop when all that there is has come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from contract.files import HERE

from burler import spark

NAMES = ("singerlake", "burler")


def session() -> Any:
    """A session that is patient with Python's start on a machine that has much to do."""
    confs = {
        "spark.python.authenticate.socketTimeout": "180s",
        # The quick compiler alone: right for a few small jobs, wrong for real ones.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
    }
    return spark.session("contract", confs, master="local[2]")


def run(session: Any, name: str, folder: Path, lake: Path, upto: int) -> list[str]:
    """Run a query from the checkpoint in a folder on: its rows, each as JSON.

    ``upto``: the last number that the source of the tap has by now. Its spool lies beside the checkpoint.
    """
    reader = session.readStream.format(name)
    if name == "singerlake":
        source = reader.option("stream", "orders").load(str(lake))
    else:
        options = {"app": f"{HERE / 'apps.py'}:counting", "stream": "numbers", "config": json.dumps({"upto": upto})}
        source = reader.options(**options, spool=str(folder / "spool")).load()
    found: list[str] = []

    def keep(batch: Any, _number: int) -> None:
        found.extend(batch.selectExpr("to_json(struct(*)) as text").toPandas()["text"])

    writer = source.writeStream.foreachBatch(keep).option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(found)


def offsets(folder: Path) -> list[Any]:
    """The offsets in a checkpoint, as the source wrote them."""
    files = sorted((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().splitlines()[2]) for path in files]
