"""The worlds, and the kinds of stories that each tells."""

from __future__ import annotations

from typing import NamedTuple

from storm.harness import World


class Asked(NamedTuple):
    """What a world may want to know of the command line."""

    world: str
    kind: str
    s3: str | None = None
    seconds: float | None = None


KINDS = {
    "run": ("signals", "kill"),
    "tail": ("signals", "kill", "crash"),
    "batch": ("files",),
    "lake": ("writers", "states"),
    "spark": ("export", "formats", "extract", "streaming", "executors", "speculation", "pipelines"),
}
"""Kinds of stories of each world. The first one is told where no other is asked for; of Spark's all are."""
RUNS = {"run": 500, "tail": 1080, "batch": 200, "lake": 5, "spark": 30}
FEW = {"kill": 200, "states": 32, "crash": 100, "executors": 1, "speculation": 1, "pipelines": 1}


def world_of(asked: Asked) -> World:
    """The world that tells stories of a kind. Worlds are imported only where they are wanted."""
    if asked.world in ("run", "tail"):
        if asked.kind == "crash" or (asked.world, asked.kind) == ("run", "kill"):
            from storm.crash import Crashes

            return Crashes(tail=asked.world == "tail")
        from storm.signals import Signals

        return Signals(tail=asked.world == "tail", kill=asked.kind == "kill")
    if asked.world == "batch":
        from storm.batch import Batches

        return Batches(asked.s3)
    if asked.kind == "states":
        from storm.lake_state import States

        return States(asked.s3)
    if asked.world == "lake":
        from storm.lake import Lakes

        return Lakes(asked.s3, min(asked.seconds or 60.0, 60.0))
    return _spark(asked.kind)


def _spark(kind: str) -> World:
    if kind in ("export", "formats"):
        from storm.spark_tables import Tables

        return Tables(big=kind == "export")
    if kind == "extract":
        from storm.spark_extract import Extractions

        return Extractions()
    if kind == "streaming":
        from storm.spark_streaming import Queries

        return Queries()
    from storm import spark_cluster

    return spark_cluster.Steps(getattr(spark_cluster, kind))
